use super::Sends;
use super::calendar::Calendar;
use super::giving::Giving;
use super::index_asks::IndexAsks;
use crate::base::{Now, SortedMap};
use crate::doc_index::Origin;
use crate::engine::inspect::peer_words::{MovedDoc, MovedDocs};
use crate::engine::runtime::journaling::Journaling;
use crate::limits::MOVES_UNCOUNTED_MAX;
use crate::proto::peer_wire::{Found, MoveBatch, MoveItem, Moved, PeerWord, UrlNews, print_of};
use std::collections::VecDeque;

/// Partitions with URLs that other nodes hand over: into the index and the journal of hosts, and counted when they are on disk.
pub(super) struct Arriving {
    of: SortedMap<u16, Arrival>,
    taking: Option<Taking>,
    journal: Journaling,
}

/// What one node hands over.
#[derive(Default)]
struct Arrival {
    /// With all that came.
    sums: Moved,
    /// What the index was not given yet, and the sums with it.
    held: VecDeque<(Moved, MovedDocs)>,
}

/// What a batch has for the index, with lines of the journal of hosts. `via` stands for the node that hands it over, if it knows
/// all of it and may own some.
pub(super) fn moved_docs(batch: &MoveBatch<'_>, via: u32, nice: String) -> MovedDocs {
    let mut moved = MovedDocs { nice, ..MovedDocs::default() };
    let mut items = batch.items();
    while let Some(MoveItem { url, row }) = items.next() {
        match url.news {
            UrlNews::Found(Found { provenance, priority, hits }) => {
                let origin = Origin { via, provenance, priority, hits };
                moved.docs.push(MovedDoc { url: url.url.into(), origin, row: row.into() });
            }
            UrlNews::Scope => moved.in_scope.push(url.url.into()),
        }
    }
    moved
}

/// What the index was given.
struct Taking {
    node: u16,
    moved: Moved,
    giving: Giving,
}

/// More came than may be on its way.
#[derive(Debug)]
pub(super) struct TooMuch;

impl Arriving {
    pub fn new(journal: Journaling) -> Arriving {
        Arriving { of: SortedMap::new(), taking: None, journal }
    }

    pub fn down(&mut self, node: u16) {
        self.of.remove(&node);
        // The index has it, and whoever sent it sends it again.
        if let Some(taking) = self.taking.as_mut().filter(|taking| taking.node == node) {
            taking.node = 0;
        }
    }

    /// A node hands something over. What does not follow what came before is let go: it is sent again from the beginning.
    pub fn take(
        &mut self,
        node: u16,
        batch: &MoveBatch<'_>,
        calendar: Calendar,
        now: Now,
    ) -> Result<(), TooMuch> {
        let arrival = self.of.entry(node).or_default();
        if batch.batch() == 1 && batch.id != arrival.sums.id {
            *arrival = Arrival::default();
            arrival.sums.id = batch.id;
        }
        if batch.id != arrival.sums.id || batch.batch() != arrival.sums.batch + 1 {
            return Ok(());
        }
        if arrival.held.len() >= MOVES_UNCOUNTED_MAX {
            return Err(TooMuch);
        }
        arrival.sums.batch += 1;
        let mut items = batch.items();
        while let Some(MoveItem { url, row }) = items.next() {
            arrival.sums.count += 1;
            arrival.sums.prints ^= print_of(url.url, row);
        }
        let docs = moved_docs(batch, Origin::via_node(node), calendar.to_be_read(batch.lines, now));
        arrival.held.push_back((arrival.sums, docs));
        Ok(())
    }

    /// Goes on. True if something moved.
    pub fn turn(&mut self, now: Now, asks: &IndexAsks, wires: &mut dyn Sends) -> bool {
        let Some(taking) = &mut self.taking else { return self.begin(now, asks) };
        if !taking.giving.turn(now, asks, &mut self.journal) {
            return false;
        }
        if taking.node != 0 {
            wires.send(taking.node, &PeerWord::Moved(taking.moved));
        }
        self.taking = None;
        self.begin(now, asks);
        true
    }

    fn begin(&mut self, now: Now, asks: &IndexAsks) -> bool {
        let next = self.of.iter_mut().find_map(|(node, arrival)| Some((*node, arrival.held.pop_front()?)));
        let Some((node, (moved, docs))) = next else { return false };
        self.taking = Some(Taking { node, moved, giving: Giving::begin(docs, asks, now) });
        true
    }

    pub fn next_due(&self) -> Option<Now> {
        self.taking.as_ref()?.giving.next_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Wall;
    use crate::engine::runtime::log_writer::LogWriterPort;
    use crate::proto::job::Provenance;
    use crate::proto::partition::Partition;
    use crate::proto::peer_wire::{MoveBuilder, UrlItem};
    use crate::rings::{Doorbell, ring};
    use std::sync::Arc;

    /// So the ledger knows whom it need not be told.
    #[test]
    fn what_arrives_is_from_who_hands_it_over() {
        let log = LogWriterPort { words: ring(1).0, bell: Arc::new(Doorbell::new(|| ())) };
        let mut arriving = Arriving::new(Journaling::new(log));
        let mut builder = MoveBuilder::default();
        let news = UrlNews::Found(Found { provenance: Provenance::link(1), priority: 5, hits: 0 });
        let url = UrlItem { partition: Partition::new(7).unwrap(), url: "http://a.test/", news };
        builder.push(&MoveItem { url, row: b"" }).unwrap();
        let calendar = Calendar::new(Wall { unix_ms_at_zero: 0 });
        for node in [2, 3] {
            arriving.take(node, &builder.batch(1, 1, ""), calendar, Now::ZERO).unwrap();
            let (_, docs) = arriving.of[&node].held.front().unwrap();
            assert!(docs.docs.len() == 1 && docs.docs[0].origin.is_from(node), "{:?}", docs.docs);
        }
    }
}
