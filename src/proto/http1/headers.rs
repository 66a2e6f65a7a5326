//! Header lines: the names a crawl acts upon, and the walk over all of them.

use std::borrow::Cow;

use memchr::memchr;

/// A header that bears on the fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Etag,
    LastModified,
    Location,
    RetryAfter,
    TransferEncoding,
    XRobotsTag,
}

impl Known {
    /// Length and first letter leave at most one candidate, so most names cost no comparison at all.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Known> {
        let first = name.first()? | 0x20;
        match (name.len(), first) {
            (4, b'e') => spelt(name, b"etag").then_some(Known::Etag),
            (8, b'l') => spelt(name, b"location").then_some(Known::Location),
            (10, b'c') => spelt(name, b"connection").then_some(Known::Connection),
            (11, b'r') => spelt(name, b"retry-after").then_some(Known::RetryAfter),
            (12, b'c') => spelt(name, b"content-type").then_some(Known::ContentType),
            (12, b'x') => spelt(name, b"x-robots-tag").then_some(Known::XRobotsTag),
            (13, b'l') => spelt(name, b"last-modified").then_some(Known::LastModified),
            (14, b'c') => spelt(name, b"content-length").then_some(Known::ContentLength),
            (16, b'c') => spelt(name, b"content-encoding").then_some(Known::ContentEncoding),
            (17, b't') => spelt(name, b"transfer-encoding").then_some(Known::TransferEncoding),
            _ => None,
        }
    }
}

/// Compares without regard to case. The length is a constant, so this is a few word operations and no loop; the
/// array is mapped byte by byte because `to_ascii_lowercase` on the whole of it would allocate.
#[inline]
pub(super) fn spelt<const N: usize>(word: &[u8], lower_case: &[u8; N]) -> bool {
    <&[u8; N]>::try_from(word).is_ok_and(|word| word.map(|byte| byte.to_ascii_lowercase()) == *lower_case)
}

/// Every header of a head, in order; see [`super::Head::headers`].
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    /// Header lines not yet walked; empty at the end of the head.
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    /// `head` is one whole head, from its status line to its blank line.
    pub(super) fn new(head: &'a [u8]) -> Headers<'a> {
        let (_, rest) = split_line(head);
        Headers { rest }
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (line, mut rest) = split_line(self.rest);
        let colon = memchr(b':', line)?;
        while rest.first().copied().is_some_and(is_space) {
            (_, rest) = split_line(rest);
        }
        let field = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some((trim(&field[..colon]), unfold(&field[colon + 1..])))
    }
}

/// A raw header value as one line: trimmed, and each obs-fold with the white space around it made one space.
pub fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    let value = trim(value);
    if memchr(b'\n', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut joined = Vec::with_capacity(value.len());
    for part in value.split(|&byte| byte == b'\n').map(trim).filter(|part| !part.is_empty()) {
        if !joined.is_empty() {
            joined.push(b' ');
        }
        joined.extend_from_slice(part);
    }
    Cow::Owned(joined)
}

/// White space that starts a folded line or stands before a colon.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Takes white space off both ends. CR and LF count: inside a field they only ever belong to a fold.
#[inline]
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    trim_end(trim_start(bytes))
}

#[inline]
pub(super) fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

#[inline]
pub(super) fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The first line with its end, and what follows.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr(b'\n', bytes).map_or(bytes.len(), |lf| lf + 1);
    bytes.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_in_any_case() {
        assert_eq!(Known::of(b"Content-Length"), Some(Known::ContentLength));
        assert_eq!(Known::of(b"TRANSFER-ENCODING"), Some(Known::TransferEncoding));
        assert_eq!(Known::of(b"ETag"), Some(Known::Etag));
        assert_eq!(Known::of(b"x-robots-tag"), Some(Known::XRobotsTag));
        for name in ["", "e", "Content-Location", "Cache-Control", "Content-Length\x0b", "xtag"] {
            assert_eq!(Known::of(name.as_bytes()), None, "{name:?}");
        }
    }

    #[test]
    fn folds_become_one_space() {
        assert_eq!(unfold(b" a b \t"), Cow::Borrowed(b"a b"));
        assert_eq!(&*unfold(b"a \t\r\n \t b"), b"a b");
        assert_eq!(&*unfold(b"\r\n a\n b\r\n \r\n\tc\r\n"), b"a b c");
        assert_eq!(&*unfold(b" \r\n "), b"");
    }

    #[test]
    fn walks_names_and_values() {
        let head = b"HTTP/1.1 200 OK\r\nA: 1\nB :\r\n  two\r\n\tthree\r\n: x\r\nC:\r\n\r\n";
        let pairs: Vec<_> = Headers::new(head).map(|(name, value)| (name, value.into_owned())).collect();
        let want: [(&[u8], &[u8]); 4] = [(b"A", b"1"), (b"B", b"two three"), (b"", b"x"), (b"C", b"")];
        assert_eq!(pairs.len(), want.len());
        for (pair, want) in pairs.iter().zip(want) {
            assert_eq!((pair.0, &pair.1[..]), want);
        }
    }

    #[test]
    fn no_headers_no_items() {
        assert_eq!(Headers::new(b"HTTP/1.1 200\r\n\r\n").count(), 0);
        assert_eq!(Headers::new(b"").count(), 0);
    }
}
