use crate::base::SortedSet;
use crate::doc_index::{Copying, IndexStats, Moving, Origin, Outbox, StillOurs};
use crate::proto::partition::{Partition, Share};
use crate::proto::url::CrawlUrl;
use std::sync::Arc;

/// Partitions that stay together.
pub type Partitions = Arc<SortedSet<Partition>>;

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
    /// Whether something of partitions that leave is handed out still.
    IsOut(Partitions),
    /// What is known of the documents of partitions that leave, from a place of the ledger on.
    Moving { from: u64, partitions: Partitions },
    /// To keep partitions that were to leave.
    Stay(Partitions),
    /// To take in what another node hands over; the answer waits until it is on disk.
    TakeMoved(Arc<MovedDocs>),
    /// All that it knows, from a place of the ledger on, and what changes.
    Copying { from: u64 },
    /// How far it is.
    Stand,
}

/// What another node hands over, some of it.
#[derive(Debug, Default)]
pub struct MovedDocs {
    pub docs: Vec<MovedDoc>,
    /// What spans the scope of a node that is taken over: in normal form.
    pub in_scope: Vec<Box<str>>,
    /// Lines of the journal of hosts.
    pub nice: String,
}

/// A document of it, whose URL is in normal form.
#[derive(Debug)]
pub struct MovedDoc {
    pub url: Box<str>,
    pub origin: Origin,
    /// What became of it; empty if nothing did.
    pub row: Box<[u8]>,
}

/// What the rest of a crawl is to know of an answer.
#[derive(Debug, Default)]
pub struct PeerNews {
    /// In scope from now on.
    pub into_scope: Vec<CrawlUrl>,
    /// Hosts that may be asked again, by their origins.
    pub opened: Vec<Box<str>>,
    /// Lines of the journal of hosts that come here.
    pub nice: String,
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
    IsOut(bool),
    Moving(Result<Moving, String>),
    Stays,
    /// How many of them could not be read.
    TookMoved {
        bad: u64,
    },
    Copying(Result<Copying, String>),
    Standing(Standing),
}

/// How far an index is, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub stats: IndexStats,
    /// Where the ledger ends, with what is not in its file yet.
    pub ledger_end: u64,
    /// Of the share that it goes by.
    pub epoch: u64,
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
