//! A spider process as plain values and rings, without a thread.

use crate::base::Wall;
use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::assembly::shard_parts;
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::settings::{gap_us, store_rules};
use crate::engine::crawl::shard::Shard;
use crate::engine::runtime::actor::Seated;
use crate::engine::runtime::counters::{CounterTable, ShardStats};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::log_writer::{LogMedium, LogWriter};
use crate::engine::runtime::shard_thread::{ShardMaker, ShardSeat, send_up};
use crate::engine::runtime::store_actors::KeeperActor;
use crate::engine::runtime::wiring::{ShardWire, Wiring};
use crate::engine::split::messages::{FromSpider, ToSpider};
use crate::engine::split::order_queue::OrderQueue;
use crate::engine::split::order_sink::OrderSink;
use crate::engine::split::record_sender::{RecordPlace, SenderParts, SenderPort};
use crate::engine::split::spider_dispatcher::{DispatcherConfig, SpiderDispatcher};
use crate::engine::split::url_assembly::MadeLinks;
use crate::proto::lines::Dialect;
use crate::rings::{Doorbell, Fill};
use crate::store_server::{DataDir, Keeper, Medium};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A spider process, before it has threads; `L` turns its links, `S` sends its records.
pub(crate) struct SpiderCore<L, S> {
    pub dispatcher: Seated<SpiderDispatcher>,
    pub links: L,
    pub bound: Option<SocketAddr>,
    pub shards: Vec<SpiderSeat>,
    pub log_writer: Seated<LogWriter>,
    pub records: RecordActor<S>,
    pub table: CounterTable,
    pub stop: Arc<AtomicBool>,
    pub shard_stats: Vec<Arc<ShardStats>>,
    pub rings: Vec<(&'static str, Fill)>,
    pub health: Arc<Health>,
}

/// Where the documents go.
pub enum StoreAt {
    Directory(DataDir),
    /// `host:port` of a store server.
    Server(String),
}

/// What sees to it that records are kept.
pub(crate) enum RecordActor<S> {
    Segments(Box<KeeperActor>),
    Server(S),
}

/// Makes every part of a spider and joins them. `sender` makes what sends records to a store server.
pub(crate) fn assemble_spider<L, S>(
    setup: &NodeSetup,
    store: StoreAt,
    log: &LogMedium<'_>,
    links: impl FnOnce(Arc<Doorbell>, &Health) -> MadeLinks<L>,
    sender: impl FnOnce(SenderParts, usize) -> Result<(S, Vec<SenderPort>), NodeError>,
    wall: Wall,
) -> Result<SpiderCore<L, S>, NodeError> {
    let NodeSetup { config, kit } = setup;
    let mut wiring = Wiring::open(config, log, wall)?;
    let owner = wiring.dealer.door.clone();
    // Before anything that takes long: a process that is refused the address learns it at once.
    let (port, links, bound) = links(owner.clone(), &wiring.health)?;
    let shard_count = config.cores.len();
    let (keeper, server, places) = match store {
        StoreAt::Directory(directory) => {
            let mut keeper = Keeper::new(Medium::Directory(directory), store_rules(config), shard_count);
            keeper.prepare(wall.unix_ms_at_zero).map_err(NodeError::NoStore)?;
            let places: Vec<_> =
                (0..shard_count).map(|index| RecordPlace::Segments(keeper.share(index))).collect();
            (Some(keeper), None, places)
        }
        StoreAt::Server(address) => {
            let (stop, health) = (wiring.stop.clone(), wiring.health.clone());
            let parts = SenderParts { address, owner: owner.clone(), stop, health };
            let (sender, ports) = sender(parts, shard_count)?;
            (None, Some(sender), ports.into_iter().map(RecordPlace::Server).collect())
        }
    };
    let mut lanes = Vec::new();
    let mut shards = Vec::new();
    for records in places {
        let (lane, wire) = wiring.shard(records.durable_point());
        lanes.push(lane);
        let (slot, bell) = (wire.slot.clone(), wire.bell.clone());
        let maker = SpiderMaker { config: config.clone(), setup: kit.clone(), records, wire };
        shards.push(ShardSeat { maker, slot, bell });
    }
    let records = match (keeper, server) {
        (Some(keeper), _) => {
            let bells = shards.iter().map(|seat| seat.bell.clone()).collect();
            RecordActor::Segments(Box::new(KeeperActor::new(
                keeper,
                config,
                wall,
                owner,
                bells,
                &wiring.health,
                wiring.table.thread(),
            )))
        }
        (None, Some(server)) => RecordActor::Server(server),
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
        wiring.stop.clone(),
        wiring.table.thread(),
        wiring.health.clone(),
    );
    Ok(SpiderCore {
        dispatcher: Seated { actor: dispatcher, bell: wiring.dealer },
        links,
        bound,
        shards,
        log_writer: wiring.log_writer,
        records,
        table: wiring.table,
        stop: wiring.stop,
        shard_stats: wiring.shard_stats,
        rings: wiring.rings,
        health: wiring.health,
    })
}

/// A place for a shard of a spider process.
pub(crate) type SpiderSeat = ShardSeat<SpiderMaker>;
/// A shard of a spider process.
pub(crate) type SpiderShard<D> = Shard<D, OrderQueue, OrderSink>;

/// What makes the shards of a spider process.
pub(crate) struct SpiderMaker {
    config: Config,
    setup: SpiderSetup,
    records: RecordPlace,
    wire: ShardWire<ToSpider, FromSpider>,
}

impl<D: Driver> ShardMaker<D> for SpiderMaker {
    type Shard = SpiderShard<D>;

    fn make(&self, driver: D, epoch: u32) -> SpiderShard<D> {
        let source = OrderQueue::new(epoch, gap_us(&self.config), self.setup.stored.clone());
        let sink = OrderSink::new(self.records.sink());
        Shard::new(driver, shard_parts(&self.config, &self.setup, &self.wire), source, sink)
    }

    fn announce(&self, epoch: u32) {
        let suspect = self.wire.stats.died(epoch);
        send_up(&self.wire.lane.replies, &self.wire.owner, FromSpider::Restarted { epoch, suspect });
    }
}
