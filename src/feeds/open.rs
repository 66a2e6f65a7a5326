//! How the role is opened on a directory, after whatever end the last process came to; and how it is flushed.

use super::block::{Block, Blocks};
use super::entries::is_known_by_guid;
use super::ids::{SourceId, StoryId};
use super::journal::{Journal, Record};
use super::ledger::{FILE_HEADER_BYTES, Ledger, LedgerEntry, entries, read_header, scan_ledger};
use super::prints::{PrintKind, Prints};
use super::role::Feeds;
use super::rows::{Row, RowState, Rows};
use super::rules::{FeedRules, StoryScope};
use super::told::Told;
use super::week::Week;
use crate::base::random_u64;
use crate::proto::feed::title::normal;
use crate::storage::{Bytes, make_directory};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where things are below a data directory.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub data: PathBuf,
}

impl Files {
    pub fn journal(&self) -> PathBuf {
        self.data.join("feeds/journal")
    }

    pub fn of(data: &Path) -> Files {
        Files { data: data.to_path_buf() }
    }

    pub fn ledger(&self) -> PathBuf {
        self.data.join("stories/ledger")
    }

    pub fn rows(&self) -> PathBuf {
        self.data.join("stories/rows")
    }

    pub fn seen(&self) -> PathBuf {
        self.data.join("stories/seen")
    }
}

/// The seed of prints: with another scope, stories are known by other ones.
pub(super) fn print_seed(seed: u64, scope: StoryScope) -> u64 {
    match scope {
        StoryScope::Source => seed,
        StoryScope::All => !seed,
    }
}

impl Feeds {
    /// Opens feeds and stories of a data directory, or begins them, and says what was wrong with them.
    pub fn open(dir: &Path, rules: FeedRules) -> io::Result<(Feeds, Vec<Told>)> {
        let files = Files::of(dir);
        make_directory(&dir.join("feeds"))?;
        make_directory(&dir.join("stories"))?;
        let mut told = Vec::new();
        let path = files.ledger();
        let bytes = Bytes::open_secret(&path).map_err(about(&path))?;
        let seed = match read_header(&bytes).map_err(about(&path))? {
            Some(seed) => seed,
            None => {
                remove_all(&files.seen())?;
                remove(&files.rows())?;
                let ledger = Ledger::begin(Bytes::open_secret(&path)?, random_u64())?;
                crate::storage::sync_parent(&path)?;
                ledger.seed()
            }
        };
        let bytes = Bytes::open_secret(&path).map_err(about(&path))?;
        let path_rows = files.rows();
        let mut rows = Bytes::open_secret(&path_rows).and_then(Rows::open).map_err(about(&path_rows))?;
        let open_prints = || Prints::open(&files.seen(), print_seed(seed, rules.scope), rules.memory_bytes);
        let mut prints = open_prints()?;
        let mut is_rebuilt = prints.removed() > 0;
        let mut scanned = scan_tail(&bytes, &rows, prints.covered())?;
        if prints.known() > scanned.last {
            // The runs know of stories that the ledger has lost: it would take them for old.
            drop(prints);
            remove_all(&files.seen())?;
            prints = open_prints()?;
            scanned = scan_tail(&bytes, &rows, 0)?;
            is_rebuilt = true;
        }
        if is_rebuilt && scanned.last > 0 {
            told.push(Told::PrintsRebuilt);
        }
        if scanned.torn_bytes > 0 {
            told.push(Told::LedgerTorn { bytes: scanned.torn_bytes });
        }
        for (at, bytes) in &scanned.damaged {
            told.push(Told::LedgerDamaged { file: path.clone(), at: *at, bytes: *bytes });
        }
        let (journal, read) = Journal::open(&files.journal(), scanned.end)?;
        if read.torn_bytes > 0 {
            told.push(Told::JournalTorn { bytes: read.torn_bytes });
        }
        rows.cut(scanned.last)?;
        let ledger = Ledger::resume(bytes, seed, scanned.end, scanned.last + 1)?;
        let mut feeds = Feeds::of_parts(rules, read.book, prints, ledger, rows, Some(journal));
        feeds.take_up(scanned.from)?;
        if !read.again.is_empty() {
            told.push(Told::ReadAgain { feeds: read.again.len() as u64 });
            read.again.iter().for_each(|feed| feeds.read_again(*feed));
        }
        Ok((feeds, told))
    }

    /// The book alone, to be changed while no crawl runs: stories stay as they are. `None` if there is none, and none is
    /// to be made.
    pub fn open_book(dir: &Path, make: bool) -> io::Result<Option<Feeds>> {
        let files = Files::of(dir);
        if !make && !files.journal().exists() {
            return Ok(None);
        }
        make_directory(&dir.join("feeds"))?;
        let ledger = Ledger::apart(Bytes::read_only(&files.ledger())?.len());
        let (journal, read) = Journal::open(&files.journal(), ledger.end())?;
        let rows = Rows::new(Bytes::Memory(Vec::new()));
        let (rules, prints) = (FeedRules::default(), Prints::in_memory(0));
        let mut feeds = Feeds::of_parts(rules, read.book, prints, ledger, rows, Some(journal));
        feeds.is_book_alone = true;
        Ok(Some(feeds))
    }

    /// Takes up what the runs do not cover, from a block of the ledger on, and the stories that wait for their download. One
    /// block is in memory at a time, however much of the ledger is to be read.
    fn take_up(&mut self, from: u64) -> io::Result<()> {
        let (covered, mut last) = (self.prints.covered(), 0);
        let mut blocks = Blocks::from(from);
        let mut untold = 0;
        while let Some((place, block)) = self.ledger.next_block(&mut blocks)? {
            for (number, entry) in entries(&block) {
                if number <= covered.max(last) {
                    continue;
                }
                if self.rows.get(number)?.is_none() {
                    let state = match entry {
                        LedgerEntry::Duplicate(_) => RowState::Duplicate,
                        LedgerEntry::Story(_) => RowState::Pending,
                    };
                    self.rows.set(number, Row { at: place, state, ..Row::default() });
                }
                self.know_again(number, &entry)?;
                untold += 1;
            }
            last = last.max(block.first.saturating_add(block.count).saturating_sub(1));
            if untold >= TAKEN_UP_AT_ONCE {
                untold = 0;
                self.prints.settle()?;
                self.rows.write(false)?;
            }
        }
        self.prints.settle()?;
        let mut waiting = Vec::new();
        self.rows.each(|number, row| {
            if matches!(row.state, RowState::Pending | RowState::Failed) && row.doc_id > 0 {
                waiting.push((row.doc_id, StoryId(number)));
            }
        })?;
        for (doc_id, story) in waiting {
            self.wait_for(doc_id, story);
        }
        Ok(())
    }

    fn know_again(&mut self, number: u32, entry: &LedgerEntry<'_>) -> io::Result<()> {
        let scoped = |source: SourceId| match self.rules.scope {
            StoryScope::Source => source,
            StoryScope::All => SourceId(0),
        };
        let (of, url) = match entry {
            LedgerEntry::Duplicate(duplicate) => (duplicate.source, duplicate.url),
            LedgerEntry::Story(story) => (story.source, story.url),
        };
        let source = scoped(of);
        let mut found =
            [Some((PrintKind::Url, self.prints.of_text(PrintKind::Url, source, url))), None, None];
        if let LedgerEntry::Story(story) = entry {
            if is_known_by_guid(story) {
                found[1] = Some((PrintKind::Guid, self.prints.of_text(PrintKind::Guid, source, story.guid)));
            }
            let name = self.book.source(of).map_or("", |source| &source.name);
            let normal = normal(story.title, name);
            if !normal.is_empty() {
                let week = Week::of(story.published_s.unwrap_or(story.seen_s));
                found[2] = Some((PrintKind::Title, self.prints.of_title(source, week, &normal)));
            }
        }
        for (kind, print) in found.into_iter().flatten() {
            if self.prints.find(print)?.is_none() {
                self.prints.insert(print, kind, number);
            }
        }
        Ok(())
    }

    /// Stories whose page is not fetched yet, with their document if one is known: told after an opening, so that the
    /// doc index has a download for each. Reads the disk for every one.
    pub fn pending(&self, mut each: impl FnMut(StoryId, &str, Option<u32>)) -> io::Result<()> {
        let mut block = None;
        for number in 1..=self.last_number() {
            let row = self.rows.get(number)?.unwrap_or_default();
            if row.state != RowState::Pending {
                continue;
            }
            if block.as_ref().is_none_or(|(at, _)| *at != row.at) {
                block = self.ledger.block(row.at)?.map(|found| (row.at, found));
            }
            let Some((_, block)) = &block else { continue };
            let found = entries(block).find(|(found, _)| *found == number);
            if let Some((_, LedgerEntry::Story(story))) = found {
                each(StoryId(number), story.url, Some(row.doc_id).filter(|&doc_id| doc_id > 0));
            }
        }
        Ok(())
    }

    /// Writes what is new: what stories refer to, then stories, then what came of polls. With `sync` it is durable.
    pub fn flush(&mut self, sync: bool) -> io::Result<()> {
        if let Some(journal) = &mut self.journal
            && !self.records.is_empty()
        {
            journal.append(self.records.iter(), sync)?;
        }
        self.records.clear();
        self.ledger.write(sync)?;
        self.rows.write(sync)?;
        self.prints.settle()?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let mut records = Vec::new();
        for feed in &self.changed {
            records.extend(self.book.feed(*feed).map(Record::of));
        }
        for feed in self.polled.difference(&self.changed) {
            records.extend(self.book.feed(*feed).map(|known| Record::Poll(*feed, Box::new(known.polls))));
        }
        if !records.is_empty() {
            records.insert(0, Record::Ledger(self.ledger.end()));
            journal.append(records.iter(), sync)?;
        }
        self.changed.clear();
        self.polled.clear();
        match self.is_book_alone {
            true => Ok(()),
            false => journal.compact(&self.book, self.ledger.end()).map(drop),
        }
    }

    /// Flushes, and leaves nothing to be made again by the next opening.
    pub fn close(&mut self) -> io::Result<()> {
        self.flush(true)?;
        self.prints.close()
    }
}

/// Entries after which an opening hands what it took up to the set and the rows.
const TAKEN_UP_AT_ONCE: u32 = 16 << 10;

/// The end of a ledger.
struct Tail {
    /// Where it was read from.
    from: u64,
    /// The number of the last entry.
    last: u32,
    end: u64,
    torn_bytes: u64,
    damaged: Vec<(u64, u64)>,
}

/// Reads a ledger from the block of the entry `covered` on, or all of it, and keeps nothing of its entries.
fn scan_tail(bytes: &Bytes, rows: &Rows, covered: u32) -> io::Result<Tail> {
    let mut from = FILE_HEADER_BYTES;
    if covered > 0
        && let Some(row) = rows.get(covered)?
        && let Some(block) = Block::read(bytes, row.at)?
        && (block.first..block.first.saturating_add(block.count)).contains(&covered)
    {
        from = row.at;
    }
    let mut last = 0;
    let scan = scan_ledger(bytes, from, |_, block| {
        last = last.max(block.first.saturating_add(block.count).saturating_sub(1));
    })?;
    Ok(Tail { from, last, end: scan.end, torn_bytes: scan.torn_bytes, damaged: scan.damaged })
}

fn about(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |e| io::Error::new(e.kind(), format!("{}: {e}{}", path.display(), crate::storage::mend(&e)))
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
