//! Tickets of addresses: which node may ask an address, whatever partitions its hosts are in.
//!
//! ```text
//!   holder ── WANT ask ──► keeper            the keeper of an address is the owner of the partition of its hash
//!          ◄── GRANT ask, 60 s, due in ──    or WAIT
//!          ── BACK ask, last sent ago ──►    the next in line gets it
//! ```
//!
//! The holder counts from the sending of WANT, the keeper from the sending of GRANT, and by 2/99 longer: the clock of the first
//! may run at 0.99, that of the second at 1.01. Every ask has a number of its own, and BACK ends all up to its own, so that a
//! message that comes late ends nothing that was lent after it.
//!
//! What was sent before the end of a ticket may be answered after it. So the next in line waits for BACK, which is said when
//! nothing is open, or for the time that a request may take.
//!
//! `K` is what is lent: a [`TicketKey`], for all that travels.

mod holder;
mod keeper;

pub use crate::proto::peer_wire::{Back, Grant, TicketKey, Wait, Want};
pub use holder::Tickets;
pub use keeper::{Keeper, Known, Lending, Lent, Said};

/// How long a ticket is good, by the holder's clock from the sending of WANT; and how long if others wait for it.
pub const TICKET_US: u64 = 60_000_000;
pub const SLICE_US: u64 = 10_000_000;
/// Slots of a ticket that nobody else has a part of.
pub const ALL_SLOTS: u16 = 0;
/// What is added to the pause between the last request of one holder and the first of the next, so that logs of clocks that are
/// within 100 ms of each other prove it.
pub const HANDED_ON_US: u64 = 250_000;

/// How long a keeper counts what it lent: what the slowest clock makes of it, by the fastest.
pub const fn kept_us(lent_us: u64) -> u64 {
    lent_us + lent_us * 2 / 99 + 1
}

/// A pause as the fastest clock has to count it, and what is added between two holders.
pub const fn owed_us(pause_us: u64) -> u64 {
    pause_us.saturating_add(pause_us / 99).saturating_add(1 + HANDED_ON_US)
}

const _: () = assert!(
    kept_us(TICKET_US) * 99 >= TICKET_US * 101,
    "the clock of a holder may be 1 % slow, a keeper's 1 % fast"
);
const _: () = assert!(SLICE_US <= TICKET_US / 2, "a slice ends before a renewal");
