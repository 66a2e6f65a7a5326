//! Nodes of a cluster in virtual time: they join one after the other, URLs are typed at any of them, and each fetches what is its
//! own, while links between them are cut, delayed and reset, nodes are killed and started again or lose their disks, one of them is
//! drained, and their clocks differ.
//!
//! ```text
//!   ClusterPlan (drawn from the seed) ──► ClusterWorld ──► NodeCore with a PeerActor × 2 to 7, over SimDriver
//!        what is typed where, and when │                       directories of a node outlive it
//!                                      ├──► SimEtcd: the council of some, with outages and lost answers
//!                                      ├──► ClusterJudge: requests as servers see them
//!                                      └──► SeenTables, Claims: what nodes go by, and what each may ask in true time
//! ```

mod claims;
mod etcd;
mod judge;
mod node;
mod plan;
mod world;
mod wrong;

pub use plan::{IDLE_NODES_MAX as CLUSTER_IDLE_NODES_MAX, NODES_MAX as CLUSTER_NODES_MAX};
pub use world::{run_cluster, run_idle};
pub use wrong::Wrong as ClusterWrong;
