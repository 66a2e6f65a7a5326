use crate::limits::{SITEMAP_BYTES_MAX, SITEMAP_ELEMENTS_DEEP_MAX, SITEMAP_ENTRIES_MAX};
use thiserror::Error;

/// One URL of a sitemap, as it is written there but for its escapes; it may be no URL at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SitemapEntry<'a> {
    Page {
        loc: &'a str,
        lastmod: Option<u32>,
    },
    /// Another sitemap. `lastmod` is in seconds since 1970, for both.
    Sitemap {
        loc: &'a str,
        lastmod: Option<u32>,
    },
}

/// What one document may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    pub entries_max: usize,
    /// Without a coding; what is longer is read up to here.
    pub bytes_max: u64,
    /// Elements inside each other.
    pub elements_deep_max: usize,
}

impl Default for SitemapLimits {
    fn default() -> SitemapLimits {
        SitemapLimits {
            entries_max: SITEMAP_ENTRIES_MAX,
            bytes_max: SITEMAP_BYTES_MAX,
            elements_deep_max: SITEMAP_ELEMENTS_DEEP_MAX,
        }
    }
}

/// How a document was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapSummary {
    pub format: SitemapFormat,
    /// Told to the caller.
    pub entries: usize,
    /// Without a URL, or with one that is too long or uses an entity that is none of XML's own.
    pub skipped: usize,
    pub end: SitemapEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SitemapFormat {
    /// `urlset`: pages.
    Pages,
    /// `sitemapindex`: sitemaps.
    Index,
    /// RSS or Atom, used as a sitemap.
    Feed,
    /// A URL a line.
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SitemapEnd {
    /// All of it was read.
    Whole,
    /// It is not well-formed, or its coding breaks off; entries before that count.
    Broken,
    /// It goes on past a limit.
    Limit,
}

/// Why a document is no sitemap.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SitemapError {
    #[error("it declares entities, which are never expanded")]
    Entities,
    #[error("neither a sitemap nor a feed nor a list of URLs")]
    Unknown,
    #[error("its gzip coding cannot be undone, or grows out of all proportion")]
    Coding,
}
