use crate::proto::reflog::ReflogRecord;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// A URL that is to be sent: a row of filtered_log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilteredRow<'a> {
    /// The keyed hash of the normal form.
    pub id: u64,
    /// As it goes into a queue: the URL in its normal form, the last time, page, priority and batch, the last tag that
    /// says something, and all hits since it was last sent.
    pub record: ReflogRecord<'a>,
    /// What the map goes by: the registrable domain, or the host.
    pub domain: &'a str,
    /// Its row in the next current_log.
    pub at: RowPlace,
    /// When it was sent before, in seconds since 1970; 0 if it was not. If it cannot be sent now, its row says so again.
    pub sent_before_s: u32,
}

/// A row of a current_log that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    pub partition: u8,
    pub row: u32,
}

/// What became of the lines of an epoch. Hits in and those that waited before are those sent, waiting, expired and
/// rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochCounts {
    pub lines: u64,
    pub records: u64,
    pub rejected: u64,
    /// Records whose time was ahead of the epoch's, which counts instead.
    pub ahead: u64,
    /// Files of which only the beginning could be read.
    pub files_cut: u64,
    /// URLs of the epoch, each once.
    pub urls: u64,
    pub sent: u64,
    /// Rows of the next current_log.
    pub kept: u64,
    /// Rows that left, and those of them that had hits waiting.
    pub left: u64,
    pub expired: u64,
    /// Could not be placed, and come again with the next epoch.
    pub held: u64,
    pub hits_in: u64,
    pub hits_before: u64,
    pub hits_sent: u64,
    pub hits_waiting: u64,
    pub hits_expired: u64,
    pub hits_rejected: u64,
    pub hits_held: u64,
    /// More than a row or a line has room for.
    pub hits_capped: u64,
}

impl EpochCounts {
    /// Whether every hit that came is accounted for.
    pub fn add_up(&self) -> bool {
        let out = self.hits_sent + self.hits_waiting + self.hits_expired + self.hits_rejected;
        self.hits_in + self.hits_before == out + self.hits_held + self.hits_capped
    }
}

impl AddAssign for EpochCounts {
    fn add_assign(&mut self, other: EpochCounts) {
        // Taken apart, so that none is forgotten.
        let EpochCounts {
            lines,
            records,
            rejected,
            ahead,
            files_cut,
            urls,
            sent,
            kept,
            left,
            expired,
            held,
            hits_in,
            hits_before,
            hits_sent,
            hits_waiting,
            hits_expired,
            hits_rejected,
            hits_held,
            hits_capped,
        } = other;
        self.lines += lines;
        self.records += records;
        self.rejected += rejected;
        self.ahead += ahead;
        self.files_cut += files_cut;
        self.urls += urls;
        self.sent += sent;
        self.kept += kept;
        self.left += left;
        self.expired += expired;
        self.held += held;
        self.hits_in += hits_in;
        self.hits_before += hits_before;
        self.hits_sent += hits_sent;
        self.hits_waiting += hits_waiting;
        self.hits_expired += hits_expired;
        self.hits_rejected += hits_rejected;
        self.hits_held += hits_held;
        self.hits_capped += hits_capped;
    }
}
