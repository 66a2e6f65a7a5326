use super::acceptor::{Acceptor, WorkerPort};
use super::worker::{Worker, WorkerParts};
use crate::base::Wall;
use crate::driver::ServerDriver;
use crate::engine::runtime::counters::CounterTable;
use crate::engine::runtime::health::Health;
use crate::rings::{Doorbell, ring};
use crate::store_server::Keeper;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A store server as plain values and rings, without a thread: a process spawns them, a simulation turns them.
pub(super) struct StoreCore<D: ServerDriver> {
    pub acceptor: Belled<Acceptor<D>>,
    pub workers: Vec<Belled<Worker<D>>>,
    pub keeper: Keeper,
    /// Rung when a durable point has moved: one bell for all workers, hung up by each that falls asleep.
    pub keepers_bell: Arc<Doorbell>,
    pub bound: SocketAddr,
    pub counters: CounterTable,
}

/// An actor, and the bell that wakes its driver.
pub(crate) struct Belled<A> {
    pub actor: A,
    pub bell: Arc<Doorbell>,
}

/// What it lets in and holds.
#[derive(Clone, Copy)]
pub(crate) struct StoreBounds {
    pub connections_max: usize,
    pub doc_bytes_max: u64,
    /// Of unfinished records, for one worker.
    pub held_bytes_max: usize,
}

impl<D: ServerDriver> StoreCore<D> {
    /// Listens from here on; `keeper`, which has a shard for each of the workers' drivers, is still to be prepared.
    pub fn assemble(
        keeper: Keeper,
        listen: SocketAddr,
        (accepting, working): (D, Vec<D>),
        bounds: StoreBounds,
        wall: Wall,
        health: &Arc<Health>,
    ) -> io::Result<StoreCore<D>> {
        let mut counters = CounterTable::default();
        let bells: Vec<Arc<Doorbell>> = working.iter().map(bell_of).collect();
        let keepers_bell = Arc::new(Doorbell::new({
            let bells = bells.clone();
            move || bells.iter().for_each(|bell| bell.ring_if_asleep())
        }));
        let mut ports = Vec::new();
        let mut workers = Vec::new();
        for (index, (driver, bell)) in working.into_iter().zip(bells).enumerate() {
            let (accepted_out, accepted) = ring(bounds.connections_max);
            let open = Arc::new(AtomicUsize::new(0));
            ports.push(WorkerPort { accepted: accepted_out, open: open.clone(), bell: bell.clone() });
            let parts = WorkerParts {
                share: keeper.share(index),
                accepted,
                open,
                keepers_bell: keepers_bell.clone(),
                counters: counters.thread(),
                health: health.clone(),
                wall,
                bounds,
            };
            workers.push(Belled { actor: Worker::new(driver, parts), bell });
        }
        let bell = bell_of(&accepting);
        let notices = health.notices.clone();
        let (actor, bound) = Acceptor::new(accepting, listen, ports, bounds.connections_max, notices)?;
        Ok(StoreCore { acceptor: Belled { actor, bell }, workers, keeper, keepers_bell, bound, counters })
    }
}

fn bell_of(driver: &impl ServerDriver) -> Arc<Doorbell> {
    let bell = driver.bell();
    Arc::new(Doorbell::new(move || bell.ring()))
}
