//! Short searches, eight bytes at a time.
//!
//! Most runs in markup are a few bytes long. There, setting up a vector search costs more than the search,
//! and a loop over bytes ends on a branch that the processor cannot foresee. A word of eight bytes is tested
//! in a handful of operations without a branch.

const LOW: u64 = u64::from_le_bytes([0x01; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
/// How many words are tried before a vector search takes over.
const WORDS_MAX: usize = 2;

/// The first eight bytes at `at`, the first of them lowest. None near the end.
#[inline]
pub(super) fn word(body: &[u8], at: usize) -> Option<u64> {
    body[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Marks the bytes of a word that equal `needle` by their high bit.
///
/// Exact up to and at the lowest mark; a borrow may set marks above it that mean nothing.
#[inline]
pub(super) fn equal(word: u64, needle: u8) -> u64 {
    below(word ^ (LOW * needle as u64), 1)
}

/// Marks the bytes of a word that are below `limit`, which is at most 128. As exact as [`equal`].
#[inline]
pub(super) fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(LOW * limit as u64) & !word & HIGH
}

/// The index of the lowest marked byte; 8 if there is none.
#[inline]
pub(super) fn first(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// The first `needle` at or after `start`.
#[inline]
pub(super) fn find(needle: u8, body: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for _ in 0..WORDS_MAX {
        let Some(word) = word(body, at) else { break };
        let marks = equal(word, needle);
        if marks != 0 {
            return Some(at + first(marks));
        }
        at += 8;
    }
    Some(at + memchr::memchr(needle, &body[at..])?)
}

/// The first of two needles at or after `start`.
#[inline]
pub(super) fn find2(one: u8, other: u8, body: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for _ in 0..WORDS_MAX {
        let Some(word) = word(body, at) else { break };
        let marks = equal(word, one) | equal(word, other);
        if marks != 0 {
            return Some(at + first(marks));
        }
        at += 8;
    }
    Some(at + memchr::memchr2(one, other, &body[at..])?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn searches_equal_a_loop(
            body in prop::collection::vec(prop::sample::select(b"<>=\0\x01\x7f\x80\xff ab;?".as_slice()), 0..60),
            start in any::<prop::sample::Index>(),
        ) {
            let start = start.index(body.len() + 1);
            let by_loop = |wanted: &dyn Fn(u8) -> bool| (start..body.len()).find(|&at| wanted(body[at]));
            prop_assert_eq!(find(b'<', &body, start), by_loop(&|octet| octet == b'<'));
            prop_assert_eq!(find2(b'=', b'>', &body, start), by_loop(&|octet| octet == b'=' || octet == b'>'));
            if let Some(word) = word(&body, start) {
                let within = |wanted: &dyn Fn(u8) -> bool| by_loop(wanted).map_or(8, |at| (at - start).min(8));
                prop_assert_eq!(first(below(word, 0x21)), within(&|octet| octet < 0x21));
                prop_assert_eq!(first(equal(word, 0)), within(&|octet| octet == 0));
            }
        }
    }
}
