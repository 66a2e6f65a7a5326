use super::cpu::thread_us;
use super::crawl_process::CrawlProcess;
use super::farm_process::FarmProcess;
use super::record::RecordArgs;
use super::rounds::median_by;
use super::stage::{PeerRun, Stage, is_installed};
use crate::commands::shared::{Failure, on_cores};
use crate::config::size;
use crate::farm::{host_addr, host_name};
use crate::proto::tls::{TlsClient, TlsSettings, TlsVersion};
use clap::Args;
use serde::Serialize;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
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
pub(super) struct TlsArgs {
    /// Hosts of the farm
    #[arg(long, value_name = "N", default_value_t = 64)]
    hosts: u32,
    /// Pages per host, for the crawls
    #[arg(long, value_name = "N", default_value_t = 300)]
    pages: u32,
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
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
struct TlsReport {
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

type Round = (Cost, Option<Cost>);

impl TlsArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.hosts == 0 || self.pages < 2 {
            return Err(Failure::Usage("give at least one host with two pages (--hosts, --pages)".into()));
        }
        let stage = Stage::passing(self.data.as_deref())?;
        let rounds = self.rounds.max(1);
        let (mut full, mut resumed) = (Vec::new(), Vec::new());
        let (mut keep_alive, mut close) = (Vec::new(), Vec::new());
        let farm = self.farm(&stage, &["--tls"])?;
        for _ in 0..rounds {
            full.push(self.handshakes(&stage, &farm, 0, "-new")?);
            resumed.push(self.handshakes(&stage, &farm, self.hosts as usize, "-reuse")?);
            if !self.no_crawl {
                keep_alive.push(self.pages(&stage, &farm)?);
            }
        }
        drop(farm);
        if !self.no_crawl {
            let farm = self.farm(&stage, &["--tls", "--close"])?;
            for _ in 0..rounds {
                close.push(self.pages(&stage, &farm)?);
            }
        }
        let report = TlsReport {
            hosts: self.hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            rounds,
            full: Pair::of(&full).expect("there is a round"),
            resumed: Pair::of(&resumed).expect("there is a round"),
            keep_alive: Pair::of(&keep_alive),
            close: Pair::of(&close),
        };
        self.record.tell(&report, TlsReport::text)
    }

    fn farm(&self, stage: &Stage, switches: &[&str]) -> Result<FarmProcess, Failure> {
        let figures = [("--hosts", self.hosts), ("--pages", self.pages), ("--page-bytes", self.page_bytes)];
        stage.farm(&figures, switches)
    }

    fn handshakes(
        &self,
        stage: &Stage,
        farm: &FarmProcess,
        sessions_max: usize,
        flag: &str,
    ) -> Result<Round, Failure> {
        let ours = on_cores(&[stage.core], || self.visits(farm, sessions_max))??;
        let theirs = match is_installed("openssl", "version") {
            true => Some(self.openssl(stage, farm, flag)?),
            false => None,
        };
        Ok((ours, theirs))
    }

    /// One host after the other, by a thread that does nothing else.
    fn visits(&self, farm: &FarmProcess, sessions_max: usize) -> Result<Cost, Failure> {
        let roots_pem = Some(std::fs::read(&farm.ca_file)?);
        let client = TlsClient::new(&TlsSettings { roots_pem, insecure: false, sessions_max })?;
        let mut visitor = Visitor::default();
        // A client that resumes has been there before.
        for host in 0..(sessions_max as u32).min(self.hosts) {
            visitor.visit(&client, host, farm.port)?;
        }
        let (begun, cpu_before) = (Instant::now(), thread_us());
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
        let (visits, cpu_us) = (f64::from(visits), thread_us() - cpu_before);
        Ok(Cost { per_second: visits / begun.elapsed().as_secs_f64(), cpu_us: cpu_us / visits })
    }

    fn openssl(&self, stage: &Stage, farm: &FarmProcess, flag: &str) -> Result<Cost, Failure> {
        let mut command = Command::new("openssl");
        command.args(["s_time", "-tls1_3", "-verify", "3", flag, "-www", "/robots.txt"]);
        command.args(["-time", &self.seconds.max(1).to_string(), "-CAfile"]).arg(&farm.ca_file);
        command.arg("-connect").arg(format!("{}:{}", host_addr(0), farm.port));
        let ran = stage.peer(command)?;
        let count = ran.number(|line| Some(line.split_once(" connections in ")?.0));
        count
            .filter(|count| *count > 0.0)
            .map(|count| Cost::of(&ran, count))
            .ok_or_else(|| ran.unread("openssl s_time"))
    }

    /// A whole crawl of the farm with all its threads on one core, and curl for the pages of one host.
    fn pages(&self, stage: &Stage, farm: &FarmProcess) -> Result<Round, Failure> {
        let mut crawl = CrawlProcess::new(stage, farm, &farm.seeds_file, 0.0, &self.driver)?;
        let crawled = crawl.run_whole(u64::from(self.hosts) * u64::from(self.pages))?.fetches;
        let ours = Cost { per_second: crawled.pages_per_second, cpu_us: crawled.cpu_us_per_page };
        let has_curl = is_installed("curl", "--version");
        Ok((ours, if has_curl { Some(self.curl(stage, farm)?) } else { None }))
    }

    fn curl(&self, stage: &Stage, farm: &FarmProcess) -> Result<Cost, Failure> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--output", "/dev/null", "--write-out", "%{http_code}\n"]);
        command.arg("--cacert").arg(&farm.ca_file);
        command.arg(format!("https://{}:{}/p/[1-{}].html", host_addr(0), farm.port, self.pages - 1));
        command.stderr(Stdio::inherit());
        let ran = stage.peer(command)?;
        match ran.text.lines().filter(|line| *line == "200").count() {
            0 => Err(Failure::CannotRun("curl brought no page".into())),
            pages => Ok(Cost::of(&ran, pages as f64)),
        }
    }
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
    /// `None` without a round.
    fn of(rounds: &[Round]) -> Option<Pair> {
        let ratios = rounds.iter().filter_map(|(ours, theirs)| Some(ours.cpu_us / (*theirs)?.cpu_us));
        Some(Pair {
            ours: median_by(rounds.iter().map(|(ours, _)| *ours), |cost| cost.cpu_us)?,
            theirs: median_by(rounds.iter().filter_map(|(_, theirs)| *theirs), |cost| cost.cpu_us),
            ratio: median_by(ratios, |ratio| *ratio),
        })
    }

    fn line(&self, what: &str, them: &str) -> String {
        let Cost { per_second, cpu_us } = self.ours;
        let ours = format!("  {what:<26}{per_second:>9.0}/s {cpu_us:>8.1} µs CPU   {them}");
        match (self.theirs, self.ratio) {
            (Some(theirs), Some(ratio)) => {
                format!("{ours} {:>8.1} µs CPU, ours {ratio:.2} x\n", theirs.cpu_us)
            }
            _ => format!("{ours} is not installed: nothing to compare with\n"),
        }
    }
}

impl Cost {
    fn of(ran: &PeerRun, count: f64) -> Cost {
        Cost { per_second: count / ran.seconds, cpu_us: ran.cpu_us / count }
    }
}

impl TlsReport {
    fn text(&self) -> String {
        let Self { hosts, pages, page_bytes, rounds, .. } = self;
        let mut text = format!(
            "TLS 1.3, one core each side, {hosts} hosts x {pages} pages of {page_bytes} bytes, median of {rounds} rounds\n\n"
        );
        text += &self.full.line("visits, full handshake", "openssl s_time -new");
        text += &self.resumed.line("visits, resumed", "openssl s_time -reuse");
        let line =
            |pair: &Option<Pair>, what| pair.as_ref().map_or(String::new(), |pair| pair.line(what, "curl"));
        text += &line(&self.keep_alive, "crawled pages, kept alive");
        text + &line(&self.close, "crawled pages, a conn each")
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
        let pair = Pair::of(&rounds).unwrap();
        assert_eq!((pair.ours.cpu_us, pair.theirs.unwrap().cpu_us, pair.ratio), (30.0, 20.0, Some(1.0)));
        let alone = Pair::of(&[(cost(10.0), None)]).unwrap();
        assert!(alone.theirs.is_none() && alone.ratio.is_none());
        assert!(alone.line("visits", "openssl").contains("not installed"));
    }
}
