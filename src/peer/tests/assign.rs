//! Fewest moves, within one of everybody's share, the same at every node.

use super::{node, table_of};
use crate::limits::PARTITIONS;
use crate::peer::{
    NOBODY, NodeState, Table, TableChange, assign, next_on_ring, planned_owners, ring, steps_on_ring,
};
use crate::proto::partition::{Partition, Spread};
use proptest::prelude::*;

/// Between ⌊P·weight/Σ⌋ and ⌈P·weight/Σ⌉ for every member, all partitions dealt.
fn balanced(table: &Table, owners: &[u16]) {
    let weight = |node: &crate::peer::TableNode| match node.state {
        NodeState::Member => usize::from(node.weight),
        _ => 0,
    };
    let sum: usize = table.nodes().iter().map(weight).sum();
    for node in table.nodes() {
        let has = owners.iter().filter(|&&owner| owner == node.number).count();
        let share = PARTITIONS * weight(node);
        assert!(
            (share / sum..=share.div_ceil(sum)).contains(&has),
            "node {} of weight {} has {has} of {share}/{sum}",
            node.number,
            weight(node)
        );
    }
    assert!(!owners.contains(&NOBODY));
}

/// The fewest moves there are: over all ways to give the leftover partitions, what is above a share moves; counted by a
/// search of its own that gives each of them to who has most to gain from it.
fn fewest(table: &Table) -> usize {
    let members: Vec<_> =
        table.nodes().iter().filter(|node| node.state == NodeState::Member && node.weight > 0).collect();
    let sum: usize = members.iter().map(|node| usize::from(node.weight)).sum();
    let has = |number| table.owners().iter().filter(|&&owner| owner == number).count();
    let floors: Vec<usize> = members.iter().map(|node| PARTITIONS * usize::from(node.weight) / sum).collect();
    let gains = members
        .iter()
        .zip(&floors)
        .filter(|(node, _)| !(PARTITIONS * usize::from(node.weight)).is_multiple_of(sum))
        .filter(|(node, floor)| has(node.number) > **floor)
        .count();
    let above: usize =
        members.iter().zip(&floors).map(|(node, floor)| has(node.number).saturating_sub(*floor)).sum();
    let homeless = PARTITIONS - members.iter().map(|node| has(node.number)).sum::<usize>();
    above - gains.min(PARTITIONS - floors.iter().sum::<usize>()) + homeless
}

fn moved(table: &Table, owners: &[u16]) -> usize {
    table.owners().iter().zip(owners).filter(|(before, after)| before != after).count()
}

/// Everything that moves has moved.
fn settled(table: &Table) -> Table {
    let mut table = table.clone();
    let owners = planned_owners(&table);
    table.owners = owners.into_boxed_slice();
    table.next = None;
    table
}

#[test]
fn the_first_node_gets_all_and_others_their_share() {
    let one = assign(&table_of(1)).unwrap();
    assert_eq!(one.owned_by(1).count(), PARTITIONS);
    assert_eq!(assign(&one), None, "nothing is left to do");
    let three = assign(&table_of(3)).unwrap();
    balanced(&three, three.owners());
    assert_eq!(three.next, None, "what was nobody's moves at once");
}

#[test]
fn who_joins_gets_its_share_by_moves_that_owners_make() {
    let table = settled(&table_of(3));
    let joined = TableChange::Join(node(4)).apply(&table).unwrap();
    let planned = assign(&joined).unwrap();
    assert_eq!(planned.owners(), joined.owners(), "owners give, nobody takes");
    let moving: Vec<u16> = Partition::all().filter_map(|partition| planned.next_owner(partition)).collect();
    assert_eq!(moving, vec![4; PARTITIONS / 4]);
    assert_eq!(assign(&planned), None, "what is on its way is not planned again");
    // One who went away while things moved to it gets nothing more.
    let gone =
        TableChange::TakeOver { node: 4, generation: 1, taker: 1, stamp_ms: 0 }.apply(&planned).unwrap();
    assert_eq!(gone.next, None);
}

#[test]
fn many_nodes_are_within_one_and_a_frozen_table_stays() {
    let nodes = (1..=1_000).map(node).collect();
    let table = settled(&Table::first(nodes, vec![1], Spread::Domain, 0).unwrap());
    balanced(&table, table.owners());
    let frozen = TableChange::Freeze(true).apply(&table_of(2)).unwrap();
    assert_eq!(assign(&frozen), None);
}

#[test]
fn the_ring_is_one_circle() {
    let table = table_of(7);
    let ring = ring(&table);
    assert_eq!(ring.len(), 7);
    for (at, &number) in ring.iter().enumerate() {
        assert_eq!(next_on_ring(&table, number), Some(ring[(at + 1) % 7]));
        assert_eq!(steps_on_ring(&table, number, ring[(at + 3) % 7]), Some(3));
        assert_eq!(steps_on_ring(&table, number, number), None);
    }
    let drained = TableChange::Drain(ring[1]).apply(&table).unwrap();
    assert_eq!(next_on_ring(&drained, ring[0]), Some(ring[2]), "who hands over is nobody's heir");
    assert_eq!(next_on_ring(&drained, ring[1]), Some(ring[2]), "and has one itself");
    assert_eq!(next_on_ring(&table_of(1), 1), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// Joins, drains, returns and weights, one after the other.
    #[test]
    fn moves_are_fewest_and_shares_kept(
        steps in proptest::collection::vec((1u16..=12, 0u16..=6, 0u8..4), 1..10),
        half: bool,
    ) {
        let mut table = settled(&table_of(3));
        for (number, weight, what) in steps {
            let mut changed = node(number);
            changed.weight = weight;
            if what == 0 {
                changed.state = NodeState::Draining;
            }
            let Some(next) = TableChange::Join(changed).apply(&table) else { continue };
            let any = |node: &crate::peer::TableNode| node.state == NodeState::Member && node.weight > 0;
            if !next.nodes().iter().any(any) {
                prop_assert_eq!(planned_owners(&next), next.owners());
                continue;
            }
            let owners = planned_owners(&next);
            balanced(&next, &owners);
            prop_assert_eq!(moved(&next, &owners), fewest(&next));
            prop_assert_eq!(&owners, &planned_owners(&next), "the same at every node");
            table = settled(&next);
            prop_assert_eq!(planned_owners(&table), table.owners().to_vec());
            prop_assert_eq!(table.check(), Ok(()));
            if half {
                // Half of the moves are made, then comes the next change.
                table = next;
                for (at, owner) in owners.iter().enumerate().step_by(2) {
                    table.owners[at] = *owner;
                }
                table.check().unwrap();
            }
        }
    }
}
