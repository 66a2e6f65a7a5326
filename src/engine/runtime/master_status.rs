use crate::master::keeping::Totals;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a master is. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterStatus {
    /// The last epoch that was committed, and when, in seconds since 1970.
    pub epoch: u64,
    pub epoch_at_s: u64,
    /// What the last epoch took.
    pub epoch_ms: u64,
    /// Files that wait in the spool, and how long the first of them has.
    pub files_waiting: u64,
    pub lag_s: f64,
    #[serde(skip)]
    pub waiting_since: Option<Instant>,
    /// Since the directory was made.
    pub life: Totals,
    /// Since the process began; where none runs, since the directory was made.
    pub epochs: u64,
    pub files: u64,
    pub lines: u64,
    pub rejected: u64,
    pub sent: u64,
    pub expired_hits: u64,
    pub hits_in: u64,
    pub hits_sent: u64,
    /// As of the last epoch: rows of current_log, hits that wait to be sent, lines that could not be placed.
    pub rows: u64,
    pub hits_waiting: u64,
    pub held: u64,
    /// Why domains that are new wait.
    pub new_domains_wait: Option<String>,
    /// Lines and connections of the TCP intake.
    pub intake_lines: u64,
    pub intake_links: u64,
    pub servers: Vec<ServerStatus>,
    pub peer: Option<Neighbour>,
    pub database: Option<Neighbour>,
}

/// A node, and what waits for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStatus {
    pub id: u16,
    pub state: String,
    pub capacity: f64,
    /// URLs an hour that it is sent.
    pub load: f64,
    /// URLs that wait with it, as it said.
    pub pending: Option<u64>,
    /// Entries that it does not have, and their bytes on disk.
    pub queue: u64,
    pub queue_bytes: u64,
    /// Below it the node has everything; and the number of the next entry.
    pub position: u64,
    pub next: u64,
    /// Who speaks for it, and how long it has been silent.
    pub node: Option<String>,
    pub silent_s: Option<f64>,
}

/// Somebody that a master goes by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    pub address: String,
    pub is_there: bool,
    /// Since when, in seconds since 1970; and why not.
    pub since_s: u64,
    pub cause: Option<String>,
    /// Whether the other master said last that it deals domains by the same terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
}

impl MasterStatus {
    /// Notes how many files wait, and how long the first of them has.
    pub fn files_wait(&mut self, files: u64, first: Duration) {
        (self.files_waiting, self.lag_s) = (files, first.as_secs_f64());
        self.waiting_since = Instant::now().checked_sub(first).filter(|_| files > 0);
    }
}

impl Neighbour {
    /// Notes how it is now.
    pub fn note(&mut self, is_there: bool, cause: Option<String>, now_s: u64) {
        if self.is_there != is_there || self.since_s == 0 {
            self.since_s = now_s;
        }
        (self.is_there, self.cause) = (is_there, cause);
    }
}

/// Where the threads of a master write down how it is, for whoever asks.
#[derive(Clone, Default)]
pub struct MasterBoard(Arc<Mutex<MasterStatus>>);

impl MasterBoard {
    pub fn read(&self) -> MasterStatus {
        let mut status = self.lock().clone();
        if let Some(since) = status.waiting_since {
            status.lag_s = since.elapsed().as_secs_f64();
        }
        status
    }

    pub fn lock(&self) -> MutexGuard<'_, MasterStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
