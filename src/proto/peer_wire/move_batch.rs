use super::fields::{Fields, put_value};
use super::{FrameError, PushError, UrlBatch, UrlBatchBuilder, UrlItem, UrlItems};
use crate::base::varint::{put, take, take_bytes};
use crate::limits::{MOVED_LINES_BYTES_MAX, MOVED_ROW_BYTES_MAX, MOVED_ROWS_BYTES_MAX};
use xxhash_rust::xxh3::xxh3_64;

/// Documents that are handed over, under the number of the handover and of the batch in it. All of its items can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MoveBatch<'a> {
    pub id: u64,
    /// Lines about hosts; their times are told from now on.
    pub lines: &'a str,
    rows: &'a [u8],
    urls: UrlBatch<'a>,
}

/// One of them. Its row is coded as the index of the sender does it; empty if nothing became of it yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveItem<'a> {
    pub url: UrlItem<'a>,
    pub row: &'a [u8],
}

/// What a node has on its disk of a handover: everything up to a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub id: u64,
    pub batch: u64,
    /// Documents that came with these batches, and all their prints in one: see [`print_of`].
    pub count: u64,
    pub prints: u64,
}

/// A document, for the sum of all that were handed over.
pub fn print_of(url: &str, row: &[u8]) -> u64 {
    xxh3_64(url.as_bytes()) ^ xxh3_64(row).rotate_left(1)
}

impl<'a> MoveBatch<'a> {
    /// The number of the batch in its handover.
    pub fn batch(&self) -> u64 {
        self.urls.batch
    }

    /// The same with other lines, of which those are left out that are too many.
    pub fn with_lines<'b>(&'b self, lines: &'b str) -> MoveBatch<'b> {
        let end = match lines.len() <= MOVED_LINES_BYTES_MAX {
            true => lines.len(),
            false => lines.as_bytes()[..MOVED_LINES_BYTES_MAX]
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |at| at + 1),
        };
        MoveBatch { lines: &lines[..end], ..*self }
    }

    /// The digest of it, but for its lines: their times are other ones where they are kept.
    pub fn print(&self) -> u64 {
        let mut bytes = Vec::new();
        self.with_lines("").write(&mut bytes);
        xxh3_64(&bytes)
    }

    /// How many items it has.
    pub fn count(&self) -> usize {
        self.urls.count()
    }

    pub fn items(&self) -> MoveItems<'a> {
        MoveItems { urls: self.urls.items(), rows: self.rows }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_le_bytes());
        put_value(out, self.lines.as_bytes(), MOVED_LINES_BYTES_MAX);
        put_value(out, self.rows, MOVED_ROWS_BYTES_MAX);
        self.urls.write(out);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<MoveBatch<'a>, FrameError> {
        let (id, lines) = (fields.u64()?, fields.value(MOVED_LINES_BYTES_MAX)?);
        let Ok(lines) = str::from_utf8(lines) else {
            return fields.unreadable("with lines that are not UTF-8");
        };
        let rows = fields.value(MOVED_ROWS_BYTES_MAX)?;
        let urls = UrlBatch::read(fields)?;
        let mut rest = rows;
        let is_whole = (0..urls.count()).all(|_| take_row(&mut rest).is_some()) && rest.is_empty();
        match is_whole {
            true => Ok(MoveBatch { id, lines, rows, urls }),
            false => fields.unreadable("with rows that are not those of its URLs"),
        }
    }
}

impl std::fmt::Debug for MoveBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, lines, rows) = (self.id, self.lines.len(), self.rows.len());
        write!(f, "MoveBatch of {id}, {:?}, {rows} bytes of rows, {lines} of lines", self.urls)
    }
}

/// Goes through the items of a batch. An item is borrowed until the next is asked for.
pub struct MoveItems<'a> {
    urls: UrlItems<'a>,
    rows: &'a [u8],
}

impl<'a> MoveItems<'a> {
    /// The next item, or `None` behind the last.
    pub fn next(&mut self) -> Option<MoveItem<'_>> {
        let row = take_row(&mut self.rows).unwrap_or_default();
        Some(MoveItem { url: self.urls.next()?, row })
    }
}

fn take_row<'a>(rows: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = take(rows).filter(|bytes| *bytes <= MOVED_ROW_BYTES_MAX as u64)?;
    take_bytes(rows, bytes as usize)
}

impl Moved {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        for number in [self.id, self.batch, self.count, self.prints] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Moved, FrameError> {
        let (id, batch) = (fields.u64()?, fields.u64()?);
        Ok(Moved { id, batch, count: fields.u64()?, prints: fields.u64()? })
    }
}

/// Takes items until a batch is full.
#[derive(Default)]
pub struct MoveBuilder {
    urls: UrlBatchBuilder,
    rows: Vec<u8>,
}

impl MoveBuilder {
    /// Takes an item, or says why it does not; the batch is then as it was.
    pub fn push(&mut self, item: &MoveItem<'_>) -> Result<(), PushError> {
        let row = item.row;
        // A length has three bytes at the most.
        if row.len() > MOVED_ROW_BYTES_MAX {
            return Err(PushError::Fault("with a row over its bound"));
        }
        if self.rows.len() + 3 + row.len() > MOVED_ROWS_BYTES_MAX {
            return Err(PushError::Room);
        }
        self.urls.push(&item.url)?;
        put(&mut self.rows, row.len() as u64);
        self.rows.extend_from_slice(row);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// What was put in, with lines about hosts.
    pub fn batch<'a>(&'a self, id: u64, batch: u64, lines: &'a str) -> MoveBatch<'a> {
        MoveBatch { id, lines, rows: &self.rows, urls: self.urls.batch(batch) }
    }

    /// Makes it empty, for the next batch.
    pub fn clear(&mut self) {
        self.urls.clear();
        self.rows.clear();
    }
}

const _: () = assert!(MOVED_ROW_BYTES_MAX < 1 << 21, "a length has three bytes");
const _: () = assert!(MOVED_ROW_BYTES_MAX + 3 <= MOVED_ROWS_BYTES_MAX, "an empty batch takes any row");
