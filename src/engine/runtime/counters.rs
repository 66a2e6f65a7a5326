use super::groups::{GROUPED, Group, result_at};
use crate::base::{Durations, SortedMap, Wall, rfc3339};
use crate::proto::record::ResultCode;
use crate::url_server::{Rest, RestingHost, WaitsFor};
use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is counted. Each thread has a table of its own; a process is the sum of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Documents that were fetched and answered for, whatever came of them.
    Pages,
    Success,
    /// Documents that were answered for, those that no spider was given among them.
    Done,
    /// URLs that the doc index knows; those that it holds for fetching now, and those that wait until they are due.
    Known,
    Pending,
    Waiting,
    /// Shards that died and were made anew.
    Restarts,
    /// Bytes of responses, and what their records take in the store.
    Bytes,
    StoredBytes,
    /// Fetches that are open.
    Open,
    /// Hosts with something to fetch.
    Hosts,
    /// Requests for robots.txt, and those after which the rules of a host cannot be had.
    Robots,
    RobotsFailed,
    /// URLs that were handed out again after a spider's silence.
    Resent,
    Syscalls,
    /// DONE lines of a spider for which no URL server was there.
    Untold,
    /// Links that were closed over a line that could not be read.
    BadLines,
    /// Lines sent to spiders.
    Sent,
    /// Lines about transactions that were not open, or with another spider.
    Late,
    /// No new requests go out.
    Paused,
    /// Of a store server: connections that were let in, those that ended inside a record or sent what is none, and records.
    Connections,
    BadConnections,
    Records,
    /// The node has begun to turn, and nothing new is started because it ends.
    Started,
    Draining,
    /// Bytes of responses as the network brought them.
    WireBytes,
    /// Fetches that may be open.
    OpenMax,
    /// URLs in the queues of hosts, rows of hosts in use, and how many there may be.
    QueueUrls,
    HostSlots,
    HostSlotsMax,
    /// Documents that wait for room in a segment.
    Unstored,
    /// Hosts that the doc index knows, and the memory that it may take.
    IndexHosts,
    IndexMemoryMax,
    /// Listings that share nothing with the one before, and feeds whose 304s were wrong.
    FeedGaps,
    FeedLies,
    /// Threads of extractors that did not come back in time and still run, and looks at stories or store that failed.
    ExtractorsLeft,
    ExtractionRefused,
    /// Bytes of all segments, and commits that the disk refused.
    StoreDisk,
    SyncErrors,
    /// Names that are being looked up, and those that are remembered.
    LookupsOpen,
    NamesCached,
    /// The next entry of the queue of the master that is used, the reflog time up to which all is here (seconds since
    /// 1970), and changes from one master to another.
    MasterSeq,
    MasterMark,
    MasterChanges,
    /// Lines of URL logs that a master has taken.
    Lines,
}

const COUNT: usize = Counter::Lines as usize + 1;
/// Single figures, then groups of them.
const FIGURES: usize = COUNT + GROUPED;

/// The counters of one thread, published now and then by plain stores: the thread counts in fields of its own.
pub struct Counters {
    figures: [AtomicU64; FIGURES],
    /// What those who published here before had counted.
    base: [AtomicU64; FIGURES],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            figures: [const { AtomicU64::new(0) }; FIGURES],
            base: [const { AtomicU64::new(0) }; FIGURES],
        }
    }
}

impl Counters {
    /// Somebody else publishes here from now on, who counts from 0: what is counted so far stays.
    pub(crate) fn begin_anew(&self) {
        for (base, figure) in self.base.iter().zip(&self.figures) {
            base.store(figure.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    pub fn set(&self, counter: Counter, value: u64) {
        self.figures[counter as usize].store(value, Ordering::Relaxed);
    }

    /// What the one who publishes here has counted: it comes on top of what was counted before.
    pub(crate) fn count(&self, counter: Counter, value: u64) {
        self.put(counter as usize, value);
    }

    /// Adds, on the one thread that counts here.
    pub fn add(&self, counter: Counter, more: u64) {
        self.set(counter, self.get(counter) + more);
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.figures[counter as usize].load(Ordering::Relaxed)
    }

    /// As [`Counters::set`], for a group.
    pub(crate) fn set_all(&self, group: Group, values: &[u64]) {
        debug_assert_eq!(values.len(), group.len());
        for (figure, value) in self.figures[COUNT + group.first()..].iter().zip(values) {
            figure.store(*value, Ordering::Relaxed);
        }
    }

    /// As [`Counters::count`], for a group.
    pub(crate) fn count_all(&self, group: Group, values: &[u64]) {
        debug_assert_eq!(values.len(), group.len());
        for (at, value) in values.iter().enumerate() {
            self.put(COUNT + group.first() + at, *value);
        }
    }

    /// Sets signed figures, unless what those before had was smaller.
    pub(crate) fn set_smaller(&self, group: Group, values: &[i64]) {
        for (at, &value) in (COUNT + group.first()..).zip(values) {
            let before = self.base[at].load(Ordering::Relaxed).cast_signed();
            let smaller = if before == 0 { value } else { value.min(before) };
            self.figures[at].store(smaller.cast_unsigned(), Ordering::Relaxed);
        }
    }

    /// As [`Counters::set`], for one of a group.
    pub(crate) fn set_one(&self, group: Group, at: usize, value: u64) {
        self.figures[COUNT + group.first() + at].store(value, Ordering::Relaxed);
    }

    /// As [`Counters::add`], for one of a group.
    pub(crate) fn add_one(&self, group: Group, at: usize) {
        let figure = &self.figures[COUNT + group.first() + at];
        figure.store(figure.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a document, on the one thread that deals them.
    pub(crate) fn concluded(&self, result: ResultCode) {
        self.add_one(Group::Results, result_at(result));
    }

    /// What was concluded so far, by name.
    pub(crate) fn results(&self) -> SortedMap<&'static str, u64> {
        self.figures().named(Group::Results).filter(|(_, count)| *count > 0).collect()
    }

    fn put(&self, at: usize, value: u64) {
        self.figures[at].store(self.base[at].load(Ordering::Relaxed) + value, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        figures.take_in(self);
        figures
    }
}

/// Counters at one moment, of one thread or summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures(Box<[u64; FIGURES]>);

impl Default for Figures {
    fn default() -> Figures {
        Figures(Box::new([0; FIGURES]))
    }
}

impl Figures {
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    pub fn all(&self, group: Group) -> &[u64] {
        &self.0[COUNT + group.first()..][..group.len()]
    }

    /// Those of a group, by name.
    pub fn named(&self, group: Group) -> impl Iterator<Item = (&'static str, u64)> {
        group.labels().iter().copied().zip(self.all(group).iter().copied())
    }

    /// Numbers of a group that are signed.
    pub fn signed(&self, group: Group) -> impl Iterator<Item = i64> {
        self.all(group).iter().map(|&value| value.cast_signed())
    }

    fn take_in(&mut self, counters: &Counters) {
        for (sum, figure) in self.0.iter_mut().zip(&counters.figures) {
            *sum = sum.wrapping_add(figure.load(Ordering::Relaxed));
        }
    }

    #[cfg(test)]
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.0[counter as usize] = value;
    }

    #[cfg(test)]
    pub fn all_mut(&mut self, group: Group) -> &mut [u64] {
        &mut self.0[COUNT + group.first()..][..group.len()]
    }
}

/// The counters of all threads of a process.
#[derive(Clone, Default)]
pub struct CounterTable(Vec<Arc<Counters>>);

impl CounterTable {
    /// A table for one more thread.
    pub fn thread(&mut self) -> Arc<Counters> {
        let counters = Arc::<Counters>::default();
        self.0.push(counters.clone());
        counters
    }

    /// Takes in the table of a thread that has one already.
    pub(crate) fn join(&mut self, counters: Arc<Counters>) {
        self.0.push(counters);
    }

    pub fn sum(&self, counter: Counter) -> u64 {
        self.0.iter().map(|counters| counters.get(counter)).sum()
    }

    /// The sums of all.
    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        self.0.iter().for_each(|counters| figures.take_in(counters));
        figures
    }
}

/// What hosts wait for, and how many for each.
fn waits(figures: &Figures) -> Vec<(WaitsFor, u64)> {
    let reasons = figures.all(Group::HostStates)[2..].iter().copied();
    WaitsFor::ALL.into_iter().zip(reasons).filter(|(_, hosts)| *hosts > 0).collect()
}

/// What outlives a shard and is read by others: its counters, its fetch times, and what it was busy with.
pub struct ShardStats {
    pub counters: Arc<Counters>,
    /// The suspect, should the shard die now: what its owner calls the work whose result is being dealt with, or 0.
    current: AtomicU32,
    /// Microseconds per fetch, handed over when the shard ends.
    fetch_us: Mutex<Histogram<u64>>,
}

/// A histogram of fetch times: one microsecond to one hour, two digits.
pub(crate) fn fetch_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2).expect("constant bounds are valid")
}

impl ShardStats {
    pub fn new(counters: Arc<Counters>) -> ShardStats {
        ShardStats { counters, current: AtomicU32::new(0), fetch_us: Mutex::new(fetch_histogram()) }
    }

    /// Notes what a panic from here on would be blamed on; 0 for nothing.
    pub(crate) fn busy_with(&self, suspect: u32) {
        self.current.store(suspect, Ordering::Relaxed);
    }

    /// A shard died, and another is about to take its place: what it counted stays. Says what it was busy with.
    pub(crate) fn died(&self, epoch: u32) -> Option<u32> {
        self.counters.begin_anew();
        self.counters.set(Counter::Restarts, u64::from(epoch));
        Some(self.current.swap(0, Ordering::Relaxed)).filter(|&suspect| suspect != 0)
    }

    /// Adds a finished shard's histogram to what is here already.
    pub(crate) fn keep_histogram(&self, histogram: &Histogram<u64>) {
        let _ = self.fetch_us.lock().unwrap_or_else(PoisonError::into_inner).add(histogram);
    }
}

/// The fetch times of all shards that have ended.
pub(crate) fn merged_histogram(shards: &[Arc<ShardStats>]) -> Histogram<u64> {
    let mut merged = fetch_histogram();
    for stats in shards {
        let _ = merged.add(&*stats.fetch_us.lock().unwrap_or_else(PoisonError::into_inner));
    }
    merged
}

/// The node at one moment, for progress.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub pages: u64,
    pub success: u64,
    pub errors: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    pub open: u64,
    pub hosts: u64,
    pub known: u64,
    /// To be fetched now, and what waits until it is due.
    pub pending: u64,
    pub waiting: u64,
    /// What hosts wait for, and how many for each.
    pub waits: Vec<(WaitsFor, u64)>,
    pub is_paused: bool,
    pub commits: Commits,
}

/// How often a store made its documents durable, and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    pub count: u64,
    pub p99_us: u64,
}

impl Commits {
    fn of(figures: &Figures) -> Commits {
        let times = figures.all(Group::CommitTimes);
        let count = times[..=Durations::BOUNDS_US.len()].iter().sum();
        Commits { count, p99_us: Durations::quantile_us(times, 0.99).unwrap_or(0.0) as u64 }
    }
}

impl Snapshot {
    pub(crate) fn of(table: &CounterTable) -> Snapshot {
        let figures = table.figures();
        let sum = |counter| figures.get(counter);
        let (pages, success) = (sum(Counter::Pages), sum(Counter::Success));
        Snapshot {
            waits: waits(&figures),
            commits: Commits::of(&figures),
            is_paused: sum(Counter::Paused) > 0,
            pages,
            success,
            errors: pages.saturating_sub(success),
            bytes: sum(Counter::Bytes),
            stored_bytes: sum(Counter::StoredBytes),
            open: sum(Counter::Open),
            hosts: sum(Counter::Hosts),
            known: sum(Counter::Known),
            pending: sum(Counter::Pending),
            waiting: sum(Counter::Waiting),
        }
    }
}

/// What a URL server process came to.
#[derive(Clone, Debug)]
pub struct UrlSummary {
    pub known: u64,
    /// URLs that were answered for.
    pub done: u64,
    pub pending: u64,
    /// Left out by the rules of this run.
    pub excluded: u64,
    pub sent: u64,
    pub resent: u64,
    pub late: u64,
    pub bad_lines: u64,
    pub seconds: f64,
    pub cpu_us: u64,
    pub driver: &'static str,
    pub results: SortedMap<&'static str, u64>,
    /// What it did not stay for.
    pub waiting_hosts: WaitingHosts,
    pub stopped: bool,
}

/// What a spider process came to.
#[derive(Clone, Debug)]
pub struct SpiderSummary {
    /// Orders that left a durable record, those that could not be fetched among them.
    pub pages: u64,
    pub success: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    pub seconds: f64,
    pub cpu_us: u64,
    pub driver: &'static str,
    pub cores: Vec<usize>,
    pub results: SortedMap<&'static str, u64>,
    pub fetch_us: Histogram<u64>,
    /// DONE lines for which no URL server was there.
    pub untold: u64,
    /// Links that were closed over a line that could not be read.
    pub bad_lines: u64,
    pub restarts: u64,
    pub syscalls: u64,
}

/// What a crawl came to.
#[derive(Clone, Debug)]
pub struct Summary {
    pub pages: u64,
    pub success: u64,
    pub errors: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    pub seconds: f64,
    pub cpu_us: u64,
    pub driver: &'static str,
    pub cores: Vec<usize>,
    pub pending: u64,
    /// Of the pending ones, those that wait for a retry or to be looked at again, and when the next is due.
    pub waiting: u64,
    pub next_due_s: Option<u32>,
    /// What it did not stay for.
    pub waiting_hosts: WaitingHosts,
    /// Of the known ones, those that were when it began.
    pub known_before: u64,
    /// Pages that were stored by a process that was killed, and are not fetched again.
    pub taken_up: u64,
    pub known: u64,
    /// Of the known ones, those that the rules of this run leave out.
    pub excluded: u64,
    /// What became of each URL that was typed, if none of them could be had.
    pub seeds_lost: Option<SeedsLost>,
    pub results: SortedMap<&'static str, u64>,
    pub fetch_us: Histogram<u64>,
    /// Requests for robots.txt, and those of them after which the rules of a host could not be had.
    pub robots: u64,
    pub robots_failed: u64,
    pub restarts: u64,
    pub syscalls: u64,
    /// One document that was stored, for the user to look at.
    pub example: Option<String>,
    pub ended: Ended,
}

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Nothing is left.
    Done,
    /// What is left waits until it is due.
    Linger,
    /// `--max-pages` is reached.
    MaxPages,
    /// `--max-seconds` are over.
    MaxSeconds,
    /// It was told to stop.
    Signal,
}

impl Ended {
    /// Whether something could have been fetched at once.
    pub fn is_early(self) -> bool {
        matches!(self, Ended::MaxPages | Ended::MaxSeconds | Ended::Signal)
    }
}

/// Hosts that a crawl did not stay for: those with the most URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingHosts {
    pub waiting_hosts: Vec<WaitingHost>,
    /// Hosts beyond those.
    pub waiting_hosts_more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingHost {
    /// With its scheme, and its port if that is not the usual one.
    pub host: String,
    pub urls: usize,
    pub reason: WaitsFor,
    /// `None` if it waits for another host.
    pub until: Option<String>,
}

impl WaitingHosts {
    /// `urls` knows how many URLs of a host are left.
    pub(crate) fn of(rest: Rest, wall: Wall, urls: impl Fn(&str) -> Option<u32>) -> WaitingHosts {
        let line = |host: RestingHost| WaitingHost {
            urls: urls(&host.origin).map_or(host.urls, |urls| urls as usize),
            host: host.origin.into(),
            reason: host.waits_for,
            until: host.until.map(|until| rfc3339(wall.unix_ms(until))),
        };
        WaitingHosts {
            waiting_hosts: rest.hosts.into_iter().map(line).collect(),
            waiting_hosts_more: rest.more,
        }
    }
}

/// URLs that were typed and could not be had.
#[derive(Clone, Debug, Default)]
pub struct SeedsLost {
    /// The first of them, and what happened, in words.
    pub told: Vec<(String, String)>,
    pub more: usize,
}

/// User and system time of the whole process.
pub(crate) fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map(|usage| (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_by_their_times() {
        let mut table = CounterTable::default();
        let counters = table.thread();
        assert_eq!(Snapshot::of(&table).commits, Commits::default());
        let mut times = Durations::default();
        (0..98).for_each(|_| times.note(3_000));
        // One of these is beyond all bounds, and its length is not in the count.
        [80_000, 120_000_000].into_iter().for_each(|us| times.note(us));
        counters.set_all(Group::CommitTimes, &times.figures());
        assert_eq!(Snapshot::of(&table).commits, Commits { count: 100, p99_us: 100_000 });
    }
}
