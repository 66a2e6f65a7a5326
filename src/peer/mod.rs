//! Many nodes, one crawl: who owns which part of the web, and until when.
//!
//! ```text
//!   join, drain, weights ──► assign ──► table {epoch, owner of every partition, next owners, nodes, voters}
//!   beat every 5 s ──► holder ──► right until …      │ read, compare-and-swap      ▲ take over, give
//!   beats of others ──► watch ──► seal ──────────────┼─────────────────────────────┘
//!                                                 register   on three or five voters: CASPaxos
//!   WANT ──► keeper ──► GRANT ──► holder: until … and not before …
//!   statuses, round by round ──► quiet?
//! ```
//!
//! A role without input and output: messages, outcomes and the time come in, requests and answers go out.
//!
//! | file           | holds                                                                                   |
//! |----------------|-----------------------------------------------------------------------------------------|
//! | `table`        | who owns what at one epoch; `table_bytes` the same as bytes                             |
//! | `table_change` | what may be done to a table, each change as a value                                     |
//! | `assign`       | owners to be with the fewest moves; the ring of nodes                                   |
//! | `beat`         | the right of a node: renewed by its beat, sealed by its heir, given away by its owner    |
//! | `council`      | what a node asks the voters, and what it answers as one of them                         |
//! | `growth`       | from one voter to three: the one step in which the voters change                         |
//! | `exchange`     | the way of URLs to their owners: the ledger read in stretches, batches kept until counted |
//! | `ticket`       | who may ask an address, or a host of many nodes: keeper and holder                      |
//! | `quiet`        | whether all is done everywhere: four counters, twice                                    |
//! | `sponsor`      | nodes that ask to be in the table                                                       |
//! | `register`     | a value on a majority of voters: acceptor, proposer, ballots                            |

mod assign;
pub mod beat;
pub mod council;
pub mod exchange;
mod growth;
mod quiet;
pub mod register;
mod sponsor;
mod table;
mod table_bytes;
mod table_change;
#[cfg(test)]
mod tests;
pub mod ticket;

pub use assign::{assign, next_on_ring, planned_owners, ring, steps_on_ring};
pub use growth::{name_at_start, table_at_start, voter_name, voters_of};
pub use quiet::{Counters, Member, Quiet};
pub use sponsor::{Asking, Sponsor};
pub use table::{NOBODY, NodeState, PartitionRange, Table, TableError, TableNode, Taken, Taking};
pub use table_bytes::TABLE_VERSION;
pub use table_change::TableChange;
