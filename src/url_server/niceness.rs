use crate::base::Now;
use crate::proto::record::ResultCode;

/// The rules by which a pause between two requests is found, for a host or for an address.
#[derive(Clone, Copy, Debug)]
pub struct Niceness {
    /// Pause from the configured rate; 0 = no limit.
    pub gap_us: u64,
    /// Open requests at once.
    pub concurrent: u8,
    /// The pause is at least this many times the last response time; 0 switches it off.
    pub delay_factor: f32,
}

/// The pause grown from the response time ends here.
const RESPONSE_PAUSE_US_MAX: u64 = 30_000_000;
/// Crawl-delay is honoured up to here.
const CRAWL_DELAY_MS_MAX: u32 = 300_000;
/// Retry-After is honoured up to here.
const RETRY_AFTER_S_MAX: u32 = 86_400;
/// 429 and 503 double the pause from at least the first to at most the second; each good answer takes back a
/// tenth of the first.
const PENALTY_US_MIN: u64 = 1_000_000;
const PENALTY_US_MAX: u64 = 3_600_000_000;
const PENALTY_RECOVERY_US: u64 = PENALTY_US_MIN / 10;

impl Niceness {
    pub fn from_rate(per_sec: f64, concurrent: u8, delay_factor: f32) -> Niceness {
        let gap_us = if per_sec > 0.0 { (1_000_000.0 / per_sec).ceil() as u64 } else { 0 };
        // A rate of 0 says "as fast as it answers", so the response time does not count either.
        Niceness { gap_us, concurrent, delay_factor: if gap_us == 0 { 0.0 } else { delay_factor } }
    }
}

/// What the spider says about a finished request, as far as niceness is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub result: ResultCode,
    /// 0 without a response.
    pub status: u16,
    pub took_us: u64,
    pub retry_after_s: Option<u32>,
}

/// When a host or an address may be asked next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    due: Now,
    /// The latest request went out then.
    last: Now,
    /// Grown from the last response time.
    response_pause_us: u32,
    /// Grown by 429 and 503.
    penalty_us: u32,
    crawl_delay_ms: u32,
}

impl From<Now> for Pace {
    fn from(due: Now) -> Pace {
        Pace { due, ..Pace::default() }
    }
}

impl Pace {
    pub(super) fn due(&self) -> Now {
        self.due
    }

    pub(super) fn set_crawl_delay(&mut self, delay_ms: Option<u32>) {
        self.crawl_delay_ms = delay_ms.unwrap_or(0).min(CRAWL_DELAY_MS_MAX);
    }

    pub(super) fn gap_us(&self, rules: &Niceness) -> u64 {
        rules
            .gap_us
            .max(u64::from(self.response_pause_us))
            .max(u64::from(self.penalty_us))
            .max(u64::from(self.crawl_delay_ms) * 1_000)
    }

    /// A request goes out now (or went out just now): the next one is a gap away.
    pub(super) fn asked(&mut self, rules: &Niceness, now: Now) {
        self.last = self.last.max(now);
        self.stretch(rules);
    }

    /// The gap may have grown: it counts from the latest request, whichever that was.
    pub(super) fn stretch(&mut self, rules: &Niceness) {
        self.due = self.due.max(self.last.plus_us(self.gap_us(rules)));
    }

    /// A request has been answered. The pause is counted from the latest request; only what the answer itself
    /// asks for is counted from now.
    pub(super) fn answered(&mut self, rules: &Niceness, report: &Report, now: Now) {
        let factor = f64::from(rules.delay_factor);
        let pause = (report.took_us as f64 * factor) as u64;
        self.response_pause_us = pause.min(RESPONSE_PAUSE_US_MAX) as u32;
        if matches!(report.status, 429 | 503) {
            let doubled = (self.gap_us(rules) * 2).clamp(PENALTY_US_MIN, PENALTY_US_MAX);
            self.penalty_us = doubled.min(u64::from(u32::MAX)) as u32;
            self.due = self.due.max(now.plus_us(self.gap_us(rules)));
        } else if report.status != 0 {
            self.penalty_us = self.penalty_us.saturating_sub(PENALTY_RECOVERY_US as u32);
        }
        self.stretch(rules);
        if let Some(seconds) = report.retry_after_s {
            self.due = self.due.max(now.plus_ms(u64::from(seconds.min(RETRY_AFTER_S_MAX)) * 1_000));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Report = Report { result: ResultCode::Ok, status: 200, took_us: 0, retry_after_s: None };

    #[test]
    fn the_pause_is_the_largest_of_its_reasons() {
        let rules = Niceness::from_rate(0.5, 1, 1.0);
        assert_eq!(rules.gap_us, 2_000_000);
        let mut pace = Pace::default();
        let now = Now::from_us(1_000);
        pace.asked(&rules, now);
        assert_eq!(pace.due(), now.plus_ms(2_000));
        pace.answered(&rules, &Report { took_us: 5_000_000, ..OK }, now.plus_ms(5_000));
        assert_eq!(pace.due(), now.plus_ms(5_000), "a slow answer stretches the pause");
        pace.set_crawl_delay(Some(7_000));
        pace.asked(&rules, now);
        assert_eq!(pace.due(), now.plus_ms(7_000));
        pace.answered(&rules, &Report { status: 429, retry_after_s: Some(60), ..OK }, now);
        assert_eq!(pace.due(), now.plus_ms(60_000));
        assert_eq!(pace.gap_us(&rules), 14_000_000, "doubled");
    }

    #[test]
    fn a_rate_of_zero_is_no_pause_but_for_what_the_host_asks() {
        let rules = Niceness::from_rate(0.0, 1, 1.0);
        let mut pace = Pace::default();
        pace.answered(&rules, &Report { took_us: 5_000_000, ..OK }, Now::from_us(9));
        assert_eq!(pace.due(), Now::ZERO);
        pace.answered(&rules, &Report { status: 503, ..OK }, Now::from_us(9));
        assert_eq!(pace.due(), Now::from_us(9 + PENALTY_US_MIN));
        for _ in 0..10 {
            pace.answered(&rules, &OK, Now::from_us(9));
        }
        assert_eq!(pace.gap_us(&rules), 0, "recovered, slowly");
    }
}
