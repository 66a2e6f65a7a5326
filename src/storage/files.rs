//! Files that are there whole or not at all, also after the loss of power.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file on its way: it grows as NAME.fresh, and takes its own name when [`NewFile::commit`] has made it durable. One
/// that is dropped before is removed; what a killed process leaves behind is written over or removed by the next.
pub(crate) struct NewFile {
    file: File,
    names: Names,
}

struct Names {
    fresh: PathBuf,
    path: PathBuf,
}

/// The extension of a file on its way.
pub(crate) const FRESH: &str = "fresh";

impl NewFile {
    pub fn create(path: &Path) -> io::Result<NewFile> {
        let names = Names { fresh: path.with_extension(FRESH), path: path.to_path_buf() };
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&names.fresh)?;
        Ok(NewFile { file, names })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes the file durable, then gives it its name in place of what was there, then makes the name durable.
    pub fn commit(self) -> io::Result<File> {
        let NewFile { file, names } = self;
        file.sync_all()?;
        fs::rename(&names.fresh, &names.path)?;
        sync_parent(&names.path)?;
        Ok(file)
    }
}

impl Drop for Names {
    /// After a commit there is nothing under the first name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.fresh);
    }
}

/// Puts bytes in place of what a file says, whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = NewFile::create(path)?;
    new.file().write_all(bytes)?;
    new.commit().map(drop)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes the name of a file durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_directory(Path::new(".")),
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

/// Makes a directory and those above it, each with its name on the disk before anything is put into it.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => sync_parent(path),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).ok_or(e)?;
            make_directory(parent)?;
            fs::create_dir(path)?;
            sync_parent(path)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("nephila-files-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        make_directory(&folder.join("a/b")).unwrap();
        let path = folder.join("a/b/name.json");
        replace(&path, b"first").unwrap();
        replace(&path, b"second").unwrap();
        let third = NewFile::create(&path).unwrap();
        third.file().write_all(b"third").unwrap();
        assert!(path.with_extension(FRESH).exists());
        drop(third);
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.join("a/b")).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
