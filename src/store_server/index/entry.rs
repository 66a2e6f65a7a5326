use super::super::record::RecordSummary;
use crate::base::{u32_at, u64_at};
use std::cmp::{Ordering, Reverse};
use std::hash::{Hash, Hasher};

/// Where a record lies, and what kind it is. Ordered as they were written: the later record is the greater one, and of
/// those that were fetched the newer. Places are equal that are the same, whatever is known of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub segment: u32,
    /// Records begin on multiples of eight, so three bits are free.
    packed: u32,
}

const REFERENCE: u32 = 1;
const UNCHANGED: u32 = 2;
const IMPORTED: u32 = 4;
const BITS: u32 = 7;

impl Place {
    pub fn of(summary: RecordSummary, segment: u64, offset: u64) -> Place {
        let Place { segment, packed } = Place::at(segment, offset);
        let kind = u32::from(summary.is_reference) * REFERENCE
            + u32::from(summary.is_unchanged) * UNCHANGED
            + u32::from(summary.is_imported) * IMPORTED;
        Place { segment, packed: packed | kind }
    }

    /// A place of a record of any kind.
    pub fn at(segment: u64, offset: u64) -> Place {
        debug_assert!(offset & u64::from(BITS) == 0 && offset <= u64::from(u32::MAX));
        Place { segment: segment as u32, packed: offset as u32 & !BITS }
    }

    pub fn offset(self) -> u64 {
        u64::from(self.packed & !BITS)
    }

    /// Its document is another record's, named by digest.
    pub fn is_reference(self) -> bool {
        self.packed & REFERENCE != 0
    }

    /// Its document is the one that was stored before for its URL.
    pub fn is_unchanged(self) -> bool {
        self.packed & UNCHANGED != 0
    }

    /// It is as old as its fetch, not as its place. An index of an earlier build does not say so.
    pub fn is_imported(self) -> bool {
        self.packed & IMPORTED != 0
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        (self.segment, self.offset()).cmp(&(other.segment, other.offset()))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.segment, self.offset()).hash(state);
    }
}

/// A line of an index. Two are equal that say the same, also of the kind.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Hash of the URL, number of the document, or lower half of its digest.
    pub key: u64,
    pub place: Place,
}

pub const ENTRY_BYTES: usize = 16;

impl Entry {
    pub fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.place.segment.to_le_bytes());
        bytes[12..].copy_from_slice(&self.place.packed.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Entry {
        let place = Place { segment: u32_at(bytes, 8), packed: u32_at(bytes, 12) };
        Entry { key: u64_at(bytes, 0), place }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Entry {}

/// By key, and of one key the latest first.
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (self.key, Reverse(self.place)).cmp(&(other.key, Reverse(other.place)))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
