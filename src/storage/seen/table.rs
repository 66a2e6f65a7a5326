use super::partition::{PAIR_BYTES, PAIR_PLACES, Partition, pairs_for};

/// What the table says of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Known,
    /// It was never inserted.
    New,
    /// The table is a cache, and does not have it: the disk knows.
    Unresolved,
}

/// Fingerprints in memory, eight bytes each and a little air.
///
/// There are 32 partitions, so that only one in 32 is ever in memory twice when it grows, and no insertion waits for
/// the whole to be moved; with more of them, a table of ten million would have none that fills huge pages. As a cache
/// the table looks at the home line of a fingerprint alone, and a fingerprint that finds it full takes the place of any
/// other there.
pub(super) struct SeenTable {
    partitions: Vec<Partition>,
    pairs: usize,
    pairs_max: usize,
    complete: bool,
    /// See [`SeenTable::any_place`].
    turn: u64,
}

/// The partition of a fingerprint is what its highest bits say.
pub(super) const PARTITION_BITS: u32 = 5;
const PARTITIONS: usize = 1 << PARTITION_BITS;
/// Fingerprints whose lines are asked of memory at once.
const BATCH: usize = 32;

impl SeenTable {
    /// A table that may take `bytes_max`; one pair of lines for each partition it takes in any case.
    pub fn new(bytes_max: usize) -> SeenTable {
        SeenTable::sized(1, bytes_max / PAIR_BYTES, true)
    }

    /// A table with room for `count` fingerprints from the start; a cache of all the budget if that is not enough.
    pub fn with_room_for(count: u64, bytes_max: usize) -> SeenTable {
        let pairs_max = bytes_max / PAIR_BYTES;
        let of_each = count as usize / PARTITIONS;
        // Partitions differ a little; one that has more than this grows.
        let wanted = Partition::pairs_of(pairs_for(of_each + of_each / 64).max(1));
        match wanted * PARTITIONS <= pairs_max.max(PARTITIONS) {
            true => SeenTable::sized(wanted, pairs_max, true),
            false => {
                SeenTable::sized(Partition::pairs_within(pairs_max / PARTITIONS).max(1), pairs_max, false)
            }
        }
    }

    fn sized(pairs_each: usize, pairs_max: usize, complete: bool) -> SeenTable {
        let partitions = (0..PARTITIONS).map(|_| Partition::new(pairs_each)).collect();
        SeenTable { partitions, pairs: pairs_each * PARTITIONS, pairs_max, complete, turn: 1 }
    }

    /// Whether it has every fingerprint that was ever inserted.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// It grows no further than this.
    pub fn bound(&mut self, bytes_max: usize) {
        self.pairs_max = bytes_max / PAIR_BYTES;
    }

    pub fn bytes(&self) -> usize {
        self.pairs * PAIR_BYTES
    }

    /// Fingerprints that there are places for.
    pub fn places(&self) -> usize {
        self.pairs * PAIR_PLACES
    }

    /// One answer for each fingerprint, in their order, in place of what was in `answers`.
    pub fn ask(&self, fingerprints: &[u64], answers: &mut Vec<Answer>) {
        answers.clear();
        answers.reserve(fingerprints.len());
        let mut homes = [0; BATCH];
        let mut open = [0; BATCH];
        for batch in fingerprints.chunks(BATCH) {
            // No load of this loop waits for another, so memory works on all of them at once, and the next loop finds
            // the lines in the cache.
            let mut touched = 0;
            for (home, &fingerprint) in homes.iter_mut().zip(batch) {
                let partition = self.partition(fingerprint);
                *home = partition.home(fingerprint);
                touched ^= partition.line(*home, 0).touch();
            }
            std::hint::black_box(touched);
            // The few that may be further on come last, so that no other waits for their second line.
            let first = answers.len();
            let mut open_count = 0;
            for (index, (&fingerprint, &home)) in batch.iter().zip(&homes).enumerate() {
                let line = self.partition(fingerprint).line(home, 0);
                let known = line.has(fingerprint.max(1));
                answers.push(if known { Answer::Known } else { self.unknown() });
                if !known && self.complete && !line.is_open() {
                    open[open_count] = index;
                    open_count += 1;
                }
            }
            for &index in &open[..open_count] {
                let fingerprint = batch[index];
                if self.partition(fingerprint).has_further(fingerprint.max(1), homes[index]) {
                    answers[first + index] = Answer::Known;
                }
            }
        }
    }

    /// Has memory bring the lines of fingerprints that are inserted next: all at once, where one would wait for the other.
    pub fn touch(&self, fingerprints: impl Iterator<Item = u64>) {
        let touched = fingerprints.fold(0, |touched, fingerprint| {
            let partition = self.partition(fingerprint);
            touched ^ partition.line(partition.home(fingerprint), 0).touch()
        });
        std::hint::black_box(touched);
    }

    /// Whether one is here.
    pub fn holds(&self, fingerprint: u64) -> bool {
        let fingerprint = fingerprint.max(1);
        let partition = self.partition(fingerprint);
        let home = partition.home(fingerprint);
        let line = partition.line(home, 0);
        line.has(fingerprint)
            || (self.complete && !line.is_open() && partition.has_further(fingerprint, home))
    }

    /// What a fingerprint is that was not found.
    fn unknown(&self) -> Answer {
        if self.complete { Answer::New } else { Answer::Unresolved }
    }

    /// Takes a fingerprint in. A cache may push another one out for it.
    pub fn insert(&mut self, fingerprint: u64) {
        let fingerprint = fingerprint.max(1);
        if !self.fill(fingerprint) {
            let place = self.any_place();
            let partition = self.partition_mut(fingerprint);
            partition.line_mut(partition.home(fingerprint), 0).push_out(place, fingerprint);
        }
    }

    /// Takes a fingerprint in if nothing has to give way for it, and says whether it is in.
    pub fn fill(&mut self, fingerprint: u64) -> bool {
        let fingerprint = fingerprint.max(1);
        self.make_room(fingerprint);
        let complete = self.complete;
        let partition = self.partition_mut(fingerprint);
        if complete {
            partition.insert(fingerprint);
            return true;
        }
        let home = partition.home(fingerprint);
        partition.line(home, 0).has(fingerprint) || partition.line_mut(home, 0).put(fingerprint)
    }

    /// Lets the partition of a fingerprint grow if it is crowded. The table is a cache from the first growth on that it
    /// has no budget for.
    fn make_room(&mut self, fingerprint: u64) {
        let partition = self.partition(fingerprint);
        if !self.complete || !partition.is_crowded() {
            return;
        }
        let before = partition.pairs();
        let more = Partition::pairs_of(before + (before / 4).max(1)) - before;
        if more > self.pairs_max.saturating_sub(self.pairs) {
            self.complete = false;
            self.partitions.iter_mut().for_each(Partition::send_home);
        } else {
            self.partition_mut(fingerprint).grow(more);
            self.pairs += more;
        }
    }

    /// Any place of a line will do: the highest bits of a linear congruential sequence.
    fn any_place(&mut self) -> usize {
        self.turn = self.turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.turn >> 61) as usize
    }

    fn partition(&self, fingerprint: u64) -> &Partition {
        &self.partitions[(fingerprint >> (64 - PARTITION_BITS)) as usize]
    }

    fn partition_mut(&mut self, fingerprint: u64) -> &mut Partition {
        &mut self.partitions[(fingerprint >> (64 - PARTITION_BITS)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint_of(number: u64) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
    }

    fn answers(table: &SeenTable, numbers: std::ops::Range<u64>) -> Vec<Answer> {
        let fingerprints: Vec<u64> = numbers.map(fingerprint_of).collect();
        let mut answers = Vec::new();
        table.ask(&fingerprints, &mut answers);
        answers
    }

    fn count(answers: &[Answer], wanted: Answer) -> usize {
        answers.iter().filter(|&&answer| answer == wanted).count()
    }

    #[test]
    fn with_room_to_grow_every_answer_is_certain_and_a_fingerprint_takes_about_eleven_bytes() {
        let mut table = SeenTable::new(usize::MAX);
        for number in 0..200_000 {
            table.insert(fingerprint_of(number));
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
            table.insert(fingerprint_of(number));
            number += 1;
        }
        assert!(number as usize > bytes_max / 12, "{number} found room");
        assert!(table.bytes() <= bytes_max && table.bytes() > bytes_max * 19 / 20);
        let kept = count(&answers(&table, 0..number), Answer::Known);
        // With four places of five in use, one fingerprint in twenty has found its home line full.
        assert!(kept * 100 > number as usize * 94, "{kept} of {number} are kept when it becomes a cache");
        for number in number..500_000 {
            table.insert(fingerprint_of(number));
            assert_eq!(answers(&table, number..number + 1), [Answer::Known]);
        }
        assert_eq!(count(&answers(&table, 0..600_000), Answer::New), 0);
        assert_eq!(count(&answers(&table, 500_000..600_000), Answer::Unresolved), 100_000);
        let kept = count(&answers(&table, 0..500_000), Answer::Known);
        assert!(kept > bytes_max / 8 * 9 / 10, "{kept} places are used");
    }

    #[test]
    fn filling_pushes_nothing_out() {
        let mut table = SeenTable::with_room_for(1 << 30, 1 << 16);
        assert!(!table.is_complete());
        for number in 0..20_000 {
            table.fill(fingerprint_of(number));
        }
        let newest = fingerprint_of(20_000);
        table.insert(newest);
        let before = count(&answers(&table, 0..20_001), Answer::Known);
        for number in 20_001..40_000 {
            table.fill(fingerprint_of(number));
        }
        assert_eq!(count(&answers(&table, 0..20_001), Answer::Known), before);
    }

    #[test]
    fn a_table_made_for_a_number_takes_it_without_growing_much() {
        let mut table = SeenTable::with_room_for(100_000, usize::MAX);
        let bytes = table.bytes();
        for number in 0..100_000 {
            table.fill(fingerprint_of(number));
        }
        assert!(table.bytes() < bytes * 6 / 5, "{bytes} bytes became {}", table.bytes());
        assert_eq!(count(&answers(&table, 0..100_000), Answer::Known), 100_000);
    }

    #[test]
    fn fingerprints_that_crowd_one_line_are_all_kept() {
        let mut table = SeenTable::new(usize::MAX);
        // The last line of the last partition: what has no room there goes on at the first of it.
        let fingerprints: Vec<u64> = (0..1_000).map(|number| u64::MAX - number).collect();
        fingerprints.iter().for_each(|&fingerprint| table.insert(fingerprint));
        fingerprints.iter().for_each(|&fingerprint| table.insert(fingerprint));
        let mut answers = Vec::new();
        table.ask(&fingerprints, &mut answers);
        assert_eq!(count(&answers, Answer::Known), 1_000);
        table.ask(&[u64::MAX - 1_000, 0, 1, 255 << 56], &mut answers);
        assert_eq!(answers, [Answer::New; 4]);
    }
}
