use super::Failure;
use super::bench_index::IndexBenchArgs;
use super::bench_long::LongArgs;
use super::bench_parse::ParseBenchArgs;
use super::bench_queues::QueuesArgs;
use super::bench_record::RecordArgs;
use super::bench_slow::SlowArgs;
use super::bench_store::StoreBenchArgs;
use super::bench_tls::TlsArgs;
use super::child_farm::ChildFarm;
use super::machine::{cores, on_cores};
use super::report::CrawlReport;
use crate::farm::host_addr;
use clap::{Args, Subcommand};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Crawl a farm, each in a process and on a core of its own, and print pages/s per core and CPU µs per page
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  nephila bench --rounds 5 --record bench/runs/my-machine.json\n\nWhere wrk is installed it asks the same farm for a page of the same size between the rounds, on the crawl's core.\nThe figures to compare are CPU per page and per request: they hold on a noisy machine, wall time does not."
)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Option<BenchWhat>,
    /// Hosts of the farm: as many connections are kept alive
    #[arg(long, value_name = "N", default_value_t = 64)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pages: u32,
    #[arg(long, value_name = "N", default_value_t = 10_000)]
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
    /// Where the crawl stores; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// What else can be measured.
#[derive(Subcommand)]
enum BenchWhat {
    Queues(QueuesArgs),
    Index(IndexBenchArgs),
    Parse(ParseBenchArgs),
    Tls(TlsArgs),
    Slow(SlowArgs),
    Long(LongArgs),
    Store(StoreBenchArgs),
}

/// What a bench measured.
#[derive(Serialize)]
struct BenchReport {
    command: String,
    machine: Machine,
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
    wrk: Option<WrkReport>,
    /// CPU of the whole crawl per page over wrk's per request: the median over the rounds, each with its own wrk.
    ratio_to_wrk: Option<f64>,
    every_round: Vec<(f64, Option<f64>)>,
}

#[derive(Serialize)]
pub(super) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
}

#[derive(Serialize, Clone, Copy)]
struct WrkReport {
    requests_per_second: f64,
    cpu_us_per_request: f64,
}

impl BenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            Some(BenchWhat::Queues(queues)) => return queues.run(),
            Some(BenchWhat::Index(index)) => return index.run(),
            Some(BenchWhat::Parse(parse)) => return parse.run(),
            Some(BenchWhat::Tls(tls)) => return tls.run(),
            Some(BenchWhat::Slow(slow)) => return slow.run(),
            Some(BenchWhat::Long(long)) => return long.run(),
            Some(BenchWhat::Store(store)) => return store.run(),
            None => {}
        }
        let all = cores();
        let (crawl_core, farm_core) = (all[0], all[all.len() - 1]);
        let data = self
            .data
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("nephila-bench-{}", std::process::id())));
        std::fs::create_dir_all(&data)
            .map_err(|e| Failure::CannotRun(format!("cannot use {}: {e}", data.display())))?;
        let report = self.measure(crawl_core, farm_core, &data);
        let _ = std::fs::remove_dir_all(&data);
        let report = report?;
        self.record.tell(&report, |report| report.text())
    }

    fn measure(&self, crawl_core: usize, farm_core: usize, data: &Path) -> Result<BenchReport, Failure> {
        let mut flags: Vec<String> = Vec::new();
        for (flag, value) in [
            ("--hosts", u64::from(self.hosts)),
            ("--pages", u64::from(self.pages)),
            ("--page-bytes", u64::from(self.page_bytes)),
        ] {
            flags.extend([flag.to_string(), value.to_string()]);
        }
        if self.close {
            flags.push("--close".to_string());
        }
        let farm = ChildFarm::start(&flags, &[farm_core], data)?;
        let has_wrk =
            Command::new("wrk").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
        let mut crawls = Vec::new();
        let mut wrks = Vec::new();
        for round in 0..self.rounds.max(1) {
            crawls.push(self.crawl(&farm, crawl_core, &data.join(format!("round-{round}")))?);
            if has_wrk {
                wrks.push(self.wrk(&farm, crawl_core)?);
            }
        }
        let every_round: Vec<(f64, Option<f64>)> = crawls
            .iter()
            .enumerate()
            .map(|(round, crawl)| (crawl.cpu_us_per_page, wrks.get(round).map(|wrk| wrk.cpu_us_per_request)))
            .collect();
        // A machine that is slow for a while is slow for both halves of a round.
        let mut ratios: Vec<f64> =
            every_round.iter().filter_map(|(crawl, wrk)| Some(crawl / (*wrk)?)).collect();
        ratios.sort_by(f64::total_cmp);
        crawls.sort_by(|a, b| a.cpu_us_per_page.total_cmp(&b.cpu_us_per_page));
        wrks.sort_by(|a, b| a.cpu_us_per_request.total_cmp(&b.cpu_us_per_request));
        let crawl = &crawls[crawls.len() / 2];
        let wrk = wrks.get(wrks.len() / 2).copied();
        Ok(BenchReport {
            command: command_line(),
            machine: machine(),
            hosts: self.hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            keep_alive: !self.close,
            rounds: crawls.len(),
            driver: crawl.driver.clone(),
            pages_per_second_per_core: crawl.pages_per_second,
            cpu_us_per_page: crawl.cpu_us_per_page,
            compression: crawl.bytes as f64 / crawl.stored_bytes.max(1) as f64,
            fetch_p50_ms: crawl.fetch_ms.p50,
            fetch_p99_ms: crawl.fetch_ms.p99,
            syscalls_per_page: crawl.syscalls_per_page,
            wrk,
            ratio_to_wrk: ratios.get(ratios.len() / 2).copied(),
            every_round,
        })
    }

    /// A whole crawl of the farm with all its threads on one core.
    fn crawl(&self, farm: &ChildFarm, core: usize, data: &Path) -> Result<CrawlReport, Failure> {
        let program = std::env::current_exe().map_err(Failure::cannot_run)?;
        let mut command = Command::new(program);
        command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"]);
        command.args(["--cores", &core.to_string(), "--driver", &self.driver]);
        command
            .arg("--seeds")
            .arg(&farm.seeds_file)
            .arg("--hosts-file")
            .arg(&farm.hosts_file)
            .arg("--data")
            .arg(data);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let output = on_cores(&[core], || command.output())?.map_err(Failure::cannot_run)?;
        let _ = std::fs::remove_dir_all(data);
        let report: CrawlReport = serde_json::from_slice(&output.stdout)
            .map_err(|_| Failure::CannotRun(format!("the crawl failed with {}", output.status)))?;
        let wanted = u64::from(self.hosts) * u64::from(self.pages);
        if report.success != wanted {
            return Err(Failure::CannotRun(format!(
                "the crawl brought {} of {wanted} pages",
                report.success
            )));
        }
        Ok(report)
    }

    fn wrk(&self, farm: &ChildFarm, core: usize) -> Result<WrkReport, Failure> {
        let url =
            format!("http://{}:{}/p/{}.html", host_addr(0), farm.port, self.pages.saturating_sub(1).max(1));
        let connections = self.hosts.min(1_000).to_string();
        let duration = format!("{}s", self.wrk_seconds.max(1));
        let mut command = Command::new("wrk");
        command.args(["-t1", "-c", &connections, "-d", &duration, &url]).stdin(Stdio::null());
        let before = children_cpu_us();
        let output = on_cores(&[core], || command.output())?.map_err(Failure::cannot_run)?;
        let cpu_us = children_cpu_us() - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let number_before =
            |mark: &str| text.lines().find_map(|line| line.split_once(mark)?.0.trim().parse::<f64>().ok());
        let rate = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("Requests/sec:")?.trim().parse::<f64>().ok());
        match (number_before(" requests in"), rate) {
            (Some(requests), Some(rate)) if requests > 0.0 => {
                Ok(WrkReport { requests_per_second: rate, cpu_us_per_request: cpu_us as f64 / requests })
            }
            _ => Err(Failure::CannotRun(format!("cannot read what wrk said: {}", text.trim()))),
        }
    }
}

impl BenchReport {
    fn text(&self) -> String {
        let mut text = format!(
            "{} hosts x {} pages of {} bytes, {}, driver {}, median of {} rounds\n\n",
            self.hosts,
            self.pages,
            self.page_bytes,
            if self.keep_alive { "kept alive" } else { "a connection a page" },
            self.driver,
            self.rounds
        );
        text += &format!("  pages/s per core  {:>9.0}\n", self.pages_per_second_per_core);
        text += &format!(
            "  CPU µs per page   {:>9.1}   (schedule, fetch, parse, links, LZ4, store)\n",
            self.cpu_us_per_page
        );
        text += &format!(
            "  compression {:.2}:1, fetch p50 {:.2} ms, p99 {:.2} ms, {:.2} system calls of the shard per page\n",
            self.compression, self.fetch_p50_ms, self.fetch_p99_ms, self.syscalls_per_page
        );
        match (&self.wrk, self.ratio_to_wrk) {
            (Some(wrk), Some(ratio)) => {
                text += &format!(
                    "\n  wrk, same farm, same core: {:.0} requests/s, {:.1} µs CPU per request (it keeps nothing)\n",
                    wrk.requests_per_second, wrk.cpu_us_per_request
                );
                text += &format!("  a crawled page costs {ratio:.2} x a wrk request\n");
            }
            _ => text += "\n  wrk is not installed: nothing to compare with (Debian package wrk)\n",
        }
        text
    }
}

pub(super) fn children_cpu_us() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
        .unwrap_or(0)
}

pub(super) fn command_line() -> String {
    std::env::args().skip(1).fold("nephila".to_string(), |line, arg| format!("{line} {arg}"))
}

pub(super) fn machine() -> Machine {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        cpu: cpu.unwrap_or("unknown").to_string(),
        cores: cores().len(),
        kernel: kernel.trim().to_string(),
    }
}

/// The value in the middle; of none there is none to ask for.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
