//! The promise: a clock that was wrong is not believed once it is right. Rules of robots.txt are a day old at the most, no
//! pause and no retry is longer than it would be from now on, and a robots.txt that has failed for a month is as good as
//! absent until it answers otherwise.

use crate::stage::Stage;
use crate::support::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

/// Processes whose calendar is ahead, or behind.
pub struct Clock(PathBuf);

impl Clock {
    pub fn new(dir: &TempDir) -> Clock {
        let library = dir.join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blackbox/scripts/clock.c");
        let made =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
        assert!(made.unwrap().success(), "cc makes a library");
        Clock(library)
    }

    pub fn start(&self, ahead_s: i64, command: &mut Command) -> Running {
        command.env("LD_PRELOAD", &self.0).env("CLOCK_AHEAD_S", ahead_s.to_string());
        Running::start(command)
    }

    fn run(&self, ahead_s: i64, command: &mut Command) -> Run {
        self.start(ahead_s, command).wait(PATIENCE)
    }
}

#[test]
fn what_a_clock_ahead_wrote_parks_nothing() {
    for ahead_s in [365 * DAY_S, 3 * DAY_S, HOUR_S] {
        let mut stage = Stage::with_robots(|asked| match asked.target.as_str() {
            "/robots.txt" => Reply::text("User-agent: *\nDisallow: /no\n"),
            "/busy" => Reply::new("503 Busy", "Retry-After: 2\r\n", ""),
            _ => Reply::text("x"),
        });
        let clock = Clock::new(&stage.dir);
        let urls = ["/", "/busy"].map(|path| stage.url("a.test", path));
        let slow = ["--req-host-per-sec", "2"];
        let crawl = |ahead_s, args: &[&str]| {
            let report = clock.run(ahead_s, &mut stage.command(args.iter().chain(&slow))).json();
            check_report(&report);
            report
        };
        let count = |target: &str| stage.server.targets().iter().filter(|asked| *asked == target).count();
        // The page that was busy comes again in an hour.
        crawl(ahead_s, &[&urls[0], &urls[1]]);
        assert_eq!((count("/robots.txt"), count("/busy")), (1, 1));
        let report = crawl(0, &[]);
        assert_eq!((&report["pages"], &report["waiting"]), (&0.into(), &1.into()), "{ahead_s}: {report}");
        crawl(HOUR_S + 60, &[]);
        assert_eq!(
            (count("/robots.txt"), count("/busy")),
            (2, 2),
            "{ahead_s}: by rules that were read again"
        );
        let report = crawl(HOUR_S + 120, &["--again"]);
        assert_eq!(report["pages"], 2, "{ahead_s}: no pause is of another year: {report}");
        stage.assert_proved();
    }
}

/// The rules of a run three days ahead do not become good when time has caught up with them.
#[test]
fn rules_from_the_future_are_forgotten_at_once() {
    let mut stage = Stage::with_robots(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /no\n"),
        _ => Reply::text("x"),
    });
    let clock = Clock::new(&stage.dir);
    let url = stage.url("a.test", "/");
    clock.run(3 * DAY_S, &mut stage.command([&url])).done();
    // It has nothing to do, and is told of the rules all the same.
    clock.run(0, &mut stage.command([] as [&str; 0])).done();
    clock.run(3 * DAY_S + HOUR_S, &mut stage.command(["--again"])).done();
    let robots = stage.server.targets().into_iter().filter(|target| target == "/robots.txt").count();
    assert_eq!(robots, 2);
}

#[test]
fn a_robots_txt_that_fails_for_a_month_is_absent_until_it_answers() {
    let answers = Arc::new(AtomicBool::new(false));
    let mut stage = Stage::with_robots({
        let answers = answers.clone();
        move |asked| match asked.target.as_str() {
            "/robots.txt" if answers.load(Ordering::SeqCst) => Reply::text("User-agent: *\nDisallow: /\n"),
            "/robots.txt" => Reply::status("500 Internal Server Error"),
            _ => Reply::text("x"),
        }
    });
    let clock = Clock::new(&stage.dir);
    let url = stage.url("a.test", "/");
    let pages = || stage.pages_of("a.test").len();
    let crawl = |ahead_s: i64| {
        let report = clock.run(ahead_s, &mut stage.command([&*url, "--again"])).json();
        check_report(&report);
        report
    };
    crawl(-31 * DAY_S);
    assert_eq!(pages(), 0);
    // Over a month later, and then day after day.
    for day in 0..4 {
        let report = crawl(day * (DAY_S + HOUR_S));
        assert_eq!((&report["robots"], pages()), (&1.into(), day as usize + 1), "day {day}: {report}");
    }
    answers.store(true, Ordering::SeqCst);
    crawl(4 * (DAY_S + HOUR_S));
    assert_eq!(pages(), 4);
    stage.assert_proved();
}
