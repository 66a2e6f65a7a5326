use super::log_file::{LogFile, Preamble, append};
use crate::base::{Now, Wall, counted};
use crate::config::Config;
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::limits::{JOURNAL_COMPACT_BYTES, SCRIBE_RING_WORDS, SPILL_RING_WORDS};
use crate::proto::crawl_log::{CRAWL_LOG, PartName, RunRules};
use crate::proto::robots::product_token;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use crate::storage::replace;
use crate::url_server::{Clock, HostMemory, SpillAsk, SpillEvent, UrlServerConfig, compacted};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is written down beside the documents, on a thread of its own, so that no shard waits for a disk: the crawl
/// log, the journal of what must not be forgotten of hosts, and leftovers that memory has no room for.
///
/// ```text
///   shards, scheduler ──► words ──► DIR/crawl.log, .1 .2 …   a line for every fetch, in parts
///                                   DIR/niceness.journal     pauses, blocks and robots rules of hosts
///        spill events ◄──────────── DIR/leftovers/           chunks, gone once they were read back
/// ```
pub struct LogWriter {
    words: Receiver<ToLogWriter>,
    medium: Medium,
    preamble: Preamble,
    rotation: Rotation,
    spill: Vec<SpillSide>,
    /// What could not be written yet; nothing more is taken meanwhile.
    stuck: Option<ToLogWriter>,
    is_ending: bool,
    health: Arc<Health>,
}

/// When a part of the crawl log is finished, and how many are kept.
struct Rotation {
    /// 0 = no limit.
    part_bytes: u64,
    /// 0 = all.
    parts_max: usize,
}

/// Messages for the log writer.
pub enum ToLogWriter {
    /// Whole lines of the crawl log.
    Log(Vec<u8>),
    /// Whole lines of the journal.
    Journal(String),
    Spill {
        shard: usize,
        ask: SpillAsk,
    },
    /// Completion once everything that was said before is written.
    Fence(SyncSender<()>),
}

/// A writer's end, of a shard or of the scheduler.
#[derive(Clone)]
pub struct LogWriterPort {
    pub words: Sender<ToLogWriter>,
    /// The log writer's bell.
    pub bell: Arc<Doorbell>,
}

struct SpillSide {
    events: Sender<SpillEvent>,
    bell: Arc<Doorbell>,
    /// Events its ring had no room for.
    waiting: VecDeque<SpillEvent>,
}

/// Where it is all written.
enum Medium {
    Directory(Directory),
    /// For the simulation.
    Memory {
        files: MemoryFiles,
        leftovers: RapidHashMap<(usize, u32), Vec<u8>>,
    },
    /// For a spider without a data directory: it is all let go.
    Nowhere,
}

struct Directory {
    log: LogFile,
    journal: File,
    journal_path: PathBuf,
    journal_bytes: u64,
    leftovers: PathBuf,
}

/// What an earlier process left in a data directory.
#[derive(Clone)]
pub struct PreviousRun {
    journal: Journal,
    /// There was one.
    has_run: bool,
}

/// What is known of hosts; a shard that takes over from one that died reads it anew.
#[derive(Clone)]
enum Journal {
    File(PathBuf),
    Memory(Arc<Mutex<String>>),
}

/// Where a process writes its log.
pub enum LogMedium<'a> {
    /// A data directory whose lock the caller holds.
    Directory(&'a Path),
    /// For the simulation. The files outlive the process, and one that opens them again goes on with them.
    Memory(MemoryFiles),
    /// For a spider without a data directory.
    Nowhere,
}

/// The files of a simulated data directory.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    log: Arc<Mutex<MemoryLog>>,
    journal: Arc<Mutex<String>>,
}

/// The parts of a simulated log, one behind the other.
#[derive(Default)]
struct MemoryLog {
    bytes: Vec<u8>,
    /// Where the open part begins, and its number less one.
    part_at: usize,
    parts: u32,
}

impl MemoryFiles {
    /// The log and the journal, as they are now.
    pub fn written(&self) -> (Vec<u8>, String) {
        (locked(&self.log).bytes.clone(), locked(&self.journal).clone())
    }
}

pub(crate) const JOURNAL: &str = "niceness.journal";
const LEFTOVERS: &str = "leftovers";

impl LogWriter {
    /// Opens the files and begins a run in the log.
    pub fn open(
        medium: &LogMedium<'_>,
        config: &Config,
        wall: Wall,
        bell: Arc<Doorbell>,
        health: Arc<Health>,
    ) -> io::Result<(LogWriter, LogWriterPort, PreviousRun)> {
        let preamble = Preamble::new(run_rules(config, wall.unix_ms_at_zero * 1_000));
        let (medium, journal, has_run) = match medium {
            LogMedium::Directory(data) => {
                let (directory, has_run) = Directory::open(data, &preamble, wall)?;
                let journal = Journal::File(directory.journal_path.clone());
                (Medium::Directory(directory), journal, has_run)
            }
            LogMedium::Memory(files) => {
                let mut log = locked(&files.log);
                let has_run = !log.bytes.is_empty();
                let first_lines = preamble.lines(log.parts + 1);
                log.bytes.extend_from_slice(&first_lines);
                let medium = Medium::Memory { files: files.clone(), leftovers: RapidHashMap::default() };
                (medium, Journal::Memory(files.journal.clone()), has_run)
            }
            LogMedium::Nowhere => (Medium::Nowhere, Journal::Memory(Arc::default()), false),
        };
        let (words, words_in) = ring(SCRIBE_RING_WORDS);
        let (part_bytes, parts_max) = (config.store.log_bytes.0, config.store.log_parts_max);
        let writer = LogWriter {
            words: words_in,
            medium,
            preamble,
            rotation: Rotation { part_bytes, parts_max: parts_max as usize },
            spill: Vec::new(),
            stuck: None,
            is_ending: false,
            health,
        };
        Ok((writer, LogWriterPort { words, bell }, PreviousRun { journal, has_run }))
    }

    /// The way back to the next shard, which this bell wakes.
    pub fn spill_events(&mut self, bell: Arc<Doorbell>) -> Receiver<SpillEvent> {
        let (events, receiver) = ring(SPILL_RING_WORDS);
        self.spill.push(SpillSide { events, bell, waiting: VecDeque::new() });
        receiver
    }

    /// Writes down what has come, and says how many messages that were. An error is the disk's: the messages wait, and
    /// the next turn tries again.
    fn write_down(&mut self) -> io::Result<u64> {
        let mut count = 0;
        for side in &mut self.spill {
            side.hand_over();
        }
        if self.health.is_log_part_asked() {
            self.rotate()?;
            self.health.log_part_made();
        }
        while let Some(word) = self.stuck.take().or_else(|| self.words.pop()) {
            count += 1;
            if let Err((word, cause)) = self.take(word) {
                self.stuck = Some(word);
                return Err(cause);
            }
        }
        Ok(count)
    }

    fn take(&mut self, word: ToLogWriter) -> Result<(), (ToLogWriter, io::Error)> {
        let (shard, ask) = match word {
            ToLogWriter::Spill { shard, ask } => (shard, ask),
            ToLogWriter::Log(lines) => {
                return self.log(&lines).map_err(|cause| (ToLogWriter::Log(lines), cause));
            }
            ToLogWriter::Journal(lines) => {
                return self.medium.journal(&lines).map_err(|cause| (ToLogWriter::Journal(lines), cause));
            }
            ToLogWriter::Fence(reached) => {
                let _ = reached.try_send(());
                return Ok(());
            }
        };
        let done = match ask {
            SpillAsk::Write { chunk, bytes } => match self.medium.write_chunk(shard, chunk, &bytes) {
                Ok(()) => Some(SpillEvent::Written { chunk }),
                // The shard has the bytes still, and keeps them.
                Err(_) => None,
            },
            SpillAsk::Forget { chunk } => {
                self.medium.forget_chunk(shard, chunk);
                None
            }
            SpillAsk::Read { chunk } => match self.medium.read_chunk(shard, chunk) {
                Ok(bytes) => Some(SpillEvent::Read { chunk, bytes }),
                Err(cause) => {
                    return Err((ToLogWriter::Spill { shard, ask: SpillAsk::Read { chunk } }, cause));
                }
            },
        };
        if let Some(side) = self.spill.get_mut(shard) {
            side.waiting.extend(done);
            side.hand_over();
        }
        Ok(())
    }
}

impl LogWriter {
    /// Appends lines to the crawl log. A part that they would make too long is finished first.
    fn log(&mut self, lines: &[u8]) -> io::Result<()> {
        let Rotation { part_bytes, .. } = self.rotation;
        if part_bytes > 0 && self.medium.part_bytes() + lines.len() as u64 > part_bytes {
            self.rotate()?;
        }
        self.medium.log(lines)?;
        self.preamble.heed(lines);
        Ok(())
    }

    /// Finishes a part of the crawl log, unless nothing stands in it but its first lines.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(part) = self.medium.part() else {
            tell_no_log(&self.health);
            return Ok(());
        };
        let bytes = self.medium.part_bytes();
        if bytes <= self.preamble.lines(part).len() as u64 {
            return Ok(());
        }
        let part = self.medium.finish_part(&self.preamble)?;
        let path = PartName::of(part).to_string();
        let text = format!("{CRAWL_LOG}: part {part} is finished: {path} ({bytes} bytes)");
        let fields = vec![("path", path.into()), ("part", part.into()), ("bytes", bytes.into())];
        self.health.tell(Event::LogRotated, fields, text);
        if let (Medium::Directory(directory), parts_max @ 1..) = (&self.medium, self.rotation.parts_max) {
            let removed = directory.log.remove_but(parts_max)?;
            if removed > 0 {
                let text = format!(
                    "{CRAWL_LOG}: the {} oldest went, as log_parts_max is {parts_max}",
                    counted(removed, "part")
                );
                self.health.tell(Event::LogPartsRemoved, vec![("parts", removed.into())], text);
            }
        }
        Ok(())
    }
}

/// Says that there is no crawl log of which a new part could begin.
pub(crate) fn tell_no_log(health: &Health) {
    health.tell(Event::NoLog, Vec::new(), "SIGUSR1: this process writes no crawl.log");
}

impl Actor for LogWriter {
    fn turn(&mut self, _: Now) -> Turned {
        let is_over = self.is_ending;
        match self.write_down() {
            Ok(messages) => {
                self.health.wait_for(Part::Log, None);
                if is_over { Turned::Finished } else { Turned::Idle { messages } }
            }
            Err(cause) => {
                let text = format!("cannot write the crawl log or the journal of hosts: {cause}");
                self.health.wait_for(Part::Log, Some(text));
                // A disk may have room again; a file that is as long as it may be will not grow.
                if cause.kind() == io::ErrorKind::FileTooLarge {
                    self.health.fatal(NodeError::Log(cause));
                }
                if is_over { Turned::Finished } else { Turned::Stuck }
            }
        }
    }

    fn has_messages(&self) -> bool {
        !self.words.is_empty() || self.stuck.is_some()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}

impl SpillSide {
    fn hand_over(&mut self) {
        while let Some(event) = self.waiting.pop_front() {
            if let Err(event) = self.events.push(event) {
                self.waiting.push_front(event);
                break;
            }
            self.bell.ring_if_asleep();
        }
    }
}

impl Medium {
    fn log(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Medium::Directory(directory) => directory.log.append(lines),
            Medium::Memory { files, .. } => {
                locked(&files.log).bytes.extend_from_slice(lines);
                Ok(())
            }
            Medium::Nowhere => Ok(()),
        }
    }

    /// Of the open part of the log.
    fn part_bytes(&self) -> u64 {
        match self {
            Medium::Directory(directory) => directory.log.bytes(),
            Medium::Memory { files, .. } => {
                let log = locked(&files.log);
                (log.bytes.len() - log.part_at) as u64
            }
            Medium::Nowhere => 0,
        }
    }

    /// The number of the open part; `None` where nothing is written.
    fn part(&self) -> Option<u32> {
        match self {
            Medium::Directory(directory) => Some(directory.log.part()),
            Medium::Memory { files, .. } => Some(locked(&files.log).parts + 1),
            Medium::Nowhere => None,
        }
    }

    /// Finishes the open part, begins the next one, and says which number the finished one has.
    fn finish_part(&mut self, preamble: &Preamble) -> io::Result<u32> {
        match self {
            Medium::Directory(directory) => {
                let log = &mut directory.log;
                log.finish_part(|part| preamble.lines(part))?;
                Ok(log.part() - 1)
            }
            Medium::Memory { files, .. } => {
                let mut log = locked(&files.log);
                (log.part_at, log.parts) = (log.bytes.len(), log.parts + 1);
                let first_lines = preamble.lines(log.parts + 1);
                log.bytes.extend_from_slice(&first_lines);
                Ok(log.parts)
            }
            Medium::Nowhere => Ok(0),
        }
    }

    fn journal(&mut self, lines: &str) -> io::Result<()> {
        match self {
            Medium::Directory(directory) => directory.journal(lines),
            Medium::Memory { files, .. } => {
                locked(&files.journal).push_str(lines);
                Ok(())
            }
            Medium::Nowhere => Ok(()),
        }
    }

    fn write_chunk(&mut self, shard: usize, chunk: u32, bytes: &[u8]) -> io::Result<()> {
        match self {
            Medium::Directory(directory) => {
                let path = directory.chunk(shard, chunk);
                fs::write(&path, bytes).inspect_err(|_| drop(fs::remove_file(&path)))
            }
            Medium::Memory { leftovers, .. } => {
                leftovers.insert((shard, chunk), bytes.to_vec());
                Ok(())
            }
            Medium::Nowhere => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// What cannot be removed is removed by the next start.
    fn forget_chunk(&mut self, shard: usize, chunk: u32) {
        match self {
            Medium::Directory(directory) => drop(fs::remove_file(directory.chunk(shard, chunk))),
            Medium::Memory { leftovers, .. } => drop(leftovers.remove(&(shard, chunk))),
            Medium::Nowhere => {}
        }
    }

    fn read_chunk(&mut self, shard: usize, chunk: u32) -> io::Result<Vec<u8>> {
        match self {
            Medium::Directory(directory) => {
                let path = directory.chunk(shard, chunk);
                let bytes = fs::read(&path)?;
                let _ = fs::remove_file(&path);
                Ok(bytes)
            }
            Medium::Memory { leftovers, .. } => {
                leftovers.remove(&(shard, chunk)).ok_or(io::Error::from(io::ErrorKind::NotFound))
            }
            Medium::Nowhere => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Directory {
    /// Opens the files, and says whether a process was here before.
    fn open(data: &Path, preamble: &Preamble, wall: Wall) -> io::Result<(Directory, bool)> {
        let leftovers = data.join(LEFTOVERS);
        // Leftovers of a process that is gone are pending in its doc index still.
        match fs::remove_dir_all(&leftovers) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => fs::create_dir_all(&leftovers)?,
        }
        let journal_path = data.join(JOURNAL);
        let (mut log, had_log) = LogFile::open(data)?;
        let has_run = had_log || journal_path.exists();
        log.append(&preamble.lines(log.part()))?;
        let (journal, journal_bytes) = compact(&journal_path, wall.unix_ms_at_zero * 1_000)?;
        Ok((Directory { log, journal, journal_path, journal_bytes, leftovers }, has_run))
    }

    fn chunk(&self, shard: usize, chunk: u32) -> PathBuf {
        self.leftovers.join(format!("{shard:03}-{chunk:010}"))
    }

    fn journal(&mut self, lines: &str) -> io::Result<()> {
        append(&mut self.journal, lines.as_bytes())?;
        self.journal_bytes += lines.len() as u64;
        if self.journal_bytes > JOURNAL_COMPACT_BYTES {
            // What is left may be large still; it is looked at again when as much has been added.
            self.journal = compact(&self.journal_path, u64::MAX)?.0;
            self.journal_bytes = 0;
        }
        Ok(())
    }
}

/// What whoever was here before knew of hosts, and until when none of them is asked.
pub(crate) struct InheritedState {
    pub memory: HostMemory,
    pub quiet_until: Now,
}

/// A log writer that takes longer has a disk to wait for; what it did not write in time is not remembered.
const FENCE_PATIENCE: Duration = Duration::from_secs(2);

impl PreviousRun {
    /// What a url server must know that takes over from an earlier process or, after a death, from an earlier shard.
    pub(crate) fn inherited(
        &self,
        log: &LogWriterPort,
        rules: &UrlServerConfig,
        epoch: u32,
        now: Now,
    ) -> InheritedState {
        if epoch > 0 && matches!(self.journal, Journal::File(_)) {
            // Everything that the dead shard had said is to be in the journal first.
            let (reached, fence) = sync_channel(1);
            if log.words.push(ToLogWriter::Fence(reached)).is_ok() {
                log.bell.ring_if_asleep();
                let _ = fence.recv_timeout(FENCE_PATIENCE);
            }
        }
        // Whoever was here before may have asked any host just before it went: a request that was open when it was
        // killed is in no file, however long ago the last line was written. Longer pauses are in the journal.
        let gap_us = rules.host.gap_us.max(rules.ip.gap_us);
        let quiet_until = match self.has_run {
            has_run if has_run || epoch > 0 => now.plus_us(gap_us),
            _ => Now::ZERO,
        };
        InheritedState { memory: self.memory(rules, now), quiet_until }
    }

    fn memory(&self, rules: &UrlServerConfig, now: Now) -> HostMemory {
        let mut memory = HostMemory::new(rules.queue_count);
        let bytes = match &self.journal {
            Journal::File(path) => fs::read(path).unwrap_or_default(),
            Journal::Memory(journal) => locked(journal).clone().into_bytes(),
        };
        memory.read(&bytes, Clock { wall: rules.wall, now }, &rules.product_token);
        memory
    }
}

fn locked<T>(file: &Mutex<T>) -> MutexGuard<'_, T> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a journal say the same in less, and nothing of times after `now_us`, by a new file in place of the old, and opens
/// it.
fn compact(path: &Path, now_us: u64) -> io::Result<(File, u64)> {
    let open = || OpenOptions::new().create(true).append(true).open(path);
    let before = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((open()?, 0)),
        Err(e) => return Err(e),
    };
    let after = compacted(&before, now_us);
    if after != before {
        replace(path, &after)?;
    }
    Ok((open()?, after.len() as u64))
}

/// The rules that a run keeps, as its log tells them.
pub(crate) fn run_rules(config: &Config, started_us: u64) -> RunRules {
    let settings = &config.url_server;
    RunRules {
        started_us,
        req_host_per_sec: settings.req_host_per_sec.0,
        req_host_concurrent: u32::from(settings.req_host_concurrent),
        req_ip_per_sec: settings.req_ip_per_sec.unwrap_or(settings.req_host_per_sec).0,
        req_ip_concurrent: u32::from(settings.req_ip_concurrent.unwrap_or(settings.req_host_concurrent)),
        delay_factor: settings.delay_factor.0,
        agent: Some(product_token(&config.spider.agent()).into()),
        part: 0,
    }
}
