use super::Failure;
use super::bench::{Machine, command_line, machine};
use super::bench_record::RecordArgs;
use super::bench_store_work::{Append, Bench, Commits, Lookups, Reads, Recovery, Warcio};
use super::machine::{cores, on_cores};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Append pages to a store, commit, read and recover, and print what each costs beside the plainest way to do it
///
/// Everything runs on one core, the keeper too. Pages are those of the farm, 10 KB of HTML each.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench store --record bench/runs/my-machine-store.json\n  nephila bench store --many 10000000 --data /mnt/disk/bench\n\nThe figures to look at are the ratios. MB/s are of CPU time, one core."
)]
pub struct StoreBenchArgs {
    /// Where the stores are written; they are removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-store")]
    data: PathBuf,
    /// Pages appended in one round
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    pages: usize,
    /// Rounds of appending; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Documents read back, each chosen by chance
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    reads: usize,
    /// Small records in the store whose lookups are measured
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    many: u64,
    /// A Python that has warcio, to measure its writer beside ours
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct StoreBenchReport {
    command: String,
    machine: Machine,
    page_bytes: usize,
    append: Append,
    warcio: Option<Warcio>,
    commits: Commits,
    reads: Reads,
    lookups: Lookups,
    recovery: Recovery,
}

impl StoreBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.pages == 0 || self.rounds == 0 || self.reads == 0 || self.many == 0 {
            return Err(Failure::Usage("measure at least once (--pages, --rounds, --reads, --many)".into()));
        }
        if self.data.exists() {
            return Err(Failure::Usage(format!(
                "{} is there already (name a directory that is not, with --data)",
                self.data.display()
            )));
        }
        let core = cores()[0];
        let bench = Bench::new(&self.data, self.pages).map_err(Failure::CannotRun)?;
        let report = on_cores(&[core], || -> Result<StoreBenchReport, String> {
            let append = bench.append(self.rounds)?;
            Ok(StoreBenchReport {
                command: command_line(),
                machine: machine(),
                page_bytes: bench.page_bytes(),
                warcio: self.python.as_deref().map(|python| bench.warcio(python)).transpose()?,
                append,
                commits: bench.commits()?,
                reads: bench.reads(self.reads)?,
                recovery: bench.recovery()?,
                lookups: bench.lookups(self.many)?,
            })
        })
        .and_then(|report| report.map_err(Failure::CannotRun));
        let _ = std::fs::remove_dir_all(&self.data);
        let report = report?;
        self.record.tell(&report, |report| report.text())
    }
}

impl StoreBenchReport {
    fn text(&self) -> String {
        let Append { ours_us, shard_us, plain_us, ours_mb_per_s, plain_mb_per_s, ratio, .. } = &self.append;
        let mut text = format!(
            "append    {ours_us:.1} us CPU a page of {} bytes ({shard_us:.1} of them the shard's), {ours_mb_per_s:.0} MB/s\n",
            self.page_bytes
        );
        text += &format!(
            "          plain lz4_flex into a Vec {plain_us:.1} us, {plain_mb_per_s:.0} MB/s: ours {ratio:.2} x (shard {:.2} x)\n",
            self.append.shard_ratio
        );
        match &self.warcio {
            Some(Warcio { page_us, .. }) => {
                text += &format!(
                    "          warcio's gzip writer {page_us:.0} us: ours {:.3} x\n",
                    ours_us / page_us
                );
            }
            None => text += "          warcio was not measured (give a Python that has it with --python)\n",
        }
        let Commits { per_s, plain_per_s } = self.commits;
        text += &format!(
            "commit    {per_s:.0} durable commits/s of one page each; write and fdatasync {plain_per_s:.0}/s: {:.2} x\n",
            per_s / plain_per_s
        );
        let Reads { per_s, page_us, plain_us, .. } = self.reads;
        text += &format!(
            "read      {per_s:.0} documents/s by URL, {page_us:.1} us each; read and unpack at a known place {plain_us:.1} us: {:.2} x\n",
            page_us / plain_us
        );
        let Lookups { records, files, median_us, p99_us, .. } = self.lookups;
        text += &format!(
            "lookup    among {records} records in {files} indexes {median_us:.1} us (median), {p99_us:.1} us (99 %)\n"
        );
        let Recovery { s_per_gb, plain_s_per_gb, .. } = self.recovery;
        text += &format!(
            "recover   {s_per_gb:.2} s/GB after a kill; reading the file {plain_s_per_gb:.2} s/GB: {:.2} x\n",
            s_per_gb / plain_s_per_gb
        );
        text
    }
}
