use crate::base::{Wall, rfc3339};
use crate::proto::record::ResultCode;
use crate::url_server::{Rest, RestingHost, WaitsFor};
use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
}

const COUNT: usize = Counter::Records as usize + 1;

/// The counters of one thread, published now and then by plain stores: the thread counts in fields of its own.
#[derive(Default)]
pub struct Counters {
    counts: [AtomicU64; COUNT],
    /// Hosts that wait, by what for, in the order of [`WaitsFor::ALL`].
    hosts_wait: [AtomicU64; WaitsFor::ALL.len()],
}

impl Counters {
    pub fn set(&self, counter: Counter, value: u64) {
        self.counts[counter as usize].store(value, Ordering::Relaxed);
    }

    /// Adds, on the one thread that counts here.
    pub fn add(&self, counter: Counter, more: u64) {
        self.set(counter, self.get(counter) + more);
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn set_waits(&self, waits: &[u64; WaitsFor::ALL.len()]) {
        for (counter, count) in self.hosts_wait.iter().zip(waits) {
            counter.store(*count, Ordering::Relaxed);
        }
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

    pub fn sum(&self, counter: Counter) -> u64 {
        self.0.iter().map(|counters| counters.get(counter)).sum()
    }

    /// What hosts wait for, and how many for each.
    fn waits(&self) -> Vec<(WaitsFor, u64)> {
        let hosts = |at: usize| {
            self.0.iter().map(|counters| counters.hosts_wait[at].load(Ordering::Relaxed)).sum::<u64>()
        };
        let waits = WaitsFor::ALL.into_iter().enumerate().map(|(at, why)| (why, hosts(at)));
        waits.filter(|(_, hosts)| *hosts > 0).collect()
    }
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

    /// What a shard that died was busy with.
    pub(crate) fn take_suspect(&self) -> Option<u32> {
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
}

impl Snapshot {
    pub(crate) fn of(table: &CounterTable) -> Snapshot {
        let (pages, success) = (table.sum(Counter::Pages), table.sum(Counter::Success));
        Snapshot {
            waits: table.waits(),
            is_paused: table.sum(Counter::Paused) > 0,
            pages,
            success,
            errors: pages.saturating_sub(success),
            bytes: table.sum(Counter::Bytes),
            stored_bytes: table.sum(Counter::StoredBytes),
            open: table.sum(Counter::Open),
            hosts: table.sum(Counter::Hosts),
            known: table.sum(Counter::Known),
            pending: table.sum(Counter::Pending),
            waiting: table.sum(Counter::Waiting),
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
    pub results: BTreeMap<&'static str, u64>,
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
    pub results: BTreeMap<&'static str, u64>,
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
    pub results: BTreeMap<&'static str, u64>,
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

/// Results by code, counted by the dealer of a process alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(BTreeMap<ResultCode, u64>);

impl Tally {
    pub fn count(&mut self, result: ResultCode) {
        *self.0.entry(result).or_default() += 1;
    }

    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        self.0.iter().map(|(code, count)| (code.name(), *count)).collect()
    }
}

/// User and system time of the whole process.
pub(crate) fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map(|usage| (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64)
        .unwrap_or(0)
}
