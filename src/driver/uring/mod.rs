//! The io_uring driver: one ring per shard thread.
//!
//! ```text
//!   connect ──► SOCKET (direct slot = key index) ─link─► CONNECT ──► Connected, multishot RECV armed
//!   send    ──► SEND from a buffer the driver owns until it completes
//!   RECV    ──► buffer id out of the shared ring ──► lent to the caller ──► back into the ring
//!   accept  ──► ACCEPT (an ordinary descriptor) ──► Accepted;  adopt ──► into the slot of a key, RECV armed
//!   pause   ──► CANCEL the receive;  resume ──► RECV armed again
//!   close   ──► CANCEL each open operation ─hardlink─► CLOSE ──► Closed when the last completion is in
//! ```
//!
//! - Sockets are direct descriptors. They do not count against the process's file limit, only against the
//!   table of the ring, and the slot in that table is the index of the connection's key.
//! - `user_data` is operation, generation and index. A completion whose generation is not the slot's is a
//!   mistake of ours and panics: a slot is given back only after its last completion.
//! - Receive buffers are one ring per shard, lent only while bytes are in them, so an idle connection costs
//!   no buffer.
//! - Waiting asks for several completions with a minimum wait, so that a busy ring is entered once per batch.
//!
//! This folder is one of the two that may hold `unsafe`.
#![allow(unsafe_code)]

mod buffers;
mod listeners;
mod ring;

pub use ring::UringDriver;
