use super::Spread;
use crate::limits::{PARTITION_BITS, PARTITIONS};
use crate::proto::url::{host_place, registrable};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A part of the web that has one owner: a number below [`PARTITIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(u16);

impl Partition {
    pub const fn new(number: u16) -> Option<Partition> {
        if (number as usize) < PARTITIONS { Some(Partition(number)) } else { None }
    }

    pub fn get(self) -> u16 {
        self.0
    }

    /// Its place in a table of all partitions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All of them, from the first to the last.
    pub fn all() -> impl ExactSizeIterator<Item = Partition> + DoubleEndedIterator {
        (0..PARTITIONS as u16).map(Partition)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Finds the partition of a URL, the same one at every node of a cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Partitioner {
    spread: Spread,
    seed: u64,
}

impl Partitioner {
    /// The seed comes from the cluster's secret, so that nobody outside can choose names that fall on one node.
    pub fn new(spread: Spread, seed: u64) -> Partitioner {
        Partitioner { spread, seed }
    }

    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The partition of a URL in normal form: the top bits of the hash of its [key](Partitioner::key).
    pub fn of(&self, url: &str) -> Partition {
        self.of_key(self.key(url))
    }

    /// The partition of a key itself.
    pub fn of_key(&self, key: &str) -> Partition {
        let hash = xxh3_64_with_seed(key.as_bytes(), self.seed);
        Partition((hash >> (u64::BITS - PARTITION_BITS)) as u16)
    }

    /// What a URL in normal form is placed by. Scheme and port do not count, unless all of the URL does: a host has one
    /// budget. An address, or a name without a dot, stands for itself; the dot that may end a name does not count.
    pub fn key<'u>(&self, url: &'u str) -> &'u str {
        if self.spread == Spread::Url {
            return url;
        }
        // Text that is no URL may have any characters.
        let host = url.get(host_place(url.as_bytes())).unwrap_or(url);
        let host = host.strip_suffix('.').unwrap_or(host);
        if self.spread == Spread::Host { host } else { registrable(host) }
    }
}

/// Without the seed, which is a secret's.
impl fmt::Debug for Partitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioner").field("spread", &self.spread).finish_non_exhaustive()
    }
}

const _: () = assert!(PARTITION_BITS <= u16::BITS);
