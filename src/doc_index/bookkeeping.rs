use super::bits::Bits;
use super::documents::DocState;
use super::frontier::HostCounts;
use rapidhash::fast::RapidHashMap;

/// Where every document stands, and how many stand where: pending, handed out, or answered for.
#[derive(Default)]
pub(super) struct Bookkeeping {
    /// Documents handed out and not answered for, and their hosts.
    open: RapidHashMap<u32, u32>,
    /// Documents that were handed out or answered for, and are not pending.
    taken: Bits,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub known: u64,
    pub success: u64,
    pub errors: u64,
    pub excluded: u64,
    pub refused: u64,
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
        match state {
            DocState::Success => {
                of_host.success += 1;
                self.counts.success += 1;
            }
            DocState::Error => {
                of_host.errors += 1;
                self.counts.errors += 1;
            }
            DocState::Excluded => self.counts.excluded += 1,
            DocState::Pending | DocState::Fetching => {}
        }
    }

    /// Takes back what `count` did.
    pub fn uncount(&mut self, of_host: &mut HostCounts, state: DocState) {
        match state {
            DocState::Success => {
                of_host.success -= 1;
                self.counts.success -= 1;
            }
            DocState::Error => {
                of_host.errors -= 1;
                self.counts.errors -= 1;
            }
            DocState::Excluded | DocState::Pending | DocState::Fetching => {}
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
