use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// From which segment on the store may have pages that the doc index was not told of: a number, in a file beside the
/// index. It is moved when all is told: at the start, before a segment is made, and at a clean end. So after a clean end
/// nothing has to be looked at, and after a kill no more than what the process that was killed has written.
///
/// Without the file it is 0, and more is looked at than need be.
pub(crate) struct IndexedMark {
    folder: PathBuf,
    first: u64,
}

const MARK: &str = "told.segment";
const FRESH: &str = "told.fresh";
/// Longer than any number.
const BYTES_MAX: u64 = 32;

impl IndexedMark {
    pub fn read(folder: &Path) -> io::Result<IndexedMark> {
        let mut text = Vec::new();
        match File::open(folder.join(MARK)) {
            Ok(file) => drop(file.take(BYTES_MAX).read_to_end(&mut text)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let first = str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        Ok(IndexedMark { folder: folder.to_path_buf(), first: first.unwrap_or(0) })
    }

    /// The first segment that may have something untold.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// All segments before this one are told, and the index has that on disk.
    pub fn move_to(&mut self, first: u64) -> io::Result<()> {
        if first == self.first {
            return Ok(());
        }
        let fresh = self.folder.join(FRESH);
        let mut file = File::create(&fresh)?;
        writeln!(file, "{first}")?;
        file.sync_all()?;
        fs::rename(fresh, self.folder.join(MARK))?;
        self.first = first;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_anything_else_is_none() {
        let folder = std::env::temp_dir().join(format!("nephila-mark-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let read = || IndexedMark::read(&folder).unwrap().first();
        assert_eq!(read(), 0);
        IndexedMark::read(&folder).unwrap().move_to(7_000_000_000).unwrap();
        assert_eq!(read(), 7_000_000_000);
        for text in ["", "-1", "7 8", "seven", "99999999999999999999999999999999999"] {
            fs::write(folder.join(MARK), text).unwrap();
            assert_eq!(read(), 0, "{text:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
