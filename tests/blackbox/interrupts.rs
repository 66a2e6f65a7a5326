//! The promise: however a crawl ends, by Ctrl-C, by a limit or by kill -9, what it counted is in the store, whole,
//! and the directory can be used again.

use crate::support::*;
use nephila::farm::{PageKind, SiteSpec};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Every answer takes its time, so that a crawl is never done.
fn slow_farm() -> Farm {
    Farm::start(SiteSpec { hosts: 40, pages: 200, page_bytes: 5_000, latency_ms: 40, ..SiteSpec::default() })
}

/// Some pages hang for longer than any test.
fn hanging_farm() -> Farm {
    Farm::start(SiteSpec {
        hosts: 60,
        pages: 100,
        page_bytes: 5_000,
        latency_ms: 5,
        slow: 0.03,
        slow_ms: 60_000,
        ..SiteSpec::default()
    })
}

/// Every record is of a page of the farm, and every document is whole.
#[track_caller]
fn assert_whole(farm: &Farm, listed: &[Listed]) {
    let spec = farm.site.spec();
    let pages: BTreeMap<String, (u32, u32)> = (0..spec.hosts)
        .flat_map(|host| (0..spec.pages).map(move |page| (host, page)))
        .map(|(host, page)| (farm.url(host, page), (host, page)))
        .collect();
    for record in listed {
        let &(host, page) = pages.get(&record.url).unwrap_or_else(|| panic!("no such page: {record:?}"));
        if record.result == "ok" {
            let document = farm.site.document(host, page, farm.port);
            assert_eq!(record.sha1, sha1_hex(&document), "{record:?}");
        } else {
            assert!(
                farm.site.kind(host, page) == PageKind::Slow || record.result.ends_with("timeout"),
                "{record:?}"
            );
        }
    }
}

#[track_caller]
fn start(farm: &Farm, data: &Path, driver: &str) -> Running {
    let crawl = Running::start(crawl_command(data).args(farm.flags()).args(["--driver", driver]));
    wait_for("pages are stored", PATIENCE, || {
        (farm.stats()["requests"].as_u64().unwrap() > 600).then_some(())
    });
    crawl
}

/// A file in which the farm's hosts are where nobody may go: what is pending of them is left out.
fn elsewhere(farm: &Farm, dir: &TempDir) -> String {
    let hosts = std::fs::read_to_string(farm.hosts_file()).unwrap();
    let names = hosts.lines().filter_map(|line| line.split_once(' '));
    let moved: String = names.map(|(_, names)| format!("10.0.0.1 {names}\n")).collect();
    dir.write("elsewhere", moved).to_str().unwrap().to_string()
}

#[test]
fn ctrl_c_ends_a_crawl_with_its_summary() {
    for (driver, signal) in [("uring", Signal::SIGINT), ("epoll", Signal::SIGTERM)] {
        let (farm, dir) = (slow_farm(), TempDir::new());
        let data = dir.join("data");
        let crawl = start(&farm, &data, driver);
        let at = Instant::now();
        crawl.signal(signal);
        let run = crawl.wait(PATIENCE).done();
        assert!(at.elapsed() < Duration::from_secs(8), "{:?}", at.elapsed());
        let report = run.json();
        check_report(&report);
        assert!(report["pending"].as_u64().unwrap() > 0, "{report}");
        let records = records(&data);
        assert_eq!(report["pages"], records.len(), "every page counted is stored, and no other");
        assert!(records.len() > 100, "{}", records.len());
        assert_whole(&farm, &records);
    }
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    for driver in DRIVERS {
        let (farm, dir) = (hanging_farm(), TempDir::new());
        let data = dir.join("data");
        let mut crawl = start(&farm, &data, driver);
        std::thread::sleep(Duration::from_millis(500));
        crawl.signal(Signal::SIGINT);
        wait_for("it says that it stops", PATIENCE, || crawl.stderr().contains("stopping").then_some(()));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!crawl.has_ended(), "open fetches may end");
        let at = Instant::now();
        crawl.signal(Signal::SIGINT);
        let run = crawl.wait(PATIENCE);
        assert!(at.elapsed() < Duration::from_secs(2), "{:?}", at.elapsed());
        assert_eq!(run.code(), 3);
        assert_eq!(run.text(), "", "no summary");
        let records = records(&data);
        assert!(records.len() > 100, "{}", records.len());
        assert_whole(&farm, &records);
        // And the directory is as good as before.
        let server = LogServer::start(|_| Reply::text(""));
        self::crawl(&data, [&*server.url("/"), "--fresh-settings", "--hosts-file", &elsewhere(&farm, &dir)]);
        assert_eq!(self::records(&data).len(), records.len() + 1);
    }
}

/// Open fetches have 5 seconds to end; after that they are given up, and the summary comes.
#[test]
fn one_ctrl_c_is_enough_even_if_hosts_hang() {
    let (farm, dir) = (hanging_farm(), TempDir::new());
    let data = dir.join("data");
    let crawl = start(&farm, &data, "auto");
    let at = Instant::now();
    crawl.signal(Signal::SIGINT);
    let run = crawl.wait(PATIENCE).done();
    assert!(at.elapsed() < Duration::from_secs(8), "{:?}", at.elapsed());
    let report = run.json();
    check_report(&report);
    let records = records(&data);
    assert_eq!(report["pages"], records.len());
    assert_whole(&farm, &records);
}

#[test]
fn kill_9_loses_nothing_that_was_counted() {
    for driver in DRIVERS {
        let (farm, dir) = (slow_farm(), TempDir::new());
        let data = dir.join("data");
        let crawl = start(&farm, &data, driver);
        // The progress line says how many pages were counted when it was written.
        let counted = wait_for("a progress line", PATIENCE, || {
            let stderr = crawl.stderr();
            let line = stderr.lines().rfind(|line| line.contains(" pages "))?.to_string();
            line.split(" pages ").next()?.split_whitespace().last()?.replace(',', "").parse::<usize>().ok()
        });
        crawl.signal(Signal::SIGKILL);
        let run = crawl.wait(PATIENCE);
        assert_eq!(run.status.code(), None);
        let records = records(&data);
        assert!(counted > 100 && records.len() >= counted, "{} stored, {counted} counted", records.len());
        assert_whole(&farm, &records);
        let open = segments(&data, "open");
        assert!(open > 0, "segments were left open");

        let server = LogServer::start(|_| Reply::text("after"));
        let hosts = elsewhere(&farm, &dir);
        let flags = [&*server.url("/"), "--driver", driver, "--fresh-settings", "--hosts-file", &hosts];
        let (report, run) = self::crawl(&data, flags);
        assert_eq!(report["pages"], 1);
        let said = run.stderr.lines().find(|line| line.contains("segments") && line.contains("killed"));
        assert!(said.is_some(), "it says that it recovered segments:\n{}", run.stderr);
        let after = self::records(&data);
        assert_eq!(after[..records.len()], records, "everything is still there, in order");
        assert_eq!(after.len(), records.len() + 1);
        assert_eq!(segments(&data, "open"), 0, "all are sealed");
        assert_eq!(cat(&data, &server.url("/")), b"after");
    }
}

fn segments(data: &Path, ending: &str) -> usize {
    let entries = std::fs::read_dir(data.join("segments")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == ending)).count()
}

#[test]
fn max_seconds_ends_a_crawl() {
    let (farm, dir) = (slow_farm(), TempDir::new());
    let data = dir.join("data");
    let mut flags = farm.flags();
    flags.extend(["--max-seconds", "2"].map(str::to_string));
    let (report, _) = crawl(&data, &flags);
    let seconds = report["seconds"].as_f64().unwrap();
    assert!((2.0..5.0).contains(&seconds), "{report}");
    assert!(report["pending"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["pages"], records(&data).len());
}

/// A crawl on a data directory that has one already adds to it, and the newest record of a URL is the one shown.
#[test]
fn a_second_crawl_adds_to_the_first() {
    let (server, dir) = (LogServer::start(|_| Reply::text("first")), TempDir::new());
    let data = dir.join("data");
    let url = server.url("/");
    crawl(&data, [&url]);
    let first = records(&data);
    assert_eq!(first.len(), 1);
    crawl(&data, [&server.url("/other")]);
    let both = records(&data);
    assert_eq!(both[..1], first, "the first is untouched");
    assert_eq!(both.len(), 2);
}
