use crate::master::{InputError, InputFile, InputReader};
use memchr::{memchr_iter, memrchr};
use std::io;
use std::mem;

/// The text of some files in chunks that begin with a record each, for whoever asks next.
pub(super) struct Chunks<'a> {
    inputs: &'a [(&'a InputFile, bool)],
    /// The one that is read.
    at: usize,
    reader: Option<InputReader>,
    /// Behind the last cut.
    carried: Vec<u8>,
    lines: u64,
    number: u32,
    /// Why the file that was read ended early.
    fault: Option<String>,
}

/// Where lines come from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub input: &'a InputFile,
    pub is_held: bool,
    /// Lines of the file before the chunk.
    pub lines_before: u64,
}

pub(super) struct Chunk<'a> {
    pub origin: Origin<'a>,
    pub number: u32,
    /// Nothing of its last record is missing.
    pub is_whole: bool,
    /// Why it is the last of its file, if that is not because of its end.
    pub fault: Option<String>,
}

const CHUNK_BYTES: usize = 1 << 20;

impl Origin<'_> {
    pub fn failed(error: InputError) -> io::Error {
        io::Error::other(error.to_string())
    }
}

impl<'a> Chunks<'a> {
    pub fn new(inputs: &'a [(&'a InputFile, bool)]) -> Chunks<'a> {
        Chunks { inputs, at: 0, reader: None, carried: Vec::new(), lines: 0, number: 0, fault: None }
    }

    /// The next chunk; `None` at the end of all files.
    pub fn next(&mut self, text: &mut Vec<u8>) -> io::Result<Option<Chunk<'a>>> {
        while let Some(&(input, is_held)) = self.inputs.get(self.at) {
            if self.reader.is_none() {
                self.reader = Some(input.open().map_err(Origin::failed)?);
                self.lines = 0;
            }
            let origin = Origin { input, is_held, lines_before: self.lines };
            let is_whole = self.more(text)?;
            let fault = self.fault.take();
            if text.is_empty() && fault.is_none() {
                continue;
            }
            let number = self.number;
            self.number += 1;
            return Ok(Some(Chunk { origin, number, is_whole, fault }));
        }
        Ok(None)
    }

    /// What follows, up to a record, and whether it got there.
    pub fn more(&mut self, text: &mut Vec<u8>) -> io::Result<bool> {
        text.clear();
        mem::swap(text, &mut self.carried);
        let Some(reader) = &mut self.reader else { return Ok(true) };
        let mut is_ended = false;
        while text.len() < CHUNK_BYTES {
            match reader.chunk() {
                Ok(Some(more)) => text.extend_from_slice(more),
                Ok(None) => is_ended = true,
                Err(error) if error.fault.is_of_content() => {
                    self.fault = Some(error.fault.to_string());
                    is_ended = true;
                }
                Err(error) => return Err(Origin::failed(error)),
            }
            if is_ended {
                (self.reader, self.at) = (None, self.at + 1);
                return Ok(true);
            }
        }
        let cut = last_record(text);
        if let Some(cut) = cut {
            self.carried.extend_from_slice(&text[cut..]);
            text.truncate(cut);
        }
        self.lines += memchr_iter(b'\n', text).count() as u64;
        Ok(cut.is_some())
    }
}

/// Where the last line begins that begins a record, whatever stands before it; not at the beginning.
fn last_record(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(newline) = memrchr(b'\n', &text[..end]) {
        if begins_record(&text[newline + 1..]) {
            return Some(newline + 1);
        }
        end = newline;
    }
    None
}

/// Digits, digits, fourteen digits, each with its tab.
fn begins_record(line: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = line;
    for length in [1..=32, 1..=3, 14..=14] {
        let count = digits(&rest[..rest.len().min(33)]);
        if !length.contains(&count) || rest.get(count) != Some(&b'\t') {
            return false;
        }
        rest = &rest[count + 1..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_made_where_a_record_begins() {
        let one = b"2011072806593795\t5\t20110727200841\t2310\thttp://a.ru/\t1\t0\n".as_slice();
        let broken = b"2011072806593795\t5\t20110727200841\t2310\t\nhttp://a.ru/\n1".as_slice();
        let all = [one, one, broken].concat();
        assert_eq!(last_record(&all), Some(2 * one.len()));
        assert_eq!(last_record(&all[..2 * one.len() + 30]), Some(one.len()), "not enough to be sure");
        assert_eq!((last_record(one), last_record(broken), last_record(b"")), (None, None, None));
    }
}
