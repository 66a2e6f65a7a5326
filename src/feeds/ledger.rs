use super::block::{Block, Blocks, HEADER_BYTES, Scan, scan, sealed};
use super::entries::DuplicateBy;
use super::ids::{FeedId, SourceId, StoryId};
use super::week::Week;
use crate::base::{u32_at, u64_at};
use crate::storage::Bytes;
use std::io;

/// Stories and duplicates in the order they were found: the truth of the role. Append-only; entries are gathered into
/// blocks with a checksum each. Between two calls of [`Ledger::write`] what is new is in memory.
pub(super) struct Ledger {
    bytes: Bytes,
    seed: u64,
    /// Bytes that are in the file.
    written: u64,
    /// Whole blocks that are not.
    unwritten: Vec<u8>,
    payload: Vec<u8>,
    first: u32,
    next: u32,
}

/// A story on its way into the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoryEntry<'a> {
    pub source: SourceId,
    pub feed: FeedId,
    pub seen_s: u32,
    pub published_s: Option<u32>,
    pub url: &'a str,
    pub guid: &'a str,
    pub title: &'a str,
    pub language: &'a str,
    /// It is known by its guid, too.
    pub by_guid: bool,
}

/// An entry that is a story already. Its URL is known from here on.
#[derive(Clone, Copy, Debug)]
pub(super) struct DuplicateEntry<'a> {
    pub of: StoryId,
    pub by: DuplicateBy,
    pub source: SourceId,
    pub feed: FeedId,
    pub week: Week,
    pub seen_s: u32,
    pub url: &'a str,
}

/// What the ledger has.
#[derive(Clone, Copy, Debug)]
pub(super) enum LedgerEntry<'a> {
    Story(StoryEntry<'a>),
    Duplicate(DuplicateEntry<'a>),
}

/// The header of the file: magic and version, the seed of the fingerprints, a checksum.
const MAGIC: &[u8; 8] = b"NEPHSTO1";
pub(super) const FILE_HEADER_BYTES: u64 = 24;
/// Entries are added to a block up to this size: a look for one story reads one block.
const BLOCK_BYTES: usize = 8 << 10;
const STORY: u8 = 1;
const DUPLICATE: u8 = 2;
/// Flags of a story.
const HAS_DATE: u8 = 4;
const GUID_IS_URL: u8 = 8;
const BY_GUID: u8 = 16;

impl Ledger {
    /// A ledger that begins.
    pub fn begin(mut bytes: Bytes, seed: u64) -> io::Result<Ledger> {
        bytes.truncate(0)?;
        let mut header = [0; FILE_HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&seed.to_le_bytes());
        let crc = crc32c::crc32c(&header[..16]);
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes.write_at(&header, 0)?;
        Ok(Ledger::at(bytes, seed, FILE_HEADER_BYTES, 1))
    }

    /// One that goes on behind `written` bytes with the entry `next`. What is behind them is cut away.
    pub fn resume(mut bytes: Bytes, seed: u64, written: u64, next: u32) -> io::Result<Ledger> {
        if bytes.len() > written {
            bytes.truncate(written)?;
            bytes.sync()?;
        }
        Ok(Ledger::at(bytes, seed, written, next))
    }

    /// One of which nothing is known but its length: for those who only change the book.
    pub fn apart(written: u64) -> Ledger {
        Ledger::at(Bytes::Memory(Vec::new()), 0, written, 1)
    }

    fn at(bytes: Bytes, seed: u64, written: u64, next: u32) -> Ledger {
        Ledger { bytes, seed, written, unwritten: Vec::new(), payload: Vec::new(), first: next, next }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number that the next entry gets.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// Where the block begins that the next entry goes to.
    pub fn place(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    /// Bytes that are in the file.
    pub fn end(&self) -> u64 {
        self.written
    }

    pub fn add_story(&mut self, story: &StoryEntry<'_>) {
        let is_url = !story.guid.is_empty() && story.guid == story.url;
        let flags = u8::from(story.published_s.is_some()) * HAS_DATE
            + u8::from(is_url) * GUID_IS_URL
            + u8::from(story.by_guid) * BY_GUID;
        let out = &mut self.payload;
        out.push(STORY | flags);
        put_number(out, story.source.0);
        put_number(out, story.feed.0);
        out.extend_from_slice(&story.seen_s.to_le_bytes());
        if let Some(published_s) = story.published_s {
            out.extend_from_slice(&published_s.to_le_bytes());
        }
        put_text(out, story.url);
        put_text(out, if is_url { "" } else { story.guid });
        put_text(out, story.title);
        put_text(out, story.language);
        self.added();
    }

    pub fn add_duplicate(&mut self, duplicate: &DuplicateEntry<'_>) {
        let out = &mut self.payload;
        out.push(DUPLICATE);
        out.push(duplicate.by as u8);
        put_number(out, duplicate.of.0);
        put_number(out, duplicate.source.0);
        put_number(out, duplicate.feed.0);
        out.extend_from_slice(&duplicate.week.0.to_le_bytes());
        out.extend_from_slice(&duplicate.seen_s.to_le_bytes());
        put_text(out, duplicate.url);
        self.added();
    }

    fn added(&mut self) {
        self.next += 1;
        if self.payload.len() >= BLOCK_BYTES {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if self.next > self.first {
            sealed(self.first, self.next - self.first, &self.payload, &mut self.unwritten);
            self.payload.clear();
            self.first = self.next;
        }
    }

    /// Writes what is in memory. If that fails, it is tried again at the same place.
    pub fn write(&mut self, sync: bool) -> io::Result<()> {
        self.seal();
        if !self.unwritten.is_empty() {
            self.bytes.write_at(&self.unwritten, self.written)?;
            self.written += self.unwritten.len() as u64;
            self.unwritten.clear();
            self.unwritten.shrink_to(256 << 10);
        }
        if sync { self.bytes.sync() } else { Ok(()) }
    }

    /// The next block of the file, and its place.
    pub fn next_block(&self, blocks: &mut Blocks) -> io::Result<Option<(u64, Block)>> {
        blocks.next(&self.bytes)
    }

    /// The block at a place of the file, if there is one.
    pub fn block(&self, at: u64) -> io::Result<Option<Block>> {
        Block::read(&self.bytes, at)
    }
}

/// The seed that the header of a file has. `None`: it was never written to its end.
pub(super) fn read_header(bytes: &Bytes) -> io::Result<Option<u64>> {
    let mut header = [0; FILE_HEADER_BYTES as usize];
    if bytes.read_at(&mut header, 0)? < header.len() || header == [0; FILE_HEADER_BYTES as usize] {
        return Ok(None);
    }
    if &header[..8] != MAGIC || u32_at(&header, 16) != crc32c::crc32c(&header[..16]) {
        let text = "it is no ledger of stories, or of another version, or damaged (put a copy back)";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(Some(u64_at(&header, 8)))
}

/// Goes through the blocks of a file from a place on.
pub(super) fn scan_ledger(bytes: &Bytes, from: u64, each: impl FnMut(u64, &Block)) -> io::Result<Scan> {
    scan(bytes, from.max(FILE_HEADER_BYTES), each)
}

/// The entries of a block with their numbers. One that cannot be read ends them: the checksum was right, so that no
/// version of this program has written it.
pub(super) fn entries(block: &Block) -> impl Iterator<Item = (u32, LedgerEntry<'_>)> {
    let mut rest = &block.bytes[HEADER_BYTES..];
    (block.first..block.first.saturating_add(block.count)).map_while(move |number| {
        let entry = take_entry(&mut rest)?;
        Some((number, entry))
    })
}

fn take_entry<'a>(rest: &mut &'a [u8]) -> Option<LedgerEntry<'a>> {
    let tag = take(rest, 1)?[0];
    Some(match tag & 3 {
        STORY => {
            let (source, feed) = (SourceId(take_number(rest)?), FeedId(take_number(rest)?));
            let seen_s = u32_at(take(rest, 4)?, 0);
            let published_s = match tag & HAS_DATE {
                0 => None,
                _ => Some(u32_at(take(rest, 4)?, 0)),
            };
            let [url, guid, title, language] =
                [take_text(rest)?, take_text(rest)?, take_text(rest)?, take_text(rest)?];
            let guid = if tag & GUID_IS_URL == 0 { guid } else { url };
            let by_guid = tag & BY_GUID != 0;
            LedgerEntry::Story(StoryEntry {
                source,
                feed,
                seen_s,
                published_s,
                url,
                guid,
                title,
                language,
                by_guid,
            })
        }
        DUPLICATE => {
            let by = *DuplicateBy::ALL.get(usize::from(take(rest, 1)?[0]))?;
            let of = StoryId(take_number(rest)?);
            let (source, feed) = (SourceId(take_number(rest)?), FeedId(take_number(rest)?));
            let week = take(rest, 2)?;
            let week = Week(u16::from_le_bytes([week[0], week[1]]));
            let seen_s = u32_at(take(rest, 4)?, 0);
            LedgerEntry::Duplicate(DuplicateEntry {
                of,
                by,
                source,
                feed,
                week,
                seen_s,
                url: take_text(rest)?,
            })
        }
        _ => return None,
    })
}

fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = take(rest, 1)?[0];
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let len = take_number(rest)? as usize;
    std::str::from_utf8(take(rest, len)?).ok()
}
