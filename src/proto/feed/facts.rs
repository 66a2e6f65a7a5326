use crate::base::named_enum;
use crate::limits::{FEED_ENTRIES_MAX, FEED_TEXT_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use thiserror::Error;

/// What is known of a feed before its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedSource<'a> {
    /// Where it came from: what its relative links are relative to, unless it says otherwise.
    pub url: &'a str,
    /// The value of its Content-Type header.
    pub content_type: Option<&'a [u8]>,
}

/// What one feed may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedLimits {
    pub entries_max: usize,
    /// Of one title, guid, name or date; what is longer is cut there. A longer URL is none.
    pub text_bytes_max: usize,
}

impl Default for FeedLimits {
    fn default() -> FeedLimits {
        FeedLimits { entries_max: FEED_ENTRIES_MAX, text_bytes_max: FEED_TEXT_BYTES_MAX }
    }
}

/// One entry, as the feed has it: what it points to, and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedEntry<'a> {
    /// Absolute, as it was found; of any scheme, and not in normal form.
    pub url: Option<Cow<'a, str>>,
    /// What the feed knows the entry by: `guid`, `id`, `rdf:about`.
    pub guid: Option<Cow<'a, str>>,
    /// Plain text: no markup, no references, no control characters, one blank between words. It may be empty.
    pub title: Cow<'a, str>,
    /// When it was published, in seconds since 1970.
    pub published_s: Option<i64>,
    /// When it was changed last; the only date of many feeds, and of `dc:date`.
    pub updated_s: Option<i64>,
    pub author: Option<Cow<'a, str>>,
    /// Of the entry, where it is not that of the feed.
    pub language: Option<Cow<'a, str>>,
}

/// What a feed says of itself, and how it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeedFacts {
    pub format: FeedFormat,
    /// Plain text, as that of an entry.
    pub title: String,
    /// The site that it is the feed of; absolute.
    pub link: Option<String>,
    pub language: Option<String>,
    /// Where new entries can be subscribed to; absolute.
    pub hub: Option<String>,
    pub hints: FeedHints,
    /// Told to the caller.
    pub entries: u32,
    /// What is wrong with it, where something is: entries before that count.
    pub damage: Option<&'static str>,
}

/// When a feed wants to be asked, by its own words. They are told as they are: what to make of them is for the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedHints {
    /// `ttl`, in seconds.
    pub ttl_s: Option<u32>,
    /// `sy:updatePeriod` over `sy:updateFrequency`.
    pub period_s: Option<u32>,
    /// Hours of the day (UTC) at which it is not to be asked: bits 0 to 23.
    pub skip_hours: u32,
    /// Days at which it is not to be asked: bit 0 is Monday.
    pub skip_days: u8,
}

named_enum! {
    #[derive(Hash)]
    pub enum FeedFormat {
        Rss090 = "rss090",
        Rss091 = "rss091",
        Rss092 = "rss092",
        Rss093 = "rss093",
        Rss094 = "rss094",
        Rss10 = "rss10",
        /// Also of a version that there is none of, or without one.
        Rss20 = "rss20",
        Atom03 = "atom03",
        Atom10 = "atom10",
        Cdf = "cdf",
        Json10 = "json10",
        Json11 = "json11",
        NewsSitemap = "news_sitemap",
    }
}

/// Why some bytes are no feed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FeedError {
    #[error("it is empty")]
    Empty,
    #[error("it is a page of HTML, not a feed")]
    Html,
    #[error("it is a list of sitemaps, not a feed")]
    SitemapIndex,
    #[error("its gzip coding cannot be undone, or grows out of all proportion")]
    Coding,
    #[error("neither RSS nor Atom nor JSON Feed nor a news sitemap")]
    Unknown,
}
