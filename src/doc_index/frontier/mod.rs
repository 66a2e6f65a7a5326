//! Pending documents: what is to be fetched next.
//!
//! | file          | holds                                                                        |
//! |---------------|------------------------------------------------------------------------------|
//! | `frontier`    | all hosts, and whose turn it is                                              |
//! | `host_table`  | hosts by the fingerprint of their origin                                     |
//! | `host_queues` | the queues of one host, by rank                                              |
//! | `host_queue`  | one queue, in memory and, past that, on disk; where all of them keep their bytes |
//! | `queued_doc`  | a document in a queue, and how it is written there                           |
//! | `queue_arena` | memory for very many small queues of bytes                                   |

#[allow(clippy::module_inception)]
mod frontier;
mod host_queue;
mod host_queues;
mod host_table;
mod queue_arena;
mod queued_doc;

pub use frontier::HostCounts;
pub(super) use frontier::{Frontier, NEAR_MAX, split};
pub(super) use queued_doc::QueuedDoc;
