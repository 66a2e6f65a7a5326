//! How a bench is told and kept.

use super::Failure;
use super::output::print;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct RecordArgs {
    /// Write the run with machine and kernel to a JSON file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

impl RecordArgs {
    /// Writes the run where it is to be kept, and prints it: as JSON, or as `text` has it.
    pub fn tell<R: Serialize>(&self, report: &R, text: impl FnOnce(&R) -> String) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(report).map_err(Failure::cannot_run)? + "\n";
        if let Some(path) = &self.record {
            std::fs::write(path, &json)
                .map_err(|e| Failure::CannotRun(format!("cannot write {}: {e}", path.display())))?;
        }
        print(&if self.json { json } else { text(report) })
    }
}
