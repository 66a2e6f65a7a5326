use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use super::stage::Stage;
use crate::commands::shared::{Failure, cores};
use crate::config::size;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Crawl a farm in two ways by turns, and compare CPU per page: without keeping connections, over https, with more
/// shards, connections or politeness
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench ways https polite --rounds 5\n\nThe crawl has the first core, the farm the last; two shards have both, and the farm shares the second with them.\nA page of hosts that are met for the first time has its share of their connection, robots.txt and handshake."
)]
pub(super) struct WaysArgs {
    /// Which of them [default: all]
    #[arg(value_enum)]
    ways: Vec<Way>,
    /// Pages of a crawl that is kept small: of 64 hosts, or of one visit to each host
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    pages: u32,
    /// Hosts of the crawls with very many connections
    #[arg(long, value_name = "N", default_value_t = 19_000)]
    connections: u32,
    /// Hosts of the polite crawl, asked once a second each
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    polite_hosts: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    page_bytes: u32,
    /// Pairs of crawls; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// The crawl's driver
    #[arg(long, value_name = "NAME", default_value = "auto")]
    driver: String,
    /// Where the crawls store; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// How a crawl differs from the usual one.
#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// A connection for each page, over one that is kept
    Close,
    /// Over https, over http; connections are kept
    Https,
    /// One page of each host by https, by http: connection, full handshake, robots.txt, page
    Visits,
    /// Two shards, over one
    Shards,
    /// As many connections open as --connections says, over 64
    Connections,
    /// Every host once a second, over flat out
    Polite,
}

/// What a crawl is of.
#[derive(Clone, Copy)]
struct Kind {
    hosts: u32,
    pages: u32,
    switches: &'static [&'static str],
    shards: usize,
    req_host_per_sec: f64,
}

#[derive(Serialize)]
struct WaysReport {
    page_bytes: u32,
    rounds: usize,
    ways: Vec<Compared>,
}

/// CPU in microseconds of a page, medians of the rounds; the ratio is the median of theirs.
#[derive(Serialize)]
struct Compared {
    way: Way,
    usual: String,
    other: String,
    usual_us_per_page: f64,
    other_us_per_page: f64,
    ratio: f64,
    every_round: Vec<(f64, f64)>,
}

/// Pages of a host, where hosts are many: what the first visit costs is a small part of it.
const PAGES_OF_MANY: u32 = 12;
const USUAL_HOSTS: u32 = 64;
/// Each has a queue of its own for connections to be accepted.
const FARM_THREADS: u32 = 4;

impl WaysArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.pages < USUAL_HOSTS || self.connections == 0 || self.polite_hosts == 0 {
            return Err(Failure::Usage(format!(
                "give {USUAL_HOSTS} pages or more, and at least one host (--pages, --connections, --polite-hosts)"
            )));
        }
        let stage = Stage::passing(self.data.as_deref())?;
        let ways = if self.ways.is_empty() { Way::value_variants() } else { &self.ways };
        let ways = ways.iter().map(|way| self.compare(*way, &stage)).collect::<Result<_, _>>()?;
        let report = WaysReport { page_bytes: self.page_bytes, rounds: self.rounds.max(1), ways };
        self.record.tell(&report, WaysReport::text)
    }

    fn compare(&self, way: Way, stage: &Stage) -> Result<Compared, Failure> {
        let kinds = self.kinds(way);
        let farms = [self.farm(stage, 0, kinds[0])?, self.farm(stage, 1, kinds[1])?];
        let mut every_round = Vec::new();
        for round in 0..self.rounds.max(1) {
            every_round.push(in_turns(round, |side| self.crawl(stage, &farms[side], kinds[side]))?);
        }
        let median_of = |figure: fn(&(f64, f64)) -> f64| median(every_round.iter().map(figure));
        Ok(Compared {
            way,
            usual: kinds[0].text(),
            other: kinds[1].text(),
            usual_us_per_page: median_of(|round| round.0),
            other_us_per_page: median_of(|round| round.1),
            ratio: median_of(|round| round.1 / round.0),
            every_round,
        })
    }

    /// The usual crawl, and the other one.
    fn kinds(&self, way: Way) -> [Kind; 2] {
        let usual = Kind {
            hosts: USUAL_HOSTS,
            pages: self.pages / USUAL_HOSTS,
            switches: &[],
            shards: 1,
            req_host_per_sec: 0.0,
        };
        let many = |hosts| Kind { hosts, pages: PAGES_OF_MANY, ..usual };
        match way {
            Way::Close => [usual, Kind { switches: &["--close"], ..usual }],
            Way::Https => [usual, Kind { switches: &["--tls"], ..usual }],
            Way::Visits => {
                let visits = Kind { pages: 1, ..many(self.pages.div_ceil(12)) };
                [visits, Kind { switches: &["--tls"], ..visits }]
            }
            Way::Shards => [usual, Kind { shards: 2, ..usual }],
            Way::Connections => [usual, many(self.connections)],
            Way::Polite => {
                [many(self.polite_hosts), Kind { req_host_per_sec: 1.0, ..many(self.polite_hosts) }]
            }
        }
    }

    fn farm(&self, stage: &Stage, side: usize, kind: Kind) -> Result<FarmProcess, Failure> {
        let dir = stage.dir.join(format!("farm-{side}"));
        std::fs::create_dir_all(&dir)?;
        let figures = [
            ("--hosts", kind.hosts),
            ("--pages", kind.pages),
            ("--page-bytes", self.page_bytes),
            ("--threads", FARM_THREADS),
        ];
        FarmProcess::start(&figures, kind.switches, &[stage.farm_core], &dir)
    }

    fn crawl(&self, stage: &Stage, farm: &FarmProcess, kind: Kind) -> Result<f64, Failure> {
        let mut crawl =
            CrawlProcess::new(stage, farm, &farm.seeds_file, kind.req_host_per_sec, &self.driver)?
                .with_fetches(kind.hosts);
        if kind.shards > 1 {
            crawl = crawl.on(cores().into_iter().take(kind.shards).collect());
        }
        let pages = u64::from(kind.hosts) * u64::from(kind.pages);
        Ok(crawl.run_whole(pages)?.fetches.cpu_us_per_page)
    }
}

impl Kind {
    fn text(&self) -> String {
        let Kind { hosts, pages, switches, shards, req_host_per_sec } = self;
        let mut text = format!("{hosts} hosts x {pages} pages");
        for switch in *switches {
            text += &format!(", {}", switch.trim_start_matches('-'));
        }
        if *shards > 1 {
            text += &format!(", {shards} shards");
        }
        if *req_host_per_sec > 0.0 {
            text += &format!(", {req_host_per_sec}/s each");
        }
        text
    }
}

impl WaysReport {
    fn text(&self) -> String {
        let Self { page_bytes, rounds, .. } = self;
        let mut text = format!("CPU per page of {page_bytes} bytes, median of {rounds} pairs of crawls\n\n");
        for way in &self.ways {
            text += &format!(
                "  {:<42} {:>8.1} µs   {:<32} {:>8.1} µs   {:.2} x\n",
                way.other, way.other_us_per_page, way.usual, way.usual_us_per_page, way.ratio
            );
        }
        text
    }
}
