//! The store: append-only segments, written through a map, durable by group commit.
//!
//! ```text
//!   shard:   ShardStore::append ── LZ4 straight into the map ──► publish (tail, sequence)
//!                 ▲ ready segment                                     │
//!   keeper:  Keeper::turn ── make, allocate, map, populate ahead      ▼
//!                         └─ msync what was published ──► durable point of the shard ──► DONE
//!                         └─ seal a finished segment: cut, sync, rename
//!   reader:  Reader ── any process, by plain reads, while a crawl writes
//! ```
//!
//! | file        | holds                                                                  |
//! |-------------|------------------------------------------------------------------------|
//! | `layout`    | where every field of a segment and a record is: told once              |
//! | `record`    | a record's facts, to bytes and back                                    |
//! | `mmap`      | the mapped segment file; one of the two folders that may hold `unsafe` |
//! | `directory` | the data directory: lock, names, recovery of what a crash left         |
//! | `append`    | a shard's side                                                         |
//! | `keeper`    | the keeper's side                                                      |
//! | `intake`    | records of another process's spider, as they come over one connection  |
//! | `reader`    | everybody else's side                                                  |
//!
//! A segment in use is called `NUMBER-SHARD.open`, a sealed one `NUMBER-SHARD.seg`. Numbers only grow, so of two
//! records of one URL the newer is the one with the larger segment number, then the larger offset.

mod append;
mod digests;
mod directory;
mod header;
mod intake;
mod keeper;
mod layout;
mod mmap;
mod reader;
mod record;
#[cfg(test)]
mod tests;

pub use append::{AppendError, Appended, ShardShare, ShardStore};
pub use digests::StoredDigests;
pub use directory::{DataDir, OpenError};
pub use header::SegmentHeader;
pub use intake::{Fed, Intake, Stored};
pub use keeper::{Keeper, KeeperError, Medium, StoreRules};
pub use reader::{Located, ReadError, Reader};
pub use record::{Document, NewRecord, Record};
