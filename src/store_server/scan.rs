//! Reading a segment from its first record to its last, whatever has happened to it.

use super::block::{InFile, Unpacked};
use super::dedup::digest;
use super::layout::{HEADER_BYTES, RECORD_MAGIC};
use super::record::{self, NotARecord, Record};
use crate::limits::{RECORD_ALIGN, SEGMENT_HEADER_BYTES};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanResult {
    /// Where the last whole record ends.
    pub end: u64,
    /// Bytes of a sealed segment that are no record.
    pub damaged: Vec<Range<u64>>,
    /// A segment in use has something behind its last whole record: a record that was being written.
    pub is_torn: bool,
    /// A record was not taken, and nothing behind it was looked at.
    pub is_left: bool,
}

/// What bytes that are no record mean to a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanMode {
    /// The end of a segment in use.
    InUse,
    /// Damage to a sealed one: the scan continues behind it. Where it does is found by the store's key, as bytes that look
    /// like a record may be part of a page that an attacker made up. Without the key only checked lengths are trusted.
    Sealed { key: Option<u64> },
}

/// Shows every whole record.
pub fn scan(
    file: &File,
    segment: u64,
    scan_mode: ScanMode,
    mut show: impl FnMut(Record, u64, &[u8]),
) -> io::Result<ScanResult> {
    scan_from(file, segment, scan_mode, SEGMENT_HEADER_BYTES as u64, |record, offset, bytes| {
        show(record, offset, bytes);
        ControlFlow::Continue(())
    })
}

/// The same from the end of a record on, up to one that is not taken, where it ends.
pub fn scan_from(
    file: &File,
    segment: u64,
    scan_mode: ScanMode,
    from: u64,
    mut show: impl FnMut(Record, u64, &[u8]) -> ControlFlow<()>,
) -> io::Result<ScanResult> {
    let file_bytes = file.metadata()?.len();
    let mut scanned = ScanResult { end: from, ..ScanResult::default() };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut offset = scanned.end;
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        (&mut reader).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(scanned);
        }
        let header = record::check_header(&bytes, segment);
        if let Ok(lengths) = header {
            (&mut reader).take((lengths.record - HEADER_BYTES) as u64).read_to_end(&mut bytes)?;
            if bytes.len() == lengths.record
                && let Ok(record) = record::parse(&bytes, segment)
            {
                if show(record, offset, &bytes).is_break() {
                    scanned.end = offset;
                    scanned.is_left = true;
                    return Ok(scanned);
                }
                offset += lengths.record as u64;
                scanned.end = offset;
                continue;
            }
        }
        let ScanMode::Sealed { key } = scan_mode else {
            scanned.is_torn = !matches!(header, Err(NotARecord::Empty));
            return Ok(scanned);
        };
        let next = match header {
            // The header holds, and with it the length: only this record is lost.
            Ok(lengths) => (offset + lengths.record as u64).min(file_bytes),
            Err(_) => match key {
                Some(key) => next_record(file, segment, offset + RECORD_ALIGN as u64, file_bytes, key)?,
                None => file_bytes,
            },
        };
        scanned.damaged.push(offset..next);
        offset = next;
        reader.seek(SeekFrom::Start(offset))?;
    }
}

/// Places that look like a record and are none; after more of them the rest of a segment is given up.
const LOOKED_AT_MAX: u32 = 1_000;

/// Where the next whole record begins that no server can have made up, or the end of the file: its document has the
/// digest that the store's key gives it. A record without a document is skipped.
fn next_record(file: &File, segment: u64, from: u64, file_bytes: u64, key: u64) -> io::Result<u64> {
    let unpacked = Unpacked::default();
    let is_ours = |(record, bytes): (Record, Vec<u8>)| {
        let document = unpacked.document(&InFile(file, segment), segment, &record, &bytes).ok().flatten();
        let document = document.filter(|_| !record.is_reference);
        document.is_some_and(|document| record.digest != 0 && digest(&document.body, key) == record.digest)
    };
    let mut window = vec![0; 1 << 16];
    let mut at = from;
    // A page may be full of what looks like the header of a long record.
    let mut looked_at = 0;
    while at < file_bytes {
        let got = read_up_to(file, &mut window, at)?;
        for (index, start) in window[..got].chunks(RECORD_ALIGN).enumerate() {
            let offset = at + (index * RECORD_ALIGN) as u64;
            if start.starts_with(RECORD_MAGIC) {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    return Ok(file_bytes);
                }
                if read_record(file, segment, offset)?.is_some_and(is_ours) {
                    return Ok(offset);
                }
            }
        }
        at += got.max(RECORD_ALIGN) as u64;
    }
    Ok(file_bytes)
}

/// Bytes of the first read of a record; most records are whole with them.
const FIRST_READ: usize = 8 << 10;

/// The whole record at a place and its bytes; `None` if there is none.
pub fn read_record(file: &File, segment: u64, offset: u64) -> io::Result<Option<(Record, Vec<u8>)>> {
    let mut bytes = vec![0; FIRST_READ];
    let got = read_up_to(file, &mut bytes, offset)?;
    bytes.truncate(got);
    let Ok(lengths) = record::check_header(&bytes, segment) else {
        return Ok(None);
    };
    if lengths.record > got {
        // A header promises no more than the file has.
        if offset + lengths.record as u64 > file.metadata()?.len() {
            return Ok(None);
        }
        bytes.resize(lengths.record, 0);
        let more = read_up_to(file, &mut bytes[got..], offset + got as u64)?;
        bytes.truncate(got + more);
    }
    bytes.truncate(lengths.record);
    Ok(record::parse(&bytes, segment)
        .ok()
        .filter(|_| bytes.len() == lengths.record)
        .map(|record| (record, bytes)))
}

/// The header of the record at a place; `None` if there is none. What follows it is not looked at.
pub fn read_header(file: &File, segment: u64, offset: u64) -> io::Result<Option<[u8; HEADER_BYTES]>> {
    let mut header = [0; HEADER_BYTES];
    let got = read_up_to(file, &mut header, offset)?;
    Ok(record::check_header(&header[..got], segment).is_ok().then_some(header))
}

/// A record up to the end of its URL. The rest of it was not looked at.
pub struct RecordStart {
    bytes: Vec<u8>,
    record_bytes: usize,
}

/// Bytes of the first read of it; few URLs are longer.
const START_READ: usize = 1 << 10;

impl RecordStart {
    pub fn new() -> RecordStart {
        RecordStart { bytes: Vec::with_capacity(START_READ), record_bytes: 0 }
    }

    pub fn header(&self) -> &[u8] {
        &self.bytes[..HEADER_BYTES]
    }

    pub fn url(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Bytes of the whole record, by its header.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes as u64
    }

    /// Reads the one at a place; false if there is none.
    pub fn read(&mut self, file: &File, segment: u64, offset: u64) -> io::Result<bool> {
        self.bytes.resize(START_READ, 0);
        let mut got = read_up_to(file, &mut self.bytes, offset)?;
        let Ok(lengths) = record::check_header(&self.bytes[..got], segment) else {
            return Ok(false);
        };
        let need = HEADER_BYTES + lengths.url;
        if need > got {
            self.bytes.resize(need, 0);
            got = read_up_to(file, &mut self.bytes, offset)?;
        }
        self.bytes.truncate(need);
        self.record_bytes = lengths.record;
        Ok(got >= need)
    }
}

/// Shows the header and the URL of every record, by jumping from one to the next. What it shows may not be whole.
pub fn skim(file: &File, segment: u64, mut show: impl FnMut(&[u8], &[u8], u64)) -> io::Result<()> {
    let mut start = RecordStart::new();
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    while start.read(file, segment, offset)? {
        show(start.header(), start.url(), offset);
        offset += start.record_bytes();
    }
    Ok(())
}

fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
