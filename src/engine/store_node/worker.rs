use super::conn::{Conn, End, Phase, Seen};
use super::node::StoreStats;
use crate::engine::runtime::threads::{Health, SLEEP_MAX};
use crate::limits::STORE_READ_BYTES;
use crate::rings::{Doorbell, Receiver};
use crate::store_server::{ShardShare, ShardStore};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One core's connections, and the shard of the store that they write to.
pub(super) struct Worker {
    poll: Poll,
    conns: Slab<Conn>,
    /// Connections with something to read.
    readable: VecDeque<usize>,
    /// Some connections wait for a segment.
    stuck: bool,
    /// Some connections are on their way out.
    ending: bool,
    store: ShardStore,
    parts: WorkerParts,
    /// The durable point that counts were made from.
    counted_to: u64,
    looked_at: Instant,
    /// Of all connections: bytes that came and are not stored.
    held: usize,
    buffer: Box<[u8]>,
}

/// What it is made of, apart from its poll.
pub(super) struct WorkerParts {
    pub share: Arc<ShardShare>,
    pub newcomers: Receiver<Newcomer>,
    pub open: Arc<AtomicUsize>,
    /// Rung when a connection was dealt to this worker.
    pub bell: Arc<Doorbell>,
    /// Rung by the keeper for all workers when a durable point moved.
    pub keepers_bell: Arc<Doorbell>,
    pub stats: Arc<StoreStats>,
    pub trouble: Arc<Health>,
    pub stop: Arc<AtomicBool>,
    pub doc_bytes_max: u64,
    pub held_bytes_max: usize,
}

/// A connection that was accepted and has no worker yet.
pub(super) struct Newcomer {
    pub stream: TcpStream,
    pub peer: SocketAddr,
}

pub(super) const WAKER: Token = Token(usize::MAX);

/// Without a segment, or with connections on their way out, it looks again after this: nobody rings for those.
const SOON: Duration = Duration::from_millis(2);
/// Every connection is looked at this often, for those that are owed a sign of life.
const LOOK_AROUND: Duration = Duration::from_millis(250);
/// At the end: what the kernel has received is read for so long at most.
const LAST_READS: Duration = Duration::from_secs(1);
/// And a segment is waited for so long.
const LAST_SEGMENT: Duration = Duration::from_secs(5);

impl Worker {
    pub fn new(poll: Poll, parts: WorkerParts) -> Worker {
        Worker {
            poll,
            conns: Slab::new(),
            readable: VecDeque::new(),
            stuck: false,
            ending: false,
            store: ShardStore::new(parts.share.clone()),
            counted_to: parts.share.durable(),
            looked_at: Instant::now(),
            held: 0,
            buffer: vec![0; STORE_READ_BYTES].into(),
            parts,
        }
    }

    /// Until the node stops and every record that came is counted.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while !self.parts.stop.load(Ordering::Acquire) && !self.parts.trouble.is_fatal() {
            self.turn();
            self.sleep(&mut events)?;
        }
        self.wind_up(&mut events)
    }

    fn turn(&mut self) {
        self.store.tidy();
        self.take_newcomers();
        self.read();
        self.feed_stuck();
        self.count();
        self.step_ending();
    }

    fn take_newcomers(&mut self) {
        while let Some(Newcomer { stream, peer }) = self.parts.newcomers.pop() {
            let entry = self.conns.vacant_entry();
            let index = entry.key();
            let conn = entry.insert(Conn::new(stream, peer, self.parts.doc_bytes_max));
            let interest = Interest::READABLE | Interest::WRITABLE;
            if let Err(e) = self.poll.registry().register(&mut conn.stream, Token(index), interest) {
                eprintln!("storeserver: cannot watch the connection of {peer}: {e}");
                self.remove(index);
                continue;
            }
            self.parts.stats.connections.fetch_add(1, Ordering::Relaxed);
            self.list_readable(index);
        }
    }

    fn list_readable(&mut self, index: usize) {
        if let Some(conn) = self.conns.get_mut(index)
            && !std::mem::replace(&mut conn.on_readable, true)
        {
            self.readable.push_back(index);
        }
    }

    /// Reads a buffer of each connection in turn, once round.
    fn read(&mut self) {
        for _ in 0..self.readable.len() {
            // Whoever waits for a segment waits before all others.
            if self.stuck {
                return;
            }
            let Some(index) = self.readable.pop_front() else {
                return;
            };
            let Some(conn) = self.conns.get_mut(index) else {
                continue;
            };
            if conn.phase != Phase::Open {
                conn.on_readable = false;
                continue;
            }
            let held = conn.held();
            let seen = conn.read(&mut self.buffer, &mut self.store, unix_ms());
            self.saw(index, held, seen);
        }
    }

    /// Deals with what a look at a connection came to, which held so much before.
    fn saw(&mut self, index: usize, held_before: usize, seen: Seen) {
        let parts = &self.parts;
        let conn = &mut self.conns[index];
        conn.on_readable = false;
        parts.stats.stored(conn.stored_since());
        let held = self.held - held_before + conn.held();
        let is_too_much = held > parts.held_bytes_max && conn.held() > held_before;
        match seen {
            Seen::More | Seen::Nothing if is_too_much => conn.part(&End::TooMuch { held }, parts),
            Seen::More => {
                conn.on_readable = true;
                self.readable.push_back(index);
            }
            Seen::Nothing => {}
            Seen::Stuck => {
                conn.phase = Phase::Stuck;
                self.stuck = true;
            }
            Seen::Ended(end) => conn.part(&end, parts),
        }
        self.held = self.held - held_before + conn.held();
        self.ending |= conn.is_ending();
        if conn.phase == Phase::Gone {
            self.remove(index);
        }
    }

    /// Tries again what had no segment, in turn, until one has none again.
    fn feed_stuck(&mut self) {
        if !std::mem::take(&mut self.stuck) {
            return;
        }
        for index in self.keys(|conn| conn.phase == Phase::Stuck) {
            if self.stuck {
                return;
            }
            let conn = &mut self.conns[index];
            conn.phase = Phase::Open;
            let held = conn.held();
            let seen = conn.feed(&[], &mut self.store, unix_ms());
            self.saw(index, held, seen);
        }
    }

    /// Tells peers what became durable, and at times those that wait that they are not forgotten.
    fn count(&mut self) {
        let (durable, now) = (self.parts.share.durable(), Instant::now());
        if durable == self.counted_to && now.duration_since(self.looked_at) < LOOK_AROUND {
            return;
        }
        (self.counted_to, self.looked_at) = (durable, now);
        self.conns.iter_mut().for_each(|(_, conn)| conn.count(durable, now));
        self.keys(|conn| conn.phase == Phase::Gone).into_iter().for_each(|index| self.remove(index));
    }

    fn step_ending(&mut self) {
        if !std::mem::take(&mut self.ending) {
            return;
        }
        let now = Instant::now();
        for index in self.keys(Conn::is_ending) {
            let conn = &mut self.conns[index];
            conn.step(&mut self.buffer, now);
            if conn.phase == Phase::Gone {
                self.remove(index);
            } else {
                self.ending = true;
            }
        }
    }

    fn keys(&self, which: impl Fn(&Conn) -> bool) -> Vec<usize> {
        self.conns.iter().filter(|(_, conn)| which(conn)).map(|(index, _)| index).collect()
    }

    fn remove(&mut self, index: usize) {
        let mut conn = self.conns.remove(index);
        self.held -= conn.held();
        let _ = self.poll.registry().deregister(&mut conn.stream);
        self.parts.open.fetch_sub(1, Ordering::Relaxed);
    }

    fn sleep(&mut self, events: &mut Events) -> io::Result<()> {
        self.parts.bell.falling_asleep();
        self.parts.keepers_bell.falling_asleep();
        let more = (!self.readable.is_empty() && !self.stuck)
            || !self.parts.newcomers.is_empty()
            || self.parts.share.durable() != self.counted_to;
        let timeout = if more {
            Duration::ZERO
        } else if self.stuck || self.ending {
            SOON
        } else {
            SLEEP_MAX
        };
        let polled = self.poll.poll(events, Some(timeout));
        self.parts.bell.awake();
        match polled {
            Err(e) if e.kind() != ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
        for event in events.iter().filter(|event| event.token() != WAKER) {
            let Token(index) = event.token();
            if let Some(conn) = self.conns.get_mut(index)
                && event.is_writable()
            {
                conn.write();
                if conn.phase == Phase::Gone {
                    self.remove(index);
                }
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                self.list_readable(index);
            }
        }
        Ok(())
    }

    /// Stores what has been received, waits for it to be durable, says the last counts.
    fn wind_up(&mut self, events: &mut Events) -> io::Result<()> {
        self.take_newcomers();
        self.keys(|_| true).into_iter().for_each(|index| self.list_readable(index));
        let started = Instant::now();
        while !self.parts.trouble.is_fatal() {
            self.read();
            self.feed_stuck();
            self.count();
            let waited = started.elapsed();
            let is_done = if self.stuck { waited > LAST_SEGMENT } else { self.readable.is_empty() };
            if is_done || (waited > LAST_READS && !self.stuck) {
                break;
            }
            self.sleep(events)?;
        }
        // The keeper may seal the segment.
        self.store.finish();
        self.stuck = false;
        self.ending = true;
        self.conns.iter_mut().for_each(|(_, conn)| conn.wind_up(Instant::now()));
        while !self.conns.is_empty() && !self.parts.trouble.is_fatal() {
            self.count();
            self.step_ending();
            self.sleep(events)?;
        }
        Ok(())
    }
}

impl Conn {
    /// Lets a peer go, and says why if that was its fault.
    fn part(&mut self, end: &End, parts: &WorkerParts) {
        if end.is_bad() {
            let (peer, records) = (self.peer, self.records());
            eprintln!(
                "storeserver: {peer}: {end}; the connection is closed, {records} whole records before that are kept"
            );
            parts.stats.bad_connections.fetch_add(1, Ordering::Relaxed);
        }
        self.end(end, Instant::now());
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
