//! The promise: a server is asked whether a document has changed only while that document can be read, and only if it is
//! whole. What was let go comes back whole.

use crate::stage::Stage;
use crate::support::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Longer than what is stored twice rather than referred to.
fn page() -> String {
    "a page that is long enough to be referred to ".repeat(9)
}

fn conditional(asked: &Asked) -> bool {
    asked.header("If-None-Match").is_some() || asked.header("If-Modified-Since").is_some()
}

/// Says 304 to whoever names its ETag.
fn honest(asked: &Asked) -> Reply {
    match conditional(asked) {
        true => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
        false => Reply::text(&page()).with("ETag: \"1\"\r\n"),
    }
}

fn conditions(stage: &Stage) -> Vec<bool> {
    stage.pages_of("a.test").iter().map(conditional).collect()
}

fn remove_all(data: &std::path::Path) {
    for entry in std::fs::read_dir(data.join("segments")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

#[test]
fn what_was_dropped_comes_whole() {
    let mut stage = Stage::new(honest);
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false, true]);
    let dropped = store(&["drop", "--before", "2200-01-01"], &stage.data);
    assert_eq!(dropped.code(), 0, "{}", dropped.stderr);
    assert_ne!(store(&["cat", &url], &stage.data).code(), 0);
    let report = stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false, true, false], "{report}");
    assert_eq!(cat(&stage.data, &url), page().as_bytes());
    // And is asked about from then on.
    stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false, true, false, true]);
    assert_eq!(cat(&stage.data, &url), page().as_bytes());
}

#[test]
fn what_was_removed_by_hand_comes_whole() {
    let mut stage = Stage::new(honest);
    let url = stage.url("a.test", "/");
    for _ in 0..2 {
        stage.crawl([&url]);
        remove_all(&stage.data);
    }
    stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false; 3]);
    assert_eq!(cat(&stage.data, &url), page().as_bytes());
}

/// The record is there, and the document that it refers to is not.
#[test]
fn what_refers_to_nothing_comes_whole() {
    let mut stage = Stage::new(|_| Reply::text(&page()).with("ETag: \"1\"\r\n"));
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    let first = segments(&stage.data, "seg");
    stage.crawl([&url]);
    let listed = records(&stage.data);
    assert_eq!(listed.len(), 2, "{listed:?}");
    first.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_ne!(store(&["cat", &url], &stage.data).code(), 0, "{listed:?}");
    stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false, true, false]);
    assert_eq!(cat(&stage.data, &url), page().as_bytes());
}

/// It goes while its server is being asked about it.
#[test]
fn a_304_that_stands_on_nothing_is_asked_again_without_conditions() {
    let data: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let mut stage = Stage::new({
        let data = data.clone();
        move |asked| {
            if conditional(asked) {
                let data = data.lock().unwrap().clone().unwrap();
                for path in segments(&data, "seg") {
                    std::fs::remove_file(path).unwrap();
                }
            }
            honest(asked)
        }
    });
    *data.lock().unwrap() = Some(stage.data.clone());
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    let report = stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false, true, false], "{report}");
    assert_eq!(cat(&stage.data, &url), page().as_bytes());
}

#[test]
fn a_server_that_only_says_304_is_asked_once_more_and_no_more() {
    let first = AtomicBool::new(true);
    let mut stage = Stage::new(move |asked| match first.swap(false, Ordering::SeqCst) {
        true => honest(asked),
        false => Reply::raw("HTTP/1.1 304 Same\r\nETag: \"1\"\r\n\r\n"),
    });
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    remove_all(&stage.data);
    let report = stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false; 3], "{report}");
    stage.crawl([&url]);
    assert_eq!(conditions(&stage), [false; 4]);
}

/// A part, what was cut, what ended early and what could not be decoded do not stand for the document.
#[test]
fn only_whole_documents_leave_validators() {
    let mut stage = Stage::new(|asked| {
        let etag = "ETag: \"1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        match asked.target.as_str() {
            "/part" => {
                Reply::new("206 Partial Content", "Content-Range: bytes 0-3/99\r\n", "part").with(etag)
            }
            "/cut" => Reply::text(&"x".repeat(3_000)).with(etag),
            "/early" => {
                Reply::raw(format!("HTTP/1.1 200 OK\r\n{etag}Content-Length: 9\r\n\r\nhalf")).then_close()
            }
            "/coded" => Reply::text("not gzip").with("Content-Encoding: gzip\r\n").with(etag),
            "/none" => Reply::raw(format!("HTTP/1.1 204 No Content\r\n{etag}\r\n")),
            _ => Reply::text("whole").with(etag),
        }
    });
    let paths = ["/part", "/cut", "/early", "/coded", "/none", "/whole"];
    let urls = paths.map(|path| stage.url("a.test", path));
    for _ in 0..2 {
        stage.crawl(urls.iter().map(String::as_str).chain(["--max-doc-size", "2000"]));
    }
    let asked = stage.pages_of("a.test");
    let again: Vec<&str> =
        asked.iter().filter(|asked| conditional(asked)).map(|asked| asked.target.as_str()).collect();
    assert_eq!(again, ["/whole"], "{asked:?}");
}
