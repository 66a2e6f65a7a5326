//! The gzip format (RFC 1952): members one after the other, each a header, a deflate stream and a trailer.

use flate2::{Crc, Decompress};

use super::inflate::inflate;
use super::sink::{End, Sink};

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const HEADER_BYTES: usize = 10;
/// CRC and length of what the member holds.
const TRAILER_BYTES: usize = 8;

/// Members that bring less than this on average are there to keep us busy.
const MEMBER_BYTES_MIN: usize = 64;
/// That many may be as small as they like.
const MEMBERS_FREE: usize = 1_024;

/// Undoes gzip. What follows the last member and is no member is padding, and left alone.
pub(super) fn gunzip(state: &mut Decompress, coded: &[u8], sink: &mut Sink<'_>) -> End {
    let mut at = 0;
    let mut members = 0;
    loop {
        let deflated = match header_end(&coded[at..]) {
            Header::End(end) => at + end,
            Header::Cut => return End::Cut,
            Header::Other if members == 0 => return End::Corrupt,
            Header::Other => return End::Whole,
        };
        let mut sum = Crc::new();
        state.reset(false);
        let (end, read) = inflate(state, &coded[deflated..], deflated, sink, |piece| sum.update(piece));
        if end != End::Whole {
            return end;
        }
        at = deflated + read;
        let Some(trailer) = coded.get(at..at + TRAILER_BYTES) else {
            return End::Cut;
        };
        let said = |from: usize| trailer[from..].first_chunk().map(|word| u32::from_le_bytes(*word));
        if (said(0), said(4)) != (Some(sum.sum()), Some(sum.amount())) {
            return End::Corrupt;
        }
        at += TRAILER_BYTES;
        members += 1;
        if at == coded.len() {
            return End::Whole;
        }
        if members > MEMBERS_FREE + sink.produced() / MEMBER_BYTES_MIN {
            return End::Bomb;
        }
    }
}

/// What stands where a member may begin.
#[derive(Debug, PartialEq, Eq)]
enum Header {
    /// A header that ends here.
    End(usize),
    /// The beginning of one.
    Cut,
    /// Something else.
    Other,
}

/// Skips what a header may hold: extra fields, a name, a comment, a sum of the header itself. Their contents are
/// nobody's business, and neither is that sum.
fn header_end(bytes: &[u8]) -> Header {
    const HCRC: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    const RESERVED: u8 = 0b1110_0000;

    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(start) {
        return Header::Other;
    }
    let Some(&[_, _, method, flags, ..]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Header::Cut;
    };
    if method != 8 || flags & RESERVED != 0 {
        return Header::Other;
    }
    let mut at = HEADER_BYTES;
    if flags & EXTRA != 0 {
        match bytes[at..].first_chunk() {
            Some(len) => at += 2 + usize::from(u16::from_le_bytes(*len)),
            None => return Header::Cut,
        }
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            match memchr::memchr(0, bytes.get(at..).unwrap_or_default()) {
                Some(nul) => at += nul + 1,
                None => return Header::Cut,
            }
        }
    }
    if flags & HCRC != 0 {
        at += 2;
    }
    if at <= bytes.len() { Header::End(at) } else { Header::Cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_after_all_their_parts() {
        let fixed = |flags: u8| vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        assert_eq!(header_end(&fixed(0)), Header::End(10));
        let mut full = fixed(0b1_1110);
        full.extend(b"\x03\0abcname\0comment\0\x12\x34rest");
        assert_eq!(header_end(&full), Header::End(full.len() - 4));
        for cut in 1..full.len() - 4 {
            assert_eq!(header_end(&full[..cut]), Header::Cut, "{cut}");
        }
        assert_eq!(header_end(&fixed(0x20)), Header::Other);
        assert_eq!(header_end(b"\x1f\x8b\x07\0\0\0\0\0\0\0"), Header::Other);
        assert_eq!(header_end(b"<html>"), Header::Other);
        assert_eq!(header_end(&[0x1f, 0]), Header::Other);
    }
}
