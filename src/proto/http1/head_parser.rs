//! From status line and header lines to the facts of a head.

use memchr::memchr;

use super::flags::Flags;
use super::framing::{Answer, FramingFacts};
use super::head::{Head, HeadError, HeadLimits, HeadStep};
use super::headers::{Known, is_space, trim_end, trim_start};
use super::method::Method;
use super::scan::{colon, line_stop};
use super::span::Span;

/// What every status line starts with. The minor version is the byte that follows.
const PROTOCOL: &[u8] = b"HTTP/1.";

/// Reads the head of one response, however its bytes are cut.
///
/// ```text
///   0 ≤ head_start ≤ line_start ≤ scanned ≤ bytes.len()
///   │ interim heads │ lines read │ no line end here │ not seen yet
/// ```
///
/// A header is read when the byte after its line is known, because a fold would continue it. After
/// [`HeadStep::Done`] or an error the parser is spent.
#[derive(Clone, Copy)]
pub struct HeadParser {
    limits: HeadLimits,
    method: Method,
    stage: Stage,
    interim_count: u8,
    head_start: u32,
    /// Start of the status line or header being read, folded lines included.
    line_start: u32,
    /// The search for a line end goes on here.
    scanned: u32,
    facts: Facts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The status line of this head is not whole yet.
    Status,
    /// Header lines, up to the blank one.
    Headers,
}

/// What one head said so far.
#[derive(Clone, Copy, Default)]
struct Facts {
    status: u16,
    version_minor: u8,
    /// The header at `line_start` has folded lines.
    folded: bool,
    header_lines: u16,
    flags: Flags,
    framing: FramingFacts,
    content_type: Span,
    content_encoding: Span,
    location: Span,
    retry_after: Span,
    etag: Span,
    last_modified: Span,
    x_robots_tag: Span,
}

/// The end of a line: where its text ends, and where the next line begins.
struct LineEnd {
    text_end: usize,
    next: usize,
}

impl HeadParser {
    pub fn new(limits: HeadLimits, method: Method) -> HeadParser {
        HeadParser {
            limits,
            method,
            stage: Stage::Status,
            interim_count: 0,
            head_start: 0,
            line_start: 0,
            scanned: 0,
            facts: Facts::default(),
        }
    }

    /// Reads on. `bytes` is everything received of this response, from its first byte.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<HeadStep, HeadError> {
        assert!(self.scanned as usize <= bytes.len(), "the bytes of a response only grow");
        // Nothing past the limit is ever looked at, so offsets fit 32 bits and the verdict does not depend
        // on how much came at once.
        let window = &bytes[..bytes.len().min(self.limits.head_bytes_max as usize)];
        let step = self.read_lines(window);
        debug_assert!(self.invariants(window));
        match step? {
            HeadStep::NeedMore if window.len() == self.limits.head_bytes_max as usize => {
                Err(HeadError::HeadTooLarge)
            }
            step => Ok(step),
        }
    }

    fn invariants(&self, window: &[u8]) -> bool {
        self.head_start <= self.line_start
            && self.line_start <= self.scanned
            && self.scanned as usize <= window.len()
    }

    fn read_lines(&mut self, window: &[u8]) -> Result<HeadStep, HeadError> {
        loop {
            let line_start = self.line_start as usize;
            self.check_start(&window[line_start..])?;
            let Some(LineEnd { text_end, next }) = self.line_end(window)? else {
                return Ok(HeadStep::NeedMore);
            };
            match self.stage {
                Stage::Status => {
                    self.status_line(&window[line_start..text_end])?;
                    self.start_line(next);
                    self.stage = Stage::Headers;
                }
                Stage::Headers if text_end == line_start => {
                    if !is_interim(self.facts.status) {
                        return Ok(HeadStep::Done(self.head(next)));
                    }
                    self.start_line(next);
                    self.head_start = self.line_start;
                    self.facts = Facts::default();
                    self.stage = Stage::Status;
                }
                Stage::Headers => {
                    let Some(&peeked) = window.get(next) else {
                        // A fold may follow. The line end is found again at once when the next byte is here.
                        self.scanned = text_end as u32;
                        return Ok(HeadStep::NeedMore);
                    };
                    if self.facts.header_lines == self.limits.header_lines_max {
                        return Err(HeadError::TooManyHeaderLines);
                    }
                    self.facts.header_lines += 1;
                    if is_space(peeked) {
                        self.facts.folded = true;
                        self.scanned = next as u32;
                    } else {
                        self.facts.header(&window[..text_end], line_start)?;
                        self.start_line(next);
                    }
                }
            }
        }
    }

    /// What is wrong with a line by its first bytes alone, before its end is looked for.
    #[inline]
    fn check_start(&self, line: &[u8]) -> Result<(), HeadError> {
        match self.stage {
            // Another protocol may never send a line end.
            Stage::Status if !line.starts_with(PROTOCOL) && !PROTOCOL.starts_with(line) => {
                Err(HeadError::NotHttp1)
            }
            Stage::Headers if self.facts.header_lines == 0 && line.first().copied().is_some_and(is_space) => {
                Err(HeadError::SpaceBeforeFirstHeader)
            }
            Stage::Status | Stage::Headers => Ok(()),
        }
    }

    /// One search finds the end of the line and every byte that must not be in it.
    #[inline]
    fn line_end(&mut self, window: &[u8]) -> Result<Option<LineEnd>, HeadError> {
        let scanned = self.scanned as usize;
        let Some(found) = line_stop(&window[scanned..]) else {
            self.scanned = window.len() as u32;
            return Ok(None);
        };
        let text_end = scanned + found;
        match (window[text_end], window.get(text_end + 1)) {
            (b'\r', Some(b'\n')) => Ok(Some(LineEnd { text_end, next: text_end + 2 })),
            (b'\r', None) => {
                self.scanned = text_end as u32;
                Ok(None)
            }
            (b'\r', Some(_)) => Err(HeadError::BareCr),
            (b'\n', _) => Ok(Some(LineEnd { text_end, next: text_end + 1 })),
            _ => Err(HeadError::Nul),
        }
    }

    fn start_line(&mut self, next: usize) {
        self.line_start = next as u32;
        self.scanned = next as u32;
    }

    /// `HTTP/1.`, one digit, white space, three digits, and then nothing or white space and any reason.
    fn status_line(&mut self, line: &[u8]) -> Result<(), HeadError> {
        let Some([minor @ b'0'..=b'9', rest @ ..]) = line.strip_prefix(PROTOCOL) else {
            return Err(HeadError::BadStatusLine);
        };
        let spaces = rest.iter().take_while(|&&byte| is_status_space(byte)).count();
        let code = &rest[spaces..];
        let [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = code else {
            return Err(HeadError::BadStatusLine);
        };
        if spaces == 0 || reason.first().is_some_and(|&byte| !is_status_space(byte)) {
            return Err(HeadError::BadStatusLine);
        }
        self.facts.version_minor = minor - b'0';
        self.facts.status = [a, b, c].iter().fold(0, |code, &digit| code * 10 + u16::from(digit - b'0'));
        if is_interim(self.facts.status) {
            if self.interim_count == self.limits.interim_max {
                return Err(HeadError::TooManyInterim);
            }
            self.interim_count += 1;
        }
        Ok(())
    }

    fn head(&self, head_bytes: usize) -> Head {
        let facts = &self.facts;
        let answer = Answer { method: self.method, status: facts.status, version_minor: facts.version_minor };
        Head {
            status: facts.status,
            version_minor: facts.version_minor,
            framing: facts.framing.framing(answer),
            keep_alive: facts.framing.keep_alive(answer),
            flags: facts.flags | facts.framing.flags(answer),
            head_start: self.head_start,
            head_bytes: head_bytes as u32,
            content_type: facts.content_type,
            content_encoding: facts.content_encoding,
            location: facts.location,
            retry_after: facts.retry_after,
            etag: facts.etag,
            last_modified: facts.last_modified,
            x_robots_tag: facts.x_robots_tag,
        }
    }
}

impl Facts {
    /// Notes the header that lies at `start..` of `window`, folded lines included.
    #[inline]
    fn header(&mut self, window: &[u8], start: usize) -> Result<(), HeadError> {
        let field = &window[start..];
        let name_end = colon(field).ok_or(HeadError::NoColon)?;
        let mut name = &field[..name_end];
        if self.folded {
            self.folded = false;
            // The colon must stand on the first line, or that line has none.
            if memchr(b'\n', name).is_some() {
                return Err(HeadError::NoColon);
            }
        }
        match name.last() {
            None => self.flags.insert(Flags::EMPTY_NAME),
            Some(&byte) if is_space(byte) => {
                self.flags.insert(Flags::SPACE_BEFORE_COLON);
                name = trim_end(name);
            }
            Some(_) => {}
        }
        let Some(known) = Known::of(name) else {
            return Ok(());
        };
        let raw = trim_start(&field[name_end + 1..]);
        let value = trim_end(raw);
        // Both end with the field, so what is left of the one is the offset in the other.
        let span = Span::new((window.len() - raw.len()) as u32, value.len() as u32);
        match known {
            Known::Connection => self.framing.connection(value),
            Known::ContentLength => self.framing.content_length(value)?,
            Known::TransferEncoding => self.framing.transfer_encoding(value),
            Known::ContentEncoding => note_first(&mut self.content_encoding, span),
            Known::ContentType => note_first(&mut self.content_type, span),
            Known::Etag => note_first(&mut self.etag, span),
            Known::LastModified => note_first(&mut self.last_modified, span),
            Known::Location => note_first(&mut self.location, span),
            Known::RetryAfter => note_first(&mut self.retry_after, span),
            Known::XRobotsTag => note_first(&mut self.x_robots_tag, span),
        }
        Ok(())
    }
}

#[inline]
fn note_first(known: &mut Span, span: Span) {
    if !known.is_set() {
        *known = span;
    }
}

/// What may part the words of a status line: SP, HTAB, VT and FF.
fn is_status_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

fn is_interim(status: u16) -> bool {
    (100..200).contains(&status)
}

#[cfg(test)]
mod tests {
    use super::super::framing::Framing;
    use super::*;

    const OK: &str = "HTTP/1.1 200 OK\r\n";

    fn parse_as(method: Method, bytes: &[u8]) -> Result<Head, HeadError> {
        match HeadParser::new(HeadLimits::default(), method).parse(bytes)? {
            HeadStep::Done(head) => Ok(head),
            HeadStep::NeedMore => {
                panic!("a whole head, yet more is needed: {:?}", bytes.escape_ascii().to_string())
            }
        }
    }

    fn parse(text: &str) -> Result<Head, HeadError> {
        parse_as(Method::Get, text.as_bytes())
    }

    /// A head with these header lines.
    fn with(lines: &str) -> Result<Head, HeadError> {
        parse(&format!("{OK}{lines}\r\n"))
    }

    fn pairs(text: &str) -> Vec<(String, String)> {
        let head = parse(text).expect("accepted");
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        head.headers(text.as_bytes()).map(|(name, value)| (text_of(name), text_of(&value))).collect()
    }

    #[test]
    fn lf_alone_ends_a_line() {
        let text = "HTTP/1.1 200 OK\nA: 1\r\nContent-Length: 3\n\nabc";
        let head = parse(text).unwrap();
        assert_eq!((head.framing, head.head_bytes as usize), (Framing::Length(3), text.len() - 3));
        assert!(head.keep_alive && head.flags == Flags::NONE);
    }

    #[test]
    fn a_bare_cr_is_refused() {
        for lines in ["A: b\rc\r\n", "A: b\r\r\n", "A\r: b\r\n", "\rA: b\r\n"] {
            assert_eq!(with(lines), Err(HeadError::BareCr), "{lines:?}");
        }
        assert_eq!(parse("HTTP/1.1 200 O\rK\r\n\r\n"), Err(HeadError::BareCr));
        assert_eq!(parse("HTTP/1.1\r200 OK\r\n\r\n"), Err(HeadError::BareCr));
    }

    #[test]
    fn status_lines_accepted() {
        for (line, version_minor, status) in [
            ("HTTP/1.1 200 OK", 1, 200),
            ("HTTP/1.0 404 Not Found", 0, 404),
            ("HTTP/1.1 200", 1, 200),
            ("HTTP/1.1 200 ", 1, 200),
            ("HTTP/1.1\t \x0b\x0c301\tMoved", 1, 301),
            ("HTTP/1.9 599 \u{e9}\x01\x7f", 9, 599),
            ("HTTP/1.1 999 No", 1, 999),
            ("HTTP/1.1 007 No", 1, 7),
        ] {
            let head = parse(&format!("{line}\r\n\r\n")).expect(line);
            assert_eq!((head.version_minor, head.status), (version_minor, status), "{line:?}");
        }
    }

    #[test]
    fn status_lines_refused() {
        for line in [
            "HTTP/1. 200 OK",
            "HTTP/1.x 200 OK",
            "HTTP/1.10 200 OK",
            "HTTP/1.1200 OK",
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 20 OK",
            "HTTP/1.1 2000 OK",
            "HTTP/1.1 200OK",
            "HTTP/1.1 +20 OK",
            "HTTP/1.1 OK",
        ] {
            assert_eq!(parse(&format!("{line}\r\n\r\n")), Err(HeadError::BadStatusLine), "{line:?}");
        }
    }

    #[test]
    fn other_protocols_are_refused_by_their_first_bytes() {
        for text in [
            "ICY 200 OK\r\n",
            "<html>",
            "HTTP/2 200\r\n",
            "HTTP/0.9 200",
            "http/1.1 200 OK",
            "HTTPS/1.1",
            "SSH-2.0",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "\nHTTP/1.1 200 OK\r\n\r\n",
            " HTTP/1.1 200 OK",
            "H\n",
            "\0",
            "\u{feff}HTTP",
        ] {
            assert_eq!(parse(text), Err(HeadError::NotHttp1), "{text:?}");
        }
    }

    #[test]
    fn white_space_before_the_first_header_is_refused() {
        assert_eq!(with(" A: b\r\n"), Err(HeadError::SpaceBeforeFirstHeader));
        assert_eq!(with("\tA: b\r\n"), Err(HeadError::SpaceBeforeFirstHeader));
        assert_eq!(with(" \r\n"), Err(HeadError::SpaceBeforeFirstHeader));
    }

    #[test]
    fn folds_are_joined_with_one_space() {
        let text = format!("{OK}A: x \r\n \t y\nLocation:\r\n /a\r\n\t/b \r\nContent-Length:\n 5\r\n\r\n");
        let want = [("A", "x y"), ("Location", "/a /b"), ("Content-Length", "5")];
        assert_eq!(pairs(&text), want.map(|(name, value)| (name.to_string(), value.to_string())));
        let head = parse(&text).unwrap();
        assert_eq!(head.location.of(text.as_bytes()), b"/a\r\n\t/b");
        assert_eq!(head.framing, Framing::Length(5));
    }

    #[test]
    fn space_before_the_colon_is_trimmed_and_flagged() {
        let text = format!("{OK}Content-Length \t: 5\r\n\r\n");
        let head = parse(&text).unwrap();
        assert_eq!((head.framing, head.flags), (Framing::Length(5), Flags::SPACE_BEFORE_COLON));
        assert_eq!(pairs(&text), [("Content-Length".to_string(), "5".to_string())]);
    }

    #[test]
    fn nul_and_lines_without_a_colon_are_refused() {
        assert_eq!(with("A: b\0c\r\n"), Err(HeadError::Nul));
        assert_eq!(with("A\0: b\r\n"), Err(HeadError::Nul));
        assert_eq!(with("A: b\r\nrubbish\r\n"), Err(HeadError::NoColon));
        assert_eq!(with("rubbish\r\n : x\r\n"), Err(HeadError::NoColon));
        assert_eq!(with(": b\r\n").unwrap().flags, Flags::EMPTY_NAME);
    }

    #[test]
    fn the_head_is_bounded_in_bytes() {
        let limits = HeadLimits { head_bytes_max: 64, ..HeadLimits::default() };
        let head_of = |bytes: usize| format!("{OK}A: {}\r\n\r\n", "x".repeat(bytes - OK.len() - 7));
        let parse = |text: &str| HeadParser::new(limits, Method::Get).parse(text.as_bytes());
        assert!(matches!(parse(&head_of(64)), Ok(HeadStep::Done(Head { head_bytes: 64, .. }))));
        assert_eq!(parse(&head_of(65)), Err(HeadError::HeadTooLarge));
        assert_eq!(parse(&head_of(65)[..63]), Ok(HeadStep::NeedMore));
        assert_eq!(parse(&head_of(65)[..64]), Err(HeadError::HeadTooLarge));
        let large = format!("A: {}\r\n", "x".repeat(64 * 1024));
        assert_eq!(with(&large), Err(HeadError::HeadTooLarge));
    }

    #[test]
    fn the_head_is_bounded_in_lines() {
        assert!(with(&"A: b\r\n".repeat(256)).is_ok());
        assert_eq!(with(&"A: b\r\n".repeat(257)), Err(HeadError::TooManyHeaderLines));
        assert!(with(&format!("A: b\r\n{}", " c\r\n".repeat(255))).is_ok());
        assert_eq!(with(&format!("A: b\r\n{}", " c\r\n".repeat(256))), Err(HeadError::TooManyHeaderLines));
    }

    #[test]
    fn interim_heads_are_skipped_up_to_eight() {
        let interim = "HTTP/1.1 103 Early Hints\r\nLocation : /early\r\nContent-Length: 9\r\n\r\n";
        let last = format!("{OK}Content-Length: 2\r\n\r\n");
        let text = format!("{}{last}", interim.repeat(8));
        let head = parse(&text).unwrap();
        assert_eq!((head.status, head.framing, head.flags), (200, Framing::Length(2), Flags::NONE));
        assert!(head.location.range().is_empty());
        assert_eq!(head.head_start as usize, interim.len() * 8);
        assert_eq!(head.head_bytes as usize, text.len());
        assert_eq!(pairs(&text).len(), 1);
        assert_eq!(parse(&format!("{}{last}", interim.repeat(9))), Err(HeadError::TooManyInterim));
    }

    #[test]
    fn head_204_and_304_have_no_body() {
        let lines = "Content-Length: 5\r\n\r\n";
        let head = parse_as(Method::Head, format!("{OK}{lines}").as_bytes()).unwrap();
        assert_eq!((head.framing, head.keep_alive), (Framing::None, true));
        for status in ["204", "304"] {
            for lines in [lines, "Transfer-Encoding: chunked\r\n\r\n", "\r\n"] {
                let head = parse(&format!("HTTP/1.1 {status} x\r\n{lines}")).unwrap();
                // A 304 tells the length of what is not sent; a 204 that does so is not to be trusted.
                let kept = status == "304" || lines == "\r\n";
                assert_eq!((head.framing, head.keep_alive), (Framing::None, kept), "{status} {lines:?}");
            }
        }
    }

    #[test]
    fn transfer_encoding_beats_content_length() {
        for lines in [
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\ntransfer-encoding: Chunked\r\n",
        ] {
            let head = with(lines).unwrap();
            assert_eq!(
                (head.framing, head.keep_alive, head.flags),
                (Framing::Chunked, false, Flags::TE_AND_CL)
            );
        }
    }

    #[test]
    fn other_transfer_codings_run_to_close() {
        let head = with("Transfer-Encoding: chunked, identity\r\n").unwrap();
        assert_eq!((head.framing, head.keep_alive, head.flags), (Framing::Close, false, Flags::NONE));
        let text = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
        let head = parse(text).unwrap();
        assert_eq!((head.framing, head.keep_alive, head.flags), (Framing::Close, false, Flags::TE_IN_HTTP10));
    }

    #[test]
    fn content_lengths_are_checked() {
        assert_eq!(
            with("Content-Length: 5\r\nContent-Length: 5, 5\r\n").unwrap().framing,
            Framing::Length(5)
        );
        assert_eq!(with("Content-Length: 5\r\nContent-Length: 6\r\n"), Err(HeadError::UnequalContentLength));
        assert_eq!(with("Content-Length: -5\r\n"), Err(HeadError::BadContentLength));
        assert_eq!(with("Content-Length: 9223372036854775808\r\n"), Err(HeadError::BadContentLength));
    }

    #[test]
    fn connections_live_on_by_version_and_token() {
        assert!(with("Content-Length: 0\r\n").unwrap().keep_alive);
        assert!(!with("Content-Length: 0\r\nConnection: x, Close\r\n").unwrap().keep_alive);
        assert_eq!(with("").map(|head| (head.framing, head.keep_alive)), Ok((Framing::Close, false)));
        let old =
            |lines: &str| parse(&format!("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n{lines}\r\n")).unwrap();
        assert!(!old("").keep_alive);
        assert!(old("Connection: Keep-Alive\r\n").keep_alive);
    }

    #[test]
    fn spans_hold_the_first_value_trimmed() {
        let text = format!(
            "{OK}Content-Type:text/html \r\nCONTENT-TYPE: b\r\nContent-Encoding: \t gzip\r\nLocation: /x\r\n\
             Retry-After: 9\r\nETag: \"e\"\r\nLast-Modified: now\r\nX-Robots-Tag: noindex\r\nX-Robots-Tag: nofollow\r\n\r\nbody"
        );
        let head = parse(&text).unwrap();
        let bytes = text.as_bytes();
        assert_eq!(head.content_type.of(bytes), b"text/html");
        assert_eq!(head.content_encoding.of(bytes), b"gzip");
        assert_eq!(head.location.of(bytes), b"/x");
        assert_eq!(head.retry_after.of(bytes), b"9");
        assert_eq!(head.etag.of(bytes), b"\"e\"");
        assert_eq!(head.last_modified.of(bytes), b"now");
        assert_eq!(head.x_robots_tag.of(bytes), b"noindex");
        let empty = with("Location: \r\nLocation: /x\r\n").unwrap();
        assert!(empty.location.range().is_empty());
    }
}
