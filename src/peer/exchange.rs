use crate::base::SortedMap;
use rapidhash::fast::RapidHashMap;
use std::cell::Cell;
use std::collections::VecDeque;

/// The way of URLs to their owners. The ledger is the outbox: it is read in stretches, what a stretch has for a peer goes
/// into numbered batches, and a batch is kept until the peer has counted it. Of a peer that was away the ledger is read
/// again from where it had counted.
///
/// ```text
///   next_read ──► a stretch of the ledger, for all peers that are as far ──► took(batches)
///   to_send(peer) ──► a batch ──► … ──► counted(peer, batch) ──► the peer's place in the ledger moves on
/// ```
pub struct Exchange {
    peers: Ways,
    /// A stretch that is being read.
    reading: Option<Stretch>,
    /// Where the ledger ended when it was last read to its end.
    end: u64,
    /// A peer may wait for a batch.
    may_wait: bool,
}

/// The way to one peer.
struct Way {
    /// Everything in the ledger before this is counted at the peer.
    counted: u64,
    /// Everything before this is counted, or in a batch.
    read: u64,
    batches: VecDeque<Batch>,
    /// Of the batches, those that were sent on the link that stands.
    sent: usize,
    /// The number of the batch that comes next.
    next: u64,
    is_up: bool,
    /// Items in the batches.
    items: u64,
}

/// The ways to all peers. What they come to is asked for at every turn, and most turns change none of them.
struct Ways {
    ways: SortedMap<u16, Way>,
    /// Unless a way may have changed since.
    together: Cell<Option<Together>>,
}

/// What the ways come to.
#[derive(Clone, Copy)]
struct Together {
    /// Items in the batches of all.
    items: u64,
    /// Before this everything is counted at every peer; `None` without peers.
    counted: Option<u64>,
    /// Where the first of the ways is that a stretch could be read for.
    readable: Option<u64>,
}

struct Batch {
    number: u64,
    /// The items, as they are sent; whoever made it knows how.
    bytes: Vec<u8>,
    items: u32,
    /// Where the ledger is counted up to with this batch.
    upto: u64,
}

/// A stretch of the ledger that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: u64,
    /// Others are as far as this: they join from there on.
    pub until: u64,
    /// For whom.
    pub peers: Vec<u16>,
}

/// Items for one peer, out of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBatch {
    pub bytes: Vec<u8>,
    pub items: u32,
    /// Where the block of the first item begins that is not in it: up to there the ledger is counted with it.
    pub upto: u64,
}

/// A peer counts what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCount {
    pub batch: u64,
    pub sent: u64,
}

/// Batches that a peer may owe its count of. With more the ledger waits, and nothing is lost.
pub const UNCOUNTED_MAX: usize = 64;

impl Exchange {
    /// `places` tells how far each peer has counted; one that is not named begins at the beginning. No place is behind the
    /// `end` of the ledger: what is told there is new, whatever was there before a crash.
    pub fn new(places: impl IntoIterator<Item = (u16, u64)>, end: u64) -> Exchange {
        let ways = places.into_iter().map(|(peer, place)| (peer, Way::new(place.min(end)))).collect();
        Exchange { peers: Ways { ways, together: Cell::default() }, reading: None, end, may_wait: false }
    }

    /// These are the peers from now on.
    pub fn set_peers(&mut self, peers: &[u16]) {
        let ways = self.peers.change();
        ways.retain(|peer, _| peers.contains(peer));
        for &peer in peers {
            ways.entry(peer).or_insert_with(|| Way::new(0));
        }
    }

    /// A link to a peer stands: what it has not counted is sent again.
    pub fn up(&mut self, peer: u16) {
        if let Some(way) = self.peers.get_mut(peer) {
            (way.is_up, way.sent) = (true, 0);
            self.may_wait = true;
        }
    }

    /// The link is gone. What was to be sent is let go: the ledger has it.
    pub fn down(&mut self, peer: u16) {
        if let Some(way) = self.peers.get_mut(peer) {
            way.is_up = false;
            way.begin_again();
        }
    }

    /// Partitions that were to be one peer's are to be another's, and no URL of theirs went along: what the one has not counted
    /// is the other's to hear.
    pub fn pass_on(&mut self, from: u16, to: u16) {
        let counted = self.peers.get(from).map_or(0, |way| way.counted);
        self.set_back(to, counted);
    }

    /// A peer is to hear again what the ledger has from there on. [`Exchange::deal_anew`] comes after it.
    pub fn set_back(&mut self, peer: u16, place: u64) {
        if let Some(way) = self.peers.get_mut(peer) {
            way.counted = way.counted.min(place);
        }
    }

    /// Partitions belong to others than before: what no peer has counted is dealt anew.
    pub fn deal_anew(&mut self) {
        self.peers.change().values_mut().for_each(Way::begin_again);
        self.reading = None;
    }

    /// The stretch to read next, if a peer is up and has room, and may have something to hear. `end` is where the ledger
    /// ends.
    pub fn next_read(&mut self, end: u64) -> Option<Stretch> {
        if self.reading.is_some() {
            return None;
        }
        let from = self.peers.together().readable.filter(|from| *from < end)?;
        let of = |(peer, way): (&u16, &Way)| (way.has_room() && way.read == from).then_some(*peer);
        let peers = self.peers.iter().filter_map(of).collect();
        let others = self.peers.values().filter(|way| way.is_up && way.read > from).map(|way| way.read);
        let stretch = Stretch { from, until: others.min().unwrap_or(end).min(end), peers };
        self.reading = Some(stretch.clone());
        Some(stretch)
    }

    /// A stretch was read up to there: the batches for each peer in their order. One that was given up meanwhile is let go.
    pub fn took(&mut self, stretch: &Stretch, upto: u64, mut batches: RapidHashMap<u16, Vec<NewBatch>>) {
        if self.reading.take_if(|reading| reading == stretch).is_none() {
            return;
        }
        self.end = self.end.max(upto);
        if upto == stretch.from && batches.is_empty() {
            return;
        }
        self.may_wait = true;
        for peer in &stretch.peers {
            let Some(way) = self.peers.get_mut(*peer).filter(|way| way.is_up && way.read == stretch.from)
            else {
                continue;
            };
            for NewBatch { bytes, items, upto } in batches.remove(peer).into_iter().flatten() {
                way.batches.push_back(Batch { number: way.next, bytes, items, upto });
                way.next += 1;
                way.items += u64::from(items);
            }
            way.read = upto.max(way.read);
            way.settle();
        }
    }

    /// A stretch could not be read; it is tried again.
    pub fn failed(&mut self) {
        self.reading = None;
    }

    /// The next batch to send to a peer: its number and its items.
    pub fn to_send(&mut self, peer: u16) -> Option<(u64, &[u8])> {
        let way = self.peers.get_mut(peer).filter(|way| way.is_up)?;
        let batch = way.batches.get(way.sent)?;
        way.sent += 1;
        Some((batch.number, &batch.bytes))
    }

    /// Peers that something is to be sent to.
    pub fn waiting(&mut self) -> Vec<u16> {
        if !self.may_wait {
            return Vec::new();
        }
        let waits = |way: &Way| way.is_up && way.sent < way.batches.len();
        let waiting: Vec<u16> =
            self.peers.iter().filter(|(_, way)| waits(way)).map(|(&peer, _)| peer).collect();
        self.may_wait = !waiting.is_empty();
        waiting
    }

    /// A peer has everything up to this batch on its disk; says how many items that are.
    pub fn counted(&mut self, peer: u16, batch: u64) -> Result<u64, BadCount> {
        let Some(way) = self.peers.get_mut(peer) else { return Ok(0) };
        let sent = way.batches.iter().take(way.sent).next_back().map(|batch| batch.number);
        if sent.is_none_or(|sent| batch > sent) {
            // What was counted before may be said again.
            return match batch < way.next {
                true => Ok(0),
                false => Err(BadCount { batch, sent: sent.unwrap_or(0) }),
            };
        }
        let mut items = 0;
        let counted = way.batches.iter().take_while(|first| first.number <= batch).count();
        for first in way.batches.drain(..counted) {
            items += u64::from(first.items);
            way.counted = first.upto;
        }
        way.sent -= counted;
        way.items -= items;
        way.settle();
        Ok(items)
    }

    /// Items that are on their way, and whether all of the ledger before `end` was looked through for every peer.
    pub fn outbox(&self, end: u64) -> (u64, bool) {
        let Together { items, counted, .. } = self.peers.together();
        (items, counted.is_none_or(|counted| counted >= end))
    }

    /// Whether every peer has counted what the ledger told when it was last read to its end.
    pub fn is_through(&self) -> bool {
        self.outbox(self.end).1
    }

    /// How far each peer has counted.
    pub fn places(&self) -> impl Iterator<Item = (u16, u64)> {
        self.peers.iter().map(|(&peer, way)| (peer, way.counted))
    }
}

impl Ways {
    fn get(&self, peer: u16) -> Option<&Way> {
        self.ways.get(&peer)
    }

    fn get_mut(&mut self, peer: u16) -> Option<&mut Way> {
        self.change().get_mut(&peer)
    }

    fn iter(&self) -> impl Iterator<Item = (&u16, &Way)> {
        self.ways.iter()
    }

    fn values(&self) -> impl Iterator<Item = &Way> {
        self.ways.values()
    }

    /// Any of them may be changed.
    fn change(&mut self) -> &mut SortedMap<u16, Way> {
        self.together.set(None);
        &mut self.ways
    }

    fn together(&self) -> Together {
        let together = self.together.get().unwrap_or_else(|| Together {
            items: self.values().map(|way| way.items).sum(),
            counted: self.values().map(|way| way.counted).min(),
            readable: self.values().filter(|way| way.has_room()).map(|way| way.read).min(),
        });
        self.together.set(Some(together));
        together
    }
}

impl Way {
    /// What the ledger has for the peer could be read.
    fn has_room(&self) -> bool {
        self.is_up && self.batches.len() < UNCOUNTED_MAX
    }

    fn new(place: u64) -> Way {
        Way {
            counted: place,
            read: place,
            batches: VecDeque::new(),
            sent: 0,
            next: 1,
            is_up: false,
            items: 0,
        }
    }

    fn begin_again(&mut self) {
        self.batches.clear();
        (self.read, self.sent, self.items) = (self.counted, 0, 0);
    }

    /// With nothing on its way, everything that was read is counted.
    fn settle(&mut self) {
        if self.batches.is_empty() {
            self.counted = self.read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    /// A ledger of items for peers, ten bytes each, and what each peer has on its disk.
    struct Model {
        ledger: Vec<u16>,
        had: RapidHashMap<u16, Vec<u64>>,
    }

    const ITEM: u64 = 10;

    impl Model {
        fn end(&self) -> u64 {
            self.ledger.len() as u64 * ITEM
        }

        /// Reads a stretch: batches of up to three items.
        fn read(&self, stretch: &Stretch) -> (u64, RapidHashMap<u16, Vec<NewBatch>>) {
            let upto = stretch.until.min(stretch.from + 7 * ITEM).min(self.end());
            let mut batches: RapidHashMap<u16, Vec<NewBatch>> = RapidHashMap::default();
            for at in (stretch.from..upto).step_by(ITEM as usize) {
                let peer = self.ledger[(at / ITEM) as usize];
                if !stretch.peers.contains(&peer) {
                    continue;
                }
                let of_peer = batches.entry(peer).or_default();
                if of_peer.last().is_none_or(|batch| batch.items == 3) {
                    of_peer.push(NewBatch { bytes: Vec::new(), items: 0, upto });
                }
                let count = of_peer.len();
                if let Some(batch) = of_peer.last_mut() {
                    batch.bytes.extend_from_slice(&at.to_le_bytes());
                    batch.items += 1;
                }
                // Only the last one is counted up to the end of what was read.
                if count > 1 && of_peer[count - 1].items == 1 {
                    of_peer[count - 2].upto = at;
                }
            }
            (upto, batches)
        }
    }

    /// Whatever breaks and whenever, every item comes to its peer, and a place never passes what is not counted.
    #[test]
    fn every_item_arrives_through_breaks_and_restarts() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let peers = [2, 3, 5];
            let mut model = Model { ledger: Vec::new(), had: RapidHashMap::default() };
            let mut exchange = Exchange::new([], 0);
            exchange.set_peers(&peers);
            let mut wire: Vec<(u16, u64, Vec<u8>)> = Vec::new();
            for step in 0..600 {
                let is_over = step > 400;
                if !is_over && rng.below(2) == 0 {
                    model.ledger.push([0, 2, 3, 5][rng.below(4) as usize]);
                }
                let peer = peers[rng.below(3) as usize];
                match rng.below(if is_over { 6 } else { 9 }) {
                    0..2 => exchange.up(peer),
                    2..6 => {
                        if let Some(stretch) = exchange.next_read(model.end()) {
                            let (upto, batches) = model.read(&stretch);
                            exchange.took(&stretch, upto, batches);
                        }
                        while let Some((number, bytes)) = exchange.to_send(peer) {
                            wire.push((peer, number, bytes.to_vec()));
                        }
                        for (peer, number, bytes) in wire.drain(..) {
                            let items = bytes.chunks(8).map(|at| u64::from_le_bytes(at.try_into().unwrap()));
                            model.had.entry(peer).or_default().extend(items);
                            // Its count may be lost.
                            if rng.below(8) > 0 {
                                exchange.counted(peer, number).unwrap();
                            }
                        }
                    }
                    6 => exchange.down(peer),
                    7 => exchange.deal_anew(),
                    _ => {
                        let places: Vec<_> = exchange.places().collect();
                        for &(peer, place) in &places {
                            let had = model.had.get(&peer);
                            let before = (0..place).step_by(ITEM as usize);
                            for at in before.filter(|at| model.ledger[(at / ITEM) as usize] == peer) {
                                assert!(
                                    had.is_some_and(|had| had.contains(&at)),
                                    "seed {seed}: {at} of {peer}"
                                );
                            }
                        }
                        exchange = Exchange::new(places, model.end());
                        exchange.set_peers(&peers);
                    }
                }
            }
            // Lost counts are made good by a link that is made anew.
            for _ in 0..200 {
                for peer in peers {
                    exchange.down(peer);
                    exchange.up(peer);
                    while let Some(stretch) = exchange.next_read(model.end()) {
                        let (upto, batches) = model.read(&stretch);
                        exchange.took(&stretch, upto, batches);
                    }
                    while let Some((number, bytes)) = exchange.to_send(peer) {
                        let items = bytes.chunks(8).map(|at| u64::from_le_bytes(at.try_into().unwrap()));
                        model.had.entry(peer).or_default().extend(items.collect::<Vec<_>>());
                        exchange.counted(peer, number).unwrap();
                    }
                }
            }
            assert_eq!(exchange.outbox(model.end()), (0, true), "seed {seed}");
            for (at, peer) in model.ledger.iter().enumerate().filter(|(_, peer)| **peer > 0) {
                let at = at as u64 * ITEM;
                assert!(model.had[peer].contains(&at), "seed {seed}: {at} never came to {peer}");
            }
        }
    }

    #[test]
    fn a_count_of_what_was_never_sent_is_refused_and_room_is_bounded() {
        let mut exchange = Exchange::new([], 0);
        exchange.set_peers(&[2]);
        assert_eq!(exchange.next_read(50), None, "nobody hears");
        exchange.up(2);
        let mut end = 0;
        for _ in 0..UNCOUNTED_MAX {
            end += 10;
            let stretch = exchange.next_read(end).unwrap();
            let batch = NewBatch { bytes: vec![1], items: 1, upto: end };
            exchange.took(&stretch, end, [(2, vec![batch])].into_iter().collect());
        }
        assert_eq!(exchange.next_read(end + 10), None, "the ledger waits");
        assert_eq!(exchange.counted(2, 1), Ok(0), "it was not sent, and may be of the link before");
        assert_eq!(exchange.to_send(2), Some((1, &[1][..])));
        assert_eq!(exchange.counted(2, 999), Err(BadCount { batch: 999, sent: 1 }));
        assert_eq!(exchange.counted(2, 1), Ok(1));
        assert_eq!(exchange.places().collect::<Vec<_>>(), [(2, 10)]);
        assert!(exchange.next_read(end + 10).is_some());
    }
}
