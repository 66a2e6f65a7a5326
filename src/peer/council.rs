//! A node's part in the council: what it asks the voters about the registers, and what it answers as one of them.

use super::beat::{Beat, Rights, Wish};
use super::register::{Acceptor, Answer, Kept, Outcome, Pace, Proposer, Register, Request, Step, Voter};
use super::table::Table;
use crate::base::{Now, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Joins the rights of a node to the registers that they stand in. What it says goes out as [`Action`]s, also to itself:
/// whoever carries them out hands what is for this node back to it.
pub struct Council {
    seat: Seat,
    rights: Rights,
    /// Of a voter.
    acceptor: Option<Acceptor>,
    /// One for each register that was ever asked for.
    proposers: BTreeMap<Register, Proposer>,
    rng: Rng,
}

/// Who asks, and whom.
#[derive(Clone, Debug)]
pub struct Seat {
    pub node: u16,
    /// A number that this node never had before: it counts its starts on disk.
    pub start: u32,
    pub voters: Vec<Voter>,
    pub pace: Pace,
    /// A change has its outcome within this.
    pub patience_us: u64,
}

/// What is to be done, in this order: what comes behind a `Keep` waits until that is on disk. A voter whose disk refuses it
/// must end, as it has promised more than it would remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Keep { register: Register, kept: Kept },
    Ask { to: u16, request: Request },
    Answer { to: u16, answer: Answer },
}

impl Council {
    /// `acceptor` is there for a voter, with everything that its disk has.
    pub fn new(seat: Seat, rights: Rights, acceptor: Option<Acceptor>, rng: Rng) -> Council {
        Council { seat, rights, acceptor, proposers: BTreeMap::new(), rng }
    }

    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// To want changes of the table, and to hand partitions over.
    pub fn rights_mut(&mut self) -> &mut Rights {
        &mut self.rights
    }

    /// The beat of another node, as it was told.
    pub fn heard(&mut self, node: u16, beat: Beat, now: Now) {
        self.rights.heard(node, beat, now, &mut self.rng);
    }

    /// A table that was in the register, as it was told.
    pub fn told(&mut self, table: Arc<Table>) {
        self.rights.told(table);
    }

    /// Goes on with everything whose time has come. `stamp_ms` is the calendar's time, to be told with a takeover.
    pub fn tick(&mut self, now: Now, stamp_ms: u64, out: &mut Vec<Action>) {
        let registers: Vec<Register> = self.proposers.keys().copied().collect();
        for register in registers {
            let Council { proposers, rng, .. } = self;
            let step = proposers.get_mut(&register).map(|proposer| proposer.tick(now, rng));
            self.take(register, step.unwrap_or_default(), now, out);
        }
        for Wish { register, change } in self.rights.tick(now, stamp_ms) {
            let Seat { node, start, voters, pace, patience_us } = &self.seat;
            let new = || Proposer::new(register, *node, *start, voters.clone(), *pace);
            let proposer = self.proposers.entry(register).or_insert_with(new);
            // There is one question to a register at a time.
            let step = proposer.begin(change, now, now.plus_us(*patience_us)).unwrap_or_default();
            self.take(register, step, now, out);
        }
    }

    /// A proposer asks this node. Who is no voter, or none that was meant, says nothing: it has nothing to say.
    pub fn asked(&mut self, from: u16, request: Request, out: &mut Vec<Action>) {
        let Some(acceptor) = &mut self.acceptor else { return };
        let spoken = acceptor.handle(request);
        out.extend(spoken.durable.map(|(register, kept)| Action::Keep { register, kept }));
        out.push(Action::Answer { to: from, answer: spoken.answer });
    }

    /// A voter answers this node.
    pub fn answered(&mut self, from: u16, answer: Answer, now: Now, out: &mut Vec<Action>) {
        let register = answer.register;
        let Council { proposers, rng, .. } = self;
        let step = proposers.get_mut(&register).map(|proposer| proposer.receive(from, answer, now, rng));
        self.take(register, step.unwrap_or_default(), now, out);
    }

    /// When to call [`Council::tick`] at the latest.
    pub fn next_due(&self) -> Option<Now> {
        let proposers = self.proposers.values().filter_map(Proposer::next_due);
        proposers.chain(self.rights.next_due()).min()
    }

    fn take(&mut self, register: Register, step: Step, now: Now, out: &mut Vec<Action>) {
        let Step { sends, outcome } = step;
        out.extend(sends.into_iter().map(|(to, request)| Action::Ask { to, request }));
        if let Some(outcome) = outcome {
            self.ended(register, &outcome, now);
        }
    }

    fn ended(&mut self, register: Register, outcome: &Outcome, now: Now) {
        self.rights.answered(register, outcome, now, &mut self.rng);
    }
}
