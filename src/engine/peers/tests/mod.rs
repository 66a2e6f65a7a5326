//! Two nodes keep one link, of the same cluster, version and rules, whatever comes over the wire; over a simulated network,
//! and once over the kernel's.

mod etcd;
mod pages;
mod returned;
mod world;

use super::*;
use crate::base::Rng;
use crate::limits::{LINK_OUT_BYTES_MAX, PEER_UNSENT_MAX};
use crate::proto::partition::Spread;
use crate::proto::peer_wire::PeerWord;
use world::{Raw, Up, WordBytes, World, address, introduction, word_of};

/// A word with so many bytes.
fn table(epoch: u64, count: usize) -> PeerWord<'static> {
    let mut rng = Rng::new(epoch);
    let bytes: Vec<u8> = (0..count).map(|_| rng.below(256) as u8).collect();
    PeerWord::Table { epoch, bytes: bytes.into() }
}

#[test]
fn two_nodes_speak_over_tls() {
    let mut world = World::new(1, 2).with_tls();
    world.start(0, introduction(1));
    world.start(1, introduction(2));
    world.nodes[1].wires.dial(&address(0));
    world.run_s(1);
    for (n, other) in [(0, 1), (1, 0)] {
        let Up { generation, epoch, listen, .. } = world.nodes[n].heard.ups[0].clone();
        assert_eq!((generation, epoch, listen), (1, 7, address(other)));
        let peer = world.nodes[n].wires.peer(other as u16 + 1).unwrap();
        assert!(world.nodes[n].wires.send(peer, &table(3, 400_000)));
        assert!(world.nodes[n].wires.send(peer, &PeerWord::Counted { batch: 70 + n as u64 }));
        world.nodes[n].wires.flush();
    }
    world.run_s(2);
    for (n, other) in [(0, 1u64), (1, 0)] {
        assert!(world.nodes[n].heard.said() == [word_of(&table(3, 400_000))], "node {n}: it is whole");
        assert_eq!(world.nodes[n].heard.counted, [70 + other]);
        let heard = &world.nodes[n].heard;
        assert_eq!((heard.ups.len(), heard.downs.len(), heard.refused.len()), (1, 0, 0));
        let peer = heard.ups[0].peer;
        assert!(world.nodes[n].wires.has_room(peer));
    }
}

#[test]
fn a_node_with_another_key_is_refused_on_both_sides_and_told_once() {
    let mut world = World::new(2, 2).with_tls();
    world.start(0, introduction(1));
    world.with_other_key().start(1, introduction(2));
    world.nodes[1].wires.dial(&address(0));
    world.run_s(45);
    let refused = |n: usize| world.nodes[n].heard.refused.clone();
    let other = "it has the certificate of another cluster: give every node the key file of this one";
    let ours = "it refuses our certificate: give every node the key file of one cluster";
    assert_eq!(refused(1), [(address(0), other.to_string(), true)]);
    assert_eq!(refused(0), [("10.0.0.1".to_string(), ours.to_string(), true)]);
    assert!(world.nodes.iter().all(|node| node.heard.ups.is_empty() && node.wires.count() <= 1));
}

#[test]
fn cluster_version_rules_spread_and_number_must_agree() {
    let me = Introduction { spread: Some(Spread::Host), ..introduction(1) };
    let other = introduction(2);
    let cases = [
        (
            Introduction { cluster: [0xab; 16], ..other.clone() },
            format!(
                "cluster {} here and {} there: give every node the key file of one cluster",
                "07".repeat(16),
                "ab".repeat(16)
            ),
        ),
        (
            Introduction { version: "0.1.9\u{1b}[2J".to_string(), ..other.clone() },
            "version 0.2.0 here and 0.1.9\\u{1b}[2J there: run the same nephila on all nodes".to_string(),
        ),
        (
            Introduction { rules: 0xbeef, ..other.clone() },
            "rules 0000000000000011 here and 000000000000beef there: give every node the same settings"
                .to_string(),
        ),
        (
            Introduction { spread: Some(Spread::Url), node: 0, joining: true, ..other.clone() },
            "spread host here and url there: the first node of a cluster has decided on it, so give one that joins the same --spread"
                .to_string(),
        ),
        (
            Introduction { node: 1, ..other.clone() },
            "node 1 here and there: each node has a number of its own".to_string(),
        ),
    ];
    for (seed, (stranger, why)) in cases.into_iter().enumerate() {
        let mut world = World::new(seed as u64, 2);
        world.start(0, me.clone());
        world.start(1, stranger);
        world.nodes[1].wires.dial(&address(0));
        world.nodes[0].wires.dial(&address(1));
        world.run_s(60);
        assert_eq!(world.nodes[0].heard.refused, [(address(1), why, true)]);
        assert_eq!(world.nodes[1].heard.refused.len(), 1, "{:?}", world.nodes[1].heard.refused);
        assert!(world.nodes.iter().all(|node| node.heard.ups.is_empty() && node.heard.words.is_empty()));
        // The cause is gone, and so is the refusal.
        world.nodes[1].wires.introduce(other.clone());
        world.run_s(30);
        assert!(world.nodes.iter().all(|node| node.heard.ups.len() == 1), "seed {seed}");
        assert!(world.nodes.iter().all(|node| node.heard.refused.len() == 1));
    }
}

#[test]
fn whoever_the_owner_refuses_hears_why_and_neither_is_told_of_a_link() {
    // Either may be the one that decides which link is kept, and either may dial.
    for (refusing, dialing) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut world = World::new(3, 2);
        world.start(0, introduction(1));
        world.start(1, introduction(2));
        world.nodes[refusing].heard.deny = Some("it was\nforgotten".to_string());
        world.nodes[dialing].wires.dial(&address(1 - dialing));
        world.run_s(50);
        let refused = |n: usize| {
            let heard = &world.nodes[n].heard;
            assert!(
                heard.ups.is_empty() && heard.downs.is_empty(),
                "{refusing} {dialing}: {:?}",
                heard.downs
            );
            let [(_, why, by_us)] = &heard.refused[..] else { panic!("{:?}", heard.refused) };
            (why.clone(), *by_us)
        };
        assert_eq!(refused(refusing), ("it was\\u{a}forgotten".to_string(), true));
        assert_eq!(refused(1 - refusing), ("it was\\u{a}forgotten".to_string(), false));
        world.nodes[refusing].heard.deny = None;
        world.run_s(15);
        assert!(world.nodes.iter().all(|node| node.heard.ups.len() == 1), "{refusing} {dialing}");
    }
}

/// What is no frame, or no word at its place, ends a link, and the owner hears why, once.
#[test]
fn garbage_closes_a_link_before_hello_and_after() {
    let hello = PeerWord::Hello(introduction(2).hello()).bytes();
    let accept = PeerWord::TableAsk { epoch_known: 1 }.bytes();
    let mut broken = PeerWord::Counted { batch: 1 }.bytes();
    broken[14] ^= 1;
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "a frame of 542393671 bytes", false),
        (broken.clone(), "COUNTED frame whose checksum does not match", false),
        (PeerWord::Counted { batch: 1 }.bytes(), "it says COUNTED before HELLO", false),
        ([&hello[..], &hello].concat(), "it says HELLO twice", false),
        ([&hello[..], &broken].concat(), "COUNTED frame whose checksum does not match", false),
        ([&hello[..], &accept, &broken].concat(), "COUNTED frame whose checksum does not match", true),
        ([&hello[..], &accept, &hello].concat(), "it says HELLO twice", true),
        (
            [&hello[..], &accept, &PeerWord::Refused { why: "go\u{7}" }.bytes()].concat(),
            "it refuses this node: go\\u{7}",
            true,
        ),
    ];
    for (seed, (bytes, why, stood)) in cases.into_iter().enumerate() {
        let mut world = World::new(seed as u64, 2);
        world.start(0, introduction(1));
        let mut raw = Raw::dialing(&world, 1, &address(0));
        raw.greeting = bytes;
        world.raws.push(raw);
        world.run_s(5);
        let heard = &world.nodes[0].heard;
        assert_eq!((heard.ups.len(), !heard.downs.is_empty()), (heard.downs.len(), stood), "{why}");
        let told = match stood {
            true => heard.downs[0].1.clone(),
            false => heard.refused[0].1.clone(),
        };
        assert!(told.starts_with(why), "{told}");
        assert!(heard.refused.len() <= 1, "{:?}", heard.refused);
        // The peer comes back again and again, and is hung up on each time.
        assert!(world.raws[0].downs > 1);
    }
}

/// A peer that refuses us is asked again, and not ten times a second.
#[test]
fn a_peer_that_refuses_is_left_in_peace_for_a_while() {
    for greeting in [PeerWord::Refused { why: "no" }.bytes(), b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()] {
        let mut world = World::new(4, 2);
        world.start(0, introduction(1));
        let mut raw = Raw::listening(&world, 1);
        raw.greeting = greeting;
        world.raws.push(raw);
        world.nodes[0].wires.dial(&address(1));
        world.run_s(60);
        assert_eq!(world.nodes[0].heard.refused.len(), 1);
        assert!((4..=7).contains(&world.raws[0].ups), "{}", world.raws[0].ups);
    }
}

/// Both dial each other in one moment. Exactly one link is left, it is the same one, and neither owner hears of the other.
#[test]
fn two_nodes_that_dial_each_other_keep_one_link() {
    let mut at_once = 0;
    for seed in 0..300 {
        let mut world = World::new(seed, 2);
        world.net.borrow_mut().delay([1_000, 20_000, 300_000][seed as usize % 3]);
        world.start(0, introduction(1));
        world.start(1, introduction(2));
        world.nodes[0].wires.dial(&address(1));
        world.run_us(seed * 731 % 5_000);
        world.nodes[1].wires.dial(&address(0));
        let mut most = 0;
        for _ in 0..200 {
            world.run_us(50_000);
            most = most.max(world.nodes[0].wires.count());
            // Either may speak as soon as it hears of the link, and no word is lost.
            for n in 0..2 {
                let node = &mut world.nodes[n];
                if let Some(peer) = node.wires.peer(2 - n as u16) {
                    node.said += 1;
                    assert!(node.wires.send(peer, &PeerWord::Counted { batch: node.said }));
                }
            }
        }
        world.run_s(60);
        at_once += usize::from(most > 1);
        for n in 0..2 {
            let (node, other) = (&world.nodes[n], &world.nodes[1 - n]);
            assert_eq!(node.wires.count(), 1, "seed {seed}");
            assert_eq!((node.heard.ups.len(), node.heard.downs.len()), (1, 0), "seed {seed}: node {n}");
            assert!(node.heard.refused.is_empty(), "seed {seed}: {:?}", node.heard.refused);
            assert!(node.said > 150, "seed {seed}: {}", node.said);
            assert_eq!(node.heard.counted, (1..=other.said).collect::<Vec<_>>(), "seed {seed}: node {n}");
        }
    }
    assert!(at_once > 50, "{at_once} times there were two");
}

/// Cut, reset and killed, three nodes come to one link for each two of them; what is lost is lost with a `Down`.
#[test]
fn one_link_is_left_after_cuts_resets_and_deaths() {
    let mut restarts = 0;
    for seed in 0..30 {
        let mut world = World::new(seed, 3);
        let mut rng = Rng::new(seed);
        for n in 0..3 {
            world.start(n, introduction(n as u16 + 1));
            world.dial_all(n);
        }
        for _ in 0..40 {
            world.run_us(rng.below(4_000_000));
            let (a, b) = [(0, 1), (0, 2), (1, 2)][rng.below(3) as usize];
            let now = world.now();
            match rng.below(4) {
                0 => world.net.borrow_mut().cut(a, b, now.plus_us(rng.below(50_000_000))),
                1 => world.net.borrow_mut().reset_between(a, b),
                2 => world.net.borrow_mut().delay(1 + rng.below(300_000)),
                _ => {
                    let me = world.nodes[a].wires_introduction();
                    world.kill(a);
                    world.run_us(rng.below(2_000_000));
                    world.start(a, Introduction { generation: me.generation + 1, ..me });
                    world.dial_all(a);
                    restarts += 1;
                }
            }
        }
        world.run_s(120);
        for n in 0..3 {
            let node = &world.nodes[n];
            let heard = &node.heard;
            assert_eq!(heard.ups.len() - heard.downs.len(), 2, "seed {seed}: node {n}");
            assert_eq!(node.wires.count(), 2, "seed {seed}: node {n}");
            // While nothing passes, nothing is heard.
            let is_cut =
                |why: &str| why.starts_with("it says no HELLO") || why.starts_with("it says nothing");
            assert!(heard.refused.iter().all(|(_, why, _)| is_cut(why)), "seed {seed}: {:?}", heard.refused);
            for other in (0..3).filter(|&other| other != n) {
                let up = heard.ups.iter().rfind(|up| up.peer.node == other as u16 + 1).unwrap();
                let generation = world.nodes[other].wires_introduction().generation;
                assert_eq!(up.generation, generation, "seed {seed}");
                assert_eq!(node.wires.peer(up.peer.node), Some(up.peer), "seed {seed}");
            }
        }
        // And it is one link, not one for each direction.
        for n in 0..3 {
            for other in (1..4u16).filter(|&other| other as usize != n + 1) {
                let peer = world.nodes[n].wires.peer(other).unwrap();
                world.nodes[n].heard.counted.clear();
                assert!(world.nodes[n].wires.send(peer, &PeerWord::Counted { batch: n as u64 }));
            }
        }
        world.run_s(5);
        for n in 0..3 {
            let mut counted = world.nodes[n].heard.counted.clone();
            counted.sort_unstable();
            let others: Vec<u64> = (0..3).filter(|&other| other != n as u64).collect();
            assert_eq!(counted, others, "seed {seed}: node {n}");
        }
    }
    assert!(restarts > 100, "{restarts}");
}

/// A list of addresses for all nodes has one's own in it, and some nodes have two.
#[test]
fn own_addresses_and_second_ones_make_no_link_and_no_noise() {
    let mut world = World::new(5, 3);
    for n in 0..2 {
        world.start(n, introduction(n as u16 + 1));
    }
    // Node 2 is reached under the third address, too.
    world.raws.push(Raw::passing(&world, 2, &address(1)));
    for n in 0..2 {
        world.dial_all(n);
        assert!(world.nodes[n].wires.dial(&address(n)));
    }
    world.run_s(120);
    for node in &world.nodes[..2] {
        assert_eq!(node.wires.count(), 1);
        assert_eq!((node.heard.ups.len(), node.heard.downs.len()), (1, 0), "{:?}", node.heard.downs);
        assert!(node.heard.refused.is_empty(), "{:?}", node.heard.refused);
    }
    assert!(world.raws[0].ups < 6, "{}", world.raws[0].ups);
    // A link that breaks is made again, and the second address is left alone meanwhile.
    let before = world.raws[0].ups;
    for round in 1..=10 {
        world.net.borrow_mut().reset_between(0, 1);
        world.run_s(10);
        assert!(world.nodes.iter().all(|node| node.heard.ups.len() == 1 + round && node.wires.count() == 1));
    }
    assert_eq!(world.raws[0].ups, before);
}

#[test]
fn a_peer_that_says_nothing_is_let_go() {
    let hello = PeerWord::Hello(introduction(2).hello()).bytes();
    let accept = PeerWord::TableAsk { epoch_known: 1 }.bytes();
    for (greeting, why) in [
        (Vec::new(), "it says no HELLO within 10 s"),
        (hello[..20].to_vec(), "it says no HELLO within 10 s"),
        (hello.clone(), "it says nothing within 10 s after HELLO"),
    ] {
        let mut world = World::new(6, 2);
        world.start(0, introduction(1));
        let mut raw = Raw::dialing(&world, 1, &address(0));
        raw.greeting = greeting;
        world.raws.push(raw);
        world.run_s(9);
        assert_eq!((world.nodes[0].heard.refused.len(), world.nodes[0].wires.count()), (0, 1));
        world.run_s(40);
        let told = &world.nodes[0].heard.refused;
        assert_eq!((told.len(), told[0].1.as_str()), (1, why));
    }
    let mut world = World::new(6, 2);
    world.start(0, introduction(1));
    let mut raw = Raw::dialing(&world, 1, &address(0));
    raw.greeting = [hello, accept].concat();
    world.raws.push(raw);
    world.run_s(14);
    let words = world.raws[0].words();
    assert_eq!(words, ["HELLO", "TABLE_ASK"], "its own, and that it keeps the link");
    world.run_s(3);
    assert_eq!(world.raws[0].words(), ["HELLO", "TABLE_ASK", "TABLE_ASK"], "it is sent something");
    world.run_s(12);
    assert!(world.nodes[0].heard.downs.is_empty());
    world.run_s(3);
    assert_eq!(world.nodes[0].heard.downs[0].1, "it is silent for 30 s");
}

#[test]
fn nodes_with_nothing_to_say_stay_linked() {
    let mut world = World::new(7, 2);
    world.start(0, introduction(1));
    world.start(1, introduction(2));
    world.dial_all(0);
    world.run_s(600);
    for node in &world.nodes {
        assert_eq!((node.heard.ups.len(), node.heard.downs.len()), (1, 0), "{:?}", node.heard.downs);
        assert!((20..100).contains(&node.heard.words.len()), "{} words", node.heard.words.len());
    }
}

/// An owner that did not look for a minute has heard nothing in it, which is nobody's silence.
#[test]
fn time_in_which_the_owner_does_not_look_is_not_silence() {
    let mut world = World::new(8, 2);
    world.start(0, introduction(1));
    let mut raw = Raw::dialing(&world, 1, &address(0));
    let hello = PeerWord::Hello(introduction(2).hello()).bytes();
    raw.greeting = [hello, PeerWord::TableAsk { epoch_known: 1 }.bytes()].concat();
    world.raws.push(raw);
    world.run_s(5);
    world.nodes[0].is_held_up = true;
    world.run_s(60);
    world.nodes[0].is_held_up = false;
    world.run_s(5);
    let heard = &world.nodes[0].heard;
    assert_eq!((heard.ups.len(), heard.downs.len()), (1, 0), "{:?}", heard.downs);
    world.run_s(30);
    assert_eq!(world.nodes[0].heard.downs.len(), 1);
}

#[test]
fn what_a_peer_does_not_read_is_bounded() {
    let mut world = World::new(9, 2).with_tls();
    world.start(0, introduction(1));
    world.start(1, introduction(2));
    world.dial_all(0);
    world.run_s(1);
    let peer = world.nodes[0].wires.peer(2).unwrap();
    // Its process stands still, so that nothing is read there.
    world.nodes[1].is_stopped = true;
    let mut sent = 0;
    for _ in 0..200 {
        while world.nodes[0].wires.has_room(peer) {
            sent += 1;
            assert!(world.nodes[0].wires.send(peer, &table(sent, 100_000)));
        }
        world.run_us(10_000);
    }
    let bytes = sent as usize * 100_000;
    assert!((PEER_UNSENT_MAX..PEER_UNSENT_MAX + 600_000).contains(&bytes), "{bytes}");
    assert!(!world.nodes[0].wires.has_room(peer));
    world.nodes[1].is_stopped = false;
    world.run_s(5);
    assert!(world.nodes[0].wires.has_room(peer));
    assert_eq!(world.nodes[1].heard.said().len(), sent as usize, "all of it arrives");
    // An owner that does not ask loses the link, and not its memory.
    world.nodes[1].is_stopped = true;
    let mut taken = 0;
    while world.nodes[0].wires.send(peer, &table(taken, 100_000)) {
        taken += 1;
        assert!(taken as usize * 100_000 < 2 * LINK_OUT_BYTES_MAX);
    }
    assert!(!world.nodes[0].wires.has_room(peer));
    world.run_s(1);
    let (down, why) = &world.nodes[0].heard.downs[0];
    assert_eq!(*down, peer);
    assert!(why.starts_with("it does not read: "), "{why}");
}

/// A node that floods is read as fast as its words are taken, and every one of them comes.
#[test]
fn a_flood_arrives_in_order_and_others_are_heard() {
    let mut world = World::new(10, 3);
    for n in 0..3 {
        world.start(n, introduction(n as u16 + 1));
        world.dial_all(n);
    }
    world.run_s(3);
    let peer = world.nodes[2].wires.peer(1).unwrap();
    let mut batch = 0;
    for round in 0..200 {
        while world.nodes[2].wires.has_room(peer) {
            batch += 1;
            assert!(world.nodes[2].wires.send(peer, &PeerWord::Counted { batch }));
        }
        let quiet = world.nodes[1].wires.peer(1).unwrap();
        assert!(world.nodes[1].wires.send(quiet, &PeerWord::StatusAsk { round }));
        world.run_us(20_000);
    }
    world.run_s(20);
    let heard = &world.nodes[0].heard;
    assert!(batch > 100_000, "{batch}");
    assert!(heard.counted.iter().copied().eq(1..=batch), "{} of {batch}", heard.counted.len());
    assert_eq!(heard.words.iter().filter(|(_, word)| word.starts_with("StatusAsk")).count(), 200);
    assert!(world.nodes.iter().all(|node| node.heard.downs.is_empty()));
}

/// A process that died without a word and came back: its old link is not waited for. What is older is refused.
#[test]
fn a_later_generation_replaces_a_link_at_once() {
    let mut world = World::new(11, 5);
    world.start(0, introduction(1));
    let accept = PeerWord::TableAsk { epoch_known: 1 }.bytes();
    let came = |world: &mut World, id: usize, generation: u32| {
        let hello = Introduction { generation, ..introduction(2) };
        let mut raw = Raw::dialing(world, id, &address(0));
        raw.greeting = [PeerWord::Hello(hello.hello()).bytes(), accept.clone()].concat();
        raw.once = true;
        world.raws.push(raw);
        world.run_s(1);
        let heard = &world.nodes[0].heard;
        (heard.ups.len(), heard.downs.len(), heard.refused.len(), world.nodes[0].wires.count())
    };
    assert_eq!(came(&mut world, 1, 4), (1, 0, 0, 1));
    assert_eq!(came(&mut world, 2, 5), (2, 1, 0, 1), "the later one");
    assert_eq!(world.nodes[0].heard.downs[0].1, "a newer link with it stands");
    assert_eq!(world.nodes[0].heard.order[..4], ["up 2", "word", "down 2", "up 2"]);
    assert_eq!(came(&mut world, 3, 4), (2, 1, 1, 1), "the earlier one");
    let why = "node 2 is linked in a later generation than 4: is it started twice?";
    assert_eq!(world.nodes[0].heard.refused[0].1, why);
    assert!(world.raws[2].words().contains(&"REFUSED"), "{:?}", world.raws[2].words());
    // The same generation again: within a moment both were made at once, later the peer has lost the link that we have.
    assert_eq!(came(&mut world, 4, 5), (2, 1, 1, 1), "at once");
    world.run_s(6);
    world.raws.pop();
    world.net.borrow_mut().forget_driver(4);
    assert_eq!(came(&mut world, 4, 5), (3, 2, 1, 1), "later");
}

#[test]
fn nodes_without_a_number_are_told_apart_by_their_links() {
    let mut world = World::new(12, 3);
    let joining = |n: usize| Introduction {
        node: 0,
        id: n as u64,
        joining: true,
        listen: address(n),
        ..introduction(9)
    };
    world.start(0, introduction(1));
    for n in [1, 2] {
        world.start(n, joining(n));
        world.dial_all(n);
    }
    world.run_s(3);
    let ups = world.nodes[0].heard.ups.clone();
    assert_eq!(ups.len(), 2);
    assert_ne!(ups[0].peer.link, ups[1].peer.link);
    assert!(ups.iter().all(|up| up.peer.node == 0) && world.nodes[0].wires.peer(0).is_none());
    for (n, up) in ups.iter().enumerate() {
        assert!(world.nodes[0].wires.send(up.peer, &PeerWord::Counted { batch: n as u64 }));
    }
    world.run_s(1);
    for up in &ups {
        let n = if up.listen == address(1) { 1 } else { 2 };
        let batch = ups.iter().position(|other| other.listen == up.listen).unwrap() as u64;
        assert_eq!(world.nodes[n].heard.counted, [batch]);
    }
    // They are given numbers: who they are changes, and their links with it.
    for n in [1, 2] {
        let number = n as u16 + 1;
        world.nodes[n].wires.introduce(Introduction {
            id: n as u64,
            listen: address(n),
            ..introduction(number)
        });
    }
    world.run_s(20);
    for (n, node) in world.nodes.iter().enumerate() {
        for other in (1..=3).filter(|&other| other != n as u16 + 1) {
            assert!(node.wires.peer(other).is_some(), "{n} has {other}");
        }
        assert_eq!(node.wires.count(), 2, "{n}");
        assert_eq!(node.heard.ups.len() - node.heard.downs.len(), 2);
    }
}

#[test]
fn a_peer_is_refused_by_its_owner_at_any_time_and_undialed() {
    let mut world = World::new(13, 2);
    world.start(0, introduction(1));
    world.start(1, introduction(2));
    world.dial_all(0);
    world.run_s(1);
    let peer = world.nodes[0].wires.peer(2).unwrap();
    world.nodes[0].wires.refuse(peer, "forgotten");
    world.nodes[0].wires.undial(&address(1));
    assert!(!world.nodes[0].wires.send(peer, &PeerWord::Counted { batch: 1 }));
    world.run_s(60);
    assert!(world.nodes[0].heard.downs.is_empty(), "the owner knows");
    assert_eq!(world.nodes[1].heard.downs[0].1, "it refuses this node: forgotten");
    assert_eq!((world.nodes[0].heard.ups.len(), world.nodes[1].heard.ups.len()), (1, 1));
}

#[test]
fn an_address_that_is_undialed_loses_its_link_and_is_dialed_no_more() {
    let mut world = World::new(14, 2);
    world.start(0, introduction(1));
    world.start(1, introduction(2));
    world.dial_all(0);
    world.run_s(1);
    world.nodes[0].wires.undial(&address(1));
    world.run_s(60);
    for node in &world.nodes {
        assert_eq!((node.heard.ups.len(), node.heard.downs.len(), node.wires.count()), (1, 1, 0));
    }
    world.dial_all(0);
    world.run_s(1);
    assert!(world.nodes.iter().all(|node| node.heard.ups.len() == 2));
}

/// The same over the kernel's sockets and links threads of their own.
#[test]
fn two_nodes_speak_over_loopback() {
    world::over_loopback();
}

#[test]
fn exactly_one_of_two_decides() {
    for (here, there) in [(0, 0), (0, 3), (3, 0), (1, 2), (2, 1)] {
        for dialed in [false, true] {
            let (a, b) = (introduction(here), introduction(there));
            assert_ne!(a.decides(&b, dialed), b.decides(&a, !dialed), "{here} {there} {dialed}");
        }
    }
}
