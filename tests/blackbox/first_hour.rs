//! The promise: what somebody does in the first hour ends as they would expect. A stop is held against no host, a crawl that
//! could not start is not finished, a full disk is told once, and a lower --depth is one.

use crate::disks::Disk;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

// A stop ----------------------------------------------------------------------------------------------------

/// A server that takes longer for its robots.txt, or for its pages, than a stop waits; from the second time on it is quick.
fn slow_once(slow: &'static str) -> LogServer {
    let asked = AtomicUsize::new(0);
    LogServer::start(move |request| {
        let is_slow = request.target == slow && asked.fetch_add(1, Ordering::Relaxed) == 0;
        let reply = match request.target.as_str() {
            "/robots.txt" => Reply::text(""),
            _ => Reply::text("a page"),
        };
        reply.after_ms(if is_slow { 12_000 } else { 0 })
    })
}

#[track_caller]
fn wait_until_asked(server: &LogServer, target: &str) {
    wait_for("it is asked", PATIENCE, || {
        server.asked().iter().any(|asked| asked.target == target).then_some(())
    });
}

/// Nothing was booked on the URL, and the next run asks for it at once.
#[track_caller]
fn goes_on_at_once(data: &Path, server: &LogServer, stopped: &Run, what: &str) {
    let report = stopped.json();
    check_report(&report);
    assert_eq!((&report["pages"], &report["pending"]), (&0.into(), &1.into()), "{what}: {report}");
    assert_eq!(report["results"].as_object().map_or(0, |results| results.len()), 0, "{what}: {report}");
    assert!(!stopped.stderr.contains("cannot be had"), "{what}: {}", stopped.stderr);
    assert!(records(data).is_empty(), "{what}");
    let said = run(["explain", &server.url("/"), "--data", data.to_str().unwrap()]);
    assert!(said.text().contains("queued: no crawl is running"), "{what}: {}", said.text());
    let (report, _) = crawl(data, [] as [&str; 0]);
    assert_eq!((&report["success"], &report["pending"]), (&1.into(), &0.into()), "{what}: {report}");
}

#[test]
fn a_stop_is_held_against_no_host() {
    for (slow, driver, by_command) in
        [("/robots.txt", "uring", false), ("/", "epoll", false), ("/robots.txt", "epoll", true)]
    {
        let (server, dir) = (slow_once(slow), TempDir::new());
        let data = dir.join("data");
        let mut command = crawl_command(&data);
        let crawl = Running::start(command.arg(server.url("/")).args(["--driver", driver]));
        wait_until_asked(&server, slow);
        match by_command {
            true => drop(run(["stop", "--data", data.to_str().unwrap()]).done()),
            false => crawl.signal(Signal::SIGINT),
        }
        let stopped = crawl.wait(PATIENCE).done();
        goes_on_at_once(&data, &server, &stopped, slow);
    }
}

/// The pause of a host counts from the request that a stop has cut.
#[test]
fn a_pause_outlasts_a_stop() {
    let (server, dir) = (slow_once("/robots.txt"), TempDir::new());
    let data = dir.join("data");
    let mut command = crawl_command(&data);
    command.arg(server.url("/")).args(["--req-host-per-sec", "0.1"]);
    let crawl = Running::start(&mut command);
    wait_until_asked(&server, "/robots.txt");
    crawl.signal(Signal::SIGINT);
    crawl.wait(PATIENCE).done();
    self::crawl(&data, [] as [&str; 0]);
    let asked = server.asked();
    for two in asked.windows(2) {
        let pause_s = (two[1].at_ns - two[0].at_ns) as f64 / 1e9;
        assert!(pause_s > 9.9, "{pause_s}: {asked:?}");
    }
}

/// A spider that is stopped says nothing of what it had open: its URL server sends that to another.
#[test]
fn a_stopped_spider_answers_for_nothing_that_it_cut() {
    let (server, dir) = (slow_once("/"), TempDir::new());
    let mut command = nephila();
    command.args(["spider", "--json", "--allow-net", "127.0.0.0/8", "--listen", "127.0.0.1:0", "--data"]);
    let mut spider = Running::start(command.arg(dir.join("data")));
    let addr = crate::orders::listens(&mut spider).unwrap_or_else(|| panic!("{}", spider.stderr()));
    let mut link = TcpStream::connect(addr).unwrap();
    link.write_all(format!("1 1 127.0.0.1 {}\n", server.url("/")).as_bytes()).unwrap();
    wait_until_asked(&server, "/");
    spider.signal(Signal::SIGTERM);
    let mut said = String::new();
    link.read_to_string(&mut said).unwrap();
    assert!(!said.contains("DONE"), "{said}");
    let report = spider.wait(PATIENCE).done().json();
    assert_eq!(report["pages"], 0, "{report}");
    assert!(records(&dir.join("data")).is_empty());
}

// A crawl that could not start ------------------------------------------------------------------------------

#[test]
fn a_directory_without_a_url_is_nothing_to_crawl() {
    let dir = TempDir::new();
    let data = dir.join("nowhere");
    let run = Running::start(&mut crawl_command(&data)).wait(PATIENCE);
    assert_eq!(run.code(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("nowhere holds no crawl"), "{}", run.stderr);
    assert!(!data.exists(), "nothing is made there");

    // An index that nothing was ever put into.
    let index = crate::support::run(["index", "import", "--data", data.to_str().unwrap(), "/dev/null"]);
    assert!(data.join("index").exists(), "{}", index.stderr);
    let run = Running::start(&mut crawl_command(&data)).wait(PATIENCE);
    assert_eq!(run.code(), 2, "{} {}", run.stderr, run.text());
    assert!(run.stderr.contains("nowhere holds no URLs; give a URL"), "{}", run.stderr);
}

#[test]
fn seeds_outlast_a_crawl_that_had_no_room() {
    let Some(disk) = Disk::tmpfs(4) else { return };
    let server = LogServer::start(|_| Reply::text("x"));
    let data = disk.path().join("d");
    let run = Running::start(crawl_command(&data).arg(server.url("/"))).wait(PATIENCE);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    // 32 MiB do not fit, whatever is to stay free.
    let last = run.stderr.lines().last().unwrap();
    assert!(last.contains("4.2 MB are free") || last.contains("4.1 MB are free"), "{last}");
    assert!(last.contains("segment_bytes") && !last.contains("free_bytes_min"), "{last}");
    assert!(!last.contains("nothing that was counted"), "{last}");
    let resized = Command::new("mount").args(["-o", "remount,size=1g"]).arg(disk.path()).status().unwrap();
    assert!(resized.success());
    let (report, _) = crawl(&data, [] as [&str; 0]);
    assert_eq!((&report["success"], &report["pending"]), (&1.into(), &0.into()), "{report}");
}

// A full disk -----------------------------------------------------------------------------------------------

/// Whatever the count of free bytes does meanwhile.
#[test]
fn a_full_disk_is_told_once() {
    let Some(disk) = Disk::tmpfs(40) else { return };
    let farm = Farm::start(SiteSpec { hosts: 20, pages: 400, page_bytes: 5_000, ..SiteSpec::default() });
    let data = disk.path().join("data");
    let mut command = crawl_command(&data);
    command.args(farm.flags()).args(["--cores", "0"]);
    let crawl = Running::start(&mut command);
    // Pages still go into the one segment that there is.
    const SHORT: &str = "disk space is short, and fetching waits when the open segments are full: ";
    let told = |what: &str| crawl.stderr().matches(what).count();
    wait_for("it says what is missing", PATIENCE, || (told(SHORT) > 0).then_some(()));
    // The log and the index grow as well: less and less is free.
    for n in 0..20 {
        std::fs::write(disk.path().join(format!("more{n}")), vec![1; 60_000]).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    let stderr = crawl.stderr();
    assert!(told(SHORT) == 1 && told("fetching waits for disk space: ") <= 1, "{stderr}");
    let line = stderr.lines().find(|line| line.contains(SHORT)).unwrap();
    assert!(line.contains(" MB are free") && line.contains("segment_bytes"), "{line}");
    crawl.signal(Signal::SIGINT);
    crawl.wait(PATIENCE);
}

// A lower depth ---------------------------------------------------------------------------------------------

#[test]
fn a_lower_depth_holds_for_what_is_known() {
    // The seed leads to /a, that to /a/b, and that to /a/b/c.
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/a", "/x", "/y"]),
        "/a" => Reply::links(["/a/b"]),
        "/a/b" => Reply::links(["/a/b/c"]),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let seed = server.url("/");
    let flags = ["--req-host-per-sec", "0", "--req-host-concurrent", "1"];
    let (report, _) = crawl(&data, [&flags[..], &[&seed, "--max-pages", "1"]].concat());
    assert_eq!((&report["pages"], &report["pending"]), (&1.into(), &3.into()), "{report}");
    let asked = server.asked().len();

    let (report, _) = crawl(&data, [&flags[..], &["--depth", "0"]].concat());
    assert_eq!((&report["pages"], &report["pending"]), (&0.into(), &0.into()), "{report}");
    assert_eq!((&report["excluded"], server.asked().len()), (&3.into(), asked), "{report}");
    let explained = |url: &str| run(["explain", url, "--json", "--data", data.to_str().unwrap()]).json();
    let why = "1 link from a seed, and this crawl follows 0 (depth)";
    let shown = explained(&server.url("/a"));
    assert_eq!(shown["dossier"]["state"], "excluded", "{shown}");
    assert_eq!(shown["answer"], "out_of_scope", "{shown}");
    assert!(shown["said"].as_str().unwrap().contains(why), "{shown}");
    assert_eq!(shown["scope"]["in_scope"], false, "{shown}");

    // What is typed is a seed, however it was found.
    let (report, _) = crawl(&data, [&flags[..], &["--depth", "0", &server.url("/x")]].concat());
    assert_eq!((&report["success"], &report["excluded"]), (&1.into(), &2.into()), "{report}");

    // It comes back as far as the new depth goes, and a seed is never too deep.
    let (report, _) = crawl(&data, [&flags[..], &["--depth", "2", "--again"]].concat());
    assert_eq!((&report["success"], &report["excluded"]), (&5.into(), &0.into()), "{report}");
    assert_eq!(explained(&server.url("/a/b/c"))["answer"], "not_known");
}
