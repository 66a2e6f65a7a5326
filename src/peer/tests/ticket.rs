//! Tickets in true time: two of one address never overlap, nobody asks while another's request is open, and the gap is kept when
//! another process asks. Messages are lost, late,
//! doubled and in any order; holders and the keeper are killed; clocks are 1 % fast or slow.

use super::clock::Clock;
use super::{SeedNote, partition, seeds};
use crate::base::{Now, Rng};
use crate::peer::ticket::{
    ALL_SLOTS, Back, Grant, Keeper, Lending, SLICE_US, Said, TICKET_US, Tickets, Want, kept_us, owed_us,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const S: u64 = 1_000_000;
const KEY: u32 = 7;
const HOLDERS: usize = 4;
const REQUEST_US: u64 = 15 * S;
/// What a keeper that began again waits for.
const CLOSED_US: u64 = kept_us(TICKET_US + REQUEST_US);

fn lending(slots: u16, pause_us: u64) -> Lending {
    Lending { slots, pause_us, request_us: REQUEST_US, in_parts: false }
}

/// Requests that may be open in the model.
const SLOTS: u16 = 3;

/// A keeper that begins, in the model.
fn open_keeper(pause_us: u64, kept: fn(u64) -> u64, now: Now) -> Keeper<u32> {
    let lending = Lending { in_parts: pause_us == 0, ..lending(SLOTS, pause_us) };
    let mut keeper = Keeper::open(lending, now);
    keeper.set_spread(pause_us == 0);
    keeper.set_kept(kept, now);
    keeper
}

enum Event {
    Turn(usize),
    Want(usize, Want<u32>),
    Back(usize, Back<u32>),
    Said(usize, Said<u32>),
    Mischief,
}

struct Holder {
    tickets: Tickets<u32>,
    clock: Clock,
    life: u64,
    /// When this process sent last, by its own clock: what it would keep without any cluster.
    sent: Option<Now>,
    busy: bool,
    /// Its requests have all ended then, by its own clock.
    open_until: Now,
    /// The end of its ticket in true time.
    until: u64,
}

struct World {
    rng: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    payload: BTreeMap<u64, Event>,
    pushed: u64,
    keeper: Keeper<u32>,
    keeper_clock: Clock,
    kept: fn(u64) -> u64,
    pause_us: u64,
    holders: Vec<Holder>,
    /// The last request: which process, when.
    last: Option<((usize, u64), u64)>,
    rough: bool,
    /// It is lent in parts.
    in_parts: bool,
    changes: u64,
    /// The most holders that ever had a part at once.
    most_at_once: usize,
    requests: u64,
    wrong: Option<String>,
}

impl World {
    fn new(seed: u64, kept: fn(u64) -> u64) -> World {
        World::of(seed, kept, false)
    }

    /// Without a pause, and in parts.
    fn in_parts(seed: u64, kept: fn(u64) -> u64) -> World {
        World::of(seed, kept, true)
    }

    fn of(seed: u64, kept: fn(u64) -> u64, in_parts: bool) -> World {
        let mut rng = Rng::new(seed ^ 0x71c_4e7);
        let keeper_clock = Clock::new(&mut rng);
        let pause_us = if in_parts { 0 } else { [S / 2, 2 * S, 20 * S][rng.below(3) as usize] };
        let keeper = open_keeper(pause_us, kept, keeper_clock.local(0));
        let holders = (0..HOLDERS).map(|at| Holder {
            tickets: Tickets::new(1 << 32 | at as u64),
            clock: Clock::new(&mut rng),
            life: 1,
            sent: None,
            busy: false,
            open_until: Now::ZERO,
            until: 0,
        });
        let holders = holders.collect();
        let mut world = World {
            now: 0,
            events: BinaryHeap::new(),
            payload: BTreeMap::new(),
            pushed: 0,
            keeper,
            keeper_clock,
            kept,
            pause_us,
            holders,
            last: None,
            rough: rng.chance(600),
            in_parts,
            changes: 0,
            most_at_once: 0,
            requests: 0,
            wrong: None,
            rng,
        };
        for at in 0..HOLDERS {
            world.push(at as u64, Event::Turn(at));
        }
        world.push(S, Event::Mischief);
        world
    }

    fn push(&mut self, delay: u64, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((self.now + delay, self.pushed)));
        self.payload.insert(self.pushed, event);
    }

    fn travel(&mut self, event: impl Fn() -> Event) {
        let copies = match self.rng.below(100) {
            0..5 if self.rough => 0,
            5..10 if self.rough => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let most = match self.rng.below(100) {
                0 if self.rough => 90 * S,
                1..5 if self.rough => 5 * S,
                _ => 2_000,
            };
            let delay = 1 + self.rng.below(most);
            self.push(delay, event());
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Turn(at) => {
                self.turn(at);
                let delay = self.rng.below(S / 4);
                self.push(delay, Event::Turn(at));
            }
            Event::Want(from, want) => {
                let now = self.keeper_clock.local(self.now);
                let said = self.keeper.want(from as u16 + 1, want, partition(0), Now::NEVER, now);
                self.travel(|| Event::Said(from, said.clone()));
            }
            Event::Back(from, back) => {
                self.keeper.back(from as u16 + 1, back, self.keeper_clock.local(self.now));
            }
            Event::Said(to, said) => {
                let holder = &mut self.holders[to];
                let now = holder.clock.local(self.now);
                let back = match &said {
                    Said::Grant(grant) => holder.tickets.granted(grant, now),
                    Said::Wait(wait) => {
                        holder.tickets.waits(wait, now);
                        None
                    }
                };
                if let Some(back) = back {
                    self.travel(|| Event::Back(to, back.clone()));
                }
                self.judge(to);
            }
            Event::Mischief => {
                let delay = self.rng.below(60 * S);
                self.push(delay, Event::Mischief);
                let at = self.rng.below(HOLDERS as u64) as usize;
                match self.rng.below(10) {
                    0 if !self.keeper.is_closed(self.keeper_clock.local(self.now))
                        && self.rng.chance(500) =>
                    {
                        // A process on the same machine, which knows what the one before it had lent.
                        let known = self.keeper.known(self.keeper_clock.local(self.now));
                        self.keeper = open_keeper(self.pause_us, self.kept, Now::ZERO);
                        self.keeper.take_up(known);
                    }
                    0 => {
                        self.keeper_clock = Clock::new(&mut self.rng);
                        let now = self.keeper_clock.local(self.now);
                        self.keeper = open_keeper(self.pause_us, self.kept, now);
                    }
                    1..4 => {
                        let life = self.holders[at].life + 1;
                        let clock = Clock::new(&mut self.rng);
                        let tickets = Tickets::new(life << 32 | at as u64);
                        let (busy, open_until) = (false, Now::ZERO);
                        self.holders[at] =
                            Holder { tickets, clock, life, sent: None, busy, open_until, until: 0 };
                    }
                    _ => self.holders[at].busy = !self.holders[at].busy,
                }
            }
        }
    }

    fn turn(&mut self, at: usize) {
        let holder = &mut self.holders[at];
        let now = holder.clock.local(self.now);
        let is_open = now < holder.open_until;
        let is_over = holder.tickets.window(&KEY, now).is_none() && holder.until > 0;
        if holder.busy && is_over && !is_open {
            // Its time is over, and others may wait.
            if let Some(back) = holder.tickets.back(&KEY, Some((self.pause_us, Box::default())), now) {
                self.travel(|| Event::Back(at, back.clone()));
            }
        }
        let holder = &mut self.holders[at];
        if holder.busy {
            let paced = holder.sent.is_none_or(|sent| now.since_us(sent) >= self.pause_us);
            // One at a time of what is had in part.
            if paced && !(self.in_parts && is_open) && holder.tickets.may_send(&KEY, now) {
                holder.tickets.sent(&KEY, now);
                holder.sent = Some(now);
                let slow = self.rng.chance(200);
                let takes_us = if slow { REQUEST_US } else { self.rng.below(S / 2) };
                holder.open_until = holder.open_until.max(now.plus_us(takes_us));
                self.request(at);
            }
            let holder = &mut self.holders[at];
            if let Some(want) = holder.tickets.want(&KEY, now) {
                self.travel(|| Event::Want(at, want.clone()));
            }
        } else if !is_open
            && let Some(back) = holder.tickets.back(&KEY, Some((self.pause_us, Box::default())), now)
        {
            self.travel(|| Event::Back(at, back.clone()));
        }
        self.judge(at);
    }

    fn request(&mut self, at: usize) {
        let process = (at, self.holders[at].life);
        let is_open = |holder: &Holder| holder.clock.local(self.now) < holder.open_until;
        let open: Vec<usize> =
            (0..HOLDERS).filter(|&other| other != at && is_open(&self.holders[other])).collect();
        let most = if self.in_parts { usize::from(SLOTS) - 1 } else { 0 };
        if open.len() > most {
            self.wrong = Some(format!("{process:?} asks while {open:?} have a request open"));
        }
        if let Some((last, time)) = self.last.filter(|(last, _)| *last != process) {
            self.changes += 1;
            if self.now - time < self.pause_us {
                let gap = self.now - time;
                self.wrong = Some(format!("{process:?} {gap} µs after {last:?}, pause {}", self.pause_us));
            }
        }
        self.last = Some((process, self.now));
        self.requests += 1;
    }

    fn judge(&mut self, at: usize) {
        let holder = &mut self.holders[at];
        let window = holder.tickets.window(&KEY, holder.clock.local(self.now));
        holder.until = window.map_or(0, |(_, until)| holder.clock.truth(until));
        let has = |holder: &Holder| holder.until > self.now;
        if self.in_parts {
            let part = |holder: &Holder| holder.tickets.part(&KEY).unwrap_or(SLOTS);
            let parts: Vec<u16> = self.holders.iter().filter(|holder| has(holder)).map(part).collect();
            if parts.iter().sum::<u16>() > SLOTS {
                self.wrong = Some(format!("parts of {parts:?} are lent at {}", self.now));
            }
            self.most_at_once = self.most_at_once.max(parts.len());
            return;
        }
        let others = self.holders.iter().enumerate().filter(|(other, holder)| *other != at && has(holder));
        if has(&self.holders[at])
            && let Some((other, _)) = others.into_iter().next()
        {
            self.wrong = Some(format!("holders {at} and {other} have a ticket at {}", self.now));
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((time, key))) = self.events.pop() {
            if time > 1_800 * S || self.wrong.is_some() {
                return;
            }
            self.now = time;
            let event = self.payload.remove(&key).unwrap();
            self.handle(event);
        }
    }
}

#[test]
fn tickets_never_overlap_and_the_gap_is_kept() {
    let (mut changes, mut requests, mut runs) = (0, 0, 0);
    for seed in seeds(60) {
        let _note = SeedNote(seed);
        let mut world = World::new(seed, kept_us);
        world.run();
        assert_eq!(world.wrong, None);
        changes += world.changes;
        requests += world.requests;
        runs += 1;
    }
    eprintln!("{runs} runs: {requests} requests, {changes} of them by another than the one before");
    assert!(runs < 20 || changes > 10 * runs, "a model in which nothing is handed on would pass");
}

#[test]
fn parts_are_never_more_than_the_whole_and_everybody_gets_one() {
    let (mut requests, mut runs, mut most) = (0, 0, 0);
    for seed in seeds(60) {
        let _note = SeedNote(seed);
        let mut world = World::in_parts(seed, kept_us);
        world.run();
        assert_eq!(world.wrong, None);
        requests += world.requests;
        most = most.max(world.most_at_once);
        runs += 1;
    }
    eprintln!("{runs} runs: {requests} requests, at most {most} have a part at once");
    assert!(runs < 20 || most == usize::from(SLOTS), "a model in which nothing is shared would pass");
    let is_found = (0..2_000).any(|seed| {
        let mut world = World::in_parts(seed, |lent_us| lent_us - S);
        world.run();
        world.wrong.is_some()
    });
    assert!(is_found, "a keeper that counts too short is found");
}

#[test]
fn whoever_shares_gets_as_much_as_the_others() {
    let mut keeper = Keeper::fresh(Lending { in_parts: true, ..lending(8, 0) });
    keeper.set_spread(true);
    let mut asks = 0;
    let mut ask = |keeper: &mut Keeper<u32>, node, now: Now| {
        asks += 1;
        let want = Want { key: KEY, ask: asks, renews: true };
        match keeper.want(node, want, partition(5), Now::NEVER, now) {
            Said::Grant(grant) => Some(grant.slots),
            Said::Wait(_) => None,
        }
    };
    let back = |line: &[u8], pause_us| Back {
        key: KEY,
        ask: u64::MAX,
        sent_ago_us: Some(0),
        pause_us,
        line: line.into(),
    };
    assert_eq!(ask(&mut keeper, 1, at(1)), Some(8), "nobody else wants it");
    for node in [2, 3, 4] {
        assert_eq!(ask(&mut keeper, node, at(1)), None);
    }
    assert_eq!(ask(&mut keeper, 1, at(5)), Some(8), "its slice is not over");
    assert_eq!(ask(&mut keeper, 1, at(11)), None);
    keeper.back(1, back(b"", 0), at(11));
    assert_eq!(ask(&mut keeper, 1, at(11)), None, "others are before it");
    for node in [2, 3, 4, 1] {
        assert_eq!(ask(&mut keeper, node, at(12)), Some(2), "of node {node}");
    }
    for node in [1, 2, 3, 4] {
        assert_eq!(ask(&mut keeper, node, at(30)), Some(2), "each keeps its part");
    }
    keeper.back(3, back(b"", 0), at(31));
    assert_eq!(ask(&mut keeper, 4, at(32)), Some(4), "and gets what nobody has");
    // One of them is told to be slower: from then on one has all of it at a time, and keeps the pause.
    keeper.back(4, back(b"x", 9 * S), at(33));
    assert_eq!(ask(&mut keeper, 4, at(33)), None, "others have a part yet");
    assert_eq!(ask(&mut keeper, 1, at(34)), None, "which is not renewed");
    keeper.back(1, back(b"", 0), at(35));
    keeper.back(2, back(b"", 0), at(35));
    let want = Want { key: KEY, ask: 1_000, renews: false };
    let grant = granted(keeper.want(4, want, partition(5), Now::NEVER, at(36)));
    assert_eq!((grant.slots, &*grant.line, grant.pause_us), (ALL_SLOTS, &b"x"[..], 9 * S));
    assert!(grant.due_in_us > 7 * S, "{}", grant.due_in_us);
}

#[test]
fn a_part_is_not_renewed_once_there_is_a_pause_and_who_withdraws_is_not_waited_for() {
    let mut keeper = Keeper::fresh(Lending { in_parts: true, ..lending(8, 0) });
    keeper.set_spread(true);
    let mut asks = 0;
    let mut ask = |keeper: &mut Keeper<u32>, node, now: Now| {
        asks += 1;
        let want = Want { key: KEY, ask: asks, renews: true };
        match keeper.want(node, want, partition(5), Now::NEVER, now) {
            Said::Grant(grant) => Some((grant.slots, grant.line)),
            Said::Wait(_) => None,
        }
    };
    let back = |line: &[u8], pause_us| {
        let (ask, sent_ago_us, line) = (u64::MAX, Some(0), line.into());
        Back { key: KEY, ask, sent_ago_us, pause_us, line }
    };
    assert_eq!(ask(&mut keeper, 1, at(1)), Some((8, Box::default())));
    assert_eq!(ask(&mut keeper, 2, at(1)), None);
    keeper.back(1, back(b"", 0), at(2));
    assert_eq!(ask(&mut keeper, 1, at(2)), None);
    for node in [2, 1] {
        assert_eq!(ask(&mut keeper, node, at(3)), Some((4, Box::default())));
    }
    keeper.back(1, back(b"x", 9 * S), at(4));
    assert_eq!(ask(&mut keeper, 2, at(8)), None, "it would not know of the pause");
    keeper.back(2, back(b"y", 0), at(9));
    // Both have waited, and one of them does not any more.
    assert_eq!(ask(&mut keeper, 3, at(9)), Some((ALL_SLOTS, b"xy"[..].into())), "what both say holds");
    assert_eq!(ask(&mut keeper, 1, at(10)), None);
    assert_eq!(ask(&mut keeper, 2, at(10)), None);
    keeper.back(3, back(b"", 0), at(11));
    assert_eq!(ask(&mut keeper, 2, at(12)), None, "the other one came before");
    keeper.back(1, back(b"", 0), at(12));
    assert_eq!(ask(&mut keeper, 2, at(19)), Some((8, Box::default())), "the pause is over, and known to be");
}

fn found(kept: fn(u64) -> u64) -> Option<u64> {
    (0..2_000).find(|&seed| {
        let mut world = World::new(seed, kept);
        world.run();
        world.wrong.is_some()
    })
}

#[test]
fn a_keeper_that_counts_as_the_holder_does_is_found() {
    let seed = found(|lent_us| lent_us);
    eprintln!("found with seed {seed:?}");
    assert!(seed.is_some());
}

#[test]
fn a_second_more_is_too_little_for_clocks_at_both_ends() {
    let seed = found(|lent_us| lent_us + S);
    eprintln!("found with seed {seed:?}");
    assert!(seed.is_some());
}

fn at(s: u64) -> Now {
    Now::from_us(s * S)
}

fn want(ask: u64) -> Want<u32> {
    Want { key: KEY, ask, renews: false }
}

fn granted(said: Said<u32>) -> Grant<u32> {
    match said {
        Said::Grant(grant) => grant,
        Said::Wait(wait) => panic!("{wait:?}"),
    }
}

fn waits(said: &Said<u32>) -> bool {
    matches!(said, Said::Wait(_))
}

#[test]
fn a_keeper_lends_nothing_when_it_began_or_has_no_right_and_then_in_turn() {
    let mut keeper = Keeper::open(lending(2, S), at(100));
    let ask = |keeper: &mut Keeper<u32>, node, number, now| {
        keeper.want(node, want(number), partition(5), Now::NEVER, now)
    };
    assert!(waits(&ask(&mut keeper, 1, 1, at(101))));
    assert!(waits(&ask(&mut keeper, 1, 2, at(176))), "76 s are not enough");
    let open = at(100).plus_us(CLOSED_US);
    assert!(waits(&keeper.want(1, want(3), partition(5), open, open)), "without a right nothing is lent");
    let first = granted(ask(&mut keeper, 1, 4, open));
    assert_eq!((first.for_us, first.due_in_us, first.slots), (TICKET_US, owed_us(S), ALL_SLOTS));
    assert!(waits(&ask(&mut keeper, 2, 1, at(180))));
    assert!(waits(&ask(&mut keeper, 3, 1, at(180))));
    let renew = Want { key: KEY, ask: 5, renews: true };
    assert!(
        waits(&keeper.want(1, renew, partition(5), Now::NEVER, at(190))),
        "others wait, and its slice is over"
    );
    let back = |ask, sent_ago_us| Back { key: KEY, ask, sent_ago_us, pause_us: 3 * S, line: Box::new(*b"x") };
    keeper.back(1, back(3, None), at(191));
    assert!(waits(&ask(&mut keeper, 2, 2, at(191))), "an earlier ticket was meant");
    keeper.back(1, back(5, Some(S)), at(192));
    assert!(waits(&ask(&mut keeper, 3, 2, at(192))), "the other one came before");
    let second = granted(ask(&mut keeper, 2, 3, at(193)));
    assert_eq!(second.for_us, SLICE_US, "another one waits");
    assert_eq!(second.due_in_us, owed_us(3 * S) - 2 * S);
    assert_eq!(&*second.line, b"x");
    keeper.close(partition(5), at(300));
    assert!(waits(&ask(&mut keeper, 2, 9, at(376))));
    assert!(!waits(&ask(&mut keeper, 2, 10, at(377))));
}

#[test]
fn the_next_in_line_waits_for_what_is_open_or_for_back() {
    let begin = |keeper: &mut Keeper<u32>| {
        let mut ask = |node, ask, now| keeper.want(node, want(ask), partition(5), Now::NEVER, now);
        assert!(!waits(&ask(1, 1, at(0))));
        let told = match ask(2, 1, at(57)) {
            Said::Wait(wait) => wait.wait_us,
            Said::Grant(grant) => panic!("{grant:?}"),
        };
        assert_eq!(told, 2 * S, "it may be given back early");
        assert!(waits(&ask(2, 2, at(62))), "a request may be open");
    };
    let mut keeper = Keeper::fresh(lending(1, S));
    begin(&mut keeper);
    assert!(waits(&keeper.want(2, want(3), partition(5), Now::NEVER, at(76))));
    assert!(!waits(&keeper.want(2, want(4), partition(5), Now::NEVER, at(77))), "nothing takes longer");
    let mut keeper = Keeper::fresh(lending(1, S));
    begin(&mut keeper);
    let back = Back { key: KEY, ask: 1, sent_ago_us: Some(5 * S), pause_us: S, line: Box::default() };
    keeper.back(1, back, at(64));
    assert_eq!(granted(keeper.want(2, want(3), partition(5), Now::NEVER, at(64))).due_in_us, 0);
}

#[test]
fn what_was_lent_and_given_back_is_known_to_the_next_process() {
    let mut keeper = Keeper::fresh(lending(1, S));
    assert!(!waits(&keeper.want(1, want(1), partition(5), Now::NEVER, at(10))));
    let changed = keeper.take_changed();
    assert_eq!((changed.len(), keeper.take_changed().len()), (1, 0));
    let mut next = Keeper::fresh(lending(1, S));
    next.take_up(changed);
    assert!(waits(&next.want(2, want(1), partition(5), Now::NEVER, at(20))), "it is lent");
    let back = Back { key: KEY, ask: 1, sent_ago_us: Some(0), pause_us: 9 * S, line: Box::new(*b"x") };
    next.back(1, back, at(21));
    let changed = next.take_changed();
    let mut third = Keeper::fresh(lending(1, S));
    third.take_up(changed);
    let grant = granted(third.want(2, want(2), partition(5), Now::NEVER, at(21)));
    assert_eq!((grant.due_in_us, &*grant.line), (owed_us(9 * S), &b"x"[..]), "and so is what is owed");
    assert_eq!(third.known(at(22)).len(), 1);
    assert!(third.known(at(200)).is_empty(), "what is over is not kept");
}

#[test]
fn what_is_to_go_to_another_keeper_is_lent_for_a_short_time() {
    let mut keeper = Keeper::fresh(lending(1, S));
    keeper.set_leaving([partition(5)].into());
    let ask = |keeper: &mut Keeper<u32>, number, now| {
        granted(keeper.want(1, want(number), partition(5), Now::NEVER, now)).for_us
    };
    assert_eq!(ask(&mut keeper, 1, at(0)), SLICE_US);
    assert_eq!(ask(&mut keeper, 2, at(9)), SLICE_US, "and again, while nobody else wants it");
    keeper.set_leaving(crate::base::SortedSet::new());
    assert_eq!(ask(&mut keeper, 3, at(10)), TICKET_US);
}

#[test]
fn a_ticket_counts_from_the_sending_and_one_that_is_not_wanted_goes_back() {
    let mut tickets: Tickets<u32> = Tickets::new(10);
    let first = tickets.want(&KEY, at(1)).unwrap();
    assert_eq!((first.ask, first.renews), (11, false));
    assert_eq!(tickets.want(&KEY, at(2)), None);
    let second = tickets.want(&KEY, at(3)).unwrap();
    let grant = |ask, due_in_us| Grant {
        key: KEY,
        ask,
        for_us: TICKET_US,
        due_in_us,
        slots: 1,
        pause_us: S,
        line: Box::default(),
    };
    assert_eq!(tickets.granted(&grant(first.ask, 0), at(4)), None);
    assert!(!tickets.may_send(&KEY, at(4)), "only the last ask counts");
    assert_eq!(tickets.granted(&grant(second.ask, 2 * S), at(5)), None);
    assert_eq!(tickets.window(&KEY, at(5)), Some((at(7), at(63))));
    assert!(!tickets.may_send(&KEY, at(6)) && tickets.may_send(&KEY, at(7)));
    assert!(tickets.may_send(&KEY, at(62)) && !tickets.may_send(&KEY, at(63)));
    tickets.sent(&KEY, at(20));
    assert_eq!(tickets.want(&KEY, at(32)), None);
    assert_eq!(tickets.ending(at(33)).count(), 1);
    let renewal = tickets.want(&KEY, at(33)).unwrap();
    assert!(renewal.renews);
    let back = tickets.back(&KEY, Some((S, Box::default())), at(34)).unwrap();
    assert_eq!((back.ask, back.sent_ago_us), (renewal.ask, Some(14 * S)));
    let late = tickets.granted(&grant(renewal.ask, 0), at(35)).unwrap();
    assert_eq!((late.ask, late.sent_ago_us), (renewal.ask, Some(0)), "the first BACK may be lost");
    assert!(!tickets.may_send(&KEY, at(35)));
    let unheard = tickets.want(&KEY, at(36)).unwrap();
    let back = tickets.back(&KEY, None, at(37)).unwrap();
    assert_eq!((back.ask, back.sent_ago_us), (unheard.ask, Some(0)), "it ends what was lent before, too");
}

#[test]
fn a_pause_without_end_is_none_that_is_over() {
    assert_eq!(owed_us(u64::MAX), u64::MAX);
    let mut keeper = Keeper::open(lending(1, S), Now::ZERO);
    let now = Now::ZERO.plus_us(CLOSED_US);
    let first = granted(keeper.want(1, want(1), partition(5), Now::NEVER, now));
    let back =
        Back { key: KEY, ask: first.ask, sent_ago_us: Some(0), pause_us: u64::MAX, line: Box::default() };
    keeper.back(1, back, now);
    assert!(granted(keeper.want(2, want(1), partition(5), Now::NEVER, now)).due_in_us > TICKET_US);
}
