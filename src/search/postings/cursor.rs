use super::bits::BLOCK;
use super::extent::{Extent, damaged};
use super::impacts::Impacts;
use super::writer::{HEAD_BYTES, read_block, take_one};
use crate::base::u32_at;
use std::io;

/// What is behind the last story.
pub const NONE: u32 = u32::MAX;

/// Stories that are compared at once.
const COMPARED: usize = 16;

/// A place in the postings of one word in one segment. It goes forward only.
pub struct Cursor {
    stories: u32,
    heads: Vec<u8>,
    /// The blocks and the last few, behind the heads.
    extent: Extent,
    /// The block that the cursor is in, whether it is read, and where in it; the last few are a block, too.
    block: usize,
    block_end: u32,
    is_read: bool,
    at: usize,
    /// Behind the last story are [`NONE`].
    here: [u32; BLOCK],
    counts: [u32; BLOCK],
}

impl Cursor {
    /// Of a word that so many stories have; the extent has its postings.
    pub fn new(stories: u32, mut extent: Extent) -> io::Result<Cursor> {
        let heads = extent.bytes(0, stories as usize / BLOCK * HEAD_BYTES)?.to_vec();
        let mut cursor = Cursor {
            stories,
            heads,
            extent,
            block: 0,
            block_end: 0,
            is_read: false,
            at: 0,
            here: [NONE; BLOCK],
            counts: [0; BLOCK],
        };
        cursor.enter(0);
        Ok(cursor)
    }

    /// How many stories have the word.
    pub fn stories(&self) -> u32 {
        self.stories
    }

    fn head(&self, block: usize) -> Option<&[u8]> {
        self.heads.get(block * HEAD_BYTES..(block + 1) * HEAD_BYTES)
    }

    fn whole_blocks(&self) -> usize {
        self.heads.len() / HEAD_BYTES
    }

    /// The last story of the block that the cursor is in; of the last few it may be any.
    pub fn block_end(&self) -> u32 {
        self.block_end
    }

    /// Goes to the block that has a story if any has, without reading it.
    #[inline]
    pub fn seek_block(&mut self, story: u32) {
        if self.block_end < story {
            let block = self.block_of(story);
            self.enter(block);
        }
    }

    fn block_of(&self, story: u32) -> usize {
        let ends = self.heads.as_chunks::<HEAD_BYTES>().0;
        let ahead = &ends[self.block.min(ends.len())..];
        // It is mostly near.
        let near = ahead.iter().take(8).position(|head| u32_at(head, 0) >= story);
        self.block + near.unwrap_or_else(|| ahead.partition_point(|head| u32_at(head, 0) < story))
    }

    fn enter(&mut self, block: usize) {
        (self.block, self.is_read, self.at) = (block, false, 0);
        self.block_end = self.head(block).map_or(NONE - 1, |head| u32_at(head, 0));
    }

    /// The most that `rank` gives to a story of the block that the cursor is in; None where the block does not say.
    #[inline]
    pub fn best(&self, rank: impl Fn(u8, u8) -> f32) -> Option<f32> {
        let head = self.head(self.block)?;
        Some(Impacts::read(&head[12..]).fold(0.0, |best, (count, length)| rank(count, length).max(best)))
    }

    /// Goes to the first story that is not before this one, and says which; [`NONE`] if there is none.
    #[inline]
    pub fn seek(&mut self, story: u32) -> io::Result<u32> {
        self.seek_block(story);
        if !self.is_read {
            self.read()?;
        }
        // Some are compared at once, whichever of them it is.
        for (number, some) in self.here.as_chunks::<COMPARED>().0.iter().enumerate().skip(self.at / COMPARED)
        {
            let before = some.iter().map(|here| u32::from(*here < story)).sum::<u32>() as usize;
            if before < COMPARED {
                self.at = number * COMPARED + before;
                return Ok(self.here[self.at]);
            }
        }
        self.at = BLOCK;
        match self.block < self.whole_blocks() {
            true => Err(damaged("a block of stories is not what its head says")),
            false => Ok(NONE),
        }
    }

    /// How often the story that the cursor is at has the word.
    pub fn count(&self) -> u32 {
        self.counts[self.at.min(BLOCK - 1)]
    }

    /// Where the cursor is: its block, and the number in it.
    pub fn place(&self) -> (usize, usize) {
        (self.block, self.at)
    }

    /// How often the first stories of the block have the word, up to that of the cursor.
    pub fn counts_before(&self) -> &[u32] {
        &self.counts[..self.at.min(BLOCK)]
    }

    /// Where the places of the block begin.
    pub fn places_from(&self) -> usize {
        self.block
            .checked_sub(1)
            .and_then(|block| self.head(block))
            .map_or(0, |head| u32_at(head, 8) as usize)
    }

    fn read(&mut self) -> io::Result<()> {
        let before = self.block.checked_sub(1).and_then(|block| self.head(block));
        let (from, next) =
            before.map_or((0, 0), |head| (u32_at(head, 4) as usize, u32_at(head, 0).saturating_add(1)));
        let from = self.heads.len() + from;
        let end = self.head(self.block).map(|head| self.heads.len() + u32_at(head, 4) as usize);
        let wrong = || damaged("a list of stories is damaged");
        match end {
            Some(end) => {
                let last = self.block_end;
                let bytes = self.extent.bytes(from, end)?;
                read_block(bytes, next, &mut self.here, &mut self.counts).ok_or_else(wrong)?;
                if self.here[BLOCK - 1] != last || last < next {
                    return Err(wrong());
                }
            }
            None => {
                let mut bytes = self.extent.bytes(from, self.extent.len())?;
                self.here.fill(NONE);
                let (mut next, last) = (next, self.stories as usize % BLOCK);
                for (here, count) in self.here.iter_mut().zip(&mut self.counts).take(last) {
                    let one = take_one(&mut bytes, next).filter(|one| one.0 < NONE).ok_or_else(wrong)?;
                    (*here, *count) = one;
                    next = one.0 + 1;
                }
            }
        }
        self.is_read = true;
        Ok(())
    }
}
