//! The promise: of many documents and many pending URLs those are listed that were asked for, and no others.

use crate::support::*;

#[test]
fn listings_are_narrowed() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/a/1", "/a/2", "/b/1", "/gone", "/b/2"]),
        "/gone" => Reply::status("410 Gone"),
        _ => Reply::text("leaf"),
    });
    let hosts = dir.write("hosts", "127.0.0.1 one.test two.test\n");
    let seeds = ["one.test", "two.test"].map(|host| format!("http://{host}:{}/", server.port()));
    let data = dir.join("data");
    let flags = ["--req-host-per-sec", "0", "--hosts-file", hosts.to_str().unwrap()];
    crawl(&data, seeds.iter().map(String::as_str).chain(flags));
    let path = data.to_str().unwrap();
    let count = |command: &[&str], filters: &[&str]| {
        let data = ["--data", path];
        let typed = command.iter().chain(&data).chain(filters);
        let plain = run(typed.clone()).done().text().lines().count();
        let json = run(typed.chain(&["--json"])).done().json_lines().len();
        assert_eq!(plain, json, "{command:?} {filters:?}");
        plain
    };
    let below = format!("{}a/", seeds[0]);
    let origin = seeds[1].trim_end_matches('/');
    let ls = |filters: &[&str]| count(&["store", "ls"], filters);
    assert_eq!(ls(&[]), 12);
    assert_eq!(ls(&["--host", "one.test"]), 6);
    assert_eq!(ls(&["--host", origin]), 6);
    assert_eq!(ls(&["--prefix", &below]), 2);
    assert_eq!(ls(&["--result", "http_error"]), 2);
    assert_eq!(ls(&["--result", "ok", "--host", "two.test", "--limit", "3"]), 3);
    assert_eq!(ls(&["--since", "1h"]), 12);
    assert_eq!(ls(&["--since", "2999-01-01"]), 0);
    assert_eq!(ls(&["--limit", "0"]), 0);
    let listed = run(["store", "ls", "--data", path]).done().text();
    assert!(listed.lines().all(|line| line.contains(" ago ") || line.contains(" now ")), "{listed}");

    let more: String = (0..20).map(|page| format!("{}c/{page}\n", seeds[1])).collect();
    let list = dir.write("list", &more);
    run(["index", "import", "--data", path, list.to_str().unwrap()]).done();
    let pending = |filters: &[&str]| count(&["index", "pending"], filters);
    assert_eq!((pending(&[]), pending(&["--host", "two.test"])), (20, 20));
    assert_eq!(pending(&["--host", "one.test"]), 0);
    assert_eq!(pending(&["--prefix", &format!("{}c/1", seeds[1])]), 11);
    assert_eq!((pending(&["--since", "1h"]), pending(&["--limit", "3"])), (20, 3));
    assert_eq!(pending(&["--since", "2999-01-01"]), 0);
    let shown = run(["index", "show", "--data", path, &seeds[0]]).done().text();
    assert!(shown.lines().any(|line| line.starts_with("fetched") && line.ends_with(')')), "{shown}");
}

/// What waits for a retry is told with the time and the reason.
#[test]
fn what_waits_is_listed_with_its_reason() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::status("503 Service Unavailable"),
    });
    let (data, url) = (dir.join("data"), server.url("/busy"));
    let flags = ["--req-host-per-sec", "0", "--max-seconds", "5"];
    crawl(&data, [&*url].into_iter().chain(flags));
    let path = data.to_str().unwrap();
    assert_eq!(run(["index", "pending", "--data", path]).done().text(), "");
    let waiting = run(["index", "pending", "--data", path, "--waiting"]).done().text();
    assert!(waiting.starts_with(&format!("{url}  waits until 2")), "{waiting}");
    assert!(waiting.contains("(in ") && waiting.ends_with("after http_error\n"), "{waiting}");
    let none = run(["index", "pending", "--data", path, "--waiting", "--result", "ok"]).done().text();
    assert_eq!(none, "");
}
