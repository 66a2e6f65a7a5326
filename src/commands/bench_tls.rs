use super::Failure;
use super::bench::{Machine, children_cpu_us, command_line, machine};
use super::bench_record::RecordArgs;
use super::child_farm::ChildFarm;
use super::machine::{cores, on_cores};
use super::report::CrawlReport;
use crate::farm::{host_addr, host_name};
use crate::proto::tls::{TlsClient, TlsSettings, TlsVersion};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Measure TLS against a farm on a core of its own: handshakes, full and resumed, and what a page costs over https
///
/// A handshake is a whole short visit: connect, agree on keys, ask for /robots.txt by HTTP/1.0, read it and the
/// tickets, close. openssl s_time does the same against the same farm in the same round.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench tls --rounds 5 --record bench/runs/my-machine-tls.json\n\nThe figures to compare are CPU µs: they hold on a noisy machine, wall time does not."
)]
pub struct TlsArgs {
    /// Hosts of the farm
    #[arg(long, value_name = "N", default_value_t = 64)]
    hosts: u32,
    /// Pages per host, for the crawls
    #[arg(long, value_name = "N", default_value_t = 300)]
    pages: u32,
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    page_bytes: u32,
    /// Seconds of handshakes in a round, of each kind and of each client
    #[arg(long, value_name = "N", default_value_t = 3)]
    seconds: u32,
    /// Times to measure; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// The crawl's driver
    #[arg(long, value_name = "NAME", default_value = "auto")]
    driver: String,
    /// Handshakes only, no crawls
    #[arg(long)]
    no_crawl: bool,
    /// Where the crawl stores; removed afterwards [default: a directory of its own under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct BenchTlsReport {
    command: String,
    machine: Machine,
    hosts: u32,
    pages: u32,
    page_bytes: u32,
    rounds: usize,
    /// TLS 1.3, a chain of one ECDSA P-256 certificate, verified.
    full: Pair,
    resumed: Pair,
    /// Pages over connections that are kept, and with a connection for each; curl does the same for one host.
    keep_alive: Option<Pair>,
    close: Option<Pair>,
}

/// The same work done by two: medians of the rounds, and of the ratios within each round.
#[derive(Serialize)]
struct Pair {
    ours: Cost,
    theirs: Option<Cost>,
    /// CPU of ours over theirs.
    ratio: Option<f64>,
}

#[derive(Serialize, Clone, Copy)]
struct Cost {
    per_second: f64,
    cpu_us: f64,
}

impl TlsArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.hosts == 0 || self.pages < 2 {
            return Err(Failure::Usage("give at least one host with two pages (--hosts, --pages)".into()));
        }
        let data = self.data.clone().unwrap_or_else(|| {
            std::env::temp_dir().join(format!("nephila-bench-tls-{}", std::process::id()))
        });
        std::fs::create_dir_all(&data)
            .map_err(|e| Failure::CannotRun(format!("cannot use {}: {e}", data.display())))?;
        let report = self.measure(&data);
        let _ = std::fs::remove_dir_all(&data);
        let report = report?;
        self.record.tell(&report, |report| report.text())
    }

    fn measure(&self, data: &Path) -> Result<BenchTlsReport, Failure> {
        let all = cores();
        let (core, farm_core) = (all[0], all[all.len() - 1]);
        let farm = self.farm(farm_core, data, false)?;
        let has_openssl = installed("openssl", "version");
        let has_curl = installed("curl", "--version");
        let (mut full, mut resumed) = (Vec::new(), Vec::new());
        let (mut keep_alive, mut close) = (Vec::new(), Vec::new());
        for round in 0..self.rounds.max(1) {
            for (rounds, sessions_max, flag) in
                [(&mut full, 0, "-new"), (&mut resumed, self.hosts as usize, "-reuse")]
            {
                let ours = on_cores(&[core], || self.visits(&farm, sessions_max))??;
                let theirs = match has_openssl {
                    true => Some(self.openssl(&farm, core, flag)?),
                    false => None,
                };
                rounds.push((ours, theirs));
            }
            if !self.no_crawl {
                keep_alive.push(self.pages(&farm, core, &data.join(format!("kept-{round}")), has_curl)?);
            }
        }
        drop(farm);
        if !self.no_crawl {
            let farm = self.farm(farm_core, data, true)?;
            for round in 0..self.rounds.max(1) {
                close.push(self.pages(&farm, core, &data.join(format!("close-{round}")), has_curl)?);
            }
        }
        Ok(BenchTlsReport {
            command: command_line(),
            machine: machine(),
            hosts: self.hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            rounds: self.rounds.max(1),
            full: Pair::of(&full),
            resumed: Pair::of(&resumed),
            keep_alive: (!keep_alive.is_empty()).then(|| Pair::of(&keep_alive)),
            close: (!close.is_empty()).then(|| Pair::of(&close)),
        })
    }

    fn farm(&self, core: usize, data: &Path, close: bool) -> Result<ChildFarm, Failure> {
        let mut flags = vec!["--tls".to_string()];
        for (flag, value) in
            [("--hosts", self.hosts), ("--pages", self.pages), ("--page-bytes", self.page_bytes)]
        {
            flags.extend([flag.to_string(), value.to_string()]);
        }
        if close {
            flags.push("--close".to_string());
        }
        ChildFarm::start(&flags, &[core], data)
    }

    /// One host after the other, by a thread that does nothing else.
    fn visits(&self, farm: &ChildFarm, sessions_max: usize) -> Result<Cost, Failure> {
        let roots_pem = Some(std::fs::read(&farm.ca_file).map_err(Failure::cannot_run)?);
        let client = TlsClient::new(&TlsSettings { roots_pem, insecure: false, sessions_max })
            .map_err(Failure::cannot_run)?;
        let mut visitor = Visitor::default();
        // Whoever resumes has been there before.
        for host in 0..(sessions_max as u32).min(self.hosts) {
            visitor.visit(&client, host, farm.port).map_err(Failure::cannot_run)?;
        }
        let (begun, cpu_before) = (Instant::now(), cpu_us(UsageWho::RUSAGE_THREAD));
        let mut visits = 0;
        while begun.elapsed() < Duration::from_secs(u64::from(self.seconds.max(1))) {
            let resumed = visitor
                .visit(&client, visits % self.hosts, farm.port)
                .map_err(|e| Failure::CannotRun(format!("a visit to the farm failed: {e}")))?;
            if resumed != (sessions_max > 0) {
                return Err(Failure::CannotRun("a handshake of the wrong kind: full or resumed".into()));
            }
            visits += 1;
        }
        Ok(Cost {
            per_second: f64::from(visits) / begun.elapsed().as_secs_f64(),
            cpu_us: (cpu_us(UsageWho::RUSAGE_THREAD) - cpu_before) as f64 / f64::from(visits),
        })
    }

    fn openssl(&self, farm: &ChildFarm, core: usize, flag: &str) -> Result<Cost, Failure> {
        let mut command = Command::new("openssl");
        command.args(["s_time", "-tls1_3", "-verify", "3", flag, "-www", "/robots.txt"]);
        command.args(["-time", &self.seconds.max(1).to_string(), "-CAfile"]).arg(&farm.ca_file);
        command.arg("-connect").arg(format!("{}:{}", host_addr(0), farm.port));
        let (text, cpu_us, seconds) = child(command, core)?;
        let number = |line: &str| line.split_once(" connections in ")?.0.trim().parse::<f64>().ok();
        match text.lines().find_map(number) {
            Some(count) if count > 0.0 => {
                Ok(Cost { per_second: count / seconds, cpu_us: cpu_us as f64 / count })
            }
            _ => Err(Failure::CannotRun(format!("cannot read what openssl s_time said: {}", text.trim()))),
        }
    }

    /// A whole crawl of the farm with all its threads on one core, and curl for the pages of one host.
    fn pages(
        &self,
        farm: &ChildFarm,
        core: usize,
        data: &Path,
        has_curl: bool,
    ) -> Result<(Cost, Option<Cost>), Failure> {
        let program = std::env::current_exe().map_err(Failure::cannot_run)?;
        let mut command = Command::new(program);
        command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"]);
        command.args(["--cores", &core.to_string(), "--driver", &self.driver]);
        command.arg("--ca-file").arg(&farm.ca_file).arg("--seeds").arg(&farm.seeds_file);
        command.arg("--hosts-file").arg(&farm.hosts_file).arg("--data").arg(data);
        let (text, _, _) = child(command, core)?;
        let _ = std::fs::remove_dir_all(data);
        let report: CrawlReport = serde_json::from_str(&text)
            .map_err(|_| Failure::CannotRun("the crawl over https failed; its reason is above".into()))?;
        let wanted = u64::from(self.hosts) * u64::from(self.pages);
        if report.success != wanted {
            return Err(Failure::CannotRun(format!(
                "the crawl brought {} of {wanted} pages",
                report.success
            )));
        }
        let ours = Cost { per_second: report.pages_per_second, cpu_us: report.cpu_us_per_page };
        Ok((ours, if has_curl { Some(self.curl(farm, core)?) } else { None }))
    }

    fn curl(&self, farm: &ChildFarm, core: usize) -> Result<Cost, Failure> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--output", "/dev/null", "--write-out", "%{http_code}\n"]);
        command.arg("--cacert").arg(&farm.ca_file);
        command.arg(format!("https://{}:{}/p/[1-{}].html", host_addr(0), farm.port, self.pages - 1));
        let (text, cpu_us, seconds) = child(command, core)?;
        match text.lines().filter(|line| *line == "200").count() {
            0 => Err(Failure::CannotRun("curl brought no page".into())),
            pages => Ok(Cost { per_second: pages as f64 / seconds, cpu_us: cpu_us as f64 / pages as f64 }),
        }
    }
}

/// What a child said, and its CPU time and seconds.
fn child(mut command: Command, core: usize) -> Result<(String, i64, f64), Failure> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    // Its dots and depth of verification are for people.
    if command.get_program() == "openssl" {
        command.stderr(Stdio::null());
    }
    let (begun, before) = (Instant::now(), children_cpu_us());
    let output = on_cores(&[core], || command.output())?.map_err(Failure::cannot_run)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((text, children_cpu_us() - before, begun.elapsed().as_secs_f64()))
}

fn installed(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn cpu_us(who: UsageWho) -> i64 {
    getrusage(who)
        .map(|usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
        .unwrap_or(0)
}

/// Our client over a blocking socket, and the buffers it uses again.
#[derive(Default)]
struct Visitor {
    out: Vec<u8>,
    plain: Vec<u8>,
}

impl Visitor {
    /// One short visit. True if the session was resumed.
    fn visit(&mut self, client: &TlsClient, host: u32, port: u16) -> std::io::Result<bool> {
        let mut wire = [0; 16 << 10];
        let mut stream = TcpStream::connect((host_addr(host), port))?;
        stream.set_nodelay(true)?;
        let mut tls = client.open(&host_name(host)).map_err(std::io::Error::other)?;
        self.plain.clear();
        let mut asked = false;
        loop {
            self.out.clear();
            tls.take_output(&mut self.out);
            if !asked && !tls.is_handshaking() {
                tls.send(b"GET /robots.txt HTTP/1.0\r\n\r\n", &mut self.out);
                asked = true;
            }
            stream.write_all(&self.out)?;
            let bytes = stream.read(&mut wire)?;
            tls.receive(&wire[..bytes], &mut self.plain).map_err(std::io::Error::other)?;
            if bytes == 0 || tls.peer_closed() {
                break;
            }
        }
        let facts = tls.facts();
        if facts.version != Some(TlsVersion::Tls13) || !self.plain.starts_with(b"HTTP/1.1 200 ") {
            return Err(std::io::Error::other("no TLS 1.3, or no /robots.txt"));
        }
        Ok(facts.resumed)
    }
}

impl Pair {
    fn of(rounds: &[(Cost, Option<Cost>)]) -> Pair {
        let ratios = rounds.iter().filter_map(|(ours, theirs)| Some(ours.cpu_us / (*theirs)?.cpu_us));
        let theirs: Vec<Cost> = rounds.iter().filter_map(|(_, theirs)| *theirs).collect();
        let ours: Vec<Cost> = rounds.iter().map(|(ours, _)| *ours).collect();
        Pair {
            ours: Cost::median(ours).expect("there is at least one round"),
            theirs: Cost::median(theirs),
            ratio: median(ratios.collect()),
        }
    }

    fn line(&self, what: &str, them: &str) -> String {
        let mut line =
            format!("  {what:<26}{:>9.0}/s {:>8.1} µs CPU", self.ours.per_second, self.ours.cpu_us);
        match (self.theirs, self.ratio) {
            (Some(theirs), Some(ratio)) => {
                line += &format!("   {them} {:>8.1} µs CPU, ours {ratio:.2} x\n", theirs.cpu_us);
            }
            _ => line += &format!("   {them} is not installed: nothing to compare with\n"),
        }
        line
    }
}

impl Cost {
    fn median(mut costs: Vec<Cost>) -> Option<Cost> {
        costs.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
        costs.get(costs.len() / 2).copied()
    }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

impl BenchTlsReport {
    fn text(&self) -> String {
        let mut text = format!(
            "TLS 1.3, one core each side, {} hosts x {} pages of {} bytes, median of {} rounds\n\n",
            self.hosts, self.pages, self.page_bytes, self.rounds
        );
        text += &self.full.line("visits, full handshake", "openssl s_time -new");
        text += &self.resumed.line("visits, resumed", "openssl s_time -reuse");
        if let Some(pair) = &self.keep_alive {
            text += &pair.line("crawled pages, kept alive", "curl");
        }
        if let Some(pair) = &self.close {
            text += &pair.line("crawled pages, a conn each", "curl");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_told_by_the_medians_and_the_ratio_of_each_round() {
        let cost = |cpu_us| Cost { per_second: 1e6 / cpu_us, cpu_us };
        let rounds =
            [(cost(10.0), Some(cost(20.0))), (cost(40.0), Some(cost(40.0))), (cost(30.0), Some(cost(20.0)))];
        let pair = Pair::of(&rounds);
        assert_eq!((pair.ours.cpu_us, pair.theirs.unwrap().cpu_us, pair.ratio), (30.0, 20.0, Some(1.0)));
        let alone = Pair::of(&[(cost(10.0), None)]);
        assert!(alone.theirs.is_none() && alone.ratio.is_none());
        assert!(alone.line("visits", "openssl").contains("not installed"));
    }
}
