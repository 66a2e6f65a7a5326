//! Links between the nodes of a cluster: TCP underneath, words on top.
//!
//! ```text
//!   owner:  Wires::send ── PeerWord ──► frames ──► TLS ──► LinkPort ──► links thread
//!           Wires::take ◄── Up · Word · Down · Refused ◄── frames ◄── TLS ◄── LinkEvent
//!
//!   a link:   HELLO ◄─► HELLO, each judged      the higher number: TABLE_ASK, "I accept you"
//!                                               the lower number:  TABLE_ASK, "and this is the link"
//! ```
//!
//! | file           | holds                                                                                |
//! |----------------|--------------------------------------------------------------------------------------|
//! | `introduction` | who a node is, and what keeps two of them apart                                      |
//! | `peer_event`   | what the owner hears, and what it is asked                                           |
//! | `wire`         | one link: its TLS, its frames, how far the two have come                             |
//! | `dialing`      | addresses that are dialed, and those that rest while there is a link anyway          |
//! | `refusals`     | who was refused and why, each told once                                              |
//! | `wires`        | all links, one between two nodes                                                     |
//!
//! Two nodes dial each other, often at the same time, and keep one link. The node with the lower number decides which: it
//! speaks on the link that it keeps and closes the other. A node without a number decides nothing; between two of them the
//! one that was dialed does. So the two never differ, and a link that is closed for another has carried no word of an owner.

mod dialing;
mod introduction;
mod peer_event;
mod refusals;
#[cfg(test)]
mod tests;
mod wire;
mod wires;

pub use introduction::Introduction;
pub use peer_event::{Peer, PeerEvent, PeerOwner};
pub use wires::Wires;
