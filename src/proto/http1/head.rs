//! What a head says, what it may cost, and why one is rejected.

use std::fmt;

use super::flags::Flags;
use super::framing::Framing;
use super::headers::Headers;
use super::span::Span;

/// Bounds on what a server may send before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// All heads of the response together, interim ones included.
    pub head_bytes_max: u32,
    /// Lines of one head after its status line; a folded line counts by itself.
    pub header_lines_max: u16,
    /// Interim (1xx) responses before the final one.
    pub interim_max: u8,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits { head_bytes_max: 64 * 1024, header_lines_max: 256, interim_max: 8 }
    }
}

/// The facts of a final head. Spans point into the bytes the head was parsed from; of a header that came
/// more than once, the first is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Three digits as sent; never 1xx.
    pub status: u16,
    pub version_minor: u8,
    pub framing: Framing,
    /// Whether the server lets the connection live on after the body. [`super::BodyDecoder::keep_alive`] must agree.
    pub keep_alive: bool,
    pub flags: Flags,
    /// Where the final head begins, after the interim ones.
    pub head_start: u32,
    /// Bytes from the first one of the response up to the body.
    pub head_bytes: u32,
    pub content_type: Span,
    pub content_encoding: Span,
    pub location: Span,
    pub retry_after: Span,
    pub etag: Span,
    pub last_modified: Span,
    pub x_robots_tag: Span,
}

impl Head {
    /// Every header of the final head: the name trimmed, the value trimmed and its folds joined with one space.
    /// `bytes` is the buffer that the head was parsed from, or a longer one.
    pub fn headers<'a>(&self, bytes: &'a [u8]) -> Headers<'a> {
        Headers::new(&bytes[self.head_start as usize..self.head_bytes as usize])
    }
}

/// What [`super::HeadParser::parse`] made of the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// The head goes on; call again with a longer slice.
    NeedMore,
    Done(Head),
}

/// Why a head was rejected. The connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    NotHttp1,
    BadStatusLine,
    BareCr,
    Nul,
    SpaceBeforeFirstHeader,
    NoColon,
    BadContentLength,
    UnequalContentLength,
    HeadTooLarge,
    TooManyHeaderLines,
    TooManyInterim,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeadError::NotHttp1 => "the response does not start with HTTP/1.",
            HeadError::BadStatusLine => "the status line is not a version, white space and three digits",
            HeadError::BareCr => "CR without LF in the head",
            HeadError::Nul => "NUL in the head",
            HeadError::SpaceBeforeFirstHeader => "white space before the first header",
            HeadError::NoColon => "a header line without a colon",
            HeadError::BadContentLength => "Content-Length is not a number below 2^63",
            HeadError::UnequalContentLength => "several Content-Length values that differ",
            HeadError::HeadTooLarge => "the head is larger than the limit",
            HeadError::TooManyHeaderLines => "more header lines than the limit",
            HeadError::TooManyInterim => "more interim responses than the limit",
        })
    }
}

impl std::error::Error for HeadError {}
