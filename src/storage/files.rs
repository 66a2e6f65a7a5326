//! Files that are there whole or not at all, also after the loss of power.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
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

/// Modes of files and directories, before the umask.
const FOR_ALL: u32 = 0o666;
const FOR_OWNER: u32 = 0o600;
const FOLDER: u32 = 0o777;
const DATA_FOLDER: u32 = 0o750;

impl NewFile {
    pub fn create(path: &Path) -> io::Result<NewFile> {
        NewFile::create_with(path, FOR_ALL)
    }

    /// The same for its owner alone.
    pub fn create_secret(path: &Path) -> io::Result<NewFile> {
        let new = NewFile::create_with(path, FOR_OWNER)?;
        keep_secret(new.file());
        Ok(new)
    }

    fn create_with(path: &Path, mode: u32) -> io::Result<NewFile> {
        let names = Names { fresh: path.with_extension(FRESH), path: path.to_path_buf() };
        let mut options = File::options();
        let file =
            options.read(true).write(true).create(true).truncate(true).mode(mode).open(&names.fresh)?;
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

/// The same for a secret, which only its owner may read.
pub(crate) fn replace_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = NewFile::create_secret(path)?;
    new.file().write_all(bytes)?;
    new.commit().map(drop)
}

/// Opens a file that grows, or makes it, for its owner alone.
pub(crate) fn open_secret(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.create(true).truncate(false).read(true).write(true).mode(FOR_OWNER).open(path)?;
    keep_secret(&file);
    Ok(file)
}

/// Takes a secret away from everybody but its owner. Others cannot do that, and need not.
pub(crate) fn keep_secret(file: &File) {
    if file.metadata().is_ok_and(|known| known.permissions().mode() & 0o077 != 0) {
        let _ = file.set_permissions(Permissions::from_mode(FOR_OWNER));
    }
}

/// What helps against a disk or a limit that refuses a file, in brackets; nothing where that is not known.
pub(crate) fn mend(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::FileTooLarge => " (raise the limit of file sizes, ulimit -f)",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => " (free some space)",
        _ => "",
    }
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
    make_with(path, FOLDER)
}

/// The same for one that is not for everybody to look into. One that is there stays as it is.
pub(crate) fn make_data_directory(path: &Path) -> io::Result<()> {
    make_with(path, DATA_FOLDER)
}

fn make_with(path: &Path, mode: u32) -> io::Result<()> {
    let make = || DirBuilder::new().mode(mode).create(path);
    match make() {
        Ok(()) => sync_parent(path),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).ok_or(e)?;
            make_directory(parent)?;
            make()?;
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
