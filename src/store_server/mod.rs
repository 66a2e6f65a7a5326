//! The store: append-only segments, written through a map, durable by group commit.
//!
//! ```text
//!   shard:   ShardStore::append ── LZ4 straight into the map ──► publish (tail, sequence)
//!                 ▲ ready segment                                     │
//!   keeper:  Keeper::turn ── make, allocate, map, populate ahead      ▼
//!                         └─ msync what was published ──► durable point of the shard ──► DONE
//!                         └─ seal a finished segment: cut, sync, rename ──┐
//!   librarian: Librarian::turn ── index, merge indexes, let go, pack ◄──────┘
//!   reader:  Reader ── any process, by plain reads, while a crawl writes
//! ```
//!
//! | file        | holds                                                                      |
//! |-------------|----------------------------------------------------------------------------|
//! | `layout`    | where every field of a segment and a record is: told once                  |
//! | `header`    | the first page of a segment                                                |
//! | `record`    | a record's facts, to bytes and back                                        |
//! | `mmap`      | mapped segments and indexes; one of the two folders that may hold `unsafe` |
//! | `directory` | the data directory: lock, names, recovery of what a crash left             |
//! | `digests`   | which documents are stored already                                         |
//! | `append`    | a shard's side                                                             |
//! | `keeper`    | the keeper's side                                                          |
//! | `rescue`    | what becomes of records that the disk refused                              |
//! | `walk`      | a segment from its first record to its last, whatever has happened to it   |
//! | `index`     | where records lie, by URL, by document number and by digest                |
//! | `librarian` | what is done with sealed segments                                          |
//! | `retention` | which of their records stay                                                |
//! | `pack`      | some segments into one                                                     |
//! | `intake`    | records of another process's spider, as they come over one connection       |
//! | `reader`    | everybody else's side                                                      |
//! | `tail`      | the newest part of a store, for whoever knows the rest                     |
//! | `verify`    | everything read, followed and compared                                     |
//!
//! A segment in use is called `NUMBER-SHARD.open`, a sealed one `NUMBER-SHARD.seg`, one that the disk refused
//! `NUMBER-SHARD.bad`, and an index `NUMBER-SHARD.idx` or `TIER-FIRST-LAST.run`. Numbers only grow, so of two
//! records of one URL the newer is the one with the larger segment number, then the larger offset.

mod append;
mod digests;
mod directory;
mod header;
mod index;
mod intake;
mod keeper;
mod layout;
mod librarian;
mod mmap;
mod pack;
mod policy;
mod reader;
mod record;
mod rescue;
mod retention;
mod tail;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

pub use append::{AppendError, Appended, ShardShare, ShardStore};
pub use digests::StoredDigests;
pub use directory::{DataDir, HeldDirectory, OpenError};
pub use header::SegmentHeader;
pub use intake::{Fed, Intake, Stored};
pub use keeper::{Keeper, KeeperError, Medium, Sealed, StoreRules};
pub use librarian::{Keeping, Librarian, LibraryError, Reindexed};
pub use policy::{Dedup, History};
pub use reader::{Damage, Located, Newest, ReadError, Reader};
pub use record::{Document, NewRecord, Record};
pub use retention::{LetGo, Retention, RetentionError};
pub use verify::Verified;
