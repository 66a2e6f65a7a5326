use super::settings::{
    AdminFlags, Before, DataFlags, KeptArgs, NO_WAY_TO_A_SPIDER, QueueFlags, SharedArgs, say_settings,
};
use super::shared::{
    ChosenDriver, Failure, Farewell, NameSource, ProductDriver, Reload, Signals, UrlReport, announce_links,
    announce_tuning, free_data, is_no_node, keep_settings, lacks, links_possible, listen, open_data,
    open_index, read_urls, run_to_end, take_doors, tell_summary,
};
use crate::config::{Config, Kept, Layered};
use crate::driver::{EpollDriver, UringDriver};
use crate::engine::{
    Health, LinksConfig, NodeError, NodeSetup, OpenIndex, SpiderSetup, UrlList, UrlNode, UrlSummary,
};
use crate::proto::url::CrawlUrl;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Queue, pace and hand out URLs to spiders in other processes
///
/// The server dials spiders (spider_host, spider_port) or accepts them (listen). They get lines of work and answer with
/// GET, WORKING and DONE. The server fetches robots.txt itself, within the budget of each host.
#[derive(Args)]
#[command(
    after_help = "Example:\n  printf '[url_server]\\nlisten = \"127.0.0.1:7170\"\\n' > urls.toml\n  nephila urlserver --config urls.toml --urls list.txt\n  nephila spider --urlserver 127.0.0.1:7170 --data ./documents\n\nIt ends when every URL of the list is done. What it learns of hosts (pauses, blocks, robots rules)\nis kept in the data directory for the next start. nephila audit proves from its log and those of\nthe spiders how every host was treated."
)]
pub struct UrlServerArgs {
    /// A file of URLs, one a line; blank lines and # comments are skipped [default: what is due in the doc index of --data]
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Stay when the list is done
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    data: DataFlags,
    #[command(flatten)]
    shared: SharedArgs,
    #[command(flatten)]
    queues: QueueFlags,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    admin: AdminFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long)]
    json: bool,
}

const FAREWELL: Farewell = Farewell { stopping: "open work of spiders may end (5 s at most)", at_once: "" };

impl UrlServerArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.shared.log.begin();
        let signals = Signals::of_service()?;
        let started = Instant::now();
        // A list is none of the directory's business, and the other way round.
        let before = if self.urls.is_some() { Before::IsNone } else { self.kept.before() };
        let mut layered = self.shared.layered(&[&self.queues, &self.data, &self.admin], before)?;
        if before == Before::Holds && layered.config.url_server.urls.is_some() {
            layered = self.shared.layered(&[&self.queues, &self.data, &self.admin], Before::IsNone)?;
        }
        let urls = self.urls.clone().or_else(|| layered.config.url_server.urls.take());
        free_data(&layered.config.store.data)?;
        is_no_node(&layered.config.store.data)?;
        say_settings(&layered);
        let Layered { config, kept, .. } = layered;
        let settings = &config.url_server;
        let dial = settings.spider_host.as_ref().map(|host| spider_address(host, settings.spider_port));
        let links = LinksConfig {
            listen: settings.listen,
            dial: dial.into_iter().collect(),
            links_max: links_possible(),
            answers_end: false,
        };
        if links.listen.is_none() && links.dial.is_empty() {
            return Err(Failure::Usage(NO_WAY_TO_A_SPIDER.into()));
        }
        let mut list = Vec::new();
        match &urls {
            Some(path) => {
                read_urls(path, "--urls", &mut list)?;
                if list.is_empty() {
                    return Err(Failure::Usage(format!("{}: no URL in it", path.display())));
                }
            }
            None => {
                if let Some(lack) = lacks(&config)? {
                    let mend = "name a list of URLs with --urls, or another directory with --data";
                    return Err(Failure::Usage(format!("nothing to hand out: {lack}; {mend}")));
                }
            }
        }
        let wait = self.wait || config.crawl.wait;
        let keeps = urls.is_none();
        let reload = Reload::new(&config, keeps, || {
            let before = if keeps { Before::Holds } else { Before::IsNone };
            self.shared.layered(&[&self.queues, &self.data, &self.admin], before)
        });
        let summary = serve(config, &kept, links, list, wait, (signals, reload), started)?;
        tell_summary(&UrlReport::new(summary), self.json, UrlReport::table)
    }
}

/// An address of version 6 is put in brackets, unless it is already.
fn spider_address(host: &str, port: u16) -> String {
    match host.parse::<std::net::Ipv6Addr>() {
        Ok(ip) => format!("[{ip}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

/// Runs a URL server until its list is done, or until it is told to stop.
fn serve(
    mut config: Config,
    kept: &Kept,
    links: LinksConfig,
    urls: Vec<CrawlUrl>,
    wait: bool,
    (signals, reload): (Signals, Reload<'_>),
    started: Instant,
) -> Result<UrlSummary, Failure> {
    let driver = ChosenDriver::of(&mut config, 1)?;
    let doors = take_doors(&config, Some(&config.store.data))?;
    let names = NameSource::of(&config, &driver)?;
    let kit = SpiderSetup::with_files(&config).map_err(Failure::usage)?;
    driver.announce(&[]);
    // For its lock: the log and the journal have one writer.
    let directory = open_data(&config.store.data, "process")?;
    // A list is worked off once; what is due in the index is noted there.
    let mut former = None;
    let index = match urls.is_empty() {
        true => {
            let index = open_index(&config, &directory, None, |_| {})?;
            former = keep_settings(kept, &config)?;
            index
        }
        false => OpenIndex::in_memory(&config),
    };
    let list = UrlList { urls, index, wait };
    let setup = NodeSetup { config, kit };
    let dials = links.dial.clone();
    let node = match driver.is_uring {
        true => start::<UringDriver>(&setup, list, links, names, started),
        false => start::<EpollDriver>(&setup, list, links, names, started),
    };
    let node = node.inspect_err(|_| former.iter().for_each(|former| drop(former.put_back())))?;
    let machine = announce_tuning(&setup.config.store.data, driver.refused);
    announce_links("urlserver", node.bound(), &dials);
    let listener = listen(doors, node.desk(), machine);
    run_to_end(node, listener, signals, &FAREWELL, Some(reload), |_| ())
}

fn start<D: ProductDriver>(
    setup: &NodeSetup,
    list: UrlList,
    links: LinksConfig,
    names: NameSource,
    started: Instant,
) -> Result<UrlNode, NodeError> {
    let fetches_max = setup.config.spider.fetches_max;
    let names = |bell, health: Arc<Health>| names.open::<D>(bell, &health, started);
    UrlNode::start(setup, list, links, names, D::NAME, move |_| D::open(fetches_max, started), started)
}
