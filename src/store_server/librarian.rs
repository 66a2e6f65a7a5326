use super::append::ShardShare;
use super::directory::{SegmentFile, list};
use super::index::{Catalog, Entries, FAN_IN, IndexFile, index_path, merge, runs_of};
use super::keeper::Sealed;
use super::mmap::Segment;
use super::policy::History;
use super::reader::ReadError;
use super::retention::{Retention, RetentionError};
use super::walk::walk;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Keeps the house of sealed segments: indexes them, merges indexes, lets the oldest go when there are too many, and
/// packs anew what is mostly out of date. On a thread of its own; nothing that it does is ever waited for.
pub struct Librarian {
    directory: PathBuf,
    retention: Retention,
    /// The indexes of sealed segments are to be looked through: at the start, and after something went wrong.
    is_behind: bool,
}

/// Which sealed segments stay.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    pub bytes_max: Option<u64>,
    pub history: History,
    /// Segments are packed up to this size.
    pub segment_bytes: u64,
    /// What is done while the keeper is waited for.
    pub pause: fn(),
}

impl Keeping {
    /// Everything stays.
    pub fn all(segment_bytes: u64) -> Keeping {
        Keeping { bytes_max: None, history: History::All, segment_bytes, pause: std::hint::spin_loop }
    }
}

#[derive(Debug, Error)]
pub enum LibraryError {
    #[error("cannot write the index of {path}: {cause} (what it tells is read from the segment meanwhile)")]
    Index { path: PathBuf, cause: io::Error },
    #[error("cannot merge indexes in {path}: {cause}")]
    Merge { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Retention(#[from] RetentionError),
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// What making all indexes anew came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reindexed {
    pub segments: usize,
    pub records: usize,
}

impl Librarian {
    /// For a data directory whose lock the caller holds. `shares` are those of the shards that write to it.
    pub fn new(data: &Path, keeping: Keeping, shares: Vec<Arc<ShardShare>>) -> Librarian {
        Librarian {
            directory: data.join("segments"),
            retention: Retention::new(data, keeping, shares),
            is_behind: true,
        }
    }

    /// Sees to what was sealed, and to what was left undone.
    pub fn turn(&mut self, sealed: &[Sealed]) -> Result<(), LibraryError> {
        let turned = self.see_to(sealed);
        self.is_behind |= turned.is_err();
        turned
    }

    /// Something may have been sealed that it was not told of.
    pub fn look_again(&mut self) {
        self.is_behind = true;
    }

    fn see_to(&mut self, sealed: &[Sealed]) -> Result<(), LibraryError> {
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
    fn catch_up(&mut self) -> Result<(), LibraryError> {
        for segment in self.segments()?.into_iter().filter(|segment| segment.sealed) {
            let path = index_path(&segment.path);
            if !matches!(IndexFile::open(&path), Ok(Some(_))) {
                index_file(&segment)?;
            }
        }
        Ok(())
    }

    /// Makes every index anew.
    pub fn reindex(&mut self) -> Result<Reindexed, LibraryError> {
        let merging = |cause| LibraryError::Merge { path: self.directory.clone(), cause };
        for run in runs_of(&self.directory).map_err(merging)? {
            fs::remove_file(&run.path).map_err(merging)?;
        }
        let mut reindexed = Reindexed::default();
        for segment in self.segments()?.into_iter().filter(|segment| segment.sealed) {
            reindexed.records += index_file(&segment)?;
            reindexed.segments += 1;
        }
        while self.merge_some()? {}
        Ok(reindexed)
    }

    /// Merges the indexes of one tier, once there are enough of them. True if it did.
    fn merge_some(&self) -> Result<bool, LibraryError> {
        let merging = |cause| LibraryError::Merge { path: self.directory.clone(), cause };
        let runs = runs_of(&self.directory).map_err(merging)?;
        let mut tiers: Vec<Vec<PathBuf>> = vec![Vec::new()];
        let segments = self.segments()?;
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
                // Not whole: it is made anew before anything is merged.
                None => {
                    let _ = fs::remove_file(path);
                    return Err(merging(io::Error::other("an index is broken and was removed")));
                }
            }
        }
        merge(&self.directory, tier as u32 + 1, &sources).map_err(merging)?;
        // The index of a segment stays beside it; a run goes once a larger one tells the same.
        for path in paths.iter().filter(|_| tier > 0) {
            fs::remove_file(path).map_err(merging)?;
        }
        Ok(true)
    }

    fn segments(&self) -> Result<Vec<SegmentFile>, LibraryError> {
        let unreadable = |cause| ReadError::Unreadable { path: self.directory.clone(), cause };
        Ok(list(&self.directory).map_err(unreadable)?)
    }
}

fn is_still(segment: &Segment, file: &SegmentFile) -> bool {
    let named = file.path.metadata().ok();
    let mapped = segment.file().and_then(|(file, _)| file.metadata().ok());
    named
        .zip(mapped)
        .is_some_and(|(named, mapped)| named.ino() == mapped.ino() && named.dev() == mapped.dev())
}

fn write_index(file: &SegmentFile, entries: Entries, bytes: u64) -> Result<(), LibraryError> {
    entries
        .write(&index_path(&file.path), file.number, bytes)
        .map_err(|cause| LibraryError::Index { path: file.path.clone(), cause })
}

/// Reads a sealed segment and writes its index. Returns how many records it has.
pub(super) fn index_file(segment: &SegmentFile) -> Result<usize, LibraryError> {
    let unreadable = |cause| ReadError::Unreadable { path: segment.path.clone(), cause };
    let mut entries = Entries::default();
    let mut records = 0;
    let Some((file, _)) = segment.open().map_err(unreadable)? else {
        return Ok(0);
    };
    walk(&file, segment.number, segment.walking(true), |record, offset, _| {
        records += 1;
        entries.note(record.glance(), record.url.as_bytes(), segment.number, offset);
    })
    .map_err(unreadable)?;
    write_index(segment, entries, file.metadata().map_err(unreadable)?.len())?;
    Ok(records)
}
