//! Rights that end by themselves: a node may ask hosts of its partitions until a while after its last beat was sent.
//!
//! ```text
//!   holder   renews: swap beat/N (n → n+1), sent at t on its own clock               right until t + hold
//!   heir     saw n first at r0: swap beat/N (n → n, sealed), sent at r0 + wait        N never renews again
//!            then swap table: what N had at that generation is the heir's             (the next on the ring 30 s later)
//!   sealed   a node that finds itself sealed stops, takes the next generation, and swaps itself into the table as new
//!   gift     the owner stops asking, hands over, then swaps the table
//! ```
//!
//! Nobody compares two clocks: only their rates have to be within 1 %, see [`Timing::check`]. All swaps are of one register, and a
//! register may be any that has a compare-and-swap: a swap that was sent may land later than a read that was sent after it.
//! So an offer that was not confirmed is taken back by a swap of the table only, whose epoch makes the earlier swap void.

mod holder;
mod rights;
mod table_writer;
mod timing;
mod value;
mod watch;

pub use crate::proto::peer_wire::Beat;
pub use holder::Holder;
pub use rights::{Rights, Wish};
pub use table_writer::{Doubt, TableWriter};
pub use timing::{Timing, TimingError};
pub use watch::Watch;
