//! Sitemaps: the pages that a site says it has.
//!
//! ```text
//!   bytes ──► gzip? ──► charset ──► begins with `<`? ──► xml ──► Page, Sitemap
//!             by its    a mark or    no: a URL a line     urlset, sitemapindex, rss, feed
//!             magic     the <?xml ?>
//! ```
//!
//! Made by strangers and as long as they like, so everything is bounded by [`SitemapLimits`], and XML is read as a flat
//! stream of tags: names count without their namespace, and only a container's own children are looked at, so that the
//! `loc` of an image in a page is not taken for the page. Entities that a document declares are never expanded; a
//! document that declares any is refused. Broken XML keeps what came before.
//!
//! Whether a URL is in scope, and whether one site may speak of another, is for the caller.

mod entry;
mod lastmod;
mod read;
#[cfg(test)]
mod tests;
mod which;
mod xml;

pub use entry::{SitemapEntry, SitemapError, SitemapFormat, SitemapLimits, SitemapSummary};
pub use read::read;
pub(crate) use which::Sitemaps;
