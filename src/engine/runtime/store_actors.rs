use super::actor::{Actor, ActorBell, ActorThread, Seated, Turned};
use super::counters::{Counter, Counters};
use super::events::Event;
use super::groups::Group;
use super::health::{Health, NodeError, Part};
use super::live_config::LiveConfig;
use crate::base::{Durations, Now, Wall};
use crate::config::Config;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use crate::store_server::{Keeper, KeeperError, Maintenance, RetentionRules, Sealed};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The keeper, which shards wait for: commits, seals, makes segments ready, and rings those that hold messages back until
/// records are durable.
pub struct KeeperActor {
    keeper: Keeper,
    wall: Wall,
    /// Between two commits.
    pause_ms: u64,
    commit_at: Now,
    /// Rung when a durable point has moved.
    owner: Arc<Doorbell>,
    /// Rung when one of the shards is to let go of its segment.
    shards: Vec<Arc<Doorbell>>,
    maintenance: Option<ToMaintenance>,
    health: Arc<Health>,
    counters: Arc<Counters>,
    commits: Durations,
    /// Settings that may change.
    live: Option<LiveConfig>,
    is_ending: bool,
    closed: Option<Result<(), KeeperError>>,
}

/// The keeper's way to the maintenance of the store.
struct ToMaintenance {
    sealed: Sender<Vec<Sealed>>,
    bell: Arc<Doorbell>,
    /// There were more than the ring has room for.
    missed: Arc<AtomicBool>,
}

/// What no shard waits for: indexes of sealed segments, retention.
pub(crate) struct MaintenanceActor {
    librarian: Maintenance,
    sealed: Receiver<Vec<Sealed>>,
    missed: Arc<AtomicBool>,
    turn_at: Now,
    /// The last failure was told.
    is_told: bool,
    is_ending: bool,
    health: Arc<Health>,
    /// The keeper's, which publishes other figures.
    counters: Arc<Counters>,
    is_counted: bool,
}

/// Sealed segments that wait for maintenance in memory; of any more it reads the files.
const SEALED_WAITING: usize = 4;
/// Maintenance tries again what went wrong this often.
const MAINTENANCE_PAUSE_MS: u64 = 2_000;

impl KeeperActor {
    pub fn new(
        keeper: Keeper,
        config: &Config,
        wall: Wall,
        owner: Arc<Doorbell>,
        shards: Vec<Arc<Doorbell>>,
        health: &Arc<Health>,
        counters: Arc<Counters>,
    ) -> KeeperActor {
        KeeperActor {
            keeper,
            wall,
            pause_ms: config.store.commit_ms.0,
            commit_at: Now::ZERO,
            owner,
            shards,
            maintenance: None,
            health: health.clone(),
            counters,
            commits: Durations::default(),
            live: None,
            is_ending: false,
            closed: None,
        }
    }

    /// It goes by these settings as they are at each commit.
    pub(crate) fn with_live(self, live: LiveConfig) -> KeeperActor {
        KeeperActor { live: Some(live), ..self }
    }

    /// As [`Keeper::lose_power`].
    pub fn lose_power(&self) -> io::Result<()> {
        self.keeper.lose_power()
    }

    /// Maintenance for the store of a directory.
    fn with_maintenance(&mut self, config: &Config) -> Seated<MaintenanceActor> {
        let store = &config.store;
        let keeping = RetentionRules {
            bytes_max: Some(store.bytes_max.0).filter(|&bytes| bytes > 0),
            history: store.history,
            segment_bytes: store.segment_bytes.0,
            pause: || std::thread::sleep(Duration::from_millis(5)),
        };
        let (sealed, sealed_in) = ring(SEALED_WAITING);
        let (bell, missed) = (ActorBell::default(), Arc::<AtomicBool>::default());
        self.maintenance = Some(ToMaintenance { sealed, bell: bell.door.clone(), missed: missed.clone() });
        let actor = MaintenanceActor {
            librarian: Maintenance::new(&store.data, keeping, self.keeper.shares()),
            sealed: sealed_in,
            missed,
            turn_at: Now::ZERO,
            is_told: false,
            is_ending: false,
            health: self.health.clone(),
            counters: self.counters.clone(),
            is_counted: false,
        };
        Seated { actor, bell }
    }

    fn publish(&self) {
        self.counters.set_all(Group::CommitTimes, &self.commits.figures());
        self.counters.set_one(Group::Segments, 0, self.keeper.segments_open() as u64);
    }

    /// Hands sealed segments to maintenance. Those that there is no room for are let go, and indexed from their files.
    fn hand_on(&mut self) {
        let fresh = self.keeper.take_sealed();
        if let Some(to) = self.maintenance.as_ref().filter(|_| !fresh.is_empty()) {
            if to.sealed.push(fresh).is_err() {
                to.missed.store(true, Ordering::Release);
            }
            to.bell.ring_if_asleep();
        }
    }
}

impl Actor for KeeperActor {
    fn turn(&mut self, now: Now) -> Turned {
        if let Some(live) = &self.live {
            let store = &live.get().store;
            self.pause_ms = store.commit_ms.0;
            self.keeper.set_free_bytes_min(store.free_bytes_min.map(|bytes| bytes.0));
            // A shorter pause holds for the one that has begun.
            self.commit_at = self.commit_at.min(now.plus_ms(self.pause_ms));
        }
        // Woken before its time, it waits on: a commit costs the disk a sync.
        if !self.is_ending && self.commit_at > now {
            return Turned::IDLE;
        }
        self.commit_at = now.plus_ms(self.pause_ms);
        let unix_ms = self.wall.unix_ms(now);
        let begun = Instant::now();
        let committed = self.keeper.commit_at(unix_ms);
        if let Ok(true) = committed {
            self.commits.note(begun.elapsed().as_micros() as u64);
        }
        let turned = committed.and_then(|moved| self.keeper.prepare(unix_ms).map(|()| moved));
        self.publish();
        let moved = match turned {
            Ok(moved) => {
                self.health.wait_for(Part::Store, None);
                moved
            }
            Err(error) if error.is_passing() => {
                // Until a shard is without a segment, only the next ones are missing.
                let waits = match (error.is_full(), self.keeper.is_waited_for()) {
                    (true, true) => "fetching waits for disk space",
                    (true, false) => {
                        "disk space is short, and fetching waits when the open segments are full"
                    }
                    (false, _) => "fetching waits for the disk",
                };
                // Over in a turn or two, and worth knowing all the same.
                if let KeeperError::Sync { .. } = error {
                    self.counters.add(Counter::SyncErrors, 1);
                    let cause = error.to_string();
                    self.health.tell(Event::SyncFailed, vec![("cause", (&cause).into())], cause);
                }
                self.health.wait_for(Part::Store, Some(format!("{waits}: {error}")));
                true
            }
            Err(error) => {
                self.health.fatal(NodeError::Keeper(error));
                self.owner.ring_if_asleep();
                self.closed = Some(Ok(()));
                return Turned::Finished;
            }
        };
        if moved {
            self.owner.ring_if_asleep();
        }
        if self.keeper.waits_for_shards() {
            self.shards.iter().for_each(|shard| shard.ring_if_asleep());
        }
        self.hand_on();
        if self.is_ending {
            self.closed = Some(self.keeper.close());
            self.hand_on();
            return Turned::Finished;
        }
        Turned::IDLE
    }

    fn next_due(&self) -> Option<Now> {
        Some(self.commit_at)
    }

    fn has_messages(&self) -> bool {
        false
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}

impl Actor for MaintenanceActor {
    fn turn(&mut self, now: Now) -> Turned {
        if !self.is_ending && self.turn_at > now && !self.has_messages() {
            return Turned::IDLE;
        }
        self.turn_at = now.plus_ms(MAINTENANCE_PAUSE_MS);
        // Looked at first: what is sealed after that has a turn of its own.
        let is_over = self.is_ending;
        let mut fresh = Vec::new();
        while let Some(mut sealed) = self.sealed.pop() {
            fresh.append(&mut sealed);
        }
        self.is_counted &= fresh.is_empty();
        if self.missed.swap(false, Ordering::AcqRel) {
            self.is_counted = false;
            self.librarian.look_again();
        }
        match self.librarian.turn(&fresh) {
            Ok(()) => self.is_told = false,
            // Once is enough; what is missing is made good by reading segments.
            Err(error) if !std::mem::replace(&mut self.is_told, true) => {
                let cause = error.to_string();
                self.health.tell(Event::MaintenanceFailed, vec![("cause", (&cause).into())], cause);
            }
            Err(_) => {}
        }
        if !self.is_counted
            && let Ok((segments, bytes)) = self.librarian.sealed()
        {
            self.is_counted = true;
            self.counters.set_one(Group::Segments, 1, segments);
            self.counters.set(Counter::StoreDisk, bytes);
        }
        if is_over { Turned::Finished } else { Turned::IDLE }
    }

    fn next_due(&self) -> Option<Now> {
        Some(self.turn_at)
    }

    fn has_messages(&self) -> bool {
        !self.sealed.is_empty()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}

/// The threads of a store in this process.
pub(crate) struct StoreThreads {
    keeper: ActorThread<KeeperActor>,
    maintenance: ActorThread<MaintenanceActor>,
}

impl StoreThreads {
    pub fn start(
        mut keeper: KeeperActor,
        config: &Config,
        started: Instant,
        health: &Arc<Health>,
    ) -> Result<StoreThreads, NodeError> {
        let maintenance = keeper.with_maintenance(config);
        // It reads and writes whole segments in a turn.
        let maintenance = ActorThread::start_unwatched("maintenance", maintenance, started, health)?;
        let keeper = Seated { actor: keeper, bell: ActorBell::default() };
        Ok(StoreThreads { keeper: ActorThread::start("keeper", keeper, started, health)?, maintenance })
    }

    /// The shards are gone: commits, seals and indexes everything.
    pub fn end(self) -> Result<(), KeeperError> {
        let keeper = self.keeper.end();
        self.maintenance.end();
        keeper.closed.unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_server::{Medium, StoreRules};

    #[test]
    fn a_shorter_pause_holds_for_the_one_that_has_begun() {
        let keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 1);
        let bell = Arc::new(Doorbell::new(|| ()));
        let mut config = Config::default();
        let wall = Wall { unix_ms_at_zero: 0 };
        let live = LiveConfig::new(&config);
        let mut keeper =
            KeeperActor::new(keeper, &config, wall, bell, Vec::new(), &Arc::default(), Arc::default())
                .with_live(live.clone());
        let at = |ms: u64| Now::ZERO.plus_ms(ms);
        config.store.commit_ms.0 = 3_600_000;
        live.set(Arc::new(config.clone()));
        keeper.turn(at(0));
        assert_eq!(keeper.next_due(), Some(at(3_600_000)));
        config.store.commit_ms.0 = 20;
        live.set(Arc::new(config));
        keeper.turn(at(100));
        assert_eq!(keeper.next_due(), Some(at(120)));
    }
}
