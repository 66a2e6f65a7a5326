use super::super::mmap::View;
use super::entry::{ENTRY_BYTES, Entry};
use crate::base::{u32_at, u64_at};
use crate::storage::NewFile;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An index file. All numbers are little-endian.
///
/// ```text
///   0    8  magic "NEPHIDX1"
///   8    4  crc32c of 12 to the end of the segments
///   12   4  segments that it tells of
///   16   8  entries by URL
///   24   8  entries by document
///   32   8  entries by digest
///   40   …  numbers of the segments, 8 bytes each, and the bytes of each, 8 bytes
///   …    …  the three lists, entries of 16 bytes, sorted by key and the newest first
/// ```
pub struct IndexFile {
    view: View,
    segments: Vec<(u64, u64)>,
    /// Where the lists begin, and where the last one ends.
    starts: [usize; 4],
}

const MAGIC: &[u8; 8] = b"NEPHIDX1";
const CRC: usize = 8;
const SEGMENTS: usize = 12;
const COUNTS: usize = 16;
const FIXED_BYTES: usize = 40;
/// More segments than a file could name are a broken header.
const SEGMENTS_MAX: usize = 1 << 24;

/// The lists of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Url,
    Document,
    Digest,
}

impl List {
    pub const ALL: [List; 3] = [List::Url, List::Document, List::Digest];
}

/// The index of a segment.
pub fn index_path(segment: &Path) -> PathBuf {
    segment.with_extension("idx")
}

impl IndexFile {
    /// Opens a file; `None` if it is no index, or not a whole one.
    pub fn open(path: &Path) -> io::Result<Option<IndexFile>> {
        let file = File::open(path)?;
        if file.metadata()?.len() < FIXED_BYTES as u64 {
            return Ok(None);
        }
        Ok(IndexFile::read(View::of(&file)?))
    }

    fn read(view: View) -> Option<IndexFile> {
        let segment_count = u32_at(&view, SEGMENTS) as usize;
        if view[..8] != *MAGIC || segment_count > SEGMENTS_MAX {
            return None;
        }
        let header_bytes = FIXED_BYTES + 16 * segment_count;
        if crc32c::crc32c(view.get(SEGMENTS..header_bytes)?) != u32_at(&view, CRC) {
            return None;
        }
        let segments = (0..segment_count).map(|index| {
            let at = FIXED_BYTES + 16 * index;
            (u64_at(&view, at), u64_at(&view, at + 8))
        });
        let segments = segments.collect();
        let mut starts = [header_bytes; 4];
        for list in 0..3 {
            let bytes = usize::try_from(u64_at(&view, COUNTS + 8 * list)).ok()?.checked_mul(ENTRY_BYTES)?;
            starts[list + 1] = starts[list].checked_add(bytes)?;
        }
        (starts[3] == view.len()).then_some(IndexFile { view, segments, starts })
    }

    /// Numbers of the segments that it tells of, and the bytes that each had.
    pub fn segments(&self) -> &[(u64, u64)] {
        &self.segments
    }

    pub fn entries(&self, list: List) -> impl ExactSizeIterator<Item = Entry> {
        self.bytes(list).chunks_exact(ENTRY_BYTES).map(Entry::from_bytes)
    }

    /// The entries of a key, the newest first.
    pub fn find(&self, list: List, key: u64) -> impl Iterator<Item = Entry> {
        let (entries, _) = self.bytes(list).as_chunks::<ENTRY_BYTES>();
        let first = entries.partition_point(|entry| u64_at(entry, 0) < key);
        let rest = entries[first..].iter().map(|entry| Entry::from_bytes(entry));
        rest.take_while(move |entry| entry.key == key)
    }

    fn bytes(&self, list: List) -> &[u8] {
        &self.view[self.starts[list as usize]..self.starts[list as usize + 1]]
    }
}

/// Writes an index, which gets its name when it is whole and on the disk.
pub fn write<L: Iterator<Item = io::Result<Entry>>>(
    path: &Path,
    segments: &[(u64, u64)],
    counts: [usize; 3],
    lists: [L; 3],
) -> io::Result<()> {
    let mut header = vec![0; FIXED_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[SEGMENTS..COUNTS].copy_from_slice(&(segments.len() as u32).to_le_bytes());
    for (list, count) in counts.into_iter().enumerate() {
        let at = COUNTS + 8 * list;
        header[at..at + 8].copy_from_slice(&(count as u64).to_le_bytes());
    }
    for (number, bytes) in segments {
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&bytes.to_le_bytes());
    }
    let crc = crc32c::crc32c(&header[SEGMENTS..]);
    header[CRC..SEGMENTS].copy_from_slice(&crc.to_le_bytes());
    let new = NewFile::create(path)?;
    let mut out = BufWriter::with_capacity(1 << 18, new.file());
    out.write_all(&header)?;
    for entry in lists.into_iter().flatten() {
        out.write_all(&entry?.to_bytes())?;
    }
    out.flush()?;
    drop(out);
    new.commit().map(drop)
}
