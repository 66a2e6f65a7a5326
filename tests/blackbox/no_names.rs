//! The promise: a failure of our resolver is not the URL's: when no server answers, or names that were there do not exist
//! any more all at once, a crawl stops with one line and status 3 and judges nothing; run right, it goes on with all of it.

use crate::name_server::*;
use crate::support::*;
use serde_json::Value;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const HOSTS: u64 = 24;
const PAGES: u64 = 4;

/// Every host has a page of links to three others of its own.
fn web() -> LogServer {
    LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/1", "/2", "/3"]),
        _ => Reply::text("x"),
    })
}

fn seeds(web: &LogServer) -> Vec<String> {
    (0..HOSTS).map(|n| format!("http://h{n}.test:{}/", web.port())).collect()
}

fn hosts_file(dir: &TempDir) -> String {
    let hosts: String = (0..HOSTS).map(|n| format!("127.0.0.{} h{n}.test\n", n + 1)).collect();
    dir.write("hosts", hosts).to_str().unwrap().to_string()
}

/// A name server that answers, of whatever kind the answer is; the machine's own is never asked.
fn sound() -> ScriptedServer {
    ScriptedServer::start(|asked| at_once(asked.addresses(&["127.0.0.1"])))
}

fn run_crawl(data: &Path, flags: &[&str]) -> Run {
    let usual =
        ["--driver", "epoll", "--cores", "0", "--req-host-per-sec", "0", "--contact", "ops@example.net"];
    Running::start(crawl_command(data).args(usual).args(flags)).wait(PATIENCE)
}

/// The crawl stopped with status 3, and its one line says all of this.
#[track_caller]
fn stopped(run: &Run, about: &[&str]) {
    assert_eq!(run.code(), 3, "{}", run.stderr);
    let said: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("nephila: ")).collect();
    assert_eq!(said.len(), 1, "{}", run.stderr);
    assert!(about.iter().all(|about| said[0].contains(about)), "{about:?} in {}", said[0]);
}

#[track_caller]
fn exported(data: &Path) -> Vec<Value> {
    let lines = run(["index", "export", "--data", data.to_str().unwrap()]).done().json_lines();
    lines.into_iter().filter(|line| line.get("url").is_some()).collect()
}

/// Nothing was judged: what was not had is pending, no retry is burned, no error noted.
#[track_caller]
fn unjudged(data: &Path, known: u64) {
    let lines = exported(data);
    assert_eq!(lines.len() as u64, known);
    for line in &lines {
        assert_eq!((&line["retries"], line["result"] == "dns_failed"), (&0.into(), false), "{line}");
        assert!(line["state"] == "pending" || line["state"] == "success", "{line}");
    }
}

/// The same crawl, run right, has every page.
#[track_caller]
fn goes_on(data: &Path, flags: &[&str]) {
    let run = run_crawl(data, flags);
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!(run.json()["pending"], 0, "{}", run.text());
    let had = exported(data).iter().filter(|line| line["state"] == "success").count() as u64;
    assert_eq!(had, HOSTS * PAGES);
}

#[test]
fn a_server_that_is_not_there_or_cannot_say_is_not_the_fault_of_urls() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let refusing = ScriptedServer::start(|asked| at_once(asked.code(2)));
    for server in [nobody.clone(), refusing.flag()] {
        let (dir, web, sound) = (TempDir::new(), web(), sound());
        let (data, seeds) = (dir.join("data"), seeds(&web));
        let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
        flags.extend(["--dns", &server]);
        let run = run_crawl(&data, &flags);
        stopped(&run, &[&server, "--dns"]);
        unjudged(&data, HOSTS);
        goes_on(&data, &["--dns", &sound.flag()]);
    }
    // One name alone tells as little.
    let dir = TempDir::new();
    let run = run_crawl(&dir.join("data"), &["http://one.test/", "--dns", &nobody]);
    stopped(&run, &[&nobody, "one.test"]);
    unjudged(&dir.join("data"), 1);
}

#[test]
fn a_forgotten_hosts_file_costs_nothing() {
    let nowhere = ScriptedServer::start(|asked| at_once(asked.code(3)));
    let (dir, web) = (TempDir::new(), web());
    let (data, seeds, hosts) = (dir.join("data"), seeds(&web), hosts_file(&dir));
    let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
    flags.extend(
        ["--hosts-file", &hosts, "--max-pages", "30", "--dns", &nowhere.flag()]
            .map(|flag| &*Box::leak(flag.to_string().into_boxed_str())),
    );
    assert_eq!(run_crawl(&data, &flags).code(), 0);
    let known = exported(&data).len() as u64;
    let run = run_crawl(&data, &["--fresh-settings", "--dns", &nowhere.flag()]);
    stopped(&run, &["--hosts-file", &nowhere.flag(), ".test"]);
    unjudged(&data, known);
    // Once more, for everything.
    let run = run_crawl(&data, &["--again", "--fresh-settings", "--dns", &nowhere.flag()]);
    stopped(&run, &["--hosts-file"]);
    unjudged(&data, known);
    goes_on(&data, &["--hosts-file", &hosts, "--dns", &nowhere.flag()]);
}

/// One host is enough to tell, if it was there before.
#[test]
fn one_name_that_was_there_is_not_gone_for_good() {
    let nowhere = ScriptedServer::start(|asked| at_once(asked.code(3)));
    let (dir, web) = (TempDir::new(), web());
    let (data, hosts) = (dir.join("data"), hosts_file(&dir));
    let seed = format!("http://h0.test:{}/", web.port());
    assert_eq!(run_crawl(&data, &[&seed, "--hosts-file", &hosts, "--max-pages", "1"]).code(), 0);
    stopped(&run_crawl(&data, &["--fresh-settings", "--dns", &nowhere.flag()]), &["h0.test", "--hosts-file"]);
    unjudged(&data, PAGES);
    let report = run_crawl(&data, &["--hosts-file", &hosts]).done().json();
    assert_eq!(report["success"], PAGES - 1, "{report}");
}

#[test]
fn a_server_that_goes_away_on_the_way_is_not_the_fault_of_urls() {
    for rcode in [Some(2), None] {
        let (dir, web, sound) = (TempDir::new(), web(), sound());
        let (data, seeds) = (dir.join("data"), seeds(&web));
        let count = Arc::new(AtomicUsize::new(0));
        let (counting, said) = (count.clone(), rcode);
        // A and AAAA of two names, and no more.
        let failing =
            ScriptedServer::start(move |asked| match (counting.fetch_add(1, Ordering::SeqCst), said) {
                (..4, _) => at_once(asked.addresses(&["127.0.0.1"])),
                (_, Some(rcode)) => at_once(asked.code(rcode)),
                (_, None) => Vec::new(),
            });
        let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
        let server = failing.flag();
        flags.extend(["--dns", &server]);
        let config = dir.write("c.toml", "[url_server]\nhosts_per_ip_max = 4096\n");
        flags.extend(["--config", config.to_str().unwrap()]);
        let run = run_crawl(&data, &flags);
        stopped(&run, &[&server]);
        let lines = exported(&data);
        assert!(lines.iter().all(|line| line["result"] != "dns_failed"), "{lines:?}");
        goes_on(&data, &["--dns", &sound.flag()]);
    }
}

/// A crawl that was told to wait does: what its server says later counts.
#[test]
fn a_crawl_that_waits_asks_again() {
    let (dir, web) = (TempDir::new(), web());
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let names = ScriptedServer::start(move |asked| match well.load(Ordering::SeqCst) {
        true => at_once(asked.addresses(&["127.0.0.1"])),
        false => at_once(asked.code(2)),
    });
    let seed = format!("http://h0.test:{}/", web.port());
    let mut command = crawl_command(&dir.join("data"));
    command.args(["--driver", "epoll", "--cores", "0", "--req-host-per-sec", "0", "--wait"]);
    let running = Running::start(command.args([&seed, "--dns", &names.flag()]));
    wait_for("a word that it waits", PATIENCE, || {
        running.stderr().contains("fetching waits: no name server").then_some(())
    });
    is_well.store(true, Ordering::SeqCst);
    wait_for("every page", PATIENCE, || (web.places().len() as u64 == PAGES).then_some(()));
    running.signal(nix::sys::signal::Signal::SIGINT);
    let report = running.wait(PATIENCE).done().json();
    assert_eq!((&report["success"], result_count(&report, "dns_failed")), (&PAGES.into(), 0), "{report}");
}

/// What single names do is theirs: nobody else is held up, and the crawl ends well.
#[test]
fn single_names_fail_by_themselves() {
    let (dir, web) = (TempDir::new(), web());
    let names = ScriptedServer::start(|asked| match asked.name.as_str() {
        "lame.test" => at_once(asked.code(2)),
        "gone.test" => at_once(asked.code(3)),
        "mute.test" => Vec::new(),
        _ => at_once(asked.addresses(&["127.0.0.1"])),
    });
    let seeds = ["lame", "gone", "good", "mute"].map(|host| format!("http://{host}.test:{}/", web.port()));
    let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let server = names.flag();
    flags.extend(["--dns", &server]);
    let report = run_crawl(&dir.join("data"), &flags).done().json();
    assert_eq!((result_count(&report, "dns_failed"), &report["success"]), (3, &PAGES.into()), "{report}");
    // Nor is a new name that does not exist a reason to stop.
    let seed = [format!("http://gone.test:{}/", web.port()), "--dns".to_string(), names.flag()];
    let run = run_crawl(&dir.join("gone"), &seed.each_ref().map(String::as_str));
    assert_eq!((run.code(), result_count(&run.json(), "dns_failed")), (1, 1), "{}", run.stderr);
}

/// A domain that lapses, or whose servers fail, ends no crawl of others, though it had pages before.
#[test]
fn a_name_that_is_gone_ends_no_crawl_of_others() {
    let (dir, web, sound) = (TempDir::new(), web(), sound());
    let (data, seeds) = (dir.join("data"), seeds(&web));
    let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let (server, config) = (sound.flag(), dir.write("c.toml", "[url_server]\nhosts_per_ip_max = 4096\n"));
    flags.extend(["--dns", &server, "--config", config.to_str().unwrap()]);
    assert_eq!(run_crawl(&data, &flags).code(), 0);
    // Theirs are the last answers, so that no name that resolves clears them.
    let names = ScriptedServer::start(|asked| match asked.name.as_str() {
        "h0.test" => vec![(Duration::from_secs(1), asked.code(3))],
        "h1.test" => vec![(Duration::from_secs(1), asked.code(2))],
        "h2.test" => Vec::new(),
        _ => at_once(asked.addresses(&["127.0.0.1"])),
    });
    let run = run_crawl(&data, &["--again", "--dns", &names.flag()]);
    assert!(run.code() < 2, "{}", run.stderr);
    assert!(run.json()["results"]["dns_failed"].as_u64() >= Some(3), "{}", run.text());
}

/// Names whose own servers fail are theirs, though nothing else is left to resolve: the server knows of others.
#[test]
fn a_crawl_of_lame_names_ends() {
    let names = ScriptedServer::start(|asked| match asked.name.ends_with(".test") {
        true => at_once(asked.code(2)),
        false => at_once(asked.code(3)),
    });
    for count in [1, 24] {
        let dir = TempDir::new();
        let seeds: Vec<String> = (0..count).map(|n| format!("http://lame{n}.test/")).collect();
        let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
        let server = names.flag();
        flags.extend(["--dns", &server]);
        let run = run_crawl(&dir.join("data"), &flags);
        assert_eq!((run.code(), result_count(&run.json(), "dns_failed")), (1, count), "{}", run.stderr);
    }
}

#[test]
fn a_url_server_stops_likewise() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let dir = TempDir::new();
    let list = dir.write("list", "http://a.test/\nhttp://b.test/\n");
    let config = dir.write("c.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let data = dir.join("data");
    let flags = ["--urls", list.to_str().unwrap(), "--config", config.to_str().unwrap(), "--dns", &nobody];
    let run =
        run(["urlserver", "--driver", "epoll", "--data", data.to_str().unwrap()].into_iter().chain(flags));
    stopped(&run, &[&nobody, "--dns"]);
}
