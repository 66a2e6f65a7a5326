use super::capture::has_response;
use crate::base::fingerprint;
use crate::store_server::{Age, Located, ReadError, Reader};
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
    /// One record of each URL: the newest that has a document, and where none has, the newest. Its facts are kept for each
    /// URL until all are read.
    pub fn newest(reader: &Reader) -> Result<Selection, ReadError> {
        let mut best: RapidHashMap<u64, (Worth, Age)> = RapidHashMap::default();
        reader.each(|located, _| {
            let record = &located.record;
            let worth = match has_response(record) {
                false => Worth::Nothing,
                true if record.is_unchanged() => Worth::Unchanged,
                true => Worth::Document,
            };
            let age = located.age();
            let known = best.entry(fingerprint(record.url.as_bytes())).or_insert((worth, age));
            if worth > known.0 || worth == known.0 && age.is_newer_than(known.1) {
                *known = (worth, age);
            }
        })?;
        Ok(Selection::Places(best.into_values().map(|(_, age)| (age.segment, age.offset)).collect()))
    }

    pub fn holds(&self, located: &Located) -> bool {
        match self {
            Selection::All => true,
            Selection::Places(places) => places.contains(&(located.segment, located.offset)),
        }
    }
}
