//! A store server process as plain values, out of its settings.

use super::acceptor::Acceptor;
use super::store_core::{Belled, StoreBounds, StoreCore};
use super::worker::Worker;
use crate::base::Wall;
use crate::config::Config;
use crate::driver::ServerDriver;
use crate::engine::crawl::settings::store_rules;
use crate::engine::runtime::counters::CounterTable;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::store_actors::KeeperActor;
use crate::limits::{STORE_CONNECTIONS_MAX, STORE_HELD_BYTES_MAX};
use crate::store_server::{DataDir, Keeper, Medium, StoreRules};
use std::net::SocketAddr;
use std::sync::Arc;

/// A store server process, before it has threads.
pub(crate) struct StoreServer<D: ServerDriver> {
    pub acceptor: Belled<Acceptor<D>>,
    pub bound: SocketAddr,
    pub workers: Vec<Belled<Worker<D>>>,
    pub keeper: KeeperActor,
    pub counters: CounterTable,
    pub health: Arc<Health>,
}

/// Makes every part of a store server and joins them. `make_driver` is given how many connections a driver is for; the first
/// is the acceptor's, then there is one for every worker.
pub(crate) fn assemble_store_server<D: ServerDriver>(
    config: &Config,
    listen: SocketAddr,
    directory: DataDir,
    mut make_driver: impl FnMut(usize) -> Result<D, NodeError>,
    wall: Wall,
) -> Result<StoreServer<D>, NodeError> {
    let health = Arc::new(Health::default());
    // What documents were asked for with is not told on the wire.
    let rules = StoreRules { agent: String::new(), ..store_rules(config) };
    let keeper = Keeper::new(Medium::Directory(directory), rules, config.cores.len());
    let accepting = make_driver(0)?;
    let working =
        config.cores.iter().map(|_| make_driver(STORE_CONNECTIONS_MAX)).collect::<Result<_, _>>()?;
    let StoreCore { acceptor, workers, mut keeper, keepers_bell, bound, mut counters } =
        StoreCore::assemble(keeper, listen, (accepting, working), bounds(config), wall, &health)
            .map_err(|cause| NodeError::Listen { addr: listen, cause })?;
    keeper.prepare(wall.unix_ms_at_zero).map_err(NodeError::NoStore)?;
    let bells = workers.iter().map(|worker| worker.bell.clone()).collect();
    let keeper = KeeperActor::new(keeper, config, wall, keepers_bell, bells, &health, counters.thread());
    Ok(StoreServer { acceptor, bound, workers, keeper, counters, health })
}

fn bounds(config: &Config) -> StoreBounds {
    let doc_bytes_max = config.spider.max_doc_size.0;
    // Two of the largest records have room, whatever their size.
    let held_bytes_max = STORE_HELD_BYTES_MAX.max(2 * doc_bytes_max as usize + (1 << 20));
    StoreBounds { connections_max: STORE_CONNECTIONS_MAX, doc_bytes_max, held_bytes_max }
}
