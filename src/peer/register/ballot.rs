use crate::proto::peer_wire::Ballot;

/// Bits of the round that tell the start of the node.
const START_BITS: u32 = 24;

/// No two attempts have the same ballot: it holds the node, and how often the node was started, which the node keeps on disk. A
/// proposer that began again at the first round could give two values to one ballot.
impl Ballot {
    /// The first ballot of this node and start above another one.
    #[must_use]
    pub fn above(self, node: u16, start: u32) -> Ballot {
        let start = u64::from(start) & ((1 << START_BITS) - 1);
        let count = ((self.round >> START_BITS) + 1).min((1 << (64 - START_BITS)) - 1);
        Ballot { round: count << START_BITS | start, node }
    }
}
