//! What the role says and what travels are one: every value comes back from its word as it went.

use super::partition;
use crate::base::Now;
use crate::peer::beat::Beat;
use crate::peer::register::{Answer, Ask, Ballot, Register, Reply, Request, Value};
use crate::peer::ticket::{Keeper, Lending, Said, TICKET_US, TicketKey, Tickets, kept_us, owed_us};
use crate::proto::peer_wire::{FrameBuffer, PeerWord};
use proptest::prelude::*;
use std::sync::Arc;

/// Sends a word, and hands over what is read at the other end.
fn travels<T>(word: &PeerWord<'_>, read: impl FnOnce(&PeerWord<'_>) -> T) -> T {
    let mut bytes = Vec::new();
    word.write(&mut bytes);
    let mut buffer = FrameBuffer::default();
    buffer.push(&bytes);
    read(&buffer.next_frame().unwrap().unwrap().word().unwrap())
}

fn any_ballot() -> impl Strategy<Value = Ballot> {
    any::<(u64, u16)>().prop_map(|(round, node)| Ballot { round, node })
}

fn any_register() -> impl Strategy<Value = Register> {
    any::<u16>().prop_map(Register::from_number)
}

fn any_value() -> impl Strategy<Value = Value> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..50).prop_map(Arc::from))
}

fn any_request() -> impl Strategy<Value = Request> {
    let accept = (any_ballot(), any_value(), any_ballot());
    let ask = prop_oneof![
        any_ballot().prop_map(|ballot| Ask::Prepare { ballot }),
        accept.prop_map(|(ballot, value, then)| Ask::Accept { ballot, value, then }),
    ];
    (any_register(), any::<u64>(), ask).prop_map(|(register, disk, ask)| Request { register, disk, ask })
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let promise = (any_ballot(), any_value());
    let reply = prop_oneof![
        promise.prop_map(|(accepted, value)| Reply::Promise { accepted, value }),
        Just(Reply::Accepted),
        any_ballot().prop_map(|promised| Reply::Later { promised }),
        Just(Reply::Refused),
    ];
    let answer = (any_register(), any_ballot(), reply);
    answer.prop_map(|(register, ballot, reply)| Answer { register, ballot, reply })
}

/// WANT, GRANT and BACK of several addresses, as keeper and holder take them off the wire.
#[test]
fn tickets_are_lent_and_given_back_by_words() {
    let keys: Vec<TicketKey> = ["192.0.2.7", "2001:db8::7"]
        .map(|ip| TicketKey::of_address(ip.parse().unwrap()))
        .into_iter()
        .chain(TicketKey::of_host("a.example"))
        .collect();
    let lending = Lending { slots: 2, pause_us: 1_000_000, request_us: 10_000_000, in_parts: false };
    let mut keeper = Keeper::open(lending, Now::ZERO);
    let mut tickets = Tickets::new(1 << 32);
    let now = Now::ZERO.plus_us(kept_us(TICKET_US + lending.request_us));
    let wants = keys.iter().filter_map(|key| tickets.want(key, now)).collect();
    let wants = travels(&PeerWord::Want(wants), |word| match word {
        PeerWord::Want(wants) => wants.clone(),
        _ => panic!("{word:?}"),
    });
    let (mut grants, mut waits) = (Vec::new(), Vec::new());
    for (want, node) in wants.into_iter().zip([1, 1, 1]) {
        match keeper.want(node, want, partition(5), Now::NEVER, now) {
            Said::Grant(grant) => grants.push(grant),
            Said::Wait(wait) => waits.push(wait),
        }
    }
    assert_eq!((grants.len(), waits.len()), (3, 0));
    travels(&PeerWord::Grant(grants), |word| {
        let PeerWord::Grant(grants) = word else { panic!("{word:?}") };
        grants.iter().for_each(|grant| assert_eq!(tickets.granted(grant, now), None));
    });
    let due = now.plus_us(owed_us(1_000_000));
    assert!(keys.iter().all(|key| tickets.may_send(key, due) && !tickets.may_send(key, now)));
    tickets.sent(&keys[0], due);
    let line = || Box::from(*b"not before noon");
    let backs = keys.iter().filter_map(|key| tickets.back(key, Some((9_000_000, line())), due)).collect();
    travels(&PeerWord::Back(backs), |word| {
        let PeerWord::Back(backs) = word else { panic!("{word:?}") };
        backs.iter().for_each(|back| keeper.back(1, back.clone(), due));
    });
    let mut next = Tickets::new(1);
    for (key, due_in_us) in keys.iter().zip([owed_us(9_000_000), 0, 0]) {
        let want = next.want(key, due).unwrap();
        let Said::Grant(grant) = keeper.want(2, want, partition(5), Now::NEVER, due) else {
            panic!("{key} was given back")
        };
        assert_eq!((grant.due_in_us, grant.pause_us, grant.line), (due_in_us, 9_000_000, line()));
        let want = tickets.want(key, due).unwrap();
        let Said::Wait(wait) = keeper.want(1, want, partition(5), Now::NEVER, due) else {
            panic!("{key} is lent")
        };
        travels(&PeerWord::Wait(vec![wait.clone()]), |word| assert_eq!(word, &PeerWord::Wait(vec![wait])));
    }
}

proptest! {
    /// A beat that travels is one that its register may hold, and the other way round.
    #[test]
    fn beats_come_back(
        node: u16, generation in prop_oneof![any::<u32>(), Just(u32::MAX)],
        n in prop_oneof![any::<u64>(), Just(u64::MAX)], sealed: bool,
    ) {
        let beat = Beat { generation, n, sealed };
        prop_assert_eq!(Beat::of(&beat.value()).is_some(), beat.is_beat());
        if beat.is_beat() {
            let read = travels(&PeerWord::Beat { node, beat }, |word| match *word {
                PeerWord::Beat { node, beat } => (node, Some(beat)),
                _ => (0, None),
            });
            prop_assert_eq!(read, (node, Beat::of(&beat.value())));
        }
    }

    #[test]
    fn requests_come_back(id: u64, request in any_request()) {
        let (read, other) = travels(&request.word(id), |word| (Request::of(word), Answer::of(word)));
        prop_assert_eq!((read, other), (Some((id, request)), None));
    }

    #[test]
    fn answers_come_back(id: u64, answer in any_answer()) {
        let (read, other) = travels(&answer.word(id), |word| (Answer::of(word), Request::of(word)));
        prop_assert_eq!((read, other), (Some((id, answer)), None));
    }
}
