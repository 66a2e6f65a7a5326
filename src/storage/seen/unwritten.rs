use crate::storage::runs::{Entry, Query};

/// Entries that are in no run yet. Taking one in is a push; they are put in order when they are asked for.
#[derive(Default)]
pub(super) struct Unwritten {
    entries: Vec<Entry>,
    /// How many of them, from the beginning, are in order.
    sorted: usize,
}

/// Looked through in less time than it takes to put them in order.
const UNSORTED_MAX: usize = 4_096;

impl Unwritten {
    pub fn with_capacity(count: usize) -> Unwritten {
        Unwritten { entries: Vec::with_capacity(count), sorted: 0 }
    }

    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.sorted = 0;
    }

    /// All of them by fingerprint.
    pub fn sorted(&mut self) -> &[Entry] {
        if self.sorted < self.entries.len() {
            // The stable sort merges what is sorted already with the rest; the other begins anew.
            match self.sorted > self.entries.len() / 2 {
                true => self.entries.sort(),
                false => self.entries.sort_unstable(),
            }
            self.sorted = self.entries.len();
        }
        &self.entries
    }

    /// Puts them in order once there is much to look through.
    pub fn order(&mut self) {
        if self.entries.len() - self.sorted > UNSORTED_MAX {
            self.sorted();
        }
    }

    /// The document of a fingerprint. What is not in order is looked through.
    pub fn find(&self, fingerprint: u64) -> Option<u32> {
        let (sorted, rest) = self.entries.split_at(self.sorted);
        let at = sorted.partition_point(|entry| entry.fingerprint < fingerprint);
        let found = sorted.get(at).filter(|entry| entry.fingerprint == fingerprint);
        found.or_else(|| rest.iter().find(|entry| entry.fingerprint == fingerprint)).map(|entry| entry.doc_id)
    }

    /// Marks those of the queries, sorted by fingerprint, that are here.
    pub fn resolve(&mut self, queries: &mut [Query]) {
        let mut rest = self.sorted();
        for query in queries.iter_mut().filter(|query| !query.known) {
            let fingerprint = query.fingerprint.max(1);
            rest = &rest[first_from(rest, fingerprint)..];
            query.known = rest.first().is_some_and(|entry| entry.fingerprint == fingerprint);
        }
    }
}

/// Where the first entry from `fingerprint` on is: in steps that double, for it is near when there are many queries.
fn first_from(entries: &[Entry], fingerprint: u64) -> usize {
    let mut step = 1;
    while step < entries.len() && entries[step].fingerprint < fingerprint {
        step *= 2;
    }
    let end = entries.len().min(step + 1);
    step / 2 + entries[step / 2..end].partition_point(|entry| entry.fingerprint < fingerprint)
}
