//! What a feed says of itself.

use crate::base::named_enum;
use serde::{Deserialize, Serialize};

/// What a feed says of itself, and how it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeedFacts {
    pub format: FeedFormat,
    pub title: String,
    pub link: Option<String>,
    pub language: Option<String>,
    pub hub: Option<String>,
    pub hints: FeedHints,
    pub entries: u32,
    pub damage: Option<&'static str>,
}

/// When a feed wants to be asked, by its own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedHints {
    pub ttl_s: Option<u32>,
    pub period_s: Option<u32>,
    pub skip_hours: u32,
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
        Rss20 = "rss20",
        Atom03 = "atom03",
        Atom10 = "atom10",
        Cdf = "cdf",
        Json10 = "json10",
        Json11 = "json11",
        NewsSitemap = "news_sitemap",
    }
}
