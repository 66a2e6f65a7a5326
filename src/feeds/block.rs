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
    let len =
        bytes.get(..HEADER_BYTES).filter(|header| header[..4] == MAGIC).map(|header| u32_at(header, 4))?;
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

/// Goes through the blocks of a file. What is no block is passed over, up to the next one.
pub(super) struct Blocks {
    chunk: Vec<u8>,
    /// Where the chunk begins, and where in it we are.
    base: u64,
    at: usize,
    /// Where the last whole block ends.
    end: u64,
    damaged: Vec<(u64, u64)>,
}

impl Blocks {
    pub fn from(at: u64) -> Blocks {
        Blocks { chunk: Vec::new(), base: at, at: 0, end: at, damaged: Vec::new() }
    }

    /// The next block, and its place.
    pub fn next(&mut self, file: &Bytes) -> io::Result<Option<(u64, Block)>> {
        let len = file.len();
        while self.base + (self.at as u64) < len {
            let is_short = self.chunk.len() - self.at < BYTES_MAX;
            if is_short && self.base + (self.chunk.len() as u64) < len {
                self.base += self.at as u64;
                self.at = 0;
                self.chunk.resize(CHUNK.min((len - self.base) as usize), 0);
                let read = file.read_at(&mut self.chunk, self.base)?;
                self.chunk.truncate(read);
                if read == 0 {
                    break;
                }
            }
            let rest = &self.chunk[self.at..];
            let Some(block_len) = block_at(rest) else {
                let next = memchr::memmem::find(&rest[1..], &MAGIC);
                // The magic may be cut by the end of the chunk.
                self.at += next.map_or(rest.len().saturating_sub(3).max(1), |next| next + 1);
                continue;
            };
            let (place, block) = (self.base + self.at as u64, Block::of(&rest[..block_len]));
            if place > self.end {
                self.damaged.push((self.end, place - self.end));
            }
            self.at += block_len;
            self.end = self.base + self.at as u64;
            return Ok(Some((place, block)));
        }
        Ok(None)
    }
}

/// Goes through all blocks from a place on. What has none behind it is the torn end.
pub(super) fn scan(file: &Bytes, from: u64, mut each: impl FnMut(u64, &Block)) -> io::Result<Scan> {
    let mut blocks = Blocks::from(from);
    while let Some((place, block)) = blocks.next(file)? {
        each(place, &block);
    }
    let Blocks { end, damaged, .. } = blocks;
    Ok(Scan { end, torn_bytes: file.len().saturating_sub(end), damaged })
}
