//! The doc index: every URL known, what became of it, and what is to be fetched next.
//!
//! ```text
//!   discover(URL, depth, …) ──► new? ──► pending, in its host's line
//!   candidates(want, reject list) ──► pending URLs, one after the other from every host that is not rejected
//!   record(doc_id, result) ──► done
//!   put_back(doc_id) ──► pending again (it was handed out, and nobody fetched it)
//! ```
//!
//! In memory: it lives as long as the process. It runs on the index thread, off every shard's path.

mod index;
mod line;
pub mod variants;

pub use index::{DocIndex, DocState, IndexStats, Origin, RejectList};
