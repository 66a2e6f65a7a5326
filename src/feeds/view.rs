//! Feeds and stories for other processes and threads, as they are on disk. Nothing is changed.

use super::block::{Block, Blocks};
use super::book::{Book, Source};
use super::entries::DuplicateBy;
use super::feed::{Feed, FeedState};
use super::ids::{FeedId, SourceId, StoryId};
use super::journal::{self, Record};
use super::ledger::{DuplicateEntry, FILE_HEADER_BYTES, LedgerEntry, StoryEntry, entries, read_header};
use super::open::{Files, print_seed};
use super::polls::Polls;
use super::prints::{KINDS, PrintKind, print_of};
use super::rows::Rows;
use super::rules::StoryScope;
use super::story::{DateFrom, Story};
use super::week::Week;
use crate::storage::Bytes;
use crate::storage::seen::SeenReader;
use std::io;
use std::path::Path;

/// The book of a data directory.
pub struct FeedsView {
    book: Book,
    bytes: Vec<u8>,
}

impl FeedsView {
    /// `None` if there is no book in a directory.
    pub fn open(dir: &Path) -> io::Result<Option<FeedsView>> {
        let path = Files::of(dir).journal();
        let bytes = match std::fs::read(&path) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            bytes => bytes?,
        };
        let read = journal::parse(&bytes, u64::MAX, |_| {}).map_err(|what| {
            let text = format!("{}: {what} (put a copy back)", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        Ok(Some(FeedsView { book: read.book, bytes }))
    }

    /// Those that were not removed, by number.
    pub fn feeds(&self) -> impl Iterator<Item = &Feed> {
        self.book.feeds()
    }

    pub fn feed(&self, feed: FeedId) -> Option<&Feed> {
        self.book.feed(feed).filter(|feed| feed.state() != FeedState::Removed)
    }

    pub fn by_url(&self, url: &str) -> Option<FeedId> {
        self.book.by_url(url)
    }

    pub fn sources(&self) -> &[Source] {
        self.book.sources()
    }

    pub fn source(&self, source: SourceId) -> Option<&Source> {
        self.book.source(source)
    }

    pub fn source_named(&self, name: &str) -> Option<&Source> {
        self.book.source_named(name)
    }

    /// URLs that a feed has moved from.
    pub fn moved_from(&self, feed: FeedId) -> impl Iterator<Item = &str> {
        self.book.aliases().filter(move |(_, of)| *of == feed).map(|(url, _)| url)
    }

    /// The last polls of a feed, as far as the journal remembers them; the oldest first.
    pub fn last_polls(&self, feed: FeedId, count_max: usize) -> Vec<Polls> {
        let mut found: Vec<Polls> = Vec::new();
        let _ = journal::parse(&self.bytes, u64::MAX, |record| {
            let polls = match record {
                Record::Poll(id, polls) if *id == feed => **polls,
                Record::Feed(record) if record.id() == feed => *record.polls(),
                _ => return,
            };
            if polls.polls > 0 && found.last().is_none_or(|last| last.polls != polls.polls) {
                found.push(polls);
            }
        });
        found.drain(..found.len().saturating_sub(count_max));
        found
    }
}

/// The stories of a data directory.
pub struct StoriesView {
    bytes: Bytes,
    rows: Rows,
    /// What they are known by, with its seed and scope.
    seen: Option<(SeenReader, u64, StoryScope)>,
}

/// What a URL of a listing was taken for.
#[derive(Clone, Debug)]
pub enum Known {
    Story(Story),
    Duplicate { of: StoryId, by: DuplicateBy, week: Week, source: SourceId, feed: FeedId, seen_s: u32 },
}

impl StoriesView {
    /// `None` if there are none in a directory.
    pub fn open(dir: &Path) -> io::Result<Option<StoriesView>> {
        let files = Files::of(dir);
        let bytes = Bytes::read_only(&files.ledger())?;
        let path = files.ledger();
        let header = read_header(&bytes);
        let header = header.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        let Some(seed) = header else { return Ok(None) };
        let rows = Rows::new(Bytes::read_only(&files.rows())?);
        let mut seen = None;
        for &scope in StoryScope::ALL {
            let seed = print_seed(seed, scope);
            if let Ok(reader) = SeenReader::open(&files.seen(), seed)
                && reader.covered() > 0
            {
                seen = Some((reader, seed, scope));
            }
        }
        Ok(Some(StoriesView { bytes, rows, seen }))
    }

    pub fn story(&self, story: StoryId) -> io::Result<Option<Story>> {
        Ok(match self.entry(story.0)? {
            Some(Known::Story(story)) => Some(story),
            _ => None,
        })
    }

    /// All from this one on, by number; of those that were found while it is looked at, as many as there were.
    pub fn since(&self, story: StoryId) -> io::Result<StoriesSince<'_>> {
        let from = self.place(story.0)?.unwrap_or(FILE_HEADER_BYTES);
        Ok(StoriesSince {
            view: self,
            blocks: Blocks::from(from),
            gathered: Vec::new().into_iter(),
            first: story.0,
        })
    }

    /// Where the block of an entry begins.
    fn place(&self, number: u32) -> io::Result<Option<u64>> {
        let Some(row) = self.rows.get(number)? else { return Ok(None) };
        let block = Block::read(&self.bytes, row.at)?;
        Ok(block.filter(|block| has(block, number)).map(|_| row.at))
    }

    fn entry(&self, number: u32) -> io::Result<Option<Known>> {
        // Without its row, the ledger is gone through.
        let mut blocks = Blocks::from(self.place(number)?.unwrap_or(FILE_HEADER_BYTES));
        while let Some((_, block)) = blocks.next(&self.bytes)? {
            if has(&block, number) {
                let found = entries(&block).find(|(found, _)| *found == number);
                return found.map(|(number, entry)| self.known(number, &entry)).transpose();
            }
        }
        Ok(None)
    }

    fn known(&self, number: u32, entry: &LedgerEntry<'_>) -> io::Result<Known> {
        Ok(match entry {
            LedgerEntry::Story(story) => Known::Story(self.made(number, story)?),
            LedgerEntry::Duplicate(DuplicateEntry { of, by, source, feed, week, seen_s, .. }) => {
                Known::Duplicate {
                    of: *of,
                    by: *by,
                    week: *week,
                    source: *source,
                    feed: *feed,
                    seen_s: *seen_s,
                }
            }
        })
    }

    fn made(&self, number: u32, story: &StoryEntry<'_>) -> io::Result<Story> {
        let row = self.rows.get(number)?.unwrap_or_default();
        Ok(Story {
            id: StoryId(number),
            source: story.source,
            feed: story.feed,
            doc_id: Some(row.doc_id).filter(|&doc_id| doc_id > 0),
            url: story.url.into(),
            guid: story.guid.into(),
            is_known_by_guid: story.by_guid,
            title: story.title.into(),
            published_s: story.published_s.unwrap_or(story.seen_s),
            provenance: if story.published_s.is_some() { DateFrom::Feed } else { DateFrom::Seen },
            seen_s: story.seen_s,
            language: story.language.into(),
            state: row.state.story(),
        })
    }

    /// What a URL, in normal form, was taken for in each source that has listed it.
    pub fn by_url(&self, url: &str, sources: &[Source]) -> io::Result<Vec<Known>> {
        let mut numbers = Vec::new();
        let mut covered = 0;
        if let Some((seen, seed, scope)) = &self.seen {
            // The last entry may have prints that are in no run yet.
            covered = (seen.covered() / KINDS).saturating_sub(1);
            let mut scratch = Vec::new();
            let ids: Vec<SourceId> = match scope {
                StoryScope::Source => sources.iter().map(|source| source.id).collect(),
                StoryScope::All => vec![SourceId(0)],
            };
            for source in ids {
                let print = print_of(*seed, PrintKind::Url, source, 0, url, &mut scratch);
                numbers.extend(seen.find(print)?.map(|number| number / KINDS));
            }
        }
        numbers.sort_unstable();
        let mut found = Vec::new();
        for number in &numbers {
            found.extend(self.entry(*number)?);
        }
        let from = self.place(covered.max(1))?.unwrap_or(FILE_HEADER_BYTES);
        let mut blocks = Blocks::from(from);
        while let Some((_, block)) = blocks.next(&self.bytes)? {
            for (number, entry) in entries(&block) {
                let is_it = match &entry {
                    LedgerEntry::Story(story) => story.url == url,
                    LedgerEntry::Duplicate(duplicate) => duplicate.url == url,
                };
                if is_it && !numbers.contains(&number) {
                    found.push(self.known(number, &entry)?);
                }
            }
        }
        Ok(found)
    }
}

fn has(block: &Block, number: u32) -> bool {
    (block.first..block.first.saturating_add(block.count)).contains(&number)
}

/// Stories one by one.
pub struct StoriesSince<'a> {
    view: &'a StoriesView,
    blocks: Blocks,
    gathered: std::vec::IntoIter<Story>,
    first: u32,
}

impl Iterator for StoriesSince<'_> {
    type Item = io::Result<Story>;

    fn next(&mut self) -> Option<io::Result<Story>> {
        loop {
            if let Some(story) = self.gathered.next() {
                return Some(Ok(story));
            }
            let block = match self.blocks.next(&self.view.bytes) {
                Ok(Some((_, block))) => block,
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            };
            let mut gathered = Vec::new();
            for (number, entry) in entries(&block).filter(|(number, _)| *number >= self.first) {
                if let LedgerEntry::Story(story) = entry {
                    match self.view.made(number, &story) {
                        Ok(story) => gathered.push(story),
                        Err(e) => return Some(Err(e)),
                    }
                }
            }
            self.gathered = gathered.into_iter();
        }
    }
}
