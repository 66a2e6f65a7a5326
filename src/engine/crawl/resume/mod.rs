//! Taking up: what a process that was killed has stored and could not tell the doc index of. The next process tells it, as
//! if it had just been fetched, so that nobody is asked for it again.
//!
//! ```text
//!   IndexedMark ──► first segment that may have something untold
//!   Reader::tail ──► of each shard the newest segments from there on, back to one that begins with something told
//!        │ record by record, in the order they were written
//!        ▼
//!   told? (the row is of the same second or later) ──► yes: next
//!        │ no
//!        ▼
//!   document ──► handler ──► links, then outcome ──► IndexActor (as from a shard)
//!   all told, and synced ──► IndexedMark moves
//! ```
//!
//! What a shard has written the index is told in the same order, so what it was not told of is the end of each shard's
//! records. It is taken up in that order, too: killed in the middle, the next process goes on from there. No segment is
//! made before all is told.
//!
//! A record is left alone, and its URL is fetched again, if the index has another URL by its number (the end of its ledger
//! was lost with the machine's power), or if its document is not there.

mod indexed_mark;
mod resumption;
#[cfg(test)]
mod tests;

pub(crate) use indexed_mark::IndexedMark;
pub use resumption::Resumed;
pub(crate) use resumption::Resumption;
