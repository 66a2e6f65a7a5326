//! WARC files without I/O: records to bytes and back, and the index lines that find them.
//!
//! ```text
//!   WARC/1.1                          version
//!   WARC-Type: response               named fields ─────────► WarcHead
//!   Content-Length: 1234
//!                                     blank line
//!   HTTP/1.1 200 OK …                 block, of that length ─► pieces, as they come
//!                                     two blank lines
//! ```
//!
//! | file       | holds                                                                     |
//! |------------|---------------------------------------------------------------------------|
//! | `head`     | version and named fields of a record, read and asked                      |
//! | `parser`   | bytes of a file, however cut, to heads and blocks                         |
//! | `write`    | one record to bytes                                                       |
//! | `date`     | moments as WARC and CDXJ tell them                                        |
//! | `digest`   | SHA-1 in base 32, and record ids that follow from what the record is      |
//! | `surt`     | a URL as the key it is sorted by                                          |
//! | `sessions` | the session ids that such a key leaves out                                |
//! | `cdxj`     | a record to its line of an index                                          |
//!
//! Versions 0.17, 0.18, 1.0 and 1.1 are read, 1.1 is written. A reader holds one head of at most 64 KiB and nothing of
//! a block: what is done with it, and how much of it is kept, is the caller's affair.

mod cdxj;
mod date;
mod digest;
mod head;
mod parser;
mod sessions;
mod surt;
mod write;

pub(crate) use cdxj::Indexed;
pub use cdxj::{CdxjLine, Place};
pub use date::read_date;
pub(crate) use date::warc_date;
pub(crate) use digest::{base32, record_id, sha1_label};
pub(crate) use head::Kind;
pub use head::WarcHead;
pub use parser::{WarcError, WarcParser, WarcStep};
pub use surt::surt;
pub(crate) use write::RECORD_END;
pub use write::write_record;

/// Bytes of one record's version and fields, blank line included.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The profile of a record whose payload another record has.
pub(crate) const PROFILE_SAME_PAYLOAD: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// The profile of a record that says that nothing has changed.
pub(crate) const PROFILE_NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
