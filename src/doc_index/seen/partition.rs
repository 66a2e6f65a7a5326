/// A part of the table: a 256th of all prints, by their highest bits.
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
    pairs: Vec<Pair>,
    /// Places that are not empty. Of no meaning in a cache.
    used: usize,
}

#[derive(Clone, Copy)]
#[repr(align(128))]
struct Pair([Line; 2]);

#[derive(Clone, Copy)]
pub(super) struct Line([u64; PLACES]);

pub(super) const PLACES: usize = 8;
pub(super) const PAIR_BYTES: usize = size_of::<Pair>();
pub(super) const PAIR_PLACES: usize = 2 * PLACES;

const _: () = assert!(PAIR_BYTES == PAIR_PLACES * size_of::<u64>());

impl Partition {
    pub fn new(pairs: usize) -> Partition {
        Partition { pairs: vec![Pair::EMPTY; pairs], used: 0 }
    }

    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Whether one more print would make it slow. There is an empty place in any case.
    pub fn is_crowded(&self) -> bool {
        pairs_for(self.used + 1) > self.pairs.len()
    }

    /// The number of a print's home line.
    pub fn home(&self, print: u64) -> usize {
        ((u128::from(print << 8) * (2 * self.pairs.len()) as u128) >> 64) as usize
    }

    /// The line that is looked into after so many others: the home line after none.
    pub fn line(&self, home: usize, others: usize) -> &Line {
        let at = self.step(home, others);
        &self.pairs[at / 2].0[at % 2]
    }

    pub fn line_mut(&mut self, home: usize, others: usize) -> &mut Line {
        let at = self.step(home, others);
        &mut self.pairs[at / 2].0[at % 2]
    }

    fn step(&self, home: usize, others: usize) -> usize {
        let pair = home / 2 + others / 2;
        let pair = if pair < self.pairs.len() { pair } else { pair - self.pairs.len() };
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
        let pairs = vec![Pair::EMPTY; self.pairs.len() + more];
        let before = std::mem::replace(&mut self.pairs, pairs);
        for print in before.iter().flat_map(|pair| pair.0).flat_map(|line| line.0).filter(|&print| print != 0)
        {
            let home = self.home(print);
            let mut others = 0;
            while !self.line_mut(home, others).put(print) {
                others += 1;
            }
        }
    }

    /// Prints that are not in their home line go there, if it has room; where they are, a cache would never look.
    pub fn send_home(&mut self) {
        for at in 0..2 * self.pairs.len() {
            for place in 0..PLACES {
                let print = self.line(at, 0).0[place];
                let home = self.home(print);
                if print != 0 && home != at {
                    self.line_mut(at, 0).0[place] = 0;
                    self.line_mut(home, 0).put(print);
                }
            }
        }
    }
}

impl Pair {
    const EMPTY: Pair = Pair([Line([0; PLACES]); 2]);
}

impl Line {
    /// Reads something of it, for the sake of reading.
    pub fn touch(&self) -> u64 {
        self.0[0]
    }

    /// All eight are compared without a branch between them.
    pub fn has(&self, print: u64) -> bool {
        self.0.iter().fold(false, |has, &place| has | (place == print))
    }

    /// Whether there is an empty place.
    pub fn is_open(&self) -> bool {
        self.has(0)
    }

    /// Whether there was an empty place for the print.
    pub fn put(&mut self, print: u64) -> bool {
        let mut empty = 0_u32;
        for (place, &held) in self.0.iter().enumerate() {
            empty |= u32::from(held == 0) << place;
        }
        if empty != 0 {
            self.0[empty.trailing_zeros() as usize] = print;
        }
        empty != 0
    }

    /// Puts a print in the place of another.
    pub fn push_out(&mut self, place: usize, print: u64) {
        self.0[place] = print;
    }
}

/// Pairs that so many prints want. Four places of five are used, so that few lines are full.
pub(super) fn pairs_for(count: usize) -> usize {
    (count * 5).div_ceil(PAIR_PLACES * 4)
}
