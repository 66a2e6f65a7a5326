use super::SpiderConfig;
use crate::base::Now;
use crate::proto::record::ResultCode;

/// The times by which a fetch must have moved on.
pub(super) struct Deadlines {
    started: Now,
    /// End of the present state.
    state_by: Now,
    working_at: Now,
    rate: Rate,
}

impl Deadlines {
    pub fn new(state_us: u64, config: &SpiderConfig, now: Now) -> Deadlines {
        Deadlines {
            started: now,
            state_by: now.plus_us(state_us),
            working_at: now.plus_us(config.limits.working_us),
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

    /// The earliest of the times, so the latest moment to call [`Deadlines::check`].
    pub fn due(&self, total_us: u64) -> Now {
        let total_by = self.started.plus_us(total_us);
        self.state_by.min(total_by).min(self.working_at).min(self.rate.check_at)
    }

    /// The result if a time has passed, `late` if it is that of the state. True if WORKING is due.
    pub fn check(&mut self, late: ResultCode, config: &SpiderConfig, now: Now) -> Result<bool, ResultCode> {
        if self.started.plus_us(config.limits.total_us) <= now {
            return Err(ResultCode::TotalTimeout);
        }
        if self.state_by <= now {
            return Err(late);
        }
        if self.rate.check_at <= now && !self.rate.is_enough(config.limits.rate_bytes_per_s, now) {
            return Err(ResultCode::TooSlow);
        }
        let is_working = self.working_at <= now;
        if is_working {
            self.working_at = now.plus_us(config.limits.working_us);
        }
        Ok(is_working)
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
