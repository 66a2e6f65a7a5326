//! Masters and their nodes in virtual time: files of lines come to every master, each node takes its queue from one of them
//! and crawls what is in it, while links are cut, delayed and reset, processes are killed and started again, the table that
//! masters share is away, and their clocks differ.
//!
//! ```text
//!   MasterPlan (drawn from the seed) ──► MasterWorld ──► MasterCore × 2 · NodeCore with a MasterFeed × 3, over SimDriver
//!        files, and when each master gets them │              directories of a process outlive it
//!                                              └──► MasterJudge: requests as servers see them, indexes, audits
//! ```

mod judge;
mod plan;
mod process;
mod world;

pub use world::run_master;
