//! Chunk framing: which bytes of the body are the document's.

use std::ops::Range;

use memchr::memchr2;

use super::body::BodyError;
use super::flags::Flags;
use super::framing::LENGTH_MAX;

/// Digits of a 64-bit number; leading zeros count.
const SIZE_DIGITS_MAX: u8 = 16;

/// Reads chunk framing, however its bytes are cut. Nothing is copied: each piece of data is a range of the input.
#[derive(Clone, Copy)]
pub(super) struct Chunked {
    /// In [`State::Size`] the size so far; in [`State::Data`] what the chunk still lacks.
    size: u64,
    /// What the response may still spend on extensions and on white space before them.
    ext_bytes_left: u32,
    /// What it may still spend on trailers.
    trailer_bytes_left: u32,
    state: State,
}

/// Where in the framing the next byte falls.
#[derive(Clone, Copy)]
enum State {
    /// Hex digits of a chunk size.
    Size { digits: u8 },
    /// White space after the size.
    SizeSpace,
    /// A chunk extension, up to its line end.
    Extension,
    /// The LF that ends the size line.
    SizeLf,
    /// Document bytes, `size` of them.
    Data,
    /// The line end after the data.
    DataEnd,
    /// The LF after the data's CR.
    DataLf,
    /// First byte of a trailer line, or of the blank line that ends the body.
    TrailerStart,
    /// Inside a trailer line.
    Trailer,
    /// The LF that ends a trailer line.
    TrailerLf,
    /// The LF of the blank line.
    LastLf,
}

/// What [`Chunked::next`] found.
pub(super) enum Piece {
    /// The input is used up.
    NeedMore,
    /// These bytes of the input are document.
    Data(Range<usize>),
    /// The body is over; the bytes before `at` were its own.
    End,
}

impl Chunked {
    pub fn new(ext_bytes_max: u32, trailer_bytes_max: u32) -> Chunked {
        Chunked {
            size: 0,
            ext_bytes_left: ext_bytes_max,
            trailer_bytes_left: trailer_bytes_max,
            state: State::Size { digits: 0 },
        }
    }

    /// Reads `bytes` from `at` on, up to the next piece, and moves `at` past it.
    pub fn next(&mut self, bytes: &[u8], at: &mut usize, flags: &mut Flags) -> Result<Piece, BodyError> {
        while let Some(&byte) = bytes.get(*at) {
            self.state = match (self.state, byte) {
                (State::Size { digits }, byte) if byte.is_ascii_hexdigit() => {
                    self.size_digit(digits, byte)?;
                    State::Size { digits: digits + 1 }
                }
                (State::Size { digits: 0 }, _) => return Err(BodyError::BadChunkSize),
                (State::Size { .. } | State::SizeSpace, b' ' | b'\t') => {
                    flags.insert(Flags::CHUNK_SIZE_SPACE);
                    self.spend_ext(1)?;
                    State::SizeSpace
                }
                (State::Size { .. } | State::SizeSpace, b';') => State::Extension,
                (State::Size { .. } | State::SizeSpace | State::Extension, b'\r') => State::SizeLf,
                (State::Size { .. } | State::SizeSpace | State::Extension, b'\n') => {
                    flags.insert(Flags::BARE_LF_CHUNK);
                    self.size_line_end()
                }
                (State::Size { .. } | State::SizeSpace, _) => return Err(BodyError::BadChunkSize),
                (State::Extension, _) => {
                    let text_bytes = text_bytes(&bytes[*at..]);
                    self.spend_ext(text_bytes)?;
                    *at += text_bytes;
                    continue;
                }
                (State::SizeLf, b'\n') => self.size_line_end(),

                (State::Data, _) => return Ok(Piece::Data(self.take_data(bytes, at))),
                (State::DataEnd, b'\r') => State::DataLf,
                (State::DataEnd, b'\n') => {
                    flags.insert(Flags::BARE_LF_CHUNK);
                    State::Size { digits: 0 }
                }
                (State::DataLf, b'\n') => State::Size { digits: 0 },
                (State::DataEnd | State::DataLf, _) => return Err(BodyError::BadChunkEnd),

                (State::TrailerStart, b'\r') => State::LastLf,
                (State::TrailerStart, b'\n') => {
                    flags.insert(Flags::BARE_LF_CHUNK);
                    *at += 1;
                    return Ok(Piece::End);
                }
                (State::Trailer, b'\r') => {
                    self.spend_trailer(1)?;
                    State::TrailerLf
                }
                (State::Trailer, b'\n') => {
                    flags.insert(Flags::BARE_LF_CHUNK);
                    self.spend_trailer(1)?;
                    State::TrailerStart
                }
                (State::TrailerStart | State::Trailer, _) => {
                    let text_bytes = text_bytes(&bytes[*at..]);
                    self.spend_trailer(text_bytes)?;
                    *at += text_bytes;
                    self.state = State::Trailer;
                    continue;
                }
                (State::TrailerLf, b'\n') => {
                    self.spend_trailer(1)?;
                    State::TrailerStart
                }
                (State::LastLf, b'\n') => {
                    *at += 1;
                    return Ok(Piece::End);
                }
                (State::SizeLf | State::TrailerLf | State::LastLf, _) => return Err(BodyError::BareCr),
            };
            *at += 1;
        }
        Ok(Piece::NeedMore)
    }

    fn size_digit(&mut self, digits: u8, byte: u8) -> Result<(), BodyError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        if digits == 0 {
            self.size = 0;
        }
        // Below 2^60 before the shift, because fifteen digits are: the shift loses nothing.
        if digits == SIZE_DIGITS_MAX {
            return Err(BodyError::ChunkSizeTooLarge);
        }
        self.size = self.size << 4 | u64::from(digit);
        if self.size > LENGTH_MAX {
            return Err(BodyError::ChunkSizeTooLarge);
        }
        Ok(())
    }

    fn size_line_end(&self) -> State {
        if self.size == 0 { State::TrailerStart } else { State::Data }
    }

    /// As much of the chunk as the input holds.
    fn take_data(&mut self, bytes: &[u8], at: &mut usize) -> Range<usize> {
        let here = bytes.len() - *at;
        let taken = usize::try_from(self.size).map_or(here, |size| size.min(here));
        let range = *at..*at + taken;
        self.size -= taken as u64;
        *at = range.end;
        if self.size == 0 {
            self.state = State::DataEnd;
        }
        range
    }

    fn spend_ext(&mut self, count: usize) -> Result<(), BodyError> {
        self.ext_bytes_left = spend(self.ext_bytes_left, count).ok_or(BodyError::ExtensionsTooLarge)?;
        Ok(())
    }

    fn spend_trailer(&mut self, count: usize) -> Result<(), BodyError> {
        self.trailer_bytes_left = spend(self.trailer_bytes_left, count).ok_or(BodyError::TrailersTooLarge)?;
        Ok(())
    }
}

fn spend(left: u32, count: usize) -> Option<u32> {
    left.checked_sub(u32::try_from(count).ok()?)
}

/// Bytes before the next CR or LF.
fn text_bytes(bytes: &[u8]) -> usize {
    memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document, its flags, and how many bytes were used; `None` if the body goes on.
    fn decode(text: &str) -> Result<(String, Flags, Option<usize>), BodyError> {
        let (mut chunked, mut flags) = (Chunked::new(16, 16), Flags::NONE);
        let (mut at, mut document) = (0, String::new());
        loop {
            match chunked.next(text.as_bytes(), &mut at, &mut flags)? {
                Piece::NeedMore => return Ok((document, flags, None)),
                Piece::Data(range) => document.push_str(&text[range]),
                Piece::End => return Ok((document, flags, Some(at))),
            }
        }
    }

    fn whole(text: &str, document: &str, flags: Flags) {
        assert_eq!(decode(text), Ok((document.to_string(), flags, Some(text.len()))), "{text:?}");
    }

    #[test]
    fn sizes_are_one_to_sixteen_hex_digits() {
        whole("5\r\nhello\r\n0\r\n\r\n", "hello", Flags::NONE);
        whole("a\r\n0123456789\r\nB\r\n0123456789a\r\n000\r\n\r\n", "01234567890123456789a", Flags::NONE);
        whole("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", "hello", Flags::NONE);
        assert!(matches!(decode("7fffffffffffffff\r\nx"), Ok((_, _, None))));
        for size in ["00000000000000005", "8000000000000000", "ffffffffffffffff", "10000000000000000"] {
            assert_eq!(decode(&format!("{size}\r\nhello")), Err(BodyError::ChunkSizeTooLarge), "{size}");
        }
        for size in ["", " 5", "+5", "-5", "0x5", "5h", "5 5", "5_0", "5,", "\0", "\u{665}"] {
            assert_eq!(decode(&format!("{size}\r\nhello\r\n")), Err(BodyError::BadChunkSize), "{size:?}");
        }
    }

    #[test]
    fn white_space_after_a_size_is_flagged() {
        whole("5 \t\r\nhello\r\n0 \r\n\r\n", "hello", Flags::CHUNK_SIZE_SPACE);
        whole("5 ;a=b\r\nhello\r\n0\r\n\r\n", "hello", Flags::CHUNK_SIZE_SPACE);
    }

    #[test]
    fn extensions_are_ignored_and_bounded_over_the_response() {
        whole("5;a=b;c=\"0\"\r\nhello\r\n0;d\r\n\r\n", "hello", Flags::NONE);
        let of =
            |a: usize, b: usize| decode(&format!("1;{}\r\nx\r\n0;{}\r\n\r\n", "e".repeat(a), "e".repeat(b)));
        assert!(of(8, 8).is_ok());
        assert_eq!(of(8, 9), Err(BodyError::ExtensionsTooLarge));
        assert_eq!(decode(&format!("1{}", " ".repeat(17))), Err(BodyError::ExtensionsTooLarge));
    }

    #[test]
    fn lf_alone_is_flagged() {
        whole("5\nhello\r\n0\r\n\r\n", "hello", Flags::BARE_LF_CHUNK);
        whole("5\r\nhello\n0\r\n\r\n", "hello", Flags::BARE_LF_CHUNK);
        whole("5;a\nhello\r\n0\r\n\r\n", "hello", Flags::BARE_LF_CHUNK);
        whole("5\r\nhello\r\n0\r\n\n", "hello", Flags::BARE_LF_CHUNK);
        whole("5\r\nhello\r\n0\r\nA: b\n\r\n", "hello", Flags::BARE_LF_CHUNK);
    }

    #[test]
    fn a_bare_cr_is_refused() {
        for text in ["5\rx", "5;a\rb\r\n", "5 \r\r\n", "0\r\n\rx", "0\r\nA: b\rc\r\n\r\n", "0\r\nA\r\r\n"] {
            assert_eq!(decode(text), Err(BodyError::BareCr), "{text:?}");
        }
    }

    #[test]
    fn data_must_end_with_its_chunk() {
        for text in ["5\r\nhello!\r\n", "5\r\nhello\r!", "5\r\nhello0\r\n\r\n"] {
            assert_eq!(decode(text), Err(BodyError::BadChunkEnd), "{text:?}");
        }
    }

    #[test]
    fn trailers_are_dropped_and_bounded() {
        whole("1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", Flags::NONE);
        let of = |bytes: usize| decode(&format!("0\r\n{}\r\n\r\n", "t".repeat(bytes - 2)));
        assert!(of(16).is_ok());
        assert_eq!(of(17), Err(BodyError::TrailersTooLarge));
        assert_eq!(decode(&format!("0\r\n{}", "A\r\n".repeat(6))), Err(BodyError::TrailersTooLarge));
    }

    #[test]
    fn what_follows_the_last_chunk_is_left() {
        assert_eq!(decode("0\r\n\r\nHTTP/1.1"), Ok((String::new(), Flags::NONE, Some(5))));
    }
}
