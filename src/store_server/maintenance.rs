use super::index::{Catalog, Entries, FAN_IN, IndexFile, index_path, merge, runs_of};
use super::keeper::Sealed;
use super::mmap::Segment;
use super::reader::ReadError;
use super::retention::{Retention, RetentionError, RetentionRules};
use super::segment_file::{SegmentFile, list_readable};
use super::shard_share::ShardShare;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Looks after sealed segments: indexes them, merges indexes, drops the oldest when there are too many, and packs those that
/// are mostly out of date. It has a thread of its own, for which no other thread waits.
pub struct Maintenance {
    directory: PathBuf,
    retention: Retention,
    /// The indexes of sealed segments have to be checked: at the start, and after an error.
    is_behind: bool,
}

#[derive(Debug, Error)]
pub enum MaintenanceError {
    #[error("cannot write the index of {path}: {cause} (lookups read the segment itself meanwhile)")]
    Index { path: PathBuf, cause: io::Error },
    #[error("cannot merge indexes in {path}: {cause}")]
    Merge { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Retention(#[from] RetentionError),
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// The result of [`Maintenance::reindex`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reindexed {
    pub segments: usize,
    pub records: usize,
}

impl Maintenance {
    /// For a data directory whose lock the caller holds. `shares` are those of the shards that write to it.
    pub fn new(data: &Path, keeping: RetentionRules, shares: Vec<Arc<ShardShare>>) -> Maintenance {
        Maintenance {
            directory: data.join("segments"),
            retention: Retention::new(data, keeping, shares),
            is_behind: true,
        }
    }

    /// Indexes what was sealed, and finishes what an earlier turn left undone.
    pub fn turn(&mut self, sealed: &[Sealed]) -> Result<(), MaintenanceError> {
        let turned = self.process(sealed);
        self.is_behind |= turned.is_err();
        turned
    }

    /// How many segments are sealed, and the bytes that they take.
    pub fn sealed(&self) -> Result<(u64, u64), MaintenanceError> {
        let segments = list_readable(&self.directory)?;
        let sealed = segments.iter().filter(|segment| segment.sealed);
        Ok(sealed.fold((0, 0), |(count, bytes), segment| (count + 1, bytes + segment.bytes())))
    }

    /// Checks every segment in the next turn: something may have been sealed that was not handed to it.
    pub fn look_again(&mut self) {
        self.is_behind = true;
    }

    fn process(&mut self, sealed: &[Sealed]) -> Result<(), MaintenanceError> {
        for Sealed { segment, file } in sealed {
            // It may have been packed since, and then another file has its name.
            if let Some(bytes) = segment.written().filter(|_| is_still(segment, file)) {
                write_index(file, Entries::of_bytes(file.number, bytes), bytes.len() as u64)?;
            }
        }
        if self.is_behind {
            self.catch_up()?;
            self.is_behind = false;
        } else if sealed.is_empty() {
            return Ok(());
        }
        while self.merge_some()? {}
        self.retention.turn()?;
        Ok(())
    }

    /// Indexes every sealed segment that has none.
    fn catch_up(&mut self) -> Result<(), MaintenanceError> {
        for segment in list_readable(&self.directory)?.into_iter().filter(|segment| segment.sealed) {
            let path = index_path(&segment.path);
            if !matches!(IndexFile::open(&path), Ok(Some(_))) {
                index_file(&segment)?;
            }
        }
        Ok(())
    }

    /// Writes every index again.
    pub fn reindex(&mut self) -> Result<Reindexed, MaintenanceError> {
        let merging = |cause| MaintenanceError::Merge { path: self.directory.clone(), cause };
        for run in runs_of(&self.directory).map_err(merging)? {
            fs::remove_file(&run.path).map_err(merging)?;
        }
        let mut reindexed = Reindexed::default();
        for segment in list_readable(&self.directory)?.into_iter().filter(|segment| segment.sealed) {
            reindexed.records += index_file(&segment)?;
            reindexed.segments += 1;
        }
        while self.merge_some()? {}
        Ok(reindexed)
    }

    /// Merges the indexes of one tier, once there are enough of them. True if it did.
    fn merge_some(&self) -> Result<bool, MaintenanceError> {
        let merging = |cause| MaintenanceError::Merge { path: self.directory.clone(), cause };
        let runs = runs_of(&self.directory).map_err(merging)?;
        let mut tiers: Vec<Vec<PathBuf>> = vec![Vec::new()];
        let segments = list_readable(&self.directory)?;
        let catalog = Catalog::open(&self.directory, &segments).map_err(merging)?;
        for segment in segments.iter().filter(|segment| segment.sealed && catalog.is_single(segment.number)) {
            tiers[0].push(index_path(&segment.path));
        }
        for run in runs.iter().rev() {
            let tier = run.tier as usize;
            tiers.resize(tiers.len().max(tier + 1), Vec::new());
            tiers[tier].push(run.path.clone());
        }
        let Some(tier) = tiers.iter().position(|paths| paths.len() >= FAN_IN) else {
            return Ok(false);
        };
        let paths = &tiers[tier][..FAN_IN];
        let mut sources = Vec::new();
        for path in paths {
            match IndexFile::open(path).map_err(merging)? {
                Some(index) => sources.push(index),
                // Not whole: the next turn writes it again before anything is merged.
                None => {
                    let _ = fs::remove_file(path);
                    return Err(merging(io::Error::other("an index is broken and was removed")));
                }
            }
        }
        merge(&self.directory, tier as u32 + 1, &sources).map_err(merging)?;
        // The index of a segment stays beside it; a run is removed once a larger one holds the same.
        for path in paths.iter().filter(|_| tier > 0) {
            fs::remove_file(path).map_err(merging)?;
        }
        Ok(true)
    }
}

fn is_still(segment: &Segment, file: &SegmentFile) -> bool {
    let named = file.path.metadata().ok();
    let mapped = segment.file().and_then(|(file, _)| file.metadata().ok());
    named
        .zip(mapped)
        .is_some_and(|(named, mapped)| named.ino() == mapped.ino() && named.dev() == mapped.dev())
}

fn write_index(file: &SegmentFile, entries: Entries, bytes: u64) -> Result<(), MaintenanceError> {
    entries
        .write(&index_path(&file.path), file.number, bytes)
        .map_err(|cause| MaintenanceError::Index { path: file.path.clone(), cause })
}

/// Reads a sealed segment and writes its index. Returns how many records it has.
pub(super) fn index_file(segment: &SegmentFile) -> Result<usize, MaintenanceError> {
    let mut entries = Entries::default();
    let mut records = 0;
    let scanned = segment.scan(|record, offset, _| {
        records += 1;
        entries.note(record.summary(), record.url.as_bytes(), segment.number, offset);
    });
    if scanned.map_err(|cause| segment.unreadable(cause))?.is_some() {
        write_index(segment, entries, segment.bytes())?;
    }
    Ok(records)
}
