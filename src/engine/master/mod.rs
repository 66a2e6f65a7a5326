//! The master as a process: files of URLs in, the queue of every node out.
//!
//! ```text
//!   senders ── lines ──► intake: IntakeActor ── files ──┐
//!   senders ── rename in ───────────────────────────► spool
//!                                                       │ whole files
//!                       epochs: EpochActor (Spool, master::keeping::Master) ◄──► database: Postgres
//!                            │ committed, servers, FENCED      ▲ what nodes hand over and report
//!                            ▼                                 │
//!                        nodes: QueueServer ── links ── TAKE · DONE · LOAD ◄── nodes
//! ```
//!
//! | file           | holds                                                                     |
//! |----------------|---------------------------------------------------------------------------|
//! | `assembly`     | the actors as plain values, and the rings between them                    |
//! | `node`         | the threads: started, stopped, summed up                                  |
//! | `spool`        | which files of a directory are whole                                      |
//! | `epoch_actor`  | epochs, as files come and time goes by                                    |
//! | `intake_actor` | the TCP line; `piece`: lines of one sender on their way into the spool    |
//! | `queue_server` | who takes from which queue; `node_link`: one connection                   |
//! | `peer_link`    | what two masters ask each other                                           |
//! | `orders`       | what an operator asks for: files in `orders` of the data directory        |
//! | `messages`     | what they tell each other                                                 |
//! | `database`     | the table `partner_domain` in PostgreSQL, that two masters share          |

mod assembly;
mod database;
mod epoch_actor;
mod intake_actor;
mod messages;
mod node;
mod node_link;
mod orders;
mod peer_link;
mod piece;
mod queue_server;
mod spool;

pub(crate) use assembly::{MasterCore, MasterMeans, assemble_master};
pub use database::{Postgres, Stranger};
pub(crate) use epoch_actor::{TABLE_NOTE, drained, join_rules, keep_pair_terms, master_rules};
pub(crate) use node::{MasterNode, MasterSummary};
pub(crate) use orders::{OrderOf, give_order};
