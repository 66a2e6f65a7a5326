//! What every process of the product is made of: actors and the threads that turn them, the dealer's lane to a shard, the
//! log writer, the store's own threads, health, notices and counters.
//!
//! ```text
//!   Wiring::open ──► log writer, health, counters, the dealer's bell        values and rings, no thread
//!   Wiring::shard ─► ShardLane                          LaneEnd
//!                    dealer ── messages ──► work ring ──► shard
//!                           ◄── replies ◄── reply ring ◄──
//!                    held until the shard's DurablePoint has passed their record
//! ```
//!
//! The dealer is the scheduler of a crawl or of a URL server, or the dispatcher of a spider: each has one lane per shard.
//! Where records go differs, and so does their durable point: segments of this process move it when the keeper has
//! committed, a store server when it has counted; a shard that stores nothing has none to wait for.
//!
//! | file            | holds                                                                            |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `actor`         | `Actor`: turn, next due, messages, end; the one loop that a thread runs around it |
//! | `driver_thread` | a thread for an actor that has a driver of its own: names, links, record sender  |
//! | `shard_thread`  | the threads of shards, each on its core; a shard that panics is made anew        |
//! | `wiring`        | what the parts of a process are joined by                                        |
//! | `shard_lane`    | a dealer's side of one shard, and what it holds back until it is durable         |
//! | `outbox`        | replies that the ring has no room for                                            |
//! | `log_file`      | the crawl log in parts, and what each part begins with                           |
//! | `log_writer`    | crawl log, journal of hosts, leftovers that memory has no room for               |
//! | `journaling`    | lines on their way to the journal of hosts, and whether they are there           |
//! | `store_actors`  | the keeper, and maintenance (indexes, retention), which no shard waits for       |
//! | `health`        | what keeps a process from going on, and what it waits for                        |
//! | `network`       | whether it is our own network that fails, for which no URL is to blame           |
//! | `readings`      | everything that a process counts, at one moment, and where it is read            |
//! | `process`       | what the kernel says of this process and its threads                             |
//! | `pulse`         | whether threads still turn, for a watchdog                                       |
//! | `running`       | a node while it runs: how it is stopped, asked and ended                         |
//! | `events`        | every event there is: name, level, fields, meaning                               |
//! | `notices`       | what a user is told, from any thread                                             |
//! | `counters`      | one table per thread, summed for progress, summary, JSON and metrics             |
//! | `threads`       | threads that share work for as long as it takes                                   |
//! | `database_url`  | where a PostgreSQL is, without its password wherever that is shown               |
//! | `master_status` | how a master is, for whoever asks                                                |
//! | `groups`        | figures that come many at a time, and what each is called                        |
//!
//! This folder knows neither what a message says nor what a shard does: crawl and split bring both.

pub(crate) mod actor;
pub(crate) mod counters;
pub(crate) mod database_url;
pub(crate) mod driver_thread;
pub(crate) mod events;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod journaling;
pub(crate) mod live_config;
pub(crate) mod log_file;
pub(crate) mod log_writer;
pub(crate) mod master_status;
pub(crate) mod network;
pub(crate) mod notices;
pub(crate) mod outbox;
mod process;
pub(crate) mod pulse;
pub(crate) mod readings;
pub(crate) mod running;
pub(crate) mod settings_news;
pub(crate) mod shard_lane;
pub(crate) mod shard_thread;
pub(crate) mod store_actors;
pub(crate) mod threads;
pub(crate) mod wiring;
