//! Request heads: just enough of HTTP/1.1 to know what is asked for and where the next request starts.

use std::ops::Range;

/// A longer head is refused.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;

/// What stands at the front of the bytes received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The blank line has not come.
    NeedMore,
    Request(Request),
    /// Answer with this status and close: where the next request starts is not known.
    Refused(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Where the target stands in the bytes parsed.
    pub(super) target: Range<usize>,
    pub(super) head_only: bool,
    /// The client wants the connection closed after the answer.
    pub(super) close: bool,
    /// Length of the head, blank line included.
    pub(super) bytes: usize,
}

/// Parses the head at the front of `input`.
pub(super) fn parse(input: &[u8]) -> Head {
    let within = &input[..input.len().min(HEAD_BYTES_MAX)];
    let more = if input.len() < HEAD_BYTES_MAX { Head::NeedMore } else { Head::Refused(400) };
    // A client may end its previous request with a line too many.
    let mut at = 0;
    while within[at..].starts_with(b"\r\n") {
        at += 2;
    }
    let Some((line, mut next)) = line(within, at) else {
        return more;
    };
    let Some(mut request) = parse_request_line(within, line) else {
        return Head::Refused(400);
    };
    loop {
        let Some((field, after)) = self::line(within, next) else {
            return more;
        };
        next = after;
        if field.is_empty() {
            break;
        }
        if let Some(value) = connection_value(&within[field]) {
            request.close = value;
        }
    }
    match &within[at..request.target.start - 1] {
        b"GET" => {}
        b"HEAD" => request.head_only = true,
        _ => return Head::Refused(405),
    }
    request.bytes = next;
    Head::Request(request)
}

/// The line at `start` without its end, and where the next one starts.
fn line(input: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let newline = start + input[start..].iter().position(|&byte| byte == b'\n')?;
    let end = if newline > start && input[newline - 1] == b'\r' { newline - 1 } else { newline };
    Some((start..end, newline + 1))
}

/// `GET /target HTTP/1.1`; the method is whatever stands before the target.
fn parse_request_line(input: &[u8], line: Range<usize>) -> Option<Request> {
    let space = |from: usize| input[from..line.end].iter().position(|&byte| byte == b' ').map(|at| from + at);
    let method_end = space(line.start)?;
    let target_end = space(method_end + 1)?;
    let target = method_end + 1..target_end;
    let close = match &input[target_end + 1..line.end] {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return None,
    };
    if method_end == line.start || target.is_empty() {
        return None;
    }
    Some(Request { target, head_only: false, close, bytes: 0 })
}

/// The value of a field of a head, by its name in lower case; empty if there is none.
pub(super) fn field<'a>(head: &'a [u8], name: &[u8]) -> &'a [u8] {
    let value = |line: &'a [u8]| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    };
    head.split(|&byte| byte == b'\n').skip(1).find_map(value).unwrap_or_default()
}

/// What a Connection field says about closing, if the field is one and says something.
fn connection_value(field: &[u8]) -> Option<bool> {
    const NAME: &[u8] = b"connection:";
    // Most fields fail on the first byte.
    if field.len() < NAME.len() || field[0] | 0x20 != b'c' || !field[..NAME.len()].eq_ignore_ascii_case(NAME)
    {
        return None;
    }
    let value = field[NAME.len()..].trim_ascii();
    if value.eq_ignore_ascii_case(b"close") {
        Some(true)
    } else if value.eq_ignore_ascii_case(b"keep-alive") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(input: &str) -> (String, Request) {
        match parse(input.as_bytes()) {
            Head::Request(request) => (input[request.target.clone()].to_owned(), request),
            other => panic!("{other:?} for {input:?}"),
        }
    }

    #[test]
    fn heads_and_their_ends() {
        let (target, get) = request("GET /p/1.html HTTP/1.1\r\nHost: h0.farm.test\r\n\r\nGET /");
        assert_eq!(target, "/p/1.html");
        assert_eq!((get.head_only, get.close, get.bytes), (false, false, 46));
        let (_, head) = request("HEAD / HTTP/1.1\r\nConnection: Close\r\n\r\n");
        assert_eq!((head.head_only, head.close), (true, true));
        assert!(request("GET / HTTP/1.0\r\n\r\n").1.close);
        assert!(!request("GET / HTTP/1.0\r\nCONNECTION: keep-alive\r\n\r\n").1.close);
        assert_eq!(request("\r\nGET /x HTTP/1.1\n\n").0, "/x");
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let head = b"GET /if-none-match: HTTP/1.1\r\nHost: h\r\nIF-None-Match:  \"a:b\" \r\n\r\n";
        assert_eq!(field(head, b"if-none-match"), b"\"a:b\"");
        assert_eq!(field(head, b"if-modified-since"), b"");
    }

    #[test]
    fn cut_anywhere_a_head_needs_more() {
        let whole = "\r\nGET /p/1.html HTTP/1.1\r\nHost: h0.farm.test\r\nConnection: close\r\n\r\n";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole.as_bytes()[..cut]), Head::NeedMore, "cut at {cut}");
        }
        assert_eq!(request(whole).1.bytes, whole.len());
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(parse(b"POST / HTTP/1.1\r\n\r\n"), Head::Refused(405));
        for bad in
            ["GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "\n"]
        {
            assert_eq!(parse(bad.as_bytes()), Head::Refused(400), "{bad:?}");
        }
        let mut long = b"GET / HTTP/1.1\r\nX: ".to_vec();
        long.resize(HEAD_BYTES_MAX - 1, b'x');
        assert_eq!(parse(&long), Head::NeedMore);
        long.push(b'x');
        assert_eq!(parse(&long), Head::Refused(400));
        assert_eq!(parse(&b"\r\n".repeat(HEAD_BYTES_MAX)), Head::Refused(400));
    }
}
