use super::story::StoryState;
use crate::base::{u32_at, u64_at};
use crate::proto::record::ResultCode;
use crate::storage::Bytes;
use std::collections::BTreeMap;
use std::io;

/// Where the ledger has an entry, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Where its block begins; 0: not known.
    pub at: u64,
    /// The document of its download; 0: none yet.
    pub doc_id: u32,
    /// When its state was noted.
    pub at_s: u32,
    pub state: RowState,
    /// Of its download.
    pub result: Option<ResultCode>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RowState {
    #[default]
    Pending = 1,
    Fetched = 2,
    Failed = 3,
    /// It is a duplicate, and has no download.
    Duplicate = 4,
}

impl RowState {
    pub fn story(self) -> StoryState {
        match self {
            RowState::Pending | RowState::Duplicate => StoryState::Pending,
            RowState::Fetched => StoryState::Fetched,
            RowState::Failed => StoryState::Failed,
        }
    }
}

/// Rows of entries by their numbers, in a file of 24 bytes each. A row that is damaged says that nothing is known: its
/// download is made again, and found to be there.
pub(super) struct Rows {
    bytes: Bytes,
    /// Not written yet.
    dirty: BTreeMap<u32, Row>,
}

const ROW_BYTES: usize = 24;
/// The place of row 0, which there is none of.
const MAGIC: &[u8; 8] = b"NEPHSTR1";

impl Rows {
    pub fn new(bytes: Bytes) -> Rows {
        Rows { bytes, dirty: BTreeMap::new() }
    }

    /// Begins the file if there is none; refuses one that is none of ours.
    pub fn open(mut bytes: Bytes) -> io::Result<Rows> {
        let mut header = [0; ROW_BYTES];
        match bytes.read_at(&mut header, 0)? {
            ROW_BYTES if header[..8] == *MAGIC => {}
            // Never written to its end.
            read if read < ROW_BYTES || header == [0; ROW_BYTES] => {
                header = [0; ROW_BYTES];
                header[..8].copy_from_slice(MAGIC);
                bytes.write_at(&header, 0)?;
            }
            _ => {
                let text = "it has no rows of stories, or of another version (remove it: it is made again)";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        Ok(Rows::new(bytes))
    }

    pub fn get(&self, number: u32) -> io::Result<Option<Row>> {
        if let Some(row) = self.dirty.get(&number) {
            return Ok(Some(*row));
        }
        let mut bytes = [0; ROW_BYTES];
        let read = self.bytes.read_at(&mut bytes, place(number))?;
        Ok((read == ROW_BYTES).then(|| row_of(number, &bytes)).flatten())
    }

    pub fn set(&mut self, number: u32, row: Row) {
        self.dirty.insert(number, row);
    }

    /// All rows of the file, with their numbers. Bad ones are left out.
    pub fn each(&self, mut each: impl FnMut(u32, Row)) -> io::Result<()> {
        let (mut number, mut chunk) = (1, vec![0; ROW_BYTES << 12]);
        loop {
            let read = self.bytes.read_at(&mut chunk, place(number))?;
            for bytes in chunk[..read].chunks_exact(ROW_BYTES) {
                if let Some(row) = row_of(number, bytes) {
                    each(number, row);
                }
                number += 1;
            }
            if read < chunk.len() {
                return Ok(());
            }
        }
    }

    /// Cuts away what is behind the row of `last`.
    pub fn cut(&mut self, last: u32) -> io::Result<()> {
        match self.bytes.len() > place(last + 1) {
            true => self.bytes.truncate(place(last + 1)),
            false => Ok(()),
        }
    }

    pub fn write(&mut self, sync: bool) -> io::Result<()> {
        let mut run: Vec<u8> = Vec::new();
        let mut first = 0;
        // Neighbours go out together.
        for (&number, row) in &self.dirty {
            if run.is_empty() || place(first) + run.len() as u64 != place(number) {
                self.bytes.write_at(&run, place(first))?;
                run.clear();
                first = number;
            }
            run.extend_from_slice(&bytes_of(number, row));
        }
        if !run.is_empty() {
            self.bytes.write_at(&run, place(first))?;
        }
        self.dirty.clear();
        if sync { self.bytes.sync() } else { Ok(()) }
    }
}

fn place(number: u32) -> u64 {
    u64::from(number) * ROW_BYTES as u64
}

fn bytes_of(number: u32, row: &Row) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    bytes[..8].copy_from_slice(&row.at.to_le_bytes());
    bytes[8..12].copy_from_slice(&row.doc_id.to_le_bytes());
    bytes[12..16].copy_from_slice(&row.at_s.to_le_bytes());
    bytes[16] = row.state as u8;
    bytes[17] = row.result.map_or(0, |result| result as u8);
    let crc = crc32c::crc32c_append(number, &bytes[..20]);
    bytes[20..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn row_of(number: u32, bytes: &[u8]) -> Option<Row> {
    let state = match bytes[16] {
        1 => RowState::Pending,
        2 => RowState::Fetched,
        3 => RowState::Failed,
        4 => RowState::Duplicate,
        _ => return None,
    };
    (u32_at(bytes, 20) == crc32c::crc32c_append(number, &bytes[..20])).then(|| Row {
        at: u64_at(bytes, 0),
        doc_id: u32_at(bytes, 8),
        at_s: u32_at(bytes, 12),
        state,
        result: ResultCode::from_u8(bytes[17]),
    })
}
