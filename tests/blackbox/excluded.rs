//! The promise: what the rules of a run refuse is excluded and not failed: it costs no retry and no record, it is counted
//! with its reason, and it comes back when the rule goes.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

const PAGES: u64 = 12;

/// A page of links to all others; whoever has the tag of a page need not have it again.
fn site() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ if asked.header("if-none-match").is_some() => Reply::status("304 Not Modified"),
        "/" => Reply::links((1..PAGES).map(|n| format!("/{n}"))).with("ETag: \"a\"\r\n"),
        _ => Reply::text("x").with("ETag: \"a\"\r\n"),
    })
}

/// A crawl of a directory with these flags and no others.
#[track_caller]
fn crawl_bare(data: &Path, flags: &[&str]) -> (Value, Run) {
    let mut command = nephila();
    command.args([
        "crawl",
        "--json",
        "--driver",
        "epoll",
        "--cores",
        "0",
        "--req-host-per-sec",
        "0",
        "--data",
    ]);
    command.arg(data).args(flags);
    let run = Running::start(&mut command).wait(PATIENCE).ended();
    (run.json(), run)
}

#[track_caller]
fn stat(data: &Path) -> Value {
    run(["index", "stat", "--json", "--data", data.to_str().unwrap()]).done().json()
}

const ALLOW: [&str; 2] = ["--allow-net", "127.0.0.0/8"];

#[test]
fn a_forgotten_allow_net_costs_nothing() {
    let (dir, server) = (TempDir::new(), site());
    let (data, seed) = (dir.join("data"), server.url("/"));
    let (report, _) = crawl_bare(&data, &[&ALLOW[..], &[&seed, "--max-pages", "3"]].concat());
    let had = report["pages"].as_u64().unwrap();
    let left = PAGES - had;
    assert_eq!(report["pending"], left, "{report}");
    let (asked, stored) = (server.asked().len(), records(&data).len());

    let (report, run) = crawl_bare(&data, &["--fresh-settings"]);
    assert_eq!((&report["pages"], &report["pending"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(
        (report["excluded"].as_u64(), result_count(&report, "blocked_address")),
        (Some(left), left),
        "{report}"
    );
    let hint = "127.0.0.1 is not a public address: allow it with --allow-net 127.0.0.0/8";
    assert!(run.stderr.contains(hint), "{}", run.stderr);
    assert_eq!(run.stderr.matches(hint).count(), 1, "said once: {}", run.stderr);
    assert_eq!(
        (server.asked().len(), records(&data).len()),
        (asked, stored),
        "nobody was asked, nothing is noted"
    );
    let counted = stat(&data);
    assert_eq!((&counted["errors"], &counted["excluded"]), (&0.into(), &left.into()), "{counted}");
    assert_eq!(counted["excluded_reasons"][hint], left, "{counted}");
    let excluded = server.url("/11");
    let shown =
        crate::support::run(["explain", &excluded, "--json", "--data", data.to_str().unwrap()]).json();
    assert_eq!(
        (&shown["dossier"]["state"], &shown["dossier"]["reason"]),
        (&"excluded".into(), &hint.into()),
        "{shown}"
    );
    assert_eq!(
        (&shown["dossier"]["retries"], &shown["dossier"]["fetches"]),
        (&0.into(), &0.into()),
        "{shown}"
    );
    assert!(shown["said"].as_str().unwrap().contains(hint), "{shown}");

    let (report, _) = crawl_bare(&data, &ALLOW);
    assert_eq!(
        (&report["success"], &report["pending"], &report["excluded"]),
        (&left.into(), &0.into(), &0.into())
    );
    assert_eq!(stat(&data)["success"], PAGES);
}

#[test]
fn what_was_had_and_is_refused_has_not_failed() {
    let (dir, server) = (TempDir::new(), site());
    let (data, seed) = (dir.join("data"), server.url("/"));
    crawl_bare(&data, &[&ALLOW[..], &[&seed]].concat());
    let (report, _) = crawl_bare(&data, &["--again", "--fresh-settings"]);
    assert_eq!((&report["pages"], &report["excluded"]), (&0.into(), &PAGES.into()), "{report}");
    assert_eq!((&stat(&data)["errors"], &stat(&data)["excluded"]), (&0.into(), &PAGES.into()));
    assert_eq!(cat(&data, &server.url("/5")), b"x", "what is stored is stored");
    let (report, _) = crawl_bare(&data, &ALLOW);
    assert_eq!((result_count(&report, "not_modified"), &report["pages"]), (PAGES, &PAGES.into()), "{report}");
}

#[test]
fn what_a_rule_denies_comes_back_with_its_reason() {
    let (dir, server) = (TempDir::new(), site());
    let (data, seed) = (dir.join("data"), server.url("/"));
    crawl_bare(&data, &[&ALLOW[..], &[&seed, "--max-pages", "1"]].concat());
    let config = dir.write("c.toml", "[doc_index]\ndeny = ['/1.?$']\n");
    let deny = [&ALLOW[..], &["--config", config.to_str().unwrap()]].concat();
    // /1, /10 and /11.
    let (report, _) = crawl_bare(&data, &deny);
    assert_eq!((&report["excluded"], &report["success"]), (&3.into(), &(PAGES - 4).into()), "{report}");
    let counted = stat(&data);
    assert_eq!(counted["excluded_reasons"]["deny rule 1, \"/1.?$\""], 3, "{counted}");
    let none = dir.write("none.toml", "[doc_index]\ndeny = []\n");
    let (report, _) = crawl_bare(&data, &[&ALLOW[..], &["--config", none.to_str().unwrap()]].concat());
    assert_eq!((&report["excluded"], &report["success"]), (&0.into(), &3.into()), "{report}");
}

/// A URL server reads the same index by the same rules.
#[test]
fn a_url_server_excludes_as_a_crawl_does() {
    let (dir, server) = (TempDir::new(), site());
    let (data, seed) = (dir.join("data"), server.url("/"));
    crawl_bare(&data, &[&ALLOW[..], &[&seed, "--max-pages", "1"]].concat());
    let config = dir.write("u.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let args = [
        "urlserver",
        "--fresh-settings",
        "--json",
        "--driver",
        "epoll",
        "--config",
        config.to_str().unwrap(),
        "--data",
        data.to_str().unwrap(),
    ];
    let report = run(args).done().json();
    assert_eq!(
        (result_count(&report, "blocked_address"), &report["excluded"]),
        (PAGES - 1, &(PAGES - 1).into()),
        "{report}"
    );
    assert_eq!(stat(&data)["errors"], 0);
    let (report, _) = crawl_bare(&data, &ALLOW);
    assert_eq!(report["success"], PAGES - 1, "{report}");
}

/// Narrowed, a scope leaves out what was found before; widened again, it brings it back.
#[test]
fn what_a_narrower_scope_leaves_out_comes_back_with_a_wider_one() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/a/" => Reply::links(["/b/1", "/b/2", "/b/3", "/a/1", "/a/2"]),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    let (data, seed) = (dir.join("data"), server.url("/a/"));
    crawl_bare(&data, &[&ALLOW[..], &[&seed, "--scope", "any", "--max-pages", "1"]].concat());
    let (report, _) = crawl_bare(&data, &["--scope", "prefix"]);
    assert_eq!((&report["success"], &report["excluded"]), (&2.into(), &3.into()), "{report}");
    let there = || server.targets().iter().filter(|target| target.starts_with("/b/")).count();
    assert_eq!(there(), 0, "nothing is asked for that is out of scope");
    let counted = stat(&data);
    assert_eq!((&counted["errors"], &counted["excluded"]), (&0.into(), &3.into()), "{counted}");
    let (report, _) = crawl_bare(&data, &["--scope", "host"]);
    assert_eq!((&report["success"], &report["excluded"]), (&3.into(), &0.into()), "{report}");
    assert_eq!(there(), 3);
}

/// A site that is open, but for what lies below `/private/`: that needs a password. New pages there are found by the way.
fn with_private_pages() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/private/1", "/private/2", "/open"]),
        "/open" => Reply::links(["/private/3", "/privateer"]),
        target if target.starts_with("/private/") && asked.header("authorization").is_none() => {
            Reply::new("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "who?")
        }
        _ => Reply::text("x"),
    })
}

/// Pages that an earlier run had a password for wait until it is given again; without it nobody is asked, and nothing has
/// failed.
#[test]
fn what_needs_credentials_waits_for_them() {
    let (dir, server) = (TempDir::new(), with_private_pages());
    let (data, seed) = (dir.join("data"), server.url("/"));
    let origin = seed.trim_end_matches('/');
    let job = dir.write(
        "job.toml",
        format!(
            "[[auth]]\nsite = \"{origin}\"\npath = \"/private/\"\nuser = \"mallory\"\npassword = \"hunter2\"\n"
        ),
    );
    let job = ["--config", job.to_str().unwrap()];
    crawl_bare(&data, &[&ALLOW[..], &job, &[&seed, "--max-pages", "1"]].concat());
    let kept = || std::fs::read_to_string(data.join("settings.toml")).unwrap();
    assert!(!kept().contains("mallory") && !kept().contains("hunter2"), "{}", kept());

    let private = |server: &LogServer| {
        server.targets().into_iter().filter(|target| target.starts_with("/private/")).count()
    };
    let had = private(&server);
    assert_eq!(had, 0, "the first page is open");
    let place = format!("{origin}/private/");
    // A second run without them remembers as well as the first.
    for (success, excluded) in [(2, 3), (0, 3)] {
        let (report, run) = crawl_bare(&data, &[]);
        assert_eq!(
            (&report["success"], &report["excluded"]),
            (&success.into(), &excluded.into()),
            "{report}"
        );
        assert_eq!(private(&server), 0, "nobody is asked without them");
        let told = run.stderr.lines().find(|line| line.contains("credentials")).expect(&run.stderr);
        let flags = told.contains("--config") && told.contains("--fresh-settings");
        assert!(told.contains(&place) && flags, "{told}");
        let counted = stat(&data);
        assert_eq!((&counted["errors"], &counted["excluded"]), (&0.into(), &excluded.into()), "{counted}");
        let why = format!("credentials for {place} are missing (give the file with [[auth]] by --config)");
        assert_eq!(counted["excluded_reasons"][&why], excluded, "{counted}");
    }
    let (report, run) = crawl_bare(&data, &job);
    assert_eq!((&report["success"], &report["excluded"]), (&3.into(), &0.into()), "{report}");
    assert!(!run.stderr.contains("credentials"), "{}", run.stderr);
    assert_eq!(stat(&data)["success"], 6);

    // Forgotten, they are not waited for.
    let forgetful = [&ALLOW[..], &["--fresh-settings", "--again"]].concat();
    let (report, _) = crawl_bare(&data, &forgetful);
    assert_eq!((result_count(&report, "http_error"), &report["excluded"]), (3, &0.into()), "{report}");
}
