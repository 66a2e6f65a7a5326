//! A network and a clock that exist only in memory.
//!
//! ```text
//!   SimDriver (one per shard) ── connect, send, close ──► SimNet ── asks ──► SimWeb: what would a server do?
//!        ▲                                                   │
//!        └──────── events, each at its virtual time ◄────────┘   everything drawn from one seed
//! ```
//!
//! Drivers connect to each other as well, over pipes: where one of them listens, no server of the web is asked. What passes
//! between two drivers can be held back for a while or broken, and what is unread limits what is sent.
//!
//! Time stands still while anybody works and jumps to the next event when nobody does. Bytes are cut anywhere,
//! connections are refused, reset, stalled or silent as the [`SimWeb`] says, and a closed connection takes a
//! while to be reported closed, so that a slot reused too soon is caught in the act.

mod clock;
mod driver;
mod net;
#[cfg(test)]
mod no_web;
mod pipes;

pub use clock::SimClock;
pub use driver::SimDriver;
pub use net::{ConnectFate, Reaction, SimNet, SimWeb, Then};
#[cfg(test)]
pub use no_web::NoWeb;
