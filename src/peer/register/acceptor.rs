//! What a voter keeps, and what it answers.

use super::{Answer, Ask, Ballot, Register, Reply, Request, Value};
use crate::base::{SortedMap, u16_at, u64_at};
use crate::limits::{REGISTER_BYTES_MAX, REGISTERS_MAX};
use std::sync::Arc;
use thiserror::Error;

/// A value that was accepted, and under which ballot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    pub ballot: Ballot,
    pub value: Value,
}

/// One register of a voter, as it is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    // accepted.ballot <= promise
    promise: Ballot,
    accepted: Accepted,
}

/// Why bytes on disk are no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeptError {
    #[error("a register of version {0}, which this program does not know")]
    Version(u8),
    #[error("the register is cut, or longer than it says")]
    Length,
    #[error("the register promised less than it accepted")]
    Order,
}

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 2 + 2 * 10;

impl Kept {
    pub fn promise(&self) -> Ballot {
        self.promise
    }

    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// Version, whether there is a value, both ballots, the value. The checksum is the slot's that it is written to.
    pub fn encode(&self) -> Vec<u8> {
        let value = self.accepted.value.as_deref();
        let mut out = vec![VERSION, u8::from(value.is_some())];
        for ballot in [self.promise, self.accepted.ballot] {
            out.extend(ballot.round.to_le_bytes());
            out.extend(ballot.node.to_le_bytes());
        }
        out.extend(value.unwrap_or_default());
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Kept, KeptError> {
        if bytes.first().is_some_and(|&version| version != VERSION) {
            return Err(KeptError::Version(bytes[0]));
        }
        if bytes.len() < HEAD_BYTES || bytes.len() > HEAD_BYTES + REGISTER_BYTES_MAX {
            return Err(KeptError::Length);
        }
        let ballot = |at| Ballot { round: u64_at(bytes, at), node: u16_at(bytes, at + 8) };
        let (promise, accepted) = (ballot(2), ballot(12));
        let value: Value = match bytes[1] {
            0 if bytes.len() == HEAD_BYTES => None,
            1 => Some(Arc::from(&bytes[HEAD_BYTES..])),
            _ => return Err(KeptError::Length),
        };
        if accepted > promise {
            return Err(KeptError::Order);
        }
        Ok(Kept { promise, accepted: Accepted { ballot: accepted, value } })
    }
}

/// What an acceptor says, and what has to be on disk before it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Spoken {
    pub durable: Option<(Register, Kept)>,
    pub answer: Answer,
}

/// The registers of a voter. What it says is a promise, so it is told only once the disk has it: [`Spoken::durable`] first, then
/// [`Spoken::answer`]. If the write fails, the process may not go on as a voter: what it knows is more than what it kept.
#[derive(Clone, Debug)]
pub struct Acceptor {
    /// What it is asked by: of its disk, and of who votes with it.
    disk: u64,
    registers: SortedMap<Register, Kept>,
}

impl Acceptor {
    /// A voter with everything that its disk holds.
    pub fn open(disk: u64, kept: impl IntoIterator<Item = (Register, Kept)>) -> Acceptor {
        Acceptor { disk, registers: kept.into_iter().collect() }
    }

    pub fn disk(&self) -> u64 {
        self.disk
    }

    /// It is asked by another number from now on: others vote with it.
    pub fn set_disk(&mut self, disk: u64) {
        self.disk = disk;
    }

    /// What is kept of a register.
    pub fn kept(&self, register: Register) -> Option<&Kept> {
        self.registers.get(&register)
    }

    pub fn handle(&mut self, request: Request) -> Spoken {
        let Request { register, disk, ask } = request;
        let (ballot, too_large) = match &ask {
            Ask::Prepare { ballot } => (*ballot, false),
            Ask::Accept { ballot, value, .. } => {
                (*ballot, value.as_ref().is_some_and(|value| value.len() > REGISTER_BYTES_MAX))
            }
        };
        let full = self.registers.len() >= REGISTERS_MAX && !self.registers.contains_key(&register);
        let said = |reply, durable| Spoken { durable, answer: Answer { register, ballot, reply } };
        if disk != self.disk || full || too_large || ballot == Ballot::NONE {
            return said(Reply::Refused, None);
        }
        let kept = self.registers.entry(register).or_default();
        match ask {
            // A repeated question gets the same answer: there is one proposer that asks it.
            Ask::Accept { .. } if ballot == kept.accepted.ballot => said(Reply::Accepted, None),
            _ if ballot < kept.promise => said(Reply::Later { promised: kept.promise }, None),
            Ask::Prepare { .. } => {
                let changed = ballot != kept.promise;
                kept.promise = ballot;
                let Accepted { ballot: accepted, value } = kept.accepted.clone();
                let durable = changed.then(|| (register, kept.clone()));
                said(Reply::Promise { accepted, value }, durable)
            }
            Ask::Accept { value, then, .. } => {
                *kept = Kept { promise: then.max(ballot), accepted: Accepted { ballot, value } };
                let durable = (register, kept.clone());
                said(Reply::Accepted, Some(durable))
            }
        }
    }
}
