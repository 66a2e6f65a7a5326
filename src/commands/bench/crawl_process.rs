use super::farm_process::FarmProcess;
use super::stage::Stage;
use crate::commands::shared::{CrawlReport, Failure, on_cores};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A whole crawl of a farm in a process of its own, with all its threads on one core.
pub(super) struct CrawlProcess<'a> {
    stage: &'a Stage,
    command: Command,
    pub data: PathBuf,
}

impl<'a> CrawlProcess<'a> {
    /// Of these seeds, with a rate for every host; 0 = no limit.
    pub fn new(
        stage: &'a Stage,
        farm: &FarmProcess,
        seeds: &Path,
        req_host_per_sec: f64,
        driver: &str,
    ) -> Result<CrawlProcess<'a>, Failure> {
        CrawlProcess::named("crawl", stage, farm, seeds, (req_host_per_sec, driver))
    }

    /// One of several, each with a name that its directory has, too.
    pub fn named(
        name: &str,
        stage: &'a Stage,
        farm: &FarmProcess,
        seeds: &Path,
        (req_host_per_sec, driver): (f64, &str),
    ) -> Result<CrawlProcess<'a>, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--driver", driver]);
        command.args([
            "--req-host-per-sec",
            &req_host_per_sec.to_string(),
            "--cores",
            &stage.core.to_string(),
        ]);
        let data = stage.dir.join(name);
        command.arg("--seeds").arg(seeds).arg("--hosts-file").arg(&farm.hosts_file).arg("--data").arg(&data);
        if farm.is_tls {
            command.arg("--ca-file").arg(&farm.ca_file);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CrawlProcess { stage, command, data })
    }

    /// Of one site, from this page on, over so many connections and without a pause.
    pub fn of_site(stage: &'a Stage, url: &str, connections: u8) -> Result<CrawlProcess<'a>, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        let data = stage.dir.join("crawl");
        command.args(["crawl", url, "--json", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"]);
        command.args(["--req-host-concurrent", &connections.to_string()]);
        command.args(["--cores", &stage.core.to_string()]).arg("--data").arg(&data);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CrawlProcess { stage, command, data })
    }

    /// Stops it after this many seconds.
    pub fn for_seconds(mut self, seconds: u64) -> CrawlProcess<'a> {
        self.command.args(["--max-seconds", &seconds.to_string()]);
        self
    }

    pub fn start(&mut self) -> Result<Child, Failure> {
        Ok(on_cores(&[self.stage.core], || self.command.spawn())??)
    }

    /// Starts it with nothing stored. What it says in the end can be read.
    pub fn start_anew(&mut self) -> Result<Child, Failure> {
        let _ = std::fs::remove_dir_all(&self.data);
        self.command.stderr(Stdio::piped());
        self.start()
    }

    /// Runs it to its end. What it stored stays until the next.
    pub fn run(&mut self) -> Result<CrawlReport, Failure> {
        let output = self.start_anew()?.wait_with_output()?;
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
