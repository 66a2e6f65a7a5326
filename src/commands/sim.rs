use super::shared::{Failure, print};
use crate::base::shown;
use crate::sim::{
    CLUSTER_NODES_MAX, ClusterWrong, SimReport, run, run_cluster, run_feeds, run_feeds_for, run_master,
    run_pages, run_split,
};
use clap::Args;
use std::ops::RangeInclusive;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Crawl made-up, misbehaving webs in virtual time, one per seed, and check every promise
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila sim --seeds 200\n  nephila sim --from 1000000 --seconds 3600\n  nephila sim --from 4711 --seeds 1      (replays one seed)\n  nephila sim --split --seeds 200        (a URL server, three spiders and a store server)\n  nephila sim --master --seeds 200       (two masters and three nodes)\n  nephila sim --cluster 3..7 --seeds 200 (nodes of a cluster, which join, are cut off, stalled, killed and taken over)\n  nephila sim --feeds --seeds 200        (feeds that are polled for weeks by a node that is killed)\n  nephila sim --feeds --count 1000 --days 365 --seeds 1    (a year of a thousand feeds)"
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
    /// Simulate the nodes of a cluster, so many or a number of these, whose links break and which are killed
    #[arg(long, value_name = "N|A..B", value_parser = nodes_of, conflicts_with_all = ["split", "pages", "master", "feeds"])]
    cluster: Option<RangeInclusive<usize>>,
    /// With something that is wrong on purpose, to see that it is found: pace, clocks, tickets, index, copies, pages, council,
    /// etcd, cut or cursors (nephila help cluster says what each breaks)
    #[arg(long, value_name = "WHAT", requires = "cluster", value_parser = wrong_of)]
    wrong: Option<ClusterWrong>,
    /// Simulate feeds and their stories: servers that lie, move, ask for pauses and renumber, and a node that is killed
    #[arg(long, conflicts_with_all = ["split", "pages", "master"])]
    feeds: bool,
    /// So many feeds, in place of what a seed draws; their sources post from once in four days to once in four months
    #[arg(long, value_name = "N", requires = "feeds", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: Option<u32>,
    /// For so many days, with --count
    #[arg(long, value_name = "N", requires = "count", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
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
        let (run, which): (&(dyn Fn(u64) -> SimReport + RefUnwindSafe), _) = match (self.count, self.days) {
            (Some(count), days) => (
                &move |seed| run_feeds_for(seed, count, days),
                format!("--feeds --count {count} --days {days} "),
            ),
            _ if let Some(nodes) = &self.cluster => {
                let (least, most) = (*nodes.start(), *nodes.end());
                let wrong = self.wrong;
                let named = wrong.map_or(String::new(), |wrong| format!("--wrong {} ", wrong.name()));
                let which = format!("--cluster {least}..{most} {named}");
                (&move |seed| run_cluster(seed, least..=most, wrong), which)
            }
            _ if self.feeds => (&run_feeds, "--feeds ".to_string()),
            _ if self.split => (&run_split, "--split ".to_string()),
            _ if self.master => (&run_master, "--master ".to_string()),
            _ => (&run, String::new()),
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
        let SimReport {
            broken,
            left_behind,
            stored,
            lines,
            fail_overs,
            moves,
            known,
            restored,
            drained,
            lost,
            virtual_seconds,
            ..
        } = total;
        let SimReport {
            polls, on_time, stories, gaps, liars, stalls, takeovers, begun_anew, unanswered, ..
        } = total;
        if self.feeds {
            return print(&format!(
                "{count} seeds from {} in {:.1} s: {requests} requests, {polls} of them polls ({on_time} judged to the second), {stories} stories, {gaps} gaps, {liars} feeds that lie, {deaths} processes killed, {} virtual days; no promise was broken\n",
                self.from,
                started.elapsed().as_secs_f64(),
                virtual_seconds / 86_400
            ));
        }
        let incidents = match () {
            () if self.cluster.is_some() => format!(
                "{lines} URLs typed, {deaths} nodes killed, {lost} with their disks, {stalls} stalled, links broken {broken} times, {moves} hosts moved to other nodes, addresses went from node to node {fail_overs} times, {takeovers} hosts taken over with {known} pages known from copies, {restored} pages of lost disks read, {drained} nodes drained, {begun_anew} nodes came back to that, {unanswered} questions to an etcd without an answer"
            ),
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

/// `5`, or `3..7` with both ends.
fn wrong_of(text: &str) -> Result<ClusterWrong, String> {
    let names = || ClusterWrong::ALL.map(ClusterWrong::name).join(", ");
    ClusterWrong::from_name(text)
        .ok_or_else(|| format!("must be one of {}, not \"{}\"", names(), shown(text, 40)))
}

fn nodes_of(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.parse::<usize>(), most.trim_start_matches('=').parse::<usize>()) {
        (Ok(least @ 2..=CLUSTER_NODES_MAX), Ok(most @ 2..=CLUSTER_NODES_MAX)) if least <= most => {
            Ok(least..=most)
        }
        _ => Err(format!("must be 2 to {CLUSTER_NODES_MAX}, like 5 or 3..7, not \"{}\"", shown(text, 40))),
    }
}
