//! The spider: many fetches at once, each a small state machine over a connection.
//!
//! ```text
//!   take(order) ──► Connect ──► Handshake ──► Await (request out, head coming) ──► Body ──► Finished, exactly once
//!                      │        (https only)          │                              │
//!                      └───────────── failed, reset, ended, deadline ────────────────┘
//!
//!   connection:  Opening ──► Busy ──► Idle (kept for the host's next page) ──► Busy …
//!                   └──────────┴────────┴──► Closing ──► slot free, when the driver says Closed
//! ```
//!
//! The role is sans-IO: orders, network events and the time come in; [`Action`]s go out. It queues nothing and
//! schedules nothing. While a fetch is open it says WORKING every `timeout_update`.
//!
//! | file       | holds                                                                          |
//! |------------|--------------------------------------------------------------------------------|
//! | `role`     | every transition of a fetch, and its deadlines                                 |
//! | `asking`   | the handshake and the request                                                  |
//! | `reading`  | head and body as they come                                                     |
//! | `ending`   | what a fetch comes to: content coding undone, connection kept or let go        |
//! | `wire`     | TLS under a connection, one send at a time                                     |
//! | `manners`  | how servers want to be asked: cookies, credentials, no HEAD; by origin         |
//! | `budget`   | memory for documents on their way, over all spiders of the process             |

mod asking;
mod budget;
mod conn;
mod ending;
mod fetch;
mod manners;
mod reading;
mod request;
mod role;
#[cfg(test)]
mod tests;
mod wire;

pub use budget::BodyBudget;
pub use fetch::{Again, FetchOrder, Fetched};
pub use request::plain_request;
pub use role::{Action, Spider, SpiderConfig};
