//! What every process of the product is made of: threads and how they end, the log writer, the store's threads, counters.

pub(crate) mod actor;
pub(crate) mod counters;
pub(crate) mod driver_thread;
pub(crate) mod health;
pub(crate) mod log_writer;
pub(crate) mod notices;
pub(crate) mod outbox;
pub(crate) mod shard_lane;
pub(crate) mod shard_thread;
pub(crate) mod store_actors;
pub(crate) mod wiring;
