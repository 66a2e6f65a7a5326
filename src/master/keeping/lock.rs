use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

/// Held for as long as it lives.
pub(super) struct Lock {
    _directory: File,
    _file: File,
}

impl Lock {
    pub fn take(folder: &Path) -> io::Result<Lock> {
        let path = folder.join("lock");
        // Nobody can remove the directory itself from under its writer.
        let directory = File::open(folder)?;
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?;
        let is_taken = |locked: Result<(), TryLockError>| matches!(locked, Err(TryLockError::WouldBlock));
        if is_taken(directory.try_lock()) || is_taken(file.try_lock()) {
            let mut pid = String::new();
            let _ = Read::by_ref(&mut file).take(20).read_to_string(&mut pid);
            let text = format!(
                "{} is in use by another master, pid {} (stop it, or name another --data)",
                folder.display(),
                pid.trim()
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        // For people. On a disk without room the kernel still knows.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _directory: directory, _file: file })
    }
}
