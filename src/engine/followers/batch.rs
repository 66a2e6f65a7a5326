use crate::store_server::{Document, Located, ReadError, Reader, Record};
use std::ops::ControlFlow;
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Documents of one segment, in the order of their records.
pub(super) struct Batch {
    pub segment: u64,
    /// Where its first record begins, or one before that is not copied; where the next batch begins; and whether there is
    /// none in this segment.
    pub from: u64,
    pub next: u64,
    pub is_end: bool,
    pub documents: Vec<Outgoing>,
    /// The user agent that they were asked for with, where it is known.
    pub agent: Option<String>,
    /// Documents that another record is to have, and none has.
    pub lost: u64,
    /// Of heads and bodies.
    bytes: usize,
    pub failed: Option<ReadError>,
}

/// A document as it goes out.
pub(super) struct Outgoing {
    pub located: Located,
    pub document: Document,
}

pub(super) const BATCH_RECORDS: usize = 1_000;
/// A batch with more has one document.
pub(super) const BATCH_BYTES: usize = 16 << 20;

impl Batch {
    pub fn new(segment: u64, from: u64) -> Batch {
        Batch {
            segment,
            from,
            next: from,
            is_end: false,
            documents: Vec::new(),
            agent: None,
            lost: 0,
            bytes: 0,
            failed: None,
        }
    }

    /// Takes a record, if it is one of those that are copied; breaks if there is no room for it.
    pub fn take(&mut self, reader: &Reader, data: &Path, located: Located, bytes: &[u8]) -> ControlFlow<()> {
        let record = &located.record;
        if !is_copied(record) {
            return ControlFlow::Continue(());
        }
        let size = record.head_len as usize + record.document_len as usize;
        let is_full = self.documents.len() >= BATCH_RECORDS || self.bytes + size > BATCH_BYTES;
        if is_full && !self.documents.is_empty() {
            return ControlFlow::Break(());
        }
        // Where a document has moved since the reader was opened, a new one finds it.
        let found = match reader.document_of(&located, bytes) {
            Ok(None) => Reader::open(data).and_then(|fresh| fresh.document_of(&located, bytes)),
            found => found,
        };
        match found {
            Ok(Some(document)) => {
                self.bytes += size;
                self.documents.push(Outgoing { located, document });
                ControlFlow::Continue(())
            }
            Ok(None) => {
                self.lost += 1;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// A name for what is in it: the same for the same records, another for others at the same place.
    pub fn print(&self) -> u64 {
        let mut hash = Xxh3::new();
        for outgoing in &self.documents {
            let record = &outgoing.located.record;
            hash.update(&outgoing.doc_id().to_le_bytes());
            hash.update(&record.fetched_unix_ms.to_le_bytes());
            hash.update(&record.digest.to_le_bytes());
        }
        hash.digest()
    }
}

/// Successes that brought a document. A 304 stands for one that was copied before.
fn is_copied(record: &Record) -> bool {
    record.success && !record.is_unchanged()
}

impl Outgoing {
    /// The number of the document. What an import brought has none: a negative one of its URL.
    pub fn doc_id(&self) -> i64 {
        let record = &self.located.record;
        match record.is_imported() {
            true => -((xxh3_64(record.url.as_bytes()) >> 2) as i64) - 1,
            false => i64::from(record.doc_id),
        }
    }

    /// The first value of that header, in printable ASCII.
    pub fn content_type(&self) -> String {
        const NAME: &[u8] = b"content-type:";
        let mut lines = self.document.head.split(|&octet| octet == b'\n');
        let line =
            lines.find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)));
        let value = line.map_or(&b""[..], |line| line[NAME.len()..].trim_ascii());
        let plain = |&octet: &u8| if (b' '..=b'~').contains(&octet) { char::from(octet) } else { '?' };
        value.iter().take(CONTENT_TYPE_MAX).map(plain).collect()
    }
}

const CONTENT_TYPE_MAX: usize = 200;
