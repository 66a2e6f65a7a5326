use crate::base::Now;
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;

/// What is known of a host's robots rules. Times are whole seconds, as they are hours away.
pub(crate) enum RobotsState {
    Unknown,
    /// The request is with a spider.
    Asked,
    /// A redirect led to this URL of the same host, which is the next to be requested, after this many hops.
    Hop(Box<(CrawlUrl, u8)>),
    /// A redirect led to another host, where they are requested, after this many hops.
    Elsewhere {
        hops: u8,
    },
    /// `None`: everything is allowed.
    Known {
        until_s: u32,
        rules: Option<Box<Robots>>,
    },
    /// This many requests in a row failed, the first of them at `since_s` (negative: before the node started).
    /// Everything is disallowed until `until_s`, the time of the next attempt; `u32::MAX` while one is with a spider.
    Unreachable {
        until_s: u32,
        since_s: i32,
        failures: u8,
    },
}

/// Robots rules are requested again after a day.
const TTL_US: u64 = 86_400_000_000;
/// First pause after robots.txt could not be had; doubled up to a day.
const RETRY_US: u64 = 60_000_000;
/// After a month without an answer there are no rules.
const GIVE_UP_S: i64 = 30 * 86_400;

impl RobotsState {
    /// Rules that were learnt now; `None` for everything is allowed.
    pub fn known(rules: Option<Robots>, now: Now) -> RobotsState {
        let until_s = seconds(now.plus_us(TTL_US).us() / 1_000_000);
        let rules = rules.filter(|rules| *rules != Robots::allow_all()).map(Box::new);
        RobotsState::Known { until_s, rules }
    }

    /// This state after one more attempt failed; `None` once they have failed for too long.
    pub fn out_of_reach(&self, now: Now) -> Option<RobotsState> {
        let now_s = (now.us() / 1_000_000).min(i32::MAX as u64) as i32;
        let (since_s, failures) = match *self {
            RobotsState::Unreachable { since_s, failures, .. } => (since_s, failures),
            _ => (now_s, 0),
        };
        if i64::from(now_s) - i64::from(since_s) >= GIVE_UP_S {
            return None;
        }
        let retry_us = (RETRY_US << failures.min(11)).min(TTL_US);
        let until_s = seconds(now.plus_us(retry_us).us().div_ceil(1_000_000));
        Some(RobotsState::Unreachable { until_s, since_s, failures: failures.saturating_add(1) })
    }

    pub fn allows(&self, path: &str) -> bool {
        matches!(self, RobotsState::Known { rules, .. }
            if rules.as_ref().is_none_or(|rules| rules.allows(path.as_bytes())))
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
        matches!(self, RobotsState::Known { until_s, .. } if is_past(*until_s, now))
    }

    /// Whether everything is disallowed at present.
    pub fn disallows_all(&self, now: Now) -> bool {
        matches!(self, RobotsState::Unreachable { until_s, .. } if !is_past(*until_s, now))
    }

    /// This state with the request at a spider. How long the rules have been out of reach is kept until an answer comes.
    pub fn requested(&self) -> RobotsState {
        match *self {
            RobotsState::Unreachable { since_s, failures, .. } => {
                RobotsState::Unreachable { until_s: u32::MAX, since_s, failures }
            }
            _ => RobotsState::Asked,
        }
    }

    /// This state after the request came to nothing: a chain of redirects starts again at its first link.
    pub fn request_again(&self) -> RobotsState {
        match *self {
            RobotsState::Unreachable { since_s, failures, .. } => {
                RobotsState::Unreachable { until_s: 0, since_s, failures }
            }
            _ => RobotsState::Unknown,
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
        while let Some(next) = state.out_of_reach(at(now_s)) {
            let RobotsState::Unreachable { until_s, .. } = next else { panic!("out of reach") };
            assert!(next.disallows_all(at(until_s - 1)) && !next.disallows_all(at(until_s)));
            pauses.push(until_s - now_s);
            (state, now_s) = (next, until_s);
        }
        assert_eq!(pauses[..3], [60, 120, 240]);
        assert_eq!(pauses.last(), Some(&86_400));
        assert!(i64::from(now_s) >= GIVE_UP_S);
    }
}
