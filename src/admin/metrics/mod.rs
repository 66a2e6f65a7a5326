//! The figures of a process for Prometheus, in its text format or as OpenMetrics.
//!
//! ```text
//!   threads ── plain stores, now and then ──► tables ── Meter::read ──► Readings ─┐
//!   listener, settings, logs, tune ────────────────────────────────► Beside ──────┴─► exposition ──► text
//! ```
//!
//! Nothing is kept for it between two scrapes. What is exposed, by which names, types and labels, stands in one table
//! (`families`). No label ever holds what came from the network: hosts, URLs, addresses, paths and agents stay out, so
//! that the number of series has a bound.

mod beside;
mod exposition;
mod families;
mod family;
mod machine_families;
mod master_families;

pub(crate) use beside::Beside;
pub(crate) use exposition::{Format, exposition};
pub(crate) use families::all_families;
