//! Draws by purpose and page.

use crate::base;

/// What a draw is for. The same page asked for two purposes gets two unrelated streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Corpus,
    Kind,
    Framing,
    Body,
    PrivateBody,
    Feed,
    Story,
    Frame,
    Length,
    Latency,
    Coding,
    Trap,
}

pub(super) struct Rng(base::Rng);

impl Rng {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Rng {
        Rng(base::Rng::new(start(seed, purpose)))
    }

    /// The stream of one page of one host.
    pub(super) fn of_page(seed: u64, purpose: Purpose, host: u32, page: u32) -> Rng {
        let place = u64::from(host) << 32 | u64::from(page);
        Rng(base::Rng::new(base::Rng::mix(start(seed, purpose) ^ base::Rng::new(place).next_u64())))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; the bias of the multiplication is below one in four thousand million.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number in `0.0..1.0`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn start(seed: u64, purpose: Purpose) -> u64 {
    base::Rng::new(seed).next_u64().wrapping_add(purpose as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vector() {
        let mut rng = Rng(base::Rng::new(1234567));
        assert_eq!(rng.next(), 6457827717110365317);
        assert_eq!(rng.next(), 3203168211198807973);
    }

    #[test]
    fn purposes_and_pages_differ() {
        let first = |purpose, host, page| Rng::of_page(1, purpose, host, page).next();
        assert_ne!(first(Purpose::Kind, 0, 1), first(Purpose::Body, 0, 1));
        assert_ne!(first(Purpose::Kind, 0, 1), first(Purpose::Kind, 1, 0));
        assert_eq!(first(Purpose::Kind, 7, 9), first(Purpose::Kind, 7, 9));
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut rng = Rng::new(3, Purpose::Corpus);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
    }
}
