use super::table::PARTITION_BITS;
use crate::storage::{HugeBuffer, LINE_BYTES};

/// A part of the table: all fingerprints that begin with the same bits.
///
/// ```text
///   line   8 places of 8 bytes, 0 where nothing is: what the processor reads at once
///   pair   2 lines, one beside the other: what it reads ahead
/// ```
///
/// The home line of a fingerprint is where the rest of its bits, taken as a fraction, points to. A fingerprint is
/// there, or in the first line that had room: the other one of the pair, those of the next pair, and so on. So lines
/// are in the order of their fingerprints, or nearly, and growing is one walk from the beginning to the end.
pub(super) struct Partition {
    /// Of an even number of lines.
    buffer: HugeBuffer,
    /// Places that are not empty. Of no meaning in a cache.
    used: usize,
}

/// Eight places, as they are in memory.
#[derive(Clone, Copy)]
pub(super) struct Line<'a>(&'a [u8; LINE_BYTES]);

pub(super) struct LineMut<'a>(&'a mut [u8; LINE_BYTES]);

const PLACE_BYTES: usize = size_of::<u64>();
pub(super) const PLACES: usize = LINE_BYTES / PLACE_BYTES;
pub(super) const PAIR_BYTES: usize = 2 * LINE_BYTES;
pub(super) const PAIR_PLACES: usize = 2 * PLACES;

impl Partition {
    pub fn new(pairs: usize) -> Partition {
        Partition { buffer: HugeBuffer::new(2 * pairs), used: 0 }
    }

    /// How many pairs a partition has that is made for at least `pairs`.
    pub fn pairs_of(pairs: usize) -> usize {
        HugeBuffer::lines_for(2 * pairs) / 2
    }

    /// The most pairs, up to `pairs`, of which a partition has no more than it is made for.
    pub fn pairs_within(pairs: usize) -> usize {
        HugeBuffer::lines_within(2 * pairs) / 2
    }

    pub fn pairs(&self) -> usize {
        self.buffer.len() / 2
    }

    /// Whether one more fingerprint would make it slow. There is an empty place in any case.
    pub fn is_crowded(&self) -> bool {
        pairs_for(self.used + 1) > self.pairs()
    }

    /// The number of a fingerprint's home line.
    #[inline]
    pub fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint << PARTITION_BITS) * self.buffer.len() as u128) >> 64) as usize
    }

    /// The line that is looked into after `others` others: the home line after none.
    #[inline]
    pub fn line(&self, home: usize, others: usize) -> Line<'_> {
        Line(self.buffer.line(self.step(home, others)))
    }

    #[inline]
    pub fn line_mut(&mut self, home: usize, others: usize) -> LineMut<'_> {
        LineMut(self.buffer.line_mut(self.step(home, others)))
    }

    fn step(&self, home: usize, others: usize) -> usize {
        let pair = home / 2 + others / 2;
        let pair = if pair < self.pairs() { pair } else { pair - self.pairs() };
        2 * pair + (home ^ others) % 2
    }

    /// Whether a fingerprint is in a line after its home line, which is full.
    pub fn has_further(&self, fingerprint: u64, home: usize) -> bool {
        let mut others = 1;
        loop {
            let line = self.line(home, others);
            if line.has(fingerprint) {
                return true;
            }
            if line.is_open() {
                return false;
            }
            others += 1;
        }
    }

    /// Takes in a fingerprint, if it is not there.
    pub fn insert(&mut self, fingerprint: u64) {
        let home = self.home(fingerprint);
        let mut others = 0;
        loop {
            let line = self.line(home, others);
            match line.empty_place() {
                _ if line.has(fingerprint) => return,
                Some(place) => {
                    self.line_mut(home, others).push_out(place, fingerprint);
                    self.used += 1;
                    return;
                }
                None => others += 1,
            }
        }
    }

    pub fn grow(&mut self, more: usize) {
        let buffer = HugeBuffer::new(self.buffer.len() + 2 * more);
        let before = std::mem::replace(&mut self.buffer, buffer);
        for at in 0..before.len() {
            for fingerprint in Line(before.line(at)).places().filter(|&fingerprint| fingerprint != 0) {
                let home = self.home(fingerprint);
                let mut others = 0;
                while !self.line_mut(home, others).put(fingerprint) {
                    others += 1;
                }
            }
        }
    }

    /// Fingerprints that are not in their home line go there, if it has room; where they are, a cache would never look.
    pub fn send_home(&mut self) {
        for at in 0..self.buffer.len() {
            for place in 0..PLACES {
                let fingerprint = self.line(at, 0).place(place);
                let home = self.home(fingerprint);
                if fingerprint != 0 && home != at {
                    self.line_mut(at, 0).push_out(place, 0);
                    self.line_mut(home, 0).put(fingerprint);
                }
            }
        }
    }
}

impl<'a> Line<'a> {
    fn places(self) -> impl Iterator<Item = u64> + 'a {
        self.0.as_chunks::<PLACE_BYTES>().0.iter().map(|place| u64::from_ne_bytes(*place))
    }

    fn place(self, place: usize) -> u64 {
        u64::from_ne_bytes(self.0.as_chunks::<PLACE_BYTES>().0[place])
    }

    /// Reads something of it, for the sake of reading.
    pub fn touch(self) -> u8 {
        self.0[0]
    }

    /// All eight are compared without a branch between them.
    pub fn has(self, fingerprint: u64) -> bool {
        self.places().fold(false, |has, place| has | (place == fingerprint))
    }

    /// Whether there is an empty place.
    pub fn is_open(self) -> bool {
        self.has(0)
    }

    /// The first place that is empty.
    fn empty_place(self) -> Option<usize> {
        let mut first = PLACES;
        for place in (0..PLACES).rev() {
            first = if self.place(place) == 0 { place } else { first };
        }
        (first < PLACES).then_some(first)
    }
}

impl LineMut<'_> {
    /// Whether there was an empty place for the fingerprint.
    pub fn put(&mut self, fingerprint: u64) -> bool {
        let empty = Line(self.0).empty_place();
        if let Some(place) = empty {
            self.push_out(place, fingerprint);
        }
        empty.is_some()
    }

    /// Puts a fingerprint in the place of another.
    pub fn push_out(&mut self, place: usize, fingerprint: u64) {
        self.0.as_chunks_mut().0[place] = fingerprint.to_ne_bytes();
    }
}

/// Pairs that `count` fingerprints want. Four places of five are used, so that few lines are full.
pub(super) fn pairs_for(count: usize) -> usize {
    (count * 5).div_ceil(PAIR_PLACES * 4)
}
