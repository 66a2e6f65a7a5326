//! Where records lie: by URL, by document number and by digest. Everything here can be made anew from the segments.
//!
//! ```text
//!   sealed segment ──► Entries ──sort──► NUMBER-SHARD.idx ──┐
//!                                                           ├─ merge 16 ──► TIER-FIRST-LAST.run ── merge 16 ──► …
//!   sealed segment ──► Entries ──sort──► NUMBER-SHARD.idx ──┘
//!                                           Catalog ── looks into every run, and into what is in no run yet
//! ```
//!
//! | file      | holds                                                                      |
//! |-----------|----------------------------------------------------------------------------|
//! | `entry`   | a key and a place: sixteen bytes                                           |
//! | `file`    | an index file: three sorted lists, written once and searched through a map |
//! | `build`   | the entries of a segment                                                   |
//! | `merge`   | many indexes into one                                                      |
//! | `catalog` | all the indexes of a store                                                 |
//! | `all_places` | the same, and what is in no index yet                                   |
//!
//! A `.idx` and a `.run` have one layout. A run is a second copy: it is there so that a store of many segments is asked
//! in tens of files and not in thousands. All of them are hints: what they lead to is read and checked, so a wrong one
//! can hide a record, and `store verify` finds that, but never show a wrong one.

mod all_places;
mod build;
mod catalog;
mod entry;
mod file;
mod merge;

pub(super) use all_places::AllPlaces;
pub(super) use build::Entries;
pub(super) use catalog::Catalog;
pub(super) use entry::{Entry, Place};
pub(super) use file::{IndexFile, List, index_path};
pub(super) use merge::{FAN_IN, merge, runs_of};
