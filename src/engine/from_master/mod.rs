//! URLs from a master: the entries of this node's queue, taken in order, handed to the doc index, and acknowledged when
//! they are on disk.
//!
//! ```text
//!   master ── TAKE 7 <seq> ◄── MasterFeed ── entries ──► scheduler ──► doc index: on disk
//!          ── lines, UPTO <next> <mark> ──►    │ ◄──────────────────────── Entered ┘
//!          ◄── DONE 7 <next> ──────────────────┴── master.position, replaced whole
//! ```
//!
//! | file       | holds                                                                              |
//! |------------|------------------------------------------------------------------------------------|
//! | `position` | how far each master's queue was taken, and up to which time: `master.position`     |
//! | `batch`    | the answer to one TAKE, and when all of it is durable                              |
//! | `side`     | one master: its link, and when it may be asked again after it refused              |
//! | `closed`   | domains that were moved to other servers: `master.closed`                          |
//! | `departure`| one domain on its way there, from CLOSE to FENCED                                  |
//! | `departures` | all of them, and what they bring along in pieces                                  |
//! | `feed`     | the actor: which master is used, what it is asked, and when the other is           |
//!
//! The position never runs ahead of the index: it is written after the import is durable, and before DONE. What is taken
//! twice after a kill does nothing.

mod batch;
mod closed;
mod departure;
mod departures;
mod feed;
mod position;
mod side;

pub use closed::ClosedDomains;
pub use feed::{MasterFeed, MasterParts};
pub use position::MasterPosition;
