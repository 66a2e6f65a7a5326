use super::files::about;
use super::state::{Record, State};
use crate::storage::{Bytes, JournalLines, NewFile, put_line};
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
        let mut line = Vec::new();
        put_line(record, &mut line).map_err(AppendError::TakenBack)?;
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
        let mut line = Vec::new();
        put_line(&Record::Checkpoint(Box::new(state.clone())), &mut line)?;
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
    let Some(rest) = bytes.strip_prefix(HEAD) else {
        return Err("it is not the journal of a master, or of another version".to_string());
    };
    let mut state = State::default();
    let mut checkpoint_bytes = 0;
    let mut lines = JournalLines::new(rest);
    while let Some(record) = lines.next()? {
        let (number, line_bytes) = lines.line();
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
            checkpoint_bytes = line_bytes;
        }
        state.apply(record);
    }
    let (torn_bytes, end) = (lines.rest_bytes(), bytes.len() as u64 - lines.rest_bytes());
    Ok(JournalRead { state, end, torn_bytes, checkpoint_bytes })
}
