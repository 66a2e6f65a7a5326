use super::events::Event;
use super::notices::{Fields, Notices};
use super::pulse::Pulses;
use crate::base::counted;
use crate::storage::mend;
use crate::store_server::KeeperError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// How the threads of a process are: what keeps it from going on, what it waits for, and what users are told.
#[derive(Default)]
pub struct Health {
    fatal: Mutex<Option<NodeError>>,
    has_fatal: AtomicBool,
    /// A new part of the crawl log was asked for.
    log_part_asked: AtomicBool,
    /// What each part of the process waits for, in words for a user.
    waiting: Mutex<[Option<String>; Part::COUNT]>,
    /// Shards that wait for the network.
    pub(crate) without_network: Arc<AtomicUsize>,
    pub(crate) notices: Notices,
    pub(crate) pulses: Pulses,
    /// Somebody does not want to wait for what the next run could do as well.
    pub(crate) in_haste: Arc<AtomicBool>,
}

/// A part of a process that may wait for a disk, for name servers, or for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Store,
    Log,
    Index,
    Network,
    Names,
    Master,
    Epoch,
}

impl Part {
    const COUNT: usize = 7;
    const ALL: [Part; Part::COUNT] =
        [Part::Store, Part::Log, Part::Index, Part::Network, Part::Names, Part::Master, Part::Epoch];

    pub fn name(self) -> &'static str {
        match self {
            Part::Store => "store",
            Part::Log => "log",
            Part::Index => "index",
            Part::Names => "names",
            Part::Network => "network",
            Part::Master => "master",
            Part::Epoch => "epoch",
        }
    }
}

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("cannot pin a shard to core {core}: {cause} (choose others with --cores)")]
    Pin { core: usize, cause: io::Error },
    #[error("cannot start the {driver} driver: {cause}")]
    Driver { driver: &'static str, cause: io::Error },
    #[error("the {driver} driver failed: {cause}")]
    Wait { driver: &'static str, cause: io::Error },
    #[error("a shard died {0} times: giving up")]
    Restarts(u32),
    #[error("{0}; nothing that was counted is lost")]
    Keeper(#[from] KeeperError),
    /// The store could not begin.
    #[error("{0}")]
    NoStore(KeeperError),
    #[error("cannot write to {path}: {cause} (choose another directory with --data)")]
    LogWriter { path: PathBuf, cause: io::Error },
    #[error("the crawl log or the journal of hosts: {0}{mend}; what was counted is stored", mend = mend(.0))]
    Log(io::Error),
    #[error("the doc index: {0}{mend}; what was counted is stored, and is found again", mend = mend(.0))]
    Index(io::Error),
    #[error("feeds and stories: {0}{mend}", mend = mend(.0))]
    Feeds(io::Error),
    #[error("{0}")]
    Content(String),
    #[error(
        "the {0} thread died of a mistake in the program; what was counted is stored, and is found again"
    )]
    Died(&'static str),
    #[error("cannot listen on {addr}: {cause} (choose another address with --listen)")]
    Listen { addr: SocketAddr, cause: io::Error },
    #[error(
        "{} could not be delivered to the store server {address}; their URLs were not answered for",
        counted(*.records as u64, "record")
    )]
    Undelivered { address: String, records: usize },
    #[error("{0}; no URL was judged by it, and the next run goes on")]
    Names(String),
    /// What was taken from a master cannot be told.
    #[error("{0}")]
    Master(String),
    /// What keeps a node from being one of its cluster.
    #[error("{0}")]
    Cluster(String),
    #[error(
        "other nodes have taken over {} of this node, which they did not hear: it begins anew with what is left to it",
        counted(*.partitions as u64, "partition")
    )]
    TakenOver { partitions: usize },
    #[error("{0}")]
    Dealing(String),
    #[error("the spool {path}: {cause} (choose another with spool of [master])")]
    Spool { path: PathBuf, cause: io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Health {
    /// Notes the first error after which the process cannot go on.
    pub(crate) fn fatal(&self, error: NodeError) {
        let mut fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner);
        fatal.get_or_insert(error);
        self.has_fatal.store(true, Ordering::Release);
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.has_fatal.load(Ordering::Acquire)
    }

    /// The fatal error, if there was one.
    pub(crate) fn take(&self) -> Result<(), NodeError> {
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.map_or(Ok(()), Err)
    }

    /// Notes what a part waits for, or that it does not.
    pub(crate) fn wait_for(&self, part: Part, what: Option<String>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)[part as usize] = what;
    }

    /// What the process waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.waiting().map(|(_, what)| what)
    }

    /// Whether something cannot be written at this moment.
    pub(crate) fn waits_for_disk(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        [Part::Store, Part::Log, Part::Index, Part::Master, Part::Epoch]
            .into_iter()
            .any(|part| waiting[part as usize].is_some())
    }

    /// The same, with the part that waits.
    pub fn waiting(&self) -> Option<(Part, String)> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Part::ALL.into_iter().find_map(|part| Some((part, waiting[part as usize].clone()?)))
    }

    /// Whether a shard waits for the network of this machine.
    pub(crate) fn lacks_network(&self) -> bool {
        self.without_network.load(Ordering::Acquire) > 0
    }

    pub(crate) fn tell(&self, event: Event, fields: Fields, text: impl Into<String>) {
        self.notices.tell(event, fields, text);
    }

    /// Asks the log writer for a new part.
    pub(crate) fn ask_log_part(&self) {
        self.log_part_asked.store(true, Ordering::Release);
    }

    /// Whether one is asked for; once it is made, it is not any more.
    pub(crate) fn is_log_part_asked(&self) -> bool {
        self.log_part_asked.load(Ordering::Acquire)
    }

    pub(crate) fn log_part_made(&self) {
        self.log_part_asked.store(false, Ordering::Release);
    }

    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// The threads that must turn.
    pub fn pulses(&self) -> &Pulses {
        &self.pulses
    }
}
