use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tantivy::{DocAddress, Score};

/// The best stories that were met so far, at most so many, by whichever thread. Which they are does not depend on the order in
/// which they were met.
pub(super) struct Best {
    limit: usize,
    /// The worst of them is on top.
    kept: Mutex<BinaryHeap<Reverse<Ranked>>>,
    /// The bits of its score, once there are so many.
    worst: AtomicU32,
}

/// Better is greater; of equals the one that stands first in the index.
#[derive(Clone, Copy)]
struct Ranked {
    score: Score,
    address: DocAddress,
}

impl Best {
    pub fn new(limit: usize) -> Best {
        let kept = Mutex::new(BinaryHeap::with_capacity(limit));
        Best { limit, kept, worst: AtomicU32::new(Score::MIN.to_bits()) }
    }

    /// What has less than this is not among the best; of what has as much, the first in the index is.
    pub fn worst(&self) -> Score {
        Score::from_bits(self.worst.load(Relaxed))
    }

    pub fn put(&self, score: Score, address: DocAddress) {
        let ranked = Ranked { score, address };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.limit {
            kept.push(Reverse(ranked));
        } else if let Some(mut worst) = kept.peek_mut().filter(|worst| worst.0 < ranked) {
            *worst = Reverse(ranked);
        }
        if let Some(Reverse(worst)) = kept.peek().filter(|_| kept.len() == self.limit) {
            self.worst.store(worst.score.to_bits(), Relaxed);
        }
    }

    /// The best first.
    pub fn into_sorted(self) -> Vec<(Score, DocAddress)> {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept.into_sorted_vec()
            .into_iter()
            .map(|Reverse(Ranked { score, address })| (score, address))
            .collect()
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.address.cmp(&self.address))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn the_best_of_a_stream_are_those_of_a_sorted_list_in_whatever_order_it_comes() {
        let mut rng = Rng::new(7);
        for limit in [1, 2, 10, 64] {
            let mut all: Vec<(Score, DocAddress)> =
                (0..500).map(|doc| (rng.below(40) as Score, DocAddress::new(0, doc))).collect();
            all.sort_by_cached_key(|_| rng.below(u64::MAX));
            let best = Best::new(limit);
            for (score, address) in &all {
                if *score >= best.worst() {
                    best.put(*score, *address);
                }
            }
            all.sort_by(|(score, at), (other, other_at)| other.total_cmp(score).then(at.cmp(other_at)));
            all.truncate(limit);
            assert_eq!(best.into_sorted(), all, "{limit}");
        }
    }
}
