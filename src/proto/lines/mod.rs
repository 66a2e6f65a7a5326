//! The lines of text that processes exchange about one URL; inside one process the values of [`job`](super::job) travel
//! on rings instead.
//!
//! ```text
//!   url server ── <TRANS_ID> <DOC_ID> <HOST_IP> [<HOST_NAME>] <URL> ──► spider      WorkOrder, WorkLine
//!   url server ◄── GET <URL_COUNT> · WORKING <TRANS_ID> · DONE <TRANS_ID> ── spider SpiderWord
//!   bytes, however cut ──► LineBuffer ──► lines
//! ```
//!
//! In the push dialect work has four fields and the status words come after the id; in the pull dialect work has
//! five fields and the words come first. Either end reads both.

mod fields;
mod line_buffer;
mod line_error;
mod spider_word;
mod work_line;

pub use line_buffer::LineBuffer;
pub use line_error::LineError;
pub(crate) use spider_word::Reported;
pub use spider_word::{Dialect, SpiderWord};
pub use work_line::{WorkLine, WorkOrder};
