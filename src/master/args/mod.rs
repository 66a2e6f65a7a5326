//! query_args: which parameters of a URL make another document, and which do not.
//!
//! ```text
//!   CLEAN (robots.txt) ─► declared ┐
//!   settings ──────────► configured├─► verdict of (domain, path, parameter) ─► identity of a URL: base and kept ones
//!   PAGE ─► pairs ─► evidence ─────┤
//!   a person ───────────► said ────┘   wins over all
//! ```
//!
//! Two pages whose URLs differ in one parameter only are a pair: they have the same text, or not. After
//! [`PAIRS_MIN`] pairs over [`VALUES_MIN`] values, less than one in a hundred of them different, the parameter is
//! dropped there; after [`DIFFER_MAX`] different ones it is kept for good. One in [`PROBE_EVERY`] URLs goes in full all the
//! same, so that a site that changes its mind is noticed.
//!
//! Never dropped by learning alone: what stands alone in its query, names that page through lists or hold a search, and
//! whatever was not seen on pages with status 200.
//!
//! | file      | holds                                                     |
//! |-----------|-----------------------------------------------------------|
//! | `args`    | all of it: verdicts, and the identity of a URL            |
//! | `evidence`| what pairs of a parameter have shown                      |
//! | `pairs`   | the last page of each URL but one parameter, bounded      |
//! | `query`   | a URL in its parts                                        |
//! | `journal` | `args.journal`: lines with checksums, for several writers |

#[allow(clippy::module_inception)]
mod args;
mod evidence;
mod journal;
mod pairs;
mod query;
#[cfg(test)]
mod tests;

pub use args::{ArgLine, Args, DeclaredLine};
pub use evidence::{DIFFER_MAX, Evidence, PAIRS_MIN, PROBE_EVERY, VALUES_MIN, Verdict};
