//! The promise: however a server breaks off, stalls, floods or goes on for ever, its page ends in a record that says so,
//! within its time, and no other page is any the worse for it.

use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, socket};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A server's play and the record it must leave.
struct Row {
    name: &'static str,
    play: fn() -> Play,
    /// The code; several where the rules leave it open.
    results: &'static [&'static str],
    status: Option<u16>,
    body: Vec<u8>,
    flags: &'static [&'static str],
    /// How long it must at least have taken.
    ms_min: u64,
}

fn row(name: &'static str, results: &'static [&'static str], play: fn() -> Play) -> Row {
    Row { name, play, results, status: None, body: Vec::new(), flags: &[], ms_min: 0 }
}

impl Row {
    /// There was a head; what came after it is kept.
    fn kept(mut self, body: impl Into<Vec<u8>>) -> Row {
        (self.status, self.body) = (Some(200), body.into());
        self
    }

    fn status(mut self, status: u16) -> Row {
        self.status = Some(status);
        self
    }

    fn flags(mut self, flags: &'static [&'static str]) -> Row {
        self.flags = flags;
        self
    }

    fn after(mut self, ms: u64) -> Row {
        self.ms_min = ms;
        self
    }
}

fn say(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(bytes)
}

fn end(bytes: impl Into<Vec<u8>>) -> Play {
    Reply::raw(bytes).then_close().into()
}

/// The bytes arrive, and a moment later the connection is reset.
fn reset(bytes: &str) -> Play {
    Reply { reset: true, ..Reply::raw(bytes).then_close() }.later(100, "")
}

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const TO_CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\n";
const SETTINGS: &str = "[spider]\nmax_doc_size = 1000\n";
/// No head was had before the end: the rules call it cut short, a head that is none is malformed.
const NO_HEAD: &[&str] = &["truncated", "malformed"];

fn text(bytes: usize) -> String {
    "0123456789".repeat(bytes.div_ceil(10))[..bytes].to_string()
}

fn with_length(length: u64, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[rustfmt::skip]
fn broken_off() -> Vec<Row> {
    vec![
        row("before the status", &["empty"], || end("")),
        row("reset before the status", &["reset"], || reset("")),
        row("in the status line", NO_HEAD, || end("HTTP/1.1 20")),
        row("reset in the status line", &["reset", "truncated", "malformed"], || reset("HTTP/1.1 20")),
        row("after the status line", NO_HEAD, || end("HTTP/1.1 200 OK\r\n")),
        row("in a header", NO_HEAD, || end("HTTP/1.1 200 OK\r\nContent-Le")),
        row("reset in a header", &["reset", "truncated", "malformed"], || reset("HTTP/1.1 200 OK\r\nConte")),
        row("after a 1xx", &["empty", "truncated", "malformed"], || end("HTTP/1.1 100 Continue\r\n\r\n")),
        row("after the head", &["truncated"], || end(LENGTH)).kept(""),
        row("in the body", &["truncated"], || end(format!("{LENGTH}half"))).kept("half"),
        row("reset in the body", &["truncated"], || reset(&format!("{LENGTH}half"))).kept("half"),
        row("reset where the close ends the body", &["truncated"], || reset(&format!("{TO_CLOSE}half"))).kept("half"),
        row("before a chunk", &["truncated"], || end(CHUNKED)).kept(""),
        row("in a chunk size", &["truncated"], || end(format!("{CHUNKED}4\r\nhalf\r\n1"))).kept("half"),
        row("in a chunk", &["truncated"], || end(format!("{CHUNKED}4\r\nhalf\r\n5\r\nha"))).kept("halfha"),
        row("after a chunk", &["truncated"], || end(format!("{CHUNKED}4\r\nhalf"))).kept("half"),
        row("reset in a chunk", &["truncated"], || reset(&format!("{CHUNKED}9\r\nhalf"))).kept("half"),
        row("in the trailers", &["truncated"], || end(format!("{CHUNKED}4\r\nhalf\r\n0\r\nX: y\r\n"))).kept("half"),
        row("a length nobody could send", &["truncated"], || end(with_length(1 << 62, "half"))).kept("half"),
        row("a close that was announced", &["ok"], || end(format!("{TO_CLOSE}whole"))).kept("whole"),
    ]
}

#[rustfmt::skip]
fn floods() -> Vec<Row> {
    vec![
        row("1xx without end", &["malformed"], || say("").forever(0, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")),
        row("1xx with large heads", &["malformed"], || say("").forever(0, format!("HTTP/1.1 100 Go\r\nX: {}\r\n\r\n", text(30_000)))),
        row("a status line without end", &["malformed"], || say("HTTP/1.1 200 ").forever(0, text(1_000))),
        row("a header without end", &["malformed"], || say("HTTP/1.1 200 OK\r\nX: ").forever(0, text(1_000))),
        row("headers without end", &["malformed"], || say("HTTP/1.1 200 OK\r\n").forever(0, "X: y\r\n".repeat(50))),
        row("empty lines without end", &["malformed"], || say("").forever(0, "\r\n".repeat(500))),
        row("a chunk size without end", &["malformed"], || say(CHUNKED).forever(0, "0".repeat(100))).kept(""),
        row("a chunk extension without end", &["malformed"], || say(format!("{CHUNKED}2\r\nhi\r\n2;")).forever(0, text(1_000))).kept("hi"),
        row("extensions on every chunk", &["malformed", "too_large"], || say(CHUNKED).forever(0, format!("1;{}\r\nx\r\n", text(10_000)))).kept("x"),
        row("trailers without end", &["malformed"], || say(format!("{CHUNKED}2\r\nhi\r\n0\r\n")).forever(0, "X: y\r\n".repeat(50))).kept("hi"),
        row("a body without end, by its length", &["too_large"], || say(with_length(1 << 40, "")).forever(0, text(1_000))).kept(text(1_000)).flags(&["cut"]),
        row("a body without end, to the close", &["too_large"], || say(TO_CLOSE).forever(0, text(1_000))).kept(text(1_000)).flags(&["cut"]),
        row("a body without end, in chunks", &["too_large"], || say(CHUNKED).forever(0, format!("a\r\n{}\r\n", text(10)))).kept(text(1_000)).flags(&["cut"]),
    ]
}

#[rustfmt::skip]
fn sizes() -> Vec<Row> {
    fn chunks(bytes: usize) -> String {
        let body = text(bytes);
        let (first, rest) = body.split_at(700);
        format!("{CHUNKED}{:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", first.len(), rest.len())
    }
    vec![
        row("the limit, by length", &["ok"], || say(with_length(1_000, &text(1_000))).into()).kept(text(1_000)),
        row("the limit, in chunks", &["ok"], || say(chunks(1_000)).into()).kept(text(1_000)),
        row("the limit, to the close", &["ok"], || end(format!("{TO_CLOSE}{}", text(1_000)))).kept(text(1_000)),
        row("the limit, the close later", &["ok"], || say(format!("{TO_CLOSE}{}", text(1_000))).then_close().later(100, "")).kept(text(1_000)),
        row("one more, by length", &["too_large"], || say(with_length(1_001, &text(1_001))).into()).kept(text(1_000)).flags(&["cut"]),
        row("one more, in chunks", &["too_large"], || say(chunks(1_001)).into()).kept(text(1_000)).flags(&["cut"]),
        row("one more, to the close", &["too_large"], || end(format!("{TO_CLOSE}{}", text(1_001)))).kept(text(1_000)).flags(&["cut"]),
        row("one more, later", &["too_large"], || say(format!("{TO_CLOSE}{}", text(1_000))).then_close().later(100, "x")).kept(text(1_000)).flags(&["cut"]),
        row("an error at the limit", &["http_error"], || say(with_length(1_000, &text(1_000)).replace("200 OK", "404 No")).into()).kept(text(1_000)).status(404),
        row("an error past the limit", &["http_error"], || say(with_length(1_001, &text(1_001)).replace("200 OK", "404 No")).into()).kept(text(1_000)).status(404).flags(&["cut"]),
        row("an error without end", &["http_error"], || say("HTTP/1.1 500 No\r\n\r\n").forever(0, text(1_000))).kept(text(1_000)).status(500).flags(&["cut"]),
        row("a redirect past the limit", &["redirect"], || say("HTTP/1.1 302 To\r\nLocation: /\r\n\r\n").forever(0, text(1_000))).kept(text(1_000)).status(302).flags(&["cut"]),
        row("204 with chunks", &["ok"], || say("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n").into()).status(204),
        row("204 to the close", &["ok"], || end("HTTP/1.1 204 No\r\n\r\nhi")).status(204),
        row("304 with a body", &["not_modified"], || say("HTTP/1.1 304 Same\r\nContent-Length: 2\r\n\r\nhi").into()).status(304),
        row("205 with a body", &["ok"], || say("HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\nhi").into()).kept("hi").status(205),
        row("206 unasked for", &["ok"], || say("HTTP/1.1 206 Part\r\nContent-Length: 2\r\n\r\nhi").into()).kept("hi").status(206).flags(&["partial"]),
        row("TE whose last coding is not chunked", &["ok"], || end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nhi")).kept("2\r\nhi").flags(&["te_coding_left"]),
    ]
}

/// Every row on a host of its own, three pages of a good host for each: the rows end as they must, and the good pages
/// are all had.
#[track_caller]
fn each_ends_as_it_must(rows: fn() -> Vec<Row>, settings: &str) {
    by_each_driver(|driver| {
        let mut stage = Stage::new(move |asked| match asked.name().strip_prefix("bad") {
            Some(rest) => (rows()[rest.trim_end_matches(".test").parse::<usize>().unwrap()].play)(),
            None if asked.target == "/" => Reply::links(["/a", "/b"]).into(),
            None => Reply::text(&asked.place()).into(),
        });
        stage.settings(settings);
        let rows = rows();
        let bad: Vec<String> = (0..rows.len()).map(|n| stage.url(&format!("bad{n}.test"), "/x")).collect();
        let good: Vec<String> = (0..rows.len()).map(|n| stage.url(&format!("good{n}.test"), "/")).collect();
        let report = stage.crawl(bad.iter().chain(&good).map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        let mut wrong = String::new();
        for (row, url) in rows.iter().zip(&bad) {
            let Some(listed) = stored.get(url) else {
                wrong += &format!("{}: no record\n", row.name);
                continue;
            };
            let seen = (listed.http_status, listed.bytes, &*listed.sha1);
            let sha1 = sha1_hex(&row.body);
            let as_it_must = row.results.contains(&&*listed.result)
                && listed.success == ["ok", "too_large", "not_modified"].contains(&&*listed.result)
                && seen == (row.status, row.body.len() as u64, &*sha1)
                && (listed.flags == row.flags || row.results.len() > 1)
                && listed.ms >= row.ms_min;
            if !as_it_must {
                let (body, flags) = (row.body.len(), row.flags);
                let expected = format!("{:?} {:?} {body} bytes {flags:?}", row.results, row.status);
                wrong += &format!("{}: {listed:?}, not {expected}\n", row.name);
            }
        }
        assert!(wrong.is_empty(), "{driver}:\n{wrong}{report}");
        for n in 0..rows.len() {
            for path in ["/a", "/b"] {
                let listed = &stored[&stage.url(&format!("good{n}.test"), path)];
                assert_record(listed, "ok", Some(200), format!("good{n}.test{path}").as_bytes(), &[]);
            }
        }
        let followed = rows.iter().filter(|row| row.results.contains(&"redirect")).count();
        assert_eq!(stored.len(), 4 * rows.len() + followed, "and nothing else");
        stage.assert_proved();
    });
}

#[test]
fn connections_that_break_off() {
    each_ends_as_it_must(broken_off, "");
}

#[test]
fn floods_end() {
    each_ends_as_it_must(floods, SETTINGS);
}

#[test]
fn the_limit_of_a_document() {
    each_ends_as_it_must(sizes, SETTINGS);
}

// Time ------------------------------------------------------------------------------------------------------

const TIMES: &str = "[spider]\ntimeout_connect = 1500\ntimeout_first_byte = 1600\ntimeout_read = 1400\n";

#[rustfmt::skip]
fn stalls() -> Vec<Row> {
    vec![
        row("not a byte", &["read_timeout"], || say("").later(30_000, "")).after(1_600),
        row("in the status line", &["read_timeout"], || say("HTTP/1.1 2").later(30_000, "")).after(1_400),
        row("in the headers", &["read_timeout"], || say("HTTP/1.1 200 OK\r\nX: y\r\n").later(30_000, "")).after(1_400),
        row("after a 1xx", &["read_timeout"], || say("HTTP/1.1 100 Go on\r\n\r\n").later(30_000, "")).after(1_400),
        row("before the body", &["read_timeout"], || say(LENGTH).later(30_000, "")).kept("").after(1_400),
        row("in the body", &["read_timeout"], || say(format!("{LENGTH}half")).later(30_000, "")).kept("half").after(1_400),
        row("in a chunk", &["read_timeout"], || say(format!("{CHUNKED}9\r\nhalf")).later(30_000, "")).kept("half").after(1_400),
        row("before the close", &["read_timeout"], || say(format!("{TO_CLOSE}half")).later(30_000, "")).kept("half").after(1_400),
        row("after the second byte", &["read_timeout"], || say(LENGTH).later(300, "a").later(300, "b").later(30_000, "")).kept("ab").after(2_000),
        row("slow, but in time", &["ok"], || say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n").later(300, "a").later(300, "b").later(300, "c")).kept("abc").after(900),
    ]
}

#[test]
fn each_stall_ends_in_its_time() {
    each_ends_as_it_must(stalls, TIMES);
}

/// A head or a body a byte at a time, always in time for the next, does not outlast `timeout_req`; what came is kept.
#[test]
fn a_trickle_ends_in_total() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match asked.name() {
            "head.test" => say("HTTP/1.1 200 OK\r\nX: ").forever(100, "y"),
            _ => say(LENGTH.replace('9', "900")).forever(100, "x"),
        });
        stage.settings("[spider]\ntimeout_req = 4000\n");
        let (head, body) = (stage.url("head.test", "/"), stage.url("body.test", "/"));
        stage.crawl([&head, &body, "--driver", driver]);
        let stored = stage.stored();
        assert_record(&stored[&head], "total_timeout", None, b"", &[]);
        let listed = &stored[&body];
        assert!((1..=200).contains(&listed.bytes) && listed.ms >= 4_000, "{listed:?}");
        let document = "x".repeat(listed.bytes as usize);
        assert_record(listed, "total_timeout", Some(200), document.as_bytes(), &[]);
    });
}

/// A server that never stops sending, but slowly, is left for it; one that sends enough is not.
#[test]
fn a_server_slower_than_the_least_rate_is_left() {
    let stages = DRIVERS.map(|driver| {
        let mut stage = Stage::new(|asked| match asked.name() {
            "slow.test" => say(with_length(1 << 20, "")).forever(100, text(1_000)),
            // Sixty kilobytes a second, for a second longer than it is looked at.
            _ => (0..110)
                .fold(say(with_length(660_000, "")).into(), |play: Play, _| play.later(100, text(6_000))),
        });
        stage.settings("[spider]\nmin_rate = 30000\n");
        let urls = [stage.url("slow.test", "/"), stage.url("steady.test", "/")];
        let running = Running::start(&mut stage.command([&*urls[0], &*urls[1], "--driver", driver]));
        (stage, urls, running)
    });
    for (stage, [slow, steady], running) in stages {
        let report = running.wait(PATIENCE).done().json();
        let stored = stage.stored();
        let listed = &stored[&slow];
        assert_eq!((&*listed.result, listed.success), ("too_slow", false), "{listed:?}");
        assert!(listed.bytes > 0 && listed.ms >= 9_000, "what came is kept: {listed:?}");
        assert_eq!((&*stored[&steady].result, stored[&steady].bytes), ("ok", 660_000), "{report}");
    }
}

/// Accepts one connection for robots.txt; then its queue of connections is full, and nobody takes one from it.
fn one_then_nobody() -> SocketAddr {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(std::os::fd::AsRawFd::as_raw_fd(&fd), &SockaddrIn::new(127, 61, 0, 1, 0)).unwrap();
    listen(&fd, Backlog::new(0).unwrap()).unwrap();
    let listener = TcpListener::from(fd);
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).unwrap();
        let mut full = Vec::new();
        while let Ok(waiting) = TcpStream::connect_timeout(&addr, Duration::from_millis(200)) {
            full.push(waiting);
        }
        stream.write_all(b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
        drop(stream);
        std::thread::sleep(PATIENCE);
    });
    addr
}

/// Answers for robots.txt, and is gone.
fn one_then_closed() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 61, 0, 2), 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    addr
}

#[test]
fn connections_that_are_not_made() {
    by_each_driver(|driver| {
        let dir = TempDir::new();
        let config = dir.write("c.toml", TIMES);
        let (mute, gone) =
            (format!("http://{}/", one_then_nobody()), format!("http://{}/", one_then_closed()));
        let flags = ["--req-host-per-sec", "0", "--driver", driver, "--config", config.to_str().unwrap()];
        let data = dir.join("data");
        crawl(&data, [&*mute, &*gone].into_iter().chain(flags));
        let stored = stored(&data);
        assert_record(&stored[&mute], "connect_timeout", None, b"", &[]);
        assert!((1_500..10_000).contains(&stored[&mute].ms), "{:?}", stored[&mute]);
        assert_record(&stored[&gone], "connect_refused", None, b"", &[]);
    });
}

/// A thousand hosts that stall at once end together, and the good ones have long been had.
#[test]
fn a_thousand_stalled_hosts_hold_nobody_up() {
    const STALLED: usize = 1_000;
    let mut stage = Stage::new(|asked| match asked.name().starts_with("good") {
        false => Reply::text("late").after_ms(60_000),
        true if asked.target == "/" => Reply::links((1..20).map(|page| format!("/{page}"))),
        true => Reply::text(&asked.place()),
    });
    stage.settings("[spider]\ntimeout_first_byte = 8000\n");
    let stalled = (0..STALLED).map(|n| stage.url(&format!("stalled{n}.test"), "/")).collect::<Vec<_>>();
    let good = (0..20).map(|n| stage.url(&format!("good{n}.test"), "/")).collect::<Vec<_>>();
    let seeds = stage.dir.write("seeds", [stalled.clone(), good].concat().join("\n"));
    let report = stage.crawl(["--seeds", seeds.to_str().unwrap()]);
    assert_eq!(result_count(&report, "read_timeout"), STALLED as u64, "{report}");
    assert_eq!(result_count(&report, "ok"), 400, "{report}");
    let stored = stage.stored();
    let odd: Vec<_> = stalled.iter().filter(|url| !(8_000..40_000).contains(&stored[*url].ms)).collect();
    assert!(odd.is_empty(), "{odd:?} {report}");
    let asked = stage.server.asked();
    let (good, stalled): (Vec<&Asked>, _) = asked.iter().partition(|asked| asked.name().starts_with("good"));
    let last_good = good.iter().map(|asked| asked.answered_ns).max().unwrap();
    let last_stalled = stalled.iter().map(|asked| asked.at_ns).max().unwrap();
    let margin_ms = (last_stalled + 8_000_000_000 - last_good) / 1_000_000;
    assert!(margin_ms > 0, "the good ones did not wait for the others' end: {margin_ms} ms");
}

// Bytes after a response ------------------------------------------------------------------------------------

const FAKE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";

/// A whole second response, a moment after the first, while nothing was asked: the next page is asked for on another
/// connection, and what it says is its own.
#[test]
fn a_late_second_response_is_nobodys() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| Reply::text(&asked.target).later(40, FAKE));
        let urls: Vec<String> = (0..3).map(|n| stage.url("late.test", &format!("/{n}"))).collect();
        // The moment is short beside the pause, also on a machine that is slow.
        let flags = ["--req-host-per-sec", "0.5", "--driver", driver];
        stage.crawl(urls.iter().map(String::as_str).chain(flags));
        let stored = stage.stored();
        for (n, url) in urls.iter().enumerate() {
            assert_record(&stored[url], "ok", Some(200), format!("/{n}").as_bytes(), &[]);
        }
        assert!(stage.pages_of("late.test").iter().all(|asked| asked.nth == 0), "each on its own connection");
        stage.assert_proved();
    });
}

/// Rubbish that comes when the next request is out already spoils a connection, and no page.
#[test]
fn rubbish_before_a_response_costs_no_page() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match asked.nth {
            0 => Reply::text(&asked.target).later(30, "</html>\r\n"),
            _ => Reply::text(&asked.target).after_ms(60).into(),
        });
        let urls: Vec<String> = (0..6).map(|n| stage.url("rubbish.test", &format!("/{n}"))).collect();
        stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        for (n, url) in urls.iter().enumerate() {
            assert_record(&stored[url], "ok", Some(200), format!("/{n}").as_bytes(), &[]);
        }
    });
}

/// What follows a response that has no body by its kind belongs to nobody, either.
#[test]
fn bodies_that_cannot_be_are_nobodys() {
    for status in ["204 No Content", "304 Not Modified"] {
        let mut stage = Stage::new(move |asked| match asked.target.as_str() {
            "/1" => say(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{FAKE}", FAKE.len())),
            _ => Reply::text("right"),
        });
        let urls = [stage.url("a.test", "/1"), stage.url("a.test", "/2")];
        stage.crawl(&urls);
        assert_record(&stage.stored()[&urls[1]], "ok", Some(200), b"right", &[]);
        assert_eq!(stage.stored()[&urls[0]].bytes, 0);
    }
}

// robots.txt and memory -------------------------------------------------------------------------------------

/// However robots.txt breaks off, nothing is fetched that its rules forbid, or could have forbidden; rules that never end
/// are rules as far as they were read.
#[test]
fn a_robots_txt_that_breaks_off_allows_nothing() {
    const RULES: &str = "User-agent: *\nDisallow: /no\n";
    by_each_driver(|driver| {
        let mut stage = Stage::with_robots(|asked| match (asked.name(), asked.target.as_str()) {
            ("whole.test", "/robots.txt") => Reply::text(RULES).into(),
            ("endless.test", "/robots.txt") => {
                say(format!("{TO_CLOSE}{RULES}")).forever(0, "# more\n".repeat(1_000))
            }
            ("cut.test", "/robots.txt") => end(with_length(1_000, RULES)),
            ("stalled.test", "/robots.txt") => say(with_length(1_000, RULES)).later(30_000, ""),
            ("malformed.test", "/robots.txt") => end(RULES),
            ("chunk.test", "/robots.txt") => end(format!("{CHUNKED}1d\r\n{RULES}\r\n+1\r\nx\r\n0\r\n\r\n")),
            ("reset.test", "/robots.txt") => reset(&with_length(1_000, RULES)),
            ("late.test", "/robots.txt") => Reply::text(RULES).after_ms(30_000).into(),
            ("empty.test", "/robots.txt") => end(""),
            _ => Reply::text("x").into(),
        });
        stage.settings(&format!("{TIMES}max_doc_size = 1000000\n"));
        let broken = ["cut", "stalled", "malformed", "chunk", "reset", "late", "empty"]
            .map(|name| format!("{name}.test"));
        let hosts: Vec<&str> =
            broken.iter().map(String::as_str).chain(["whole.test", "endless.test"]).collect();
        let urls: Vec<String> =
            hosts.iter().flat_map(|host| ["/no", "/yes"].map(|path| stage.url(host, path))).collect();
        stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
        let places = stage.server.places();
        assert!(places.iter().all(|place| !place.ends_with("/no")), "{places:?}");
        for host in ["whole.test", "endless.test"] {
            assert!(places.contains(&format!("{host}/yes")), "{host}: {places:?}");
        }
        for host in ["malformed.test", "late.test", "empty.test"] {
            assert!(!places.contains(&format!("{host}/yes")), "{host}: {places:?}");
        }
        stage.assert_proved();
    });
}

/// When the memory for documents is used up, further ones wait, and all of them come.
#[test]
fn documents_wait_for_memory() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|_| {
            let body = text(600_000);
            say(with_length(600_000, &body[..300_000])).later(50, &body[300_000..])
        });
        stage.settings("[spider]\nmax_doc_size = 1000000\nbody_memory = 1000000\n");
        let urls: Vec<String> = (0..30).map(|n| stage.url(&format!("h{n}.test"), "/")).collect();
        stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        for url in &urls {
            assert_record(&stored[url], "ok", Some(200), text(600_000).as_bytes(), &[]);
        }
    });
}
