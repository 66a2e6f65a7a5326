//! `nephila cluster`: how the nodes of a cluster stand, and URLs and orders for it, through any of them. One file per sub-command.
//!
//! All of it is asked of a node that runs on this machine, by the socket in its data directory.

mod add_seeds;
mod asked;
mod command;
mod order;
mod status;
mod table;
mod verify;
mod wait;

pub(super) use asked::AskedNode;
pub(super) use command::ClusterArgs;
