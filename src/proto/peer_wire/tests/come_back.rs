//! Every word is read as it was written, whatever is in it.

use super::*;
use proptest::prelude::*;

fn any_ballot() -> impl Strategy<Value = Ballot> {
    any::<(u64, u16)>().prop_map(|(round, node)| Ballot { round, node })
}

fn any_register() -> impl Strategy<Value = Register> {
    prop_oneof![Just(Register::Table), (1..=u16::MAX).prop_map(Register::Beat)]
}

fn comes_back(word: &PeerWord<'_>) {
    only_word(&written(word), |read| assert_eq!(&read, word)).unwrap();
}

fn any_key() -> impl Strategy<Value = TicketKey> {
    prop_oneof![
        any::<IpAddr>().prop_map(TicketKey::of_address),
        "[a-z0-9.-]{1,255}".prop_map(|host| TicketKey::of_host(&host).unwrap()),
    ]
}

fn any_line() -> impl Strategy<Value = Box<[u8]>> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Box::from)
}

proptest! {
    #[test]
    fn tickets_come_back(
        tickets in prop::collection::vec((any_key(), any::<[u64; 5]>(), any::<Option<u64>>(), any_line()), 0..20),
        slots: u16,
    ) {
        let (mut wants, mut grants, mut waits, mut backs) = (vec![], vec![], vec![], vec![]);
        for (key, [ask, for_us, due_in_us, pause_us, wait_us], sent_ago_us, line) in tickets {
            wants.push(Want { key: key.clone(), ask, renews: wait_us % 2 == 0 });
            grants.push(Grant { key: key.clone(), ask, for_us, due_in_us, slots, pause_us, line: line.clone() });
            waits.push(Wait { key: key.clone(), ask, wait_us });
            backs.push(Back { key, ask, sent_ago_us, pause_us, line });
        }
        comes_back(&PeerWord::Want(wants));
        comes_back(&PeerWord::Grant(grants));
        comes_back(&PeerWord::Wait(waits));
        comes_back(&PeerWord::Back(backs));
    }

    #[test]
    fn beats_come_back(node: u16, generation in 0..u32::MAX, n in 0..u64::MAX, sealed: bool) {
        comes_back(&PeerWord::Beat { node, beat: Beat { generation, n, sealed } });
    }

    #[test]
    fn hellos_come_back(
        cluster: [u8; 16], numbers: (u16, u32, u64, u64, u16), flags: (bool, bool),
        spread in prop::option::of(prop::sample::select(Spread::ALL.to_vec())),
        version in "\\PC{0,16}", listen in "\\PC{0,60}",
    ) {
        prop_assume!(version.len() <= PEER_VERSION_BYTES_MAX && listen.len() <= PEER_LISTEN_BYTES_MAX);
        let (node, generation, epoch, rules, weight) = numbers;
        let ((version, listen), (joining, outside)) = ((version.as_str(), listen.as_str()), flags);
        comes_back(&PeerWord::Hello(Hello {
            cluster, id: epoch ^ rules, node, generation, epoch, version, rules, listen, weight, joining, outside, spread,
        }));
    }

    #[test]
    fn words_of_the_council_come_back(
        numbers: (u64, u64), register in any_register(), ballot in any_ballot(), other in any_ballot(),
        value in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
    ) {
        let ((id, disk), value) = (numbers, value.as_deref());
        comes_back(&PeerWord::Prepare { id, register, ballot, disk });
        comes_back(&PeerWord::Accept { id, register, ballot, disk, then: other, value });
        comes_back(&PeerWord::Promise { id, register, ballot, accepted: other, value });
        comes_back(&PeerWord::Accepted { id, register, ballot });
        comes_back(&PeerWord::Later { id, register, ballot, promised: other });
        comes_back(&PeerWord::NoVote { id, register, ballot });
        comes_back(&PeerWord::Table { epoch: id, bytes: value.unwrap_or_default().into() });
    }

    #[test]
    fn small_words_come_back(
        numbers: [u64; 10], who: (u16, u32, u32), state in 0..7usize,
        partitions in prop::collection::vec(0..4_096u16, 0..500), why in "\\PC{0,100}",
    ) {
        let [round, epoch, pending, open, sent, counted, received, outbox, copied, pages] = numbers;
        let (state, (node, generation, right_left_ms)) = (NodeState::ALL[state], who);
        comes_back(&PeerWord::Status(Status {
            node, generation, round, state, epoch, pending, open, sent, counted, received, outbox, copied,
            right_left_ms, pages,
        }));
        comes_back(&PeerWord::StatusAsk { round });
        comes_back(&PeerWord::TableAsk { epoch_known: epoch });
        comes_back(&PeerWord::Counted { batch: sent });
        comes_back(&PeerWord::SafeAsk { id: sent, epoch, pages: pages % 2 == 0 });
        comes_back(&PeerWord::Safe { id: sent, is_alone: open % 2 == 0 });
        comes_back(&PeerWord::Refused { why: &why });
        let partitions = partitions.into_iter().map(partition).collect();
        comes_back(&PeerWord::NotMine { batch: sent, epoch, partitions });
    }

    /// Any body under a checksum that is right: what is read is read the same when it is written again.
    #[test]
    fn any_bytes_are_a_word_or_an_error(
        kind in 0..FrameKind::ALL.len(),
        body in prop::collection::vec(prop_oneof![3 => 0..9u8, 1 => any::<u8>()], 0..200),
        piece in 1..40usize,
    ) {
        let stream = framed(FrameKind::ALL[kind], &body);
        let whole = words([&stream[..]]);
        prop_assert_eq!(&words(stream.chunks(piece)), &whole);
        for word in &whole.0 {
            prop_assert_eq!(words([&word[..]]).0, vec![word.clone()]);
        }
        prop_assert_eq!(words(body.chunks(piece)), words([&body[..]]));
    }
}
