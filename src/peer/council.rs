//! A node's part in the council: what it asks the voters about the registers, and what it answers as one of them.

use super::beat::{Beat, Rights, Wish};
use super::growth::{Growth, voter_name, voters_of};
use super::register::{
    Acceptor, Answer, Ask, Kept, Outcome, Pace, Proposer, Register, Reply, Request, Step, Voter,
};
use super::table::Table;
use crate::base::{Now, Rng, SortedMap, SortedSet};
use std::sync::Arc;

/// Joins the rights of a node to the registers that they stand in. What it says goes out as [`Action`]s, also to itself:
/// whoever carries them out hands what is for this node back to it.
pub struct Council {
    seat: Seat,
    rights: Rights,
    /// Of a voter.
    acceptor: Option<Acceptor>,
    /// One for each register that was ever asked for.
    proposers: SortedMap<Register, Proposer>,
    /// Those of them that are at work: with many nodes that is a small part.
    working: SortedSet<Register>,
    /// Of the sole voter, while it gets others to vote with it.
    growth: Option<Growth>,
    rng: Rng,
}

/// Who asks, and whom.
#[derive(Clone, Debug)]
pub struct Seat {
    pub node: u16,
    /// Of its disk.
    pub id: u64,
    /// A number that this node never had before: it counts its starts on disk.
    pub start: u32,
    /// Those of the table that it begins with; later tables have theirs. Nobody, if the registers are outside.
    pub voters: Vec<Voter>,
    pub pace: Pace,
    /// A change has its outcome within this.
    pub patience_us: u64,
}

/// What is to be done, in this order: what comes behind a `Keep` waits until that is on disk. A voter whose disk refuses it
/// must end, as it has promised more than it would remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Keep {
        register: Register,
        kept: Kept,
    },
    Ask {
        to: u16,
        request: Request,
    },
    Answer {
        to: u16,
        answer: Answer,
    },
    /// For the registers outside; what becomes of it is told by [`Council::decided`], once.
    Change(Wish),
}

impl Council {
    /// `acceptor` is there for whoever votes or may come to, with everything that its disk has.
    pub fn new(seat: Seat, rights: Rights, acceptor: Option<Acceptor>, rng: Rng) -> Council {
        Council {
            seat,
            rights,
            acceptor,
            proposers: SortedMap::new(),
            working: SortedSet::new(),
            growth: None,
            rng,
        }
    }

    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// To want changes of the table, and to hand partitions over.
    pub fn rights_mut(&mut self) -> &mut Rights {
        &mut self.rights
    }

    /// The disk refused what was promised: this node has no vote until it begins anew.
    pub fn lose_vote(&mut self) {
        self.acceptor = None;
    }

    pub fn has_vote(&self) -> bool {
        self.acceptor.is_some()
    }

    /// The beat of another node, as it was told.
    pub fn heard(&mut self, node: u16, beat: Beat, now: Now) {
        self.rights.heard(node, beat, now, &mut self.rng);
    }

    /// Whether the registers are kept by others than the nodes.
    pub fn is_outside(&self) -> bool {
        self.seat.voters.is_empty()
    }

    /// What became of a change that went outside.
    pub fn decided(&mut self, register: Register, outcome: &Outcome, now: Now) {
        self.ended(register, outcome, now);
    }

    /// A table that was in the register, as it was told. One of another kind of council is not of this cluster.
    pub fn told(&mut self, table: Arc<Table>, now: Now) {
        if table.is_outside() != self.is_outside() {
            return;
        }
        self.rights.told(table);
        self.look_at_voters(now);
    }

    /// Goes on with everything whose time has come. `stamp_ms` is the calendar's time, to be told with a takeover.
    pub fn tick(&mut self, now: Now, stamp_ms: u64, out: &mut Vec<Action>) {
        let registers: Vec<Register> = self.working.iter().copied().collect();
        for register in registers {
            let Council { proposers, rng, .. } = self;
            let step = proposers.get_mut(&register).map(|proposer| proposer.tick(now, rng));
            self.take(register, step.unwrap_or_default(), now, out);
        }
        for Wish { register, change } in self.rights.tick(now, stamp_ms) {
            if self.is_outside() {
                out.push(Action::Change(Wish { register, change }));
                continue;
            }
            let Seat { node, start, voters, pace, patience_us, .. } = &self.seat;
            let new = || Proposer::new(register, *node, *start, voters.clone(), *pace);
            let proposer = self.proposers.entry(register).or_insert_with(new);
            // There is one question to a register at a time.
            let step = proposer.begin(change, now, now.plus_us(*patience_us)).unwrap_or_default();
            self.take(register, step, now, out);
        }
        self.grow(now, out);
    }

    /// A proposer asks this node. Who is no voter, or none that was meant, says nothing: it has nothing to say.
    pub fn asked(&mut self, from: u16, request: Request, now: Now, out: &mut Vec<Action>) {
        let Some(acceptor) = &mut self.acceptor else { return };
        let Some(table) = offered(&request) else { return self.answer(from, request, None, out) };
        if table.is_outside() {
            return;
        }
        let me = self.seat.node;
        let name = voter_name(self.seat.id, table.voters());
        if request.disk == name && table.voters().contains(&me) {
            return self.answer(from, request, Some(name), out);
        }
        let grows = request.disk == acceptor.disk() && sole_voter(acceptor) == Some(me);
        if !grows || table.voters().len() == 1 {
            return self.answer(from, request, None, out);
        }
        let Ask::Accept { ballot, .. } = request.ask else { return };
        if self.growth.as_ref().is_none_or(|growth| !growth.is_of(ballot)) {
            let deadline = now.plus_us(self.seat.patience_us);
            self.growth = Growth::new(me, from, request, &table, deadline);
        }
        self.grow(now, out);
    }

    /// Answers as a voter, under another name from now on if it is so and the answer is yes.
    fn answer(&mut self, from: u16, request: Request, name: Option<u64>, out: &mut Vec<Action>) {
        let Some(acceptor) = &mut self.acceptor else { return };
        let before = acceptor.disk();
        acceptor.set_disk(name.unwrap_or(before));
        let spoken = acceptor.handle(request);
        if spoken.answer.reply != Reply::Accepted {
            acceptor.set_disk(before);
        }
        out.extend(spoken.durable.map(|(register, kept)| Action::Keep { register, kept }));
        out.push(Action::Answer { to: from, answer: spoken.answer });
    }

    /// Goes on with what the sole voter holds back.
    fn grow(&mut self, now: Now, out: &mut Vec<Action>) {
        let Some(growth) = &mut self.growth else { return };
        if growth.is_over(now) {
            // Whoever proposed it asks again, or not.
            self.growth = None;
        } else if growth.is_complete() {
            let (from, request) = (growth.from, growth.request.clone());
            let name = offered(&request).map(|table| voter_name(self.seat.id, table.voters()));
            self.growth = None;
            let said = out.len();
            self.answer(from, request, None, out);
            let is_accepted = |action: &Action| matches!(action, Action::Answer { answer, .. } if answer.reply == Reply::Accepted);
            if let (Some(acceptor), Some(name)) = (&mut self.acceptor, name)
                && out[said..].iter().any(is_accepted)
            {
                acceptor.set_disk(name);
            }
        } else {
            let asks = growth.ask(now, self.seat.pace.resend_us);
            out.extend(asks.into_iter().map(|(to, request)| Action::Ask { to, request }));
        }
    }

    /// Whoever votes by the table is asked from now on. What was asked of others has no outcome that is known.
    fn look_at_voters(&mut self, now: Now) {
        let Some(table) = self.rights.table().filter(|table| !table.is_outside()) else { return };
        let nodes = || self.seat.voters.iter().map(|voter| voter.node);
        if nodes().eq(table.voters().iter().copied()) {
            return;
        }
        self.seat.voters = voters_of(table);
        for proposer in self.proposers.values_mut() {
            *proposer = proposer.among(self.seat.voters.clone());
        }
        for register in std::mem::take(&mut self.working) {
            self.ended(register, &Outcome::Unknown, now);
        }
    }

    /// A voter answers this node.
    pub fn answered(&mut self, from: u16, answer: Answer, now: Now, out: &mut Vec<Action>) {
        if self.growth.as_mut().is_some_and(|growth| growth.answered(from, &answer)) {
            return self.grow(now, out);
        }
        let register = answer.register;
        let Council { proposers, rng, .. } = self;
        let step = proposers.get_mut(&register).map(|proposer| proposer.receive(from, answer, now, rng));
        self.take(register, step.unwrap_or_default(), now, out);
    }

    /// When to call [`Council::tick`] at the latest.
    pub fn next_due(&self) -> Option<Now> {
        let proposers = self.working.iter().filter_map(|register| self.proposers[register].next_due());
        let growth = self.growth.as_ref().map(Growth::next_due);
        proposers.chain(self.rights.next_due()).chain(growth).min()
    }

    /// A proposer has made a step.
    fn take(&mut self, register: Register, step: Step, now: Now, out: &mut Vec<Action>) {
        match self.proposers.get(&register).is_none_or(Proposer::is_idle) {
            true => self.working.remove(&register),
            false => self.working.insert(register),
        };
        let Step { sends, outcome } = step;
        out.extend(sends.into_iter().map(|(to, request)| Action::Ask { to, request }));
        if let Some(outcome) = outcome {
            self.ended(register, &outcome, now);
        }
    }

    fn ended(&mut self, register: Register, outcome: &Outcome, now: Now) {
        self.rights.answered(register, outcome, now, &mut self.rng);
        self.look_at_voters(now);
    }
}

/// The table that a request offers to a voter.
fn offered(request: &Request) -> Option<Table> {
    match &request.ask {
        Ask::Accept { value: Some(value), .. } if request.register == Register::Table => {
            Table::decode(value).ok()
        }
        _ => None,
    }
}

/// The only voter of the table that a voter accepted last.
fn sole_voter(acceptor: &Acceptor) -> Option<u16> {
    let value = acceptor.kept(Register::Table)?.accepted().value.clone()?;
    match Table::decode(&value).ok()?.voters() {
        [voter] => Some(*voter),
        _ => None,
    }
}
