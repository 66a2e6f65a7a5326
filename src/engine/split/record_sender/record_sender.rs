use super::lane::Lane;
use super::last_counts::{LastCounts, Patience};
use super::sink::{SenderPort, SenderShare};
use crate::base::Now;
use crate::driver::ServerDriver;
use crate::engine::links::{LinkEvent, LinkPort, Links, LinksConfig};
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::notices::Level;
use crate::limits::RECORD_RING_WORDS;
use crate::rings::{Doorbell, ring};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends the records of every shard to one store server, over a connection of each, and learns which of them are safe.
pub(crate) struct RecordSender<D: ServerDriver> {
    links: Links<D>,
    port: LinkPort,
    lanes: Vec<Lane>,
    parts: SenderParts,
    turned_at: Now,
    /// The store server has counted once: it is never taken as one that does not.
    has_counted: bool,
    told: Told,
    last_counts: LastCounts,
}

/// What it is made of, apart from its driver.
pub(crate) struct SenderParts {
    /// `host:port` of the store server, as configured.
    pub address: String,
    /// Rung when records are done with: DONE is held back until then.
    pub owner: Arc<Doorbell>,
    /// The spider is to stop.
    pub stop: Arc<AtomicBool>,
    pub health: Arc<Health>,
}

/// What the user was told last.
#[derive(Default)]
struct Told {
    stands: bool,
    silent: bool,
}

/// Connections that end at one record before the user is told.
const ENDS_TOLD: u32 = 4;

/// The spider's stop is looked for this often.
const LOOK_US: u64 = 100_000;

impl<D: ServerDriver> RecordSender<D> {
    /// Dials the store server at its first turn, once for every shard, whose ports are returned. `bell` wakes the thread that
    /// turns it.
    pub fn new(
        driver: D,
        parts: SenderParts,
        shards: usize,
        bell: &Arc<Doorbell>,
        seed: u64,
    ) -> io::Result<(RecordSender<D>, Vec<SenderPort>)> {
        let dial = vec![parts.address.clone(); shards];
        let config = LinksConfig { listen: None, dial, links_max: links_max(shards) };
        // Its events are taken in the same turn.
        let bells = (bell.clone(), Arc::new(Doorbell::new(|| ())));
        let (links, port, _) = Links::new(driver, config, bells, parts.health.notices.clone(), seed)?;
        let lane = |_| {
            let (records, records_in) = ring(RECORD_RING_WORDS);
            let share = Arc::new(SenderShare::default());
            (Lane::new(records_in, share.clone()), SenderPort { share, records, bell: bell.clone() })
        };
        let (lanes, ports) = (0..shards).map(lane).unzip();
        let sender = RecordSender {
            links,
            port,
            lanes,
            parts,
            turned_at: Now::ZERO,
            has_counted: false,
            told: Told::default(),
            last_counts: LastCounts::default(),
        };
        Ok((sender, ports))
    }

    /// It takes the store server as one that does not count: DONE follows when a record is sent.
    pub fn takes_store_as_silent(&self) -> bool {
        self.told.silent
    }

    fn send(&mut self, now: Now) {
        let mut has_moved = false;
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if let Some(link) = lane.link()
                && let Some(piece) = lane.piece()
            {
                self.port.send(link, piece);
            }
            let is_silent = !self.has_counted && lane.judge(now);
            has_moved |= lane.publish();
            if is_silent && !std::mem::replace(&mut self.told.silent, true) {
                self.tell(
                    Level::Warn,
                    "store_counts_nothing",
                    "it counts no records; DONE follows when they are sent, not when they are stored",
                );
            }
        }
        if has_moved {
            self.parts.owner.ring_if_asleep();
        }
    }

    fn step(&mut self, event: LinkEvent, now: Now) {
        let lane_of = |lanes: &mut [Lane], link| lanes.iter().position(|lane| lane.link() == Some(link));
        match event {
            LinkEvent::Up { link, .. } => {
                let Some(lane) = self.lanes.iter_mut().find(|lane| lane.link().is_none()) else {
                    // The end of the connection before it is still to be told of.
                    return self.port.close(link);
                };
                lane.connected(link);
                if !self.told.stands && self.lanes.iter().all(|lane| lane.link().is_some()) {
                    self.told.stands = true;
                    let count = self.lanes.len();
                    self.tell(
                        Level::Info,
                        "store_stands",
                        &format!("the connection stands ({count} in all)"),
                    );
                }
            }
            LinkEvent::Bytes { link, bytes } => {
                let Some(index) = lane_of(&mut self.lanes, link) else {
                    return;
                };
                match self.lanes[index].counts(&bytes) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.has_counted = true;
                        if std::mem::take(&mut self.told.silent) {
                            self.tell(
                                Level::Info,
                                "store_counts",
                                "it counts records after all; DONE waits for them",
                            );
                        }
                    }
                    Err(bad) => {
                        self.tell(
                            Level::Warn,
                            "store_bad_count",
                            &format!("{bad}; the connection is made anew"),
                        );
                        self.port.close(link);
                    }
                }
            }
            LinkEvent::Sent { link, bytes } => {
                if let Some(index) = lane_of(&mut self.lanes, link) {
                    self.lanes[index].sent(bytes, now);
                }
            }
            LinkEvent::Down { link, why } => {
                if let Some(index) = lane_of(&mut self.lanes, link) {
                    self.down(index, &why);
                }
            }
        }
    }

    fn down(&mut self, index: usize, why: &str) {
        let (ends, first_bytes) = self.lanes[index].disconnected();
        // A store server that ends one connection after the other at the same record will not take it.
        if ends == ENDS_TOLD && first_bytes > 0 {
            self.tell(
                Level::Warn,
                "store_refuses_record",
                &format!(
                    "{ENDS_TOLD} connections have ended at one record of {first_bytes} bytes (is its max_doc_size smaller than ours?)"
                ),
            );
        }
        if std::mem::take(&mut self.told.stands) {
            let again = self.uncounted();
            self.tell(
                Level::Warn,
                "store_down",
                &format!(
                    "the connection broke ({why}); {again} records are not counted, and are sent again when it stands"
                ),
            );
        }
    }

    fn uncounted(&self) -> usize {
        self.lanes.iter().map(Lane::uncounted).sum()
    }

    /// Once the spider is to stop: says that records wait, and gives up at last.
    fn wait_for_counts(&mut self, now: Now) {
        let SenderParts { address, health, owner, .. } = &self.parts;
        let records = self.uncounted();
        match self.last_counts.wait(records, now) {
            Patience::Waits => {}
            Patience::Tells => {
                let text = format!(
                    "stopping: {records} records wait to be counted by the store server {address} (10 s at most)"
                );
                let fields = vec![("records", records.to_string())];
                health.notices.tell(Level::Warn, "store_awaited", fields, text);
            }
            Patience::GivesUp => {
                health.fatal(NodeError::Undelivered { address: address.clone(), records });
                owner.ring_if_asleep();
            }
        }
    }

    fn tell(&self, level: Level, event: &'static str, text: &str) {
        let SenderParts { address, health, .. } = &self.parts;
        let fields = vec![("store_server", address.clone())];
        health.notices.tell(level, event, fields, format!("store server {address}: {text}"));
    }
}

/// A connection that is gone may be told of after its successor was dialed.
pub(super) fn links_max(shards: usize) -> usize {
    2 * shards
}

impl<D: ServerDriver> Actor for RecordSender<D> {
    fn turn(&mut self, now: Now) -> Turned {
        self.turned_at = now;
        self.links.turn(now);
        self.lanes.iter_mut().for_each(Lane::take_records);
        while let Some(event) = self.port.next() {
            self.step(event, now);
        }
        self.send(now);
        if self.parts.stop.load(Ordering::Relaxed) {
            self.wait_for_counts(now);
        }
        // What was asked of the links is done before the thread sleeps.
        self.links.turn(now)
    }

    fn next_due(&self) -> Option<Now> {
        let silent = self.lanes.iter().filter_map(Lane::silent_at);
        silent.chain(self.links.next_due()).chain([self.turned_at.plus_us(LOOK_US)]).min()
    }

    fn has_messages(&self) -> bool {
        !self.port.is_empty() || self.links.has_messages() || self.lanes.iter().any(Lane::has_records)
    }

    fn end(&mut self, now: Now) {
        self.links.end(now);
    }
}

impl<D: ServerDriver> Networked for RecordSender<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        self.links.driver()
    }
}
