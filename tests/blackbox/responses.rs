//! The promise: of what servers send, the lenient rules are accepted, the dangerous ones are refused, and how the
//! bytes were cut on their way changes nothing.

use crate::cases::{Case, cases};
use crate::support::*;
use std::time::Duration;

/// Rows that a crawl can meet: it asks with GET, and a 304 only if it knows the page.
fn crawled() -> Vec<Case> {
    cases().into_iter().filter(|case| !case.parse_only).collect()
}

/// A server with a page per case; `piece` bytes at a time.
fn serve(piece: Option<usize>) -> LogServer {
    let cases = crawled();
    LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found").then_close(),
        target => Reply {
            bytes: cases[target[1..].parse::<usize>().unwrap()].bytes.clone(),
            after: Duration::ZERO,
            close: true,
            reset: false,
            // A long answer in so small pieces would take long and show nothing more.
            piece: piece.filter(|_| cases[target[1..].parse::<usize>().unwrap()].bytes.len() < 2_000),
        },
    })
}

#[track_caller]
fn every_case(driver: &str, piece: Option<usize>) {
    let (dir, server) = (TempDir::new(), serve(piece));
    let cases = crawled();
    let urls: Vec<String> = (0..cases.len()).map(|n| server.url(&format!("/{n}"))).collect();
    let flags = ["--req-host-per-sec", "0", "--req-host-concurrent", "8", "--driver", driver];
    let data = dir.join("data");
    crawl(&data, urls.iter().map(String::as_str).chain(flags));
    let stored = stored(&data);
    let mut wrong = String::new();
    for (case, url) in cases.iter().zip(&urls) {
        let seen = stored.get(url).map(|listed| {
            (&*listed.result, listed.http_status, listed.bytes, &*listed.sha1, listed.flags.clone())
        });
        let flags: Vec<String> = case.flags.iter().map(|flag| flag.to_string()).collect();
        let sha1 = sha1_hex(&case.body);
        let expected = (case.result, case.status, case.body.len() as u64, &*sha1, flags);
        let success = stored.get(url).map(|listed| listed.success);
        if seen.as_ref() != Some(&expected) || success != Some(case.result == "ok") {
            wrong.push_str(&format!("{}: {seen:?}, not {expected:?}\n", case.name));
        }
    }
    assert!(wrong.is_empty(), "{driver}, {piece:?} at a time:\n{wrong}");
}

#[test]
fn rules_of_http_uring() {
    every_case("uring", None);
}

#[test]
fn rules_of_http_epoll() {
    every_case("epoll", None);
}

#[test]
fn however_the_bytes_are_cut() {
    for driver in DRIVERS {
        for piece in [1, 7] {
            every_case(driver, Some(piece));
        }
    }
}

/// One page of a server, crawled; its record.
#[track_caller]
fn one_page(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Vec<String>, Listed) {
    let dir = TempDir::new();
    let server = LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => reply(asked),
        _ => Reply::text("x"),
    });
    let data = dir.join("data");
    crawl(&data, [&server.url("/"), "--req-host-per-sec", "0"]);
    let mut targets = server.targets().split_off(1);
    targets.sort();
    (targets, stored(&data).remove(&server.url("/")).unwrap())
}

#[test]
fn a_page_that_says_nofollow_leads_nowhere() {
    let page = "<meta name=robots content='noindex, nofollow'><a href=/a>a</a>";
    assert_eq!(one_page(|_| Reply::html(page)).0, ["/"]);
    let page = "<a href=/a rel=nofollow>a</a><a href=/b>b</a>";
    assert_eq!(one_page(|_| Reply::html(page)).0, ["/", "/b"]);
}

#[test]
fn a_header_that_says_nofollow_counts_as_well() {
    let headers = "Content-Type: text/html\r\nX-Robots-Tag: nofollow\r\n";
    assert_eq!(one_page(|_| Reply::new("200 OK", headers, "<a href=/a>a</a>")).0, ["/"]);
}

#[test]
fn a_page_that_is_not_to_be_indexed_says_so_on_its_record() {
    let headers = "X-Robots-Tag: noarchive\r\nX-Robots-Tag: none\r\n";
    assert_eq!(one_page(|_| Reply::new("200 OK", headers, "x")).1.flags, ["noindex"]);
    let page = "<meta name=robots content=noindex>";
    assert_eq!(one_page(|_| Reply::html(page)).1.flags, ["noindex"]);
    assert!(one_page(|_| Reply::html("<meta name=robots content=index>")).1.flags.is_empty());
}

#[test]
fn meta_refresh_is_a_document_with_a_new_url() {
    let page = "<meta http-equiv=refresh content='0; url=/next'>";
    let (targets, listed) = one_page(|_| Reply::html(page));
    assert_eq!(targets, ["/", "/next"]);
    assert_eq!((&*listed.result, listed.success), ("ok", true));
    assert!(listed.new_url.unwrap().ends_with("/next"));
}

#[test]
fn links_are_found_where_a_browser_finds_them() {
    let page = "<base href='/dir/'><!-- <a href=/comment> --><script>'<a href=/script>'</script>\
        <A HREF = 'one'>1</A><a href=\"two?a=1&amp;b=2\">2</a><a href=' three\n'>3</a><a href=../up>4</a>\
        <a href='//127.0.0.1:PORT/slashes'>5</a><textarea><a href=/text></textarea><area href=map>\
        <a href=http://127.0.0.1:PORT/dir/one#twice>6</a><a href='sp ace'>7</a><a href='x%7ey'>8</a>";
    let (targets, _) =
        one_page(|asked| Reply::html(&page.replace("PORT", asked.host.rsplit(':').next().unwrap())));
    let expected = ["/", "/dir/map", "/dir/one", "/dir/sp%20ace", "/dir/three", "/dir/two?a=1&b=2"];
    for target in expected.iter().chain(&["/slashes", "/up"]) {
        assert!(targets.contains(&target.to_string()), "{target} in {targets:?}");
    }
    for target in ["/comment", "/script", "/text"] {
        assert!(!targets.contains(&target.to_string()), "{target} in {targets:?}");
    }
    // /dir/x~y or /dir/x%7Ey: one of them, once.
    assert_eq!(targets.len(), expected.len() + 3, "{targets:?}");
}

/// A URL is at most 8,192 bytes; a longer one is not followed, and does no harm.
#[test]
fn urls_that_are_too_long() {
    let (long, longest) = (format!("/{}", "y".repeat(20_000)), format!("/{}", "z".repeat(8_100)));
    let links = [long, longest.clone(), "/short".to_string()];
    let (targets, _) = one_page(move |_| Reply::links(&links));
    assert_eq!(targets, ["/", "/short", &longest]);
}
