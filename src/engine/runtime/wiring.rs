use super::actor::{ActorBell, Seated};
use super::counters::{CounterTable, ShardStats};
use super::health::{Health, NodeError};
use super::log_writer::{LogMedium, LogWriter, LogWriterPort, PreviousRun};
use super::shard_lane::{DurablePoint, LaneEnd, ShardLane};
use super::shard_thread::BellSlot;
use crate::base::Wall;
use crate::config::Config;
use crate::rings::{Doorbell, Fill, Receiver};
use crate::url_server::SpillEvent;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What every process is wired with, before any of its actors is made.
pub(crate) struct Wiring {
    pub wall: Wall,
    pub stop: Arc<AtomicBool>,
    pub health: Arc<Health>,
    pub table: CounterTable,
    /// Of the one that deals work to the shards.
    pub dealer: ActorBell,
    pub log: LogWriterPort,
    pub log_writer: Seated<LogWriter>,
    pub previous: PreviousRun,
    pub shard_stats: Vec<Arc<ShardStats>>,
    /// Rings between its threads, by name.
    pub rings: Vec<(&'static str, Fill)>,
}

/// A shard's end of the wiring: it outlives the shard.
pub(crate) struct ShardWire<M, R> {
    pub number: usize,
    pub lane: LaneEnd<M, R>,
    pub bell: Arc<Doorbell>,
    pub slot: Arc<BellSlot>,
    pub spill: Receiver<SpillEvent>,
    pub stats: Arc<ShardStats>,
    /// The dealer's bell.
    pub owner: Arc<Doorbell>,
    pub log: LogWriterPort,
    pub wall: Wall,
    pub health: Arc<Health>,
}

impl Wiring {
    pub fn open(config: &Config, medium: &LogMedium<'_>, wall: Wall) -> Result<Wiring, NodeError> {
        let (health, log_bell) = (Arc::<Health>::default(), ActorBell::default());
        let (actor, log, previous) =
            LogWriter::open(medium, config, wall, log_bell.door.clone(), health.clone())
                .map_err(|cause| NodeError::LogWriter { path: config.store.data.clone(), cause })?;
        let rings = vec![("log", log.words.fill())];
        Ok(Wiring {
            wall,
            stop: Arc::default(),
            health,
            table: CounterTable::default(),
            dealer: ActorBell::default(),
            log,
            log_writer: Seated { actor, bell: log_bell },
            previous,
            shard_stats: Vec::new(),
            rings,
        })
    }

    /// Wires one more shard: the dealer's lane, and the shard's end.
    pub fn shard<M: Send + 'static, R: Send + 'static, H>(
        &mut self,
        durable: Arc<dyn DurablePoint>,
    ) -> (ShardLane<M, R, H>, ShardWire<M, R>) {
        let (slot, bell) = BellSlot::with_doorbell();
        let (lane, end) = ShardLane::new(bell.clone(), durable);
        self.rings.extend([("work", end.work.fill()), ("reply", end.replies.fill())]);
        let stats = Arc::new(ShardStats::new(self.table.thread()));
        self.shard_stats.push(stats.clone());
        let wire = ShardWire {
            number: self.shard_stats.len() - 1,
            lane: end,
            spill: self.log_writer.actor.spill_events(bell.clone()),
            bell,
            slot,
            stats,
            owner: self.dealer.door.clone(),
            log: self.log.clone(),
            wall: self.wall,
            health: self.health.clone(),
        };
        (lane, wire)
    }
}

/// The calendar at a process's start.
pub(crate) fn wall_at(started: Instant) -> Wall {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall { unix_ms_at_zero: unix.saturating_sub(started.elapsed()).as_millis() as u64 }
}
