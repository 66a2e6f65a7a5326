//! How things stand with a URL: asked of a running crawl by a socket, or read from its files, and said in a sentence.

pub(crate) mod control;
pub(crate) mod crawl_rules;
pub(crate) mod explain;
pub(crate) mod questions;
pub(crate) mod status;
