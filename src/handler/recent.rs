use crate::limits::RECENT_LINKS;

/// Fingerprints of links seen lately: nine of ten links of a page were on another page just before, and need
/// not travel to the doc index. Forgetting one costs a question, never a URL.
///
/// Sets of four, the latest first: within a set the one unused longest is pushed out.
pub(super) struct Recent {
    sets: Box<[[u64; WAYS]]>,
}

const WAYS: usize = 4;
const SETS: usize = RECENT_LINKS / WAYS;

impl Recent {
    pub fn new() -> Recent {
        Recent { sets: vec![[0; WAYS]; SETS].into() }
    }

    /// 0 marks an empty place; the one URL that hashes to it is never held, which is harmless.
    pub fn holds(&self, fingerprint: u64) -> bool {
        fingerprint != 0 && self.sets[fingerprint as usize & (SETS - 1)].contains(&fingerprint)
    }

    pub fn note(&mut self, fingerprint: u64) {
        let set = &mut self.sets[fingerprint as usize & (SETS - 1)];
        set.rotate_right(1);
        set[0] = fingerprint;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_a_set_are_held() {
        let mut recent = Recent::new();
        let same_set = |n: u64| n * SETS as u64 + 7;
        for n in 1..=5 {
            recent.note(same_set(n));
        }
        assert!(!recent.holds(same_set(1)) && (2..=5).all(|n| recent.holds(same_set(n))));
        assert!(!recent.holds(0));
    }
}
