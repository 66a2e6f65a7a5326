use super::bench::FarmProcess;
use super::crawl::{Attended, Start, crawl};
use super::demo_feeds::FeedsDemo;
use super::demo_master::MasterDemo;
use super::demo_nodes::NodesDemo;
use super::shared::{CrawlReport, Failure, LogArgs, Signals, Verbosity, cores, print, read_urls};
use crate::config::{Config, Rate};
use crate::farm::SiteSpec;
use crate::storage::make_data_directory;
use crate::store_server::Holder;
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Start a farm on loopback, crawl it, and say how to look at what was stored
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila demo --hosts 2000 --req-host-per-sec 0\n  nephila demo --master --hosts 100 --lines 5000\n  nephila demo --nodes 3\n  nephila demo --feeds 40 --seconds 120\n\nWith --master a log of URLs over the farm goes to a master, which deals it to two nodes; it ends when every page\nwas fetched, and with the audit of all three.\n\nWith --nodes a cluster of so many nodes crawls the farm, one process each. URLs go in at one of them, another is killed\non the way and started again; it ends when all is done everywhere, with every page stored once, and with the audit of\nall of them.\n\nWith --feeds the farm has feeds that post stories, and a crawl polls them: each story is shown when it has come, with\nits delay."
)]
pub struct DemoArgs {
    /// Hosts of the farm [default: 1000; with --nodes 200]
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 20)]
    pages: u32,
    /// A master and two nodes: lines of a log go in, pages come out
    #[arg(long)]
    master: bool,
    /// With --master: lines of the log
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "master", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    lines: u32,
    /// So many nodes, one crawl: a cluster in as many processes
    #[arg(long, value_name = "N", conflicts_with_all = ["master", "feeds"], value_parser = clap::value_parser!(u16).range(2..=9))]
    nodes: Option<u16>,
    /// Feeds that post stories by the clock, and a crawl that polls them [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "master", num_args = 0..=1, default_missing_value = "20", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    feeds: Option<u32>,
    /// With --feeds: how long it runs
    #[arg(long, value_name = "S", default_value_t = 60, requires = "feeds", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Requests per second and host; 0 = no limit
    #[arg(long, value_name = "F", default_value_t = 5.0)]
    req_host_per_sec: f64,
    /// The data directory, of the demo's own: a crawl uses ./nephila-data
    #[arg(long, value_name = "DIR", default_value = "./nephila-demo")]
    data: PathBuf,
    #[command(flatten)]
    log: LogArgs,
}

impl DemoArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.log.begin();
        let signals = Signals::take()?;
        let hosts = self.hosts.unwrap_or(if self.nodes.is_some() { 200 } else { 1_000 });
        let spec = SiteSpec { hosts, pages: self.pages, ..SiteSpec::default() };
        spec.check().map_err(Failure::usage)?;
        let mut config = Config::default();
        config.store.data = self.data.clone();
        config.url_server.req_host_per_sec = Rate(self.req_host_per_sec);
        config.crawl.allow_net = vec!["127.0.0.0/8".parse().map_err(Failure::usage)?];
        // The farm gets the last core where there is more than one; the crawl gets the others.
        let all = cores();
        let (crawl_cores, farm_cores) = match all.len() {
            1 => (all.clone(), all.clone()),
            n => (all[..n - 1].to_vec(), all[n - 1..].to_vec()),
        };
        config.cores = crawl_cores.clone();
        config.check().map_err(Failure::usage)?;
        self.clear_earlier()?;
        make_data_directory(&self.data).map_err(|e| {
            Failure::CannotRun(format!(
                "cannot use {}: {e} (choose another with --data)",
                self.data.display()
            ))
        })?;
        if let Some(feeds) = self.feeds {
            let demo = FeedsDemo {
                dir: &self.data,
                hosts: hosts.min(feeds),
                feeds,
                seconds: self.seconds,
                req_host_per_sec: self.req_host_per_sec,
            };
            return demo.run(&farm_cores, signals);
        }
        if self.master {
            let demo = MasterDemo {
                dir: &self.data,
                hosts,
                pages: self.pages,
                lines: self.lines,
                req_host_per_sec: self.req_host_per_sec,
            };
            return demo.run(&farm_cores, signals);
        }
        if let Some(nodes) = self.nodes {
            let (dir, pages, req_host_per_sec) = (&*self.data, self.pages, self.req_host_per_sec);
            let demo = NodesDemo { dir, nodes, hosts, pages, req_host_per_sec };
            return demo.run(&crawl_cores, &farm_cores, signals);
        }
        let figures = [("--hosts", hosts), ("--pages", self.pages)];
        let farm = FarmProcess::start(&figures, &[], &farm_cores, &self.data)?;
        print(&format!(
            "a farm of {} hosts x {} pages is up on 127.16.0.0 and following, port {}\n\
             crawling it with one request at a time and {} to each host, into {}\n",
            hosts,
            self.pages,
            farm.port,
            rate(self.req_host_per_sec),
            self.data.display()
        ))?;
        config.crawl.hosts_file = Some(farm.hosts_file.clone());
        let mut seeds = Vec::new();
        read_urls(&farm.seeds_file, "--seeds", &mut seeds)?;
        let summary = crawl(
            config,
            None,
            Start { seeds, ..Start::default() },
            Attended { signals, reload: None },
            Instant::now(),
        )?;
        let mut text = format!("\n{}\n", CrawlReport::new(&summary).table(&self.data));
        if let Some(url) = &summary.example {
            let program = std::env::current_exe()?;
            let here = std::env::current_dir().unwrap_or_default();
            let below = program.strip_prefix(&here).map(|below| PathBuf::from(".").join(below)).ok();
            let program = below.unwrap_or(program);
            let (program, data) = (program.display(), self.data.display());
            text += &format!(
                "look at a stored page:\n  {program} store cat --data {data} {url}\n\
                 see what else there is:\n  {program} store ls --data {data} --limit 10\n\
                 prove that every host was treated politely:\n  {program} audit --data {data}\n\
                 and crawl a site of your own: {program} help first-crawl\n"
            );
        }
        match Verbosity::Normal.is_on() {
            true => print(&text),
            false => Ok(()),
        }
    }
}

impl DemoArgs {
    /// Removes what an earlier demo left: its farm is gone, and nothing of it can be crawled any more. A demo's directory
    /// has the names of a farm, and no settings, which every crawl keeps.
    fn clear_earlier(&self) -> Result<(), Failure> {
        let data = self.data.display();
        let has = |name: &str| self.data.join(name).exists();
        let ran = ["segments", "master", "node1"].into_iter().any(has);
        if !ran {
            return Ok(());
        }
        if !has("farm.hosts") || has("settings.toml") {
            return Err(Failure::Usage(format!(
                "{data} holds a crawl, not a demo: choose another with --data"
            )));
        }
        let nodes = (1..=9).map(|number| format!("node{number}"));
        for part in ["".to_string(), "master".to_string()].into_iter().chain(nodes) {
            let part = self.data.join(part);
            if part.exists()
                && let Some(by) = Holder::of(&part)?
            {
                return Err(Failure::CannotRun(format!(
                    "{data} is in use by {by} (stop it, or choose another directory with --data)"
                )));
            }
        }
        std::fs::remove_dir_all(&self.data).map_err(|e| {
            Failure::CannotRun(format!("cannot remove the demo in {data}: {e} (remove it yourself)"))
        })
    }
}

fn rate(per_sec: f64) -> String {
    match per_sec {
        0.0 => "as fast as it answers".to_string(),
        _ => format!("at most {per_sec} a second"),
    }
}
