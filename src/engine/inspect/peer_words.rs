use crate::doc_index::{IndexStats, Origin, Outbox, StillOurs};
use crate::proto::partition::{Partition, Share};
use std::sync::Arc;

/// What the peers of a node ask its index.
#[derive(Debug)]
pub enum PeerAsk {
    /// To take in what other nodes found; the answer waits until it is on disk.
    Adopt(Arc<Vec<PeerUrl>>),
    /// What these nodes are to know, out of a stretch of the ledger.
    Outbox { from: u64, until: u64, nodes: Arc<[u16]> },
    /// To go by another share, unless partitions that are lost by it have URLs.
    Share(Arc<Share>),
    /// Which of these partitions have no URLs.
    Empty(Vec<Partition>),
    /// How far it is.
    Stand,
}

/// A URL that another node found, in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerUrl {
    pub url: Box<str>,
    /// Where it was found, if it is to be fetched; otherwise it only spans the scope.
    pub found: Option<Origin>,
}

/// What the index says to it.
#[derive(Debug, PartialEq, Eq)]
pub enum PeerTold {
    Adopted(Adopted),
    Outbox(Result<Outbox, String>),
    /// It is gone by, or why it is not; or what the disk refused.
    Shared(Result<Result<(), StillOurs>, String>),
    Empty(Vec<Partition>),
    Standing(Standing),
}

/// How far an index is, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub stats: IndexStats,
    /// Where the ledger ends, with what is not in its file yet.
    pub ledger_end: u64,
}

/// What became of URLs that other nodes found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    pub new: u64,
    pub known: u64,
    /// No URLs in normal form.
    pub bad: u64,
    /// Partitions of those that are not ours, each once; none of these was taken.
    pub not_ours: Vec<Partition>,
}
