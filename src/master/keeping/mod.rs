//! What a master keeps on disk, and how an epoch becomes whole or does not happen.
//!
//! ```text
//!   DIR/journal            BEGIN n (now, files and digests, loads) · COMMIT n (where everything ends) · KEEP · …
//!       id.key             what ids are made with
//!       log/current.N      the current_log after epoch N, the newest only
//!       queue/<server>/    what is sent
//!       domains.journal    the domain map
//!       held/N             lines that could not be sent in epoch N, and come again with the next
//!       rejects/N          lines of epoch N that could not be read
//!       lock               one process writes
//!
//!   open ──► begin ──► Epoch::join ──► commit ──► begin …
//!             BEGIN n                   queues, map, current.N, held: all synced · COMMIT n, synced · readers see it
//! ```
//!
//! The journal's lengths are the truth: what is behind them in any file is cut away when a directory is opened. Killed
//! before its COMMIT, an epoch is made again from the same files with the same `now`, and has the same bytes. What follows a
//! COMMIT (inputs move to `done/`, files are let go, journals are written anew) is done again by the next process.

mod begin;
mod commit;
mod deal;
mod epoch_begun;
mod files;
mod journal;
mod lock;
mod master;
mod rejects;
mod state;
#[cfg(test)]
mod tests;
mod told;
mod view;

pub use commit::{Committed, Dealt};
pub use epoch_begun::Epoch;
pub use master::{Kept, Master, MasterRules};
pub use state::{EpochRules, Held, Totals};
pub use told::Told;
pub use view::{EpochTold, FileTold, MasterView};
