use super::dedup::StoredDigests;
use super::directory_lock::{DirectoryLock, Holder, LockError};
use super::index::{Entry, IndexFile, List, Place, index_path};
use super::policy::Dedup;
use super::scan::{ScanMode, scan};
use super::segment_file::{BAD, FRESH, OPEN, SEALED, SegmentFile, list};
use crate::base::random_u64;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::storage::{keep_secret, make_data_directory, make_directory, replace_secret, sync_parent};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::statvfs;
use rapidhash::fast::RapidHashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The data directory of one node, locked against a second process.
pub struct DataDir {
    path: PathBuf,
    segments: PathBuf,
    next_number: u64,
    lock: Arc<DirectoryLock>,
    recovered: u64,
    key: u64,
}

/// Keeps a directory locked for a writer that still has something to write there after the store is closed.
pub struct HeldDirectory {
    segments: PathBuf,
    _lock: Arc<DirectoryLock>,
}

impl HeldDirectory {
    /// A number above that of every segment.
    pub fn next_segment(&self) -> io::Result<u64> {
        Ok(list(&self.segments)?.last().map_or(1, |segment| segment.number + 1))
    }
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot use {path} as data directory: {cause} (choose another with --data)")]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("{path} is in use by {by} (stop it, or choose another directory with --data)")]
    InUse { path: PathBuf, by: Holder },
    #[error(
        "{0} is damaged (put back a copy of it, or remove it: what is stored stays, and is stored once more where it comes again)"
    )]
    KeyDamaged(PathBuf),
}

/// The key of a store's digests.
pub(super) const KEY: &str = "digest.key";

/// Bytes of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub free: u64,
    pub total: u64,
}

impl DataDir {
    /// Opens or makes the directory, takes its lock, and seals the segments that a crash left open.
    pub fn open(path: &Path) -> Result<DataDir, OpenError> {
        let unusable = |cause| OpenError::Unusable { path: path.to_path_buf(), cause };
        let segments = path.join("segments");
        make_data_directory(path).and_then(|()| make_directory(&segments)).map_err(unusable)?;
        let lock = DirectoryLock::take(path).map_err(|error| match error {
            LockError::Held(by) => OpenError::InUse { path: path.to_path_buf(), by },
            LockError::Unusable(cause) => unusable(cause),
        })?;
        let key_path = path.join(KEY);
        let key = key(&key_path).map_err(unusable)?.ok_or(OpenError::KeyDamaged(key_path))?;
        let mut directory = DataDir {
            path: path.to_path_buf(),
            segments,
            next_number: 1,
            lock: Arc::new(lock),
            recovered: 0,
            key,
        };
        directory.remove_unfinished().map_err(unusable)?;
        for segment in list(&directory.segments).map_err(unusable)? {
            directory.next_number = directory.next_number.max(segment.number + 1);
            if segment.path.extension().is_some_and(|extension| extension == OPEN) {
                directory.recover(&segment).map_err(unusable)?;
            }
        }
        Ok(directory)
    }

    /// Removes files that were being written when a process was killed.
    fn remove_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.segments)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == FRESH) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the lock for as long as the returned value lives.
    pub fn hold(&self) -> HeldDirectory {
        HeldDirectory { segments: self.segments.clone(), _lock: self.lock.clone() }
    }

    /// The numbers of the segments that are there.
    pub fn segment_numbers(&self) -> Vec<u64> {
        list(&self.segments).unwrap_or_default().iter().map(|segment| segment.number).collect()
    }

    /// The number that the next segment will have.
    pub fn next_segment(&self) -> u64 {
        self.next_number
    }

    /// Segments that a crash had left open and that were sealed at their last whole record.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The key of the digests of this store.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// The digests of the documents that are stored already, up to a bound. What is not in an index is stored again, which
    /// costs space and nothing else.
    pub(super) fn stored_digests(&self, dedup: Dedup) -> StoredDigests {
        let mut stored = StoredDigests::default();
        let Ok(segments) = list(&self.segments) else {
            return stored;
        };
        for segment in segments.iter().rev().filter(|_| dedup != Dedup::Off) {
            let Ok(Some(index)) = IndexFile::open(&index_path(&segment.path)) else {
                continue;
            };
            // A reference or a 304 has no document of its own that another record could refer to.
            let whole = index
                .entries(List::Digest)
                .filter(|Entry { place, .. }| !place.is_reference() && !place.is_unchanged());
            let digests: RapidHashMap<Place, u64> = whole.map(|entry| (entry.place, entry.key)).collect();
            let has_room = index.entries(List::Url).all(|Entry { key, place }| {
                digests.get(&place).is_none_or(|&low| stored.note(dedup, key, low, place.segment))
            });
            if !has_room {
                break;
            }
        }
        stored
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

    /// Cuts a segment to `bytes` and gives it its final name, which is returned. Doing it twice does no harm.
    pub(super) fn seal_file(file: &File, path: &Path, bytes: u64) -> io::Result<PathBuf> {
        let sealed = path.with_extension(SEALED);
        file.set_len(bytes)?;
        file.sync_all()?;
        match fs::rename(path, &sealed) {
            Err(e) if e.kind() != io::ErrorKind::NotFound || !sealed.exists() => return Err(e),
            _ => sync_parent(path)?,
        }
        Ok(sealed)
    }

    /// Gives a segment that the disk refused another extension. Readers read it up to the first bytes that are no record,
    /// also if it cannot be cut there.
    pub(super) fn set_aside(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
        if bytes <= SEGMENT_HEADER_BYTES as u64 {
            return fs::remove_file(path);
        }
        let _ = file.set_len(bytes).and_then(|()| file.sync_all());
        let bad = path.with_extension(BAD);
        match fs::rename(path, &bad) {
            Err(e) if e.kind() != io::ErrorKind::NotFound || !bad.exists() => Err(e),
            _ => sync_parent(path),
        }
    }

    pub(super) fn space(&self) -> io::Result<Space> {
        let found = statvfs(&self.segments)?;
        let block = found.fragment_size();
        Ok(Space { free: found.blocks_available() * block, total: found.blocks() * block })
    }

    fn recover(&mut self, segment: &SegmentFile) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&segment.path)?;
        let end = scan(&file, segment.number, ScanMode::InUse, |_, _, _| {})?.end;
        if end <= SEGMENT_HEADER_BYTES as u64 {
            return fs::remove_file(&segment.path);
        }
        self.recovered += 1;
        DataDir::seal_file(&file, &segment.path, end).map(drop)
    }
}

/// The key of a store, by its directory of segments.
pub(super) fn key_of(segments: &Path) -> Option<u64> {
    read_key(&File::open(segments.parent()?.join(KEY)).ok()?).ok()?
}

/// Keeps the key of a store that is copied with the copy, by its directory of segments.
pub(super) fn keep_key(segments: &Path, key: u64) -> io::Result<()> {
    let Some(data) = segments.parent().filter(|_| key_of(segments) != Some(key)) else { return Ok(()) };
    replace_secret(&data.join(KEY), format!("{key:0KEY_DIGITS$x}\n").as_bytes())
}

const KEY_DIGITS: usize = 16;

/// The key in a file; `None` if there is none in it.
fn read_key(mut file: &File) -> io::Result<Option<u64>> {
    let mut bytes = Vec::new();
    file.by_ref().take(64).read_to_end(&mut bytes)?;
    let text = str::from_utf8(&bytes).unwrap_or_default().trim();
    Ok(u64::from_str_radix(text, 16).ok().filter(|_| text.len() == KEY_DIGITS))
}

/// The key of a store's digests, for its owner alone: drawn at random when the store is made, and never changed. A store
/// that has lost it gets another, and stores again what it has. `None` if it is damaged.
fn key(path: &Path) -> io::Result<Option<u64>> {
    match File::open(path) {
        Ok(file) => {
            keep_secret(&file);
            read_key(&file)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let key = random_u64();
            replace_secret(path, format!("{key:0KEY_DIGITS$x}\n").as_bytes())?;
            Ok(Some(key))
        }
        Err(e) => Err(e),
    }
}
