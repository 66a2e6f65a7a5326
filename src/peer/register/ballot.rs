use std::fmt;

/// The number of an attempt. No two attempts have the same: it holds the node, and how often the node was started, which the
/// node keeps on disk. A proposer that began again at the first round could give two values to one ballot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Ballot {
    round: u64,
    node: u16,
}

/// Bits of the round that tell the start of the node.
const START_BITS: u32 = 24;

impl Ballot {
    /// Below every attempt: nothing was promised or accepted.
    pub const NONE: Ballot = Ballot { round: 0, node: 0 };

    /// As it travels: the round with the start in its low bits, and the node.
    pub fn from_parts(round: u64, node: u16) -> Ballot {
        Ballot { round, node }
    }

    pub fn round(self) -> u64 {
        self.round
    }

    pub fn node(self) -> u16 {
        self.node
    }

    /// The first ballot of this node and start above another one.
    #[must_use]
    pub fn above(self, node: u16, start: u32) -> Ballot {
        let start = u64::from(start) & ((1 << START_BITS) - 1);
        let count = ((self.round >> START_BITS) + 1).min((1 << (64 - START_BITS)) - 1);
        Ballot { round: count << START_BITS | start, node }
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.round & ((1 << START_BITS) - 1);
        write!(f, "{}/{start}@{}", self.round >> START_BITS, self.node)
    }
}
