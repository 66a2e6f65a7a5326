use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::record::RecordArgs;
use super::rounds::{in_turns, median};
use super::stage::Stage;
use crate::commands::shared::{CrawlReport, Failure};
use crate::config::size;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Crawl pages alone and beside feeds that are polled meanwhile, and feeds alone, and compare CPU per page and per poll
///
/// Every feed has been polled before and has no news: each poll is answered 304. A round is a crawl of pages, the same beside
/// the feeds, by turns, and then polls alone, one a second of each feed.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench polls --record bench/runs/my-machine-polls.json\n\nThe crawl has the first core, the farm the last. A crawl of the web polls a feed every five minutes at the most: a\nthousand feeds are asked much more often here."
)]
pub(super) struct PollsArgs {
    /// Feeds beside the pages
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    feeds: u32,
    /// Seconds between two polls of a feed beside the pages
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Pages of a crawl
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    page_bytes: u32,
    /// Polls of a crawl of feeds alone
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    polls: u32,
    /// Feeds of it
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    polled_feeds: u32,
    /// Medians of so many rounds are reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Where the crawls store; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// CPU in microseconds, medians of the rounds; ratios are medians of theirs.
#[derive(Serialize)]
struct PollsReport {
    feeds: u32,
    every_s: u32,
    page_us: f64,
    page_beside_feeds_us: f64,
    /// Of what a page costs beside the feeds, what it costs alone: the pace that a core keeps.
    pace: f64,
    poll_us: f64,
    /// A poll over a page that is crawled alone.
    poll_over_page: f64,
    every_round: Vec<Round>,
}

#[derive(Serialize)]
struct Round {
    page_us: f64,
    page_beside_feeds_us: f64,
    polls_beside: u64,
    poll_us: f64,
}

/// What a crawl did, and its CPU.
struct Crawled {
    pages: u64,
    polls: u64,
    cpu_us: f64,
}

/// Feeds of a farm on a stage.
struct FedFarm {
    farm: FarmProcess,
    feeds_file: PathBuf,
    settings: PathBuf,
}

const HOSTS: u32 = 64;
/// No story is posted while a bench runs.
const NO_NEWS_S: &str = "1000000";
const FARM_THREADS: u32 = 2;

impl PollsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let stage = Stage::passing(self.data.as_deref())?;
        let beside = FedFarm::start(&stage, "beside", (self.feeds, self.every), |figures| {
            figures.extend([("--pages", self.pages / HOSTS + 1), ("--page-bytes", self.page_bytes)]);
        })?;
        let alone = FedFarm::start(&stage, "alone", (self.polled_feeds, 1), |figures| {
            figures.push(("--pages", 1));
        })?;
        let mut every_round = Vec::new();
        for round in 0..self.rounds.max(1) {
            let (pages, both) = in_turns(round, |side| match side {
                0 => self.pages_alone(&stage, &beside),
                _ => beside.polled(&stage, Some(&beside.farm.seeds_file), self.pages),
            })?;
            if both.polls == 0 {
                return Err(Failure::Usage(
                    "the pages were there before a feed was due (more --pages, or a smaller --every)"
                        .to_string(),
                ));
            }
            let polls = alone.polled(&stage, None, self.polls)?;
            every_round.push(Round {
                page_us: pages.per(pages.pages)?,
                page_beside_feeds_us: both.per(both.pages)?,
                polls_beside: both.polls,
                poll_us: polls.per(polls.polls)?,
            });
        }
        let median_of = |figure: fn(&Round) -> f64| median(every_round.iter().map(figure));
        let report = PollsReport {
            feeds: self.feeds,
            every_s: self.every,
            page_us: median_of(|round| round.page_us),
            page_beside_feeds_us: median_of(|round| round.page_beside_feeds_us),
            pace: median_of(|round| round.page_us / round.page_beside_feeds_us),
            poll_us: median_of(|round| round.poll_us),
            poll_over_page: median_of(|round| round.poll_us / round.page_us),
            every_round,
        };
        self.record.tell(&report, PollsReport::text)
    }

    fn pages_alone(&self, stage: &Stage, fed: &FedFarm) -> Result<Crawled, Failure> {
        let crawl = CrawlProcess::new(stage, &fed.farm, &fed.farm.seeds_file, 0.0, "auto")?;
        Ok(Crawled::new(&crawl.with(&["--max-pages", &self.pages.to_string()]).run()?))
    }
}

impl FedFarm {
    /// Starts a farm of so many feeds, which a crawl polls every so many seconds.
    fn start(
        stage: &Stage,
        name: &str,
        (feeds, every_s): (u32, u32),
        more: impl FnOnce(&mut Vec<(&'static str, u32)>),
    ) -> Result<FedFarm, Failure> {
        let dir = stage.dir.join(name);
        std::fs::create_dir_all(&dir)?;
        let [feeds_file, settings] = ["farm.feeds", "feeds.toml"].map(|file| dir.join(file));
        let polls = format!("poll_min = {every_s}\npoll_min_plain = {every_s}\npoll_max = {every_s}\n");
        std::fs::write(&settings, format!("[feeds]\nextract = \"off\"\n{polls}"))?;
        let mut figures = vec![("--hosts", HOSTS), ("--feeds", feeds), ("--threads", FARM_THREADS)];
        more(&mut figures);
        let listed = feeds_file.display().to_string();
        let switches = ["--feeds-file", &listed, "--feed-every", NO_NEWS_S];
        let farm = FarmProcess::start(&figures, &switches, &[stage.farm_core], &dir)?;
        Ok(FedFarm { farm, feeds_file, settings })
    }

    /// Has every feed polled once, its stories fetched, and then so many pages and polls crawled.
    fn polled(&self, stage: &Stage, seeds: Option<&Path>, count: u32) -> Result<Crawled, Failure> {
        self.crawl(stage)?.run()?;
        let mut crawl = self.crawl(stage)?.with(&["--wait", "--max-pages", &count.to_string()]);
        if let Some(seeds) = seeds {
            crawl = crawl.with(&["--seeds", &seeds.display().to_string()]);
        }
        Ok(Crawled::new(&crawl.run_on()?))
    }

    fn crawl(&self, stage: &Stage) -> Result<CrawlProcess, Failure> {
        let [feeds, settings] = [&self.feeds_file, &self.settings].map(|file| file.display().to_string());
        let crawl = CrawlProcess::of_farm("feeds", stage, &self.farm, (0.0, "auto"))?;
        Ok(crawl.with(&["--feeds", &feeds, "--config", &settings]))
    }
}

impl Crawled {
    fn new(report: &CrawlReport) -> Crawled {
        let polls = report.count("not_modified");
        let all = report.fetches.pages;
        Crawled {
            pages: all.saturating_sub(polls),
            polls,
            cpu_us: report.fetches.cpu_us_per_page * all as f64,
        }
    }

    fn per(&self, count: u64) -> Result<f64, Failure> {
        match count {
            0 => Err(Failure::CannotRun("a crawl brought nothing that can be counted".to_string())),
            _ => Ok(self.cpu_us / count as f64),
        }
    }
}

impl PollsReport {
    fn text(&self) -> String {
        let PollsReport { feeds, every_s, page_us, page_beside_feeds_us, pace, poll_us, .. } = self;
        format!(
            "CPU, median of {} rounds\n\n  \
             a page alone                                  {page_us:>8.1} µs\n  \
             a page beside {feeds} feeds, each every {every_s} s {page_beside_feeds_us:>12.1} µs   {pace:.3} of the pace\n  \
             a poll that is answered 304                   {poll_us:>8.1} µs   {:.2} x a page\n",
            self.every_round.len(),
            self.poll_over_page,
        )
    }
}
