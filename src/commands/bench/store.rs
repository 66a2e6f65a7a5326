use super::record::RecordArgs;
use super::stage::Stage;
use super::store_work::{Append, Commits, Lookups, Reads, Recovery, StoreWork, Warcio};
use crate::commands::shared::{Failure, on_cores};
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
pub(super) struct StoreBenchArgs {
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
        let stage = Stage::unmade(&self.data)?;
        let work = StoreWork::new(&stage.dir, self.pages)?;
        let measure = || -> Result<StoreBenchReport, Failure> {
            Ok(StoreBenchReport {
                page_bytes: work.page_bytes(),
                append: work.append(self.rounds)?,
                warcio: self.python.as_deref().map(|python| work.warcio(python)).transpose()?,
                commits: work.commits()?,
                reads: work.reads(self.reads)?,
                recovery: work.recovery()?,
                lookups: work.lookups(self.many)?,
            })
        };
        let report = on_cores(&[stage.core], measure)??;
        drop(stage);
        self.record.tell(&report, StoreBenchReport::text)
    }
}

impl StoreBenchReport {
    fn text(&self) -> String {
        let Self { page_bytes, append, commits, reads, lookups, recovery, .. } = self;
        let Append { ours_us, shard_us, plain_us, ours_mb_per_s, plain_mb_per_s, ratio, shard_ratio, .. } =
            append;
        let warcio = match &self.warcio {
            Some(Warcio { page_us, .. }) => {
                format!("warcio's gzip writer {page_us:.0} us: ours {:.3} x", ours_us / page_us)
            }
            None => "warcio was not measured (give a Python that has it with --python)".to_string(),
        };
        let (commits_s, plain_s) = (commits.per_s, commits.plain_per_s);
        let Reads { per_s, page_us, plain_us: plain_read_us, .. } = reads;
        let Lookups { records, files, median_us, p99_us, .. } = lookups;
        let Recovery { s_per_gb, plain_s_per_gb, .. } = recovery;
        let [commit_ratio, read_ratio, recovery_ratio] =
            [commits_s / plain_s, page_us / plain_read_us, s_per_gb / plain_s_per_gb];
        format!(
            "append    {ours_us:.1} us CPU a page of {page_bytes} bytes ({shard_us:.1} of them the shard's), {ours_mb_per_s:.0} MB/s\n          \
             plain lz4_flex into a Vec {plain_us:.1} us, {plain_mb_per_s:.0} MB/s: ours {ratio:.2} x (shard {shard_ratio:.2} x)\n          \
             {warcio}\n\
             commit    {commits_s:.0} durable commits/s of one page each; write and fdatasync {plain_s:.0}/s: {commit_ratio:.2} x\n\
             read      {per_s:.0} documents/s by URL, {page_us:.1} us each; read and unpack at a known place {plain_read_us:.1} us: {read_ratio:.2} x\n\
             lookup    among {records} records in {files} indexes {median_us:.1} us (median), {p99_us:.1} us (99 %)\n\
             recover   {s_per_gb:.2} s/GB after a kill; reading the file {plain_s_per_gb:.2} s/GB: {recovery_ratio:.2} x\n"
        )
    }
}
