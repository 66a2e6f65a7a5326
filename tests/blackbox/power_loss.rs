//! The promise: a document that was reported stored survives the loss of power. DONE comes after the disk has the
//! record, the segment and its name; what the disk refused is never reported.
//!
//! A killed process leaves its pages to the kernel, so that kill -9 cannot show this. Here the store lies on a file system
//! of its own, whose power is cut while pages come in: from that moment nothing reaches it, and what was not synced is
//! gone.

use crate::disks::{Cut, Disk};
use crate::orders::*;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[test]
fn what_was_done_survives_the_loss_of_power() {
    let Some(disk) = Disk::ext4(128) else {
        return;
    };
    let (mut orders, mut chance, dir) = (Orders::new(8_000), Chance::new(), TempDir::new());
    let data = disk.path().join("data");
    let mut before: Vec<Listed> = Vec::new();
    for round in 0..9 {
        let cut = [Cut::DataAndLog, Cut::Data, Cut::Nothing][round % 3];
        let commit_ms = 1 + chance.below(20);
        let config =
            dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = {commit_ms}\nfree_bytes_min = 0\n"));
        let mut spider = Running::start(&mut spider_command(&[], &data, &config));
        let addr = listens(&mut spider).unwrap_or_else(|| panic!("it starts: {}", spider.stderr()));
        let talk = orders.give(addr, 100_000);
        let at_least = 1 + chance.below(300) as usize;
        wait_for("it is at work", PATIENCE, || (talk.done() >= at_least).then_some(()));
        std::thread::sleep(Duration::from_micros(chance.below(50_000)));
        orders.note_so_far(&talk);
        if !disk.cut_power(cut) {
            println!("this kernel cannot stop a file system: skipped");
            return;
        }
        // Some live on without their disk for a while: what they say then must be true as well.
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(300));
        }
        if !spider.has_ended() {
            spider.signal(Signal::SIGKILL);
        }
        wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
        let run = spider.wait(PATIENCE);
        println!(
            "{cut:?}: {} DONE, ended with {:?}: {}",
            talk.done(),
            run.status,
            run.stderr.lines().last().unwrap()
        );
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        orders.note_in_doubt(talk);
        disk.restart();
        let after = orders.check(&data);
        // The keeper has one sync under way at a time, and that is all that can be in doubt.
        let lost = orders.settle(&after);
        assert!(lost <= WINDOW, "{cut:?}: {lost} pages were reported after their disk was gone");
        assert!(after.len() >= before.len() && after[..before.len()] == before, "opening changes no record");
        before = after;
    }
    orders.check_some_by_cat(&data, 5);
}

/// A call that fails once does what it should have done for nobody: what hung on it is written again or not reported, and
/// is not lost with the power. The process goes on, or says why it cannot.
#[test]
fn what_the_disk_refused_is_not_reported() {
    if !can_trace() {
        return;
    }
    let (mut orders, dir) = (Orders::new(20_000), TempDir::new());
    // So few pages that a segment does not even fill: what was not synced is not synced by its sealing either.
    const FEW: u32 = 40;
    let calls = [("fsync", 600), ("ftruncate", 600), ("rename", 600), ("fallocate", 600), ("msync", FEW)];
    for (call, count) in calls {
        for time in [1, 4] {
            let Some(disk) = Disk::ext4(64) else {
                return;
            };
            let data = disk.path().join("data");
            let config = dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 2\nfree_bytes_min = 0\n"));
            let mut spider = Running::start(&mut spider_command(&refused_at(call, time), &data, &config));
            if let Some(addr) = listens(&mut spider) {
                let talk = orders.give(addr, count);
                wait_for("all is answered, or it has ended", PATIENCE, || {
                    (talk.is_answered() || spider.has_ended()).then_some(())
                });
                if !disk.cut_power(Cut::DataAndLog) {
                    println!("this kernel cannot stop a file system: skipped");
                    return;
                }
                if !spider.has_ended() {
                    spider.signal(Signal::SIGKILL);
                }
                wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
                println!("{call} {time}: {} DONE", talk.done());
                orders.note(talk);
            }
            let run = spider.wait(PATIENCE);
            println!("{call} {time}: {:?} {}", run.status, run.stderr.lines().last().unwrap_or_default());
            assert!(
                [Some(3), None].contains(&run.status.code()),
                "{call} {time}: {:?} {}",
                run.status,
                run.stderr
            );
            assert!(!run.stderr.contains("panicked"), "{call} {time}: {}", run.stderr);
            disk.restart();
            orders.check(&data);
            orders.forget();
        }
    }
}

/// A sync that fails is never tried again: its segment is set aside, its records are written once more elsewhere before they
/// count, and the spider goes on.
#[test]
fn what_the_disk_refused_is_written_again_elsewhere() {
    if !can_trace() {
        return;
    }
    let (mut orders, dir) = (Orders::new(20_000), TempDir::new());
    // One segment takes all of it, so that only the first sync can be the first of a segment.
    let config = dir.write(
        "c.toml",
        "[spider]\nmax_doc_size = 65536\n[store]\nsegment_bytes = 16777216\ncommit_ms = 2\n",
    );
    for time in [1, 3, 9] {
        let data = dir.join(&format!("data-{time}"));
        let mut command = spider_command(&refused_at("msync", time), &data, &config);
        let mut spider = Running::start(command.args(["--cores", "0"]));
        let addr = listens(&mut spider).unwrap_or_else(|| panic!("{}", spider.stderr()));
        let talk = orders.give(addr, 300);
        wait_for("all is answered", PATIENCE, || talk.is_answered().then_some(()));
        orders.note(talk);
        spider.signal(Signal::SIGTERM);
        let run = spider.wait(PATIENCE);
        assert_eq!(run.code(), 0, "{}", run.stderr);
        assert!(run.stderr.contains("refused"), "it is said: {}", run.stderr);
        // One whose very first sync failed has nothing in it that counts.
        assert_eq!(segments(&data, "bad").is_empty(), time == 1, "{}", run.stderr);
        orders.check(&data);
        let mut verify = nephila();
        verify.args(["store", "verify", "--data"]).arg(&data);
        Running::start(&mut verify).wait(PATIENCE).done();
        orders.forget();
    }
}

/// The name of a segment is in its directory, and that is in its own: each is synced before anything that stands under it is
/// reported. Some file systems keep to that order by themselves, and others do not.
#[test]
fn names_are_synced_like_what_they_name() {
    if !can_trace() {
        return;
    }
    let (mut orders, dir) = (Orders::new(20_000), TempDir::new());
    let (data, trace) = (dir.join("new").join("data"), dir.join("trace"));
    let config = dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 2\n"));
    let words = ["strace", "-D", "-f", "-qq", "-y", "-s", "4096", "-o", trace.to_str().unwrap()];
    let calls = ["-e", "trace=mkdir,mkdirat,openat,rename,renameat,renameat2,fsync,sendto,write,msync"];
    let before: Vec<String> = words.into_iter().chain(calls).map(str::to_string).collect();
    let mut spider = Running::start(&mut spider_command(&before, &data, &config));
    let addr = listens(&mut spider).unwrap_or_else(|| panic!("{}", spider.stderr()));
    let talk = orders.give(addr, 400);
    wait_for("all is answered", PATIENCE, || talk.is_answered().then_some(()));
    orders.note(talk);
    spider.signal(Signal::SIGTERM);
    spider.wait(PATIENCE).done();

    let quoted =
        |line: &str| -> Vec<PathBuf> { line.split('"').skip(1).step_by(2).map(PathBuf::from).collect() };
    let segments = data.join("segments");
    let (mut unsynced, mut made): (BTreeSet<PathBuf>, u32) = (BTreeSet::new(), 0);
    for line in wait_for("the trace", PATIENCE, || std::fs::read_to_string(&trace).ok()).lines() {
        let Some((_, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let failed = line.contains(" = -1 ");
        let is_new = call.starts_with("mkdir") || call.starts_with("rename") || call.contains("O_CREAT");
        if is_new && !failed {
            let Some(path) = quoted(line).pop().filter(|path| path.starts_with(dir.join("new"))) else {
                continue;
            };
            // What the store stands on: its directories, and the segments in them.
            let is_segment = path.extension().is_some_and(|ending| ending == "open" || ending == "seg");
            if path.parent() == Some(&segments) && is_segment {
                // One at a time: the name before is fast when the next is made.
                assert!(!unsynced.contains(&segments), "{line}: the name before it is not synced");
                unsynced.insert(segments.clone());
                made += 1;
            } else if segments.starts_with(&path) {
                unsynced.insert(path.parent().unwrap().to_path_buf());
            }
        } else if call.starts_with("fsync(") {
            let path = call.split('<').nth(1).and_then(|rest| rest.split('>').next());
            path.map(|path| unsynced.remove(Path::new(path)));
        }
        // The next segment may be in the making while records of another are reported.
        let mut missing = unsynced.iter().filter(|path| **path != segments);
        assert!(!call.contains(" DONE\\n") || missing.next().is_none(), "{unsynced:?} when it says {line}");
    }
    assert!(made > 10, "{made} names were made");
    assert_eq!(unsynced, BTreeSet::new(), "directories with names that are not synced");
}

/// A file that takes the place of another is on the disk before it has its name, and its name before anything relies on
/// it: of the rules beside the index, the mark of what the index was told, the journal of hosts, the key, the runs of the
/// seen-set, the segments and their indexes.
#[test]
fn a_file_that_is_replaced_is_synced_and_then_its_directory() {
    if !can_trace() {
        return;
    }
    let farm = Farm::start(SiteSpec { hosts: 2, pages: 30, page_bytes: 2_000, ..SiteSpec::default() });
    let (dir, mut named) = (TempDir::new(), BTreeSet::new());
    let (data, trace) = (dir.join("data"), dir.join("trace"));
    for round in 0..2 {
        if round == 1 {
            // A journal that says everything twice is written anew.
            let journal = data.join("niceness.journal");
            let lines = std::fs::read(&journal).unwrap();
            std::fs::write(&journal, [&lines[..], &lines[..]].concat()).unwrap();
        }
        let mut crawl = crawl_command(&data);
        crawl.args(farm.flags());
        let calls = "trace=rename,renameat,renameat2,fsync,fdatasync";
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-y", "-s", "4096", "-e", calls, "-o"]).arg(&trace);
        command.arg(crawl.get_program()).args(crawl.get_args()).stdin(std::process::Stdio::null());
        Running::start(&mut command).wait(PATIENCE).done();

        let (mut synced, mut unsynced) = (BTreeSet::new(), BTreeSet::new());
        for line in std::fs::read_to_string(&trace).unwrap().lines().filter(|line| !line.contains(" = -1 ")) {
            let call = line.split_once(' ').unwrap_or_default().1.trim_start();
            if call.starts_with("rename") {
                let names: Vec<PathBuf> = line.split('"').skip(1).step_by(2).map(PathBuf::from).collect();
                assert!(synced.contains(&names[0]), "{line}: the file is not synced");
                named.insert(names[1].strip_prefix(&data).unwrap().to_path_buf());
                unsynced.insert(names[1].parent().unwrap().to_path_buf());
            } else if let Some(path) = call.split('<').nth(1).and_then(|rest| rest.split('>').next()) {
                synced.insert(PathBuf::from(path));
                unsynced.remove(Path::new(path));
            }
        }
        assert_eq!(unsynced, BTreeSet::new(), "directories with names that are not synced");
    }
    for name in ["index/rules.json", "index/told.segment", "niceness.journal", "settings.toml"] {
        assert!(named.contains(Path::new(name)), "{name} among {named:?}");
    }
    for ending in ["seg", "idx", "run"] {
        let is_there = named.iter().any(|name| name.extension().is_some_and(|found| found == ending));
        assert!(is_there, "{ending} among {named:?}");
    }
}
