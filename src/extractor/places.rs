//! Where the text of each story lies: eight bytes a story, in a file beside the log that can be made again from it.
//!
//! ```text
//!   head: magic, version, bytes of the log that are in here, checksum │ story 0 │ story 1 │ …
//!                                                                      position, with a check; 0: no text
//! ```
//!
//! It is a hint: what it leads to is looked at, and what it does not know is looked for.

use crate::base::{u32_at, u64_at};
use crate::storage::Bytes;
use std::io;

pub(super) struct Places {
    bytes: Bytes,
}

/// What a place says of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    At(u64),
    /// The place is damaged.
    Unknown,
}

const HEAD_BYTES: u64 = 24;
const MAGIC: &[u8; 8] = b"NEPHTPL1";
const ENTRY_BYTES: u64 = 8;

impl Places {
    pub fn over(bytes: Bytes) -> Places {
        Places { bytes }
    }

    /// How far the log is in here; 0 if nobody can say.
    pub fn covered(&self) -> io::Result<u64> {
        let mut head = [0; HEAD_BYTES as usize];
        let read = self.bytes.read_at(&mut head, 0)?;
        let is_ours =
            read == head.len() && head[..8] == *MAGIC && u32_at(&head, 16) == crc32c::crc32c(&head[..16]);
        Ok(if is_ours { u64_at(&head, 8) } else { 0 })
    }

    /// Forgets everything.
    pub fn clear(&mut self) -> io::Result<()> {
        self.bytes.truncate(0)
    }

    pub fn note(&mut self, story: u32, position: u64) -> io::Result<()> {
        self.bytes.write_at(&entry(story, position).to_le_bytes(), place(story))
    }

    pub fn of(&self, story: u32) -> io::Result<Told> {
        let mut bytes = [0; ENTRY_BYTES as usize];
        if self.bytes.read_at(&mut bytes, place(story))? < bytes.len() {
            return Ok(Told::Nothing);
        }
        let told = u64::from_le_bytes(bytes);
        let position = told >> 16;
        Ok(match told {
            0 => Told::Nothing,
            _ if told == entry(story, position) => Told::At(position),
            _ => Told::Unknown,
        })
    }

    /// Makes the places durable, then says that the log is in here up to `covered`.
    pub fn sync(&mut self, covered: u64) -> io::Result<()> {
        self.bytes.sync()?;
        let mut head = [0; HEAD_BYTES as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..16].copy_from_slice(&covered.to_le_bytes());
        let crc = crc32c::crc32c(&head[..16]);
        head[16..20].copy_from_slice(&crc.to_le_bytes());
        self.bytes.write_at(&head, 0)
    }
}

fn place(story: u32) -> u64 {
    HEAD_BYTES + u64::from(story) * ENTRY_BYTES
}

/// A position and a check in two bytes, neither of them 0: one byte that is wrong makes no empty place.
fn entry(story: u32, position: u64) -> u64 {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&story.to_le_bytes());
    bytes[4..].copy_from_slice(&position.to_le_bytes());
    let check = u64::from(crc32c::crc32c(&bytes) & 0xffff) | 0x0101;
    position << 16 | check
}
