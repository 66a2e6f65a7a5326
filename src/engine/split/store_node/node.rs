use super::acceptor::{Acceptor, WorkerPort};
use super::worker::{Worker, WorkerParts};
use crate::config::Config;
use crate::driver::{Driver, EpollDriver};
use crate::engine::crawl::settings::store_rules;
use crate::engine::runtime::actor::{InDriver, joined, run, spawn};
use crate::engine::runtime::counters::cpu_us;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::notices::Notice;
use crate::engine::runtime::shard_thread::pin;
use crate::engine::runtime::store_actors::{KeeperActor, StoreThreads};
use crate::engine::runtime::wiring::wall_at;
use crate::limits::{STORE_CONNECTIONS_MAX, STORE_HELD_BYTES_MAX};
use crate::rings::{Doorbell, ring};
use crate::store_server::{DataDir, Keeper, Medium, StoreRules, Stored};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
        let at = |cause| NodeError::Listen { addr: listen, cause };
        let driver = |conns_max| EpollDriver::new(conns_max, started).map_err(driver_failed);
        let stop = Arc::new(AtomicBool::new(false));
        let health = Arc::new(Health::default());
        let stats = Arc::new(StoreStats::default());
        let wall = wall_at(started);
        let accepting = driver(0)?;
        let acceptor_bell = driver_bell(&accepting);
        let (mut acceptor, bound) =
            Acceptor::new(accepting, listen, STORE_CONNECTIONS_MAX, health.notices.clone()).map_err(at)?;
        // What documents were asked for with is not told on the wire.
        let rules = StoreRules { agent: String::new(), ..store_rules(config) };
        let mut keeper = Keeper::new(Medium::Directory(directory), rules, config.cores.len());
        keeper.prepare(wall.unix_ms_at_zero)?;

        let drivers: Vec<EpollDriver> =
            config.cores.iter().map(|_| driver(STORE_CONNECTIONS_MAX)).collect::<Result<_, _>>()?;
        let mut bells: Vec<Arc<Doorbell>> = drivers.iter().map(|driver| driver_bell(driver)).collect();
        // One bell for all of them: a worker that falls asleep hangs it up.
        let keepers_bell = Arc::new(Doorbell::new({
            let bells = bells.clone();
            move || bells.iter().for_each(|bell| bell.ring_if_asleep())
        }));
        let mut ports = Vec::new();
        let mut workers = Vec::new();
        for (index, (&core, driver)) in config.cores.iter().zip(drivers).enumerate() {
            let (accepted_out, accepted) = ring(STORE_CONNECTIONS_MAX);
            let open = Arc::new(AtomicUsize::new(0));
            ports.push(WorkerPort { accepted: accepted_out, open: open.clone(), bell: bells[index].clone() });
            let mut worker = Worker::new(
                driver,
                WorkerParts {
                    share: keeper.share(index),
                    accepted,
                    open,
                    keepers_bell: keepers_bell.clone(),
                    stats: stats.clone(),
                    health: health.clone(),
                    wall,
                    doc_bytes_max: config.spider.max_doc_size.0,
                    held_bytes_max: held_bytes_max(config),
                },
            );
            let (bell, stop, health) = (bells[index].clone(), stop.clone(), health.clone());
            workers.push(spawn(&format!("store-{index}"), move || {
                let pinned = pin(core).map_err(|cause| NodeError::Pin { core, cause });
                let turned = |()| run(&mut worker, &InDriver(bell), &stop, || false).map_err(driver_failed);
                let ran = pinned.and_then(turned);
                ran.unwrap_or_else(|error| health.fatal(error));
            })?);
        }
        let keeper = KeeperActor::new(keeper, config, wall, keepers_bell, bells.clone(), &health);
        let store = StoreThreads::start(keeper, config, started, &health)?;
        acceptor.deal_to(ports);
        let acceptor = spawn("acceptor", {
            let (bell, stop, health) = (acceptor_bell.clone(), stop.clone(), health.clone());
            move || {
                let ran = run(&mut acceptor, &InDriver(bell), &stop, || false);
                ran.unwrap_or_else(|cause| health.fatal(driver_failed(cause)));
            }
        })?;
        bells.push(acceptor_bell);
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

/// Of unfinished records, for one worker: two of the largest have room, whatever their size.
fn held_bytes_max(config: &Config) -> usize {
    STORE_HELD_BYTES_MAX.max(2 * config.spider.max_doc_size.0 as usize + (1 << 20))
}

fn driver_bell(driver: &impl Driver) -> Arc<Doorbell> {
    let bell = driver.bell();
    Arc::new(Doorbell::new(move || bell.ring()))
}

fn driver_failed(cause: io::Error) -> NodeError {
    NodeError::Wait { driver: "epoll", cause }
}
