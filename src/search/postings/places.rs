use super::cursor::Cursor;
use super::extent::{Extent, damaged};
use crate::base::varint::take_u32;
use std::io;

/// Where a word stands in the stories that have it, which are asked for in ascending order.
pub struct Places {
    extent: Extent,
    /// The story whose places come next, by its block and its number in it, and where they are.
    block: usize,
    number: usize,
    at: usize,
    is_begun: bool,
}

impl Places {
    /// The extent has the places of the word.
    pub fn new(extent: Extent) -> Places {
        Places { extent, block: 0, number: 0, at: 0, is_begun: false }
    }

    /// The places in the story that the cursor is at, each with `to_end` added.
    pub fn read(&mut self, cursor: &Cursor, to_end: u32, places: &mut Vec<u32>) -> io::Result<()> {
        places.clear();
        let (block, number) = cursor.place();
        if !self.is_begun || block != self.block || number < self.number {
            (self.block, self.number, self.at, self.is_begun) = (block, 0, cursor.places_from(), true);
        }
        let before = &cursor.counts_before()[self.number.min(number)..];
        // A count is of 32 bits, and a block has 128 of them.
        let skipped = before.iter().map(|count| u64::from(*count)).sum::<u64>();
        let wrong = || damaged("the places of a word are damaged");
        let mut left = skipped;
        while left > 0 {
            // No number is longer than five bytes, and none shorter than one.
            let to = self.extent.len().min(self.at.saturating_add((left * 5).min(STEP_BYTES) as usize));
            let bytes = self.extent.bytes(self.at, to)?;
            let (count, length) = skip_numbers(bytes, left);
            if count == 0 {
                return Err(wrong());
            }
            (left, self.at) = (left - count, self.at + length);
        }
        let count = u64::from(cursor.count());
        let to = self.extent.len().min(self.at.saturating_add(count.saturating_mul(5) as usize));
        let bytes = self.extent.bytes(self.at, to)?;
        let mut rest = bytes;
        let mut place = to_end;
        for _ in 0..count {
            place = take_u32(&mut rest).and_then(|gap| place.checked_add(gap)).ok_or_else(wrong)?;
            places.push(place);
        }
        self.at += bytes.len() - rest.len();
        self.number = number + 1;
        Ok(())
    }
}

const STEP_BYTES: u64 = 16 << 10;

/// Goes over so many numbers of seven bits a byte, or over as many as there are; says how many, and how long they are.
#[inline]
pub fn skip_numbers(bytes: &[u8], numbers: u64) -> (u64, usize) {
    let (mut left, mut at) = (numbers, 0);
    for eight in bytes.as_chunks::<8>().0 {
        let ends = u64::from((!u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080).count_ones());
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
