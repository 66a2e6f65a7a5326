use super::store_assembly::{StoreCore, assemble_store_server};
use crate::config::Config;
use crate::driver::EpollDriver;
use crate::engine::runtime::actor::{InDriver, joined, run, spawn};
use crate::engine::runtime::counters::cpu_us;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::notices::Notice;
use crate::engine::runtime::shard_thread::pin;
use crate::engine::runtime::store_actors::StoreThreads;
use crate::engine::runtime::wiring::wall_at;
use crate::rings::Doorbell;
use crate::store_server::{DataDir, Stored};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// A store server process: an acceptor, a worker per core, the keeper.
pub struct StoreNode {
    started: Instant,
    bound: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: JoinHandle<()>,
    workers: Vec<JoinHandle<()>>,
    bells: Vec<Arc<Doorbell>>,
    store: StoreThreads,
    stats: Arc<StoreStats>,
    health: Arc<Health>,
}

/// Counters of a store server.
#[derive(Default)]
pub struct StoreStats {
    pub connections: AtomicU64,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub stored_bytes: AtomicU64,
    pub bad_connections: AtomicU64,
}

/// What a store server came to.
#[derive(Clone, Debug)]
pub struct StoreSummary {
    pub connections: u64,
    pub records: u64,
    /// On the wire, headers included, and in segments.
    pub bytes: u64,
    pub stored_bytes: u64,
    /// Connections that ended inside a record, or sent what is none.
    pub bad_connections: u64,
    pub seconds: f64,
    pub cpu_us: u64,
}

impl StoreStats {
    pub(super) fn stored(&self, stored: Stored) {
        if stored.records > 0 {
            self.records.fetch_add(stored.records, Ordering::Relaxed);
            self.bytes.fetch_add(stored.wire_bytes, Ordering::Relaxed);
            self.stored_bytes.fetch_add(stored.segment_bytes, Ordering::Relaxed);
        }
    }
}

impl StoreNode {
    /// Starts every thread.
    pub fn start(
        config: &Config,
        listen: SocketAddr,
        directory: DataDir,
        started: Instant,
    ) -> Result<StoreNode, NodeError> {
        let driver = |conns_max| EpollDriver::new(conns_max, started).map_err(driver_failed);
        let core = assemble_store_server(config, listen, directory, driver, wall_at(started))?;
        let StoreCore { acceptor, bound, workers, keeper, stats, health } = core;
        let stop = Arc::new(AtomicBool::new(false));
        let mut bells: Vec<Arc<Doorbell>> = workers.iter().map(|worker| worker.bell.clone()).collect();
        bells.push(acceptor.bell.clone());
        let mut threads = Vec::new();
        for (index, (&core, mut seat)) in config.cores.iter().zip(workers).enumerate() {
            let (stop, health) = (stop.clone(), health.clone());
            threads.push(spawn(&format!("store-{index}"), move || {
                let pinned = pin(core).map_err(|cause| NodeError::Pin { core, cause });
                let sleeper = InDriver(seat.bell);
                let turned = |()| run(&mut seat.actor, &sleeper, &stop, || false).map_err(driver_failed);
                let ran = pinned.and_then(turned);
                ran.unwrap_or_else(|error| health.fatal(error));
            })?);
        }
        let store = StoreThreads::start(keeper, config, started, &health)?;
        let acceptor = spawn("acceptor", {
            let (stop, health, mut seat) = (stop.clone(), health.clone(), acceptor);
            move || {
                let ran = run(&mut seat.actor, &InDriver(seat.bell), &stop, || false);
                ran.unwrap_or_else(|cause| health.fatal(driver_failed(cause)));
            }
        })?;
        let workers = threads;
        Ok(StoreNode { started, bound, stop, acceptor, workers, bells, store, stats, health })
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// Lets nobody in any more; what was received is stored and counted.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.bells.iter().for_each(|bell| bell.ring_if_asleep());
    }

    /// All workers have ended, or one of them before its time.
    pub fn is_finished(&self) -> bool {
        let ended = self.workers.iter().filter(|worker| worker.is_finished()).count();
        match self.stop.load(Ordering::Acquire) {
            true => ended == self.workers.len(),
            false => ended > 0 || self.health.is_fatal(),
        }
    }

    /// What the store server waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        let text = self.health.waiting_for()?;
        // The keeper does not know whom it keeps for.
        Some(text.strip_prefix("fetching ").map_or(text.clone(), |rest| format!("receiving {rest}")))
    }

    /// Things a user should know that happened since this was last asked.
    pub fn notices(&self) -> Vec<Notice> {
        self.health.notices().take()
    }

    /// Waits for the end, seals everything and sums up.
    pub fn finish(self) -> Result<StoreSummary, NodeError> {
        self.stop();
        joined(self.acceptor);
        self.workers.into_iter().for_each(joined);
        let kept = self.store.end();
        self.health.take()?;
        kept?;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(StoreSummary {
            connections: get(&self.stats.connections),
            records: get(&self.stats.records),
            bytes: get(&self.stats.bytes),
            stored_bytes: get(&self.stats.stored_bytes),
            bad_connections: get(&self.stats.bad_connections),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
        })
    }
}

fn driver_failed(cause: io::Error) -> NodeError {
    NodeError::Wait { driver: "epoll", cause }
}
