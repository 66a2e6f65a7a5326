//! A table is read as it was written or refused, and changes keep it one.

use super::{node, partition, table_of};
use crate::limits::{PARTITIONS, PEER_NODES_MAX, REGISTER_BYTES_MAX, TAKINGS_MAX};
use crate::peer::{NOBODY, NodeState, PartitionRange, Table, TableChange, TableError, Taken, Taking, assign};
use crate::proto::partition::Spread;
use proptest::prelude::*;

fn rich() -> Table {
    let mut table = assign(&table_of(5)).unwrap();
    table.moves(partition(7), 3);
    table.frozen = true;
    table.spread = Spread::Url;
    let ranges = vec![PartitionRange { first: 1, last: 9 }, PartitionRange { first: 4_000, last: 4_095 }];
    table.takings.push(Taking { taken: Taken::Ranges(ranges), taker: 2, stamp_ms: 17, epoch: 4 });
    table.takings.push(Taking { taken: Taken::Node(9), taker: 1, stamp_ms: 18, epoch: 5 });
    table.nodes[4].state = NodeState::Draining;
    table
}

#[test]
fn a_table_is_read_as_it_was_written_and_cut_anywhere_it_is_refused() {
    for table in [table_of(1), table_of(3), rich()] {
        let bytes = table.encode();
        assert_eq!(Table::decode(&bytes).unwrap(), table);
        for end in (0..bytes.len()).step_by(13).chain([bytes.len() - 1]) {
            assert_eq!(Table::decode(&bytes[..end]), Err(TableError::Short), "cut at {end}");
        }
        assert_eq!(Table::decode(&[bytes.as_slice(), &[0]].concat()), Err(TableError::Long(1)));
    }
    let mut other = rich().encode();
    other[0] = 2;
    assert_eq!(Table::decode(&other), Err(TableError::Version(2)));
}

#[test]
fn what_is_no_table_is_refused() {
    let check = |change: fn(&mut Table)| {
        let mut table = rich();
        change(&mut table);
        (Table::decode(&table.encode()).unwrap_err(), table.check().unwrap_err())
    };
    let same = |(read, checked): (TableError, TableError)| {
        assert_eq!(read, checked);
        read
    };
    assert_eq!(
        same(check(|table| table.owners[5] = 77)),
        TableError::Owner { partition: partition(5), node: 77 }
    );
    assert_eq!(
        same(check(|table| table.moves(partition(6), 77))),
        TableError::Next { partition: partition(6), node: 77 }
    );
    let left = same(check(|table| table.nodes[0].state = NodeState::Left));
    assert!(matches!(left, TableError::Owner { node: 1, .. }));
    assert_eq!(same(check(|table| table.voters = vec![1, 2])), TableError::Voters(2));
    let mut outside = rich();
    outside.voters.clear();
    assert_eq!(Table::decode(&outside.encode()), Ok(outside), "nobody votes: the council is outside");
    assert_eq!(same(check(|table| table.voters = vec![1, 2, 2])), TableError::Voter(2));
    assert_eq!(same(check(|table| table.voters = vec![1, 2, 8])), TableError::Voter(8));
    assert_eq!(same(check(|table| table.nodes[1].number = 1)), TableError::Order(1));
    assert_eq!(same(check(|table| table.nodes[1].id = table.nodes[0].id)), TableError::SameId(1, 2));
    assert_eq!(same(check(|table| table.nodes[1].address.clear())), TableError::Address(2));
    let many = Taking { taken: Taken::Node(1), taker: 2, stamp_ms: 0, epoch: 0 };
    let mut table = rich();
    table.takings = vec![many; TAKINGS_MAX + 1];
    assert_eq!(Table::decode(&table.encode()), Err(TableError::Takings(TAKINGS_MAX + 1)));
}

#[test]
fn the_largest_table_is_a_value_of_a_register() {
    let nodes = (1..=PEER_NODES_MAX as u16).map(|number| {
        let mut node = node(number);
        node.address = "a".repeat(255);
        node
    });
    let mut table = Table::first(nodes.collect(), vec![1, 2, 3, 4, 5], Spread::Host, 0).unwrap();
    table = assign(&table).unwrap();
    table.moves(partition(0), 1);
    assert!(table.encode().len() <= REGISTER_BYTES_MAX);
    assert_eq!(Table::decode(&table.encode()).unwrap(), table);
    table.nodes.push(node(2_000));
    assert_eq!(table.check(), Err(TableError::Nodes(PEER_NODES_MAX + 1)));
}

#[test]
fn a_takeover_takes_everything_of_a_sealed_generation_and_of_no_later_one() {
    let table = assign(&table_of(4)).unwrap();
    let take =
        |generation| TableChange::TakeOver { node: 2, generation, taker: 3, stamp_ms: 5 }.apply(&table);
    assert_eq!(take(0), None, "the table gives to generation 1, which nobody sealed");
    let taken = take(1).unwrap();
    assert_eq!(taken.epoch(), table.epoch() + 1);
    assert_eq!(taken.owned_by(2).count(), 0);
    assert_eq!(taken.owned_by(3).count(), PARTITIONS / 2);
    assert_eq!(taken.node(2).unwrap().state, NodeState::Left);
    assert_eq!(taken.takings().last().unwrap().taken, Taken::Node(2));
    let again = TableChange::TakeOver { node: 2, generation: 1, taker: 4, stamp_ms: 6 };
    assert_eq!(again.apply(&taken), None, "of two takers the first stands");
    let frozen = TableChange::Freeze(true).apply(&table).unwrap();
    assert_eq!(TableChange::TakeOver { node: 2, generation: 1, taker: 3, stamp_ms: 5 }.apply(&frozen), None);
}

#[test]
fn who_comes_again_keeps_what_nobody_took_and_another_disk_is_another_node() {
    let table = assign(&table_of(3)).unwrap();
    let mut back = node(2);
    back.generation = 2;
    let joined = TableChange::Join(back.clone()).apply(&table).unwrap();
    assert_eq!(joined.owned_by(2).count(), table.owned_by(2).count());
    let late = TableChange::TakeOver { node: 2, generation: 1, taker: 3, stamp_ms: 5 };
    assert_eq!(late.apply(&joined), None);
    assert_eq!(TableChange::Join(node(2)).apply(&joined), None, "an earlier generation does not come back");
    back.id += 1;
    assert_eq!(TableChange::Join(back).apply(&joined), None);
}

#[test]
fn gifts_come_from_owners_only_and_leave_nothing_moving() {
    let mut table = assign(&table_of(3)).unwrap();
    let of_one: Vec<_> = table.owned_by(1).take(3).collect();
    let of_two = table.owned_by(2).next().unwrap();
    table.moves(of_one[0], 3);
    let partitions = [of_one.clone(), vec![of_two]].concat();
    let given = TableChange::Give { partitions: partitions.clone(), from: 1, to: 3 }.apply(&table).unwrap();
    assert!(of_one.iter().all(|&partition| given.owner(partition) == 3));
    assert_eq!(given.owner(of_two), 2);
    assert_eq!(given.next_owner(of_one[0]), None);
    assert_eq!(TableChange::Give { partitions: partitions.clone(), from: 1, to: 3 }.apply(&given), None);
    let kept = TableChange::Keep { partitions, owner: 1 }.apply(&table).unwrap();
    assert_eq!((kept.epoch(), kept.next_owner(of_one[0])), (table.epoch() + 1, None));
    assert_eq!(TableChange::Leave(1).apply(&table), None, "who owns something does not leave");
    assert_eq!(TableChange::Forget(1).apply(&table), None, "where three vote, who ever beat is taken over");
    table.voters = vec![2];
    let forgotten = TableChange::Forget(1).apply(&table).unwrap();
    assert_eq!(forgotten.owned_by(NOBODY).count(), table.owned_by(1).count());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Bytes that were changed are another table or none, and a table has one form only.
    #[test]
    fn changed_bytes_never_panic(at in 0usize..9_000, to: u8, more in 0usize..60) {
        let mut bytes = rich().encode();
        let at = if more < 40 { bytes.len() - 1 - at % 200 } else { at % bytes.len() };
        bytes[at] = to;
        if let Ok(table) = Table::decode(&bytes) {
            prop_assert_eq!(table.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), full: bool) {
        let mut bytes = bytes;
        if full {
            bytes.resize(8_300, 1);
        }
        if !bytes.is_empty() {
            bytes[0] = 1;
        }
        let _ = Table::decode(&bytes);
    }
}
