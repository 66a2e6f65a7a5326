use crate::master::RowPlace;
use std::collections::BTreeMap;

/// Rows of the next current_log: a bit for each, however many are in it.
#[derive(Debug, Default)]
pub struct RowSet {
    /// By partition.
    bits: BTreeMap<u8, Vec<u64>>,
    count: u64,
}

impl RowSet {
    /// Each is added once.
    pub fn add(&mut self, place: RowPlace) {
        let (bits, word) = (self.bits.entry(place.partition).or_default(), place.row as usize / 64);
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        bits[word] |= 1 << (place.row % 64);
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether any of a partition is in it.
    pub(super) fn has_of(&self, partition: u8) -> bool {
        self.bits.contains_key(&partition)
    }

    pub(super) fn has(&self, place: RowPlace) -> bool {
        let word = self.bits.get(&place.partition).and_then(|bits| bits.get(place.row as usize / 64));
        word.is_some_and(|word| word >> (place.row % 64) & 1 == 1)
    }
}
