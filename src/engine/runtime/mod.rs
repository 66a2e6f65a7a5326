//! What every process of the product is made of: threads and how they end, the log writer, the store's threads, counters.

pub(crate) mod counters;
pub(crate) mod log_writer;
pub(crate) mod log_writer_thread;
pub(crate) mod outbox;
pub(crate) mod store_threads;
pub(crate) mod threads;
