use super::groups::Groups;
use super::line::{HEAD_BYTES, Line, LineHead};
use super::spill_file::{Part, SpillFile};
use crate::limits::URL_BYTES_MAX;
use crate::proto::reflog::{DIGITS_MAX, TAG_BYTES_MAX};
use std::io;
use std::mem;

/// Which bits of an id say where a line goes.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// Bits from the top that all lines share.
    pub shared: u32,
    /// Those behind them that are gone by.
    pub bits: u32,
}

/// Lines by some bits of their id, in memory as far as the budget goes.
pub(super) struct Buckets<'s> {
    ways: Ways,
    buckets: Vec<Bucket>,
    /// The chunk of the lines that come.
    chunk: u32,
    /// Whether it is said.
    has_chunks: bool,
    /// Blocks that can be filled again.
    free: Vec<Vec<u8>>,
    /// Those and all others.
    blocks: usize,
    block_bytes: usize,
    blocks_max: usize,
    spill: &'s SpillFile,
}

#[derive(Default)]
struct Bucket {
    open: Vec<u8>,
    full: Vec<Vec<u8>>,
    /// What lies in the file; it came before all else.
    spilled: Vec<Part>,
    /// The chunk that the last line was said to be of.
    chunk: Option<u32>,
}

/// Bytes of a block, which may be fewer where memory is short. A line never lies in two.
const BLOCK_BYTES: usize = 32 * 1_024;
const BLOCK_BYTES_MIN: usize = 10 * 1_024;
/// Each bucket has one open, and some are full.
const FULL_BLOCKS_MIN: usize = 64;
/// A bucket that has so many times as much as the others is put together before anything is spilled.
const SKEW: usize = 4;

const _: () = assert!(
    URL_BYTES_MAX + 2 * DIGITS_MAX + TAG_BYTES_MAX.next_multiple_of(256) + 2 * HEAD_BYTES <= BLOCK_BYTES_MIN
);

impl Ways {
    /// The partitions of an epoch.
    pub const PARTITIONS: Ways = Ways { shared: 0, bits: 8 };

    pub fn count(self) -> usize {
        1 << self.bits
    }

    fn of(self, id: u64) -> usize {
        (id << self.shared >> (64 - self.bits)) as usize
    }

    /// Bits that lines of one way share.
    pub fn shared_behind(self) -> u32 {
        self.shared + self.bits
    }
}

impl<'s> Buckets<'s> {
    /// For lines of one reader, or of one of several, which have chunks.
    pub fn new(ways: Ways, memory_bytes: usize, has_chunks: bool, spill: &'s SpillFile) -> Buckets<'s> {
        let chunk = (!has_chunks).then_some(0);
        let block_bytes = (memory_bytes / 1_024).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES);
        Buckets {
            ways,
            buckets: (0..ways.count()).map(|_| Bucket { chunk, ..Bucket::default() }).collect(),
            chunk: 0,
            has_chunks,
            free: Vec::new(),
            blocks: 0,
            block_bytes,
            blocks_max: (memory_bytes / block_bytes).max(ways.count() + FULL_BLOCKS_MIN),
            spill,
        }
    }

    /// With empty blocks of others that had the same memory, which are filled first.
    pub fn with_blocks(mut self, blocks: Vec<Vec<u8>>) -> Buckets<'s> {
        (self.blocks, self.free) = (blocks.len(), blocks);
        self
    }

    /// Lines from now on are of this chunk.
    pub fn begin_chunk(&mut self, chunk: u32) {
        self.chunk = chunk;
    }

    pub fn push(&mut self, line: &Line<'_>) -> io::Result<()> {
        let bucket = self.room_for(line.id, line.bytes())?;
        line.write(&mut bucket.open);
        Ok(())
    }

    /// Lines as they lie in a part.
    pub fn push_all(&mut self, part: &[u8]) -> io::Result<()> {
        let mut rest = part;
        while !rest.is_empty() {
            let head = LineHead::read(rest);
            if let Some(chunk) = head.chunk() {
                self.begin_chunk(chunk);
                rest = &rest[HEAD_BYTES..];
                continue;
            }
            let (line, others) = rest.split_at(head.bytes());
            self.room_for(head.id(), line.len())?.open.extend_from_slice(line);
            rest = others;
        }
        Ok(())
    }

    /// The bucket of an id, with room in its open block and the right chunk said.
    fn room_for(&mut self, id: u64, bytes: usize) -> io::Result<&mut Bucket> {
        let at = self.ways.of(id);
        let open = &self.buckets[at].open;
        if open.capacity() - open.len() < bytes + HEAD_BYTES {
            self.open_block(at)?;
        }
        let bucket = &mut self.buckets[at];
        bucket.say_chunk(self.chunk);
        Ok(bucket)
    }

    fn open_block(&mut self, at: usize) -> io::Result<()> {
        if self.blocks >= self.blocks_max && self.free.is_empty() {
            self.relieve()?;
        }
        let block = self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            Vec::with_capacity(self.block_bytes)
        });
        let bucket = &mut self.buckets[at];
        let before = mem::replace(&mut bucket.open, block);
        match before.is_empty() {
            true if before.capacity() > 0 => self.free.push(before),
            true => {}
            false => bucket.full.push(before),
        }
        Ok(())
    }

    /// Makes room: puts together what came in great numbers, and if that is not enough, spills all.
    fn relieve(&mut self) -> io::Result<()> {
        let mean = self.blocks / self.buckets.len();
        for at in 0..self.buckets.len() {
            if self.buckets[at].full.len() > SKEW * mean {
                self.put_together(at);
            }
        }
        if self.free.len() >= self.blocks / 2 {
            return Ok(());
        }
        for bucket in &mut self.buckets {
            let blocks: Vec<&[u8]> = bucket.blocks().collect();
            if blocks.is_empty() {
                continue;
            }
            bucket.spilled.push(Part::Spilled(self.spill.write(&blocks)?));
            bucket.open.clear();
            for mut block in bucket.full.drain(..) {
                block.clear();
                self.free.push(block);
            }
        }
        Ok(())
    }

    /// Makes one line, or two, of all those of a URL.
    fn put_together(&mut self, at: usize) {
        let bucket = &mut self.buckets[at];
        let mut blocks = mem::take(&mut bucket.full);
        blocks.push(mem::take(&mut bucket.open));
        let parts: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let mut groups = Groups::new();
        groups.clear(self.ways.shared_behind(), 0);
        parts.iter().for_each(|part| groups.add_all(part));
        let mut made = Bucket { chunk: (!self.has_chunks).then_some(0), ..Bucket::default() };
        let mut allocated = 0;
        groups.for_each_line(&parts, |chunk, line| {
            if made.open.capacity() - made.open.len() < line.bytes() + HEAD_BYTES {
                let before = mem::replace(&mut made.open, Vec::with_capacity(self.block_bytes));
                allocated += 1;
                if !before.is_empty() {
                    made.full.push(before);
                }
            }
            made.say_chunk(chunk);
            line.write(&mut made.open);
        });
        (bucket.open, bucket.full, bucket.chunk) = (made.open, made.full, made.chunk);
        self.blocks += allocated;
        // As many as were made are let go.
        for (number, mut block) in blocks.into_iter().enumerate() {
            if number < allocated || block.capacity() == 0 {
                self.blocks -= usize::from(block.capacity() > 0);
                continue;
            }
            block.clear();
            self.free.push(block);
        }
    }

    /// What has come, by bucket, each in the order in which it came; and blocks that are empty.
    pub fn into_parts(self) -> (Vec<Vec<Part>>, Vec<Vec<u8>>) {
        let parts = |bucket: Bucket| {
            let mut parts = bucket.spilled;
            let blocks = bucket.full.into_iter().chain([bucket.open]);
            parts.extend(blocks.filter(|block| !block.is_empty()).map(Part::Memory));
            parts
        };
        (self.buckets.into_iter().map(parts).collect(), self.free)
    }
}

impl Bucket {
    fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().chain([&self.open]).map(Vec::as_slice).filter(|block| !block.is_empty())
    }

    fn say_chunk(&mut self, chunk: u32) {
        if self.chunk != Some(chunk) {
            self.chunk = Some(chunk);
            Line::write_chunk_mark(chunk, &mut self.open);
        }
    }
}
