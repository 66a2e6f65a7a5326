//! The promise: `nephila explain` says of any URL why it was fetched, is not fetched yet, or never will be, and asks a crawl
//! that runs.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

#[track_caller]
fn explain_run(data: &Path, url: &str) -> Run {
    let mut command = nephila();
    command.args(["explain", url, "--json", "--data"]).arg(data);
    Running::start(&mut command).wait(PATIENCE)
}

/// The answer, whose exit status must say the same.
#[track_caller]
fn explain(data: &Path, url: &str) -> Value {
    let run = explain_run(data, url);
    let found = run.json();
    let no = ["out_of_scope", "excluded", "denied", "trap", "over_budget", "robots_denied", "error"];
    let expected = i32::from(no.contains(&found["answer"].as_str().unwrap()));
    assert_eq!(run.code(), expected, "{found}\n{}", run.stderr);
    // People are told the same.
    let mut command = nephila();
    command.args(["explain", url, "--data"]).arg(data);
    let told = Running::start(&mut command).wait(PATIENCE);
    assert_eq!(told.code(), expected);
    assert!(told.text().starts_with("url "), "{}", told.text());
    found
}

#[track_caller]
fn answer(data: &Path, url: &str) -> String {
    explain(data, url)["answer"].as_str().unwrap().to_string()
}

/// A crawl whose summary does not add up: it has failures that are due again, or goes on with an earlier one.
#[track_caller]
fn crawl_on(stage: &Stage, args: &[&str]) {
    Running::start(&mut stage.command(args)).wait(PATIENCE).done();
}

#[test]
fn what_the_rules_keep_out_is_named_by_its_rule() {
    let mut stage = Stage::with_robots(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /private\nAllow: /private/open\n"),
        "/" => Reply::links(["/private/x", "/page"]),
        _ => Reply::html("x"),
    });
    stage.settings("[doc_index]\ndeny = [\"/logout\"]\npages_per_host = 3\n");
    let url = |stage: &mut Stage, path: &str| stage.url("a.test", path);
    let seed = url(&mut stage, "/");
    stage.crawl([&seed]);
    let data = stage.data.clone();

    let out = explain(&data, "http://else.test/");
    assert_eq!(
        (&out["answer"], &out["scope"]["rule"]),
        (&"out_of_scope".into(), &"out_of_scope".into()),
        "{out}"
    );
    assert_eq!((&out["known"], &out["live"]), (&false.into(), &false.into()));
    let denied = explain(&data, &url(&mut stage, "/logout?x"));
    assert_eq!(denied["answer"], "denied");
    assert!(denied["said"].as_str().unwrap().contains("deny rule 1, \"/logout\""), "{denied}");
    assert_eq!(answer(&data, &url(&mut stage, "/a/a/a/a/a")), "trap");

    let robots = explain(&data, &url(&mut stage, "/private/x"));
    assert_eq!((&robots["answer"], &robots["known"]), (&"robots_denied".into(), &true.into()), "{robots}");
    assert_eq!(robots["dossier"]["reason"], "Disallow: /private", "the index knows the line");
    assert_eq!(robots["dossier"]["via"], seed.as_str());
    assert_eq!(
        (&robots["robots"]["state"], &robots["robots"]["rule"]),
        (&"known".into(), &"Disallow: /private".into())
    );
    let page = explain(&data, &url(&mut stage, "/page#top"));
    assert_eq!((&page["answer"], &page["dossier"]["depth"]), (&"done".into(), &1.into()), "{page}");
    assert_eq!(page["url"], url(&mut stage, "/page"), "in normal form");
    // Three are known: a page that names a fourth does so in vain.
    let over = explain(&data, &url(&mut stage, "/fourth"));
    assert_eq!((&over["answer"], &over["host"]["known"]), (&"over_budget".into(), &3.into()), "{over}");
    stage.assert_proved();
}

/// One URL too many of a path: the files say so, and so does the crawl that runs (as it does of the other budgets).
#[test]
fn one_variant_of_a_query_too_many_is_told() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::links((0..9).map(|day| format!("/calendar?day={day}"))),
        _ => Reply::html("x"),
    });
    stage.settings("[doc_index]\nquery_variants_max = 4\n");
    let [seed, more, other] =
        ["/", "/calendar?day=99", "/other?day=99"].map(|path| stage.url("a.test", path));
    stage.crawl([&seed]);
    let over = explain(&stage.data, &more);
    assert_eq!((&over["answer"], &over["variants_known"]), (&"over_budget".into(), &4.into()), "{over}");
    assert!(over["said"].as_str().unwrap().contains("query_variants_max"), "{over}");
    assert_eq!(answer(&stage.data, &other), "not_known");
}

#[test]
fn what_was_had_failed_or_led_elsewhere_is_told() {
    let mut stage = Stage::new(|asked| match (asked.target.as_str(), asked.header("If-None-Match")) {
        ("/", _) => Reply::links(["/moved", "/busy", "/gone", "/page"]),
        ("/moved", _) => Reply::redirect("/there"),
        ("/busy", _) => Reply::status("500 Oh"),
        ("/gone", _) => Reply::status("404 No"),
        ("/page", Some(_)) => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
        ("/page", None) => Reply::text("page").with("ETag: \"1\"\r\n"),
        _ => Reply::html("x"),
    });
    stage.settings("[doc_index]\nretry_first = 7200\nretries_max = 3\n");
    let [seed, moved, there, busy, gone, page] =
        ["/", "/moved", "/there", "/busy", "/gone", "/page"].map(|path| stage.url("a.test", path));
    crawl_on(&stage, &[&seed]);
    let data = stage.data.clone();
    let redirected = explain(&data, &moved);
    assert_eq!(
        (&redirected["answer"], &redirected["redirect"]["url"]),
        (&"redirected".into(), &there.as_str().into())
    );
    assert_eq!(redirected["redirect"]["answer"], "done", "{redirected}");
    let failed = explain(&data, &busy);
    assert_eq!(
        (&failed["answer"], &failed["dossier"]["http_status"]),
        (&"failed_due_again".into(), &500.into())
    );
    assert!(failed["said"].as_str().unwrap().contains("(try 2 of 4)"), "{failed}");
    assert!(failed["dossier"]["due_at"].as_str() > failed["dossier"]["fetched_at"].as_str(), "{failed}");
    assert_eq!(answer(&data, &gone), "error");
    assert_eq!(answer(&data, &page), "done");
    assert_eq!(answer(&data, &stage.url("a.test", "/new")), "not_known");
    crawl_on(&stage, &[&page, "--again"]);
    let same = explain(&data, &page);
    assert_eq!(
        (&same["answer"], &same["dossier"]["fetches"]),
        (&"done_unchanged".into(), &2.into()),
        "{same}"
    );
    assert!(same["said"].as_str().unwrap().contains("unchanged since"), "{same}");
}

/// A crawl that is stopped leaves pages unfetched: they are queued, and the files say so.
#[test]
fn what_a_stopped_crawl_left_is_queued() {
    let mut stage = Stage::new(|_| Reply::links((0..20).map(|page| format!("/{page}"))));
    let seed = stage.url("a.test", "/");
    stage.crawl([&*seed, "--max-pages", "3"]);
    let last = stage.url("a.test", "/19");
    let left = explain(&stage.data, &last);
    assert_eq!((&left["answer"], &left["live"]), (&"queued".into(), &false.into()), "{left}");
    assert!(!stage.data.join("admin.sock").exists(), "gone with the crawl");
    // What a killed process left behind is nobody's socket.
    drop(UnixListener::bind(stage.data.join("admin.sock")).unwrap());
    assert_eq!(answer(&stage.data, &last), "queued");
    // Without a URL it goes on with what it has.
    crawl_on(&stage, &[]);
    assert_eq!(answer(&stage.data, &last), "done");
}

#[test]
fn a_running_crawl_says_what_it_waits_for() {
    // After its robots.txt, each host is left alone for minutes.
    let mut stage = Stage::with_robots(|asked| match (asked.name(), asked.target.as_str()) {
        ("delay.test", "/robots.txt") => Reply::text("User-agent: *\nCrawl-delay: 300\nDisallow: /no\n"),
        (_, "/robots.txt") => Reply::new("404 Not Found", "Connection: close\r\n", ""),
        _ => Reply::html("x"),
    });
    let (slow, delay) = (stage.url("slow.test", "/"), stage.url("delay.test", "/"));
    let denied = stage.url("delay.test", "/no");
    let args = [&*slow, &delay, &denied, "--req-host-per-sec", "0.005", "--cores", "0"];
    let crawl = Running::start(&mut stage.command(args));
    let data = stage.data.clone();
    let socket = data.join("admin.sock");
    wait_for("a socket", PATIENCE, || socket.exists().then_some(()));
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    let waits = |url: &str, for_what: &str| {
        wait_for(for_what, PATIENCE, || {
            let found = explain_run(&data, url).json();
            (found["place"]["waits_for"] == for_what).then_some(found)
        })
    };
    let rate = waits(&slow, "rate");
    assert_eq!((&rate["answer"], &rate["live"]), (&"waiting_for_niceness".into(), &true.into()), "{rate}");
    assert_eq!((&rate["place"]["at"], &rate["place"]["before"]), (&"queued".into(), &0.into()), "{rate}");
    assert!(rate["place"]["next_at"].as_str() > rate["dossier"]["discovered_at"].as_str(), "{rate}");
    assert_eq!(rate["scope"]["rule"], "seed_host");
    let delayed = waits(&delay, "crawl_delay");
    assert_eq!(
        (&delayed["answer"], &delayed["niceness"]["crawl_delay_ms"]),
        (&"waiting_for_niceness".into(), &300_000.into())
    );
    let no = explain(&data, &denied);
    assert_eq!(
        (&no["answer"], &no["robots"]["rule"]),
        (&"robots_denied".into(), &"Disallow: /no".into()),
        "{no}"
    );
    assert_eq!(answer(&data, "http://else.test/"), "out_of_scope");
    assert_eq!(answer(&data, &stage.url("slow.test", "/unknown")), "not_known");

    // What is no question is answered, too.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for (question, status) in [
        ("/nonsense", 404),
        ("/api/v1/explain", 400),
        ("/api/v1/explain?url=", 422),
        ("/api/v1/explain?url=ftp%3A%2F%2Fa%2F", 422),
        ("/api/v1/explain?url=%1B%5B2J", 422),
    ] {
        stream.write_all(format!("GET {question} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut answer = vec![0; 16 << 10];
        let count = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{question}: {answer}");
        assert!(
            answer.contains("application/problem+json") && !answer.contains('\x1b'),
            "{question}: {answer}"
        );
    }
    // Those who say nothing do not keep others from asking for longer than they are let.
    let idle: Vec<UnixStream> = (0..20).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    drop(idle);
    assert_eq!(answer(&data, &slow), "waiting_for_niceness");

    crawl.signal(Signal::SIGINT);
    assert_eq!(crawl.wait(PATIENCE).code(), 0);
    assert!(!socket.exists());
}

#[test]
fn a_running_crawl_says_what_it_fetches_and_what_comes_next() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/slow" => Reply::text("x").after_ms(20_000),
        _ => Reply::links(["/slow", "/1", "/2", "/3"]),
    });
    let seed = stage.url("a.test", "/");
    let crawl = Running::start(&mut stage.command([&*seed]));
    let data = stage.data.clone();
    let ask = |url: &str, expected: &str| {
        wait_for(expected, PATIENCE, || {
            let run = explain_run(&data, url);
            let found = if run.code() <= 1 { run.json() } else { return None };
            (found["answer"] == expected).then_some(found)
        })
    };
    let fetching = ask(&stage.url("a.test", "/slow"), "fetching");
    assert!(fetching["place"]["since"].is_string(), "{fetching}");
    // What was handed out is not fetched yet: one request is open.
    let host = &fetching["host"];
    assert!(host["open"] == 1 && host["handed_out"].as_u64() >= Some(4), "{fetching}");
    assert!(host["fetching"].is_null() && fetching["dossier"]["state"] == "handed_out", "{fetching}");
    let next = ask(&stage.url("a.test", "/2"), "waiting_for_niceness");
    assert_eq!(
        (&next["place"]["waits_for"], &next["place"]["before"]),
        (&"concurrent".into(), &1.into()),
        "{next}"
    );
    assert_eq!(ask(&seed, "done")["live"], true);
    crawl.signal(Signal::SIGINT);
    crawl.wait(PATIENCE);
}

/// The address of a socket has room for a hundred bytes; a data directory may lie deeper.
#[test]
fn a_path_too_long_for_a_socket_is_no_reason_not_to_be_asked() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/slow" => Reply::text("x").after_ms(20_000),
        _ => Reply::links(["/slow"]),
    });
    stage.data = stage.dir.join(&"d".repeat(120));
    let seed = stage.url("a.test", "/");
    let crawl = Running::start(&mut stage.command([&seed]));
    let data = stage.data.clone();
    wait_for("an answer", PATIENCE, || {
        let run = explain_run(&data, &seed);
        (run.code() <= 1 && run.json()["live"] == true).then_some(())
    });
    let mode = std::fs::metadata(data.join("admin.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    run(["stop", "--data", data.to_str().unwrap()]).done();
    assert_eq!(crawl.wait(PATIENCE).stderr.matches("nobody can ask").count(), 0);
    assert!(!data.join("admin.sock").exists());
    // What else has the name stays, and is no reason to stop.
    std::fs::write(data.join("admin.sock"), "mine").unwrap();
    let run = Running::start(&mut stage.command(["--max-seconds", "1"])).wait(PATIENCE).done();
    assert_eq!(run.stderr.matches("nobody can ask this process: no admin.sock").count(), 1, "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(data.join("admin.sock")).unwrap(), "mine");
}

#[test]
fn mistakes_have_their_status() {
    let dir = TempDir::new();
    let none = explain_run(&dir.join("none"), "http://a.test/");
    assert_eq!(none.code(), 3, "{}", none.stderr);
    assert!(none.stderr.contains("has no doc index"), "{}", none.stderr);
    assert!(!dir.join("none").exists(), "looking makes nothing");
    assert_eq!(explain_run(dir.path(), "nonsense").code(), 2);
}
