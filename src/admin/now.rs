use super::office::Office;
use crate::base::rfc3339;
use crate::doc_index::IndexStats;
use crate::engine::{NodeState, NodeStatus};
use nix::sys::statvfs::statvfs;
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
    success: u64,
    received_bytes: u64,
    stored_bytes: u64,
    documents_per_second: f64,
    /// Requests on the wire.
    open: u64,
    /// Hosts with something to fetch, by what they wait for.
    hosts: BTreeMap<String, u64>,
    urls: Option<Urls>,
    store: Option<Store>,
    eta_s: Option<u64>,
}

#[derive(Serialize)]
struct Urls {
    known: u64,
    pending: u64,
    waiting: u64,
}

#[derive(Serialize)]
struct Store {
    free_bytes: u64,
}

impl Now {
    pub fn of(office: &Office, counted: Option<IndexStats>) -> Now {
        let status = office.desk.status(&office.desk.snapshot(), counted);
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let eta_s = eta_s(&status);
        let mut hosts = status.waits.clone();
        hosts.insert("open".to_string(), status.open);
        let free = office.data.as_deref().and_then(|data| statvfs(data).ok());
        Now {
            at: rfc3339(unix_ms),
            state: state_of(&status),
            sentence: sentence(&status, eta_s),
            seconds: status.seconds,
            documents: status.pages,
            success: status.success,
            received_bytes: status.bytes,
            stored_bytes: status.stored_bytes,
            documents_per_second: status.pages_per_second,
            open: status.open,
            hosts,
            urls: counted.map(|stats| Urls {
                known: stats.known,
                pending: stats.left(),
                waiting: stats.waiting,
            }),
            store: free.map(|free| Store { free_bytes: free.blocks_available() * free.fragment_size() }),
            eta_s,
            role: status.role,
            pid: status.pid,
        }
    }
}

fn state_of(status: &NodeStatus) -> &'static str {
    match status.state {
        NodeState::Stopping => "draining",
        NodeState::Paused => "paused",
        NodeState::Running if status.waiting_for.is_some() => "waiting_for_disk",
        NodeState::Running if status.hosts == 0 && status.open == 0 && status.waiting.unwrap_or(0) > 0 => {
            "waiting_for_due"
        }
        NodeState::Running => "running",
    }
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
    let ends = eta_s.map_or(String::new(), |s| format!(" At this pace what is pending ends in {} min.", s / 60));
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
        assert_eq!((said(&status).as_str(), state_of(&status)), ("Paused: no new requests go out.", "paused"));
        status.state = NodeState::Running;
        status.waiting_for = Some("fetching waits for room".to_string());
        assert_eq!((said(&status).as_str(), state_of(&status)), ("fetching waits for room", "waiting_for_disk"));
    }
}
