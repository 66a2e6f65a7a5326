use super::layout::SEGMENT_CRC;
use super::scan::{ScanMode, scan_from};
use super::segment_copy::SegmentCopy;
use super::segment_file::{SegmentFile, list};
use super::segment_header::SegmentHeader;
use crate::base::u32_at;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::SegmentState;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The segments of a store as bytes, for a copy of it elsewhere. Of one in use only whole records are shown.
pub struct SegmentSource {
    data: PathBuf,
    /// What is known of each that was there at the last look.
    known: BTreeMap<u64, Known>,
}

struct Known {
    path: PathBuf,
    inode: u64,
    state: SegmentState,
}

impl SegmentSource {
    pub fn new(data: &Path) -> SegmentSource {
        SegmentSource { data: data.to_path_buf(), known: BTreeMap::new() }
    }

    /// The key of its digests, without which a damaged copy tells less; 0 for none.
    pub fn key(&self) -> u64 {
        SegmentCopy::key(&self.data)
    }

    /// Looks how far each segment is, oldest first. One without records is none yet. Where there is no folder at all, that is an
    /// error, and nothing about the segments.
    pub fn look(&mut self) -> io::Result<Vec<SegmentState>> {
        let files = list(&self.data.join("segments"))?;
        let mut before = std::mem::take(&mut self.known);
        for file in &files {
            if let Some(known) = look_at(file, before.remove(&file.number))? {
                self.known.insert(file.number, known);
            }
        }
        let states = self.known.values().map(|known| known.state);
        Ok(states.filter(|state| state.bytes > SEGMENT_HEADER_BYTES as u64).collect())
    }

    /// Bytes of a segment as it was at the last look, from `at` on; `None` if that is not there any more.
    pub fn read(&self, segment: u64, at: u64, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(Known { path, inode, state }) = self.known.get(&segment) else { return Ok(None) };
        let file = SegmentFile { number: segment, sealed: state.is_sealed, path: path.clone() };
        let Some((file, _)) = file.open()? else { return Ok(None) };
        if file.metadata()?.ino() != *inode {
            return Ok(None);
        }
        let left = usize::try_from(state.bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(bytes_max)];
        file.read_exact_at(&mut bytes, at)?;
        Ok(Some(bytes))
    }
}

/// How far a segment is. What was known of it before is not read again.
fn look_at(file: &SegmentFile, before: Option<Known>) -> io::Result<Option<Known>> {
    if let Some(known) = before.as_ref().filter(|known| known.state.is_sealed && known.path == file.path) {
        let is_same = file.path.metadata().is_ok_and(|meta| meta.ino() == known.inode);
        if is_same {
            return Ok(before);
        }
    }
    // One that is removed meanwhile is none.
    let Some((opened, is_sealed)) = file.open()? else { return Ok(None) };
    let inode = opened.metadata()?.ino();
    let before = before.filter(|known| known.inode == inode && !known.state.is_sealed);
    let from = before.map_or(SEGMENT_HEADER_BYTES as u64, |known| known.state.bytes);
    let Some((shard, print)) = first_page(&opened, file.number)? else { return Ok(None) };
    // What the disk refused was cut where it was good.
    let is_sealed = is_sealed || file.is_bad();
    let bytes = match is_sealed {
        true => opened.metadata()?.len(),
        false => {
            let all = |_, _, _: &[u8]| ControlFlow::Continue(());
            scan_from(&opened, file.number, ScanMode::InUse, from, all)?.end
        }
    };
    let state = SegmentState { segment: file.number, shard, print, bytes, is_sealed };
    Ok(Some(Known { path: file.path.clone(), inode, state }))
}

/// The shard and the print of a segment; nothing if its first page was never finished.
pub(super) fn first_page(file: &File, number: u64) -> io::Result<Option<(u32, u32)>> {
    let Some(header) = SegmentHeader::of(file, number)? else { return Ok(None) };
    let mut crc = [0; 4];
    file.read_exact_at(&mut crc, SEGMENT_CRC as u64)?;
    Ok(Some((header.shard, u32_at(&crc, 0))))
}
