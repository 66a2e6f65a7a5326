use super::Sends;
use super::index_asks::IndexAsks;
use super::share_keeping::{Place, SetBack};
use crate::base::Now;
use crate::doc_index::{Origin, OutItem, Outbox, ToTell};
use crate::engine::inspect::peer_words::{Adopted, PeerAsk, PeerTold, PeerUrl};
use crate::engine::inspect::questions::Reply;
use crate::limits::URL_BATCHES_HELD_MAX;
use crate::peer::exchange::{BadCount, Exchange, NewBatch, Stretch};
use crate::proto::partition::Partition;
use crate::proto::peer_wire::{Found, PeerWord, PushError, UrlBatch, UrlBatchBuilder, UrlItem, UrlNews};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// URLs on their way: those that this node found to their owners, out of its ledger, and those that others found into its
/// index.
///
/// ```text
///   ledger ── Outbox ──► batches ── URLS ──► … ──► COUNTED ──► the place of the peer moves on
///   URLS of others ──► held ── Adopt, many at once ──► on disk ──► COUNTED, or NOT_MINE
/// ```
pub(super) struct UrlPost {
    exchange: Exchange,
    /// A stretch that the index reads.
    reading: Option<(Stretch, Receiver<Reply>)>,
    /// The ledger is looked at then: nothing was there a moment ago.
    read_at: Now,
    /// Batches of others that the index was not given yet, in the order in which they came.
    held: VecDeque<HeldBatch>,
    adopting: Option<Adopting>,
    counts: PostCounts,
    asks: IndexAsks,
}

/// What has come and gone since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PostCounts {
    /// URLs that others have counted.
    pub counted: u64,
    /// URLs that came and are on disk here.
    pub received: u64,
    pub new: u64,
    /// URLs that were no URLs, or could not be told.
    pub bad: u64,
}

/// A batch of another node.
struct HeldBatch {
    node: u16,
    batch: u64,
    urls: Vec<PeerUrl>,
    /// Those of its URLs that are to be fetched, each once.
    partitions: Vec<Partition>,
}

/// Batches that the index was given together.
struct Adopting {
    parts: Vec<Part>,
    urls: Arc<Vec<PeerUrl>>,
    answered: Receiver<Reply>,
    /// It was not taken, as the index has too much to do: it is asked again then.
    again_at: Option<Now>,
}

struct Part {
    node: u16,
    batch: u64,
    urls: u64,
    partitions: Vec<Partition>,
}

/// How it stands, for a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostStanding {
    pub sent: u64,
    pub counted: u64,
    /// At least so many are still to be sent.
    pub outbox: u64,
    /// URLs that came and are not on disk yet.
    pub incoming: u64,
}

/// Why a link is to be closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PostFault {
    Count(BadCount),
    /// More batches than may be uncounted.
    Flood,
}

/// A batch that is not full waits for more URLs so long.
const BATCH_US: u64 = 200_000;
/// URLs that the index is given at once.
const ADOPTED_AT_ONCE: usize = 4_096;

impl UrlPost {
    pub fn new(exchange: Exchange, asks: IndexAsks) -> UrlPost {
        UrlPost {
            exchange,
            reading: None,
            read_at: Now::ZERO,
            held: VecDeque::new(),
            adopting: None,
            counts: PostCounts::default(),
            asks,
        }
    }

    pub fn asks(&self) -> &IndexAsks {
        &self.asks
    }

    pub fn counts(&self) -> PostCounts {
        self.counts
    }

    /// How far each peer has counted.
    pub fn places(&self) -> impl Iterator<Item = (u16, u64)> {
        self.exchange.places()
    }

    /// How it stands; `end` is where the ledger ended at a moment before.
    pub fn standing(&self, end: u64) -> PostStanding {
        let (items, is_through) = self.exchange.outbox(end);
        let counted = self.counts.counted;
        let outbox = if is_through { 0 } else { items.max(1) };
        let incoming = self.received() - self.counts.received;
        PostStanding { sent: counted + items, counted, outbox, incoming }
    }

    /// Everything that the ledger told when it was last read to its end is counted.
    pub fn is_through(&self) -> bool {
        self.exchange.is_through()
    }

    /// URLs that came, on disk or on their way there.
    pub fn received(&self) -> u64 {
        let waiting: u64 = self.held.iter().map(|held| held.urls.len() as u64).sum();
        let adopting = self.adopting.iter().flat_map(|adopting| &adopting.parts);
        self.counts.received + waiting + adopting.map(|part| part.urls).sum::<u64>()
    }

    pub fn set_peers(&mut self, peers: &[u16]) {
        self.exchange.set_peers(peers);
    }

    pub fn up(&mut self, node: u16) {
        self.exchange.up(node);
        self.read_at = Now::ZERO;
    }

    pub fn down(&mut self, node: u16) {
        self.exchange.down(node);
        self.held.retain(|held| held.node != node);
        // What the index has of it is not counted: the peer sends it again.
        for part in self.adopting.iter_mut().flat_map(|adopting| &mut adopting.parts) {
            if part.node == node {
                part.node = 0;
            }
        }
    }

    /// The index goes by another share, in which partitions of one node are another's.
    pub fn deal_anew(&mut self, set_back: &[SetBack]) {
        for &SetBack { peer, place } in set_back {
            match place {
                Place::At(place) => self.exchange.set_back(peer, place),
                Place::Of(from) => self.exchange.pass_on(from, peer),
            }
        }
        self.exchange.deal_anew();
        self.reading = None;
        self.read_at = Now::ZERO;
    }

    // From peers ------------------------------------------------------------------------------------------

    pub fn counted(&mut self, node: u16, batch: u64) -> Result<(), PostFault> {
        self.counts.counted += self.exchange.counted(node, batch).map_err(PostFault::Count)?;
        self.read_at = Now::ZERO;
        Ok(())
    }

    /// A peer does not own what it was sent: what it has not counted is dealt anew, when it is up again.
    pub fn not_mine(&mut self, node: u16) {
        self.exchange.down(node);
    }

    pub fn urls(&mut self, node: u16, batch: &UrlBatch<'_>) -> Result<(), PostFault> {
        if self.held.iter().filter(|held| held.node == node).count() >= URL_BATCHES_HELD_MAX {
            return Err(PostFault::Flood);
        }
        let mut held = HeldBatch {
            node,
            batch: batch.batch,
            urls: Vec::with_capacity(batch.count()),
            partitions: Vec::new(),
        };
        let mut items = batch.items();
        while let Some(UrlItem { partition, url, news }) = items.next() {
            let found = match news {
                UrlNews::Scope => None,
                UrlNews::Found(Found { provenance, priority, hits }) => {
                    if held.partitions.last() != Some(&partition) {
                        held.partitions.push(partition);
                    }
                    Some(Origin { via: Origin::VIA_PEER, provenance, priority, hits })
                }
            };
            held.urls.push(PeerUrl { url: url.into(), found });
        }
        held.partitions.sort_unstable();
        held.partitions.dedup();
        self.held.push_back(held);
        Ok(())
    }

    // In turns --------------------------------------------------------------------------------------------

    /// Goes on with everything. `epoch` is of the share that the index goes by; the ledger is read while every partition
    /// has an owner. True if something moved.
    pub fn turn(&mut self, now: Now, epoch: u64, is_dealt: bool, wires: &mut dyn Sends) -> bool {
        let took = self.take_outbox(now);
        let adopted = self.take_adopted(now, epoch, wires);
        self.adopt();
        if is_dealt {
            self.read(now);
        }
        let sent = self.send(wires);
        took || adopted || sent
    }

    pub fn next_due(&self) -> Option<Now> {
        let again = self.adopting.as_ref().and_then(|adopting| adopting.again_at);
        let read = self.reading.is_none().then_some(self.read_at);
        read.into_iter().chain(again).min()
    }

    fn read(&mut self, now: Now) {
        if self.reading.is_some() || now < self.read_at {
            return;
        }
        let Some(stretch) = self.exchange.next_read(u64::MAX) else {
            self.read_at = now.plus_us(BATCH_US);
            return;
        };
        let (from, until) = (stretch.from, stretch.until);
        let answered = self.asks.ask(PeerAsk::Outbox { from, until, nodes: stretch.peers.as_slice().into() });
        self.reading = Some((stretch, answered));
    }

    fn take_outbox(&mut self, now: Now) -> bool {
        let Some((stretch, answered)) = &self.reading else { return false };
        let outbox = match answered.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Ok(Reply::Peers(told)) => match *told {
                PeerTold::Outbox(Ok(outbox)) => Some(outbox),
                _ => None,
            },
            Ok(_) | Err(TryRecvError::Disconnected) => None,
        };
        let Some(outbox) = outbox else {
            // The index has too much to do, or the disk does not give it.
            self.exchange.failed();
            self.reading = None;
            self.read_at = now.plus_us(BATCH_US);
            return false;
        };
        let stretch = stretch.clone();
        self.reading = None;
        let is_at_end = outbox.upto == stretch.from;
        self.read_at = if is_at_end { now.plus_us(BATCH_US) } else { now };
        let (batches, bad) = batches_of(&stretch, &outbox);
        self.counts.bad += bad;
        self.exchange.took(&stretch, outbox.upto, batches);
        !is_at_end
    }

    fn adopt(&mut self) {
        if self.adopting.is_some() || self.held.is_empty() {
            return;
        }
        let (mut urls, mut parts) = (Vec::new(), Vec::new());
        while let Some(held) = self.held.pop_front() {
            let HeldBatch { node, batch, urls: more, partitions } = held;
            parts.push(Part { node, batch, urls: more.len() as u64, partitions });
            urls.extend(more);
            if urls.len() >= ADOPTED_AT_ONCE {
                break;
            }
        }
        let urls = Arc::new(urls);
        let answered = self.asks.ask(PeerAsk::Adopt(urls.clone()));
        self.adopting = Some(Adopting { parts, urls, answered, again_at: None });
    }

    fn take_adopted(&mut self, now: Now, epoch: u64, wires: &mut dyn Sends) -> bool {
        let Some(adopting) = &mut self.adopting else { return false };
        if let Some(again_at) = adopting.again_at {
            if now >= again_at {
                adopting.again_at = None;
                adopting.answered = self.asks.ask(PeerAsk::Adopt(adopting.urls.clone()));
            }
            return false;
        }
        let adopted = match adopting.answered.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Ok(Reply::Peers(told)) => match *told {
                PeerTold::Adopted(adopted) => Some(adopted),
                _ => None,
            },
            Ok(_) | Err(TryRecvError::Disconnected) => None,
        };
        let Some(Adopted { new, bad, not_ours, .. }) = adopted else {
            adopting.again_at = Some(now.plus_us(BATCH_US));
            return false;
        };
        let parts = self.adopting.take().map(|adopting| adopting.parts).unwrap_or_default();
        self.counts.new += new;
        self.counts.bad += bad;
        let not_ours_of = |part: &Part| -> Vec<Partition> {
            part.partitions.iter().filter(|partition| not_ours.contains(partition)).copied().collect()
        };
        for part in parts {
            let partitions = not_ours_of(&part);
            self.counts.received += part.urls;
            let Part { node, batch, .. } = part;
            match (node, partitions.is_empty()) {
                (0, _) => {}
                (_, true) => wires.send(node, &PeerWord::Counted { batch }),
                (_, false) => wires.send(node, &PeerWord::NotMine { batch, epoch, partitions }),
            }
        }
        true
    }

    fn send(&mut self, wires: &mut dyn Sends) -> bool {
        let mut is_sent = false;
        for peer in self.exchange.waiting() {
            while wires.has_room(peer)
                && let Some((number, bytes)) = self.exchange.to_send(peer)
            {
                wires.send(peer, &PeerWord::Urls(UrlBatch::built(number, bytes)));
                is_sent = true;
            }
        }
        is_sent
    }
}

/// The items of a stretch as batches for each peer, sorted: URLs that begin alike take little room. Only with the last batch of
/// a peer is the stretch counted. Says how many items no batch takes.
fn batches_of(stretch: &Stretch, outbox: &Outbox) -> (RapidHashMap<u16, Vec<NewBatch>>, u64) {
    let mut batches = RapidHashMap::default();
    let mut bad = 0;
    for &peer in &stretch.peers {
        let is_for = |item: &&OutItem| match item.told {
            ToTell::Owner { node, .. } => node == peer,
            ToTell::All => true,
        };
        let mut items: Vec<&OutItem> = outbox.items.iter().filter(is_for).collect();
        items.sort_by(|one, other| one.url.cmp(&other.url));
        let mut of_peer: Vec<NewBatch> = Vec::new();
        let mut builder = UrlBatchBuilder::default();
        let mut end = |builder: &mut UrlBatchBuilder, upto| {
            let items = builder.count() as u32;
            if items > 0 {
                of_peer.push(NewBatch { bytes: builder.take(), items, upto });
            }
        };
        for item in items {
            let news = match item.told {
                ToTell::All => UrlNews::Scope,
                ToTell::Owner { found: Origin { provenance, priority, hits, .. }, .. } => {
                    UrlNews::Found(Found { provenance, priority, hits })
                }
            };
            let item = UrlItem { partition: item.partition, url: &item.url, news };
            let mut pushed = builder.push(&item);
            if let Err(PushError::Full | PushError::Room) = pushed {
                end(&mut builder, stretch.from);
                pushed = builder.push(&item);
            }
            bad += u64::from(pushed.is_err());
        }
        end(&mut builder, outbox.upto);
        if let Some(last) = of_peer.last_mut() {
            last.upto = outbox.upto;
            batches.insert(peer, of_peer);
        }
    }
    (batches, bad)
}
