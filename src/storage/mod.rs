//! What roles keep on a disk, and in memory beyond the allocator's: mechanism that knows nothing of crawling.
//!
//! | file          | holds                                                                          |
//! |---------------|--------------------------------------------------------------------------------|
//! | `files`       | files that take their name when they are whole and durable; secrets; directory syncs |
//! | `checked_text`| small files of text that are checked by their last line                        |
//! | `journal_lines` | records of a journal, one a line, each with its checksum                     |
//! | `bytes`       | bytes that grow at their end, in a file or in memory                           |
//! | `spill`       | pieces that memory has no room for, written once and read once                 |
//! | `huge_buffer` | memory in cache lines, of the kernel's huge pages where it is large            |
//! | `runs`        | sorted runs of fingerprints: written, searched, merged; a merge of any sources |
//! | `seen`        | the seen-set: is a URL known, or new?                                          |

mod bytes;
mod checked_text;
mod files;
mod huge_buffer;
mod journal_lines;
pub(crate) mod runs;
pub(crate) mod seen;
mod spill;

pub(crate) use bytes::Bytes;
pub(crate) use checked_text::{checked, checked_lines};
pub(crate) use files::{
    FRESH, NewFile, keep_secret, make_data_directory, make_directory, mend, replace, replace_secret,
    sync_directory, sync_parent,
};
pub(crate) use huge_buffer::{HUGE_LINES, HugeBuffer, LINE_BYTES};
pub(crate) use journal_lines::{JournalLines, put_line};
pub(crate) use spill::{Piece, Spill};
