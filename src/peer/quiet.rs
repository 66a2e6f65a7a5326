//! Whether all is done everywhere: Mattern's four counters, asked twice.
//!
//! A round asks every member how it stands, and a round begins only when the one before is complete. Between two answers of a
//! member that are the same, it received nothing, so it did not wake up; and it sent nothing. If every member was idle, and all
//! that it sent was counted where it went, then at the end of the first round nobody worked and nothing was on its way. One round
//! is not enough: who is asked early may be woken by one who is asked late and idle by then.

use crate::base::SortedMap;
use crate::limits::PEER_NODES_MAX;
use crate::proto::peer_wire::Status;

/// How a member stands, all of it read at one moment. `received` grows before the work that it makes is done, and before it is
/// counted at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Nothing is pending and nothing open.
    pub idle: bool,
    /// Messages sent, and those of them that their receivers counted as durable.
    pub sent: u64,
    pub counted: u64,
    /// Messages that came, and were durable before they were counted. What is typed here is pending at once.
    pub received: u64,
    /// What is still to be sent.
    pub outbox: u64,
    /// Of the table that it goes by.
    pub epoch: u64,
}

impl Counters {
    /// What a status says of them.
    pub fn of(status: &Status) -> Counters {
        let Status { pending, open, sent, counted, received, outbox, epoch, .. } = *status;
        Counters { idle: pending == 0 && open == 0, sent, counted, received, outbox, epoch }
    }
}

/// A member, as the table knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: u16,
    pub generation: u32,
}

/// Asks for the statuses of all members, round by round.
#[derive(Clone, Debug, Default)]
pub struct Quiet {
    round: u64,
    /// By node: its generation, and its counters in the round before and in this one.
    members: SortedMap<u16, Rounds>,
    quiet: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rounds {
    generation: u32,
    before: Option<Counters>,
    current: Option<Counters>,
}

impl Quiet {
    pub fn new() -> Quiet {
        Quiet::default()
    }

    /// Who is asked. If that has changed, what was heard so far says nothing.
    pub fn members(&mut self, members: &[Member]) {
        let same = members.len() == self.members.len()
            && members.iter().all(|member| {
                self.members.get(&member.node).is_some_and(|known| known.generation == member.generation)
            });
        if !same {
            let rounds =
                |member: &Member| Rounds { generation: member.generation, before: None, current: None };
            self.members =
                members.iter().take(PEER_NODES_MAX).map(|member| (member.node, rounds(member))).collect();
            self.round += 1;
            self.quiet = false;
        }
    }

    /// The round that members are to be asked in: an answer that was given to an earlier one is not taken.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// All of them.
    pub fn asked(&self) -> impl Iterator<Item = u16> {
        self.members.keys().copied()
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Members that have not answered in this round.
    pub fn missing(&self) -> impl Iterator<Item = u16> {
        self.members.iter().filter(|(_, rounds)| rounds.current.is_none()).map(|(node, _)| *node)
    }

    /// Takes a status that answers `STATUS_ASK`; one that was not asked for changes nothing. True as in [`Quiet::heard`].
    pub fn told(&mut self, status: &Status) -> bool {
        let member = Member { node: status.node, generation: status.generation };
        self.heard(member, status.round, Counters::of(status))
    }

    /// Takes the counters that a member had when it was asked in `round`. True if a round has ended with it, so that the next one
    /// may be asked.
    pub fn heard(&mut self, member: Member, round: u64, counters: Counters) -> bool {
        let Some(rounds) = self.members.get_mut(&member.node) else { return false };
        if round != self.round || rounds.generation != member.generation || rounds.current.is_some() {
            return false;
        }
        rounds.current = Some(counters);
        if self.missing().next().is_some() {
            return false;
        }
        // Of a partition that moved, one of the two who go by different tables may think that it is the other's.
        let epoch = self.members.values().find_map(|rounds| rounds.current).map_or(0, |at| at.epoch);
        let done = |at: Counters| at.idle && at.outbox == 0 && at.sent == at.counted && at.epoch == epoch;
        self.quiet = self
            .members
            .values()
            .all(|rounds| rounds.before == rounds.current && rounds.current.is_some_and(done));
        for rounds in self.members.values_mut() {
            rounds.before = rounds.current.take();
        }
        self.round += 1;
        true
    }

    /// Messages that a member had received when it was asked in the last round that ended.
    pub fn received(&self, node: u16) -> Option<u64> {
        self.members.get(&node)?.before.map(|counters| counters.received)
    }

    /// Whether all was done at the end of the last round but one. It stays so until a member is told something from outside,
    /// which a later round sees; that member sees it at once by what it has [`received`](Quiet::received).
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }
}
