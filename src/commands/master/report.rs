use crate::engine::MasterSummary;
use serde::Serialize;

/// What a master came to, as it is told.
#[derive(Serialize)]
pub(super) struct MasterReport {
    epoch: u64,
    epochs: u64,
    files: u64,
    lines: u64,
    rejected: u64,
    sent: u64,
    held: u64,
    hits_waiting: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl MasterReport {
    pub fn new(summary: &MasterSummary) -> MasterReport {
        let status = &summary.status;
        MasterReport {
            epoch: status.epoch,
            epochs: status.epochs,
            files: status.files,
            lines: status.lines,
            rejected: status.rejected,
            sent: status.sent,
            held: status.held,
            hits_waiting: status.hits_waiting,
            seconds: summary.seconds,
            cpu_seconds: summary.cpu_us as f64 / 1e6,
        }
    }

    pub fn table(&self) -> String {
        format!(
            "epochs     {} since start (the last is {})\nfiles      {}\nlines      {}, {} rejected\nURLs       {} sent, {} held\nhits       {} wait\ntime       {:.1} s, {:.1} s of CPU\n",
            self.epochs,
            self.epoch,
            self.files,
            self.lines,
            self.rejected,
            self.sent,
            self.held,
            self.hits_waiting,
            self.seconds,
            self.cpu_seconds
        )
    }
}
