use super::fields::Fields;
use super::{FrameError, FrameKind};
use crate::base::named_enum;
use std::fmt;

named_enum! {
    /// Where a node is in its life. It is fenced, from any of the others, when its right is over: it starts no request.
    #[derive(Hash)]
    pub enum NodeState {
        Joining = "joining",
        Standing = "standing",
        Crawling = "crawling",
        ReadyToServe = "ready_to_serve",
        Draining = "draining",
        Left = "left",
        Fenced = "fenced",
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a node is, as it tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who tells it, in which generation of its beat; 0 without one.
    pub node: u16,
    pub generation: u32,
    /// Of the `STATUS_ASK` that it answers; 0 if it was not asked.
    pub round: u64,
    pub state: NodeState,
    /// Of the table that it goes by.
    pub epoch: u64,
    /// URLs that it is still to fetch.
    pub pending: u64,
    /// URLs that are handed out: asked for, or the next of their hosts.
    pub open: u64,
    /// URLs sent to other nodes, and those of them that were counted there.
    pub sent: u64,
    pub counted: u64,
    /// URLs that came from other nodes and are durable here.
    pub received: u64,
    /// URLs of other nodes that are still to be sent.
    pub outbox: u64,
    /// Bytes that its follower has on disk.
    pub copied: u64,
    /// How long its right still holds; 0 if it is over.
    pub right_left_ms: u32,
    /// Pages fetched and durable.
    pub pages: u64,
}

/// Bytes of a status: node, generation, state, ten numbers of eight, one of four.
pub const STATUS_BYTES: usize = 2 + 4 + 1 + 10 * 8 + 4;

impl Status {
    /// Its bytes, for a frame or for a datagram.
    pub fn to_bytes(&self) -> [u8; STATUS_BYTES] {
        let Status {
            node,
            generation,
            round,
            state,
            epoch,
            pending,
            open,
            sent,
            counted,
            received,
            outbox,
            copied,
            right_left_ms,
            pages,
        } = *self;
        let mut bytes = [0; STATUS_BYTES];
        bytes[..2].copy_from_slice(&node.to_le_bytes());
        bytes[2..6].copy_from_slice(&generation.to_le_bytes());
        bytes[6] = state as u8 + 1;
        let numbers = [round, epoch, pending, open, sent, counted, received, outbox, copied, pages];
        let (places, right) = bytes[7..].split_at_mut(10 * 8);
        for (place, number) in places.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        right.copy_from_slice(&right_left_ms.to_le_bytes());
        bytes
    }

    /// From bytes that are a status and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Status, FrameError> {
        let mut fields = Fields::of(FrameKind::Status, bytes);
        let status = Status::read(&mut fields)?;
        fields.end()?;
        Ok(status)
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Status, FrameError> {
        let (node, generation) = (fields.u16()?, fields.u32()?);
        let state = usize::from(fields.u8()?).checked_sub(1).and_then(|at| NodeState::ALL.get(at));
        let Some(&state) = state else {
            return fields.unreadable("with a state that this version does not know");
        };
        Ok(Status {
            node,
            generation,
            state,
            round: fields.u64()?,
            epoch: fields.u64()?,
            pending: fields.u64()?,
            open: fields.u64()?,
            sent: fields.u64()?,
            counted: fields.u64()?,
            received: fields.u64()?,
            outbox: fields.u64()?,
            copied: fields.u64()?,
            pages: fields.u64()?,
            right_left_ms: fields.u32()?,
        })
    }
}
