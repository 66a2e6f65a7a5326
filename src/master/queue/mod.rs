//! The queue of a server: numbered entries, durable, for a node to take from any number on.
//!
//! ```text
//!   queue/<server>/00000000000000000000.seg     segment: a header, then blocks
//!                  00000000000000812345.seg     its name is the number of its first entry
//!                  position                     below it the node has everything on disk
//!
//!   Queue ── append ──► open block ──LZ4──► segment ── sync ──► the journal's COMMIT ──► publish
//!                                                                                          │
//!                                                QueueReader ◄── committed blocks ── Shelf ┘
//! ```
//!
//! An entry is a line: a reflog line, or a word to the node (`CLOSE`, `NICE`, `OPEN`) in its place among them. Blocks hold
//! the lines as they are sent, and each is of one commit. What the journal has not committed is seen by nobody, and cut
//! away by the next process.

mod block;
mod error;
mod line;
mod position;
mod queue;
mod reader;
mod segment;
mod shelf;
#[cfg(test)]
mod tests;

pub use block::{BlockHeader, BlockKind, ENTRY_BYTES_MAX};
pub use error::QueueError;
pub use line::Entry;
pub(crate) use queue::open_shelf;
pub use queue::{Batch, Queue, QueueEnd, QueueLimits};
pub use reader::QueueReader;
pub use segment::{Damage, segment_entries, segment_header};
