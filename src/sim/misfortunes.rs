use crate::base::{Now, Rng};

/// What befalls links and processes, and how often.
pub struct Misfortunes<K> {
    /// Mean virtual milliseconds between two of them; 0 = none.
    pub every_ms: u64,
    /// After that nothing more happens, so that the run can end.
    pub until: Now,
    /// How often which, compared with each other.
    pub weights: Vec<(K, u64)>,
}

impl<K: Copy> Misfortunes<K> {
    pub fn next_at(&self, rng: &mut Rng, now: Now) -> Now {
        match self.every_ms {
            0 => Now::NEVER,
            mean => {
                Some(now.plus_ms(1 + rng.below(2 * mean))).filter(|at| *at < self.until).unwrap_or(Now::NEVER)
            }
        }
    }

    pub fn draw(&self, rng: &mut Rng) -> K {
        let mut at = rng.below(self.weights.iter().map(|(_, weight)| weight).sum());
        for &(kind, weight) in &self.weights {
            if at < weight {
                return kind;
            }
            at -= weight;
        }
        unreachable!("it lies below the sum")
    }
}
