use super::files::about;
use super::state::{Record, State};
use crate::storage::{Bytes, NewFile};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The journal of epochs: a line that says what it is, then one record a line, as `crc32c JSON`. A record counts when its
/// line is on the disk.
pub(super) struct Journal {
    path: PathBuf,
    bytes: Bytes,
    /// Records that are durable.
    end: u64,
    /// Of the checkpoint that it begins with.
    checkpoint_bytes: u64,
}

/// What a journal said.
pub(super) struct JournalRead {
    pub state: State,
    pub end: u64,
    pub torn_bytes: u64,
    checkpoint_bytes: u64,
}

const HEAD: &[u8] = b"nephila master journal 1\n";
/// It is written anew when it is longer than that, and than four times its checkpoint.
const COMPACT_BYTES_MIN: u64 = 1 << 20;

impl Journal {
    /// Opens the journal of a directory, or begins one.
    pub fn open(path: &Path) -> io::Result<(Journal, State, u64)> {
        let read = match read(path)? {
            Some(read) => read,
            None => {
                let new = NewFile::create(path)?;
                new.file().write_all(HEAD)?;
                new.commit()?;
                JournalRead {
                    state: State::default(),
                    end: HEAD.len() as u64,
                    torn_bytes: 0,
                    checkpoint_bytes: 0,
                }
            }
        };
        let mut bytes = Bytes::open(path)?;
        if bytes.len() > read.end {
            bytes.truncate(read.end)?;
            bytes.sync()?;
        }
        let journal = Journal {
            path: path.to_path_buf(),
            bytes,
            end: read.end,
            checkpoint_bytes: read.checkpoint_bytes,
        };
        Ok((journal, read.state, read.torn_bytes))
    }

    /// Adds a record, durably. One that could not be made durable is taken back; if even that fails, nobody knows what
    /// the disk has, and the second error says so.
    pub fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        let line = line_of(record).map_err(AppendError::TakenBack)?;
        let written = self.bytes.write_at(&line, self.end).and_then(|()| self.bytes.sync());
        if let Err(e) = written {
            let e = about(&self.path)(e);
            return Err(match self.bytes.truncate(self.end).and_then(|()| self.bytes.sync()) {
                Ok(()) => AppendError::TakenBack(e),
                Err(_) => AppendError::InDoubt(e),
            });
        }
        self.end += line.len() as u64;
        Ok(())
    }

    /// Writes it anew, as one checkpoint, if it is much longer than that would be.
    pub fn compact(&mut self, state: &State) -> io::Result<bool> {
        if self.end < COMPACT_BYTES_MIN.max(4 * self.checkpoint_bytes) {
            return Ok(false);
        }
        let line = line_of(&Record::Checkpoint(Box::new(state.clone())))?;
        let new = NewFile::create(&self.path)?;
        new.file().write_all(HEAD)?;
        new.file().write_all(&line)?;
        new.commit()?;
        self.bytes = Bytes::open(&self.path)?;
        (self.end, self.checkpoint_bytes) = (self.bytes.len(), line.len() as u64);
        Ok(true)
    }
}

/// Why a record is not in the journal.
#[derive(Debug)]
pub(super) enum AppendError {
    /// It is as if it had not been tried.
    TakenBack(io::Error),
    /// It may be there.
    InDoubt(io::Error),
}

fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(record)?;
    let mut line = format!("{:08x} ", crc32c::crc32c(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

/// Reads a journal, and changes nothing; `None` if there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<JournalRead>> {
    let bytes = match std::fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(about(path))?,
    };
    parse(&bytes).map(Some).map_err(|what| {
        let text = format!("{}: {what} (put a copy back)", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// What a journal says, up to a torn end.
pub(super) fn parse(bytes: &[u8]) -> Result<JournalRead, String> {
    let Some(mut rest) = bytes.strip_prefix(HEAD) else {
        return Err("it is not the journal of a master, or of another version".to_string());
    };
    let mut state = State::default();
    let (mut number, mut checkpoint_bytes) = (1, 0);
    while !rest.is_empty() {
        number += 1;
        let line_end = memchr::memchr(b'\n', rest);
        let line = &rest[..line_end.unwrap_or(rest.len())];
        let record = line_end.and_then(|_| record_of(line));
        let Some(record) = record else {
            if is_torn(rest, line_end) {
                break;
            }
            return Err(format!("line {number} is damaged"));
        };
        let follows = match &record {
            Record::Checkpoint(_) => number == 2,
            Record::Begin(begin) => begin.epoch == state.epoch + 1,
            Record::Commit(commit) => state.begun.as_ref().is_some_and(|begun| begun.epoch == commit.epoch),
            Record::Keep(_) => true,
        };
        if !follows {
            return Err(format!("line {number} does not follow the one before"));
        }
        if matches!(record, Record::Checkpoint(_)) {
            checkpoint_bytes = line.len() as u64 + 1;
        }
        state.apply(record);
        rest = &rest[line.len() + 1..];
    }
    let (torn_bytes, end) = (rest.len() as u64, (bytes.len() - rest.len()) as u64);
    Ok(JournalRead { state, end, torn_bytes, checkpoint_bytes })
}

/// Whether the last line is what a crash left: it has not come to its end, or not to the disk. One whose end is another
/// byte than it was is damaged.
fn is_torn(rest: &[u8], line_end: Option<usize>) -> bool {
    let is_unwritten = rest.windows(UNWRITTEN_BYTES).any(|bytes| bytes.iter().all(|byte| *byte == 0));
    match line_end {
        None => is_unwritten || record_of(&rest[..rest.len() - 1]).is_none(),
        Some(at) => is_unwritten && at + 1 == rest.len(),
    }
}

/// So many zeros in a row were never written.
const UNWRITTEN_BYTES: usize = 16;

fn record_of(line: &[u8]) -> Option<Record> {
    let (crc, json) = line.split_at_checked(9)?;
    let crc = crc.strip_suffix(b" ")?;
    (crc == format!("{:08x}", crc32c::crc32c(json)).as_bytes()).then(|| serde_json::from_slice(json).ok())?
}
