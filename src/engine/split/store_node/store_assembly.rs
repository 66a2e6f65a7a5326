//! A store server process as plain values and rings, without a thread.

use super::acceptor::{Acceptor, WorkerPort};
use super::node::StoreStats;
use super::worker::{Worker, WorkerParts};
use crate::base::Wall;
use crate::config::Config;
use crate::driver::{Driver, ServerDriver};
use crate::engine::crawl::settings::store_rules;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::store_actors::KeeperActor;
use crate::limits::{STORE_CONNECTIONS_MAX, STORE_HELD_BYTES_MAX};
use crate::rings::{Doorbell, ring};
use crate::store_server::{DataDir, Keeper, Medium, StoreRules};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A store server process, before it has threads.
pub(crate) struct StoreCore<D: ServerDriver> {
    pub acceptor: StoreSeat<Acceptor<D>>,
    pub bound: SocketAddr,
    pub workers: Vec<StoreSeat<Worker<D>>>,
    pub keeper: KeeperActor,
    pub stats: Arc<StoreStats>,
    pub health: Arc<Health>,
}

/// An actor over a driver of its own, and the bell of that driver.
pub(crate) struct StoreSeat<A> {
    pub actor: A,
    pub bell: Arc<Doorbell>,
}

/// Makes every part of a store server and joins them. `make_driver` is given how many connections a driver is for; the first
/// is the acceptor's, then there is one for every worker.
pub(crate) fn assemble_store_server<D: ServerDriver>(
    config: &Config,
    listen: SocketAddr,
    directory: DataDir,
    mut make_driver: impl FnMut(usize) -> Result<D, NodeError>,
    wall: Wall,
) -> Result<StoreCore<D>, NodeError> {
    let health = Arc::new(Health::default());
    let stats = Arc::new(StoreStats::default());
    let accepting = make_driver(0)?;
    let acceptor_bell = driver_bell(&accepting);
    let (mut acceptor, bound) =
        Acceptor::new(accepting, listen, STORE_CONNECTIONS_MAX, health.notices().clone())
            .map_err(|cause| NodeError::Listen { addr: listen, cause })?;
    // What documents were asked for with is not told on the wire.
    let rules = StoreRules { agent: String::new(), ..store_rules(config) };
    let mut keeper = Keeper::new(Medium::Directory(directory), rules, config.cores.len());
    keeper.prepare(wall.unix_ms_at_zero)?;

    let drivers: Vec<D> =
        config.cores.iter().map(|_| make_driver(STORE_CONNECTIONS_MAX)).collect::<Result<_, _>>()?;
    let bells: Vec<Arc<Doorbell>> = drivers.iter().map(driver_bell).collect();
    // One bell for all of them: a worker that falls asleep hangs it up.
    let keepers_bell = Arc::new(Doorbell::new({
        let bells = bells.clone();
        move || bells.iter().for_each(|bell| bell.ring_if_asleep())
    }));
    let mut ports = Vec::new();
    let mut workers = Vec::new();
    for (index, (driver, bell)) in drivers.into_iter().zip(&bells).enumerate() {
        let (accepted_out, accepted) = ring(STORE_CONNECTIONS_MAX);
        let open = Arc::new(AtomicUsize::new(0));
        ports.push(WorkerPort { accepted: accepted_out, open: open.clone(), bell: bell.clone() });
        let parts = WorkerParts {
            share: keeper.share(index),
            accepted,
            open,
            keepers_bell: keepers_bell.clone(),
            stats: stats.clone(),
            health: health.clone(),
            wall,
            doc_bytes_max: config.spider.max_doc_size.0,
            held_bytes_max: held_bytes_max(config),
        };
        workers.push(StoreSeat { actor: Worker::new(driver, parts), bell: bell.clone() });
    }
    acceptor.deal_to(ports);
    let keeper = KeeperActor::new(keeper, config, wall, keepers_bell, bells, &health);
    let acceptor = StoreSeat { actor: acceptor, bell: acceptor_bell };
    Ok(StoreCore { acceptor, bound, workers, keeper, stats, health })
}

/// Of unfinished records, for one worker: two of the largest have room, whatever their size.
fn held_bytes_max(config: &Config) -> usize {
    STORE_HELD_BYTES_MAX.max(2 * config.spider.max_doc_size.0 as usize + (1 << 20))
}

fn driver_bell(driver: &impl Driver) -> Arc<Doorbell> {
    let bell = driver.bell();
    Arc::new(Doorbell::new(move || bell.ring()))
}
