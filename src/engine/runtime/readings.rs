use super::counters::{Counter, CounterTable, Counters, Figures, cpu_us};
use super::groups::Group;
use super::health::Health;
use super::live_config::LiveConfig;
use super::master_status::MasterStatus;
use super::process::{ProcessReadings, ThreadTimes};
use crate::rings::Fill;
use crate::spider::BodyBudget;
use crate::store_server::free_bytes_min;
use nix::sys::statvfs::statvfs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Everything that a process counts, at one moment: plain numbers for whoever shows them. Counters are since the process
/// began, and never fall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    pub role: Role,
    pub driver: &'static str,
    pub state: State,
    /// Of all threads together.
    pub all: Figures,
    /// Of each shard.
    pub shards: Vec<Figures>,
    /// The process writes segments.
    pub has_store: bool,
    pub body_memory: u64,
    pub body_memory_max: u64,
    pub disk_free: u64,
    pub disk_free_min: u64,
    pub rings: Vec<RingReading>,
    /// Seconds of processor time by the name of the thread.
    pub threads: Vec<(String, f64)>,
    pub process: ProcessReadings,
    /// How a master is, where it is one.
    pub master: Option<Box<MasterStatus>>,
}

impl Readings {
    /// Every figure of the threads that must never fall, in a fixed order.
    pub fn counted(&self) -> Vec<u64> {
        const SINGLE: [Counter; 8] = [
            Counter::Pages,
            Counter::Success,
            Counter::Done,
            Counter::Restarts,
            Counter::Bytes,
            Counter::StoredBytes,
            Counter::Syscalls,
            Counter::WireBytes,
        ];
        const GROUPS: [Group; 15] = [
            Group::Results,
            Group::Statuses,
            Group::Robots,
            Group::FetchTimes,
            Group::Connections,
            Group::Handshakes,
            Group::BackOffs,
            Group::Checked,
            Group::Violations,
            Group::Links,
            Group::Records,
            Group::CommitTimes,
            Group::Lookups,
            Group::NameCache,
            Group::Stages,
        ];
        let single = SINGLE.map(|counter| self.all.get(counter));
        single
            .into_iter()
            .chain(GROUPS.iter().flat_map(|&group| self.all.all(group).iter().copied()))
            .collect()
    }
}

/// What a process is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Crawl,
    UrlServer,
    Spider,
    StoreServer,
    Master,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Crawl, Role::UrlServer, Role::Spider, Role::StoreServer, Role::Master];

    pub fn name(self) -> &'static str {
        match self {
            Role::Crawl => "crawl",
            Role::UrlServer => "urlserver",
            Role::Spider => "spider",
            Role::StoreServer => "storeserver",
            Role::Master => "master",
        }
    }

    /// What its pace is told in, and counted by.
    pub(crate) fn counts(self) -> (&'static str, Counter) {
        match self {
            Role::Crawl | Role::Spider => ("page", Counter::Pages),
            Role::UrlServer => ("URL", Counter::Done),
            Role::StoreServer => ("record", Counter::Records),
            Role::Master => ("line", Counter::Lines),
        }
    }
}

/// What a process is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Starting,
    Running,
    Paused,
    /// A part of it waits for a disk.
    WaitingForDisk,
    /// All that is left waits until it is due.
    WaitingForDue,
    /// It ends, and starts nothing new.
    Draining,
}

impl State {
    pub const ALL: [State; 6] = [
        State::Starting,
        State::Running,
        State::Paused,
        State::WaitingForDisk,
        State::WaitingForDue,
        State::Draining,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Running => "running",
            State::Paused => "paused",
            State::WaitingForDisk => "waiting_for_disk",
            State::WaitingForDue => "waiting_for_due",
            State::Draining => "draining",
        }
    }
}

/// How full the rings of one kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingReading {
    pub name: &'static str,
    pub words: u64,
    pub words_max: u64,
}

/// Where readings are taken: tables that the threads of a process publish, and what can be looked at from outside. Nothing
/// of it is made before somebody reads.
pub struct Meter {
    parts: MeterParts,
    /// When the process began, in seconds since 1970: looked up once, as clocks are set while it runs.
    start_seconds: f64,
    threads: Mutex<ThreadTimes>,
}

pub(crate) struct MeterParts {
    pub role: Role,
    pub driver: &'static str,
    pub table: CounterTable,
    pub shards: Vec<Arc<Counters>>,
    pub health: Arc<Health>,
    pub stop: Arc<AtomicBool>,
    pub started: Instant,
    pub budget: Option<Arc<BodyBudget>>,
    /// Settings, which say where segments are written and what must stay free there, if any are.
    pub store: Option<LiveConfig>,
    pub rings: Vec<(&'static str, Fill)>,
}

impl Meter {
    pub(crate) fn new(parts: MeterParts) -> Meter {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_seconds = unix.saturating_sub(parts.started.elapsed()).as_secs_f64();
        Meter { parts, start_seconds, threads: Mutex::default() }
    }

    pub fn read(&self) -> Readings {
        let parts = &self.parts;
        let all = parts.table.figures();
        let (disk_free, disk_free_min) = self.disk();
        Readings {
            role: parts.role,
            driver: parts.driver,
            state: state(&all, parts.stop.load(Ordering::Relaxed), parts.health.waits_for_disk()),
            all,
            shards: parts.shards.iter().map(|shard| shard.figures()).collect(),
            has_store: parts.store.is_some(),
            body_memory: parts.budget.as_ref().map_or(0, |budget| budget.used()),
            body_memory_max: parts.budget.as_ref().map_or(0, |budget| budget.bytes_max()),
            disk_free,
            disk_free_min,
            rings: self.rings(),
            threads: self.threads.lock().unwrap_or_else(PoisonError::into_inner).read(),
            process: ProcessReadings::read(cpu_us(), self.start_seconds),
            master: None,
        }
    }

    /// Bytes that are free where segments are written, and those that must stay so.
    fn disk(&self) -> (u64, u64) {
        let Some(config) = self.parts.store.as_ref().map(LiveConfig::get) else { return (0, 0) };
        let Ok(found) = statvfs(&config.store.data) else { return (0, 0) };
        let bytes = |blocks: u64| blocks * found.fragment_size();
        // Without a figure, what the store takes by itself.
        let floor = config.store.free_bytes_min.map(|floor| floor.0);
        (bytes(found.blocks_available()), floor.unwrap_or_else(|| free_bytes_min(bytes(found.blocks()))))
    }

    fn rings(&self) -> Vec<RingReading> {
        let mut rings: Vec<RingReading> = Vec::new();
        for (name, fill) in &self.parts.rings {
            let (words, words_max) = fill.read();
            match rings.iter_mut().find(|ring| ring.name == *name) {
                Some(ring) => (ring.words, ring.words_max) = (ring.words + words, ring.words_max + words_max),
                None => rings.push(RingReading { name, words, words_max }),
            }
        }
        rings
    }
}

fn state(all: &Figures, is_stopped: bool, waits_for_disk: bool) -> State {
    let get = |counter| all.get(counter);
    let is_due_later = get(Counter::Waiting) > 0 && get(Counter::Pending) + get(Counter::Open) == 0;
    match () {
        () if is_stopped || get(Counter::Draining) > 0 => State::Draining,
        () if get(Counter::Started) == 0 => State::Starting,
        () if waits_for_disk => State::WaitingForDisk,
        () if get(Counter::Paused) > 0 => State::Paused,
        () if is_due_later => State::WaitingForDue,
        () => State::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Bytes, Config};

    #[test]
    fn a_node_is_in_one_state() {
        let with = |counters: &[(Counter, u64)]| {
            let mut figures = Figures::default();
            counters.iter().for_each(|&(counter, value)| figures.set(counter, value));
            figures
        };
        let started = (Counter::Started, 1);
        assert_eq!(state(&with(&[]), false, false), State::Starting);
        assert_eq!(state(&with(&[started]), false, false), State::Running);
        assert_eq!(state(&with(&[started]), false, true), State::WaitingForDisk);
        assert_eq!(state(&with(&[started, (Counter::Paused, 1)]), false, false), State::Paused);
        assert_eq!(state(&with(&[started, (Counter::Waiting, 3)]), false, false), State::WaitingForDue);
        let busy = [started, (Counter::Waiting, 3), (Counter::Pending, 1)];
        assert_eq!(state(&with(&busy), false, false), State::Running);
        assert_eq!(state(&with(&[started, (Counter::Draining, 1)]), false, false), State::Draining);
        assert_eq!(state(&with(&[started]), true, true), State::Draining);
    }

    fn meter(store: Option<LiveConfig>) -> Meter {
        Meter::new(MeterParts {
            role: Role::Crawl,
            driver: "poll",
            table: CounterTable::default(),
            shards: Vec::new(),
            health: Arc::default(),
            stop: Arc::default(),
            started: Instant::now(),
            budget: None,
            store,
            rings: Vec::new(),
        })
    }

    #[test]
    fn the_start_of_a_process_does_not_move() {
        let meter = meter(None);
        let first = meter.read().process.start_seconds;
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(meter.read().process.start_seconds, first);
    }

    #[test]
    fn what_must_stay_free_is_what_the_settings_say_now() {
        let mut config = Config::default();
        config.store.data = std::env::temp_dir();
        config.store.free_bytes_min = Some(Bytes(7));
        let live = LiveConfig::new(&config);
        let meter = meter(Some(live.clone()));
        assert_eq!(meter.read().disk_free_min, 7);
        config.store.free_bytes_min = Some(Bytes(9));
        live.set(Arc::new(config));
        assert_eq!(meter.read().disk_free_min, 9);
    }

    #[test]
    fn what_a_shard_counted_stays_when_another_takes_its_place() {
        let mut table = CounterTable::default();
        let counters = table.thread();
        counters.count(Counter::Bytes, 500);
        counters.set(Counter::Open, 7);
        counters.begin_anew();
        counters.count(Counter::Bytes, 0);
        counters.set(Counter::Open, 0);
        assert_eq!((table.sum(Counter::Bytes), table.sum(Counter::Open)), (500, 0));
        counters.count(Counter::Bytes, 30);
        counters.begin_anew();
        counters.count(Counter::Bytes, 1);
        assert_eq!(table.sum(Counter::Bytes), 531);
    }
}
