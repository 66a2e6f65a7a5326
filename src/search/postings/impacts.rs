/// Pairs that are kept of a block.
const PAIRS: usize = 4;

/// The best of a block, whatever it will be ranked by: pairs of how often a story has the word and of how long the story is, such
/// that each story of the block has one of them that is at least as good in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impacts {
    pairs: [(u8, u8); PAIRS],
    count: u8,
}

impl Impacts {
    pub const BYTES: usize = 2 * PAIRS;

    /// Takes note of a story. A count that is larger than a byte is ranked as the largest.
    #[inline]
    pub fn put(&mut self, count: u32, length: u8) {
        let new = (count.min(u32::from(u8::MAX)) as u8, length);
        if self.pairs().iter().all(|pair| pair.0 < new.0 || pair.1 > new.1) {
            self.insert(new);
        }
    }

    fn insert(&mut self, new: (u8, u8)) {
        let mut kept = [(0, 0); PAIRS + 1];
        let mut number = 0;
        for pair in self.pairs().iter().filter(|pair| pair.0 > new.0 || pair.1 < new.1) {
            kept[number] = *pair;
            number += 1;
        }
        kept[number] = new;
        number += 1;
        if number > PAIRS {
            kept.sort_unstable();
            // Two that differ least become one that is as good as either.
            let differ = |at: &usize| {
                u32::from(kept[at + 1].0 - kept[*at].0) + u32::from(kept[at + 1].1 - kept[*at].1)
            };
            let at = (0..PAIRS).min_by_key(differ).unwrap_or(0);
            kept[at].0 = kept[at + 1].0;
            kept.copy_within(at + 2.., at + 1);
            number -= 1;
        }
        self.pairs.copy_from_slice(&kept[..PAIRS]);
        self.count = number as u8;
    }

    fn pairs(&self) -> &[(u8, u8)] {
        &self.pairs[..usize::from(self.count)]
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        for number in 0..PAIRS {
            let pair = self.pairs().get(number).copied().unwrap_or((0, 0));
            out.extend_from_slice(&[pair.0, pair.1]);
        }
    }

    /// The pairs that were written; a count of nothing ends them.
    pub fn read(bytes: &[u8]) -> impl Iterator<Item = (u8, u8)> {
        bytes.as_chunks::<2>().0.iter().map(|pair| (pair[0], pair[1])).take_while(|pair| pair.0 > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::search::tests::skewed;

    #[test]
    fn no_story_of_a_block_is_better_than_its_best() {
        let mut rng = Rng::new(11);
        for _ in 0..2_000 {
            let mut impacts = Impacts::default();
            let stories: Vec<(u32, u8)> = (0..1 + rng.below(128))
                .map(|_| (1 + skewed(&mut rng, 400) as u32, skewed(&mut rng, 256) as u8))
                .collect();
            stories.iter().for_each(|(count, length)| impacts.put(*count, *length));
            let mut written = Vec::new();
            impacts.write(&mut written);
            assert_eq!(written.len(), Impacts::BYTES);
            let pairs: Vec<(u8, u8)> = Impacts::read(&written).collect();
            for (count, length) in stories {
                let count = count.min(255) as u8;
                assert!(pairs.iter().any(|pair| pair.0 >= count && pair.1 <= length), "{pairs:?}");
            }
        }
    }

    #[test]
    fn few_pairs_are_kept_as_they_are() {
        let mut impacts = Impacts::default();
        [(1, 20), (1, 10), (3, 30), (2, 10), (2, 40)]
            .iter()
            .for_each(|(count, length)| impacts.put(*count, *length));
        let mut written = Vec::new();
        impacts.write(&mut written);
        let mut pairs: Vec<(u8, u8)> = Impacts::read(&written).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(2, 10), (3, 30)]);
    }
}
