//! What the threads of a process have in common: how they are started, pinned, kept alive and ended, and what they
//! tell each other when something goes wrong.

use crate::base::Wall;
use crate::driver::{Bell, Driver};
use crate::limits::SHARD_RESTARTS_MAX;
use crate::rings::{Doorbell, Sender, ThreadBell};
use crate::store_server::KeeperError;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// What went wrong on some thread.
#[derive(Default)]
pub(crate) struct Health {
    /// The node cannot go on.
    fatal: Mutex<Option<NodeError>>,
    has_fatal: AtomicBool,
    /// It waits for something, in words for a user.
    waiting: Mutex<Option<String>>,
    scribe_waiting: Mutex<Option<String>>,
    index_waiting: Mutex<Option<String>>,
    /// What a user should know, and nobody waits for.
    notes: Mutex<Vec<String>>,
}

/// Notes kept until somebody reads them.
const NOTES_MAX: usize = 256;

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("cannot pin a shard to core {core}: {cause} (choose others with --cores)")]
    Pin { core: usize, cause: io::Error },
    #[error("cannot start the {driver} driver: {cause}")]
    Driver { driver: &'static str, cause: io::Error },
    #[error("the {driver} driver failed: {cause}")]
    Wait { driver: &'static str, cause: io::Error },
    #[error("a shard died {0} times: giving up")]
    Restarts(u32),
    #[error("{0}; nothing that was counted is lost")]
    Keeper(#[from] KeeperError),
    #[error("cannot write to {path}: {cause} (choose another directory with --data)")]
    LogWriter { path: std::path::PathBuf, cause: io::Error },
    #[error("the doc index: {0}; what was counted is stored, and is found again")]
    Index(io::Error),
    #[error("cannot listen on {addr}: {cause} (choose another address with --listen)")]
    Listen { addr: SocketAddr, cause: io::Error },
    #[error(
        "{records} records could not be delivered to the store server {address}; their URLs were not answered for"
    )]
    Undelivered { address: String, records: usize },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Health {
    pub fn fatal(&self, error: NodeError) {
        let mut fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner);
        fatal.get_or_insert(error);
        self.has_fatal.store(true, Ordering::Release);
    }

    pub fn is_fatal(&self) -> bool {
        self.has_fatal.load(Ordering::Acquire)
    }

    /// The fatal error, if there was one.
    pub fn take(&self) -> Result<(), NodeError> {
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.map_or(Ok(()), Err)
    }

    pub fn wait_for(&self, what: Option<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// As [`Health::wait_for`], for the scribe.
    pub fn scribe_waits(&self, what: Option<String>) {
        *self.scribe_waiting.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// As [`Health::wait_for`], for the doc index.
    pub fn index_waits(&self, what: Option<String>) {
        *self.index_waiting.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    pub fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push(text);
        }
    }

    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn waiting_for(&self) -> Option<String> {
        let get = |of: &Mutex<Option<String>>| of.lock().unwrap_or_else(PoisonError::into_inner).clone();
        get(&self.waiting).or_else(|| get(&self.scribe_waiting)).or_else(|| get(&self.index_waiting))
    }
}

/// The shard's doorbell outlives the driver behind it: a restarted shard hangs its own bell here.
#[derive(Default)]
pub(crate) struct BellSlot(Mutex<Option<Arc<dyn Bell>>>);

impl BellSlot {
    /// A hook, and the doorbell that rings whatever hangs on it.
    pub fn with_doorbell() -> (Arc<BellSlot>, Arc<Doorbell>) {
        let hook = Arc::new(BellSlot::default());
        let bell = Doorbell::new({
            let hook = hook.clone();
            move || hook.ring()
        });
        (hook, Arc::new(bell))
    }

    fn hang(&self, bell: Arc<dyn Bell>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    fn ring(&self) {
        if let Some(bell) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardState {
    /// There is more to do at once.
    Busy,
    /// Nothing to do before a completion, a word or the shard's next timer.
    Waiting,
    /// Asked to drain, and drained.
    Drained,
}

/// What a pinned thread does: turn, and wait when there is nothing to do.
pub(crate) trait Turn {
    fn turn(&mut self) -> ShardState;
    fn wait(&mut self, state: ShardState) -> io::Result<()>;
}

/// Where a shard sits: its core, its driver's bell, and who is told when it dies.
pub(crate) struct Seat {
    pub index: usize,
    pub core: usize,
    pub driver: &'static str,
    pub hook: Arc<BellSlot>,
    /// Rung when something was said to whoever deals to this shard.
    pub owner: Arc<Doorbell>,
    pub stop: Arc<AtomicBool>,
    pub trouble: Arc<Health>,
}

impl Seat {
    /// Makes a shard on its own core and turns it until it is drained; makes another when it panics. `announce`
    /// tells its owner of the death, before the new shard takes its first word.
    pub fn run<D: Driver, S: Turn>(
        &self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        make_shard: impl Fn(D, u32) -> S,
        announce: impl Fn(u32),
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        if let Err(cause) = pin(self.core) {
            let _ = ready.send(Err(NodeError::Pin { core: self.core, cause }));
            return;
        }
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
            self.hook.hang(driver.bell());
            if epoch == 0 {
                let _ = ready.send(Ok(()));
            } else {
                announce(epoch);
            }
            // A panic leaves nothing half done that anybody else can see: the segment ends at its last published
            // record, and what was open is dealt again.
            match catch_unwind(AssertUnwindSafe(|| self.turn_until_drained(make_shard(driver, epoch)))) {
                Ok(Ok(())) => return,
                Ok(Err(cause)) => {
                    return self.give_up(NodeError::Wait { driver: self.driver, cause });
                }
                Err(_) => {}
            }
        }
        self.give_up(NodeError::Restarts(SHARD_RESTARTS_MAX));
    }

    fn turn_until_drained(&self, mut shard: impl Turn) -> io::Result<()> {
        loop {
            let state = shard.turn();
            if state == ShardState::Drained || self.trouble.has_fatal.load(Ordering::Relaxed) {
                return Ok(());
            }
            shard.wait(state)?;
        }
    }

    /// Says a word to the owner, however long it takes to have room.
    pub fn say<T>(&self, ring: &Sender<T>, mut word: T) {
        while let Err(back) = ring.push(word) {
            word = back;
            self.owner.ring_if_asleep();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.owner.ring_if_asleep();
    }

    fn give_up(&self, error: NodeError) {
        self.trouble.fatal(error);
        self.stop.store(true, Ordering::Relaxed);
        self.owner.ring_if_asleep();
    }
}

/// Sleeps until the bell rings; after a busy turn only for a moment, and deaf. A shard that hands up a few words
/// at a time would otherwise wake this thread for each few of them: a nap lets them gather.
pub(crate) fn rest(
    thread: &ThreadBell,
    bell: &Doorbell,
    at_most: Duration,
    words: u64,
    has_words: impl Fn() -> bool,
) {
    if words >= BUSY_WORDS {
        std::thread::sleep(NAP);
        return;
    }
    bell.falling_asleep();
    if !has_words() {
        thread.sleep(at_most);
    }
    bell.awake();
}

/// A thread looks around this often even if nobody rings.
pub(crate) const SLEEP_MAX: Duration = Duration::from_millis(100);
/// A turn with this many words is a busy one; the queues of the shards hold more than comes in during a nap.
const BUSY_WORDS: u64 = 8;
const NAP: Duration = Duration::from_millis(8);

pub(crate) fn thread_bell() -> (Arc<ThreadBell>, Arc<Doorbell>) {
    let thread = Arc::new(ThreadBell::default());
    let bell = Doorbell::new({
        let thread = thread.clone();
        move || thread.ring()
    });
    (thread, Arc::new(bell))
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NodeError> {
    std::thread::Builder::new().name(name.to_string()).spawn(body).map_err(NodeError::Thread)
}

/// A panic on one of our own threads is a mistake of ours and goes on.
pub(crate) fn joined<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(crate) fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

pub(crate) fn wall_at(started: Instant) -> Wall {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall { unix_ms_at_zero: unix.saturating_sub(started.elapsed()).as_millis() as u64 }
}

/// User and system time of the whole process.
pub(crate) fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map(|usage| (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64)
        .unwrap_or(0)
}
