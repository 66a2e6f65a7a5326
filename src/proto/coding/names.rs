//! The Content-Encoding header: which codings a body is in.

use std::borrow::Cow;

use crate::proto::http1::Head;

/// What a request offers to the server.
pub const ACCEPT_ENCODING: &str = "gzip, deflate, br, zstd";

/// A coding that we undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    /// By the letter it is zlib around deflate; many servers send the bare stream.
    Deflate,
    Brotli,
    Zstd,
}

const NAMES: [(&[u8], Coding); 5] = [
    (b"gzip", Coding::Gzip),
    (b"x-gzip", Coding::Gzip),
    (b"deflate", Coding::Deflate),
    (b"br", Coding::Brotli),
    (b"zstd", Coding::Zstd),
];

/// Names that change nothing: the one of the standard, and what servers put there that know no better.
const NO_CODING: [&[u8]; 7] = [b"", b"identity", b"none", b"utf-8", b"7bit", b"8bit", b"binary"];

/// The codings of a header, the last one first, as they are undone. None stands for one that we do not know.
pub(super) fn codings(header: &[u8]) -> impl Iterator<Item = Option<Coding>> {
    let names = header.rsplit(|&octet| octet == b',').map(<[u8]>::trim_ascii);
    names.filter(|name| !is_in(&NO_CODING, name)).map(|name| {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, coding)| *coding)
    })
}

fn is_in(words: &[&[u8]], name: &[u8]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// Whether a Content-Encoding names no coding at all, so that the body is the document.
pub fn is_plain(header: &[u8]) -> bool {
    codings(header).next().is_none()
}

/// The values of all Content-Encoding headers of a head as one list. `bytes` is what the head was parsed from.
pub fn header_of<'a>(head: &Head, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let first = head.content_encoding.of(bytes);
    if first.is_empty() && head.content_encoding == Default::default() {
        return Cow::Borrowed(first);
    }
    let mut all = Cow::Borrowed(&b""[..]);
    for (name, value) in head.headers(bytes) {
        if !name.eq_ignore_ascii_case(b"content-encoding") {
            continue;
        }
        if all.is_empty() {
            all = value;
        } else {
            let list = all.to_mut();
            list.push(b',');
            list.extend_from_slice(&value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::Coding::*;
    use super::*;

    #[test]
    fn codings_are_read_last_first() {
        for (header, expected) in [
            ("gzip", &[Some(Gzip)][..]),
            ("X-GZip", &[Some(Gzip)]),
            (" deflate ,\tBR\r\n , zstd", &[Some(Zstd), Some(Brotli), Some(Deflate)]),
            ("gzip, identity,,gzip,", &[Some(Gzip), Some(Gzip)]),
            ("compress", &[None]),
            ("gzip;q=1", &[None]),
            ("gzip br", &[None]),
            ("", &[]),
            (" , identity , None, UTF-8", &[]),
        ] {
            assert_eq!(codings(header.as_bytes()).collect::<Vec<_>>(), expected, "{header}");
            assert_eq!(is_plain(header.as_bytes()), expected.is_empty(), "{header}");
        }
    }

    #[test]
    fn what_is_offered_is_understood() {
        assert!(codings(ACCEPT_ENCODING.as_bytes()).all(|coding| coding.is_some()));
    }
}
