//! The event log of a process that runs a node: what its threads and its command tell, by level, in the form that was
//! asked for, and never so much of one event that nothing else is read.
//!
//! ```text
//!   threads ──► Notices ──► runner ─┐            limiter             text      stderr, as people read it
//!   commands ───────────────────────┴─► tell ──► 20 a second ──► in ─ json      stderr, an object a line
//!                                                of each event       journal   systemd's journal, with fields
//! ```
//!
//! | file      | holds                                                     |
//! |-----------|-----------------------------------------------------------|
//! | `log`     | the log of this process, and the flag that says its form  |
//! | `limiter` | how many lines of an event a second has                   |
//! | `forms`   | a notice as text, JSON or a datagram                      |
//! | `journal` | the socket of systemd's journal                           |

mod forms;
mod journal;
mod limiter;
mod log;

pub(in crate::commands) use log::{LogArgs, tell, tell_more};
pub(super) use log::{is_text, settle, tell_aside};
