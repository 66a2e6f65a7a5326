//! The promise: a spider process keeps to the lines that a URL server was promised, in both dialects and whoever
//! dials. Every order leaves a record and gets one DONE, after the record is durable; WORKING comes in time; no more
//! is asked for than there is room for; a bad line costs nobody else anything.

use crate::link::Link;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Slots of a spider in these tests: one shard of four.
const SLOTS: usize = 4;

fn spider_command(data: &Path) -> Command {
    let mut command = nephila();
    command.args(["spider", "--json", "--allow-net", "127.0.0.0/8", "--cores", "0", "--fetches-max", "4"]);
    command.arg("--data").arg(data);
    command
}

/// A spider that listens, and where.
#[track_caller]
fn listening(command: &mut Command) -> (Running, SocketAddr) {
    let spider = Running::start(command.args(["--listen", "127.0.0.1:0"]));
    let addr = wait_for("it listens", PATIENCE, || {
        let stderr = spider.stderr();
        let line = stderr.lines().find(|line| line.starts_with("spider: listening on "))?.to_string();
        line.rsplit(' ').next()?.parse().ok()
    });
    (spider, addr)
}

/// A URL server that a spider dials, before the first spider comes.
struct UrlServer(TcpListener);

impl UrlServer {
    fn new() -> UrlServer {
        UrlServer(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    fn spider(&self, command: &mut Command) -> Running {
        Running::start(command.arg("--urlserver").arg(self.addr().to_string()))
    }

    #[track_caller]
    fn accept(&self) -> Link {
        Link::accept(&self.0)
    }
}

/// A line of work in pull, for a page of a server on loopback.
fn pull(trans: u64, doc_id: u32, server: &LogServer, path: &str) -> String {
    format!("{trans} {doc_id} 127.0.0.1 127.0.0.1 {}", server.url(path))
}

fn push(trans: u64, doc_id: u32, server: &LogServer, path: &str) -> String {
    format!("{trans} {doc_id} 127.0.0.1 {}", server.url(path))
}

#[track_caller]
fn stop(spider: Running) -> serde_json::Value {
    spider.signal(Signal::SIGTERM);
    let report = spider.wait(PATIENCE).done().json();
    let count = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    let results = report["results"].as_object().unwrap();
    assert_eq!(count("pages"), count("success") + count("errors"), "{report}");
    assert_eq!(count("pages"), results.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), "{report}");
    report
}

#[test]
fn credits_are_given_at_once_renewed_and_never_more_than_there_is_room_for() {
    for driver in DRIVERS {
        let server = LogServer::start(|asked| Reply::text(&asked.target).after_ms(20));
        let (dir, urls) = (TempDir::new(), UrlServer::new());
        let spider = urls.spider(spider_command(&dir.join("data")).args(["--driver", driver]));
        let mut link = urls.accept();
        assert_eq!(link.line().as_deref(), Some("GET 4"), "the first word, before any work");
        let (mut credits, mut sent, mut open) = (SLOTS, 0u64, BTreeSet::new());
        let mut done = BTreeSet::new();
        while done.len() < 60 {
            while credits > 0 && sent < 60 {
                credits -= 1;
                sent += 1;
                assert!(open.insert(sent));
                link.send(&pull(sent, sent as u32 + 100, &server, &format!("/{sent}")));
            }
            let line = link.line().expect("it goes on");
            match line.split_once(' ').unwrap() {
                ("GET", count) => {
                    let count: usize = count.parse().unwrap();
                    assert!(count > 0, "a GET of nothing");
                    credits += count;
                }
                ("DONE", id) => {
                    let id: u64 = id.parse().unwrap();
                    assert!(open.remove(&id), "{id} is answered once");
                    done.insert(id);
                }
                _ => panic!("{line:?}"),
            }
            assert!(credits + open.len() <= SLOTS, "{credits} credits with {} open", open.len());
        }
        assert!(server.open_max() <= SLOTS && server.connections() <= SLOTS, "connections are used again");
        let report = stop(spider);
        assert_eq!((&report["pages"], &report["success"]), (&60.into(), &60.into()), "{report}");
        let stored = stored(&dir.join("data"));
        for id in 1..=60u32 {
            let record = &stored[&server.url(&format!("/{id}"))];
            assert_eq!(
                (record.doc_id, &*record.result, record.success),
                (id + 100, "ok", true),
                "{record:?}"
            );
        }
        assert_eq!(stored.len(), 60);
    }
}

#[test]
fn push_is_answered_in_push_order_and_not_asked_for() {
    let server = LogServer::start(|asked| Reply::text(&asked.target).after_ms(5));
    let dir = TempDir::new();
    let (spider, addr) = listening(&mut spider_command(&dir.join("data")));
    let mut link = Link::dial(addr);
    assert_eq!(link.line().as_deref(), Some("GET 4"), "it does not know yet");
    // Far more than there are slots: the rest waits, and is not forgotten.
    let lines: Vec<String> = (1..=300).map(|id| push(id, id as u32, &server, &format!("/{id}"))).collect();
    link.send(&lines.join("\n"));
    let mut done = BTreeSet::new();
    while done.len() < 300 {
        let line = link.line().unwrap();
        let id = line.strip_suffix(" DONE").unwrap_or_else(|| panic!("{line:?}"));
        assert!(done.insert(id.parse::<u64>().unwrap()), "{id} is answered once");
    }
    assert!(server.open_max() <= SLOTS);
    link.says_nothing_for(Duration::from_millis(200));
    assert_eq!(stop(spider)["pages"], 300);
    assert_eq!(stored(&dir.join("data")).len(), 300);

    // Told so beforehand, it does not ask at all.
    let config = dir.write("push.toml", "[url_server]\nspider_protocol = \"push\"\n");
    let (spider, addr) = listening(spider_command(&dir.join("other")).arg("--config").arg(config));
    let mut link = Link::dial(addr);
    link.says_nothing_for(Duration::from_millis(200));
    // A CR before the LF is no part of the URL.
    link.send(&format!("{}\r", push(18_446_744_073_709_551_615, 1, &server, "/cr")));
    assert_eq!(link.line().as_deref(), Some("18446744073709551615 DONE"));
    // A line of five fields is answered in its own order all the same.
    link.send(&pull(2, 2, &server, "/five"));
    assert_eq!(link.line().as_deref(), Some("DONE 2"));
    stop(spider);
    assert_eq!(stored(&dir.join("other")).len(), 2);
}

/// Connections kept for one host make room for the next, however many hosts there are; and more work than the backlog
/// holds waits in the socket.
#[test]
fn more_hosts_than_slots_and_more_work_than_room() {
    let spec = SiteSpec { hosts: 30, pages: 700, page_bytes: 300, ..SiteSpec::default() };
    let (farm, dir) = (Farm::start(spec), TempDir::new());
    for driver in DRIVERS {
        let data = dir.join(driver);
        let (spider, addr) = listening(spider_command(&data).args(["--driver", driver]));
        let mut link = Link::dial(addr);
        let mut sender = Link::new(link.stream.try_clone().unwrap());
        let lines: Vec<String> = (0..21_000u32)
            .map(|n| format!("{n} {n} 127.16.0.{} {}", n / 700, farm.url(n / 700, n % 700)))
            .collect();
        let writer = std::thread::spawn(move || sender.send(&lines.join("\n")));
        let mut done = BTreeSet::new();
        while done.len() < 21_000 {
            let word = link.word();
            if let Some(id) = word.strip_suffix(" DONE") {
                assert!(done.insert(id.parse::<u32>().unwrap()), "{id} is answered once");
            }
        }
        writer.join().unwrap();
        assert_eq!(stop(spider)["success"], 21_000);
    }
}

#[test]
fn working_is_said_every_timeout_update() {
    let server = LogServer::start(|asked| {
        Reply::text("at last").after_ms(if asked.target == "/slow" { 3_300 } else { 0 })
    });
    let (dir, every) = (TempDir::new(), Duration::from_millis(1_000));
    let (spider, addr) = listening(spider_command(&dir.join("data")).args(["--timeout-update", "1000"]));
    for (line, working, done) in [
        (pull(7, 1, &server, "/slow"), "WORKING 7", "DONE 7"),
        (push(8, 1, &server, "/slow"), "8 WORKING", "8 DONE"),
    ] {
        let mut link = Link::dial(addr);
        let sent = Instant::now();
        link.send(&line);
        let mut times = Vec::new();
        loop {
            let word = link.word();
            if word == done {
                break;
            }
            assert_eq!(word, working);
            times.push(sent.elapsed());
        }
        let took = sent.elapsed();
        assert!(took >= Duration::from_millis(3_300));
        // Never early, and always within the least patience that a URL server may have: twice as long.
        let mut before = Duration::ZERO;
        for (count, time) in times.iter().enumerate() {
            assert!(*time >= every * (count as u32 + 1), "{times:?}");
            assert!(*time - before < 2 * every, "{times:?}");
            before = *time;
        }
        assert!(took - before < 2 * every, "{times:?}");
        // A fast one needs none.
        link.send(&line.replace("/slow", "/fast"));
        assert_eq!(link.word(), done);
    }
    stop(spider);
}

/// Orders that wait for a slot are open, too: their URL server would send them again otherwise.
#[test]
fn working_is_said_for_work_that_waits() {
    let server = LogServer::start(|_| Reply::text("x").after_ms(700));
    let dir = TempDir::new();
    let (spider, addr) = listening(spider_command(&dir.join("data")).args(["--timeout-update", "300"]));
    let mut link = Link::dial(addr);
    let lines: Vec<String> = (1..=8).map(|id| push(id, 1, &server, &format!("/{id}"))).collect();
    link.send(&lines.join("\n"));
    let (mut working, mut done) = (BTreeMap::<String, u32>::new(), 0);
    while done < 8 {
        let word = link.word();
        match word.split_once(' ').unwrap() {
            (id, "WORKING") => *working.entry(id.to_string()).or_default() += 1,
            (_, "DONE") => done += 1,
            _ => panic!("{word:?}"),
        }
    }
    assert_eq!(working.len(), 8, "{working:?}");
    assert!(working.values().any(|&times| times >= 4), "{working:?}");
    stop(spider);
}

#[test]
fn what_was_done_survives_kill_9() {
    for driver in DRIVERS {
        let server = LogServer::start(|asked| Reply::text(&asked.target));
        let dir = TempDir::new();
        let data = dir.join("data");
        let (spider, addr) = listening(spider_command(&data).args(["--driver", driver]));
        let mut link = Link::dial(addr);
        let lines: Vec<String> =
            (1..=200).map(|id| push(id, id as u32, &server, &format!("/{id}"))).collect();
        link.send(&lines.join("\n"));
        let mut done: Vec<u32> = Vec::new();
        for _ in 0..40 {
            done.push(link.word().strip_suffix(" DONE").unwrap().parse().unwrap());
        }
        spider.signal(Signal::SIGKILL);
        spider.wait(PATIENCE);
        let stored: BTreeSet<u32> = records(&data).iter().map(|record| record.doc_id).collect();
        assert!(done.iter().all(|id| stored.contains(id)), "{done:?} of {stored:?}");
    }
}

/// A killed process leaves its pages to the kernel, so that the disk is not what the test above sees. But a DONE
/// that waits for the disk comes with the next commit, and with all others of it.
#[test]
fn done_waits_for_the_commit() {
    let server = LogServer::start(|asked| Reply::text(&asked.target));
    let dir = TempDir::new();
    let config = dir.write("slow.toml", "[store]\ncommit_ms = 900\n");
    let (spider, addr) = listening(spider_command(&dir.join("data")).arg("--config").arg(config));
    let mut link = Link::dial(addr);
    let mut sender = Link::new(link.stream.try_clone().unwrap());
    let lines: Vec<String> = (1..=12).map(|id| push(id, 1, &server, &format!("/{id}"))).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            sender.send(&line);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut commits = 0;
    let mut last: Option<Instant> = None;
    for _ in 0..12 {
        assert!(link.word().ends_with(" DONE"));
        let now = Instant::now();
        if last.is_none_or(|last| now - last > Duration::from_millis(25)) {
            commits += 1;
        }
        last = Some(now);
    }
    writer.join().unwrap();
    assert!(commits <= 3, "12 pages in 600 ms were done in {commits} goes, with a commit every 900 ms");
    stop(spider);
}

#[test]
fn a_report_tells_status_time_and_pause() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/busy" => Reply::new("429 Too Many Requests", "Retry-After: 7\r\n", "later").after_ms(120),
        "/gone" => Reply::redirect("/new"),
        _ => Reply::text("x"),
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dir = TempDir::new();
    let config = dir.write("report.toml", "[spider]\nreport = true\n");
    let (spider, addr) = listening(spider_command(&dir.join("data")).arg("--config").arg(config));
    let mut link = Link::dial(addr);
    let mut reported = |line: String| {
        link.send(&line);
        let words: Vec<String> = link.word().split(' ').map(str::to_string).collect();
        assert_eq!(words.len(), 5, "{words:?}");
        let ms: u64 = words[3].parse().unwrap();
        (words[..2].join(" "), words[2].clone(), ms, words[4].clone())
    };
    let (word, status, ms, pause) = reported(pull(1, 1, &server, "/"));
    assert_eq!((&*word, &*status, ms < 100, &*pause), ("DONE 1", "200", true, "0"));
    let (word, status, ms, pause) = reported(push(2, 2, &server, "/busy"));
    assert_eq!((&*word, &*status, (120..2_000).contains(&ms), &*pause), ("2 DONE", "429", true, "7"));
    let (_, status, _, pause) = reported(push(3, 3, &server, "/gone"));
    assert_eq!((&*status, &*pause), ("302", "0"));
    let (word, status, _, pause) = reported(format!("4 4 127.0.0.1 http://{closed}/"));
    assert_eq!((&*word, &*status, &*pause), ("4 DONE", "0", "0"));
    let (_, status, ms, pause) = reported("5 5 127.0.0.1 nonsense".to_string());
    assert_eq!((&*status, ms, &*pause), ("0", 0, "0"));
    let report = stop(spider);
    for result in ["ok", "http_error", "redirect", "connect_refused", "bad_url"] {
        assert_eq!(result_count(&report, result), 1, "{report}");
    }
    let stored = stored(&dir.join("data"));
    assert_eq!(stored[&server.url("/gone")].new_url, Some(server.url("/new")));
}

#[test]
fn bad_work_leaves_a_record_and_gets_its_done() {
    let server = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let data = dir.join("data");
    let (spider, addr) = listening(&mut spider_command(&data));
    let mut link = Link::dial(addr);
    for (line, word) in [
        ("1", "DONE 1"),
        ("2 12 127.0.0.1", "DONE 2"),
        ("3 x 127.0.0.1 http://three.test/", "3 DONE"),
        ("4 14 localhost http://four.test/", "4 DONE"),
        ("5 15 127.0.0.1 five.test ftp://five.test/", "DONE 5"),
        ("6 16 127.0.0.1 six.test http://six.test/a b", "DONE 6"),
        ("7 17 127.0.0.1 ftps://seven.test/", "7 DONE"),
        ("8 18 127.0.0.1 http://u:p@eight.test/\u{1b}[31m", "8 DONE"),
    ] {
        link.send(line);
        assert_eq!(link.word(), word, "{line:?}");
    }
    // The link is as good as before.
    link.send(&push(9, 19, &server, "/"));
    assert_eq!(link.word(), "9 DONE");
    assert_eq!(stop(spider)["results"], serde_json::json!({"bad_url": 8, "ok": 1}));
    let listed: Vec<(u32, String, String)> =
        records(&data).into_iter().map(|record| (record.doc_id, record.url, record.result)).collect();
    let expected = [
        (0, "", "bad_url"),
        (12, "", "bad_url"),
        (0, "http://three.test/", "bad_url"),
        (14, "http://four.test/", "bad_url"),
        (15, "ftp://five.test/", "bad_url"),
        (16, "six.test http://six.test/a b", "bad_url"),
        (17, "ftps://seven.test/", "bad_url"),
        (18, "http://u:p@eight.test/", "bad_url"),
        (19, &server.url("/"), "ok"),
    ];
    assert_eq!(listed, expected.map(|(id, url, result)| (id, url.to_string(), result.to_string())));
}

#[test]
fn a_line_that_cannot_be_read_closes_its_own_link_only() {
    let server = LogServer::start(|_| Reply::text("x").after_ms(300));
    let dir = TempDir::new();
    let (spider, addr) = listening(&mut spider_command(&dir.join("data")));
    let mut good = Link::dial(addr);
    good.send(&pull(1, 1, &server, "/good"));
    for line in ["hello there", "", "\u{1b}[2J", "-1 2 127.0.0.1 http://h/", "GET 3"] {
        let mut bad = Link::dial(addr);
        let peer = bad.stream.local_addr().unwrap().to_string();
        assert!(bad.line().unwrap().starts_with("GET "));
        bad.send(&push(2, 2, &server, "/before"));
        bad.send(line);
        bad.send(&push(3, 3, &server, "/after"));
        assert_eq!(bad.line(), None, "closed over {line:?}");
        let said = wait_for("it says so", PATIENCE, || {
            let stderr = spider.stderr();
            let said: Vec<String> =
                stderr.lines().filter(|line| line.contains(&peer)).map(str::to_string).collect();
            (!said.is_empty()).then_some(said)
        });
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(!said[0].contains('\u{1b}'), "{said:?}");
    }
    assert_eq!(good.word(), "DONE 1", "nothing else is disturbed");
    good.send(&pull(4, 4, &server, "/still"));
    assert_eq!(good.word(), "DONE 4");
    let report = stop(spider);
    assert_eq!((&report["bad_lines"], &report["untold"]), (&5.into(), &5.into()), "{report}");
    let stored: Vec<Listed> = records(&dir.join("data"));
    assert_eq!(
        stored.iter().filter(|record| record.url.ends_with("/before")).count(),
        5,
        "they end all the same"
    );
    assert_eq!(stored.iter().filter(|record| record.url.ends_with("/after")).count(), 0);
}

#[test]
fn lines_are_as_long_as_they_may_be_and_no_longer() {
    let server = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let (spider, addr) = listening(&mut spider_command(&dir.join("data")));
    // Spaces between fields count as part of the line, not of a field.
    let line = |bytes: usize| {
        let url = server.url(&format!("/{}", "a".repeat(7_900)));
        let start = "1 1 127.0.0.1";
        format!("{start}{}{url}", " ".repeat(bytes - 1 - start.len() - url.len()))
    };
    let mut link = Link::dial(addr);
    link.send(&line(8_192));
    assert_eq!(link.word(), "1 DONE");
    // Whatever URL a line holds is fetched.
    let start = format!("2 2 127.0.0.1 {}", server.url("/"));
    link.send(&format!("{start}{}", "b".repeat(8_191 - start.len())));
    assert_eq!(link.word(), "2 DONE");
    link.send(&line(8_193));
    assert_eq!(link.line(), None, "closed");
    // It need not end to be too long.
    let mut endless = Link::dial(addr);
    assert!(endless.line().unwrap().starts_with("GET "));
    endless.stream.write_all(&[b'1'; 8_192]).unwrap();
    assert_eq!(endless.line(), None, "closed");
    let report = stop(spider);
    assert_eq!(report["results"], serde_json::json!({"ok": 2}));
    assert_eq!(report["bad_lines"], 2);
}

#[test]
fn equal_transactions_of_two_url_servers_are_kept_apart() {
    let server = LogServer::start(|asked| {
        Reply::text(&asked.target).after_ms(if asked.target.starts_with("/a") { 400 } else { 0 })
    });
    let dir = TempDir::new();
    let (spider, addr) = listening(&mut spider_command(&dir.join("data")));
    let (mut a, mut b) = (Link::dial(addr), Link::dial(addr));
    let asked = [a.line().unwrap(), b.line().unwrap()];
    assert!(asked.iter().all(|line| line == "GET 4" || line == "GET 2"), "{asked:?}");
    for id in 1..=2 {
        a.send(&pull(id, 100 + id as u32, &server, &format!("/a{id}")));
        b.send(&push(id, 200 + id as u32, &server, &format!("/b{id}")));
    }
    let at = Instant::now();
    assert_eq!(b.words(2), BTreeSet::from(["1 DONE", "2 DONE"].map(str::to_string)));
    assert!(at.elapsed() < Duration::from_millis(380), "not held up by the other's");
    assert_eq!(a.words(2), BTreeSet::from(["DONE 1", "DONE 2"].map(str::to_string)));
    b.says_nothing_for(Duration::from_millis(100));
    stop(spider);
    let ids: BTreeSet<u32> = stored(&dir.join("data")).values().map(|record| record.doc_id).collect();
    assert_eq!(ids, BTreeSet::from([101, 102, 201, 202]));
}

#[test]
fn a_spider_dials_again_and_starts_afresh() {
    let server = LogServer::start(|asked| {
        Reply::text(&asked.target).after_ms(if asked.target == "/slow" { 1_500 } else { 0 })
    });
    let (dir, urls) = (TempDir::new(), UrlServer::new());
    let addr = urls.addr();
    // Nobody listens yet.
    drop(urls);
    let spider = Running::start(spider_command(&dir.join("data")).arg("--urlserver").arg(addr.to_string()));
    std::thread::sleep(Duration::from_millis(700));
    let urls = UrlServer(TcpListener::bind(addr).unwrap());
    let mut link = urls.accept();
    assert_eq!(link.line().as_deref(), Some("GET 4"));
    let about = |text: &str| spider.stderr().lines().filter(|line| line.contains(text)).count();
    assert_eq!(about("spider: dialing"), 1, "{}", spider.stderr());
    assert_eq!(about("trying until it stands"), 1, "{}", spider.stderr());
    wait_for("it says that it stands", PATIENCE, || (about(" stands (") == 1).then_some(()));

    link.send(&pull(1, 1, &server, "/slow"));
    link.send(&pull(2, 2, &server, "/fast"));
    assert_eq!(link.word(), "DONE 2");
    drop(link);
    let mut link = urls.accept();
    assert_eq!(link.line().as_deref(), Some("GET 3"), "one slot is still taken");
    link.send(&pull(1, 3, &server, "/again"));
    assert_eq!(link.word(), "DONE 1");
    // The slot comes back; what ended in it is stored, but was promised to a link that is gone.
    let mut credits = 2;
    while credits < SLOTS {
        let line = link.line().unwrap();
        credits += line.strip_prefix("GET ").unwrap_or_else(|| panic!("{line:?}")).parse::<usize>().unwrap();
    }
    link.says_nothing_for(Duration::from_millis(100));
    let report = stop(spider);
    assert_eq!((&report["pages"], &report["untold"]), (&3.into(), &1.into()), "{report}");
    assert_eq!(stored(&dir.join("data")).len(), 3);
}

#[test]
fn an_address_that_is_not_allowed_is_not_connected_to() {
    let server = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut command = nephila();
    command.args(["spider", "--json", "--cores", "0", "--data"]).arg(&data);
    let (spider, addr) = listening(&mut command);
    let mut link = Link::dial(addr);
    link.send(&pull(1, 1, &server, "/"));
    assert_eq!(link.word(), "DONE 1");
    // Whatever the name says, it is the address that counts.
    link.send(&format!("2 2 10.0.0.1 http://example.org:{}/", server.port()));
    assert_eq!(link.word(), "2 DONE");
    assert_eq!(stop(spider)["results"], serde_json::json!({"blocked_address": 2}));
    assert_eq!(server.connections(), 0);
    let listed = records(&data);
    assert_eq!(listed.iter().map(|record| record.doc_id).collect::<Vec<_>>(), [1, 2]);
    assert!(listed.iter().all(|record| record.result == "blocked_address" && !record.success));
}

#[test]
fn a_signal_lets_open_fetches_end() {
    for (driver, signal) in [("uring", Signal::SIGINT), ("epoll", Signal::SIGTERM)] {
        let server = LogServer::start(|asked| {
            Reply::text("x").after_ms(if asked.target == "/hangs" { 60_000 } else { 800 })
        });
        let dir = TempDir::new();
        let (spider, addr) = listening(spider_command(&dir.join("data")).args(["--driver", driver]));
        let mut link = Link::dial(addr);
        link.send(&pull(1, 1, &server, "/ends"));
        link.send(&pull(2, 2, &server, "/hangs"));
        wait_for("both are open", PATIENCE, || (server.asked().len() == 2).then_some(()));
        let at = Instant::now();
        spider.signal(signal);
        wait_for("it says so", PATIENCE, || spider.stderr().contains("stopping").then_some(()));
        link.send(&pull(3, 3, &server, "/late"));
        assert_eq!(link.word(), "DONE 1");
        assert_eq!(link.line(), None, "and goodbye: what is cut was never done");
        drop(link);
        let report = spider.wait(PATIENCE).done().json();
        assert!(at.elapsed() < Duration::from_secs(8), "{:?}", at.elapsed());
        assert_eq!(report["results"], serde_json::json!({"ok": 1}));
        let results: BTreeMap<u32, String> =
            records(&dir.join("data")).into_iter().map(|record| (record.doc_id, record.result)).collect();
        assert_eq!(results, BTreeMap::from([(1, "ok".to_string())]));
        assert!(!server.targets().contains(&"/late".to_string()));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = LogServer::start(|_| Reply::text("x").after_ms(60_000));
    let dir = TempDir::new();
    let (spider, addr) = listening(&mut spider_command(&dir.join("data")));
    let mut link = Link::dial(addr);
    link.send(&pull(1, 1, &server, "/hangs"));
    wait_for("it is open", PATIENCE, || (server.asked().len() == 1).then_some(()));
    spider.signal(Signal::SIGTERM);
    wait_for("it says so", PATIENCE, || spider.stderr().contains("stopping").then_some(()));
    // Two within a moment count as one.
    std::thread::sleep(Duration::from_millis(400));
    let at = Instant::now();
    spider.signal(Signal::SIGTERM);
    let run = spider.wait(PATIENCE);
    assert!(at.elapsed() < Duration::from_secs(2), "{:?}", at.elapsed());
    assert_eq!((run.code(), &*run.text()), (3, ""));
}

#[test]
fn mistakes_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let dir = TempDir::new();
    let data = dir.join("data").to_str().unwrap().to_string();
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = (busy.local_addr().unwrap().to_string(), busy);
    for (args, code, said) in [
        (vec!["spider", "--data", &data], 2, "--listen"),
        (
            vec!["spider", "--data", &data, "--listen", &taken, "--urlserver", &taken],
            2,
            "cannot be used with",
        ),
        (vec!["spider", "--data", &data, "--urlserver", "nowhere"], 2, "--urlserver nowhere"),
        (vec!["spider", "--data", &data, "--listen", "7171"], 2, "--listen 7171"),
        (vec!["spider", "--data", &data, "--listen", &busy.0], 3, "cannot listen on"),
    ] {
        let run = run(&args);
        assert_eq!(run.code(), code, "{args:?}: {}", run.stderr);
        let last = run.stderr.lines().last().unwrap();
        assert!(last.starts_with("nephila: ") && last.contains(said), "{args:?}: {}", run.stderr);
    }
}
