//! A range of the caller's receive buffer.

use std::ops::Range;

/// Where a header value lies in the bytes of a response, counted from the response's first byte.
///
/// White space around the value is left out. An obs-fold inside it is left raw: [`super::unfold`] joins it.
/// A header that did not come and one that came empty are both empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

impl Span {
    pub(super) fn new(start: u32, len: u32) -> Span {
        Span { start, len }
    }

    /// The bytes of the span; `bytes` is the buffer that the head was parsed from, or a longer one.
    pub fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.range()]
    }

    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// True once a header was noted: a value never starts at byte 0, where the status line is.
    pub(super) fn is_set(&self) -> bool {
        self.start != 0
    }
}
