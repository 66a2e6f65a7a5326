//! A council outside of the nodes: rights end from the first node on, one of two is taken over, and a register that is not the
//! cluster's gives nobody a right.

use super::{SeedNote, node, seeds};
use crate::base::{Now, Rng};
use crate::peer::beat::{Beat, Doubt, Rights, Timing, Wish};
use crate::peer::council::{Action, Council, Seat};
use crate::peer::register::{Acceptor, Change, Outcome, Pace, Register, Value};
use crate::peer::{Table, TableChange, TableNode, assign};
use crate::proto::partition::Spread;
use std::collections::BTreeMap;
use std::sync::Arc;

const S: u64 = 1_000_000;

fn at(second: u64) -> Now {
    Now::from_us(1_000_000 + second * S)
}

fn timing() -> Timing {
    Timing::for_takeover(30 * S, 5 * S).unwrap()
}

fn me(number: u16) -> TableNode {
    TableNode { generation: 0, ..node(number) }
}

fn first_table() -> Table {
    Table::first(vec![me(1)], Vec::new(), Spread::Host, 0).unwrap()
}

/// A store with a compare-and-swap.
#[derive(Default)]
struct Store(BTreeMap<Register, Value>);

impl Store {
    fn apply(&mut self, wish: &Wish) -> Outcome {
        let held = self.0.entry(wish.register).or_default();
        match &wish.change {
            Change::Read => Outcome::Read(held.clone()),
            Change::Swap { expect, .. } if held != expect => Outcome::Differs(held.clone()),
            Change::Swap { new, .. } => {
                held.clone_from(new);
                Outcome::Swapped
            }
        }
    }

    fn table(&self) -> Option<Table> {
        self.0.get(&Register::Table)?.as_deref().map(|bytes| Table::decode(bytes).unwrap())
    }
}

fn council(number: u16, founding: Option<Table>) -> Council {
    Council::new(
        seat_of(number),
        Rights::new(me(number), timing(), founding),
        None,
        Rng::new(u64::from(number)),
    )
}

/// Turns a node once a second for so long, over a store that answers.
fn turn(council: &mut Council, store: &mut Store, seconds: std::ops::Range<u64>) {
    for second in seconds {
        for _ in 0..8 {
            let mut actions = Vec::new();
            council.tick(at(second), 0, &mut actions);
            for action in actions {
                let Action::Change(wish) = action else { panic!("{action:?}") };
                let outcome = store.apply(&wish);
                council.decided(wish.register, &outcome, at(second));
            }
        }
    }
}

#[test]
fn a_node_alone_has_a_right_that_ends() {
    let (mut store, mut one) = (Store::default(), council(1, Some(first_table())));
    turn(&mut one, &mut store, 0..2);
    assert!(one.is_outside() && !one.has_vote());
    let table = store.table().unwrap();
    assert!(table.is_outside() && table.node(1).unwrap().generation == 1, "{:?}", table.nodes());
    assert!(one.rights().right_until() > at(2) && one.rights().right_until() <= at(2 + 12));
    // Nobody else answers in place of the store.
    let until = one.rights().right_until();
    let mut actions = Vec::new();
    (2..60).for_each(|second| one.tick(at(second), 0, &mut actions));
    assert_eq!(one.rights().right_until(), until, "an answer that does not come renews nothing");
}

#[test]
fn one_of_two_is_taken_over_by_the_other() {
    let mut store = Store::default();
    let (mut one, mut two) = (council(1, Some(first_table())), council(2, None));
    turn(&mut one, &mut store, 0..2);
    one.rights_mut().want(TableChange::Join(me(2)));
    one.rights_mut().want(TableChange::Assign);
    turn(&mut one, &mut store, 2..4);
    two.told(Arc::new(store.table().unwrap()), at(4));
    for second in 4..10 {
        turn(&mut one, &mut store, second..second + 1);
        turn(&mut two, &mut store, second..second + 1);
    }
    assert!(two.rights().right_until() > at(9));
    let given = |one: &mut Council, store: &mut Store| {
        let table = store.table().unwrap();
        let moves = table.owned_by(1).filter(|&partition| table.next_owner(partition) == Some(2)).collect();
        one.rights_mut().give(moves, 2);
        turn(one, store, 10..11);
    };
    given(&mut one, &mut store);
    assert_eq!(store.table().unwrap().owned_by(2).count(), 2_048);
    // What it told last is heard, and nothing after that.
    one.heard(2, two.rights().beat().unwrap(), at(10));
    turn(&mut one, &mut store, 11..35);
    assert!(store.table().unwrap().is_member(2), "not before it was silent for 30 s");
    turn(&mut one, &mut store, 35..60);
    let table = store.table().unwrap();
    assert!(!table.is_member(2) && table.owned_by(1).count() == 4_096, "{:?}", table.takings());
    assert!(Beat::of(&store.0[&Register::Beat(2)]).unwrap().sealed);
    // It comes back to that.
    turn(&mut two, &mut store, 60..64);
    assert!(two.rights().generation() == Some(2) && store.table().unwrap().is_member(2));
}

/// A node that was taken in and never beat is no owner for ever.
#[test]
fn one_that_never_beat_is_taken_over_as_well() {
    let (mut store, mut one) = (Store::default(), council(1, Some(first_table())));
    turn(&mut one, &mut store, 0..2);
    one.rights_mut().want(TableChange::Join(me(2)));
    turn(&mut one, &mut store, 2..4);
    let told = Arc::new(store.table().unwrap());
    turn(&mut one, &mut store, 4..30);
    assert!(store.table().unwrap().is_member(2));
    turn(&mut one, &mut store, 30..60);
    assert!(!store.table().unwrap().is_member(2));
    // It was slow, and comes after all.
    let mut two = council(2, None);
    two.told(told, at(60));
    turn(&mut two, &mut store, 60..64);
    assert!(two.rights().generation() == Some(2) && store.table().unwrap().is_member(2));
}

#[test]
fn who_founds_and_meets_a_table_asks_for_nothing() {
    let (mut store, mut one) = (Store::default(), council(1, Some(first_table())));
    turn(&mut one, &mut store, 0..2);
    let held = store.0.clone();
    // The same key, another disk.
    let stranger = TableNode { id: 77, ..me(1) };
    let table = Table::first(vec![stranger.clone()], Vec::new(), Spread::Host, 0).unwrap();
    let mut other = Council::new(
        Seat { id: 77, ..seat_of(1) },
        Rights::new(stranger, timing(), Some(table)),
        None,
        Rng::new(7),
    );
    turn(&mut other, &mut store, 3..60);
    assert!(other.rights().is_anothers() && !one.rights().is_anothers());
    assert_eq!((other.rights().right_until(), &store.0), (Now::ZERO, &held), "nothing was touched");
}

fn seat_of(number: u16) -> Seat {
    let pace = Pace { resend_us: S, backoff_us: S };
    Seat { node: number, id: node(number).id, start: 1, voters: Vec::new(), pace, patience_us: 4 * S }
}

/// However often a node begins over another store, whose beats count from one, it has no right by it.
#[test]
fn a_store_that_does_not_have_the_table_gives_no_right() {
    let (mut store, mut one) = (Store::default(), council(1, Some(first_table())));
    turn(&mut one, &mut store, 0..2);
    for _ in 0..4 {
        let mut again = council(1, None);
        again.told(Arc::new(store.table().unwrap()), at(2));
        turn(&mut again, &mut store, 2..4);
    }
    let table = Arc::new(assign(&store.table().unwrap()).unwrap_or_else(|| store.table().unwrap()));
    let generation = table.node(1).unwrap().generation;
    let mut elsewhere = Store::default();
    for start in 1..=generation + 2 {
        let mut strayed = council(1, None);
        strayed.told(table.clone(), at(0));
        turn(&mut strayed, &mut elsewhere, 0..20);
        assert_eq!(strayed.rights().right_until(), Now::ZERO, "start {start}");
        assert_eq!(strayed.rights().doubt(), Some(Doubt::Empty));
    }
    // A backup of before is none either.
    let mut earlier = Store::default();
    let bytes: Arc<[u8]> = Arc::from(first_table().encode());
    earlier.0.insert(Register::Table, Some(bytes));
    let mut strayed = council(1, None);
    strayed.told(table.clone(), at(0));
    turn(&mut strayed, &mut earlier, 0..20);
    assert_eq!((strayed.rights().right_until(), strayed.rights().doubt()), (Now::ZERO, Some(Doubt::Earlier)));
    earlier.0.insert(Register::Table, Some(Arc::from(&b"something else"[..])));
    let mut strayed = council(1, Some(first_table()));
    turn(&mut strayed, &mut earlier, 0..20);
    assert_eq!(strayed.rights().doubt(), Some(Doubt::Unreadable));
    // Nor is a table of nodes that vote.
    let voted = Table::first(vec![me(1)], vec![1], Spread::Host, 0).unwrap();
    earlier.0.insert(Register::Table, Some(Arc::from(voted.encode())));
    let mut strayed = council(1, Some(first_table()));
    turn(&mut strayed, &mut earlier, 0..20);
    assert_eq!(
        (strayed.rights().right_until(), strayed.rights().doubt()),
        (Now::ZERO, Some(Doubt::Unreadable))
    );
}

/// A node that votes takes no table without voters, and one whose council is outside none with them.
#[test]
fn tables_of_the_other_kind_are_not_taken() {
    let mut outside = council(1, None);
    let voted = Table::first(vec![me(1)], vec![1], Spread::Host, 0).unwrap();
    outside.told(Arc::new(voted.clone()), at(0));
    assert!(outside.rights().table().is_none());
    let seat = Seat { voters: crate::peer::voters_of(&voted), ..seat_of(1) };
    let acceptor = Acceptor::open(seat.voters[0].disk, []);
    let rights = Rights::new(me(1), timing(), None);
    let mut voting = Council::new(seat, rights, Some(acceptor), Rng::new(1));
    voting.told(Arc::new(first_table()), at(0));
    assert!(voting.rights().table().is_none() && !voting.is_outside());
}

/// Answers are lost, late or never come: whatever the register says in the end, a node that believes in a beat or a table is right.
#[test]
fn lost_answers_are_read_again() {
    for seed in seeds(20) {
        let _note = SeedNote(seed);
        let (mut store, mut rng) = (Store::default(), Rng::new(seed));
        let mut one = council(1, Some(first_table()));
        let mut landing: Vec<(u64, Wish)> = Vec::new();
        for second in 0..400 {
            let (due, later) = landing.drain(..).partition::<Vec<_>, _>(|(at, _)| *at <= second);
            landing = later;
            due.iter().for_each(|(_, wish)| drop(store.apply(wish)));
            let mut actions = Vec::new();
            one.tick(at(second), 0, &mut actions);
            let is_calm = second > 300;
            for action in actions {
                let Action::Change(wish) = action else { panic!("{action:?}") };
                let outcome = match rng.below(6) {
                    0 if !is_calm => Outcome::NotDone,
                    1 if !is_calm => {
                        landing.push((second + rng.below(30), wish.clone()));
                        Outcome::Unknown
                    }
                    2 if !is_calm => {
                        store.apply(&wish);
                        Outcome::Unknown
                    }
                    _ => store.apply(&wish),
                };
                one.decided(wish.register, &outcome, at(second));
            }
            let held = store.0.get(&Register::Beat(1)).and_then(Beat::of);
            assert!(one.rights().beat() <= held, "{:?} and {held:?}", one.rights().beat());
            let known = one.rights().table().map_or(0, |table| table.epoch());
            assert!(known <= store.table().map_or(0, |table| table.epoch()));
            assert_eq!(one.rights().doubt(), None, "second {second}");
        }
        assert!(one.rights().right_until() > at(399), "it has its right in the end");
    }
}
