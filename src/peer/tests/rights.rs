//! Five nodes in virtual time, with clocks that run at their own rates, delays up to a whole right, lost answers, pauses, cuts and
//! kills: no two nodes have a right to a partition at the same true time, what they left open included; epochs only grow,
//! and two tables of one epoch are equal. With odd seeds the council is outside. The registers are atomic, and a request may land long after its asker gave up.

use super::clock::Clock;
use super::{SeedNote, node, seeds, table_of};
use crate::base::{Now, Rng};
use crate::limits::PARTITIONS;
use crate::peer::beat::{Beat, Rights, Timing};
use crate::peer::register::{Change, Outcome, Register, Value};
use crate::peer::{Table, TableChange, assign};
use crate::proto::partition::Partition;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

const S: u64 = 1_000_000;
const NODES: usize = 5;

type Set = [u64; PARTITIONS / 64];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The wait is shorter than the hold.
    ShortWait,
    /// A seal seals whatever beat there is.
    BlindSeal,
}

enum Event {
    Tick(usize, u32),
    Arrive { from: usize, life: u32, number: u64, register: Register, change: Change },
    Answer { to: usize, life: u32, number: u64, register: Register, outcome: Outcome },
    Gossip { to: usize, from: u16, beat: Option<Beat>, table: Option<Arc<Table>> },
    Mischief,
}

struct Member {
    rights: Rights,
    clock: Clock,
    life: u32,
    paused_until: u64,
    cut_until: u64,
    /// What is asked of each register: a number, when it is given up, whether it may have changed something.
    open: BTreeMap<Register, (u64, Now, bool)>,
    /// What the judge knows: under which epoch, generation and stops the set was made, and until when it is claimed.
    made_of: (u64, Option<u32>, Vec<Partition>),
    set: Box<Set>,
    until: u64,
    /// Rights of generations that ended while requests were open.
    ghosts: Vec<(Box<Set>, u64)>,
}

#[derive(Default, Debug)]
struct Counts {
    takeovers: u64,
    gifts: u64,
    seals: u64,
    joins: u64,
    renewals: u64,
}

struct World {
    rng: Rng,
    fault: Fault,
    /// No node votes.
    outside: bool,
    timing: Timing,
    now: u64,
    calm: bool,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    payload: BTreeMap<u64, Event>,
    pushed: u64,
    registers: BTreeMap<Register, Value>,
    members: Vec<Member>,
    tables: BTreeMap<u64, u64>,
    counts: Counts,
    overlaps: u64,
}

fn empty() -> Box<Set> {
    Box::new([0; PARTITIONS / 64])
}

impl World {
    fn new(seed: u64, fault: Fault) -> World {
        let mut rng = Rng::new(seed ^ 0xbea7);
        let mut timing = match rng.below(2) {
            0 => Timing::for_takeover(300 * S, 60 * S).unwrap(),
            _ => Timing::for_takeover(30 * S, 17 * S).unwrap(),
        };
        if fault == Fault::ShortWait {
            timing.wait_us = timing.hold_us - timing.hold_us / 10;
        }
        let mut world = World {
            fault,
            outside: seed % 2 == 1,
            timing,
            now: 0,
            calm: false,
            events: BinaryHeap::new(),
            payload: BTreeMap::new(),
            pushed: 0,
            registers: BTreeMap::new(),
            members: Vec::new(),
            tables: BTreeMap::new(),
            counts: Counts::default(),
            overlaps: 0,
            rng,
        };
        for at in 0..NODES {
            let member = world.start(at, 0);
            world.members.push(member);
            world.push(at as u64 * 1_000, Event::Tick(at, 0));
        }
        world.push(S, Event::Mischief);
        world
    }

    fn start(&mut self, at: usize, life: u32) -> Member {
        let mut first = table_of(NODES as u16);
        if self.outside {
            first.voters.clear();
        }
        let founding = (at == 0).then(|| assign(&first).unwrap());
        let mut me = node(at as u16 + 1);
        me.generation = 0;
        Member {
            rights: Rights::new(me, self.timing, founding),
            clock: Clock::new(&mut self.rng),
            life,
            paused_until: 0,
            cut_until: 0,
            open: BTreeMap::new(),
            made_of: (0, None, Vec::new()),
            set: empty(),
            until: 0,
            ghosts: Vec::new(),
        }
    }

    fn push(&mut self, delay: u64, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((self.now + delay, self.pushed)));
        self.payload.insert(self.pushed, event);
    }

    fn delay(&mut self) -> u64 {
        let most = match self.rng.below(1_000) {
            _ if self.calm => S / 5,
            0..10 => self.timing.hold_us,
            10..100 => self.timing.hold_us / 20,
            _ => S / 5,
        };
        1_000 + self.rng.below(most)
    }

    fn cut(&self, at: usize) -> bool {
        self.now < self.members[at].cut_until
    }

    fn handle(&mut self, event: Event) {
        let target = match &event {
            Event::Tick(at, _) | Event::Answer { to: at, .. } | Event::Gossip { to: at, .. } => Some(*at),
            _ => None,
        };
        if let Some(at) = target
            && self.now < self.members[at].paused_until
        {
            let delay = self.members[at].paused_until - self.now;
            self.push(delay, event);
            return;
        }
        match event {
            Event::Tick(at, life) => {
                if self.members[at].life == life {
                    self.turn(at);
                    let delay = self.timing.beat_us / 5 + self.rng.below(self.timing.beat_us / 5);
                    self.push(delay, Event::Tick(at, life));
                }
            }
            Event::Arrive { from, life, number, register, change } => {
                let outcome = self.apply(register, &change);
                if !self.rng.chance(if self.calm { 0 } else { 20 }) {
                    let delay = self.delay();
                    self.push(delay, Event::Answer { to: from, life, number, register, outcome });
                }
            }
            Event::Answer { to, life, number, register, outcome } => {
                let open = self.members[to].open.get(&register).is_some_and(|open| open.0 == number);
                if self.members[to].life == life && open && !self.cut(to) {
                    self.members[to].open.remove(&register);
                    self.answer(to, register, &outcome);
                }
            }
            Event::Gossip { to, from, beat, table } => {
                if self.cut(to) {
                    return;
                }
                let member = &mut self.members[to];
                let now = member.clock.local(self.now);
                if let Some(beat) = beat {
                    member.rights.heard(from, beat, now, &mut self.rng);
                }
                if let Some(table) = table {
                    member.rights.told(table);
                }
                self.judge(to);
            }
            Event::Mischief => self.mischief(),
        }
    }

    /// The registers: one after the other, as requests arrive.
    fn apply(&mut self, register: Register, change: &Change) -> Outcome {
        let held = self.registers.entry(register).or_default();
        match change {
            Change::Read => Outcome::Read(held.clone()),
            Change::Swap { expect, new } => {
                let seals =
                    matches!(register, Register::Beat(_)) && Beat::of(new).is_some_and(|beat| beat.sealed);
                if seals && self.fault == Fault::BlindSeal {
                    *held = Beat::of(held).unwrap().sealed().value();
                } else if held != expect {
                    return Outcome::Differs(held.clone());
                } else {
                    *held = new.clone();
                }
                match register {
                    Register::Table => {
                        let table = Table::decode(new.as_ref().unwrap()).unwrap();
                        let before = expect.as_ref().map(|bytes| Table::decode(bytes).unwrap());
                        let taken = |table: &Table| table.takings().last().map(|taking| taking.epoch);
                        let takeover = before.as_ref().is_some_and(|before| taken(before) != taken(&table));
                        self.counts.takeovers += u64::from(takeover);
                        let owners = before.is_some_and(|before| before.owners() != table.owners());
                        self.counts.gifts += u64::from(owners && !takeover);
                    }
                    Register::Beat(_) if seals => self.counts.seals += 1,
                    Register::Beat(_) => self.counts.renewals += 1,
                }
                Outcome::Swapped
            }
        }
    }

    fn answer(&mut self, at: usize, register: Register, outcome: &Outcome) {
        let member = &mut self.members[at];
        let now = member.clock.local(self.now);
        member.rights.answered(register, outcome, now, &mut self.rng);
        self.judge(at);
    }

    fn turn(&mut self, at: usize) {
        let now = self.members[at].clock.local(self.now);
        let late: Vec<(Register, bool)> = self.members[at]
            .open
            .iter()
            .filter(|(_, open)| now >= open.1)
            .map(|(register, open)| (*register, open.2))
            .collect();
        for (register, swaps) in late {
            self.members[at].open.remove(&register);
            self.answer(at, register, if swaps { &Outcome::Unknown } else { &Outcome::NotDone });
        }
        let wishes = self.members[at].rights.tick(now, self.now / 1_000);
        self.judge(at);
        let life = self.members[at].life;
        for wish in wishes {
            let number = self.pushed + 1;
            let swaps = matches!(wish.change, Change::Swap { .. });
            let deadline = now.plus_us(self.timing.hold_us / 12);
            let before = self.members[at].open.insert(wish.register, (number, deadline, swaps));
            assert!(before.is_none(), "one question at a time to {:?}", wish.register);
            let delay = self.delay();
            let (register, change) = (wish.register, wish.change);
            if self.cut(at) {
                self.pushed += 1;
            } else {
                self.push(delay, Event::Arrive { from: at, life, number, register, change });
            }
        }
        if self.rng.chance(300) && !self.cut(at) {
            let to = self.rng.below(NODES as u64) as usize;
            let (beat, table) = {
                let rights = &self.members[at].rights;
                (rights.beat(), rights.table().cloned())
            };
            let delay = self.delay();
            if to != at {
                self.push(delay, Event::Gossip { to, from: at as u16 + 1, beat, table });
            }
        }
        // What is on its way to another is wanted back.
        let stopped: Vec<Partition> = self.members[at].rights.stopped().iter().copied().collect();
        if !stopped.is_empty() && self.rng.chance(50) {
            self.members[at].rights.keep(stopped);
            self.judge(at);
        }
        self.moves(at);
    }

    /// Hands over what the table says is to move, some of it at a time.
    fn moves(&mut self, at: usize) {
        let me = at as u16 + 1;
        let rights = &mut self.members[at].rights;
        let Some(table) = rights.table().cloned() else { return };
        if rights.right_until() == Now::ZERO || !rights.stopped().is_empty() || !self.rng.chance(200) {
            return;
        }
        let Some(first) = table.owned_by(me).find(|&partition| table.next_owner(partition).is_some()) else {
            return;
        };
        let to = table.next_owner(first).unwrap();
        let group: Vec<Partition> = table
            .owned_by(me)
            .filter(|&partition| table.next_owner(partition) == Some(to))
            .take(256)
            .collect();
        rights.give(group, to);
        self.judge(at);
    }

    fn mischief(&mut self) {
        let wait = self.timing.wait_us.max(30 * S);
        let delay = self.rng.below(wait);
        self.push(delay, Event::Mischief);
        let at = self.rng.below(NODES as u64) as usize;
        let span = if self.rng.chance(500) { wait * 5 } else { wait / 3 };
        let until = self.now + self.rng.below(span);
        let roll = self.rng.below(100);
        if self.calm && roll < 70 {
            return;
        }
        match roll {
            0..20 => self.members[at].paused_until = until,
            20..45 => self.members[at].cut_until = until,
            45..60 => {
                // Its requests end with it; what it sent to the registers may still arrive.
                let life = self.members[at].life + 1;
                let mut member = self.start(at, life);
                member.ghosts.clear();
                self.members[at] = member;
                let delay = self.rng.below(span);
                self.push(delay, Event::Tick(at, life));
            }
            60..70 => {
                let to = 1 + self.rng.below(NODES as u64) as u16;
                let owned: Vec<Partition> =
                    Partition::all().filter(|&partition| self.members[at].rights.owns(partition)).collect();
                let some: Vec<Partition> = owned.into_iter().filter(|_| self.rng.chance(50)).collect();
                if !some.is_empty() && to != at as u16 + 1 {
                    self.members[at].rights.give(some.clone(), to);
                    if self.rng.chance(300) {
                        self.members[at].rights.keep(some.clone());
                        if self.rng.chance(500) {
                            self.members[at].rights.give(some, to);
                        }
                    }
                    self.judge(at);
                }
            }
            _ => {
                self.members[at].rights.want(TableChange::Assign);
            }
        }
    }

    /// Looks at one node after anything happened to it.
    fn judge(&mut self, at: usize) {
        let member = &mut self.members[at];
        let rights = &member.rights;
        let epoch = rights.table().map_or(0, |table| table.epoch());
        let made_of = (epoch, rights.generation(), rights.stopped().iter().copied().collect::<Vec<_>>());
        assert!(epoch >= member.made_of.0, "epochs only grow");
        if epoch > member.made_of.0 {
            let digest = rights.table().unwrap().digest();
            let known = *self.tables.entry(epoch).or_insert(digest);
            assert_eq!(known, digest, "two tables of epoch {epoch}");
        }
        if made_of != member.made_of {
            if made_of.1 != member.made_of.1 {
                self.counts.joins += 1;
                let set = std::mem::replace(&mut member.set, empty());
                member.ghosts.push((set, member.until));
            }
            let mut set = empty();
            for partition in Partition::all().filter(|&partition| rights.owns(partition)) {
                set[partition.index() / 64] |= 1 << (partition.index() % 64);
            }
            member.set = set;
            member.made_of = made_of;
        }
        // What was asked for at the very end may be open for as long as a request takes.
        let until = rights.right_until();
        member.until = match until {
            Now::ZERO => 0,
            until => member.clock.truth(until.plus_us(self.timing.request_us)),
        };
        let now = self.now;
        member.ghosts.retain(|(_, until)| *until > now);
        let member = &self.members[at];
        if until <= member.clock.local(now) {
            return;
        }
        for (other_at, other) in self.members.iter().enumerate().filter(|(other_at, _)| *other_at != at) {
            let live = [(&other.set, other.until)];
            let ghosts = other.ghosts.iter().map(|(set, until)| (set, *until));
            for (set, until) in live.into_iter().chain(ghosts).filter(|(_, until)| *until > now) {
                if set.iter().zip(member.set.iter()).any(|(one, other)| one & other != 0) {
                    self.overlaps += 1;
                    assert!(
                        self.fault != Fault::Nothing,
                        "nodes {} and {} at {now}: {:?} and {:?}, the other until {until}",
                        at + 1,
                        other_at + 1,
                        member.made_of,
                        other.made_of,
                    );
                }
            }
        }
    }

    fn run(&mut self, until: u64) {
        while let Some(Reverse((time, key))) = self.events.pop() {
            if time > until {
                self.events.push(Reverse((time, key)));
                break;
            }
            self.now = time;
            let event = self.payload.remove(&key).unwrap();
            self.handle(event);
            if self.overlaps > 0 {
                break;
            }
        }
    }

    /// Storm, then calm: every partition has one node with a right to it in the end.
    fn whole(&mut self) {
        let wait = self.timing.wait_us;
        self.run(30 * wait);
        self.calm = true;
        for member in &mut self.members {
            member.paused_until = member.paused_until.min(self.now);
            member.cut_until = 0;
        }
        self.run(40 * wait + 600 * S);
        if self.overlaps > 0 {
            return;
        }
        let mut all = empty();
        for member in &self.members {
            assert!(member.rights.right_until() > member.clock.local(self.now), "{:?}", member.made_of);
            all.iter_mut().zip(member.set.iter()).for_each(|(all, set)| *all |= set);
        }
        assert!(all.iter().all(|word| *word == u64::MAX), "every partition is somebody's");
    }
}

#[test]
fn no_two_rights_to_a_partition_overlap() {
    let mut all = Counts::default();
    let seeds = seeds(12);
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        let _note = SeedNote(seed);
        let mut world = World::new(seed, Fault::Nothing);
        world.whole();
        assert_eq!(world.overlaps, 0);
        all.takeovers += world.counts.takeovers;
        all.gifts += world.counts.gifts;
        all.seals += world.counts.seals;
        all.joins += world.counts.joins;
        all.renewals += world.counts.renewals;
    }
    eprintln!("{runs} runs: {all:?}");
    if runs >= 10 {
        // A model in which nothing happens would pass everything.
        assert!(all.takeovers > 2 * runs && all.gifts > 2 * runs && all.seals >= all.takeovers, "{all:?}");
    }
}

fn found(fault: Fault) -> Option<u64> {
    (0..200).find(|&seed| {
        let mut world = World::new(seed, fault);
        world.whole();
        world.overlaps > 0
    })
}

#[test]
fn a_wait_that_is_shorter_than_the_hold_is_found() {
    let seed = found(Fault::ShortWait);
    eprintln!("found with seed {seed:?}");
    assert!(seed.is_some());
}

#[test]
fn a_seal_that_does_not_compare_the_beat_is_found() {
    let seed = found(Fault::BlindSeal);
    eprintln!("found with seed {seed:?}");
    assert!(seed.is_some());
}
