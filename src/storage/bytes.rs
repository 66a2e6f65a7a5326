use super::files::open_secret;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that grow at their end and are read and written at any place: a file, or memory for crawls that leave nothing
/// behind.
pub(crate) enum Bytes {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Bytes {
    pub fn open(path: &Path) -> io::Result<Bytes> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let len = file.metadata()?.len();
        Ok(Bytes::File { file, len })
    }

    /// The same for its owner alone.
    pub fn open_secret(path: &Path) -> io::Result<Bytes> {
        let file = open_secret(path)?;
        let len = file.metadata()?.len();
        Ok(Bytes::File { file, len })
    }

    /// Opens it for reading alone. A file that is not there is empty.
    pub fn read_only(path: &Path) -> io::Result<Bytes> {
        match File::open(path) {
            Ok(file) => {
                let len = file.metadata()?.len();
                Ok(Bytes::File { file, len })
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Bytes::Memory(Vec::new())),
            Err(e) => Err(e),
        }
    }

    pub fn len(&self) -> u64 {
        match self {
            Bytes::File { len, .. } => *len,
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Reads as much as there is, and says how much that was.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Bytes::File { file, .. } => {
                let mut read = 0;
                while read < buffer.len() {
                    match file.read_at(&mut buffer[read..], at + read as u64) {
                        Ok(0) => break,
                        Ok(n) => read += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(read)
            }
            Bytes::Memory(bytes) => {
                let from = bytes.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or_default();
                let n = from.len().min(buffer.len());
                buffer[..n].copy_from_slice(&from[..n]);
                Ok(n)
            }
        }
    }

    /// Writes all of it or fails; what failed may be there in part.
    pub fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        match self {
            Bytes::File { file, len } => {
                file.write_all_at(bytes, at)?;
                *len = (*len).max(end);
            }
            Bytes::Memory(held) => {
                if held.len() < end as usize {
                    held.resize(end as usize, 0);
                }
                held[at as usize..end as usize].copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    pub fn truncate(&mut self, to: u64) -> io::Result<()> {
        match self {
            Bytes::File { file, len } => {
                file.set_len(to)?;
                *len = to;
            }
            Bytes::Memory(bytes) => bytes.truncate(to as usize),
        }
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        match self {
            Bytes::File { file, .. } => file.sync_data(),
            Bytes::Memory(_) => Ok(()),
        }
    }

    /// Bytes that it takes on a disk, holes aside.
    pub fn disk_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        match self {
            Bytes::File { file, .. } => file.metadata().map_or(0, |meta| meta.blocks() * 512),
            Bytes::Memory(_) => 0,
        }
    }
}
