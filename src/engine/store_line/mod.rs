//! A spider's records on their way to a store server in another process.
//!
//! ```text
//!   shard: RecordSink::append ──► parcel ring ──► desk: StoreDesk ──► links thread ──► store server
//!                                                   StoreLine: every record that is not counted, in order
//!   spider desk: DONE ◄── durable point of the shard ◄───┘ ◄── counts
//! ```
//!
//! | file   | holds                                                                       |
//! |--------|-----------------------------------------------------------------------------|
//! | `sink` | where the records of a shard go: segments of our own, or a line             |
//! | `line` | one shard's records that are not counted, and what its connection has of them |
//! | `desk` | the thread: every line, over links                                          |
//!
//! Each shard has a connection of its own: a count then is a sequence number of that shard, and the store server, which
//! has a connection on one core, can use as many cores as the spider.
//!
//! A line holds a bounded number of bytes. When it is full its shard keeps what has ended and starts nothing, exactly as
//! it does without a segment.

mod desk;
mod line;
mod sink;

pub(super) use desk::StoreThread;
pub(super) use sink::{RecordPlace, RecordSink};
