//! The seen-set: is this URL known, or new? Asked for every link of every page, so it has to be answered in a fraction
//! of a microsecond, for more URLs than there is memory for.
//!
//! ```text
//!   ask(fingerprints) ──► table: Known │ New │ Unresolved
//!                                               └─► resolve(queries) ──► unwritten, then the runs on disk
//!   insert(fingerprint, doc_id) ──► table
//!                               └─► unwritten ──full──► a run ──eight of a size──► one run
//! ```
//!
//! A URL is a *fingerprint* here: 64 bits of a keyed hash, which the caller makes. Two URLs with one fingerprint are
//! one URL. The table has the fingerprints alone. As long as it may grow, it has all of them, and what it does not have
//! is new. Once the next growth would pass the budget it becomes a cache, and what it does not have is unresolved. The
//! caller gathers such URLs and takes them to the disk by the million, where one pass over sorted files answers for all
//! of them.
//!
//! The [runs](crate::storage::runs) are derived data. The caller's own log has every URL: [`Seen::covered`] says up to
//! which document the runs tell of it, and the caller inserts the rest again after a crash.
//!
//! | file        | holds                                                                    |
//! |-------------|--------------------------------------------------------------------------|
//! | `set`       | the whole: table, unwritten entries and runs                             |
//! | `reader`    | look-ups in the runs of a crawl that another process is running          |
//! | `table`     | fingerprints in memory, first all of them, then as many as there is room |
//! | `partition` | a part of the table: where a fingerprint is, and how it grows            |
//! | `unwritten` | entries that are in no run yet                                           |

mod partition;
mod reader;
mod set;
mod table;
#[cfg(test)]
mod tests;
mod unwritten;

pub(crate) use reader::SeenReader;
pub(crate) use set::Seen;
pub(crate) use table::Answer;
