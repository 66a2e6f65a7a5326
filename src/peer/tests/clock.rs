//! A node's clock in a model: some offset, and a rate within 1 % of the truth.

use crate::base::{Now, Rng};

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    offset: u64,
    /// Microseconds of this clock in a second.
    rate: u64,
}

impl Clock {
    /// Half of the clocks are as fast or as slow as may be.
    pub(super) fn new(rng: &mut Rng) -> Clock {
        let rate = match rng.below(4) {
            0 => 990_000,
            1 => 1_010_000,
            _ => 990_000 + rng.below(20_001),
        };
        Clock { offset: 1 + rng.below(1 << 40), rate }
    }

    pub(super) fn local(&self, truth: u64) -> Now {
        Now::from_us(self.offset + (u128::from(truth) * u128::from(self.rate) / 1_000_000) as u64)
    }

    /// The first true time at which the clock says `local` or later; 0 if it was there before the beginning.
    pub(super) fn truth(&self, local: Now) -> u64 {
        let passed = u128::from(local.us().saturating_sub(self.offset));
        (passed * 1_000_000).div_ceil(u128::from(self.rate)) as u64
    }
}
