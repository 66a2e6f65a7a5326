use crate::base::{SortedMap, rfc3339};
use crate::doc_index::IndexStats;
use crate::engine::inspect::cluster_view::ClusterLine;
use crate::engine::inspect::master_line::MasterLine;
use crate::engine::runtime::counters::{Commits, CounterTable, Snapshot};
use crate::engine::runtime::health::Health;
use crate::engine::runtime::master_status::MasterStatus;
use crate::engine::runtime::readings::{MeterParts, Role};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a running crawl is. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// The command that it runs: `crawl`, `urlserver`, `spider` or `storeserver`.
    pub role: String,
    pub pid: u32,
    pub state: NodeState,
    pub since: String,
    pub seconds: f64,
    pub pages: u64,
    pub success: u64,
    pub errors: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    /// Of the last ten seconds; of a URL server URLs, and of a store server records.
    pub pages_per_second: f64,
    /// Requests that are open.
    pub open: u64,
    /// Hosts with something to fetch, and what they wait for.
    pub hosts: u64,
    pub waits: SortedMap<String, u64>,
    /// `None` if the doc index did not answer in time.
    pub known: Option<u64>,
    pub pending: Option<u64>,
    /// Of the pending ones, those that wait for a retry or to be looked at again, and when the next is due.
    pub waiting: Option<u64>,
    pub next_due: Option<String>,
    /// What the process waits for, if it is more than the network.
    pub waiting_for: Option<String>,
    pub commits: Commits,
    /// How it stands with its masters, if it takes URLs from any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<MasterLine>,
    /// How it deals URLs to nodes, if it is a master.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dealing: Option<Box<MasterStatus>>,
    /// How its cluster stands, if it is a node of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterLine>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    #[default]
    Running,
    Paused,
    Stopping,
}

impl NodeState {
    pub fn name(self) -> &'static str {
        match self {
            NodeState::Running => "running",
            NodeState::Paused => "paused",
            NodeState::Stopping => "stopping",
        }
    }
}

/// What a node publishes about itself, for whoever only looks.
pub(crate) struct Gauges {
    pub role: Role,
    pub table: CounterTable,
    pub health: Arc<Health>,
    pub stop: Arc<AtomicBool>,
    pub started: Instant,
    /// What it counts by second, the oldest first.
    samples: Mutex<VecDeque<(Instant, u64)>>,
}

/// Rates are means over so long.
const WINDOW: Duration = Duration::from_secs(10);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

impl Gauges {
    pub fn new(parts: &MeterParts) -> Gauges {
        Gauges {
            role: parts.role,
            table: parts.table.clone(),
            health: parts.health.clone(),
            stop: parts.stop.clone(),
            started: parts.started,
            samples: Mutex::new(VecDeque::from([(parts.started, 0)])),
        }
    }

    /// To be called about once a second.
    pub fn sample(&self, now: Instant) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.back().is_none_or(|(at, _)| now.duration_since(*at) >= SAMPLE_EVERY) {
            samples.push_back((now, self.count()));
        }
        while samples.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            samples.pop_front();
        }
    }

    /// What its pace is counted by.
    fn count(&self) -> u64 {
        self.table.sum(self.role.counts().1)
    }

    fn rate(&self, now: Instant) -> f64 {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(&(at, before)) = samples.front() else { return 0.0 };
        self.count().saturating_sub(before) as f64 / now.duration_since(at).as_secs_f64().max(1e-3)
    }

    /// Sums up. What was counted at first is in the counts of the index, which came later.
    pub fn status(&self, snapshot: &Snapshot, index: Option<IndexStats>) -> NodeStatus {
        let now = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ran = now.duration_since(self.started);
        let state = match (self.stop.load(Ordering::Relaxed), snapshot.is_paused) {
            (true, _) => NodeState::Stopping,
            (false, true) => NodeState::Paused,
            (false, false) => NodeState::Running,
        };
        let due = index.and_then(|stats| stats.next_due_s);
        NodeStatus {
            role: self.role.name().to_string(),
            pid: std::process::id(),
            state,
            since: rfc3339(unix.saturating_sub(ran).as_millis() as u64),
            seconds: ran.as_secs_f64(),
            pages: snapshot.pages,
            success: snapshot.success,
            errors: snapshot.errors,
            bytes: snapshot.bytes,
            stored_bytes: snapshot.stored_bytes,
            pages_per_second: self.rate(now),
            open: snapshot.open,
            hosts: snapshot.hosts,
            waits: snapshot.waits.iter().map(|(why, count)| (why.name().to_string(), *count)).collect(),
            known: index.map(|stats| stats.known),
            pending: index.map(|stats| stats.left()),
            waiting: index.map(|stats| stats.waiting),
            next_due: due.map(|due_s| rfc3339(u64::from(due_s) * 1_000)),
            waiting_for: self.health.waiting_for(),
            commits: snapshot.commits,
            master: None,
            dealing: None,
            cluster: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::runtime::counters::Counter;

    fn gauges(role: Role, table: CounterTable, started: Instant) -> Gauges {
        Gauges::new(&MeterParts {
            role,
            driver: "",
            table,
            shards: Vec::new(),
            health: Arc::default(),
            stop: Arc::default(),
            started,
            budget: None,
            store: None,
            rings: Vec::new(),
        })
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut table = CounterTable::default();
        let counters = table.thread();
        let started = Instant::now();
        let gauges = gauges(Role::Crawl, table, started);
        let at = |second| started + Duration::from_secs(second);
        for second in 1..=60 {
            // Ten a second for half a minute, then one a second.
            let pages = if second <= 30 { 10 * second } else { 270 + second };
            counters.set(Counter::Pages, pages);
            gauges.sample(at(second));
            gauges.sample(at(second));
        }
        assert_eq!(gauges.rate(at(60)), 1.0);
        assert_eq!(gauges.samples.lock().unwrap().len(), 11);
    }

    #[test]
    fn a_store_server_is_as_fast_as_records_come() {
        let mut table = CounterTable::default();
        let counters = table.thread();
        let started = Instant::now();
        let gauges = gauges(Role::StoreServer, table, started);
        counters.set(Counter::Records, 50);
        assert_eq!(gauges.rate(started + Duration::from_secs(10)), 5.0);
    }
}
