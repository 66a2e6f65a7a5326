use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::assembly::shard_parts;
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::settings::{gap_us, store_rules};
use crate::engine::crawl::shard::Shard;
use crate::engine::links::{LinksConfig, LinksThread};
use crate::engine::runtime::actor::{ActorThread, Seated};
use crate::engine::runtime::counters::{
    Counter, CounterTable, ShardStats, SpiderSummary, cpu_us, merged_histogram,
};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::log_writer::{LogMedium, LogWriter};
use crate::engine::runtime::notices::Notice;
use crate::engine::runtime::shard_thread::{ShardMaker, ShardSeat, ShardThreads, ShardsSetup, send_up};
use crate::engine::runtime::store_actors::{KeeperActor, StoreThreads};
use crate::engine::runtime::wiring::{ShardWire, Wiring, wall_at};
use crate::engine::split::messages::{FromSpider, ToSpider};
use crate::engine::split::order_queue::OrderQueue;
use crate::engine::split::order_sink::OrderSink;
use crate::engine::split::record_sender::{RecordPlace, SenderParts, StoreThread};
use crate::engine::split::spider_dispatcher::{DispatcherConfig, SpiderDispatcher};
use crate::proto::lines::Dialect;
use crate::rings::Doorbell;
use crate::store_server::{DataDir, Keeper, Medium};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A spider process: links to URL servers, a dispatcher, a shard per core, and the keeper or senders to a store server.
pub struct SpiderNode {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    bound: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    dispatcher: ActorThread<SpiderDispatcher>,
    dispatcher_bell: Arc<Doorbell>,
    links: LinksThread,
    shards: ShardThreads,
    log_writer: ActorThread<LogWriter>,
    kept: Kept,
    shard_stats: Vec<Arc<ShardStats>>,
    table: CounterTable,
    health: Arc<Health>,
}

/// Where the documents go.
pub enum StoreAt {
    Directory(DataDir),
    /// `host:port` of a store server.
    Server(String),
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
        let NodeSetup { config, kit } = setup;
        let log_medium = match &store {
            StoreAt::Directory(_) => LogMedium::Directory(&config.store.data),
            StoreAt::Server(_) => LogMedium::Nowhere,
        };
        let mut wiring = Wiring::open(config, &log_medium, wall_at(started))?;
        let dispatcher_bell = wiring.dealer.door.clone();
        // Before anything that takes long: a process that is refused the address learns it at once.
        let (port, links, bound) =
            LinksThread::start(links, driver, started, dispatcher_bell.clone(), &wiring.health)?;
        let shard_count = config.cores.len();
        let (stop, health) = (wiring.stop.clone(), wiring.health.clone());
        let (keeper, server, places) = match store {
            StoreAt::Directory(directory) => {
                let mut keeper = Keeper::new(Medium::Directory(directory), store_rules(config), shard_count);
                keeper.prepare(wiring.wall.unix_ms_at_zero)?;
                let places: Vec<_> =
                    (0..shard_count).map(|index| RecordPlace::Segments(keeper.share(index))).collect();
                (Some(keeper), None, places)
            }
            StoreAt::Server(address) => {
                let (owner, stop, health) = (dispatcher_bell.clone(), stop.clone(), health.clone());
                let parts = SenderParts { address, owner, stop, health };
                let (thread, ports) = StoreThread::start(parts, shard_count, driver, started)?;
                (None, Some(thread), ports.into_iter().map(RecordPlace::Server).collect())
            }
        };
        let mut lanes = Vec::new();
        let mut seats = Vec::new();
        for records in places {
            let (lane, wire) = wiring.shard(records.durable_point());
            lanes.push(lane);
            let (slot, bell) = (wire.slot.clone(), wire.bell.clone());
            let maker = SpiderMaker { config: config.clone(), setup: kit.clone(), records, wire };
            seats.push(ShardSeat { maker, slot, bell });
        }
        let bells: Vec<_> = seats.iter().map(|seat| seat.bell.clone()).collect();
        let shards_setup = ShardsSetup {
            name: "shard",
            driver,
            cores: &config.cores,
            owner: &dispatcher_bell,
            stop: &stop,
            health: &health,
        };
        let shards = ShardThreads::start(&shards_setup, seats, make_driver)?;
        let keeper = keeper.map(|keeper| {
            KeeperActor::new(keeper, config, wiring.wall, dispatcher_bell.clone(), bells, &health)
        });
        let kept = match (keeper, server) {
            (Some(keeper), _) => Kept::Segments(StoreThreads::start(keeper, config, started, &health)?),
            (None, Some(server)) => Kept::Server(server),
            (None, None) => unreachable!("records go to one of the two"),
        };
        let dispatcher = SpiderDispatcher::new(
            DispatcherConfig {
                slots: config.spider.fetches_max * shard_count,
                pull: config.url_server.spider_protocol == Dialect::Pull,
                report: config.spider.report,
                working_us: config.spider.timeout_update.us(),
            },
            port,
            lanes,
            stop.clone(),
            wiring.table.thread(),
            health.clone(),
        );
        let log_writer = ActorThread::start("log", wiring.log_writer, started, &health)?;
        let seated = Seated { actor: dispatcher, bell: wiring.dealer };
        let dispatcher = ActorThread::start("dispatcher", seated, started, &health)?;
        Ok(SpiderNode {
            started,
            driver,
            cores: config.cores.clone(),
            bound,
            stop,
            dispatcher,
            dispatcher_bell,
            links,
            shards,
            log_writer,
            kept,
            shard_stats: wiring.shard_stats,
            table: wiring.table,
            health,
        })
    }

    /// Where URL servers may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Takes no more work; what is open may end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.dispatcher_bell.ring_if_asleep();
    }

    pub fn is_finished(&self) -> bool {
        self.dispatcher.is_finished()
    }

    /// What it waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.health.waiting_for()
    }

    /// What users are to be told that happened since this was last asked.
    pub fn notices(&self) -> Vec<Notice> {
        self.health.notices().take()
    }

    /// Waits for the end, sends the last lines, writes everything and sums up.
    pub fn finish(self) -> Result<SpiderSummary, NodeError> {
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

/// What makes the shards of a spider process.
struct SpiderMaker {
    config: Config,
    setup: SpiderSetup,
    records: RecordPlace,
    wire: ShardWire<ToSpider, FromSpider>,
}

impl<D: Driver> ShardMaker<D> for SpiderMaker {
    type Shard = Shard<D, OrderQueue, OrderSink>;

    fn make(&self, driver: D, epoch: u32) -> Shard<D, OrderQueue, OrderSink> {
        let source = OrderQueue::new(epoch, gap_us(&self.config), self.setup.stored.clone());
        let sink = OrderSink::new(self.records.sink());
        Shard::new(driver, shard_parts(&self.config, &self.setup, &self.wire), source, sink)
    }

    fn announce(&self, epoch: u32) {
        let suspect = self.wire.stats.take_suspect();
        send_up(&self.wire.lane.replies, &self.wire.owner, FromSpider::Restarted { epoch, suspect });
    }
}
