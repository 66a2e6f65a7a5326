use super::layout::SEGMENT_CRC;
use super::scan::{ScanMode, scan_from};
use super::segment_copy::SegmentCopy;
use super::segment_file::{SegmentFile, list};
use super::segment_header::SegmentHeader;
use crate::base::u32_at;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::SegmentState;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The segments of a store as bytes, for a copy of it elsewhere. Of one in use only whole records are shown.
pub struct SegmentSource {
    segments: PathBuf,
    /// What is known of each that was there at the last look.
    known: BTreeMap<u64, Known>,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct Looked {
    /// Oldest first. One without records is none yet.
    pub states: Vec<SegmentState>,
    /// The numbers of all that are there.
    pub listed: BTreeSet<u64>,
    /// The first that the disk does not give, and why.
    pub trouble: Option<(PathBuf, io::Error)>,
}

struct Known {
    path: PathBuf,
    inode: u64,
    state: SegmentState,
}

impl SegmentSource {
    pub fn new(data: &Path) -> SegmentSource {
        SegmentSource { segments: data.join("segments"), known: BTreeMap::new() }
    }

    /// The key of its digests, without which a damaged copy tells less; 0 for none.
    pub fn key(&self) -> u64 {
        self.segments.parent().map_or(0, SegmentCopy::key)
    }

    /// Looks how far each segment is. Where there is no folder at all, that is an error, and nothing about the segments.
    pub fn look(&mut self) -> io::Result<Looked> {
        let files = list(&self.segments)?;
        let mut before = std::mem::take(&mut self.known);
        let mut looked = Looked::default();
        for file in &files {
            looked.listed.insert(file.number);
            match look_at(file, before.remove(&file.number)) {
                Ok(known) => self.known.extend(known.map(|known| (file.number, known))),
                // The others are not to suffer for it.
                Err(cause) => looked.trouble = looked.trouble.or_else(|| Some((file.path.clone(), cause))),
            }
        }
        let states = self.known.values().map(|known| known.state);
        looked.states = states.filter(|state| state.bytes > SEGMENT_HEADER_BYTES as u64).collect();
        Ok(looked)
    }

    /// Leaves a segment out until it is another: the disk does not give its bytes.
    pub fn give_up(&mut self, segment: u64) {
        if let Some(known) = self.known.get_mut(&segment) {
            known.state = SegmentState { bytes: 0, is_sealed: true, ..known.state };
        }
    }

    /// Bytes of a segment as it was at the last look, from `at` on; `None` if that is not there any more.
    pub fn read(&self, segment: u64, at: u64, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(Known { path, inode, state }) = self.known.get(&segment) else { return Ok(None) };
        let file = SegmentFile { number: segment, sealed: state.is_sealed, path: path.clone() };
        let Some((file, _)) = file.open()? else { return Ok(None) };
        // A file that came in the place of it may have its inode.
        let is_it = file.metadata()?.ino() == *inode
            && (at > 0 || first_page(&file, segment)?.is_some_and(|(_, print)| print == state.print));
        if !is_it {
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
        let is_same = file
            .path
            .metadata()
            .is_ok_and(|meta| meta.ino() == known.inode && [0, meta.len()].contains(&known.state.bytes));
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
