use super::super::room::{LINE_BYTES, Room};
use super::table::PARTITION_BITS;

/// A part of the table: all prints that begin with the same bits.
///
/// ```text
///   line   8 places of 8 bytes, 0 where nothing is: what the processor reads at once
///   pair   2 lines, one beside the other: what it reads ahead
/// ```
///
/// The home line of a print is where the rest of its bits, taken as a fraction, points to. A print is there, or in the
/// first line that had room: the other one of the pair, those of the next pair, and so on. So lines are in the order of
/// their prints, or nearly, and growing is one walk from the beginning to the end.
pub(super) struct Partition {
    /// Of an even number of lines.
    room: Room,
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
        Partition { room: Room::new(2 * pairs), used: 0 }
    }

    /// How many pairs one has that is made for so many.
    pub fn pairs_of(pairs: usize) -> usize {
        Room::lines_for(2 * pairs) / 2
    }

    /// The most of which one has no more than it is made for.
    pub fn pairs_within(pairs: usize) -> usize {
        Room::lines_within(2 * pairs) / 2
    }

    pub fn pairs(&self) -> usize {
        self.room.len() / 2
    }

    /// Whether one more print would make it slow. There is an empty place in any case.
    pub fn is_crowded(&self) -> bool {
        pairs_for(self.used + 1) > self.pairs()
    }

    /// The number of a print's home line.
    pub fn home(&self, print: u64) -> usize {
        ((u128::from(print << PARTITION_BITS) * self.room.len() as u128) >> 64) as usize
    }

    /// The line that is looked into after so many others: the home line after none.
    pub fn line(&self, home: usize, others: usize) -> Line<'_> {
        Line(self.room.line(self.step(home, others)))
    }

    pub fn line_mut(&mut self, home: usize, others: usize) -> LineMut<'_> {
        LineMut(self.room.line_mut(self.step(home, others)))
    }

    fn step(&self, home: usize, others: usize) -> usize {
        let pair = home / 2 + others / 2;
        let pair = if pair < self.pairs() { pair } else { pair - self.pairs() };
        2 * pair + (home ^ others) % 2
    }

    /// Whether a print is in a line after its home line, which is full.
    pub fn has_further(&self, print: u64, home: usize) -> bool {
        let mut others = 1;
        loop {
            let line = self.line(home, others);
            if line.has(print) {
                return true;
            }
            if line.is_open() {
                return false;
            }
            others += 1;
        }
    }

    /// Takes in a print, if it is not there.
    pub fn insert(&mut self, print: u64) {
        let home = self.home(print);
        let mut others = 0;
        while !self.line(home, others).has(print) {
            if self.line_mut(home, others).put(print) {
                self.used += 1;
                return;
            }
            others += 1;
        }
    }

    pub fn grow(&mut self, more: usize) {
        let room = Room::new(self.room.len() + 2 * more);
        let before = std::mem::replace(&mut self.room, room);
        let lines = (0..before.len()).map(|at| Line(before.line(at)));
        for print in lines.flat_map(Line::places).filter(|&print| print != 0) {
            let home = self.home(print);
            let mut others = 0;
            while !self.line_mut(home, others).put(print) {
                others += 1;
            }
        }
    }

    /// Prints that are not in their home line go there, if it has room; where they are, a cache would never look.
    pub fn send_home(&mut self) {
        for at in 0..self.room.len() {
            for (place, print) in self.line(at, 0).places().into_iter().enumerate() {
                let home = self.home(print);
                if print != 0 && home != at {
                    self.line_mut(at, 0).push_out(place, 0);
                    self.line_mut(home, 0).put(print);
                }
            }
        }
    }
}

impl Line<'_> {
    fn places(self) -> [u64; PLACES] {
        let (places, _) = self.0.as_chunks::<PLACE_BYTES>();
        std::array::from_fn(|place| u64::from_ne_bytes(places[place]))
    }

    /// Reads something of it, for the sake of reading.
    pub fn touch(self) -> u8 {
        self.0[0]
    }

    /// All eight are compared without a branch between them.
    pub fn has(self, print: u64) -> bool {
        self.places().into_iter().fold(false, |has, place| has | (place == print))
    }

    /// Whether there is an empty place.
    pub fn is_open(self) -> bool {
        self.has(0)
    }
}

impl LineMut<'_> {
    /// Whether there was an empty place for the print.
    pub fn put(&mut self, print: u64) -> bool {
        let mut empty = 0_u32;
        for (place, held) in Line(self.0).places().into_iter().enumerate() {
            empty |= u32::from(held == 0) << place;
        }
        if empty != 0 {
            self.push_out(empty.trailing_zeros() as usize, print);
        }
        empty != 0
    }

    /// Puts a print in the place of another.
    pub fn push_out(&mut self, place: usize, print: u64) {
        self.0.as_chunks_mut().0[place] = print.to_ne_bytes();
    }
}

/// Pairs that so many prints want. Four places of five are used, so that few lines are full.
pub(super) fn pairs_for(count: usize) -> usize {
    (count * 5).div_ceil(PAIR_PLACES * 4)
}
