//! The promise: what a host asked for, and what it was promised, outlives the process, whether that was stopped or
//! killed. A second crawl on the same data asks nobody too early, and nobody for robots.txt again.

use crate::support::*;
use nix::sys::signal::Signal;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MS: i64 = 1_000_000;
const NAMES: [&str; 5] = ["refuses.test", "delays.test", "rules.test", "fails.test", "broken.test"];

fn web(asked: &Asked) -> Reply {
    match (asked.name(), asked.target.as_str()) {
        ("delays.test", "/robots.txt") => Reply::text("User-agent: *\nCrawl-delay: 2\n"),
        ("rules.test", "/robots.txt") => Reply::text("User-agent: *\nDisallow: /no\nAllow: /no/but$\n"),
        ("broken.test", "/robots.txt") => Reply::status("500 Internal Server Error"),
        // A connection of its own for each page, so that a reset is no dead keep-alive.
        (_, "/robots.txt") => Reply::new("404 Not Found", "Connection: close\r\n", ""),
        ("fails.test", _) => Reply::reset(),
        ("refuses.test", "/p1") => Reply::new("429 Too Many Requests", "Retry-After: 4\r\n", ""),
        ("rules.test", "/") => Reply::links(["/p1", "/no", "/no/but", "/no/but/not"]),
        (_, "/") => Reply::links(["/p1", "/p2"]),
        _ => Reply::text("x"),
    }
}

/// A crawl of these names on loopback, at `NAMES`' own addresses.
fn command(dir: &TempDir, data: &Path, settings: &str, seeds: &[String]) -> std::process::Command {
    let hosts: String = NAMES.iter().zip(1..).map(|(name, at)| format!("127.41.0.{at} {name}\n")).collect();
    let path = |path: PathBuf| path.to_str().unwrap().to_string();
    let mut command = crawl_command(data);
    command.args(["--hosts-file", &path(dir.write("hosts", hosts))]);
    command.args(["--config", &path(dir.write("c.toml", settings))]);
    command.args(["--seeds", &path(dir.write("seeds", seeds.join("\n")))]);
    command
}

fn of<'a>(asked: &'a [Asked], name: &str) -> Vec<&'a Asked> {
    asked.iter().filter(|asked| asked.name() == name).collect()
}

#[track_caller]
fn assert_gaps(asked: &[&Asked], least_ns: i64) {
    for pair in asked.windows(2) {
        let gap_ns = pair[1].at_ns - pair[0].at_ns;
        assert!(gap_ns >= least_ns, "{gap_ns} ns, {least_ns} asked for: {pair:?}");
    }
}

/// The audit of both runs finds no fault.
#[track_caller]
fn assert_proved(data: &Path, runs: u32) {
    let mut command = nephila();
    let run = Running::start(command.args(["audit", "--json", "--data"]).arg(data)).wait(PATIENCE);
    assert_eq!(run.code(), 0, "{}", run.text());
    assert_eq!(run.json()["runs"], runs);
}

fn ends(signal: Signal) {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, web);
    let url = |name: &str, target: &str| format!("http://{name}:{}{target}", server.port());
    let mut seeds: Vec<String> = NAMES.iter().map(|name| url(name, "/")).collect();
    seeds.extend(["/a", "/b", "/c"].map(|target| url("fails.test", target)));
    let settings = "[url_server]\nreq_host_per_sec = 4\nhost_failures_max = 2\n";

    let crawl = Running::start(&mut command(&dir, &data, settings, &seeds));
    // Everything has been said by the hosts, and what they said is written down.
    let refused = url("refuses.test", "/p1");
    wait_for("the first run has heard it all", PATIENCE, || {
        let log = std::fs::read_to_string(data.join("crawl.log")).unwrap_or_default();
        let says = |url: &str, note: &str| log.lines().any(|line| line.contains(url) && line.contains(note));
        let heard = says(&refused, "retry-after=4")
            && says(&url("fails.test", "/"), "host_set_aside")
            && says(&url("delays.test", "/ "), ",ok,")
            && says(&url("rules.test", "/no/but "), ",ok,")
            && says(&url("broken.test", "/robots.txt"), "rules=unreachable");
        heard.then_some(())
    });
    crawl.signal(signal);
    let run = crawl.wait(PATIENCE);
    assert_eq!(run.status.code(), (signal != Signal::SIGKILL).then_some(0), "{}", run.stderr);
    let before = server.asked();
    assert_eq!(of(&before, "fails.test").len(), 3, "robots.txt and two failures");

    let (report, _) = {
        let mut again = command(&dir, &data, settings, &seeds);
        let run = Running::start(again.arg("--again")).wait(PATIENCE).done();
        let report = run.json();
        check_report(&report);
        (report, run)
    };
    assert_eq!(result_count(&report, "host_set_aside"), 4, "{report}");
    // The first page of broken.test, /no and /no/but/not of rules.test.
    assert_eq!(result_count(&report, "robots_denied"), 3, "{report}");
    assert_eq!(report["robots"], 0, "{report}");

    let asked = server.asked();
    for name in NAMES {
        let of = of(&asked, name);
        let robots = of.iter().filter(|asked| asked.target == "/robots.txt").count();
        assert_eq!(robots, 1, "{name} is asked for its rules once in a day");
        assert_gaps(&of, if name == "delays.test" { 2_000 * MS } else { 250 * MS });
    }
    let refuses = of(&asked, "refuses.test");
    for (at, refused) in refuses.iter().enumerate().filter(|(_, asked)| asked.target == "/p1") {
        if let Some(next) = refuses.get(at + 1) {
            let since_ns = next.at_ns - refused.answered_ns;
            assert!(since_ns >= 4_000 * MS, "asked again {since_ns} ns after it asked for four seconds");
        }
    }
    assert!(refuses.len() > of(&before, "refuses.test").len(), "it is asked in the end");
    assert_eq!(of(&asked, "fails.test").len(), 3, "what is set aside is not asked");
    assert_eq!(of(&asked, "broken.test").len(), 1, "nothing is asked where the rules are not to be had");
    let rules = of(&asked, "rules.test");
    assert!(rules.iter().all(|asked| !matches!(&*asked.target, "/no" | "/no/but/not")), "{rules:?}");
    let second = rules.len() - of(&before, "rules.test").len();
    assert_eq!(second, 3, "/, /p1 and /no/but once more: the doc index begins anew");
    assert_proved(&data, 2);
}

#[test]
fn after_ctrl_c() {
    ends(Signal::SIGINT);
}

#[test]
fn after_kill_9() {
    ends(Signal::SIGKILL);
}

/// Killed while a request is open, of which no line tells: the next run keeps its distance from it all the same.
fn killed_with_a_request_open(robots: &'static str, settings: &str, least_ns: i64) {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text(robots),
        "/" => Reply::links(["/slow"]),
        _ => Reply::text("x").after_ms(30_000),
    });
    let seeds = [format!("http://rules.test:{}/", server.port())];
    let start = || Running::start(&mut command(&dir, &data, settings, &seeds));
    let crawl = start();
    wait_for("a page is asked for", PATIENCE, || {
        server.targets().contains(&"/slow".to_string()).then_some(())
    });
    // Whoever writes down that it was asked for has done so.
    std::thread::sleep(Duration::from_millis(200));
    crawl.signal(Signal::SIGKILL);
    crawl.wait(PATIENCE);
    let before = server.asked().len();
    let next = start();
    wait_for("the next run asks", PATIENCE, || (server.asked().len() > before).then_some(()));
    next.signal(Signal::SIGKILL);
    next.wait(PATIENCE);
    let asked = server.asked();
    assert_gaps(&of(&asked, "rules.test"), least_ns);
    assert_eq!(asked.iter().filter(|asked| asked.target == "/robots.txt").count(), 1);
}

#[test]
fn the_rate_holds_after_a_request_that_was_open() {
    killed_with_a_request_open("", "[url_server]\nreq_host_per_sec = 1\n", 1_000 * MS);
}

#[test]
fn crawl_delay_holds_after_a_request_that_was_open() {
    let robots = "User-agent: *\nCrawl-delay: 1.5\n";
    killed_with_a_request_open(robots, "[url_server]\nreq_host_per_sec = 4\n", 1_500 * MS);
}
