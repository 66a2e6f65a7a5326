use super::feed::{Feed, FeedState, cut};
use super::ids::{FeedId, SourceId};
use crate::base::fingerprint;
use hashbrown::HashTable;
use rapidhash::fast::RapidHashMap;
use serde::{Deserialize, Serialize};
use std::io;

/// A feed to be added.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewFeed<'a> {
    /// In normal form.
    pub url: &'a str,
    /// The name of its source; empty: the host of its URL.
    pub source: &'a str,
    /// Empty: what the feed calls itself.
    pub title: &'a str,
}

/// What became of a feed that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub feed: FeedId,
    /// False: its URL was known, also as one that a feed has moved from.
    pub is_new: bool,
}

/// Whom feeds belong to: within a source, a story is there once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub id: SourceId,
    pub name: Box<str>,
}

/// Sources and feeds in memory.
#[derive(Default)]
pub(super) struct Book {
    /// The feed of number n is at n − 1.
    feeds: Vec<Feed>,
    sources: Vec<Source>,
    by_url: HashTable<u32>,
    by_doc: HashTable<u32>,
    by_name: HashTable<u32>,
    /// URLs that feeds have moved from: the book has few.
    aliases: RapidHashMap<Box<str>, FeedId>,
}

/// Feeds, sources and what they moved from, each; numbers of feeds fit the ids of the journal.
const COUNT_MAX: usize = 50_000_000;
/// Of the name of a source.
const NAME_BYTES_MAX: usize = 200;

impl Book {
    pub fn feed(&self, feed: FeedId) -> Option<&Feed> {
        self.feeds.get((feed.0 as usize).checked_sub(1)?)
    }

    pub fn feed_mut(&mut self, feed: FeedId) -> Option<&mut Feed> {
        self.feeds.get_mut((feed.0 as usize).checked_sub(1)?)
    }

    /// All but those that were removed.
    pub fn feeds(&self) -> impl Iterator<Item = &Feed> {
        self.feeds.iter().filter(|feed| feed.state != FeedState::Removed)
    }

    /// Those that were removed as well.
    pub fn all(&self) -> &[Feed] {
        &self.feeds
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub fn aliases(&self) -> impl Iterator<Item = (&str, FeedId)> {
        self.aliases.iter().map(|(url, feed)| (&**url, *feed))
    }

    pub fn source(&self, source: SourceId) -> Option<&Source> {
        self.sources.get((source.0 as usize).checked_sub(1)?)
    }

    pub fn source_named(&self, name: &str) -> Option<&Source> {
        let name = cut(name, NAME_BYTES_MAX);
        let at = self.by_name.find(hash(name), |&at| &*self.sources[at as usize].name == name)?;
        Some(&self.sources[*at as usize])
    }

    /// A feed by its URL, or by one that it has moved from.
    pub fn by_url(&self, url: &str) -> Option<FeedId> {
        let found = self.by_url.find(hash(url), |&at| self.feeds[at as usize].url() == url);
        found.map(|&at| FeedId(at + 1)).or_else(|| self.aliases.get(url).copied())
    }

    pub fn by_doc(&self, doc_id: u32) -> Option<FeedId> {
        let found = self.by_doc.find(doc_hash(doc_id), |&at| self.feeds[at as usize].doc_id == doc_id);
        found.map(|&at| FeedId(at + 1))
    }

    /// The source of a name, which is made if there is none; and whether it was.
    pub fn take_source(&mut self, name: &str) -> io::Result<(SourceId, bool)> {
        if let Some(source) = self.source_named(name) {
            return Ok((source.id, false));
        }
        let id = SourceId(self.sources.len() as u32 + 1);
        self.put_source(Source { id, name: cut(name, NAME_BYTES_MAX).into() })?;
        Ok((id, true))
    }

    /// Takes in a source that has its number; they come in order.
    pub fn put_source(&mut self, source: Source) -> io::Result<()> {
        let at = self.sources.len();
        if source.id.0 as usize != at + 1 || at >= COUNT_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "sources are not in order"));
        }
        self.sources.push(source);
        let hasher = |&at: &u32| hash(&self.sources[at as usize].name);
        self.by_name.insert_unique(hash(&self.sources[at].name), at as u32, hasher);
        Ok(())
    }

    pub fn next_id(&self) -> FeedId {
        FeedId(self.feeds.len() as u32 + 1)
    }

    /// Takes in a feed that has its number, in place of what it was; new ones come in order.
    pub fn put(&mut self, feed: Feed) -> io::Result<()> {
        let at = feed.id.0 as usize;
        if at == 0 || at > self.feeds.len() + 1 || at > COUNT_MAX || self.source(feed.source).is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "feeds are not in order"));
        }
        if at <= self.feeds.len() {
            self.forget(feed.id);
            self.feeds[at - 1] = feed;
        } else {
            if self.feeds.len() == self.feeds.capacity() {
                // Memory is for feeds, and not for room that they may need one day.
                self.feeds.reserve_exact(self.feeds.len() / 16 + 16);
            }
            self.feeds.push(feed);
        }
        self.know(FeedId(at as u32));
        Ok(())
    }

    /// Changes where a feed is found: by its URL, its document.
    pub fn change(&mut self, feed: FeedId, change: impl FnOnce(&mut Feed)) {
        self.forget(feed);
        if let Some(feed) = self.feed_mut(feed) {
            change(feed);
        }
        self.know(feed);
    }

    pub fn add_alias(&mut self, url: &str, feed: FeedId) {
        if self.aliases.len() < COUNT_MAX {
            self.aliases.insert(url.into(), feed);
        }
    }

    /// URLs that led to one feed lead to another from now on; which they are.
    pub fn retarget(&mut self, from: FeedId, to: FeedId) -> Vec<Box<str>> {
        let moved = self.aliases.iter_mut().filter(|(_, feed)| **feed == from);
        moved.map(|(url, feed)| (*feed = to, url.clone()).1).collect()
    }

    pub fn drop_aliases(&mut self, feed: FeedId) {
        self.aliases.retain(|_, of| *of != feed);
    }

    fn know(&mut self, feed: FeedId) {
        let at = feed.0 - 1;
        let Some(feed) = self.feeds.get(at as usize) else { return };
        // What is gone by becoming one with another is found by an alias.
        if feed.state != FeedState::Removed && feed.merged.0 == 0 {
            let hasher = |&at: &u32| hash(self.feeds[at as usize].url());
            self.by_url.insert_unique(hash(feed.url()), at, hasher);
        }
        if feed.state != FeedState::Removed && feed.doc_id > 0 {
            let hasher = |&at: &u32| doc_hash(self.feeds[at as usize].doc_id);
            self.by_doc.insert_unique(doc_hash(feed.doc_id), at, hasher);
        }
    }

    fn forget(&mut self, feed: FeedId) {
        let at = feed.0.wrapping_sub(1);
        let Some(feed) = self.feeds.get(at as usize) else { return };
        if let Ok(found) = self.by_url.find_entry(hash(feed.url()), |&known| known == at) {
            found.remove();
        }
        if let Ok(found) = self.by_doc.find_entry(doc_hash(feed.doc_id), |&known| known == at) {
            found.remove();
        }
    }

    pub fn ram_bytes(&self) -> usize {
        let spare = (self.feeds.capacity() - self.feeds.len()) * size_of::<Feed>();
        let tables = self.by_url.allocation_size() + self.by_doc.allocation_size();
        let names: usize =
            self.sources.iter().map(|source| size_of::<Source>() + source.name.len() + 16).sum();
        self.feeds.iter().map(Feed::ram_bytes).sum::<usize>() + spare + tables + names
    }
}

fn hash(text: &str) -> u64 {
    fingerprint(text.as_bytes())
}

fn doc_hash(doc_id: u32) -> u64 {
    fingerprint(&doc_id.to_le_bytes())
}
