use super::shared::{DataArg, Failure, RunningCrawl, print};
use super::stop::not_running;
use clap::Args;

/// Print the figures of a running process once, as Prometheus reads them
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila metrics --data ./example\n\nThe same is served under /metrics with --admin (see nephila help protocols). For the textfile collector of\nnode_exporter, write it to a file beside, and give that its name when it is whole.\nExit status 1: nothing runs there."
)]
pub struct MetricsArgs {
    #[command(flatten)]
    data: DataArg,
}

impl MetricsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let data = &self.data.path;
        let Some(mut crawl) = RunningCrawl::at(data)? else { return Err(not_running(data)) };
        let Some(text) = crawl.text("/metrics")? else { return Err(not_running(data)) };
        print(&text)
    }
}
