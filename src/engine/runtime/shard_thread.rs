use super::actor::{InDriver, Networked, joined, run, spawn};
use super::events::Event;
use super::health::{Health, NodeError};
use super::pulse::Pulse;
use crate::driver::{Bell, Driver};
use crate::limits::SHARD_RESTARTS_MAX;
use crate::rings::{Doorbell, Sender};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where the bell of a shard's driver hangs. A shard's doorbell outlives the driver behind it: a restarted shard hangs its
/// own bell here.
#[derive(Default)]
pub(crate) struct BellSlot(Mutex<Option<Arc<dyn Bell>>>);

impl BellSlot {
    /// A slot, and the doorbell that rings whatever hangs in it.
    pub fn with_doorbell() -> (Arc<BellSlot>, Arc<Doorbell>) {
        let slot = Arc::new(BellSlot::default());
        let bell = Doorbell::new({
            let slot = slot.clone();
            move || slot.ring()
        });
        (slot, Arc::new(bell))
    }

    pub fn hang(&self, bell: Arc<dyn Bell>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    fn ring(&self) {
        if let Some(bell) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring();
        }
    }
}

/// Makes one of the shards of a process, once or after a death again.
pub trait ShardMaker<D: Driver>: Send + 'static {
    type Shard: Networked<Net = D>;

    /// `epoch` counts the deaths before this one.
    fn make(&self, driver: D, epoch: u32) -> Self::Shard;

    /// Tells the shard's owner that the one before died, before the new one takes its first message.
    fn announce(&self, epoch: u32);
}

/// The threads of a process's shards, each pinned to its core. A shard that panics is made anew.
#[derive(Default)]
pub(crate) struct ShardThreads(Vec<JoinHandle<()>>);

/// What the shards of a process have in common.
pub(crate) struct ShardsSetup<'a> {
    pub name: &'static str,
    /// The driver, as messages call it.
    pub driver: &'static str,
    pub cores: &'a [usize],
    /// Rung when a shard has died for good.
    pub owner: &'a Arc<Doorbell>,
    pub stop: &'a Arc<AtomicBool>,
    pub health: &'a Arc<Health>,
}

/// A shard that has no thread yet.
pub struct ShardSeat<M> {
    pub maker: M,
    pub(crate) slot: Arc<BellSlot>,
    pub(crate) bell: Arc<Doorbell>,
}

impl ShardThreads {
    /// Starts every shard and waits until each has its driver. `make_driver` is called on the shard's own thread.
    pub fn start<D: Driver + 'static, M: ShardMaker<D>>(
        setup: &ShardsSetup<'_>,
        seats: Vec<ShardSeat<M>>,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
    ) -> Result<ShardThreads, NodeError> {
        let (ready, started_up) = sync_channel(seats.len());
        let make_driver = Arc::new(make_driver);
        let mut threads = Vec::new();
        for (index, (seat, &core)) in seats.into_iter().zip(setup.cores).enumerate() {
            let name = format!("{}-{index}", setup.name);
            let thread = ShardThread {
                index,
                core,
                driver: setup.driver,
                pulse: setup.health.pulses.thread(&name, seat.bell.clone()),
                slot: seat.slot,
                bell: seat.bell,
                owner: setup.owner.clone(),
                stop: setup.stop.clone(),
                health: setup.health.clone(),
            };
            let (make_driver, ready, maker) = (make_driver.clone(), ready.clone(), seat.maker);
            threads.push(spawn(&name, move || thread.run(&*make_driver, &maker, &ready))?);
        }
        for _ in &threads {
            started_up.recv().unwrap_or(Err(NodeError::Restarts(0)))?;
        }
        Ok(ShardThreads(threads))
    }

    /// Waits until every shard is drained.
    pub fn join(self) {
        self.0.into_iter().for_each(joined);
    }
}

struct ShardThread {
    index: usize,
    core: usize,
    driver: &'static str,
    pulse: Arc<Pulse>,
    slot: Arc<BellSlot>,
    bell: Arc<Doorbell>,
    owner: Arc<Doorbell>,
    stop: Arc<AtomicBool>,
    health: Arc<Health>,
}

impl ShardThread {
    /// Makes a shard on its own core and turns it until it is drained; makes another when it panics.
    fn run<D: Driver, M: ShardMaker<D>>(
        self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        maker: &M,
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        if let Err(cause) = pin(self.core) {
            let _ = ready.send(Err(NodeError::Pin { core: self.core, cause }));
            return;
        }
        let sleeper = InDriver(self.bell.clone());
        let never = AtomicBool::new(false);
        for epoch in 0..=SHARD_RESTARTS_MAX {
            let driver = match make_driver(self.index) {
                Ok(driver) => driver,
                Err(cause) => {
                    let error = NodeError::Driver { driver: self.driver, cause };
                    if epoch == 0 {
                        let _ = ready.send(Err(error));
                    } else {
                        self.give_up(error);
                    }
                    return;
                }
            };
            self.slot.hang(driver.bell());
            if epoch == 0 {
                let _ = ready.send(Ok(()));
            } else {
                maker.announce(epoch);
                self.tell_restarted(epoch);
            }
            // A panic leaves nothing half done that another thread can see: the segment ends at its last published
            // record, and what was open is dealt again.
            let turned = catch_unwind(AssertUnwindSafe(|| {
                let shard = &mut maker.make(driver, epoch);
                run(shard, &sleeper, &self.pulse, &never, || self.health.is_fatal())
            }));
            match turned {
                Ok(Ok(())) => return,
                Ok(Err(cause)) => return self.give_up(NodeError::Wait { driver: self.driver, cause }),
                Err(_) => {}
            }
        }
        self.give_up(NodeError::Restarts(SHARD_RESTARTS_MAX));
    }

    fn tell_restarted(&self, restarts: u32) {
        let shard = self.index;
        let text = format!(
            "shard {shard} died of a mistake in the program and was made anew; what it had open is fetched again"
        );
        let fields = vec![("shard", shard.into()), ("restarts", restarts.into())];
        self.health.tell(Event::ShardRestarted, fields, text);
    }

    fn give_up(&self, error: NodeError) {
        self.health.fatal(error);
        self.stop.store(true, Ordering::Relaxed);
        self.owner.ring_if_asleep();
    }
}

/// Sends a message to the owner of a shard, however long it takes to have room.
pub(crate) fn send_up<T>(ring: &Sender<T>, owner: &Doorbell, mut message: T) {
    while let Err(back) = ring.push(message) {
        message = back;
        owner.ring_if_asleep();
        std::thread::sleep(Duration::from_millis(1));
    }
    owner.ring_if_asleep();
}

pub(crate) fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
