use super::settings::parse_cores;
use super::shared::{Failure, Signals, now_ms, print, say};
use crate::config::{millis, size};
use crate::farm::{Farm, FarmError, FarmOptions, NewsSpec, ReflogSpec, Scenario, SiteSpec};
use crate::proto::reflog::Stamp;
use crate::storage::sync_parent;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Serve a made-up web on loopback: thousands of hosts, every page computed from a seed
#[derive(Args, Clone)]
#[command(
    after_help = "Example:\n  nephila farm --hosts 100 --pages 50 --port 8080 --hosts-file farm.hosts --seeds-file farm.seeds\n  nephila crawl --seeds farm.seeds --hosts-file farm.hosts --allow-net 127.0.0.0/8 \\\n      --req-host-per-sec 20\n\n  nephila farm --tls --ca-out farm.pem --port 8443 --hosts-file farm.hosts\n  curl --cacert farm.pem --resolve h3.farm.test:8443:127.16.0.3 https://h3.farm.test:8443/\n\n  nephila farm --hosts 100 --port 8080 --hosts-file farm.hosts --reflog 100000 --reflog-file spool/farm.reflog\n\n  nephila farm --hosts 10 --feeds 40 --feed-every 30 --port 8080 --hosts-file farm.hosts --feeds-file farm.feeds\n\n  nephila farm --scenario web --hosts 200 --port 8080 --dns-port 8053 --seeds-file farm.seeds\n  nephila crawl --seeds farm.seeds --dns 127.0.0.1:8053 --allow-net 127.0.0.0/8 --data ./web\n\nEvery host has its own address from 127.16.0.0 on; all of them answer on the same port.\nThe certificate of --tls holds every name and the addresses of the first 16 hosts.\nIt runs until it is stopped with Ctrl-C. More: nephila help farm."
)]
pub struct FarmArgs {
    /// A web by its name: web, fast, templates, slow, broken, traps or tls; flags beside it win
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    pub scenario: Option<Scenario>,
    /// How many hosts [default: 1000]
    #[arg(long, value_name = "N")]
    pub hosts: Option<u32>,
    /// More hosts that are slow or broken, each in one of nine ways [default: 0]
    #[arg(long, value_name = "N")]
    pub slow_hosts: Option<u32>,
    /// Pages per host [default: 20]
    #[arg(long, value_name = "N")]
    pub pages: Option<u32>,
    /// Bytes of a document, or the median of them [default: 10000]
    #[arg(long, value_name = "BYTES", value_parser = size::<u32>)]
    pub page_bytes: Option<u32>,
    /// How far lengths are from that median: the sigma of a log-normal draw; 0 = all alike [default: 0]
    #[arg(long, value_name = "F")]
    pub page_sigma: Option<f64>,
    /// Share of a document that is the same on all pages of its host, as menus and footers are [default: 0]
    #[arg(long, value_name = "F")]
    pub frame: Option<f64>,
    /// Links of a page to its own host [default: 20]
    #[arg(long, value_name = "N")]
    pub links: Option<u16>,
    /// Everything is computed from this number [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Time that every answer is held back, or the median of that [default: 0]
    #[arg(long, value_name = "MS", value_parser = millis::<u32>)]
    pub latency_ms: Option<u32>,
    /// How far hosts are from that median: the sigma of a log-normal draw; 0 = all alike [default: 0]
    #[arg(long, value_name = "F")]
    pub latency_sigma: Option<f64>,
    /// Share of pages that redirect, 0 to 1 [default: 0]
    #[arg(long, value_name = "F")]
    pub redirects: Option<f64>,
    /// Share of pages that answer with an error status [default: 0]
    #[arg(long, value_name = "F")]
    pub errors: Option<f64>,
    /// Share of pages that are held back by --slow-ms [default: 0]
    #[arg(long, value_name = "F")]
    pub slow: Option<f64>,
    /// Time that those are held back [default: 2000]
    #[arg(long, value_name = "MS", value_parser = millis::<u32>)]
    pub slow_ms: Option<u32>,
    /// Share of pages whose answer is reset, cut or malformed [default: 0]
    #[arg(long, value_name = "F")]
    pub broken: Option<f64>,
    /// Share of documents sent in chunks [default: 0]
    #[arg(long, value_name = "F")]
    pub chunked: Option<f64>,
    /// Share of documents sent in gzip, to a client that takes it [default: 0]
    #[arg(long, value_name = "F")]
    pub gzip: Option<f64>,
    /// Every host also has what traps crawlers: see nephila help farm
    #[arg(long)]
    pub traps: bool,
    /// Pages per host that robots.txt denies [default: 1]
    #[arg(long, value_name = "N")]
    pub denied: Option<u16>,
    /// Close the connection after every answer
    #[arg(long)]
    pub close: bool,
    /// Seconds of Crawl-delay in every robots.txt
    #[arg(long, value_name = "S")]
    pub crawl_delay: Option<f64>,
    /// Speak TLS 1.3 and 1.2, with a certificate of an authority made for this run
    #[arg(long)]
    pub tls: bool,
    /// Write that authority here as PEM, for crawl --ca-file
    #[arg(long, value_name = "FILE")]
    pub ca_out: Option<PathBuf>,
    /// Port of all hosts; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Tell the addresses of its names on this UDP port of 127.0.0.1, for crawl --dns; 0 takes a free one
    #[arg(long, value_name = "N")]
    pub dns_port: Option<u16>,
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: u16,
    /// Cores for the threads, like 1 or 2-3
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Write names and addresses here, for crawl --hosts-file
    #[arg(long, value_name = "FILE")]
    pub hosts_file: Option<PathBuf>,
    /// Write the first page of every host here, for crawl --seeds
    #[arg(long, value_name = "FILE")]
    pub seeds_file: Option<PathBuf>,
    /// How many feeds, which post stories by the clock; feed n is on host n modulo the hosts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub feeds: u32,
    /// Mean time from one story of a feed to the next, in seconds
    #[arg(long, value_name = "S", default_value_t = 600.0, requires = "feeds")]
    pub feed_every: f64,
    /// Feeds have the habits of real ones: no validators, lying ones, guids and titles that change, relative links
    #[arg(long, requires = "feeds")]
    pub feeds_rough: bool,
    /// Write the URL of every feed here
    #[arg(long, value_name = "FILE", requires = "feeds")]
    pub feeds_file: Option<PathBuf>,
    /// Write a reflog of N records over the pages, the last of them now, to --reflog-file
    #[arg(long, value_name = "N")]
    pub reflog: Option<u64>,
    /// Where to; it takes its name when it is whole, so that a spool of a master will do; gzip by .gz
    #[arg(long, value_name = "FILE", default_value = "farm.reflog", requires = "reflog")]
    pub reflog_file: PathBuf,
    /// Time that its records are spread over
    #[arg(long, value_name = "S", default_value_t = 3_600, requires = "reflog")]
    pub reflog_seconds: u32,
    /// Break records over lines as real files do, and plant unknown and bad ones
    #[arg(long, requires = "reflog")]
    pub reflog_rough: bool,
    /// Stop when stdin is closed, so that a farm does not outlive what started it
    #[arg(long)]
    pub until_stdin_closes: bool,
    /// Print where it listens as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl FarmArgs {
    /// What the scenario says, but for what a flag does.
    pub fn spec(&self) -> SiteSpec {
        let base = self.scenario.map_or_else(SiteSpec::default, Scenario::spec);
        SiteSpec {
            seed: self.seed.unwrap_or(base.seed),
            hosts: self.hosts.unwrap_or(base.hosts),
            slow_hosts: self.slow_hosts.unwrap_or(base.slow_hosts),
            pages: self.pages.unwrap_or(base.pages),
            page_bytes: self.page_bytes.unwrap_or(base.page_bytes),
            page_sigma: self.page_sigma.unwrap_or(base.page_sigma),
            frame: self.frame.unwrap_or(base.frame),
            links: self.links.unwrap_or(base.links),
            cross_links: base.cross_links,
            latency_ms: self.latency_ms.unwrap_or(base.latency_ms),
            latency_sigma: self.latency_sigma.unwrap_or(base.latency_sigma),
            redirects: self.redirects.unwrap_or(base.redirects),
            errors: self.errors.unwrap_or(base.errors),
            slow: self.slow.unwrap_or(base.slow),
            slow_ms: self.slow_ms.unwrap_or(base.slow_ms),
            broken: self.broken.unwrap_or(base.broken),
            chunked: self.chunked.unwrap_or(base.chunked),
            gzip: self.gzip.unwrap_or(base.gzip),
            traps: self.traps || base.traps,
            denied: self.denied.unwrap_or(base.denied),
            close: self.close || base.close,
            crawl_delay_s: self.crawl_delay.or(base.crawl_delay_s),
            tls: self.tls || base.tls,
            news: NewsSpec { feeds: self.feeds, every_s: self.feed_every, rough: self.feeds_rough },
            began_unix_ms: now_ms(),
        }
    }

    pub fn run(self) -> Result<(), Failure> {
        let signals = Signals::take()?;
        let cores = match &self.cores {
            Some(list) => Some(parse_cores(list).map_err(|e| Failure::Usage(format!("--cores {e}")))?),
            None => None,
        };
        let spec = self.spec();
        if self.ca_out.is_some() && !spec.tls {
            let mend = "give --tls or --scenario tls; nephila farm --help";
            return Err(Failure::Usage(format!("--ca-out is for a farm that speaks TLS ({mend})")));
        }
        let (port, threads, dns_port) = (self.port, self.threads, self.dns_port);
        let farm = Farm::start(FarmOptions { spec: spec.clone(), port, threads, cores, dns_port });
        let farm = farm.map_err(|e| match e {
            FarmError::Spec(_) | FarmError::Threads(_) => Failure::usage(e),
            _ => Failure::cannot_run(e),
        })?;
        let written = |path: &PathBuf, done: std::io::Result<()>| {
            done.map_err(|e| Failure::CannotRun(format!("cannot write {}: {e}", path.display())))
        };
        if let Some(path) = &self.hosts_file {
            written(path, farm.write_hosts_file(path))?;
        }
        if let (Some(path), Some(pem)) = (&self.ca_out, farm.ca_pem()) {
            written(path, std::fs::write(path, pem))?;
        }
        if let Some(path) = &self.seeds_file {
            written(path, write_urls(path, farm.seeds()))?;
        }
        if let Some(path) = &self.feeds_file {
            written(path, write_urls(path, farm.feed_urls()))?;
        }
        if let Some(records) = self.reflog {
            written(&self.reflog_file, self.write_reflog(&farm, records))?;
        }
        print(&match self.json {
            true => format!("{}\n", self.said(&farm)),
            false => self.line(&farm),
        })?;
        if self.until_stdin_closes {
            signals.until_stdin_closes()?;
        }
        signals.wait_for_stop();
        let served = farm.stop();
        if !self.until_stdin_closes {
            let (requests, connections) = (served.requests, served.connections);
            say(format_args!("farm: {requests} requests on {connections} connections"));
        }
        Ok(())
    }

    /// Where it listens, and what it is.
    fn said(&self, farm: &Farm) -> serde_json::Value {
        let spec = farm.site().spec();
        serde_json::json!({
            "port": farm.port(),
            "first": farm.url(0, 0),
            "hosts": spec.hosts,
            "dns": farm.name_server(),
            "scenario": self.scenario,
            "settings": spec,
        })
    }

    fn line(&self, farm: &Farm) -> String {
        let SiteSpec { hosts, pages, .. } = farm.site().spec();
        let name = self.scenario.map_or(String::new(), |scenario| format!(" ({})", scenario.name()));
        let (port, first) = (farm.port(), farm.url(0, 0));
        let feed = farm.feed_urls().next().map_or(String::new(), |feed| format!(", the first feed {feed}"));
        let dns = farm.name_server().map_or(String::new(), |addr| format!("; names by --dns {addr}"));
        format!(
            "farm of {hosts} hosts x {pages} pages{name} on port {port}; the first page is {first}{feed}{dns}\n"
        )
    }

    /// Under a name that nobody looks at until it is whole.
    fn write_reflog(&self, farm: &Farm, records: u64) -> io::Result<()> {
        let name = self.reflog_file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        let hidden = self.reflog_file.with_file_name(hidden);
        let from = Stamp::from_s(((now_ms() / 1_000) as u32).saturating_sub(self.reflog_seconds));
        let (seconds, rough) = (self.reflog_seconds, self.reflog_rough);
        let spec = ReflogSpec { seed: farm.site().spec().seed, records, urls: 0, from, seconds, rough };
        let file = File::create(&hidden)?;
        match self.reflog_file.extension().is_some_and(|ending| ending == "gz") {
            true => {
                let mut packed = GzEncoder::new(&file, Compression::fast());
                farm.write_reflog(spec, &mut packed)?;
                packed.finish()?;
            }
            false => drop(farm.write_reflog(spec, &mut &file)?),
        }
        file.sync_all()?;
        fs::rename(&hidden, &self.reflog_file)?;
        sync_parent(&self.reflog_file)
    }
}

impl ValueEnum for Scenario {
    fn value_variants<'a>() -> &'a [Scenario] {
        Scenario::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

/// One a line.
fn write_urls(path: &Path, urls: impl Iterator<Item = String>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for url in urls {
        writeln!(file, "{url}")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        farm: FarmArgs,
    }

    fn spec(flags: &[&str]) -> SiteSpec {
        let typed = Typed::try_parse_from([&["farm"], flags].concat()).unwrap();
        SiteSpec { began_unix_ms: 0, ..typed.farm.spec() }
    }

    #[test]
    fn a_scenario_is_its_values_and_flags_win() {
        assert_eq!(spec(&[]), SiteSpec::default());
        for scenario in Scenario::ALL {
            assert_eq!(spec(&["--scenario", scenario.name()]), scenario.spec());
        }
        let flags = ["--gzip", "0", "--scenario", "web", "--hosts", "7", "--latency-sigma", "0.5", "--close"];
        let expected =
            SiteSpec { gzip: 0.0, hosts: 7, latency_sigma: 0.5, close: true, ..Scenario::Web.spec() };
        assert_eq!(spec(&flags), expected);
        assert!(Typed::try_parse_from(["farm", "--scenario", "wep"]).is_err());
    }

    /// A flag without a value of its own takes that of the scenario: what its help calls the default is the spec's.
    #[test]
    fn help_tells_the_defaults_there_are() {
        let told = serde_json::to_value(SiteSpec::default()).unwrap();
        let mut count = 0;
        for arg in Typed::command().get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let Some((_, default)) = help.split_once("[default: ") else { continue };
            let default: f64 = default.trim_end_matches(']').parse().unwrap();
            assert_eq!(told[arg.get_id().as_str()].as_f64(), Some(default), "{}", arg.get_id());
            count += 1;
        }
        assert_eq!(count, 18);
    }

    #[test]
    fn help_names_every_scenario() {
        let command = Typed::command();
        let scenario = command.get_arguments().find(|arg| arg.get_id() == "scenario").unwrap();
        let help = scenario.get_help().unwrap().to_string();
        let names = help.split_once(": ").unwrap().1.split_once(';').unwrap().0;
        let known: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.name()).collect();
        assert_eq!(
            names.split([',', ' ']).filter(|word| !["", "or"].contains(word)).collect::<Vec<_>>(),
            known
        );
    }
}
