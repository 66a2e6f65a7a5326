use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How good a story is.
pub(super) type Score = f32;

/// Where a story stands in the index: its segment, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoryAt {
    pub segment: u32,
    pub story: u32,
}

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
    at: StoryAt,
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

    pub fn put(&self, score: Score, at: StoryAt) {
        let ranked = Ranked { score, at };
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
    pub fn into_sorted(self) -> Vec<(Score, StoryAt)> {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept.into_sorted_vec().into_iter().map(|Reverse(Ranked { score, at })| (score, at)).collect()
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.at.cmp(&self.at))
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
            let mut all: Vec<(Score, StoryAt)> =
                (0..500).map(|doc| (rng.below(40) as Score, StoryAt { segment: 0, story: doc })).collect();
            all.sort_by_cached_key(|_| rng.below(u64::MAX));
            let best = Best::new(limit);
            for (score, at) in &all {
                if *score >= best.worst() {
                    best.put(*score, *at);
                }
            }
            all.sort_by(|(score, at), (other, other_at)| other.total_cmp(score).then(at.cmp(other_at)));
            all.truncate(limit);
            assert_eq!(best.into_sorted(), all, "{limit}");
        }
    }
}
