//! The promise: of what servers send, the lenient rules are accepted, the dangerous ones are refused, and how the
//! bytes were cut on their way changes nothing.

use crate::support::*;
use std::time::Duration;

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    result: &'static str,
    status: Option<u16>,
    body: Vec<u8>,
    flags: &'static [&'static str],
}

fn case(name: &'static str, bytes: impl Into<Vec<u8>>) -> Case {
    Case { name, bytes: bytes.into(), result: "ok", status: Some(200), body: b"hi".to_vec(), flags: &[] }
}

impl Case {
    fn flags(mut self, flags: &'static [&'static str]) -> Case {
        self.flags = flags;
        self
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Case {
        self.body = body.into();
        self
    }

    fn result(mut self, result: &'static str) -> Case {
        self.result = result;
        self
    }

    fn status(mut self, status: u16) -> Case {
        self.status = Some(status);
        self
    }

    /// Refused before the head was had: nothing is kept.
    fn refused(mut self) -> Case {
        (self.result, self.status, self.body) = ("malformed", None, Vec::new());
        self
    }
}

fn with_headers(headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\nhi")
}

fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

fn lines(count: usize) -> String {
    let filler: String = (1..count).map(|n| format!("X-{n}: y\r\n")).collect();
    with_headers(&format!("{filler}Content-Length: 2"))
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let wait = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    vec![
        case("plain", ok),
        case("LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
        case("bare CR in a header", with_headers("X: a\rb\r\nContent-Length: 2")).refused(),
        case("blank line first", format!("\r\n{ok}")).refused(),
        case("noindex in a second header", with_headers("X-Robots-Tag: noarchive\r\nX-Robots-Tag: none\r\nContent-Length: 2")).flags(&["noindex"]),
        case("no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi"),
        case("HTTP/1.0 to the close", "HTTP/1.0 200 OK\r\n\r\nhi"),
        case("HTTP/1.7", "HTTP/1.7 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        case("lower case", "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(),
        case("HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(),
        case("ICY", "ICY 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(),
        case("HTTP/0.9", "<html>hi</html>\n").refused(),
        case("two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nhi").refused(),
        case("four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nhi").refused(),
        case("space before the first header", with_headers(" X: y\r\nContent-Length: 2")).refused(),
        case("folded header", with_headers("X: a\r\n  b\r\nContent-Length: 2")),
        case("space before the colon", with_headers("Content-Length : 2")).flags(&["space_before_colon"]),
        case("NUL in a header", with_headers("X: a\0b\r\nContent-Length: 2")).refused(),
        case("no colon", with_headers("Rubbish\r\nContent-Length: 2")).refused(),
        case("256 headers", lines(256)),
        case("257 headers", lines(257)).refused(),
        case("a head of 70 KB", with_headers(&format!("X: {}\r\nContent-Length: 2", "y".repeat(70_000)))).refused(),
        case("a head of 60 KB", with_headers(&format!("X: {}\r\nContent-Length: 2", "y".repeat(60_000)))),
        case("8 times 1xx", format!("{}{ok}", wait.repeat(8))),
        case("9 times 1xx", format!("{}{ok}", wait.repeat(9))).refused(),
        case("204 has no body", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nhi").status(204).body(""),
        case("equal lengths", with_headers("Content-Length: 2\r\nContent-Length: 2")),
        case("a list of equal lengths", with_headers("Content-Length: 2, 2")),
        case("unequal lengths", with_headers("Content-Length: 2\r\nContent-Length: 3")).refused(),
        case("a list of unequal lengths", with_headers("Content-Length: 2, 3")).refused(),
        case("signed length", with_headers("Content-Length: +2")).refused(),
        case("negative length", with_headers("Content-Length: -2")).refused(),
        case("hex length", with_headers("Content-Length: 0x2")).refused(),
        case("length of 2^63", with_headers("Content-Length: 9223372036854775808")).refused(),
        case("length of 2^64 + 2", with_headers("Content-Length: 18446744073709551618")).refused(),
        case("short of its length", with_headers("Content-Length: 20")).result("truncated"),
        case("chunks", chunked("1\r\nh\r\n1\r\ni\r\n0\r\n\r\n")),
        case("chunked and a length", with_headers("Transfer-Encoding: chunked\r\nContent-Length: 90").replace("hi", "2\r\nhi\r\n0\r\n\r\n")).flags(&["te_and_cl"]),
        case("chunked in HTTP/1.0", chunked("hi").replace("1.1", "1.0")).flags(&["te_in_http10"]),
        case("capital hex", chunked("A\r\n0123456789\r\n0\r\n\r\n")).body("0123456789"),
        case("leading zeros", chunked("0000000000000002\r\nhi\r\n0\r\n\r\n")),
        case("17 digits", chunked("00000000000000002\r\nhi\r\n0\r\n\r\n")).result("malformed").body(""),
        case("a chunk of 2^64 - 1", chunked("2\r\nhi\r\nffffffffffffffff\r\nx")).result("malformed"),
        case("0x", chunked("2\r\nhi\r\n0x2\r\nno\r\n0\r\n\r\n")).result("malformed"),
        case("signed chunk", chunked("2\r\nhi\r\n+2\r\nno\r\n0\r\n\r\n")).result("malformed"),
        case("negative chunk", chunked("2\r\nhi\r\n-2\r\nno\r\n0\r\n\r\n")).result("malformed"),
        case("space after the size", chunked("2 \r\nhi\r\n0\r\n\r\n")).flags(&["chunk_size_space"]),
        case("LF in chunks", chunked("2\nhi\n0\n\n")).flags(&["bare_lf_chunk"]),
        case("no CRLF after the data", chunked("2\r\nhix\r\n0\r\n\r\n")).result("malformed"),
        case("chunk extensions", chunked("2;a=b;c\r\nhi\r\n0;x\r\n\r\n")),
        case("a flood of extensions", chunked(&format!("2\r\nhi\r\n2;{}\r\nno\r\n0\r\n\r\n", "x".repeat(20_000)))).result("malformed"),
        case("trailers", chunked("2\r\nhi\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n")),
        case("a flood of trailers", chunked(&format!("2\r\nhi\r\n0\r\nX: {}\r\n\r\n", "x".repeat(20_000)))).result("malformed"),
        case("chunks without an end", chunked("2\r\nhi\r\n")).result("truncated"),
        case("to the close", "HTTP/1.1 200 OK\r\n\r\nhi"),
        case("an error keeps its body", "HTTP/1.1 418 Teapot\r\nContent-Length: 2\r\n\r\nhi").result("http_error").status(418),
        case("a status nobody knows", "HTTP/1.1 999 Go away\r\nContent-Length: 2\r\n\r\nhi").result("http_error").status(999),
    ]
}

/// A server with a page per case; `piece` bytes at a time.
fn serve(piece: Option<usize>) -> LogServer {
    let cases = cases();
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
    let cases = cases();
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

/// A URL is at most 8,000 bytes; a longer one is not followed, and does no harm.
#[test]
fn urls_that_are_too_long() {
    let (long, longest) = (format!("/{}", "y".repeat(20_000)), format!("/{}", "z".repeat(7_900)));
    let links = [long, longest.clone(), "/short".to_string()];
    let (targets, _) = one_page(move |_| Reply::links(&links));
    assert_eq!(targets, ["/", "/short", &longest]);
}
