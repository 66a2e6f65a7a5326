//! Requests and answers as the words that carry them, and back.

use super::{Answer, Ask, Reply, Request, Value};
use crate::proto::peer_wire::PeerWord;
use std::sync::Arc;

impl Request {
    /// PREPARE or ACCEPT, under the id that its answer repeats.
    pub fn word(&self, id: u64) -> PeerWord<'_> {
        let Request { register, disk, ref ask } = *self;
        match ask {
            Ask::Prepare { ballot } => PeerWord::Prepare { id, register, ballot: *ballot, disk },
            Ask::Accept { ballot, value, then } => {
                PeerWord::Accept { id, register, ballot: *ballot, disk, then: *then, value: value.as_deref() }
            }
        }
    }

    /// The request in a word, and its id; nothing if the word is another one.
    pub fn of(word: &PeerWord<'_>) -> Option<(u64, Request)> {
        match *word {
            PeerWord::Prepare { id, register, ballot, disk } => {
                Some((id, Request { register, disk, ask: Ask::Prepare { ballot } }))
            }
            PeerWord::Accept { id, register, ballot, disk, then, value } => {
                let ask = Ask::Accept { ballot, value: kept(value), then };
                Some((id, Request { register, disk, ask }))
            }
            _ => None,
        }
    }
}

impl Answer {
    /// PROMISE, ACCEPTED, LATER or NO_VOTE, under the id of the request.
    pub fn word(&self, id: u64) -> PeerWord<'_> {
        let Answer { register, ballot, ref reply } = *self;
        match reply {
            Reply::Promise { accepted, value } => {
                PeerWord::Promise { id, register, ballot, accepted: *accepted, value: value.as_deref() }
            }
            Reply::Accepted => PeerWord::Accepted { id, register, ballot },
            Reply::Later { promised } => PeerWord::Later { id, register, ballot, promised: *promised },
            Reply::Refused => PeerWord::NoVote { id, register, ballot },
        }
    }

    /// The answer in a word, and the id of its request; nothing if the word is another one.
    pub fn of(word: &PeerWord<'_>) -> Option<(u64, Answer)> {
        let (id, register, ballot, reply) = match *word {
            PeerWord::Promise { id, register, ballot, accepted, value } => {
                (id, register, ballot, Reply::Promise { accepted, value: kept(value) })
            }
            PeerWord::Accepted { id, register, ballot } => (id, register, ballot, Reply::Accepted),
            PeerWord::Later { id, register, ballot, promised } => {
                (id, register, ballot, Reply::Later { promised })
            }
            PeerWord::NoVote { id, register, ballot } => (id, register, ballot, Reply::Refused),
            _ => return None,
        };
        Some((id, Answer { register, ballot, reply }))
    }
}

fn kept(value: Option<&[u8]>) -> Value {
    value.map(Arc::from)
}
