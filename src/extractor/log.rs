//! The file of texts: a head, then records one after the other.

use super::story_text::{HEAD_BYTES, Head, MAGIC, StoryText};
use crate::base::u32_at;
use crate::storage::Bytes;
use std::io;
use std::path::Path;

/// Magic, version, checksum of both.
pub(super) const FILE_HEAD_BYTES: u64 = 16;
const FILE_MAGIC: &[u8; 8] = b"NEPHTEXT";
const VERSION: u32 = 1;

pub(super) fn file_head() -> [u8; FILE_HEAD_BYTES as usize] {
    let mut head = [0; FILE_HEAD_BYTES as usize];
    head[..8].copy_from_slice(FILE_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Refuses a file that is of another kind or version. A short one is on its way.
pub(super) fn check_file_head(log: &Bytes, path: &Path) -> io::Result<()> {
    let mut head = [0; FILE_HEAD_BYTES as usize];
    if log.read_at(&mut head, 0)? < head.len() || head == file_head() {
        return Ok(());
    }
    let is_ours = head[..8] == *FILE_MAGIC && u32_at(&head, 12) == crc32c::crc32c(&head[..12]);
    let why = match is_ours {
        true => format!(
            "is of version {}, this is {VERSION}: read it with the nephila that wrote it",
            u32_at(&head, 8)
        ),
        false => {
            "is no file of texts, or its head is damaged (move it away: texts are made anew)".to_string()
        }
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display())))
}

/// A record of the log and where it ends.
pub(super) struct Read {
    pub text: StoryText,
    pub at: u64,
    pub end: u64,
    /// Bytes before it that are no record.
    pub damaged: u64,
}

/// The record at a place, if one is there.
pub(super) fn record_at(log: &Bytes, at: u64) -> io::Result<Option<(StoryText, u64)>> {
    let Some(head) = head_at(log, at)? else { return Ok(None) };
    let end = at + head.record_bytes();
    if end > log.len() {
        return Ok(None);
    }
    let mut packed = vec![0; head.packed_bytes];
    let read = log.read_at(&mut packed, at + HEAD_BYTES as u64)?;
    Ok(head.unpack(&packed[..read]).map(|text| (text, end)))
}

pub(super) fn head_at(log: &Bytes, at: u64) -> io::Result<Option<Head>> {
    let mut bytes = [0; HEAD_BYTES];
    let read = log.read_at(&mut bytes, at)?;
    Ok(Head::read(&bytes[..read]))
}

/// The first whole record at or behind a place; `None` if there is none up to the end.
pub(super) fn next_record(log: &Bytes, at: u64) -> io::Result<Option<Read>> {
    let start = at.max(FILE_HEAD_BYTES);
    if let Some((text, end)) = record_at(log, start)? {
        return Ok(Some(Read { text, at: start, end, damaged: 0 }));
    }
    // Damage, or a record on its way: look for a beginning.
    let mut window = vec![0; 1 << 16];
    let mut from = start + 1;
    loop {
        let read = log.read_at(&mut window, from)?;
        if read < HEAD_BYTES {
            return Ok(None);
        }
        for found in memchr::memmem::find_iter(&window[..read], &MAGIC) {
            let at = from + found as u64;
            if let Some((text, end)) = record_at(log, at)? {
                return Ok(Some(Read { text, at, end, damaged: at - start }));
            }
        }
        from += (read - (MAGIC.len() - 1)) as u64;
    }
}
