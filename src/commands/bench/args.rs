use super::cluster::ClusterBenchArgs;
use super::crawl::CrawlBenchArgs;
use super::density::DensityArgs;
use super::diff::DiffArgs;
use super::extract::ExtractBenchArgs;
use super::feeds::FeedsBenchArgs;
use super::idle::IdleBenchArgs;
use super::index::IndexBenchArgs;
use super::long::LongArgs;
use super::master::MasterBenchArgs;
use super::parse::ParseBenchArgs;
use super::parts::PartsArgs;
use super::polls::PollsArgs;
use super::queues::QueuesArgs;
#[cfg(feature = "search")]
use super::search::SearchBenchArgs;
use super::slow::SlowArgs;
use super::store::StoreBenchArgs;
use super::stories::StoriesBenchArgs;
use super::tls::TlsArgs;
use super::ways::WaysArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};

/// Crawl a farm, each in a process and on a core of its own, and print pages/s per core and CPU µs per page
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  nephila bench --rounds 5 --record bench/runs/my-machine.json\n\nWhere wrk is installed it asks the same farm for a page of the same size between the rounds, on the crawl's core.\nThe figures to compare are CPU per page and per request: they hold on a noisy machine, wall time does not."
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: Option<BenchWhat>,
    #[command(flatten)]
    crawl: CrawlBenchArgs,
}

/// What else can be measured.
#[derive(Subcommand)]
enum BenchWhat {
    Queues(QueuesArgs),
    Index(IndexBenchArgs),
    Parse(ParseBenchArgs),
    Parts(PartsArgs),
    Polls(PollsArgs),
    Feeds(FeedsBenchArgs),
    Tls(TlsArgs),
    Ways(WaysArgs),
    #[cfg(feature = "search")]
    Search(SearchBenchArgs),
    Slow(SlowArgs),
    Long(LongArgs),
    Store(StoreBenchArgs),
    Density(DensityArgs),
    Diff(DiffArgs),
    Stories(StoriesBenchArgs),
    Master(MasterBenchArgs),
    Extract(ExtractBenchArgs),
    Cluster(ClusterBenchArgs),
    Idle(IdleBenchArgs),
}

impl BenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            None => self.crawl.run(),
            Some(BenchWhat::Queues(queues)) => queues.run(),
            Some(BenchWhat::Index(index)) => index.run(),
            Some(BenchWhat::Parse(parse)) => parse.run(),
            Some(BenchWhat::Parts(parts)) => parts.run(),
            Some(BenchWhat::Polls(polls)) => polls.run(),
            Some(BenchWhat::Feeds(feeds)) => feeds.run(),
            Some(BenchWhat::Tls(tls)) => tls.run(),
            Some(BenchWhat::Ways(ways)) => ways.run(),
            #[cfg(feature = "search")]
            Some(BenchWhat::Search(search)) => search.run(),
            Some(BenchWhat::Slow(slow)) => slow.run(),
            Some(BenchWhat::Long(long)) => long.run(),
            Some(BenchWhat::Store(store)) => store.run(),
            Some(BenchWhat::Density(density)) => density.run(),
            Some(BenchWhat::Diff(diff)) => diff.run(),
            Some(BenchWhat::Stories(stories)) => stories.run(),
            Some(BenchWhat::Master(master)) => master.run(),
            Some(BenchWhat::Extract(extract)) => extract.run(),
            Some(BenchWhat::Cluster(cluster)) => cluster.run(),
            Some(BenchWhat::Idle(idle)) => idle.run(),
        }
    }
}
