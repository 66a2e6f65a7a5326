use super::dedup::url_hash;
use super::index::{AllPlaces, List, Place};
use super::reader::{Located, ReadError, Reader};
use super::segment_file::SegmentFile;
use rapidhash::fast::RapidHashSet;

/// The records of a segment that stay.
pub(super) struct KeepSet {
    pub places: RapidHashSet<Place>,
    pub bytes: u64,
    pub bytes_before: u64,
    pub records_before: u64,
}

impl KeepSet {
    fn add(&mut self, located: &Located) {
        self.places.insert(located.place());
        self.bytes += u64::from(located.record.record_bytes);
    }
}

/// Decides which records of a segment stay.
pub(super) struct KeepSets<'a> {
    reader: &'a Reader,
    all: AllPlaces<'a>,
}

impl<'a> KeepSets<'a> {
    pub fn new(reader: &'a Reader) -> Result<KeepSets<'a>, ReadError> {
        Ok(KeepSets { reader, all: reader.all_places()? })
    }

    /// The records that others need, and with `newest` the newest record of each URL. Decided from the newest record to the
    /// oldest: what stays may need an older one of its URL.
    pub fn of(&self, segment: &SegmentFile, newest: bool) -> Result<KeepSet, ReadError> {
        let mut records: Vec<Located> = Vec::new();
        self.reader.each_of(segment, &mut |located, _| records.push(located))?;
        let mut kept = KeepSet {
            places: RapidHashSet::default(),
            bytes: 0,
            bytes_before: records.iter().map(|located| u64::from(located.record.record_bytes)).sum(),
            records_before: records.len() as u64,
        };
        for located in records.iter().rev() {
            let newer = self.newer(located, &kept)?;
            if newest && newer == Newer::None || newer == Newer::Unchanged {
                kept.add(located);
            }
        }
        // A reference may be older than the only copy that is left of its document, so this comes when all are decided.
        for located in &records {
            if !kept.places.contains(&located.place()) && self.is_referred_to(located, &kept)? {
                kept.add(located);
            }
        }
        Ok(kept)
    }

    /// What is newer of its URL, without the records that are dropped with it.
    fn newer(&self, located: &Located, kept: &KeepSet) -> Result<Newer, ReadError> {
        let own = located.place();
        let mut newer = Newer::None;
        let mut places = self.all.find(List::Url, url_hash(located.record.url.as_bytes()));
        self.reader.sort_by_age(&mut places)?;
        let rank = places.iter().position(|place| *place == own);
        places.truncate(rank.unwrap_or_else(|| places.partition_point(|place| *place > own)));
        for place in places {
            // Another URL may have the same hash.
            if self.reader.read(place)?.is_none_or(|(other, _)| other.record.url != located.record.url) {
                continue;
            }
            // Also one that is dropped: it is because a still newer one is there.
            if !place.is_unchanged() {
                return Ok(Newer::Another);
            }
            // Whether an import of this segment stays may not be decided yet.
            let may_stay = place.segment != own.segment || place.is_imported() || own.is_imported();
            if may_stay || kept.places.contains(&place) {
                newer = Newer::Unchanged;
            }
        }
        // A record without a document of its own is needed by no other.
        if newer == Newer::Unchanged && located.record.is_unchanged() {
            newer = Newer::Another;
        }
        Ok(newer)
    }

    /// Whether a record that stays has its document here and nowhere else.
    fn is_referred_to(&self, located: &Located, kept: &KeepSet) -> Result<bool, ReadError> {
        let record = &located.record;
        if record.digest == 0 || !record.has_document() {
            return Ok(false);
        }
        let own = located.place();
        let mut places = self.all.find(List::Digest, record.digest as u64);
        places.retain(|place| {
            let goes = place.segment == own.segment && !kept.places.contains(place);
            *place != own && !place.is_unchanged() && !goes
        });
        // References find the newer copy.
        let copies = places.iter().filter(|place| !place.is_reference() && **place > own);
        if self.any_with(copies, record.digest)? {
            return Ok(false);
        }
        self.any_with(places.iter().filter(|place| place.is_reference()), record.digest)
    }

    fn any_with<'p>(&self, places: impl Iterator<Item = &'p Place>, digest: u128) -> Result<bool, ReadError> {
        for place in places {
            if self.reader.read(*place)?.is_some_and(|(other, _)| other.record.digest == digest) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What is newer than a record, of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newer {
    None,
    /// Only records that repeat this one's document.
    Unchanged,
    /// One with a document, or without any.
    Another,
}
