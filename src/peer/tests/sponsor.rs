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
    assert!(matches!(&sponsor.changes(&table_of(1))[..], [TableChange::Join(node)] if node.number == 2));
    sponsor.gone(50);
    assert_eq!(sponsor.changes(&table_of(1)), []);
}
