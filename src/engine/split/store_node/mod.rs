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
//! | file         | holds                                                                    |
//! |--------------|--------------------------------------------------------------------------|
//! | `store_core` | acceptor, workers and keeper as plain values, and the rings between them |
//! | `store_assembly` | the same out of settings: a process before it has threads             |
//! | `node`       | the threads: started, stopped, summed up                                 |
//! | `acceptor`   | who may come in, and to which worker                                     |
//! | `worker`     | one core's connections                                                   |
//! | `conn`       | one connection: bytes in, counts out, how it ends                        |
//!
//! A worker without a segment reads no connection, so that a spider that sends faster than the disk takes it has to wait.
//! Acceptor and workers are values over a driver: threads turn them, or a simulation in virtual time.

mod acceptor;
mod conn;
mod node;
mod store_assembly;
mod store_core;
#[cfg(test)]
mod tests;
mod worker;

pub use node::{StoreNode, StoreSummary};
pub(crate) use store_assembly::{StoreServer, assemble_store_server};
