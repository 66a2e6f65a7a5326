use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::assembly::{CrawlTask, NodeCore, assemble};
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::node_setup::NodeSetup;
use crate::engine::crawl::resume::{IndexedMark, Resumed};
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::crawl::seed_fates::SeedFates;
use crate::engine::crawl::story_threads::StoryThreads;
use crate::engine::followers::ContentThreads;
use crate::engine::from_master::MasterFeed;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::desk::Desk;
use crate::engine::inspect::questions::{Ask, Questions};
use crate::engine::links::LinksThread;
use crate::engine::names::Names;
use crate::engine::peers::{PeerActor, PeersSetup};
use crate::engine::runtime::actor::ActorThread;
use crate::engine::runtime::counters::{
    Counter, CounterTable, Ended, ShardStats, Snapshot, Summary, cpu_us, merged_histogram,
};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::LogWriter;
use crate::engine::runtime::readings::{MeterParts, Role};
use crate::engine::runtime::running::{Running, StopSwitch};
use crate::engine::runtime::settings_news::SettingsNews;
use crate::engine::runtime::shard_thread::{ShardThreads, ShardsSetup};
use crate::engine::runtime::store_actors::StoreThreads;
use crate::engine::runtime::wiring::wall_at;
use crate::rings::Doorbell;
use crate::store_server::HeldDirectory;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A crawl in one process: a thread for every actor of a [`NodeCore`].
pub struct Node {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    stop: StopSwitch,
    scheduler: ActorThread<Scheduler>,
    index: ActorThread<IndexActor>,
    store: StoreThreads,
    log_writer: ActorThread<LogWriter>,
    shards: ShardThreads,
    shard_stats: Vec<Arc<ShardStats>>,
    table: CounterTable,
    health: Arc<Health>,
    known_before: u64,
    seeds: SeedFates,
    told: Option<IndexedMark>,
    /// No other process writes there until the index is closed.
    held: Option<HeldDirectory>,
    resumed: Resumed,
    desk: Arc<Desk>,
    questions: Arc<Questions>,
    live: LiveConfig,
    /// What takes URLs from masters, and its links.
    master: Option<(ActorThread<MasterFeed>, LinksThread)>,
    /// What joins it to the others of its cluster, and its links.
    peers: Option<(ActorThread<PeerActor>, LinksThread)>,
    /// What becomes of stories, where there are feeds.
    stories: Option<StoryThreads>,
    /// What copies documents elsewhere.
    content: ContentThreads,
}

impl Node {
    /// Starts every thread of a crawl that stands alone.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        task: CrawlTask,
        names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<Node, NodeError> {
        Node::start_among(setup, task, None, names, driver, make_driver, started)
    }

    /// Starts every thread, also of a node of a cluster. `make_driver` is called on each shard's own thread, again after a
    /// restart.
    pub fn start_among<D: Driver + 'static>(
        setup: &NodeSetup,
        task: CrawlTask,
        peers: Option<PeersSetup>,
        names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<Node, NodeError> {
        let config = &setup.config;
        let mut core = assemble(setup, task, names, wall_at(started))?;
        let links = |dial, owner, health: &Health| {
            LinksThread::start(dial, driver, started, owner, health).map(|(port, links, _)| (port, links))
        };
        let peers = peers.map(|setup| core.join_peers(setup, wall_at(started), links)).transpose()?;
        let master = core.join_masters(config, Some(&config.store.data), wall_at(started), links)?;
        let has_feeds = core.index.actor.provider().polls().is_some();
        // Before maintenance has its thread: what it lets go is seen to go.
        let content = ContentThreads::seat(config, &mut core.table, &core.health)?;
        let NodeCore { scheduler, index, stop, health, .. } = core;
        let scheduler_bell = scheduler.bell.door.clone();
        let (questions, live) = (scheduler.actor.questions(), scheduler.actor.live());
        let shards_setup = ShardsSetup {
            name: "shard",
            driver,
            cores: &config.cores,
            owner: &scheduler_bell,
            stop: &stop,
            health: &health,
        };
        let shards = ShardThreads::start(&shards_setup, core.shards, make_driver)?;
        let store = StoreThreads::start(core.keeper, config, started, &health)?;
        let log_writer = ActorThread::start("log", core.log_writer, started, &health)?;
        let index = ActorThread::start("index", index, started, &health)?;
        let scheduler = ActorThread::start("scheduler", scheduler, started, &health)?;
        let story_counters = core.table.thread();
        let parts = MeterParts {
            role: Role::Crawl,
            driver,
            table: core.table.clone(),
            shards: core.shard_stats.iter().map(|shard| shard.counters.clone()).collect(),
            health: health.clone(),
            stop: stop.clone(),
            started,
            budget: Some(setup.kit.budget.clone()),
            store: Some(live.clone()),
            rings: core.rings,
        };
        let desk = Arc::new(
            Desk::new(parts, vec![scheduler_bell])
                .with_urls(questions.clone(), CrawlRules::of(config))
                .with_news(live.news.clone())
                .with_master(master.as_ref().map(|(_, _, report)| report.clone()))
                .with_cluster(peers.as_ref().map(|(_, _, report)| report.clone())),
        );
        let start =
            |(feed, links, _)| ActorThread::start("master", feed, started, &health).map(|feed| (feed, links));
        let master = master.map(start).transpose()?;
        let start = |(actor, links, _)| {
            ActorThread::start("peers", actor, started, &health).map(|actor| (actor, links))
        };
        let peers = peers.map(start).transpose()?;
        // A crawl that waits may be given feeds later.
        let stories = match has_feeds || config.crawl.wait {
            true => StoryThreads::start(config, started, &health, story_counters)?,
            false => None,
        };
        let content = ContentThreads::start(content, started, &health)?;
        let stop = desk.stop_switch().clone();
        Ok(Node {
            started,
            driver,
            cores: config.cores.clone(),
            stop,
            scheduler,
            index,
            store,
            log_writer,
            shards,
            shard_stats: core.shard_stats,
            table: core.table,
            health,
            known_before: core.known_before,
            seeds: core.seeds,
            told: core.told,
            held: core.held,
            resumed: core.resumed,
            desk,
            questions,
            live,
            master,
            peers,
            stories,
            content,
        })
    }

    /// Where it is asked and told things.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// What was stored by a process that was killed, and that the index did not know.
    pub fn resumed(&self) -> &Resumed {
        &self.resumed
    }
}

/// Other settings hold within this time, or the crawl is about to end.
const SET_MAX: Duration = Duration::from_secs(10);

impl Running for Node {
    type Summary = Summary;

    const ROLE: Role = Role::Crawl;

    fn health(&self) -> &Health {
        &self.health
    }

    fn stop_switch(&self) -> &StopSwitch {
        &self.stop
    }

    fn is_finished(&self) -> bool {
        self.scheduler.is_finished()
    }

    fn counted(&self) -> Snapshot {
        Snapshot::of(&self.table)
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(self.counted())
    }

    fn settings(&self) -> Option<Arc<Config>> {
        Some(self.live.get())
    }

    fn takes(&self, _: &str) -> bool {
        true
    }

    fn set(&self, config: Arc<Config>) -> bool {
        self.questions.ask_and_wait(Ask::Set(config), SET_MAX).is_some()
    }

    fn settings_news(&self) -> Option<&SettingsNews> {
        Some(&self.live.news)
    }

    fn finish(self) -> Result<Summary, NodeError> {
        let mut scheduler = self.scheduler.join();
        scheduler.end_questions();
        if let Some((feed, links)) = self.master {
            feed.end();
            links.end();
        }
        if let Some((actor, links)) = self.peers {
            actor.end();
            links.end();
        }
        self.shards.join();
        let kept = self.store.end();
        self.log_writer.end();
        let mut index_actor = self.index.end();
        let is_over = matches!(scheduler.ended(), Some(Ended::Done));
        let is_in_haste = || self.health.in_haste.load(Ordering::Acquire);
        let texts =
            self.stories.map_or(Ok(()), |stories| stories.end(&self.live.get(), is_over, is_in_haste));
        // A crawl that was stopped is not to wait for others.
        let is_stopped = matches!(scheduler.ended(), Some(Ended::Signal) | None);
        let catch_up = if !is_stopped {
            Duration::from_secs(self.live.get().content.catch_up.0)
        } else {
            Duration::ZERO
        };
        self.content.end(catch_up, &self.health);
        self.health.take()?;
        kept?;
        texts.map_err(NodeError::Feeds)?;
        // Everything is told, unless the disk was waited for in vain. If it cannot be noted, the next start looks for
        // itself.
        let told = self.told.filter(|_| !scheduler.has_given_up());
        if let (Some(mut told), Some(Ok(first))) = (told, self.held.map(|held| held.next_segment())) {
            let _ = told.move_to(first);
        }
        let index = index_actor.provider().index().stats();
        let sum = |counter| self.table.sum(counter);
        let unix_ms = wall_at(self.started).unix_ms_at_zero + self.started.elapsed().as_millis() as u64;
        let pending = index.left();
        let ended = match scheduler.ended().unwrap_or(Ended::Signal) {
            Ended::Done if pending > 0 => Ended::Linger,
            // The limit was reached with the last there was.
            Ended::MaxPages if pending == 0 => Ended::Done,
            why => why,
        };
        Ok(Summary {
            pages: scheduler.pages(),
            success: scheduler.success(),
            errors: scheduler.pages() - scheduler.success(),
            bytes: sum(Counter::Bytes),
            stored_bytes: sum(Counter::StoredBytes),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            cores: self.cores,
            pending,
            waiting: index.waiting,
            next_due_s: index.next_due_s,
            waiting_hosts: scheduler.waiting_hosts(wall_at(self.started), index_actor.provider().index()),
            known_before: self.known_before,
            taken_up: self.resumed.pages,
            known: index.known,
            excluded: index.excluded,
            seeds_lost: self.seeds.lost(index_actor.provider(), scheduler.success(), unix_ms),
            results: scheduler.results(),
            fetch_us: merged_histogram(&self.shard_stats),
            robots: sum(Counter::Robots),
            robots_failed: sum(Counter::RobotsFailed),
            restarts: scheduler.restarts(),
            syscalls: sum(Counter::Syscalls),
            example: index_actor.provider_mut().index_mut().example(),
            ended,
        })
    }
}
