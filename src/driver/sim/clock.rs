use crate::base::Now;

/// The clock of a simulated machine, which may run at another rate than time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimClock {
    /// Its microseconds in a second.
    rate_ppm: u64,
}

const TRUE_PPM: u64 = 1_000_000;

impl SimClock {
    pub const TRUE: SimClock = SimClock { rate_ppm: TRUE_PPM };

    /// One that shows so many microseconds after a second.
    pub fn at_rate(rate_ppm: u64) -> SimClock {
        SimClock { rate_ppm: rate_ppm.max(1) }
    }

    /// What it shows at a time.
    pub fn shows(self, now: Now) -> Now {
        Now::from_us(scaled(now.us(), self.rate_ppm, TRUE_PPM))
    }

    /// The first time at which it shows this.
    pub fn when(self, shown: Now) -> Now {
        if shown == Now::NEVER {
            return Now::NEVER;
        }
        let near = Now::from_us(scaled(shown.us(), TRUE_PPM, self.rate_ppm));
        // Numbers are whole, and so it may take a tick more.
        (0..8).map(|us| near.plus_us(us)).find(|at| self.shows(*at) >= shown).unwrap_or(near.plus_us(8))
    }
}

fn scaled(us: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(us) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_time_when_it_says_it_does() {
        for rate_ppm in [990_000, 999_999, 1_000_000, 1_000_001, 1_010_000, 400_000, 1_600_000] {
            let clock = SimClock::at_rate(rate_ppm);
            for us in (0..2_000).chain([1_000_000, 123_456_789, 86_400_000_000]) {
                let at = clock.when(Now::from_us(us));
                assert!(clock.shows(at).us() >= us, "{rate_ppm} {us}");
                assert!(at.us() == 0 || clock.shows(Now::from_us(at.us() - 1)).us() < us, "{rate_ppm} {us}");
            }
        }
        assert_eq!(SimClock::TRUE.shows(Now::from_us(77)), Now::from_us(77));
    }
}
