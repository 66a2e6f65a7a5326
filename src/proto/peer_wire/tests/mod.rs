use super::*;
use crate::limits::{
    PEER_FRAME_BYTES_MAX, PEER_LISTEN_BYTES_MAX, PEER_VERSION_BYTES_MAX, PEER_WHY_BYTES_MAX,
    REGISTER_BYTES_MAX, URL_BATCH_BYTES_MAX, URL_BATCH_ITEMS_MAX, URL_BYTES_MAX,
};
use crate::proto::job::{DocKind, Provenance};
use crate::proto::partition::{Partition, Spread};
use crate::proto::record::{SegmentPiece, SegmentState};
use std::net::IpAddr;

mod batches;
mod come_back;
mod tickets;

fn written(word: &PeerWord<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    word.write(&mut out);
    out
}

fn framed(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Frame { kind, body }.write(&mut out);
    out
}

/// Every word of a stream that comes in these pieces, written anew; and how it ends.
fn words<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Result<usize, FrameError>) {
    let (mut buffer, mut words) = (FrameBuffer::default(), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => match frame.word() {
                    Ok(word) => words.push(written(&word)),
                    Err(error) => return (words, Err(error)),
                },
                Ok(None) => break,
                Err(error) => {
                    buffer.push(b"more");
                    assert_eq!(buffer.next_frame(), Err(error), "for good");
                    assert_eq!(buffer.held(), 0);
                    return (words, Err(error));
                }
            }
        }
    }
    (words, Ok(buffer.held()))
}

/// The one word in some bytes, or what is wrong with them.
fn only_word(bytes: &[u8], check: impl FnOnce(PeerWord<'_>)) -> Result<(), FrameError> {
    let mut buffer = FrameBuffer::default();
    buffer.push(bytes);
    check(buffer.next_frame()?.expect("a whole frame").word()?);
    Ok(())
}

fn partition(number: u16) -> Partition {
    Partition::new(number).unwrap()
}

fn item(number: u16, url: &str) -> UrlItem<'_> {
    let news = UrlNews::Found(Found { provenance: Provenance::link(2), priority: 5, hits: 0 });
    UrlItem { partition: partition(number), url, news }
}

fn odd_item(number: u16, url: &str) -> UrlItem<'_> {
    let provenance =
        Provenance { kind: DocKind::Sitemap, depth: u16::MAX, hops: 10, seed_chain: true, head_only: true };
    let news = UrlNews::Found(Found { provenance, priority: u8::MAX, hits: u32::MAX });
    UrlItem { news, ..item(number, url) }
}

/// A word of every kind, most of them with something in every field.
fn with_samples(mut each: impl FnMut(&PeerWord<'_>)) {
    let (id, register, ballot) = (u64::MAX - 1, Register::Beat(7), Ballot { round: 9, node: 3 });
    let then = Ballot { round: 10, node: 4 };
    let mut builder = UrlBatchBuilder::default();
    builder.push(&item(4_095, "http://a.example/one")).unwrap();
    builder.push(&UrlItem { news: UrlNews::Scope, ..item(4_095, "http://a.example/") }).unwrap();
    builder.push(&odd_item(0, "https://b.example/two")).unwrap();
    let mut moves = MoveBuilder::default();
    for (number, row) in [(1, &b""[..]), (4_095, b"what became of it")] {
        moves.push(&MoveItem { url: item(number, "http://a.example/one"), row }).unwrap();
    }
    let hello = Hello {
        cluster: *b"0123456789abcdef",
        id: 6,
        node: 2,
        generation: 3,
        epoch: 4,
        version: "0.1.0",
        rules: 5,
        listen: "10.0.0.1:7174",
        weight: 100,
        joining: true,
        outside: false,
        spread: Some(Spread::Url),
    };
    let status = Status {
        node: 11,
        generation: 12,
        round: 13,
        state: NodeState::ReadyToServe,
        epoch: 1,
        pending: 2,
        open: 3,
        sent: 4,
        counted: 5,
        received: 6,
        outbox: 7,
        copied: 8,
        right_left_ms: 9,
        pages: 10,
    };
    let [v4, v6] = ["192.0.2.7", "2001:db8::7"].map(|ip| TicketKey::of_address(ip.parse().unwrap()));
    let host = TicketKey::of_host("a.example").unwrap();
    let (line, key) = (Box::from(*b"line"), host.clone());
    let grant = Grant { key, ask: 3, for_us: 4, due_in_us: 5, slots: 6, pause_us: 7, line };
    let back =
        |sent_ago_us| Back { key: host.clone(), ask: 7, sent_ago_us, pause_us: 9, line: Box::from(*b"x") };
    let table: Vec<u8> = (0..2_000u32).flat_map(|row| ((row / 100) as u16).to_le_bytes()).collect();
    let store = StoreName { node: 3, count: 1 };
    let state = SegmentState { segment: 4, shard: 1, print: 7, bytes: 1 << 33, is_sealed: true };
    let short = Shortfall { kind: ShortKind::CopyDiffers, store, segment: 4 };
    let verified = Verified {
        is_done: true,
        epoch: 1,
        table: 2,
        follower: 3,
        segments: 4,
        bytes: 5,
        documents: 6,
        kept: 7,
        short: vec![short, Shortfall::of(ShortKind::NoAnswer)],
        more: 8,
    };
    for word in [
        PeerWord::Hello(hello),
        PeerWord::Refused { why: "req_host_per_sec is 2 here and 1 in the cluster" },
        PeerWord::TableAsk { epoch_known: 17 },
        PeerWord::Table { epoch: 18, bytes: (&table).into() },
        PeerWord::Prepare { id, register: Register::Table, ballot, disk: 5 },
        PeerWord::Accept { id, register, ballot, disk: 6, then, value: None },
        PeerWord::Accept { id, register, ballot, disk: 6, then, value: Some(b"value") },
        PeerWord::Promise { id, register, ballot, accepted: Ballot::NONE, value: None },
        PeerWord::Promise { id, register, ballot, accepted: then, value: Some(b"value") },
        PeerWord::Accepted { id, register, ballot },
        PeerWord::Later { id, register, ballot, promised: then },
        PeerWord::Urls(builder.batch(12)),
        PeerWord::Counted { batch: 13 },
        PeerWord::NotMine { batch: 14, epoch: 15, partitions: vec![partition(1), partition(4_095)] },
        PeerWord::Status(status),
        PeerWord::NoVote { id, register, ballot },
        PeerWord::Want(vec![
            Want { key: v4.clone(), ask: 1, renews: true },
            Want { key: v6, ask: 2, renews: false },
        ]),
        PeerWord::Grant(vec![grant]),
        PeerWord::Wait(vec![Wait { key: v4, ask: 5, wait_us: 6 }]),
        PeerWord::Back(vec![back(Some(8)), back(None)]),
        PeerWord::Beat { node: 7, beat: Beat { generation: 3, n: 4, sealed: true } },
        PeerWord::StatusAsk { round: 19 },
        PeerWord::Move(moves.batch(7, 3, "pace http://a due=5\n")),
        PeerWord::Move(MoveBuilder::default().batch(8, 1, "")),
        PeerWord::Moved(Moved { id: 7, batch: 3, count: 2, prints: u64::MAX }),
        PeerWord::Copy { is_whole: true, batch: moves.batch(9, 4, "address 192.0.2.7 due=5\n") },
        PeerWord::Copy { is_whole: false, batch: MoveBuilder::default().batch(9, 5, "") },
        PeerWord::Copied { id: 9, batch: 4 },
        PeerWord::PagesAsk { id, stores: vec![CopiedStore { name: store, key: 6 }] },
        PeerWord::PagesHeld { id, is_all: true, is_refused: false, held: vec![(store, state)] },
        PeerWord::Pages { id, store, piece: SegmentPiece { upto: state, bytes: b"NREC" } },
        PeerWord::PagesGone { id, store, segments: vec![1, u64::MAX] },
        PeerWord::PagesUpto { id, unix_s: 1_800_000_000 },
        PeerWord::VerifyAsk { id, copies: true },
        PeerWord::Verified { id, verified },
        PeerWord::SumAsk { id, of: SumOf::Segment { store, state } },
        PeerWord::SumAsk { id, of: SumOf::Original { state } },
        PeerWord::SumAsk { id, of: SumOf::Knowledge { copy: 9, batch: 4 } },
        PeerWord::Sum { id, sum: Sum::Of { count: 5, digest: 6 } },
        PeerWord::Sum { id, sum: Sum::Missing },
        PeerWord::Sum { id, sum: Sum::Unreadable },
        PeerWord::SafeAsk { id, epoch: 77, pages: true },
        PeerWord::Safe { id, is_alone: true },
    ] {
        each(&word);
    }
}

#[test]
fn a_frame_is_these_bytes() {
    let bytes = written(&PeerWord::Counted { batch: 0x0102 });
    assert_eq!(bytes[..8], [8, 0, 0, 0, 11, 0, 0, 0]);
    assert_eq!(bytes[12..], [2, 1, 0, 0, 0, 0, 0, 0]);
    let checked = [&bytes[..8], &bytes[12..]].concat();
    assert_eq!(bytes[8..12], crc32c::crc32c(&checked).to_le_bytes(), "of header and body");
    let numbers = FrameKind::ALL.map(|kind| (kind as u8, FrameKind::from_u8(kind as u8)));
    assert_eq!(numbers, std::array::from_fn(|at| (at as u8 + 1, Some(FrameKind::ALL[at]))));
    assert_eq!([0, FrameKind::ALL.len() as u8 + 1, 255].map(FrameKind::from_u8), [None; 3]);
}

#[test]
fn every_word_comes_back_as_it_went() {
    let mut kinds = Vec::new();
    with_samples(|word| {
        kinds.push(word.kind());
        let bytes = written(word);
        only_word(&bytes, |read| assert_eq!(&read, word)).unwrap();
        assert_eq!(words([&bytes[..]]), (vec![bytes], Ok(0)));
    });
    kinds.dedup();
    assert_eq!(kinds, FrameKind::ALL);
}

#[test]
fn cut_anywhere_a_word_is_never_another() {
    with_samples(|word| {
        let bytes = written(word);
        for cut in 0..bytes.len() {
            assert_eq!(words([&bytes[..cut]]), (vec![], Ok(cut)), "{word:?}");
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(words([head, tail]), (vec![bytes.clone()], Ok(0)), "{word:?}");
        }
        // A body that is shorter, or longer, under a checksum that is right.
        let body = &bytes[FRAME_HEADER_BYTES..];
        for cut in 0..body.len() {
            let (said, end) = words([&framed(word.kind(), &body[..cut])[..]]);
            assert!(
                said.is_empty() && matches!(end, Err(FrameError::Unreadable { .. })),
                "{word:?}: {end:?}"
            );
        }
        for more in [0, 1, 0x40, 255] {
            let longer = framed(word.kind(), &[body, &[more]].concat());
            let (said, end) = words([&longer[..]]);
            assert!(said.is_empty() && end.is_err(), "{word:?}: {end:?}");
        }
    });
}

#[test]
fn every_flipped_bit_is_refused() {
    with_samples(|word| {
        let bytes = written(word);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // A length that is too large waits for what is not there; whatever comes then is refused.
            let length = crate::base::u32_at(&flipped, 0) as usize;
            let awaited = FRAME_HEADER_BYTES + length.min(PEER_FRAME_BYTES_MAX);
            flipped.resize(awaited.max(bytes.len()), 0xa5);
            let (said, end) = words([&flipped[..]]);
            assert!(said.is_empty() && end.is_err(), "bit {bit} of {word:?}: {end:?}");
            if bit / 8 == 5 || bit / 8 == 6 || bit / 8 == 7 {
                assert!(matches!(end, Err(FrameError::Flags { .. })), "{end:?}");
            }
        }
    });
}

#[test]
fn a_bad_header_is_seen_when_its_last_byte_is_there() {
    let good = written(&PeerWord::Counted { batch: 1 });
    let with = |at: usize, byte: u8| {
        let mut header = good[..FRAME_HEADER_BYTES].to_vec();
        header[at] = byte;
        header
    };
    for (header, error, text) in [
        (
            with(2, 17),
            FrameError::TooLong { bytes: 0x11_0008 },
            "a frame of 1114120 bytes, over the 1048576 that a node may send",
        ),
        (with(4, 99), FrameError::UnknownKind(99), "a frame of kind 99, which this version does not know"),
        (
            with(5, 1),
            FrameError::Flags { flags: 1, unused: 0 },
            "a frame with flags 0x01 and 0x0000, which this version does not know",
        ),
    ] {
        let stream = [&good[..], &header].concat();
        assert_eq!(words([&stream[..stream.len() - 1]]).1, Ok(FRAME_HEADER_BYTES - 1));
        assert_eq!(words(stream.chunks(5)), (vec![good.clone()], Err(error)));
        assert_eq!(error.to_string(), text);
    }
    let mut wrong = good.clone();
    wrong[12] ^= 1;
    let error = words([&wrong[..]]).1.unwrap_err();
    assert_eq!(error.to_string(), "COUNTED frame whose checksum does not match");
    let error = words([&framed(FrameKind::Counted, &[0; 9])[..]]).1.unwrap_err();
    assert_eq!(error.to_string(), "COUNTED frame with 1 bytes behind its last field");
    let error = words([&framed(FrameKind::Counted, &[0; 7])[..]]).1.unwrap_err();
    assert_eq!(error.to_string(), "COUNTED frame that ends within its fields");
}

#[test]
fn memory_is_what_came_and_is_given_back() {
    let mut buffer = FrameBuffer::default();
    let body = vec![7; PEER_FRAME_BYTES_MAX];
    let largest = framed(FrameKind::Accept, &body);
    let mut most = 0;
    for _ in 0..3 {
        for piece in largest.chunks(16 * 1_024) {
            buffer.push(piece);
            while buffer.next_frame().unwrap().is_some() {}
            most = most.max(buffer.held());
        }
    }
    assert!(most <= largest.len(), "{most}");
    assert_eq!(buffer.held(), 0);
    // A header that promises much, and little behind it.
    buffer.push(&largest[..100]);
    assert_eq!(buffer.next_frame(), Ok(None));
    assert_eq!(buffer.held(), 100);
}

#[test]
fn bounds_hold_at_both_ends() {
    let value = vec![1; REGISTER_BYTES_MAX];
    let (id, register, ballot) = (1, Register::Table, Ballot { round: 1, node: 1 });
    let longest = PeerWord::Accept { id, register, ballot, disk: 1, then: ballot, value: Some(&value) };
    only_word(&written(&longest), |read| assert_eq!(read, longest)).unwrap();
    // What nothing can be packed of.
    let mut state = 1u64;
    let noise: Vec<u8> = (0..REGISTER_BYTES_MAX)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    for table in [&noise[..], &value[..], b""] {
        let word = PeerWord::Table { epoch: 1, bytes: table.into() };
        only_word(&written(&word), |read| assert_eq!(read, word)).unwrap();
    }
    let said = |kind, body: &[u8]| words([&framed(kind, body)[..]]).1.unwrap_err().to_string();
    let head = &written(&longest)[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + 21 + 8 + 10 + 1];
    let over = [head, &(REGISTER_BYTES_MAX as u32 + 1).to_le_bytes(), &value, &[1]].concat();
    assert_eq!(said(FrameKind::Accept, &over), "ACCEPT frame with a value over its bound");
    // A table that says to be large, with nothing behind it to be large by.
    let bomb = [&[0; 8][..], &(128u32 << 10).to_le_bytes(), &2u32.to_le_bytes(), &[0, 0]].concat();
    assert_eq!(said(FrameKind::Table, &bomb), "TABLE frame with a table over its bound");
    let wrong = [&[0; 8][..], &100u32.to_le_bytes(), &2u32.to_le_bytes(), &[0x10, b'x']].concat();
    assert_eq!(said(FrameKind::Table, &wrong), "TABLE frame with a table that cannot be unpacked");
    let many = [&[0; 16][..], &501u16.to_le_bytes(), &[0; 1_002]].concat();
    assert_eq!(said(FrameKind::NotMine, &many), "NOT_MINE frame with more partitions than a batch has items");
    let far = [&[0; 16][..], &1u16.to_le_bytes(), &4_096u16.to_le_bytes()].concat();
    assert_eq!(said(FrameKind::NotMine, &far), "NOT_MINE frame with a partition out of range");
    let long = [&513u16.to_le_bytes()[..], &[b'x'; 513]].concat();
    assert_eq!(said(FrameKind::Refused, &long), "REFUSED frame with a text over its bound");
    assert_eq!(said(FrameKind::Refused, &[1, 0, 0xff]), "REFUSED frame with a text that is not UTF-8");
    let unknown = "a register that this version does not know";
    for register in [[9, 9, 9], [0, 1, 0], [1, 0, 0]] {
        let body = [&[0; 8][..], &register, &[1; 18]].concat();
        assert!(said(FrameKind::Prepare, &body).contains(unknown), "{register:?}");
    }
    assert!(said(FrameKind::Status, &[8; STATUS_BYTES]).contains("a state that this version does not know"));
    assert!(said(FrameKind::Status, &[0; STATUS_BYTES]).contains("a state that this version does not know"));
}

#[test]
fn a_reason_is_cut_where_a_character_ends() {
    let why = "ü".repeat(PEER_WHY_BYTES_MAX);
    let bytes = written(&PeerWord::Refused { why: &why });
    only_word(&bytes, |read| assert_eq!(read, PeerWord::Refused { why: &why[..512] })).unwrap();
    let why = format!("x{why}");
    let bytes = written(&PeerWord::Refused { why: &why });
    only_word(&bytes, |read| assert_eq!(read, PeerWord::Refused { why: &why[..511] })).unwrap();
}

#[test]
fn a_status_is_the_same_in_a_datagram() {
    with_samples(|word| {
        if let PeerWord::Status(status) = word {
            assert_eq!(Status::from_bytes(&status.to_bytes()), Ok(*status));
            assert!(Status::from_bytes(&status.to_bytes()[1..]).is_err());
            assert!(Status::from_bytes(&[&status.to_bytes()[..], &[0]].concat()).is_err());
        }
    });
    let names: Vec<&str> = NodeState::ALL.iter().map(|state| state.name()).collect();
    assert_eq!(
        names,
        ["joining", "standing", "crawling", "ready_to_serve", "draining", "left", "fenced"],
        "in the order of their numbers"
    );
}

#[test]
fn ballots_are_ordered_by_round_then_node() {
    let ballot = |round, node| Ballot { round, node };
    assert!(ballot(1, 9) < ballot(2, 0) && ballot(2, 0) < ballot(2, 1));
    assert_eq!(
        (ballot(3, 4).to_string(), Register::Beat(5).to_string()),
        ("3.4".to_string(), "beat/5".to_string())
    );
}
