//! The promise: what is stored and has not changed does not come twice, what only the head is wanted of comes without its
//! body, and a server that wants to be asked differently is, once, at its own pace.

use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;

/// The newest record of each URL.
#[track_caller]
fn newest(stage: &Stage, url: &str) -> Listed {
    records(&stage.data).into_iter().rfind(|listed| listed.url == url).expect("a record")
}

// Conditional requests --------------------------------------------------------------------------------------

const ETAG: &str = "W/\"v1 \u{e9}!;,\"";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Asked again, a server is told what we have, in its own words; its 304 is a success that stands for the document.
#[test]
fn what_has_not_changed_does_not_come_again() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| {
            let etag = asked.header("If-None-Match");
            match (asked.target.as_str(), etag, asked.header("If-Modified-Since")) {
                ("/both", Some(etag), Some(date)) if etag == ETAG && date == DATE => {
                    Reply::raw("HTTP/1.1 304 Same\r\n\r\n")
                }
                ("/etag", Some(etag), None) if etag == ETAG => {
                    Reply::raw("HTTP/1.1 304 Same\r\nETag: \"x\"\r\n\r\n")
                }
                ("/date", None, Some(date)) if date == DATE => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
                ("/none", None, None) => Reply::text("none"),
                (target, None, None) => {
                    let etag = if target == "/date" { String::new() } else { format!("ETag: {ETAG}\r\n") };
                    let date =
                        if target == "/etag" { String::new() } else { format!("Last-Modified: {DATE}\r\n") };
                    Reply::text(target).with(&(etag + &date))
                }
                other => Reply::new("400 Bad", "", &format!("{other:?}")),
            }
        });
        let paths = ["/both", "/etag", "/date", "/none"];
        let urls = paths.map(|path| stage.url("a.test", path));
        for turn in 0..3 {
            let report = stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
            let (ok, same) = if turn == 0 { (4, 0) } else { (1, 3) };
            assert_eq!(result_count(&report, "ok"), ok, "{driver}, turn {turn}: {report}");
            assert_eq!(result_count(&report, "not_modified"), same, "{report}");
            assert_eq!(report["success"], 4, "{report}");
            for (path, url) in paths.iter().zip(&urls) {
                let body = if *path == "/none" { "none" } else { path };
                assert_eq!(cat(&stage.data, url), body.as_bytes(), "{url}, turn {turn}");
                let listed = newest(&stage, url);
                let expected = if turn == 0 || *path == "/none" {
                    ("ok", Some(200))
                } else {
                    ("not_modified", Some(304))
                };
                assert_eq!((&*listed.result, listed.http_status), expected, "{listed:?}");
                assert!(listed.success, "{listed:?}");
            }
        }
        stage.assert_proved();
    });
}

#[test]
fn what_has_changed_is_stored_anew() {
    let mut stage = Stage::new(|asked| match asked.header("If-None-Match").as_deref() {
        None => Reply::text("first").with("ETag: \"1\"\r\n"),
        Some("\"1\"") => Reply::text("second").with("ETag: \"2\"\r\n"),
        Some("\"2\"") => Reply::status("404 Not Found"),
        Some(other) => panic!("{other}"),
    });
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    stage.crawl([&url]);
    assert_record(&newest(&stage, &url), "ok", Some(200), b"second", &[]);
    assert_eq!(cat(&stage.data, &url), b"second");
    stage.crawl([&url]);
    assert_eq!(newest(&stage, &url).result, "http_error");
    // What is gone is asked for as if it were new.
    stage.crawl([&url]);
    assert_record(&newest(&stage, &url), "ok", Some(200), b"first", &[]);
}

/// What was not had whole, or could not be said back, is not asked about.
#[test]
fn validators_that_are_of_no_use_are_not_sent() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/control" => Reply::text("x").with("ETag: \"a\u{1b}[31m\"\r\n"),
        "/long" => Reply::text("x").with(&format!("ETag: \"{}\"\r\n", "x".repeat(10_000))),
        "/empty" => Reply::text("x").with("ETag: \r\nLast-Modified:\r\n"),
        "/cut" => {
            Reply::raw("HTTP/1.1 200 OK\r\nETag: \"cut\"\r\nContent-Length: 9\r\n\r\nhalf").then_close()
        }
        "/error" => Reply::status("404 No").with("ETag: \"error\"\r\n"),
        _ => Reply::redirect("/empty").with("ETag: \"to\"\r\n"),
    });
    let urls = ["/control", "/long", "/empty", "/cut", "/error", "/to"].map(|path| stage.url("a.test", path));
    stage.crawl(&urls);
    stage.crawl(&urls);
    let asked = stage.pages_of("a.test");
    assert_eq!(asked.len(), 12, "{asked:?}");
    for asked in asked {
        assert_eq!(
            (asked.header("If-None-Match"), asked.header("If-Modified-Since")),
            (None, None),
            "{}",
            asked.head
        );
        assert!(!asked.head.contains('\u{1b}'));
    }
}

// HEAD ------------------------------------------------------------------------------------------------------

#[test]
fn heads_are_asked_for_with_head() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match (asked.target.as_str(), asked.header("If-None-Match")) {
            ("/there", None) => Reply::raw("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 1000\r\n\r\n"),
            ("/there", Some(_)) => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
            ("/chunks", _) => Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("/coded", _) => {
                Reply::raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n")
            }
            ("/close", _) => Reply::raw("HTTP/1.1 200 OK\r\n\r\n"),
            ("/moved", _) => {
                Reply::raw("HTTP/1.1 301 Moved\r\nLocation: /close\r\nContent-Length: 12\r\n\r\n")
            }
            _ => Reply::raw("HTTP/1.1 404 No\r\nContent-Length: 12\r\n\r\n"),
        });
        let paths = ["/there", "/chunks", "/coded", "/moved", "/gone"];
        let urls = paths.map(|path| stage.url("a.test", path));
        let flags = ["--head", "--driver", driver];
        stage.crawl(urls.iter().map(String::as_str).chain(flags));
        let stored = stage.stored();
        for (path, result, status) in [
            ("/there", "ok", 200),
            ("/chunks", "ok", 200),
            ("/coded", "ok", 200),
            ("/close", "ok", 200),
            ("/moved", "redirect", 301),
            ("/gone", "http_error", 404),
        ] {
            assert_record(&stored[&stage.url("a.test", path)], result, Some(status), b"", &["head_only"]);
        }
        assert_eq!(stored[&urls[3]].new_url, Some(stage.url("a.test", "/close")));
        for asked in stage.server.asked() {
            let expected = if asked.target == "/robots.txt" { "GET" } else { "HEAD" };
            assert_eq!(asked.method, expected, "{}", asked.head);
        }
        assert_eq!(stage.pages_of("a.test").len(), 6, "each once");
        let report = stage.crawl([&*urls[0], "--head", "--driver", driver]);
        assert_eq!(result_count(&report, "not_modified"), 1, "asked about what is known: {report}");
        stage.assert_proved();
    });
}

/// HEAD says less than GET: a head that is stored is no document to be kept by a 304.
#[test]
fn a_stored_head_is_no_stored_document() {
    let mut stage = Stage::new(|asked| match (&*asked.method, asked.header("If-None-Match")) {
        ("HEAD", _) => Reply::raw("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n"),
        (_, None) => Reply::text("whole").with("ETag: \"1\"\r\n"),
        (_, Some(_)) => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
    });
    let url = stage.url("a.test", "/");
    stage.crawl([&*url, "--head"]);
    stage.crawl([&url]);
    assert_eq!(cat(&stage.data, &url), b"whole");
}

/// Between two whole fetches, a HEAD changes nothing of what is stored, or of what is asked about.
#[test]
fn a_head_does_not_stand_for_a_document() {
    for changed in [false, true] {
        let mut stage = Stage::new(move |asked| {
            let now = if changed && (asked.method == "HEAD" || asked.header("If-None-Match").is_some()) {
                2
            } else {
                1
            };
            match (&*asked.method, asked.header("If-None-Match")) {
                (_, Some(known)) if known == format!("\"{now}\"") => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
                ("HEAD", _) => {
                    Reply::raw(format!("HTTP/1.1 200 OK\r\nETag: \"{now}\"\r\nContent-Length: 7\r\n\r\n"))
                }
                _ => Reply::text(&format!("whole {now}")).with(&format!("ETag: \"{now}\"\r\n")),
            }
        });
        let url = stage.url("a.test", "/");
        stage.crawl([&url]);
        stage.crawl([&*url, "--head"]);
        let report = stage.crawl([&url]);
        let (result, document) = if changed { ("ok", "whole 2") } else { ("not_modified", "whole 1") };
        assert_eq!(result_count(&report, result), 1, "changed: {changed}: {report}");
        assert_eq!(cat(&stage.data, &url), document.as_bytes(), "changed: {changed}");
    }
}

/// Servers that refuse HEAD are asked with GET for the first byte, and left at the head; at their own pace, and once a URL.
#[test]
fn servers_that_refuse_head_are_asked_with_get() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match (&*asked.method, asked.name(), asked.target.as_str()) {
            // Its refusal has a body, which it must not have.
            ("HEAD", "r501.test", _) => Reply::status("501 Not Implemented").into(),
            ("HEAD", _, _) => Reply::raw("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n").into(),
            // One that knows ranges, one that does not, one that does not end.
            (_, _, "/1") => {
                Reply::new("206 Partial Content", "Content-Range: bytes 0-0/1000\r\n", "<").into()
            }
            (_, _, "/2") => Reply::html(&"<a href=/linked>x</a>".repeat(1_000)).into(),
            _ => Reply::raw("HTTP/1.1 200 OK\r\n\r\n").forever(1, "x".repeat(1_000)),
        });
        let hosts = ["r405.test", "r501.test"];
        let urls: Vec<String> =
            hosts.iter().flat_map(|host| ["/1", "/2", "/3"].map(|path| stage.url(host, path))).collect();
        let flags = ["--head", "--driver", driver, "--req-host-per-sec", "5"];
        stage.crawl(urls.iter().map(String::as_str).chain(flags));
        let stored = stage.stored();
        for url in &urls {
            let status = if url.ends_with("/1") { 206 } else { 200 };
            assert_record(&stored[url], "ok", Some(status), b"", &["head_by_get"]);
        }
        assert_eq!(stored.len(), urls.len(), "no link was seen");
        for host in hosts {
            let pages = stage.pages_of(host);
            for path in ["/1", "/2", "/3"] {
                let of: Vec<&Asked> = pages.iter().filter(|asked| asked.target == path).collect();
                assert!(of.len() <= 2, "{path} was asked for {} times", of.len());
                let last = of.last().unwrap();
                assert_eq!(
                    (&*last.method, last.header("Range").as_deref()),
                    ("GET", Some("bytes=0-0")),
                    "{}",
                    last.head
                );
            }
            for pair in pages.windows(2) {
                let gap_ms = (pair[1].at_ns - pair[0].at_ns) / 1_000_000;
                assert!(gap_ms >= 190, "{gap_ms} ms before {} {}", pair[1].method, pair[1].target);
            }
        }
        stage.assert_proved();
    });
}

/// A body after the answer to HEAD is neither stored nor taken for the next answer.
#[test]
fn servers_that_answer_head_with_a_body() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| match &*asked.method {
            // The body looks like an answer.
            "HEAD" => Reply::text("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
            _ => Reply::text("body"),
        });
        let urls = ["/1", "/2", "/3"].map(|path| stage.url("a.test", path));
        stage.crawl(urls.iter().map(String::as_str).chain(["--head", "--driver", driver]));
        let stored = stage.stored();
        for url in &urls {
            let listed = &stored[url];
            assert_eq!(
                (&*listed.result, listed.http_status, listed.bytes),
                ("ok", Some(200), 0),
                "{listed:?}"
            );
            assert!(listed.flags == ["head_only"] || listed.flags == ["head_by_get"], "{listed:?}");
        }
        let pages = stage.pages_of("a.test");
        assert!(pages.len() <= 6, "at most one more for each: {pages:?}");
        let last = pages.last().unwrap();
        assert_eq!(
            (&*last.method, last.header("Range").as_deref()),
            ("GET", Some("bytes=0-0")),
            "it has been learnt"
        );
        stage.assert_proved();
    }
}
