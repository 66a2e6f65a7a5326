//! The two searches of every header line.
//!
//! Most lines are short. A call into a vector search costs more than they do, so the first words are looked at in
//! place, eight bytes at a time, and only what is longer is left to `memchr`.

use memchr::{memchr, memchr3};

const WORD_BYTES: usize = size_of::<u64>();
/// Header lines are some 30 bytes long, names some 12.
const LINE_WORDS: usize = 10;
const NAME_WORDS: usize = 3;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Where the line stops: the first CR, LF or NUL.
#[inline]
pub(super) fn line_stop(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for word in words(bytes).take(LINE_WORDS) {
        if let Some(index) = first_marked(below_space(word)) {
            let found = at + index;
            if matches!(bytes[found], b'\r' | b'\n' | 0) {
                return Some(found);
            }
            // A tab, most likely: the long way sorts it out.
            break;
        }
        at += WORD_BYTES;
    }
    memchr3(b'\r', b'\n', 0, &bytes[at..]).map(|index| at + index)
}

/// Where the name ends: the first colon.
#[inline]
pub(super) fn colon(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for word in words(bytes).take(NAME_WORDS) {
        if let Some(index) = first_marked(zero(word ^ (ONES * b':' as u64))) {
            return Some(at + index);
        }
        at += WORD_BYTES;
    }
    memchr(b':', &bytes[at..]).map(|index| at + index)
}

/// Whole words in memory order: the first byte is the lowest.
#[inline]
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<WORD_BYTES>().0.iter().map(|&word| u64::from_le_bytes(word))
}

/// Marks the top bit of bytes below 0x20. A borrow can mark a byte wrongly, but only above one marked rightly.
#[inline]
fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGHS
}

/// Marks the top bit of zero bytes, with the same caution.
#[inline]
fn zero(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[inline]
fn first_marked(marks: u64) -> Option<usize> {
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place, with every filling that could disturb a neighbour.
    #[test]
    fn finds_what_a_plain_search_finds() {
        for filling in [b'a', b' ', b'\t', 0x1f, 0x21, 0x7f, 0x80, 0xff, b';', b'9'] {
            for length in 0..=80 {
                let plain = vec![filling; length];
                assert_eq!((line_stop(&plain), colon(&plain)), (None, None));
                for place in 0..length {
                    for byte in [b'\r', b'\n', 0, b':'] {
                        let mut bytes = plain.clone();
                        bytes[place] = byte;
                        let stop = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0));
                        assert_eq!(line_stop(&bytes), stop);
                        assert_eq!(colon(&bytes), bytes.iter().position(|&byte| byte == b':'));
                    }
                }
            }
        }
    }
}
