use super::shared::{Failure, print};
use crate::sim::{SimReport, SplitReport, run, run_pages, run_split};
use clap::Args;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

/// Crawl made-up, misbehaving webs in virtual time, one per seed, and check every promise
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila sim --seeds 200\n  nephila sim --from 1000000 --seconds 3600\n  nephila sim --from 4711 --seeds 1      (replays one seed)\n  nephila sim --split --seeds 200        (a URL server, three spiders and a store server)"
)]
pub struct SimArgs {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 200)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Run for this long, however many seeds that is
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Crawl N pages once and without faults, the same work every time: for counting instructions
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "from", "seconds"])]
    pages: Option<u32>,
    /// Simulate a URL server, three spiders and a store server, whose links break and which are killed
    #[arg(long)]
    split: bool,
}

impl SimArgs {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(pages) = self.pages {
            let report = run_pages(pages);
            return print(&format!(
                "{} requests for {} documents ({} had) in {} steps\n",
                report.requests, report.documents, report.success, report.steps
            ));
        }
        let started = Instant::now();
        let (count, figures) = match self.split {
            true => self.run_split(started)?,
            false => self.run_node(started)?,
        };
        print(&format!(
            "{count} seeds from {} in {:.1} s: {figures}; no promise was broken\n",
            self.from,
            started.elapsed().as_secs_f64()
        ))
    }

    /// Runs one seed after the other, and says how many.
    fn each<R>(&self, started: Instant, run: fn(u64) -> R, mut add: impl FnMut(R)) -> Result<u64, Failure> {
        let until = self.seconds.map(|seconds| started + Duration::from_secs(seconds));
        let mut count = 0;
        while until.map_or(count < self.seeds, |until| Instant::now() < until) {
            let seed = self.from + count;
            // The panic has printed what was broken; the seed says how to see it again.
            add(catch_unwind(|| run(seed)).map_err(|_| {
                let split = if self.split { "--split " } else { "" };
                Failure::No(format!(
                    "seed {seed} failed; replay it with: nephila sim {split}--from {seed} --seeds 1"
                ))
            })?);
            count += 1;
        }
        Ok(count)
    }

    fn run_node(&self, started: Instant) -> Result<(u64, String), Failure> {
        let mut total = SimReport::default();
        let count = self.each(started, run, |report| {
            total.requests += report.requests;
            total.documents += report.documents;
            total.success += report.success;
            total.deaths += report.deaths;
            total.slots_reused += report.slots_reused;
            total.moved_on += report.moved_on;
            total.virtual_seconds += report.virtual_seconds;
            total.steps += report.steps;
        })?;
        let figures = format!(
            "{} requests for {} documents ({} had), {} shards died, {} slots changed hosts, {} requests went to another address, {} virtual hours",
            total.requests,
            total.documents,
            total.success,
            total.deaths,
            total.slots_reused,
            total.moved_on,
            total.virtual_seconds / 3_600
        );
        Ok((count, figures))
    }

    fn run_split(&self, started: Instant) -> Result<(u64, String), Failure> {
        let mut total = SplitReport::default();
        let count = self.each(started, run_split, |report| {
            total.requests += report.requests;
            total.documents += report.documents;
            total.success += report.success;
            total.kills += report.kills;
            total.broken += report.broken;
            total.left_behind += report.left_behind;
            total.stored += report.stored;
            total.virtual_seconds += report.virtual_seconds;
        })?;
        let figures = format!(
            "{} requests for {} documents ({} had), {} processes killed, links broken {} times, {} requests left behind, {} records answered for and found, {} virtual hours",
            total.requests,
            total.documents,
            total.success,
            total.kills,
            total.broken,
            total.left_behind,
            total.stored,
            total.virtual_seconds / 3_600
        );
        Ok((count, figures))
    }
}
