/// What was said of URLs that were handed in lately, by their fingerprints: one that says no more than before changes
/// nothing, and need not be looked up on disk. A cache, empty at first and within its bound; what it forgets costs a
/// look-up.
///
/// Nothing but an import changes what is kept here of a URL, so that an entry stays true until the next.
#[derive(Default)]
pub(super) struct Said {
    /// A power of two of them, or none.
    buckets: Vec<[Entry; WAYS]>,
    len: usize,
}

/// What was said of one URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// A hash of the update tag; 0 without one.
    pub tag: u32,
    pub priority: u8,
    pub hits: u32,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0 where there is none.
    fingerprint: u64,
    word: u64,
}

/// Entries of a bucket: a line of the processor's cache.
const WAYS: usize = 4;
const BUCKET_BYTES: usize = WAYS * size_of::<Entry>();
const BUCKETS_MIN: usize = 1_024;
const HITS_MAX: u32 = (1 << 28) - 1;
const _: () = assert!(BUCKET_BYTES == 64);

impl Word {
    fn pack(self) -> u64 {
        u64::from(self.tag) << 32
            | u64::from(self.priority.min(15)) << 28
            | u64::from(self.hits.min(HITS_MAX))
    }

    fn unpack(word: u64) -> Word {
        let (tag, rest) = ((word >> 32) as u32, word as u32);
        Word { tag, priority: (rest >> 28) as u8, hits: rest & HITS_MAX }
    }

    /// Whether another says nothing that this did not.
    fn covers(self, other: Word) -> bool {
        (other.tag == 0 || other.tag == self.tag)
            && other.priority <= self.priority
            && (other.hits <= self.hits || self.hits == HITS_MAX)
    }
}

impl Said {
    fn bucket(&self, fingerprint: u64) -> usize {
        // The low bits choose within other tables.
        (fingerprint >> 20) as usize & (self.buckets.len() - 1)
    }

    /// Whether this was said of the URL already.
    pub fn covers(&self, fingerprint: u64, word: Word) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let bucket = &self.buckets[self.bucket(fingerprint)];
        bucket.iter().any(|entry| entry.fingerprint == fingerprint && Word::unpack(entry.word).covers(word))
    }

    /// Notes what is known to be said of a URL, within so much memory.
    pub fn note(&mut self, fingerprint: u64, word: Word, bytes_max: usize) {
        if fingerprint == 0 || bytes_max < BUCKETS_MIN * BUCKET_BYTES {
            return;
        }
        if self.len >= self.buckets.len() * WAYS / 2 && self.ram_bytes() * 2 <= bytes_max {
            self.grow();
        }
        if !self.buckets.is_empty() {
            self.put(Entry { fingerprint, word: word.pack() });
        }
    }

    fn put(&mut self, entry: Entry) {
        let at = self.bucket(entry.fingerprint);
        let bucket = &mut self.buckets[at];
        let same = bucket.iter().position(|old| old.fingerprint == entry.fingerprint);
        let place = same.or_else(|| bucket.iter().position(|old| old.fingerprint == 0));
        self.len += usize::from(same.is_none() && place.is_some());
        // One of the others goes; which one is as good as drawn.
        bucket[place.unwrap_or(entry.fingerprint as usize % WAYS)] = entry;
    }

    fn grow(&mut self) {
        let count = (2 * self.buckets.len()).max(BUCKETS_MIN);
        let old = std::mem::replace(&mut self.buckets, vec![[Entry::default(); WAYS]; count]);
        self.len = 0;
        for entry in old.into_iter().flatten().filter(|entry| entry.fingerprint != 0) {
            self.put(entry);
        }
    }

    pub fn clear(&mut self) {
        *self = Said::default();
    }

    pub fn ram_bytes(&self) -> usize {
        self.buckets.len() * BUCKET_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn it_stays_within_its_bound() {
        let mut said = Said::default();
        for fingerprint in 1..200_000_u64 {
            said.note(fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15), Word::default(), 1 << 20);
            assert!(said.ram_bytes() <= 1 << 20);
        }
        assert!(said.len > 10_000);
        said.note(1, Word::default(), 0);
        let mut none = Said::default();
        none.note(1, Word::default(), 1_000);
        assert!(none.ram_bytes() == 0 && !none.covers(1, Word::default()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
        #[test]
        fn what_it_says_was_said_was_said(
            words in prop::collection::vec((1_u64..60, 0_u32..3, 0_u8..16, prop_oneof![0_u32..4, Just(u32::MAX)]), 0..300),
        ) {
            let (mut said, mut model) = (Said::default(), HashMap::<u64, Word>::new());
            for (number, tag, priority, hits) in words {
                let fingerprint = number << 19;
                let word = Word { tag, priority, hits };
                if said.covers(fingerprint, word) {
                    let known = model[&fingerprint];
                    prop_assert!(tag == 0 || tag == known.tag);
                    prop_assert!(priority <= known.priority && hits.min(HITS_MAX) <= known.hits.min(HITS_MAX));
                }
                let before = model.get(&fingerprint).copied().unwrap_or_default();
                let tag = if tag == 0 { before.tag } else { tag };
                let now = Word { tag, priority: priority.max(before.priority), hits: hits.max(before.hits) };
                model.insert(fingerprint, now);
                said.note(fingerprint, now, 1 << 20);
                prop_assert!(said.covers(fingerprint, word));
            }
        }
    }
}
