use super::cpu::children_us;
use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::record::RecordArgs;
use super::rounds::median;
use super::sampler::{ProcessSample, threads_us};
use super::stage::Stage;
use crate::commands::cluster::AskedNode;
use crate::commands::demo_master::{Player, free_address};
use crate::commands::shared::Failure;
use crate::config::size;
use crate::engine::ClusterView;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Crawl a farm with one crawl, with the nodes of a cluster and with their copies, and compare CPU per page
///
/// All processes run on one core and the farm on another, so that several of them drive each other out of its cache. What that
/// costs is told by as many crawls at once as there are nodes, each with its part of the hosts and nothing to do with the others:
/// a cluster costs what its nodes use more than these. What a node of a cluster uses is counted from the moment at which
/// its seeds are given until it has ended, and before that for some seconds in which it has nothing to do.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench cluster --nodes 3 --rounds 3\n\nThe figures to compare are the ratios within one round: they hold on a noisy machine, wall time does not."
)]
pub(super) struct ClusterBenchArgs {
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=16))]
    nodes: u16,
    /// Hosts of the farm
    #[arg(long, value_name = "N", default_value_t = 300)]
    hosts: u32,
    /// Pages of a host
    #[arg(long, value_name = "N", default_value_t = 400)]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    page_bytes: u32,
    /// Each has one crawl, crawls apart and two clusters, in turns; medians are reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Where it all is; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct ClusterReport {
    nodes: u16,
    pages: u64,
    rounds: usize,
    /// Medians over the rounds.
    crawl_us_per_page: f64,
    /// Of as many crawls as there are nodes.
    apart_us_per_page: f64,
    /// Of nodes without and with copies, over the crawls of the same round.
    without_copies: Ratio,
    with_copies: Ratio,
    every_round: Vec<Round>,
}

#[derive(Serialize, Clone, Copy)]
struct Ratio {
    us_per_page: f64,
    /// Over crawls apart.
    ratio: f64,
    least: f64,
    most: f64,
    /// Over one crawl.
    ratio_to_one: f64,
    /// CPU of the threads that speak with peers, of all nodes and per page.
    peers_us_per_page: f64,
    /// CPU of a node that has nothing to do, in microseconds a second.
    idle_us_per_second: f64,
    /// URLs that nodes told each other, over the pages.
    urls_per_page: f64,
}

#[derive(Serialize, Clone, Copy)]
struct Round {
    crawl_us_per_page: f64,
    apart_us_per_page: f64,
    without_copies: Measured,
    with_copies: Measured,
}

/// What the nodes of one run used together.
#[derive(Serialize, Clone, Copy)]
struct Measured {
    us_per_page: f64,
    peers_us_per_page: f64,
    idle_us_per_second: f64,
    urls_per_page: f64,
    seconds: f64,
}

/// A cluster that has not come together or come on for so long will not.
const PATIENCE: Duration = Duration::from_secs(300);
const IDLE: Duration = Duration::from_secs(5);
/// Each look costs the nodes something, too.
const LOOK: Duration = Duration::from_millis(250);

impl ClusterBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        let stage = Stage::passing(self.data.as_deref())?;
        let figures = [("--hosts", self.hosts), ("--pages", self.pages), ("--page-bytes", self.page_bytes)];
        let farm = stage.farm(&figures, &[])?;
        let pages = u64::from(self.hosts) * u64::from(self.pages);
        let rounds = self.rounds.max(1);
        let mut every_round = Vec::new();
        for round in 0..rounds {
            // What goes first in one round goes last in the next.
            let mut order = [0, 1, 2, 3];
            order.rotate_left(round % 4);
            let (mut crawl, mut apart, mut clusters) = (f64::NAN, f64::NAN, [None; 2]);
            for side in order {
                match side {
                    0 => crawl = self.crawl(&stage, &farm, pages)?,
                    1 => apart = self.crawls_apart(&stage, &farm, pages)?,
                    side => clusters[side - 2] = Some(self.cluster(&stage, &farm, pages, side == 3)?),
                }
            }
            let [Some(without_copies), Some(with_copies)] = clusters else { continue };
            let (crawl_us_per_page, apart_us_per_page) = (crawl, apart);
            every_round.push(Round { crawl_us_per_page, apart_us_per_page, without_copies, with_copies });
        }
        let report = ClusterReport {
            nodes: self.nodes,
            pages,
            rounds,
            crawl_us_per_page: median(every_round.iter().map(|round| round.crawl_us_per_page)),
            apart_us_per_page: median(every_round.iter().map(|round| round.apart_us_per_page)),
            without_copies: Ratio::of(&every_round, |round| round.without_copies),
            with_copies: Ratio::of(&every_round, |round| round.with_copies),
            every_round,
        };
        self.record.tell(&report, ClusterReport::text)
    }

    /// CPU per page of one crawl.
    fn crawl(&self, stage: &Stage, farm: &FarmProcess, pages: u64) -> Result<f64, Failure> {
        let before = children_us();
        CrawlProcess::new(stage, farm, &farm.seeds_file, 0.0, "auto")?.run_whole(pages)?;
        Ok((children_us() - before) / pages as f64)
    }

    /// CPU per page of as many crawls at once as there are nodes, each with its part of the hosts.
    fn crawls_apart(&self, stage: &Stage, farm: &FarmProcess, pages: u64) -> Result<f64, Failure> {
        let seeds = std::fs::read_to_string(&farm.seeds_file)?;
        let seeds: Vec<&str> = seeds.lines().collect();
        let before = children_us();
        let mut crawls = Vec::new();
        for (number, part) in seeds.chunks(seeds.len().div_ceil(self.nodes.into()).max(1)).enumerate() {
            let file = stage.dir.join(format!("seeds{number}"));
            std::fs::write(&file, part.join("\n") + "\n")?;
            let name = format!("crawl{number}");
            let mut crawl = CrawlProcess::named(&name, stage, farm, &file, (0.0, "auto"))?;
            let _ = std::fs::remove_dir_all(&crawl.data);
            crawls.push(crawl.start()?);
        }
        let mut brought = 0;
        for crawl in crawls {
            brought += CrawlProcess::read(&crawl.wait_with_output()?)?.fetches.success;
        }
        if brought != pages {
            return Err(Failure::CannotRun(format!("the crawls apart brought {brought} of {pages} pages")));
        }
        Ok((children_us() - before) / pages as f64)
    }

    fn cluster(
        &self,
        stage: &Stage,
        farm: &FarmProcess,
        pages: u64,
        copies: bool,
    ) -> Result<Measured, Failure> {
        let dir = stage.dir.join("cluster");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        let ended_before = children_us();
        let mut nodes: Vec<Player> = Vec::new();
        let mut first = String::new();
        for number in 1..=self.nodes {
            let address = free_address()?;
            nodes.push(self.node((number, &address, &first), stage, farm, (&dir, copies))?);
            if number == 1 {
                first = address;
            }
            // The first makes the key that the others join by.
            wait(&mut nodes, |views| {
                views.iter().all(|view| view.as_ref().is_some_and(|view| view.node > 0))
            })?;
        }
        let count = usize::from(self.nodes);
        let has_shares = |view: &ClusterView| {
            view.members().filter(|node| node.linked && node.partitions > 0).count() == count
                && (!copies || view.copy.as_ref().is_some_and(|copy| copy.in_step))
        };
        wait(&mut nodes, |views| views.iter().flatten().filter(|view| has_shares(view)).count() == count)?;
        let (idle_from, begun) = (used_us(&nodes), Instant::now());
        std::thread::sleep(IDLE);
        let idle_us = (used_us(&nodes) - idle_from) / count as f64 / begun.elapsed().as_secs_f64();
        let (from, peers_from, begun) = (used_us(&nodes), peers_us(&nodes), Instant::now());
        let add =
            ["cluster", "add-seeds", &farm.seeds_file.display().to_string(), "--data"].map(String::from);
        let mut add_seeds = Command::new(std::env::current_exe()?);
        add_seeds.args(add).arg(&nodes[0].data).stdout(Stdio::null());
        let seeds_from = children_us();
        if !add_seeds.status()?.success() {
            return Err(Failure::CannotRun("the nodes did not take the seeds".to_string()));
        }
        let seeds_us = children_us() - seeds_from;
        let has_all = |views: &[Option<ClusterView>]| {
            let told = views.iter().flatten().filter_map(|view| {
                let here = view.nodes.iter().find(|node| node.number == view.node)?;
                here.told.as_ref().map(|told| told.pages)
            });
            told.sum::<u64>() >= pages
        };
        let views = wait(&mut nodes, has_all)?;
        // The copies of the last pages are on their way.
        let views = match copies {
            true => wait(&mut nodes, |views| {
                views.iter().flatten().all(|view| view.copy.as_ref().is_some_and(|copy| copy.in_step))
            })?,
            false => views,
        };
        let (peers_us, seconds) = (peers_us(&nodes) - peers_from, begun.elapsed().as_secs_f64());
        nodes.iter_mut().for_each(Player::stop);
        let cpu_us = children_us() - ended_before - seeds_us - from;
        let urls: u64 = views.iter().flatten().map(|view| view.received).sum();
        Ok(Measured {
            us_per_page: cpu_us / pages as f64,
            peers_us_per_page: peers_us / pages as f64,
            idle_us_per_second: idle_us,
            urls_per_page: urls as f64 / pages as f64,
            seconds,
        })
    }

    fn node(
        &self,
        (number, address, first): (u16, &str, &str),
        stage: &Stage,
        farm: &FarmProcess,
        (dir, copies): (&Path, bool),
    ) -> Result<Player, Failure> {
        let name = format!("node{number}");
        let [data, hosts, core, key] = [
            dir.join(&name).display().to_string(),
            farm.hosts_file.display().to_string(),
            stage.core.to_string(),
            dir.join("node1/cluster.key").display().to_string(),
        ];
        let copies = if copies { "1" } else { "0" };
        let who = ["node", "--data", &data, "--listen", address, "--cores", &core, "--copies", copies];
        let how = ["--hosts-file", &hosts, "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"];
        let first = match number {
            1 => vec!["--spread", "host"],
            _ => vec!["--join", first, "--key", &key],
        };
        let args = [&who[..], &how, &first].concat();
        crate::commands::shared::on_cores(&[stage.core], || Player::start(&name, dir, &args))?
    }
}

/// CPU of all of them, in microseconds.
fn used_us(nodes: &[Player]) -> f64 {
    nodes.iter().filter_map(|node| ProcessSample::of(node.pid())).map(|sample| sample.cpu_us as f64).sum()
}

/// Of that, the threads that speak with peers.
fn peers_us(nodes: &[Player]) -> f64 {
    nodes.iter().map(|node| threads_us(node.pid(), &["peers", "links"]) as f64).sum()
}

/// Waits until what the nodes tell is so.
fn wait(
    nodes: &mut [Player],
    is_so: impl Fn(&[Option<ClusterView>]) -> bool,
) -> Result<Vec<Option<ClusterView>>, Failure> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let mut views = Vec::new();
        for node in nodes.iter_mut() {
            node.ask()?;
            views.push(AskedNode::at(&node.data).ok().and_then(|asked| asked.try_cluster()));
        }
        if is_so(&views) {
            return Ok(views);
        }
        std::thread::sleep(LOOK);
    }
    Err(Failure::CannotRun(format!("the nodes did not come on within {} s", PATIENCE.as_secs())))
}

impl Ratio {
    fn of(rounds: &[Round], side: impl Fn(&Round) -> Measured) -> Ratio {
        let ratios = || rounds.iter().map(|round| side(round).us_per_page / round.apart_us_per_page);
        let to_one = rounds.iter().map(|round| side(round).us_per_page / round.crawl_us_per_page);
        Ratio {
            us_per_page: median(rounds.iter().map(|round| side(round).us_per_page)),
            ratio: median(ratios()),
            least: ratios().fold(f64::INFINITY, f64::min),
            most: ratios().fold(0.0, f64::max),
            ratio_to_one: median(to_one),
            peers_us_per_page: median(rounds.iter().map(|round| side(round).peers_us_per_page)),
            idle_us_per_second: median(rounds.iter().map(|round| side(round).idle_us_per_second)),
            urls_per_page: median(rounds.iter().map(|round| side(round).urls_per_page)),
        }
    }

    fn line(&self, what: &str) -> String {
        let Ratio { us_per_page, peers_us_per_page, ratio, least, most, ratio_to_one, .. } = self;
        let Ratio { idle_us_per_second, urls_per_page, .. } = self;
        format!(
            "{what:<26} {us_per_page:>7.1}  {ratio:>5.3} ({least:.3} to {most:.3})  {ratio_to_one:>6.3}  {peers_us_per_page:>8.2}  {urls_per_page:>6.3}  {idle_us_per_second:>8.0}\n"
        )
    }
}

impl ClusterReport {
    fn text(&self) -> String {
        let ClusterReport { nodes, pages, rounds, crawl_us_per_page, apart_us_per_page, .. } = self;
        let apart = format!("{nodes} crawls apart");
        let mut text = format!(
            "{pages} pages, {rounds} rounds, all processes on one core\n\n\
             {:<26} {:>7}  {:<23}  {:>6}  {:>8}  {:>6}  {:>8}\n\
             {:<26} {crawl_us_per_page:>7.1}\n\
             {apart:<26} {apart_us_per_page:>7.1}\n",
            "", "CPU us", "of crawls apart", "of one", "peers us", "URLs", "idle us", "one crawl"
        );
        text += &self.without_copies.line(&format!("{nodes} nodes without copies"));
        text += &self.with_copies.line(&format!("{nodes} nodes with copies"));
        text + "\nCPU per page, and of it what speaks with peers; URLs that nodes told each other, per page; CPU of an idle node, per second\n"
    }
}
