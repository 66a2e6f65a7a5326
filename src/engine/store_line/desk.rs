use super::line::StoreLine;
use super::sink::{LinePort, LineShare, Parcel};
use crate::base::{Key, Now};
use crate::engine::links::{LinkEvent, LinkPort, Links, LinksConfig, LinksThread};
use crate::engine::runtime::threads::{Health, NodeError, SLEEP_MAX, joined, spawn, thread_bell};
use crate::limits::STORE_LINE_WORDS;
use crate::rings::{Doorbell, Receiver, ThreadBell, ring};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sends the records of every shard to one store server, and hears which of them are safe.
struct StoreDesk {
    /// `host:port` as configured.
    address: String,
    port: LinkPort,
    lines: Vec<Line>,
    /// Whoever holds DONE back until records are durable.
    owner: Arc<Doorbell>,
    /// The store server has counted once: it is never taken as one that does not.
    has_counted: bool,
    said: Said,
    stopping: Stopping,
}

struct Line {
    line: StoreLine,
    parcels: Receiver<Parcel>,
    share: Arc<LineShare>,
    link: Option<Key>,
    /// What was done with when its last connection ended, and how many have ended there.
    ended_at: (u64, u32),
}

/// What the user was told last.
#[derive(Default)]
struct Said {
    stands: bool,
    silent: bool,
}

/// Waiting for the last counts.
struct Stopping {
    stop: Arc<AtomicBool>,
    since: Option<Now>,
    /// When something was counted, or came to wait.
    progress_at: Now,
    uncounted: usize,
    said: bool,
}

/// The thread of the lines of a process.
pub(in crate::engine) struct StoreThread {
    end: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: JoinHandle<()>,
    links: LinksThread,
}

/// Connections that end at one record before the user is told.
const ENDS_TOLD: u32 = 4;
/// After the spider was told to stop: nothing counted for this long is said, then given up.
const STOP_SAY_US: u64 = 1_000_000;
const STOP_IDLE_US: u64 = 10_000_000;
/// And however it goes on, it ends.
const STOP_US: u64 = 60_000_000;

impl StoreThread {
    /// Dials the store server, once for every shard. `owner` is rung when records are done with.
    pub fn start(
        address: &str,
        shards: usize,
        owner: Arc<Doorbell>,
        stop: Arc<AtomicBool>,
        trouble: Arc<Health>,
        started: Instant,
    ) -> Result<(StoreThread, Vec<LinePort>), NodeError> {
        let (thread, bell) = thread_bell();
        let dial = vec![address.to_string(); shards];
        // One that is gone may be told of after its successor was dialed.
        let config = LinksConfig { listen: None, dial, links_max: 2 * shards };
        let (port, links, _) = Links::start(config, bell.clone()).map_err(NodeError::Thread)?;
        let mut ports = Vec::new();
        let mut lines = Vec::new();
        for _ in 0..shards {
            let (parcels, parcels_in) = ring(STORE_LINE_WORDS);
            let share = Arc::new(LineShare::default());
            ports.push(LinePort { share: share.clone(), parcels, bell: bell.clone() });
            lines.push(Line {
                line: StoreLine::default(),
                parcels: parcels_in,
                share,
                link: None,
                ended_at: (0, 0),
            });
        }
        let desk = StoreDesk {
            address: address.to_string(),
            port,
            lines,
            owner,
            has_counted: false,
            said: Said::default(),
            stopping: Stopping { stop, since: None, progress_at: Now::ZERO, uncounted: 0, said: false },
        };
        let end = Arc::new(AtomicBool::new(false));
        let thread = spawn("store-line", {
            let (bell, end) = (bell.clone(), end.clone());
            move || desk.run(started, &thread, &bell, &end, &trouble)
        })?;
        Ok((StoreThread { end, bell, thread, links }, ports))
    }

    /// No shard is left: sends what is still to be sent, and ends.
    pub fn end(self) {
        self.end.store(true, Ordering::Release);
        self.bell.ring_if_asleep();
        joined(self.thread);
        self.links.end();
    }
}

impl StoreDesk {
    fn run(
        mut self,
        started: Instant,
        thread: &ThreadBell,
        bell: &Doorbell,
        end: &AtomicBool,
        trouble: &Health,
    ) {
        thread.belongs_to_me();
        while !end.load(Ordering::Acquire) {
            let now = Now::from_us(started.elapsed().as_micros() as u64);
            self.turn(now);
            if let Some(error) = self.stop_waiting(now) {
                trouble.fatal(error);
                self.owner.ring_if_asleep();
                return;
            }
            bell.falling_asleep();
            if self.port.is_empty() && self.lines.iter().all(|line| line.parcels.is_empty()) {
                let judged = self.lines.iter().filter_map(|line| line.line.silent_at()).min();
                let due = judged.map_or(SLEEP_MAX, |at| Duration::from_micros(at.since_us(now) + 1_000));
                thread.sleep(due.min(SLEEP_MAX));
            }
            bell.awake();
        }
    }

    fn turn(&mut self, now: Now) {
        for line in &mut self.lines {
            while let Some(parcel) = line.parcels.pop() {
                line.line.put(parcel);
            }
        }
        while let Some(event) = self.port.next() {
            self.take(event, now);
        }
        for index in 0..self.lines.len() {
            self.send(index);
            if !self.has_counted && self.lines[index].line.judge(now) {
                self.say_silent();
            }
        }
        self.tell();
    }

    fn take(&mut self, event: LinkEvent, now: Now) {
        match event {
            LinkEvent::Up { link, .. } => {
                let Some(line) = self.lines.iter_mut().find(|line| line.link.is_none()) else {
                    unreachable!("as many are dialed as there are lines")
                };
                line.link = Some(link);
                line.line.up();
                if !self.said.stands && self.lines.iter().all(|line| line.line.stands()) {
                    self.said.stands = true;
                    let count = self.lines.len();
                    eprintln!("store server {}: the connection stands ({count} in all)", self.address);
                }
            }
            LinkEvent::Bytes { link, bytes } => {
                let Some(index) = self.index_of(link) else {
                    return;
                };
                match self.lines[index].line.counts(&bytes) {
                    Ok(false) => {}
                    Ok(true) => self.say_counts(),
                    Err(bad) => {
                        eprintln!("store server {}: {bad}; the connection is made anew", self.address);
                        self.port.close(link);
                    }
                }
            }
            LinkEvent::Sent { link, bytes } => {
                if let Some(index) = self.index_of(link) {
                    self.lines[index].line.sent(bytes, now);
                }
            }
            LinkEvent::Down { link, why } => {
                let Some(index) = self.index_of(link) else {
                    return;
                };
                self.lines[index].link = None;
                self.lines[index].line.down();
                self.note_end(index);
                if std::mem::take(&mut self.said.stands) {
                    let again = self.uncounted();
                    eprintln!(
                        "store server {}: the connection broke ({why}); {again} records are not counted, and are sent again when it stands",
                        self.address
                    );
                }
            }
        }
    }

    /// A store server that ends one connection after the other at the same record will not take it.
    fn note_end(&mut self, index: usize) {
        let Line { line, ended_at, .. } = &mut self.lines[index];
        let (done, ends) = *ended_at;
        *ended_at = (line.done(), if line.done() == done { ends + 1 } else { 1 });
        if ended_at.1 == ENDS_TOLD && line.uncounted() > 0 {
            eprintln!(
                "store server {}: {ENDS_TOLD} connections have ended at one record of {} bytes (is its max_doc_size smaller than ours?)",
                self.address,
                line.first_bytes()
            );
        }
    }

    fn index_of(&self, link: Key) -> Option<usize> {
        self.lines.iter().position(|line| line.link == Some(link))
    }

    fn send(&mut self, index: usize) {
        let line = &mut self.lines[index];
        let Some(link) = line.link else {
            return;
        };
        while let Some(piece) = line.line.piece() {
            self.port.send(link, piece);
        }
    }

    /// Lets shards and the spider's desk know what is done with.
    fn tell(&mut self) {
        let mut moved = false;
        for Line { line, share, .. } in &mut self.lines {
            let done = line.done();
            if share.durable.load(Ordering::Relaxed) != done {
                share.durable.store(done, Ordering::Release);
                share.held_bytes.fetch_sub(line.take_freed(), Ordering::Relaxed);
                moved = true;
            }
        }
        if moved {
            self.owner.ring_if_asleep();
        }
    }

    fn say_silent(&mut self) {
        if !std::mem::replace(&mut self.said.silent, true) {
            eprintln!(
                "store server {}: it counts no records; DONE follows when they are sent, not when they are stored",
                self.address
            );
        }
    }

    fn say_counts(&mut self) {
        self.has_counted = true;
        if std::mem::take(&mut self.said.silent) {
            eprintln!("store server {}: it counts records after all; DONE waits for them", self.address);
        }
    }

    fn uncounted(&self) -> usize {
        self.lines.iter().map(|line| line.line.uncounted()).sum()
    }

    /// Once the spider is to stop: says that records wait, and gives up at last.
    fn stop_waiting(&mut self, now: Now) -> Option<NodeError> {
        let records = self.uncounted();
        let stopping = &mut self.stopping;
        if !stopping.stop.load(Ordering::Relaxed) {
            return None;
        }
        let since = *stopping.since.get_or_insert(now);
        if since == now || records < stopping.uncounted || stopping.uncounted == 0 {
            stopping.progress_at = now;
        }
        stopping.uncounted = records;
        if records == 0 {
            return None;
        }
        let idle_us = now.since_us(stopping.progress_at);
        if idle_us >= STOP_SAY_US && !std::mem::replace(&mut stopping.said, true) {
            eprintln!(
                "stopping: {records} records wait to be counted by the store server {} (10 s at most)",
                self.address
            );
        }
        if idle_us < STOP_IDLE_US && now.since_us(since) < STOP_US {
            return None;
        }
        Some(NodeError::Undelivered { address: self.address.clone(), records })
    }
}
