use super::made_up::{Heard, MadeUp};
use super::*;
use crate::base::Transport;
use proptest::prelude::*;
use std::net::IpAddr;

fn asked(kind: RecordKind) -> (Question, Heard) {
    let question = Question::new(&HostName::parse("www.example.test").unwrap(), kind, 0xbeef, 0b1011);
    let heard = Heard::read(&question.datagram(true));
    (question, heard)
}

fn read(made: &MadeUp) -> Reply {
    let (question, heard) = asked(RecordKind::A);
    question.read(&heard.answer(made), Transport::Udp)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn alias(from: &str, to: &str, ttl_s: u32) -> (String, String, u32) {
    (from.to_string(), to.to_string(), ttl_s)
}

fn address(owner: &str, of: &str, ttl_s: u32) -> (String, IpAddr, u32) {
    (owner.to_string(), ip(of), ttl_s)
}

#[test]
fn a_question_says_what_it_asks() {
    for (kind, wants_v6) in [(RecordKind::A, false), (RecordKind::Aaaa, true)] {
        let (question, heard) = asked(kind);
        assert_eq!((heard.id, &*heard.name, heard.wants_v6), (0xbeef, "www.example.test", wants_v6));
        assert!(heard.edns);
        assert!(!Heard::read(&question.datagram(false)).edns);
        let framed = question.framed(true);
        assert_eq!(usize::from(u16::from_be_bytes([framed[0], framed[1]])), framed.len() - 2);
        assert_eq!(framed[2..], question.datagram(true));
        assert!(framed.windows(3).any(|three| three == b"WWw"), "spelled as told");
    }
}

#[test]
fn addresses_come_once_and_live_as_long_as_the_shortest() {
    let owner = "www.example.test";
    let addresses = vec![
        address(owner, "192.0.2.2", 300),
        address(owner, "192.0.2.1", 200),
        address(owner, "192.0.2.2", 250),
        address("other.test", "192.0.2.9", 1),
    ];
    let reply = read(&MadeUp { addresses, ..MadeUp::default() });
    assert_eq!(reply, Reply::Addresses { addresses: vec![ip("192.0.2.2"), ip("192.0.2.1")], ttl_s: 200 });
}

#[test]
fn addresses_have_a_bound() {
    let addresses = (0..200).map(|n| address("www.example.test", &format!("192.0.2.{n}"), 9)).collect();
    let Reply::Addresses { addresses, .. } = read(&MadeUp { addresses, ..MadeUp::default() }) else {
        panic!()
    };
    assert_eq!(addresses.len(), 16);
}

#[test]
fn an_answer_of_the_other_kind_is_no_address() {
    let (question, heard) = asked(RecordKind::Aaaa);
    let addresses = vec![address("www.example.test", "192.0.2.2", 300)];
    let bytes = heard.answer(&MadeUp { addresses, ..MadeUp::default() });
    assert_eq!(question.read(&bytes, Transport::Udp), Reply::NoAddress { ttl_s: None });
    let addresses = vec![address("www.example.test", "2001:db8::1", 300)];
    let bytes = heard.answer(&MadeUp { addresses, ..MadeUp::default() });
    let reply = question.read(&bytes, Transport::Udp);
    assert_eq!(reply, Reply::Addresses { addresses: vec![ip("2001:db8::1")], ttl_s: 300 });
}

#[test]
fn aliases_are_followed_in_any_order() {
    let aliases = vec![
        alias("b.test", "C.test", 40),
        alias("www.example.test", "a.test", 50),
        alias("a.test", "b.test", 60),
    ];
    let addresses = vec![address("c.test", "192.0.2.7", 70), address("b.example", "192.0.2.8", 1)];
    let reply = read(&MadeUp { aliases, addresses, ..MadeUp::default() });
    assert_eq!(reply, Reply::Addresses { addresses: vec![ip("192.0.2.7")], ttl_s: 40 });
}

#[test]
fn aliases_in_a_circle_are_refused() {
    for aliases in [
        vec![alias("www.example.test", "www.example.test", 9)],
        vec![alias("www.example.test", "a.test", 9), alias("a.test", "www.example.test", 9)],
        (0..40)
            .map(|n| alias(&format!("{n}.test"), &format!("{}.test", n + 1), 9))
            .chain([alias("www.example.test", "0.test", 9)])
            .collect(),
    ] {
        assert_eq!(read(&MadeUp { aliases, ..MadeUp::default() }), Reply::Unfit(Unfit::Malformed));
    }
}

#[test]
fn a_no_lives_as_long_as_the_zone_says() {
    for (soa, ttl_s) in [(Some((900, 60)), Some(60)), (Some((30, 60)), Some(30)), (None, None)] {
        assert_eq!(read(&MadeUp { rcode: 3, soa, ..MadeUp::default() }), Reply::NoSuchName { ttl_s });
        assert_eq!(read(&MadeUp { soa, ..MadeUp::default() }), Reply::NoAddress { ttl_s });
    }
    let soa = Some((1 << 31, 60));
    assert_eq!(read(&MadeUp { soa, ..MadeUp::default() }), Reply::NoAddress { ttl_s: Some(0) });
}

#[test]
fn faults_are_no_answers() {
    for (rcode, reply) in
        [(1, Reply::NotUnderstood), (2, Reply::Fault(2)), (4, Reply::NotUnderstood), (5, Reply::Fault(5))]
    {
        assert_eq!(read(&MadeUp { rcode, truncated: true, ..MadeUp::default() }), reply);
        let (question, heard) = asked(RecordKind::A);
        let mut header = heard.answer(&MadeUp { rcode, ..MadeUp::default() });
        header.truncate(12);
        header[4..12].fill(0);
        assert_eq!(question.read(&header, Transport::Udp), reply, "without the question");
        header[3] &= 0xf0;
        assert_eq!(question.read(&header, Transport::Udp), Reply::Stray);
    }
    assert_eq!(read(&MadeUp { referral: true, ..MadeUp::default() }), Reply::Fault(0));
    let soa = Some((7, 7));
    assert_eq!(
        read(&MadeUp { referral: true, soa, ..MadeUp::default() }),
        Reply::NoAddress { ttl_s: Some(7) }
    );
}

#[test]
fn what_answers_another_question_is_a_stray() {
    let (question, heard) = asked(RecordKind::A);
    let good = heard.addresses(&["192.0.2.1"], 60);
    assert!(matches!(question.read(&good, Transport::Udp), Reply::Addresses { .. }));
    let mut other_id = good.clone();
    other_id[1] ^= 1;
    let mut no_answer = good.clone();
    no_answer[2] &= 0x7f;
    let mut other_name = good.clone();
    other_name[14] ^= 1;
    let mut other_opcode = good.clone();
    other_opcode[2] |= 0x10;
    let (_, other_kind) = asked(RecordKind::Aaaa);
    let other_kind = other_kind.addresses(&["192.0.2.1"], 60);
    for stray in [&other_id, &no_answer, &other_name, &other_opcode, &other_kind, &vec![], &vec![0; 11]] {
        assert_eq!(question.read(stray, Transport::Udp), Reply::Stray);
    }
    let mut other_case = good.clone();
    other_case[13] ^= 0x20;
    assert_eq!(question.read(&other_case, Transport::Udp), Reply::Unfit(Unfit::Spelling));
    assert!(matches!(question.read(&other_case, Transport::Tcp), Reply::Addresses { .. }));
    assert_eq!(read(&MadeUp { truncated: true, ..MadeUp::default() }), Reply::Unfit(Unfit::Truncated));
}

fn samples() -> Vec<Vec<u8>> {
    let (_, heard) = asked(RecordKind::A);
    let aliases = vec![alias("www.example.test", "a.test", 50), alias("a.test", "b.test", 60)];
    let addresses = vec![address("b.test", "192.0.2.7", 70), address("b.test", "192.0.2.8", 1)];
    vec![
        heard.answer(&MadeUp { aliases, addresses, ..MadeUp::default() }),
        heard.answer(&MadeUp { rcode: 3, soa: Some((60, 60)), ..MadeUp::default() }),
        heard.answer(&MadeUp { soa: Some((60, 60)), ..MadeUp::default() }),
    ]
}

/// An answer of which a part is missing never brings addresses that the whole does not bring, or a "no".
#[test]
fn a_cut_answer_tells_nothing() {
    let (question, _) = asked(RecordKind::A);
    for sample in samples() {
        for cut in 0..sample.len() {
            let reply = question.read(&sample[..cut], Transport::Udp);
            let nothing = matches!(reply, Reply::Stray | Reply::Unfit(Unfit::Malformed));
            assert!(nothing, "{cut} of {}: {reply:?}", sample.len());
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600), ours in any::<bool>()) {
        let (question, heard) = asked(RecordKind::A);
        let mut bytes = bytes;
        if ours {
            // Past the header and the question, so that the records are read at all.
            let mut head = heard.answer(&MadeUp::default());
            head[7] = 9;
            head[9] = 9;
            head.extend(bytes);
            bytes = head;
        }
        let _ = question.read(&bytes, Transport::Udp);
        let _ = question.read(&bytes, Transport::Tcp);
    }

    #[test]
    fn flipped_answers_do_no_harm(
        sample in 0usize..3,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (question, _) = asked(RecordKind::A);
        let mut bytes = samples()[sample].clone();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        if let Reply::Addresses { addresses, .. } = question.read(&bytes, Transport::Udp) {
            prop_assert!(!addresses.is_empty() && addresses.len() <= 16);
        }
    }

    #[test]
    fn any_text_is_a_name_or_an_error(text in "\\PC{0,300}") {
        if let Ok(name) = HostName::parse(&text) {
            let heard = Heard::read(&Question::new(&name, RecordKind::A, 1, u64::MAX).datagram(true));
            prop_assert_eq!(heard.name, text.trim_end_matches('.').to_ascii_lowercase());
        }
    }
}
