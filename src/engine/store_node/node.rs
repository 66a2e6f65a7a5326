use super::door::{Door, WorkerDoor};
use super::worker::{WAKER, Worker, WorkerParts};
use crate::config::Config;
use crate::engine::crawl::settings::store_rules;
use crate::engine::runtime::store_threads::{StoreBells, StoreThreads};
use crate::engine::runtime::threads::{Health, NodeError, cpu_us, joined, pin, spawn, wall_at};
use crate::limits::{STORE_CONNECTIONS_MAX, STORE_HELD_BYTES_MAX, STORE_NEWCOMERS};
use crate::rings::{Doorbell, ring};
use crate::store_server::{DataDir, Keeper, Medium, StoreRules, Stored};
use mio::{Poll, Waker};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// A store server process: a door, a worker per core, the keeper.
pub struct StoreNode {
    started: Instant,
    bound: SocketAddr,
    stop: Arc<AtomicBool>,
    door: JoinHandle<()>,
    door_waker: Arc<Waker>,
    workers: Vec<JoinHandle<()>>,
    bells: Vec<Arc<Doorbell>>,
    store: StoreThreads,
    stats: Arc<StoreStats>,
    trouble: Arc<Health>,
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
        let (listener, door_poll, door_waker) = Door::open(listen).map_err(at)?;
        let bound = listener.local_addr().map_err(at)?;
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Health::default());
        let stats = Arc::new(StoreStats::default());
        let wall = wall_at(started);
        // What documents were asked for with is not told on the wire.
        let rules = StoreRules { agent: String::new(), ..store_rules(config) };
        let mut keeper = Keeper::new(Medium::Directory(directory), rules, config.cores.len());
        keeper.prepare(wall.unix_ms_at_zero)?;

        let mut polls = Vec::new();
        let mut bells = Vec::new();
        for _ in &config.cores {
            let poll = Poll::new().map_err(NodeError::Thread)?;
            let waker = Waker::new(poll.registry(), WAKER).map_err(NodeError::Thread)?;
            bells.push(Arc::new(Doorbell::new(move || drop(waker.wake()))));
            polls.push(poll);
        }
        // One bell for all of them: whoever falls asleep hangs it up.
        let keepers_bell = Arc::new(Doorbell::new({
            let bells = bells.clone();
            move || bells.iter().for_each(|bell| bell.ring_if_asleep())
        }));
        let mut doors = Vec::new();
        let mut workers = Vec::new();
        for (index, (&core, poll)) in config.cores.iter().zip(polls).enumerate() {
            let (newcomers, newcomers_in) = ring(STORE_NEWCOMERS);
            let open = Arc::new(AtomicUsize::new(0));
            doors.push(WorkerDoor { newcomers, open: open.clone(), bell: bells[index].clone() });
            let worker = Worker::new(
                poll,
                WorkerParts {
                    share: keeper.share(index),
                    newcomers: newcomers_in,
                    open,
                    bell: bells[index].clone(),
                    keepers_bell: keepers_bell.clone(),
                    stats: stats.clone(),
                    trouble: trouble.clone(),
                    stop: stop.clone(),
                    doc_bytes_max: config.spider.max_doc_size,
                    held_bytes_max: held_bytes_max(config),
                },
            );
            let trouble = trouble.clone();
            workers.push(spawn(&format!("store-{index}"), move || run_worker(worker, core, &trouble))?);
        }
        let store_bells = StoreBells { owner: keepers_bell, shards: bells.clone() };
        let store = StoreThreads::start(keeper, config, wall, started, store_bells, &trouble)?;
        let door = Door::new(listener, door_poll, doors, STORE_CONNECTIONS_MAX, stop.clone());
        let door = spawn("door", move || door.run())?;
        Ok(StoreNode { started, bound, stop, door, door_waker, workers, bells, store, stats, trouble })
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// Lets nobody in any more; what was received is stored and counted.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.door_waker.wake();
        self.bells.iter().for_each(|bell| bell.ring_if_asleep());
    }

    /// All workers have ended, or one of them before its time.
    pub fn is_finished(&self) -> bool {
        let ended = self.workers.iter().filter(|worker| worker.is_finished()).count();
        match self.stop.load(Ordering::Acquire) {
            true => ended == self.workers.len(),
            false => ended > 0,
        }
    }

    /// What the store server waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        let text = self.trouble.waiting_for()?;
        // The keeper does not know whom it keeps for.
        Some(text.strip_prefix("fetching ").map_or(text.clone(), |rest| format!("receiving {rest}")))
    }

    /// Things a user should know that happened since this was last asked.
    pub fn notices(&self) -> Vec<String> {
        self.trouble.take_notes()
    }

    /// Waits for the end, seals everything and sums up.
    pub fn finish(self) -> Result<StoreSummary, NodeError> {
        self.stop();
        joined(self.door);
        self.workers.into_iter().for_each(joined);
        let kept = self.store.end();
        self.trouble.take()?;
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
    STORE_HELD_BYTES_MAX.max(2 * config.spider.max_doc_size as usize + (1 << 20))
}

fn run_worker(worker: Worker, core: usize, trouble: &Health) {
    let ran = match pin(core) {
        Ok(()) => worker.run().map_err(|cause| NodeError::Wait { driver: "epoll", cause }),
        Err(cause) => Err(NodeError::Pin { core, cause }),
    };
    if let Err(error) = ran {
        trouble.fatal(error);
    }
}
