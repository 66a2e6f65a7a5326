use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::marker::PhantomData;

/// The records of a journal: one a line, as `crc32c JSON`, behind a first line that says what it is.
pub(crate) struct JournalLines<'b, T> {
    rest: &'b [u8],
    line: u64,
    line_bytes: u64,
    records: PhantomData<T>,
}

/// Appends the line of a record.
pub(crate) fn put_line(record: &impl Serialize, out: &mut Vec<u8>) -> io::Result<()> {
    let begin = out.len();
    out.extend_from_slice(b"00000000 ");
    serde_json::to_writer(&mut *out, record)?;
    let crc = format!("{:08x}", crc32c::crc32c(&out[begin + 9..]));
    out[begin..begin + 8].copy_from_slice(crc.as_bytes());
    out.push(b'\n');
    Ok(())
}

/// So many zeros in a row were never written.
const UNWRITTEN_BYTES: usize = 16;

impl<'b, T: DeserializeOwned> JournalLines<'b, T> {
    /// Those of what follows the first line.
    pub fn new(rest: &'b [u8]) -> JournalLines<'b, T> {
        JournalLines { rest, line: 1, line_bytes: 0, records: PhantomData }
    }

    /// The next record; `None` at the end, or where a crash has torn it.
    pub fn next(&mut self) -> Result<Option<T>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let line_end = memchr::memchr(b'\n', self.rest);
        let line = &self.rest[..line_end.unwrap_or(self.rest.len())];
        match line_end.and_then(|_| record_of(line)) {
            Some(record) => {
                self.line += 1;
                self.line_bytes = line.len() as u64 + 1;
                self.rest = &self.rest[line.len() + 1..];
                Ok(Some(record))
            }
            None if self.is_torn(line_end) => Ok(None),
            None => Err(format!("line {} is damaged", self.line + 1)),
        }
    }

    /// The line of the last record, and its bytes.
    pub fn line(&self) -> (u64, u64) {
        (self.line, self.line_bytes)
    }

    /// Bytes that no record was read from.
    pub fn rest_bytes(&self) -> u64 {
        self.rest.len() as u64
    }

    /// Whether the last line is what a crash left: it has not come to its end, or not to the disk. One whose end is another
    /// byte than it was is damaged.
    fn is_torn(&self, line_end: Option<usize>) -> bool {
        let rest = self.rest;
        let is_unwritten = rest.windows(UNWRITTEN_BYTES).any(|bytes| bytes.iter().all(|byte| *byte == 0));
        match line_end {
            None => is_unwritten || record_of::<T>(&rest[..rest.len() - 1]).is_none(),
            Some(at) => is_unwritten && at + 1 == rest.len(),
        }
    }
}

fn record_of<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (crc, json) = line.split_at_checked(9)?;
    let crc = crc.strip_suffix(b" ")?;
    (crc == format!("{:08x}", crc32c::crc32c(json)).as_bytes()).then(|| serde_json::from_slice(json).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<u32>, Result<u64, String>) {
        let (mut lines, mut found) = (JournalLines::<u32>::new(bytes), Vec::new());
        loop {
            match lines.next() {
                Ok(Some(record)) => found.push(record),
                Ok(None) => return (found, Ok(lines.rest_bytes())),
                Err(what) => return (found, Err(what)),
            }
        }
    }

    #[test]
    fn a_torn_end_is_passed_over_and_damage_is_told_with_its_line() {
        let mut bytes = Vec::new();
        (1..=3).for_each(|record: u32| put_line(&record, &mut bytes).unwrap());
        assert_eq!(read(&bytes), (vec![1, 2, 3], Ok(0)));
        let last = bytes.len() / 3;
        for cut in 1..last {
            assert_eq!(read(&bytes[..2 * last + cut]), (vec![1, 2], Ok(cut as u64)), "{cut}");
        }
        let zeros = [&bytes[..], &[0; 20]].concat();
        assert_eq!(read(&zeros), (vec![1, 2, 3], Ok(20)), "a file grew, and nothing was written");
        for at in 0..2 * last {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(read(&damaged).1.is_err(), "byte {at}");
        }
    }
}
