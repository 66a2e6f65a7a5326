use super::cpu::thread_us;
use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::lab::LabArgs;
use super::plot::Bar;
use super::record::RecordArgs;
use super::rounds::{median, median_by};
use super::site::SiteBench;
use super::site_peer::SitePeer;
use super::stage::{Stage, WrkRun, is_installed};
use crate::commands::shared::{CrawlReport, Failure, on_cores};
use crate::config::size;
use crate::farm::{Site, SiteSpec, host_addr};
use clap::Args;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use serde::Serialize;
use std::hint::black_box;
use std::path::PathBuf;

/// What is crawled, how often, and where it is told.
#[derive(Args)]
pub(super) struct CrawlBenchArgs {
    /// Hosts of the farm: as many connections are kept alive
    #[arg(long, value_name = "N", default_value_t = 64)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    page_bytes: u32,
    /// A connection per page, not kept alive
    #[arg(long)]
    close: bool,
    /// Times to measure; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// The crawl's driver
    #[arg(long, value_name = "NAME", default_value = "auto")]
    driver: String,
    /// Seconds wrk runs in a round
    #[arg(long, value_name = "N", default_value_t = 3)]
    wrk_seconds: u32,
    /// Crawl this directory of pages instead, which nginx serves, beside wget2
    #[arg(long, value_name = "DIR")]
    site: Option<PathBuf>,
    /// The page of the site to start from
    #[arg(long, value_name = "PATH", default_value = "index.html", requires = "site")]
    start: String,
    /// Connections to the site
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    connections: u8,
    /// Crawl a site that nginx serves beside all peers that are installed; without --site it is one of --pages pages, made up
    #[arg(long)]
    compare: bool,
    /// Where the peers are that bench/peers/setup made
    #[arg(long, value_name = "DIR", default_value = "bench/peers", requires = "compare")]
    peers: PathBuf,
    /// Where the crawl stores; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct CrawlBenchReport {
    hosts: u32,
    pages: u32,
    page_bytes: u32,
    keep_alive: bool,
    rounds: usize,
    driver: String,
    pages_per_second_per_core: f64,
    cpu_us_per_page: f64,
    compression: f64,
    fetch_p50_ms: f64,
    fetch_p99_ms: f64,
    syscalls_per_page: f64,
    /// CPU of lz4_flex alone for a page, into one buffer.
    lz4_us_per_page: f64,
    wrk: Option<WrkRun>,
    /// CPU of the whole crawl per page over wrk's per request: the median over the rounds, each with its own wrk.
    ratio_to_wrk: Option<f64>,
    /// The same over that of a request of wrk and of lz4_flex together: fetched and compressed, and nothing else.
    ratio_to_wrk_and_lz4: Option<f64>,
    every_round: Vec<Round>,
}

/// CPU in microseconds, of a page and of a request.
#[derive(Serialize, Clone, Copy)]
struct Round {
    crawl: f64,
    lz4: f64,
    wrk: Option<f64>,
}

impl CrawlBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.compare || self.site.is_some() {
            return self.site_bench().run(&self.record, &self.lab);
        }
        self.lab.check()?;
        let stage = Stage::passing(self.data.as_deref())?;
        let figures = [("--hosts", self.hosts), ("--pages", self.pages), ("--page-bytes", self.page_bytes)];
        let farm = stage.farm(&figures, if self.close { &["--close"] } else { &[] })?;
        let has_wrk = is_installed("wrk", "-v");
        let wanted = u64::from(self.hosts) * u64::from(self.pages);
        let lz4 = Lz4Alone::new(self.page_bytes)?;
        let (mut crawls, mut wrks, mut every_round) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.rounds.max(1) {
            let mut crawl = CrawlProcess::new(&stage, &farm, &farm.seeds_file, 0.0, &self.driver)?;
            let crawl = crawl.run_whole(wanted)?;
            let wrk = if has_wrk { Some(self.wrk(&stage, &farm)?) } else { None };
            every_round.push(Round {
                crawl: crawl.fetches.cpu_us_per_page,
                lz4: on_cores(&[stage.core], || lz4.page_us())?,
                wrk: wrk.map(|wrk| wrk.cpu_us_per_request),
            });
            crawls.push(crawl);
            wrks.extend(wrk);
        }
        let report = self.report(crawls, wrks, every_round);
        if self.lab.is_wanted() {
            let mut crawl = CrawlProcess::new(&stage, &farm, &farm.seeds_file, 0.0, &self.driver)?;
            let watched = self.lab.watch(&mut crawl, &stage)?;
            self.lab.write(&report.title(), &watched, report.bars())?;
        }
        self.record.tell(&report, CrawlBenchReport::text)
    }

    fn site_bench(&self) -> SiteBench<'_> {
        let (peers, missing) = match self.compare {
            true => SitePeer::all(&self.peers, self.wrk_seconds),
            false => SitePeer::usual(),
        };
        let (pages, page_bytes) = (self.pages, self.page_bytes);
        SiteBench {
            site: self.site.as_deref(),
            made_up: SiteSpec { pages, page_bytes, hosts: 1, cross_links: false, ..SiteSpec::default() },
            start: &self.start,
            connections: self.connections,
            rounds: self.rounds,
            data: self.data.as_deref(),
            peers,
            missing,
        }
    }

    fn report(
        &self,
        crawls: Vec<CrawlReport>,
        wrks: Vec<WrkRun>,
        every_round: Vec<Round>,
    ) -> CrawlBenchReport {
        let ratio = |beside: fn(&Round) -> Option<f64>| {
            median_by(every_round.iter().filter_map(|round| Some(round.crawl / beside(round)?)), |ratio| {
                *ratio
            })
        };
        let crawl = median_by(crawls, |crawl| crawl.fetches.cpu_us_per_page).expect("there is a round");
        CrawlBenchReport {
            hosts: self.hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            keep_alive: !self.close,
            rounds: every_round.len(),
            pages_per_second_per_core: crawl.fetches.pages_per_second,
            cpu_us_per_page: crawl.fetches.cpu_us_per_page,
            compression: crawl.fetches.bytes as f64 / crawl.fetches.stored_bytes.max(1) as f64,
            fetch_p50_ms: crawl.fetch_ms.p50,
            fetch_p99_ms: crawl.fetch_ms.p99,
            syscalls_per_page: crawl.syscalls_per_page,
            driver: crawl.fetches.driver,
            lz4_us_per_page: median(every_round.iter().map(|round| round.lz4)),
            wrk: median_by(wrks, |wrk| wrk.cpu_us_per_request),
            ratio_to_wrk: ratio(|round| round.wrk),
            ratio_to_wrk_and_lz4: ratio(|round| Some(round.wrk? + round.lz4)),
            every_round,
        }
    }

    fn wrk(&self, stage: &Stage, farm: &FarmProcess) -> Result<WrkRun, Failure> {
        let page = self.pages.saturating_sub(1).max(1);
        let url = format!("http://{}:{}/p/{page}.html", host_addr(0), farm.port);
        stage.wrk(&url, self.hosts.min(1_000), self.wrk_seconds)
    }
}

/// The compressor of the store and nothing else, on pages as the farm has them.
struct Lz4Alone {
    pages: Vec<Vec<u8>>,
}

impl Lz4Alone {
    fn new(page_bytes: u32) -> Result<Lz4Alone, Failure> {
        let site = Site::new(SiteSpec { pages: LZ4_PAGES, page_bytes, ..SiteSpec::default() })?;
        Ok(Lz4Alone { pages: (0..LZ4_PAGES).map(|page| site.document(0, page, 80)).collect() })
    }

    fn page_us(&self) -> f64 {
        let mut table = CompressTable::large();
        let longest = self.pages.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = vec![0; get_maximum_output_size(longest)];
        let begun = thread_us();
        for page in self.pages.iter().cycle().take(LZ4_TURNS * self.pages.len()) {
            black_box(compress_into_with_table(page, &mut out, &mut table).unwrap_or(0));
        }
        (thread_us() - begun) / (LZ4_TURNS * self.pages.len()) as f64
    }
}

/// Pages of one turn, which do not fit into the nearest cache, and turns of a round.
const LZ4_PAGES: u32 = 1_000;
const LZ4_TURNS: usize = 20;

impl CrawlBenchReport {
    fn title(&self) -> String {
        let Self { hosts, pages, page_bytes, driver, rounds, .. } = self;
        let kept = if self.keep_alive { "kept alive" } else { "a connection a page" };
        format!(
            "{hosts} hosts x {pages} pages of {page_bytes} bytes, {kept}, driver {driver}, median of {rounds} rounds"
        )
    }

    /// What a page costs, and what parts of it cost alone.
    fn bars(&self) -> Vec<Bar> {
        let bar = |name: &str, value, is_ours| Bar { name: name.to_string(), value, is_ours };
        let wrk = self.wrk.map(|wrk| bar("wrk (keeps nothing)", wrk.cpu_us_per_request, false));
        let ours = bar("nephila, the whole crawl", self.cpu_us_per_page, true);
        std::iter::once(ours).chain(wrk).chain([bar("lz4_flex alone", self.lz4_us_per_page, false)]).collect()
    }

    fn text(&self) -> String {
        let cpu_us_per_page = self.cpu_us_per_page;
        let mut text = self.title() + "\n\n";
        text += &format!("  pages/s per core  {:>9.0}\n", self.pages_per_second_per_core);
        text += &format!(
            "  CPU µs per page   {cpu_us_per_page:>9.1}   (schedule, fetch, parse, links, LZ4, store)\n"
        );
        text += &format!(
            "  compression {:.2}:1, fetch p50 {:.2} ms, p99 {:.2} ms, {:.2} system calls of the shard per page\n",
            self.compression, self.fetch_p50_ms, self.fetch_p99_ms, self.syscalls_per_page
        );
        let (Some(wrk), Some(ratio)) = (&self.wrk, self.ratio_to_wrk) else {
            return text + "\n  wrk is not installed: nothing to compare with (Debian package wrk)\n";
        };
        text += &format!(
            "\n  wrk, same farm, same core: {:.0} requests/s, {:.1} µs CPU per request (it keeps nothing)\n",
            wrk.requests_per_second, wrk.cpu_us_per_request
        );
        let both = self.ratio_to_wrk_and_lz4.unwrap_or_default();
        text + &format!(
            "  a crawled page costs {ratio:.2} x a wrk request, {both:.2} x a wrk request and lz4_flex alone ({:.1} µs a page)\n",
            self.lz4_us_per_page
        )
    }
}
