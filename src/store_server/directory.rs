use super::digests::StoredDigests;
use super::header::SegmentHeader;
use super::layout::HEADER_BYTES;
use super::record;
use crate::config::Dedup;
use crate::limits::SEGMENT_HEADER_BYTES;
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The data directory of one node, locked against a second process.
pub struct DataDir {
    segments: PathBuf,
    next_number: u64,
    /// Held for as long as the directory is in use.
    _lock: File,
    recovered: u64,
    key: u64,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot use {path} as data directory: {cause} (choose another with --data)")]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("{0} is in use by another nephila process (stop it, or choose another directory with --data)")]
    InUse(PathBuf),
}

/// Name endings of a segment in use and of a sealed one.
const OPEN: &str = "open";
const SEALED: &str = "seg";

impl DataDir {
    /// Opens or makes the directory, takes its lock, and seals what a crash left open.
    pub fn open(path: &Path) -> Result<DataDir, OpenError> {
        let unusable = |cause| OpenError::Unusable { path: path.to_path_buf(), cause };
        let segments = path.join("segments");
        fs::create_dir_all(&segments).map_err(unusable)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_path_buf())),
            Err(fs::TryLockError::Error(cause)) => return Err(unusable(cause)),
        }
        let key = key(&path.join("digest.key")).map_err(unusable)?;
        let mut directory = DataDir { segments, next_number: 1, _lock: lock, recovered: 0, key };
        for segment in list(&directory.segments).map_err(unusable)? {
            directory.next_number = directory.next_number.max(segment.number + 1);
            if !segment.sealed {
                directory.recover(&segment).map_err(unusable)?;
            }
        }
        Ok(directory)
    }

    /// Segments that a crash had left open and that were sealed at their last whole record.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The key of the digests of this store.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// What is stored already.
    pub(super) fn stored_digests(&self, _dedup: Dedup) -> StoredDigests {
        StoredDigests::default()
    }

    /// A new file with all its blocks, so that writing to its map can never meet a full disk.
    pub(super) fn create_segment(&mut self, bytes: u64, shard: u32) -> io::Result<(File, PathBuf, u64)> {
        let number = self.next_number;
        let path = self.segments.join(format!("{number:010}-{shard:03}.{OPEN}"));
        let file = OpenOptions::new().create_new(true).read(true).write(true).open(&path)?;
        let made = fallocate(&file, FallocateFlags::empty(), 0, bytes as i64)
            .map_err(io::Error::from)
            .and_then(|()| file.sync_all())
            .and_then(|()| sync_parent(&path));
        if let Err(e) = made {
            let _ = fs::remove_file(&path);
            return Err(e);
        }
        self.next_number += 1;
        Ok((file, path, number))
    }

    /// Cuts a segment to `bytes` and gives it its lasting name. Doing it twice does no harm.
    pub(super) fn seal_file(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
        file.set_len(bytes)?;
        file.sync_all()?;
        fs::rename(path, path.with_extension(SEALED))?;
        sync_parent(path)
    }

    fn recover(&mut self, segment: &SegmentFile) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&segment.path)?;
        let end = whole_records_end(&file, segment.number)?;
        if end <= SEGMENT_HEADER_BYTES as u64 {
            return fs::remove_file(&segment.path);
        }
        self.recovered += 1;
        DataDir::seal_file(&file, &segment.path, end)
    }
}

/// A segment file, by its name.
#[derive(Clone, Debug)]
pub(super) struct SegmentFile {
    pub number: u64,
    pub sealed: bool,
    pub path: PathBuf,
}

/// All segments of a directory, oldest first. Files with other names are not ours and are left alone.
pub(super) fn list(segments: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(segments)? {
        let path = entry?.path();
        let sealed = match path.extension().and_then(|e| e.to_str()) {
            Some(SEALED) => true,
            Some(OPEN) => false,
            _ => continue,
        };
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.split_once('-'))
            .and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number {
            found.push(SegmentFile { number, sealed, path });
        }
    }
    found.sort_by_key(|segment| segment.number);
    Ok(found)
}

/// Where the last whole record of a segment ends.
fn whole_records_end(file: &File, number: u64) -> io::Result<u64> {
    if SegmentHeader::of(file, number)?.is_none() {
        return Ok(0);
    }
    let bytes = file.metadata()?.len();
    let mut at = SEGMENT_HEADER_BYTES as u64;
    let mut buffer = Vec::new();
    while at + HEADER_BYTES as u64 <= bytes {
        buffer.resize(HEADER_BYTES, 0);
        file.read_exact_at(&mut buffer, at)?;
        let Ok(lengths) = record::check_header(&buffer, number) else {
            break;
        };
        if at + lengths.record as u64 > bytes {
            break;
        }
        buffer.resize(lengths.record, 0);
        file.read_exact_at(&mut buffer, at)?;
        if record::parse(&buffer, number).is_err() {
            break;
        }
        at += lengths.record as u64;
    }
    Ok(at)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// The key of a store's digests: made by chance with the store, and the same for as long as it lives. A store that has
/// lost it gets another, and stores once more what it has.
fn key(path: &Path) -> io::Result<u64> {
    match fs::read_to_string(path) {
        Ok(text) => {
            if let Ok(key) = u64::from_str_radix(text.trim(), 16) {
                return Ok(key);
            }
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let key = u64::from_le_bytes(bytes);
    let fresh = path.with_extension("fresh");
    let mut file = File::create(&fresh)?;
    writeln!(file, "{key:016x}")?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync_parent(path)?;
    Ok(key)
}
