use super::cursor::Cursor;
use super::extent::{Extent, damaged};
use crate::base::varint::take_u32;
use std::io;

/// Where a word stands in the stories that have it, which are asked for in ascending order.
pub struct Places {
    extent: Extent,
    /// The block, the number of a story in it, and how many places all stories before that one have.
    block: usize,
    number: usize,
    before: u64,
    /// How many places of the block were read, and where the next one is.
    read: u64,
    at: usize,
}

/// Bytes that are skipped at one time.
const STEP_BYTES: u64 = 16 << 10;
/// In front of the first block.
const NOWHERE: usize = usize::MAX;

impl Places {
    /// The extent has the places of the word.
    pub fn new(extent: Extent) -> Places {
        Places { extent, block: NOWHERE, number: 0, before: 0, read: 0, at: 0 }
    }

    /// Reads the places in the story that the cursor is at, each with `to_end` added.
    pub fn read(&mut self, cursor: &Cursor, to_end: u32, places: &mut Vec<u32>) -> io::Result<()> {
        places.clear();
        self.go_to(cursor)?;
        let (bytes, count) = self.here(cursor)?;
        let length = read_gaps(bytes, count, to_end, places).ok_or_else(wrong)?;
        self.passed(count, length);
        Ok(())
    }

    /// Leaves of some places, which ascend, those that the story has that the cursor is at, each with `to_end` added.
    pub fn keep(&mut self, cursor: &Cursor, to_end: u32, places: &mut Vec<u32>) -> io::Result<()> {
        self.go_to(cursor)?;
        let (bytes, count) = self.here(cursor)?;
        let (read, length) = keep_common(bytes, count, to_end, places).ok_or_else(wrong)?;
        self.passed(read, length);
        Ok(())
    }

    /// Goes to the places of the story that the cursor is at.
    fn go_to(&mut self, cursor: &Cursor) -> io::Result<()> {
        let (block, number) = cursor.place();
        if block != self.block || number < self.number {
            (self.block, self.number, self.before) = (block, 0, 0);
            (self.read, self.at) = (0, cursor.places_from());
        }
        let passed = &cursor.counts_before()[self.number.min(number)..];
        // A count is of 32 bits, and a block has 128 of them.
        self.before += passed.iter().map(|count| u64::from(*count)).sum::<u64>();
        self.number = number;
        if self.before < self.read {
            // The same story is asked for once more.
            (self.read, self.at) = (0, cursor.places_from());
        }
        while self.read < self.before {
            let left = self.before - self.read;
            // No number is longer than five bytes, and none shorter than one.
            let to = self.extent.len().min(self.at.saturating_add((left * 5).min(STEP_BYTES) as usize));
            let (read, length) = skip_numbers(self.extent.bytes(self.at, to)?, left);
            if read == 0 {
                return Err(wrong());
            }
            self.passed(read, length);
        }
        Ok(())
    }

    /// The bytes that begin with the places of the story, and how many these are.
    fn here(&mut self, cursor: &Cursor) -> io::Result<(&[u8], u64)> {
        let count = u64::from(cursor.count());
        let to = self.extent.len().min(self.at.saturating_add(count.saturating_mul(5) as usize));
        Ok((self.extent.bytes(self.at, to)?, count))
    }

    fn passed(&mut self, read: u64, length: usize) {
        self.read += read;
        self.at += length;
    }
}

fn wrong() -> io::Error {
    damaged("the places of a word are damaged")
}

/// A bit for each byte of eight that is not the last one of its number.
const GOES_ON: u64 = 0x8080_8080_8080_8080;

/// The next eight gaps, if each is of one byte: so are most where a word is frequent.
#[inline]
fn eight_gaps(bytes: &[u8], at: usize) -> Option<[u8; 8]> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    (u64::from_le_bytes(*eight) & GOES_ON == 0).then_some(*eight)
}

/// The gap at a place, and the place behind it.
#[inline]
fn gap_at(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let byte = *bytes.get(at)?;
    if byte < 0x80 {
        return Some((u32::from(byte), at + 1));
    }
    let mut rest = &bytes[at..];
    let gap = take_u32(&mut rest)?;
    Some((gap, bytes.len() - rest.len()))
}

/// Reads so many gaps as places from `place` on; says how long they are.
#[inline]
fn read_gaps(bytes: &[u8], count: u64, mut place: u32, places: &mut Vec<u32>) -> Option<usize> {
    let (mut left, mut at) = (count, 0);
    while left > 0 {
        if left >= 8
            && let Some(eight) = eight_gaps(bytes, at)
        {
            let next = eight.map(|gap| {
                place = place.wrapping_add(u32::from(gap));
                place
            });
            places.extend_from_slice(&next);
            (left, at) = (left - 8, at + 8);
            continue;
        }
        let gap;
        (gap, at) = gap_at(bytes, at)?;
        place = place.checked_add(gap)?;
        places.push(place);
        left -= 1;
    }
    Some(at)
}

/// Leaves of some places, which ascend, those that are among so many that gaps lead to from `place` on; says how many gaps were
/// read, and how long they are.
#[inline]
fn keep_common(bytes: &[u8], count: u64, mut place: u32, places: &mut Vec<u32>) -> Option<(u64, usize)> {
    let (mut left, mut at, mut kept) = (count, 0, 0);
    // The place that was read last is one, once any was.
    let mut is_place = false;
    for number in 0..places.len() {
        let wanted = places[number];
        while left >= 8
            && let Some(eight) = eight_gaps(bytes, at)
        {
            let next = place.wrapping_add(sum(eight));
            if next >= wanted {
                break;
            }
            (place, is_place, left, at) = (next, true, left - 8, at + 8);
        }
        while left > 0 && (place < wanted || !is_place) {
            let gap;
            (gap, at) = gap_at(bytes, at)?;
            (place, is_place, left) = (place.checked_add(gap)?, true, left - 1);
        }
        places[kept] = wanted;
        kept += usize::from(is_place && place == wanted);
        if left == 0 && place < wanted {
            break;
        }
    }
    places.truncate(kept);
    Some((count - left, at))
}

/// The sum of eight bytes: of those that are next to each other, and of these sums.
#[inline]
fn sum(eight: [u8; 8]) -> u32 {
    let all = u64::from_le_bytes(eight);
    let pairs = (all & 0x00ff_00ff_00ff_00ff) + (all >> 8 & 0x00ff_00ff_00ff_00ff);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

/// Goes over so many numbers of seven bits a byte, or over as many as there are; says how many, and how long they are.
#[inline]
pub fn skip_numbers(bytes: &[u8], numbers: u64) -> (u64, usize) {
    let (mut left, mut at) = (numbers, 0);
    for eight in bytes.as_chunks::<8>().0 {
        let ends = u64::from((!u64::from_le_bytes(*eight) & GOES_ON).count_ones());
        if ends >= left {
            break;
        }
        (left, at) = (left - ends, at + 8);
    }
    let mut end = at;
    while left > 0
        && let Some(byte) = bytes.get(at)
    {
        at += 1;
        if *byte < 0x80 {
            (left, end) = (left - 1, at);
        }
    }
    // A number whose end is missing is none.
    if left == 0 { (numbers, end) } else { (numbers - left, last_end(bytes)) }
}

/// The end of the last number that is whole.
fn last_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte < 0x80).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::base::varint::{put, take};

    #[test]
    fn gaps_are_read_as_one_by_one() {
        let mut rng = Rng::new(12);
        for _ in 0..1_000 {
            let mut bytes = Vec::new();
            let bits = 1 + rng.below(16);
            (0..rng.below(60)).for_each(|_| put(&mut bytes, rng.below(1 << bits) >> rng.below(bits)));
            for count in 0..70 {
                let (mut rest, mut one_by_one, mut place) = (&bytes[..], Vec::new(), 7);
                while (one_by_one.len() as u64) < count
                    && let Some(gap) = take(&mut rest)
                {
                    place += gap as u32;
                    one_by_one.push(place);
                }
                let mut places = Vec::new();
                let end = read_gaps(&bytes, count, 7, &mut places);
                let is_whole = one_by_one.len() as u64 == count;
                assert_eq!(end, is_whole.then(|| bytes.len() - rest.len()));
                assert!(!is_whole || places == one_by_one);
                let mut some: Vec<u32> =
                    (0..rng.below(12)).map(|_| (rng.below(1 << 17) >> rng.below(17)) as u32).collect();
                some.extend(one_by_one.iter().copied().filter(|_| rng.below(3) == 0));
                some.sort_unstable();
                some.dedup();
                let common: Vec<u32> =
                    some.iter().copied().filter(|place| one_by_one.contains(place)).collect();
                if let Some((read, length)) = keep_common(&bytes, count, 7, &mut some) {
                    assert!(!is_whole || some == common, "{some:?} {common:?} of {one_by_one:?}");
                    assert_eq!(skip_numbers(&bytes, read), (read, length));
                } else {
                    assert!(!is_whole);
                }
            }
        }
    }

    #[test]
    fn as_many_numbers_are_skipped_as_one_by_one() {
        let mut rng = Rng::new(8);
        for _ in 0..500 {
            let mut bytes = Vec::new();
            (0..rng.below(60)).for_each(|_| put(&mut bytes, rng.below(1 << 30) >> rng.below(30)));
            bytes.truncate(rng.below(1 + bytes.len() as u64) as usize);
            for numbers in 0..70 {
                let (mut rest, mut counted, mut end) = (&bytes[..], 0, 0);
                while counted < numbers && take(&mut rest).is_some() {
                    (counted, end) = (counted + 1, bytes.len() - rest.len());
                }
                assert_eq!(skip_numbers(&bytes, numbers), (counted, end), "{numbers} of {bytes:?}");
            }
        }
    }
}
