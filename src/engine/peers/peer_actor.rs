use super::Wires;
use super::peer_desk::{DeskParts, PeerDesk};
use crate::base::Now;
use crate::engine::inspect::cluster_view::ClusterReport;
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::peer::Table;
use crate::proto::partition::Share;
use crate::proto::peer_wire::TicketKey;
use std::sync::Arc;

/// A node among its peers, as one thread turns it.
pub struct PeerActor {
    wires: Wires,
    desk: PeerDesk,
    /// Places of peers that are on disk, and the epoch of the table that they go by.
    places: (u64, Vec<(u16, u64)>),
    places_at: Now,
    health: Arc<Health>,
    report: ClusterReport,
    report_at: Now,
    /// The epoch of the table that was told last, and the number under which all was safe.
    reported: (u64, u64),
    /// All was done when that was told.
    was_quiet: bool,
    is_ending: bool,
}

/// How things stand is told this often.
const REPORT_US: u64 = 500_000;
/// Places are written this often: those of a while ago cost some URLs that are told again.
const PLACES_US: u64 = 2_000_000;

impl PeerActor {
    /// `join` are addresses where nodes of the cluster are looked for, besides those of the table.
    pub(super) fn new(
        wires: Wires,
        parts: DeskParts,
        join: &[String],
        report: ClusterReport,
    ) -> Result<PeerActor, NodeError> {
        let health = parts.health.clone();
        let mut actor = PeerActor {
            wires,
            desk: PeerDesk::new(parts)?,
            places: (0, Vec::new()),
            places_at: Now::ZERO,
            health,
            report,
            report_at: Now::ZERO,
            reported: (0, 0),
            was_quiet: false,
            is_ending: false,
        };
        for address in join {
            actor.wires.dial(address);
        }
        Ok(actor)
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        self.desk.table()
    }

    /// The share that the index goes by, and until when its hosts may be asked, by this node's clock.
    pub fn right(&self) -> (Option<&Arc<Share>>, Now) {
        (self.desk.share.current(), self.desk.council.right_until())
    }

    /// Addresses and hosts that this node alone may ask, and until when, by its clock.
    pub fn tickets(&self) -> impl Iterator<Item = (&TicketKey, Now)> {
        self.desk.tickets.held()
    }

    fn keep_places(&mut self, now: Now) {
        if now < self.places_at {
            return;
        }
        self.places_at = now.plus_us(PLACES_US);
        let epoch = self.desk.share.current().map_or(0, |share| share.epoch());
        let places = (epoch, self.desk.post.places().collect());
        if places == self.places {
            return;
        }
        match self.desk.files.keep_cursors(epoch, places.1.iter().copied()) {
            Ok(()) => self.places = places,
            Err(cause) => {
                let text = format!("cluster/cursors: {cause}");
                self.health.tell(Event::ClusterFiles, vec![("cause", cause.to_string().into())], text);
            }
        }
    }
}

impl Actor for PeerActor {
    fn turn(&mut self, now: Now) -> Turned {
        self.desk.begin_turn(now);
        self.wires.take(now, &mut self.desk);
        self.report.take_orders().into_iter().for_each(|order| self.desk.ordered(order));
        let safe = self.desk.safe_asked(self.report.safe_asked());
        let busy = self.desk.turn(now, &mut self.wires);
        self.wires.flush();
        let epoch = self.desk.table().map_or(0, |table| table.epoch());
        let is_quiet = self.desk.is_quiet();
        // That all was done is over: nobody may read it for half a second more.
        let is_news = (epoch, safe) != self.reported || (self.was_quiet && !is_quiet);
        if now >= self.report_at || is_news {
            (self.report_at, self.reported) = (now.plus_us(REPORT_US), (epoch, safe));
            self.was_quiet = is_quiet;
            self.report.set(self.desk.view(&self.wires), self.desk.share.current().cloned());
        }
        self.keep_places(now);
        if self.is_ending {
            self.places_at = Now::ZERO;
            self.keep_places(now);
            return Turned::Finished;
        }
        Turned::busy_if(busy || self.wires.has_messages())
    }

    fn next_due(&self) -> Option<Now> {
        let parts = [self.wires.next_due(), self.desk.next_due(), Some(self.places_at), Some(self.report_at)];
        parts.into_iter().flatten().min()
    }

    fn has_messages(&self) -> bool {
        self.wires.has_messages() || self.desk.has_messages()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}
