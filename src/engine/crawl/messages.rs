use crate::base::Now;
use crate::config::Config;
use crate::doc_index::{IndexStats, Outcome, RejectList};
use crate::engine::crawl::live::ShardRules;
use crate::engine::inspect::entries::{Entered, Entries, HandedOver};
use crate::engine::inspect::feed_words::{FeedWord, FeedsTold};
use crate::engine::inspect::handed::{Handed, Taken};
use crate::engine::inspect::peer_words::{PeerAsk, PeerNews, PeerTold};
use crate::engine::inspect::questions::Leaves;
use crate::engine::inspect::status::Status;
use crate::engine::runtime::notices::Notice;
use crate::handler::{FeedAnswer, FeedLink, LinkBatch};
use crate::proto::job::{Candidate, Job, Provenance};
use crate::proto::url::CrawlUrl;
use crate::url_server::{HostView, RemoteRobots, Rest, Robotstxt};
use std::sync::Arc;

/// From the scheduler to a shard.
pub enum ToShard {
    /// A URL to fetch. `epoch` is that of the shard it was dealt to: a shard that was restarted since ignores it,
    /// as it will be dealt again.
    Work { epoch: u32, job: Job },
    /// A seed's redirects ended there: its host is in scope.
    Scope(Arc<CrawlUrl>),
    /// A robots.txt that redirected to a host of this shard.
    RemoteRobots { epoch: u32, request: RemoteRobots },
    /// About a host of this shard.
    About(HostWord),
    /// Does everything wait?
    Rest(RestQuestion),
    /// Start nothing new until it is said that all may go on.
    Pause(bool),
    /// Keep to these from now on.
    Rules(Arc<ShardRules>),
    /// Start nothing new; let what is open end.
    Drain,
}

/// Asks whether everything at a shard waits; if it does for longer than `spoken_of_us`, also which hosts that are.
#[derive(Clone, Copy)]
pub struct RestQuestion {
    pub round: u32,
    pub spoken_of_us: u64,
}

/// What a url server must know about one of its hosts.
pub enum HostWord {
    /// What came of a robots.txt of this shard that redirected elsewhere.
    RobotsElsewhere { origin: Box<str>, answer: Box<RobotsAnswer> },
    /// This host moves to the address of another shard, which must know how to treat it.
    HandOver { origin: Box<str> },
    /// A host moved here; this is what was known of it.
    Remember { origin: Box<str>, lines: String },
    /// Its domain moves to another server: nothing more is asked of it, and what is known of it is told when nothing is
    /// on the wire.
    Close { origin: Box<str> },
    /// It is this server's again.
    Open { origin: Box<str> },
    /// Somebody asks how things stand with a document.
    Look { id: u64, url: Box<CrawlUrl>, doc_id: u32 },
}

/// An answer to robots.txt that travels.
pub struct RobotsAnswer {
    /// 0 if there was none.
    pub status: u16,
    pub body: Vec<u8>,
    pub target: Option<CrawlUrl>,
}

impl RobotsAnswer {
    pub const FAILED: RobotsAnswer = RobotsAnswer { status: 0, body: Vec::new(), target: None };

    pub fn as_robotstxt(&self) -> Robotstxt<'_> {
        match self.status {
            0 => Robotstxt::Failed,
            status => Robotstxt::Answer { status, body: &self.body, target: self.target.as_ref() },
        }
    }
}

/// From a shard to the scheduler.
pub enum FromShard {
    Done(Done),
    /// The shard died and a new one took its place; everything it had is to be dealt again. `suspect` is the
    /// document it was busy with.
    Restarted {
        epoch: u32,
        suspect: Option<u32>,
    },
    /// Whether a queue is empty that no leftover can fill. Said when it changes; true at first.
    Wants(bool),
    /// Sitemaps that the robots rules of an origin name, or none.
    Sitemaps {
        origin: Box<str>,
        urls: Vec<Box<str>>,
    },
    /// The robots.txt of `origin` is at `url`, on another host.
    RemoteRobots {
        origin: Box<str>,
        url: CrawlUrl,
    },
    RemoteRobotsDone {
        id: u64,
        answer: Box<RobotsAnswer>,
    },
    /// What must be known of a host that moves.
    HandedOver {
        origin: Box<str>,
        lines: String,
    },
    /// Nothing of a host that was to be closed is on the wire, and nothing will be; what must be known of it.
    HostClosed {
        origin: Box<str>,
        lines: String,
    },
    /// A document comes back unfetched, as its domain moves.
    PutBack(u32),
    /// How things stand with a document; `None` if its host has no place.
    Status {
        id: u64,
        view: Option<Box<HostView>>,
        at: Now,
    },
    /// The answer to one `Rest`; none from a shard that has something to do.
    Rest {
        round: u32,
        rest: Option<Box<Rest>>,
    },
    /// Something a user should know.
    Notice(Box<Notice>),
    /// Nothing is open any more, as was asked.
    Drained,
}

/// The last word of a shard on a document.
pub struct Done {
    pub outcome: Outcome,
    /// The record that must be durable before this counts; `None` if there is none to wait for.
    pub sequence: Option<u64>,
    /// A spider fetched it; otherwise our own rules kept it from one.
    pub fetched: bool,
    pub found: Option<Box<Found>>,
}

/// What a page led to.
pub struct Found {
    /// The page's own document, and its URL.
    pub doc_id: u32,
    pub url: CrawlUrl,
    pub links: LinkBatch,
    /// When each of the links changed, if a sitemap said so.
    pub lastmods: Vec<u32>,
    /// Sitemaps that a sitemap names.
    pub sitemaps: LinkBatch,
    /// Depth of the links.
    pub depth: u16,
    /// Where a redirect or refresh leads, if it is to be followed.
    pub new_url: Option<NewUrl>,
    /// This URL's host is in scope from now on.
    pub into_scope: Option<CrawlUrl>,
    /// What the answer to a poll was.
    pub feed: Option<Box<FeedAnswer>>,
    /// Feeds that the page names, where they are looked for.
    pub feeds: Vec<FeedLink>,
}

/// The next hop of a chain.
pub struct NewUrl {
    pub url: CrawlUrl,
    pub provenance: Provenance,
}

/// From the scheduler to the index thread.
pub enum ToIndex {
    Seeds {
        urls: Vec<CrawlUrl>,
        head_only: bool,
    },
    Discover(Box<Found>),
    Record(Outcome),
    /// A seed's redirects ended there: its host is in scope.
    Scope(Arc<CrawlUrl>),
    /// Sitemaps that the robots rules of an origin name, or none.
    Sitemaps {
        origin: Box<str>,
        urls: Vec<Box<str>>,
    },
    /// Handed out, but not fetched: pending again.
    PutBack(u32),
    /// Go by these settings from now on, as far as they may change.
    Rules(Arc<Config>),
    Ask {
        want: usize,
        reject: Arc<RejectList>,
    },
    /// Somebody asks what is known of a URL.
    Look {
        id: u64,
        url: Box<CrawlUrl>,
    },
    /// Somebody asks how many URLs are known.
    Count {
        id: u64,
    },
    /// URLs that somebody hands in; the answer waits until they are on disk.
    Take {
        id: u64,
        handed: Box<Handed>,
        head_only: bool,
    },
    /// Entries of a master's queue; the same holds for these.
    Enter {
        id: u64,
        entries: Box<Entries>,
    },
    /// Which hosts are to leave, of those that are known.
    Origins {
        id: u64,
        leaves: Leaves,
    },
    /// Writes down all that a closed domain brings along: this, and the URLs that are pending.
    HandOver {
        id: u64,
        domain: Box<str>,
        nice: String,
    },
    /// What somebody asks of feeds; the answer waits until it is on disk.
    Feeds {
        id: u64,
        word: Box<FeedWord>,
    },
    /// What other nodes of a cluster ask; the answer waits until what they told is on disk.
    Peers {
        id: u64,
        ask: Box<PeerAsk>,
    },
}

/// From the index thread to the scheduler.
pub enum FromIndex {
    /// The answer to one `Ask`; empty if there is nothing for it.
    Candidates { candidates: Vec<Candidate>, stats: IndexStats },
    /// The answer to one `Look`.
    Status { id: u64, looked: Box<Status> },
    /// The answer to one `Count`.
    Counted { id: u64, stats: IndexStats },
    /// The answer to one `Take`, and what is in scope from now on because of it.
    Taken { id: u64, taken: Taken, into_scope: Vec<CrawlUrl> },
    /// The answer to one `Enter`, and the same.
    Entered { id: u64, entered: Box<Entered>, into_scope: Vec<CrawlUrl> },
    /// The answer to one `Origins`.
    Origins { id: u64, origins: Vec<Box<str>> },
    /// The answer to one `HandOver`.
    HandedOver { id: u64, made: HandedOver },
    /// The answer to one `Feeds`: nothing where there can be none, and what the disk refused.
    Feeds { id: u64, told: Result<Option<FeedsTold>, String> },
    /// The answer to one `Peers`, and what else is to be known of it.
    Peers { id: u64, told: Box<PeerTold>, news: Box<PeerNews> },
}
