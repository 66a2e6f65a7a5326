//! The lines of text that processes exchange about one URL; inside one process the values of [`job`](super::job) travel
//! on rings instead.
//!
//! ```text
//!   url server ── <TRANS_ID> <DOC_ID> <HOST_IP> [<HOST_NAME>] <URL> ──► spider      WorkOrder, WorkLine
//!   url server ◄── GET <URL_COUNT> · WORKING <TRANS_ID> · DONE <TRANS_ID> ── spider SpiderWord
//!   node ── TAKE · DONE · LOAD · HAND · CLOSED · PAGE · CLEAN ──► master            NodeWord
//!   node ◄── entries of its queue · UPTO · FENCED · ERROR ── master                 MasterWord
//!   bytes, however cut ──► LineBuffer ──► lines
//! ```
//!
//! In the push dialect work has four fields and the status words come after the id; in the pull dialect work has
//! five fields and the words come first. Either end reads both. A master and a node speak lines of up to
//! [`MASTER_LINE_BYTES_MAX`](crate::limits::MASTER_LINE_BYTES_MAX) bytes; the entries of a queue come in its order.

mod fields;
mod line_buffer;
mod line_error;
mod master_word;
mod spider_word;
mod work_line;

pub use line_buffer::LineBuffer;
pub use line_error::LineError;
pub use master_word::{Handed, MasterWord, NodeWord, TakeFrom};
pub(crate) use spider_word::Reported;
pub use spider_word::{Dialect, SpiderWord};
pub use work_line::{WorkLine, WorkOrder};
