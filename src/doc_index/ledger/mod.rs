//! The truth of the doc index: everything that was ever discovered, in the order it was.
//!
//! | file          | holds                                                              |
//! |---------------|--------------------------------------------------------------------|
//! | `ledger`      | the log itself: appended to, and read by the number of a document  |
//! | `ledger_view` | the same for a process that only looks                             |
//! | `block`       | the blocks that it is made of, and the scan over them              |
//! | `entry`       | one thing that it tells                                            |
//! | `origin`      | where a URL was found, and what it is wanted for                   |

mod block;
mod entry;
#[allow(clippy::module_inception)]
mod ledger;
mod ledger_view;
mod origin;

pub(super) use block::Scanned;
pub(super) use entry::{DOC, Entry};
pub use ledger::Discovered;
pub(super) use ledger::{FILE_HEADER_BYTES, Ledger, Told};
pub(super) use ledger_view::LedgerView;
pub use origin::{Origin, PRIORITY_MAX, PRIORITY_USUAL};
