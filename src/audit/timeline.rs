use super::report::{Gap, Kind, Report, Subject, Tally, Violation, Why};
use super::row::{Learnt, Row, Run};
use crate::proto::crawl_log::RunRules;

/// A gap may be this much shorter than the rules say: clocks are read at slightly different moments, and are
/// rounded.
const TOLERANCE_US: u64 = 1_000;

/// The promises of the specification; kept apart from the url server's own figures, so that a mistake there shows.
const RESPONSE_PAUSE_US_MAX: u64 = 30_000_000;
const CRAWL_DELAY_MS_MAX: u32 = 300_000;
const RETRY_AFTER_S_MAX: u32 = 86_400;
const BACK_OFF_US_MIN: u64 = 1_000_000;
const BACK_OFF_US_MAX: u64 = 3_600_000_000;
const ROBOTS_AGE_US_MAX: u64 = 86_400_000_000;
/// A page may have been decided on while the rules were fresh, and sent when its connection was made.
const ROBOTS_AGE_SLACK_US: u64 = 120_000_000;

/// What a run promised to each host, or to each address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// 0 = no limit.
    gap_us: u64,
    concurrent: u32,
    /// 0 at a rate of 0.
    delay_factor: f64,
}

impl Bounds {
    pub fn of_host(rules: &RunRules) -> Bounds {
        Bounds::new(rules.req_host_per_sec, rules.req_host_concurrent, rules.delay_factor)
    }

    pub fn of_ip(rules: &RunRules) -> Bounds {
        Bounds::new(rules.req_ip_per_sec, rules.req_ip_concurrent, rules.delay_factor)
    }

    fn new(per_sec: f64, concurrent: u32, delay_factor: f64) -> Bounds {
        let gap_us = if per_sec > 0.0 { (1e6 / per_sec) as u64 } else { 0 };
        Bounds { gap_us, concurrent, delay_factor: if per_sec > 0.0 { delay_factor } else { 0.0 } }
    }

    /// The less strict of two, each figure by itself.
    fn or_less(self, other: Bounds) -> Bounds {
        Bounds {
            gap_us: self.gap_us.min(other.gap_us),
            concurrent: self.concurrent.max(other.concurrent),
            delay_factor: self.delay_factor.min(other.delay_factor),
        }
    }

    /// The pause that a response time asks for.
    fn response_us(&self, took_us: u32) -> u64 {
        ((f64::from(took_us) * self.delay_factor) as u64).min(RESPONSE_PAUSE_US_MAX)
    }
}

/// All requests to one host or address, by the time they were sent.
pub(super) struct Timeline<'a> {
    pub subject: Subject,
    /// Sorted by `sent_us`; never empty.
    pub rows: &'a [Row],
    pub runs: &'a [Run],
    pub bounds: fn(&RunRules) -> Bounds,
    /// What robots.txt said of the host, sorted by `end_us`.
    pub learnt: &'a mut [Learnt],
}

/// What the answers up to a moment ask for.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at_us: u64,
    /// Response time of the latest answer, and the pause that it asked for by the rules of that moment.
    took_us: u32,
    response_us: u64,
    /// Nothing before, and why.
    not_before_us: u64,
    why: Why,
    /// The answer that said so.
    said_by: u32,
}

impl Timeline<'_> {
    pub fn judge(self, name: String, report: &mut Report) -> Tally {
        // Unreachable rules leave the Crawl-delay as it was.
        let mut delay_ms = 0;
        for learnt in self.learnt.iter_mut() {
            delay_ms = if learnt.known { learnt.crawl_delay_ms.min(CRAWL_DELAY_MS_MAX) } else { delay_ms };
            learnt.crawl_delay_ms = delay_ms;
        }
        let mut ends: Vec<u32> = (0..self.rows.len() as u32).collect();
        // Of answers that came at once either may be the latest: the one that asks for less.
        ends.sort_unstable_by_key(|&at| {
            let row = &self.rows[at as usize];
            (row.end_us(), std::cmp::Reverse(row.took_us))
        });
        let heard = self.hear(&ends);

        let mut tally = Tally { name, requests: self.rows.len() as u64, smallest: None, open_max: 1 };
        let mut ended = 0;
        // The request that ends last of those before: if any is still open, this one is.
        let mut last_to_end = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let bounds = self.bounds_of(row);
            while ended < ends.len() && self.rows[ends[ended] as usize].end_us() <= row.sent_us {
                ended += 1;
            }
            let open = ((at + 1).saturating_sub(ended)) as u32;
            tally.open_max = tally.open_max.max(open);
            if open > bounds.concurrent {
                let kind = Kind::Open { open, allowed: bounds.concurrent };
                report.blame(self.violation(kind, row, Some(&self.rows[last_to_end])));
            }
            if row.end_us() > self.rows[last_to_end].end_us() {
                last_to_end = at;
            }
            if at > 0 {
                self.judge_gap(at, &bounds, &heard, &mut tally, report);
            }
            if row.is_page && matches!(self.subject, Subject::Host(_)) {
                self.judge_robots(row, report);
            }
        }
        tally
    }

    /// What this host, or this address, has asked for after each answer.
    fn hear(&self, ends: &[u32]) -> Vec<Heard> {
        // What a host asks for does not bind its neighbours on the address.
        let wishes_count = matches!(self.subject, Subject::Host(_));
        let (mut back_off_us, mut not_before_us, mut why, mut said_by) = (0, 0, Why::BackOff, 0);
        let mut heard = Vec::with_capacity(ends.len());
        for &at in ends {
            let row = &self.rows[at as usize];
            // The rules may have changed since the request was decided on.
            let bounds = (self.bounds)(&self.runs[Run::at(self.runs, row.run, row.end_us()) as usize].rules);
            if wishes_count && row.is_refusal() {
                let delay_us = self.crawl_delay_us(row.end_us());
                let before =
                    bounds.gap_us.max(bounds.response_us(row.took_us)).max(delay_us).max(back_off_us);
                back_off_us = before.saturating_mul(2).clamp(BACK_OFF_US_MIN, BACK_OFF_US_MAX);
                let retry_us = u64::from(row.retry_after_s.min(RETRY_AFTER_S_MAX)) * 1_000_000;
                for (pause_us, reason) in [(back_off_us, Why::BackOff), (retry_us, Why::RetryAfter)] {
                    let until_us = row.end_us().saturating_add(pause_us);
                    if until_us > not_before_us {
                        (not_before_us, why, said_by) = (until_us, reason, at);
                    }
                }
            } else if row.status != 0 {
                back_off_us = 0;
            }
            heard.push(Heard {
                at_us: row.heard_us(),
                took_us: row.took_us,
                response_us: bounds.response_us(row.took_us),
                not_before_us,
                why,
                said_by,
            });
        }
        heard
    }

    fn judge_gap(&self, at: usize, bounds: &Bounds, heard: &[Heard], tally: &mut Tally, report: &mut Report) {
        let (last, row) = (&self.rows[at - 1], &self.rows[at]);
        let decided_us = row.decided_us();
        let latest = heard[..heard.partition_point(|heard| heard.at_us <= decided_us)].last();
        let mut other = last;
        let (mut allowed_us, mut why) = (bounds.gap_us, Why::Rate);
        // A higher factor counts from the next answer on.
        let response_us = latest.map_or(0, |heard| bounds.response_us(heard.took_us).min(heard.response_us));
        for (pause_us, reason) in
            [(response_us, Why::ResponseTime), (self.crawl_delay_us(decided_us), Why::CrawlDelay)]
        {
            if pause_us > allowed_us {
                (allowed_us, why) = (pause_us, reason);
            }
        }
        if let Some(heard) = latest {
            let pause_us = heard.not_before_us.saturating_sub(last.sent_us);
            if pause_us > allowed_us {
                (allowed_us, why) = (pause_us, heard.why);
                other = &self.rows[heard.said_by as usize];
            }
        }
        let gap_us = row.sent_us - last.sent_us;
        if tally.smallest.is_none_or(|smallest| gap_us < smallest.gap_us) {
            let place = self.runs[row.run as usize].place(row.line);
            tally.smallest = Some(Gap { gap_us, allowed_us, place });
        }
        if gap_us + TOLERANCE_US < allowed_us {
            report.blame(self.violation(Kind::Gap { gap_us, allowed_us, why }, row, Some(other)));
        }
    }

    fn judge_robots(&self, row: &Row, report: &mut Report) {
        let fault = |at_us: u64| match self.learnt_by(at_us) {
            None => Some(Kind::BeforeRobots),
            Some(learnt) if !learnt.known => Some(Kind::RobotsUnreachable),
            Some(learnt) if !self.is_for(learnt, row) => Some(Kind::RobotsAgent),
            Some(learnt) => {
                let age_us = at_us - learnt.end_us;
                (age_us > ROBOTS_AGE_US_MAX + ROBOTS_AGE_SLACK_US).then_some(Kind::RobotsStale { age_us })
            }
        };
        if let Some(kind) = fault(row.sent_us)
            && fault(row.decided_us()).is_some()
        {
            report.blame(self.violation(kind, row, None));
        }
    }

    /// Whether rules were read for the name under which a page was asked for.
    fn is_for(&self, learnt: &Learnt, row: &Row) -> bool {
        let run = |number: u32| &self.runs[number as usize];
        learnt.run == row.run || run(row.run).shares_rules(run(learnt.run))
    }

    /// What a request is held to. Rules that changed between the decision to ask and the request may both have been kept:
    /// another request, decided on later, may have gone out before it.
    fn bounds_of(&self, row: &Row) -> Bounds {
        let mut run = row.run;
        let mut bounds = (self.bounds)(&self.runs[run as usize].rules);
        while self.runs[run as usize].until_us <= row.sent_us {
            run = self.runs[run as usize].next;
            bounds = bounds.or_less((self.bounds)(&self.runs[run as usize].rules));
        }
        bounds
    }

    fn learnt_by(&self, at_us: u64) -> Option<&Learnt> {
        self.learnt[..self.learnt.partition_point(|learnt| learnt.end_us <= at_us)].last()
    }

    fn crawl_delay_us(&self, at_us: u64) -> u64 {
        self.learnt_by(at_us).map_or(0, |learnt| u64::from(learnt.crawl_delay_ms) * 1_000)
    }

    fn violation(&self, kind: Kind, row: &Row, other: Option<&Row>) -> Violation {
        let place = |row: &Row| self.runs[row.run as usize].place(row.line);
        Violation {
            kind,
            subject: self.subject,
            at_us: row.sent_us,
            place: place(row),
            other: other.map(place),
        }
    }
}
