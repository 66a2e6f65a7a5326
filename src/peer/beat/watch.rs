//! The beats of the others: who is silent for how long, and who may seal it when.

use super::{Beat, Timing};
use crate::base::{Now, Rng, SortedMap};
use crate::peer::assign::steps_on_ring;
use crate::peer::register::{Change, Outcome};
use crate::peer::table::{NodeState, Table};
use crate::peer::table_change::TableChange;

/// What was asked of a node's register.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Read,
    Seal(Beat),
}

/// What seals a node that never beat: nothing that it could have sent comes after it.
const UNBORN: Beat = Beat { generation: 1, n: 0, sealed: false };

/// A node as it was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The latest beat, and when it was seen first.
    beat: Option<Beat>,
    since: Now,
    /// What this watcher waits beyond its steps on the ring, if it is not the heir.
    late_us: u64,
    /// Its register was seen to hold nothing.
    is_empty: bool,
    /// Whether this watcher sealed it.
    mine: bool,
    asked: Option<Asked>,
    ask_at: Now,
}

/// Watches the other nodes of the table.
#[derive(Clone, Debug)]
pub struct Watch {
    me: u16,
    timing: Timing,
    /// As many as the table has nodes.
    seen: SortedMap<u16, Seen>,
    /// The epoch of the table that was looked at last, and when something is to be done by it: before that only what is heard or
    /// answered changes anything.
    looked: (u64, Now),
    /// Nodes that a new beat was heard of, by the time of a look at the clock: the process may have stood still between that look and
    /// what it heard. By the next look it was heard.
    fresh: Vec<u16>,
}

impl Watch {
    pub fn new(me: u16, timing: Timing) -> Watch {
        Watch { me, timing, seen: SortedMap::new(), looked: (0, Now::ZERO), fresh: Vec::new() }
    }

    /// Takes a beat from wherever it was heard: it was in the register before, so its wait may start. An older one tells nothing.
    pub fn heard(&mut self, node: u16, beat: Beat, now: Now, rng: &mut Rng) {
        let Some(seen) = self.seen.get_mut(&node) else { return };
        if seen.beat.is_none_or(|known| known < beat) {
            seen.beat = Some(beat);
            seen.since = now;
            seen.late_us = rng.below(self.timing.stagger_us);
            seen.mine = false;
            self.fresh.push(node);
            self.looked.1 = self.looked.1.min(next_look(&self.timing, seen));
        }
    }

    /// How long a node has been silent: its beat was seen first so long ago.
    pub fn silent_us(&self, node: u16, now: Now) -> Option<u64> {
        let seen = self.seen.get(&node)?;
        seen.beat.map(|_| now.since_us(seen.since))
    }

    /// What is to be asked of the registers of other nodes.
    pub fn tick(&mut self, table: &Table, now: Now) -> Vec<(u16, Change)> {
        self.settle_fresh(now);
        if self.looked.0 == table.epoch() && now < self.looked.1 {
            return Vec::new();
        }
        self.looked = (table.epoch(), Now::NEVER);
        self.seen.retain(|&node, seen| table.is_member(node) || seen.asked.is_some());
        let able = table.node(self.me).is_some_and(|node| node.state == NodeState::Member);
        let mut wishes = Vec::new();
        for node in table.nodes().iter().filter(|node| node.state != NodeState::Left) {
            if node.number == self.me {
                continue;
            }
            let unseen = Seen {
                beat: None,
                since: now,
                late_us: 0,
                is_empty: false,
                mine: false,
                asked: None,
                ask_at: now.plus_us(first_ask_us(&self.timing, self.me, node.number)),
            };
            let seen = self.seen.entry(node.number).or_insert(unseen);
            self.looked.1 = self.looked.1.min(next_look(&self.timing, seen));
            if seen.asked.is_some() || now < seen.ask_at {
                continue;
            }
            let due = seen.since.plus_us(self.timing.wait_us);
            let is_due = now >= due
                && now >= due.plus_us(later_us(&self.timing, table, node.number, self.me, seen))
                && able
                && !table.frozen();
            // Where nodes vote, one that never beat may have a right by an earlier table, under which there were no beats: to
            // what it owns. What it owned before, it gave away itself.
            let has_nothing = || table.owned_by(node.number).next().is_none();
            let is_unborn = || seen.is_empty && node.generation == 0 && (table.is_outside() || has_nothing());
            let (asked, change) = match seen.beat {
                None if is_due && is_unborn() => {
                    let swap = Change::Swap { expect: None, new: UNBORN.sealed().value() };
                    (Asked::Seal(UNBORN), swap)
                }
                None => (Asked::Read, Change::Read),
                Some(beat) if beat.sealed || !is_due => continue,
                Some(beat) => {
                    let swap = Change::Swap { expect: beat.value(), new: beat.sealed().value() };
                    (Asked::Seal(beat), swap)
                }
            };
            seen.asked = Some(asked);
            wishes.push((node.number, change));
        }
        wishes
    }

    /// The wait for a beat starts when it was heard at the latest, not when the clock was looked at before.
    fn settle_fresh(&mut self, now: Now) {
        let Watch { fresh, seen, .. } = self;
        fresh.retain(|node| {
            let Some(seen) = seen.get_mut(node) else { return false };
            let is_same_look = now <= seen.since;
            seen.since = seen.since.max(now);
            is_same_look
        });
    }

    pub fn answered(&mut self, node: u16, outcome: &Outcome, now: Now, rng: &mut Rng) {
        let Some(seen) = self.seen.get_mut(&node) else { return };
        self.looked.1 = now;
        match (seen.asked.take(), outcome) {
            (Some(Asked::Seal(beat)), Outcome::Swapped) => {
                self.heard(node, beat.sealed(), now, rng);
                if let Some(seen) = self.seen.get_mut(&node).filter(|seen| seen.beat == Some(beat.sealed())) {
                    seen.mine = true;
                }
            }
            (Some(_), Outcome::Read(value) | Outcome::Differs(value)) => {
                seen.ask_at = now.plus_us(self.timing.again_us());
                seen.is_empty = value.is_none();
                if let Some(beat) = Beat::of(value) {
                    self.heard(node, beat, now, rng);
                }
            }
            // What is not known is asked again: a seal by the same swap, as it compares the beat.
            _ => seen.ask_at = now.plus_us(self.timing.again_us()),
        }
    }

    /// Nodes that are sealed and still in the table: who sealed one takes it over at once, the others one after the other, in
    /// case that one died on the way.
    pub fn takeovers(&self, table: &Table, now: Now, stamp_ms: u64) -> Vec<TableChange> {
        let taker = self.me;
        // A sealed one is always to be looked at.
        if now < self.looked.1 {
            return Vec::new();
        }
        if table.frozen() || table.node(taker).is_none_or(|node| node.state != NodeState::Member) {
            return Vec::new();
        }
        let due = self.seen.iter().filter_map(|(&node, seen)| {
            let beat = seen.beat.filter(|beat| beat.sealed)?;
            let known = table.node(node).filter(|known| known.state != NodeState::Left)?;
            if known.generation > beat.generation {
                return None;
            }
            let later = later_us(&self.timing, table, node, taker, seen).saturating_add(self.timing.step_us);
            let due = seen.mine || now >= seen.since.plus_us(later);
            due.then_some(TableChange::TakeOver { node, generation: beat.generation, taker, stamp_ms })
        });
        due.collect()
    }
}

/// Nothing is to be done about a node before, unless something of it is heard.
fn next_look(timing: &Timing, seen: &Seen) -> Now {
    match seen.beat {
        // It may be taken over.
        Some(beat) if beat.sealed => Now::ZERO,
        Some(_) => seen.since.plus_us(timing.wait_us).max(seen.ask_at),
        None => seen.ask_at,
    }
}

/// A register is asked of so late, if nobody tells the beat of its node before: after a renewal, and not by all watchers at once, as
/// questions to one register are in each other's way.
fn first_ask_us(timing: &Timing, me: u16, node: u16) -> u64 {
    const PLACES: u64 = 64;
    let place = u64::from(me).wrapping_mul(31).wrapping_add(u64::from(node)) % PLACES;
    timing.beat_us + timing.beat_us * place / PLACES
}

/// How much longer than the heir a watcher waits.
fn later_us(timing: &Timing, table: &Table, node: u16, me: u16, seen: &Seen) -> u64 {
    match steps_on_ring(table, node, me) {
        Some(1) => 0,
        Some(steps) => (steps as u64 - 1) * timing.step_us + seen.late_us,
        None => u64::MAX,
    }
}
