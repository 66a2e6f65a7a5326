//! The promise: a server is asked whether a document has changed only while that document can be read, and only if it is
//! whole. What was let go comes back whole.

use crate::stage::Stage;
use crate::support::*;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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

/// The crawl packs its store while a server is being asked: the document has moved, and is there.
#[test]
fn a_304_for_what_was_packed_meanwhile_stands() {
    let first: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let (is_second, is_asked) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let mut stage = Stage::new({
        let (first, is_second) = (first.clone(), is_second.clone());
        // A crawl that does something else fails by what was asked of it, and not by waiting.
        let wait = |is_done: &dyn Fn() -> bool| {
            let until = Instant::now() + Duration::from_secs(8);
            while !is_done() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        move |asked| {
            let round = is_second.load(Ordering::SeqCst);
            match asked.name() == "a.test" {
                true if conditional(asked) => {
                    let path = first.lock().unwrap().clone().unwrap();
                    let inode = || path.metadata().map(|meta| meta.ino()).ok();
                    let before = inode();
                    is_asked.store(true, Ordering::SeqCst);
                    wait(&|| inode() != before);
                    honest(asked)
                }
                true => Reply::text(&filling("cold", 60_000)).with("ETag: \"1\"\r\n"),
                false => {
                    wait(&|| !round || is_asked.load(Ordering::SeqCst));
                    // Segments are filled one by one, and looked at as often.
                    std::thread::sleep(Duration::from_millis(if round { 20 } else { 0 }));
                    Reply::text(&filling(&format!("{} {round}", asked.target), 60_000))
                }
            }
        }
    });
    stage.settings(
        "[spider]\nmax_doc_size = 65536\n[store]\nsegment_bytes = 524288\nhistory = \"newest\"\ncommit_ms = 2\n",
    );
    let cold = stage.url("a.test", "/cold");
    let others: Vec<String> = (0..80).map(|page| stage.url("b.test", &format!("/{page}"))).collect();
    let crawl = |others: &[String]| {
        let others = others.iter().map(String::as_str);
        stage.crawl([cold.as_str(), "--cores", "0"].into_iter().chain(others))
    };
    crawl(&others[..6]);
    let before = segments(&stage.data, "seg");
    assert_eq!(before.len(), 1, "{before:?}");
    *first.lock().unwrap() = before.into_iter().next();
    is_second.store(true, Ordering::SeqCst);
    let report = crawl(&others);
    assert_eq!(conditions(&stage), [false, true], "{report}");
    assert_eq!(result_count(&report, "not_modified"), 1, "{report}");
    assert_eq!(
        records(&stage.data).iter().filter(|listed| listed.url == others[0]).count(),
        1,
        "it was packed"
    );
    assert_eq!(cat(&stage.data, &cold), filling("cold", 60_000).as_bytes());
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
