//! Questions to name servers and what their answers say.
//!
//! ```text
//!   host ──► HostName ──► Question (id, spelling) ──► bytes, with or without EDNS, framed for TCP or not
//!   bytes of an answer ──► Question::read ──► Reply: a stray, unfit, a fault, no such name, addresses …
//! ```
//!
//! The codec is the `domain` crate's; what is here decides what an answer means to a crawler: which addresses stand
//! at the end of its chain of aliases, for how long, and whether it answers our question at all. Everything comes
//! from the network and may be forged: an answer counts only if it repeats the id and the question as asked.
//!
//! The letters of a name go out in random case and must come back so (DNS 0x20): some twenty more bits to guess
//! for somebody who cannot see the question, on top of sixteen of the id and of the port. A server that spells
//! names its own way is no forger, so such an answer is not thrown away but asked for again over TCP.

mod host_name;
#[cfg(test)]
pub(crate) mod made_up;
mod question;
mod reply;
#[cfg(test)]
mod tests;

pub use host_name::HostName;
pub use question::{Question, RecordKind};
pub use reply::{Reply, Unfit};
