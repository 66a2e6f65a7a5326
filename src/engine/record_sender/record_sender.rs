use super::lane::Lane;
use super::stopping::{LastCounts, Patience};
use crate::base::Now;
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::notices::{Level, Notices};
use crate::engine::threads::NodeError;
use crate::rings::Doorbell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends the records of every shard to one store server, over a connection of each, and learns which of them are safe.
pub(super) struct RecordSender {
    /// `host:port` as configured.
    address: String,
    port: LinkPort,
    lanes: Vec<Lane>,
    /// Rung when records are done with: DONE is held back until then.
    owner: Arc<Doorbell>,
    notices: Notices,
    /// The store server has counted once: it is never taken as one that does not.
    has_counted: bool,
    told: Told,
    stop: Arc<AtomicBool>,
    last_counts: LastCounts,
}

/// What the user was told last.
#[derive(Default)]
struct Told {
    stands: bool,
    silent: bool,
}

/// Connections that end at one record before the user is told.
const ENDS_TOLD: u32 = 4;

impl RecordSender {
    pub fn new(
        address: &str,
        port: LinkPort,
        lanes: Vec<Lane>,
        owner: Arc<Doorbell>,
        stop: Arc<AtomicBool>,
        notices: Notices,
    ) -> RecordSender {
        RecordSender {
            address: address.to_string(),
            port,
            lanes,
            owner,
            notices,
            has_counted: false,
            told: Told::default(),
            stop,
            last_counts: LastCounts::default(),
        }
    }

    /// Does what can be done without waiting. An error if the spider is to stop and the last counts do not come.
    pub fn turn(&mut self, now: Now) -> Result<(), NodeError> {
        self.lanes.iter_mut().for_each(Lane::take_records);
        while let Some(event) = self.port.next() {
            self.step(event, now);
        }
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
            self.owner.ring_if_asleep();
        }
        self.wait_for_counts(now)
    }

    /// When it is to be turned even if nothing comes.
    pub fn next_due(&self) -> Option<Now> {
        self.lanes.iter().filter_map(Lane::silent_at).min()
    }

    pub fn has_words(&self) -> bool {
        !self.port.is_empty() || self.lanes.iter().any(Lane::has_records)
    }

    fn step(&mut self, event: LinkEvent, now: Now) {
        let lane_of = |lanes: &mut [Lane], link| lanes.iter().position(|lane| lane.link() == Some(link));
        match event {
            LinkEvent::Up { link, .. } => {
                let Some(lane) = self.lanes.iter_mut().find(|lane| lane.link().is_none()) else {
                    unreachable!("as many are dialed as there are lanes")
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
    fn wait_for_counts(&mut self, now: Now) -> Result<(), NodeError> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let records = self.uncounted();
        match self.last_counts.wait(records, now) {
            Patience::Waits => Ok(()),
            Patience::Tells => {
                let address = &self.address;
                let text = format!(
                    "stopping: {records} records wait to be counted by the store server {address} (10 s at most)"
                );
                self.notices.tell(Level::Warn, "store_awaited", vec![("records", records.to_string())], text);
                Ok(())
            }
            Patience::GivesUp => Err(NodeError::Undelivered { address: self.address.clone(), records }),
        }
    }

    fn tell(&self, level: Level, event: &'static str, text: &str) {
        let fields = vec![("store_server", self.address.clone())];
        self.notices.tell(level, event, fields, format!("store server {}: {text}", self.address));
    }
}
