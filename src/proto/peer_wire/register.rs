use super::FrameError;
use super::fields::Fields;
use std::fmt;

/// A register of the council: a value that is changed by compare-and-swap only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterId {
    /// Who owns which partition.
    Table,
    /// The beat of a node.
    Beat(u16),
}

/// The right to change a register: the higher wins, and no two nodes have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ballot {
    pub round: u64,
    pub node: u16,
}

const TABLE: u8 = 0;
const BEAT: u8 = 1;

impl RegisterId {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let (tag, node) = match self {
            RegisterId::Table => (TABLE, 0),
            RegisterId::Beat(node) => (BEAT, node),
        };
        out.push(tag);
        out.extend_from_slice(&node.to_le_bytes());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<RegisterId, FrameError> {
        match (fields.u8()?, fields.u16()?) {
            (TABLE, 0) => Ok(RegisterId::Table),
            (BEAT, node) => Ok(RegisterId::Beat(node)),
            _ => fields.unreadable("with a register that this version does not know"),
        }
    }
}

impl fmt::Display for RegisterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterId::Table => f.write_str("table"),
            RegisterId::Beat(node) => write!(f, "beat/{node}"),
        }
    }
}

impl Ballot {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.round.to_le_bytes());
        out.extend_from_slice(&self.node.to_le_bytes());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Ballot, FrameError> {
        Ok(Ballot { round: fields.u64()?, node: fields.u16()? })
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.node)
    }
}
