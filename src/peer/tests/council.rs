//! Whole nodes with their registers on real voters: messages are lost, late and out of order, disks are slow, nodes are
//! killed and start again. A judge with the true time holds every right against all others.

use super::clock::Clock;
use super::{SeedNote, node, seeds, table_of};
use crate::base::{Now, Rng, SortedMap, SortedSet};
use crate::peer::beat::{Rights, Timing};
use crate::peer::council::{Action, Council, Seat};
use crate::peer::register::{Acceptor, Answer, Kept, Pace, Register, Request, Voter};
use crate::peer::{Table, TableChange, name_at_start, table_at_start, voters_of};
use crate::proto::partition::{Partition, Spread};
use std::sync::Arc;

const S: u64 = 1_000_000;
const NODES: u16 = 4;
const VOTERS: u16 = 3;
const PACE: Pace = Pace { resend_us: S / 2, backoff_us: S / 5 };

/// What travels.
#[derive(Clone, Debug)]
enum Word {
    Ask(Request),
    Answer(Answer),
}

struct Peer {
    clock: Clock,
    /// None while it is dead.
    council: Option<Council>,
    starts: u32,
    /// What its disk has, if it votes.
    disk: SortedMap<Register, Kept>,
    /// Actions that wait for the disk, and when it is ready.
    waiting: Vec<Action>,
    ready_at: u64,
    back_at: u64,
    /// It cannot be reached until then, nor reach anybody.
    cut_until: u64,
    /// The table that its disk has.
    table: Option<Table>,
}

struct World {
    rng: Rng,
    truth: u64,
    peers: Vec<Peer>,
    /// Words on their way: when they arrive, from whom and to whom.
    wire: Vec<(u64, u16, u16, Word)>,
    /// The first table of every epoch that anybody held, and the epoch that each node was last seen with.
    tables: SortedMap<u64, u64>,
    seen: SortedMap<u16, u64>,
    takeovers: u64,
    /// The wait is as short as a fault makes it.
    timing: Timing,
    fault: Fault,
    /// There is one voter at first, and three later.
    grows: bool,
}

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Voters forget what they promised.
    Forgets,
    /// Who beats does not remember that there are beats.
    Unkept,
}

fn voters() -> Vec<Voter> {
    (1..=VOTERS).map(|node| Voter { node, disk: u64::from(node) * 100 }).collect()
}

fn timing() -> Timing {
    Timing::for_takeover(30 * S, 5 * S).unwrap()
}

impl World {
    fn new(seed: u64, timing: Timing, grows: bool, fault: Fault) -> World {
        let mut rng = Rng::new(seed);
        let peers = (0..NODES)
            .map(|_| Peer {
                clock: Clock::new(&mut rng),
                council: None,
                starts: 0,
                disk: SortedMap::new(),
                waiting: Vec::new(),
                ready_at: 0,
                back_at: 0,
                cut_until: 0,
                table: None,
            })
            .collect();
        let (wire, tables, seen) = (Vec::new(), SortedMap::new(), SortedMap::new());
        World { rng, truth: 0, peers, wire, tables, seen, takeovers: 0, timing, fault, grows }
    }

    fn peer(&mut self, number: u16) -> &mut Peer {
        &mut self.peers[usize::from(number) - 1]
    }

    fn start(&mut self, number: u16) {
        let (timing, rng) = (self.timing, Rng::new(self.rng.next_u64()));
        let (forgets, grows) = (self.fault == Fault::Forgets, self.grows);
        let now = self.peers[usize::from(number) - 1].clock.local(self.truth);
        let peer = self.peer(number);
        peer.starts += 1;
        let kept = if forgets { SortedMap::new() } else { peer.disk.clone() };
        let (id, start, pace, patience_us) = (node(number).id, peer.starts, PACE, 4 * S);
        let (voters, name, founding, told) = if grows {
            let first = Table::first((1..=NODES).map(node).collect(), vec![1], Spread::Host, 0).unwrap();
            // Who is not the first is told of the table later.
            let told = table_at_start(number, peer.table.clone(), &kept);
            let founding = (number == 1 && told.is_none()).then(|| first.clone());
            let begins = told.as_ref().unwrap_or(&first);
            (voters_of(begins), name_at_start((number, id), begins, &kept), founding, told)
        } else {
            (voters(), u64::from(number) * 100, (number == 1).then(|| table_of(NODES)), None)
        };
        let seat = Seat { node: number, id, start, voters, pace, patience_us };
        let acceptor = (grows || number <= VOTERS).then(|| Acceptor::open(name, kept));
        let rights = Rights::new(node(number), timing, founding);
        let mut council = Council::new(seat, rights, acceptor, rng);
        told.into_iter().for_each(|told| council.told(Arc::new(told), now));
        (peer.council, peer.waiting) = (Some(council), Vec::new());
    }

    /// Keeps the table on disk. Nothing is asked before that.
    fn keep_table(&mut self, number: u16) {
        let unkept = self.fault == Fault::Unkept;
        let peer = self.peer(number);
        let known = peer.council.as_ref().and_then(|council| council.rights().table());
        if let Some(known) = known.filter(|known| !unkept || known.voters().len() == 1) {
            peer.table = Some(Table::clone(known));
        }
    }

    /// The sole voter wants others to vote with it, whoever they are.
    fn want_voters(&mut self, number: u16) {
        let (one, other) =
            (1 + self.rng.below(u64::from(NODES)) as u16, 1 + self.rng.below(u64::from(NODES)) as u16);
        if self.rng.below(20) > 0 || one == other || one == number || other == number {
            return;
        }
        let Some(council) = &mut self.peer(number).council else { return };
        if council.rights().table().is_some_and(|table| table.voters() == [number]) {
            let mut voters = [number, one, other];
            voters.sort_unstable();
            council.rights_mut().want(TableChange::Voters(voters));
        }
    }

    fn kill(&mut self, number: u16, for_us: u64) {
        let back_at = self.truth + for_us;
        let peer = self.peer(number);
        (peer.council, peer.waiting, peer.back_at) = (None, Vec::new(), back_at);
    }

    /// Carries out what a node wants done, as far as its disk has come.
    fn act(&mut self, from: u16, actions: Vec<Action>) {
        let World { rng, truth, peers, wire, .. } = self;
        let (truth, peer) = (*truth, &mut peers[usize::from(from) - 1]);
        peer.waiting.extend(actions);
        while peer.ready_at <= truth && !peer.waiting.is_empty() {
            let (to, word) = match peer.waiting.remove(0) {
                Action::Keep { register, kept } => {
                    peer.disk.insert(register, kept);
                    let slow = if rng.below(50) == 0 { 2 * S } else { 20_000 };
                    peer.ready_at = truth + 1 + rng.below(slow);
                    continue;
                }
                Action::Ask { to, request } => (to, Word::Ask(request)),
                Action::Answer { to, answer } => (to, Word::Answer(answer)),
                Action::Change(wish) => panic!("{wish:?} of a council of nodes"),
            };
            let delay = if rng.below(30) == 0 { 3 * S } else { 30_000 };
            // What a node says to itself is not lost.
            if from == to || rng.below(50) > 0 {
                wire.push((truth + 1 + rng.below(delay), from, to, word));
            }
        }
    }

    fn deliver(&mut self) {
        let truth = self.truth;
        let (now, later): (Vec<_>, Vec<_>) = self.wire.drain(..).partition(|(at, ..)| *at <= truth);
        self.wire = later;
        for (_, from, to, word) in now {
            let is_cut = |world: &mut World, number| world.peer(number).cut_until > truth;
            if from != to && (is_cut(self, from) || is_cut(self, to)) {
                continue;
            }
            let mut out = Vec::new();
            let peer = self.peer(to);
            let now = peer.clock.local(truth);
            let Some(council) = &mut peer.council else { continue };
            match word {
                Word::Ask(request) => council.asked(from, request, now, &mut out),
                Word::Answer(answer) => council.answered(from, answer, now, &mut out),
            }
            self.act(to, out);
        }
    }

    /// Gossip: who is there tells its beat and its table.
    fn gossip(&mut self) {
        let truth = self.truth;
        let told: Vec<_> = (1..=NODES)
            .filter_map(|number| {
                let peer = self.peer(number);
                let rights = peer.council.as_ref().filter(|_| peer.cut_until <= truth)?.rights();
                Some((number, rights.beat(), rights.table().cloned()))
            })
            .collect();
        for to in 1..=NODES {
            let peer = self.peer(to);
            let now = peer.clock.local(truth);
            let Some(council) = peer.council.as_mut().filter(|_| peer.cut_until <= truth) else { continue };
            for (from, beat, table) in told.iter().filter(|(from, ..)| *from != to) {
                if let Some(beat) = beat {
                    council.heard(*from, *beat, now);
                }
                table.iter().for_each(|table| council.told(table.clone(), now));
            }
        }
    }

    fn step(&mut self) {
        self.truth += 10_000 + self.rng.below(40_000);
        self.deliver();
        if self.rng.below(20) == 0 {
            self.gossip();
        }
        for number in 1..=NODES {
            let truth = self.truth;
            let peer = self.peer(number);
            if peer.council.is_none() {
                if truth >= peer.back_at {
                    self.start(number);
                }
                continue;
            }
            let now = peer.clock.local(truth);
            self.keep_table(number);
            self.want_voters(number);
            let peer = self.peer(number);
            let mut out = Vec::new();
            let is_due = |council: &Council| council.next_due().is_none_or(|due| due <= now);
            if let Some(council) = peer.council.as_mut().filter(|council| is_due(council)) {
                council.tick(now, truth / 1_000, &mut out);
            }
            self.act(number, out);
            self.hand_over(number);
        }
        self.judge();
    }

    /// Anybody may want what is unevenly dealt to be dealt anew; owners give what is to move.
    fn hand_over(&mut self, number: u16) {
        if self.rng.below(10) > 0 {
            return;
        }
        let deals = self.rng.below(10) == 0;
        let Some(council) = &mut self.peer(number).council else { return };
        let Some(table) = council.rights().table().cloned() else { return };
        if deals {
            council.rights_mut().want(TableChange::Assign);
        }
        let mut moving: SortedMap<u16, Vec<Partition>> = SortedMap::new();
        for partition in table.owned_by(number).filter(|partition| council.rights().owns(*partition)) {
            if let Some(next) = table.next_owner(partition) {
                moving.entry(next).or_default().push(partition);
            }
        }
        for (to, partitions) in moving {
            council.rights_mut().give(partitions, to);
        }
    }

    /// No two nodes have the right to a partition, and two tables of one epoch are equal.
    fn judge(&mut self) {
        let truth = self.truth;
        let mut owned: SortedMap<Partition, u16> = SortedMap::new();
        for number in 1..=NODES {
            let peer = &self.peers[usize::from(number) - 1];
            let Some(rights) = peer.council.as_ref().map(Council::rights) else { continue };
            if let Some(table) = rights.table()
                && self.seen.insert(number, table.epoch()) != Some(table.epoch())
            {
                let digest = table.digest();
                let known = *self.tables.entry(table.epoch()).or_insert(digest);
                assert_eq!(known, digest, "two tables of epoch {}", table.epoch());
                self.takeovers = self.takeovers.max(table.takings().len() as u64);
            }
            if peer.clock.local(truth) >= rights.right_until() {
                continue;
            }
            for partition in Partition::all().step_by(256).filter(|partition| rights.owns(*partition)) {
                if let Some(other) = owned.insert(partition, number) {
                    panic!("{number} and {other} both have partition {partition} at {truth}");
                }
            }
        }
    }

    fn owners(&self) -> SortedSet<u16> {
        let table = self.peers[0].council.as_ref().and_then(|council| council.rights().table());
        table.map(|table| table.owners().iter().copied().collect()).unwrap_or_default()
    }
}

/// A day of kills, cuts and returns; then quiet, after which everybody has a part again.
fn run(seed: u64, timing: Timing, grows: bool, fault: Fault) -> World {
    let mut world = World::new(seed, timing, grows, fault);
    for _ in 0..12_000 {
        if world.rng.below(400) == 0 {
            let number = 1 + world.rng.below(u64::from(NODES)) as u16;
            let for_us = world.rng.below(90 * S);
            match world.rng.below(2) {
                0 => world.kill(number, for_us),
                _ => world.peer(number).cut_until = world.truth + for_us,
            }
        }
        world.step();
    }
    for _ in 0..8_000 {
        world.step();
    }
    world
}

#[test]
fn no_two_nodes_have_one_right_and_all_have_a_part_in_the_end() {
    let mut takeovers = 0;
    for seed in seeds(4) {
        let _note = SeedNote(seed);
        let world = run(seed, timing(), false, Fault::None);
        takeovers += world.takeovers;
        assert_eq!(world.owners(), (1..=NODES).collect(), "after {} s", world.truth / S);
    }
    assert!(takeovers > 0, "the test is of nothing if nobody is ever taken over");
}

/// From one voter to three, through kills and cuts at any moment: nobody has two owners, no epoch two tables, and in the end
/// there are three voters and everybody has a part.
#[test]
fn one_voter_becomes_three() {
    let mut takeovers = 0;
    for seed in seeds(6) {
        let _note = SeedNote(seed);
        let world = run(seed, timing(), true, Fault::None);
        takeovers += world.takeovers;
        assert_eq!(world.owners(), (1..=NODES).collect(), "after {} s", world.truth / S);
        let table = world.peers[0].council.as_ref().and_then(|council| council.rights().table()).unwrap();
        assert_eq!(table.voters().len(), 3);
    }
    assert!(takeovers > 0, "the test is of nothing if nobody is ever taken over");
}

/// Whoever beat and does not know it any more has a right that never ends, and another one takes over what it has.
#[test]
fn who_forgets_that_there_are_beats_is_found() {
    let found =
        (0..20).any(|seed| std::panic::catch_unwind(|| run(seed, timing(), true, Fault::Unkept)).is_err());
    assert!(found, "the judge sees nothing");
}

/// A voter that forgets what it promised lets two tables of one epoch come to be.
#[test]
fn voters_that_forget_are_found() {
    let found =
        (0..20).any(|seed| std::panic::catch_unwind(|| run(seed, timing(), false, Fault::Forgets)).is_err());
    assert!(found, "the judge sees nothing");
}

#[test]
fn who_is_no_voter_says_nothing_and_next_due_leads_on() {
    let seat = Seat { node: 4, id: 4, start: 1, voters: voters(), pace: PACE, patience_us: 4 * S };
    let mut council = Council::new(seat, Rights::new(node(4), timing(), None), None, Rng::new(1));
    let mut out = Vec::new();
    council.tick(Now::from_us(S), 0, &mut out);
    let asks = out.iter().filter(|action| matches!(action, Action::Ask { .. })).count();
    assert!(asks >= usize::from(VOTERS), "every voter is asked: {out:?}");
    let Some(Action::Ask { request, .. }) = out.first().cloned() else { panic!("{out:?}") };
    let mut answers = Vec::new();
    council.asked(1, request, Now::from_us(S), &mut answers);
    assert!(answers.is_empty());
    assert!(council.next_due().is_some());
}
