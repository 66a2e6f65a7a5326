//! The promise: a crawl does not stay for what it may not ask for a long time. It ends, names the hosts, why and until when,
//! and comes back to them no sooner.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::Duration;

/// A crawl that must end by itself, though it leaves something for later.
#[track_caller]
fn crawl(stage: &Stage, args: &[&str]) -> Value {
    Running::start(&mut stage.command(args)).wait(PATIENCE).done().json()
}

/// The one host that a summary says is waited for: its reason, its URLs, and until when, in words that can be compared.
#[track_caller]
fn waits_for(report: &Value, name: &str) -> (String, u64, String) {
    let hosts = report["waiting_hosts"].as_array().unwrap_or_else(|| panic!("no waiting_hosts in {report}"));
    let found = hosts.iter().find(|host| host["host"].as_str().unwrap().contains(name));
    let found = found.unwrap_or_else(|| panic!("{name} is not among {hosts:?}"));
    let text = |key: &str| found[key].as_str().unwrap_or("unknown").to_string();
    (text("reason"), found["urls"].as_u64().unwrap(), text("until"))
}

fn busy_for_a_day() -> Reply {
    Reply::new("503 Service Unavailable", "Retry-After: 86400\r\n", "")
}

#[test]
fn a_host_that_wants_a_day_keeps_no_crawl_and_is_left_alone_for_that_day() {
    let mut stage = Stage::new(|asked| match (asked.name(), asked.target.as_str()) {
        ("busy.test", _) => busy_for_a_day(),
        (_, "/") => Reply::links(["/1", "/2"]),
        _ => Reply::html("x"),
    });
    let seeds = [("good.test", "/"), ("busy.test", "/1"), ("busy.test", "/2"), ("busy.test", "/3")]
        .map(|(name, path)| stage.url(name, path));
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let report = crawl(&stage, &seeds);
    assert_eq!((&report["success"], &report["errors"]), (&3.into(), &1.into()), "{report}");
    assert_eq!(report["pending"], 3, "{report}");
    let (reason, urls, until) = waits_for(&report, "busy.test");
    assert_eq!((reason.as_str(), urls), ("retry_after", 2), "{report}");
    assert_eq!(report["waiting_hosts_more"], 0, "{report}");

    // The next process knows, does not ask, and says the same to people.
    let again = crawl(&stage, &[]);
    assert_eq!((&again["pages"], &again["pending"]), (&0.into(), &3.into()), "{again}");
    let (_, _, then) = waits_for(&again, "busy.test");
    assert_eq!(then[..16], until[..16], "{again}");
    let mut plain = nephila();
    plain.args(["crawl", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0", "--data"]).arg(&stage.data);
    plain.arg("--hosts-file").arg(stage.dir.join("hosts"));
    let told = Running::start(&mut plain).wait(PATIENCE).done().text();
    assert!(told.contains("busy.test") && told.contains(&until[..16]), "{told}");
    assert_eq!(stage.pages_of("busy.test").len(), 1);
    stage.assert_proved();
}

#[test]
fn whoever_waits_stays() {
    let mut stage = Stage::new(|_| busy_for_a_day());
    let seeds = [stage.url("busy.test", "/1"), stage.url("busy.test", "/2")];
    let crawl = Running::start(&mut stage.command([&seeds[0], &seeds[1], "--wait"]));
    wait_for("a request", PATIENCE, || (!stage.pages_of("busy.test").is_empty()).then_some(()));
    std::thread::sleep(Duration::from_secs(4));
    crawl.signal(Signal::SIGINT);
    let report = crawl.wait(PATIENCE).done().json();
    assert_eq!((&report["stopped"], &report["pending"]), (&true.into(), &2.into()), "{report}");
}

/// Whatever a pause comes from, it is waited for as long as was said, and no longer.
#[test]
fn every_long_pause_ends_a_crawl() {
    for (case, reason) in [
        ("crawl delay", "crawl_delay"),
        ("penalty", "penalty"),
        ("failures", "failures"),
        ("robots.txt at a busy host", "robots"),
    ] {
        let mut stage = Stage::with_robots(move |asked| match (case, asked.name(), asked.target.as_str()) {
            ("crawl delay", "a.test", "/robots.txt") => Reply::text("User-agent: *\nCrawl-delay: 60\n"),
            // By then its page has been answered for.
            ("robots.txt at a busy host", "a.test", "/robots.txt") => {
                let host = asked.host.replace("a.test", "busy.test");
                Reply::redirect(&format!("http://{host}/robots.txt")).after_ms(2_000)
            }
            (_, _, "/robots.txt") => Reply::status("404 Not Found"),
            (_, "busy.test", _) => busy_for_a_day(),
            ("penalty", "a.test", _) => Reply::status("429 Too Many Requests"),
            ("failures", "a.test", _) => Reply::hang_up(),
            _ => Reply::html("x"),
        });
        let mut args: Vec<String> = (0..9).map(|page| stage.url("a.test", &format!("/{page}"))).collect();
        args.extend(["good.test", "busy.test"].map(|name| stage.url(name, "/")));
        args.extend(["--linger", "1"].map(str::to_string));
        let report = crawl(&stage, &args.iter().map(String::as_str).collect::<Vec<_>>());
        let (said, urls, _) = waits_for(&report, "a.test");
        assert_eq!(said, reason, "{case}: {report}");
        assert!(urls > 0 && report["pending"].as_u64().unwrap() >= urls, "{case}: {report}");
        stage.assert_proved();
    }
}
