/// What the table says of a print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Known,
    /// Nobody has ever inserted it.
    New,
    /// The table is a cache, and does not have it: the disk knows.
    Doubt,
}

/// Prints in memory, eight bytes each.
///
/// ```text
///   print   8 bits: partition │ 56 bits: which line of it, as a fraction of all its lines
///   line    8 places of 8 bytes, 0 where nothing is: one line of the processor's cache
/// ```
///
/// A print is in its home line, or in the first line after it that had room. A line that is not full ends the search,
/// so nearly every question touches one line of cache. Lines are in the order of the prints: a partition grows by one
/// walk from its beginning to its end, and a sorted file is loaded in the same way. There are 256 partitions so that
/// only so small a part is ever there twice, and nobody waits for the whole to be moved.
///
/// As a cache it looks at the home line alone, and a print that finds it full takes the place of any other.
pub struct SeenTable {
    partitions: Vec<Partition>,
    lines: usize,
    lines_max: usize,
    complete: bool,
    /// Where the next print is pushed out; see [`SeenTable::pushed_out`].
    turn: u64,
}

#[derive(Default)]
struct Partition {
    lines: Vec<Line>,
    used: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; PLACES]);

const PARTITIONS: usize = 256;
const PLACES: usize = 8;
const LINE_BYTES: usize = size_of::<Line>();
/// Prints whose lines are asked of memory at once.
const BATCH: usize = 32;

const _: () = assert!(LINE_BYTES == PLACES * size_of::<u64>());

impl SeenTable {
    /// A table that may take `bytes_max`; one line for each partition it takes in any case.
    pub fn new(bytes_max: usize) -> SeenTable {
        SeenTable::sized(1, bytes_max / LINE_BYTES, true)
    }

    /// A table with room for `count` prints from the start; a cache of all the budget if that is not enough.
    pub fn with_room_for(count: u64, bytes_max: usize) -> SeenTable {
        let lines_max = bytes_max / LINE_BYTES;
        let of_each = count as usize / PARTITIONS;
        // Partitions differ a little; one that has more than this grows.
        let wanted = lines_for(of_each + of_each / 64).max(1);
        match wanted * PARTITIONS <= lines_max.max(PARTITIONS) {
            true => SeenTable::sized(wanted, lines_max, true),
            false => SeenTable::sized((lines_max / PARTITIONS).max(1), lines_max, false),
        }
    }

    fn sized(lines_each: usize, lines_max: usize, complete: bool) -> SeenTable {
        let partition = || Partition { lines: vec![Line::EMPTY; lines_each], used: 0 };
        let partitions = (0..PARTITIONS).map(|_| partition()).collect();
        SeenTable { partitions, lines: lines_each * PARTITIONS, lines_max, complete, turn: 1 }
    }

    /// Whether it has every print that was ever inserted.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub fn bytes(&self) -> usize {
        self.lines * LINE_BYTES
    }

    /// Prints that there are places for.
    pub fn places(&self) -> usize {
        self.lines * PLACES
    }

    /// One answer for each print, in their order, in place of what was in `answers`.
    pub fn ask(&self, prints: &[u64], answers: &mut Vec<Answer>) {
        answers.clear();
        answers.reserve(prints.len());
        let mut homes = [0; BATCH];
        for batch in prints.chunks(BATCH) {
            // No load of this loop waits for another, so memory works on all of them at once, and the next loop finds
            // the lines in the cache.
            let mut touched = 0;
            for (home, &print) in homes.iter_mut().zip(batch) {
                let lines = &self.partition(print).lines;
                *home = home_of(print, lines.len());
                touched ^= lines[*home].0[0];
            }
            // The same for the few whose home line is full without them.
            let mut further = [0; BATCH];
            let mut further_count = 0;
            let first = answers.len();
            for (index, (&print, &home)) in batch.iter().zip(&homes).enumerate() {
                let (answer, is_open) = self.answer_at_home(print.max(1), home);
                answers.push(answer);
                if is_open {
                    let lines = &self.partition(print).lines;
                    touched ^= lines[next(home, lines.len())].0[0];
                    further[further_count] = index;
                    further_count += 1;
                }
            }
            std::hint::black_box(touched);
            for &index in &further[..further_count] {
                answers[first + index] = self.answer_further(batch[index].max(1), homes[index]);
            }
        }
    }

    /// The answer as far as the home line goes, and whether the lines after it have a say.
    fn answer_at_home(&self, print: u64, home: usize) -> (Answer, bool) {
        let line = &self.partition(print).lines[home];
        match (line.has(print), self.complete) {
            (true, _) => (Answer::Known, false),
            (false, false) => (Answer::Doubt, false),
            (false, true) => (Answer::New, line.empty().is_none()),
        }
    }

    /// The answer of the lines after a full home line.
    fn answer_further(&self, print: u64, home: usize) -> Answer {
        let lines = &self.partition(print).lines;
        let mut at = home;
        loop {
            at = next(at, lines.len());
            if lines[at].has(print) {
                return Answer::Known;
            }
            if lines[at].empty().is_some() {
                return Answer::New;
            }
        }
    }

    /// Takes a print in. A cache may push another one out for it.
    pub fn insert(&mut self, print: u64) {
        let print = print.max(1);
        if self.complete && self.make_room(print) {
            self.partition_mut(print).insert(print);
        } else if !self.fill_home(print) {
            let place = self.pushed_out();
            self.home_line(print).0[place] = print;
        }
    }

    /// Takes a print in if nothing has to give way for it.
    pub fn fill(&mut self, print: u64) {
        let print = print.max(1);
        if self.complete && self.make_room(print) {
            self.partition_mut(print).insert(print);
        } else {
            self.fill_home(print);
        }
    }

    /// Whether the partition has a place for one more, if it has to grow for it or not. The table is a cache from the
    /// first growth on that it has no budget for.
    fn make_room(&mut self, print: u64) -> bool {
        let budget = self.lines_max.saturating_sub(self.lines);
        let partition = self.partition_mut(print);
        if lines_for(partition.used + 1) <= partition.lines.len() {
            return true;
        }
        let more = (partition.lines.len() / 4).max(1);
        if more > budget {
            self.become_cache();
            return false;
        }
        partition.grow(more);
        self.lines += more;
        true
    }

    fn become_cache(&mut self) {
        self.complete = false;
        self.partitions.iter_mut().for_each(Partition::send_home);
    }

    /// Whether the print is in its home line afterwards.
    fn fill_home(&mut self, print: u64) -> bool {
        let line = self.home_line(print);
        line.has(print) || line.put(print)
    }

    /// Any place of a line will do, as long as nobody can say which: the high bits of a linear congruential sequence.
    fn pushed_out(&mut self) -> usize {
        self.turn = self.turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.turn >> 61) as usize
    }

    fn home_line(&mut self, print: u64) -> &mut Line {
        let lines = &mut self.partition_mut(print).lines;
        let home = home_of(print, lines.len());
        &mut lines[home]
    }

    fn partition(&self, print: u64) -> &Partition {
        &self.partitions[(print >> 56) as usize]
    }

    fn partition_mut(&mut self, print: u64) -> &mut Partition {
        &mut self.partitions[(print >> 56) as usize]
    }
}

impl Partition {
    /// Takes in a print, if it is not there. [`SeenTable::make_room`] saw to it that a place is empty.
    fn insert(&mut self, print: u64) {
        let mut at = home_of(print, self.lines.len());
        while !self.lines[at].has(print) {
            if self.lines[at].put(print) {
                self.used += 1;
                return;
            }
            at = next(at, self.lines.len());
        }
    }

    fn grow(&mut self, more: usize) {
        let before = std::mem::take(&mut self.lines);
        self.lines = vec![Line::EMPTY; before.len() + more];
        for print in before.iter().flat_map(|line| line.0).filter(|&print| print != 0) {
            let mut at = home_of(print, self.lines.len());
            while !self.lines[at].put(print) {
                at = next(at, self.lines.len());
            }
        }
    }

    /// Prints that are not in their home line go there, if it has room; where they are now a cache would never look.
    fn send_home(&mut self) {
        for at in 0..self.lines.len() {
            for place in 0..PLACES {
                let print = self.lines[at].0[place];
                let home = home_of(print, self.lines.len());
                if print != 0 && home != at {
                    self.lines[at].0[place] = 0;
                    self.lines[home].put(print);
                }
            }
        }
    }
}

impl Line {
    const EMPTY: Line = Line([0; PLACES]);

    /// All eight are compared without a branch between them.
    fn has(&self, print: u64) -> bool {
        self.0.iter().fold(false, |has, &place| has | (place == print))
    }

    /// The first empty place, likewise.
    fn empty(&self) -> Option<usize> {
        let mut empty = 0_u32;
        for (at, &place) in self.0.iter().enumerate() {
            empty |= u32::from(place == 0) << at;
        }
        (empty != 0).then(|| empty.trailing_zeros() as usize)
    }

    /// Whether there was an empty place.
    fn put(&mut self, print: u64) -> bool {
        match self.empty() {
            Some(place) => {
                self.0[place] = print;
                true
            }
            None => false,
        }
    }
}

/// Lines that so many prints want: four places of five are used, so that full lines are few.
fn lines_for(count: usize) -> usize {
    (count * 5).div_ceil(PLACES * 4)
}

/// The home line: the print without its partition, as a fraction, of all the lines.
fn home_of(print: u64, lines: usize) -> usize {
    ((u128::from(print << 8) * lines as u128) >> 64) as usize
}

fn next(at: usize, lines: usize) -> usize {
    if at + 1 == lines { 0 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print_of(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    fn answers(table: &SeenTable, numbers: std::ops::Range<u64>) -> Vec<Answer> {
        let prints: Vec<u64> = numbers.map(print_of).collect();
        let mut answers = Vec::new();
        table.ask(&prints, &mut answers);
        answers
    }

    fn count(answers: &[Answer], wanted: Answer) -> usize {
        answers.iter().filter(|&&answer| answer == wanted).count()
    }

    #[test]
    fn with_room_to_grow_every_answer_is_certain_and_a_print_takes_about_eleven_bytes() {
        let mut table = SeenTable::new(usize::MAX);
        for number in 0..200_000 {
            table.insert(print_of(number));
        }
        let all = answers(&table, 0..300_000);
        assert_eq!(count(&all[..200_000], Answer::Known), 200_000);
        assert_eq!(count(&all[200_000..], Answer::New), 100_000);
        assert!(table.is_complete() && table.bytes() < 200_000 * 13, "{} bytes", table.bytes());
    }

    #[test]
    fn a_cache_stays_within_its_budget_and_never_says_new() {
        let bytes_max = 1 << 20;
        let mut table = SeenTable::new(bytes_max);
        let mut number = 0;
        while table.is_complete() {
            table.insert(print_of(number));
            number += 1;
        }
        assert!(number as usize > bytes_max / 11, "{number} found room");
        assert!(table.bytes() <= bytes_max && table.bytes() > bytes_max * 19 / 20);
        let kept = count(&answers(&table, 0..number), Answer::Known);
        assert!(kept * 20 > number as usize * 19, "{kept} of {number} are kept when it becomes a cache");
        for number in number..500_000 {
            table.insert(print_of(number));
            assert_eq!(answers(&table, number..number + 1), [Answer::Known]);
        }
        assert_eq!(count(&answers(&table, 0..600_000), Answer::New), 0);
        assert_eq!(count(&answers(&table, 500_000..600_000), Answer::Doubt), 100_000);
        let kept = count(&answers(&table, 0..500_000), Answer::Known);
        assert!(kept > bytes_max / 8 * 9 / 10, "{kept} places are used");
    }

    #[test]
    fn filling_pushes_nothing_out() {
        let mut table = SeenTable::with_room_for(1 << 30, 1 << 16);
        assert!(!table.is_complete());
        for number in 0..20_000 {
            table.fill(print_of(number));
        }
        let newest = print_of(20_000);
        table.insert(newest);
        let before = count(&answers(&table, 0..20_001), Answer::Known);
        for number in 20_001..40_000 {
            table.fill(print_of(number));
        }
        assert_eq!(count(&answers(&table, 0..20_001), Answer::Known), before);
    }

    #[test]
    fn a_table_made_for_a_number_takes_it_without_growing_much() {
        let mut table = SeenTable::with_room_for(100_000, usize::MAX);
        let bytes = table.bytes();
        for number in 0..100_000 {
            table.fill(print_of(number));
        }
        assert!(table.bytes() < bytes * 6 / 5, "{bytes} bytes became {}", table.bytes());
        assert_eq!(count(&answers(&table, 0..100_000), Answer::Known), 100_000);
    }

    #[test]
    fn prints_that_crowd_one_line_are_all_kept() {
        let mut table = SeenTable::new(usize::MAX);
        // The last line of the last partition: what has no room there goes on at the first.
        let prints: Vec<u64> = (0..1_000).map(|number| u64::MAX - number).collect();
        prints.iter().for_each(|&print| table.insert(print));
        prints.iter().for_each(|&print| table.insert(print));
        let mut answers = Vec::new();
        table.ask(&prints, &mut answers);
        assert_eq!(count(&answers, Answer::Known), 1_000);
        table.ask(&[u64::MAX - 1_000, 0, 1, 255 << 56], &mut answers);
        assert_eq!(answers, [Answer::New; 4]);
    }
}
