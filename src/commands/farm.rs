use super::settings::parse_cores;
use super::shared::{Failure, Signals, now_ms, print, say};
use crate::config::{millis, size};
use crate::farm::{Farm, FarmError, FarmOptions, NewsSpec, ReflogSpec, SiteSpec};
use crate::proto::reflog::Stamp;
use crate::storage::sync_parent;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Serve a made-up web on loopback: thousands of hosts, every page computed from a seed
#[derive(Args, Clone)]
#[command(
    after_help = "Example:\n  nephila farm --hosts 100 --pages 50 --port 8080 --hosts-file farm.hosts --seeds-file farm.seeds\n  nephila crawl --seeds farm.seeds --hosts-file farm.hosts --allow-net 127.0.0.0/8 \\\n      --req-host-per-sec 20\n\n  nephila farm --tls --ca-out farm.pem --port 8443 --hosts-file farm.hosts\n  curl --cacert farm.pem --resolve h3.farm.test:8443:127.16.0.3 https://h3.farm.test:8443/\n\n  nephila farm --hosts 100 --port 8080 --hosts-file farm.hosts --reflog 100000 --reflog-file spool/farm.reflog\n\n  nephila farm --hosts 10 --feeds 40 --feed-every 30 --port 8080 --hosts-file farm.hosts --feeds-file farm.feeds\n\nEvery host has its own address from 127.16.0.0 on; all of them answer on the same port.\nThe certificate of --tls holds every name and the addresses of the first 16 hosts.\nIt runs until it is stopped with Ctrl-C."
)]
pub struct FarmArgs {
    /// How many hosts
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub hosts: u32,
    /// More hosts that are slow or broken, each in one of nine ways
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub slow_hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub pages: u32,
    /// Bytes of a document
    #[arg(long, value_name = "BYTES", default_value_t = 10_000, value_parser = size::<u32>)]
    pub page_bytes: u32,
    /// Share of a document that is the same on all pages of its host, as menus and footers are
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub frame: f64,
    /// Links of a page to its own host
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub links: u16,
    /// Everything is computed from this number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Time that every answer is held back
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = millis::<u32>)]
    pub latency_ms: u32,
    /// Share of pages that redirect, 0 to 1
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub redirects: f64,
    /// Share of pages that answer with an error status
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub errors: f64,
    /// Share of pages that are held back by --slow-ms
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub slow: f64,
    /// Time that those are held back
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = millis::<u32>)]
    pub slow_ms: u32,
    /// Share of pages whose answer is reset, cut or malformed
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub broken: f64,
    /// Share of documents sent in chunks
    #[arg(long, value_name = "F", default_value_t = 0.0)]
    pub chunked: f64,
    /// Pages per host that robots.txt denies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub denied: u16,
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
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca_out: Option<PathBuf>,
    /// Port of all hosts; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
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
    pub fn spec(&self) -> SiteSpec {
        SiteSpec {
            seed: self.seed,
            hosts: self.hosts,
            slow_hosts: self.slow_hosts,
            pages: self.pages,
            page_bytes: self.page_bytes,
            links: self.links,
            cross_links: true,
            latency_ms: self.latency_ms,
            redirects: self.redirects,
            errors: self.errors,
            slow: self.slow,
            slow_ms: self.slow_ms,
            broken: self.broken,
            chunked: self.chunked,
            frame: self.frame,
            denied: self.denied,
            close: self.close,
            crawl_delay_s: self.crawl_delay,
            tls: self.tls,
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
        let options = FarmOptions { spec: self.spec(), port: self.port, threads: self.threads, cores };
        let farm = Farm::start(options).map_err(|e| match e {
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
            let seeds: String = farm.seeds().map(|seed| format!("{seed}\n")).collect();
            written(path, std::fs::write(path, seeds))?;
        }
        if let Some(path) = &self.feeds_file {
            let feeds: String = farm.feed_urls().map(|feed| format!("{feed}\n")).collect();
            written(path, std::fs::write(path, feeds))?;
        }
        if let Some(records) = self.reflog {
            written(&self.reflog_file, self.write_reflog(&farm, records))?;
        }
        let (hosts, pages, port, first) = (self.hosts, self.pages, farm.port(), farm.url(0, 0));
        print(&match self.json {
            true => format!("{}\n", serde_json::json!({"port": port, "first": first, "hosts": hosts})),
            false => {
                let feed =
                    farm.feed_urls().next().map_or(String::new(), |feed| format!(", the first feed {feed}"));
                format!(
                    "farm of {hosts} hosts x {pages} pages on port {port}; the first page is {first}{feed}\n"
                )
            }
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
    /// Under a name that nobody looks at until it is whole.
    fn write_reflog(&self, farm: &Farm, records: u64) -> io::Result<()> {
        let name = self.reflog_file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        let hidden = self.reflog_file.with_file_name(hidden);
        let from = Stamp::from_s(((now_ms() / 1_000) as u32).saturating_sub(self.reflog_seconds));
        let (seconds, rough) = (self.reflog_seconds, self.reflog_rough);
        let spec = ReflogSpec { seed: self.seed, records, urls: 0, from, seconds, rough };
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
