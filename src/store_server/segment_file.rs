use super::data_dir::key_of;
use super::reader::ReadError;
use super::record::Record;
use super::scan::{self, ScanMode, ScanResult};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Extensions of a segment in use and of a sealed one.
pub(super) const OPEN: &str = "open";
pub(super) const SEALED: &str = "seg";
/// Of one that the disk refused: what lies before the first bad byte counts.
pub(super) const BAD: &str = "bad";
/// Of a file that is not whole yet; after a crash it is removed.
pub(super) const FRESH: &str = "fresh";

/// A segment file, by its name.
#[derive(Clone, Debug)]
pub(super) struct SegmentFile {
    pub number: u64,
    pub sealed: bool,
    pub path: PathBuf,
}

impl SegmentFile {
    /// One that the disk refused.
    pub(super) fn is_bad(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == BAD)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |meta| meta.len())
    }

    pub(super) fn unreadable(&self, cause: io::Error) -> ReadError {
        ReadError::Unreadable { path: self.path.clone(), cause }
    }

    /// Opens the file, and says whether it is sealed by now; `None` if it was removed. A segment may be sealed, and so
    /// renamed, between listing and opening.
    pub(super) fn open(&self) -> io::Result<Option<(File, bool)>> {
        let missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        match File::open(&self.path) {
            Ok(file) => return Ok(Some((file, self.sealed))),
            Err(e) if !missing(&e) => return Err(e),
            Err(_) => {}
        }
        match File::open(self.path.with_extension(SEALED)) {
            Ok(file) => Ok(Some((file, true))),
            Err(e) if missing(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Shows every whole record; `None` if the file was removed.
    pub(super) fn scan(
        &self,
        show: impl FnMut(Record, u64, &[u8]),
    ) -> io::Result<Option<(File, bool, ScanResult)>> {
        let Some((file, sealed)) = self.open()? else { return Ok(None) };
        let scanned = scan::scan(&file, self.number, self.scan_mode(sealed), show)?;
        Ok(Some((file, sealed, scanned)))
    }

    /// What bytes that are no record mean in it.
    pub(super) fn scan_mode(&self, sealed: bool) -> ScanMode {
        match sealed {
            true => ScanMode::Sealed { key: self.path.parent().and_then(key_of) },
            false => ScanMode::InUse,
        }
    }
}

/// All segments of a directory, oldest first, each once. A file that is renamed while a directory is read may be seen
/// under both of its names or under none, so it is read until two readings are the same.
pub(super) fn list(segments: &Path) -> io::Result<Vec<SegmentFile>> {
    let numbers = |found: &[SegmentFile]| found.iter().map(|segment| segment.number).collect::<Vec<u64>>();
    let mut found = list_once(segments)?;
    for _ in 0..LIST_TRIES {
        let again = list_once(segments)?;
        let is_same = numbers(&again) == numbers(&found);
        found = again;
        if is_same {
            break;
        }
    }
    Ok(found)
}

/// The same for a reader of the store.
pub(super) fn list_readable(segments: &Path) -> Result<Vec<SegmentFile>, ReadError> {
    list(segments).map_err(|cause| ReadError::Unreadable { path: segments.to_path_buf(), cause })
}

/// A directory in which segments come and go faster than that is read as it is.
const LIST_TRIES: usize = 8;

/// Files with other names are not ours and are left alone.
fn list_once(segments: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(segments)? {
        let path = entry?.path();
        let sealed = match path.extension().and_then(|e| e.to_str()) {
            Some(SEALED) => true,
            Some(OPEN | BAD) => false,
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
    // Under two names, the sealed one is the later.
    found.sort_by_key(|segment: &SegmentFile| (segment.number, !segment.sealed));
    found.dedup_by_key(|segment| segment.number);
    Ok(found)
}
