//! From one voter to three: the one step in which the voters change.
//!
//! ```text
//!   sole voter 1 is to accept table T' {voters 1, a, b} ── held back
//!      ── ACCEPT T' ──► a, b     each keeps it on its disk, under the name that it has among 1, a and b
//!      ◄── ACCEPTED ──  both
//!   1 accepts T' and has the same name from now on: that is the moment in which it is so
//! ```
//!
//! Nobody asks a and b about T' before 1 has accepted it, since nobody knows it. From then on every majority of the three has it,
//! and whoever still goes by one voter is refused by it, since it has another name.

use super::register::{Answer, Ask, Ballot, Kept, Register, Reply, Request, Voter};
use super::table::Table;
use crate::base::{Now, SortedMap};
use xxhash_rust::xxh3::xxh3_64;

/// The number under which a voter is asked: of its disk, and of all who vote with it. Who goes by other voters, or means a disk
/// that was lost, is refused.
pub fn voter_name(id: u64, voters: &[u16]) -> u64 {
    let voters = voters.iter().flat_map(|voter| voter.to_le_bytes());
    xxh3_64(&id.to_le_bytes().into_iter().chain(voters).collect::<Vec<u8>>())
}

/// The voters of a table, as they are asked.
pub fn voters_of(table: &Table) -> Vec<Voter> {
    let id_of = |node: u16| table.node(node).map_or(0, |known| known.id);
    let name = |&node: &u16| Voter { node, disk: voter_name(id_of(node), table.voters()) };
    table.voters().iter().map(name).collect()
}

/// A table that the sole voter holds back until those who are to vote with it have it.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    /// Who proposed it, and what.
    pub from: u16,
    pub request: Request,
    ballot: Ballot,
    /// What those who do not have it yet are asked.
    missing: SortedMap<u16, Request>,
    resend_at: Now,
    deadline: Now,
}

impl Growth {
    /// `table` is what `request` offers to the sole voter `me`. Nothing if it offers nothing.
    pub fn new(me: u16, from: u16, request: Request, table: &Table, deadline: Now) -> Option<Growth> {
        let Ask::Accept { ballot, value, .. } = &request.ask else { return None };
        let ask = Ask::Accept { ballot: *ballot, value: value.clone(), then: *ballot };
        let asked = |voter: Voter| {
            (voter.node, Request { register: Register::Table, disk: voter.disk, ask: ask.clone() })
        };
        let others = voters_of(table).into_iter().filter(|voter| voter.node != me);
        let (ballot, missing) = (*ballot, others.map(asked).collect());
        Some(Growth { from, request, ballot, missing, resend_at: Now::ZERO, deadline })
    }

    pub fn is_of(&self, ballot: Ballot) -> bool {
        self.ballot == ballot
    }

    /// Takes an answer. True if it was for this.
    pub fn answered(&mut self, from: u16, answer: &Answer) -> bool {
        let is_its = answer.register == Register::Table && answer.ballot == self.ballot;
        let is_its = is_its && self.missing.contains_key(&from);
        if is_its && answer.reply == Reply::Accepted {
            self.missing.remove(&from);
        }
        is_its
    }

    /// All of them have it.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    pub fn is_over(&self, now: Now) -> bool {
        now >= self.deadline
    }

    /// Those who are to be asked, perhaps again.
    pub fn ask(&mut self, now: Now, resend_us: u64) -> Vec<(u16, Request)> {
        if now < self.resend_at {
            return Vec::new();
        }
        self.resend_at = now.plus_us(resend_us);
        self.missing.iter().map(|(&node, request)| (node, request.clone())).collect()
    }

    pub fn next_due(&self) -> Now {
        self.resend_at.min(self.deadline)
    }
}

/// The table that a node begins with: the last that it knew; or, of a sole voter that died before it could tell anybody, the one
/// that it accepted, which counts since it voted alone.
pub fn table_at_start(
    node: u16,
    told: Option<Table>,
    registers: &SortedMap<Register, Kept>,
) -> Option<Table> {
    let voted_alone = told.as_ref().is_some_and(|told| told.voters() == [node]);
    accepted_table(registers).filter(|_| voted_alone).or(told)
}

/// The name by which a node is asked from its start on: by what it accepted, or by the table that it begins with.
pub fn name_at_start((node, id): (u16, u64), table: &Table, registers: &SortedMap<Register, Kept>) -> u64 {
    let accepted = accepted_table(registers);
    let votes_in = |table: &&Table| table.voters().contains(&node);
    let voters = accepted.iter().chain([table]).find(votes_in).map_or(&[][..], Table::voters);
    voter_name(id, voters)
}

fn accepted_table(registers: &SortedMap<Register, Kept>) -> Option<Table> {
    let value = registers.get(&Register::Table)?.accepted().value.as_deref()?;
    Table::decode(value).ok()
}
