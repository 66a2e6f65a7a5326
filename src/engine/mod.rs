//! Where roles meet mechanism: threads, clocks, rings, sockets.
//!
//! ```text
//!                          index: IndexActor (Provider over DocIndex)
//!                            ▲ │  discover, record / candidates
//!   main ── stop ──────► scheduler: Scheduler ── names ──► names: ResolverActor (resolver)
//!   admin ─── questions ─►   ▲ │            ◄─ addresses ──┘
//!                            │ │  a ShardLane per shard: work ring down, reply ring up, Done held until durable
//!                            │ ▼
//!                      shards, one per core: Shard<D, LocalQueues, PageSink> (url server, spider, handler, store)
//!                            │ ▲  published records / ready segments         │ lines
//!                            ▼ │                                             ▼
//!                        keeper: KeeperActor                             log: LogWriter (crawl log, journal, leftovers)
//!                            └──► maintenance: MaintenanceActor (indexes, retention)
//! ```
//!
//! That is `nephila crawl`; the word before a colon is the thread, the word after it the value that the thread turns.
//!
//! | process       | threads                                                                                  |
//! |---------------|------------------------------------------------------------------------------------------|
//! | `crawl`       | shards, scheduler, index, names, keeper, maintenance, log; with `--master` links and master; with `[content]` postgres and s3 |
//! | `node`        | those of `crawl`, links and peers                                                        |
//! | `urlserver`   | one shard, links, scheduler, index, names, log                                           |
//! | `spider`      | shards, links, dispatcher, log; keeper and maintenance, or with `--store` record-sender  |
//! | `storeserver` | acceptor, workers, keeper, maintenance                                                   |
//! | `master`      | epochs (and its workers), nodes, links; intake and its links, database                   |
//!
//! Beside them is the control thread, of `admin`, which asks at the [`Desk`] of a process and waits for nobody.
//! Every one of these values is an [`Actor`]: `turn(now)` does what can be done without waiting, `next_due` says
//! when it must turn again. One loop turns any of them on a thread, which sleeps in the actor's driver or is parked
//! until its bell rings. [`assemble`] makes a crawl as such values, joined by rings; it starts no thread (the names come
//! from its caller, with a thread behind them or as a table). [`Node`] gives each value its thread, and the simulation
//! turns the very same values in virtual time.
//!
//! | wing      | holds                                                                       | uses                   |
//! |-----------|-----------------------------------------------------------------------------|------------------------|
//! | `runtime` | actors, threads, lanes to shards, log writer, keeper, counters, notices     |                        |
//! | `names`   | names to addresses                                                          | runtime                |
//! | `links`   | connections between processes                                               | runtime                |
//! | `peers`   | a node among others: links between them, URLs, the table, tickets, copies   | runtime links inspect  |
//! | `inspect` | how things stand with a URL and a crawl; the desk where it is asked         | runtime                |
//! | `followers` | documents of sealed segments, copied into PostgreSQL and S3               | runtime                |
//! | `extraction` | texts of stories out of their pages, on threads of their own               | runtime                |
//! | `from_master` | URLs from a master: a node's queue, taken and acknowledged              | runtime links inspect  |
//! | `crawl`   | a crawl in one process                                                      | runtime names links inspect from_master peers extraction followers searching |
//! | `master`  | the master: epochs, queues for nodes, the TCP line, its database            | runtime links inspect  |
//! | `searching` | the index of stories, and what fills it (feature `search`)                | runtime                |
//! | `split`   | URL server, spider and store server as processes of their own               | runtime names links inspect crawl |
//!
//! No wing uses one that uses it; the layers test fails on a circle.

mod crawl;
mod extraction;
mod followers;
mod from_master;
mod inspect;
mod links;
mod master;
mod names;
mod peers;
mod runtime;
#[cfg(feature = "search")]
mod searching;
mod split;

pub(crate) use crawl::assembly::{CrawlSeat, CrawlShard, NodeCore, assemble};
pub use crawl::assembly::{CrawlStore, CrawlTask};
pub(crate) use crawl::feed_polls::feed_read;
pub use crawl::node::Node;
pub use crawl::node_setup::NodeSetup;
pub(crate) use crawl::node_setup::SpiderSetup;
pub use crawl::open_index::OpenIndex;
pub(crate) use crawl::open_index::index_folder;
pub(crate) use crawl::settings::scope_of;
pub(crate) use extraction::EXTRACTOR_THREAD;
pub use extraction::{ExtractionSetup, TextsMade};
pub(crate) use followers::{Copied, FollowersSetup};
pub(crate) use from_master::{MasterFeed, MasterPosition};
pub(crate) use inspect::cluster_view::{
    ClusterOrder, ClusterReport, ClusterView, CopyPart, CopyView, LeavingView, NodeTold, NodeView,
    OrderFault, OwnerView,
};
pub(crate) use inspect::crawl_rules::CrawlRules;
pub use inspect::desk::Desk;
pub(crate) use inspect::explained::{Circumstances, Explained, Said};
pub(crate) use inspect::feed_words::FEEDS_PER_WORD_MAX;
pub use inspect::feed_words::{FeedWord, FeedsTold, NamedFeed};
pub(crate) use inspect::handed::{Handed, PIECE_BYTES_MAX, PIECE_LINES_MAX, Taken};
pub(crate) use inspect::master_line::MasterReport;
pub(crate) use inspect::node_status::{NodeState, NodeStatus};
pub(crate) use inspect::questions::{Ask, Reply};
pub(crate) use inspect::sentence::{Outlook, sentence, waits};
pub(crate) use inspect::status::{
    HostLine, NicenessLine, RobotsLine, RobotsState, ScopeLine, Status, remembered,
};
pub(crate) use inspect::verify_view::{VerifiedNode, VerifyView};
pub use links::LinksConfig;
pub(crate) use links::{LinkPort, Links};
pub(crate) use master::{
    MasterCore, MasterMeans, MasterNode, MasterSummary, OrderOf, TABLE_NOTE, assemble_master, drained,
    give_order,
};
pub use master::{Postgres, Stranger};
pub(crate) use master::{join_rules, keep_pair_terms, master_rules};
pub(crate) use names::ResolvConf;
pub use names::{HostsFile, Names};
pub(crate) use peers::PeerActor;
pub(crate) use peers::stores_of_others;
pub use peers::{Boot, ClusterTold, Decided, EtcdCouncil, NodeFiles, OutsideCouncil, PeersSetup};
pub(crate) use runtime::actor::{Actor, Networked, Seated, Turned};
pub(crate) use runtime::counters::{
    Commits, Counter, Figures, SeedsLost, Snapshot, SpiderSummary, UrlSummary, WaitingHost, WaitingHosts,
};
pub use runtime::counters::{Ended, Summary};
pub use runtime::database_url::DatabaseUrl;
pub(crate) use runtime::events::{Event, Level};
pub(crate) use runtime::groups::Group;
pub(crate) use runtime::health::{Health, NodeError, Part};
pub(crate) use runtime::log_writer::LogMedium;
pub(crate) use runtime::log_writer::MemoryFiles;
pub(crate) use runtime::master_status::{MasterStatus, Neighbour, ServerStatus};
pub(crate) use runtime::notices::{Fields, Notice, Untaken, Value, count_messages, messages_told};
pub(crate) use runtime::pulse::Vigil;
pub use runtime::readings::{Meter, Readings};
pub(crate) use runtime::readings::{Role, State};
pub use runtime::running::Running;
pub use runtime::settings_news::SettingsNews;
pub(crate) use runtime::shard_thread::ShardMaker;
pub(crate) use runtime::threads::Threads;
#[cfg(feature = "search")]
pub(crate) use searching::search_folder;
#[cfg(feature = "search")]
pub use searching::{IndexingActor, StoryTexts};
pub(crate) use split::record_sender::RecordSender;
pub use split::spider_assembly::StoreAt;
pub(crate) use split::spider_assembly::{RecordActor, SpiderCore, SpiderSeat, SpiderShard, assemble_spider};
pub use split::spider_node::SpiderNode;
pub(crate) use split::store_node::{StoreNode, StoreSummary};
pub(crate) use split::store_node::{StoreServer, assemble_store_server};
pub(crate) use split::url_assembly::UrlList;
pub(crate) use split::url_assembly::{RemoteShard, UrlCore, assemble_url_server};
pub(crate) use split::url_node::UrlNode;
