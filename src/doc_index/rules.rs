use super::schedule::Schedule;
use crate::proto::partition::Share;
use std::sync::Arc;

/// What a doc index is told.
#[derive(Clone, Debug)]
pub struct IndexRules {
    /// Memory for all of it, whatever the number of URLs.
    pub memory_bytes: usize,
    pub schedule: Schedule,
    /// Everything that was ever fetched is due at once.
    pub again: bool,
    /// What robots.txt refused is pending: it was refused to another name than ours.
    pub denied_anew: bool,
    /// URLs taken in of one host, and of all hosts of one domain; 0 for no limit.
    pub pages_per_host: u32,
    pub pages_per_domain: u32,
    /// URLs taken in that differ in the values of their query only; 0 for no limit.
    pub query_variants_max: u32,
    /// The rules by which links are followed, as a number: with others, pages that have not changed are read anew.
    pub signature: u64,
    /// Segments of the store that are there. What is in no segment cannot be referred to.
    pub segments: Segments,
    /// Of a node of a cluster: which URLs are its own.
    pub share: Option<Arc<Share>>,
}

/// Which segments a stored document can be in.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// Those of earlier processes, in order.
    pub before: Vec<u64>,
    /// Those of this process are numbered from here.
    pub first_new: u64,
}

impl Segments {
    /// Whether it is one of earlier processes that is there still. Numbers of those that are gone are used again.
    pub(super) fn has_before(&self, segment: u64) -> bool {
        self.before.binary_search(&segment).is_ok()
    }
}

impl Default for IndexRules {
    fn default() -> IndexRules {
        IndexRules {
            memory_bytes: 1 << 30,
            schedule: Schedule::default(),
            again: false,
            denied_anew: false,
            pages_per_host: 0,
            pages_per_domain: 0,
            query_variants_max: 0,
            signature: 0,
            segments: Segments::default(),
            share: None,
        }
    }
}
