use super::data_dir::{KEY, keep_key, key_of};
use super::index::index_path;
use super::layout::SEGMENT_CRC;
use super::maintenance::index_file;
use super::scan::{ScanMode, scan};
use super::segment_file::{BAD, FRESH, OPEN, SEALED, SegmentFile, list};
use super::segment_header::SegmentHeader;
use super::segment_source::first_page;
use crate::base::{SortedMap, u32_at};
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::{SegmentPiece, SegmentState};
use crate::storage::{make_directory, sync_directory};
use nix::sys::statvfs::statvfs;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The copy of another store, byte by byte as that one grows. It is a store itself, which can be read at any time.
///
/// ```text
///   NUMBER-SHARD.open ── all of it came, and it is sealed there ──► NUMBER-SHARD.seg, NUMBER-SHARD.idx
///   NUMBER-SHARD.fresh ── all of it came ──► in the place of the segment that was packed
/// ```
pub struct SegmentCopy {
    segments: PathBuf,
    growing: SortedMap<u64, Growing>,
}

/// A segment that is not all here.
struct Growing {
    file: File,
    path: PathBuf,
    shard: u32,
    print: u32,
    bytes: u64,
    is_sealed: bool,
    /// The disk may not have all of it.
    is_unsynced: bool,
}

impl SegmentCopy {
    /// The file with its key, beside its folder of segments.
    pub const KEY: &'static str = KEY;

    /// Opens a copy, or makes it. What a process left unfinished that was killed is cut at its last whole record.
    pub fn open(data: &Path) -> io::Result<SegmentCopy> {
        let segments = data.join("segments");
        make_directory(&segments)?;
        let mut copy = SegmentCopy { segments, growing: SortedMap::new() };
        for entry in fs::read_dir(&copy.segments)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == FRESH) {
                fs::remove_file(path)?;
            }
        }
        for SegmentFile { number, path, .. } in copy.files()?.into_iter().filter(|file| !file.sealed) {
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            let Some((shard, print)) = first_page(&file, number)? else {
                fs::remove_file(&path)?;
                continue;
            };
            let bytes = scan(&file, number, ScanMode::InUse, |_, _, _| {})?.end;
            file.set_len(bytes)?;
            let growing = Growing { file, path, shard, print, bytes, is_sealed: false, is_unsynced: true };
            copy.growing.insert(number, growing);
        }
        copy.sync()?;
        Ok(copy)
    }

    /// The key of the store that is in a directory; 0 for none.
    pub fn key(data: &Path) -> u64 {
        key_of(&data.join("segments")).unwrap_or(0)
    }

    /// Keeps the key of the other store.
    pub fn keep_key(&self, key: u64) -> io::Result<()> {
        keep_key(&self.segments, key)
    }

    fn files(&self) -> io::Result<Vec<SegmentFile>> {
        list(&self.segments)
    }

    /// Everything that is here, oldest first.
    pub fn held(&self) -> io::Result<Vec<SegmentState>> {
        let mut held = Vec::new();
        for file in self.files()? {
            held.extend(match self.growing.get(&file.number).filter(|growing| !growing.is_fresh()) {
                Some(growing) => Some(growing.state(file.number)),
                None => sealed_state(&file)?,
            });
        }
        Ok(held)
    }

    /// Bytes of the disk that are free for anybody.
    pub fn free_bytes(&self) -> io::Result<(u64, u64)> {
        let found = statvfs(&self.segments)?;
        let block = found.fragment_size();
        Ok((found.blocks_available() * block, found.blocks() * block))
    }

    /// Takes bytes of a segment. False if they do not follow those that are here, or are no part of a segment.
    pub fn put(&mut self, piece: &SegmentPiece<'_>) -> io::Result<bool> {
        let SegmentState { segment, shard, print, bytes: upto, is_sealed } = piece.upto;
        let Some(at) = upto.checked_sub(piece.bytes.len() as u64) else { return Ok(false) };
        if self.growing.get(&segment).is_none_or(|growing| growing.print != print) {
            if at != 0 || !begins(piece.bytes, &piece.upto) {
                return Ok(false);
            }
            let growing = self.begin(segment, shard, print)?;
            self.growing.insert(segment, growing);
        }
        let Some(growing) = self.growing.get_mut(&segment) else { return Ok(false) };
        // What came before may come again, over another link.
        if growing.shard != shard || at > growing.bytes || growing.is_sealed && upto > growing.bytes {
            return Ok(false);
        }
        growing.is_unsynced = true;
        if upto > growing.bytes {
            growing.file.write_all_at(piece.bytes, at)?;
            growing.bytes = upto;
        }
        // A store that was killed may have less of its last segment than it had shown.
        if is_sealed {
            growing.bytes = upto;
            growing.is_sealed = true;
        }
        Ok(true)
    }

    fn begin(&self, number: u64, shard: u32, print: u32) -> io::Result<Growing> {
        let stem = self.segments.join(format!("{number:010}-{shard:03}"));
        let is_there = [SEALED, OPEN, BAD].iter().any(|name| stem.with_extension(name).exists());
        // A segment that was packed is here as it was until all of it came.
        let path = stem.with_extension(if is_there { FRESH } else { OPEN });
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path)?;
        Ok(Growing { file, path, shard, print, bytes: 0, is_sealed: false, is_unsynced: true })
    }

    /// Makes what came durable, gives what is all here its name and its index, and tells how far each of them is.
    pub fn sync(&mut self) -> io::Result<Vec<SegmentState>> {
        let mut synced = Vec::new();
        for (&number, growing) in self.growing.iter_mut().filter(|(_, growing)| growing.is_unsynced) {
            growing.sync()?;
            synced.push(growing.state(number));
        }
        for state in synced.iter().filter(|state| state.is_sealed) {
            let Some(Growing { path, .. }) = self.growing.remove(&state.segment) else { continue };
            let sealed = path.with_extension(SEALED);
            // An index of what was here before would hide what came.
            let _ = fs::remove_file(index_path(&sealed));
            fs::rename(&path, &sealed)?;
            sync_directory(&self.segments)?;
            let file = SegmentFile { number: state.segment, sealed: true, path: sealed };
            let _ = fs::remove_file(file.path.with_extension(OPEN));
            // Without an index it is read itself.
            let _ = index_file(&file);
        }
        Ok(synced)
    }

    /// Removes a segment of a store that nobody writes to, for good.
    pub fn remove_at(data: &Path, segment: u64) -> io::Result<()> {
        let segments = data.join("segments");
        SegmentCopy { segments: segments.clone(), growing: SortedMap::new() }.remove(&[segment])?;
        sync_directory(&segments)
    }

    /// The other store does not have these any more.
    pub fn remove(&mut self, segments: &[u64]) -> io::Result<()> {
        for file in self.files()?.into_iter().filter(|file| segments.contains(&file.number)) {
            self.growing.remove(&file.number);
            let _ = fs::remove_file(index_path(&file.path));
            fs::remove_file(&file.path)?;
        }
        Ok(())
    }
}

impl Growing {
    fn state(&self, segment: u64) -> SegmentState {
        let Growing { shard, print, bytes, is_sealed, .. } = *self;
        SegmentState { segment, shard, print, bytes, is_sealed }
    }

    fn is_fresh(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == FRESH)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_sealed {
            self.file.set_len(self.bytes)?;
        }
        self.file.sync_data()?;
        self.is_unsynced = false;
        Ok(())
    }
}

/// Whether these are the first bytes of that segment.
fn begins(bytes: &[u8], upto: &SegmentState) -> bool {
    let header = SegmentHeader::from_bytes(bytes);
    let is_it = |header: SegmentHeader| header.number == upto.segment && header.shard == upto.shard;
    bytes.len() > SEGMENT_HEADER_BYTES
        && header.is_some_and(is_it)
        && u32_at(bytes, SEGMENT_CRC) == upto.print
}

fn sealed_state(file: &SegmentFile) -> io::Result<Option<SegmentState>> {
    let Some((opened, is_sealed)) = file.open()? else { return Ok(None) };
    let Some((shard, print)) = first_page(&opened, file.number)? else { return Ok(None) };
    let bytes = opened.metadata()?.len();
    Ok(Some(SegmentState { segment: file.number, shard, print, bytes, is_sealed }))
}
