//! How things stand with a URL and with a crawl: asked of the crawl by a socket, or read from its files, and said in a
//! sentence. By the same socket it is told to stop, to pause, and of more URLs.

pub(crate) mod control;
pub(crate) mod crawl_rules;
pub(crate) mod explain;
pub(crate) mod handed;
pub(crate) mod node_status;
pub(crate) mod questions;
pub(crate) mod sentence;
pub(crate) mod status;
