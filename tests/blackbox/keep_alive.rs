//! The promise: one connection serves many pages of a host, and a connection that the server let go without a
//! word costs no page.

use crate::support::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGES: usize = 40;

fn page(asked: &Asked) -> Reply {
    match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow:\n"),
        "/" => Reply::links((1..PAGES).map(|page| format!("/p{page}"))),
        target => Reply::text(&format!("page {target}\n")),
    }
}

/// Crawls with each driver; every page must be there. Returns how many connections and requests each took.
#[track_caller]
fn crawl_all(answer: impl Fn(&Asked) -> Reply + Send + Sync + Copy + 'static) -> [(usize, usize); 2] {
    DRIVERS.map(|driver| {
        let (dir, server) = (TempDir::new(), LogServer::start(answer));
        let data = dir.join("data");
        let flags = [&server.url("/"), "--driver", driver, "--req-host-per-sec", "0"];
        let (report, _) = crawl(&data, flags);
        assert_eq!(result_count(&report, "ok"), PAGES as u64, "{driver}: {report}");
        assert_eq!(report["pages"], PAGES);
        let stored = stored(&data);
        for number in 1..PAGES {
            let listed = &stored[&server.url(&format!("/p{number}"))];
            assert_eq!(listed.sha1, sha1_hex(format!("page /p{number}\n").as_bytes()), "{listed:?}");
        }
        (server.connections(), server.asked().len())
    })
}

#[test]
fn one_connection_serves_a_host() {
    assert_eq!(crawl_all(page), [(1, PAGES + 1); 2], "connections, requests");
}

#[test]
fn connection_close_is_obeyed() {
    let close = |asked: &Asked| {
        let mut reply = page(asked);
        let head = String::from_utf8(reply.bytes).unwrap();
        reply.bytes = head.replacen("\r\n", "\r\nConnection: close\r\n", 1).into_bytes();
        // It stays open on this side: a client that asks again here would be answered, and found out.
        reply
    };
    assert_eq!(crawl_all(close), [(PAGES + 1, PAGES + 1); 2], "connections, requests");
}

/// Closes after each answer without saying so, at once or a moment later.
#[test]
fn silent_closes_cost_no_page() {
    for (connections, _) in crawl_all(|asked| page(asked).then_close()) {
        assert_eq!(connections, PAGES + 1);
    }
}

/// Reads the second request of a connection and hangs up: the page is asked for again.
#[test]
fn a_kept_connection_that_dies_under_a_request() {
    let answers = |asked: &Asked| {
        if asked.nth > 0 { Reply::hang_up() } else { page(asked) }
    };
    for (connections, requests) in crawl_all(answers) {
        // Every page but the first request is asked for in vain once, then on a connection of its own.
        assert_eq!((connections, requests), (PAGES + 1, 2 * PAGES + 1));
    }
}

/// A server that hangs up on every connection: an empty answer is a result, not a reason to try for ever.
#[test]
fn a_fresh_connection_that_dies_is_a_result() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let server = LogServer::start(|asked| match asked.target.as_str() {
            "/dead" => Reply::hang_up(),
            _ => page(asked),
        });
        let data = dir.join("data");
        let flags = [&server.url("/dead"), "--driver", driver, "--req-host-per-sec", "0"];
        let (report, _) = crawl(&data, flags);
        let dead = server.asked().iter().filter(|asked| asked.target == "/dead").count();
        assert!(dead <= 2, "once on the kept connection, once on a fresh one: {dead}");
        assert_eq!(result_count(&report, "empty"), 1, "{report}");
        let listed = &stored(&data)[&server.url("/dead")];
        assert_eq!((listed.success, listed.http_status, listed.bytes), (false, None, 0), "{listed:?}");
    }
}

/// Two bodies in one answer: what follows the response is never taken for the next one.
#[test]
fn bytes_after_a_response_are_not_the_next_one() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let smuggle = |asked: &Asked| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        let mut reply = page(asked);
        reply.bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
        reply
    };
    for (connections, _) in crawl_all(smuggle) {
        assert_eq!(connections, PAGES + 1, "each was let go");
    }
    assert!(ASKED.load(Ordering::Relaxed) > 0);
}
