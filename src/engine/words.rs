use crate::doc_index::{IndexStats, RejectList};
use crate::handler::LinkBatch;
use crate::proto::lines::{Candidate, Job, Reported, TransId};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;
use std::sync::Arc;

/// From the scheduler to a shard.
pub enum ToShard {
    /// A URL to fetch. `epoch` is that of the shard it was dealt to: a shard that was restarted since ignores it,
    /// as it will be dealt again.
    Work { epoch: u32, job: Job },
    /// A seed's redirects ended there: its host is in scope.
    Scope(Arc<CrawlUrl>),
    /// Start nothing new; let what is open end.
    Drain,
}

/// From a shard to the scheduler.
pub enum FromShard {
    Done(Done),
    /// The fetch of this document takes its time.
    Working {
        doc_id: u32,
    },
    /// The shard died and a new one took its place; everything it had is to be dealt again. `suspect` is the
    /// document it was busy with.
    Restarted {
        epoch: u32,
        suspect: Option<u32>,
    },
    /// Nothing is open any more, as was asked.
    Drained,
}

/// The last word of a shard on a document.
pub struct Done {
    pub doc_id: u32,
    pub result: ResultCode,
    /// The record that must be durable before this counts; `None` if there is none to wait for.
    pub sequence: Option<u64>,
    /// A spider fetched it; otherwise our own rules kept it from one.
    pub fetched: bool,
    pub found: Option<Box<Found>>,
}

/// What a page led to.
pub struct Found {
    pub links: LinkBatch,
    /// Depth of the links.
    pub depth: u16,
    /// Where a redirect or refresh leads, if it is to be followed.
    pub new_url: Option<NewUrl>,
    /// This URL's host is in scope from now on.
    pub into_scope: Option<CrawlUrl>,
}

/// The next hop of a chain.
pub struct NewUrl {
    pub url: CrawlUrl,
    pub depth: u16,
    pub hops: u8,
    pub seed_chain: bool,
}

/// From the scheduler to the index thread.
pub enum ToIndex {
    Seed(CrawlUrl),
    Discover(Box<Found>),
    Record {
        doc_id: u32,
        result: ResultCode,
    },
    /// Handed out, but not fetched: pending again.
    PutBack(u32),
    Ask {
        want: usize,
        reject: Arc<RejectList>,
    },
}

/// From the index thread to the scheduler.
pub enum FromIndex {
    /// The answer to one `Ask`; empty if there is nothing for it.
    Candidates { candidates: Vec<Candidate>, stats: IndexStats },
}

/// From a spider's desk to a shard.
pub enum ToSpider {
    /// `epoch` is that of the shard it was dealt to, as in [`ToShard::Work`].
    Work { epoch: u32, order: SpiderOrder },
    /// Start nothing new; let what is open end.
    Drain,
}

/// One line of work, under a transaction that the desk made: those of several URL servers may be equal.
#[derive(Clone, Debug)]
pub struct SpiderOrder {
    pub trans: TransId,
    pub doc_id: u32,
    pub task: SpiderTask,
}

#[derive(Clone, Debug)]
pub enum SpiderTask {
    Fetch {
        url: CrawlUrl,
        ip: IpAddr,
    },
    /// It cannot be fetched, and leaves a record that says so.
    Refuse {
        url_text: Box<str>,
        ip: IpAddr,
        result: ResultCode,
    },
}

/// From a shard to a spider's desk.
pub enum FromSpider {
    Done(SpiderDone),
    /// The shard died and a new one took its place. `suspect` is the slot of the order it was busy with.
    Restarted {
        epoch: u32,
        suspect: Option<u32>,
    },
    Drained,
}

/// The last word of a shard on an order.
pub struct SpiderDone {
    pub trans: TransId,
    pub result: ResultCode,
    /// The record that must be durable before anybody is told.
    pub sequence: u64,
    pub reported: Reported,
}
