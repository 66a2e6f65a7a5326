//! The promise: what a feed says is read, however it is written, and what it does to us is bounded.

mod formats;

use super::*;

/// An entry that outlives its document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    url: Option<String>,
    guid: Option<String>,
    title: String,
    published_s: Option<i64>,
    updated_s: Option<i64>,
    author: Option<String>,
    language: Option<String>,
}

const URL: &str = "http://h.test/feeds/all.xml";

fn read_with(
    bytes: &[u8],
    content_type: Option<&[u8]>,
    limits: &FeedLimits,
) -> (Vec<Entry>, Result<FeedFacts, FeedError>) {
    let mut entries = Vec::new();
    let facts = read(bytes, &FeedSource { url: URL, content_type }, limits, |entry| {
        entries.push(Entry {
            url: entry.url.map(Into::into),
            guid: entry.guid.map(Into::into),
            title: entry.title.into(),
            published_s: entry.published_s,
            updated_s: entry.updated_s,
            author: entry.author.map(Into::into),
            language: entry.language.map(Into::into),
        });
    });
    (entries, facts)
}

#[track_caller]
fn all(bytes: &[u8]) -> (Vec<Entry>, FeedFacts) {
    let (entries, facts) = read_with(bytes, None, &FeedLimits::default());
    let facts = facts.unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
    assert_eq!(entries.len(), facts.entries as usize);
    (entries, facts)
}

/// The one entry of an RSS channel with this in its item.
#[track_caller]
fn item(inside: &str) -> Entry {
    let (mut entries, _) =
        all(format!("<rss version='2.0'><channel><item>{inside}</item></channel></rss>").as_bytes());
    assert_eq!(entries.len(), 1, "{inside}");
    entries.remove(0)
}
