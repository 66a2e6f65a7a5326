use super::bits::{BLOCK, pack, packed_bytes, unpack, width};
use super::impacts::Impacts;
use crate::base::u32_at;
use crate::base::varint::{put, take_u32};

/// A head of a block: its last story, the end of its bytes and that of its places, each from the first on, and its best.
pub(super) const HEAD_BYTES: usize = 12 + Impacts::BYTES;

/// Writes the postings of one word after the other, whose stories ascend.
pub struct PostingsWriter {
    heads: Vec<u8>,
    blocks: Vec<u8>,
    gaps: [u32; BLOCK],
    counts: [u32; BLOCK],
    /// Those of the block that is not written yet.
    waiting: usize,
    stories: u32,
    /// The story behind the last one.
    next: u32,
    places_bytes: u32,
    impacts: Impacts,
}

impl PostingsWriter {
    pub fn new() -> PostingsWriter {
        PostingsWriter {
            heads: Vec::new(),
            blocks: Vec::new(),
            gaps: [0; BLOCK],
            counts: [0; BLOCK],
            waiting: 0,
            stories: 0,
            next: 0,
            places_bytes: 0,
            impacts: Impacts::default(),
        }
    }

    /// Adds a story that has the word so often, at places of so many bytes, and is so long.
    #[inline]
    pub fn put(&mut self, story: u32, count: u32, places_bytes: u32, length: u8) {
        self.gaps[self.waiting] = story - self.next;
        self.counts[self.waiting] = count - 1;
        self.impacts.put(count, length);
        self.places_bytes += places_bytes;
        self.next = story + 1;
        self.waiting += 1;
        self.stories += 1;
        if self.waiting == BLOCK {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let (of_gap, of_count) = (width(&self.gaps), width(&self.counts));
        self.blocks.extend_from_slice(&[of_gap as u8, of_count as u8]);
        pack(&self.gaps, of_gap, &mut self.blocks);
        pack(&self.counts, of_count, &mut self.blocks);
        for number in [self.next - 1, self.blocks.len() as u32, self.places_bytes] {
            self.heads.extend_from_slice(&number.to_le_bytes());
        }
        self.impacts.write(&mut self.heads);
        (self.waiting, self.impacts) = (0, Impacts::default());
    }

    /// Writes what was added behind `out`, and begins anew. Says how many stories there were; in `out` are no places.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&self.heads);
        out.extend_from_slice(&self.blocks);
        for (gap, count) in self.gaps.iter().zip(&self.counts).take(self.waiting) {
            put(out, u64::from(*gap) << 1 | u64::from(*count == 0));
            if *count > 0 {
                put(out, u64::from(*count));
            }
        }
        self.heads.clear();
        self.blocks.clear();
        (self.waiting, self.next, self.places_bytes) = (0, 0, 0);
        self.impacts = Impacts::default();
        std::mem::take(&mut self.stories)
    }
}

/// Reads a block: its stories and how often each has the word. `next` is the story behind the last of the block before.
pub(super) fn read_block(
    bytes: &[u8],
    next: u32,
    stories: &mut [u32; BLOCK],
    counts: &mut [u32; BLOCK],
) -> Option<()> {
    let (&[of_gap, of_count], packed) = bytes.split_first_chunk()?;
    let (of_gap, of_count) = (u32::from(of_gap), u32::from(of_count));
    unpack(packed, of_gap, stories)?;
    unpack(packed.get(packed_bytes(of_gap)..)?, of_count, counts)?;
    let mut at = next;
    for story in stories.iter_mut() {
        *story = story.wrapping_add(at);
        at = story.wrapping_add(1);
    }
    counts.iter_mut().for_each(|count| *count = count.saturating_add(1));
    // Smaller gaps do not go around.
    let may_wrap = of_gap >= u32::BITS - BLOCK.ilog2();
    (!may_wrap || stories.is_sorted_by(|one, next| one < next)).then_some(())
}

/// Takes one of the last few off the front.
pub(super) fn take_one(bytes: &mut &[u8], next: u32) -> Option<(u32, u32)> {
    let gap = crate::base::varint::take(bytes)?;
    let story = u32::try_from(gap >> 1).ok()?.checked_add(next)?;
    let count = if gap & 1 == 1 { 1 } else { take_u32(bytes)?.checked_add(1)? };
    Some((story, count))
}

/// Goes through all postings of a word; None if they are damaged.
pub fn each_posting(stories: u32, bytes: &[u8], mut tell: impl FnMut(u32, u32) -> Option<()>) -> Option<()> {
    let blocks = stories as usize / BLOCK;
    let (heads, bytes) = bytes.split_at_checked(blocks * HEAD_BYTES)?;
    let (mut from, mut next) = (0, 0);
    let (mut here, mut counts) = ([0; BLOCK], [0; BLOCK]);
    for head in heads.as_chunks::<HEAD_BYTES>().0 {
        let end = u32_at(head, 4) as usize;
        read_block(bytes.get(from..end)?, next, &mut here, &mut counts)?;
        if here[BLOCK - 1] != u32_at(head, 0) {
            return None;
        }
        for (story, count) in here.iter().zip(&counts) {
            if *story < next {
                return None;
            }
            tell(*story, *count)?;
            next = story.checked_add(1)?;
        }
        from = end;
    }
    let mut last = bytes.get(from..)?;
    for _ in 0..stories as usize % BLOCK {
        let (story, count) = take_one(&mut last, next)?;
        tell(story, count)?;
        next = story.checked_add(1)?;
    }
    last.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::search::tests::skewed;

    #[test]
    fn postings_come_back_and_a_damaged_list_is_no_panic() {
        let (mut rng, mut writer) = (Rng::new(3), PostingsWriter::new());
        for number in [0, 1, 5, 127, 128, 129, 1_000] {
            let (mut list, mut next) = (Vec::new(), 0);
            for _ in 0..number {
                let story = next + skewed(&mut rng, 1_000) as u32;
                list.push((story, 1 + skewed(&mut rng, 9) as u32));
                next = story + 1;
            }
            list.iter().for_each(|(story, count)| writer.put(*story, *count, *count, 40));
            let mut bytes = vec![];
            assert_eq!(writer.finish(&mut bytes), number);
            let mut read = vec![];
            let mut tell = |story, count| {
                read.push((story, count));
                Some(())
            };
            each_posting(number, &bytes, &mut tell).unwrap();
            assert_eq!(read, list);
            for _ in 0..200 {
                let mut wrong = bytes.clone();
                wrong.truncate(rng.below(1 + bytes.len() as u64) as usize);
                if let Some(at) = (wrong.len() as u64).checked_sub(1).map(|last| rng.below(last + 1) as usize)
                {
                    wrong[at] ^= 1 << rng.below(8);
                }
                each_posting(number, &wrong, |_, _| Some(()));
            }
        }
    }
}
