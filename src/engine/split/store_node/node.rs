use super::store_assembly::{StoreServer, assemble_store_server};
use super::store_core::Belled;
use crate::config::Config;
use crate::driver::EpollDriver;
use crate::engine::inspect::desk::Desk;
use crate::engine::inspect::node_status::Gauges;
use crate::engine::runtime::actor::{InDriver, Networked, joined, run, spawn};
use crate::engine::runtime::counters::{Counter, CounterTable, Snapshot, cpu_us};
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::tell_no_log;
use crate::engine::runtime::readings::{Meter, MeterParts, Role};
use crate::engine::runtime::running::{Running, StopSwitch};
use crate::engine::runtime::shard_thread::pin;
use crate::engine::runtime::store_actors::StoreThreads;
use crate::engine::runtime::wiring::wall_at;
use crate::rings::Doorbell;
use crate::store_server::DataDir;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Instant;

/// A store server process: an acceptor, a worker per core, the keeper.
pub struct StoreNode {
    started: Instant,
    bound: SocketAddr,
    stop: StopSwitch,
    acceptor: JoinHandle<()>,
    workers: Vec<JoinHandle<()>>,
    store: StoreThreads,
    counters: CounterTable,
    health: Arc<Health>,
    desk: Arc<Desk>,
    meter: Arc<Meter>,
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
        let StoreServer { acceptor, bound, workers, keeper, mut counters, health } = core;
        let stop = Arc::new(AtomicBool::new(false));
        let mut bells: Vec<Arc<Doorbell>> = workers.iter().map(|worker| worker.bell.clone()).collect();
        bells.push(acceptor.bell.clone());
        let start_worker = |(index, worker)| {
            turning(&format!("store-{index}"), Some(config.cores[index]), worker, &stop, &health)
        };
        let workers = workers.into_iter().enumerate().map(start_worker).collect::<Result<_, _>>()?;
        let store = StoreThreads::start(keeper, config, started, &health)?;
        let acceptor = turning("acceptor", None, acceptor, &stop, &health)?;
        // Nothing more is to come before it may be used.
        counters.thread().set(Counter::Started, 1);
        let meter = Arc::new(Meter::new(MeterParts {
            role: Role::StoreServer,
            driver: "epoll",
            table: counters.clone(),
            shards: Vec::new(),
            health: health.clone(),
            stop: stop.clone(),
            started,
            budget: None,
            store: Some(LiveConfig::new(config)),
            rings: Vec::new(),
        }));
        let gauges = Gauges::new(Role::StoreServer, counters.clone(), health.clone(), stop.clone(), started);
        let stop = StopSwitch::new(stop, bells);
        let desk = Arc::new(Desk {
            gauges,
            meter: meter.clone(),
            stop: stop.clone(),
            questions: None,
            news: None,
            rules: None,
        });
        Ok(StoreNode { started, bound, stop, acceptor, workers, store, counters, health, desk, meter })
    }

    /// Where it is asked and told things.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> SocketAddr {
        self.bound
    }
}

impl Running for StoreNode {
    type Summary = StoreSummary;

    fn health(&self) -> &Health {
        &self.health
    }

    fn stop_switch(&self) -> &StopSwitch {
        &self.stop
    }

    fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// All workers have ended, or one of them before its time.
    fn is_finished(&self) -> bool {
        let ended = self.workers.iter().filter(|worker| worker.is_finished()).count();
        match self.stop.is_stopped() {
            true => ended == self.workers.len(),
            false => ended > 0 || self.health.is_fatal(),
        }
    }

    fn waiting(&self) -> Option<(Part, String)> {
        // The keeper does not know whom it keeps for.
        let (part, what) = self.health.waiting()?;
        Some((part, what.replacen("fetching waits", "receiving waits", 1)))
    }

    fn counted(&self) -> Snapshot {
        Snapshot { pages: self.counters.sum(Counter::Records), ..Snapshot::default() }
    }

    fn rotate_log(&self) {
        tell_no_log(&self.health);
    }

    fn finish(self) -> Result<StoreSummary, NodeError> {
        self.stop();
        joined(self.acceptor);
        self.workers.into_iter().for_each(joined);
        let kept = self.store.end();
        self.health.take()?;
        kept?;
        let sum = |counter| self.counters.sum(counter);
        Ok(StoreSummary {
            connections: sum(Counter::Connections),
            records: sum(Counter::Records),
            bytes: sum(Counter::Bytes),
            stored_bytes: sum(Counter::StoredBytes),
            bad_connections: sum(Counter::BadConnections),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
        })
    }
}

/// A thread, on a core of its own if there is one for it, that turns an actor until the node stops.
fn turning<A: Networked + Send + 'static>(
    name: &str,
    core: Option<usize>,
    belled: Belled<A>,
    stop: &Arc<AtomicBool>,
    health: &Arc<Health>,
) -> Result<JoinHandle<()>, NodeError> {
    let (stop, health) = (stop.clone(), health.clone());
    let pulse = health.pulses.thread(name, belled.bell.clone());
    spawn(name, move || {
        let Belled { mut actor, bell } = belled;
        let pinned = core.map_or(Ok(()), |core| pin(core).map_err(|cause| NodeError::Pin { core, cause }));
        let turned = |()| run(&mut actor, &InDriver(bell), &pulse, &stop, || false).map_err(driver_failed);
        pinned.and_then(turned).unwrap_or_else(|error| health.fatal(error));
    })
}

fn driver_failed(cause: io::Error) -> NodeError {
    NodeError::Wait { driver: "epoll", cause }
}
