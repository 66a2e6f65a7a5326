use crate::store_server::{Appended, Document, ReadError, Reader, Record};
use rapidhash::fast::RapidHashMap;
use std::path::{Path, PathBuf};

/// The documents that an import has stored, for the revisits that refer to them. They are read from the store, where one
/// read finds them wherever they were in a WARC file. Costs some 80 bytes for each document.
pub(super) struct StoredOriginals {
    data: PathBuf,
    /// Places of records, by the payload digest that the WARC record names.
    by_payload: RapidHashMap<u128, Place>,
    /// Places of the records that have a document in their block, by the store's digest.
    by_digest: RapidHashMap<u128, Place>,
    /// Opened again when it does not know a segment yet.
    reader: Option<Reader>,
    newest_known: u64,
    newest_noted: u64,
}

/// Segment and offset.
type Place = (u64, u64);

impl StoredOriginals {
    pub fn new(data: &Path) -> StoredOriginals {
        StoredOriginals {
            data: data.to_path_buf(),
            by_payload: RapidHashMap::default(),
            by_digest: RapidHashMap::default(),
            reader: None,
            newest_known: 0,
            newest_noted: 0,
        }
    }

    /// Notes a record. Of several with one payload the first is used.
    pub fn note(&mut self, payload: u128, appended: &Appended) {
        let own = (appended.segment, appended.offset);
        let place = match appended.is_reference {
            // Without an entry the document was stored before this import, and the indexes know where.
            true => self.by_digest.get(&appended.digest).copied().unwrap_or(own),
            false => *self.by_digest.entry(appended.digest).or_insert(own),
        };
        self.by_payload.entry(payload).or_insert(place);
        self.newest_noted = self.newest_noted.max(appended.segment);
    }

    pub fn find(&mut self, payload: u128) -> Result<Option<(Record, Document)>, ReadError> {
        let Some(&(segment, offset)) = self.by_payload.get(&payload) else { return Ok(None) };
        let reader = match self.reader.take().filter(|_| segment <= self.newest_known) {
            Some(reader) => reader,
            None => {
                self.newest_known = self.newest_noted;
                Reader::open(&self.data)?
            }
        };
        self.reader.insert(reader).read_at(segment, offset)
    }
}
