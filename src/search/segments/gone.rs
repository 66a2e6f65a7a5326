use crate::search::postings::damaged;
use crate::storage::replace;
use std::io;
use std::path::Path;

/// Stories of a segment that were replaced: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    bits: Vec<u64>,
    count: u32,
}

impl Gone {
    pub fn of(stories: u32) -> Gone {
        Gone { bits: vec![0; (stories as usize).div_ceil(64)], count: 0 }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub fn has(&self, number: u32) -> bool {
        self.bits.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// False if it was there before.
    pub fn insert(&mut self, number: u32) -> bool {
        let is_new = !self.has(number);
        if is_new && let Some(word) = self.bits.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
            self.count += 1;
        }
        is_new
    }

    /// Those that are here and not in another.
    pub fn since(&self, before: Option<&Gone>) -> impl Iterator<Item = u32> {
        let words = self.bits.iter().enumerate().map(move |(at, word)| {
            (at, word & !before.and_then(|before| before.bits.get(at)).copied().unwrap_or(0))
        });
        words.flat_map(|(at, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u32 * 64 + bit)
        })
    }

    /// Writes it durably.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes: Vec<u8> = self.bits.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        replace(path, &bytes)
    }

    /// Reads it for a segment of so many stories.
    pub fn read(path: &Path, stories: u32) -> io::Result<Gone> {
        let bytes = std::fs::read(path)?;
        let split = bytes.split_last_chunk::<4>();
        let whole = split.filter(|(bits, crc)| {
            crc32c::crc32c(bits) == u32::from_le_bytes(**crc)
                && bits.len() == (stories as usize).div_ceil(64) * 8
        });
        let Some((bits, _)) = whole else {
            return Err(damaged("the list of its replaced stories is damaged"));
        };
        let bits: Vec<u64> = bits.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let count = bits.iter().map(|word| word.count_ones()).sum();
        let gone = Gone { bits, count };
        match gone.since(None).last().is_none_or(|last| last < stories) {
            true => Ok(gone),
            false => Err(damaged("the list of its replaced stories is of another segment")),
        }
    }
}
