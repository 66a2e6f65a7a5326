//! The newest part of a store, for a caller that knows the rest.

use super::index::Place;
use super::reader::{Located, ReadError, Reader};
use super::segment_file::SegmentFile;
use crate::limits::SEGMENT_HEADER_BYTES;
use rapidhash::fast::RapidHashSet;

impl Reader {
    /// Numbers of the segments from `first` on that may have something new, oldest first. A shard writes one segment
    /// after the other: of each shard these are the newest ones, back to the first that does not begin with something
    /// new. One whose first record cannot be read ends the search, too, so that it always ends soon.
    pub fn tail(&self, first: u64, mut is_new: impl FnMut(&Located) -> bool) -> Vec<u64> {
        let mut tail = Vec::new();
        let mut over = RapidHashSet::default();
        for segment in self.segment_files().iter().rev().take_while(|segment| segment.number >= first) {
            let shard = shard_of(segment);
            if over.contains(&shard) {
                continue;
            }
            tail.push(segment.number);
            let place = Place::at(segment.number, SEGMENT_HEADER_BYTES as u64);
            let begins = self.read(place).ok().flatten();
            if !begins.is_some_and(|(located, _)| is_new(&located)) {
                over.insert(shard);
            }
        }
        tail.reverse();
        tail
    }

    /// Shows every record of one segment that can be read; none if the segment was removed.
    pub fn each_in(&self, number: u64, mut show: impl FnMut(Located, &[u8])) -> Result<(), ReadError> {
        match self.segment_files().iter().find(|segment| segment.number == number) {
            Some(segment) => self.each_of(segment, &mut show).map(drop),
            None => Ok(()),
        }
    }
}

/// By its name.
fn shard_of(segment: &SegmentFile) -> Option<&str> {
    let (_, shard) = segment.path.file_stem()?.to_str()?.split_once('-')?;
    Some(shard)
}
