use super::selection::Selection;
use crate::base::fingerprint;
use crate::proto::warc::base32;
use crate::store_server::{Document, Located, ReadError, Reader};
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use sha1::{Digest, Sha1};

/// A record that has a document which others refer to.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub url: Box<str>,
    pub unix_ms: u64,
    sha1: [u8; 20],
}

impl Original {
    fn of(located: &Located, document: &Document) -> Original {
        let sha1 = Sha1::digest(&document.body).into();
        Original { url: located.record.url.as_str().into(), unix_ms: located.record.fetched_unix_ms, sha1 }
    }

    pub fn payload_digest(&self) -> String {
        format!("sha1:{}", base32(&self.sha1))
    }
}

/// Where the documents of references are. Two scans of the store find them, because either may come first; a store without
/// references is scanned once. Costs 16 bytes for every document that is referred to more than once or from
/// elsewhere, and some 100 bytes and the URL for every record that has one of them.
#[derive(Default)]
pub(super) struct Originals {
    any: RapidHashMap<u128, Original>,
    /// Of the same URL, which is better: by digest and fingerprint of the URL.
    own: RapidHashMap<(u128, u64), Original>,
}

impl Originals {
    /// Finds those among the selected records: a reference to a record that is not archived would lead nowhere.
    pub fn find(reader: &Reader, selection: &Selection) -> Result<Originals, ReadError> {
        let mut wanted: RapidHashSet<u128> = RapidHashSet::default();
        reader.each(|located, _| {
            if located.record.is_reference && selection.holds(&located) {
                wanted.insert(located.record.digest);
            }
        })?;
        let mut originals = Originals::default();
        if wanted.is_empty() {
            return Ok(originals);
        }
        reader.each(|located, bytes| {
            let record = &located.record;
            let has = record.has_document() && wanted.contains(&record.digest) && selection.holds(&located);
            let key = (record.digest, fingerprint(record.url.as_bytes()));
            if has
                && !originals.own.contains_key(&key)
                && let Ok(Some(document)) = reader.unpack(&located, bytes)
            {
                let original = Original::of(&located, &document);
                originals.any.entry(record.digest).or_insert_with(|| original.clone());
                originals.own.insert(key, original);
            }
        })?;
        Ok(originals)
    }

    pub fn of(&self, located: &Located) -> Option<&Original> {
        let record = &located.record;
        let own = self.own.get(&(record.digest, fingerprint(record.url.as_bytes())));
        own.or_else(|| self.any.get(&record.digest))
    }
}
