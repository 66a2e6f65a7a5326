use crate::base::named_enum;

/// Pairs after which a parameter may be dropped, and the values that they must be spread over.
pub const PAIRS_MIN: u32 = 50;
pub const VALUES_MIN: usize = 3;
/// Pairs that are different after which it is kept.
pub const DIFFER_MAX: u32 = 3;
/// One in so many URLs goes in full though a parameter of it is dropped.
pub const PROBE_EVERY: u64 = 1_000;
/// Values that are told apart.
const VALUES_KEPT: usize = 8;

named_enum! {
    /// Whether a parameter makes another document.
    pub enum Verdict {
        /// Not enough is known; it is kept.
        Unknown = "unknown",
        Keep = "keep",
        Drop = "drop",
    }
}

/// What pairs of pages have shown of a parameter on paths of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub pairs: u32,
    pub same: u32,
    pub differ: u32,
    /// Of those different, how many since it is dropped.
    pub differ_since: u32,
    pub verdict: Verdict,
    /// Hashes of its first values.
    values: Vec<u32>,
}

impl Default for Evidence {
    fn default() -> Evidence {
        let (pairs, same, differ, differ_since) = (0, 0, 0, 0);
        Evidence { pairs, same, differ, differ_since, verdict: Verdict::Unknown, values: Vec::new() }
    }
}

impl Evidence {
    pub(super) fn restore(counts: [u32; 4], verdict: Verdict, mut values: Vec<u32>) -> Evidence {
        values.truncate(VALUES_KEPT);
        let [pairs, same, differ, differ_since] = counts;
        Evidence { pairs, same, differ, differ_since, verdict, values }
    }

    /// Different values, as far as they are told apart.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    pub(super) fn value_hashes(&self) -> &[u32] {
        &self.values
    }

    /// Takes a pair. `true` if the verdict is another now.
    pub(super) fn count(&mut self, is_same: bool, values: &[u32]) -> bool {
        self.pairs = self.pairs.saturating_add(1);
        let counter = if is_same { &mut self.same } else { &mut self.differ };
        *counter = counter.saturating_add(1);
        for value in values {
            if self.values.len() < VALUES_KEPT && !self.values.contains(value) {
                self.values.push(*value);
            }
        }
        let before = self.verdict;
        self.verdict = match before {
            Verdict::Keep => Verdict::Keep,
            Verdict::Drop => {
                self.differ_since += u32::from(!is_same);
                if self.differ_since >= DIFFER_MAX { Verdict::Keep } else { Verdict::Drop }
            }
            Verdict::Unknown if self.differ >= DIFFER_MAX => Verdict::Keep,
            Verdict::Unknown if self.is_clear() => Verdict::Drop,
            Verdict::Unknown => Verdict::Unknown,
        };
        self.verdict != before
    }

    fn is_clear(&self) -> bool {
        self.pairs >= PAIRS_MIN
            && self.values.len() >= VALUES_MIN
            && u64::from(self.differ) * 100 < u64::from(self.pairs)
    }
}
