use super::knob::Change;
use crate::base::shown;
use crate::storage::{make_directory, replace, sync_parent};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What settings said before they were changed, on disk before the first of them is.
pub(crate) struct Undo {
    path: PathBuf,
    /// Held as long as this is: two processes that change settings would lose what they were.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    changes: Vec<Change>,
}

const VERSION: u32 = 1;
/// Where it is, below the root.
const HOME: &str = "var/lib/nephila-tune/undo.json";
/// A file of more than this was not written here.
const BYTES_MAX: u64 = 16 << 20;

impl Undo {
    pub fn path_below(root: &Path) -> PathBuf {
        root.join(HOME)
    }

    /// Opens the folder that it is in, or makes it, for one process at a time.
    pub fn open(path: &Path) -> io::Result<Undo> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        make_directory(folder)?;
        let lock = File::open(folder)?;
        lock.try_lock().map_err(|_| {
            io::Error::new(io::ErrorKind::WouldBlock, "another nephila tune changes settings")
        })?;
        Ok(Undo { path: path.to_path_buf(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was kept, in the order in which it was changed.
    pub fn read(&self) -> io::Result<Vec<Change>> {
        let wrong = |cause: String| io::Error::new(io::ErrorKind::InvalidData, cause);
        let bytes = match fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
            Ok(about) if about.len() > BYTES_MAX => return Err(wrong("it is too large".to_string())),
            Ok(_) => fs::read(&self.path)?,
        };
        let kept: Kept = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        let strange = kept.changes.iter().flat_map(Change::paths).find(|path| !is_setting(path));
        if let Some(path) = strange {
            return Err(wrong(format!("no setting is in {} (it was not written here)", shown(path, 200))));
        }
        match kept.version {
            VERSION => Ok(kept.changes),
            version => Err(wrong(format!("it is of version {version}, and this program knows {VERSION}"))),
        }
    }

    /// Keeps changes that are about to be made, beside those that were. What a file said first is what it goes back to.
    pub fn add(&self, before: &[Change], plan: &[Change]) -> io::Result<()> {
        self.write(&merged(before, plan))
    }

    /// Keeps these alone, or nothing.
    pub fn write(&self, changes: &[Change]) -> io::Result<()> {
        if changes.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.and_then(|()| sync_parent(&self.path)),
            };
        }
        let kept = Kept { version: VERSION, changes: changes.to_vec() };
        let mut bytes = serde_json::to_vec_pretty(&kept)?;
        bytes.push(b'\n');
        replace(&self.path, &bytes)
    }
}

/// Root writes to what the file names, and the file may be anywhere.
fn is_setting(path: &str) -> bool {
    let is_below = ["proc/sys/", "proc/irq/", "sys/"].iter().any(|folder| path.starts_with(folder));
    is_below && !path.split('/').any(|part| part == "..")
}

fn merged(before: &[Change], plan: &[Change]) -> Vec<Change> {
    let mut all = before.to_vec();
    for change in plan {
        match all.iter_mut().find(|known| known.path == change.path) {
            Some(known) => known.to.clone_from(&change.to),
            None => all.push(change.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_is_kept() {
        let first = Change::words("a", "1", 2);
        let again = [Change::words("a", "2", 3), Change::words("b", "7", 8)];
        assert_eq!(merged(&[first], &again), [Change::words("a", "1", 3), Change::words("b", "7", 8)]);
    }
}
