use super::super::segment_file::SegmentFile;
use super::entry::Place;
use super::file::{IndexFile, List, index_path};
use super::merge::runs_of;
use rapidhash::fast::RapidHashSet;
use std::io;
use std::path::Path;

/// Every index of a store, and the segments that are in none.
pub struct Catalog {
    indexes: Vec<IndexFile>,
    /// Segments that must be read themselves: those in use, and those whose index is not written yet.
    bare: Vec<SegmentFile>,
    /// Numbers of the segments that a run tells of.
    merged: RapidHashSet<u64>,
    /// Numbers of the segments that are there. Entries of others are of segments that are gone.
    present: RapidHashSet<u64>,
}

impl Catalog {
    pub fn open(directory: &Path, segments: &[SegmentFile]) -> io::Result<Catalog> {
        let mut indexes = Vec::new();
        let mut covered = RapidHashSet::default();
        for run in runs_of(directory)? {
            if let Some(index) = gone(IndexFile::open(&run.path))?
                // One that tells nothing new was merged into a larger one.
                && index.segments().iter().any(|(number, _)| !covered.contains(number))
            {
                covered.extend(index.segments().iter().map(|(number, _)| *number));
                indexes.push(index);
            }
        }
        let mut bare = Vec::new();
        for segment in segments.iter().filter(|segment| !covered.contains(&segment.number)) {
            let own = match segment.sealed {
                true => gone(IndexFile::open(&index_path(&segment.path)))?,
                false => None,
            };
            match own.filter(|index| index.segments().iter().any(|(number, _)| *number == segment.number)) {
                Some(index) => indexes.push(index),
                None => bare.push(segment.clone()),
            }
        }
        let present = segments.iter().map(|segment| segment.number).collect();
        Ok(Catalog { indexes, bare, merged: covered, present })
    }

    /// Segments that are in no index, oldest first.
    pub fn bare(&self) -> &[SegmentFile] {
        &self.bare
    }

    /// A segment has an index of its own, and no run tells of it.
    pub fn is_single(&self, segment: u64) -> bool {
        !self.merged.contains(&segment) && !self.bare.iter().any(|bare| bare.number == segment)
    }

    /// Files that a lookup asks.
    pub fn files(&self) -> usize {
        self.indexes.len()
    }

    /// Places that the indexes have under a key, the newest first.
    pub fn find(&self, list: List, key: u64) -> Vec<Place> {
        let found = self.indexes.iter().flat_map(|index| index.find(list, key)).map(|entry| entry.place);
        let mut places: Vec<Place> =
            found.filter(|place| self.present.contains(&u64::from(place.segment))).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        // Two runs may tell of one segment for a moment.
        places.dedup();
        places
    }
}

/// A file that was listed a moment ago may be merged or replaced by now.
fn gone(found: io::Result<Option<IndexFile>>) -> io::Result<Option<IndexFile>> {
    match found {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found,
    }
}
