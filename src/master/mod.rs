//! The master: URL logs in, the queue of every node out.
//!
//! ```text
//!   files ──► intake ──256 partitions──► group ──► join ◄── current.N
//!             id, domain                           │ filter_url: sent, or kept
//!                                                  ├──► current.N+1
//!                                                  └──► filtered ──► placing ◄── domain map (partner_domain)
//!                                                                      └──► queue of each server
//! ```
//!
//! An epoch takes the files that have come, and is atomic: it is whole or did not happen, and made again from the same
//! files it has the same bytes.

pub mod args;
pub mod audit;
pub mod epoch;
pub mod explain;
mod filtered;
mod input;
pub mod keeping;
pub mod map;
mod memory_table;
pub mod moves;
mod pair;
mod partner_domain;
pub mod queue;

pub use filtered::{EpochCounts, FilteredRow, RowPlace};
pub use input::{InputBounds, InputError, InputFault, InputFile, InputReader, InputSum};
pub use memory_table::{Fault, MemoryTable};
pub use pair::PairTerms;
pub use partner_domain::{By, DatabaseError, MapRow, PartnerDomain, ServerId};
