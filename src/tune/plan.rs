use super::knob::Change;
use super::{Finding, Undo};
use nix::unistd::geteuid;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is to be written to the machine, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    changes: Vec<(&'static str, Change)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{path} may not be changed: {cause} ({mend})")]
    NotAllowed { path: String, cause: io::Error, mend: &'static str },
    #[error("{path}: {cause}")]
    Undo { path: PathBuf, cause: io::Error },
    /// What was changed before is as it was.
    #[error("cannot write {value} to {path}: {cause}; {put_back} changed before it {are} put back, and nothing is changed", are = if *put_back == 1 { "is" } else { "are" })]
    PutBack { path: String, value: String, cause: io::Error, put_back: usize },
    #[error(
        "cannot write {value} to {path}: {cause}; {left} changed before it could not be put back (nephila tune revert tries again)"
    )]
    HalfWay { path: String, value: String, cause: io::Error, left: usize },
}

/// What became of going back.
#[derive(Debug, Default)]
pub(crate) struct Reverted {
    /// As they were before.
    pub back: Vec<Change>,
    /// Changed by somebody else since, with what they say now.
    pub foreign: Vec<(Change, String)>,
    /// Could not be read or written.
    pub failed: Vec<(Change, io::Error)>,
}

impl Plan {
    pub fn of(findings: &[Finding]) -> Plan {
        let changes = findings
            .iter()
            .flat_map(|finding| finding.changes().iter().map(|change| (finding.name, change.clone())));
        Plan { changes: changes.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Each change with the name of its knob.
    pub fn changes(&self) -> &[(&'static str, Change)] {
        &self.changes
    }

    /// Takes out what this process may not write, before anything is written: a container has a part of the machine at
    /// most. An error if that is all of it.
    pub fn take_refused(&mut self, root: &Path) -> Result<Plan, ApplyError> {
        // Opened without a byte written, nothing is set.
        let open = |change: &Change| File::options().write(true).open(root.join(&change.path));
        let (may, refused): (Vec<_>, Vec<_>) =
            self.changes.drain(..).partition(|(_, change)| open(change).is_ok());
        if let ([], [(_, change), ..]) = (&may[..], &refused[..])
            && let Err(cause) = open(change)
        {
            let mend = mend(cause.kind(), geteuid().is_root());
            return Err(ApplyError::NotAllowed { path: format!("/{}", change.path), cause, mend });
        }
        self.changes = may;
        Ok(Plan { changes: refused })
    }

    /// Keeps what is there, then writes. If one write fails, those before it are taken back.
    pub fn apply(&self, root: &Path, undo: &Undo) -> Result<(), ApplyError> {
        let failed = |cause| ApplyError::Undo { path: undo.path().to_path_buf(), cause };
        let before = undo.read().map_err(failed)?;
        let changes: Vec<Change> = self.changes.iter().map(|(_, change)| change.clone()).collect();
        undo.add(&before, &changes).map_err(failed)?;
        for (done, change) in changes.iter().enumerate() {
            let Err(cause) = set(root, &change.path, &change.to) else { continue };
            // A list of numbers may have been taken in part.
            let back = changes[..=done].iter().rev().map(|change| go_back(root, change, true));
            let left = back.filter(Result::is_err).count();
            let (path, value) = (format!("/{}", change.path), change.to.clone());
            if left > 0 {
                return Err(ApplyError::HalfWay { path, value, cause, left });
            }
            undo.write(&before).map_err(failed)?;
            return Err(ApplyError::PutBack { path, value, cause, put_back: done });
        }
        Ok(())
    }
}

/// What helps where nothing may be written: root is refused only what is not its own machine's.
fn mend(refused: io::ErrorKind, is_root: bool) -> &'static str {
    match is_root || refused == io::ErrorKind::ReadOnlyFilesystem {
        true => "a container cannot: apply it on its host",
        false => "run it as root",
    }
}

/// Writes a value to a file of the kernel, in one call as it asks for.
fn set(root: &Path, path: &str, value: &str) -> io::Result<()> {
    let mut file = File::options().write(true).truncate(true).open(root.join(path))?;
    file.write_all(format!("{value}\n").as_bytes())
}

/// Brings everything that was kept back, last changed first. What somebody else has changed since stays, unless `force`d.
pub(crate) fn revert(root: &Path, undo: &Undo, force: bool) -> io::Result<Reverted> {
    let kept = undo.read()?;
    let mut reverted = Reverted::default();
    for change in kept.iter().rev() {
        match go_back(root, change, force) {
            Ok(None) => reverted.back.push(change.clone()),
            Ok(Some(now)) => reverted.foreign.push((change.clone(), now)),
            Err(cause) => reverted.failed.push((change.clone(), cause)),
        }
    }
    let is_left = |change: &&Change| !reverted.back.contains(change);
    let left: Vec<Change> = kept.iter().filter(is_left).cloned().collect();
    if left.len() < kept.len() {
        undo.write(&left)?;
    }
    Ok(reverted)
}

/// What the file says, if it is neither as it was nor as it was set.
fn go_back(root: &Path, change: &Change, force: bool) -> io::Result<Option<String>> {
    let value = |text: &str| change.form.value(text);
    let now = value(&std::fs::read_to_string(root.join(&change.path))?);
    if now == value(&change.was) {
        return Ok(None);
    }
    if now != value(&change.to) && !force {
        return Ok(Some(now));
    }
    let (path, to) = change.way_back();
    set(root, path, to)?;
    let now = || std::fs::read_to_string(root.join(&change.path)).map(|text| value(&text));
    // A way over another file leads there by the kernel's hand.
    if now()? != value(&change.was) {
        set(root, &change.path, &change.was)?;
    }
    match now()? == value(&change.was) {
        true => Ok(None),
        false => Err(io::Error::other(format!("it does not take {to}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_become_root() {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        assert_eq!(mend(PermissionDenied, false), "run it as root");
        for (refused, is_root) in [(PermissionDenied, true), (ReadOnlyFilesystem, false)] {
            assert!(mend(refused, is_root).contains("host"));
        }
    }
}
