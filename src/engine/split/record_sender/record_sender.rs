use super::lane::Lane;
use super::last_counts::{LastCounts, Patience};
use super::sink::{SenderPort, SenderShare};
use crate::base::{Key, Now, counted};
use crate::driver::ServerDriver;
use crate::engine::links::{BadCount, LinkEvent, LinkPort, Links, LinksConfig};
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::notices::Fields;
use crate::limits::{LINK_RING_WORDS, RECORD_RING_WORDS};
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
        // It turns the links itself, and so must not wait for room in the ring to them.
        assert!(2 * shards <= LINK_RING_WORDS, "every lane may send a piece and close in one turn");
        let dial = vec![parts.address.clone(); shards];
        let config = LinksConfig { listen: None, dial, links_max: links_max(shards), answers_end: false };
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

    /// It knows that the store server counts: DONE follows when a record is counted, whatever happens.
    pub fn is_counted(&self) -> bool {
        self.has_counted
    }

    fn send(&mut self, now: Now) {
        let (mut has_moved, mut is_silent) = (false, false);
        for lane in &mut self.lanes {
            if let Some(link) = lane.link()
                && let Some(piece) = lane.piece()
            {
                self.port.send(link, piece);
            }
            is_silent |= !self.has_counted && lane.judge(now);
            has_moved |= lane.publish();
        }
        if is_silent && !std::mem::replace(&mut self.told.silent, true) {
            let text = "it counts no records; DONE follows when they are sent, not when they are stored";
            self.tell(Event::StoreSilent, Vec::new(), text);
        }
        if has_moved {
            self.parts.owner.ring_if_asleep();
        }
    }

    fn step(&mut self, event: LinkEvent, now: Now) {
        let (LinkEvent::Up { link, .. }
        | LinkEvent::Bytes { link, .. }
        | LinkEvent::Sent { link, .. }
        | LinkEvent::Ended { link }
        | LinkEvent::Down { link, .. }) = event;
        let index = self.lanes.iter().position(|lane| lane.link() == Some(link));
        match (event, index) {
            (LinkEvent::Up { .. }, _) => self.up(link),
            (LinkEvent::Bytes { bytes, .. }, Some(index)) => {
                let counted = self.lanes[index].counts(&bytes);
                self.counted(link, counted);
            }
            (LinkEvent::Sent { bytes, .. }, Some(index)) => self.lanes[index].sent(bytes, now),
            (LinkEvent::Down { why, .. }, Some(index)) => self.down(index, &why),
            (LinkEvent::Ended { .. }, _) | (_, None) => {}
        }
    }

    fn up(&mut self, link: Key) {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.link().is_none()) else {
            // The end of the connection before it is still to be told of.
            return self.port.close(link);
        };
        lane.connected(link);
        if !self.told.stands && self.lanes.iter().all(|lane| lane.link().is_some()) {
            self.told.stands = true;
            let text = format!("the connection stands ({} in all)", self.lanes.len());
            self.tell(Event::StoreStands, vec![("connections", self.lanes.len().into())], &text);
        }
    }

    fn counted(&mut self, link: Key, is_first: Result<bool, BadCount>) {
        match is_first {
            Ok(false) => {}
            Ok(true) => {
                self.has_counted = true;
                if std::mem::take(&mut self.told.silent) {
                    let text = "it counts records after all; DONE waits for them";
                    self.tell(Event::StoreCounts, Vec::new(), text);
                }
            }
            Err(bad) => {
                let text = format!("{bad}; the connection is made anew");
                self.tell(Event::StoreBadCount, vec![("cause", bad.to_string().into())], &text);
                self.port.close(link);
            }
        }
    }

    fn down(&mut self, index: usize, why: &str) {
        let (ends, first_bytes) = self.lanes[index].disconnected();
        // A store server that ends one connection after the other at the same record will not take it.
        if ends == ENDS_TOLD && first_bytes > 0 {
            let text = format!(
                "{ENDS_TOLD} connections have ended at one record of {first_bytes} bytes (is its max_doc_size smaller than ours?)"
            );
            self.tell(Event::StoreRefusesRecord, vec![("bytes", first_bytes.into())], &text);
        }
        if std::mem::take(&mut self.told.stands) {
            let again = self.uncounted();
            let text = format!(
                "the connection broke ({why}); {} not counted yet, and {} sent again when it stands",
                counted(again as u64, "record"),
                if again == 1 { "is" } else { "are" }
            );
            self.tell(Event::StoreDown, vec![("cause", why.into()), ("records", again.into())], &text);
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
                    "stopping: {} {} to be counted by the store server {address} (10 s at most)",
                    counted(records as u64, "record"),
                    if records == 1 { "waits" } else { "wait" }
                );
                let fields = vec![("store_server", address.into()), ("records", records.into())];
                health.tell(Event::StoreAwaited, fields, text);
            }
            Patience::GivesUp => {
                health.fatal(NodeError::Undelivered { address: address.clone(), records });
                owner.ring_if_asleep();
            }
        }
    }

    fn tell(&self, event: Event, mut fields: Fields, text: &str) {
        let SenderParts { address, health, .. } = &self.parts;
        fields.push(("store_server", address.into()));
        health.tell(event, fields, format!("store server {address}: {text}"));
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
        // That connections end is not worth a word from here on.
        self.told.stands = false;
        self.links.end(now);
    }
}

impl<D: ServerDriver> Networked for RecordSender<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        self.links.driver()
    }
}
