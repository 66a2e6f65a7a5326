use super::farm_process::FarmProcess;
use super::stage::Stage;
use crate::commands::shared::{CrawlReport, Failure, on_cores};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A whole crawl of a farm in a process of its own, with all its threads on one core, or a few.
pub(super) struct CrawlProcess {
    cores: Vec<usize>,
    /// Its command names them.
    is_placed: bool,
    command: Command,
    pub data: PathBuf,
}

/// Fetches that a shard has room for by default.
const FETCHES_USUAL: u32 = 16_384;

impl CrawlProcess {
    /// Of these seeds, with a rate for every host; 0 = no limit.
    pub fn new(
        stage: &Stage,
        farm: &FarmProcess,
        seeds: &Path,
        req_host_per_sec: f64,
        driver: &str,
    ) -> Result<CrawlProcess, Failure> {
        CrawlProcess::named("crawl", stage, farm, seeds, (req_host_per_sec, driver))
    }

    /// One of several, each with a name that its directory has, too.
    pub fn named(
        name: &str,
        stage: &Stage,
        farm: &FarmProcess,
        seeds: &Path,
        (req_host_per_sec, driver): (f64, &str),
    ) -> Result<CrawlProcess, Failure> {
        let mut crawl = CrawlProcess::of_farm(name, stage, farm, (req_host_per_sec, driver))?;
        crawl.command.arg("--seeds").arg(seeds);
        Ok(crawl)
    }

    /// Of whatever else is named: its command says nothing of pages.
    pub fn of_farm(
        name: &str,
        stage: &Stage,
        farm: &FarmProcess,
        (req_host_per_sec, driver): (f64, &str),
    ) -> Result<CrawlProcess, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--driver", driver]);
        command.args(["--req-host-per-sec", &req_host_per_sec.to_string()]);
        let data = stage.dir.join(name);
        command.arg("--hosts-file").arg(&farm.hosts_file).arg("--data").arg(&data);
        if farm.is_tls {
            command.arg("--ca-file").arg(&farm.ca_file);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CrawlProcess { cores: vec![stage.core], is_placed: false, command, data })
    }

    /// Of one site, from this page on, over so many connections and without a pause.
    pub fn of_site(stage: &Stage, url: &str, connections: u8) -> Result<CrawlProcess, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        let data = stage.dir.join("crawl");
        command.args(["crawl", url, "--json", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"]);
        command.args(["--req-host-concurrent", &connections.to_string()]);
        command.arg("--data").arg(&data);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CrawlProcess { cores: vec![stage.core], is_placed: false, command, data })
    }

    /// With a shard on each of these cores.
    pub fn on(self, cores: Vec<usize>) -> CrawlProcess {
        CrawlProcess { cores, ..self }
    }

    /// With room for so many fetches at once, if that is more than usual.
    pub fn with_fetches(mut self, fetches: u32) -> CrawlProcess {
        if fetches > FETCHES_USUAL {
            self.command.args(["--fetches-max", &fetches.to_string()]);
        }
        self
    }

    /// Stops it after this many seconds.
    pub fn for_seconds(self, seconds: u64) -> CrawlProcess {
        self.with(&["--max-seconds", &seconds.to_string()])
    }

    pub fn with(mut self, flags: &[&str]) -> CrawlProcess {
        self.command.args(flags);
        self
    }

    pub fn start(&mut self) -> Result<Child, Failure> {
        if !std::mem::replace(&mut self.is_placed, true) {
            let listed: Vec<String> = self.cores.iter().map(usize::to_string).collect();
            self.command.args(["--cores", &listed.join(",")]);
        }
        Ok(on_cores(&self.cores, || self.command.spawn())??)
    }

    /// Starts it with nothing stored. What it says in the end can be read.
    pub fn start_anew(&mut self) -> Result<Child, Failure> {
        let _ = std::fs::remove_dir_all(&self.data);
        self.start_heard()
    }

    fn start_heard(&mut self) -> Result<Child, Failure> {
        self.command.stderr(Stdio::piped());
        self.start()
    }

    /// Runs it to its end. What it stored stays until the next.
    pub fn run(&mut self) -> Result<CrawlReport, Failure> {
        let output = self.start_anew()?.wait_with_output()?;
        CrawlProcess::read(&output)
    }

    /// Runs it to its end on what is stored already.
    pub fn run_on(&mut self) -> Result<CrawlReport, Failure> {
        let output = self.start_heard()?.wait_with_output()?;
        CrawlProcess::read(&output)
    }

    /// The summary of a crawl that has ended.
    pub fn read(output: &Output) -> Result<CrawlReport, Failure> {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let reason = stderr.lines().last().map_or(String::new(), |line| format!(": {line}"));
        serde_json::from_slice(&output.stdout)
            .map_err(|_| Failure::CannotRun(format!("the crawl failed with {}{reason}", output.status)))
    }

    /// Runs it to its end, which must bring this many pages.
    pub fn run_whole(&mut self, pages: u64) -> Result<CrawlReport, Failure> {
        let report = self.run()?;
        match report.fetches.success == pages {
            true => Ok(report),
            false => Err(Failure::CannotRun(format!(
                "the crawl brought {} of {pages} pages",
                report.fetches.success
            ))),
        }
    }
}
