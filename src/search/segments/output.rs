use crate::storage::NewFile;
use std::io::{self, Write};
use std::path::Path;

const BUFFER_BYTES: usize = 256 << 10;

/// A file on its way, with the checksum of what was written.
pub(super) struct Output {
    new: NewFile,
    buffer: Vec<u8>,
    written: u64,
    crc: u32,
}

impl Output {
    pub fn create(path: &Path) -> io::Result<Output> {
        let new = NewFile::create(path)?;
        Ok(Output { new, buffer: Vec::with_capacity(2 * BUFFER_BYTES), written: 0, crc: 0 })
    }

    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer);
        self.new.file().write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Where the next byte will be.
    pub fn at(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The checksum of all that was put.
    pub fn crc(&mut self) -> io::Result<u32> {
        self.write()?;
        Ok(self.crc)
    }

    /// Makes the file durable under its name.
    pub fn commit(mut self) -> io::Result<()> {
        self.write()?;
        self.new.commit().map(drop)
    }
}
