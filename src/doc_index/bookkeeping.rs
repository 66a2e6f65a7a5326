use super::bits::Bits;
use super::documents::DocState;
use super::frontier::HostCounts;
use super::index::IndexStats;
use rapidhash::fast::{RapidHashMap, RapidHashSet};

/// Where every document stands, and how many stand where: pending, handed out, or answered for.
#[derive(Default)]
pub(super) struct Bookkeeping {
    /// Documents handed out and not answered for, and their hosts.
    open: RapidHashMap<u32, u32>,
    /// Documents that were handed out or answered for, and are not pending.
    taken: Bits,
    /// Documents of other nodes that are open, as what a process before this one stored of them is to be recorded.
    open_elsewhere: RapidHashSet<u32>,
    /// Of what is counted here: known, success, errors, excluded and refused.
    pub counts: IndexStats,
}

/// An entry of the map, with the byte that it has beside it.
const PER_OPEN: usize = size_of::<(u32, u32)>() + 1;

impl Bookkeeping {
    pub fn is_pending(&self, doc_id: u32) -> bool {
        !self.taken.get(doc_id)
    }

    /// Whether a document was handed out and not answered for.
    pub fn is_open(&self, doc_id: u32) -> bool {
        self.open.contains_key(&doc_id)
    }

    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The hosts of all documents that are open, each as often as it has some.
    pub fn open_hosts(&self) -> impl Iterator<Item = u32> {
        self.open.values().copied()
    }

    /// The host of a document that is open.
    pub fn host_of(&self, doc_id: u32) -> Option<u32> {
        self.open.get(&doc_id).copied()
    }

    pub fn make_pending(&mut self, doc_id: u32) {
        self.taken.set(doc_id, false);
    }

    /// The document is not pending.
    pub fn take(&mut self, doc_id: u32) {
        self.taken.set(doc_id, true);
    }

    pub fn hand_out(&mut self, doc_id: u32, host: u32) {
        self.take(doc_id);
        self.open.insert(doc_id, host);
    }

    /// Ends the time that a document is open, and returns its host. `None` if it was not.
    pub fn close(&mut self, doc_id: u32) -> Option<u32> {
        self.open.remove(&doc_id)
    }

    /// Counts a document by what became of it.
    pub fn count(&mut self, of_host: &mut HostCounts, state: DocState) {
        self.counts.excluded += u64::from(state == DocState::Excluded);
        if let Some((of_host, of_all)) = self.counters(of_host, state) {
            *of_host += 1;
            *of_all += 1;
        }
    }

    /// Takes back what `count` did, but for what was excluded.
    pub fn uncount(&mut self, of_host: &mut HostCounts, state: DocState) {
        if let Some((of_host, of_all)) = self.counters(of_host, state) {
            *of_host -= 1;
            *of_all -= 1;
        }
    }

    /// What the rules left out is wanted after all.
    pub fn uncount_excluded(&mut self) {
        self.counts.excluded = self.counts.excluded.saturating_sub(1);
    }

    /// What was counted, as it is had, is another node's from now on.
    pub fn count_elsewhere(&mut self, state: DocState) {
        self.counts.elsewhere += u64::from(state == DocState::Success);
    }

    /// It is ours again, or is not counted any more.
    pub fn uncount_elsewhere(&mut self, doc_id: u32, state: DocState) {
        let is_counted = !self.open_elsewhere.remove(&doc_id) && state == DocState::Success;
        self.counts.elsewhere = self.counts.elsewhere.saturating_sub(u64::from(is_counted));
    }

    /// A document of another node is open.
    pub fn open_elsewhere(&mut self, doc_id: u32, state: DocState) {
        self.uncount_elsewhere(doc_id, state);
        self.open_elsewhere.insert(doc_id);
    }

    /// Something became of a document; it may be another node's.
    pub fn count_taken_up(&mut self, doc_id: u32, state: DocState) {
        if !self.open_elsewhere.is_empty() && self.open_elsewhere.remove(&doc_id) {
            self.count_elsewhere(state);
        }
    }

    fn counters<'a>(
        &'a mut self,
        of_host: &'a mut HostCounts,
        state: DocState,
    ) -> Option<(&'a mut u32, &'a mut u64)> {
        match state {
            DocState::Success => Some((&mut of_host.success, &mut self.counts.success)),
            DocState::Error => Some((&mut of_host.errors, &mut self.counts.errors)),
            DocState::Excluded | DocState::Pending | DocState::HandedOut => None,
        }
    }

    pub fn ram_bytes(&self) -> usize {
        self.open.capacity() * PER_OPEN
    }

    /// Memory that grows with every document.
    pub fn table_bytes(&self) -> usize {
        self.taken.ram_bytes()
    }
}
