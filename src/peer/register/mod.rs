//! A register that a majority of voters keeps: CASPaxos (arXiv 1802.07000), without a leader and without a log.
//!
//! ```text
//!   proposer ── PREPARE b ──► acceptor      keeps the promise b on its disk, then says it, with what it accepted last
//!            ◄── PROMISE ────
//!     a majority: the value of the highest ballot is the register's; the change is made to it
//!            ── ACCEPT b, value, b' ──►     keeps it on its disk, and the promise b' with it, then says so
//!            ◄── ACCEPTED ───
//!     a majority: done. The next change of the same proposer starts with ACCEPT b': one round trip
//! ```
//!
//! The interface is that of any store with a compare-and-swap: [`Change::Read`] and [`Change::Swap`]. Voters are fixed: each is
//! a node and the number of its disk, and an acceptor with another disk has no vote, since it forgot what it promised.

mod acceptor;
mod ballot;
mod proposer;
mod words;

pub use crate::proto::peer_wire::{Ballot, Register};
pub use acceptor::{Accepted, Acceptor, Kept, KeptError, Spoken};
pub use proposer::{Busy, Change, Outcome, Pace, Proposer, Step, Voter};

use std::sync::Arc;

/// The bytes of a register; nothing before the first swap.
pub type Value = Option<Arc<[u8]>>;

/// What a proposer asks of an acceptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub register: Register,
    /// The disk that is asked: another one has not made the promises that are counted on.
    pub disk: u64,
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    Prepare {
        ballot: Ballot,
    },
    /// `then` is promised together with it.
    Accept {
        ballot: Ballot,
        value: Value,
        then: Ballot,
    },
}

/// What an acceptor answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub register: Register,
    /// The ballot of the request.
    pub ballot: Ballot,
    pub reply: Reply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing below the ballot is accepted any more. What was accepted last, and under which ballot.
    Promise { accepted: Ballot, value: Value },
    /// The value is on disk.
    Accepted,
    /// A higher ballot was promised.
    Later { promised: Ballot },
    /// The disk is another one, or it has no room: never counted.
    Refused,
}
