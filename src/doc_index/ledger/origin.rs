use crate::base::varint::{put, take, take_bytes, take_u32};
use crate::proto::job::{DocKind, Provenance};

/// Where a URL was found, and how much it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The document that named it; 0 for a seed. From [`Origin::DOCS_END`] on it stands for other nodes.
    pub via: u32,
    pub provenance: Provenance,
    /// The higher, the sooner; [`PRIORITY_USUAL`] without a word about it.
    pub priority: u8,
    /// How often it was asked for elsewhere, as far as a reflog told.
    pub hits: u32,
}

/// The priority of a URL without a word about it; the highest is [`PRIORITY_MAX`].
pub const PRIORITY_USUAL: u8 = 5;
pub const PRIORITY_MAX: u8 = 15;

impl Origin {
    pub const SEED: Origin = Origin::new(0, Provenance::SEED);

    /// Stands for a document of another node, whichever.
    pub const VIA_PEER: u32 = u32::MAX;

    /// Documents have numbers below this.
    pub const DOCS_END: u32 = Origin::via_node(u16::MAX);

    /// Stands for a node that handed a document over, with all that it knew of it.
    pub const fn via_node(node: u16) -> u32 {
        Origin::VIA_PEER - node as u32
    }

    /// Whether another node told of it.
    pub const fn is_of_peer(&self) -> bool {
        self.via >= Origin::DOCS_END
    }

    /// Whether this node handed it over, and so knows it.
    pub const fn is_from(&self, node: u16) -> bool {
        node != 0 && self.via == Origin::via_node(node)
    }

    pub const fn new(via: u32, provenance: Provenance) -> Origin {
        Origin { via, provenance, priority: PRIORITY_USUAL, hits: 0 }
    }

    /// Of a link on a page.
    pub const fn link(via: u32, depth: u16) -> Origin {
        Origin::new(via, Provenance::link(depth))
    }

    /// What comes first: the more urgent, then the nearer to a seed, then what is asked for most. Lower is sooner.
    pub(crate) fn rank(&self) -> u16 {
        let priority = u16::from(PRIORITY_MAX - self.priority.min(PRIORITY_MAX));
        let hits = 15 - (32 - self.hits.leading_zeros()).min(15) as u16;
        priority << 12 | self.provenance.depth.min(0xff) << 4 | hits
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, tag: u8) {
        let extra = self.priority != PRIORITY_USUAL || self.hits != 0;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let Provenance { kind, depth, hops, seed_chain, head_only } = self.provenance;
        let flags = bit(seed_chain, SEED_CHAIN) | bit(head_only, HEAD_ONLY) | bit(extra, EXTRA);
        out.push(tag | (kind as u8) << KIND_SHIFT | flags);
        put(out, u64::from(self.via));
        put(out, u64::from(depth));
        out.push(hops);
        if extra {
            out.push(self.priority);
            put(out, u64::from(self.hits));
        }
    }

    /// What stands after the first byte, which is given.
    pub(crate) fn read(first: u8, bytes: &mut &[u8]) -> Option<Origin> {
        let via = take_u32(bytes)?;
        let depth = take(bytes)?.try_into().ok()?;
        let hops = take_bytes(bytes, 1)?[0];
        let (mut priority, mut hits) = (PRIORITY_USUAL, 0);
        if first & EXTRA != 0 {
            priority = take_bytes(bytes, 1)?[0];
            hits = take_u32(bytes)?;
        }
        let (seed_chain, head_only) = (first & SEED_CHAIN != 0, first & HEAD_ONLY != 0);
        let kind = DocKind::from_bits(first >> KIND_SHIFT);
        let provenance = Provenance { kind, depth, hops, seed_chain, head_only };
        Some(Origin { via, provenance, priority, hits })
    }
}

/// In the first byte, above the tag of an entry.
const KIND_SHIFT: u8 = 3;
const SEED_CHAIN: u8 = 1 << 5;
const HEAD_ONLY: u8 = 1 << 6;
const EXTRA: u8 = 1 << 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_handed_over_is_from_that_node_alone() {
        let via = |via| Origin::link(via, 1);
        for node in [1, 2, 1_024, u16::MAX] {
            let from = via(Origin::via_node(node));
            assert!(from.is_of_peer() && from.is_from(node) && !from.is_from(node - 1), "{node}");
        }
        let told = via(Origin::VIA_PEER);
        assert!(told.is_of_peer() && !told.is_from(0) && !told.is_from(1) && !told.is_from(u16::MAX));
        assert!(!via(Origin::DOCS_END - 1).is_of_peer() && !via(0).is_of_peer());
    }

    #[test]
    fn rank_is_priority_then_depth_then_hits() {
        let rank = |priority, depth, hits| Origin { priority, hits, ..Origin::link(0, depth) }.rank();
        assert!(rank(6, 9, 0) < rank(5, 0, 9), "the more urgent first");
        assert!(rank(5, 1, 0) < rank(5, 2, 999), "then the nearer");
        assert!(rank(5, 1, 9) < rank(5, 1, 1), "then the more wanted");
        assert_eq!(rank(5, 255, 0), rank(5, 999, 0));
        assert_eq!(rank(15, 0, u32::MAX), 0);
    }
}
