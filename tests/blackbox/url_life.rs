//! The promise: a URL server loses no URL and has none with two living spiders, whatever becomes of spiders and
//! processes. Silence, broken connections and late words lead to the same end: each URL is answered for once.

use crate::link::{Link, now_ns};
use crate::support::*;
use crate::urlserver::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const IMPATIENT: &str = "listen = \"127.0.0.1:0\"\ntimeout_spider_status = 1";

#[test]
fn working_keeps_a_transaction_alive() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1", "h2"], 1);
    let settings = format!("{LISTEN}timeout_spider_status = 2");
    let (running, addr) = listening(&mut command(&dir, &settings, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 10");
    let got = link.works(2);
    for turn in 0..14 {
        for work in &got {
            link.send(&match turn % 2 {
                0 => format!("WORKING {}", work.trans),
                _ => format!("{} WORKING\r", work.trans),
            });
        }
        link.says_nothing_for(Duration::from_millis(300));
    }
    got.iter().for_each(|work| link.send(&work.done()));
    assert_eq!(link.line(), None);
    assert_eq!(counts(&ended(running)), [2, 2, 0, 0, 0]);
}

#[test]
fn silence_sends_the_url_again_and_a_late_done_changes_nothing() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1"], 2);
    let (running, addr) = listening(&mut command(&dir, IMPATIENT, &urls));
    let mut link = Link::dial(addr);
    let asked_ns = now_ns();
    link.send("GET 10");
    let first = link.work();
    let again = link.work();
    assert!(link.at_ns() - asked_ns >= 1_000 * MS, "{} ms", (link.at_ns() - asked_ns) / MS);
    assert_eq!((again.doc_id, &again.url), (first.doc_id, &first.url));
    assert_ne!(again.trans, first.trans);
    // If it were taken, the window would be free for the other URL.
    link.send(&first.done());
    link.says_nothing_for(A_WHILE);
    link.send(&again.done());
    let other = link.work();
    assert_ne!(other.url, first.url);
    link.send(&other.done());
    assert_eq!(link.line(), None);
    let report = ended(running);
    assert_eq!(counts(&report), [2, 3, 1, 1, 0], "{report}");
    assert_eq!(report["results"], json!({"ok": 2}));
}

/// One that is connected but says nothing may have crashed: its hosts do not wait for it.
#[test]
fn what_a_silent_spider_had_goes_to_one_that_asks() {
    for window in [1, 2] {
        let (server, dir) = (web(), TempDir::new());
        let urls = pages(&server, &["h1"], 3);
        let settings = format!("{IMPATIENT}\nreq_host_concurrent = {window}");
        let (running, addr) = listening(&mut command(&dir, &settings, &urls));
        let mut silent = Link::dial(addr);
        silent.send("GET 1");
        let held = silent.work();
        let mut other = Link::dial(addr);
        other.send("GET 10");
        other.says_nothing_for(A_WHILE);
        let mut got = Vec::new();
        for _ in 0..3 {
            let work = other.work();
            other.send(&work.done());
            got.push(work);
        }
        assert_eq!(urls_of(&got), set(&urls));
        assert!(got.iter().all(|work| work.trans != held.trans));
        let report = ended(running);
        assert_eq!(counts(&report), [3, 4, 1, 0, 0], "{report}");
    }
}

#[test]
fn words_on_what_was_never_given_or_to_another_are_ignored() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1"], 2);
    let (mut running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let (mut a, mut b) = (Link::dial(addr), Link::dial(addr));
    a.send("GET 10");
    let work = a.work();
    b.send("GET 10");
    for trans in [0, 1, work.trans + 1, work.trans + (1 << 40), u64::MAX] {
        a.send(&format!("DONE {trans}\n{trans} DONE 429 5 100\nWORKING {trans}"));
    }
    b.send(&format!("{}\nWORKING {}\n{} DONE 503 1 100", work.done(), work.trans, work.trans));
    a.says_nothing_for(A_WHILE);
    b.says_nothing_for(A_WHILE);
    assert!(!running.has_ended());
    a.send(&work.done());
    let next = a.work();
    // Once is enough.
    a.send(&work.done());
    a.says_nothing_for(Duration::from_millis(100));
    a.send(&next.done());
    assert_eq!((a.line(), b.line()), (None, None));
    let report = ended(running);
    assert_eq!(counts(&report), [2, 2, 0, 15 + 3 + 1, 0], "{report}");
    assert_eq!(report["results"], json!({"ok": 2}));
}

#[test]
fn a_spider_that_was_dialed_is_dialed_again_and_gets_what_was_pending() {
    for (protocol, fields) in [("pull", 5), ("push", 4)] {
        let (server, dir) = (web(), TempDir::new());
        let urls = pages(&server, &["h1", "h2", "h3"], 4);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings =
            format!("{}spider_protocol = \"{protocol}\"\nreq_host_concurrent = 2", dialing(&listener));
        let running = Running::start(&mut command(&dir, &settings, &urls));
        let mut link = Link::accept(&listener);
        link.send("GET 100");
        let before: Vec<Work> = (0..6).map(|_| link.work_of(fields)).collect();
        link.send(&before[0].done());
        let pending: Vec<Work> = before[1..].iter().cloned().chain([link.work_of(fields)]).collect();
        drop(link);
        let mut link = Link::accept(&listener);
        // Of an earlier life.
        before.iter().for_each(|work| link.send(&format!("{} 429 5 100", work.done())));
        if protocol == "pull" {
            link.says_nothing_for(A_WHILE);
        }
        link.send("GET 100");
        let again: Vec<Work> = (0..6).map(|_| link.work_of(fields)).collect();
        link.says_nothing_for(A_WHILE);
        let documents = |works: &[Work]| -> BTreeMap<u32, String> {
            works.iter().map(|work| (work.doc_id, work.url.clone())).collect()
        };
        assert_eq!(documents(&again), documents(&pending), "all of them, and nothing else");
        let old: BTreeSet<u64> = before.iter().chain(&pending).map(|work| work.trans).collect();
        assert!(again.iter().all(|work| !old.contains(&work.trans)), "{again:?} after {old:?}");
        let mut got = vec![before[0].clone()];
        got.extend(again.iter().cloned());
        again.iter().for_each(|work| link.send(&work.done()));
        for _ in 0..5 {
            let work = link.work_of(fields);
            link.send(&work.done());
            got.push(work);
        }
        assert_eq!(link.line(), None);
        assert_eq!(urls_of(&got), set(&urls));
        let report = ended(running);
        assert_eq!(counts(&report), [12, 18, 6, 6, 0], "{report}");
    }
}

#[test]
fn a_spider_that_does_not_answer_is_dialed_with_growing_pauses() {
    let (server, dir) = (web(), TempDir::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Running::start(&mut command(&dir, &dialing(&listener), &pages(&server, &["h1"], 1)));
    let first = Link::accept(&listener);
    let at = Instant::now();
    drop(first);
    for _ in 0..3 {
        drop(Link::accept(&listener));
    }
    assert!(at.elapsed() >= Duration::from_millis(100 + 200 + 400), "{:?}", at.elapsed());
    let mut link = Link::accept(&listener);
    link.send("GET 1");
    let work = link.work();
    link.send(&work.done());
    assert_eq!(counts(&ended(running)), [1, 1, 0, 0, 0]);
}

#[test]
fn what_a_spider_had_that_went_away_goes_to_another() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1", "h2", "h3", "h4"], 2);
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let (mut a, mut b) = (Link::dial(addr), Link::dial(addr));
    a.send("GET 4");
    let pending = a.works(4);
    b.send("GET 100");
    b.says_nothing_for(A_WHILE);
    drop(a);
    let again = b.works(4);
    assert_eq!(urls_of(&again), urls_of(&pending));
    let mut a = Link::dial(addr);
    pending.iter().for_each(|work| a.send(&work.done()));
    // What the other says of it changes nothing either.
    again.iter().for_each(|work| a.send(&work.done()));
    b.says_nothing_for(A_WHILE);
    let mut got = Vec::new();
    for work in again {
        b.send(&work.done());
        let next = b.work();
        b.send(&next.done());
        got.extend([work, next]);
    }
    assert_eq!(urls_of(&got), set(&urls));
    let report = ended(running);
    assert_eq!(counts(&report), [8, 12, 4, 8, 0], "{report}");
}

#[test]
fn a_host_stays_with_its_spider_and_a_new_one_gets_others() {
    let (server, dir) = (web(), TempDir::new());
    let hosts: Vec<String> = (1..=8).map(|n| format!("h{n}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let urls = pages(&server, &hosts, 4);
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut a = Link::dial(addr);
    a.send("GET 3");
    let first = a.works(3);
    let mut b = Link::dial(addr);
    b.send("GET 1000");
    let of_b = b.works(5);
    b.says_nothing_for(A_WHILE);
    let host = |work: &Work| work.host().to_string();
    let mine: BTreeSet<String> = first.iter().map(host).collect();
    assert!(of_b.iter().all(|work| !mine.contains(work.host())), "{of_b:?} beside {first:?}");
    // They have no spider with credit, but they have a spider.
    first.iter().for_each(|work| a.send(&work.done()));
    b.says_nothing_for(A_WHILE);
    let mut got = first;
    a.send("GET 1000");
    for (link, works) in [(&mut a, 9), (&mut b, 5 + 15)] {
        if works > 9 {
            of_b.iter().for_each(|work| link.send(&work.done()));
            got.extend(of_b.iter().cloned());
        }
        for _ in 0..works - if works > 9 { 5 } else { 0 } {
            let work = link.work();
            assert_eq!(mine.contains(work.host()), works == 9, "{work:?}");
            link.send(&work.done());
            got.push(work);
        }
    }
    assert_eq!(urls_of(&got), set(&urls));
    assert_eq!(counts(&ended(running)), [32, 32, 0, 0, 0]);
}

#[test]
fn every_url_of_many_hosts_comes_once_to_one_of_many_spiders() {
    for protocol in ["pull", "push"] {
        let (server, dir) = (web(), TempDir::new());
        let hosts: Vec<String> = (1..=20).map(|n| format!("h{n}")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let urls = pages(&server, &hosts, 30);
        let settings =
            format!("{LISTEN}spider_protocol = \"{protocol}\"\nreq_host_concurrent = 2\nqueue_len = 5");
        let (running, addr) = listening(&mut command(&dir, &settings, &urls));
        let spiders: Vec<_> = (0..3)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut link = Link::dial(addr);
                    let mut got = Vec::new();
                    link.send("GET 7");
                    while let Some(line) = link.line() {
                        let words: Vec<&str> = line.split(' ').collect();
                        got.push(words.last().unwrap().to_string());
                        link.send(&format!("{} DONE\nGET 1", words[0]));
                    }
                    got
                })
            })
            .collect();
        let got: Vec<Vec<String>> = spiders.into_iter().map(|spider| spider.join().unwrap()).collect();
        let total: usize = got.iter().map(Vec::len).sum();
        let all: BTreeSet<String> = got.into_iter().flatten().collect();
        assert_eq!((total, all), (600, set(&urls)), "each once");
        assert_eq!(counts(&ended(running)), [600, 600, 0, 0, 0]);
    }
}

#[test]
fn it_stays_when_told_to_and_a_signal_ends_it() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1"], 1);
    let (mut running, addr) = listening(command(&dir, LISTEN, &urls).arg("--wait"));
    let mut link = Link::dial(addr);
    link.send("GET 10");
    let work = link.work();
    link.send(&work.done());
    link.says_nothing_for(Duration::from_millis(700));
    assert!(!running.has_ended());
    running.signal(Signal::SIGINT);
    assert_eq!(link.line(), None);
    let report = ended(running);
    assert_eq!((&report["done"], &report["stopped"]), (&1.into(), &true.into()), "{report}");

    // What spiders have may end, and nothing new is sent; what they do not end is pending.
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1", "h2"], 3);
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 10");
    let got = link.works(2);
    let at = Instant::now();
    running.signal(Signal::SIGINT);
    wait_for("it says so", PATIENCE, || running.stderr().contains("stopping").then_some(()));
    link.send(&got[0].done());
    assert_eq!(link.line(), None, "no more");
    let report = ended(running);
    assert!(at.elapsed() < Duration::from_secs(20), "{:?}", at.elapsed());
    assert_eq!((&report["done"], &report["pending"]), (&1.into(), &5.into()), "{report}");
    assert_eq!((&report["sent"], &report["stopped"]), (&2.into(), &true.into()), "{report}");
}

#[test]
fn pauses_and_robots_rules_outlive_the_process() {
    let server = web_with(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /no\n"),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    let mut urls = pages(&server, &["h1", "h2"], 2);
    urls.push(url(&server, "h2", "/no"));
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 2");
    let mut got = link.works(2);
    got.sort_by_key(|work| work.host().to_string());
    // Less the millisecond that clocks may be rounded by, from one process to the next.
    let until_ns = now_ns() + (5_000 - 1) * MS;
    link.send(&format!("{} 429 5 5", got[0].done()));
    link.send(&format!("{} 200 5 0", got[1].done()));
    // It is the journal that remembers; there is no word for when it has been written.
    std::thread::sleep(Duration::from_millis(700));
    running.signal(Signal::SIGKILL);
    running.wait(PATIENCE);
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 100");
    let mut got = Vec::new();
    for _ in 0..4 {
        let work = link.work();
        if work.host() == "h1" {
            assert!(link.at_ns() >= until_ns, "{} ms too soon", (until_ns - link.at_ns()) / MS);
        }
        link.send(&format!("{} 200 5 0", work.done()));
        got.push(work);
    }
    assert_eq!(got[0].host(), "h2", "the other need not wait");
    assert_eq!(urls_of(&got), set(&urls[..4]));
    assert_eq!(ended(running)["results"], json!({"ok": 4, "robots_denied": 1}));
    let mut asked: Vec<String> = server.asked().iter().map(Asked::place).collect();
    asked.sort();
    assert_eq!(asked, ["h1.test/robots.txt", "h2.test/robots.txt"], "once each");
}

/// The two real ends of the line.
#[test]
fn a_farm_is_fetched_by_two_spiders() {
    let spec = SiteSpec { hosts: 12, pages: 25, page_bytes: 400, latency_ms: 20, ..SiteSpec::default() };
    for protocol in ["pull", "push"] {
        let (farm, dir) = (Farm::start(spec.clone()), TempDir::new());
        let mut urls: Vec<String> = Vec::new();
        for host in 0..12 {
            urls.extend((0..25).map(|page| farm.url(host, page)));
            urls.push(format!("{}private/0.html", farm.url(host, 0)));
        }
        let settings = format!("{LISTEN}spider_protocol = \"{protocol}\"\nreq_host_per_sec = 10.0");
        let mut command = command(&dir, &settings, &urls);
        std::fs::copy(farm.hosts_file(), dir.join("hosts")).unwrap();
        let (running, addr) = listening(&mut command);
        // The spiders' logs are held against the same rules, so they are told them.
        let config = dir.write("spider.toml", format!("[url_server]\n{settings}\n[spider]\nreport = true\n"));
        let spiders = [1, 2].map(|n| {
            let mut command = nephila();
            command.args([
                "spider",
                "--json",
                "--allow-net",
                "127.0.0.0/8",
                "--cores",
                "0",
                "--fetches-max",
                "4",
            ]);
            command.arg("--data").arg(dir.join(&format!("spider{n}"))).arg("--config").arg(&config);
            Running::start(command.arg("--urlserver").arg(addr.to_string()))
        });
        let report = ended(running);
        assert_eq!((&report["known"], &report["pending"]), (&312.into(), &0.into()), "{report}");
        assert_eq!(result_count(&report, "robots_denied"), 12, "{report}");
        for spider in spiders {
            spider.signal(Signal::SIGTERM);
            spider.wait(PATIENCE).done();
        }
        let (one, two) = (stored(&dir.join("spider1")), stored(&dir.join("spider2")));
        // In push the first to come may have every host by the time the other is there.
        let shared = protocol == "push" || (!one.is_empty() && !two.is_empty());
        assert!(shared, "{} and {}", one.len(), two.len());
        assert!(one.keys().all(|url| !two.contains_key(url)), "each with one of them");
        assert_eq!(one.len() + two.len(), 300);
        assert!(one.keys().chain(two.keys()).all(|url| urls.contains(url)));
        assert!(one.values().chain(two.values()).all(|record| record.success), "nothing failed");
        let mut audit = nephila();
        audit.arg("audit").arg("--json");
        for data in ["data", "spider1", "spider2"] {
            audit.arg("--data").arg(dir.join(data));
        }
        let audit = Running::start(&mut audit).wait(PATIENCE).done().json();
        assert_eq!(audit["violations_total"], 0, "{audit}");
        // The pages by the spiders' logs, each host's robots.txt by the URL server's.
        assert!(audit["requests"].as_u64() >= Some(300 + 12), "{audit}");
    }
}
