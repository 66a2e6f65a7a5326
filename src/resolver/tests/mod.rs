//! The resolver in virtual time, against name servers that follow a script.

mod world;

use super::lookup::Failure;
use super::*;
use crate::base::{Key, NetAsk, NetEvent, Now, Rng, Transport};
use crate::driver::{Reaction, Then};
use crate::proto::dns::made_up::{Heard, MadeUp};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use world::{Arrived, BOTH, World, config, no, refuse, say, soon, yes};

#[test]
fn both_kinds_are_asked_and_make_one_answer() {
    let mut world = World::new(config(1), |arrived, _| soon(arrived.heard.addresses(&BOTH, 60)));
    let (answer, ms) = world.answer("www.test");
    assert_eq!(answer, yes(&BOTH), "IPv4 first");
    assert!(ms <= 2);
    let log = world.log.borrow();
    assert_eq!(log.len(), 2);
    assert!(log.iter().all(|arrived| arrived.heard.edns && !arrived.tcp && arrived.heard.name == "www.test"));
    assert_ne!(log[0].heard.id, log[1].heard.id);
}

#[test]
fn ids_are_random() {
    let mut world = World::new(config(1), |arrived, _| soon(arrived.heard.addresses(&BOTH, 60)));
    for n in 0..100 {
        let _ = world.answer(&format!("{n}.test"));
    }
    let ids: HashSet<u16> = world.log.borrow().iter().map(|arrived| arrived.heard.id).collect();
    assert!(ids.len() > 190, "{} different ids of 200", ids.len());
}

#[test]
fn an_answer_is_kept_for_its_time() {
    let mut world = World::new(config(1), |arrived, _| soon(arrived.heard.addresses(&BOTH, 60)));
    let _ = world.answer("www.test");
    let at = world.now();
    world.run(at.plus_ms(59_000));
    assert_eq!(world.ask("www.test"), Asked::Known(yes(&BOTH)));
    assert_eq!(world.log.borrow().len(), 2, "nobody was asked");
    world.run(at.plus_ms(60_100));
    let _ = world.answer("www.test");
    assert_eq!(world.log.borrow().len(), 4);
}

#[test]
fn equal_questions_wait_for_one_answer() {
    let mut world =
        World::new(config(1), |arrived, _| vec![say(900_000, arrived.heard.addresses(&BOTH, 60))]);
    for ms in [0, 10, 500] {
        world.run(Now::ZERO.plus_ms(ms));
        assert_eq!(world.ask("www.test"), Asked::Pending);
    }
    world.run(Now::NEVER);
    assert_eq!(world.answers.len(), 1);
    assert_eq!(world.log.borrow().len(), 2);
}

#[test]
fn what_is_lost_is_asked_for_again() {
    for servers in [1, 3] {
        let mut lost = 2;
        let mut world = World::new(config(servers), move |arrived, _| {
            lost -= i32::from(lost > 0);
            if lost > 0 || arrived.at < Now::from_us(1_000_000) {
                return Vec::new();
            }
            soon(arrived.heard.addresses(&BOTH, 60))
        });
        let (answer, ms) = world.answer("www.test");
        assert_eq!(answer, yes(&BOTH));
        assert!((2_000..2_100).contains(&ms), "{ms}");
        assert_eq!(world.tries(), [(1, false), (if servers == 1 { 1 } else { 2 }, false)]);
    }
}

#[test]
fn a_late_answer_is_an_answer() {
    let mut world = World::new(config(2), |arrived, _| match arrived.server {
        1 => vec![say(2_900_000, arrived.heard.addresses(&BOTH, 60))],
        _ => Vec::new(),
    });
    let (answer, ms) = world.answer("www.test");
    assert_eq!(answer, yes(&BOTH));
    assert!((2_900..2_960).contains(&ms), "{ms}");
    assert_eq!(world.tries(), [(1, false), (2, false)], "meanwhile the other was asked");
}

#[test]
fn an_answer_counts_once() {
    let mut world = World::new(config(1), |arrived, _| {
        let answer = arrived.heard.addresses(&BOTH, 60);
        (0..5).map(|n| say(1_000 * n, answer.clone())).collect()
    });
    assert_eq!(world.answer("www.test").0, yes(&BOTH));
}

#[test]
fn forged_answers_are_passed_over() {
    let mut world = World::new(config(1), |arrived, _| {
        let mut other_id = arrived.heard.addresses(&["203.0.113.1", "2001:db8::bad"], 60);
        other_id[0] ^= 0x55;
        let mut other_name = arrived.heard.addresses(&["203.0.113.2", "2001:db8::bad"], 60);
        other_name[13] ^= 1;
        let truth = arrived.heard.addresses(&BOTH, 60);
        vec![
            say(100, other_id),
            say(200, other_name),
            say(250, vec![]),
            say(300, vec![0; 5]),
            say(1_500_000, truth),
        ]
    });
    let (answer, ms) = world.answer("www.test");
    assert_eq!(answer, yes(&BOTH));
    assert!((1_500..1_520).contains(&ms), "{ms}");
    assert_eq!(world.tries(), [(1, false)]);
}

#[test]
fn where_somebody_guesses_tcp_is_used() {
    let mut world = World::new(config(1), |arrived, _| {
        if arrived.tcp {
            return soon(arrived.heard.addresses(&BOTH, 60));
        }
        let forged = |n: u16| {
            let mut forged = arrived.heard.addresses(&["203.0.113.1", "2001:db8::bad"], 60);
            let id = arrived.heard.id.wrapping_add(n);
            forged[..2].copy_from_slice(&id.to_be_bytes());
            say(u64::from(n), forged)
        };
        (1..200).map(forged).collect()
    });
    assert_eq!(world.answer("www.test").0, yes(&BOTH));
    assert_eq!(world.tries(), [(1, false), (1, true)]);
}

#[test]
fn an_answer_that_tells_nothing_is_asked_for_over_tcp() {
    let truncated = |heard: &Heard| heard.answer(&MadeUp { truncated: true, ..MadeUp::default() });
    let spelled = |heard: &Heard| {
        let mut answer = heard.addresses(&["203.0.113.1", "2001:db8::bad"], 60);
        answer[13] ^= 0x20;
        answer
    };
    let cut = |heard: &Heard| {
        let mut answer = heard.addresses(&["203.0.113.1", "2001:db8::bad"], 60);
        answer.truncate(answer.len() - 3);
        answer
    };
    let unfit: [fn(&Heard) -> Vec<u8>; 3] = [truncated, spelled, cut];
    for unfit in unfit {
        let mut world = World::new(config(1), move |arrived, _| {
            if !arrived.tcp {
                return soon(unfit(&arrived.heard));
            }
            // Some 40 KB, of which the first addresses count.
            let addresses = (0..1_000u32).map(|n| {
                let ip = match arrived.heard.wants_v6 {
                    true => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n as u16]),
                    false => IpAddr::from((0xc000_0200 + n).to_be_bytes()),
                };
                (arrived.heard.name.clone(), ip, 60)
            });
            soon(arrived.heard.answer(&MadeUp { addresses: addresses.collect(), ..MadeUp::default() }))
        });
        let (answer, ms) = world.answer("www.test");
        let answer = answer.unwrap();
        assert_eq!((answer.len(), answer[0]), (16, IpAddr::from([192, 0, 2, 0])));
        assert!(ms < 2_000, "{ms}");
        assert_eq!(world.tries(), [(1, false), (1, true)]);
    }
}

#[test]
fn tcp_that_fails_leads_to_the_next_server() {
    for silent in [false, true] {
        let mut world = World::new(config(2), move |arrived, _| match (arrived.server, arrived.tcp) {
            (1, false) => soon(arrived.heard.answer(&MadeUp { truncated: true, ..MadeUp::default() })),
            (1, true) if silent => Vec::new(),
            (1, true) => vec![Reaction { after_us: 10, then: Then::End }],
            _ => soon(arrived.heard.addresses(&BOTH, 60)),
        });
        let (answer, ms) = world.answer("www.test");
        assert_eq!(answer, yes(&BOTH));
        assert_eq!(world.tries(), [(1, false), (1, true), (2, false)]);
        assert_eq!(silent, ms >= 2_000, "{ms}");
    }
}

#[test]
fn a_server_that_is_down_is_asked_last() {
    let mut world = World::new(config(2), |arrived, _| match arrived.server {
        1 => refuse(),
        _ => soon(arrived.heard.addresses(&BOTH, 60)),
    });
    let (answer, ms) = world.answer("0.test");
    assert_eq!(answer, yes(&BOTH));
    assert!(ms < 20, "the refusal is not waited out: {ms}");
    assert_eq!(world.tries(), [(1, false), (2, false)]);
    let _ = world.answer("1.test");
    let before = world.tries().len();
    let _ = world.answer("2.test");
    assert_eq!(world.tries()[before..], [(2, false)]);
}

#[test]
fn a_server_that_cannot_say_is_followed_by_the_next() {
    for (rcode, referral) in [(2, false), (5, false), (9, false), (0, true)] {
        let script = move |good: u8| {
            move |arrived: &Arrived, _: &mut Rng| {
                if arrived.server == good {
                    return soon(arrived.heard.addresses(&BOTH, 60));
                }
                soon(arrived.heard.answer(&MadeUp { rcode, referral, ..MadeUp::default() }))
            }
        };
        let mut world = World::new(config(3), script(3));
        let (answer, ms) = world.answer("www.test");
        assert_eq!(answer, yes(&BOTH));
        assert!(ms < 20);
        assert_eq!(world.tries(), [(1, false), (2, false), (3, false)]);
        let mut world = World::new(config(2), script(0));
        assert_eq!(world.answer("www.test").0, no(Failure::ServersFailed));
        assert_eq!(world.tries().len(), 4);
        let at = world.now();
        assert_eq!(world.ask("www.test"), Asked::Known(no(Failure::ServersFailed)));
        world.run(at.plus_ms(5_100));
        assert_eq!(world.ask("www.test"), Asked::Pending, "remembered for a moment only");
    }
}

#[test]
fn servers_without_edns_are_asked_without() {
    let mut world = World::new(config(1), |arrived, _| {
        if arrived.heard.edns {
            return soon(arrived.heard.answer(&MadeUp { rcode: 1, ..MadeUp::default() }));
        }
        soon(arrived.heard.addresses(&BOTH, 60))
    });
    assert_eq!(world.answer("www.test").0, yes(&BOTH));
    let mut world = World::new(config(1), |arrived, _| {
        soon(arrived.heard.answer(&MadeUp { rcode: 4, ..MadeUp::default() }))
    });
    assert_eq!(world.answer("www.test").0, no(Failure::ServersFailed));
    assert_eq!(world.tries().len(), 3);
}

#[test]
fn silence_ends() {
    for servers in [1, 3] {
        let mut world = World::new(config(servers), |_, _| Vec::new());
        let (answer, ms) = world.answer("www.test");
        assert_eq!(answer, no(Failure::TimedOut));
        // Two seconds in the first round, four in the second.
        let expected = 6_000 * u64::from(servers);
        assert!((expected..expected + 100).contains(&ms), "{ms}");
        assert_eq!(world.tries().len(), usize::from(servers) * 2);
    }
}

#[test]
fn no_such_name_is_final() {
    for v6_first in [false, true] {
        let mut world = World::new(config(1), move |arrived, _| {
            if arrived.heard.wants_v6 == v6_first {
                return soon(arrived.heard.answer(&MadeUp {
                    rcode: 3,
                    soa: Some((9, 9)),
                    ..MadeUp::default()
                }));
            }
            Vec::new()
        });
        let (answer, ms) = world.answer("www.test");
        assert_eq!(answer, no(Failure::NoSuchName));
        assert!(ms < 10);
        let at = world.now();
        world.run(at.plus_ms(8_900));
        assert_eq!(world.ask("www.test"), Asked::Known(no(Failure::NoSuchName)));
        world.run(at.plus_ms(9_010));
        assert_eq!(world.ask("www.test"), Asked::Pending);
    }
}

#[test]
fn a_name_may_have_no_address() {
    let mut world = World::new(config(1), |arrived, _| soon(arrived.heard.addresses(&[], 60)));
    assert_eq!(world.answer("www.test").0, no(Failure::NoAddress));
}

#[test]
fn ipv4_waits_for_ipv6_only_a_moment() {
    for (v6_after_us, answer, ms_min, ms_max) in
        [(30_000, &BOTH[..], 30, 35), (1_000_000, &BOTH[..1], 50, 60), (u64::MAX, &BOTH[..1], 50, 60)]
    {
        let mut world = World::new(config(1), move |arrived, _| match arrived.heard.wants_v6 {
            true if v6_after_us == u64::MAX => Vec::new(),
            true => vec![say(v6_after_us, arrived.heard.addresses(&BOTH, 60))],
            false => soon(arrived.heard.addresses(&BOTH, 60)),
        });
        let (found, ms) = world.answer("www.test");
        assert_eq!(found, yes(answer));
        assert!((ms_min..=ms_max).contains(&ms), "{ms}");
    }
    // The other way round there is nothing yet to go on with.
    let mut world = World::new(config(1), |arrived, _| match arrived.heard.wants_v6 {
        true => soon(arrived.heard.addresses(&BOTH, 60)),
        false => vec![say(700_000, arrived.heard.addresses(&BOTH, 60))],
    });
    let (found, ms) = world.answer("www.test");
    assert_eq!(found, yes(&BOTH));
    assert!((700..720).contains(&ms), "{ms}");
}

#[test]
fn bounds_hold() {
    let mut world = World::new(config(1), |arrived, _| soon(arrived.heard.addresses(&BOTH, 60)));
    for n in 0..50 {
        assert_eq!(world.ask(&format!("{n}.test")), Asked::Pending);
    }
    assert_eq!(world.ask("50.test"), Asked::Full, "names open");
    assert_eq!(world.ask("7.test"), Asked::Pending, "one that is open needs no room");
    world.run(Now::NEVER);
    assert_eq!(world.answers.len(), 50);
    for n in 50..400 {
        world.ask(&format!("{n}.test"));
        world.run(world.now().plus_ms(10));
    }
    assert_eq!(world.resolver.cached(), 100, "answers kept");
    let few = ResolverConfig { sockets_max: 5, ..config(1) };
    let mut world = World::new(few, |_, _| Vec::new());
    assert_eq!(world.ask("0.test"), Asked::Pending);
    assert_eq!(world.ask("1.test"), Asked::Pending);
    assert_eq!(world.ask("2.test"), Asked::Full, "sockets");
    world.run(Now::NEVER);
    assert_eq!(world.answers.len(), 2, "answered, though tries found no socket");
    assert!(world.answers.iter().all(|(at, ..)| at.us() <= world.resolver.answered_within_us() + 2_000));
    assert_eq!(world.resolver.conns(), 0);
}

/// A server's receive buffer is not run over: who is not answered is not followed by many more at once.
#[test]
fn questions_come_in_no_bursts() {
    let many = ResolverConfig { lookups_max: 1_000, sockets_max: 4_000, ..config(1) };
    let mut world = World::new(many.clone(), |_, _| Vec::new());
    let ask = |world: &mut World, from: usize| {
        (from..1_000).find(|n| world.ask(&format!("{n}.test")) == Asked::Full)
    };
    assert_eq!(ask(&mut world, 0), Some(128));
    assert!(world.resolver.next_due().unwrap() <= Now::ZERO.plus_ms(20), "somebody may be waiting");
    world.run(Now::ZERO.plus_ms(19));
    assert_eq!(ask(&mut world, 128), Some(128));
    world.run(Now::ZERO.plus_ms(20));
    assert_eq!(ask(&mut world, 128), Some(256), "the silent ones are no longer fresh");
    let mut world = World::new(many, |arrived, _| soon(arrived.heard.addresses(&BOTH, 60)));
    assert_eq!(ask(&mut world, 0), Some(128));
    world.run(Now::ZERO.plus_ms(3));
    assert_eq!(ask(&mut world, 128), Some(256), "an answer makes room at once");
}

#[test]
fn what_cannot_be_asked_is_known_at_once() {
    let mut world = World::new(config(1), |_, _| Vec::new());
    for name in ["", "a..b", &"x".repeat(64)] {
        assert_eq!(world.ask(name), Asked::Known(no(Failure::BadName)));
    }
    assert_eq!(world.resolver.conns(), 0);
}

/// Servers that do anything at all: every name is answered, once, in time, and never with what nobody said.
#[test]
fn every_name_is_answered_once_and_in_time() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let servers = 1 + rng.below(4) as u8;
        let sockets_max = [12, 60, 400][rng.below(3) as usize];
        let config = ResolverConfig { sockets_max, attempts: 1 + rng.below(3) as u8, ..config(servers) };
        let mut world = World::seeded(config, seed, |arrived, rng| {
            let heard = &arrived.heard;
            let mut answer = match rng.below(12) {
                0 => heard.answer(&MadeUp { rcode: rng.below(8) as u8, ..MadeUp::default() }),
                1 => heard.answer(&MadeUp { truncated: true, ..MadeUp::default() }),
                2 => return refuse(),
                3 => return Vec::new(),
                4 => heard.addresses(&[], 60),
                5 => return vec![Reaction { after_us: rng.below(9_000), then: Then::End }],
                _ => heard.addresses(&BOTH, rng.below(10) as u32),
            };
            let harm = rng.below(8);
            if harm == 0 {
                let at = rng.below(answer.len() as u64) as usize;
                // What is said about an address is left alone: nobody could tell.
                if at < 30 {
                    answer[at] ^= 1 << rng.below(8);
                }
            }
            if harm == 1 {
                answer.truncate(rng.below(answer.len() as u64) as usize);
            }
            let after_us = 1 << rng.below(23);
            (0..=rng.below(3)).map(|_| say(after_us + rng.below(5_000), answer.clone())).collect()
        });
        let mut asked: HashMap<Box<str>, Now> = HashMap::new();
        let (mut answered, mut turned_away) = (0, 0);
        let bound_us = world.resolver.answered_within_us() + 3_000;
        for turn in 0..400 {
            let name: Box<str> = format!("{}.test", rng.below(60)).into();
            let (open_before, now) = (asked.contains_key(&name), world.now());
            match world.ask(&name) {
                Asked::Pending => {
                    asked.entry(name).or_insert(now);
                }
                Asked::Known(_) => assert!(!open_before, "seed {seed}: known while open"),
                Asked::Full => turned_away += 1,
            }
            let pause_us = rng.below(200_000);
            world.run(if turn == 399 { Now::NEVER } else { now.plus_us(pause_us) });
            for (at, name, answer) in world.answers.drain(..) {
                let since = asked.remove(&name).unwrap_or_else(|| panic!("seed {seed}: {name} was not open"));
                assert!(at.since_us(since) <= bound_us, "seed {seed}: {name} took {}", at.since_us(since));
                for ip in answer.as_deref().unwrap_or_default() {
                    assert!(BOTH.contains(&&*ip.to_string()), "seed {seed}: {ip} was never said");
                }
                answered += 1;
            }
            assert!(world.resolver.conns() <= sockets_max, "seed {seed}");
        }
        assert!(asked.is_empty(), "seed {seed}: never answered: {asked:?}");
        assert_eq!((world.resolver.open(), world.resolver.conns()), (0, 0), "seed {seed}");
        assert!(answered > 20, "seed {seed}: {answered} answered, {turned_away} turned away");
    }
}

/// A socket's last words may come after its question was answered.
#[test]
fn what_comes_after_letting_go_is_passed_over() {
    let mut resolver = Resolver::new(config(1), Now::ZERO, 3);
    let mut out = Vec::new();
    resolver.ask("www.test", Now::ZERO, &mut out);
    let conns: Vec<Key> = out
        .drain(..)
        .map(|action| match action {
            Action::Net(NetAsk::Connect { conn, transport: Transport::Udp, .. }) => conn,
            other => panic!("{other:?}"),
        })
        .collect();
    resolver.step(conns[0], NetEvent::Connected, Now::ZERO, &mut out);
    let Some(Action::Net(NetAsk::Send { bytes, .. })) = out.pop() else { panic!() };
    let answer = Heard::read(&bytes).answer(&MadeUp { rcode: 3, ..MadeUp::default() });
    resolver.step(conns[0], NetEvent::Received(&answer), Now::ZERO, &mut out);
    assert!(matches!(out.last(), Some(Action::Answer { .. })));
    out.clear();
    for conn in conns {
        resolver.step(conn, NetEvent::Connected, Now::ZERO, &mut out);
        resolver.step(conn, NetEvent::Received(&answer), Now::ZERO, &mut out);
        resolver.step(conn, NetEvent::Failed(crate::base::NetError::Refused), Now::ZERO, &mut out);
        resolver.step(conn, NetEvent::Closed, Now::ZERO, &mut out);
    }
    assert!(out.is_empty() && resolver.conns() == 0);
}
