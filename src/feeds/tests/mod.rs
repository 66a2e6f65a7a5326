//! The role as its callers know it.

mod dedup;
mod model;
mod polling;
mod restarts;
mod year;

use super::*;
use crate::proto::record::ResultCode;
use std::path::{Path, PathBuf};

/// 2026-11-16, a Monday, noon.
const NOON: u32 = 1_794_787_200 + 12 * 3_600;

/// A directory that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nephila-feeds-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn open(&self, rules: FeedRules) -> Feeds {
        Feeds::open(&self.0, rules).unwrap().0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn in_memory() -> Feeds {
    Feeds::in_memory(FeedRules::default(), 7).unwrap()
}

fn add(feeds: &mut Feeds, url: &str, source: &str) -> FeedId {
    feeds.add(&NewFeed { url, source, title: "" }, NOON).unwrap().feed
}

fn facts() -> FeedFacts {
    FeedFacts {
        format: FeedFormat::Rss20,
        title: "News".to_string(),
        link: None,
        language: Some("en".to_string()),
        hub: None,
        hints: FeedHints::default(),
        entries: 0,
        damage: None,
    }
}

fn entry(url: &str, guid: &str, title: &str, published_s: u32) -> EntryRead {
    let published_s = Some(i64::from(published_s)).filter(|&at_s| at_s > 0);
    EntryRead { url: url.into(), guid: guid.into(), title: title.into(), published_s }
}

fn listing(entries: &[EntryRead]) -> FeedRead {
    let mut urls: Vec<&str> = entries.iter().map(|entry| &*entry.url).collect();
    urls.sort_unstable();
    let hash = |text: &str| xxhash_rust::xxh3::xxh3_64(text.as_bytes());
    let all: String =
        entries.iter().map(|e| format!("{} {} {} {:?}\n", e.url, e.guid, e.title, e.published_s)).collect();
    FeedRead {
        facts: FeedFacts { entries: entries.len() as u32, ..facts() },
        entries: entries.to_vec(),
        checksum: hash(&urls.join("\n")),
        digest: hash(&all),
        skipped: 0,
    }
}

/// Reads a listing and notes its poll; says which URLs are new.
fn brings(feeds: &mut Feeds, feed: FeedId, entries: &[EntryRead], now_s: u32) -> Vec<String> {
    let (read, mut new) = (listing(entries), Vec::new());
    feeds.read(feed, &read, now_s, |story| new.push(story.url.to_string())).unwrap();
    let outcome = PollOutcome { digest: read.digest, ..PollOutcome::new(ResultCode::Ok, 200, now_s) };
    feeds.polled(feed, &outcome, now_s);
    new
}

/// Nothing has changed.
fn same(feeds: &mut Feeds, feed: FeedId, now_s: u32) -> NextPoll {
    let outcome =
        PollOutcome { had_validators: true, ..PollOutcome::new(ResultCode::NotModified, 304, now_s) };
    feeds.polled(feed, &outcome, now_s)
}

/// All stories on disk.
fn stories(dir: &Path) -> Vec<Story> {
    let view = StoriesView::open(dir).unwrap();
    view.map_or(Vec::new(), |view| view.since(StoryId(0)).unwrap().map(Result::unwrap).collect())
}
