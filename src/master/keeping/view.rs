use super::super::args::Args;
use super::super::epoch::{CurrentLog, IdKey};
use super::super::map::{DomainMap, DomainsJournal, ServerState};
use super::super::queue::{QueueReader, open_shelf};
use super::super::{EpochCounts, ServerId};
use super::epoch_begun::open_current;
use super::files::{Files, about, numbered};
use super::journal;
use super::state::{EpochRules, Held, State, Totals};
use super::told::Told;
use crate::base::SortedMap;
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of a master as it was committed last, also while a process writes it. Nothing is changed.
pub struct MasterView {
    files: Files,
    state: State,
    map: DomainMap,
    queues: SortedMap<u16, QueueReader>,
    told: Vec<Told>,
}

/// An epoch as the journal tells it.
#[derive(Clone, Debug)]
pub struct EpochTold {
    pub epoch: u64,
    pub now_s: u32,
    pub files: Vec<PathBuf>,
    pub counts: EpochCounts,
    pub held: Option<Held>,
    pub rules: EpochRules,
}

/// A file that was taken, and is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileTold {
    /// XXH3-128 of its bytes.
    pub digest: String,
    /// `None` once the journal has forgotten its epoch.
    pub path: Option<String>,
    /// When, in seconds since 1970.
    pub taken_s: u32,
}

/// A master that writes may let files go between two looks: so often is looked again.
const TRIES: u32 = 20;

impl MasterView {
    /// Whether a directory is that of a master.
    pub fn is_at(folder: &Path) -> bool {
        let files = Files { folder: folder.to_path_buf() };
        files.journal().is_file() && folder.join("queue").is_dir()
    }

    /// `None` if there is no master in a directory.
    pub fn open(folder: &Path) -> io::Result<Option<MasterView>> {
        let mut tries = 1;
        loop {
            match MasterView::look(folder) {
                Err(e)
                    if tries < TRIES
                        && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) =>
                {
                    tries += 1;
                }
                looked => return looked,
            }
        }
    }

    fn look(folder: &Path) -> io::Result<Option<MasterView>> {
        let files = Files { folder: folder.to_path_buf() };
        let Some(read) = journal::read(&files.journal())? else { return Ok(None) };
        let state = read.state;
        let map = DomainsJournal::view(folder, state.domains)?;
        let (mut queues, mut told) = (SortedMap::new(), Vec::new());
        let held_s = state.held.map(|held| held.earliest);
        for (number, end) in &state.queues {
            let server = ServerId(*number);
            let path = files.queue(server);
            let (shelf, damages) = open_shelf(&path, server, *end).map_err(about(&path))?;
            shelf.told(state.latest, held_s);
            queues.insert(*number, QueueReader::new(shelf));
            told.extend(damages.into_iter().map(|(file, damage)| Told::QueueDamaged {
                server,
                file,
                at: damage.at,
                what: damage.what,
            }));
        }
        Ok(Some(MasterView { files, state, map, queues, told }))
    }

    pub fn map(&self) -> &DomainMap {
        &self.map
    }

    /// The queues that have got something, by server.
    pub fn queues(&mut self) -> impl Iterator<Item = (ServerId, &mut QueueReader)> {
        self.queues.iter_mut().map(|(number, queue)| (ServerId(*number), queue))
    }

    pub fn queue(&mut self, server: ServerId) -> Option<&mut QueueReader> {
        self.queues.get_mut(&server.0)
    }

    /// What is wrong with the directory.
    pub fn told(&self) -> &[Told] {
        &self.told
    }

    /// The last epoch that is committed, and its time.
    pub fn epoch(&self) -> (u64, u32) {
        (self.state.epoch, self.state.now)
    }

    /// The epoch that has begun and is not committed.
    pub fn begun(&self) -> Option<u64> {
        self.state.begun.as_ref().map(|begun| begun.epoch)
    }

    pub fn counts(&self) -> EpochCounts {
        self.state.counts
    }

    /// Epochs that the journal tells one by one.
    pub fn history(&self) -> impl Iterator<Item = EpochTold> {
        self.state.history.iter().map(|(begin, commit)| EpochTold {
            epoch: commit.epoch,
            now_s: begin.now,
            files: begin.files.iter().map(super::state::InputName::path).collect(),
            counts: commit.counts,
            held: commit.held,
            rules: commit.rules,
        })
    }

    /// The files that were taken, as far as they are remembered; the oldest first.
    pub fn files_taken(&self) -> Vec<FileTold> {
        let named = self.state.history.iter().flat_map(|(begin, _)| &begin.files);
        let name = |path: PathBuf| path.to_string_lossy().into_owned();
        let named: RapidHashMap<Option<u128>, String> =
            named.map(|file| (file.digest(), name(file.path()))).collect();
        let told = |(digest, taken_s): &(String, u32)| FileTold {
            digest: digest.clone(),
            path: named.get(&u128::from_str_radix(digest, 16).ok()).cloned(),
            taken_s: *taken_s,
        };
        self.state.digests.iter().map(told).collect()
    }

    /// The latest time of what was sent.
    pub fn latest_s(&self) -> u32 {
        self.state.latest
    }

    /// What the last epoch went by.
    pub fn rules(&self) -> EpochRules {
        self.state.rules
    }

    pub fn totals(&self) -> Totals {
        self.state.totals
    }

    pub fn held(&self) -> Option<Held> {
        self.state.held
    }

    /// The lines that are held.
    pub fn held_path(&self) -> Option<PathBuf> {
        self.state.held.map(|held| self.files.held().join(held.epoch.to_string()))
    }

    pub fn unplaced_since_s(&self) -> Option<u32> {
        self.state.unplaced_since
    }

    /// What was said of servers beside their configuration.
    pub fn states(&self) -> &SortedMap<u16, ServerState> {
        &self.state.states
    }

    /// Verdicts over parameters, without those of the settings.
    pub fn query_args(&self) -> io::Result<Args> {
        Args::view(&self.files.folder)
    }

    /// The key of ids; there is one once an epoch was committed.
    pub fn key(&self) -> io::Result<Option<IdKey>> {
        match self.files.key().exists() {
            true => IdKey::open(&self.files.key()).map(Some),
            false => Ok(None),
        }
    }

    /// The current_log; `None` before the first epoch, or if it was emptied by hand.
    pub fn current(&self) -> io::Result<Option<CurrentLog>> {
        match self.key()? {
            Some(key) if self.state.epoch > 0 => open_current(&self.files.current(self.state.epoch), &key),
            _ => Ok(None),
        }
    }

    /// Epochs that have rejects.
    pub fn rejects(&self) -> io::Result<Vec<u64>> {
        let committed = |epoch: &u64| *epoch <= self.state.epoch;
        Ok(numbered(&self.files.rejects(), "")?.into_iter().filter(committed).collect())
    }

    pub fn rejects_path(&self, epoch: u64) -> PathBuf {
        self.files.rejects().join(epoch.to_string())
    }
}
