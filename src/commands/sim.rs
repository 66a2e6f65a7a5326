use super::shared::{Failure, print};
use crate::sim::{SimReport, run, run_master, run_pages, run_split};
use clap::Args;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

/// Crawl made-up, misbehaving webs in virtual time, one per seed, and check every promise
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila sim --seeds 200\n  nephila sim --from 1000000 --seconds 3600\n  nephila sim --from 4711 --seeds 1      (replays one seed)\n  nephila sim --split --seeds 200        (a URL server, three spiders and a store server)\n  nephila sim --master --seeds 200       (two masters and three nodes)"
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
    /// Simulate two masters and the nodes that take URLs from them, whose links break and which are killed
    #[arg(long, conflicts_with_all = ["split", "pages"])]
    master: bool,
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
        let until = self.seconds.map(|seconds| started + Duration::from_secs(seconds));
        let (run, which): (fn(u64) -> SimReport, _) = match () {
            () if self.split => (run_split, "--split "),
            () if self.master => (run_master, "--master "),
            () => (run, ""),
        };
        let (mut count, mut total) = (0, SimReport::default());
        while until.map_or(count < self.seeds, |until| Instant::now() < until) {
            let seed = self.from + count;
            // The panic has printed what was broken; the seed says how to see it again.
            total += catch_unwind(|| run(seed)).map_err(|_| {
                Failure::No(format!(
                    "seed {seed} failed; replay it with: nephila sim {which}--from {seed} --seeds 1"
                ))
            })?;
            count += 1;
        }
        let SimReport {
            requests, documents, success, deaths, pauses, changes, slots_reused, moved_on, ..
        } = total;
        let SimReport { broken, left_behind, stored, lines, fail_overs, moves, virtual_seconds, .. } = total;
        let incidents = match () {
            () if self.master => format!(
                "{lines} lines given to masters, {deaths} processes killed, links or table broken {broken} times, {fail_overs} changes to the other master, {moves} orders to move a domain"
            ),
            () if self.split => format!(
                "{deaths} processes killed, links broken {broken} times, {left_behind} requests left behind, {stored} records answered for and found"
            ),
            () => format!(
                "{deaths} shards died, {pauses} pauses, {changes} changes of rules, {slots_reused} slots changed hosts, {moved_on} requests went to another address"
            ),
        };
        print(&format!(
            "{count} seeds from {} in {:.1} s: {requests} requests for {documents} documents ({success} had), {incidents}, {} virtual hours; no promise was broken\n",
            self.from,
            started.elapsed().as_secs_f64(),
            virtual_seconds / 3_600
        ))
    }
}
