use super::Civil;
use std::fmt;

/// Monotonic time in microseconds since the node started. Roles compare and add; only drivers read clocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Now(u64);

impl Now {
    pub const ZERO: Now = Now(0);
    pub const NEVER: Now = Now(u64::MAX);

    pub const fn from_us(us: u64) -> Now {
        Now(us)
    }

    pub const fn us(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus_us(self, us: u64) -> Now {
        Now(self.0.saturating_add(us))
    }

    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Now {
        self.plus_us(ms.saturating_mul(1_000))
    }

    /// Microseconds from `earlier` to here; 0 if `earlier` is later.
    pub const fn since_us(self, earlier: Now) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// What the calendar said when [`Now`] was zero; turns a `Now` into a date.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    pub unix_ms_at_zero: u64,
}

impl Wall {
    pub fn unix_ms(self, now: Now) -> u64 {
        self.unix_ms_at_zero + now.us() / 1_000
    }
}

/// A calendar that says less than this, in seconds since 1970, was not set: it is of the year 2025.
pub const CLOCK_SET_S: u64 = 1_735_689_600;

/// RFC 3339 in UTC with milliseconds, from milliseconds since 1970.
pub fn rfc3339(unix_ms: u64) -> String {
    let (days, ms_of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let Civil { year, month, day } = Civil::from_days(u32::try_from(days).unwrap_or(u32::MAX));
    let s = ms_of_day / 1_000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        s / 3_600,
        s / 60 % 60,
        s % 60,
        ms_of_day % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(4_102_444_800_001), "2100-01-01T00:00:00.001Z");
    }

    #[test]
    fn differences_do_not_wrap() {
        assert_eq!(Now::from_us(5).since_us(Now::from_us(9)), 0);
        assert_eq!(Now::NEVER.plus_ms(1), Now::NEVER);
    }
}
