use super::batch::Batch;
use super::cursor::{Cursor, CursorError};
use crate::base::{SortedSet, counted};
use crate::storage::make_directory;
use crate::store_server::{ReadError, Reader};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// From one batch to the next, over the sealed segments of a store that is written meanwhile. No other process has the same
/// follower as long as it lives.
pub(super) struct Walk {
    data: PathBuf,
    path: PathBuf,
    cursor: Cursor,
    reader: Option<Reader>,
    /// Segments that could not be read; the next process tries again.
    unreadable: SortedSet<u64>,
    /// What could not be read, in words, since it was last asked for.
    troubles: Vec<String>,
    /// The batch that was last told of.
    noted: Option<(u64, u64)>,
    /// The file lags behind.
    is_unsaved: bool,
    _lock: File,
}

#[derive(Debug, Error)]
pub(super) enum WalkError {
    #[error("{path} is in use: another process copies to it (let that one end)")]
    Held { path: PathBuf },
    #[error("cannot use {path}: {cause}")]
    Unusable { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error(transparent)]
    Store(#[from] ReadError),
}

/// The folder of cursors in a data directory.
const FOLDER: &str = "content";

impl Walk {
    /// Of the follower of this name. One that leads elsewhere than before begins anew.
    pub fn open(data: &Path, name: &str, to: &str) -> Result<Walk, WalkError> {
        let folder = data.join(FOLDER);
        let unusable = |cause| WalkError::Unusable { path: folder.clone(), cause };
        make_directory(&folder).map_err(unusable)?;
        let lock_path = folder.join(format!("{name}.lock"));
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(&lock_path).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(WalkError::Held { path: lock_path }),
            Err(TryLockError::Error(cause)) => return Err(unusable(cause)),
        }
        let path = folder.join(format!("{name}.cursor"));
        let cursor = Cursor::read(&path)?.filter(|cursor| cursor.to == to);
        Ok(Walk {
            data: data.to_path_buf(),
            path,
            cursor: cursor.unwrap_or_else(|| Cursor::new(to.to_string())),
            reader: None,
            unreadable: SortedSet::new(),
            troubles: Vec::new(),
            noted: None,
            is_unsaved: false,
            _lock: lock,
        })
    }

    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// What could not be read, since this was last asked.
    pub fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    /// Looks which segments there are. How many went before they were copied.
    pub fn look(&mut self) -> Result<u64, WalkError> {
        self.reader = match Reader::open(&self.data) {
            // A crawl that has just begun has none.
            Err(ReadError::NoStore(_)) => None,
            reader => Some(reader?),
        };
        let present = self.reader.as_ref().map(Reader::sealed).unwrap_or_default();
        let looked = self.cursor.look(&present);
        self.is_unsaved |= looked.is_changed;
        Ok(looked.gone)
    }

    /// A segment went while it was to be read: only a look tells what became of it.
    pub fn is_lost(&self) -> bool {
        self.reader.is_none() && self.cursor.waiting() > 0
    }

    /// The next documents that are to be copied; `None` if there are none before another look.
    pub fn next(&mut self) -> Option<Batch> {
        let reader = self.reader.take()?;
        let mut found = None;
        while let Some((number, from)) = self.cursor.next(|number| self.unreadable.contains(&number)) {
            let mut batch = Batch::new(number, from);
            let passed = reader
                .each_from(number, from, |located, bytes| batch.take(&reader, &self.data, located, bytes));
            match batch.failed.take().map_or(passed, Err) {
                Ok(Some(passed)) => {
                    (batch.next, batch.is_end) = (passed.next, passed.is_end);
                    // A batch that is sent again is told of once.
                    if self.noted.replace((number, from)) != Some((number, from)) {
                        self.note(number, passed.damaged, batch.lost);
                    }
                }
                // Packed or dropped since: the next look tells.
                Ok(None) => return None,
                Err(error) => {
                    self.unreadable.insert(number);
                    self.troubles.push(format!("{error}; it is left for the next run"));
                    continue;
                }
            }
            if !batch.documents.is_empty() {
                batch.agent = reader.agent(number);
                found = Some(batch);
                break;
            }
            self.pass(&batch);
        }
        self.reader = Some(reader);
        found
    }

    fn note(&mut self, number: u64, damaged: u64, lost: u64) {
        for (count, noun, said) in [(damaged, "place", "damaged"), (lost, "document", "not to be found")] {
            if count > 0 {
                let (count, are) = (counted(count, noun), if count == 1 { "is" } else { "are" });
                self.troubles.push(format!(
                    "{count} of segment {number} {are} {said} (nephila store verify tells more)"
                ));
            }
        }
    }

    /// The other side has a batch for good, but for what it refused.
    pub fn confirm(&mut self, batch: &Batch, refused: usize) {
        self.cursor.sent += (batch.documents.len() - refused) as u64;
        self.cursor.refused += refused as u64;
        self.pass(batch);
    }

    fn pass(&mut self, batch: &Batch) {
        match batch.is_end {
            true => self.cursor.finish(batch.segment),
            false => self.cursor.move_to(batch.segment, batch.next),
        }
        self.is_unsaved = true;
    }

    /// Notes how far it is. What cannot be noted is copied again by the next process.
    pub fn save(&mut self) -> io::Result<()> {
        if self.is_unsaved {
            self.cursor.write(&self.path)?;
            self.is_unsaved = false;
        }
        Ok(())
    }
}
