//! One epoch, steps (1) to (4): lines in, what is to be sent and the next current_log out.
//!
//! ```text
//!   files ──► Intake ── lines by the top byte of their id ──► Buckets ── past the budget ──► SpillFile
//!                │ rejects                                      │ a partition at a time, on any worker
//!                                                             Groups     group_sum: hits, last time, last tag
//!             CurrentLog ── rows in the order of ids ──►      join       filter_url: sent, kept, or gone
//!                                                               ├──► rows of the next current_log
//!                                                               └──► what is sent ──► Joined
//! ```
//!
//! An id is a keyed hash of the normal form, so that partitions are even and nobody can aim at one. A row of
//! current_log needs no URL: whoever is sent stands in the files. All of it is a function of the files, the time and the
//! key: however many workers there are, and however little memory, the bytes are the same.

mod buckets;
mod chunks;
mod current_log;
mod domain;
mod filter_url;
mod groups;
mod id_key;
mod intake;
mod job;
mod join;
mod joined;
mod known;
mod line;
mod partition;
mod row;
mod row_set;
mod sent;
mod spill_file;
#[cfg(test)]
mod tests;
mod text;

pub use current_log::{CurrentLog, CurrentRows, CurrentWriter};
pub use domain::Domains;
pub use id_key::IdKey;
pub use job::{AHEAD_S, AsWritten, DomainBy, JoinJob, JoinRules, UrlCanon};
pub use join::join;
pub use joined::Joined;
pub use row::{CurrentRow, TagMark};
pub use row_set::RowSet;
pub use text::{TextOut, join_text};
