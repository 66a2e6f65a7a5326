use crate::base::{Now, Rng};
use std::fmt::Display;
use std::net::SocketAddr;

/// A peer that is dialed for ever: when to try, and what to tell the user about it.
pub(super) struct Dial {
    /// `host:port` as configured.
    pub address: String,
    pub state: DialState,
    /// Attempts made; with several addresses of a name each gets its turn.
    pub attempts: usize,
    pause_us: u64,
    /// The user was told that it fails.
    said: bool,
    /// Another dial of the same address speaks for it.
    is_mute: bool,
}

pub(super) enum DialState {
    /// Not before then.
    Resting { until: Now },
    /// Its name is being looked up on a thread of its own.
    Resolving,
    /// The link is being made, or stands.
    Linked,
}

const PAUSE_US_MIN: u64 = 100_000;
const PAUSE_US_MAX: u64 = 10_000_000;

impl Dial {
    pub fn new(address: String, is_mute: bool, now: Now) -> Dial {
        let state = DialState::Resting { until: now };
        Dial { address, state, attempts: 0, pause_us: PAUSE_US_MIN, said: false, is_mute }
    }

    /// An attempt failed. The line to say, if this is the first.
    pub fn failed(&mut self, cause: &dyn Display, now: Now, rng: &mut Rng) -> Option<String> {
        self.rest(now, rng);
        let first = !std::mem::replace(&mut self.said, true);
        (first && !self.is_mute).then(|| format!("link to {}: {cause}; trying until it stands", self.address))
    }

    /// The link stands. The line to say, if its failure was said.
    pub fn stands(&mut self, peer: SocketAddr) -> Option<String> {
        let said = std::mem::take(&mut self.said) && !self.is_mute;
        said.then(|| format!("link to {} stands ({peer})", self.address))
    }

    /// A link that stood is down. One that never carried a byte counts as an attempt that failed: a peer that
    /// hangs up on everybody is not dialed ten times a second.
    pub fn lost(&mut self, was_of_use: bool, now: Now, rng: &mut Rng) {
        if was_of_use {
            self.pause_us = PAUSE_US_MIN;
        }
        self.rest(now, rng);
    }

    /// Rests for the present pause and up to half of it more, so that many who lost one peer do not come back in
    /// one moment; the next pause is twice as long.
    fn rest(&mut self, now: Now, rng: &mut Rng) {
        let jitter_us = rng.below(self.pause_us / 2);
        self.state = DialState::Resting { until: now.plus_us(self.pause_us + jitter_us) };
        self.pause_us = (2 * self.pause_us).min(PAUSE_US_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_seconds_and_begin_anew() {
        let (now, mut rng) = (Now::from_us(7), Rng::new(1));
        let mut dial = Dial::new("h:1".to_string(), false, now);
        let pause = |dial: &Dial| match dial.state {
            DialState::Resting { until } => until.since_us(now),
            _ => panic!("it rests"),
        };
        let mut expected = PAUSE_US_MIN;
        for attempt in 0..12 {
            let said = dial.failed(&"connection refused", now, &mut rng);
            assert_eq!(said.is_some(), attempt == 0, "said once");
            assert!((expected..=expected * 3 / 2).contains(&pause(&dial)), "{:?}", pause(&dial));
            expected = (2 * expected).min(PAUSE_US_MAX);
        }
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(dial.stands(peer).is_some() && dial.stands(peer).is_none());
        dial.lost(false, now, &mut rng);
        assert!(pause(&dial) >= PAUSE_US_MAX, "it was of no use");
        dial.lost(true, now, &mut rng);
        assert!(pause(&dial) <= PAUSE_US_MIN * 3 / 2);
    }
}
