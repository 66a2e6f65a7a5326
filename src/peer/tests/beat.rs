//! Beats by themselves: times that fit, bytes, and a holder that is told all kinds of things.

use super::{node, table_of};
use crate::base::{Now, Rng};
use crate::peer::beat::{Beat, Holder, Rights, Timing, TimingError};
use crate::peer::register::{Change, Outcome, Register};
use crate::peer::{TableChange, assign};
use std::sync::Arc;

const S: u64 = 1_000_000;

fn at(s: u64) -> Now {
    Now::from_us(s * S)
}

fn timing() -> Timing {
    Timing::for_takeover(300 * S, 60 * S).unwrap()
}

fn beat(generation: u32, n: u64) -> Beat {
    Beat { generation, n, sealed: false }
}

#[test]
fn times_that_leave_no_room_are_refused_with_the_least_that_would() {
    assert_eq!((timing().hold_us(), timing().wait_us()), (120 * S, 300 * S));
    assert!(!timing().new_keeper_waits());
    assert!(Timing::for_takeover(300 * S, 175 * S).is_ok());
    assert!(Timing::for_takeover(300 * S, 176 * S).is_err());
    let short = Timing::for_takeover(30 * S, 17 * S).unwrap();
    assert!(short.new_keeper_waits());
    let refused = Timing::for_takeover(30 * S, 20 * S).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "takeover of 30 s is too short: a right of 12 s and timeout_req of 20 s need 33 s at least"
    );
    let TimingError::Wait { least_us, .. } = refused else { panic!("{refused}") };
    let exact = Timing { wait_us: least_us, request_us: 20 * S, ..short };
    assert_eq!(exact.check(), Ok(()));
    assert!(Timing { wait_us: least_us - 1, ..exact }.check().is_err());
    let lazy = Timing { beat_us: 4 * S, ..short }.check().unwrap_err();
    assert_eq!(lazy.to_string(), "beats every 4 s do not renew a right of 12 s: four of them have to fit");
}

#[test]
fn beats_grow_and_are_read_as_they_were_written() {
    let first = Beat::of_next_generation(None);
    let order = [first, first.renewed(), first.renewed().sealed(), Beat::of_next_generation(Some(first))];
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
    for beat in order {
        assert_eq!(Beat::of(&beat.value()), Some(beat));
    }
    let bytes = first.value().unwrap();
    assert!((0..bytes.len()).all(|end| Beat::decode(&bytes[..end]).is_none()));
    let mut last = bytes.to_vec();
    last[2..6].fill(255);
    assert_eq!(Beat::decode(&last), None, "nothing comes after it");
}

/// A holder whose generation 3 is open since second 10.
fn open() -> Holder {
    let mut holder = Holder::new(timing());
    assert_eq!(holder.tick(at(1)), Some(Change::Read));
    assert_eq!(holder.tick(at(2)), None, "one question at a time");
    assert!(!holder.answered(&Outcome::Read(beat(2, 77).sealed().value()), at(10)));
    let swap = Change::Swap { expect: beat(2, 77).sealed().value(), new: beat(3, 0).value() };
    assert_eq!(holder.tick(at(10)), Some(swap));
    assert_eq!(holder.right_until(), Now::ZERO);
    assert!(!holder.answered(&Outcome::Swapped, at(40)));
    assert_eq!(holder.right_until(), at(130), "from the sending on, not from the answer");
    holder
}

#[test]
fn a_right_counts_from_the_sending_of_a_renewal_that_succeeded() {
    let mut holder = open();
    let swap = Change::Swap { expect: beat(3, 0).value(), new: beat(3, 1).value() };
    assert_eq!(holder.tick(at(50)), Some(swap.clone()));
    holder.answered(&Outcome::Unknown, at(60));
    assert_eq!(holder.right_until(), at(130));
    assert_eq!(holder.tick(at(61)), Some(Change::Read), "what is not known is read again");
    holder.answered(&Outcome::Read(beat(3, 0).value()), at(62));
    assert_eq!(holder.tick(at(62)), Some(swap));
    // The first of the two landed after the read.
    holder.answered(&Outcome::Differs(beat(3, 1).value()), at(63));
    assert_eq!(holder.right_until(), at(170));
    let next = Change::Swap { expect: beat(3, 1).value(), new: beat(3, 2).value() };
    assert_eq!(holder.tick(at(64)), Some(next));
    assert!(holder.answered(&Outcome::Differs(beat(3, 1).sealed().value()), at(65)));
    assert_eq!((holder.right_until(), holder.generation()), (Now::ZERO, None));
    let next = Change::Swap { expect: beat(3, 1).sealed().value(), new: beat(4, 0).value() };
    assert_eq!(holder.tick(at(65)), Some(next));
    // An opening that was not confirmed is not taken for one's own.
    holder.answered(&Outcome::Differs(beat(4, 0).value()), at(66));
    assert_eq!(holder.generation(), None);
    let next = Change::Swap { expect: beat(4, 0).value(), new: beat(5, 0).value() };
    assert_eq!(holder.tick(at(67)), Some(next));
}

#[test]
fn the_heir_seals_after_the_wait_and_others_later() {
    let table = Arc::new(assign(&table_of(5)).unwrap());
    let mut rng = Rng::new(1);
    let ring = crate::peer::ring(&table);
    let mut sealed_at = Vec::new();
    for steps in 1..=3 {
        let me = ring[steps];
        let mut rights = Rights::new(node(me), timing(), None);
        rights.told(table.clone());
        let open = rights.tick(at(0), 0);
        assert_eq!(open[0].register, Register::Beat(me));
        rights.answered(Register::Beat(me), &Outcome::Read(None), at(0), &mut rng);
        rights.tick(at(0), 0);
        rights.answered(Register::Beat(me), &Outcome::Swapped, at(0), &mut rng);
        let mut sealed = None;
        for second in 1..400 {
            rights.heard(ring[0], beat(1, if second < 9 { 6 } else { 7 }), at(second), &mut rng);
            for wish in rights.tick(at(second), 0) {
                let outcome = match (&wish.change, wish.register) {
                    (Change::Read, Register::Table) => {
                        let bytes = rights.table().unwrap().encode();
                        Outcome::Read(Some(Arc::from(bytes)))
                    }
                    (Change::Swap { .. }, Register::Beat(other)) if other == ring[0] => {
                        sealed = sealed.or(Some(second));
                        Outcome::Differs(beat(1, 8).value())
                    }
                    (Change::Swap { .. }, _) => Outcome::Swapped,
                    (Change::Read, _) => Outcome::NotDone,
                };
                rights.answered(wish.register, &outcome, at(second), &mut rng);
            }
        }
        sealed_at.push(sealed.unwrap());
    }
    assert_eq!(
        sealed_at[0], 310,
        "heard after the look at the clock in second 9, and before that in second 10"
    );
    assert!((340..=350).contains(&sealed_at[1]), "{sealed_at:?}");
    assert!((370..=380).contains(&sealed_at[2]), "{sealed_at:?}");
}

/// A process that stood still hears what was said meanwhile by a clock that it looked at before.
#[test]
fn who_stood_still_does_not_take_others_for_silent() {
    let table = Arc::new(assign(&table_of(5)).unwrap());
    let (mut rng, ring) = (Rng::new(1), crate::peer::ring(&table));
    let mut rights = Rights::new(node(ring[1]), timing(), None);
    rights.told(table.clone());
    rights.tick(at(0), 0);
    rights.answered(Register::Beat(ring[1]), &Outcome::Read(None), at(0), &mut rng);
    rights.tick(at(0), 0);
    rights.answered(Register::Beat(ring[1]), &Outcome::Swapped, at(0), &mut rng);
    rights.tick(at(1), 0);
    let seals = |rights: &mut Rights, second| {
        let wishes = rights.tick(at(second), 0);
        wishes.iter().any(|wish| {
            wish.register == Register::Beat(ring[0]) && matches!(wish.change, Change::Swap { .. })
        })
    };
    rights.heard(ring[0], beat(1, 7), at(9), &mut rng);
    assert!(!seals(&mut rights, 9), "it stands still in this turn, or in the one before");
    assert!(!seals(&mut rights, 400) && !seals(&mut rights, 699));
    assert!(seals(&mut rights, 700), "of a beat that was heard in second 400 at the latest");
}

#[test]
fn what_was_offered_is_asked_for_again_in_a_later_epoch_only() {
    let table = Arc::new(assign(&table_of(3)).unwrap());
    let mut rng = Rng::new(1);
    let mut rights = Rights::new(node(1), timing(), None);
    rights.told(table.clone());
    rights.tick(at(0), 0);
    rights.answered(Register::Beat(1), &Outcome::Read(None), at(0), &mut rng);
    rights.answered(Register::Table, &Outcome::Read(Some(Arc::from(table.encode()))), at(0), &mut rng);
    rights.tick(at(0), 0);
    rights.answered(Register::Beat(1), &Outcome::Swapped, at(0), &mut rng);
    let partition = table.owned_by(1).next().unwrap();
    assert!(rights.owns(partition) && rights.right_until() == at(120));
    assert!(rights.give(vec![partition], 2));
    assert!(!rights.owns(partition), "it stops before anything is sent");
    let given = rights.tick(at(1), 0).into_iter().find(|wish| wish.register == Register::Table).unwrap();
    let next = TableChange::Give { partitions: vec![partition], from: 1, to: 2 }.apply(&table).unwrap();
    let swap = |next: &crate::peer::Table| Change::Swap {
        expect: Some(Arc::from(table.encode())),
        new: Some(Arc::from(next.encode())),
    };
    assert_eq!(given.change, swap(&next));
    rights.keep(vec![partition]);
    rights.answered(Register::Table, &Outcome::Differs(Some(Arc::from(table.encode()))), at(2), &mut rng);
    assert!(!rights.owns(partition));
    let again = rights.tick(at(3), 0).into_iter().find(|wish| wish.register == Register::Table).unwrap();
    assert_eq!(again.change, swap(&next), "a gift that was sent is seen through");
    // Another node was faster, and the one that was to get it has gone.
    let gone = TableChange::TakeOver { node: 2, generation: 1, taker: 3, stamp_ms: 0 }.apply(&table).unwrap();
    rights.answered(Register::Table, &Outcome::Differs(Some(Arc::from(gone.encode()))), at(4), &mut rng);
    let kept = rights.tick(at(5), 0).into_iter().find(|wish| wish.register == Register::Table).unwrap();
    assert!(matches!(kept.change, Change::Swap { .. }));
    rights.answered(Register::Table, &Outcome::Swapped, at(6), &mut rng);
    assert!(rights.owns(partition));
    assert_eq!(rights.table().unwrap().epoch(), gone.epoch() + 1);
    // What was to be given together is kept together.
    let others: Vec<_> = table.owned_by(1).skip(1).take(2).collect();
    assert!(rights.give(others.clone(), 3) && rights.keep(vec![others[0]]));
    let kept = rights.tick(at(7), 0).into_iter().find(|wish| wish.register == Register::Table).unwrap();
    assert!(matches!(kept.change, Change::Swap { .. }));
    assert!(others.iter().all(|&partition| !rights.owns(partition)));
    rights.answered(Register::Table, &Outcome::Swapped, at(8), &mut rng);
    assert!(others.iter().all(|&partition| rights.owns(partition)));
    // What is wanted back is not given by a word that came after that.
    let of_table = |wishes: Vec<crate::peer::beat::Wish>| {
        wishes.into_iter().find(|wish| wish.register == Register::Table)
    };
    assert!(rights.give(others.clone(), 3) && rights.keep(others.clone()));
    assert!(of_table(rights.tick(at(9), 0)).is_some());
    assert!(rights.give(others.clone(), 3), "they are stopped still");
    rights.answered(Register::Table, &Outcome::Swapped, at(10), &mut rng);
    assert!(others.iter().all(|&partition| rights.owns(partition)));
    assert!(of_table(rights.tick(at(11), 0)).is_none());
}
