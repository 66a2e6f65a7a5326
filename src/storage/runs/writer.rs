use super::page::{self, Entry, PAGE_BYTES, PAGE_ENTRIES};
use super::run::{Run, RunHead};
use crate::storage::NewFile;
use std::io::{self, Write};
use std::path::Path;

/// A run being written. It gets its name when all of it is on the disk.
pub(super) struct RunWriter {
    file: NewFile,
    head: RunHead,
    /// Whole pages, the last of them being filled.
    buffer: Vec<u8>,
    pushed: u64,
    /// Bytes written since the disk had all of them.
    unsynced_bytes: usize,
}

/// Pages of one write.
const WRITE_PAGES: usize = 64;
/// The disk gets a large run bit by bit, so that the end does not wait for all of it.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;

impl RunWriter {
    /// Begins a run of `head.count` entries.
    pub fn create(folder: &Path, head: RunHead) -> io::Result<RunWriter> {
        assert!(head.count > 0, "no run is empty");
        let file = NewFile::create(&folder.join(head.span.name()))?;
        let mut buffer = Vec::with_capacity(WRITE_PAGES * PAGE_BYTES);
        buffer.extend_from_slice(&head.to_page());
        Ok(RunWriter { file, head, buffer, pushed: 0, unsynced_bytes: 0 })
    }

    /// Adds the next entry, in the order of fingerprints.
    pub fn push(&mut self, entry: Entry) -> io::Result<()> {
        let at = (self.pushed % PAGE_ENTRIES as u64) as usize;
        if at == 0 {
            self.end_page()?;
            self.buffer.resize(self.buffer.len() + PAGE_BYTES, 0);
        }
        let page = self.buffer.len() - PAGE_BYTES;
        page::put(&mut self.buffer[page..], at, entry);
        self.pushed += 1;
        Ok(())
    }

    /// Returns the run, durable and with its name.
    pub fn finish(mut self) -> io::Result<Run> {
        assert_eq!(self.pushed, self.head.count, "the header told how many there are");
        self.end_page()?;
        self.write_out()?;
        Ok(Run::written(self.file.commit()?, self.head))
    }

    fn end_page(&mut self) -> io::Result<()> {
        if let Some(page) = self.buffer.len().checked_sub(PAGE_BYTES) {
            page::seal(&mut self.buffer[page..]);
        }
        match self.buffer.len() < WRITE_PAGES * PAGE_BYTES {
            true => Ok(()),
            false => self.write_out(),
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.file().write_all(&self.buffer)?;
        self.unsynced_bytes += self.buffer.len();
        self.buffer.clear();
        if self.unsynced_bytes >= UNSYNCED_BYTES_MAX {
            self.unsynced_bytes = 0;
            self.file.file().sync_data()?;
        }
        Ok(())
    }
}
