//! Who changes a register, or reads it.
//!
//! An attempt that was cut off may have been accepted by a few voters, and somebody else may carry it on. So after the next
//! PREPARE a proposer looks at the highest ballot that a majority accepted. Below its own attempts: none of them was chosen, and
//! none ever will be once this one is, so the change is made again. One of its own: that attempt is carried on. Any other:
//! somebody built on it or did not, and nobody can tell, so the outcome is [`Outcome::Unknown`].

use super::{Answer, Ask, Ballot, Register, Reply, Request, Value};
use crate::base::{Now, Rng};
use crate::limits::VOTERS_MAX;
use thiserror::Error;

/// A voter: a node, and the disk on which it keeps what it promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voter {
    pub node: u16,
    pub disk: u64,
}

/// What is to be done to the value, as a function of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Read,
    /// The value is `new` if it was `expect`.
    Swap {
        expect: Value,
        new: Value,
    },
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Read(Value),
    Swapped,
    /// The value was another one: this. Nothing was changed.
    Differs(Value),
    /// Nothing was changed, and nothing is known.
    NotDone,
    /// It was changed, or will be, or never: read again before anything else.
    Unknown,
}

/// When to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// After this the voters that have not answered are asked again.
    pub resend_us: u64,
    /// Rest after a higher ballot was met: a random part of this, doubled each time up to 64 times.
    pub backoff_us: u64,
}

/// A change is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a change of this register is under way")]
pub struct Busy;

/// Requests that go out, and the outcome if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Step {
    pub sends: Vec<(u16, Request)>,
    pub outcome: Option<Outcome>,
}

/// What a proposer waits for.
#[derive(Clone, Debug)]
enum Phase {
    Idle,
    /// Promises for `ballot`.
    Prepare {
        ballot: Ballot,
        highest: Ballot,
        value: Value,
    },
    /// Votes for `value` under `ballot`, after which the outcome is `then`.
    Accept {
        ballot: Ballot,
        next: Ballot,
        value: Value,
        then: Outcome,
    },
    /// The end of a rest.
    Rest {
        until: Now,
    },
}

/// Changes one register, one change at a time.
#[derive(Clone, Debug)]
pub struct Proposer {
    register: Register,
    node: u16,
    start: u32,
    voters: Vec<Voter>,
    quorum: usize,
    pace: Pace,
    phase: Phase,
    /// The highest ballot seen anywhere.
    seen: Ballot,
    /// A ballot that a majority promised together with its last vote, and the value it voted for: the next change needs no
    /// PREPARE.
    ready: Option<(Ballot, Value)>,
    change: Change,
    /// Ballots under which the new value of this change was sent out.
    tried: Vec<Ballot>,
    /// Voters that granted what this phase asks, and those that refused, as bits by their place.
    granted: u8,
    refused: u8,
    resend_at: Now,
    deadline: Now,
    rests: u32,
}

/// Attempts of one change that send a new value out; after that its outcome is not known.
const TRIES_MAX: usize = 64;

const _: () = assert!(VOTERS_MAX <= 8, "voters are bits of a byte");

impl Proposer {
    /// `start` is a number that this node never used before: a count of its starts that it keeps on disk.
    ///
    /// # Panics
    /// If there are no voters, or more than five.
    pub fn new(register: Register, node: u16, start: u32, voters: Vec<Voter>, pace: Pace) -> Proposer {
        assert!((1..=VOTERS_MAX).contains(&voters.len()), "1 to {VOTERS_MAX} voters");
        let quorum = voters.len() / 2 + 1;
        Proposer {
            register,
            node,
            start,
            voters,
            quorum,
            pace,
            phase: Phase::Idle,
            seen: Ballot::NONE,
            ready: None,
            change: Change::Read,
            tried: Vec::new(),
            granted: 0,
            refused: 0,
            resend_at: Now::NEVER,
            deadline: Now::NEVER,
            rests: 0,
        }
    }

    /// The same, idle and asking other voters. No ballot of its comes again.
    #[must_use]
    pub fn among(&self, voters: Vec<Voter>) -> Proposer {
        let seen = self.seen;
        Proposer { seen, ..Proposer::new(self.register, self.node, self.start, voters, self.pace) }
    }

    pub fn register(&self) -> Register {
        self.register
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// When to call [`Proposer::tick`] at the latest.
    pub fn next_due(&self) -> Option<Now> {
        match self.phase {
            Phase::Idle => None,
            Phase::Rest { until } => Some(until.min(self.deadline)),
            _ => Some(self.resend_at.min(self.deadline)),
        }
    }

    /// Starts a change, which has its outcome by `deadline`.
    pub fn begin(&mut self, change: Change, now: Now, deadline: Now) -> Result<Step, Busy> {
        if !self.is_idle() {
            return Err(Busy);
        }
        self.change = change;
        self.deadline = deadline;
        self.tried.clear();
        self.rests = 0;
        let mut step = Step::default();
        match self.ready.take() {
            Some((ballot, value)) => self.accept(ballot, value, false, now, &mut step),
            None => self.prepare(now, &mut step),
        }
        Ok(step)
    }

    /// Takes an answer of a voter. Answers to earlier attempts are dropped: a ballot is of one attempt only.
    pub fn receive(&mut self, from: u16, answer: Answer, now: Now, rng: &mut Rng) -> Step {
        let mut step = Step::default();
        let Some(at) = self.voters.iter().position(|voter| voter.node == from) else { return step };
        let waits_for = match &self.phase {
            Phase::Prepare { ballot, .. } | Phase::Accept { ballot, .. } => *ballot,
            Phase::Idle | Phase::Rest { .. } => return step,
        };
        if answer.register != self.register || answer.ballot != waits_for {
            return step;
        }
        match (&mut self.phase, answer.reply) {
            (Phase::Prepare { highest, value, .. }, Reply::Promise { accepted, value: theirs }) => {
                if accepted > *highest {
                    (*highest, *value) = (accepted, theirs);
                }
                self.granted |= 1 << at;
            }
            (Phase::Accept { .. }, Reply::Accepted) => self.granted |= 1 << at,
            (_, Reply::Later { promised }) => {
                self.seen = self.seen.max(promised);
                self.refused |= 1 << at;
            }
            _ => return step,
        }
        if self.granted.count_ones() as usize >= self.quorum {
            self.majority(now, &mut step);
        } else if self.voters.len() - (self.refused & !self.granted).count_ones() as usize >= self.quorum {
            // The others can still make a majority.
        } else {
            self.rest(now, rng);
        }
        step
    }

    /// Asks again what was not answered, ends a rest, gives up at the deadline.
    pub fn tick(&mut self, now: Now, rng: &mut Rng) -> Step {
        let mut step = Step::default();
        match &self.phase {
            Phase::Idle => {}
            _ if now >= self.deadline => {
                let outcome = if self.tried.is_empty() { Outcome::NotDone } else { Outcome::Unknown };
                self.end(outcome, &mut step);
            }
            Phase::Rest { until } => {
                if now >= *until {
                    self.prepare(now, &mut step);
                }
            }
            _ if now < self.resend_at => {}
            // One voter has met a higher ballot, and too few of the others answer: this ballot leads nowhere.
            _ if self.refused & !self.granted != 0 => self.rest(now, rng),
            Phase::Prepare { ballot, .. } => self.ask_all(Ask::Prepare { ballot: *ballot }, now, &mut step),
            Phase::Accept { ballot, next, value, .. } => {
                let ask = Ask::Accept { ballot: *ballot, value: value.clone(), then: *next };
                self.ask_all(ask, now, &mut step);
            }
        }
        step
    }

    fn next_ballot(&mut self) -> Ballot {
        self.seen = self.seen.above(self.node, self.start);
        self.seen
    }

    fn prepare(&mut self, now: Now, step: &mut Step) {
        let ballot = self.next_ballot();
        self.phase = Phase::Prepare { ballot, highest: Ballot::NONE, value: None };
        (self.granted, self.refused) = (0, 0);
        self.ask_all(Ask::Prepare { ballot }, now, step);
    }

    /// Sends what the change makes of `value`. `own` says that the value is this change's already.
    fn accept(&mut self, ballot: Ballot, value: Value, own: bool, now: Now, step: &mut Step) {
        let (value, then) = match &self.change {
            Change::Read => (value.clone(), Outcome::Read(value)),
            Change::Swap { new, .. } if own => (new.clone(), Outcome::Swapped),
            Change::Swap { expect, new } if *expect == value => (new.clone(), Outcome::Swapped),
            // The value is voted for as it is: before that, it may be one that a minority has, and that is never chosen.
            Change::Swap { .. } => (value.clone(), Outcome::Differs(value)),
        };
        if then == Outcome::Swapped {
            self.tried.push(ballot);
        }
        let next = self.next_ballot();
        (self.granted, self.refused) = (0, 0);
        let ask = Ask::Accept { ballot, value: value.clone(), then: next };
        self.phase = Phase::Accept { ballot, next, value, then };
        self.ask_all(ask, now, step);
    }

    fn majority(&mut self, now: Now, step: &mut Step) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Prepare { ballot, highest, value } => {
                let own = self.tried.contains(&highest);
                if self.tried.len() < TRIES_MAX && (own || self.tried.iter().all(|&tried| highest < tried)) {
                    self.accept(ballot, value, own, now, step);
                } else {
                    self.end(Outcome::Unknown, step);
                }
            }
            Phase::Accept { next, value, then, .. } => {
                self.ready = Some((next, value));
                self.end(then, step);
            }
            Phase::Idle | Phase::Rest { .. } => unreachable!("answers are counted in two phases only"),
        }
    }

    fn rest(&mut self, now: Now, rng: &mut Rng) {
        let most = self.pace.backoff_us.saturating_mul(1 << self.rests.min(6));
        self.rests += 1;
        self.phase = Phase::Rest { until: now.plus_us(1 + rng.below(most)) };
    }

    fn end(&mut self, outcome: Outcome, step: &mut Step) {
        self.phase = Phase::Idle;
        step.outcome = Some(outcome);
    }

    fn ask_all(&mut self, ask: Ask, now: Now, step: &mut Step) {
        self.resend_at = now.plus_us(self.pace.resend_us);
        for (at, voter) in self.voters.iter().enumerate() {
            if self.granted & 1 << at == 0 {
                let request = Request { register: self.register, disk: voter.disk, ask: ask.clone() };
                step.sends.push((voter.node, request));
            }
        }
    }

    /// For a test: a majority that is none.
    #[cfg(test)]
    pub(in crate::peer) fn set_quorum(&mut self, quorum: usize) {
        self.quorum = quorum;
    }

    /// For a test: as if it had tried nothing yet, so that a change may be made twice.
    #[cfg(test)]
    pub(in crate::peer) fn forget_tries(&mut self) {
        self.tried.clear();
    }
}
