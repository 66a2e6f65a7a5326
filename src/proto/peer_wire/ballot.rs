use super::FrameError;
use super::fields::Fields;
use std::fmt;

/// The number of an attempt to change a register: the higher wins, and no two attempts have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ballot {
    pub round: u64,
    pub node: u16,
}

impl Ballot {
    /// Below every attempt: nothing was promised or accepted.
    pub const NONE: Ballot = Ballot { round: 0, node: 0 };

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
