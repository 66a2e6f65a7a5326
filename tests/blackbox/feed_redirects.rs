//! The promise: a feed moves where its server leads it for good, twice and to one place, and nowhere else. A ring of
//! redirects is a failure of the feed, and says so; what the rules of the crawl refuse is none.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seconds, so that a test need not wait for minutes.
const QUICK: &str = "[feeds]\npoll_min = \"1s\"\npoll_min_plain = \"1s\"\npoll_max = \"2s\"\n";
/// Nobody is asked there: they are not allowed.
const REFUSED: [&str; 2] = ["http://10.0.0.1/feed", "http://10.0.0.2/feed"];

fn feed() -> Reply {
    let text = "<rss version=\"2.0\"><channel><title>News</title><item><title>A story of today</title>\
                <link>/story</link></item></channel></rss>";
    Reply::new("200 OK", "Content-Type: application/rss+xml\r\n", text)
}

/// A redirect to a place of another host of the stage, or to a URL as it is.
fn leads(asked: &Asked, status: &str, place: &str) -> Reply {
    let port = asked.host.rsplit(':').next().unwrap();
    let location = match place.split_once('/') {
        Some((host, path)) if host.ends_with(".test") => format!("http://{host}:{port}/{path}"),
        _ => place.to_string(),
    };
    Reply::new(&format!("{status} Elsewhere"), &format!("Location: {location}\r\n"), "")
}

fn list(stage: &Stage, urls: &[String]) -> String {
    let text: String = urls.iter().map(|url| format!("{url}\n")).collect();
    stage.dir.write("feeds.txt", text).to_str().unwrap().to_string()
}

/// How often the place of a feed was asked for.
fn polls(stage: &Stage, host: &str) -> usize {
    stage.pages_of(host).iter().filter(|asked| asked.target == "/feed").count()
}

fn has_story(stage: &Stage, host: &str) -> Option<()> {
    stage.pages_of(host).iter().any(|asked| asked.target == "/story").then_some(())
}

#[track_caller]
fn show(stage: &Stage, url: &str) -> Value {
    run(["feeds", "show", "--data", stage.data.to_str().unwrap(), "--json", url]).done().json()
}

#[track_caller]
fn assert_not_failing(shown: &Value) {
    let seen = (&shown["state"], &shown["failures"], &shown["failing_since"], &shown["counts"]["failed"]);
    assert_eq!(seen, (&"active".into(), &0.into(), &Value::Null, &0.into()), "{shown}");
}

#[test]
fn a_feed_moves_by_two_permanent_redirects_and_by_no_temporary_one() {
    let turn = AtomicBool::new(false);
    let mut stage = Stage::new(move |asked| {
        let name = asked.name().trim_end_matches(".test");
        match (asked.target.as_str(), name) {
            ("/feed", "mixed") => leads(asked, "301", "middle.test/feed"),
            ("/feed", "middle") => leads(asked, "302", "mixed-new.test/feed"),
            // Each time elsewhere.
            ("/feed", "twice") => match turn.fetch_xor(true, Ordering::SeqCst) {
                true => leads(asked, "301", "twice-a.test/feed"),
                false => leads(asked, "301", "twice-b.test/feed"),
            },
            ("/feed", "s301" | "s302" | "s303" | "s307" | "s308") => {
                leads(asked, &name[1..], &format!("{name}-new.test/feed"))
            }
            ("/feed", _) => feed(),
            _ => Reply::html("a story"),
        }
    });
    let old = ["s301", "s308", "s302", "s303", "s307", "mixed", "twice"];
    let urls = old.map(|name| stage.url(&format!("{name}.test"), "/feed"));
    let new = old.map(|name| stage.url(&format!("{name}-new.test"), "/feed"));
    for name in ["middle", "twice-a", "twice-b"] {
        stage.url(&format!("{name}.test"), "/");
    }
    stage.settings(QUICK);
    let feeds = list(&stage, &urls);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    for name in &old[..2] {
        let there = format!("{name}-new.test");
        wait_for("polls at the new place", PATIENCE, || (polls(&stage, &there) >= 4).then_some(()));
    }
    for name in &old[2..] {
        let here = format!("{name}.test");
        wait_for("polls at the old place", PATIENCE, || (polls(&stage, &here) >= 4).then_some(()));
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    for (at, name) in old.iter().enumerate() {
        let shown = show(&stage, &urls[at]);
        assert_not_failing(&shown);
        match at < 2 {
            true => {
                assert_eq!(shown["url"], new[at], "{shown}");
                assert_eq!(shown["moved_from"], serde_json::json!([urls[at]]), "{shown}");
                assert_eq!(polls(&stage, &format!("{name}.test")), 2, "nobody asks a third time");
            }
            false => assert_eq!(shown["url"], urls[at], "{shown}"),
        }
    }
    stage.assert_proved();
}

#[test]
fn a_ring_of_redirects_is_a_failure_with_one_reason_and_ends_no_feed() {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let mut stage = Stage::new(move |asked| match (asked.name(), asked.target.as_str()) {
        (_, "/story") => Reply::html("a story"),
        _ if mended.load(Ordering::SeqCst) => feed(),
        ("self.test", _) => leads(asked, "301", "self.test/feed"),
        ("two.test", _) => leads(asked, "301", "two-b.test/feed"),
        ("two-b.test", _) => leads(asked, "301", "two.test/feed"),
        // It comes back to a place that is not the feed's own.
        ("tail.test", _) => leads(asked, "302", "tail-b.test/feed"),
        ("tail-b.test", _) => leads(asked, "302", "tail-c.test/feed"),
        _ => leads(asked, "302", "tail-b.test/feed"),
    });
    let hosts = ["self.test", "two.test", "tail.test"];
    let urls = hosts.map(|host| stage.url(host, "/feed"));
    for host in ["two-b.test", "tail-b.test", "tail-c.test"] {
        stage.url(host, "/");
    }
    stage.settings(QUICK);
    let feeds = list(&stage, &urls);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    for host in hosts {
        wait_for("another poll", PATIENCE, || (polls(&stage, host) >= 4).then_some(()));
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    for url in &urls {
        let shown = show(&stage, url);
        let seen = (&shown["url"], &shown["state"], &shown["last_result"], &shown["why"]);
        assert_eq!(
            seen,
            (&url.as_str().into(), &"active".into(), &"redirect_loop".into(), &"failed".into()),
            "{shown}"
        );
        assert!(shown["failures"].as_u64().unwrap() >= 3, "each is one: {shown}");
        assert_eq!(shown["failures"], shown["counts"]["polls"], "{shown}");
    }
    for (host, place) in
        [("two.test", "two-b.test"), ("tail.test", "tail-b.test"), ("tail.test", "tail-c.test")]
    {
        let (here, there) = (polls(&stage, host), polls(&stage, place));
        assert!(here.abs_diff(there) <= 1, "each place once a poll: {here} {there}");
    }
    is_mended.store(true, Ordering::SeqCst);
    let run = Running::start(&mut stage.command(["--wait"]));
    for host in hosts {
        wait_for("its story", PATIENCE, || has_story(&stage, host));
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    for url in &urls {
        let shown = show(&stage, url);
        assert_eq!((&shown["failures"], &shown["url"]), (&0.into(), &url.as_str().into()), "{shown}");
    }
    stage.assert_proved();
}

#[test]
fn a_redirect_to_a_refused_address_is_no_failure_and_moves_nothing() {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let mut stage = Stage::new(move |asked| match (asked.name(), asked.target.as_str()) {
        (_, "/story") => Reply::html("a story"),
        _ if mended.load(Ordering::SeqCst) => feed(),
        ("good.test", _) => leads(asked, "301", REFUSED[0]),
        _ => leads(asked, "302", REFUSED[1]),
    });
    let hosts = ["good.test", "now.test"];
    let urls = hosts.map(|host| stage.url(host, "/feed"));
    stage.settings(QUICK);
    let feeds = list(&stage, &urls);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    for host in hosts {
        wait_for("more polls", PATIENCE, || (polls(&stage, host) >= 4).then_some(()));
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    for url in &urls {
        let shown = show(&stage, url);
        assert_not_failing(&shown);
        let seen = (&shown["url"], &shown["last_result"], &shown["why"]);
        assert_eq!(seen, (&url.as_str().into(), &"blocked_address".into(), &"refused".into()), "{shown}");
    }
    is_mended.store(true, Ordering::SeqCst);
    let run = Running::start(&mut stage.command(["--wait"]));
    for host in hosts {
        wait_for("its story", PATIENCE, || has_story(&stage, host));
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    stage.assert_proved();
}

/// Without `--allow-net` nothing of a feed is asked; the crawl that may ask finds it as it was, and due.
#[test]
fn a_feed_at_a_refused_address_does_not_fail_and_is_due_when_it_is_allowed() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => feed(),
        _ => Reply::html("a story"),
    });
    let url = stage.url("a.test", "/feed");
    stage.settings(QUICK);
    let feeds = list(&stage, std::slice::from_ref(&url));
    // It writes the hosts file.
    stage.command([""; 0]);
    let mut refused = nephila();
    refused.args(["crawl", "--json", "--wait", "--feeds", &feeds, "--data"]).arg(&stage.data);
    refused.arg("--hosts-file").arg(stage.dir.join("hosts")).arg("--config").arg(stage.dir.join("c.toml"));
    let run = Running::start(&mut refused);
    let lines = || std::fs::read_to_string(stage.data.join("crawl.log")).unwrap_or_default();
    wait_for("it is looked at again", PATIENCE, || {
        (lines().matches(",blocked_address").count() >= 3).then_some(())
    });
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE);
    let shown = show(&stage, &url);
    assert_not_failing(&shown);
    assert_eq!((&shown["counts"]["polls"], &shown["last_attempt"]), (&0.into(), &Value::Null), "{shown}");
    assert_eq!(shown["why"], "new", "it is as it was: {shown}");
    assert!(shown["left_out"].as_str().unwrap().contains("not a public address"), "{shown}");
    assert!(stage.server.asked().is_empty(), "nobody was asked");
    // With intervals of hours it would be seen if it had been put off.
    stage.settings("[feeds]\npoll_min = \"1h\"\n");
    let report = Running::start(&mut stage.command([""; 0])).wait(PATIENCE).ended().json();
    assert_eq!(report["pages"], 2, "{report}");
    assert_eq!(show(&stage, &url)["left_out"], Value::Null);
    stage.assert_proved();
}
