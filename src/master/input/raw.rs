use std::io::{self, BufRead, Read};
use xxhash_rust::xxh3::Xxh3Default;

/// What a file is by its bytes, as they lie on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputSum {
    pub bytes: u64,
    /// XXH3-128.
    pub digest: u128,
}

/// Bytes of a file in large pieces, summed as they come.
pub(super) struct Raw {
    input: Box<dyn Read + Send>,
    /// `None` where nobody knows, in a pipe.
    left: Option<u64>,
    bytes: u64,
    digest: Xxh3Default,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// Reading failed: an error that comes out of an unpacker is of the machine.
    pub failed: bool,
}

/// Read at once: it lies in a core's cache while it is parsed.
const PIECE_BYTES: usize = 256 * 1_024;

impl Raw {
    pub fn new(input: Box<dyn Read + Send>, bytes: Option<u64>) -> Raw {
        let buffer = vec![0; PIECE_BYTES].into_boxed_slice();
        Raw { input, left: bytes, bytes: 0, digest: Xxh3Default::new(), buffer, at: 0, end: 0, failed: false }
    }

    /// What has come and is not consumed.
    pub fn had(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Bytes consumed.
    pub fn consumed(&self) -> u64 {
        self.bytes - (self.end - self.at) as u64
    }

    /// Whether it ended before the length that it had at its opening.
    pub fn is_shrunk(&self) -> bool {
        self.left.is_some_and(|left| left > 0)
    }

    /// The next `count` bytes without consuming them; fewer at the end.
    pub fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        while self.end < count && self.more()? > 0 {}
        Ok(&self.buffer[..self.end.min(count)])
    }

    /// Reads to its end.
    pub fn sum(mut self) -> io::Result<(InputSum, bool)> {
        loop {
            (self.at, self.end) = (0, 0);
            if self.more()? == 0 {
                break;
            }
        }
        Ok((InputSum { bytes: self.bytes, digest: self.digest.digest128() }, self.is_shrunk()))
    }

    /// Reads behind what is there.
    fn more(&mut self) -> io::Result<usize> {
        let room = self.buffer.len() - self.end;
        let wanted = self.left.map_or(room, |left| left.min(room as u64) as usize);
        if wanted == 0 {
            return Ok(0);
        }
        let place = &mut self.buffer[self.end..self.end + wanted];
        let count = loop {
            match self.input.read(place) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        };
        self.digest.update(&place[..count]);
        self.end += count;
        self.bytes += count as u64;
        if let Some(left) = &mut self.left {
            *left -= count as u64;
        }
        Ok(count)
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.len().min(out.len());
        out[..count].copy_from_slice(&self.had()[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
            self.more()?;
        }
        Ok(self.had())
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
        debug_assert!(self.at <= self.end);
    }
}
