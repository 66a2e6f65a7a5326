use super::{PARTITIONS, Partition, Partitioner, Spread};
use crate::base::SortedSet;

/// Which partitions are whose, as one node of a cluster goes by it.
#[derive(Clone, Debug)]
pub struct Share {
    partitioner: Partitioner,
    node: u16,
    epoch: u64,
    owners: Box<[u16]>,
}

impl Share {
    /// The share of `node`: `owners` has the number of a node for each partition, 0 for nobody.
    pub fn new(partitioner: Partitioner, node: u16, epoch: u64, owners: &[u16]) -> Share {
        debug_assert_eq!(owners.len(), PARTITIONS);
        Share { partitioner, node, epoch, owners: owners.into() }
    }

    pub fn partitioner(&self) -> &Partitioner {
        &self.partitioner
    }

    pub fn node(&self) -> u16 {
        self.node
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn partition_of(&self, url: &str) -> Partition {
        self.partitioner.of(url)
    }

    /// Whether URLs of a host may be in some of these partitions.
    pub fn has_some_in(&self, origin: &str, partitions: &SortedSet<Partition>) -> bool {
        match self.partitioner.spread() {
            Spread::Url => !partitions.is_empty(),
            _ => partitions.contains(&self.partition_of(origin)),
        }
    }

    /// The node that a partition belongs to; 0 for none.
    pub fn owner(&self, partition: Partition) -> u16 {
        self.owners.get(partition.index()).copied().unwrap_or(0)
    }

    /// Whether a partition is this node's. One without a number has none.
    pub fn owns(&self, partition: Partition) -> bool {
        self.node != 0 && self.owner(partition) == self.node
    }

    pub fn is_ours(&self, url: &str) -> bool {
        self.owns(self.partition_of(url))
    }

    /// Partitions that this node has here and has not in `next`.
    pub fn lost_in<'a>(&'a self, next: &'a Share) -> impl Iterator<Item = Partition> + 'a {
        Partition::all().filter(|&partition| self.owns(partition) && !next.owns(partition))
    }
}
