//! `nephila tune apply` and `nephila tune revert`.

use super::shared::{Failure, counted, hint, print, say_failure, tell};
use super::tune::{ChangeLine, MachineArgs, RootArg, UndoArg};
use crate::base::shown;
use crate::tune::{Change, Finding, Report, Status, Undo};
use serde::Serialize;
use std::fmt::Write;
use std::io::{ErrorKind, IsTerminal, stdin};
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Applied<'a> {
    changed: Vec<ChangeLine<'a>>,
    /// Files that may not be written to, unlike the others.
    refused: Vec<String>,
    by_hand: Vec<&'a Finding>,
    undo: String,
}

pub(super) fn apply(on: &MachineArgs, undo: &UndoArg, yes: bool, json: bool) -> Result<(), Failure> {
    let (root, undo) = (&on.root.path, undo.at(&on.root));
    let report = Report::of(&on.machine());
    let mut plan = report.plan();
    let refused = plan.take_refused(root)?;
    let is_wrong = |finding: &&Finding| matches!(finding.status, Status::Slower | Status::Stops);
    let by_hand = report.findings().iter().filter(is_wrong).filter(|finding| finding.changes().is_empty());
    let lines = plan.changes().iter().map(|(name, Change { path, was, to, .. })| ChangeLine {
        name,
        path: format!("/{path}"),
        was,
        to,
    });
    let applied = Applied {
        changed: lines.collect(),
        refused: refused.changes().iter().map(|(_, change)| format!("/{}", change.path)).collect(),
        by_hand: by_hand.collect(),
        undo: undo.display().to_string(),
    };
    if !plan.is_empty() {
        if !json {
            print(&applied.planned())?;
        }
        if !yes {
            ask(plan.changes().len())?;
        }
        let undo = Undo::open(&undo).map_err(|cause| cannot_keep(&undo, &cause))?;
        plan.apply(root, &undo)?;
    }
    tell(&applied, json, Applied::text)
}

impl Applied<'_> {
    fn planned(&self) -> String {
        let mut text = String::new();
        for ChangeLine { path, was, to, .. } in &self.changed {
            let _ = writeln!(text, "{path}: {} -> {}", shown(was, 100), shown(to, 100));
        }
        text
    }

    fn text(&self) -> String {
        let mut text = match self.changed.len() {
            0 => "nothing to change\n".to_string(),
            count => format!(
                "{} changed until the next boot; nephila tune revert brings them back (kept in {})\n",
                counted(count as u64, "setting"),
                self.undo
            ),
        };
        for path in &self.refused {
            let _ = writeln!(
                text,
                "not changed: {path} may not be written from here (in a container, its host can)"
            );
        }
        if !self.by_hand.is_empty() {
            text += "not changed, as they need a restart, another tool or a decision:\n";
        }
        for finding in &self.by_hand {
            let _ = writeln!(text, "  {}: {}", finding.name, shown(&finding.mend, 200));
        }
        text
    }
}

/// Asks whoever is at the terminal; nobody there has said yes.
fn ask(count: usize) -> Result<(), Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::Usage(
            "nobody is there to be asked, and nothing was changed: give --yes".to_string(),
        ));
    }
    say_failure(format_args!("change {}? [y/N]", counted(count as u64, "setting")));
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Failure::No("nothing was changed".to_string())),
    }
}

impl UndoArg {
    fn at(&self, root: &RootArg) -> PathBuf {
        self.path.clone().unwrap_or_else(|| Undo::path_below(&root.path))
    }
}

fn cannot_keep(path: &Path, cause: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::CannotRun(format!(
        "{path}: {cause} (nothing was changed; run it as root, or choose another --undo)"
    ))
}

#[derive(Serialize)]
struct WentBack {
    back: usize,
    changed_by_others: Vec<Foreign>,
    failed: Vec<String>,
}

#[derive(Serialize)]
struct Foreign {
    path: String,
    was: String,
    set: String,
    now: String,
}

pub(super) fn revert(root: &RootArg, undo: &UndoArg, force: bool, json: bool) -> Result<(), Failure> {
    let path = undo.at(root);
    if !path.try_exists().map_err(|cause| cannot_keep(&path, &cause))? {
        let none = WentBack { back: 0, changed_by_others: Vec::new(), failed: Vec::new() };
        return tell(&none, json, |_| format!("nothing to bring back: there is no {}\n", path.display()));
    }
    let undo = Undo::open(&path).map_err(|cause| cannot_keep(&path, &cause))?;
    let reverted = crate::tune::revert(&root.path, &undo, force).map_err(|cause| match cause.kind() {
        ErrorKind::PermissionDenied => cannot_keep(&path, &cause),
        _ => Failure::CannotRun(format!("{}: {cause}", path.display())),
    })?;
    let foreign = reverted.foreign.into_iter().map(|(change, now)| Foreign {
        path: format!("/{}", change.path),
        was: change.was,
        set: change.to,
        now,
    });
    let failed = reverted.failed.iter().map(|(change, cause)| format!("/{}: {cause}", change.path));
    let went = WentBack {
        back: reverted.back.len(),
        changed_by_others: foreign.collect(),
        failed: failed.collect(),
    };
    for Foreign { path, was, set, now } in &went.changed_by_others {
        hint(format_args!(
            "{path} is left as it is: it was {}, apply set {}, and somebody else {} (--force brings {} back)",
            shown(was, 100),
            shown(set, 100),
            shown(now, 100),
            shown(was, 100)
        ));
    }
    let (left, cannot) = (went.changed_by_others.len(), went.failed.join("; "));
    tell(&went, json, |went| format!("{} as before\n", counted(went.back as u64, "setting")))?;
    match (left, cannot.is_empty()) {
        (_, false) => Err(Failure::CannotRun(format!(
            "cannot bring back {cannot} (run it as root; what is left stays in {})",
            path.display()
        ))),
        (0, true) => Ok(()),
        (_, true) => Err(Failure::No(format!("{} left as others set them", counted(left as u64, "setting")))),
    }
}
