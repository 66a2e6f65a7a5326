//! The promise: a full disk ends no crawl and costs no page. Fetching waits and says so, what was reported is there and can
//! be read meanwhile, and with room the crawl goes on and finishes. A store that cannot even begin says why and ends with
//! status 3. A killed store is opened on a full disk without loss.

use crate::disks::Disk;
use crate::orders::*;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WAITS: &str = "fetching waits for disk space";

/// Both kinds of disk, as far as they can be had. Writing to a map is another thing on each.
fn disks() -> Vec<(&'static str, Disk)> {
    let disks = [("ext4", Disk::ext4(48)), ("tmpfs", Disk::tmpfs(32))];
    disks.into_iter().filter_map(|(name, disk)| Some((name, disk?))).collect()
}

fn config(dir: &TempDir, more: &str) -> PathBuf {
    dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 3\n{more}"))
}

/// Waits until it says that it waits; it must not end over it.
#[track_caller]
fn waits(running: &mut Running) {
    wait_for("it says that it waits", PATIENCE, || {
        assert!(!running.has_ended(), "it lives on: {}", running.stderr());
        running.stderr().contains(WAITS).then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(!running.has_ended(), "it lives on: {}", running.stderr());
}

#[test]
fn a_crawl_waits_for_room_and_goes_on() {
    let spec = SiteSpec { hosts: 20, pages: 60, page_bytes: 20_000, ..SiteSpec::default() };
    let farm = Farm::start(spec);
    let pages: BTreeMap<String, String> = (0..20)
        .flat_map(|host| (0..60).map(move |page| (host, page)))
        .map(|(host, page)| (farm.url(host, page), sha1_hex(&farm.site.document(host, page, farm.port))))
        .collect();
    // With a floor of free space, as it comes, and down to the last block.
    for more in ["", "free_bytes_min = 0\n"] {
        for (name, disk) in disks() {
            let dir = TempDir::new();
            let data = disk.path().join("data");
            let ballast = disk.fill(7 << 20);
            let mut command = crawl_command(&data);
            command.args(farm.flags()).arg("--config").arg(config(&dir, more));
            let mut crawl = Running::start(&mut command);
            waits(&mut crawl);
            for record in records(&data) {
                assert_eq!(pages[&record.url], record.sha1, "{name}: {record:?}");
            }
            std::fs::remove_file(ballast).unwrap();
            let report = crawl.wait(PATIENCE).done().json();
            check_report(&report);
            assert_eq!(
                (&report["success"], &report["pending"]),
                (&1_200.into(), &0.into()),
                "{name}: {report}"
            );
            let stored = stored(&data);
            let found: BTreeMap<String, String> =
                stored.into_iter().map(|(url, record)| (url, record.sha1)).collect();
            assert_eq!(found, pages, "{name}");
        }
    }
}

#[test]
fn a_spider_waits_for_room_and_goes_on() {
    let mut orders = Orders::new(20_000);
    for (name, disk) in disks() {
        let dir = TempDir::new();
        orders.forget();
        let data = disk.path().join("data");
        let ballast = disk.fill(5 << 20);
        let config = config(&dir, "free_bytes_min = 0\n");
        let mut spider = Running::start(&mut spider_command(&[], &data, &config));
        let addr = listens(&mut spider).unwrap_or_else(|| panic!("{name}: {}", spider.stderr()));
        let talk = orders.give(addr, 1_500);
        waits(&mut spider);
        let done = talk.done();
        assert!(done > 0 && done < 1_500, "{name}: {done} are done");
        // What was reported is there, while it waits.
        orders.note_so_far(&talk);
        orders.check(&data);
        std::fs::remove_file(ballast).unwrap();
        wait_for("it goes on to the end", PATIENCE, || {
            assert!(!spider.has_ended(), "{name}: {}", spider.stderr());
            talk.is_answered().then_some(())
        });
        orders.note(talk);
        spider.signal(Signal::SIGTERM);
        spider.wait(PATIENCE).done();
        orders.check(&data);
        assert_eq!(orders.done(), 1_500, "{name}");
    }
}

/// Told to end while it waits, it ends in the time it promises for that, and takes nothing back.
#[test]
fn a_spider_can_be_stopped_while_it_waits() {
    let mut orders = Orders::new(20_000);
    for (name, disk) in disks() {
        let dir = TempDir::new();
        orders.forget();
        let data = disk.path().join("data");
        disk.fill(5 << 20);
        let config = config(&dir, "free_bytes_min = 0\n");
        let mut spider = Running::start(&mut spider_command(&[], &data, &config));
        let addr = listens(&mut spider).unwrap_or_else(|| panic!("{name}: {}", spider.stderr()));
        let talk = orders.give(addr, 1_500);
        waits(&mut spider);
        spider.signal(Signal::SIGTERM);
        let run = spider.wait(PATIENCE / 2);
        assert!([0, 3].contains(&run.code()), "{name}: {:?} {}", run.status, run.stderr);
        wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
        orders.note(talk);
        orders.check(&data);
    }
}

#[test]
fn a_crawl_can_be_stopped_while_it_waits() {
    let farm = Farm::start(SiteSpec { hosts: 20, pages: 60, page_bytes: 20_000, ..SiteSpec::default() });
    for (name, disk) in disks() {
        let dir = TempDir::new();
        let data = disk.path().join("data");
        disk.fill(5 << 20);
        let mut command = crawl_command(&data);
        command.args(farm.flags()).arg("--config").arg(config(&dir, "free_bytes_min = 0\n"));
        let mut crawl = Running::start(&mut command);
        waits(&mut crawl);
        crawl.signal(Signal::SIGTERM);
        let run = crawl.wait(PATIENCE / 2);
        assert!([0, 3].contains(&run.code()), "{name}: {:?} {}", run.status, run.stderr);
        assert!(!records(&data).is_empty(), "{name}");
    }
}

/// It cannot begin: status 3 and a line that says why, or it waits and says so. With room it works in the same place.
#[test]
fn a_disk_that_is_full_from_the_start() {
    let server = LogServer::start(|_| Reply::text("at last"));
    for (name, disk) in disks() {
        // Not a byte, and enough for everything but a segment.
        for (role, free_bytes) in [("crawl", 0), ("crawl", 200 << 10), ("spider", 0), ("spider", 200 << 10)] {
            let dir = TempDir::new();
            let data = disk.path().join(format!("{role}-{free_bytes}"));
            let ballast = disk.fill(free_bytes);
            let config = config(&dir, "");
            let mut command = match role {
                "crawl" => crawl_command(&data),
                _ => spider_command(&[], &data, &config),
            };
            if role == "crawl" {
                command.arg(server.url("/")).arg("--config").arg(&config);
            }
            let mut first = Running::start(&mut command);
            wait_for("it ends, or says that it waits", PATIENCE, || {
                (first.has_ended() || first.stderr().contains(WAITS)).then_some(())
            });
            if !first.has_ended() {
                println!("{name}, {role}: it waits");
                first.signal(Signal::SIGKILL);
                first.wait(PATIENCE);
            } else {
                let run = first.wait(PATIENCE);
                println!("{name}, {role}: {}", run.stderr.lines().last().unwrap_or_default());
                assert_eq!((run.code(), &*run.text()), (3, ""), "{name}, {role}: {}", run.stderr);
                let said: Vec<&str> =
                    run.stderr.lines().filter(|line| line.starts_with("nephila: ")).collect();
                assert_eq!(said.len(), 1, "{name}, {role}: {}", run.stderr);
                assert!(said[0].contains("space"), "{name}, {role}: {}", run.stderr);
            }
            std::fs::remove_file(ballast).unwrap();
            let (report, _) = crawl(
                &data,
                [&*server.url("/"), "--config", config.to_str().unwrap(), "--req-host-per-sec", "0"],
            );
            assert_eq!(report["success"], 1, "{name}, {role}: {report}");
            assert_eq!(cat(&data, &server.url("/")), b"at last");
        }
    }
}

/// A killed store, and not a byte free when it is opened: opening makes no demands that would cost a page.
#[test]
fn a_killed_store_is_opened_on_a_full_disk() {
    let mut orders = Orders::new(20_000);
    for (name, disk) in disks() {
        let dir = TempDir::new();
        orders.forget();
        let data = disk.path().join("data");
        let config = config(&dir, "free_bytes_min = 0\n");
        let killed_at_work = |orders: &mut Orders, at_least: usize| {
            let mut spider = Running::start(&mut spider_command(&[], &data, &config));
            let addr = listens(&mut spider).unwrap_or_else(|| panic!("{name}: {}", spider.stderr()));
            let talk = orders.give(addr, 1_000);
            wait_for("it is at work", PATIENCE, || (talk.done() >= at_least).then_some(()));
            spider.signal(Signal::SIGKILL);
            wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
            spider.wait(PATIENCE);
            orders.note(talk);
        };
        killed_at_work(&mut orders, 100);
        let before = orders.check(&data);
        for _ in 0..3 {
            let ballast = disk.fill(0);
            // Opening may free room, so that it comes further than it would have; or it cannot begin.
            ends_or_is_ended(name, &data, &config);
            assert_eq!(orders.check(&data), before, "{name}");
            std::fs::remove_file(ballast).unwrap();
        }
        killed_at_work(&mut orders, 100);
        let after = orders.check(&data);
        assert_eq!(after[..before.len()], before, "{name}: opening changes no record");
    }
}

fn ends_or_is_ended(name: &str, data: &Path, config: &Path) {
    let mut spider = Running::start(&mut spider_command(&[], data, config));
    if listens(&mut spider).is_some() {
        std::thread::sleep(Duration::from_millis(100));
        assert!(!spider.has_ended(), "{name}: it waits: {}", spider.stderr());
        spider.signal(Signal::SIGKILL);
        spider.wait(PATIENCE);
        return;
    }
    let run = spider.wait(PATIENCE);
    assert_eq!(run.code(), 3, "{name}: {}", run.stderr);
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("nephila: ") && last.contains("space"), "{name}: {}", run.stderr);
}
