//! The table: which node owns which partition at one epoch.

use crate::limits::{PARTITIONS, PEER_ADDRESS_BYTES_MAX, PEER_NODES_MAX, TAKING_RANGES_MAX, TAKINGS_MAX};
use crate::proto::partition::{Partition, Spread};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// The number that no node has: a partition of nobody, or one that does not move.
pub const NOBODY: u16 = 0;

/// How a node stands to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NodeState {
    /// Owns partitions and gets more.
    Member = 0,
    /// Owns what it has not handed over yet.
    Draining = 1,
    /// Owns nothing: it went, or was taken over. Its number is kept while it is a voter, or may come again.
    Left = 2,
}

impl NodeState {
    pub fn from_number(number: u8) -> Option<NodeState> {
        let all = [NodeState::Member, NodeState::Draining, NodeState::Left];
        all.into_iter().find(|state| *state as u8 == number)
    }
}

/// A node as the table knows it. `id` was drawn when its disk was new: whoever lost the disk is another node.
///
/// What the table gives to a node, it gives to its generation: a process that took a later one has to swap the table
/// before it may use what stands there, so a takeover of the earlier one and a return never both count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNode {
    pub number: u16,
    pub id: u64,
    pub generation: u32,
    pub address: String,
    pub weight: u16,
    pub state: NodeState,
}

/// Partitions from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRange {
    pub first: u16,
    pub last: u16,
}

/// What a takeover took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Everything that this node had.
    Node(u16),
    Ranges(Vec<PartitionRange>),
}

/// A takeover as it is remembered: the calendar time is the taker's word, and nothing hangs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    pub taken: Taken,
    pub taker: u16,
    pub stamp_ms: u64,
    pub epoch: u64,
}

/// Why a table is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    #[error("a table of version {0}, which this program does not know")]
    Version(u8),
    #[error("the table ends too early")]
    Short,
    #[error("{0} bytes after the end of the table")]
    Long(usize),
    #[error("the table holds {what} {number}, which means nothing")]
    Unknown { what: &'static str, number: u8 },
    #[error("the address of node {0} is not text, empty or too long")]
    Address(u16),
    #[error("{0} nodes; a table has 1 to {PEER_NODES_MAX}")]
    Nodes(usize),
    #[error("node {0} is out of order: numbers start at 1 and grow")]
    Order(u16),
    #[error("nodes {0} and {1} have the same id")]
    SameId(u16, u16),
    #[error("partition {partition} belongs to node {node}, which is not a member")]
    Owner { partition: Partition, node: u16 },
    #[error("partition {partition} is to go to node {node}, which is not a member")]
    Next { partition: Partition, node: u16 },
    #[error("{0} voters; there are 1, 3 or 5, or none if the council is outside")]
    Voters(usize),
    #[error("voter {0} is not in the table, or stands there twice")]
    Voter(u16),
    #[error(
        "{0} takeovers remembered; at most {TAKINGS_MAX}, with at most {TAKING_RANGES_MAX} ranges of partitions each"
    )]
    Takings(usize),
}

/// Who owns what at one epoch. A table is never changed: a change makes the table of the next epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(super) epoch: u64,
    /// By partition; `PARTITIONS` of them.
    pub(super) owners: Box<[u16]>,
    /// Owners to be, by partition, [`NOBODY`] where none moves; absent if nothing moves.
    pub(super) next: Option<Box<[u16]>>,
    /// In the order of their numbers.
    pub(super) nodes: Vec<TableNode>,
    /// Nobody, if the council is outside of the nodes.
    pub(super) voters: Vec<u16>,
    pub(super) spread: Spread,
    pub(super) rules: u64,
    pub(super) frozen: bool,
    /// The oldest first.
    pub(super) takings: Vec<Taking>,
}

impl Table {
    /// The table of the first epoch: partitions are nobody's until they are assigned.
    pub fn first(
        nodes: Vec<TableNode>,
        voters: Vec<u16>,
        spread: Spread,
        rules: u64,
    ) -> Result<Table, TableError> {
        let owners = vec![NOBODY; PARTITIONS].into_boxed_slice();
        let table = Table {
            epoch: 1,
            owners,
            next: None,
            nodes,
            voters,
            spread,
            rules,
            frozen: false,
            takings: Vec::new(),
        };
        table.check()?;
        Ok(table)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The node that owns a partition, or [`NOBODY`].
    pub fn owner(&self, partition: Partition) -> u16 {
        self.owners[partition.index()]
    }

    /// The node that a partition is on its way to.
    pub fn next_owner(&self, partition: Partition) -> Option<u16> {
        let next = self.next.as_ref()?[partition.index()];
        (next != NOBODY).then_some(next)
    }

    /// Owners by partition.
    pub fn owners(&self) -> &[u16] {
        &self.owners
    }

    /// Partitions of a node.
    pub fn owned_by(&self, node: u16) -> impl Iterator<Item = Partition> + '_ {
        Partition::all().filter(move |&partition| self.owner(partition) == node)
    }

    pub fn nodes(&self) -> &[TableNode] {
        &self.nodes
    }

    pub fn node(&self, number: u16) -> Option<&TableNode> {
        let at = self.nodes.binary_search_by_key(&number, |node| node.number).ok()?;
        Some(&self.nodes[at])
    }

    /// Nodes that may own partitions: members, and those that hand theirs over.
    pub fn is_member(&self, number: u16) -> bool {
        self.node(number).is_some_and(|node| node.state != NodeState::Left)
    }

    pub fn voters(&self) -> &[u16] {
        &self.voters
    }

    /// Whether the registers are kept by others than the nodes.
    pub fn is_outside(&self) -> bool {
        self.voters.is_empty()
    }

    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// Digest of the rules that every node has to have.
    pub fn rules(&self) -> u64 {
        self.rules
    }

    /// Whether nothing moves without its owner's word.
    pub fn frozen(&self) -> bool {
        self.frozen
    }

    /// The last takeovers, the oldest first.
    pub fn takings(&self) -> &[Taking] {
        &self.takings
    }

    /// What two tables of one epoch agree on: a hash of the bytes, of which a table has only one form.
    pub fn digest(&self) -> u64 {
        xxh3_64(&self.encode())
    }

    /// Whether this is a table: every owner a member, voters none or 1, 3 or 5 nodes of it, all counts within their bounds.
    ///
    /// A voter need not be a member: its disk votes, not its right, and one that was taken over still has its disk.
    pub fn check(&self) -> Result<(), TableError> {
        debug_assert_eq!(self.owners.len(), PARTITIONS);
        if self.nodes.is_empty() || self.nodes.len() > PEER_NODES_MAX {
            return Err(TableError::Nodes(self.nodes.len()));
        }
        let mut before = NOBODY;
        for node in &self.nodes {
            if node.number <= before {
                return Err(TableError::Order(node.number));
            }
            before = node.number;
            if node.address.is_empty() || node.address.len() > PEER_ADDRESS_BYTES_MAX {
                return Err(TableError::Address(node.number));
            }
        }
        let mut ids: Vec<(u64, u16)> = self.nodes.iter().map(|node| (node.id, node.number)).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(TableError::SameId(pair[0].1, pair[1].1));
        }
        for (partition, &node) in Partition::all().zip(&self.owners) {
            if node != NOBODY && !self.is_member(node) {
                return Err(TableError::Owner { partition, node });
            }
        }
        for (partition, &node) in Partition::all().zip(self.next.iter().flat_map(|next| next.iter())) {
            if node != NOBODY && !self.is_member(node) {
                return Err(TableError::Next { partition, node });
            }
        }
        self.check_voters()?;
        let ranges = |taking: &Taking| match &taking.taken {
            Taken::Node(_) => 0,
            Taken::Ranges(ranges) => ranges.len(),
        };
        if self.takings.len() > TAKINGS_MAX
            || self.takings.iter().any(|taking| ranges(taking) > TAKING_RANGES_MAX)
        {
            return Err(TableError::Takings(self.takings.len()));
        }
        Ok(())
    }

    fn check_voters(&self) -> Result<(), TableError> {
        if ![0, 1, 3, 5].contains(&self.voters.len()) {
            return Err(TableError::Voters(self.voters.len()));
        }
        for (at, &voter) in self.voters.iter().enumerate() {
            if self.node(voter).is_none() || self.voters[..at].contains(&voter) {
                return Err(TableError::Voter(voter));
            }
        }
        Ok(())
    }
}
