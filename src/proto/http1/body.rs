//! The body: from framed bytes to the document.

use std::fmt;

use super::chunked::{Chunked, Piece};
use super::flags::Flags;
use super::framing::Framing;

/// Bounds on what a server may send after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// A document of exactly this size is whole.
    pub doc_bytes_max: u64,
    /// Chunk extensions, and white space before them, over the whole response.
    pub chunk_ext_bytes_max: u32,
    /// Trailer lines with their ends.
    pub trailer_bytes_max: u32,
}

impl Default for BodyLimits {
    fn default() -> BodyLimits {
        BodyLimits { doc_bytes_max: 16 << 20, chunk_ext_bytes_max: 16 << 10, trailer_bytes_max: 16 << 10 }
    }
}

/// What [`BodyDecoder::push`] made of the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyStep {
    /// Every byte was used and the body goes on.
    NeedMore,
    /// The body is over. Bytes past `consumed` are nobody's: close the connection.
    Done { consumed: usize },
    /// The document is larger than the limit; the limit's worth was appended. Close the connection.
    TooLarge,
}

/// What the end of the connection means for the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    Complete,
    Truncated,
}

/// Why chunk framing was rejected. Document bytes that came before it are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    BadChunkSize,
    ChunkSizeTooLarge,
    BadChunkEnd,
    BareCr,
    ExtensionsTooLarge,
    TrailersTooLarge,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyError::BadChunkSize => "a chunk size that is not hex digits",
            BodyError::ChunkSizeTooLarge => "a chunk size of more than 16 digits, or not below 2^63",
            BodyError::BadChunkEnd => "chunk data that goes on past its size",
            BodyError::BareCr => "CR without LF in chunk framing",
            BodyError::ExtensionsTooLarge => "more bytes of chunk extensions than the limit",
            BodyError::TrailersTooLarge => "more bytes of trailers than the limit",
        })
    }
}

impl std::error::Error for BodyError {}

/// Takes the body of one response, however its bytes are cut, and appends the document to the caller's buffer.
#[derive(Clone, Copy)]
pub struct BodyDecoder {
    state: State,
    // doc_bytes <= doc_bytes_max
    doc_bytes: u64,
    doc_bytes_max: u64,
    flags: Flags,
}

// One lives in every fetch slot.
const _: () = assert!(size_of::<BodyDecoder>() <= 64);

#[derive(Clone, Copy)]
enum State {
    /// So many document bytes are still to come; never 0.
    Length { left: u64 },
    /// Chunks are being read.
    Chunked(Chunked),
    /// Whatever comes is document.
    Close,
    /// The body is over.
    Done,
    /// The limit was passed.
    TooLarge,
    /// The framing broke.
    Failed(BodyError),
}

impl BodyDecoder {
    pub fn new(framing: Framing, limits: BodyLimits) -> BodyDecoder {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => {
                State::Chunked(Chunked::new(limits.chunk_ext_bytes_max, limits.trailer_bytes_max))
            }
            Framing::Close => State::Close,
        };
        BodyDecoder { state, doc_bytes: 0, doc_bytes_max: limits.doc_bytes_max, flags: Flags::NONE }
    }

    /// Takes the next bytes of the body, each byte once. An empty slice is fine: it tells whether the body is over.
    /// Once the body is over, too large or broken, the answer stays the same and nothing more is appended.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<BodyStep, BodyError> {
        match self.state {
            State::Length { left } => Ok(self.push_length(left, bytes, out)),
            State::Chunked(chunked) => self.push_chunked(chunked, bytes, out),
            State::Close => Ok(self.push_close(bytes, out)),
            State::Done => Ok(BodyStep::Done { consumed: 0 }),
            State::TooLarge => Ok(BodyStep::TooLarge),
            State::Failed(error) => Err(error),
        }
    }

    /// What it means that the connection ended here.
    pub fn end(&self) -> BodyEnd {
        match self.state {
            State::Done | State::Close => BodyEnd::Complete,
            State::Length { .. } | State::Chunked(_) | State::TooLarge | State::Failed(_) => {
                BodyEnd::Truncated
            }
        }
    }

    /// Whether the connection may carry another request: the body's end was found, and beyond doubt.
    pub fn keep_alive(&self) -> bool {
        matches!(self.state, State::Done) && !self.flags.contains(Flags::BARE_LF_CHUNK)
    }

    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Document bytes appended so far.
    pub fn doc_bytes(&self) -> u64 {
        self.doc_bytes
    }

    /// Document bytes that are still to be appended if the server keeps its word; never more than the limit
    /// allows. `None` if only the end will tell.
    pub fn size_hint(&self) -> Option<u64> {
        match self.state {
            State::Length { left } => Some(left.min(self.doc_bytes_max - self.doc_bytes)),
            State::Chunked(_) | State::Close => None,
            State::Done | State::TooLarge | State::Failed(_) => Some(0),
        }
    }

    fn push_length(&mut self, left: u64, bytes: &[u8], out: &mut Vec<u8>) -> BodyStep {
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left - taken as u64;
        let fits = self.append(&bytes[..taken], out);
        // A length past the limit needs no further byte to prove it.
        if !fits || (left > 0 && self.doc_bytes == self.doc_bytes_max) {
            return self.too_large();
        }
        if left > 0 {
            self.state = State::Length { left };
            return BodyStep::NeedMore;
        }
        self.state = State::Done;
        BodyStep::Done { consumed: taken }
    }

    fn push_close(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> BodyStep {
        if self.append(bytes, out) { BodyStep::NeedMore } else { self.too_large() }
    }

    fn push_chunked(
        &mut self,
        mut chunked: Chunked,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<BodyStep, BodyError> {
        let mut at = 0;
        loop {
            match chunked.next(bytes, &mut at, &mut self.flags) {
                Ok(Piece::Data(range)) => {
                    if !self.append(&bytes[range], out) {
                        return Ok(self.too_large());
                    }
                }
                Ok(Piece::NeedMore) => {
                    self.state = State::Chunked(chunked);
                    return Ok(BodyStep::NeedMore);
                }
                Ok(Piece::End) => {
                    self.state = State::Done;
                    return Ok(BodyStep::Done { consumed: at });
                }
                Err(error) => {
                    self.state = State::Failed(error);
                    return Err(error);
                }
            }
        }
    }

    /// Appends what the limit has room for; false if that was not all.
    fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let room = self.doc_bytes_max - self.doc_bytes;
        let stored = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        out.extend_from_slice(&bytes[..stored]);
        self.doc_bytes += stored as u64;
        stored == bytes.len()
    }

    fn too_large(&mut self) -> BodyStep {
        self.state = State::TooLarge;
        BodyStep::TooLarge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(framing: Framing, doc_bytes_max: u64) -> BodyDecoder {
        BodyDecoder::new(framing, BodyLimits { doc_bytes_max, ..BodyLimits::default() })
    }

    /// Pushes into a buffer that already holds a head.
    fn push(decoder: &mut BodyDecoder, bytes: &[u8]) -> (Result<BodyStep, BodyError>, Vec<u8>) {
        let mut out = b"head".to_vec();
        let step = decoder.push(bytes, &mut out);
        assert!(out.starts_with(b"head"));
        (step, out.split_off(4))
    }

    #[test]
    fn no_body_is_over_at_once() {
        for framing in [Framing::None, Framing::Length(0)] {
            for bytes in [&b""[..], b"extra"] {
                let mut decoder = limited(framing, 0);
                assert_eq!(push(&mut decoder, bytes), (Ok(BodyStep::Done { consumed: 0 }), vec![]));
                assert_eq!(decoder.end(), BodyEnd::Complete);
                assert!(decoder.keep_alive());
            }
        }
    }

    #[test]
    fn a_length_ends_the_body_and_leaves_the_rest() {
        let mut decoder = limited(Framing::Length(5), 100);
        assert_eq!(decoder.size_hint(), Some(5));
        assert_eq!(push(&mut decoder, b"hel"), (Ok(BodyStep::NeedMore), b"hel".to_vec()));
        assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Truncated, false));
        assert_eq!(decoder.size_hint(), Some(2));
        assert_eq!(push(&mut decoder, b"lo, you"), (Ok(BodyStep::Done { consumed: 2 }), b"lo".to_vec()));
        assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Complete, true));
        assert_eq!(push(&mut decoder, b"more"), (Ok(BodyStep::Done { consumed: 0 }), vec![]));
        assert_eq!(decoder.doc_bytes(), 5);
    }

    #[test]
    fn close_runs_to_the_end_of_the_connection() {
        let mut decoder = limited(Framing::Close, 100);
        assert_eq!(push(&mut decoder, b""), (Ok(BodyStep::NeedMore), vec![]));
        assert_eq!(push(&mut decoder, b"hello"), (Ok(BodyStep::NeedMore), b"hello".to_vec()));
        assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Complete, false));
        assert_eq!(decoder.size_hint(), None);
    }

    #[test]
    fn chunks_cut_short_are_truncated() {
        let text = b"5\r\nhello\r\n0\r\n\r\n";
        for cut in 0..text.len() {
            let mut decoder = limited(Framing::Chunked, 100);
            assert_eq!(push(&mut decoder, &text[..cut]).0, Ok(BodyStep::NeedMore));
            assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Truncated, false));
        }
        let mut decoder = limited(Framing::Chunked, 100);
        assert_eq!(push(&mut decoder, text), (Ok(BodyStep::Done { consumed: 15 }), b"hello".to_vec()));
        assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Complete, true));
    }

    #[test]
    fn lf_alone_in_chunks_closes_after() {
        let mut decoder = limited(Framing::Chunked, 100);
        assert_eq!(push(&mut decoder, b"5\nhello\r\n0\r\n\r\n").1, b"hello");
        assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Complete, false));
        assert_eq!(decoder.flags(), Flags::BARE_LF_CHUNK);
    }

    #[test]
    fn a_malformed_chunk_keeps_what_came() {
        let mut decoder = limited(Framing::Chunked, 100);
        let (step, document) = push(&mut decoder, b"5\r\nhello\r\n3\r\nyou\r\nzz\r\n");
        assert_eq!((step, &document[..]), (Err(BodyError::BadChunkSize), &b"helloyou"[..]));
        assert_eq!(push(&mut decoder, b"0\r\n\r\n"), (Err(BodyError::BadChunkSize), vec![]));
        assert_eq!(
            (decoder.end(), decoder.keep_alive(), decoder.doc_bytes()),
            (BodyEnd::Truncated, false, 8)
        );
    }

    #[test]
    fn a_document_of_the_limit_is_whole() {
        assert_eq!(push(&mut limited(Framing::Length(5), 5), b"hello").0, Ok(BodyStep::Done { consumed: 5 }));
        assert_eq!(push(&mut limited(Framing::Close, 5), b"hello").0, Ok(BodyStep::NeedMore));
        let chunked = push(&mut limited(Framing::Chunked, 5), b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
        assert_eq!(chunked, (Ok(BodyStep::Done { consumed: 20 }), b"hello".to_vec()));
    }

    #[test]
    fn one_byte_past_the_limit_is_too_large() {
        for (framing, bytes) in [
            (Framing::Length(6), &b"hello!"[..]),
            (Framing::Length(6), b"hello"),
            (Framing::Close, b"hello!"),
            (Framing::Chunked, b"6\r\nhello!"),
            (Framing::Chunked, b"5\r\nhello\r\n1\r\n!"),
        ] {
            let mut decoder = limited(framing, 5);
            assert_eq!(push(&mut decoder, bytes), (Ok(BodyStep::TooLarge), b"hello".to_vec()), "{framing:?}");
            assert_eq!(push(&mut decoder, b"more"), (Ok(BodyStep::TooLarge), vec![]));
            assert_eq!((decoder.end(), decoder.keep_alive()), (BodyEnd::Truncated, false));
        }
    }

    #[test]
    fn limits_by_default() {
        let limits = BodyLimits::default();
        assert_eq!(limits.doc_bytes_max, 16 * 1024 * 1024);
        assert_eq!((limits.chunk_ext_bytes_max, limits.trailer_bytes_max), (16 * 1024, 16 * 1024));
    }
}
