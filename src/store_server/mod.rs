//! The store: append-only segments, written through a map, durable by group commit.
//!
//! ```text
//!   shard:       ShardStore::append ── LZ4 straight into the map ──► publish (tail, sequence)
//!                     ▲ ready segment                                     │
//!   keeper:      Keeper::turn ── make, allocate, map, populate ahead      ▼
//!                             └─ msync what was published ──► durable point of the shard ──► DONE
//!                             └─ seal a finished segment: cut, sync, rename ──┐
//!   maintenance: Maintenance::turn ── index, merge indexes, drop, pack ◄──────┘
//!   reader:      Reader ── any process, by plain reads, while a crawl writes
//! ```
//!
//! | file             | holds                                                                      |
//! |------------------|----------------------------------------------------------------------------|
//! | `layout`         | the offset of every field of a segment and a record                        |
//! | `segment_header` | the first page of a segment                                                |
//! | `record`         | a record's facts, to bytes and back                                        |
//! | `block`          | its response, compressed, and back                                         |
//! | `templates`      | earlier pages of hosts, against which the next are compressed              |
//! | `mmap`           | mapped segments and indexes; one of the two folders that may hold `unsafe` |
//! | `data_dir`       | the data directory: key, recovery after a crash                            |
//! | `directory_lock` | one writer for it                                                          |
//! | `segment_file`   | a segment by its name                                                      |
//! | `scan`           | every record of a segment, whatever has happened to the file               |
//! | `dedup`          | which documents are stored already                                         |
//! | `shard_store`    | a shard's side                                                             |
//! | `keeper`         | the keeper's side                                                          |
//! | `shard_share`    | the state that both share                                                  |
//! | `rewrite`        | records that the disk refused, written again                               |
//! | `index`          | places of records, by URL, by document number and by digest                |
//! | `maintenance`    | the care of sealed segments                                                |
//! | `retention`      | which of them are dropped or packed                                        |
//! | `keep_set`       | which of their records stay                                                |
//! | `moving`         | a record on its way to another segment                                     |
//! | `pack`           | several segments into one                                                  |
//! | `record_intake`  | records of a spider in another process, as they come over a connection     |
//! | `reader`         | every other process's side                                                 |
//! | `holdings`       | which documents can be read, asked about many                              |
//! | `tail`           | the newest part of a store                                                 |
//! | `segment_source` | segments as bytes, for a copy elsewhere                                    |
//! | `segment_copy`   | the copy of another store, as it grows                                     |
//! | `segment_sum`    | the bytes of a segment summed up, and its records checked                  |
//! | `follow`         | sealed segments one after the other, for who copies them elsewhere         |
//! | `verify`         | everything read, followed and compared                                     |
//!
//! A segment in use is called `NUMBER-SHARD.open`, a sealed one `NUMBER-SHARD.seg`, one that the disk refused
//! `NUMBER-SHARD.bad`, and an index `NUMBER-SHARD.idx` or `TIER-FIRST-LAST.run`. Numbers only grow, so of two
//! records of one URL the newer is the one with the larger segment number, then the larger offset.

mod block;
mod data_dir;
mod dedup;
mod directory_lock;
mod follow;
mod holdings;
mod index;
mod keep_set;
mod keeper;
mod layout;
mod maintenance;
mod mmap;
mod moving;
mod pack;
mod policy;
mod reader;
mod record;
mod record_intake;
mod retention;
mod rewrite;
mod scan;
mod segment_copy;
mod segment_file;
mod segment_header;
mod segment_source;
mod segment_sum;
mod shard_share;
mod shard_store;
mod tail;
mod templates;
#[cfg(test)]
mod tests;
mod verify;

pub use data_dir::DataDir;
pub(crate) use data_dir::OpenError;
pub(crate) use directory_lock::Holder;
pub(crate) use follow::SealedSegment;
pub(crate) use holdings::Holdings;
pub(crate) use reader::{Age, Damage, Located};
pub use reader::{ReadError, Reader};
pub(crate) use record::{Document, Record};

pub(crate) use data_dir::HeldDirectory;
pub(crate) use keeper::{Keeper, KeeperError, Medium, Sealed, StoreRules, free_bytes_min};
pub(crate) use layout::HEADER_BYTES as RECORD_HEADER_BYTES;
pub(crate) use maintenance::{Maintenance, MaintenanceError};
pub(crate) use policy::{Compress, Dedup, History};
pub(crate) use record::NewRecord;
pub(crate) use record_intake::{Fed, RecordIntake, Stored};
pub(crate) use retention::{Retention, RetentionRules};
pub(crate) use segment_copy::SegmentCopy;
pub(crate) use segment_source::{Looked, SegmentSource};
pub(crate) use segment_sum::{Soundness, check_segment, sealed_segments, sum_segment};
pub(crate) use shard_share::ShardShare;
pub(crate) use shard_store::{AppendError, Appended, ShardStore};
pub(crate) use verify::Verified;
