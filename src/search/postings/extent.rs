use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes that are read ahead of those that are needed.
const WINDOW_BYTES: usize = 64 << 10;

/// Bytes of a file, read as they are needed: what is asked for in ascending order is read once, but for what lies across the end of a window.
pub struct Extent {
    file: Arc<File>,
    from: u64,
    len: usize,
    window: Vec<u8>,
    /// Where the window begins, and how much of it was read.
    at: usize,
    filled: usize,
}

impl Extent {
    pub fn new(file: Arc<File>, from: u64, len: usize) -> Extent {
        Extent { file, from, len, window: Vec::new(), at: 0, filled: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes between two places.
    pub fn bytes(&mut self, from: usize, to: usize) -> io::Result<&[u8]> {
        if from > to || to > self.len {
            return Err(damaged("a list of stories is cut"));
        }
        if from < self.at || to > self.at + self.filled {
            let end = to.max(from.saturating_add(WINDOW_BYTES)).min(self.len);
            // Nothing is in the window until it was read.
            (self.at, self.filled) = (from, 0);
            if self.window.len() < end - from {
                self.window.resize(end - from, 0);
            }
            self.file.read_exact_at(&mut self.window[..end - from], self.from + from as u64)?;
            self.filled = end - from;
        }
        Ok(&self.window[from - self.at..to - self.at])
    }
}

/// What a damaged file says, which no system refused.
pub fn damaged(said: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, said)
}
