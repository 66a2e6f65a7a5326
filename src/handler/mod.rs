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
//! A feed is read for the entries that it lists, unless it is the same as before: then it is told as redundant. Which of
//! them are news is for others to say.
//!
//! A sitemap goes the same way; besides pages it may name sitemaps. The canonical URL of a page (rel=canonical) is
//! noted beside its links.
//!
//! Sans-IO and per shard: it reads a document and says what it found.

mod feeds;
#[allow(clippy::module_inception)]
mod handler;
mod link_batch;
mod link_header;
mod recent;
mod scope;
mod scope_kind;
#[cfg(test)]
mod tests;
mod traps;
mod verdict;

pub use feeds::{Discover, FeedAnswer, FeedItem, FeedLink, FeedListing, FeedReading, REDUNDANT_FEED};
pub use handler::{Handled, Handler, Page, redirect_target};
pub use link_batch::LinkBatch;
pub use scope::{Scope, ScopeRules};
pub use scope_kind::ScopeKind;
pub use verdict::Verdict;
