use super::index::{IndexFile, index_path};
use super::scan::scan;
use super::segment_file::{BAD, OPEN, SEALED, SegmentFile, list};
use super::segment_header::SegmentHeader;
use super::segment_source::first_page;
use crate::proto::record::SegmentState;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3Default;

/// What the records of a segment say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soundness {
    /// All of them can be read.
    Sound,
    Damaged,
    /// There is no such segment.
    Gone,
}

/// Bytes that are read at once: whoever reads has a pause behind each of them.
const PIECE_BYTES: usize = 1 << 20;

/// The digest of the bytes of a segment, as many as its state says; `None` if there is no such segment, or less of it.
pub(crate) fn sum_segment(
    data: &Path,
    state: &SegmentState,
    mut pause: impl FnMut(),
) -> io::Result<Option<u64>> {
    let Some(file) = open(data, state)? else { return Ok(None) };
    let has = file.metadata()?.len();
    let is_it = first_page(&file, state.segment)?.is_some_and(|page| page == (state.shard, state.print));
    if !is_it || has < state.bytes || state.is_sealed && has != state.bytes {
        return Ok(None);
    }
    let (mut at, mut digest, mut piece) = (0, Xxh3Default::new(), Vec::new());
    while at < state.bytes {
        let bytes = usize::try_from(state.bytes - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
        piece.resize(bytes, 0);
        match file.read_exact_at(&mut piece, at) {
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        digest.update(&piece);
        at += bytes as u64;
        pause();
    }
    Ok(Some(digest.digest()))
}

/// Opens a segment under the name that it has by now.
fn open(data: &Path, state: &SegmentState) -> io::Result<Option<File>> {
    let stem = data.join("segments").join(format!("{:010}-{:03}", state.segment, state.shard));
    // One may be sealed, and so renamed, between two tries.
    for extension in [SEALED, OPEN, SEALED, BAD] {
        match File::open(stem.with_extension(extension)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            file => return file.map(Some),
        }
    }
    Ok(None)
}

/// The sealed segments of a store.
pub(crate) fn sealed_segments(data: &Path) -> io::Result<Vec<u64>> {
    let files = list(&data.join("segments"))?;
    Ok(files.into_iter().filter(|file| file.sealed).map(|file| file.number).collect())
}

/// Reads all records of a segment. What is in use may end in the middle of one.
pub(crate) fn check_segment(data: &Path, segment: u64, mut pause: impl FnMut()) -> io::Result<Soundness> {
    let files = list(&data.join("segments"))?;
    let Some(found) = files.into_iter().find(|file| file.number == segment) else {
        return Ok(Soundness::Gone);
    };
    let Some((file, is_sealed)) = found.open()? else { return Ok(Soundness::Gone) };
    if SegmentHeader::of(&file, segment)?.is_none() {
        // One in use may have been killed before its first page was written.
        return Ok(if is_sealed { Soundness::Damaged } else { Soundness::Sound });
    }
    let mut paused_at = 0;
    let scanned = scan(&file, segment, found.scan_mode(is_sealed), |_, offset, _| {
        if offset >= paused_at + PIECE_BYTES as u64 {
            paused_at = offset;
            pause();
        }
    })?;
    let is_damaged = !scanned.damaged.is_empty() || is_sealed && is_cut(&found, file.metadata()?.len());
    Ok(if is_damaged { Soundness::Damaged } else { Soundness::Sound })
}

/// Cut between two records, a segment looks whole; its index knows better.
fn is_cut(found: &SegmentFile, bytes: u64) -> bool {
    let index = IndexFile::open(&index_path(&found.path.with_extension(SEALED))).ok().flatten();
    let had = |index: &IndexFile| {
        index.segments().iter().any(|(number, had)| *number == found.number && *had > bytes)
    };
    index.as_ref().is_some_and(had)
}
