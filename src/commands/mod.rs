//! What a user types: one file per sub-command, thin. Each turns flags into a configuration, hands it down, and
//! turns the answer into text, JSON and an exit status.
//!
//! Exit status: 0 done, 1 the answer is "no", 2 usage or configuration error, 3 could not run; each failure with
//! one line on stderr that names the cause and the mend.

mod add;
mod audit;
mod bench;
mod cli;
mod cluster;
mod completions;
mod config;
mod crawl;
mod demo;
mod demo_feeds;
mod demo_master;
mod demo_nodes;
mod explain;
mod export;
mod farm;
mod feeds;
mod help;
mod import;
mod index;
mod index_hosts;
mod index_import;
mod index_stat;
mod man;
mod master;
mod metrics;
mod node;
pub mod parse;
mod pause;
mod reflog;
mod robots;
mod roff;
mod search;
#[cfg(feature = "search")]
mod search_answers;
mod settings;
mod shared;
mod sim;
mod spider;
mod status;
mod stop;
mod store;
mod store_care;
mod store_follow;
mod storeserver;
mod stories;
mod tune;
mod tune_change;
mod urlserver;
mod usage;

pub use cli::{Cli, run};
use shared::machine;
pub use shared::machine::survive_file_limits;
