//! Sealed segments one after the other, for whoever copies them elsewhere.

use super::reader::{Located, ReadError, Reader};
use super::scan;
use crate::limits::SEGMENT_HEADER_BYTES;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;

/// A segment to which nothing is added any more, as its file is now. One that was packed or cut is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedSegment {
    pub number: u64,
    pub bytes: u64,
    /// When the file was last written, in nanoseconds since 1970.
    pub written_ns: i64,
}

/// How far records of a segment were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Where the next one begins.
    pub next: u64,
    /// There is none.
    pub is_end: bool,
    /// Places that are no record.
    pub damaged: u64,
}

impl Reader {
    /// Oldest first. Those that the disk refused are among them: what they have counts.
    pub fn sealed(&self) -> Vec<SealedSegment> {
        let done = self.segment_files().iter().filter(|segment| segment.sealed || segment.is_bad());
        let found = done.filter_map(|segment| {
            // One that is gone by now is none.
            let file = segment.path.metadata().ok()?;
            let written_ns = file.mtime().wrapping_mul(1_000_000_000).wrapping_add(file.mtime_nsec());
            Some(SealedSegment { number: segment.number, bytes: file.len(), written_ns })
        });
        found.collect()
    }

    /// Shows the records of one segment from the end of another on, 0 for all of them, until one is not taken. `None` if the
    /// segment was removed.
    pub fn each_from(
        &self,
        number: u64,
        from: u64,
        mut take: impl FnMut(Located, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Passed>, ReadError> {
        let Some(segment) = self.segment_files().iter().find(|segment| segment.number == number) else {
            return Ok(None);
        };
        let unreadable = |cause| segment.unreadable(cause);
        let Some((file, sealed)) = segment.open().map_err(unreadable)? else { return Ok(None) };
        let from = from.max(SEGMENT_HEADER_BYTES as u64);
        let scanned =
            scan::scan_from(&file, number, segment.scan_mode(sealed), from, |record, offset, bytes| {
                take(Located { record, segment: number, offset }, bytes)
            });
        let scanned = scanned.map_err(unreadable)?;
        Ok(Some(Passed {
            next: scanned.end,
            is_end: !scanned.is_left,
            damaged: scanned.damaged.len() as u64,
        }))
    }
}
