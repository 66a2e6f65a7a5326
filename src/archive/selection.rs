use super::capture::has_response;
use crate::base::fingerprint;
use crate::store_server::{Located, ReadError, Reader};
use rapidhash::fast::{RapidHashMap, RapidHashSet};

/// Which records of a store are archived.
pub(super) enum Selection {
    All,
    /// These places: segment and offset.
    Places(RapidHashSet<(u64, u64)>),
}

/// How much a record is worth where a URL has only one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// There was no response.
    Nothing,
    /// It says that an earlier one still holds.
    Unchanged,
    Document,
}

impl Selection {
    /// One record of each URL: the newest that has a document, and where none has, the newest. 40 bytes for each URL.
    pub fn newest(reader: &Reader) -> Result<Selection, ReadError> {
        let mut best: RapidHashMap<u64, (Worth, u64, u64)> = RapidHashMap::default();
        reader.each(|located, _| {
            let record = &located.record;
            let worth = match has_response(record) {
                false => Worth::Nothing,
                true if record.is_unchanged() => Worth::Unchanged,
                true => Worth::Document,
            };
            let found = (worth, located.segment, located.offset);
            let known = best.entry(fingerprint(record.url.as_bytes())).or_insert(found);
            // Records are shown oldest first.
            if worth >= known.0 {
                *known = found;
            }
        })?;
        Ok(Selection::Places(best.into_values().map(|(_, segment, offset)| (segment, offset)).collect()))
    }

    pub fn holds(&self, located: &Located) -> bool {
        match self {
            Selection::All => true,
            Selection::Places(places) => places.contains(&(located.segment, located.offset)),
        }
    }
}
