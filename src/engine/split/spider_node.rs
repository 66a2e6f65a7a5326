use crate::driver::Driver;
use crate::engine::crawl::node_setup::NodeSetup;
use crate::engine::inspect::desk::Desk;
use crate::engine::inspect::node_status::Gauges;
use crate::engine::links::{LinksConfig, LinksThread};
use crate::engine::runtime::actor::ActorThread;
use crate::engine::runtime::counters::{
    Counter, CounterTable, ShardStats, Snapshot, SpiderSummary, cpu_us, merged_histogram,
};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::{LogMedium, LogWriter};
use crate::engine::runtime::readings::{Meter, MeterParts, Role};
use crate::engine::runtime::running::{Running, StopSwitch};
use crate::engine::runtime::shard_thread::{ShardThreads, ShardsSetup};
use crate::engine::runtime::store_actors::StoreThreads;
use crate::engine::runtime::wiring::wall_at;
use crate::engine::split::record_sender::StoreThread;
use crate::engine::split::spider_assembly::{RecordActor, StoreAt, assemble_spider};
use crate::engine::split::spider_dispatcher::SpiderDispatcher;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// A spider process: links to URL servers, a dispatcher, a shard per core, and the keeper or senders to a store server.
pub struct SpiderNode {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    bound: Option<SocketAddr>,
    stop: StopSwitch,
    dispatcher: ActorThread<SpiderDispatcher>,
    links: LinksThread,
    shards: ShardThreads,
    log_writer: ActorThread<LogWriter>,
    kept: Kept,
    shard_stats: Vec<Arc<ShardStats>>,
    table: CounterTable,
    health: Arc<Health>,
    desk: Arc<Desk>,
    meter: Arc<Meter>,
}

/// The threads that see to it that records are kept.
enum Kept {
    Segments(StoreThreads),
    Server(StoreThread),
}

impl SpiderNode {
    /// Starts every thread. `make_driver` is called on each shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        links: LinksConfig,
        store: StoreAt,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<SpiderNode, NodeError> {
        let config = &setup.config;
        let log = match &store {
            StoreAt::Directory(_) => LogMedium::Directory(&config.store.data),
            StoreAt::Server(_) => LogMedium::Nowhere,
        };
        let links = |owner, health: &Health| LinksThread::start(links, driver, started, owner, health);
        let sender = |parts, shards| StoreThread::start(parts, shards, driver, started);
        let core = assemble_spider(setup, store, &log, links, sender, wall_at(started))?;
        let (stop, health, dispatcher_bell) = (core.stop, core.health, core.dispatcher.bell.door.clone());
        let shards_setup = ShardsSetup {
            name: "shard",
            driver,
            cores: &config.cores,
            owner: &dispatcher_bell,
            stop: &stop,
            health: &health,
        };
        let shards = ShardThreads::start(&shards_setup, core.shards, make_driver)?;
        let is_here = matches!(core.records, RecordActor::Segments(_));
        let kept_at = is_here.then(|| LiveConfig::new(config));
        let kept = match core.records {
            RecordActor::Segments(keeper) => {
                Kept::Segments(StoreThreads::start(*keeper, config, started, &health)?)
            }
            RecordActor::Server(server) => Kept::Server(server),
        };
        let log_writer = ActorThread::start("log", core.log_writer, started, &health)?;
        let dispatcher = ActorThread::start("dispatcher", core.dispatcher, started, &health)?;
        let meter = Arc::new(Meter::new(MeterParts {
            role: Role::Spider,
            driver,
            table: core.table.clone(),
            shards: core.shard_stats.iter().map(|shard| shard.counters.clone()).collect(),
            health: health.clone(),
            stop: stop.clone(),
            started,
            budget: Some(setup.kit.budget.clone()),
            store: kept_at,
            rings: core.rings,
        }));
        let gauges = Gauges::new(Role::Spider, core.table.clone(), health.clone(), stop.clone(), started);
        let stop = StopSwitch::new(stop, vec![dispatcher_bell]);
        let desk = Arc::new(Desk {
            gauges,
            meter: meter.clone(),
            stop: stop.clone(),
            questions: None,
            news: None,
            rules: None,
        });
        Ok(SpiderNode {
            meter,
            started,
            driver,
            cores: config.cores.clone(),
            bound: core.bound,
            stop,
            dispatcher,
            links: core.links,
            shards,
            log_writer,
            kept,
            shard_stats: core.shard_stats,
            table: core.table,
            health,
            desk,
        })
    }

    /// Where it is asked and told things.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// Where URL servers may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }
}

impl Running for SpiderNode {
    type Summary = SpiderSummary;

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
        self.dispatcher.is_finished()
    }

    fn counted(&self) -> Snapshot {
        Snapshot::of(&self.table)
    }

    fn finish(self) -> Result<SpiderSummary, NodeError> {
        let results = self.dispatcher.join().results();
        // What the dispatcher has said is sent before the links are let go.
        self.links.end();
        self.shards.join();
        self.log_writer.end();
        let kept = match self.kept {
            Kept::Segments(store) => store.end(),
            Kept::Server(server) => {
                server.end();
                Ok(())
            }
        };
        self.health.take()?;
        kept?;
        let sum = |counter| self.table.sum(counter);
        Ok(SpiderSummary {
            pages: sum(Counter::Pages),
            success: sum(Counter::Success),
            bytes: sum(Counter::Bytes),
            stored_bytes: sum(Counter::StoredBytes),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            cores: self.cores,
            results,
            fetch_us: merged_histogram(&self.shard_stats),
            untold: sum(Counter::Untold),
            bad_lines: sum(Counter::BadLines),
            restarts: sum(Counter::Restarts),
            syscalls: sum(Counter::Syscalls),
        })
    }
}
