//! One writer for a data directory. The directory itself is locked, which nobody can remove from under its writer, and
//! the file `lock` in it, which says who that is.

use nix::sys::stat::{major, minor};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Held for as long as it lives.
pub(super) struct DirectoryLock {
    _directory: File,
    _file: File,
}

/// The process that writes a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// `None` if the kernel does not tell, and the file neither.
    pub pid: Option<u32>,
}

pub(super) enum LockError {
    Held(Holder),
    Unusable(io::Error),
}

const FILE: &str = "lock";
/// More than a kernel has locks.
const LOCKS_BYTES_MAX: u64 = 16 << 20;

impl DirectoryLock {
    pub fn take(path: &Path) -> Result<DirectoryLock, LockError> {
        let directory = File::open(path)?;
        // A file system that cannot lock directories can lock files.
        if let Err(TryLockError::WouldBlock) = directory.try_lock() {
            return Err(LockError::Held(holder_of(path, &directory)));
        }
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path.join(FILE))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder_of(path, &file))),
            Err(TryLockError::Error(cause)) => return Err(LockError::Unusable(cause)),
        }
        // For people. On a disk without room the kernel still knows.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(DirectoryLock { _directory: directory, _file: file })
    }
}

impl From<io::Error> for LockError {
    fn from(cause: io::Error) -> LockError {
        LockError::Unusable(cause)
    }
}

impl Holder {
    /// The process that writes a directory, if any does. To find out, the directory is held for a moment.
    pub fn of(path: &Path) -> io::Result<Option<Holder>> {
        let directory = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match directory.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder_of(path, &directory))),
            Err(TryLockError::Error(cause)) => Err(cause),
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "pid {pid}"),
            None => f.write_str("another nephila process"),
        }
    }
}

fn holder_of(path: &Path, locked: &File) -> Holder {
    let written = || std::fs::read_to_string(path.join(FILE)).ok()?.trim().parse().ok();
    Holder { pid: told_by_kernel(locked).or_else(written) }
}

fn told_by_kernel(locked: &File) -> Option<u32> {
    let found = locked.metadata().ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(found.dev()), minor(found.dev()), found.ino());
    let mut locks = String::new();
    File::open("/proc/locks").ok()?.take(LOCKS_BYTES_MAX).read_to_string(&mut locks).ok()?;
    locks.lines().find_map(|line| holder_in(line, &place))
}

/// `1: FLOCK  ADVISORY  WRITE 708 08:02:1835012 0 EOF`: the process, if the line is about a lock on this place.
fn holder_in(line: &str, place: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    match fields[..] {
        [_, "FLOCK", _, "WRITE", pid, at, ..] if at == place => pid.parse().ok().filter(|&pid| pid > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_the_holder_and_nobody_who_waits() {
        let place = "08:02:77";
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 708 08:02:77 0 EOF", place), Some(708));
        for line in [
            "",
            "1: -> FLOCK  ADVISORY  WRITE 709 08:02:77 0 EOF",
            "1: FLOCK  ADVISORY  READ 708 08:02:77 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 708 08:02:78 0 EOF",
            "1: POSIX  ADVISORY  WRITE 708 08:02:77 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 0 08:02:77 0 EOF",
            "1: FLOCK  ADVISORY  WRITE x 08:02:77 0 EOF",
        ] {
            assert_eq!(holder_in(line, place), None, "{line}");
        }
    }

    #[test]
    fn a_directory_has_one_holder_whatever_becomes_of_the_file() {
        let path = std::env::temp_dir().join(format!("nephila-lock-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        assert_eq!(Holder::of(&path).unwrap(), None);
        let held = DirectoryLock::take(&path).ok().unwrap();
        let us = Holder { pid: Some(std::process::id()) };
        for _ in 0..2 {
            assert_eq!(Holder::of(&path).unwrap(), Some(us));
            assert!(matches!(DirectoryLock::take(&path), Err(LockError::Held(by)) if by == us));
            let _ = std::fs::remove_file(path.join(FILE));
        }
        drop(held);
        assert_eq!(Holder::of(&path).unwrap(), None);
        assert!(DirectoryLock::take(&path).is_ok());
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(Holder::of(&path).unwrap(), None);
    }
}
