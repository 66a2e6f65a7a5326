use super::book::{Book, Source};
use super::feed::{Feed, FeedState};
use super::ids::{FeedId, SourceId};
use super::polls::Polls;
use crate::proto::feed::FeedFormat;
use crate::storage::{Bytes, JournalLines, NewFile, put_line};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Sources and feeds on disk: a line that says what it is, then one record a line, as `crc32c JSON`. What is changed is
/// appended; it is written anew when more than half of it is old.
pub(super) struct Journal {
    path: PathBuf,
    bytes: Bytes,
    end: u64,
    records: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Source(Source),
    Feed(Box<FeedRecord>),
    /// What came of polls.
    Poll(FeedId, Box<Polls>),
    /// A URL that a feed has moved from.
    Alias {
        url: Box<str>,
        feed: FeedId,
    },
    /// The ledger had this many bytes when what follows was written: with fewer, stories of it are lost.
    Ledger(u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FeedRecord {
    id: FeedId,
    source: SourceId,
    url: Box<str>,
    title: Box<str>,
    #[serde(default)]
    language: Box<str>,
    #[serde(default)]
    hub: Box<str>,
    state: FeedState,
    format: Option<FeedFormat>,
    doc_id: u32,
    added_s: u32,
    #[serde(default)]
    merged: FeedId,
    #[serde(default)]
    named_by: FeedId,
    polls: Polls,
}

/// What a journal said.
pub(super) struct JournalRead {
    pub book: Book,
    pub end: u64,
    pub torn_bytes: u64,
    records: u64,
    /// Feeds whose last listing the ledger lacks stories of.
    pub again: Vec<FeedId>,
}

const HEAD: &[u8] = b"nephila feeds journal 1\n";
/// Old records that are always borne with.
const OLD_RECORDS_MIN: u64 = 1_024;

impl FeedRecord {
    pub fn of(feed: &Feed) -> FeedRecord {
        FeedRecord {
            id: feed.id,
            source: feed.source,
            url: feed.url().into(),
            title: feed.title().into(),
            language: feed.language().into(),
            hub: feed.hub().into(),
            state: feed.state,
            format: feed.format,
            doc_id: feed.doc_id,
            added_s: feed.added_s,
            merged: feed.merged,
            named_by: feed.named_by,
            polls: feed.polls,
        }
    }

    pub fn id(&self) -> FeedId {
        self.id
    }

    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    fn feed(&self) -> Feed {
        let mut feed = Feed::new(self.id, self.source, &self.url, &self.title, self.added_s);
        feed.set_texts([None, None, Some(&self.language), Some(&self.hub)]);
        (feed.state, feed.format, feed.doc_id) = (self.state, self.format, self.doc_id);
        (feed.merged, feed.named_by, feed.polls) = (self.merged, self.named_by, self.polls);
        feed
    }
}

impl Record {
    pub fn of(feed: &Feed) -> Record {
        Record::Feed(Box::new(FeedRecord::of(feed)))
    }
}

impl Journal {
    /// Opens a journal, or begins one. `ledger_end` is how much of the ledger there is.
    pub fn open(path: &Path, ledger_end: u64) -> io::Result<(Journal, JournalRead)> {
        let read = match read(path, ledger_end)? {
            Some(read) => read,
            None => {
                let new = NewFile::create_secret(path)?;
                new.file().write_all(HEAD)?;
                new.commit()?;
                JournalRead {
                    book: Book::default(),
                    end: HEAD.len() as u64,
                    torn_bytes: 0,
                    records: 0,
                    again: Vec::new(),
                }
            }
        };
        let mut bytes = Bytes::open_secret(path)?;
        if bytes.len() > read.end {
            bytes.truncate(read.end)?;
            bytes.sync()?;
        }
        Ok((Journal { path: path.to_path_buf(), bytes, end: read.end, records: read.records }, read))
    }

    /// Adds records. If that fails, they are added again at the same place.
    pub fn append<'a>(&mut self, records: impl Iterator<Item = &'a Record>, sync: bool) -> io::Result<()> {
        let (mut lines, mut count) = (Vec::new(), 0);
        for record in records {
            put_line(record, &mut lines)?;
            count += 1;
        }
        if !lines.is_empty() {
            self.bytes.write_at(&lines, self.end)?;
            self.end += lines.len() as u64;
            self.records += count;
        }
        if sync { self.bytes.sync() } else { Ok(()) }
    }

    /// Writes it anew if more than half of it is old.
    pub fn compact(&mut self, book: &Book, ledger_end: u64) -> io::Result<bool> {
        let live = (book.all().len() + book.sources().len() + book.aliases().count()) as u64;
        if self.records < 2 * live + OLD_RECORDS_MIN {
            return Ok(false);
        }
        let new = NewFile::create_secret(&self.path)?;
        let mut out = io::BufWriter::with_capacity(1 << 20, new.file());
        out.write_all(HEAD)?;
        let (mut line, mut count) = (Vec::new(), 0);
        let sources = book.sources().iter().map(|source| Record::Source(source.clone()));
        let feeds = book.all().iter().map(Record::of);
        let aliases = book.aliases().map(|(url, feed)| Record::Alias { url: url.into(), feed });
        for record in sources.chain([Record::Ledger(ledger_end)]).chain(feeds).chain(aliases) {
            line.clear();
            put_line(&record, &mut line)?;
            out.write_all(&line)?;
            count += 1;
        }
        out.flush()?;
        drop(out);
        new.commit()?;
        self.bytes = Bytes::open_secret(&self.path)?;
        (self.end, self.records) = (self.bytes.len(), count);
        Ok(true)
    }
}

/// Reads a journal, and changes nothing; `None` if there is none.
pub(super) fn read(path: &Path, ledger_end: u64) -> io::Result<Option<JournalRead>> {
    let bytes = match std::fs::read(path) {
        // Whoever needs the directory says what is wrong with it.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        bytes => bytes.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?,
    };
    parse(&bytes, ledger_end, |_| {}).map(Some).map_err(|what| {
        let text = format!("{}: {what} (put a copy back)", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// What a journal says, up to a torn end; every record is told as it is.
pub(super) fn parse(
    bytes: &[u8],
    ledger_end: u64,
    mut each: impl FnMut(&Record),
) -> Result<JournalRead, String> {
    let Some(rest) = bytes.strip_prefix(HEAD) else {
        return Err("it is not a journal of feeds, or of another version".to_string());
    };
    let mut read =
        JournalRead { book: Book::default(), end: 0, torn_bytes: 0, records: 0, again: Vec::new() };
    let mut is_ahead = false;
    let mut lines = JournalLines::new(rest);
    while let Some(record) = lines.next()? {
        each(&record);
        let touched = apply(&mut read.book, &record, &mut is_ahead, ledger_end)
            .map_err(|e| format!("line {} does not follow those before: {e}", lines.line().0))?;
        if let Some(feed) = touched.filter(|_| is_ahead) {
            read.again.push(feed);
        }
        read.records += 1;
    }
    read.again.sort_unstable();
    read.again.dedup();
    (read.torn_bytes, read.end) = (lines.rest_bytes(), bytes.len() as u64 - lines.rest_bytes());
    Ok(read)
}

fn apply(
    book: &mut Book,
    record: &Record,
    is_ahead: &mut bool,
    ledger_end: u64,
) -> io::Result<Option<FeedId>> {
    match record {
        Record::Source(source) => book.put_source(source.clone())?,
        Record::Feed(feed) => {
            book.put(feed.feed())?;
            if feed.state == FeedState::Removed {
                book.drop_aliases(feed.id);
            }
            return Ok(Some(feed.id));
        }
        Record::Poll(id, polls) => {
            let feed = book.feed_mut(*id).ok_or_else(|| io::Error::other("a feed that there is none of"))?;
            feed.polls = **polls;
            return Ok(Some(*id));
        }
        Record::Alias { url, feed } => book.add_alias(url, *feed),
        Record::Ledger(bytes) => *is_ahead = *bytes > ledger_end,
    }
    Ok(None)
}
