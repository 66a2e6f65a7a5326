//! The promise: a crawl that ends, however it ends, goes on where it was when it is started again. No page is skipped,
//! none that was noted as done is missing from the store, and no more is fetched twice than was open at a kill.
//!
//! `NEPHILA_KILLS=200` makes a long run of it, `NEPHILA_SEED=…` the same run again:
//!
//! ```text
//!   NEPHILA_KILLS=200 cargo nextest run --no-capture -E 'test(/^resume::/)'
//! ```

use crate::orders::Chance;
use crate::support::*;
use nephila::doc_index::{DocState, IndexView};
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

fn kills(usual: u64) -> u64 {
    std::env::var("NEPHILA_KILLS").map_or(usual, |text| text.parse().expect("NEPHILA_KILLS is a number"))
}

fn count(stats: &serde_json::Value, name: &str) -> u64 {
    stats[name].as_u64().unwrap()
}

/// Requests for pages that the farm has had.
fn pages_asked(farm: &Farm) -> u64 {
    let stats = farm.stats();
    count(&stats, "requests") - count(&stats, "robots_requests")
}

/// The URLs that the index calls done.
fn done(data: &Path) -> BTreeSet<String> {
    let mut done = BTreeSet::new();
    if let Some(view) = IndexView::open(&data.join("index")).unwrap() {
        view.each(|_, found, row| {
            if row.is_some_and(|row| row.state == DocState::Success) {
                done.insert(found.url.to_string());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    done
}

fn all_pages(farm: &Farm) -> BTreeSet<String> {
    let spec = farm.site.spec();
    let pages = (0..spec.hosts).flat_map(|host| (0..spec.pages).map(move |page| (host, page)));
    pages.map(|(host, page)| farm.url(host, page)).collect()
}

/// Flags that crawl the farm with ten requests a second to each host: what a host has answered is noted as done before
/// it is asked again, so that one request of each is open at the most.
fn polite(farm: &Farm) -> Vec<String> {
    let mut flags = farm.flags();
    *flags.last_mut().unwrap() = "10".to_string();
    flags
}

fn urls(records: &[Listed]) -> BTreeSet<String> {
    records.iter().map(|record| record.url.clone()).collect()
}

/// A crawl that is killed again and again.
struct Crashes {
    spec: SiteSpec,
    flags: fn(&Farm) -> Vec<String>,
    kills: u64,
    /// Pages that are asked for between a start and its kill: at least so many, and up to so many more.
    pages_min: u64,
    pages_more: u64,
    /// Some of the kills come while a start is still taking up what the one before has left.
    in_a_row: bool,
}

impl Crashes {
    fn run(self) {
        let Crashes { spec, kills, .. } = self;
        let hosts = u64::from(spec.hosts);
        let (farm, dir, mut chance) = (Farm::start(spec), TempDir::new(), Chance::new());
        let data = dir.join("data");
        let (mut killed, mut taken_up) = (0, Vec::new());
        let mut done_before = BTreeSet::new();
        while killed < kills {
            // The seeds are told once: from then on the index knows.
            let mut flags = (self.flags)(&farm);
            if killed > 0 {
                flags.drain(..2);
            }
            let driver = if killed % 2 == 0 { "uring" } else { "epoll" };
            let mut crawl = Running::start(crawl_command(&data).args(flags).args(["--driver", driver]));
            let (from, more) = (pages_asked(&farm), self.pages_min + chance.below(self.pages_more));
            let at_once = self.in_a_row && killed % 3 == 2;
            if at_once {
                std::thread::sleep(Duration::from_micros(chance.below(120_000)));
            } else {
                wait_for("it is at work, or done", PATIENCE, || {
                    (crawl.has_ended() || pages_asked(&farm) >= from + more).then_some(())
                });
            }
            assert!(
                !crawl.has_ended(),
                "{} kills were to come: {}",
                kills - killed,
                crawl.wait(PATIENCE).stderr
            );
            std::thread::sleep(Duration::from_micros(chance.below(30_000)));
            crawl.signal(Signal::SIGKILL);
            let run = crawl.wait(PATIENCE);
            assert_eq!(run.status.code(), None, "{}", run.stderr);
            assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
            taken_up.extend(took_up(&run));
            killed += 1;

            let (done, stored) = (done(&data), urls(&records(&data)));
            assert!(done.is_superset(&done_before), "what was done stays done, kill {killed}");
            assert!(
                stored.is_superset(&done),
                "done and not stored after kill {killed}: {:?}",
                done.difference(&stored).next()
            );
            done_before = done;
        }
        let mut flags = (self.flags)(&farm);
        flags.drain(..2);
        let (report, run) = crawl(&data, &flags);
        let expected = all_pages(&farm);
        assert_eq!(urls(&records(&data)), expected, "every page is stored");
        assert_eq!((&report["pending"], &report["known"]), (&0.into(), &expected.len().into()), "{report}");
        assert_eq!(done(&data), expected);
        assert!(run.stderr.contains("doc index:"), "it says what it goes on with: {}", run.stderr);
        taken_up.extend(took_up(&run));
        // One request may be open for each host.
        let repeated = pages_asked(&farm) - expected.len() as u64;
        println!("{killed} kills, {} pages, {repeated} requests repeated", expected.len());
        println!("taken up: {taken_up:?}");
        assert!(repeated <= killed * hosts, "{repeated} requests were repeated in {killed} kills");
        store(&["verify"], &data).done();
        // There is nothing left to do, nor to be taken up after a clean end.
        let (report, run) = crawl(&data, &flags);
        assert_eq!((&report["pages"], &report["pending"]), (&0.into(), &0.into()), "{report}");
        assert_eq!((&report["taken_up"], took_up(&run)), (&0.into(), None), "{report}");
    }
}

/// What a crawl says of pages that it took up from the store.
fn took_up(run: &Run) -> Option<String> {
    let said = |line: &str| line.strip_prefix("taken up from the store: ").map(str::to_string);
    run.stderr.lines().find_map(said)
}

#[test]
fn kills_lose_no_page_and_repeat_no_more_than_was_open() {
    let kills = kills(20);
    let pages = (30 + 5 * kills as u32).min(1_000);
    let spec =
        SiteSpec { hosts: 60, pages, page_bytes: 2_000, latency_ms: 20, denied: 0, ..SiteSpec::default() };
    Crashes { spec, flags: polite, kills, pages_min: 20, pages_more: 200, in_a_row: false }.run();
}

/// Without pauses a hundred pages and more are stored at any time that the index does not know of yet.
#[test]
fn kills_in_full_flight_repeat_no_more_than_was_open() {
    let kills = kills(9);
    let pages = 250 + 100 * kills as u32;
    let spec =
        SiteSpec { hosts: 8, pages, page_bytes: 2_000, latency_ms: 1, denied: 0, ..SiteSpec::default() };
    Crashes { spec, flags: Farm::flags, kills, pages_min: 200, pages_more: 400, in_a_row: true }.run();
}

#[test]
fn a_crawl_that_was_stopped_goes_on_and_repeats_nothing() {
    let spec = SiteSpec {
        hosts: 20,
        pages: 100,
        page_bytes: 2_000,
        latency_ms: 20,
        denied: 0,
        ..SiteSpec::default()
    };
    let (farm, dir) = (Farm::start(spec), TempDir::new());
    let data = dir.join("data");
    for (turn, signal) in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGINT].into_iter().enumerate() {
        let from = pages_asked(&farm);
        let crawl = Running::start(crawl_command(&data).args(farm.flags()));
        wait_for("it is at work", PATIENCE, || (pages_asked(&farm) >= from + 150).then_some(()));
        crawl.signal(signal);
        let report = crawl.wait(PATIENCE).done().json();
        assert!(count(&report, "pending") > 0, "turn {turn}: {report}");
    }
    let (report, _) = crawl(&data, farm.flags());
    assert_eq!(report["pending"], 0, "{report}");
    assert_eq!(urls(&records(&data)), all_pages(&farm));
    assert_eq!(pages_asked(&farm), all_pages(&farm).len() as u64, "each page once");
}

/// Whole answers of the index are out of scope by new rules: the crawl passes them over, and ends.
#[test]
fn what_new_rules_keep_out_holds_nobody_up() {
    let links: Vec<String> = (0..30).map(|page| format!("/x{page}")).collect();
    let server = LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(links.iter().map(String::as_str)),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let (report, _) = crawl(&data, [&*server.url("/"), "--max-pages", "1", "--req-host-per-sec", "0"]);
    assert_eq!((count(&report, "pages"), count(&report, "pending")), (1, 30), "{report}");
    let config = dir.write("c.toml", "[doc_index]\ndeny = [\"/x\"]\n");
    let flags = ["--config", config.to_str().unwrap(), "--max-pages", "5", "--req-host-per-sec", "0"];
    let (report, _) = crawl(&data, flags);
    assert_eq!((count(&report, "pages"), count(&report, "pending")), (0, 0), "{report}");
    // The rule holds as long as nobody says otherwise; without it they are wanted again.
    let (report, _) = crawl(&data, ["--req-host-per-sec", "0"]);
    assert_eq!(count(&report, "pages"), 0, "{report}");
    let (report, _) = crawl(&data, ["--req-host-per-sec", "0", "--fresh-settings"]);
    assert_eq!((count(&report, "pages"), count(&report, "pending")), (30, 0), "{report}");
}

/// By a limit of pages a crawl is cut into pieces that make a whole.
#[test]
fn pieces_by_max_pages_make_a_whole() {
    let (farm, dir) =
        (Farm::start(SiteSpec { hosts: 7, pages: 30, denied: 0, ..SiteSpec::default() }), TempDir::new());
    let data = dir.join("data");
    let mut pages = 0;
    for _ in 0..7 {
        let (report, _) = crawl(&data, farm.flags().into_iter().chain(["--max-pages".into(), "30".into()]));
        assert_eq!(report["pages"], 30, "{report}");
        pages += 30;
        assert_eq!(count(&report, "known") - count(&report, "pending"), pages, "{report}");
    }
    assert_eq!(urls(&records(&data)), all_pages(&farm));
    assert_eq!(pages_asked(&farm), 210, "each page once");
}
