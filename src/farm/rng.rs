//! SplitMix64: eight bytes of state, and any seed is a good one.

/// The odd constant of SplitMix64, 2^64 over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a draw is for. The same page asked for two purposes gets two unrelated streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Corpus,
    Kind,
    Framing,
    Body,
    PrivateBody,
}

pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Rng {
        Rng(mix(seed.wrapping_add(GAMMA)).wrapping_add(purpose as u64))
    }

    /// The stream of one page of one host.
    pub(super) fn of_page(seed: u64, purpose: Purpose, host: u32, page: u32) -> Rng {
        let place = u64::from(host) << 32 | u64::from(page);
        Rng(mix(Rng::new(seed, purpose).0 ^ mix(place.wrapping_add(GAMMA))))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
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

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vector() {
        let mut rng = Rng(1234567);
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
