//! A spider's records on their way to a store server in another process.
//!
//! ```text
//!   shard: RecordSink::append ──► ring ──► RecordSender ──► links ──► store server
//!                                            Lane: every record of the shard that is not counted, in order
//!   spider's dispatcher: DONE ◄── durable point of the shard ◄──┘ ◄── counts
//! ```
//!
//! | file            | holds                                                                          |
//! |-----------------|--------------------------------------------------------------------------------|
//! | `sink`          | where the records of a shard go: segments of our own, or a store server        |
//! | `lane`          | one shard's records that are not counted, and whether its connection counts    |
//! | `record_sender` | every lane over links, as one value that a thread or a simulation turns        |
//! | `last_counts`   | how long the last counts are waited for                                        |
//! | `thread`        | the thread that turns it                                                       |
//!
//! Each shard has a connection of its own: a count then is a sequence number of that shard, and the store server, which
//! has a connection on one core, can use as many cores as the spider.
//!
//! A lane holds a bounded number of bytes. When it is full its shard keeps what has ended and starts nothing, exactly as
//! it does without a segment.

mod lane;
mod last_counts;
#[expect(clippy::module_inception, reason = "the folder's one value, in the file of its name")]
mod record_sender;
mod sink;
mod thread;

pub(crate) use record_sender::{RecordSender, SenderParts};
pub(crate) use sink::SenderPort;
pub(super) use sink::{RecordPlace, RecordSink};
pub(super) use thread::StoreThread;
