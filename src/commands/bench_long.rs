use super::Failure;
use super::bench::{Machine, command_line, machine};
use super::bench_long_course::{Course, page_times};
use super::bench_record::RecordArgs;
use super::child_farm::ChildFarm;
use super::machine::{cores, on_cores};
use super::process_sample::ProcessSample;
use super::report::CrawlReport;
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Crawl a farm of very many hosts to its end, and print memory and pace along the way
///
/// Memory is printed at a tenth, half and all of the pages, the pace for every tenth of them: a crawl that lasts must not
/// grow, and must not get slower.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench long --hosts 20000\n\nThe crawl runs on the first core, the farm on the last. Pages are counted from the crawl's log and memory is sampled\nfrom outside, so neither costs it anything. Mapped segments are memory of files; what must stay flat is the anonymous."
)]
pub struct LongArgs {
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 10)]
    pages: u32,
    #[arg(long, value_name = "N", default_value_t = 2_048)]
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
    command: String,
    machine: Machine,
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
const FARM_THREADS: usize = 4;

/// Often enough that a page's moment is known to a five-hundredth of a crawl of ten seconds.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

impl LongArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.hosts == 0 || self.pages == 0 || self.hosts.checked_mul(self.pages).is_none_or(|all| all < 10)
        {
            return Err(Failure::Usage("give ten pages in all, or more (--hosts, --pages)".into()));
        }
        let data = self
            .data
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("nephila-bench-{}", std::process::id())));
        std::fs::create_dir(&data)
            .map_err(|e| Failure::CannotRun(format!("cannot make {}: {e}", data.display())))?;
        let report = self.measure(&data);
        if self.data.is_none() {
            let _ = std::fs::remove_dir_all(&data);
        }
        let report = report?;
        self.record.tell(&report, |report| report.text())
    }

    fn measure(&self, data: &Path) -> Result<LongReport, Failure> {
        let all = cores();
        let (crawl_core, farm_core) = (all[0], all[all.len() - 1]);
        let mut flags: Vec<String> = Vec::new();
        for (flag, value) in
            [("--hosts", self.hosts), ("--pages", self.pages), ("--page-bytes", self.page_bytes)]
        {
            flags.extend([flag.to_string(), value.to_string()]);
        }
        flags.extend(["--threads".to_string(), FARM_THREADS.to_string()]);
        let farm = ChildFarm::start(&flags, &[farm_core], data)?;
        let crawl_data = data.join("crawl");
        let child = self.start_crawl(&farm, crawl_core, &crawl_data)?;
        // Sampling is not to take time from what it samples.
        let (samples, crawl) = on_cores(&[farm_core], || watch(child))??;
        drop(farm);
        let log = File::open(crawl_data.join("crawl.log")).map_err(Failure::cannot_run)?;
        let times = page_times(BufReader::new(log)).map_err(Failure::cannot_run)?;
        let course = Course::new(&times, &samples)
            .ok_or_else(|| Failure::CannotRun(format!("the crawl brought {} pages", times.len())))?;
        Ok(LongReport {
            command: command_line(),
            machine: machine(),
            hosts: self.hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            req_host_per_sec: self.req_host_per_sec,
            course,
            crawl,
        })
    }

    fn start_crawl(&self, farm: &ChildFarm, core: usize, data: &Path) -> Result<Child, Failure> {
        let program = std::env::current_exe().map_err(Failure::cannot_run)?;
        let mut command = Command::new(program);
        command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8"]);
        command.args(["--req-host-per-sec", &self.req_host_per_sec.to_string()]);
        command.args(["--cores", &core.to_string(), "--driver", &self.driver]);
        command.arg("--seeds").arg(&farm.seeds_file).arg("--hosts-file").arg(&farm.hosts_file);
        command.arg("--data").arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        on_cores(&[core], || command.spawn())?.map_err(Failure::cannot_run)
    }
}

/// Samples a crawl until it ends, and reads its summary.
fn watch(mut child: Child) -> Result<(Vec<ProcessSample>, CrawlReport), Failure> {
    let mut samples = Vec::new();
    // What it prints is one line at its end, which a pipe holds.
    let status = loop {
        samples.extend(ProcessSample::of(child.id()));
        if let Some(status) = child.try_wait().map_err(Failure::cannot_run)? {
            break status;
        }
        std::thread::sleep(SAMPLE_EVERY);
    };
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said).map_err(Failure::cannot_run)?;
    }
    let report = serde_json::from_slice(&said)
        .map_err(|_| Failure::CannotRun(format!("the crawl failed with {status}")))?;
    Ok((samples, report))
}

impl LongReport {
    fn text(&self) -> String {
        let rate = match self.req_host_per_sec {
            0.0 => "no rate".to_string(),
            rate => format!("{rate}/s a host"),
        };
        let wanted = u64::from(self.hosts) * u64::from(self.pages);
        let mut text = format!(
            "{} hosts x {} pages of {} bytes, {rate}: {} of {wanted} pages in {:.0} s, {:.1} µs CPU a page, driver {}\n\n",
            self.hosts,
            self.pages,
            self.page_bytes,
            self.crawl.success,
            self.crawl.seconds,
            self.crawl.cpu_us_per_page,
            self.crawl.driver
        );
        text += &self.course.text();
        text += "\n";
        text += &self.crawl.table();
        text
    }
}
