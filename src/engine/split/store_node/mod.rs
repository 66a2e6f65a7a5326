//! A store server process: spiders' connections in, records to disk, counts back.
//!
//! ```text
//!   spiders ──► acceptor thread: Acceptor (deals each connection to the worker with the fewest)
//!                  │ ring, one per worker
//!           worker threads: Worker (a driver with its connections, Intake, ShardStore), one per core
//!                  ▲ │  ready segments / published records
//!           keeper thread: Keeper ──► a durable point moved: workers are woken, and send counts
//! ```
//!
//! | file       | holds                                                              |
//! |------------|--------------------------------------------------------------------|
//! | `store_assembly` | every part, made and joined, without a thread                |
//! | `node`     | the threads: started, stopped, summed up                           |
//! | `acceptor` | who may come in, and to which worker                               |
//! | `worker`   | one core's connections                                             |
//! | `conn`     | one connection: bytes in, counts out, how it ends                  |
//!
//! A worker without a segment reads no connection, so that a spider that sends faster than the disk takes it has to wait.
//! Acceptor and worker are values over a driver: threads turn them here, a simulation in virtual time.

mod acceptor;
mod conn;
mod node;
mod store_assembly;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use store_assembly::{StoreCore, assemble_store_server};

pub use node::{StoreNode, StoreStats, StoreSummary};
