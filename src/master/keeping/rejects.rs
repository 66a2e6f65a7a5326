use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// `rejects/N`: lines that could not be read, up to a bound; the others are counted.
pub(super) struct Rejects {
    path: PathBuf,
    out: BufWriter<File>,
    bytes: u64,
    /// Lines beyond the bound.
    more: u64,
    at_line_end: bool,
}

const BYTES_MAX: u64 = 64 << 20;

impl Rejects {
    pub fn create(folder: &Path, epoch: u64) -> io::Result<Rejects> {
        crate::storage::make_directory(folder)?;
        let path = folder.join(epoch.to_string());
        let out = BufWriter::new(File::create(&path)?);
        Ok(Rejects { path, out, bytes: 0, more: 0, at_line_end: true })
    }

    /// Makes it durable, or removes it if there is nothing in it.
    pub fn finish(mut self) -> io::Result<()> {
        if self.more > 0 {
            writeln!(self.out, "{} more lines were rejected, and are not listed", self.more)?;
        }
        self.out.flush()?;
        if self.bytes == 0 {
            return std::fs::remove_file(&self.path);
        }
        self.out.get_ref().sync_all()?;
        crate::storage::sync_parent(&self.path)
    }
}

impl Write for Rejects {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes >= BYTES_MAX && self.at_line_end {
            self.more += memchr::memchr_iter(b'\n', bytes).count() as u64;
            return Ok(bytes.len());
        }
        // Beyond the bound a line is still ended.
        let end = match self.bytes >= BYTES_MAX {
            true => memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1),
            false => bytes.len(),
        };
        self.out.write_all(&bytes[..end])?;
        self.bytes += end as u64;
        self.at_line_end = bytes[..end].last().is_none_or(|byte| *byte == b'\n');
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
