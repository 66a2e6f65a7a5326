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

    /// Notes a record that was stored, by the payload digest that it names. Of several with one payload the first is used.
    pub fn note(&mut self, payload: Option<u128>, appended: &Appended) {
        let place = (appended.segment, appended.offset);
        if let Some(payload) = payload {
            self.by_payload.entry(payload).or_insert(place);
        }
        if !appended.is_reference && appended.digest != 0 {
            self.by_digest.entry(appended.digest).or_insert(place);
        }
        self.newest_noted = self.newest_noted.max(appended.segment);
    }

    /// The record that was noted for a payload, and its document.
    pub fn find(&mut self, payload: u128) -> Result<Option<(Record, Document)>, ReadError> {
        let Some(&own) = self.by_payload.get(&payload) else { return Ok(None) };
        let Some((located, bytes)) = self.reader(own)?.record_at(own.0, own.1)? else { return Ok(None) };
        let elsewhere = self.by_digest.get(&located.record.digest).filter(|_| located.record.is_reference);
        let document = match elsewhere.copied() {
            Some(place) => {
                let reader = self.reader(place)?;
                match reader.record_at(place.0, place.1)? {
                    Some((original, bytes)) => reader.unpack(&original, &bytes)?,
                    None => None,
                }
            }
            // Its own, or one that was stored before this import: the indexes know where.
            None => self.reader(own)?.document_of(&located, &bytes)?,
        };
        Ok(document.map(|document| (located.record, document)))
    }

    /// A reader that knows the segment of a place.
    fn reader(&mut self, place: Place) -> Result<&Reader, ReadError> {
        let reader = match self.reader.take().filter(|_| place.0 <= self.newest_known) {
            Some(reader) => reader,
            None => {
                self.newest_known = self.newest_noted;
                Reader::open(&self.data)?
            }
        };
        Ok(self.reader.insert(reader))
    }
}
