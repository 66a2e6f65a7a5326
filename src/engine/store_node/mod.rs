//! A store server process: spiders' connections in, records to disk, counts back.
//!
//! ```text
//!   spiders ──► door thread: Door (accepts, deals each connection to the worker with the fewest)
//!                  │ ring, one per worker
//!           worker threads: Worker (connections, Intake, ShardStore), one per core
//!                  ▲ │  ready segments / published records
//!           keeper thread: Keeper ──► a durable point moved: workers are woken, and write counts
//! ```
//!
//! | file     | holds                                                              |
//! |----------|--------------------------------------------------------------------|
//! | `node`   | the threads: started, stopped, summed up                           |
//! | `door`   | who may come in, and to which worker                               |
//! | `worker` | one core's connections                                             |
//! | `conn`   | one connection: bytes in, counts out, how it ends                  |
//!
//! Whoever sends faster than the disk takes it is not read: a worker without a segment reads nobody.

mod conn;
mod door;
mod node;
#[cfg(test)]
mod tests;
mod worker;

pub use node::{StoreNode, StoreStats, StoreSummary};
