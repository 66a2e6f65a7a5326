use crate::storage::runs::{Entry, Query};

/// Entries that are in no run yet. Taking one in is a push; they are put in order when they are asked for.
#[derive(Default)]
pub(super) struct Unwritten {
    entries: Vec<Entry>,
    /// Where pieces end that are in order, one behind the other. Each has less than half of the one before it, so that there
    /// are few of them, and an entry is merged as often as there are pieces.
    ends: Vec<usize>,
}

/// Looked through in less time than it takes to put them in order.
const UNSORTED_MAX: usize = 4_096;

impl Unwritten {
    pub fn with_capacity(count: usize) -> Unwritten {
        Unwritten { entries: Vec::with_capacity(count), ends: Vec::new() }
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
        self.ends.clear();
    }

    /// All of them by fingerprint.
    pub fn sorted(&mut self) -> &[Entry] {
        if self.ends != [self.entries.len()] {
            // The stable sort finds the pieces and merges them.
            match self.in_order() > self.entries.len() / 2 {
                true => self.entries.sort(),
                false => sort_even(&mut self.entries),
            }
            self.ends.clear();
            self.ends.push(self.entries.len());
        }
        &self.entries
    }

    /// How many of them, from the beginning, are in pieces that are in order.
    fn in_order(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Puts what came last in order once there is much to look through.
    pub fn order(&mut self) {
        let mut begin = self.in_order();
        if self.entries.len() - begin <= UNSORTED_MAX {
            return;
        }
        self.entries[begin..].sort_unstable();
        while let Some(end) = self.ends.pop() {
            let before = self.in_order();
            if (self.entries.len() - end) * 2 <= end - before {
                self.ends.push(end);
                break;
            }
            begin = before;
        }
        self.entries[begin..].sort();
        self.ends.push(self.entries.len());
    }

    /// The document of a fingerprint. What is not in order is looked through.
    pub fn find(&self, fingerprint: u64) -> Option<u32> {
        let mut begin = 0;
        for &end in &self.ends {
            let piece = &self.entries[begin..end];
            let at = piece.partition_point(|entry| entry.fingerprint < fingerprint);
            if let Some(found) = piece.get(at).filter(|entry| entry.fingerprint == fingerprint) {
                return Some(found.doc_id);
            }
            begin = end;
        }
        let found = self.entries[begin..].iter().find(|entry| entry.fingerprint == fingerprint);
        found.map(|entry| entry.doc_id)
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

/// Entries of a part, about: as many as the nearest cache has room for.
const PART: usize = 1_024;
const PART_BITS_MAX: u32 = 12;

/// Puts entries in order. Fingerprints are even, so that their first bits say nearly where each belongs.
fn sort_even(entries: &mut [Entry]) {
    let bits = (entries.len() / PART).max(1).ilog2().min(PART_BITS_MAX);
    if bits == 0 {
        return entries.sort_unstable();
    }
    let part_of = |entry: &Entry| (entry.fingerprint >> (64 - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    entries.iter().for_each(|entry| ends[part_of(entry)] += 1);
    let mut end = 0;
    for part in &mut ends {
        end += *part;
        *part = end;
    }
    // Each goes to the first free place of its part, and the one that was there goes on.
    let mut free: Vec<usize> = [0].into_iter().chain(ends.iter().copied()).collect();
    for (part, &end) in ends.iter().enumerate() {
        while free[part] < end {
            let mut entry = entries[free[part]];
            loop {
                let to = part_of(&entry);
                std::mem::swap(&mut entries[free[to]], &mut entry);
                free[to] += 1;
                if to == part {
                    break;
                }
            }
        }
    }
    let mut begin = 0;
    for end in ends {
        entries[begin..end].sort_unstable();
        begin = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn what_comes_in_batches_is_found_in_few_pieces() {
        let mut rng = Rng::new(5);
        let (mut unwritten, mut all) = (Unwritten::default(), Vec::new());
        for batch in 0..60 {
            for _ in 0..rng.below(9_000) {
                let entry = Entry { fingerprint: rng.next_u64(), doc_id: all.len() as u32 + 1 };
                all.push(entry);
                unwritten.push(entry);
            }
            unwritten.order();
            let mut begin = 0;
            for &end in &unwritten.ends {
                assert!(unwritten.entries[begin..end].is_sorted(), "batch {batch}");
                begin = end;
            }
            assert!(
                unwritten.len() - begin <= UNSORTED_MAX && unwritten.ends.len() <= 8,
                "{:?}",
                unwritten.ends
            );
            for entry in all.iter().step_by(501) {
                assert_eq!(unwritten.find(entry.fingerprint), Some(entry.doc_id));
                assert_eq!(unwritten.find(entry.fingerprint ^ 1), None);
            }
        }
        all.sort_unstable();
        assert_eq!(unwritten.sorted(), all);
        unwritten.clear();
        assert_eq!(unwritten.find(all[0].fingerprint), None);
    }

    #[test]
    fn entries_are_sorted_by_parts_as_they_are_at_once() {
        let mut rng = Rng::new(6);
        for count in [0, 1, PART, 2 * PART, 50_000, 100_003] {
            // Even ones, and some that are not.
            for mask in [u64::MAX, 0xff, 0xffff << 48] {
                let entry = |doc_id| Entry { fingerprint: rng.next_u64() & mask, doc_id };
                let mut entries: Vec<Entry> = (0..count as u32).map(entry).collect();
                let mut expected = entries.clone();
                expected.sort();
                sort_even(&mut entries);
                assert!(entries == expected, "{count} {mask:x}");
            }
        }
    }
}
