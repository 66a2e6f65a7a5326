use crate::base::Now;
use crate::engine::crawl::messages::ToShard;
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

    /// Whether it is time to ask.
    pub fn is_due(&self, now: Now) -> bool {
        self.longest_us.is_some() && matches!(self.asking, Asking::At(at) if at <= now)
    }

    /// Begins to ask this many shards; the question.
    pub fn ask(&mut self, shards: usize) -> impl Fn() -> ToShard {
        self.round += 1;
        self.asking = Asking::Open { missing: shards, rests: Vec::new() };
        let (round, spoken_of_us) = (self.round, self.longest_us.unwrap_or(u64::MAX));
        move || ToShard::Rest { round, spoken_of_us }
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
