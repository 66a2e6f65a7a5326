//! Responses as bytes, a row each, with what must be made of them. Both `responses` (a crawl meets them) and `parse`
//! (the parser reads them, whole and cut at every byte) go through all rows.
//!
//! A row is `case(name, bytes)`: a 200 of HTTP/1.1 with a Content-Length and the body "hi", kept alive. What differs is
//! said by the methods after it.

#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// The result code of a crawl.
    pub result: &'static str,
    /// `None` if nothing is kept.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    pub flags: &'static [&'static str],
    pub framing: &'static str,
    /// Whether the connection lives on after the response, if nothing follows it.
    pub keep_alive: bool,
    /// Bytes at the end that are not the response's own.
    pub left_over: usize,
    /// What `parse` says instead of a response.
    pub error: Option<&'static str>,
    /// Answers a HEAD.
    pub head: bool,
    /// Not for a crawl.
    pub parse_only: bool,
}

pub fn case(name: &'static str, bytes: impl Into<Vec<u8>>) -> Case {
    Case {
        name,
        bytes: bytes.into(),
        result: "ok",
        status: Some(200),
        body: b"hi".to_vec(),
        flags: &[],
        framing: "length",
        keep_alive: true,
        left_over: 0,
        error: None,
        head: false,
        parse_only: false,
    }
}

/// A row whose body, as given, is in chunks.
pub fn chunks(name: &'static str, body: &str) -> Case {
    Case { framing: "chunked", ..case(name, chunked(body)) }
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

    fn status(mut self, status: u16) -> Case {
        self.status = Some(status);
        self
    }

    /// Any status but 2xx keeps its body, and is no success.
    fn http_error(mut self, status: u16) -> Case {
        (self.result, self.status) = ("http_error", Some(status));
        self
    }

    fn framing(mut self, framing: &'static str) -> Case {
        self.framing = framing;
        self
    }

    /// The connection does not live on.
    fn closes(mut self) -> Case {
        self.keep_alive = false;
        self
    }

    /// The body runs to the end of the connection.
    fn until_close(self) -> Case {
        self.framing("close").closes()
    }

    /// The connection ends before the body does.
    fn truncated(mut self) -> Case {
        self.result = "truncated";
        self.closes()
    }

    /// So many bytes at the end are nobody's.
    fn left_over(mut self, bytes: usize) -> Case {
        self.left_over = bytes;
        self
    }

    /// The answer to a HEAD.
    fn head(mut self) -> Case {
        self.head = true;
        self.parse_only()
    }

    fn parse_only(mut self) -> Case {
        self.parse_only = true;
        self
    }

    /// Refused before the head was had: nothing is kept.
    fn refused(mut self, error: &'static str) -> Case {
        (self.result, self.status, self.body) = ("malformed", None, Vec::new());
        self.error = Some(error);
        self
    }

    /// The framing breaks after good chunks: a crawl keeps what came, `parse` has nothing to say of the response.
    fn malformed(mut self, error: &'static str) -> Case {
        self.result = "malformed";
        self.error = Some(error);
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

const NOT_HTTP1: &str = "the response does not start with HTTP/1.";
const BAD_STATUS_LINE: &str = "the status line is not a version, white space and three digits";
const BAD_LENGTH: &str = "Content-Length is not a number below 2^63";
const UNEQUAL: &str = "several Content-Length values that differ";
const BARE_CR: &str = "CR without LF in the head";
const BAD_SIZE: &str = "a chunk size that is not hex digits";
const SIZE_TOO_LARGE: &str = "a chunk size of more than 16 digits, or not below 2^63";

#[rustfmt::skip]
pub fn cases() -> Vec<Case> {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let wait = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    vec![
        case("plain", ok),
        case("LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
        case("bare CR in a header", with_headers("X: a\rb\r\nContent-Length: 2")).refused(BARE_CR),
        case("blank line first", format!("\r\n{ok}")).refused(NOT_HTTP1),
        case("no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi"),
        case("HTTP/1.0 to the close", "HTTP/1.0 200 OK\r\n\r\nhi").until_close(),
        case("HTTP/1.7", "HTTP/1.7 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        case("lower case", "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(NOT_HTTP1),
        case("HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(NOT_HTTP1),
        case("ICY", "ICY 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(NOT_HTTP1),
        case("HTTP/0.9", "<html>hi</html>\n").refused(NOT_HTTP1),
        case("two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nhi").refused(BAD_STATUS_LINE),
        case("four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nhi").refused(BAD_STATUS_LINE),
        case("space before the first header", with_headers(" X: y\r\nContent-Length: 2")).refused("white space before the first header"),
        case("folded header", with_headers("X: a\r\n  b\r\nContent-Length: 2")),
        case("space before the colon", with_headers("Content-Length : 2")).flags(&["space_before_colon"]),
        case("NUL in a header", with_headers("X: a\0b\r\nContent-Length: 2")).refused("NUL in the head"),
        case("no colon", with_headers("Rubbish\r\nContent-Length: 2")).refused("a header line without a colon"),
        case("256 headers", lines(256)),
        case("257 headers", lines(257)).refused("more header lines than the limit"),
        case("a head of 70 KB", with_headers(&format!("X: {}\r\nContent-Length: 2", "y".repeat(70_000)))).refused("the head is larger than the limit"),
        case("a head of 60 KB", with_headers(&format!("X: {}\r\nContent-Length: 2", "y".repeat(60_000)))),
        case("8 times 1xx", format!("{}{ok}", wait.repeat(8))),
        case("9 times 1xx", format!("{}{ok}", wait.repeat(9))).refused("more interim responses than the limit"),
        case("204 has no body", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nhi").status(204).body("").framing("none").closes().left_over(2),
        case("equal lengths", with_headers("Content-Length: 2\r\nContent-Length: 2")),
        case("a list of equal lengths", with_headers("Content-Length: 2, 2")),
        case("unequal lengths", with_headers("Content-Length: 2\r\nContent-Length: 3")).refused(UNEQUAL),
        case("a list of unequal lengths", with_headers("Content-Length: 2, 3")).refused(UNEQUAL),
        case("signed length", with_headers("Content-Length: +2")).refused(BAD_LENGTH),
        case("negative length", with_headers("Content-Length: -2")).refused(BAD_LENGTH),
        case("hex length", with_headers("Content-Length: 0x2")).refused(BAD_LENGTH),
        case("length of 2^63", with_headers("Content-Length: 9223372036854775808")).refused(BAD_LENGTH),
        case("length of 2^64 + 2", with_headers("Content-Length: 18446744073709551618")).refused(BAD_LENGTH),
        case("short of its length", with_headers("Content-Length: 20")).truncated(),
        chunks("chunks", "1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"),
        case("chunked and a length", with_headers("Transfer-Encoding: chunked\r\nContent-Length: 90").replace("hi", "2\r\nhi\r\n0\r\n\r\n")).flags(&["te_and_cl"]).framing("chunked").closes(),
        case("chunked in HTTP/1.0", chunked("hi").replace("1.1", "1.0")).flags(&["te_in_http10"]).until_close(),
        chunks("capital hex", "A\r\n0123456789\r\n0\r\n\r\n").body("0123456789"),
        chunks("leading zeros", "0000000000000002\r\nhi\r\n0\r\n\r\n"),
        chunks("17 digits", "00000000000000002\r\nhi\r\n0\r\n\r\n").malformed(SIZE_TOO_LARGE).body(""),
        chunks("a chunk of 2^64 - 1", "2\r\nhi\r\nffffffffffffffff\r\nx").malformed(SIZE_TOO_LARGE),
        chunks("0x", "2\r\nhi\r\n0x2\r\nno\r\n0\r\n\r\n").malformed(BAD_SIZE),
        chunks("signed chunk", "2\r\nhi\r\n+2\r\nno\r\n0\r\n\r\n").malformed(BAD_SIZE),
        chunks("negative chunk", "2\r\nhi\r\n-2\r\nno\r\n0\r\n\r\n").malformed(BAD_SIZE),
        chunks("space after the size", "2 \r\nhi\r\n0\r\n\r\n").flags(&["chunk_size_space"]),
        chunks("LF in chunks", "2\nhi\n0\n\n").flags(&["bare_lf_chunk"]).closes(),
        chunks("no CRLF after the data", "2\r\nhix\r\n0\r\n\r\n").malformed("chunk data that goes on past its size"),
        chunks("chunk extensions", "2;a=b;c\r\nhi\r\n0;x\r\n\r\n"),
        chunks("a flood of extensions", &format!("2\r\nhi\r\n2;{}\r\nno\r\n0\r\n\r\n", "x".repeat(20_000))).malformed("more bytes of chunk extensions than the limit"),
        chunks("trailers", "2\r\nhi\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n"),
        chunks("a flood of trailers", &format!("2\r\nhi\r\n0\r\nX: {}\r\n\r\n", "x".repeat(20_000))).malformed("more bytes of trailers than the limit"),
        chunks("chunks without an end", "2\r\nhi\r\n").truncated(),
        case("to the close", "HTTP/1.1 200 OK\r\n\r\nhi").until_close(),
        case("an error keeps its body", "HTTP/1.1 418 Teapot\r\nContent-Length: 2\r\n\r\nhi").http_error(418),
        case("a status nobody knows", "HTTP/1.1 999 Go away\r\nContent-Length: 2\r\n\r\nhi").http_error(999),
        case("bare CR in the status line", "HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nhi").refused(BARE_CR),
        case("tabs in the status line", "HTTP/1.1\t200\tOK\r\nContent-Length: 2\r\n\r\nhi"),
        case("no minor version", "HTTP/1 200 OK\r\nContent-Length: 2\r\n\r\nhi").refused(NOT_HTTP1),
        case("empty length", with_headers("Content-Length:")).refused(BAD_LENGTH),
        case("no name", with_headers(": x\r\nContent-Length: 2")).flags(&["empty_name"]),
        case("bytes that are not UTF-8", b"HTTP/1.1 200 OK\r\nX: \xe9\xff\r\nContent-Length: 2\r\n\r\nhi"),
        case("close by the server's word", with_headers("Connection: close\r\nContent-Length: 2")).closes(),
        case("HTTP/1.0 kept alive", with_headers("Connection: keep-alive\r\nContent-Length: 2").replace("1.1", "1.0")),
        case("HTTP/1.0 with a length", with_headers("Content-Length: 2").replace("1.1", "1.0")).closes(),
        case("an empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").body(""),
        case("bytes after the response", format!("{ok}no")).left_over(2),
        // Sent late enough, it would be the answer to whatever is asked next: no crawl can tell.
        case("a response after the response", format!("{ok}HTTP/1.1 200 OK\r\n\r\n")).left_over(19).parse_only(),
        case("204 and nothing else", "HTTP/1.1 204 No\r\n\r\n").status(204).body("").framing("none"),
        case("204 that announces a body", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n").status(204).body("").framing("none").closes(),
        case("304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n").status(304).body("").framing("none").parse_only(),
        case("304 with one all the same", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nhi").status(304).body("").framing("none").left_over(2).parse_only(),
        case("HEAD has no body", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n").head().body("").framing("none"),
        case("HEAD with one all the same", ok).head().body("").framing("none").left_over(2),
        case("a last coding that is not chunked", with_headers("Transfer-Encoding: chunked, identity")).until_close(),
        case("chunked comes last", with_headers("Transfer-Encoding: identity\r\nTransfer-Encoding: Chunked").replace("hi", "2\r\nhi\r\n0\r\n\r\n")).framing("chunked"),
        case("interim heads, one with lines of the final one", format!("HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\n{wait}{ok}")),
        chunks("bytes after the chunks", "2\r\nhi\r\n0\r\n\r\nx").left_over(1),
        chunks("a bare CR in an extension", "2;a\rb\r\nhi\r\n0\r\n\r\n").malformed("CR without LF in chunk framing").body(""),
        chunks("no chunks at all", "0\r\n\r\n").body(""),
        // `parse` leaves content codings alone; what a crawl makes of them is tested with the decoders.
        case("a content coding stays", with_headers("Content-Encoding: br\r\nContent-Length: 2")).parse_only(),
        case("of 16 MiB", format!("HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n{}", "x".repeat(16 << 20))).body("x".repeat(16 << 20)).parse_only(),
        case("larger than 16 MiB", format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat((16 << 20) + 1))).body("x".repeat(16 << 20)).flags(&["cut"]).framing("close").truncated().parse_only(),
    ]
}
