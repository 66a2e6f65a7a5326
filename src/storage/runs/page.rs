use crate::base::{u32_at, u64_at};
use std::io;

/// A fingerprint and the document that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub fingerprint: u64,
    pub doc_id: u32,
}

/// A run is made of pages, and everything in a page is checked whenever it is read. All numbers are little-endian.
///
/// ```text
///   0      entries, 12 bytes each: fingerprint 8, doc_id 4; zeros after the last one of a run
///   4092   crc32c of everything before it
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    /// Never empty.
    entries: &'a [[u8; ENTRY_BYTES]],
}

pub(super) const PAGE_BYTES: usize = 4_096;
pub(super) const PAGE_ENTRIES: usize = PAGE_CRC / ENTRY_BYTES;
const ENTRY_BYTES: usize = 12;
const ENTRY_DOC_ID: usize = 8;
const PAGE_CRC: usize = PAGE_BYTES - 4;

const _: () = assert!(PAGE_ENTRIES * ENTRY_BYTES == PAGE_CRC);

impl<'a> Page<'a> {
    /// The first `count` entries of a page that checks.
    pub fn read(bytes: &'a [u8], count: usize) -> io::Result<Page<'a>> {
        let (entries, _) = check(bytes)?.as_chunks();
        assert!(count > 0, "no page is empty");
        Ok(Page { entries: &entries[..count] })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entry(&self, at: usize) -> Entry {
        let bytes = &self.entries[at];
        Entry { fingerprint: fingerprint_of(bytes), doc_id: u32_at(bytes, ENTRY_DOC_ID) }
    }

    pub fn iter(self) -> impl Iterator<Item = Entry> + 'a {
        (0..self.len()).map(move |at| self.entry(at))
    }

    pub fn fingerprint_first(&self) -> u64 {
        fingerprint_of(&self.entries[0])
    }

    pub fn fingerprint_last(&self) -> u64 {
        fingerprint_of(&self.entries[self.len() - 1])
    }

    pub fn find(&self, fingerprint: u64) -> Option<u32> {
        let at = self.entries.partition_point(|bytes| fingerprint_of(bytes) < fingerprint);
        (at < self.len())
            .then(|| self.entry(at))
            .filter(|entry| entry.fingerprint == fingerprint)
            .map(|entry| entry.doc_id)
    }
}

/// What a page holds, if it checks.
pub(super) fn check(bytes: &[u8]) -> io::Result<&[u8]> {
    let (held, crc) = bytes.split_at(PAGE_CRC);
    match crc32c::crc32c(held) == u32_at(crc, 0) {
        true => Ok(held),
        false => Err(broken("a page of a run does not check")),
    }
}

/// Puts an entry into a page that is being made.
pub(super) fn put(page: &mut [u8], at: usize, entry: Entry) {
    let bytes = &mut page[at * ENTRY_BYTES..][..ENTRY_BYTES];
    bytes[..ENTRY_DOC_ID].copy_from_slice(&entry.fingerprint.to_le_bytes());
    bytes[ENTRY_DOC_ID..].copy_from_slice(&entry.doc_id.to_le_bytes());
}

/// Ends a page that is being made.
pub(super) fn seal(page: &mut [u8]) {
    let crc = crc32c::crc32c(&page[..PAGE_CRC]);
    page[PAGE_CRC..].copy_from_slice(&crc.to_le_bytes());
}

/// A file that is not what we wrote.
pub(super) fn broken(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn fingerprint_of(entry: &[u8; ENTRY_BYTES]) -> u64 {
    u64_at(entry, 0)
}
