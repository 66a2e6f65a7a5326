//! A crawl in one process: scheduler, shards, the doc index behind its rings, and what joins them.

pub(crate) mod address_owners;
pub(crate) mod assembly;
pub(crate) mod completion;
pub(crate) mod index_actor;
pub(crate) mod index_link;
pub(crate) mod local_queues;
pub(crate) mod messages;
pub(crate) mod node;
pub(crate) mod node_setup;
pub(crate) mod open_index;
pub(crate) mod open_questions;
pub(crate) mod page_sink;
pub(crate) mod placement;
pub(crate) mod provider;
pub(crate) mod queues;
pub(crate) mod resolution;
pub(crate) mod resume;
pub(crate) mod robots_exchange;
pub(crate) mod scheduler;
pub(crate) mod settings;
pub(crate) mod shard;
pub(crate) mod shard_log;
pub(crate) mod shutdown;
pub(crate) mod stored;
pub(crate) mod stored_pages;
#[cfg(test)]
mod tests;
