use crate::base::Now;
use crate::engine::crawl::messages::RestQuestion;
use crate::url_server::Rest;

/// Whether all that a crawl has left must wait for longer than it stays. When a scheduler has nothing else to do, it asks
/// every shard; what they say counts if nothing was dealt to any of them since.
pub(crate) struct Linger {
    /// `None` if it stays for as long as it takes.
    longest_us: Option<u64>,
    round: u32,
    asking: Asking,
}

enum Asking {
    /// The shards are asked again no sooner than this.
    At(Now),
    /// They were asked; this many have not answered.
    Open { missing: usize, rests: Vec<Rest> },
}

/// Questions are at least this far apart.
const PAUSE_US: u64 = 1_000_000;

impl Linger {
    pub fn new(longest_us: Option<u64>) -> Linger {
        Linger { longest_us, round: 0, asking: Asking::At(Now::ZERO) }
    }

    /// It stays for longer, or less long, from now on: what was said before does not count.
    pub fn set_longest(&mut self, longest_us: Option<u64>, now: Now) {
        self.longest_us = longest_us;
        self.asking = Asking::At(now.plus_us(PAUSE_US));
    }

    /// Whether it is time to ask.
    pub fn is_due(&self, now: Now) -> bool {
        self.longest_us.is_some() && matches!(self.asking, Asking::At(at) if at <= now)
    }

    /// Begins to ask this many shards; the question.
    pub fn ask(&mut self, shards: usize) -> RestQuestion {
        self.round += 1;
        self.asking = Asking::Open { missing: shards, rests: Vec::new() };
        RestQuestion { round: self.round, spoken_of_us: self.longest_us.unwrap_or(u64::MAX) }
    }

    /// A shard says whether it rests.
    pub fn answered(&mut self, round: u32, rest: Option<Rest>, now: Now) {
        let Asking::Open { missing, rests } = &mut self.asking else { return };
        if round != self.round {
            return;
        }
        match rest {
            Some(rest) if self.longest_us.is_some_and(|us| rest.until.since_us(now) > us) => {
                *missing -= 1;
                rests.push(rest);
            }
            rest => {
                let until = rest.map_or(Now::ZERO, |rest| rest.until);
                self.asking = Asking::At(until.max(now.plus_us(PAUSE_US)));
            }
        }
    }

    /// Something was dealt to a shard: what was said does not count.
    pub fn disturbed(&mut self, now: Now) {
        if let Asking::Open { .. } = self.asking {
            self.asking = Asking::At(now.plus_us(PAUSE_US));
        }
    }

    /// What all shards wait for, if that is for too long.
    pub fn rests(&self) -> Option<&[Rest]> {
        match &self.asking {
            Asking::Open { missing: 0, rests } => Some(rests),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now::ZERO;

    fn rest(ms: u64) -> Option<Rest> {
        Some(Rest { until: NOW.plus_ms(ms), hosts: Vec::new(), more: 0 })
    }

    /// What two shards say when they are asked.
    fn asked(linger: &mut Linger, answers: [Option<Rest>; 2]) -> bool {
        assert!(linger.is_due(NOW));
        linger.ask(2);
        answers.into_iter().for_each(|answer| linger.answered(linger.round, answer, NOW));
        linger.rests().is_some()
    }

    #[test]
    fn all_shards_must_rest_for_longer_than_it_stays() {
        let new = || Linger::new(Some(10_000_000));
        assert!(asked(&mut new(), [rest(10_001), rest(99_000)]));
        assert!(!asked(&mut new(), [rest(10_000), rest(99_000)]));
        assert!(!asked(&mut new(), [rest(99_000), None]), "one has something to do");
        assert!(!Linger::new(None).is_due(Now::NEVER), "it stays whatever comes");
    }

    #[test]
    fn what_was_dealt_since_makes_an_answer_worthless() {
        let mut linger = Linger::new(Some(0));
        linger.ask(1);
        let round = linger.round;
        linger.disturbed(NOW);
        linger.answered(round, rest(9), NOW);
        assert!(linger.rests().is_none() && !linger.is_due(NOW) && linger.is_due(NOW.plus_us(PAUSE_US)));
        linger.ask(1);
        linger.answered(round, rest(9), NOW);
        assert!(linger.rests().is_none(), "of the round before");
        linger.answered(linger.round, rest(9), NOW);
        assert!(linger.rests().is_some());
    }

    #[test]
    fn nobody_is_asked_again_before_something_can_have_changed() {
        let mut linger = Linger::new(Some(60_000_000));
        assert!(!asked(&mut linger, [rest(30_000), rest(90_000)]));
        assert!(!linger.is_due(NOW.plus_ms(29_999)) && linger.is_due(NOW.plus_ms(30_000)));
    }
}
