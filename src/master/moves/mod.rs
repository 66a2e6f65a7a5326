//! Moving a domain from one node to another, so that two never ask it at once and nothing of it is lost.
//!
//! ```text
//!   map move D 2     row: server 1, moving to 2, fence f + 1      rows of D are held
//!                    every master: CLOSE D into the queue of 1
//!   node 1           stops asking D ── HAND niceness, URLs ── CLOSED D ──► either master
//!                    handover kept under fence f + 1, FENCED to node 1
//!                    row: server 2, fence f + 2
//!   every master     NICE…, OPEN D, URLs into the queue of 2; held rows of D flow
//! ```
//!
//! A master goes by its own copy of a row, and writes the copy and the entries that it calls for in one commit: the copy
//! says what has been done here. Everything else is asked of the table again after a kill, and may be done twice.

mod desk;
mod domain_moves;
mod handover;
mod master_desk;
#[cfg(test)]
mod tests;
mod transition;

pub use desk::{MoveCommit, MoveDesk, QueueEntry};
pub use domain_moves::{Closed, MoveError, MoveNews, MoveOrder, Moves, Trouble};
pub use handover::Handover;
pub use master_desk::MasterDesk;
