use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::assembly::{Dealer, queues, shard_parts};
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::open_index::OpenIndex;
use crate::engine::crawl::provider::Provider;
use crate::engine::crawl::scheduler::{Scheduler, SchedulerConfig};
use crate::engine::crawl::shard::Shard;
use crate::engine::links::{LinkPort, LinksConfig, LinksThread};
use crate::engine::names::Names;
use crate::engine::runtime::actor::ActorThread;
use crate::engine::runtime::counters::{Counter, CounterTable, UrlSummary, cpu_us};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::log_writer::{LogMedium, LogWriter, PreviousRun};
use crate::engine::runtime::notices::{Notice, Notices};
use crate::engine::runtime::shard_thread::{ShardMaker, ShardSeat, ShardThreads, ShardsSetup, send_up};
use crate::engine::runtime::wiring::{ShardWire, Wiring, wall_at};
use crate::engine::split::remote_queues::{NoRecords, RemoteQueues};
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A URL server process: the scheduler and the doc index of a crawl, and in place of its shards one with links to spiders
/// in other processes.
pub struct UrlNode {
    started: Instant,
    driver: &'static str,
    bound: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    scheduler: ActorThread<Scheduler>,
    scheduler_bell: Arc<Doorbell>,
    index: ActorThread<IndexActor>,
    log_writer: ActorThread<LogWriter>,
    shard: ShardThreads,
    links: LinksThread,
    table: CounterTable,
    health: Arc<Health>,
}

/// What is to be fetched.
pub struct UrlList {
    pub urls: Vec<CrawlUrl>,
    /// Where the URLs are known and noted.
    pub index: OpenIndex,
    /// Stay when everything is done.
    pub wait: bool,
}

impl UrlNode {
    /// Starts every thread. `make_driver` is called on the shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        list: UrlList,
        links: LinksConfig,
        names: impl FnOnce(Arc<Doorbell>, Notices) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<UrlNode, NodeError> {
        let NodeSetup { config, kit } = setup;
        let mut wiring = Wiring::open(config, &LogMedium::Directory(&config.store.data), wall_at(started))?;
        // Nothing is stored here, so nothing waits to become durable.
        let (lane, wire) = wiring.shard(Arc::new(()));
        let (port, links, bound) =
            LinksThread::start(links, driver, started, wire.bell.clone(), &wiring.health)?;
        let (slot, bell) = (wire.slot.clone(), wire.bell.clone());
        let maker = RemoteMaker {
            config: config.clone(),
            setup: kit.clone(),
            wire,
            previous: wiring.previous.clone(),
            port: Arc::new(Mutex::new(port)),
            stop: wiring.stop.clone(),
        };
        let rules = list.index.provider_rules(config, &list.index.scope(&list.urls));
        let scheduler = SchedulerConfig {
            pages_max: None,
            head_only: false,
            wait: list.wait,
            ..SchedulerConfig::new(config)
        };
        let provider = Provider::new(list.index.index, rules);
        let dealer = Dealer { provider, seeds: list.urls, config: scheduler };
        let (scheduler, index) = dealer.join(&mut wiring, vec![lane], names)?;

        let (stop, health, scheduler_bell) = (wiring.stop, wiring.health, scheduler.bell.door.clone());
        let shards_setup = ShardsSetup {
            name: "shard",
            driver,
            cores: &config.cores[..1],
            owner: &scheduler_bell,
            stop: &stop,
            health: &health,
        };
        let shard = ShardThreads::start(&shards_setup, vec![ShardSeat { maker, slot, bell }], make_driver)?;
        Ok(UrlNode {
            started,
            driver,
            bound,
            log_writer: ActorThread::start("log", wiring.log_writer, started, &health)?,
            index: ActorThread::start("index", index, started, &health)?,
            scheduler: ActorThread::start("scheduler", scheduler, started, &health)?,
            scheduler_bell,
            stop,
            shard,
            links,
            table: wiring.table,
            health,
        })
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Sends nothing more; what spiders have may end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.scheduler_bell.ring_if_asleep();
    }

    pub fn is_finished(&self) -> bool {
        self.scheduler.is_finished()
    }

    /// What it waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.health.waiting_for()
    }

    /// What users are to be told that happened since this was last asked.
    pub fn notices(&self) -> Vec<Notice> {
        self.health.notices().take()
    }

    /// Waits for the end, writes everything and sums up.
    pub fn finish(self) -> Result<UrlSummary, NodeError> {
        let stopped = self.stop.load(Ordering::Relaxed);
        let scheduler = self.scheduler.join();
        self.shard.join();
        self.links.end();
        self.log_writer.end();
        let index = self.index.end().provider().index().stats();
        self.health.take()?;
        let sum = |counter| self.table.sum(counter);
        Ok(UrlSummary {
            known: index.known,
            done: index.known - index.pending - index.fetching - index.waiting,
            pending: index.pending + index.fetching + index.waiting,
            sent: sum(Counter::Sent),
            resent: sum(Counter::Resent),
            late: sum(Counter::Late),
            bad_lines: sum(Counter::BadLines),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            results: scheduler.results(),
            stopped,
        })
    }
}

/// What makes the one shard of a URL server.
struct RemoteMaker {
    config: Config,
    setup: SpiderSetup,
    wire: ShardWire<ToShard, FromShard>,
    previous: PreviousRun,
    port: Arc<Mutex<LinkPort>>,
    stop: Arc<AtomicBool>,
}

impl<D: Driver> ShardMaker<D> for RemoteMaker {
    type Shard = Shard<D, RemoteQueues, NoRecords>;

    fn make(&self, driver: D, epoch: u32) -> Shard<D, RemoteQueues, NoRecords> {
        let queues = queues(&self.config, &self.wire, &self.previous, epoch, driver.now());
        let dialect = self.config.url_server.spider_protocol;
        let source = RemoteQueues::new(queues, self.port.clone(), dialect, self.stop.clone(), epoch);
        Shard::new(driver, shard_parts(&self.config, &self.setup, &self.wire), source, NoRecords)
    }

    fn announce(&self, epoch: u32) {
        let restarted = FromShard::Restarted { epoch, suspect: None };
        send_up(&self.wire.lane.replies, &self.wire.owner, restarted);
    }
}
