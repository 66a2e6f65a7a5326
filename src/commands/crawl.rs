use super::feeds::read_feeds;
use super::node::{ClusterFlags, be_node, begin_anew, cluster_of};
use super::settings::{
    AdminFlags, Before, BlockFlags, DataFlags, KeptArgs, LinkFlags, MasterFlags, Overlay, QueueFlags,
    ReachFlags, SharedArgs, WHAT_TO_CRAWL, say_settings,
};
use super::shared::{
    ChosenDriver, CrawlReport, Failure, Farewell, Leaving, NameSource, OpenNote, ProductDriver, Reload,
    RunningCrawl, Signals, WithParent, announce_tuning, counted, free_data, is_no_node, keep_settings, lacks,
    listen, open_data, open_index, parse_url, read_urls, run_to_end, take_doors, tell_event,
    tell_slow_commits, tell_summary,
};
use crate::base::shown;
use crate::config::{Config, Kept, Layered};
use crate::driver::{EpollDriver, UringDriver};
use crate::engine::{
    ClusterTold, CrawlStore, CrawlTask, Event, FollowersSetup, Health, MasterPosition, NamedFeed, Node,
    NodeError, NodeSetup, NodeStatus, PeersSetup, SeedsLost, SpiderSetup, Summary,
};
use crate::feeds::FeedsView;
use crate::proto::url::CrawlUrl;
use crate::store_server::Holder;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Crawl from URLs, in one process, politely
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila crawl http://example.org/ --depth 3 --data ./example\n\nStop it with Ctrl-C: open fetches end, everything is written, and the summary is printed.\nA second Ctrl-C stops at once. Run again with the same --data, it continues as it was told before:\n  nephila crawl --data ./example\n\nWith feeds, whose stories are fetched as they come ([feeds] in the settings says how often each is asked):\n  nephila crawl --feeds feeds.opml --wait --data ./news\nWithout --wait it ends when every feed that is due was asked once and its stories are there. Links of stories are\nfollowed as far as --scope and the URLs given span them.\n\nWith a master, which deals the URLs of a log to its nodes (nephila help master):\n  nephila crawl --master 10.0.0.1:7190,10.0.0.2:7190 --server 7 --depth 0 --data ./node7\nWhat a master hands in is fetched whatever --scope and --depth say of links; --depth 0 fetches that alone, and\nfollows no links. It waits for more until it is stopped, and the same command continues where it was."
)]
pub struct CrawlArgs {
    /// URLs to start from
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// A file of URLs to start from, one a line; blank lines and # comments are skipped
    #[arg(long, value_name = "FILE", help_heading = WHAT_TO_CRAWL)]
    pub seeds: Option<PathBuf>,
    /// A list of feeds to poll, one URL a line, CSV (url,source,title) or OPML: the stories that they tell of are fetched
    #[arg(long, value_name = "FILE", help_heading = WHAT_TO_CRAWL)]
    pub feeds: Option<PathBuf>,
    #[command(flatten)]
    pub data: DataFlags,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub reach: ReachFlags,
    #[command(flatten)]
    pub links: LinkFlags,
    #[command(flatten)]
    pub blocks: BlockFlags,
    #[command(flatten)]
    pub shared: SharedArgs,
    #[command(flatten)]
    pub master: MasterFlags,
    #[command(flatten)]
    pub queues: QueueFlags,
    #[command(flatten)]
    pub admin: AdminFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub parent: WithParent,
}

impl CrawlArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.run_among(None)
    }

    /// The same for a node of a cluster, which has flags of its own.
    pub(super) fn run_among(self, cluster: Option<&ClusterFlags>) -> Result<(), Failure> {
        self.shared.log.begin();
        let signals = Signals::of_service()?;
        self.parent.heed(&signals)?;
        let started = Instant::now();
        let mut flags: Vec<&dyn Overlay> =
            vec![&self.queues, &self.data, &self.blocks, &self.reach, &self.links, &self.master, &self.admin];
        flags.extend(cluster.map(|cluster| cluster as &dyn Overlay));
        let layered = self.shared.layered(&flags, self.kept.before())?;
        let names_urls = !self.urls.is_empty() || self.seeds.is_some() || self.feeds.is_some();
        is_free(&layered.config.store.data, names_urls)?;
        say_settings(&layered);
        let Layered { mut config, kept, .. } = layered;
        is_its_server(&config)?;
        let command = if cluster.is_some() { "node" } else { "crawl" };
        let cluster = match cluster {
            Some(_) => Some(cluster_of(&mut config, self.feeds.is_some())?),
            None => {
                is_no_node(&config.store.data)?;
                None
            }
        };
        let seeds = self.read_seeds(&config, cluster.is_some())?;
        let seeds = admitted(seeds, &config)?;
        let feeds = self.read_feeds(&config)?;
        let data = config.store.data.clone();
        let is_node = cluster.is_some();
        let reload = Reload::new(&config, true, || {
            let mut layered = self.shared.layered(&flags, Before::Holds)?;
            if is_node {
                be_node(&mut layered.config);
            }
            Ok(layered)
        });
        let reload = if is_node { reload.of_node() } else { reload };
        let summary = crawl(
            config,
            Some(&kept),
            Start { seeds, feeds, cluster },
            Attended { signals, reload: Some(reload) },
            started,
        )?;
        let report = CrawlReport::new(&summary);
        tell_summary(&report, self.json, |report| report.table(&data) + &report.end(command, &data))?;
        let lost = summary.seeds_lost.as_ref().map(said_of).or_else(|| report.all_excluded(&data));
        lost.map_or(Ok(()), |lost| Err(Failure::No(lost)))
    }

    fn read_feeds(&self, config: &Config) -> Result<Vec<NamedFeed>, Failure> {
        let mut feeds = Vec::new();
        for path in [&self.feeds, &config.crawl.feeds_file].into_iter().flatten() {
            feeds.extend(read_feeds(path, "--feeds")?);
        }
        Ok(feeds)
    }

    fn read_seeds(&self, config: &Config, waits: bool) -> Result<Vec<CrawlUrl>, Failure> {
        let mut seeds = self.urls.iter().map(|url| parse_url(url)).collect::<Result<Vec<_>, Failure>>()?;
        seeds.extend(config.crawl.seeds.iter().map(|seed| seed.0.clone()));
        let files = [&self.seeds, &config.crawl.seeds_file];
        for path in files.into_iter().flatten() {
            read_urls(path, "--seeds", &mut seeds)?;
        }
        let book = FeedsView::open(&config.store.data)?;
        let names_feeds = self.feeds.is_some() || config.crawl.feeds_file.is_some();
        let has_feeds = names_feeds || book.is_some_and(|book| book.feeds().next().is_some());
        if !seeds.is_empty() || config.crawl.has_master() || has_feeds || waits {
            return Ok(seeds);
        }
        let lack = match files == [&None, &None] {
            true => lacks(config)?,
            false => Some("no URL was given".to_string()),
        };
        let mend =
            "give a URL, a file of them with --seeds, feeds with --feeds, or a crawl to continue with --data";
        lack.map_or(Ok(seeds), |lack| Err(Failure::Usage(format!("nothing to crawl: {lack}; {mend}"))))
    }
}

/// What happened to seeds of which none could be had.
fn said_of(lost: &SeedsLost) -> String {
    if let ([(url, why)], 0) = (&lost.told[..], lost.more) {
        return format!("{url}: {why}");
    }
    let mut said = "none of the URLs given could be had:".to_string();
    said.extend(lost.told.iter().map(|(url, why)| format!("\n  {url}: {why}")));
    if lost.more > 0 {
        said += &format!("\n  and {} more", lost.more);
    }
    said
}

/// The seeds in canonical form, as far as no rule denies them. Those that one does are named.
pub(super) fn admitted(seeds: Vec<CrawlUrl>, config: &Config) -> Result<Vec<CrawlUrl>, Failure> {
    let given = seeds.len();
    let mut kept = Vec::with_capacity(given);
    let (canon, mut scratch) = (config.doc_index.canon(), String::new());
    for seed in seeds {
        let url = CrawlUrl::from_normal(canon.apply(seed.as_str(), &mut scratch)).map_err(Failure::usage)?;
        match config.doc_index.deny.which(url.view()) {
            Some(rule) => {
                let (number, text) = (rule.number, shown(rule.text, 200));
                let said = format!("nephila: skipped: {url}: deny rule {number}, \"{text}\"");
                tell_event(Event::UrlSkipped, vec![("url", url.as_str().into())], said);
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

const FAREWELL: Farewell =
    Farewell { stopping: "open fetches may end (5 s at most)", at_once: "; what was counted is stored" };

/// What a crawl can be told by signals.
pub(super) struct Attended<'a> {
    pub signals: Signals,
    pub reload: Option<Reload<'a>>,
}

/// What a crawl begins with, besides what its directory has.
#[derive(Default)]
pub(super) struct Start {
    pub seeds: Vec<CrawlUrl>,
    pub feeds: Vec<NamedFeed>,
    /// Of a node: its cluster.
    pub cluster: Option<ClusterTold>,
}

/// Runs a crawl to its end, with progress on stderr. Its settings are kept, if they are to be.
pub(super) fn crawl(
    mut config: Config,
    kept: Option<&Kept>,
    Start { seeds, feeds, cluster }: Start,
    Attended { signals, reload }: Attended<'_>,
    started: Instant,
) -> Result<Summary, Failure> {
    let shards = config.cores.len();
    let driver = ChosenDriver::of(&mut config, shards)?;
    let doors = take_doors(&config, Some(&config.store.data))?;
    let names = NameSource::of(&config, &driver)?;
    let (fetches_max, path) = (config.spider.fetches_max, config.store.data.display());
    let seeds_said = counted(seeds.len() as u64, "seed");
    let text = format!("up to {fetches_max} fetches at once on each core; {seeds_said}; data in {path}");
    let fields =
        vec![("fetches_max", fetches_max.into()), ("seeds", seeds.len().into()), ("path", path.into())];
    tell_event(Event::FetchBounds, fields, text);
    let kit = SpiderSetup::with_files(&config).map_err(Failure::usage)?;
    // What it names is there, before anything is opened.
    FollowersSetup::of(&config).map_err(Failure::Usage)?;
    driver.announce(&config.cores);
    let directory = open_data(&config.store.data, if cluster.is_some() { "node" } else { "crawl" })?;
    let mut note = OpenNote::begin(&directory);
    let named = seeds.iter().chain(feeds.iter().map(|feed| &feed.url));
    let mut public: Option<CrawlUrl> = named.into_iter().find(|url| !names.is_private(url)).cloned();
    let peers = cluster.map(|told| PeersSetup::open(told, directory.path())).transpose()?;
    let share = peers.as_ref().map(PeersSetup::share);
    let index = open_index(&config, &directory, share, |url| {
        if public.is_none() && !names.is_private(url) {
            public = Some(url.clone());
        }
    })?;
    let known = index.index.stats();
    if !seeds.is_empty() && known.pending > 0 {
        let are = if known.pending == 1 { "is" } else { "are" };
        let (urls, hosts) = (counted(known.pending, "URL"), counted(known.hosts, "host"));
        let path = config.store.data.display();
        let text = format!(
            "{urls} {are} already pending in {path} ({hosts} known), and this run continues them as well (to keep crawls apart, choose another --data)"
        );
        let fields =
            vec![("pending", known.pending.into()), ("hosts", known.hosts.into()), ("path", path.into())];
        tell_event(Event::PendingBefore, fields, text);
    }
    if let Some(url) = public.filter(|_| !config.spider.has_contact()) {
        let text = format!(
            "no contact is set: the owners of {} and other sites cannot reach you; set one with --contact URL|MAIL (see nephila help politeness)",
            shown(url.host(), 200)
        );
        tell_event(Event::NoContact, vec![("host", url.host().into())], text);
    }
    let former = kept.map_or(Ok(None), |kept| keep_settings(kept, &config))?;
    // A run that had nothing to show for itself leaves the directory as it was told.
    let keep_former = || {
        if former.as_ref().is_some_and(|former| former.put_back().is_ok()) {
            let text = "the settings of the run before are kept, as this one could not start";
            tell_event(Event::SettingsPutBack, Vec::new(), text);
        }
    };
    let setup = NodeSetup { config, kit };
    let data = setup.config.store.data.clone();
    let task = CrawlTask { seeds, feeds, store: CrawlStore::Directory(directory), index };
    let node = match driver.is_uring {
        true => start::<UringDriver>(&setup, task, peers, names, started),
        false => start::<EpollDriver>(&setup, task, peers, names, started),
    };
    let node = node.inspect_err(|_| keep_former())?;
    let machine = announce_tuning(&data, driver.refused);
    let taken_up = node.resumed();
    if taken_up.pages > 0 {
        let (pages, took_ms) = (taken_up.pages, taken_up.took.as_millis());
        let text = format!("taken up from the store: {} ({took_ms} ms)", counted(pages, "page"));
        tell_event(Event::PagesTakenUp, vec![("pages", pages.into()), ("ms", took_ms.into())], text);
    }
    let listener = listen(doors, node.desk(), machine);
    let mut had = 0;
    let desk = node.desk();
    let ended = run_to_end(node, listener, signals, &FAREWELL, reload, |leaving| match leaving {
        Leaving::AtOnce { pages } => note.stopped_at_once(pages),
        Leaving::InOrder { pages, commits } => {
            had = pages;
            tell_slow_commits(&data, commits);
        }
    });
    if ended.is_err() && had == 0 {
        keep_former();
    }
    note.end(&ended);
    if let Err(Failure::CannotRun(text)) = &ended
        && desk.cluster().is_some_and(|cluster| cluster.get().taken_over)
    {
        tell_event(Event::TakenOver, Vec::new(), text.clone());
        drop(desk);
        return Err(begin_anew());
    }
    ended
}

/// A directory that has taken the queue of one server is no place for another's.
fn is_its_server(config: &Config) -> Result<(), Failure> {
    let (Some(server), data) = (config.crawl.server, &config.store.data) else { return Ok(()) };
    let before = MasterPosition::read(data).map_err(|error| Failure::CannotRun(error.to_string()))?;
    match before.filter(|before| before.server != server) {
        Some(MasterPosition { server: before, .. }) => Err(Failure::Usage(format!(
            "{} holds what was taken for server {before}, and not for server {server}: go on with --server {before}, or choose another directory with --data",
            data.display()
        ))),
        None => Ok(()),
    }
}

/// Whoever names URLs while a crawl runs there means to add them.
fn is_free(data: &Path, has_urls: bool) -> Result<(), Failure> {
    let running = if has_urls { RunningCrawl::at(data)? } else { None };
    let status = running.and_then(|mut crawl| crawl.get::<NodeStatus>("/api/v1/status").ok().flatten());
    if !status.is_some_and(|status| ["crawl", "urlserver"].contains(&status.role.as_str())) {
        return free_data(data);
    }
    let by = Holder::of(data)?.map_or("a process".to_string(), |holder| holder.to_string());
    let data = data.display();
    Err(Failure::CannotRun(format!(
        "{data} is in use by {by}: a crawl runs there: add URLs to it with nephila add --data {data} URL…"
    )))
}

fn start<D: ProductDriver>(
    setup: &NodeSetup,
    task: CrawlTask,
    peers: Option<PeersSetup>,
    names: NameSource,
    started: Instant,
) -> Result<Node, NodeError> {
    let fetches_max = setup.config.spider.fetches_max;
    let names = |bell, health: Arc<Health>| names.open::<D>(bell, &health, started);
    Node::start_among(setup, task, peers, names, D::NAME, move |_| D::open(fetches_max, started), started)
}
