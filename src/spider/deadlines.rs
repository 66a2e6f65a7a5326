use super::SpiderConfig;
use crate::base::Now;

/// The times by which a fetch must have moved on.
pub(super) struct Deadlines {
    started: Now,
    /// End of the present state.
    state_by: Now,
    working_at: Now,
    rate: Rate,
}

/// A time of [`Deadlines`] that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The fetch as a whole took too long.
    Total,
    /// Its state did.
    State,
    /// The server sends too slowly.
    Rate,
    /// WORKING is due; the next one is scheduled.
    Working,
}

impl Deadlines {
    pub fn new(state_us: u64, config: &SpiderConfig, now: Now) -> Deadlines {
        Deadlines {
            started: now,
            state_by: now.plus_us(state_us),
            working_at: now.plus_us(config.working_us),
            rate: Rate::UNMEASURED,
        }
    }

    pub fn started(&self) -> Now {
        self.started
    }

    /// A state begins that may take `us`.
    pub fn enter_state(&mut self, us: u64, now: Now) {
        self.state_by = now.plus_us(us);
    }

    pub fn received(&mut self, bytes: usize, read_us: u64, now: Now) {
        self.state_by = now.plus_us(read_us);
        self.rate.received(bytes, now);
    }

    /// The earliest of the times, so the latest moment to call [`Deadlines::passed`].
    pub fn due(&self, total_us: u64) -> Now {
        let total_by = self.started.plus_us(total_us);
        self.state_by.min(total_by).min(self.working_at).min(self.rate.check_at)
    }

    pub fn passed(&mut self, config: &SpiderConfig, now: Now) -> Option<Passed> {
        if self.started.plus_us(config.total_us) <= now {
            Some(Passed::Total)
        } else if self.state_by <= now {
            Some(Passed::State)
        } else if self.rate.check_at <= now && !self.rate.is_enough(config.rate_bytes_per_s, now) {
            Some(Passed::Rate)
        } else if self.working_at <= now {
            self.working_at = now.plus_us(config.working_us);
            Some(Passed::Working)
        } else {
            None
        }
    }
}

/// Bytes received in the current window. It is checked every [`RATE_WINDOW_US`], from the first byte on.
struct Rate {
    bytes: u64,
    /// When the last of them came.
    last: Now,
    check_at: Now,
}

const RATE_WINDOW_US: u64 = 10_000_000;

impl Rate {
    const UNMEASURED: Rate = Rate { bytes: 0, last: Now::ZERO, check_at: Now::NEVER };

    fn received(&mut self, bytes: usize, now: Now) {
        if self.check_at == Now::NEVER {
            self.check_at = now.plus_us(RATE_WINDOW_US);
        }
        self.bytes += bytes as u64;
        self.last = now;
    }

    /// Ends the window and says whether enough came in it. A server that has fallen silent may be computing, for as
    /// long as the read time-out lets it; this is about servers that drip.
    fn is_enough(&mut self, bytes_per_s: u64, now: Now) -> bool {
        let drips = now.since_us(self.last) < RATE_WINDOW_US / 2;
        let enough = self.bytes >= bytes_per_s * (RATE_WINDOW_US / 1_000_000);
        (self.bytes, self.check_at) = (0, now.plus_us(RATE_WINDOW_US));
        enough || !drips
    }
}
