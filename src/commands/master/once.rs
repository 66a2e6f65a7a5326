use super::explain::stamp;
use super::once_data::{OnceData, once_with_data};
use crate::commands::shared::Failure;
use crate::proto::reflog::Stamp;
use clap::Args;
use std::path::PathBuf;

/// Take logs of URLs in one epoch, for cron and for benches
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master once *.reflog --data ./nephila-master --servers 16\n  nephila master once day.reflog.gz --data ./nephila-master --now 20110728000000 --json\n\nFiles that were taken before are skipped, and none is moved. An epoch that a killed process left unfinished is made\nfirst."
)]
pub struct OnceArgs {
    /// Files of a reflog, plain or packed by gzip or zstd
    #[arg(value_name = "REFLOG", required = true)]
    pub files: Vec<PathBuf>,
    /// The time of the epoch, like 20110727200841, instead of the clock's
    #[arg(long, value_name = "T", value_parser = stamp)]
    pub now: Option<Stamp>,
    #[command(flatten)]
    pub data: OnceData,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

impl OnceArgs {
    pub fn run(self) -> Result<(), Failure> {
        once_with_data(&self.files, self.now, &self.data, self.json)
    }
}
