use super::super::{InputError, InputFile, ServerId};
use crate::limits::MASTER_AHEAD_S;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where things are in the directory of a master.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub folder: PathBuf,
}

impl Files {
    pub fn journal(&self) -> PathBuf {
        self.folder.join("journal")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.join("id.key")
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub fn current(&self, epoch: u64) -> PathBuf {
        self.log().join(format!("current.{epoch}"))
    }

    pub fn held(&self) -> PathBuf {
        self.folder.join("held")
    }

    pub fn rejects(&self) -> PathBuf {
        self.folder.join("rejects")
    }

    pub fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    pub fn queue(&self, server: ServerId) -> PathBuf {
        self.folder.join("queue").join(server.0.to_string())
    }
}

/// An error that says which file it is about.
pub(super) fn about(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |e| io::Error::new(e.kind(), format!("{}: {e}{}", path.display(), crate::storage::mend(&e)))
}

/// What a file is by its bytes.
pub(super) fn digest(path: &Path) -> Result<u128, InputError> {
    InputFile::new(path).sum().map(|sum| sum.digest)
}

/// Moves an input that is done with to `done/` beside it. One of that name there gets company.
pub(super) fn move_to_done(path: &Path, epoch: u64) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let done = folder.join("done");
    crate::storage::make_directory(&done)?;
    let mut to = done.join(name);
    if to.exists() {
        let mut other = name.to_os_string();
        other.push(format!(".{epoch}"));
        to = done.join(other);
    }
    fs::rename(path, to)
}

/// Where an input may be that was moved: beside itself, under its own name or that of its epoch.
pub(super) fn in_done(path: &Path, epoch: u64) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let mut other = name.to_os_string();
    other.push(format!(".{epoch}"));
    vec![folder.join("done").join(other), folder.join("done").join(name)]
}

/// Numbers that files of a folder are named by, behind a prefix.
pub(super) fn numbered(folder: &Path, prefix: &str) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix)).map(str::parse::<u64>);
        found.extend(number.and_then(Result::ok));
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes the oldest files of a folder: those that are past `keep_s`, and those that are more than `count_max`.
pub(super) fn let_go(folder: &Path, now_s: u32, keep_s: u32, count_max: usize) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Moving a file changes the time of its inode, not that of its text.
        let meta = entry.metadata()?;
        if meta.is_file() {
            // A clock that was ahead: its time begins anew when this one is written.
            if meta.ctime() > i64::from(now_s) + i64::from(MASTER_AHEAD_S) {
                fs::set_permissions(entry.path(), meta.permissions())?;
            }
            found.push((meta.ctime(), entry.path()));
        }
    }
    found.sort_unstable();
    let too_many = found.len().saturating_sub(count_max);
    for (at, (ctime, path)) in found.into_iter().enumerate() {
        if at < too_many || i64::from(now_s) - ctime > i64::from(keep_s) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
