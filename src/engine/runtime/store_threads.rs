use crate::base::Wall;
use crate::config::Config;
use crate::engine::runtime::threads::{Health, NodeError, joined, spawn};
use crate::rings::Doorbell;
use crate::store_server::{Keeper, KeeperError, Keeping, Librarian, Sealed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The store's own threads: the keeper, which shards wait for, and the librarian, whom nobody waits for.
pub(crate) struct StoreThreads {
    keeper: JoinHandle<Result<(), KeeperError>>,
    librarian: JoinHandle<()>,
    end: Arc<AtomicBool>,
}

/// Who is rung.
pub(crate) struct StoreBells {
    /// Whoever holds words back until records are durable.
    pub owner: Arc<Doorbell>,
    /// The shards, when one of them is to let go of its segment.
    pub shards: Vec<Arc<Doorbell>>,
}

/// The keeper's way to the librarian.
struct ToLibrarian {
    sealed: SyncSender<Vec<Sealed>>,
    /// There were more than that.
    missed: Arc<AtomicBool>,
}

/// Sealed segments that wait for the librarian in memory; of any more it reads the files.
const SEALED_WAITING: usize = 4;
/// The librarian tries again what went wrong this often.
const LIBRARIAN_PAUSE: Duration = Duration::from_secs(2);

impl StoreThreads {
    pub fn start(
        keeper: Keeper,
        config: &Config,
        wall: Wall,
        started: Instant,
        bells: StoreBells,
        trouble: &Arc<Health>,
    ) -> Result<StoreThreads, NodeError> {
        let end = Arc::new(AtomicBool::new(false));
        let librarian = Librarian::new(&config.store.data, keeping(config), keeper.shares());
        let (sealed, sealed_in) = sync_channel(SEALED_WAITING);
        let to_librarian = ToLibrarian { sealed, missed: Arc::default() };
        let librarian = spawn("librarian", {
            let (trouble, missed) = (trouble.clone(), to_librarian.missed.clone());
            move || tend(librarian, &sealed_in, &missed, &trouble)
        })?;
        let keeper = spawn("keeper", {
            let (end, trouble) = (end.clone(), trouble.clone());
            let pause = Duration::from_millis(config.store.commit_ms);
            let clock = move || wall.unix_ms_at_zero + started.elapsed().as_millis() as u64;
            move || keep(keeper, pause, clock, &to_librarian, &end, &trouble, &bells)
        })?;
        Ok(StoreThreads { keeper, librarian, end })
    }

    /// The shards are gone: commits, seals and indexes everything.
    pub fn end(self) -> Result<(), KeeperError> {
        self.end.store(true, Ordering::Release);
        let kept = joined(self.keeper);
        joined(self.librarian);
        kept
    }
}

fn keeping(config: &Config) -> Keeping {
    let store = &config.store;
    Keeping {
        bytes_max: store.bytes_max,
        history: store.history,
        segment_bytes: store.segment_bytes,
        pause: || std::thread::sleep(Duration::from_millis(5)),
    }
}

/// The keeper's thread: turns it, and rings whoever holds words back until records are durable.
fn keep(
    mut keeper: Keeper,
    pause: Duration,
    clock: impl Fn() -> u64,
    librarian: &ToLibrarian,
    end: &AtomicBool,
    trouble: &Health,
    bells: &StoreBells,
) -> Result<(), KeeperError> {
    loop {
        match keeper.turn(clock()) {
            Ok(moved) => {
                trouble.wait_for(None);
                if moved {
                    bells.owner.ring_if_asleep();
                }
            }
            Err(error) if error.is_passing() => {
                let what = if error.is_full() { "disk space" } else { "the disk" };
                // Over in a turn or two, and worth knowing all the same.
                if let KeeperError::Sync { .. } = error {
                    trouble.note(error.to_string());
                }
                trouble.wait_for(Some(format!("fetching waits for {what}: {error}")));
                bells.owner.ring_if_asleep();
            }
            Err(error) => {
                trouble.fatal(NodeError::Keeper(error));
                bells.owner.ring_if_asleep();
                return Ok(());
            }
        }
        if keeper.waits_for_shards() {
            bells.shards.iter().for_each(|shard| shard.ring_if_asleep());
        }
        hand_on(&mut keeper, librarian);
        if end.load(Ordering::Acquire) {
            let closed = keeper.close();
            hand_on(&mut keeper, librarian);
            return closed;
        }
        std::thread::sleep(pause);
    }
}

/// Hands sealed segments to the librarian. Those that there is no room for are let go, and indexed from their files.
fn hand_on(keeper: &mut Keeper, librarian: &ToLibrarian) {
    let fresh = keeper.take_sealed();
    if !fresh.is_empty() && librarian.sealed.try_send(fresh).is_err() {
        librarian.missed.store(true, Ordering::Release);
    }
}

/// The librarian's thread, until the keeper is gone.
fn tend(mut librarian: Librarian, sealed: &Receiver<Vec<Sealed>>, missed: &AtomicBool, trouble: &Health) {
    let mut is_told = false;
    loop {
        let (fresh, is_over) = match sealed.recv_timeout(LIBRARIAN_PAUSE) {
            Ok(fresh) => (fresh, false),
            Err(RecvTimeoutError::Timeout) => (Vec::new(), false),
            Err(RecvTimeoutError::Disconnected) => (Vec::new(), true),
        };
        if missed.swap(false, Ordering::AcqRel) {
            librarian.look_again();
        }
        match librarian.turn(&fresh) {
            Ok(()) => is_told = false,
            // Once is enough; what is missing is made good by reading segments.
            Err(error) if !is_told => {
                is_told = true;
                trouble.note(error.to_string());
            }
            Err(_) => {}
        }
        if is_over {
            return;
        }
    }
}
