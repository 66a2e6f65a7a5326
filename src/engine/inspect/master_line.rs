use crate::base::{counted, shown};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// How a node stands with its masters. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterLine {
    /// The number that the masters know it by.
    pub server: u16,
    /// The master that is taken from; `None` until one has answered.
    pub used: Option<String>,
    /// The next entry of its queue.
    pub seq: u64,
    /// The reflog time up to which everything is here, and how many seconds that is behind now.
    pub mark: Option<String>,
    pub lag_s: Option<u64>,
    /// Seconds since it last said something.
    pub answered_s: Option<u64>,
    pub taken: u64,
    /// Entries that could not be read.
    pub bad: u64,
    /// Changes from one master to another.
    pub changes: u64,
    /// Lines about pages with a query and Clean-param lines that were sent, and those that found no room.
    pub reports: u64,
    pub reports_dropped: u64,
    /// The others that a link stands to.
    pub linked: Vec<String>,
    /// Why nothing is taken at this moment.
    pub trouble: Option<String>,
    /// Domains that were closed here, and of those the ones whose handover no master has confirmed.
    pub closed_domains: u64,
    pub leaving_domains: Vec<String>,
}

/// The same, for other threads to look at.
#[derive(Clone, Default)]
pub struct MasterReport(Arc<Mutex<MasterLine>>);

impl MasterReport {
    pub fn get(&self) -> MasterLine {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, line: MasterLine) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }
}

impl MasterLine {
    /// In one sentence.
    pub fn said(&self) -> String {
        let MasterLine { server, used, seq, taken, .. } = self;
        let mut said = match used {
            Some(used) => format!("{used}, as its server {server}, at entry {seq} of its queue"),
            None => format!("none has answered yet, for server {server}"),
        };
        if let Some(lag_s) = self.lag_s {
            said += &format!(", {lag_s} s behind");
        }
        if let Some(answered_s) = self.answered_s {
            said += &format!(", last heard {answered_s} s ago");
        }
        if *taken > 0 {
            said += &format!("; {taken} taken");
        }
        if self.bad > 0 {
            said += &format!(", {} unreadable", counted(self.bad, "line"));
        }
        if self.changes > 0 {
            said += &format!("; changed masters {}", times(self.changes));
        }
        if self.closed_domains > 0 {
            said += &format!("; {} moved away", counted(self.closed_domains, "domain"));
            if !self.leaving_domains.is_empty() {
                said += &format!(" ({} not confirmed yet)", self.leaving_domains.len());
            }
        }
        if let Some(trouble) = &self.trouble {
            said += &format!("; {}", shown(trouble, 200));
        }
        said
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_string() } else { format!("{count} times") }
}
