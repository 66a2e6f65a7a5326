use crate::proto::job::TransId;
use crate::proto::lines::Reported;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;

/// From the dispatcher of a spider process to a shard.
pub enum ToSpider {
    /// `epoch` is that of the shard it was dealt to, as in [`crate::engine::ToShard::Work`].
    Work { epoch: u32, order: SpiderOrder },
    /// Start nothing new; let what is open end.
    Drain,
}

/// One line of work, under a transaction that the dispatcher made: those of several URL servers may be equal.
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

/// From a shard to the dispatcher.
pub enum FromSpider {
    Done(SpiderDone),
    /// The shard died and a new one took its place. `suspect` is the slot of the order it was busy with, counted
    /// from one.
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
