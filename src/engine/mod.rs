//! Where roles meet mechanism: threads, clocks, rings.
//!
//! ```text
//!                       index thread: IndexActor (DocIndex)
//!                            ▲ │  discover, record, ask / candidates
//!   main, control ────► scheduler thread: Scheduler (dealing, DONE held until durable)
//!   (signals, progress;      ▲ │ ▲ └──► names thread: NamesDesk (resolver) ──┐ hosts / addresses
//!    questions, Control)     │ │ └───────────────────────────────────────────┘
//!                            │ │  work ring / DONE ring, one pair per shard
//!                      shard threads: Shard (url server, spider, handler, store), one per core
//!                            ▲ │  ready segments / published records
//!                       keeper thread: Keeper          scribe thread: LogWriter (crawl log, journal, leftovers)
//!                              └──► librarian thread: Librarian (indexes, retention)
//! ```
//!
//! `nephila urlserver` is the same with one `RemoteShard` in place of the shards and a links thread beside it;
//! `nephila spider` is a links thread, a desk that deals orders to spider shards, and the keeper.
//!
//! A spider process (`nephila spider`) takes its work over links, and has no index and no queues:
//!
//! ```text
//!   URL servers ◄──► links thread: Links (sockets) ◄──► desk thread: SpiderDispatcher (lines, GET, WORKING, DONE)
//!                                                            ▲ │  work ring / DONE ring, one pair per shard
//!                                                       shard threads: SpiderShard (spider, store)
//!                                                            ▲ │  ready segments / published records
//!                                                       keeper thread: Keeper
//! ```
//!
//! With `--store` its shards have a line to a store server each in place of the keeper's segments (`store_line`).
//!
//! A store server process (`nephila storeserver`) is a door, workers with spiders' connections, and the keeper; it is drawn
//! in its own folder.
//!
//! Everything with a `turn` is a plain value that takes the time and does what is to be done; the threads of
//! [`Node`] do nothing but turn, and sleep when there is nothing to do. So the simulation runs the very same
//! values on one thread.

mod crawl;
mod inspect;
mod links;
mod names;
mod runtime;
mod split;

pub use crawl::assembly::{CrawlSeat, CrawlShard, CrawlStore, CrawlTask, NodeCore, assemble};
pub use crawl::index_actor::IndexActor;
pub use crawl::messages::{Done, Found, FromIndex, FromShard, NewUrl, ToIndex, ToShard};
pub use crawl::node::Node;
pub use crawl::node_setup::{NodeSetup, SetupError, SpiderSetup};
pub use crawl::open_index::{OpenIndex, index_folder};
pub use crawl::provider::{Provider, ProviderRules};
pub use crawl::resume::Resumed;
pub use crawl::scheduler::{Scheduler, SchedulerConfig};
pub use crawl::settings::{index_rules, scope_of, spider_config, url_server_config};
pub use crawl::shard::Shard;
pub use crawl::stored::Stored;
pub use inspect::control::CONTROL_SOCKET;
pub use inspect::crawl_rules::CrawlRules;
pub use inspect::explain::{Answer, Explanation};
pub use inspect::questions::Questions;
pub use inspect::status::{
    CountsLine, NicenessLine, Out, Place, PlaceLine, RobotsLine, ScopeLine, Status, remembered,
};
pub use links::{LinkEvent, LinkPort, Links, LinksConfig, LinksThread};
pub use names::{Addresses, HostsFile, Names, ResolvConf};
pub use runtime::actor::{Actor, Networked, Turned};
pub use runtime::counters::{Counter, Snapshot, SpiderSummary, Summary, UrlSummary};
pub use runtime::health::{Health, NodeError};
pub(crate) use runtime::log_writer::LogMedium;
pub use runtime::log_writer::{CRAWL_LOG, LogWriter, MemoryFiles};
pub use runtime::notices::{Level, Notice, Notices};
pub use runtime::shard_thread::ShardMaker;
pub(crate) use split::record_sender::RecordSender;
pub use split::spider_assembly::StoreAt;
pub(crate) use split::spider_assembly::{RecordActor, SpiderCore, SpiderSeat, SpiderShard, assemble_spider};
pub use split::spider_node::SpiderNode;
pub(crate) use split::store_node::{StoreCore, assemble_store_server};
pub use split::store_node::{StoreNode, StoreStats, StoreSummary};
pub use split::url_assembly::UrlList;
pub(crate) use split::url_assembly::{RemoteShard, UrlCore, assemble_url_server};
pub use split::url_node::UrlNode;
