use super::super::epoch::IdKey;
use super::super::map::{Assign, DomainMap, DomainsJournal, Server, ServerState};
use super::super::queue::{Batch, BlockKind, Queue, QueueEnd, QueueLimits, QueueReader};
use super::super::{MapRow, ServerId};
use super::files::{Files, about, digest, let_go, move_to_done, numbered};
use super::journal::{AppendError, Journal};
use super::lock::Lock;
use super::state::{Keep, Record, State, Totals};
use super::told::Told;
use crate::base::SortedMap;
use crate::proto::reflog::Stamp;
use crate::storage::{FRESH, make_data_directory, make_directory};
use std::io;
use std::path::Path;

/// The directory of a master, and everything in it. One process has it.
pub struct Master {
    pub(super) files: Files,
    pub(super) rules: MasterRules,
    pub(super) journal: Journal,
    pub(super) state: State,
    pub(super) domains: DomainsJournal,
    pub(super) map: DomainMap,
    pub(super) queues: SortedMap<u16, Queue>,
    pub(super) key: IdKey,
    /// Why nothing more can be done here: nobody knows what the disk has.
    pub(super) broken: Option<String>,
    /// The latest time that was committed when the table of two masters was last heard: what came later may lie with a
    /// server that a domain has left, and no mark is above it. `None` without a table.
    sure_s: Option<u32>,
    /// Why no new domain is placed for now.
    pub(super) no_new: Option<String>,
    _lock: Lock,
}

/// What a master goes by beside the rules of its epochs.
#[derive(Clone, Debug)]
pub struct MasterRules {
    /// Those that are configured. What `map drain` said of one wins.
    pub servers: Vec<Server>,
    pub assign: Assign,
    /// A queue with so many bytes that its node does not have gets no more.
    pub queue_bytes_max: u64,
    pub queue_limits: QueueLimits,
    /// How long queues, rejects and inputs that are done with are kept at least.
    pub keep_s: u32,
    /// Inputs move to `done/` beside them.
    pub moves_inputs: bool,
}

impl Default for MasterRules {
    fn default() -> MasterRules {
        MasterRules {
            servers: Vec::new(),
            assign: Assign::LeastLoaded,
            queue_bytes_max: 64 << 30,
            queue_limits: QueueLimits::default(),
            keep_s: 36_000,
            moves_inputs: false,
        }
    }
}

/// What is kept between epochs, in one commit.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub rows: Vec<MapRow>,
    /// For the queues: words to nodes, and what a domain brings along.
    pub entries: Vec<(ServerId, Vec<u8>)>,
    pub states: Vec<(ServerId, ServerState)>,
    /// Words of the caller's own that are to be there after a restart; `None` takes one away.
    pub notes: Vec<(String, Option<String>)>,
}

/// Files of inputs and rejects beyond that go, however young.
const FILES_MAX: usize = 10_000;
/// Epochs between two looks at what may go.
const LOOK_EPOCHS: u64 = 64;

impl Master {
    /// Opens a directory, makes it if need be, and cuts away what was not committed.
    pub fn open(folder: &Path, rules: MasterRules) -> io::Result<(Master, Vec<Told>)> {
        make_data_directory(folder).map_err(about(folder))?;
        let files = Files { folder: folder.to_path_buf() };
        let lock = Lock::take(folder)?;
        for part in [files.log(), files.held(), files.rejects(), files.work(), folder.join("queue")] {
            make_directory(&part).map_err(about(&part))?;
        }
        // What a killed process had not given its name.
        for part in [folder.to_path_buf(), files.log(), files.held()] {
            remove_fresh(&part).map_err(about(&part))?;
        }
        let (journal, state, torn_bytes) = Journal::open(&files.journal())?;
        let mut told = Vec::new();
        told.extend((torn_bytes > 0).then_some(Told::JournalTorn { bytes: torn_bytes }));
        told.extend(state.begun.as_ref().map(|begun| Told::EpochAgain { epoch: begun.epoch }));
        if state.epoch > 0 && !files.key().exists() {
            let text = format!(
                "{} is gone: without it no URL is known again (put a copy back)",
                files.key().display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let key = IdKey::open(&files.key())?;
        let (domains, map) = DomainsJournal::open(folder, state.domains)?;
        let mut master = Master {
            files,
            rules,
            journal,
            state,
            domains,
            map,
            queues: SortedMap::new(),
            key,
            broken: None,
            sure_s: None,
            no_new: None,
            _lock: lock,
        };
        master.state.domains = master.domains.end();
        let configured = master.rules.servers.iter().map(|server| server.id.0);
        let numbers: Vec<u16> = configured.chain(master.state.queues.keys().copied()).collect();
        for number in numbers {
            told.extend(master.open_queue(ServerId(number))?);
        }
        // Folders of servers that never got anything committed.
        for number in numbered(&folder.join("queue"), "")? {
            if let Ok(number) = u16::try_from(number) {
                told.extend(master.open_queue(ServerId(number))?);
            }
        }
        master.tell_queues();
        told.extend(master.tidy(true));
        Ok((master, told))
    }

    fn open_queue(&mut self, server: ServerId) -> io::Result<Vec<Told>> {
        if self.queues.contains_key(&server.0) {
            return Ok(Vec::new());
        }
        let end = self.state.queues.get(&server.0).copied().unwrap_or_default();
        let folder = self.files.queue(server);
        let (queue, damages) =
            Queue::open(&folder, server, end, self.rules.queue_limits).map_err(about(&folder))?;
        self.queues.insert(server.0, queue);
        let told = |(file, damage): (_, super::super::queue::Damage)| Told::QueueDamaged {
            server,
            file,
            at: damage.at,
            what: damage.what,
        };
        Ok(damages.into_iter().map(told).collect())
    }

    /// The state of everything that is told to readers of every queue.
    pub(super) fn tell_queues(&self) {
        let unsure_s = self.sure_s.map(|sure| sure.saturating_add(1));
        let held_s = self.state.held.map(|held| held.earliest).into_iter().chain(unsure_s).min();
        self.queues.values().for_each(|queue| queue.shelf().told(self.state.latest, held_s));
    }

    /// A reader of the queue of a server, for any thread.
    pub fn reader(&self, server: ServerId) -> Option<QueueReader> {
        self.queues.get(&server.0).map(Queue::reader)
    }

    pub fn map(&self) -> &DomainMap {
        &self.map
    }

    pub fn key(&self) -> &IdKey {
        &self.key
    }

    /// The last epoch that is committed, and its time.
    pub fn epoch(&self) -> (u64, u32) {
        (self.state.epoch, self.state.now)
    }

    pub fn totals(&self) -> Totals {
        self.state.totals
    }

    /// What is held, if anything is.
    pub fn held(&self) -> Option<super::state::Held> {
        self.state.held
    }

    /// Since when new domains cannot be placed.
    pub fn unplaced_since_s(&self) -> Option<u32> {
        self.state.unplaced_since
    }

    /// A word that was kept.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.state.notes.get(name).map(String::as_str)
    }

    pub fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.state.notes.iter().map(|(name, note)| (name.as_str(), note.as_str()))
    }

    /// The servers that are configured, each as it stands.
    pub fn servers(&self) -> Vec<Server> {
        let state = |server: &Server| self.state.states.get(&server.id.0).copied().unwrap_or(server.state);
        self.rules.servers.iter().map(|server| Server { state: state(server), ..*server }).collect()
    }

    /// Goes by other rules from the next epoch on; queues of servers that are new are made.
    pub fn configure(&mut self, rules: MasterRules) -> io::Result<Vec<Told>> {
        self.rules = rules;
        let numbers: Vec<ServerId> = self.rules.servers.iter().map(|server| server.id).collect();
        let mut told = Vec::new();
        for number in numbers {
            told.extend(self.open_queue(number)?);
        }
        self.tell_queues();
        Ok(told)
    }

    /// From now on domains that are new are held, and why; `None` lets them be placed again.
    pub fn hold_new_domains(&mut self, why: Option<String>) {
        self.no_new = why;
    }

    /// All rows of the table that masters share have been heard, and are gone by.
    pub fn heard_table(&mut self) {
        self.sure_s = Some(self.state.latest);
        self.tell_queues();
    }

    /// Why nothing more can be done before the directory is opened anew.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// What the last epoch went by.
    pub fn by(&self) -> super::super::epoch::DomainBy {
        self.state.rules.by()
    }

    pub fn rules(&self) -> &MasterRules {
        &self.rules
    }

    pub(super) fn usable(&self) -> io::Result<()> {
        match &self.broken {
            Some(cause) => Err(io::Error::other(format!("{cause} (start the master again)"))),
            None => Ok(()),
        }
    }

    /// Keeps rows, entries and words between two epochs: all of it or none.
    pub fn keep(&mut self, kept: &Kept, now_s: u32) -> io::Result<()> {
        self.usable()?;
        let record = self.stage(kept, now_s).and_then(|keep| self.append(Record::Keep(keep)));
        if let Err(e) = record {
            self.take_back(self.map.numbers());
            return Err(e);
        }
        kept.rows.iter().for_each(|row| {
            self.map.set(row);
        });
        self.publish();
        Ok(())
    }

    fn stage(&mut self, kept: &Kept, now_s: u32) -> io::Result<Keep> {
        let before_s = self.state.latest_by(now_s);
        let batch = Batch { epoch: self.state.epoch, now_s, before_s, kind: BlockKind::Control };
        for (server, _) in &kept.entries {
            self.open_queue(*server)?;
        }
        self.queues.values_mut().for_each(|queue| queue.begin(batch));
        for (server, entry) in &kept.entries {
            let queue = self.queues.get_mut(&server.0).ok_or(io::ErrorKind::NotFound)?;
            // A line of a reflog counts by its own time, so that no mark is above it before it was taken.
            queue.append(entry, time_of(entry).unwrap_or(Stamp::from_s(now_s)))?;
        }
        self.domains.append_rows(kept.rows.iter()).map_err(about(&self.files.folder))?;
        Ok(Keep {
            queues: self.seal_queues()?,
            domains: self.domains.seal()?,
            states: kept.states.iter().map(|(server, state)| (server.0, *state)).collect(),
            notes: kept.notes.iter().cloned().collect(),
        })
    }

    pub(super) fn seal_queues(&mut self) -> io::Result<SortedMap<u16, QueueEnd>> {
        let mut ends = SortedMap::new();
        for (server, queue) in &mut self.queues {
            ends.extend(
                queue.seal().map_err(about(&self.files.queue(ServerId(*server))))?.map(|end| (*server, end)),
            );
        }
        Ok(ends)
    }

    pub(super) fn append(&mut self, record: Record) -> io::Result<()> {
        match self.journal.append(&record) {
            Ok(()) => {
                self.state.apply(record);
                Ok(())
            }
            Err(AppendError::TakenBack(e)) => Err(e),
            Err(AppendError::InDoubt(e)) => {
                self.broken = Some(format!("the journal could not be written: {e}"));
                Err(e)
            }
        }
    }

    /// Lets readers see what was committed.
    pub(super) fn publish(&mut self) {
        self.domains.commit();
        self.queues.values_mut().for_each(Queue::publish);
        self.tell_queues();
    }

    /// Takes back what was written since the last commit, also from the map. Where the journal may say that it was
    /// committed, its files stay as they are: the next process sees what the disk has.
    pub(super) fn take_back(&mut self, numbers: u32) {
        self.map.forget_from(numbers);
        if self.broken.is_some() {
            return;
        }
        let domains = self.domains.cut();
        let queues = self.queues.values_mut().try_for_each(Queue::cut);
        if let Err(e) = domains.and(queues) {
            self.broken.get_or_insert(format!("what was not committed could not be taken back: {e}"));
        }
    }

    /// What follows a commit, and is done again by the next process if this one is killed: the same whoever does it.
    pub(super) fn tidy(&mut self, is_opening: bool) -> Vec<Told> {
        let mut told = Vec::new();
        let mut note = |path: &Path, done: io::Result<()>| {
            if let Err(e) = done {
                told.push(Told::Untidy { path: path.to_path_buf(), cause: e.to_string() });
            }
        };
        let epoch = self.state.epoch;
        let mut folders = Vec::new();
        for input in std::mem::take(&mut self.state.taken) {
            let path = input.path();
            folders.extend(path.parent().map(|folder| folder.join("done")));
            if path.exists() && digest(&path).ok() == input.digest() {
                note(&path, move_to_done(&path, epoch));
            }
        }
        let held = self.state.held.map(|held| held.epoch);
        note(&self.files.log(), only(&self.files.log(), "current.", Some(epoch).filter(|epoch| *epoch > 0)));
        note(&self.files.held(), only(&self.files.held(), "", held));
        for queue in self.queues.values_mut() {
            note(&self.files.folder, queue.let_go(self.state.now, self.rules.keep_s).map(drop));
        }
        if is_opening || epoch.is_multiple_of(LOOK_EPOCHS) {
            folders.dedup();
            folders.push(self.files.rejects());
            for folder in folders {
                note(&folder, let_go(&folder, self.state.now, self.rules.keep_s, FILES_MAX));
            }
        }
        note(&self.files.folder, self.domains.compact(&self.map));
        self.state.domains = self.domains.end();
        let compacted = self.journal.compact(&self.state);
        if matches!(compacted, Ok(true)) {
            self.state.history.clear();
        }
        note(&self.files.journal(), compacted.map(drop));
        told
    }
}

fn remove_fresh(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == FRESH) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The time of a line of a reflog.
fn time_of(entry: &[u8]) -> Option<Stamp> {
    entry.first().filter(|byte| byte.is_ascii_digit())?;
    entry.split(|byte| *byte == b'\t').nth(2).and_then(Stamp::parse)
}

/// Removes all files of a folder that begin like that, but for one.
fn only(folder: &Path, prefix: &str, kept: Option<u64>) -> io::Result<()> {
    for number in numbered(folder, prefix)? {
        if Some(number) != kept {
            std::fs::remove_file(folder.join(format!("{prefix}{number}")))?;
        }
    }
    Ok(())
}
