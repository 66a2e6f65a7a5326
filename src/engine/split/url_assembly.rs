//! A URL server process as plain values and rings, without a thread.

use crate::base::Wall;
use crate::driver::Driver;
use crate::engine::crawl::assembly::{Dealer, queues, shard_parts};
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::open_index::OpenIndex;
use crate::engine::crawl::provider::Provider;
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::crawl::scheduler_setup::SchedulerConfig;
use crate::engine::crawl::shard::Shard;
use crate::engine::links::LinkPort;
use crate::engine::names::Names;
use crate::engine::runtime::actor::Seated;
use crate::engine::runtime::counters::{CounterTable, ShardStats};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::{LogMedium, LogWriter, PreviousRun};
use crate::engine::runtime::shard_thread::{ShardMaker, ShardSeat, send_up};
use crate::engine::runtime::wiring::{ShardWire, Wiring};
use crate::engine::split::remote_queues::{NoRecords, RemoteQueues};
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Fill};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A URL server process, before it has threads; `L` is what turns its links.
pub(crate) struct UrlCore<L> {
    pub scheduler: Seated<Scheduler>,
    pub index: Seated<IndexActor>,
    pub log_writer: Seated<LogWriter>,
    pub shard: ShardSeat<RemoteMaker>,
    pub links: L,
    pub bound: Option<SocketAddr>,
    pub table: CounterTable,
    pub stop: Arc<AtomicBool>,
    pub shard_stats: Vec<Arc<ShardStats>>,
    pub rings: Vec<(&'static str, Fill)>,
    pub health: Arc<Health>,
}

/// What is to be fetched.
pub struct UrlList {
    pub urls: Vec<CrawlUrl>,
    /// Where the URLs are known and noted.
    pub index: OpenIndex,
    /// Stay when everything is done.
    pub wait: bool,
}

/// The owner's port, what turns the links, and where they listen.
pub(crate) type MadeLinks<L> = Result<(LinkPort, L, Option<SocketAddr>), NodeError>;

/// Makes every part of a URL server and joins them. `links` is given the bell of their owner.
pub(crate) fn assemble_url_server<L>(
    setup: &NodeSetup,
    list: UrlList,
    log: &LogMedium<'_>,
    links: impl FnOnce(Arc<Doorbell>, &Health) -> MadeLinks<L>,
    names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
    wall: Wall,
) -> Result<UrlCore<L>, NodeError> {
    let NodeSetup { config, kit } = setup;
    let mut wiring = Wiring::open(config, log, wall)?;
    // Nothing is stored here, so nothing waits to become durable.
    let (lane, wire) = wiring.shard(Arc::new(()));
    let (port, links, bound) = links(wire.bell.clone(), &wiring.health)?;
    let (slot, bell) = (wire.slot.clone(), wire.bell.clone());
    let live = LiveConfig::new(config);
    let maker = RemoteMaker {
        config: live.clone(),
        setup: kit.clone(),
        wire,
        previous: wiring.previous.clone(),
        port: Arc::new(Mutex::new(port)),
        stop: wiring.stop.clone(),
    };
    let rules = list.index.provider_rules(config, &list.index.scope(&list.urls));
    let scheduler = SchedulerConfig {
        pages_max: None,
        seconds_max: None,
        head_only: false,
        wait: list.wait,
        ..SchedulerConfig::new(config)
    };
    let provider = Provider::new(list.index.index, rules);
    let dealer = Dealer { provider, seeds: list.urls, config: scheduler, live };
    let (scheduler, index) = dealer.join(&mut wiring, vec![lane], names)?;
    Ok(UrlCore {
        scheduler,
        index,
        log_writer: wiring.log_writer,
        shard: ShardSeat { maker, slot, bell },
        links,
        bound,
        table: wiring.table,
        stop: wiring.stop,
        shard_stats: wiring.shard_stats,
        rings: wiring.rings,
        health: wiring.health,
    })
}

/// The one shard of a URL server.
pub(crate) type RemoteShard<D> = Shard<D, RemoteQueues, NoRecords>;

/// What makes the one shard of a URL server.
pub(crate) struct RemoteMaker {
    config: LiveConfig,
    setup: SpiderSetup,
    wire: ShardWire<ToShard, FromShard>,
    previous: PreviousRun,
    port: Arc<Mutex<LinkPort>>,
    stop: Arc<AtomicBool>,
}

impl<D: Driver> ShardMaker<D> for RemoteMaker {
    type Shard = RemoteShard<D>;

    fn make(&self, driver: D, epoch: u32) -> RemoteShard<D> {
        let (now, config) = (driver.now(), self.config.get());
        let queues = queues(&config, &self.wire, &self.previous, epoch, now);
        let queues = queues.with_spiders_behind_links(now);
        let dialect = config.url_server.spider_protocol;
        let source = RemoteQueues::new(queues, self.port.clone(), dialect, self.stop.clone(), epoch);
        Shard::new(driver, shard_parts(&config, &self.setup, &self.wire), source, NoRecords)
    }

    fn announce(&self, epoch: u32) {
        self.wire.stats.died(epoch);
        let restarted = FromShard::Restarted { epoch, suspect: None };
        send_up(&self.wire.lane.replies, &self.wire.owner, restarted);
    }
}
