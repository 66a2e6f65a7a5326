//! How things stand with a URL and with a crawl: asked of the crawl at its desk, or read from its files, and said in a
//! sentence. There it is told to stop, to pause, and of more URLs, too.

pub(crate) mod cluster_view;
pub(crate) mod crawl_rules;
pub(crate) mod desk;
pub(crate) mod domains;
pub(crate) mod entries;
pub(crate) mod explain;
pub(crate) mod explained;
pub(crate) mod feed_words;
pub(crate) mod handed;
pub(crate) mod handover;
pub(crate) mod loan_desk;
pub(crate) mod master_line;
pub(crate) mod node_status;
pub(crate) mod peer_words;
pub(crate) mod questions;
pub(crate) mod reports;
pub(crate) mod sentence;
pub(crate) mod status;
pub(crate) mod verify_view;
