use super::course::{Course, page_times};
use super::crawl_process::CrawlProcess;
use super::record::RecordArgs;
use super::sampler::ProcessSample;
use super::slow::rate_text;
use super::stage::Stage;
use crate::commands::shared::{CrawlReport, Failure, Fetches, LogParts, on_cores};
use crate::config::size;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Crawl a farm of very many hosts to its end, and print memory and pace along the way
///
/// Memory is printed at a tenth, half and all of the pages, the pace for every tenth of them: a crawl that lasts must not
/// grow, and must not get slower.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench long --hosts 20000\n\nThe crawl runs on the first core, the farm on the last. Pages are counted from the crawl's log and memory is sampled\nfrom outside, so neither costs it anything. Mapped segments are memory of files; what must stay flat is the anonymous."
)]
pub(super) struct LongArgs {
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 10)]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 2_048, value_parser = size::<u32>)]
    page_bytes: u32,
    /// Requests per second and host; 0 = no limit
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    req_host_per_sec: f64,
    /// The crawl's driver
    #[arg(long, value_name = "NAME", default_value = "auto")]
    driver: String,
    /// Where the crawl stores, a directory that is not there yet; it is kept [default: one under the system's temporary
    /// one, removed afterwards]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct LongReport {
    hosts: u32,
    pages: u32,
    page_bytes: u32,
    /// 0 = no limit.
    req_host_per_sec: f64,
    #[serde(flatten)]
    course: Course,
    crawl: CrawlReport,
}

/// Each has a queue of its own for connections to be accepted, of 4,096 by default. The crawl may ask for 16,384 at once,
/// and one that finds no room in the queue waits for seconds.
const FARM_THREADS: u32 = 4;

/// Often enough that a page's moment is known to a five-hundredth of a crawl of ten seconds.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

impl LongArgs {
    pub fn run(self) -> Result<(), Failure> {
        let LongArgs { hosts, pages, page_bytes, req_host_per_sec, .. } = self;
        if hosts == 0 || pages == 0 || hosts.checked_mul(pages).is_none_or(|all| all < 10) {
            return Err(Failure::Usage("give ten pages in all, or more (--hosts, --pages)".into()));
        }
        let stage = Stage::lasting(self.data.as_deref())?;
        let figures = [
            ("--hosts", hosts),
            ("--pages", pages),
            ("--page-bytes", page_bytes),
            ("--threads", FARM_THREADS),
        ];
        let farm = stage.farm(&figures, &[])?;
        let mut process = CrawlProcess::new(&stage, &farm, &farm.seeds_file, req_host_per_sec, &self.driver)?;
        let child = process.start()?;
        // Sampling is not to take time from what it samples.
        let (samples, output) =
            on_cores(&[stage.farm_core], || ProcessSample::until_end(child, SAMPLE_EVERY))??;
        drop(farm);
        let crawl = CrawlProcess::read(&output)?;
        let (parts, mut times) = (LogParts::of(&process.data)?, Vec::new());
        for piece in parts.pieces() {
            times.extend(page_times(parts.read(&piece)?.1)?);
        }
        let course = Course::new(&times, &samples)
            .ok_or_else(|| Failure::CannotRun(format!("the crawl brought {} pages", times.len())))?;
        let report = LongReport { hosts, pages, page_bytes, req_host_per_sec, course, crawl };
        self.record.tell(&report, LongReport::text)
    }
}

impl LongReport {
    fn text(&self) -> String {
        let Self { hosts, pages, page_bytes, crawl, course, .. } = self;
        let (rate, wanted) = (rate_text(self.req_host_per_sec), u64::from(*hosts) * u64::from(*pages));
        let Fetches { success, seconds, cpu_us_per_page, driver, .. } = &crawl.fetches;
        let head = format!(
            "{hosts} hosts x {pages} pages of {page_bytes} bytes, {rate}: {success} of {wanted} pages in {seconds:.0} s, {cpu_us_per_page:.1} µs CPU a page, driver {driver}\n"
        );
        format!("{head}\n{}\n{}", course.text(), crawl.this_run())
    }
}
