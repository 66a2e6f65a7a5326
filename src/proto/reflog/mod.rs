//! The reflog of a banner system: which URLs were asked for, when, and how often.
//!
//! ```text
//!   <batch_id> \t <priority> \t <timestamp> \t <page_id> \t <url> \t <hits> [\t <updatetag>]
//! ```
//!
//! Real files are rougher: a record may be broken before its URL, before its hits, or at both places, and lines of
//! unknown content stand around it. A record begins with digits, tab, digits, tab, fourteen digits; what is broken off is
//! a URL or a number of hits, so that lines are joined again by their shape alone.
//!
//! | line                                                  | is                                                  |
//! |-------------------------------------------------------|-----------------------------------------------------|
//! | six or seven fields                                   | a record; the tag may be empty                      |
//! | ends behind page or URL, with its tab or without      | the beginning of one, if the next line goes on      |
//! | four fields with a time, or six, and a bad one among them | a reject that names the field                   |
//! | more than [`LINE_BYTES_MAX`]                          | a reject up to its end                              |
//! | blank                                                 | nothing, also within a record                       |
//! | anything else                                         | of unknown content: counted                         |

mod line;
mod reader;
mod record;
mod reject;
mod stamp;
#[cfg(test)]
mod tests;

pub use line::{fields, number};
pub use reader::{LINE_BYTES_MAX, ReflogCounts, ReflogReader};
pub use record::{DIGITS_MAX, ReflogRecord, TAG_BYTES_MAX};
pub use reject::{Reject, RejectReason, TEXT_BYTES_MAX, Told};
pub use stamp::{Stamp, StampReader, StampWriter};
