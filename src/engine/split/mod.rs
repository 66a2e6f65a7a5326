//! The same roles in processes of their own: URL server and spider, joined by links.

pub(crate) mod messages;
pub(crate) mod order_queue;
pub(crate) mod order_sink;
pub(crate) mod record_sender;
pub(crate) mod remote_queues;
pub(crate) mod spider_assembly;
pub(crate) mod spider_dispatcher;
pub(crate) mod spider_node;
pub(crate) mod store_node;
pub(crate) mod url_assembly;
pub(crate) mod url_node;
