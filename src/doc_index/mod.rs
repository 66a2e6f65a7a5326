//! The doc index: every URL known, what became of it, and what is to be fetched next.
//!
//! ```text
//!   discover(URLs, origin) ──► seen? ──► no: ledger, seen-set, its host's line in the frontier
//!                                └─────► only the disk knows: parked, and asked about with many others
//!   candidates(want, reject list) ──► pending URLs, the urgent and near first, a few from every host in turn
//!   record(outcome) ──► a row: success, error, or pending again with a time that it is due
//!   put_back(doc_id) ──► pending again (it was handed out, and nobody fetched it)
//!   take_up(doc_id) ──► as if it had just been handed out: its answer is in the store already
//!   flush() ──► ledger, then rows, to the disk
//!   import(URL, what is said of it) ──► as discover, or a known one moves up, or is due at once
//! ```
//!
//! Three things with three costs, and a structure for each:
//!
//! | what       | asked              | how                                                                       |
//! |------------|--------------------|---------------------------------------------------------------------------|
//! | `seen`     | for every link     | fingerprints in memory, then sorted runs on disk that are asked in batches |
//! | `frontier` | once per URL       | lines per host and rank, in memory and, past that, in pieces on disk       |
//! | `documents`| once per fetch     | rows of 64 bytes by number, by way of a log; notes beside them             |
//!
//! The `ledger` is the truth: an append-only log of all that was discovered. Seen-set and frontier are made from it when
//! an index is opened, so that a process may be killed at any instruction; what was handed out is pending then. A row
//! counts only if the ledger has all that was known when it was written: a page is never done without its links.
//!
//! It runs on the index thread, off every shard's path. Its memory bounds the seen-set, which takes some 12 bytes a URL
//! until half of the memory is used and from there on is a cache; the pending URLs; and the rows on their way. What
//! cannot go to disk is counted, and taken from these by halves, down to a sixteenth of the memory for the seen-set and
//! a thirty-second for the pending: from there on it grows past the bound.
//!
//! | for every       | in memory                                                                            |
//! |-----------------|--------------------------------------------------------------------------------------|
//! | host            | 130 to 200 bytes: its counts and lines, its place in a table, its name, its turn     |
//! | document        | ten bits: two of what became of it, a byte of where the ledger has it                |
//! | domain          | some 20 bytes, if their pages are limited; 2 MiB for all if variants of queries are  |
//! | seed            | its host, domain or prefix in the scope, once; nine bytes or more if it led elsewhere |

mod bits;
mod block;
mod cells;
mod documents;
mod dossier_line;
mod doubts;
mod due;
mod entry;
mod frontier;
mod handing;
mod host_table;
mod import;
mod index;
mod ledger;
mod line;
mod lines;
mod memory;
mod note;
mod open;
mod outcome;
mod recent_rows;
mod row;
mod rules;
mod schedule;
mod taking_up;
#[cfg(test)]
mod tests;
mod typed;
mod variants;
mod varint;
mod view;

pub use dossier_line::DossierLine;
pub use entry::{Origin, PRIORITY_MAX, PRIORITY_USUAL};
pub use frontier::HostCounts;
pub use import::{Import, ImportError, Imported, TagHash};
pub use index::{DocIndex, IndexStats, Link, RejectList};
pub use ledger::Discovered;
pub use memory::IndexBytes;
pub use note::Note;
pub use open::{IndexError, Opened};
pub use outcome::Outcome;
pub use row::{DocState, Row};
pub use rules::{IndexRules, Segments};
pub use schedule::{Recrawl, Schedule};
pub use variants::QueryVariants;
pub use view::{Dossier, IndexView};
