//! Blocks of the ledger: a header with a checksum, and entries.

use crate::base::u32_at;
use crate::storage::Bytes;
use std::io;

/// A block as it is in the file, checked.
pub(super) struct Block {
    /// The number of its first entry.
    pub first: u32,
    pub count: u32,
    /// Header and entries.
    pub bytes: Vec<u8>,
}

/// What a scan found beside blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Where the last whole block ends.
    pub end: u64,
    /// What is behind it.
    pub torn_bytes: u64,
    /// Places and lengths of what cannot be read between blocks.
    pub damaged: Vec<(u64, u64)>,
}

/// Magic, length of the whole, first number, count, checksum.
pub(super) const HEADER_BYTES: usize = 20;
const MAGIC: [u8; 4] = *b"sto\x01";
/// One entry is added when a block is nearly full; a URL has 16 KiB at most.
const BYTES_MAX: usize = 64 << 10;
const CHUNK: usize = 1 << 20;

/// Makes a block of entries.
pub(super) fn sealed(first: u32, count: u32, payload: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&MAGIC);
    for number in [(HEADER_BYTES + payload.len()) as u32, first, count, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(payload);
    let crc = checksum(&out[begin..]);
    out[begin + 16..begin + 20].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..16]), &block[HEADER_BYTES..])
}

/// The length of the whole block that bytes begin with; `None` if they do not.
fn block_at(bytes: &[u8]) -> Option<usize> {
    let len = bytes.get(..HEADER_BYTES).filter(|header| header[..4] == MAGIC).map(|header| u32_at(header, 4))?;
    let len = usize::try_from(len).ok().filter(|len| (HEADER_BYTES..=BYTES_MAX).contains(len))?;
    let block = bytes.get(..len)?;
    (u32_at(block, 16) == checksum(block)).then_some(len)
}

impl Block {
    fn of(bytes: &[u8]) -> Block {
        Block { first: u32_at(bytes, 8), count: u32_at(bytes, 12), bytes: bytes.to_vec() }
    }

    /// The block at a place of a file; `None` if there is none.
    pub fn read(file: &Bytes, at: u64) -> io::Result<Option<Block>> {
        let mut bytes = vec![0; BYTES_MAX.min(file.len().saturating_sub(at) as usize)];
        let read = file.read_at(&mut bytes, at)?;
        Ok(block_at(&bytes[..read]).map(|len| Block::of(&bytes[..len])))
    }
}

/// Goes through the blocks of a file. What is no block is passed over, up to the next one; what has none behind it is
/// the torn end.
pub(super) fn scan(file: &Bytes, from: u64, mut each: impl FnMut(u64, &Block)) -> io::Result<Scan> {
    let len = file.len();
    let mut found = Scan { end: from.min(len), ..Scan::default() };
    let mut chunk = Vec::new();
    // Where the chunk begins, and where in it we are.
    let (mut base, mut at) = (from, 0);
    while base + (at as u64) < len {
        if chunk.len() - at < BYTES_MAX && base + (chunk.len() as u64) < len {
            base += at as u64;
            at = 0;
            chunk.resize(CHUNK.min((len - base) as usize), 0);
            let read = file.read_at(&mut chunk, base)?;
            chunk.truncate(read);
            if read == 0 {
                break;
            }
        }
        match block_at(&chunk[at..]) {
            Some(block_len) => {
                let place = base + at as u64;
                if place > found.end {
                    found.damaged.push((found.end, place - found.end));
                }
                each(place, &Block::of(&chunk[at..at + block_len]));
                at += block_len;
                found.end = base + at as u64;
            }
            None => {
                let next = memchr::memmem::find(&chunk[at + 1..], &MAGIC).map(|next| at + 1 + next);
                // The magic may be cut by the end of the chunk.
                at = next.unwrap_or_else(|| chunk.len().saturating_sub(3).max(at + 1));
            }
        }
    }
    found.torn_bytes = len.saturating_sub(found.end);
    Ok(found)
}
