//! HTTP/1.1 responses without I/O: bytes come in, facts go out.
//!
//! ```text
//!  bytes of one response, from its first byte
//!  ┌──────────────┬──────────────┬───────────────┬─────────────────────────┬───────────┐
//!  │ 1xx head ≤ 8 │ status line  │ header lines  │ body                    │ more?     │
//!  └──────┬───────┴──────┬───────┴───────┬───────┴───────────┬─────────────┴─────┬─────┘
//!      skipped           └─ HeadParser ──┘              BodyDecoder          never a next
//!                               │                            │                response:
//!                               ▼                            ▼                  close
//!                     Head { status, framing,      document bytes in `out`,
//!                     keep_alive, flags, spans }   Done | TooLarge | error
//! ```
//!
//! The life of a response:
//!
//! 1. The caller keeps every received byte of the head in one buffer and shows it to [`HeadParser::parse`]
//!    after each receive. Half a line is normal: the parser answers [`HeadStep::NeedMore`] and goes on from
//!    where it stood, so the work is linear however the bytes were cut.
//! 2. Interim responses (1xx) are skipped. The final head yields a [`Head`]: plain numbers, and [`Span`]s into
//!    the caller's buffer for the few headers a crawl acts upon. [`Head::headers`] walks all of them.
//! 3. [`Framing`] says where the body ends. [`BodyDecoder::push`] takes what follows the head, piece by piece,
//!    and appends the document to the caller's buffer.
//! 4. [`BodyStep::Done`] says how many bytes were the response's own. The connection may carry another request
//!    only if [`Head::keep_alive`] and [`BodyDecoder::keep_alive`] agree and nothing was left over.
//! 5. If the connection ends first, [`BodyDecoder::end`] tells a whole document from a truncated one.
//!
//! What the web gets wrong but a reader can still follow is accepted and noted in [`Flags`]; what would leave
//! two readings of one response is an error. Neither part allocates: the head's facts are spans, and the
//! document goes straight to its place.

#[cfg(test)]
mod against_httparse;
mod body;
mod chunked;
mod date;
mod flags;
mod framing;
mod head;
mod head_parser;
mod headers;
mod method;
mod scan;
mod span;
#[cfg(test)]
mod tests;
mod validators;

pub use body::{BodyDecoder, BodyEnd, BodyError, BodyLimits, BodyStep};
pub(crate) use date::http_date;
pub use flags::Flags;
pub use framing::Framing;
pub use head::{Head, HeadError, HeadLimits, HeadStep};
pub use head_parser::HeadParser;
pub use headers::unfold;
pub use method::Method;
pub(crate) use span::Span;
pub(crate) use validators::Validators;
