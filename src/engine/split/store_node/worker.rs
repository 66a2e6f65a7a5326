use super::conn::{Conn, End, Phase};
use super::store_core::StoreBounds;
use crate::base::{Accepted, Key, NetEvent, Now, Slots, Wall, counted};
use crate::driver::ServerDriver;
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::groups::Group;
use crate::engine::runtime::health::Health;
use crate::rings::{Doorbell, Receiver};
use crate::store_server::{Fed, ShardShare, ShardStore, Stored};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One core's connections, and the shard of the store that they write to.
pub(crate) struct Worker<D: ServerDriver> {
    driver: D,
    conns: Slots<Conn>,
    /// Some connections wait for a segment.
    is_stuck: bool,
    store: ShardStore,
    parts: WorkerParts,
    /// The durable point that counts were made from.
    counted_to: u64,
    looked_at: Now,
    /// Of all connections: bytes that came and are not stored.
    held: usize,
    stage: Stage,
    /// When bytes came last, and when it was turned last.
    received_at: Now,
    turned_at: Now,
}

/// What it is made of, apart from its driver.
pub(crate) struct WorkerParts {
    pub share: Arc<ShardShare>,
    pub accepted: Receiver<Box<Accepted>>,
    pub open: Arc<AtomicUsize>,
    /// Rung by the keeper for all workers when a durable point moved.
    pub keepers_bell: Arc<Doorbell>,
    pub counters: Arc<Counters>,
    pub health: Arc<Health>,
    pub wall: Wall,
    pub bounds: StoreBounds,
}

/// The life of a worker.
#[derive(Clone, Copy)]
enum Stage {
    Serving,
    /// The node stops: what the kernel has received is still stored.
    LastReads {
        since: Now,
    },
    /// The last counts are told.
    LastCounts,
}

/// Without a segment, or in the last reads, it looks again after this: no bell rings for those.
const SOON_US: u64 = 2_000;
/// Every connection is looked at this often, for those that are owed a sign of life or have no more time.
const LOOK_AROUND_US: u64 = 100_000;
/// Completions dealt with in one turn, so that counts are not kept waiting.
const EVENTS_PER_TURN: usize = 256;
/// At the end: the last reads are over when nothing came for this long, or after this time.
const QUIET_US: u64 = 5_000;
const LAST_READS_US: u64 = 1_000_000;
/// And a segment is waited for this long.
const LAST_SEGMENT_US: u64 = 5_000_000;

impl<D: ServerDriver> Worker<D> {
    pub fn new(driver: D, parts: WorkerParts) -> Worker<D> {
        Worker {
            conns: Slots::new(driver.conns_max()),
            driver,
            is_stuck: false,
            store: ShardStore::new(parts.share.clone()),
            counted_to: parts.share.durable(),
            looked_at: Now::ZERO,
            held: 0,
            stage: Stage::Serving,
            received_at: Now::ZERO,
            turned_at: Now::ZERO,
            parts,
        }
    }

    fn adopt(&mut self) {
        if let Stage::LastCounts = self.stage {
            return;
        }
        while let Some(accepted) = self.parts.accepted.pop() {
            let Accepted { socket, peer } = *accepted;
            let conn = Conn::new(peer, self.parts.bounds.doc_bytes_max);
            let key = self.conns.insert(conn).expect("the acceptor lets in as many as there is room for");
            self.driver.adopt(key, socket);
            self.parts.counters.add(Counter::Connections, 1);
        }
    }

    /// Deals with a batch of completions. True if there are more.
    fn take_events(&mut self, now: Now) -> bool {
        for _ in 0..EVENTS_PER_TURN {
            let Some((key, event)) = self.driver.next() else {
                return false;
            };
            let conn = self.conns.get_mut(key).expect("a slot is kept until its connection is closed");
            match event {
                NetEvent::Received(bytes) => {
                    self.received_at = now;
                    let held = conn.held();
                    let fed = conn.feed(bytes, &mut self.store, self.parts.wall.unix_ms(now));
                    self.fed(key, held, fed, now);
                }
                NetEvent::Sent(_) => conn.count_sent(),
                NetEvent::Ended => conn.ended(),
                NetEvent::Failed(error) => conn.failed(error, now),
                NetEvent::Closed => {
                    self.held -= conn.held();
                    self.conns.remove(key);
                    self.parts.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                NetEvent::Connected | NetEvent::Accepted(_) => {
                    unreachable!("it dials nobody and listens nowhere")
                }
            }
            self.settle(key, now);
        }
        true
    }

    /// Deals with what feeding a connection came to, which held `held_before`.
    fn fed(&mut self, key: Key, held_before: usize, fed: Fed, now: Now) {
        let conn = self.conns.get_mut(key).expect("it was fed");
        let Stored { records, wire_bytes, segment_bytes } = conn.stored_since();
        self.parts.counters.add(Counter::Records, records);
        self.parts.counters.add(Counter::Bytes, wire_bytes);
        self.parts.counters.add(Counter::StoredBytes, segment_bytes);
        self.parts.counters.set_all(Group::Records, &self.store.records());
        let held = self.held - held_before + conn.held();
        let end = match fed {
            Fed::All if held > self.parts.bounds.held_bytes_max && conn.held() > held_before => {
                Some(End::TooMuch { held })
            }
            Fed::All => None,
            Fed::NoSegment => {
                if conn.phase == Phase::Open {
                    conn.phase = Phase::Stuck;
                    self.driver.pause(key);
                }
                self.is_stuck = true;
                None
            }
            Fed::Bad(bad) => Some(End::Bad(bad)),
        };
        if conn.phase == Phase::Stuck && fed != Fed::NoSegment {
            conn.phase = Phase::Open;
            self.driver.resume(key);
        }
        if let Some(end) = end {
            self.end(key, &end, now);
        }
        self.held = self.held - held_before + self.conns.get(key).map_or(0, Conn::held);
    }

    /// Lets a peer go, and says why if that was its fault.
    fn end(&mut self, key: Key, end: &End, now: Now) {
        let conn = self.conns.get_mut(key).expect("it ends once");
        if end.is_bad() {
            let (peer, records) = (conn.peer, conn.records());
            let text = format!(
                "storeserver: {peer}: {end}; the connection is closed, and the {} before that {} kept",
                counted(records, "whole record"),
                if records == 1 { "is" } else { "are" }
            );
            let cause = end.to_string();
            let fields = vec![("peer", peer.into()), ("records", records.into()), ("cause", cause.into())];
            self.parts.health.tell(Event::StoreBadConnection, fields, text);
            self.parts.counters.add(Counter::BadConnections, 1);
        }
        conn.end(now);
    }

    /// Brings a connection on as far as it goes: the end of its input, counts, its own end.
    fn settle(&mut self, key: Key, now: Now) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        if let Some(end) = conn.end_of_input(now) {
            let held = conn.held();
            self.end(key, &end, now);
            self.held -= held;
        }
        let conn = self.conns.get_mut(key).expect("it is looked at");
        if let Some(count) = conn.next_count() {
            self.driver.send(key, count);
        }
        if conn.step(now) {
            self.driver.finish(key);
        }
        if conn.phase == Phase::Over {
            conn.phase = Phase::Closing;
            self.driver.close(key);
        }
    }

    /// Tries again what had no segment, in turn, until one has none again.
    fn feed_stuck(&mut self, now: Now) {
        if !std::mem::take(&mut self.is_stuck) {
            return;
        }
        for key in self.keys(|conn| conn.phase == Phase::Stuck) {
            let conn = self.conns.get_mut(key).expect("it is stuck");
            let held = conn.held();
            let fed = conn.feed(&[], &mut self.store, self.parts.wall.unix_ms(now));
            self.fed(key, held, fed, now);
            self.settle(key, now);
            if self.is_stuck {
                return;
            }
        }
    }

    /// Tells peers what became durable, and at times those that wait that they are not forgotten.
    fn count(&mut self, now: Now) {
        let durable = self.parts.share.durable();
        if durable == self.counted_to && now.since_us(self.looked_at) < LOOK_AROUND_US {
            return;
        }
        (self.counted_to, self.looked_at) = (durable, now);
        for key in self.keys(|_| true) {
            self.conns.get_mut(key).expect("it is listed").count(durable, now);
            self.settle(key, now);
        }
    }

    /// Once the node stops: when what has been received is stored, the last counts are told.
    fn drain(&mut self, now: Now) {
        let Stage::LastReads { since } = self.stage else {
            return;
        };
        let waited = now.since_us(since);
        let is_over = match self.is_stuck {
            true => waited > LAST_SEGMENT_US,
            false => waited > LAST_READS_US || now.since_us(self.received_at) > QUIET_US,
        };
        if !is_over {
            return;
        }
        self.stage = Stage::LastCounts;
        // The keeper may seal the segment.
        self.store.finish();
        self.is_stuck = false;
        for key in self.keys(|_| true) {
            let conn = self.conns.get_mut(key).expect("it is listed");
            if conn.phase == Phase::Stuck {
                self.driver.resume(key);
            }
            conn.drain(now);
            self.settle(key, now);
        }
    }

    fn keys(&self, which: impl Fn(&Conn) -> bool) -> Vec<Key> {
        self.conns.iter().filter(|(_, conn)| which(conn)).map(|(key, _)| key).collect()
    }
}

impl<D: ServerDriver> Actor for Worker<D> {
    fn turn(&mut self, now: Now) -> Turned {
        self.turned_at = now;
        self.store.tidy();
        self.adopt();
        self.feed_stuck(now);
        let has_more = self.take_events(now);
        self.count(now);
        self.drain(now);
        // Every record that came is counted, or something is fatal.
        let is_over = match self.stage {
            Stage::Serving => false,
            Stage::LastReads { .. } => self.parts.health.is_fatal(),
            Stage::LastCounts => self.conns.is_empty() || self.parts.health.is_fatal(),
        };
        match is_over {
            true => Turned::Finished,
            false => Turned::busy_if(has_more),
        }
    }

    fn next_due(&self) -> Option<Now> {
        Some(if self.is_stuck || matches!(self.stage, Stage::LastReads { .. }) {
            self.turned_at.plus_us(SOON_US)
        } else {
            self.looked_at.plus_us(LOOK_AROUND_US)
        })
    }

    fn has_messages(&self) -> bool {
        // The bell that all workers share is hung up before the last look.
        self.parts.keepers_bell.falling_asleep();
        !self.parts.accepted.is_empty() || self.parts.share.durable() != self.counted_to
    }

    fn end(&mut self, now: Now) {
        self.stage = Stage::LastReads { since: now };
        self.received_at = now;
    }
}

impl<D: ServerDriver> Networked for Worker<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}
