//! Content codings: the document inside a coded body, in one go and within bounds.
//!
//! ```text
//!   Content-Encoding: deflate, gzip          what the server did, first to last
//!
//!   coded body ──► gzip ──► scratch ──► deflate ──► document
//!                  last first           first last
//!                          each ──► Sink: steps of 64 KiB, a cap on bytes, a cap on the ratio
//! ```
//!
//! A body is decoded when all of it has come, or what there is of it, by a [`ContentDecoder`] of which a core
//! has one: ten thousand open connections then hold no inflate state at all.
//!
//! What a server may do to us is bounded by [`CodingLimits`] and by what a coding can ask for:
//!
//! | coding          | memory while it decodes                       | kept between uses         |
//! |-----------------|-----------------------------------------------|---------------------------|
//! | gzip, deflate   | 48 KiB                                        | the same                  |
//! | br              | window and tables, at most 24 MiB             | nothing                   |
//! | zstd            | window of at most 8 MiB (RFC 9659) and blocks | at most 4 MiB             |
//! | between layers  | about `bytes_max`, in two buffers             | at most 256 KiB in each   |
//!
//! No size that a server claims is believed: output grows by what was decoded. What broke off or went bad keeps
//! every byte decoded before.

mod brotli;
mod decoder;
mod gzip;
mod inflate;
mod limits;
mod names;
mod sink;
#[cfg(test)]
mod tests;
mod zstd;

pub use decoder::{ContentDecoder, Decoded};
pub use limits::CodingLimits;
pub(crate) use names::{ACCEPT_ENCODING, header_of, is_plain};
