use crate::driver::Driver;
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::node_setup::NodeSetup;
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::desk::Desk;
use crate::engine::inspect::node_status::Gauges;
use crate::engine::links::{LinksConfig, LinksThread};
use crate::engine::names::Names;
use crate::engine::runtime::actor::ActorThread;
use crate::engine::runtime::counters::{Counter, CounterTable, Snapshot, UrlSummary, cpu_us};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::log_writer::{LogMedium, LogWriter};
use crate::engine::runtime::readings::{Meter, MeterParts, Role};
use crate::engine::runtime::running::{Running, StopSwitch};
use crate::engine::runtime::shard_thread::{ShardThreads, ShardsSetup};
use crate::engine::runtime::wiring::wall_at;
use crate::engine::split::url_assembly::{UrlList, assemble_url_server};
use crate::rings::Doorbell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// A URL server process: the scheduler and the doc index of a crawl, and in place of its shards one with links to spiders
/// in other processes.
pub struct UrlNode {
    started: Instant,
    driver: &'static str,
    bound: Option<SocketAddr>,
    stop: StopSwitch,
    scheduler: ActorThread<Scheduler>,
    index: ActorThread<IndexActor>,
    log_writer: ActorThread<LogWriter>,
    shard: ShardThreads,
    links: LinksThread,
    table: CounterTable,
    health: Arc<Health>,
    desk: Arc<Desk>,
    meter: Arc<Meter>,
}

impl UrlNode {
    /// Starts every thread. `make_driver` is called on the shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        list: UrlList,
        links: LinksConfig,
        names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<UrlNode, NodeError> {
        let config = &setup.config;
        let log = LogMedium::Directory(&config.store.data);
        let links = |owner, health: &Health| LinksThread::start(links, driver, started, owner, health);
        let core = assemble_url_server(setup, list, &log, links, names, wall_at(started))?;
        let (stop, health, scheduler_bell) = (core.stop, core.health, core.scheduler.bell.door.clone());
        let shards_setup = ShardsSetup {
            name: "shard",
            driver,
            cores: &config.cores[..1],
            owner: &scheduler_bell,
            stop: &stop,
            health: &health,
        };
        let questions = Some(core.scheduler.actor.questions());
        let gauges = Gauges::new(Role::UrlServer, core.table.clone(), health.clone(), stop.clone(), started);
        let shard = ShardThreads::start(&shards_setup, vec![core.shard], make_driver)?;
        let meter = Arc::new(Meter::new(MeterParts {
            role: Role::UrlServer,
            driver,
            table: core.table.clone(),
            shards: core.shard_stats.iter().map(|shard| shard.counters.clone()).collect(),
            health: health.clone(),
            stop: stop.clone(),
            started,
            budget: Some(setup.kit.budget.clone()),
            store: None,
            rings: core.rings,
        }));
        let stop = StopSwitch::new(stop, vec![scheduler_bell]);
        let rules = Some(CrawlRules::of(config));
        let desk =
            Arc::new(Desk { gauges, meter: meter.clone(), stop: stop.clone(), questions, news: None, rules });
        Ok(UrlNode {
            meter,
            started,
            driver,
            bound: core.bound,
            log_writer: ActorThread::start("log", core.log_writer, started, &health)?,
            index: ActorThread::start("index", core.index, started, &health)?,
            scheduler: ActorThread::start("scheduler", core.scheduler, started, &health)?,
            stop,
            shard,
            links: core.links,
            table: core.table,
            health,
            desk,
        })
    }

    /// Where it is asked and told things.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }
}

impl Running for UrlNode {
    type Summary = UrlSummary;

    fn health(&self) -> &Health {
        &self.health
    }

    fn stop_switch(&self) -> &StopSwitch {
        &self.stop
    }

    fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    fn is_finished(&self) -> bool {
        self.scheduler.is_finished()
    }

    fn counted(&self) -> Snapshot {
        Snapshot { pages: self.table.sum(Counter::Done), ..Snapshot::of(&self.table) }
    }

    fn finish(self) -> Result<UrlSummary, NodeError> {
        let stopped = self.stop.is_stopped();
        let mut scheduler = self.scheduler.join();
        scheduler.end_questions();
        self.shard.join();
        self.links.end();
        self.log_writer.end();
        let index_actor = self.index.end();
        let index = index_actor.provider().index().stats();
        self.health.take()?;
        let sum = |counter| self.table.sum(counter);
        Ok(UrlSummary {
            known: index.known,
            done: index.known - index.left() - index.excluded,
            pending: index.left(),
            excluded: index.excluded,
            sent: sum(Counter::Sent),
            resent: sum(Counter::Resent),
            late: sum(Counter::Late),
            bad_lines: sum(Counter::BadLines),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            results: scheduler.results(),
            waiting_hosts: scheduler.waiting_hosts(wall_at(self.started), index_actor.provider().index()),
            stopped,
        })
    }
}
