use crate::commands::shared::{Failure, cores, print};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// How a run is told, and where it is kept.
#[derive(Args)]
pub(super) struct RecordArgs {
    /// Write the run with machine and kernel to a JSON file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

/// A run as it is kept: what was typed, where it ran and what was measured.
#[derive(Serialize)]
struct Run<'a, R> {
    command: String,
    machine: Machine,
    #[serde(flatten)]
    measured: &'a R,
}

#[derive(Serialize)]
pub(super) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
}

impl RecordArgs {
    /// Writes the run where it is to be kept, and prints it: as JSON, or as `text` has it.
    pub fn tell<R: Serialize>(&self, measured: &R, text: impl FnOnce(&R) -> String) -> Result<(), Failure> {
        let run = Run { command: command_line(), machine: Machine::new(), measured };
        let json = serde_json::to_string_pretty(&run)? + "\n";
        if let Some(path) = &self.record {
            std::fs::write(path, &json)
                .map_err(|e| Failure::CannotRun(format!("cannot write {}: {e}", path.display())))?;
        }
        print(&if self.json { json } else { text(measured) })
    }
}

/// What was typed.
pub(super) fn command_line() -> String {
    std::env::args().skip(1).fold("nephila".to_string(), |line, arg| format!("{line} {arg}"))
}

impl Machine {
    pub fn text(&self) -> String {
        format!("{}, {} cores, Linux {}", self.cpu, self.cores, self.kernel)
    }

    pub fn new() -> Machine {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cpu: cpu.unwrap_or("unknown").to_string(),
            cores: cores().len(),
            kernel: kernel.trim().to_string(),
        }
    }
}
