//! Acceptor and proposer by themselves: what is said, kept and refused.

use super::register::{PACE, REGISTER, value, voters};
use crate::base::{Now, Rng};
use crate::limits::REGISTER_BYTES_MAX;
use crate::peer::register::{
    Acceptor, Answer, Ask, Ballot, Busy, Change, Kept, KeptError, Outcome, Proposer, Register, Reply,
    Request, Step,
};
use std::sync::Arc;

/// Delivers everything at once, to the voters that are there.
fn settle(proposer: &mut Proposer, acceptors: &mut [Acceptor], step: Step) -> (Option<Outcome>, u32) {
    let (mut step, mut rounds, mut rng) = (step, 0, Rng::new(1));
    while step.outcome.is_none() && !step.sends.is_empty() {
        rounds += 1;
        let answers: Vec<(u16, Answer)> = step
            .sends
            .drain(..)
            .filter_map(|(to, request)| {
                let acceptor = acceptors.get_mut(usize::from(to) - 1)?;
                Some((to, acceptor.handle(request).answer))
            })
            .collect();
        for (from, answer) in answers {
            let more = proposer.receive(from, answer, Now::ZERO, &mut rng);
            step.sends.extend(more.sends);
            step.outcome = step.outcome.or(more.outcome);
        }
    }
    (step.outcome, rounds)
}

#[test]
fn a_single_writer_needs_one_round_trip_after_its_first() {
    let mut acceptors: Vec<Acceptor> = voters(3).iter().map(|voter| Acceptor::open(voter.disk, [])).collect();
    let mut proposer = Proposer::new(Register::Beat(7), 7, 1, voters(3), PACE);
    let mut trips = Vec::new();
    for n in 0..4 {
        let swap = Change::Swap { expect: value(n), new: value(n + 1) };
        let step = proposer.begin(swap, Now::ZERO, Now::NEVER).unwrap();
        assert_eq!(proposer.begin(Change::Read, Now::ZERO, Now::NEVER), Err(Busy));
        let (outcome, rounds) = settle(&mut proposer, &mut acceptors, step);
        assert_eq!(outcome, Some(Outcome::Swapped));
        trips.push(rounds);
    }
    assert_eq!(trips, [2, 1, 1, 1]);
    // Another reader takes the promise away; after that all is found again.
    let mut reader = Proposer::new(Register::Beat(7), 8, 1, voters(3), PACE);
    let step = reader.begin(Change::Read, Now::ZERO, Now::NEVER).unwrap();
    assert_eq!(settle(&mut reader, &mut acceptors, step).0, None, "a higher ballot was promised");
    let mut rng = Rng::new(2);
    let step = reader.tick(reader.next_due().unwrap(), &mut rng);
    assert_eq!(settle(&mut reader, &mut acceptors, step).0, Some(Outcome::Read(value(4))));
    let swap = Change::Swap { expect: value(3), new: value(9) };
    let step = proposer.begin(swap, Now::ZERO, Now::NEVER).unwrap();
    assert_eq!(settle(&mut proposer, &mut acceptors, step).0, None);
    let step = proposer.tick(proposer.next_due().unwrap(), &mut rng);
    assert_eq!(settle(&mut proposer, &mut acceptors, step).0, Some(Outcome::Differs(value(4))));
}

#[test]
fn without_a_majority_nothing_is_done_and_what_was_sent_out_is_not_known() {
    let mut acceptors = vec![Acceptor::open(101, [])];
    let mut rng = Rng::new(1);
    let mut proposer = Proposer::new(REGISTER, 9, 1, voters(3), PACE);
    let deadline = Now::from_us(1_000_000);
    let step = proposer.begin(Change::Read, Now::ZERO, deadline).unwrap();
    assert_eq!(settle(&mut proposer, &mut acceptors, step).0, None);
    let again = proposer.tick(proposer.next_due().unwrap(), &mut rng);
    assert_eq!(again.sends.len(), 2, "who answered is not asked again");
    assert_eq!(proposer.tick(deadline, &mut rng).outcome, Some(Outcome::NotDone));

    let mut all: Vec<Acceptor> = voters(3).iter().map(|voter| Acceptor::open(voter.disk, [])).collect();
    let step = proposer.begin(Change::Read, Now::ZERO, deadline).unwrap();
    assert_eq!(settle(&mut proposer, &mut all, step).0, Some(Outcome::Read(None)));
    let swap = Change::Swap { expect: None, new: value(1) };
    let step = proposer.begin(swap, Now::ZERO, deadline).unwrap();
    assert!(matches!(step.sends[0].1.ask, Ask::Accept { .. }));
    assert_eq!(proposer.tick(deadline, &mut rng).outcome, Some(Outcome::Unknown));
}

#[test]
fn a_voter_says_only_what_its_disk_has_and_refuses_what_it_does_not_know() {
    let mut acceptor = Acceptor::open(5, []);
    let ballot = Ballot::NONE.above(3, 1);
    let later = ballot.above(2, 1);
    let ask = |disk, ask| Request { register: Register::Beat(3), disk, ask };
    let stranger = acceptor.handle(ask(6, Ask::Prepare { ballot }));
    assert_eq!((stranger.durable, stranger.answer.reply), (None, Reply::Refused));
    assert!(acceptor.kept(Register::Beat(3)).is_none());
    let promised = acceptor.handle(ask(5, Ask::Prepare { ballot }));
    assert_eq!(promised.durable.unwrap().1.promise(), ballot);
    let again = acceptor.handle(ask(5, Ask::Prepare { ballot }));
    assert_eq!((again.durable, again.answer.reply), (None, promised.answer.reply));
    let accept = Ask::Accept { ballot, value: value(4), then: later };
    let accepted = acceptor.handle(ask(5, accept.clone()));
    let kept = accepted.durable.unwrap().1;
    assert_eq!((kept.promise(), kept.accepted().ballot), (later, ballot));
    assert_eq!(acceptor.handle(ask(5, accept)).answer.reply, Reply::Accepted, "it is true a second time");
    let low = acceptor.handle(ask(5, Ask::Prepare { ballot }));
    assert_eq!((low.durable, low.answer.reply), (None, Reply::Later { promised: later }));
    let large = Some(Arc::from(vec![0; REGISTER_BYTES_MAX + 1]));
    let large = acceptor.handle(ask(5, Ask::Accept { ballot: later, value: large, then: later }));
    assert_eq!((large.durable, large.answer.reply), (None, Reply::Refused));
}

#[test]
fn bytes_of_a_register_are_read_or_refused() {
    let mut acceptor = Acceptor::open(5, []);
    let ballot = Ballot::NONE.above(3, 1);
    let accept = Ask::Accept { ballot, value: value(4), then: ballot.above(3, 1) };
    let kept = acceptor.handle(Request { register: REGISTER, disk: 5, ask: accept }).durable.unwrap().1;
    let bytes = kept.encode();
    assert_eq!(Kept::decode(&bytes).unwrap(), kept);
    for end in 0..bytes.len() - 1 {
        assert_eq!(Kept::decode(&bytes[..end]), Err(KeptError::Length));
    }
    let mut other = bytes.clone();
    other[0] = 9;
    assert_eq!(Kept::decode(&other), Err(KeptError::Version(9)));
    let mut turned = bytes;
    turned[2..12].fill(0);
    assert_eq!(Kept::decode(&turned), Err(KeptError::Order));
}

#[test]
fn ballots_of_two_starts_never_meet() {
    let old = Ballot::NONE.above(4, 7);
    let new = Ballot::NONE.above(4, 8);
    assert!(old != new && old.above(4, 7) > new && new.above(4, 8) > old);
    let top = Ballot { round: u64::MAX, node: u16::MAX };
    assert!(top.above(1, 1) <= top, "at the end of all rounds nothing wraps");
}
