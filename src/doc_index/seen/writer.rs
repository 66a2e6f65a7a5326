use super::page::{self, Entry, PAGE_BYTES, PAGE_ENTRIES};
use super::run::{Run, RunHead};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A run being written: as NAME.fresh first. It gets its name when all of it is on the disk.
pub(super) struct RunWriter {
    file: File,
    path: PathBuf,
    head: RunHead,
    /// Whole pages, the last of them being filled.
    buffer: Vec<u8>,
    pushed: u64,
    /// Bytes written since the disk had all of them.
    unsynced_bytes: usize,
}

/// Pages of one write.
const WRITE_PAGES: usize = 64;
/// The disk gets a large run bit by bit, so that nobody waits for all of it at the end.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;
pub(super) const FRESH: &str = "fresh";

impl RunWriter {
    /// Begins a run of `head.count` entries.
    pub fn create(folder: &Path, head: RunHead) -> io::Result<RunWriter> {
        assert!(head.count > 0, "no run is empty");
        let path = folder.join(head.span.name());
        let fresh = path.with_extension(FRESH);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(fresh)?;
        let buffer = Vec::with_capacity(WRITE_PAGES * PAGE_BYTES);
        let mut writer = RunWriter { file, path, head, buffer, pushed: 0, unsynced_bytes: 0 };
        writer.buffer.extend_from_slice(&head.to_page());
        Ok(writer)
    }

    /// The next entry, in the order of prints.
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

    /// The run, durable and with its name.
    pub fn finish(mut self) -> io::Result<Run> {
        assert_eq!(self.pushed, self.head.count, "the header told how many there are");
        self.end_page()?;
        self.write_out()?;
        self.file.sync_data()?;
        fs::rename(self.path.with_extension(FRESH), &self.path)?;
        sync_folder(&self.path)?;
        Ok(Run::written(self.file.try_clone()?, self.head))
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
        self.file.write_all(&self.buffer)?;
        self.unsynced_bytes += self.buffer.len();
        self.buffer.clear();
        if self.unsynced_bytes >= UNSYNCED_BYTES_MAX {
            self.unsynced_bytes = 0;
            self.file.sync_data()?;
        }
        Ok(())
    }
}

impl Drop for RunWriter {
    /// A run that was finished is no longer there under this name. What stays behind is removed when the folder is
    /// opened.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.with_extension(FRESH));
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
