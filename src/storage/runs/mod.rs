//! Sorted runs: files of fingerprints and the documents that have them, written once, searched, and merged into larger
//! ones.
//!
//! | file     | holds                                                    |
//! |----------|----------------------------------------------------------|
//! | `runs`   | the runs of a folder: opening, tiers, merging            |
//! | `merge`  | sorted sources of any kind as one                        |
//! | `merging`| runs that become one, in steps                           |
//! | `run`    | one run: its header, checking it, searching it           |
//! | `page`   | the pages that runs are made of, and their entries       |
//! | `pages`  | a run read from its beginning to its end                 |
//! | `query`  | a fingerprint that the runs are asked about, among many  |
//! | `writer` | a run written, and made durable before it has a name     |
//!
//! Runs are derived data: one that does not check is removed, and never repaired.

mod merge;
mod merging;
mod page;
mod pages;
mod query;
mod run;
#[allow(clippy::module_inception)]
mod runs;
mod writer;

pub(crate) use merge::Merge;
pub(crate) use page::Entry;
pub(crate) use pages::Pages;
pub(crate) use query::Query;
#[cfg(test)]
pub(crate) use run::{Run, Span};
pub(crate) use runs::Runs;
