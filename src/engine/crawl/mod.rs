//! A crawl in one process: scheduler, shards, the doc index behind its rings, and what joins them.
//!
//! ```text
//!                 ┌────────────── assemble(…) ──► NodeCore: plain values and rings, no thread ──────────────┐
//!                 │                                                                                         │
//!   seeds ──► Scheduler ◄── candidates ── IndexActor ── Provider ── DocIndex                                │
//!                 │ ──► discover, record ──►                                                                │
//!                 │ names ──► Resolution ──► Placement: one shard for a host and its address                │
//!      ShardLane  │ ▲ Done, held until durable                                                              │
//!                 ▼ │                                                                                       │
//!             Shard<D, LocalQueues, PageSink>, one per core      KeeperActor      LogWriter                 │
//!                 └─────────────────────────────────────────────────────────────────────────────────────────┘
//!   Node: a thread for each of them, and control beside them         the simulation: the same values in virtual time
//! ```
//!
//! The life of a page: the provider takes a candidate from the doc index; the scheduler has its name resolved and deals it
//! to the shard that owns the address; the shard's queues hold it until its host may be asked, the spider fetches it, the
//! handler reads its links, and its record goes into the shard's segment. The shard replies with `Done`; once the keeper
//! has committed that far, the scheduler tells the index thread the links and then the outcome.
//!
//! | file                                | holds                                                               |
//! |-------------------------------------|---------------------------------------------------------------------|
//! | `assembly`                          | `assemble`: every part made and joined                              |
//! | `node`, `node_setup`, `settings`    | the threads; what a node is told; each role's part of the settings  |
//! | `live`                              | settings that change while it runs                                  |
//! | `scheduler`, `scheduler_setup`      | between the doc index and the shards; what it is told               |
//! | `resolution`                        | the names of one batch of candidates                                |
//! | `placement`, `address_owners`       | where a host lives, and whose an address is                         |
//! | `away_hosts`                        | hosts of domains that are moved to other servers                    |
//! | `robots_exchange`, `open_questions` | what one shard asks of another; what users ask                      |
//! | `ending`, `linger`, `shutdown`      | why a crawl ends; all that is left waits too long; an end that hangs |
//! | `index_actor`, `index_link`         | the two sides of the rings to the doc index                         |
//! | `seed_fates`                        | what became of the URLs that were typed                             |
//! | `peer_provider`                     | what other nodes of a cluster ask of the doc index                  |
//! | `provider`, `open_index`            | what is fetched next and by which rules; the index opened           |
//! | `away_domains`, `entering`          | domains that are with other servers; entries of a master's queue    |
//! | `feed_polls`, `feed_counts`         | feeds between their role and the doc index; what came of polls      |
//! | `shard`                             | one spider over one driver, between a `WorkSource` and a `RecordSink` |
//! | `queues`, `local_queues`            | the url server of a shard, as the source of a crawl's work          |
//! | `page_sink`, `completion`           | pages read and stored; what a fetch came to                         |
//! | `stages`                            | where the time of a shard goes                                      |
//! | `shard_log`                         | lines for the crawl log, in batches                                 |
//! | `stored`, `stored_pages`            | validators and links of what the store already has                  |
//! | `resume`                            | what a killed process stored and could not tell the index           |
//! | `messages`                          | what travels on the rings                                           |

pub(crate) mod address_owners;
pub(crate) mod assembly;
mod away_domains;
pub(crate) mod away_hosts;
pub(crate) mod completion;
pub(crate) mod ending;
mod entering;
pub(crate) mod feed_counts;
pub(crate) mod feed_polls;
mod feeds_home;
pub(crate) mod index_actor;
pub(crate) mod index_link;
pub(crate) mod linger;
pub(crate) mod live;
pub(crate) mod local_queues;
pub(crate) mod messages;
pub(crate) mod node;
pub(crate) mod node_setup;
pub(crate) mod open_index;
pub(crate) mod open_questions;
pub(crate) mod page_sink;
pub(crate) mod peer_provider;
pub(crate) mod placement;
pub(crate) mod provider;
pub(crate) mod queues;
pub(crate) mod resolution;
pub(crate) mod resume;
pub(crate) mod robots_exchange;
pub(crate) mod scheduler;
pub(crate) mod scheduler_setup;
pub(crate) mod seed_fates;
pub(crate) mod settings;
pub(crate) mod shard;
pub(crate) mod shard_log;
pub(crate) mod shutdown;
pub(crate) mod stages;
pub(crate) mod stored;
pub(crate) mod stored_pages;
mod story_threads;
#[cfg(test)]
mod tests;
