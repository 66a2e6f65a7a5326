//! The same roles in processes of their own: URL server and spider, joined by links.

pub(crate) mod remote_shard;
pub(crate) mod spider_dispatcher;
pub(crate) mod spider_node;
pub(crate) mod spider_shard;
pub(crate) mod url_node;
