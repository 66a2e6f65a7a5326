use super::keep_set::{KeepSet, KeepSets};
use super::pack::pack;
use super::policy::History;
use super::reader::{ReadError, Reader};
use super::segment_file::{SegmentFile, list_readable};
use super::shard_share::ShardShare;
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_HEADER_BYTES};
use rapidhash::fast::RapidHashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Drops whole segments, the oldest first, except the documents that records of other segments need: those are all that
/// is left of their segment then.
pub struct Retention {
    data: PathBuf,
    keeping: RetentionRules,
    shares: Vec<Arc<ShardShare>>,
    /// The segment to look at next for what is out of date.
    cursor: u64,
    /// Segments of which only what others need is left: dropping them again would change nothing.
    spent: RapidHashSet<u64>,
}

/// Which sealed segments and records stay.
#[derive(Clone, Copy, Debug)]
pub struct RetentionRules {
    pub bytes_max: Option<u64>,
    pub history: History,
    /// Segments are packed up to this size.
    pub segment_bytes: u64,
    /// Called while it waits for the keeper.
    pub pause: fn(),
}

impl RetentionRules {
    /// Everything stays.
    pub fn all(segment_bytes: u64) -> RetentionRules {
        RetentionRules { bytes_max: None, history: History::All, segment_bytes, pause: std::hint::spin_loop }
    }
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

/// What was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub segments: usize,
    pub records: u64,
    pub bytes: u64,
    /// Records that had to stay, as others need them.
    pub kept: u64,
}

impl Dropped {
    fn add(&mut self, other: Dropped) {
        self.segments += other.segments;
        self.records += other.records;
        self.bytes += other.bytes;
        self.kept += other.kept;
    }
}

/// Segments that are packed into one are no more than this.
const GROUP_MAX: usize = 8;
/// Pauses after which a keeper that has not synced what was written is taken to wait for a disk.
const SETTLE_LOOKS: usize = 400;

impl Retention {
    pub fn new(data: &Path, keeping: RetentionRules, shares: Vec<Arc<ShardShare>>) -> Retention {
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

    /// Drops the oldest segments until the rest takes no more than this.
    pub fn drop_to(&mut self, bytes_max: u64) -> Result<Dropped, RetentionError> {
        let mut bytes = Reader::open(&self.data)?.file_bytes();
        let mut chosen = Vec::new();
        for segment in self.sealed()? {
            if bytes <= bytes_max {
                break;
            }
            if !self.spent.contains(&segment.number) {
                bytes = bytes.saturating_sub(segment.bytes());
                chosen.push(segment);
            }
        }
        self.drop_segments(&chosen)
    }

    /// Drops the oldest segments of which every record was fetched before this time.
    pub fn drop_before(&mut self, unix_ms: u64) -> Result<Dropped, RetentionError> {
        let mut chosen = Vec::new();
        for segment in self.sealed()? {
            if newest_fetch(&segment)? >= unix_ms {
                break;
            }
            chosen.push(segment);
        }
        self.drop_segments(&chosen)
    }

    /// Packs everything once, so that the newest record of each URL is left.
    pub fn repack(&mut self) -> Result<Dropped, RetentionError> {
        let mut dropped = Dropped::default();
        let last = self.sealed()?.last().map_or(0, |segment| segment.number);
        self.cursor = 0;
        while self.cursor <= last
            && let Some(some) = self.repack_group(0)?
        {
            dropped.add(some);
        }
        Ok(dropped)
    }

    /// Drops segments from the newest to the oldest, so that what only the newer ones needed goes with them.
    fn drop_segments(&mut self, chosen: &[SegmentFile]) -> Result<Dropped, RetentionError> {
        let mut dropped = Dropped::default();
        self.retire(chosen)?;
        for segment in chosen.iter().rev() {
            let reader = Reader::open(&self.data)?;
            let kept = KeepSets::new(&reader)?.of(segment, false)?;
            let some = self.pack(&[(segment.clone(), kept)])?;
            if some.kept > 0 {
                self.spent.insert(segment.number);
            }
            dropped.add(some);
        }
        Ok(dropped)
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
    fn repack_group(&mut self, share: u64) -> Result<Option<Dropped>, RetentionError> {
        let reader = Reader::open(&self.data)?;
        let keep_sets = KeepSets::new(&reader)?;
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
            let kept = keep_sets.of(segment, true)?;
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
            return Ok(Some(Dropped::default()));
        }
        let chosen: Vec<SegmentFile> = group.iter().map(|(segment, _)| segment.clone()).collect();
        self.retire(&chosen)?;
        // A record written before they were retired may depend on one of them, so they are decided again.
        let reader = Reader::open(&self.data)?;
        let keep_sets = KeepSets::new(&reader)?;
        let mut decided = Vec::new();
        for segment in chosen {
            let kept = keep_sets.of(&segment, true)?;
            decided.push((segment, kept));
        }
        self.pack(&decided).map(Some)
    }

    /// Records of a group, its header aside.
    fn group_bytes_max(&self) -> u64 {
        self.keeping.segment_bytes.min(SEGMENT_BYTES_MAX / 2) - SEGMENT_HEADER_BYTES as u64
    }

    fn pack(&self, decided: &[(SegmentFile, KeepSet)]) -> Result<Dropped, RetentionError> {
        self.settle()?;
        let path = decided.last().map_or(&self.data, |(segment, _)| &segment.path);
        let sources: Vec<_> = decided.iter().map(|(segment, kept)| (segment, &kept.places)).collect();
        pack(&sources).map_err(|cause| RetentionError::Pack { path: path.clone(), cause })?;
        let sum = |of: fn(&KeepSet) -> u64| decided.iter().map(|(_, kept)| of(kept)).sum::<u64>();
        let kept = sum(|kept| kept.places.len() as u64);
        Ok(Dropped {
            segments: decided.len() - usize::from(kept > 0),
            records: sum(|kept| kept.records_before) - kept,
            bytes: sum(|kept| kept.bytes_before) - sum(|kept| kept.bytes),
            kept,
        })
    }

    /// Makes sure that no record written from here on depends on a document of these.
    fn retire(&self, segments: &[SegmentFile]) -> Result<(), RetentionError> {
        let Some(last) = segments.iter().map(|segment| segment.number).max() else {
            return Ok(());
        };
        match self.shares.iter().all(|share| share.retire(last)) {
            true => Ok(()),
            false => Err(RetentionError::Busy),
        }
    }

    /// Waits until every record that was read is durable: nothing is dropped because of a record that a power loss could
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
        let all = list_readable(&self.data.join("segments"))?;
        Ok(all.into_iter().filter(|segment| segment.sealed).collect())
    }
}

/// When the newest record of a segment was fetched.
fn newest_fetch(segment: &SegmentFile) -> Result<u64, ReadError> {
    let mut newest = 0;
    let scanned = segment.scan(|record, _, _| newest = newest.max(record.fetched_unix_ms));
    scanned.map_err(|cause| segment.unreadable(cause))?;
    Ok(newest)
}
