use super::table_of;
use crate::peer::{Asking, Sponsor, TableChange};

fn asking(id: u64) -> Asking {
    Asking { id, address: format!("127.0.0.1:{id}"), weight: 1 }
}

#[test]
fn nodes_get_the_next_numbers_once_whoever_asks_for_them() {
    let table = table_of(2);
    let mut sponsors = [Sponsor::default(), Sponsor::default()];
    sponsors[0].asks(asking(50));
    sponsors[0].asks(asking(40));
    sponsors[1].asks(asking(60));
    sponsors[1].asks(asking(50));
    let mut now = table.clone();
    // Both want their changes of one table; those that meet another are wanted again of that.
    for _ in 0..4 {
        for sponsor in &mut sponsors {
            for change in sponsor.changes(&now.clone()) {
                now = change.apply(&now).unwrap_or(now);
            }
        }
    }
    let mut ids: Vec<u64> = now.nodes()[2..].iter().map(|node| node.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [40, 50, 60]);
    let numbers: Vec<u16> = now.nodes().iter().map(|node| node.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(sponsors.iter_mut().all(|sponsor| sponsor.changes(&now).is_empty()), "they are in it");
}

#[test]
fn who_is_gone_is_asked_for_no_more() {
    let mut sponsor = Sponsor::default();
    sponsor.asks(asking(50));
    assert!(matches!(&sponsor.changes(&table_of(1))[..], [TableChange::TakeIn(node)] if node.number == 2));
    sponsor.gone(50);
    assert_eq!(sponsor.changes(&table_of(1)), []);
}

/// A node that was held up may ask for a newcomer long after another one did.
#[test]
fn who_has_left_or_is_to_is_not_brought_back_by_a_word_of_before() {
    let mut sponsor = Sponsor::default();
    sponsor.asks(asking(50));
    let word = sponsor.changes(&table_of(1)).remove(0);
    let joined = word.apply(&table_of(1)).unwrap();
    let draining = TableChange::Drain(2).apply(&joined).unwrap();
    let left = TableChange::Leave(2).apply(&draining).unwrap();
    for table in [joined, draining, left] {
        assert_eq!(word.apply(&table), None, "{:?}", table.nodes());
    }
}
