//! The doc index: every URL known, what became of it, and what is to be fetched next.
//!
//! ```text
//!   discover(URLs, origin) ──► seen? ──► no: ledger, seen-set, its host's queue in the frontier
//!                                └─────► only the disk knows: parked, and asked about with many others
//!   candidates(want, reject list) ──► pending URLs, the urgent and near first, a few from every host in turn
//!   record(outcome) ──► a row: success, error, or pending again with a time that it is due
//!   put_back(doc_id) ──► pending again (it was handed out, and not fetched)
//!   take_up(doc_id) ──► as if it had just been handed out: its answer is in the store already
//!   flush() ──► ledger, then rows, to the disk
//!   import(URL, what is said of it) ──► as discover, or a known one moves up, or is due at once
//! ```
//!
//! [`DocIndex`] is made of these:
//!
//! | what          | asked          | how                                                                        |
//! |---------------|----------------|----------------------------------------------------------------------------|
//! | `known_urls`  | for every link | fingerprints in memory, then sorted runs on disk that are asked in batches |
//! | `frontier`    | once per URL   | queues per host and rank, in memory and, past that, in pieces on disk      |
//! | `documents`   | once per fetch | rows of 64 bytes by number, by way of a log; notes beside them             |
//! | `due`         | once per fetch | documents that wait for a retry or for the next look, by the hour          |
//! | `budgets`     | for a new URL  | how many URLs of a host, a domain and a kind of query are taken in         |
//! | `bookkeeping` | always         | where every document stands, and how many stand where                      |
//! | `said`        | for an import  | what was last said of URLs that were handed in: the same again changes nothing |
//! | `ledger`      | never, or once | everything that was discovered, in order                                   |
//!
//! The `ledger` is the truth: an append-only log of all that was discovered. Seen-set and frontier are made from it
//! when an index is opened, so that a process may be killed at any instruction; what was handed out is pending then. A
//! row counts only if the ledger has all that was known when it was written: a page is never done without its links.
//!
//! It runs on the index thread, off every shard's path. Its memory bounds the seen-set, which takes some 12 bytes a URL
//! until half of the memory is used and from there on is a cache; the pending URLs; and the rows on their way. What
//! cannot go to disk is counted, and taken from these by halves, down to a sixteenth of the memory for the seen-set and
//! a thirty-second for the pending: from there on it grows past the bound.
//!
//! | for every       | in memory                                                                            |
//! |-----------------|--------------------------------------------------------------------------------------|
//! | host            | 130 to 200 bytes: its counts and queues, its place in a table, its name, its turn     |
//! | document        | ten bits: two of what became of it, a byte of where the ledger has it                |
//! | domain          | some 20 bytes, if their pages are limited; 2 MiB for all if variants of queries are  |
//! | seed            | its host, domain or prefix in the scope, once; nine bytes or more if it led elsewhere |

mod bits;
mod bookkeeping;
mod budgets;
mod document_info;
mod document_line;
mod documents;
mod due;
mod files;
mod frontier;
mod index;
mod index_view;
mod known_urls;
mod ledger;
mod outcome;
mod query_variants;
mod rules;
mod said;
mod schedule;
#[cfg(test)]
mod tests;
mod trouble;
mod unresolved;

pub(crate) use document_info::DocumentInfo;
pub(crate) use document_line::DocumentLine;
pub use documents::DocState;
pub(crate) use documents::{Note, Row};
pub(crate) use frontier::HostCounts;
pub(crate) use index::IndexError;
pub(crate) use index::{Copying, Moving, MovingItem, PageElsewhere};
pub(crate) use index::{DocIndex, IndexStats, Link, Opened, RejectList};
pub(crate) use index::{Import, ImportError, Imported, MOVED, Mention, TagHash};
pub(crate) use index::{NEVER_S, Named};
pub(crate) use index::{OutItem, Outbox, StillOurs, ToTell};
pub use index_view::IndexView;
pub(crate) use ledger::PRIORITY_USUAL;
pub(crate) use ledger::{Discovered, Origin};
pub(crate) use outcome::Outcome;
pub(crate) use query_variants::QueryVariants;
pub(crate) use rules::{IndexRules, Segments};
pub(crate) use schedule::{Recrawl, Schedule};
