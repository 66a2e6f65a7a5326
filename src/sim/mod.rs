//! A whole node on one thread, in virtual time, against a made-up web that misbehaves: every run from one seed.
//!
//! ```text
//!   Plan (drawn from the seed) ──► SimWorld ──► the engine's own Shard, Scheduler, IndexActor, Keeper
//!                                     │              over SimDriver
//!                                     └──► Judge: sees every request, checks after every step and at the end
//! ```
//!
//! Split over processes it is drawn in the folder `split`, masters with their nodes in the folder `master`, nodes
//! of a cluster in the folder `cluster`, and feeds that are polled for weeks in the folder `feeds`.
//!
//! What is checked: no URL is lost, none is in flight twice, no host or address is asked too early, nothing is
//! asked before robots.txt or against it, no slot is used again too soon, and all of it while connections are
//! refused, reset, stalled, slowed and cut anywhere, while hosts have addresses at which nobody is, and while shards
//! die.

#[cfg(test)]
mod allocations;
mod cluster;
mod feeds;
mod judge;
mod master;
mod misfortunes;
mod plan;
mod report;
mod split;
mod turning;
mod web;
mod world;

pub use cluster::{CLUSTER_IDLE_NODES_MAX, CLUSTER_NODES_MAX, ClusterWrong, run_cluster, run_idle};
pub use feeds::{run_feeds, run_feeds_for};
pub use master::run_master;
pub use report::SimReport;
pub use split::run_split;
pub use world::{run, run_pages};
