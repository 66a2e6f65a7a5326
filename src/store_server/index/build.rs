use super::super::dedup::url_hash;
use super::super::layout::HEADER_BYTES;
use super::super::record::{RecordSummary, check_header};
use super::entry::{Entry, Place};
use super::file;
use crate::limits::SEGMENT_HEADER_BYTES;
use std::io;
use std::path::Path;

/// What an index says of one segment.
#[derive(Default)]
pub struct Entries {
    lists: [Vec<Entry>; 3],
}

impl Entries {
    /// Of a segment in memory, from its first byte. Headers are checked, documents are not looked at.
    pub fn of_bytes(segment: u64, bytes: &[u8]) -> Entries {
        let mut entries = Entries::default();
        let mut offset = SEGMENT_HEADER_BYTES;
        while let Some(rest) = bytes.get(offset..)
            && let Ok(lengths) = check_header(rest, segment)
            && let Some(url) = rest.get(HEADER_BYTES..HEADER_BYTES + lengths.url)
        {
            entries.note(RecordSummary::of(rest), url, segment, offset as u64);
            offset += lengths.record;
        }
        entries
    }

    pub fn note(&mut self, summary: RecordSummary, url: &[u8], segment: u64, offset: u64) {
        let place = Place::of(summary, segment, offset);
        let [urls, documents, digests] = &mut self.lists;
        urls.push(Entry { key: url_hash(url), place });
        documents.push(Entry { key: u64::from(summary.doc_id), place });
        if summary.digest != 0 {
            digests.push(Entry { key: summary.digest as u64, place });
        }
    }

    /// The three lists, sorted.
    pub fn sorted(mut self) -> [Vec<Entry>; 3] {
        for list in &mut self.lists {
            list.sort_unstable();
        }
        self.lists
    }

    /// Writes them as the index of a segment of `bytes` bytes.
    pub fn write(self, path: &Path, segment: u64, bytes: u64) -> io::Result<()> {
        let lists = self.sorted();
        let counts = [lists[0].len(), lists[1].len(), lists[2].len()];
        file::write(path, &[(segment, bytes)], counts, lists.map(|list| list.into_iter().map(Ok)))
    }
}
