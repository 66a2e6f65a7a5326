//! The URL server: all queueing and timing. Nothing of a host is requested before its robots rules are known, nor
//! faster than its rate, nor with more than `req_host_concurrent` requests open.
//!
//! ```text
//!             |<------------ queue_len ----------->|
//!             |<- active ->|
//!   host(0)   [ with spider ][ waiting ] … [       ]  ^
//!   host(1)   [             ][         ] … [       ]  | queue_count
//!   host(n)   [             ][         ] … [       ]  v
//!   leftover  URLs whose host's queue is full or whose host has no row; beyond a bound on disk
//!
//!   admit ──► queue of its host ──► timer (host's turn) ──► address (shared by hosts) ──► ready ──► acquire
//!                 ▲                                                                                   │
//!                 └──────────────── release: a place in the window, the next turn ◄──────────── DONE ─┘
//! ```
//!
//! A row belongs to no host for ever. When its queue is empty it stays with its host, so that the pause since the last
//! request and the robots rules are remembered, until another host needs it and that pause is over.
//!
//! | file                   | holds                                                                             |
//! |------------------------|-----------------------------------------------------------------------------------|
//! | `server`               | `UrlServer`, its settings, and the calls that are not about one request           |
//! | `admission`            | admit: the queue of its host, a row for the host, or the leftovers                |
//! | `acquisition`, `order` | acquire: the next host that may send, and what of it is sent                      |
//! | `release`              | sent, working, release, put_back: what an answer means for URL, rules and pauses  |
//! | `host_table/`          | rows, queues, windows, addresses, and what is remembered of hosts without a row   |
//! | `readiness`            | where hosts wait for their turn: timer, address, ready                            |
//! | `spider_credits`       | spiders behind links, their credits, and the hosts that wait for one              |
//! | `robots_gate`          | what answers to robots.txt mean; redirects of robots.txt to other hosts           |
//! | `loans`                | in a cluster: the right to ask, and the addresses that are lent to this node      |
//! | `niceness`             | how long a pause is                                                               |
//! | `leftover`, `spill`    | URLs without a place, in memory and on disk                                       |
//! | `rest`                 | whether nothing may go out for a while, and what is waited for                    |
//! | `view`                 | how things stand with a host and one of its URLs, for an operator's question      |
//!
//! The role is sans-IO: jobs and times come in, orders go out; what is to be written comes out as lines and chunks. It
//! runs on a shard of `nephila crawl`, and alone as `nephila urlserver`. A model of it in `tests` judges it from the
//! outside over millions of random steps.

mod acquisition;
mod admission;
mod host_table;
mod leftover;
mod loans;
mod niceness;
mod order;
mod readiness;
mod release;
mod rest;
mod robots_gate;
mod server;
mod spider_credits;
mod spill;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use host_table::{Clock, HostMemory, compacted};
pub(crate) use loans::{Lent, LoanWord};
pub(crate) use niceness::{Niceness, Report};
pub(crate) use order::{Acquired, Order, OrderKind, Refusal, RemoteRobots};
pub(crate) use rest::{Rest, RestingHost};
pub(crate) use robots_gate::{RobotsStep, Robotstxt};
pub(crate) use server::{BackOffs, NicenessRules, SetAside, UrlServer, UrlServerConfig};
pub(crate) use spill::{SpillAsk, SpillEvent};
pub(crate) use view::{DocPlace, HostTally, HostView, PauseView, RobotsView, WaitsFor};
