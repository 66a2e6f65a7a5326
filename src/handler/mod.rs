//! The handler: what a fetched document means for the crawl.
//!
//! ```text
//!   Fetched ──► redirect target, or links of the HTML, read in its own encoding
//!                    │ resolved against the page or its <base>, normalised, without what settings drop
//!                    │ in scope (and nothing says why not), within depth
//!                    │ not seen lately by this shard
//!                    ▼
//!               LinkBatch ──► doc index (which knows for certain)
//! ```
//!
//! A sitemap goes the same way; besides pages it may name sitemaps. What a page would rather be known by (rel=canonical)
//! is noted beside what it links to.
//!
//! Sans-IO and per shard: it reads a document and says what it found.

mod found;
mod link_batch;
mod link_header;
mod recent;
mod scope;
mod scope_kind;
mod sitemaps;
#[cfg(test)]
mod tests;
mod traps;
mod verdict;

pub use found::{Handled, Handler, Page, redirect_target};
pub use link_batch::LinkBatch;
pub use scope::{Scope, ScopeRules};
pub use scope_kind::ScopeKind;
pub use verdict::{Verdict, WhyIn, WhyOut};
