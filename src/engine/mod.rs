//! Where roles meet mechanism: threads, clocks, rings.
//!
//! ```text
//!                       index thread: IndexDesk (DocIndex)
//!                            ▲ │  discover, record, ask / candidates
//!   main, control ────► scheduler thread: Scheduler (dealing, DONE held until durable)
//!   (signals, progress;      ▲ │ ▲ └──► names thread: NamesDesk (resolver) ──┐ hosts / addresses
//!    questions, Control)     │ │ └───────────────────────────────────────────┘
//!                            │ │  work ring / DONE ring, one pair per shard
//!                      shard threads: Shard (url server, spider, handler, store), one per core
//!                            ▲ │  ready segments / published records
//!                       keeper thread: Keeper          scribe thread: Scribe (crawl log, journal, leftovers)
//!                              └──► librarian thread: Librarian (indexes, retention)
//! ```
//!
//! `nephila urlserver` is the same with one `UrlDesk` in place of the shards and a links thread beside it;
//! `nephila spider` is a links thread, a desk that deals orders to spider shards, and the keeper.
//!
//! A spider process (`nephila spider`) takes its work over links, and has no index and no queues:
//!
//! ```text
//!   URL servers ◄──► links thread: Links (sockets) ◄──► desk thread: SpiderDesk (lines, GET, WORKING, DONE)
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

mod answered;
mod batch;
mod control;
mod crawl_rules;
mod dealing;
mod explained;
mod finished;
mod index_desk;
mod index_start;
mod links;
mod log_book;
mod log_lines;
mod looked;
mod names;
mod node;
mod outbox;
mod owners;
mod papers;
mod parting;
mod questions;
mod rereading;
mod robots_desk;
mod scheduler;
mod scribe;
mod scribe_thread;
mod settings;
mod shard;
mod spider_desk;
mod spider_kit;
mod spider_node;
mod spider_shard;
mod stats;
mod store_line;
mod store_node;
mod store_threads;
mod stored;
mod taking_up;
mod threads;
mod url_desk;
mod url_node;
mod words;

pub use control::CONTROL_SOCKET;
pub use crawl_rules::CrawlRules;
pub use explained::{Answer, Explained};
pub use index_desk::{DeskPapers, IndexDesk, IndexPort};
pub use index_start::{OpenIndex, index_folder};
pub use links::{LinkEvent, LinkPort, Links, LinksConfig, LinksThread};
pub use looked::{
    CountsLine, Looked, NicenessLine, Out, Place, PlaceLine, RobotsLine, ScopeLine, remembered,
};
pub use names::{Addresses, HostsFile, Names, ResolvConf};
pub use node::{CrawlTask, Node};
pub use questions::Questions;
pub use scheduler::{Scheduler, SchedulerConfig, SchedulerState, SchedulersScribe, ShardPort};
pub use scribe::{CRAWL_LOG, Heritage, Scribe, ScribePort, ToScribe};
pub use settings::{index_rules, scope_of, spider_config, url_server_config};
pub use shard::{Shard, ShardParts, ShardState};
pub use spider_kit::{KitError, NodeSetup, SpiderKit};
pub use spider_node::{SpiderNode, StoreAt};
pub use stats::{
    SchedulerStats, ShardStats, Snapshot, SpiderStats, SpiderSummary, Summary, UrlDeskStats, UrlSummary,
};
pub use store_node::{StoreNode, StoreStats, StoreSummary};
pub use stored::Stored;
pub use taking_up::TakenUp;
pub use threads::NodeError;
pub use url_node::{UrlList, UrlNode};
pub use words::{
    Done, Found, FromIndex, FromShard, FromSpider, NewUrl, SpiderDone, SpiderOrder, SpiderTask, ToIndex,
    ToShard, ToSpider,
};
