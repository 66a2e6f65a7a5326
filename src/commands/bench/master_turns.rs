use super::master::{Files, MUCH_MEMORY};
use super::stage::Stage;
use crate::commands::shared::Failure;
use serde::Serialize;
use std::fs;

/// Epochs of many lines in little memory and of fewer in much, by turns, so that both have the machine as it is.
pub(super) struct Turns<'a> {
    pub stage: &'a Stage,
    pub lines: u64,
    pub beside: u64,
    pub memory: u64,
}

#[derive(Serialize)]
pub(super) struct TurnsReport {
    lines: u64,
    memory_bytes: u64,
    beside_lines: u64,
    /// CPU seconds per million lines, in the order of turns.
    cpu_s_per_million: Vec<f64>,
    beside_cpu_s_per_million: Vec<f64>,
    /// The sum of those over the sum of these.
    ratio: f64,
}

const TURNS: u32 = 3;

impl Turns<'_> {
    pub fn run(&self) -> Result<TurnsReport, Failure> {
        let (many, few) = (self.stage.dir.join("many"), self.stage.dir.join("few"));
        let many = Files { dir: &many, lines: self.lines };
        let few = Files { dir: &few, lines: self.beside };
        for files in [many, few] {
            files.make(2)?;
            self.stage.peer(files.epoch(0, MUCH_MEMORY)?)?;
        }
        let little = self.memory.to_string();
        let mut report = TurnsReport {
            lines: self.lines,
            memory_bytes: self.memory,
            beside_lines: self.beside,
            cpu_s_per_million: Vec::new(),
            beside_cpu_s_per_million: Vec::new(),
            ratio: 0.0,
        };
        for _ in 0..TURNS {
            report.beside_cpu_s_per_million.push(self.epoch(few, MUCH_MEMORY)?);
            report.cpu_s_per_million.push(self.epoch(many, &little)?);
        }
        let [sum, beside] = [&report.cpu_s_per_million, &report.beside_cpu_s_per_million]
            .map(|turns| turns.iter().sum::<f64>());
        report.ratio = sum / beside;
        Ok(report)
    }

    /// CPU seconds per million lines of the second file.
    fn epoch(&self, files: Files<'_>, memory: &str) -> Result<f64, Failure> {
        let run = self.stage.peer(files.epoch(1, memory)?)?;
        let told: serde_json::Value =
            serde_json::from_str(&run.text).map_err(|_| run.unread("master once"))?;
        if told["lines"].as_u64() != Some(files.lines) {
            return Err(run.unread("master once"));
        }
        fs::remove_dir_all(files.out(1))?;
        Ok(run.cpu_us / files.lines as f64)
    }
}

impl TurnsReport {
    pub fn text(&self) -> String {
        let all = |turns: &[f64]| turns.iter().map(|cost| format!(" {cost:.3}")).collect::<String>();
        format!(
            "CPU s per million lines, by turns\n{:>11} lines in {} MB   {}\n{:>11} lines in memory  {}\nratio {:.2}\n",
            self.lines,
            self.memory_bytes / 1_000_000,
            all(&self.cpu_s_per_million),
            self.beside_lines,
            all(&self.beside_cpu_s_per_million),
            self.ratio,
        )
    }
}
