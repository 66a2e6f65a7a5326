//! The promise: a document that was reported stored survives kill -9 at any instruction. The store opens again, nothing
//! partial is in it, and opening it can itself be killed without harm; of two processes on one directory the second is
//! refused.
//!
//! The test is the URL server: each DONE that it had before the kill is a page that must be there afterwards, byte for
//! byte as the farm serves it. `NEPHILA_KILLS=200` makes a long run of it, `NEPHILA_SEED=…` the same run again:
//!
//! ```text
//!   NEPHILA_KILLS=200 cargo nextest run --no-capture -E 'test(/^crash::/)'
//! ```

use crate::orders::*;
use crate::support::*;
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// System calls by which the store changes the disk.
const DISK_CALLS: [&str; 6] = ["fallocate", "fsync", "msync", "ftruncate", "rename", "unlink"];

/// How often a spider is killed at a moment of chance.
fn kills() -> u64 {
    std::env::var("NEPHILA_KILLS").map_or(20, |text| text.parse().expect("NEPHILA_KILLS is a number"))
}

struct Bench {
    orders: Orders,
    dir: TempDir,
    data: PathBuf,
    stores: u32,
}

impl Bench {
    fn new() -> Bench {
        let dir = TempDir::new();
        let data = dir.join("data-0");
        Bench { orders: Orders::new(20_000), dir, data, stores: 0 }
    }

    fn config(&self, commit_ms: u64) -> PathBuf {
        self.dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = {commit_ms}\n"))
    }

    /// Goes on with an empty store.
    fn another_store(&mut self) {
        let _ = std::fs::remove_dir_all(&self.data);
        self.stores += 1;
        self.data = self.dir.join(&format!("data-{}", self.stores));
        self.orders.forget();
    }

    /// A spider at work until it has answered `enough` orders, is stopped by what stands before it, or until `end` has
    /// had enough. True if it was killed by its own doing.
    #[track_caller]
    fn run(
        &mut self,
        before: &[String],
        commit_ms: u64,
        enough: u32,
        mut end: impl FnMut(&Talk) -> bool,
    ) -> bool {
        let config = self.config(commit_ms);
        let mut spider = Running::start(&mut spider_command(before, &self.data, &config));
        let mut killed = true;
        if let Some(addr) = listens(&mut spider) {
            let talk = self.orders.give(addr, enough);
            wait_for("all is answered, or it is dead", PATIENCE, || {
                (talk.is_answered() || spider.has_ended() || end(&talk)).then_some(())
            });
            if !spider.has_ended() {
                killed = false;
                spider.signal(Signal::SIGKILL);
            }
            wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
            self.orders.note(talk);
        }
        let run = spider.wait(PATIENCE);
        assert_eq!(run.status.code(), None, "killed, and by nothing else: {}", run.stderr);
        assert_eq!(signal_of(&run), Signal::SIGKILL as i32, "{}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        killed
    }

    /// All that was there is there still, in its order; what came later follows it.
    #[track_caller]
    fn check_after(&mut self, before: &[Listed]) -> Vec<Listed> {
        let after = self.orders.check(&self.data);
        assert!(after.len() >= before.len() && after[..before.len()] == *before, "opening changes no record");
        after
    }
}

fn signal_of(run: &Run) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&run.status).unwrap_or(0)
}

#[test]
fn at_moments_of_chance() {
    let (mut bench, mut chance) = (Bench::new(), Chance::new());
    let (mut before, mut answered) = (Vec::new(), 0);
    for kill in 0..kills() {
        if kill % 8 == 0 && kill > 0 {
            bench.orders.check_some_by_cat(&bench.data, 3);
            bench.another_store();
            before.clear();
        }
        let commit_ms = 1 + chance.below(20);
        let config = bench.config(commit_ms);
        let mut spider = Running::start(&mut spider_command(&[], &bench.data, &config));
        // Some do not even come to listen.
        if chance.below(4) == 0 {
            std::thread::sleep(Duration::from_micros(chance.below(60_000)));
            spider.signal(Signal::SIGKILL);
        } else if let Some(addr) = listens(&mut spider) {
            let talk = bench.orders.give(addr, 100_000);
            let at_least = chance.below(200) as usize;
            wait_for("it is at work", PATIENCE, || (talk.done() >= at_least).then_some(()));
            std::thread::sleep(Duration::from_micros(chance.below(100_000)));
            spider.signal(Signal::SIGKILL);
            wait_for("the talk is over", PATIENCE, || talk.is_over().then_some(()));
            answered += talk.done();
            bench.orders.note(talk);
        }
        assert_eq!(signal_of(&spider.wait(PATIENCE)), Signal::SIGKILL as i32);
        before = bench.check_after(&before);
    }
    bench.orders.check_some_by_cat(&bench.data, 3);
    println!("{} kills, {answered} pages answered", kills());
    assert!(answered > 100, "there was something to lose: {answered}");
}

/// Every kind of call that changes the disk, when it is made first, second and some time later. Threads count their own
/// calls, so that it is the one that opens the store in some cases and the keeper in others.
#[test]
fn at_every_kind_of_disk_call() {
    if !can_trace() {
        return;
    }
    let mut bench = Bench::new();
    let long = std::env::var_os("NEPHILA_KILLS").is_some();
    let times: &[u32] =
        if long { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 20, 25, 30, 40] } else { &[1, 2, 3, 9] };
    for call in DISK_CALLS {
        let mut before = Vec::new();
        bench.another_store();
        for (index, &time) in times.iter().enumerate() {
            // Only a segment that was never used is removed, and there is one when a store of a killed process is opened.
            if call == "unlink" && (index > 0 || before.is_empty()) {
                if index > 0 {
                    continue;
                }
                bench.run(&[], 5, 200, |_| false);
                before = bench.orders.check(&bench.data);
            }
            let killed = bench.run(&killed_at(call, time), 2, 2_000, |_| false);
            assert!(killed, "{call} {time} was never made");
            before = bench.check_after(&before);
        }
        println!("{call}: {} pages were DONE, {} are stored", bench.orders.done(), before.len());
        assert!(bench.orders.done() > 0, "there was something to lose");
        bench.orders.check_some_by_cat(&bench.data, 2);
    }
}

/// A store that is opened after a kill, and killed at every call of its opening in turn: by a spider and by a crawl, from
/// the same state each time and, going on where the one before died, until one comes through.
#[test]
fn while_it_is_opened() {
    if !can_trace() {
        return;
    }
    let mut bench = Bench::new();
    let killed = bench.run(&[], 2, 100_000, |talk| talk.done() > 300);
    assert!(!killed);
    let before = bench.orders.check(&bench.data);
    assert!(segments(&bench.data, "open").len() > 1, "segments are open on more than one shard");
    let original = bench.dir.join("original");
    copy_tree(&bench.data, &original);
    let config = bench.config(5);

    for call in ["fsync", "ftruncate", "rename", "unlink"] {
        for time in 1.. {
            bench.data = bench.dir.join(&format!("{call}-{time}"));
            copy_tree(&original, &bench.data);
            let run = opened(&killed_at(call, time), &bench.data, &config, time % 2 == 0);
            let after = bench.check_after(&before);
            assert_eq!(after.len(), before.len(), "it came to store nothing");
            let _ = std::fs::remove_dir_all(&bench.data);
            if run.status.code().is_some() {
                assert!(time > 1, "{call} is never made while a store is opened");
                break;
            }
            assert!(time < 50, "{call} does not end");
        }
    }

    bench.data = original;
    let mut deaths = 0;
    while !segments(&bench.data, "open").is_empty() {
        for call in ["fsync", "rename"] {
            let run = opened(&killed_at(call, 2), &bench.data, &config, call == "fsync");
            deaths += u32::from(run.status.code().is_none());
            assert_eq!(bench.check_after(&before).len(), before.len());
        }
        assert!(deaths < 20, "every opening gets a little further");
    }
    println!("{} records survived {deaths} deaths in a row", before.len());
    assert!(deaths > 0);
}

/// Opens a store and ends at once: a spider whose address cannot be had, or a crawl that has nowhere to go.
fn opened(before: &[String], data: &Path, config: &Path, by_crawl: bool) -> Run {
    let mut command = match by_crawl {
        true => {
            let mut command = std::process::Command::new(&before[0]);
            command.args(&before[1..]).arg(env!("CARGO_BIN_EXE_nephila")).args(["crawl", "--json"]);
            // Loopback is not allowed: the page is refused before it is asked for, and leaves no record.
            command.arg("http://127.0.0.1:1/").arg("--data").arg(data).arg("--config").arg(config);
            command.stdin(std::process::Stdio::null());
            command
        }
        false => spider_command(before, data, config),
    };
    let mut running = Running::start(&mut command);
    if !by_crawl && listens(&mut running).is_some() && !running.has_ended() {
        running.signal(Signal::SIGTERM);
    }
    let run = running.wait(PATIENCE);
    assert!(run.status.code().is_none_or(|code| code == 0), "{:?} {}", run.status, run.stderr);
    run
}

#[test]
fn a_second_process_is_refused_while_the_first_lives() {
    let mut bench = Bench::new();
    let config = bench.config(5);
    let mut spider = Running::start(&mut spider_command(&[], &bench.data, &config));
    let addr = listens(&mut spider).expect("it starts");
    let talk = bench.orders.give(addr, 300);
    for round in 0..4 {
        let mut second = match round % 2 {
            0 => spider_command(&[], &bench.data, &config),
            _ => crawl_command(&bench.data),
        };
        if round % 2 == 1 {
            second.arg(bench.orders.farm.url(0, 0));
        }
        let run = Running::start(&mut second).wait(PATIENCE);
        assert_eq!(run.code(), 3, "{}", run.stderr);
        let last = run.stderr.lines().last().unwrap();
        assert!(last.starts_with("nephila: ") && last.contains("in use"), "{}", run.stderr);
        assert!(!spider.has_ended());
    }
    wait_for("all is answered", PATIENCE, || talk.is_over().then_some(()));
    assert_eq!(talk.done(), 300, "the first goes on undisturbed");
    bench.orders.note(talk);
    spider.signal(Signal::SIGKILL);
    spider.wait(PATIENCE);
    let before = bench.orders.check(&bench.data);
    // A dead one holds nothing.
    bench.run(&[], 5, 10, |_| false);
    bench.check_after(&before);
}

/// The same of a crawl, which is its own URL server: killed again and again it loses no page of the farm.
#[test]
fn a_crawl_that_is_killed_again_and_again_gets_everything() {
    let spec = nephila::farm::SiteSpec {
        hosts: 30,
        pages: 40,
        page_bytes: 8_000,
        latency_ms: 3,
        ..Default::default()
    };
    let (farm, dir, mut chance) = (Farm::start(spec), TempDir::new(), Chance::new());
    let data = dir.join("data");
    let config = dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 3\n"));
    let command = || {
        let mut command = crawl_command(&data);
        command.args(farm.flags()).arg("--config").arg(&config);
        command
    };
    let mut before: Vec<Listed> = Vec::new();
    for _ in 0..5 {
        let asked = farm.stats()["requests"].as_u64().unwrap();
        let mut crawl = Running::start(&mut command());
        let more = 20 + chance.below(300);
        wait_for("it is at work", PATIENCE, || {
            (crawl.has_ended() || farm.stats()["requests"].as_u64().unwrap() > asked + more).then_some(())
        });
        if !crawl.has_ended() {
            crawl.signal(Signal::SIGKILL);
        }
        crawl.wait(PATIENCE);
        let after = records(&data);
        assert!(after.len() >= before.len() && after[..before.len()] == before, "opening changes no record");
        before = after;
    }
    Running::start(&mut command()).wait(PATIENCE).done();
    let after = records(&data);
    assert_eq!(after[..before.len()], before, "opening changes no record");
    let by_url: std::collections::BTreeMap<&str, &Listed> =
        after.iter().map(|record| (&*record.url, record)).collect();
    for (host, page) in (0..30).flat_map(|host| (0..40).map(move |page| (host, page))) {
        let url = farm.url(host, page);
        let record = by_url.get(&*url).unwrap_or_else(|| panic!("lost: {url}"));
        assert_eq!(record.sha1, sha1_hex(&farm.site.document(host, page, farm.port)), "{record:?}");
    }
    assert_eq!(by_url.len(), 30 * 40);
}
