//! A node that is in the table of a council and never beat: it is no owner for ever, and no right of it is overlooked.

use super::{node, table_of};
use crate::base::{Now, Rng};
use crate::peer::beat::{Beat, Rights, Timing};
use crate::peer::register::{Change, Outcome, Register, Value};
use crate::peer::{NodeState, Table, TableChange, TableNode, assign};
use crate::proto::partition::Partition;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const S: u64 = 1_000_000;
/// In seconds.
const TAKEOVER: u64 = 30;

fn at(second: u64) -> Now {
    Now::from_us(1_000_000 + second * S)
}

/// Nodes over registers that answer at once.
struct World {
    registers: BTreeMap<Register, Value>,
    nodes: BTreeMap<u16, Rights>,
    rng: Rng,
}

impl World {
    /// Three that vote and are there; more of the table are not.
    fn new(table: &Table) -> World {
        let registers = BTreeMap::from([(Register::Table, Some(Arc::from(table.encode())))]);
        let mut world = World { registers, nodes: BTreeMap::new(), rng: Rng::new(1) };
        (1..=3).for_each(|number| world.start(number, table));
        world
    }

    fn start(&mut self, number: u16, table: &Table) {
        let timing = Timing::for_takeover(TAKEOVER * S, 5 * S).unwrap();
        let mut rights = Rights::new(TableNode { generation: 0, ..node(number) }, timing, None);
        rights.told(Arc::new(table.clone()));
        self.nodes.insert(number, rights);
    }

    fn table(&self) -> Table {
        Table::decode(self.registers[&Register::Table].as_deref().unwrap()).unwrap()
    }

    fn apply(&mut self, register: Register, change: &Change) -> Outcome {
        let held = self.registers.entry(register).or_default();
        match change {
            Change::Read => Outcome::Read(held.clone()),
            Change::Swap { expect, .. } if held != expect => Outcome::Differs(held.clone()),
            Change::Swap { new, .. } => {
                held.clone_from(new);
                Outcome::Swapped
            }
        }
    }

    /// Every node once a second, and what it says is heard by all.
    fn run(&mut self, seconds: Range<u64>) {
        for second in seconds {
            let now = at(second);
            for number in self.nodes.keys().copied().collect::<Vec<_>>() {
                for _ in 0..8 {
                    let wishes = self.nodes.get_mut(&number).unwrap().tick(now, 0);
                    for wish in wishes {
                        let outcome = self.apply(wish.register, &wish.change);
                        let rights = self.nodes.get_mut(&number).unwrap();
                        rights.answered(wish.register, &outcome, now, &mut self.rng);
                    }
                }
            }
            let table = Arc::new(self.table());
            let beats: Vec<(u16, Beat)> =
                self.nodes.iter().filter_map(|(number, rights)| Some((*number, rights.beat()?))).collect();
            for rights in self.nodes.values_mut() {
                rights.told(table.clone());
                beats.iter().for_each(|(number, beat)| rights.heard(*number, *beat, now, &mut self.rng));
            }
        }
    }
}

/// Of four nodes; the fourth was never heard of.
fn unborn(table: Table) -> Table {
    let join = |number| TableChange::Join(TableNode { generation: 0, ..node(number) });
    join(4).apply(&table).unwrap()
}

#[test]
fn one_that_has_nothing_is_taken_over() {
    let table = unborn(assign(&table_of(3)).unwrap());
    let mut world = World::new(&table);
    world.nodes.get_mut(&1).unwrap().want(TableChange::Assign);
    world.run(0..TAKEOVER - 1);
    let before = world.table();
    assert!(before.is_member(4) && before.owners().iter().all(|owner| *owner != 4));
    world.run(TAKEOVER - 1..4 * TAKEOVER);
    let after = world.table();
    assert!(!after.is_member(4) && after.takings().len() == 1, "{:?}", after.nodes());
    // It was slow, and comes after all; by the table that it knew it has nothing.
    world.start(4, &table);
    world.run(4 * TAKEOVER..5 * TAKEOVER);
    assert!(world.nodes[&4].generation() == Some(2) && world.table().is_member(4));
}

#[test]
fn one_that_owns_something_waits_for_an_operator() {
    // It got its share while one node kept the table, and may be somewhere with a right that does not end.
    let table = assign(&unborn(table_of(3))).unwrap();
    assert!(table.owned_by(4).next().is_some());
    let mut world = World::new(&table);
    world.run(0..10 * TAKEOVER);
    assert!(world.table().is_member(4) && world.table().owned_by(4).next().is_some());
    let forget = |world: &mut World, number| {
        world.nodes.get_mut(&1).unwrap().want(TableChange::Forget(number));
        world.run(10 * TAKEOVER..11 * TAKEOVER);
    };
    forget(&mut world, 2);
    assert!(world.table().is_member(2), "rights of who beats end by themselves");
    forget(&mut world, 4);
    let after = world.table();
    assert_eq!(after.node(4).unwrap().state, NodeState::Left);
    assert!(after.owned_by(4).next().is_none());
    // It comes again all the same, and knows that there are beats.
    world.start(4, &after);
    world.run(11 * TAKEOVER..12 * TAKEOVER);
    let back = &world.nodes[&4];
    assert!(back.generation() == Some(1) && world.table().is_member(4));
    assert!(Partition::all().all(|partition| !back.owns(partition)), "what it had is others' to get");
}

#[test]
fn one_that_begins_while_it_is_forgotten_keeps_what_it_has_or_has_no_right() {
    let table = assign(&unborn(table_of(3))).unwrap();
    for at_s in 0..6 {
        let mut world = World::new(&table);
        world.run(0..3);
        world.start(4, &table);
        world.run(3..3 + at_s);
        world.nodes.get_mut(&1).unwrap().want(TableChange::Forget(4));
        for second in 3 + at_s..3 * TAKEOVER {
            world.run(second..second + 1);
            let table = world.table();
            let rights = &world.nodes[&4];
            let asks = |partition| rights.owns(partition) && rights.right_until() > at(second);
            for partition in Partition::all().filter(|&partition| asks(partition)) {
                assert_eq!(table.owner(partition), 4, "{at_s} {second}");
            }
        }
        assert!(world.table().is_member(4));
    }
}
