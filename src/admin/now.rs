use super::office::Office;
use crate::base::{Durations, rfc3339};
use crate::doc_index::IndexStats;
use crate::engine::{Figures, Group, NodeState, NodeStatus, Readings};
use serde::Serialize;
use std::collections::BTreeMap;
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
    results: BTreeMap<&'static str, u64>,
    received_bytes: u64,
    stored_bytes: u64,
    /// Of the last ten seconds.
    documents_per_second: f64,
    /// Requests on the wire.
    open: u64,
    /// Hosts by what their next URL waits for.
    hosts: BTreeMap<&'static str, u64>,
    /// `None` without a doc index, or if that did not answer in time.
    urls: Option<BTreeMap<&'static str, u64>>,
    fetch_ms: Quantiles,
    /// Processor time by thread.
    cpu_us: BTreeMap<String, u64>,
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
        let status = office.desk.status(&office.desk.snapshot(), counted);
        let readings = office.desk.readings();
        let Readings { all, state, has_store, disk_free, disk_free_min, threads, .. } = &readings;
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let eta_s = eta_s(&status);
        let some = |group: Group| all.named(group).filter(|(_, count)| *count > 0).collect();
        let quantile = |group, q| quantile_ms(all, group, q);
        Now {
            at: rfc3339(unix_ms),
            state: state.name(),
            sentence: sentence(&status, eta_s),
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
fn urls(all: &Figures, stats: &IndexStats) -> BTreeMap<&'static str, u64> {
    let mut urls: BTreeMap<&'static str, u64> = all.named(Group::IndexUrls).collect();
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

/// Why it is not faster, in words.
fn sentence(status: &NodeStatus, eta_s: Option<u64>) -> String {
    if let Some(what) = &status.waiting_for {
        return what.clone();
    }
    let pace = match status.role.as_str() {
        "storeserver" => format!("{} bytes stored.", status.stored_bytes),
        _ => format!("{:.1} pages/s.", status.pages_per_second),
    };
    let ends =
        eta_s.map_or(String::new(), |s| format!(" At this pace what is pending ends in {} min.", s / 60));
    let held = match (status.state, status.waits.iter().max_by_key(|(_, hosts)| **hosts)) {
        (NodeState::Stopping, _) => return "Stopping: what is open may end.".to_string(),
        (NodeState::Paused, _) => return "Paused: no new requests go out.".to_string(),
        (_, Some((why, hosts))) => {
            format!(" Held back by politeness: {hosts} of {} hosts wait for {why}.", status.hosts)
        }
        _ => String::new(),
    };
    pace + &held + &ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_what_most_hosts_wait_for() {
        let mut status = NodeStatus {
            role: "crawl".to_string(),
            hosts: 1_000,
            pages_per_second: 4_790.0,
            pending: Some(28_740_000),
            waiting: Some(0),
            waits: BTreeMap::from([("rate".to_string(), 912), ("robots".to_string(), 1)]),
            ..NodeStatus::default()
        };
        let said = |status: &NodeStatus| sentence(status, eta_s(status));
        assert_eq!(
            said(&status),
            "4790.0 pages/s. Held back by politeness: 912 of 1000 hosts wait for rate. At this pace what is pending ends in 100 min."
        );
        status.state = NodeState::Paused;
        assert_eq!(said(&status), "Paused: no new requests go out.");
        status.state = NodeState::Running;
        status.waiting_for = Some("fetching waits for room".to_string());
        assert_eq!(said(&status), "fetching waits for room");
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
