//! Where the bytes of files go.

use super::export::ArchiveError;
use crate::storage::sync_directory;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Takes files one after the other, each from its first byte to its last.
pub(super) trait Output {
    fn open(&mut self, name: &str) -> Result<(), ArchiveError>;
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError>;
    fn close(&mut self) -> Result<(), ArchiveError>;
}

/// Keeps nothing: for an index, which needs only lengths.
pub(super) struct CountOutput;

impl Output for CountOutput {
    fn open(&mut self, _name: &str) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn write(&mut self, _bytes: &[u8]) -> Result<(), ArchiveError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        Ok(())
    }
}

/// Files in a directory. They have other names until all of them are whole and on disk; if that never happens, they are removed.
pub(super) struct FileOutput {
    folder: PathBuf,
    force: bool,
    open: Option<(BufWriter<File>, PathBuf)>,
    /// Their temporary and their final names.
    closed: Vec<(PathBuf, PathBuf)>,
}

const BUFFER_BYTES: usize = 1 << 18;

impl FileOutput {
    pub fn new(folder: &Path, force: bool) -> FileOutput {
        FileOutput { folder: folder.to_path_buf(), force, open: None, closed: Vec::new() }
    }

    /// Overwrites bytes of the open file.
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ArchiveError> {
        let (file, path) = self.open.as_mut().expect("a file is open");
        let patched = file.flush().and_then(|()| file.get_ref().write_all_at(bytes, offset));
        patched.map_err(|cause| ArchiveError::write(path, cause))
    }

    /// Gives the files their names, and returns them.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, ArchiveError> {
        debug_assert!(self.open.is_none(), "the last file is closed");
        let mut names = Vec::new();
        for (part, name) in std::mem::take(&mut self.closed) {
            fs::rename(&part, &name).map_err(|cause| ArchiveError::write(&name, cause))?;
            names.push(name);
        }
        sync_directory(&self.folder).map_err(|cause| ArchiveError::write(&self.folder, cause))?;
        Ok(names)
    }
}

impl Output for FileOutput {
    fn open(&mut self, name: &str) -> Result<(), ArchiveError> {
        let path = self.folder.join(name);
        if !self.force && path.exists() {
            return Err(ArchiveError::Exists(path));
        }
        let part = self.folder.join(format!("{name}.part"));
        let file = OpenOptions::new().create(true).truncate(true).write(true).read(true).open(&part);
        let file = file.map_err(|cause| ArchiveError::write(&part, cause))?;
        self.closed.push((part, path.clone()));
        self.open = Some((BufWriter::with_capacity(BUFFER_BYTES, file), path));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let (file, path) = self.open.as_mut().expect("a file is open");
        file.write_all(bytes).map_err(|cause| ArchiveError::write(path, cause))
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        let (file, path) = self.open.take().expect("a file is open");
        let synced = file.into_inner().map_err(|e| e.into_error()).and_then(|file| file.sync_all());
        synced.map_err(|cause| ArchiveError::write(&path, cause))
    }
}

impl Drop for FileOutput {
    fn drop(&mut self) {
        // A file that is still here never became whole.
        for (part, _) in &self.closed {
            let _ = fs::remove_file(part);
        }
    }
}
