//! The seen set: is this URL known, or new? Asked for every link of every page, so it has to be answered in a fraction
//! of a microsecond, for more URLs than there is memory for.
//!
//! ```text
//!   ask(prints) ──► table: Known │ New │ Doubt
//!                                        └─► resolve(doubts) ──► unwritten, then the runs on disk: known or not
//!   insert(print, doc_id) ──► table
//!                         └─► unwritten ──full──► a run ──eight of a size──► one run
//! ```
//!
//! A URL is a *print* here: 64 bits of a keyed hash, which the caller makes. Two URLs with one print are one URL.
//! The table has the prints alone. As long as it may grow, it has all of them, and what it does not have is new. Once
//! the next growth would pass the budget it becomes a cache, and what it does not have is a doubt. Doubts are gathered
//! by the caller and taken to the disk by the million, where one pass over sorted files answers them all.
//!
//! The runs are derived data. The caller's own log has every URL: [`Seen::covered`] says up to which document the runs
//! tell of it, and the caller inserts the rest again after a crash. So a run that does not check is thrown away, and
//! never mended.
//!
//! | file        | holds                                                              |
//! |-------------|--------------------------------------------------------------------|
//! | `set`       | the whole: table, unwritten entries and runs                       |
//! | `reader`    | look-ups in the runs of a crawl that somebody else is running      |
//! | `table`     | prints in memory, first all of them, then as many as there is room |
//! | `partition` | a part of the table: where a print is, and how it grows             |
//! | `unwritten` | entries that are in no run yet                                     |
//! | `runs`      | the runs of a folder: opening, tiers, merging                      |
//! | `merge`     | many runs as one                                                   |
//! | `run`       | one run: its header, checking it, searching it                     |
//! | `page`      | the pages that runs are made of                                    |
//! | `pages`     | a run read from its beginning to its end                           |
//! | `writer`    | a run written, and made durable before it has a name               |

mod merge;
mod page;
mod pages;
mod partition;
mod reader;
mod run;
mod runs;
mod set;
mod table;
#[cfg(test)]
mod tests;
mod unwritten;
mod writer;

pub use reader::SeenReader;
pub use set::{Doubt, Seen};
pub use table::Answer;
