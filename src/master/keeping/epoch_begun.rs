use super::super::InputFile;
use super::super::epoch::{CurrentLog, IdKey, JoinJob, JoinRules, Joined, UrlCanon, join};
use super::files::about;
use super::rejects::Rejects;
use super::state::EpochRules;
use super::told::Told;
use crate::base::Workers;
use std::io;
use std::path::{Path, PathBuf};

/// An epoch that has begun: what it is made of is in the journal.
pub struct Epoch {
    pub(super) number: u64,
    pub(super) now_s: u32,
    /// How far the logs of earlier epochs have come.
    pub(super) horizon_s: u32,
    pub(super) inputs: Vec<InputFile>,
    pub(super) held: Option<PathBuf>,
    pub(super) current: Option<PathBuf>,
    pub(super) rejects: Rejects,
    pub(super) key: IdKey,
    pub(super) work: PathBuf,
    pub(super) told: Vec<Told>,
    pub(super) is_again: bool,
    pub(super) rules: EpochRules,
}

impl Epoch {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its time, in seconds since 1970; an epoch that is made again has that of its beginning.
    pub fn now_s(&self) -> u32 {
        self.now_s
    }

    /// The files that it takes. Those that were taken before are not among them.
    pub fn inputs(&self) -> &[InputFile] {
        &self.inputs
    }

    /// Whether lines come again that could not be sent before.
    pub fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether it was begun before, and not committed.
    pub fn is_again(&self) -> bool {
        self.is_again
    }

    /// What an operator should hear of its inputs.
    pub fn told(&self) -> &[Told] {
        &self.told
    }

    /// Does steps (1) to (4).
    pub fn join(
        &mut self,
        rules: JoinRules,
        canon: &dyn UrlCanon,
        workers: &dyn Workers,
    ) -> io::Result<Joined> {
        self.rules = rules.into();
        let current =
            self.current.as_deref().map(|path| open_current(path, &self.key)).transpose()?.flatten();
        join(JoinJob {
            inputs: &self.inputs,
            held: self.held.as_deref(),
            now_s: self.now_s,
            horizon_s: self.horizon_s,
            current: current.as_ref(),
            rules,
            key: &self.key,
            canon,
            workers,
            work: &self.work,
            rejects: &mut self.rejects,
        })
    }
}

/// The current_log of the last epoch; `None` if it was emptied by hand.
pub(super) fn open_current(path: &Path, key: &IdKey) -> io::Result<Option<CurrentLog>> {
    let mend = "put a copy back; or empty the file: then URLs of the last hour are sent again, and hits that waited are lost";
    let bytes = std::fs::metadata(path)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e} ({mend})", path.display())))?
        .len();
    if bytes == 0 {
        return Ok(None);
    }
    let log = CurrentLog::open(path).map_err(about(path)).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData => io::Error::new(e.kind(), format!("{e} ({mend})")),
        _ => e,
    })?;
    if !log.is_keyed_by(key) {
        let text =
            format!("{} was made with another id.key (put the right one back; or {mend})", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(Some(log))
}
