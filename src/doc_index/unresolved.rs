use super::ledger::Origin;
use crate::storage::runs::Query;

/// Links of which only the disk can tell whether they are known, until it is asked about many of them at once.
#[derive(Default)]
pub(super) struct Unresolved {
    queries: Vec<Query>,
    parked: Vec<Parked>,
    text: String,
    bytes_max: usize,
}

struct Parked {
    origin: Origin,
    /// Where its URL ends in the text.
    end: u32,
}

/// A table that is too small for anything else still asks about some at once.
const BYTES_MIN: usize = 64 * 1024;
const PER_LINK: usize = size_of::<Query>() + size_of::<Parked>();

impl Unresolved {
    pub fn new(bytes_max: usize) -> Unresolved {
        let bytes_max = bytes_max.clamp(BYTES_MIN, 1 << 30);
        Unresolved { bytes_max, ..Unresolved::default() }
    }

    pub fn park(&mut self, fingerprint: u64, url: &str, origin: Origin) {
        self.queries.push(Query { fingerprint, index: self.parked.len() as u32, known: false });
        self.text.push_str(url);
        self.parked.push(Parked { origin, end: self.text.len() as u32 });
    }

    pub fn len(&self) -> usize {
        self.parked.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.parked.len() * PER_LINK + self.text.len() >= self.bytes_max
    }

    pub fn ram_bytes(&self) -> usize {
        self.queries.capacity() * size_of::<Query>()
            + self.parked.capacity() * size_of::<Parked>()
            + self.text.capacity()
    }

    pub fn queries(&mut self) -> &mut [Query] {
        &mut self.queries
    }

    /// Every link as it came.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.parked.iter().map(move |parked| {
            let from = std::mem::replace(&mut start, parked.end as usize);
            &self.text[from..start]
        })
    }

    /// Every link once, in the order they came, with what the disk said of it.
    pub fn answered(&self) -> impl Iterator<Item = (u64, &str, Origin, bool)> {
        let mut order: Vec<&Query> = self.queries.iter().collect();
        order.sort_unstable_by_key(|query| (query.fingerprint, query.index));
        order.dedup_by_key(|query| query.fingerprint);
        order.sort_unstable_by_key(|query| query.index);
        order.into_iter().map(|query| {
            let at = query.index as usize;
            let start = at.checked_sub(1).map_or(0, |before| self.parked[before].end as usize);
            let url = &self.text[start..self.parked[at].end as usize];
            (query.fingerprint, url, self.parked[at].origin, query.known)
        })
    }

    /// The same without links, kept for its memory.
    pub fn emptied(mut self) -> Unresolved {
        self.queries.clear();
        self.parked.clear();
        self.text.clear();
        self
    }
}
