use super::view::WaitsFor;
use crate::base::Now;
use crate::proto::record::{ResultCode, StatusAction};

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

impl Niceness {
    /// The same, with no more than so many requests open.
    #[must_use]
    pub(super) fn at_most(self, open: u8) -> Niceness {
        Niceness { concurrent: self.concurrent.min(open), ..self }
    }
}

/// The pause grown from the response time ends here.
const RESPONSE_PAUSE_US_MAX: u64 = 30_000_000;
/// Crawl-delay is honoured up to here.
const CRAWL_DELAY_MS_MAX: u32 = 300_000;
/// Retry-After is honoured up to here.
const RETRY_AFTER_S_MAX: u32 = 86_400;
/// 429 and 503 double the pause from at least the first to at most the second. Each good answer takes back a tenth of what
/// it is, and at least a tenth of the first: from an hour, less than a hundred answers lead to the usual pause. A recovery by
/// steps of one size would lose against doubling, and an address that refuses one request in fifty would end at the hour.
const PENALTY_US_MIN: u64 = 1_000_000;
const PENALTY_US_MAX: u64 = 3_600_000_000;
const PENALTY_RECOVERY_SHARE: u32 = 10;
const PENALTY_RECOVERY_US_MIN: u32 = PENALTY_US_MIN as u32 / PENALTY_RECOVERY_SHARE;
/// A host that has failed this often in a row is left alone for the second, doubled with each further failure up
/// to the third.
const FAILURES_FREE: u8 = 3;
const FAILURE_PAUSE_US_MIN: u64 = 1_000_000;
const FAILURE_PAUSE_US_MAX: u64 = 3_600_000_000;
/// A host that only failed is set aside for this long.
const SET_ASIDE_US: u64 = 86_400_000_000;

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

impl Report {
    /// What became of the request is not known.
    pub const UNKNOWN: Report =
        Report { result: ResultCode::ShardDied, status: 0, took_us: 0, retry_after_s: None };
}

/// When a host or an address may be asked next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    due: Now,
    /// The latest request went out this long before. An hour and more counts as an hour: the pause after it is then
    /// too long, never too short.
    last_before_us: u32,
    /// Grown from the last response time.
    pub response_pause_us: u32,
    /// Grown by 429 and 503.
    pub penalty_us: u32,
    /// Crawl-delay in milliseconds above eight bits of failures: requests in a row that brought no response at all.
    delay_and_failures: u32,
}

const _: () = assert!(size_of::<Pace>() == 24, "every host and every address has one");
const _: () = assert!(CRAWL_DELAY_MS_MAX < 1 << 24);

impl From<Now> for Pace {
    fn from(due: Now) -> Pace {
        Pace { due, ..Pace::default() }
    }
}

impl Pace {
    pub fn due(&self) -> Now {
        self.due
    }

    /// Whether it says nothing but when it is due.
    pub fn is_plain(&self) -> bool {
        (self.penalty_us, self.response_pause_us, self.delay_and_failures) == (0, 0, 0)
    }

    /// Nothing goes out before this.
    pub fn put_off(&mut self, due: Now) {
        self.set_due(self.due.max(due), self.last());
    }

    pub fn set_crawl_delay(&mut self, delay_ms: Option<u32>) {
        let delay_ms = delay_ms.unwrap_or(0).min(CRAWL_DELAY_MS_MAX);
        self.delay_and_failures = delay_ms << 8 | self.delay_and_failures & 0xff;
    }

    pub fn crawl_delay_ms(&self) -> u32 {
        self.delay_and_failures >> 8
    }

    pub fn failures(&self) -> u8 {
        self.delay_and_failures as u8
    }

    pub fn set_failures(&mut self, failures: u8) {
        self.delay_and_failures = self.delay_and_failures & !0xff | u32::from(failures);
    }

    fn last(&self) -> Now {
        Now::from_us(self.due.us().saturating_sub(u64::from(self.last_before_us)))
    }

    pub fn gap_us(&self, rules: &Niceness) -> u64 {
        rules
            .gap_us
            .max(u64::from(self.response_pause_us))
            .max(u64::from(self.penalty_us))
            .max(u64::from(self.crawl_delay_ms()) * 1_000)
    }

    /// What its pause is made of. More than the largest of its reasons is what the host asked for, or its failures.
    pub fn why(&self, rules: &Niceness) -> WaitsFor {
        let gap_us = self.gap_us(rules);
        let pause_us = self.due.since_us(self.last());
        // A penalty counts from the answer, and so is longer than the gap by what that took.
        let is_penalty = gap_us == u64::from(self.penalty_us) && pause_us < 2 * gap_us;
        if pause_us > gap_us && !is_penalty && self.last() > Now::ZERO {
            return if self.failures() >= FAILURES_FREE { WaitsFor::Failures } else { WaitsFor::RetryAfter };
        }
        match gap_us {
            gap_us if gap_us == rules.gap_us => WaitsFor::Rate,
            gap_us if gap_us == u64::from(self.crawl_delay_ms()) * 1_000 => WaitsFor::CrawlDelay,
            gap_us if gap_us == u64::from(self.penalty_us) => WaitsFor::Penalty,
            _ => WaitsFor::ResponseTime,
        }
    }

    /// Notes that a request goes out now: the next one is a gap away.
    pub fn asked(&mut self, rules: &Niceness, now: Now) {
        let last = self.last().max(now);
        self.set_due(self.due.max(last), last);
        self.stretch(rules);
    }

    /// Applies a gap that may have grown: it counts from the latest request.
    pub fn stretch(&mut self, rules: &Niceness) {
        let last = self.last();
        self.set_due(self.due.max(last.plus_us(self.gap_us(rules))), last);
    }

    /// Takes over what another server knew last. A pause that is open here goes on.
    pub fn take_over(&mut self, told: &Pace) {
        let Pace { response_pause_us, penalty_us, delay_and_failures, .. } = *told;
        *self = Pace { response_pause_us, penalty_us, delay_and_failures, ..*self };
        self.put_off(told.due);
    }

    /// Is as careful from here on as this and another server together.
    pub fn join(&mut self, told: &Pace) {
        self.response_pause_us = self.response_pause_us.max(told.response_pause_us);
        self.penalty_us = self.penalty_us.max(told.penalty_us);
        self.put_off(told.due);
    }

    fn set_due(&mut self, due: Now, last: Now) {
        self.due = due;
        self.last_before_us = due.since_us(last).min(u64::from(u32::MAX)) as u32;
    }

    /// Notes that a request has been answered. The pause is counted from the latest request; only what the answer itself
    /// asks for is counted from now.
    pub fn answered(&mut self, rules: &Niceness, report: &Report, now: Now) {
        let before_us = self.gap_us(rules);
        let factor = f64::from(rules.delay_factor);
        let pause = (report.took_us as f64 * factor) as u64;
        self.response_pause_us = pause.min(RESPONSE_PAUSE_US_MAX) as u32;
        if StatusAction::of(report.status) == StatusAction::BackOff {
            let doubled = (before_us.max(self.gap_us(rules)) * 2).clamp(PENALTY_US_MIN, PENALTY_US_MAX);
            self.penalty_us = doubled.min(u64::from(u32::MAX)) as u32;
            self.put_off(now.plus_us(self.gap_us(rules)));
        } else if report.status != 0 {
            let recovery_us = (self.penalty_us / PENALTY_RECOVERY_SHARE).max(PENALTY_RECOVERY_US_MIN);
            self.penalty_us = self.penalty_us.saturating_sub(recovery_us);
        }
        if report.status != 0 {
            self.set_failures(0);
        }
        self.stretch(rules);
        if let Some(seconds) = report.retry_after_s {
            self.put_off(now.plus_ms(u64::from(seconds.min(RETRY_AFTER_S_MAX)) * 1_000));
        }
    }

    /// Whether a pause changed in a way that must outlive this process: more than a plain gap, or back to one.
    pub fn is_notable(&self, before: &Pace, rules: &Niceness, now: Now) -> bool {
        let far_ahead = self.due.since_us(now) > rules.gap_us.max(1_000);
        let slate_changed = (self.penalty_us > 0) != (before.penalty_us > 0)
            || self.penalty_us > before.penalty_us
            || self.failures() != before.failures();
        // The pause after the next request will be this long, though the one after the last may be over.
        let slower = self.response_pause_us > before.response_pause_us
            && u64::from(self.response_pause_us) > rules.gap_us;
        far_ahead || slate_changed || slower
    }

    pub fn is_set_aside(&self, failures_max: u8, now: Now) -> bool {
        self.failures() >= failures_max && self.due > now
    }

    /// Notes that a host did not answer at all. True if that was once too often: it is set aside, and asked once more
    /// after a day.
    pub fn failed(&mut self, failures_max: u8, now: Now) -> bool {
        let failures = self.failures().saturating_add(1).min(failures_max);
        self.set_failures(failures);
        if failures >= failures_max {
            self.put_off(now.plus_us(SET_ASIDE_US));
            return true;
        }
        if failures >= FAILURES_FREE {
            let doublings = u32::from(failures - FAILURES_FREE).min(32);
            self.put_off(now.plus_us((FAILURE_PAUSE_US_MIN << doublings).min(FAILURE_PAUSE_US_MAX)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

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
    fn a_host_that_only_fails_is_left_alone_for_longer_and_longer() {
        let mut pace = Pace::default();
        let now = Now::from_us(5);
        let pauses: Vec<u64> = (0..7)
            .map(|_| {
                let mut next = pace;
                assert!(!next.failed(8, now.max(pace.due())));
                let pause = next.due().since_us(now.max(pace.due()));
                pace = next;
                pause / 1_000_000
            })
            .collect();
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16]);
        let now = pace.due();
        assert!(pace.failed(8, now), "the eighth is one too many");
        assert_eq!(pace.due(), now.plus_us(SET_ASIDE_US));
        assert!(pace.failed(8, pace.due()), "one more chance after that");
        pace.answered(&Niceness::from_rate(1.0, 1, 1.0), &OK, pace.due());
        assert!(!pace.failed(8, pace.due()), "an answer wipes the slate");
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

    #[test]
    fn an_hour_is_taken_back_within_a_hundred_answers() {
        let rules = Niceness::from_rate(1.0, 1, 1.0);
        let mut pace = Pace { penalty_us: PENALTY_US_MAX as u32, ..Pace::default() };
        pace.answered(&rules, &OK, Now::from_us(9));
        assert_eq!(pace.gap_us(&rules), PENALTY_US_MAX / 10 * 9, "a tenth of it");
        let answers = (1..).take_while(|_| {
            pace.answered(&rules, &OK, Now::from_us(9));
            pace.penalty_us > 0
        });
        assert!(answers.count() < 98);
        assert_eq!(pace.gap_us(&rules), rules.gap_us);
    }

    /// A year of polls, of which one in fifty is refused: the pause comes back again and again, and is short as a rule.
    #[test]
    fn an_address_that_refuses_now_and_then_keeps_its_pace_for_a_year() {
        let rules = Niceness::from_rate(1.0, 1, 1.0);
        let busy = Report { status: 503, ..OK };
        let (mut pace, mut rng) = (Pace::default(), Rng::new(16));
        let (mut now, year) = (Now::from_us(5), Now::from_us(5).plus_ms(365 * 86_400_000));
        let (mut requests, mut recovered, mut had_penalty) = (0u32, 0u32, false);
        while now < year {
            // Feeds of the address want something every minute.
            now = now.plus_ms(60_000).max(pace.due());
            pace.asked(&rules, now);
            pace.answered(&rules, if rng.chance(20) { &busy } else { &OK }, now.plus_ms(100));
            requests += 1;
            recovered += u32::from(had_penalty && pace.penalty_us == 0);
            had_penalty = pace.penalty_us > 0;
        }
        let minutes = 365 * 24 * 60;
        assert!(requests > minutes / 100 * 98, "{requests} requests in {minutes} minutes");
        assert!(recovered > 1_000, "it came back {recovered} times");
    }
}
