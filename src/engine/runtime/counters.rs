use crate::proto::record::ResultCode;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A shard's counters, published now and then by plain stores: the shard counts in fields of its own.
#[derive(Default)]
pub struct ShardStats {
    pub fetches: AtomicU64,
    pub bytes: AtomicU64,
    pub stored_bytes: AtomicU64,
    pub open: AtomicU64,
    pub hosts: AtomicU64,
    pub queued: AtomicU64,
    pub robots: AtomicU64,
    pub resent: AtomicU64,
    pub syscalls: AtomicU64,
    /// The document whose result is being worked on, for whoever finds the shard dead.
    pub current: AtomicU32,
    /// Microseconds per fetch, handed over when the shard ends.
    pub fetch_us: Mutex<Option<Histogram<u64>>>,
}

/// A histogram of fetch times: one microsecond to one hour, two digits.
pub(crate) fn fetch_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2).expect("constant bounds are valid")
}

impl ShardStats {
    pub(crate) fn set(counter: &AtomicU64, value: u64) {
        counter.store(value, Ordering::Relaxed);
    }

    /// Merges a finished shard's histogram into what is here already.
    pub(crate) fn keep_histogram(&self, histogram: &Histogram<u64>) {
        let mut kept = self.fetch_us.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *kept {
            Some(kept) => {
                let _ = kept.add(histogram);
            }
            None => *kept = Some(histogram.clone()),
        }
    }
}

/// The fetch times of all shards that have ended.
pub(crate) fn merged_histogram(shards: &[Arc<ShardStats>]) -> Histogram<u64> {
    let mut merged = fetch_histogram();
    for stats in shards {
        if let Some(histogram) = &*stats.fetch_us.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = merged.add(histogram);
        }
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
    pub pending: u64,
}

/// The scheduler's counters, published for the control thread.
#[derive(Default)]
pub struct SchedulerStats {
    pub pages: AtomicU64,
    pub success: AtomicU64,
    pub known: AtomicU64,
    pub done: AtomicU64,
    pub restarts: AtomicU64,
}

/// The counters of a spider's desk, published for the control thread.
#[derive(Default)]
pub struct SpiderStats {
    pub pages: AtomicU64,
    pub success: AtomicU64,
    pub untold: AtomicU64,
    pub bad_lines: AtomicU64,
    pub restarts: AtomicU64,
}

/// Counters of a URL server in a process of its own.
#[derive(Default)]
pub struct RemoteShardStats {
    /// Lines sent to spiders.
    pub sent: AtomicU64,
    /// Words on transactions that were not open, or with another spider.
    pub late: AtomicU64,
    pub bad_lines: AtomicU64,
    /// Spiders connected.
    pub spiders: AtomicU64,
}

/// What a URL server process came to.
#[derive(Clone, Debug)]
pub struct UrlSummary {
    pub known: u64,
    /// URLs that were answered for.
    pub done: u64,
    pub pending: u64,
    pub sent: u64,
    pub resent: u64,
    pub late: u64,
    pub bad_lines: u64,
    pub seconds: f64,
    pub cpu_us: u64,
    pub driver: &'static str,
    pub results: BTreeMap<&'static str, u64>,
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
    /// DONE words that nobody was there to hear.
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
    /// Of the known ones, those that were when it began.
    pub known_before: u64,
    /// Pages that were stored by a process that was killed, and are not fetched again.
    pub taken_up: u64,
    pub known: u64,
    pub results: BTreeMap<&'static str, u64>,
    pub fetch_us: Histogram<u64>,
    pub robots: u64,
    pub restarts: u64,
    pub syscalls: u64,
    /// One document that was stored, for the user to look at.
    pub example: Option<String>,
    /// Stopped before the end by a signal or a limit.
    pub stopped: bool,
}

/// Results by code, counted by the scheduler alone.
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
