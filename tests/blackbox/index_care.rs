//! The promise: `nephila index` tells what is known, and carries it elsewhere and back without loss.

use crate::stage::Stage;
use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

#[track_caller]
fn index(data: &Path, args: &[&str]) -> Run {
    let mut command = nephila();
    command.arg("index").args(args).arg("--data").arg(data);
    Running::start(&mut command).wait(PATIENCE)
}

/// A crawl of a host that has a bit of everything.
fn crawled() -> (Stage, String) {
    let mut stage = Stage::with_robots(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /no\nCrawl-delay: 0.01\n"),
        "/" => Reply::links(["/page", "/gone", "/busy", "/no", "/moved"]),
        "/page" => Reply::html("x").with("ETag: \"1\"\r\n"),
        "/gone" => Reply::status("404 No"),
        "/busy" => Reply::status("500 Oh"),
        "/moved" => Reply::redirect("/there"),
        _ => Reply::html("x"),
    });
    let seed = stage.url("a.test", "/");
    Running::start(&mut stage.command([&seed])).wait(PATIENCE).done();
    (stage, seed)
}

fn without(mut line: Value, names: &[&str]) -> Value {
    let object = line.as_object_mut().unwrap();
    names.iter().for_each(|name| drop(object.remove(*name)));
    line
}

#[test]
fn everything_is_counted_and_listed() {
    let (mut stage, seed) = crawled();
    let stat = index(&stage.data, &["stat", "--json"]).done().json();
    let counts = ["known", "pending", "waiting", "success", "errors", "excluded", "hosts"];
    let counts = counts.map(|name| stat[name].as_u64().unwrap());
    assert_eq!(counts, [7, 0, 1, 4, 2, 0, 1], "{stat}");
    assert_eq!(
        (&stat["error_results"]["http_error"], &stat["error_results"]["robots_denied"]),
        (&1.into(), &1.into())
    );
    assert_eq!((&stat["kinds"]["content"], &stat["rules"]["scope"]), (&7.into(), &"host".into()), "{stat}");
    assert!(stat["next_due_at"].is_string() && stat["bytes_per_url"].as_f64().unwrap() > 64.0, "{stat}");
    let text = index(&stage.data, &["stat"]).done().text();
    assert!(text.starts_with("known      7 URLs of 1 host\n"), "{text}");

    let hosts = index(&stage.data, &["hosts", "--json"]).done().json_lines();
    assert_eq!(hosts.len(), 1);
    let host = &hosts[0];
    assert_eq!(
        (&host["known"], &host["success"], &host["waiting"]),
        (&7.into(), &4.into(), &1.into()),
        "{host}"
    );
    assert_eq!(
        (&host["robots"]["state"], &host["niceness"]["crawl_delay_ms"]),
        (&"known".into(), &10.into()),
        "{host}"
    );
    assert_eq!(index(&stage.data, &["hosts", "--host", "a.test"]).done().text().lines().count(), 2);
    assert_eq!(index(&stage.data, &["hosts", "--host", "b.test"]).code(), 1);
    assert_eq!(index(&stage.data, &["hosts", "--limit", "0", "--json"]).done().text(), "");

    let page = stage.url("a.test", "/page");
    let shown = index(&stage.data, &["show", &page, "--json"]).done().json();
    let told = (&shown["state"], &shown["result"], &shown["http_status"], &shown["etag"], &shown["depth"]);
    assert_eq!(told, (&"success".into(), &"ok".into(), &200.into(), &"\"1\"".into(), &1.into()), "{shown}");
    assert_eq!((&shown["via"], shown["segment"].is_u64()), (&seed.as_str().into(), true), "{shown}");
    let [moved, none] = ["/moved", "/none"].map(|path| stage.url("a.test", path));
    let moved = index(&stage.data, &["show", &moved]).done().text();
    assert!(moved.contains("result     redirect\n") && moved.contains("new url    http://a.test"), "{moved}");
    let unknown = index(&stage.data, &["show", &none]);
    assert_eq!(unknown.code(), 1, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("is not known"), "{}", unknown.stderr);
}

#[test]
fn an_index_is_carried_elsewhere_and_says_the_same_there() {
    let (stage, _) = crawled();
    let exported = index(&stage.data, &["export"]).done();
    let lines = exported.json_lines();
    assert_eq!(lines.len(), 7);
    let file = stage.dir.write("index.jsonl", &exported.stdout);
    let other = stage.dir.join("other");
    let summary = index(&other, &["import", file.to_str().unwrap(), "--json"]).done().json();
    assert_eq!((&summary["new"], &summary["bad"]), (&7.into(), &0.into()), "{summary}");
    // Pages that named each other have other numbers there, and no document is in a segment.
    let left = ["doc_id", "via", "hops", "seed_chain", "segment", "discovered_at"];
    let there = index(&other, &["export"]).done().json_lines();
    let bare = |lines: &[Value]| lines.iter().map(|line| without(line.clone(), &left)).collect::<Vec<_>>();
    assert_eq!(bare(&there), bare(&lines));
    let again = index(&other, &["import", file.to_str().unwrap(), "--json"]).done().json();
    assert_eq!((&again["new"], &again["known"]), (&0.into(), &7.into()), "{again}");
    assert_eq!(index(&other, &["pending"]).done().text(), "", "all is done or waits");
}

#[test]
fn what_is_handed_in_is_fetched_and_known_urls_move_up() {
    let mut stage = Stage::new(|_| Reply::html("x"));
    let urls: Vec<String> = (0..6).map(|page| stage.url("a.test", &format!("/{page}"))).collect();
    let plain = format!("# a list\n\n{}\nnonsense\n{}\n{}\n", urls[0], urls[1], urls[2]);
    let file = stage.dir.write("urls", plain);
    let run = index(&stage.data, &["import", file.to_str().unwrap()]).done();
    assert_eq!(run.text(), "4 lines: 3 new, 0 known, 0 moved up, 0 due at once, 0 over budget, 1 bad\n");
    assert!(run.stderr.contains("urls:4: skipped: nonsense: not a URL"), "{}", run.stderr);
    let line =
        |url: &str, priority: u32, tag: &str| format!("b1\t{priority}\t20260101000000\t7\t{url}\t1\t{tag}\n");
    let reflog = [line(&urls[2], 9, "v1"), line(&urls[3], 5, "v1"), "b1\tx\t\n".to_string()].concat();
    let file = stage.dir.write("reflog", reflog);
    let summary = index(&stage.data, &["import", file.to_str().unwrap(), "--json"]).done().json();
    let counts = |summary: &Value| {
        ["new", "known", "moved_up", "due", "bad"].map(|name| summary[name].as_u64().unwrap())
    };
    assert_eq!(counts(&summary), [1, 0, 1, 0, 1], "{summary}");
    let pending = index(&stage.data, &["pending"]).done().text();
    assert_eq!(
        pending.lines().collect::<Vec<_>>(),
        [&*urls[0], &urls[1], &urls[2], &urls[3]],
        "as they were found"
    );
    let broken = format!(
        "17\n1\t9\t20260101000000\t7\t\n{}\t1\tv1\n\n1\t5\t20260101000000\t7\n{}\n1\tv1\n1\t5\t20260101000000\t7\n",
        urls[2], urls[3]
    );
    let run = index(&stage.data, &["import", stage.dir.write("broken", broken).to_str().unwrap()]).done();
    assert!(run.text().starts_with("4 lines: 0 new, 2 known, 0 moved up"), "{}", run.text());
    assert!(run.stderr.contains("broken:1: skipped: 17: not a URL"), "{}", run.stderr);
    assert!(run.stderr.contains("broken:8: skipped: 1\\u{9}5"), "{}", run.stderr);
    let first =
        index(&stage.data, &["pending", "--limit", "1", "--host", "a.test", "--json"]).done().json_lines();
    assert_eq!((first.len(), &first[0]["url"]), (1, &urls[0].as_str().into()));
    assert_eq!(index(&stage.data, &["pending", "--host", "b.test"]).done().text(), "");

    stage.crawl([&*urls[0], "--cores", "0"]);
    let asked: Vec<String> = stage.pages_of("a.test").into_iter().map(|asked| asked.target).collect();
    assert_eq!(asked, ["/2", "/3", "/0", "/1"], "the more urgent, then the more wanted first");
    // Another tag makes it due; the same does not.
    let tags = [line(&urls[2], 9, "v1"), line(&urls[3], 5, "v2")].concat();
    let file = stage.dir.write("tags", tags);
    let summary = index(&stage.data, &["import", file.to_str().unwrap(), "--json"]).done().json();
    assert_eq!(counts(&summary), [0, 1, 0, 1, 0], "{summary}");
    assert_eq!(index(&stage.data, &["pending"]).done().text().trim_end(), urls[3]);
    Running::start(&mut stage.command([&*urls[0], "--cores", "0"])).wait(PATIENCE).done();
    assert_eq!(stage.pages_of("a.test").last().unwrap().target, "/3");
}

#[test]
fn stdin_is_read_and_a_crawl_that_runs_is_handed_the_lines() {
    let mut stage = Stage::new(|_| Reply::links(["/1", "/2"]));
    let seed = stage.url("a.test", "/");
    let file = stage.dir.write("list", format!("{seed}\n"));
    let mut command = nephila();
    command.args(["index", "import", "-", "--json", "--data"]).arg(&stage.data);
    command.stdin(Stdio::from(std::fs::File::open(&file).unwrap()));
    assert_eq!(Running::start(&mut command).wait(PATIENCE).done().json()["new"], 1);

    let crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.001"]));
    wait_for("a crawl", PATIENCE, || stage.data.join("admin.sock").exists().then_some(()));
    let known = index(&stage.data, &["import", file.to_str().unwrap()]).done().text();
    assert!(known.contains("1 known") && known.contains("the running crawl has them"), "{known}");
    assert_eq!(index(&stage.data, &["stat", "--json"]).done().json()["known"], 1, "looking is free");
    drop(crawl);
}

#[test]
fn bad_input_is_named_and_has_its_status() {
    let dir = TempDir::new();
    let data = dir.join("data");
    for args in [&["stat"][..], &["hosts"], &["show", "http://a/"], &["pending"], &["export"]] {
        let run = index(&data, args);
        assert_eq!(run.code(), 3, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains("has no doc index") && run.stdout.is_empty(), "{}", run.stderr);
    }
    assert!(!data.exists(), "looking makes nothing");
    assert_eq!(index(&data, &["import", dir.join("none").to_str().unwrap()]).code(), 2);
    let mut bytes = vec![b'x'; 300_000];
    bytes.extend_from_slice(b"\nhttp://a.test/\n\xff\xfe\n{\"url\":\"http://b.test/\",\"kind\":\"content\",\"state\":\"no\"}\n\x1b[2J\n");
    let file = dir.write("bad", &bytes);
    let run = index(&data, &["import", file.to_str().unwrap(), "--json"]).done();
    let summary = run.json();
    assert_eq!((&summary["new"], &summary["bad"]), (&2.into(), &3.into()), "{summary}\n{}", run.stderr);
    assert!(run.stderr.contains("bad:1: skipped") && run.stderr.contains("bad:3: skipped"), "{}", run.stderr);
    assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
    let nothing = dir.write("nothing", "x\ny\n");
    assert_eq!(index(&data, &["import", nothing.to_str().unwrap()]).code(), 2);
}
