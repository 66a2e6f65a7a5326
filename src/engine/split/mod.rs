//! The same roles in processes of their own: URL server, spider and store server, joined by links.
//!
//! ```text
//!   nephila urlserver                    nephila spider                            nephila storeserver
//!   Scheduler, IndexActor                SpiderDispatcher: lines in, DONE out      StoreNode
//!      │ ▲ one ShardLane                    │ ▲ a ShardLane per shard                 ▲ │
//!      ▼ │                                  ▼ │                                       │ │
//!   Shard<D, RemoteQueues, NoRecords>    Shard<D, OrderQueue, OrderSink>              │ │
//!      │ ▲ LinkPort                            │ records                              │ │ counts
//!      ▼ │                                     ├──► segments: keeper                  │ │
//!   Links ◄── lines over TCP ──► Links         └──► RecordSender ── Links ── TCP ─────┘ │
//!                                                        ◄──────────────────────────────┘
//! ```
//!
//! All three kinds of shard are one type (`crawl::shard`). A URL server has one, which fetches nothing but robots.txt; its
//! queues hand lines of work to spiders. A spider has one per core, and no queues: which host may be asked when is decided
//! where the queues are. Its dispatcher says DONE when the record is durable, in segments of the spider's own or by the
//! count of a store server.
//!
//! Each process is assembled without a thread, so that `nephila sim --split` turns the very values that threads turn.
//!
//! | file                | holds                                                              |
//! |---------------------|--------------------------------------------------------------------|
//! | `url_assembly`      | a URL server as plain values, without a thread                     |
//! | `url_node`          | the threads that turn it                                           |
//! | `remote_queues`     | its queues, with spiders behind links                              |
//! | `spider_assembly`   | a spider as plain values, without a thread                         |
//! | `spider_node`       | the threads that turn it                                           |
//! | `spider_dispatcher` | between the URL servers and the shards of a spider                 |
//! | `order_queue`       | the work of a spider's shard                                       |
//! | `order_sink`        | where a spider's records go                                        |
//! | `record_sender`     | records on their way to a store server, kept until they are counted |
//! | `store_node`        | a store server: acceptor, workers, keeper                          |
//! | `messages`          | what travels between a dispatcher and its shards                   |

pub(crate) mod messages;
pub(crate) mod order_queue;
pub(crate) mod order_sink;
pub(crate) mod record_sender;
pub(crate) mod remote_queues;
pub(crate) mod spider_assembly;
pub(crate) mod spider_dispatcher;
pub(crate) mod spider_node;
pub(crate) mod store_node;
pub(crate) mod url_assembly;
pub(crate) mod url_node;
