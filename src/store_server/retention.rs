use super::append::ShardShare;
use super::digests::url_hash;
use super::directory::{SegmentFile, list};
use super::index::{AllPlaces, List, Place};
use super::librarian::Keeping;
use super::pack::pack;
use super::policy::History;
use super::reader::{Located, ReadError, Reader};
use super::record::Record;
use super::walk::walk;
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_HEADER_BYTES};
use rapidhash::fast::RapidHashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Which records stay. Whole segments go, the oldest first, but for the documents that records which stay stand on: those
/// are all that is left of their segment then.
pub struct Retention {
    data: PathBuf,
    keeping: Keeping,
    shares: Vec<Arc<ShardShare>>,
    /// The segment to look at next for what is out of date.
    cursor: u64,
    /// Segments of which only what is needed is left: letting them go again would change nothing.
    spent: RapidHashSet<u64>,
}

#[derive(Debug, Error)]
pub enum RetentionError {
    #[error("cannot pack {path}: {cause} (nothing is lost; it is tried again)")]
    Pack { path: PathBuf, cause: io::Error },
    #[error("old segments stay for now: a shard or the disk is busy (it is tried again)")]
    Busy,
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// What was let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    pub segments: usize,
    pub records: u64,
    pub bytes: u64,
    /// Records that had to stay, as others stand on them.
    pub kept: u64,
}

impl LetGo {
    fn add(&mut self, other: LetGo) {
        self.segments += other.segments;
        self.records += other.records;
        self.bytes += other.bytes;
        self.kept += other.kept;
    }
}

/// Segments that are packed into one are no more than this.
const GROUP_MAX: usize = 8;
/// A keeper that has not synced what was written after so many pauses waits for a disk.
const SETTLE_LOOKS: usize = 400;

impl Retention {
    pub fn new(data: &Path, keeping: Keeping, shares: Vec<Arc<ShardShare>>) -> Retention {
        Retention { data: data.to_path_buf(), keeping, shares, cursor: 0, spent: RapidHashSet::default() }
    }

    /// Does what the settings ask for, a bounded part of it at a time.
    pub fn turn(&mut self) -> Result<(), RetentionError> {
        if let Some(bytes_max) = self.keeping.bytes_max {
            self.drop_to(bytes_max)?;
        }
        if self.keeping.history == History::Newest {
            self.repack_some()?;
        }
        Ok(())
    }

    /// Lets the oldest segments go until the rest takes no more than this.
    pub fn drop_to(&mut self, bytes_max: u64) -> Result<LetGo, RetentionError> {
        let mut bytes = Reader::open(&self.data)?.file_bytes();
        let mut chosen = Vec::new();
        for segment in self.sealed()? {
            if bytes <= bytes_max {
                break;
            }
            if !self.spent.contains(&segment.number) {
                bytes = bytes.saturating_sub(segment.path.metadata().map_or(0, |meta| meta.len()));
                chosen.push(segment);
            }
        }
        self.let_go(&chosen)
    }

    /// Lets the oldest segments go of which every record was fetched before this time.
    pub fn drop_before(&mut self, unix_ms: u64) -> Result<LetGo, RetentionError> {
        let mut chosen = Vec::new();
        for segment in self.sealed()? {
            if newest_fetch(&segment)? >= unix_ms {
                break;
            }
            chosen.push(segment);
        }
        self.let_go(&chosen)
    }

    /// Packs everything once, so that the newest record of each URL is left.
    pub fn repack(&mut self) -> Result<LetGo, RetentionError> {
        let mut let_go = LetGo::default();
        let last = self.sealed()?.last().map_or(0, |segment| segment.number);
        self.cursor = 0;
        while self.cursor <= last
            && let Some(some) = self.repack_group(0)?
        {
            let_go.add(some);
        }
        Ok(let_go)
    }

    /// From the newest to the oldest, so that what only the newer ones needed can go with them.
    fn let_go(&mut self, chosen: &[SegmentFile]) -> Result<LetGo, RetentionError> {
        let mut let_go = LetGo::default();
        self.retire(chosen)?;
        for segment in chosen.iter().rev() {
            let reader = Reader::open(&self.data)?;
            let kept = Deciding::new(&reader)?.of(segment, false)?;
            let some = self.pack(&[(segment.clone(), kept)])?;
            if some.kept > 0 {
                self.spent.insert(segment.number);
            }
            let_go.add(some);
        }
        Ok(let_go)
    }

    /// Looks at the next segments, and packs them if at least half of them is out of date.
    fn repack_some(&mut self) -> Result<(), RetentionError> {
        if self.repack_group(2)?.is_none() {
            self.cursor = 0;
        }
        Ok(())
    }

    /// Packs the segments at the cursor into one, if no less than one part in `share` of their bytes is out of date; 0
    /// packs whatever has anything. `None` at the end of the store.
    fn repack_group(&mut self, share: u64) -> Result<Option<LetGo>, RetentionError> {
        let reader = Reader::open(&self.data)?;
        let deciding = Deciding::new(&reader)?;
        let mut group = Vec::new();
        let (mut bytes, mut kept_bytes) = (0, 0);
        let mut next = None;
        for segment in reader.segment_files() {
            if segment.number < self.cursor {
                continue;
            }
            // What is packed takes the number of the last of its group, and must not become newer than what lies between.
            if !segment.sealed {
                if group.is_empty() {
                    continue;
                }
                next = Some(segment.number + 1);
                break;
            }
            let kept = deciding.of(segment, true)?;
            if group.len() == GROUP_MAX
                || !group.is_empty() && kept_bytes + kept.bytes > self.group_bytes_max()
            {
                next = Some(segment.number);
                break;
            }
            bytes += kept.bytes_before;
            kept_bytes += kept.bytes;
            group.push((segment.clone(), kept));
        }
        let Some((last, _)) = group.last() else {
            return Ok(None);
        };
        self.cursor = next.unwrap_or(last.number + 1);
        let out_of_date = bytes - kept_bytes;
        if out_of_date == 0 || share > 0 && out_of_date * share < bytes {
            return Ok(Some(LetGo::default()));
        }
        let chosen: Vec<SegmentFile> = group.iter().map(|(segment, _)| segment.clone()).collect();
        self.retire(&chosen)?;
        // Between the look and the fence a record may have come that stands on one of these: they are looked at again.
        let reader = Reader::open(&self.data)?;
        let deciding = Deciding::new(&reader)?;
        let mut decided = Vec::new();
        for segment in chosen {
            let kept = deciding.of(&segment, true)?;
            decided.push((segment, kept));
        }
        self.pack(&decided).map(Some)
    }

    /// Records of a group, its header aside.
    fn group_bytes_max(&self) -> u64 {
        self.keeping.segment_bytes.min(SEGMENT_BYTES_MAX / 2) - SEGMENT_HEADER_BYTES as u64
    }

    fn pack(&self, decided: &[(SegmentFile, Kept)]) -> Result<LetGo, RetentionError> {
        self.settle()?;
        let path = decided.last().map_or(&self.data, |(segment, _)| &segment.path);
        let sources: Vec<_> = decided.iter().map(|(segment, kept)| (segment, &kept.places)).collect();
        pack(&sources).map_err(|cause| RetentionError::Pack { path: path.clone(), cause })?;
        let sum = |of: fn(&Kept) -> u64| decided.iter().map(|(_, kept)| of(kept)).sum::<u64>();
        let kept = sum(|kept| kept.places.len() as u64);
        Ok(LetGo {
            segments: decided.len() - usize::from(kept > 0),
            records: sum(|kept| kept.records_before) - kept,
            bytes: sum(|kept| kept.bytes_before) - sum(|kept| kept.bytes),
            kept,
        })
    }

    /// Nothing that is written from here on stands on a document of these.
    fn retire(&self, segments: &[SegmentFile]) -> Result<(), RetentionError> {
        let Some(last) = segments.iter().map(|segment| segment.number).max() else {
            return Ok(());
        };
        match self.shares.iter().all(|share| share.retire(last)) {
            true => Ok(()),
            false => Err(RetentionError::Busy),
        }
    }

    /// Waits until everything that was looked at is durable: nothing goes for the sake of a record that a power loss could
    /// take back.
    fn settle(&self) -> Result<(), RetentionError> {
        for share in &self.shares {
            let written = share.written();
            let is_durable = (0..SETTLE_LOOKS).any(|_| {
                let is_durable = share.durable() >= written;
                if !is_durable {
                    (self.keeping.pause)();
                }
                is_durable
            });
            if !is_durable {
                return Err(RetentionError::Busy);
            }
        }
        Ok(())
    }

    fn sealed(&self) -> Result<Vec<SegmentFile>, RetentionError> {
        let directory = self.data.join("segments");
        let all = list(&directory).map_err(|cause| ReadError::Unreadable { path: directory, cause })?;
        Ok(all.into_iter().filter(|segment| segment.sealed).collect())
    }
}

/// What is to stay of a segment.
struct Kept {
    places: RapidHashSet<Place>,
    bytes: u64,
    bytes_before: u64,
    records_before: u64,
}

impl Kept {
    fn add(&mut self, located: &Located) {
        self.places.insert(located.place());
        self.bytes += u64::from(located.record.record_bytes);
    }
}

/// Decides what stays of a segment.
struct Deciding<'a> {
    reader: &'a Reader,
    all: AllPlaces<'a>,
}

impl<'a> Deciding<'a> {
    fn new(reader: &'a Reader) -> Result<Deciding<'a>, RetentionError> {
        Ok(Deciding { reader, all: reader.all_places()? })
    }

    /// From its newest record to its oldest: what stays may stand on an older one of its URL. With `newest` the newest
    /// record of a URL stays, too.
    fn of(&self, segment: &SegmentFile, newest: bool) -> Result<Kept, RetentionError> {
        let mut records: Vec<Located> = Vec::new();
        self.reader.each_of(segment, &mut |located, _| records.push(located))?;
        let mut kept = Kept {
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

    /// What there is of its URL that is newer, leaving out what goes with it.
    fn newer(&self, located: &Located, kept: &Kept) -> Result<Newer, RetentionError> {
        let own = located.place();
        let mut newer = Newer::None;
        for place in self.all.find(List::Url, url_hash(located.record.url.as_bytes())) {
            if place <= own {
                break;
            }
            // Another URL may have the same hash.
            if self.reader.read(place)?.is_none_or(|(other, _)| other.record.url != located.record.url) {
                continue;
            }
            // Also one that goes: it does so because a still newer one is there.
            if !place.is_unchanged() {
                return Ok(Newer::Another);
            }
            if place.segment != own.segment || kept.places.contains(&place) {
                newer = Newer::Unchanged;
            }
        }
        // A record without a document of its own is nothing to stand on.
        if newer == Newer::Unchanged && located.record.is_unchanged() {
            newer = Newer::Another;
        }
        Ok(newer)
    }

    /// Whether a record that stays has its document here and nowhere else.
    fn is_referred_to(&self, located: &Located, kept: &Kept) -> Result<bool, RetentionError> {
        let record = &located.record;
        if record.digest == 0 || !record.has_document() {
            return Ok(false);
        }
        let own = located.place();
        let mut places = self.all.find(List::Digest, record.digest as u64);
        places.retain(|place| {
            let goes = place.segment == own.segment && !kept.places.contains(place);
            !place.is_at(own) && !place.is_unchanged() && !goes
        });
        // Whoever refers to it finds the newer copy.
        let copies = places.iter().filter(|place| !place.is_reference() && **place > own);
        if self.any_with(copies, record.digest)? {
            return Ok(false);
        }
        self.any_with(places.iter().filter(|place| place.is_reference()), record.digest)
    }

    fn any_with<'p>(
        &self,
        places: impl Iterator<Item = &'p Place>,
        digest: u128,
    ) -> Result<bool, RetentionError> {
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
    /// Only records that read like this one.
    Unchanged,
    /// One with a document, or without any.
    Another,
}

/// When the last record of a segment was fetched.
fn newest_fetch(segment: &SegmentFile) -> Result<u64, RetentionError> {
    let unreadable = |cause| ReadError::Unreadable { path: segment.path.clone(), cause };
    let mut newest = 0;
    if let Some((file, sealed)) = segment.open().map_err(unreadable)? {
        let see = |record: Record, _, _: &[u8]| newest = newest.max(record.fetched_unix_ms);
        walk(&file, segment.number, segment.walking(sealed), see).map_err(unreadable)?;
    }
    Ok(newest)
}
