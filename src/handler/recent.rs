use crate::limits::RECENT_LINKS;

/// Fingerprints of recently seen links: nine of ten links of a page were on another page just before, and need
/// not be sent to the doc index. Forgetting one costs a question, never a URL.
///
/// Sets of four, the latest first: within a set the one unused longest is pushed out.
#[derive(Default)]
pub(super) struct Recent {
    /// Made with the first link: some handlers never read a page.
    sets: Box<[[u64; WAYS]]>,
}

const WAYS: usize = 4;
const SETS: usize = RECENT_LINKS / WAYS;

impl Recent {
    /// 0 marks an empty place; the one URL that hashes to it is never held, which is harmless.
    pub fn holds(&self, fingerprint: u64) -> bool {
        let set = self.sets.get(fingerprint as usize & (SETS - 1));
        fingerprint != 0 && set.is_some_and(|set| set.contains(&fingerprint))
    }

    pub fn note(&mut self, fingerprint: u64) {
        if self.sets.is_empty() {
            self.sets = vec![[0; WAYS]; SETS].into();
        }
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
        let mut recent = Recent::default();
        assert!(!recent.holds(7));
        let same_set = |n: u64| n * SETS as u64 + 7;
        for n in 1..=5 {
            recent.note(same_set(n));
        }
        assert!(!recent.holds(same_set(1)) && (2..=5).all(|n| recent.holds(same_set(n))));
        assert!(!recent.holds(0));
    }
}
