use crate::base::Now;
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;

/// What is known of a host's robots rules. Times are whole seconds, as they are hours away.
pub(crate) enum RobotsState {
    Unknown,
    /// The request is with a spider.
    Asked,
    /// A redirect led to a URL of the same host, which is the next to be requested.
    Hop(Box<NextHop>),
    /// A redirect led to another host, where they are requested, after this many hops.
    Elsewhere {
        hops: u8,
        failing: Failing,
    },
    /// `None`: everything is allowed.
    Known {
        until_s: u32,
        rules: Option<Box<Robots>>,
    },
    /// Everything is disallowed until `until_s`, the time of the next attempt; `u32::MAX` while one is with a spider.
    Unreachable {
        until_s: u32,
        failing: Failing,
    },
    /// It has failed for so long that there is as good as no file, until it answers otherwise. Requested again at
    /// `until_s`.
    GivenUp {
        until_s: u32,
        failing: Failing,
    },
}

/// The next link of a chain of redirects, after this many.
pub(crate) struct NextHop {
    pub url: CrawlUrl,
    pub hops: u8,
    pub failing: Failing,
}

/// This many requests in a row failed, the first of them at `since_s` (negative: before the node started).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failing {
    pub since_s: i32,
    pub failures: u8,
}

/// Robots rules are requested again after a day, whatever they are.
pub(super) const TTL_S: u64 = 86_400;
const TTL_US: u64 = TTL_S * 1_000_000;
/// First pause after robots.txt could not be had; doubled up to a day.
const RETRY_US: u64 = 60_000_000;
/// After a month without an answer there are no rules.
const GIVE_UP_S: i64 = 30 * 86_400;

impl Failing {
    /// The pause until the next attempt.
    pub fn retry_us(self) -> u64 {
        (RETRY_US << self.failures.saturating_sub(1).min(11)).min(TTL_US)
    }
}

impl RobotsState {
    /// Rules that were learnt now; `None` for everything is allowed.
    pub fn known(rules: Option<Robots>, now: Now) -> RobotsState {
        let until_s = seconds(now.plus_us(TTL_US).us() / 1_000_000);
        let rules = rules.filter(|rules| *rules != Robots::allow_all()).map(Box::new);
        RobotsState::Known { until_s, rules }
    }

    /// This state after one more attempt failed.
    pub fn out_of_reach(&self, now: Now) -> RobotsState {
        let now_s = (now.us() / 1_000_000).min(i32::MAX as u64) as i32;
        let before = self.failing();
        let since_s = if before.failures == 0 { now_s } else { before.since_s };
        let failing = Failing { since_s, failures: before.failures.saturating_add(1) };
        if i64::from(now_s) - i64::from(since_s) >= GIVE_UP_S {
            return RobotsState::GivenUp { until_s: seconds(now.plus_us(TTL_US).us() / 1_000_000), failing };
        }
        let until_s = seconds(now.plus_us(failing.retry_us()).us().div_ceil(1_000_000));
        RobotsState::Unreachable { until_s, failing }
    }

    /// The attempts that failed since the last that did not.
    pub fn failing(&self) -> Failing {
        match self {
            RobotsState::Hop(next) => next.failing,
            RobotsState::Elsewhere { failing, .. }
            | RobotsState::Unreachable { failing, .. }
            | RobotsState::GivenUp { failing, .. } => *failing,
            RobotsState::Unknown | RobotsState::Asked | RobotsState::Known { .. } => Failing::default(),
        }
    }

    /// Pages may be asked for, as far as the rules allow.
    pub fn is_known(&self) -> bool {
        matches!(self, RobotsState::Known { .. } | RobotsState::GivenUp { .. })
    }

    pub fn allows(&self, path: &str) -> bool {
        match self {
            RobotsState::Known { rules: Some(rules), .. } => rules.allows(path.as_bytes()),
            _ => self.is_known(),
        }
    }

    /// Bytes on the heap of the rules.
    pub fn rules_bytes(&self) -> usize {
        match self {
            RobotsState::Known { rules: Some(rules), .. } => rules.heap_bytes(),
            _ => 0,
        }
    }

    /// Whether known rules are too old.
    pub fn is_expired(&self, now: Now) -> bool {
        matches!(self, RobotsState::Known { until_s, .. } | RobotsState::GivenUp { until_s, .. }
            if is_past(*until_s, now))
    }

    /// Whether everything is disallowed at present.
    pub fn disallows_all(&self, now: Now) -> bool {
        matches!(self, RobotsState::Unreachable { until_s, .. } if !is_past(*until_s, now))
    }

    /// This state with the request at a spider. How long the rules have been out of reach is kept until an answer comes.
    pub fn requested(&self) -> RobotsState {
        match self.failing() {
            Failing { failures: 0, .. } => RobotsState::Asked,
            failing => RobotsState::Unreachable { until_s: u32::MAX, failing },
        }
    }

    /// This state when the rules are to be requested: known ones are too old, or the last request came to nothing. A chain
    /// of redirects starts again at its first link.
    pub fn request_again(&self) -> RobotsState {
        match self.failing() {
            Failing { failures: 0, .. } => RobotsState::Unknown,
            failing => RobotsState::Unreachable { until_s: 0, failing },
        }
    }
}

fn is_past(at_s: u32, now: Now) -> bool {
    u64::from(at_s) * 1_000_000 <= now.us()
}

fn seconds(seconds: u64) -> u32 {
    seconds.min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_file_is_requested_ever_later_and_given_up_after_a_month() {
        let (mut state, mut now_s, mut pauses) = (RobotsState::Unknown, 0, Vec::new());
        let at = |second: u32| Now::from_us(u64::from(second) * 1_000_000);
        loop {
            state = state.out_of_reach(at(now_s));
            let RobotsState::Unreachable { until_s, .. } = state else { break };
            assert!(state.disallows_all(at(until_s - 1)) && !state.disallows_all(at(until_s)));
            assert!(!state.allows("/x"));
            pauses.push(until_s - now_s);
            now_s = until_s;
        }
        assert_eq!(pauses[..3], [60, 120, 240]);
        assert_eq!(pauses.last(), Some(&86_400));
        assert!(i64::from(now_s) >= GIVE_UP_S);
        // And from then on, a day after the other.
        for _ in 0..300 {
            let RobotsState::GivenUp { until_s, .. } = state else { panic!("given up") };
            assert!(
                state.allows("/x") && !state.is_expired(at(until_s - 1)) && state.is_expired(at(until_s))
            );
            assert_eq!(until_s - now_s, 86_400);
            now_s = until_s;
            state = state.request_again().requested().out_of_reach(at(now_s));
        }
    }

    #[test]
    fn a_redirect_is_no_answer_and_does_not_begin_the_month_anew() {
        let failing = Failing { since_s: -5, failures: 3 };
        let url = CrawlUrl::parse("http://a/b").unwrap();
        let hop = RobotsState::Hop(Box::new(NextHop { url, hops: 1, failing }));
        let elsewhere = RobotsState::Elsewhere { hops: 1, failing };
        for state in [hop.requested(), hop.request_again(), elsewhere] {
            let RobotsState::Unreachable { failing, .. } = state.out_of_reach(Now::ZERO) else { panic!() };
            assert_eq!(failing, Failing { since_s: -5, failures: 4 });
        }
    }
}
