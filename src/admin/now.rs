use super::office::Office;
use crate::base::{Durations, SortedMap, rfc3339};
use crate::doc_index::IndexStats;
use crate::engine::{Figures, Group, NodeState, NodeStatus, Outlook, Readings, Role, Snapshot, sentence};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process at one moment: `GET /api/v1/now`. Units are in the names; counters count since the start, so that two of these
/// make a rate.
#[derive(Serialize)]
pub struct Now {
    at: String,
    role: String,
    pid: u32,
    state: &'static str,
    sentence: String,
    seconds: f64,
    documents: u64,
    /// Those that there are, by what came of them.
    results: SortedMap<&'static str, u64>,
    received_bytes: u64,
    stored_bytes: u64,
    /// Of the last ten seconds.
    documents_per_second: f64,
    /// Requests on the wire.
    open: u64,
    /// Hosts by what their next URL waits for.
    hosts: SortedMap<&'static str, u64>,
    /// `None` without a doc index, or if that did not answer in time.
    urls: Option<SortedMap<&'static str, u64>>,
    fetch_ms: Quantiles,
    /// Processor time by thread.
    cpu_us: SortedMap<String, u64>,
    store: Option<Store>,
    audit: Audit,
    eta_s: Option<u64>,
}

#[derive(Serialize)]
struct Quantiles {
    p50: Option<f64>,
    p99: Option<f64>,
}

#[derive(Serialize)]
struct Store {
    commit_ms_p99: Option<f64>,
    free_bytes: u64,
    free_bytes_min: u64,
}

/// What was checked of every request as it went out.
#[derive(Serialize)]
struct Audit {
    checked: u64,
    violations: u64,
}

impl Now {
    pub fn of(office: &Office, counted: Option<IndexStats>) -> Now {
        let snapshot = office.desk.snapshot();
        let status = office.desk.status(&snapshot, counted);
        let readings = office.desk.readings();
        let Readings { all, state, has_store, disk_free, disk_free_min, threads, .. } = &readings;
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let eta_s = eta_s(&status);
        let some = |group: Group| all.named(group).filter(|(_, count)| *count > 0).collect();
        let quantile = |group, q| quantile_ms(all, group, q);
        Now {
            at: rfc3339(unix_ms),
            state: state.name(),
            sentence: said(readings.role, &snapshot, &status, eta_s),
            seconds: status.seconds,
            documents: status.pages,
            results: some(Group::Results),
            received_bytes: status.bytes,
            stored_bytes: status.stored_bytes,
            documents_per_second: status.pages_per_second,
            open: status.open,
            hosts: some(Group::HostStates),
            urls: counted.map(|stats| urls(all, &stats)),
            fetch_ms: Quantiles {
                p50: quantile(Group::FetchTimes, 0.5),
                p99: quantile(Group::FetchTimes, 0.99),
            },
            cpu_us: threads.iter().map(|(name, seconds)| (name.clone(), (seconds * 1e6) as u64)).collect(),
            store: has_store.then(|| Store {
                commit_ms_p99: quantile(Group::CommitTimes, 0.99),
                free_bytes: *disk_free,
                free_bytes_min: *disk_free_min,
            }),
            audit: Audit {
                checked: all.all(Group::Checked).iter().sum(),
                violations: all.all(Group::Violations).iter().sum(),
            },
            eta_s,
            role: status.role,
            pid: status.pid,
        }
    }
}

/// URLs by state: those that the index has just counted, and the rest as it publishes them now and then.
fn urls(all: &Figures, stats: &IndexStats) -> SortedMap<&'static str, u64> {
    let mut urls: SortedMap<&'static str, u64> = all.named(Group::IndexUrls).collect();
    urls.extend([
        ("known", stats.known),
        ("pending", stats.left()),
        ("waiting", stats.waiting),
        ("excluded", stats.excluded),
    ]);
    urls
}

fn quantile_ms(all: &Figures, group: Group, share: f64) -> Option<f64> {
    Durations::quantile_us(all.all(group), share).map(|us| us / 1e3)
}

/// When what is pending is had, at the pace of the last seconds.
fn eta_s(status: &NodeStatus) -> Option<u64> {
    let left = status.pending?.saturating_sub(status.waiting?);
    (status.pages_per_second > 0.0 && left > 0).then(|| (left as f64 / status.pages_per_second) as u64)
}

/// Why it is not faster, in the words that a service manager reads.
fn said(role: Role, snapshot: &Snapshot, status: &NodeStatus, eta_s: Option<u64>) -> String {
    let outlook = Outlook {
        noun: role.counts().0,
        per_second: status.pages_per_second,
        seconds_left: eta_s,
        waiting_for: status.waiting_for.as_deref(),
        is_stopping: status.state == NodeState::Stopping,
    };
    sentence(snapshot, &outlook)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url_server::WaitsFor;

    #[test]
    fn the_sentence_is_the_one_that_is_said_everywhere() {
        let snapshot = Snapshot { waits: vec![(WaitsFor::Rate, 912)], hosts: 1_000, ..Snapshot::default() };
        let mut status = NodeStatus {
            pages_per_second: 4_790.0,
            pending: Some(28_740_000),
            waiting: Some(0),
            ..NodeStatus::default()
        };
        let said = |role, status: &NodeStatus| said(role, &snapshot, status, eta_s(status));
        assert_eq!(
            said(Role::Crawl, &status),
            "4,790 pages/s. Held back by politeness: 912 of 1,000 hosts wait for their rate. At this pace pending ends in 100 min."
        );
        assert!(said(Role::StoreServer, &status).starts_with("4,790 records/s."));
        status.waiting_for = Some("fetching waits for room".to_string());
        assert_eq!(said(Role::Crawl, &status), "4,790 pages/s. Held back: fetching waits for room.");
        status.state = NodeState::Stopping;
        assert_eq!(said(Role::Crawl, &status), "Stopping.");
    }

    #[test]
    fn quantiles_lie_in_their_buckets() {
        let mut figures = Figures::default();
        assert_eq!(quantile_ms(&figures, Group::FetchTimes, 0.5), None);
        // Ninety took one to two and a half milliseconds, ten more than a minute.
        figures.all_mut(Group::FetchTimes)[1] = 90;
        assert_eq!(quantile_ms(&figures, Group::FetchTimes, 0.5), Some(1.75));
        figures.all_mut(Group::FetchTimes)[15] = 10;
        assert_eq!(quantile_ms(&figures, Group::FetchTimes, 0.9), Some(2.5));
        assert_eq!(quantile_ms(&figures, Group::FetchTimes, 0.99), Some(60_000.0));
    }
}
