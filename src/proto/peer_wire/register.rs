use super::FrameError;
use super::fields::Fields;
use std::fmt;

/// A register of the council: a value that is changed by compare-and-swap only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Register {
    /// Who owns which partition.
    Table,
    /// The beat of a node, which is never 0.
    Beat(u16),
}

const TABLE: u8 = 0;
const BEAT: u8 = 1;

impl Register {
    /// As a number: 0 for the table, which no node has.
    pub fn number(self) -> u16 {
        match self {
            Register::Table => 0,
            Register::Beat(node) => node,
        }
    }

    pub fn from_number(number: u16) -> Register {
        match number {
            0 => Register::Table,
            node => Register::Beat(node),
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.push(if self == Register::Table { TABLE } else { BEAT });
        out.extend_from_slice(&self.number().to_le_bytes());
    }

    /// The beat of node 0 is refused: its number is the table's.
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Register, FrameError> {
        match (fields.u8()?, fields.u16()?) {
            (TABLE, 0) => Ok(Register::Table),
            (BEAT, node) if node != 0 => Ok(Register::Beat(node)),
            _ => fields.unreadable("with a register that this version does not know"),
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Register::Table => f.write_str("table"),
            Register::Beat(node) => write!(f, "beat/{node}"),
        }
    }
}
