use super::Failure;
use super::machine::{choose_driver, fetches_possible, name_sockets_possible};
use super::output::print;
use super::progress::Progress;
use super::report::CrawlReport;
use super::settings::{DataFlags, LinkFlags, QueueFlags, SharedArgs};
use super::signals::{Interrupt, Signals};
use crate::base::shown;
use crate::config::Config;
use crate::doc_index::IndexView;
use crate::driver::{EpollDriver, UringDriver};
use crate::engine::{
    CrawlStore, CrawlTask, HostsFile, Names, Node, NodeSetup, OpenIndex, ResolvConf, SpiderSetup, Summary,
    index_folder,
};
use crate::handler::ScopeKind;
use crate::proto::url::CrawlUrl;
use crate::resolver::ResolverConfig;
use crate::store_server::DataDir;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Crawl from URLs, in one process, politely
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila crawl http://example.org/ --depth 3 --data ./example\n\nStop it with Ctrl-C: open fetches end, everything is written, and the summary is printed.\nA second Ctrl-C stops at once. Run again with the same --data, it goes on where it was:\n  nephila crawl --data ./example"
)]
pub struct CrawlArgs {
    /// Where to start
    pub urls: Vec<String>,
    /// A file of URLs to start from, one a line; blank lines and # comments are skipped
    #[arg(long, value_name = "FILE")]
    pub seeds: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataFlags,
    /// How far to go from the seeds: their hosts, their domains, below their directories, or anywhere
    #[arg(long, value_enum, default_value = "host")]
    pub scope: ScopeKind,
    /// Links followed from a seed
    #[arg(long, value_name = "N")]
    pub depth: Option<u16>,
    /// Stop after this many pages
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "N")]
    pub max_seconds: Option<u64>,
    /// Stay when nothing is due, and go on when something is
    #[arg(long)]
    pub wait: bool,
    /// Ask for everything again that was ever fetched; what has not changed does not come a second time
    #[arg(long)]
    pub again: bool,
    #[command(flatten)]
    pub links: LinkFlags,
    /// Ask for heads only: whether the URLs given are there and have changed, without their documents
    #[arg(long)]
    pub head: bool,
    #[command(flatten)]
    pub shared: SharedArgs,
    #[command(flatten)]
    pub queues: QueueFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
}

impl CrawlArgs {
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let config = self.config()?;
        let seeds = self.read_seeds(&config)?;
        let seeds = admitted(seeds, &config)?;
        let summary = crawl(config, seeds, started)?;
        let report = CrawlReport::new(&summary);
        let text = match self.json {
            true => serde_json::to_string(&report).map_err(Failure::cannot_run)? + "\n",
            false => report.table(),
        };
        print(&text)
    }

    fn config(&self) -> Result<Config, Failure> {
        let config = self.shared.config(&[&self.queues, &self.data, &self.links])?;
        Ok(Config {
            scope: self.scope,
            depth: self.depth,
            head_only: self.head,
            again: self.again,
            wait: self.wait,
            pages_max: self.max_pages,
            seconds_max: self.max_seconds,
            ..config
        })
    }

    fn read_seeds(&self, config: &Config) -> Result<Vec<CrawlUrl>, Failure> {
        let mut seeds = Vec::new();
        for text in &self.urls {
            seeds.push(
                CrawlUrl::parse(text).map_err(|e| Failure::Usage(format!("{}: {e}", shown(text, 200))))?,
            );
        }
        if let Some(path) = &self.seeds {
            read_urls(path, "--seeds", &mut seeds)?;
        }
        if seeds.is_empty() && (self.seeds.is_some() || !has_index(config)?) {
            return Err(Failure::Usage(
                "nothing to crawl: give a URL, a file of them with --seeds, or with --data a crawl to go on with"
                    .to_string(),
            ));
        }
        Ok(seeds)
    }
}

/// The seeds in canonical form, as far as no rule denies them. Those that one does are named.
fn admitted(seeds: Vec<CrawlUrl>, config: &Config) -> Result<Vec<CrawlUrl>, Failure> {
    let given = seeds.len();
    let mut kept = Vec::with_capacity(given);
    let (canon, mut scratch) = (config.doc_index.canon(), String::new());
    for seed in seeds {
        let url = CrawlUrl::from_normal(canon.apply(seed.as_str(), &mut scratch)).map_err(Failure::usage)?;
        match config.doc_index.deny.which(&url) {
            Some(rule) => {
                eprintln!("nephila: skipped: {url}: deny rule {}, \"{}\"", rule.number, shown(rule.text, 200))
            }
            None => kept.push(url),
        }
    }
    // Without any, a crawl goes on with what its index has.
    if kept.is_empty() && given > 0 {
        return Err(Failure::Usage("nothing to crawl: every URL given is denied by a rule".to_string()));
    }
    Ok(kept)
}

/// The URLs of a file, one a line. A bad line is named and skipped.
pub fn read_urls(path: &Path, flag: &str, urls: &mut Vec<CrawlUrl>) -> Result<(), Failure> {
    let text = std::fs::read(path).map_err(|e| {
        Failure::Usage(format!("cannot read {}: {e} (name a file of URLs with {flag})", path.display()))
    })?;
    for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match CrawlUrl::parse(line) {
            Ok(url) => urls.push(url),
            Err(e) => {
                eprintln!("nephila: {}:{}: skipped: {}: {e}", path.display(), number + 1, shown(line, 200))
            }
        }
    }
    Ok(())
}

/// Where names come from: the hosts file, and name servers.
pub fn names_of(config: &Config, driver: &str) -> Result<(HostsFile, ResolverConfig), Failure> {
    let hosts = match &config.hosts_file {
        Some(path) => HostsFile::read(path).map_err(|e| {
            Failure::Usage(format!(
                "cannot read {}: {e} (name another file with --hosts-file)",
                path.display()
            ))
        })?,
        None => HostsFile::of_system(),
    };
    let resolver = ResolverConfig {
        sockets_max: name_sockets_possible(driver),
        ..ResolvConf::of_system().with_servers(&config.dns).resolver_config()
    };
    Ok((hosts, resolver))
}

/// Whether there is a doc index to go on with.
pub fn has_index(config: &Config) -> Result<bool, Failure> {
    let found = IndexView::open(&index_folder(&config.store.data)).map_err(Failure::cannot_run)?;
    Ok(found.is_some())
}

/// Opens the doc index of a data directory, and says what is in it.
pub fn open_index(config: &Config, directory: &DataDir) -> Result<OpenIndex, Failure> {
    let index = OpenIndex::open(config, directory).map_err(Failure::cannot_run)?;
    let (stats, opened) = (index.index.stats(), &index.opened);
    if stats.known > 0 {
        eprintln!(
            "doc index: {} URLs known, {} pending, {} wait until they are due",
            stats.known, stats.pending, stats.waiting
        );
    }
    if opened.torn_bytes > 0 {
        eprintln!(
            "doc index: {} bytes at its end were torn by a crash and are found again",
            opened.torn_bytes
        );
    }
    if opened.runs_removed > 0 {
        eprintln!("doc index: {} damaged parts of the seen-set were made anew", opened.runs_removed);
    }
    if opened.damaged_bytes > 0 {
        eprintln!(
            "doc index: {} bytes are damaged; the URLs in them are lost until their pages are read again (--again)",
            opened.damaged_bytes
        );
    }
    Ok(index)
}

/// What the spiders of this process share, with the files that the configuration names.
pub fn spider_kit(config: &Config) -> Result<SpiderSetup, Failure> {
    SpiderSetup::with_files(config).map_err(Failure::usage)
}

/// Runs a crawl to its end, with progress on stderr.
pub fn crawl(mut config: Config, seeds: Vec<CrawlUrl>, started: Instant) -> Result<Summary, Failure> {
    let driver = choose_driver(config.driver)?;
    config.spider.fetches_max = fetches_possible(driver.name, config.spider.fetches_max, config.cores.len())?;
    eprintln!("driver: {} ({}); cores {:?}", driver.name, driver.why, config.cores);
    let (hosts, resolver) = names_of(&config, driver.name)?;
    let kit = spider_kit(&config)?;
    let directory = DataDir::open(&config.store.data).map_err(Failure::cannot_run)?;
    if directory.recovered() > 0 {
        eprintln!(
            "store: {} segments of a crawl that was killed were sealed at their last whole record",
            directory.recovered()
        );
    }
    let index = open_index(&config, &directory)?;
    let signals = Signals::take()?;
    let setup = NodeSetup { config, kit };
    let config = &setup.config;
    let (fetches_max, sockets_max) = (config.spider.fetches_max, resolver.sockets_max);
    let task = CrawlTask { seeds, store: CrawlStore::Directory(directory), index };
    let node = match driver.name {
        "uring" => Node::start(
            &setup,
            task,
            move |bell, notices| {
                Names::with_servers(
                    hosts,
                    resolver,
                    move || UringDriver::new(sockets_max, started),
                    bell,
                    notices,
                )
            },
            "uring",
            move |_| UringDriver::new(fetches_max, started),
            started,
        ),
        _ => Node::start(
            &setup,
            task,
            move |bell, notices| {
                Names::with_servers(
                    hosts,
                    resolver,
                    move || EpollDriver::new(sockets_max, started),
                    bell,
                    notices,
                )
            },
            "epoll",
            move |_| EpollDriver::new(fetches_max, started),
            started,
        ),
    }
    .map_err(Failure::cannot_run)?;
    let taken_up = node.resumed();
    if taken_up.pages > 0 {
        eprintln!("taken up from the store: {} pages ({} ms)", taken_up.pages, taken_up.took.as_millis());
    }
    watch(&node, config, signals, started);
    node.finish().map_err(Failure::cannot_run)
}

/// Shows progress and passes on signals until the node has finished.
fn watch(node: &Node, config: &Config, mut signals: Signals, started: Instant) {
    let mut progress = Progress::new();
    let mut stopping = false;
    let mut waiting_for = None;
    while !node.is_finished() {
        let interrupt = signals.wait();
        if interrupt == Interrupt::AtOnce || (interrupt == Interrupt::Stop && stopping) {
            progress.say("stopped at once; what was counted is stored");
            std::process::exit(3);
        }
        let out_of_time = config.seconds_max.is_some_and(|max| started.elapsed() >= Duration::from_secs(max));
        if interrupt == Interrupt::Stop || (out_of_time && !stopping) {
            if interrupt == Interrupt::Stop {
                progress.say("stopping: open fetches may end (5 s at most); once more stops at once");
            }
            stopping = true;
            node.stop();
        }
        node.notices().iter().for_each(|notice| progress.say(&notice.text));
        let waits = node.waiting_for();
        if waits != waiting_for {
            if let Some(text) = &waits {
                progress.say(text);
            }
            waiting_for = waits;
        }
        progress.show(Instant::now(), || node.snapshot());
    }
    node.notices().iter().for_each(|notice| progress.say(&notice.text));
    progress.end();
}
