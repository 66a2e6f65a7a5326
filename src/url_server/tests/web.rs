//! The web of the model: what hosts answer, and what their answers oblige us to. Written from the rules for the web
//! (niceness, robots.txt), not from the code under test.

use crate::base::Rng;
use crate::proto::record::{Fault, ResultCode};
use crate::proto::url::CrawlUrl;
use crate::url_server::{Niceness, Report};

pub(super) const SECOND: u64 = 1_000_000;
pub(super) const DAY: u64 = 86_400 * SECOND;

/// When one host or one address may be asked again. Times are microseconds of virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manners {
    /// The latest request, if it still counts.
    pub last: Option<u64>,
    pub response_us: u64,
    pub penalty_us: u64,
    pub crawl_delay_us: u64,
    pub failures: u8,
    /// What answers asked for: Retry-After, the pause after 429 and 503, backing off.
    pub promised: u64,
    /// The latest of all pauses that were ever open: an implementation need not shorten one.
    pub latest: u64,
    /// The latest request, whether it counts or not: an implementation may count from there.
    pub asked_at: Option<u64>,
}

impl Manners {
    pub fn gap(&self, rules: &Niceness) -> u64 {
        rules.gap_us.max(self.response_us).max(self.penalty_us).max(self.crawl_delay_us)
    }

    /// Nothing may go out before.
    pub fn allowed_at(&self, rules: &Niceness) -> u64 {
        self.last.map_or(0, |last| last + self.gap(rules)).max(self.promised)
    }

    pub fn asked(&mut self, rules: &Niceness, now: u64) {
        (self.last, self.asked_at) = (Some(now), Some(now));
        self.note(rules);
    }

    pub fn note(&mut self, rules: &Niceness) {
        let stretched = self.asked_at.map_or(0, |at| at + self.gap(rules));
        self.latest = self.latest.max(self.allowed_at(rules)).max(stretched);
    }

    /// A 429 or 503 is answered by twice the gap that was in force, or the one its own slowness calls for.
    pub fn answered(&mut self, rules: &Niceness, report: &Report, now: u64) {
        let before = self.gap(rules);
        let slow = (report.took_us as f64 * f64::from(rules.delay_factor)) as u64;
        self.response_us = slow.min(30 * SECOND);
        if matches!(report.status, 429 | 503) {
            self.penalty_us = (2 * before.max(self.gap(rules))).clamp(SECOND, 3_600 * SECOND);
            self.promised = self.promised.max(now + self.penalty_us);
        } else if report.status != 0 {
            self.penalty_us = self.penalty_us.saturating_sub((self.penalty_us / 10).max(SECOND / 10));
        }
        if let Some(seconds) = report.retry_after_s {
            self.promised = self.promised.max(now + u64::from(seconds.min(86_400)) * SECOND);
        }
        if report.status != 0 {
            self.failures = 0;
        }
        self.note(rules);
    }

    /// A host brought nothing at all: from the third time on it is left alone for longer and longer, and at last
    /// for a day.
    pub fn failed(&mut self, report: &Report, failures_max: u8, now: u64) {
        if report.status != 0 || report.result.fault() != Fault::Network {
            return;
        }
        self.failures = (self.failures + 1).min(failures_max);
        let pause = match self.failures {
            n if n >= failures_max => DAY,
            n if n >= 3 => (SECOND << (n - 3)).min(3_600 * SECOND),
            _ => 0,
        };
        self.promised = self.promised.max(if pause > 0 { now + pause } else { 0 });
        self.latest = self.latest.max(self.promised);
    }
}

/// What robots.txt of a host is known to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Unknown,
    /// Everything but what starts with `/no`, or everything, since then.
    Known {
        at: u64,
        no: bool,
    },
    Unreachable {
        at: u64,
        since: u64,
    },
    /// They are requested at another host, after this many hops.
    Elsewhere {
        hops: u8,
    },
}

impl Gate {
    pub fn allows(self, path: &str, now: u64) -> bool {
        matches!(self, Gate::Known { at, no } if now <= at + DAY && !(no && path.starts_with("/no")))
    }
}

/// An answer to robots.txt.
pub(super) enum RobotsAnswer {
    Body {
        text: &'static str,
        no: bool,
        delay_us: u64,
    },
    Status(u16),
    Failed,
    /// A redirect, if it leads anywhere.
    Redirect(Option<CrawlUrl>),
}

const BODIES: [(&str, bool, u64); 6] = [
    ("", false, 0),
    ("User-agent: *\nDisallow: /no\n", true, 0),
    ("User-agent: nephila\nDisallow: /no\n\nUser-agent: *\nDisallow: /\n", true, 0),
    ("User-agent: *\nCrawl-delay: 2\nDisallow: /no", true, 2 * SECOND),
    ("User-agent: *\nCrawl-delay: 0.5\n", false, SECOND / 2),
    ("User-agent: *\nDisallow: /no\nCrawl-delay: 40", true, 40 * SECOND),
];

/// How a host behaves, for as long as the run lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Temper {
    Plain,
    /// Often busy: 429, 503, Retry-After.
    Busy,
    /// Often out of reach.
    Dead,
    /// Its robots.txt is somewhere else.
    Winding,
}

impl Temper {
    pub fn any(rng: &mut Rng) -> Temper {
        match rng.below(8) {
            0..4 => Temper::Plain,
            4..6 => Temper::Busy,
            6 => Temper::Dead,
            _ => Temper::Winding,
        }
    }

    pub fn robots(self, rng: &mut Rng, here: &CrawlUrl, elsewhere: &CrawlUrl) -> RobotsAnswer {
        let sort = match self {
            Temper::Plain => rng.below(13),
            Temper::Busy => 6 + rng.below(6),
            Temper::Dead if rng.chance(400) => 10,
            Temper::Winding if rng.chance(800) => 11 + rng.below(5),
            _ => rng.below(15),
        };
        match sort {
            0..7 => {
                let (text, no, delay_us) = BODIES[rng.below(BODIES.len() as u64) as usize];
                RobotsAnswer::Body { text, no, delay_us }
            }
            7 => RobotsAnswer::Status(if rng.chance(500) { 404 } else { 403 }),
            8 => RobotsAnswer::Status(if rng.chance(500) { 500 } else { 503 }),
            9 => RobotsAnswer::Status(429),
            10 => RobotsAnswer::Failed,
            11 => RobotsAnswer::Redirect(None),
            12 => RobotsAnswer::Redirect(Some(here.with_path("/robots.txt"))),
            13 => RobotsAnswer::Redirect(Some(here.with_path("/hop"))),
            _ => RobotsAnswer::Redirect(Some(elsewhere.clone())),
        }
    }

    pub fn page_status(self, rng: &mut Rng) -> u16 {
        let sort = rng.below(100);
        match self {
            Temper::Busy if sort < 30 => [429, 503][rng.below(2) as usize],
            Temper::Dead if sort < 90 => 0,
            _ if sort < 3 => [429, 503][rng.below(2) as usize],
            _ if sort < 7 => 0,
            _ if sort < 20 => 404,
            _ => 200,
        }
    }
}

/// What the spider reports of an answer with this status.
pub(super) fn report(rng: &mut Rng, status: u16) -> Report {
    let took_us = match rng.below(10) {
        0 => rng.below(40 * SECOND),
        1..4 => rng.below(2 * SECOND),
        _ => rng.below(SECOND / 20),
    };
    let says_when = rng.chance(if matches!(status, 429 | 503) { 400 } else { 20 });
    let retry_after_s = (says_when && status != 0).then(|| match rng.below(20) {
        0 => 90_000,
        1..3 => 3_600,
        _ => rng.below(30) as u32,
    });
    let result = match status {
        0 if rng.chance(900) => ResultCode::ConnectTimeout,
        0 => ResultCode::Malformed,
        200..300 => ResultCode::Ok,
        300..400 => ResultCode::Redirect,
        _ => ResultCode::HttpError,
    };
    Report { result, status, took_us, retry_after_s }
}
