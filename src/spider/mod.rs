//! The spider: many fetches at once, each a small state machine over a connection.
//!
//! ```text
//!   take(order) ──► Connect ──► Await (request out, head coming) ──► Body ──► Finished, exactly once
//!                      │               │                              │
//!                      └──────── failed, reset, ended, deadline ──────┘
//!
//!   connection:  Opening ──► Busy ──► Idle (kept for the host's next page) ──► Busy …
//!                   └──────────┴────────┴──► Closing ──► slot free, when the driver says Closed
//! ```
//!
//! The role is sans-IO: orders, network events and the time come in; [`Action`]s go out. It queues nothing and
//! schedules nothing. While a fetch is open it says WORKING every `timeout_update`.

mod conn;
mod fetch;
mod request;
mod role;
#[cfg(test)]
mod tests;

pub use fetch::{FetchOrder, Fetched};
pub use role::{Action, Spider, SpiderConfig};
