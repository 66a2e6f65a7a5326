//! The URL server: all queueing and timing. Nothing of a host is asked for before its robots rules are known,
//! nor faster than its rate, nor with more than `req_host_concurrent` open.
//!
//! ```text
//!             |<------------ queue_len ----------->|
//!             |<- active ->|
//!   host(0)   [ with spider ][ waiting ] … [       ]  ^
//!   host(1)   [             ][         ] … [       ]  | queue_count
//!   host(n)   [             ][         ] … [       ]  v
//!   leftover  URLs whose host's queue is full, and hosts that found no slot; beyond a bound on disk
//!
//!   admit ──► queue of its host ──► timer (host's turn) ──► address (shared by hosts) ──► ready ──► acquire
//!                 ▲                                                                                   │
//!                 └──────────────── release: a place in the window, the next turn ◄──────────── DONE ─┘
//! ```
//!
//! A slot belongs to no host for ever. When it empties it stays with its host, so that the pause since the last
//! request and the robots rules are remembered, until another host needs it and that pause is over.
//!
//! | file                     | holds                                                                            |
//! |--------------------------|----------------------------------------------------------------------------------|
//! | `server`, `order`        | the calls: admit, acquire, sent, working, release, put_back, tick                |
//! | `host`, `host_table`, `names` | the rows, 80 bytes each, and where each host's is                           |
//! | `waiting`                | all waiting URLs in one arena                                                    |
//! | `address`                | addresses, and the hosts that take turns at one                                  |
//! | `turns`                  | where hosts wait: rest, timer, address, spider, ready                            |
//! | `placing`                | which row a host gets                                                            |
//! | `fallback`                   | hosts of several addresses, tried one after the other                            |
//! | `niceness`, `answers`    | how long the pause is, and what an answer does to it                             |
//! | `robots_gate`            | nothing before the robots rules; redirects of robots.txt to other hosts          |
//! | `spiders`                 | spiders behind links, their credits, and whose host is whose                     |
//! | `leftover`, `spill`      | URLs without a place, in memory and on disk                                      |
//! | `memory`                 | what outlives a row, and by its journal the process                              |
//! | `view`                   | how things stand with a host and one of its URLs, for whoever asks               |
//!
//! The role is sans-IO: jobs and times come in, orders go out; what is to be written comes out as lines and chunks. It
//! runs on a shard of `nephila crawl`, and alone as `nephila urlserver`. A model of it in `model` judges it from the
//! outside over millions of random steps.

mod acquisition;
mod admission;
mod host_table;
mod leftover;
mod niceness;
mod order;
mod readiness;
mod release;
mod robots_gate;
mod server;
mod spider_credits;
mod spill;
#[cfg(test)]
mod tests;
mod view;

pub use host_table::{HostMemory, compacted};
pub use niceness::{Niceness, Report};
pub use order::{Acquired, Order, OrderKind, Refusal, RemoteRobots};
pub use robots_gate::{RobotsStep, Robotstxt};
pub use server::{UrlServer, UrlServerConfig, UrlServerStats};
pub use spill::{SpillAsk, SpillEvent};
pub use view::{DocPlace, HostView, PauseView, RobotsView, RobotsWord, WaitsFor};
