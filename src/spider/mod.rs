//! The spider: many fetches at once, each a small state machine over a connection.
//!
//! ```text
//!   take(order) ──► Connect ──► Handshake ──► Await (request out, head coming) ──► Body ──► Finished, exactly once
//!                      │        (https only)          │                              │
//!                      └───────────── failed, reset, ended, deadline ────────────────┘
//!
//!   connection:  Busy ──► Idle (kept for the next page of its host) ──► Busy …
//!                   └──────┴──► Closing ──► slot free, when the driver reports Closed
//! ```
//!
//! The role is sans-IO: orders, network events and the time come in; [`Action`]s go out. It queues nothing and
//! schedules nothing. While a fetch is open it reports WORKING every `timeout_update`.
//!
//! | file               | holds                                                                          |
//! |--------------------|--------------------------------------------------------------------------------|
//! | `spider`           | every transition of a fetch and of its connection                              |
//! | `config`           | the settings that it needs                                                     |
//! | `fetch_order`      | what it is told to fetch                                                       |
//! | `fetch`            | an open fetch: head and body as they arrive                                    |
//! | `fetched`          | a fetch that has ended                                                         |
//! | `deadlines`        | the times by which a fetch must have moved on                                  |
//! | `slot_timers`      | one timer per fetch slot                                                       |
//! | `conns`            | connections: busy, idle, closing                                               |
//! | `idle_pool`        | idle connections, by route and by age                                          |
//! | `tls_conn`         | TLS under a connection, one send at a time                                     |
//! | `request`          | a request as bytes                                                             |
//! | `origin_policy`    | what an origin wants in a request: cookies, credentials, GET instead of HEAD   |
//! | `document_decoder` | the content coding, removed from a whole document                              |
//! | `buffers`          | buffers for requests and documents, and their share of the budget              |
//! | `budget`           | memory for documents in flight, over all spiders of the process                |

mod budget;
mod buffers;
mod config;
mod conns;
mod deadlines;
mod document_decoder;
mod fetch;
mod fetch_order;
mod fetched;
mod idle_pool;
mod origin_policy;
mod request;
mod slot_timers;
#[allow(clippy::module_inception)]
mod spider;
#[cfg(test)]
mod tests;
mod tls_conn;

pub use budget::BodyBudget;
pub use config::{FetchLimits, SpiderConfig};
pub use fetch_order::FetchOrder;
pub use fetched::{Fetched, Retry};
pub use request::plain_request;
pub use spider::{Action, Spider};
