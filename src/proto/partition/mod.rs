//! Which part of the web a URL belongs to, when several nodes share a crawl.
//!
//! ```text
//!   URL ── Spread: its domain, its host, or all of it ──► key ── hash with the cluster's seed ──► Partition, 0..4096
//! ```
//!
//! A partition has one owner at a time, and moves from node to node whole. All nodes of a cluster have the same spread and
//! seed, so that each of them says the same of every URL; who owns a partition is the table's to say.

mod partitioner;
mod share;
mod spread;
#[cfg(test)]
mod tests;

pub use crate::limits::PARTITIONS;
pub use partitioner::{Partition, Partitioner};
pub use share::Share;
pub use spread::{Spread, UnknownSpread};
