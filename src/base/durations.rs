/// How long something took, counted by buckets, for whoever draws it over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// By the first bound that it does not exceed; the last are those beyond all bounds.
    counts: [u64; Durations::BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl Durations {
    /// A millisecond to a minute.
    pub const BOUNDS_US: [u32; 15] = [
        1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ];
    /// Numbers that [`Durations::figures`] gives.
    pub const FIGURES: usize = Durations::BOUNDS_US.len() + 2;

    pub fn note(&mut self, took_us: u64) {
        let capped = took_us.min(u64::from(u32::MAX)) as u32;
        // Without a branch: every bound is looked at, several at once.
        let at: usize = Durations::BOUNDS_US.iter().map(|&bound| usize::from(capped > bound)).sum();
        self.counts[at] += 1;
        self.sum_us += took_us;
    }

    /// What a share of those in [`Durations::figures`] did not exceed, as if each bucket were filled evenly.
    pub fn quantile_us(figures: &[u64], share: f64) -> Option<f64> {
        let counts = &figures[..Durations::BOUNDS_US.len() + 1];
        let wanted = share * counts.iter().sum::<u64>() as f64;
        let (mut before, mut from) = (0.0, 0.0);
        for (&count, &bound) in counts.iter().zip(&Durations::BOUNDS_US) {
            let (count, to) = (count as f64, f64::from(bound));
            if count > 0.0 && before + count >= wanted {
                return Some(from + (to - from) * (wanted - before) / count);
            }
            (before, from) = (before + count, to);
        }
        // Beyond the last bound nothing more is known.
        (counts.iter().any(|&count| count > 0)).then_some(from)
    }

    /// The counts of all buckets, then the sum of all in microseconds.
    pub fn figures(&self) -> [u64; Durations::FIGURES] {
        let mut figures = [self.sum_us; Durations::FIGURES];
        figures[..self.counts.len()].copy_from_slice(&self.counts);
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut durations = Durations::default();
        for took_us in [0, 1_000, 1_001, 60_000_000, 60_000_001, u64::MAX / 2] {
            durations.note(took_us);
        }
        let figures = durations.figures();
        assert_eq!(figures[..2], [2, 1]);
        assert_eq!(figures[14..16], [1, 2]);
        assert_eq!(figures[16], 2_001 + 120_000_001 + u64::MAX / 2);
        assert_eq!(figures[..16].iter().sum::<u64>(), 6);
    }
}
