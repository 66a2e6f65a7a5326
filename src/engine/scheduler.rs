use super::index_desk::IndexPort;
use super::names::{Addresses, Lookup, Names};
use super::stats::{SchedulerStats, Tally};
use super::words::{Done, FromIndex, FromShard, ToIndex, ToShard};
use crate::base::{AddressGuard, fingerprint};
use crate::doc_index::{IndexStats, RejectList};
use crate::limits::{CANDIDATES_PER_ASK, STRIKES_MAX, URLS_PER_SHARD_MAX};
use crate::proto::lines::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender};
use crate::store_server::ShardShare;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Between the doc index and the shards: asks for candidates, resolves them, deals each to the shard that owns its
/// address, and holds every DONE back until its record is durable. A host and its address live on one shard.
pub struct Scheduler {
    config: SchedulerConfig,
    shards: Vec<ShardSide>,
    index: IndexPort,
    names: Names,
    resolved: RapidHashMap<Box<str>, Resolution>,
    /// Documents at shards, by host: how full its queue is.
    loads: RapidHashMap<u64, u32>,
    /// Hosts whose queue is full.
    reject: Arc<RejectList>,
    /// Words the index ring had no room for. While there are any, no DONE is taken.
    to_index: VecDeque<ToIndex>,
    asked: bool,
    /// Something happened since the last empty answer that could make the next one better.
    ask_again: bool,
    /// Words went to the index since the question that is open was asked.
    told_since_ask: bool,
    strikes: RapidHashMap<u32, u8>,
    /// Where seeds led: brought into scope during the crawl.
    into_scope: Vec<Arc<CrawlUrl>>,
    index_stats: IndexStats,
    counts: Counts,
    tally: Tally,
    stop: Arc<AtomicBool>,
    draining: bool,
    stats: Arc<SchedulerStats>,
}

pub struct SchedulerConfig {
    pub queue_len: usize,
    pub pages_max: Option<u64>,
    pub guard: AddressGuard,
}

/// The rings to one shard.
pub struct ShardPort {
    pub work: Sender<ToShard>,
    pub done: Receiver<FromShard>,
    pub bell: Arc<Doorbell>,
    pub share: Arc<ShardShare>,
}

struct ShardSide {
    port: ShardPort,
    epoch: u32,
    /// Documents this shard has, and their hosts.
    open: RapidHashMap<u32, u64>,
    /// Jobs its ring had no room for.
    dealt: VecDeque<ToShard>,
    /// DONE words whose record is not durable yet, in the order of their sequence.
    held: VecDeque<Done>,
    drained: bool,
}

enum Resolution {
    Known(Addresses),
    Unknown,
    /// Candidates that wait for the answer.
    Asked(Vec<Candidate>),
}

#[derive(Default)]
struct Counts {
    pages: u64,
    success: u64,
    done: u64,
    restarts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerState {
    Busy,
    /// Nothing to do until a word comes or a record becomes durable.
    Waiting,
    /// Everything is fetched, or the crawl was stopped, and all shards are drained.
    Finished,
}

/// Names kept resolved.
const RESOLVED_MAX: usize = 1 << 20;

impl Scheduler {
    pub fn new(
        config: SchedulerConfig,
        shards: Vec<ShardPort>,
        index: IndexPort,
        names: Names,
        stop: Arc<AtomicBool>,
        stats: Arc<SchedulerStats>,
    ) -> Scheduler {
        let side = |port| ShardSide {
            port,
            epoch: 0,
            open: RapidHashMap::default(),
            dealt: VecDeque::new(),
            held: VecDeque::new(),
            drained: false,
        };
        Scheduler {
            config,
            shards: shards.into_iter().map(side).collect(),
            index,
            names,
            resolved: RapidHashMap::default(),
            loads: RapidHashMap::default(),
            reject: Arc::default(),
            to_index: VecDeque::new(),
            asked: false,
            ask_again: true,
            told_since_ask: false,
            strikes: RapidHashMap::default(),
            into_scope: Vec::new(),
            index_stats: IndexStats::default(),
            counts: Counts::default(),
            tally: Tally::default(),
            stop,
            draining: false,
            stats,
        }
    }

    pub fn seed(&mut self, url: CrawlUrl) {
        self.tell(ToIndex::Seed(url));
    }

    /// Works off what has come, and deals what can be dealt.
    pub fn turn(&mut self) -> SchedulerState {
        let mut busy = self.flush_to_index();
        busy |= self.take_names();
        busy |= self.take_candidates();
        for shard in 0..self.shards.len() {
            busy |= self.take_words(shard);
            busy |= self.count_durable(shard);
            busy |= self.flush_dealt(shard);
        }
        self.ask();
        self.publish();
        if self.stop.load(Ordering::Relaxed) || self.is_complete() || self.page_limit_reached() {
            self.drain();
        }
        let all_drained = self.shards.iter().all(|side| side.drained && side.held.is_empty());
        if self.draining && all_drained && self.to_index.is_empty() {
            return SchedulerState::Finished;
        }
        if busy { SchedulerState::Busy } else { SchedulerState::Waiting }
    }

    /// Whether something has come that `turn` would take.
    pub fn has_words(&self) -> bool {
        !self.index.answers.is_empty()
            || self.names.has_answers()
            || self.shards.iter().any(|side| {
                !side.port.done.is_empty()
                    || side.held.front().is_some_and(|done| done.sequence <= Some(side.port.share.durable()))
            })
            || (self.stop.load(Ordering::Relaxed) && !self.draining)
    }

    pub fn pages(&self) -> u64 {
        self.counts.pages
    }

    pub fn success(&self) -> u64 {
        self.counts.success
    }

    pub fn restarts(&self) -> u64 {
        self.counts.restarts
    }

    pub fn results(&self) -> std::collections::BTreeMap<&'static str, u64> {
        self.tally.by_name()
    }

    /// What the index knew when it was last asked.
    pub fn index_stats(&self) -> IndexStats {
        self.index_stats
    }

    pub fn documents_done(&self) -> u64 {
        self.counts.done
    }

    fn tell(&mut self, word: ToIndex) {
        self.told_since_ask = true;
        self.ask_again = true;
        if !self.to_index.is_empty() {
            self.to_index.push_back(word);
        } else if let Err(word) = self.index.words.push(word) {
            self.to_index.push_back(word);
        }
    }

    fn flush_to_index(&mut self) -> bool {
        let mut busy = false;
        while let Some(word) = self.to_index.pop_front() {
            if let Err(word) = self.index.words.push(word) {
                self.to_index.push_front(word);
                break;
            }
            busy = true;
        }
        self.index.bell.ring_if_asleep();
        busy
    }

    fn take_words(&mut self, shard: usize) -> bool {
        let mut busy = false;
        // With a backlog towards the index nothing more is taken: the rings hold the shards back.
        while self.to_index.is_empty()
            && let Some(word) = self.shards[shard].port.done.pop()
        {
            busy = true;
            match word {
                FromShard::Done(done) => self.hold(shard, done),
                FromShard::Working { .. } => {}
                FromShard::Restarted { epoch, suspect } => self.deal_again(shard, epoch, suspect),
                FromShard::Drained => self.shards[shard].drained = true,
            }
        }
        busy
    }

    /// Links may be known at once; the document counts when its record is durable.
    fn hold(&mut self, shard: usize, mut done: Done) {
        if let Some(mut found) = done.found.take() {
            if let Some(url) = found.into_scope.take() {
                let url = Arc::new(url);
                self.into_scope.push(url.clone());
                for side in &mut self.shards {
                    side.dealt.push_back(ToShard::Scope(url.clone()));
                }
            }
            self.tell(ToIndex::Discover(found));
        }
        if done.sequence.is_some() {
            self.shards[shard].held.push_back(done);
        } else {
            self.count(shard, &done);
        }
    }

    fn count_durable(&mut self, shard: usize) -> bool {
        let durable = self.shards[shard].port.share.durable();
        let mut busy = false;
        while self.shards[shard].held.front().is_some_and(|done| done.sequence <= Some(durable)) {
            let Some(done) = self.shards[shard].held.pop_front() else {
                break;
            };
            self.count(shard, &done);
            busy = true;
        }
        busy
    }

    fn count(&mut self, shard: usize, done: &Done) {
        // A document that was dealt again may be answered for twice; the first answer counts.
        let Some(host) = self.shards[shard].open.remove(&done.doc_id) else {
            return;
        };
        self.unload(host);
        self.conclude(done.doc_id, done.result, done.fetched);
    }

    fn conclude(&mut self, doc_id: u32, result: ResultCode, fetched: bool) {
        self.counts.done += 1;
        if fetched {
            self.counts.pages += 1;
            self.counts.success += u64::from(result.is_success());
        }
        self.tally.count(result);
        self.tell(ToIndex::Record { doc_id, result });
    }

    /// A host's queue has one document fewer; at half it is taken off the reject list.
    fn unload(&mut self, host: u64) {
        let Some(load) = self.loads.get_mut(&host) else {
            return;
        };
        *load -= 1;
        let load = *load;
        if load == 0 {
            self.loads.remove(&host);
        }
        if (load as usize) <= self.config.queue_len / 2 && self.reject.contains(&host) {
            Arc::make_mut(&mut self.reject).remove(&host);
            self.ask_again = true;
        }
    }

    /// A shard died: what it had goes back to the index, which will hand it out anew.
    fn deal_again(&mut self, shard: usize, epoch: u32, suspect: Option<u32>) {
        self.counts.restarts += 1;
        let side = &mut self.shards[shard];
        side.epoch = epoch;
        side.dealt.clear();
        side.dealt.extend(self.into_scope.iter().cloned().map(ToShard::Scope));
        if self.draining {
            side.dealt.push_back(ToShard::Drain);
        }
        // What waits to become durable is written; it will be counted.
        let written: rapidhash::fast::RapidHashSet<u32> = side.held.iter().map(|done| done.doc_id).collect();
        let open = side.open.iter().map(|(&doc_id, &host)| (doc_id, host));
        let mut lost: Vec<(u32, u64)> = open.filter(|(doc_id, _)| !written.contains(doc_id)).collect();
        // In the order they were found, not in that of a hash map: a simulated death can be replayed.
        lost.sort_unstable();
        for (doc_id, host) in lost {
            self.shards[shard].open.remove(&doc_id);
            self.unload(host);
            let strikes = self.strikes.entry(doc_id).or_default();
            *strikes += u8::from(suspect == Some(doc_id));
            if *strikes >= STRIKES_MAX {
                self.conclude(doc_id, ResultCode::ShardDied, true);
            } else {
                self.tell(ToIndex::PutBack(doc_id));
            }
        }
        self.strikes.retain(|_, strikes| *strikes > 0);
    }

    fn take_candidates(&mut self) -> bool {
        let mut busy = false;
        while let Some(FromIndex::Candidates { candidates, stats }) = self.index.answers.pop() {
            busy = true;
            self.asked = false;
            self.index_stats = stats;
            // An answer that could have been better is asked for again.
            self.ask_again |= self.told_since_ask || !candidates.is_empty();
            for candidate in candidates {
                self.resolve(candidate);
            }
        }
        busy
    }

    fn resolve(&mut self, candidate: Candidate) {
        let host = candidate.url.host_bare();
        match self.resolved.get_mut(host) {
            Some(Resolution::Known(addresses)) => {
                let addresses = addresses.clone();
                self.deal(candidate, &addresses);
            }
            Some(Resolution::Asked(waiting)) => waiting.push(candidate),
            Some(Resolution::Unknown) => self.conclude(candidate.doc_id, ResultCode::DnsFailed, false),
            None => match self.names.lookup(host) {
                Lookup::Known(addresses) => {
                    self.remember(host.into(), Resolution::Known(addresses.clone()));
                    self.deal(candidate, &addresses);
                }
                Lookup::Unknown => {
                    self.remember(host.into(), Resolution::Unknown);
                    self.conclude(candidate.doc_id, ResultCode::DnsFailed, false);
                }
                Lookup::Asked => {
                    self.resolved.insert(host.into(), Resolution::Asked(vec![candidate]));
                }
                Lookup::Later => self.tell(ToIndex::PutBack(candidate.doc_id)),
            },
        }
    }

    fn remember(&mut self, host: Box<str>, resolution: Resolution) {
        if self.resolved.len() >= RESOLVED_MAX {
            self.resolved.retain(|_, resolution| matches!(resolution, Resolution::Asked(_)));
        }
        self.resolved.insert(host, resolution);
    }

    fn take_names(&mut self) -> bool {
        let mut busy = false;
        while let Some((host, addresses)) = self.names.answer() {
            busy = true;
            let resolution = addresses.clone().map_or(Resolution::Unknown, Resolution::Known);
            let Some(Resolution::Asked(waiting)) = self.resolved.insert(host, resolution) else {
                continue;
            };
            for candidate in waiting {
                match &addresses {
                    Some(addresses) => self.deal(candidate, addresses),
                    None => self.conclude(candidate.doc_id, ResultCode::DnsFailed, false),
                }
            }
        }
        busy
    }

    /// Deals a resolved candidate to the shard that owns its address: the first that may be connected to. That
    /// address goes along, so that what was checked here is what the shard connects to.
    fn deal(&mut self, candidate: Candidate, addresses: &[IpAddr]) {
        if self.draining {
            self.tell(ToIndex::PutBack(candidate.doc_id));
            return;
        }
        let port = candidate.url.port();
        let allowed = addresses.iter().find(|&&ip| self.config.guard.check(ip, port).is_ok());
        let Some(&ip) = allowed else {
            self.conclude(candidate.doc_id, ResultCode::BlockedAddress, false);
            return;
        };
        let host = fingerprint(candidate.url.origin().as_bytes());
        let load = self.loads.entry(host).or_default();
        *load += 1;
        if *load as usize >= self.config.queue_len {
            Arc::make_mut(&mut self.reject).insert(host);
        }
        let shard = shard_of(ip, self.shards.len());
        let side = &mut self.shards[shard];
        side.open.insert(candidate.doc_id, host);
        side.dealt.push_back(ToShard::Work { epoch: side.epoch, job: Job { candidate, ip } });
    }

    fn flush_dealt(&mut self, shard: usize) -> bool {
        let side = &mut self.shards[shard];
        let mut busy = false;
        while let Some(word) = side.dealt.pop_front() {
            if let Err(word) = side.port.work.push(word) {
                side.dealt.push_front(word);
                break;
            }
            busy = true;
        }
        if busy {
            side.port.bell.ring_if_asleep();
        }
        busy
    }

    /// Asks the index for candidates while shards have room and the last answer may be out of date.
    fn ask(&mut self) {
        if self.asked || !self.ask_again || self.draining || !self.to_index.is_empty() {
            return;
        }
        let at_shards: usize = self.shards.iter().map(|side| side.open.len()).sum();
        let waiting: usize = self.shards.iter().map(|side| side.dealt.len()).sum();
        let mut want =
            CANDIDATES_PER_ASK.min((self.shards.len() * URLS_PER_SHARD_MAX).saturating_sub(at_shards));
        if let Some(pages_max) = self.config.pages_max {
            want = want
                .min(pages_max.saturating_sub(self.counts.pages + at_shards as u64 + self.asked_names())
                    as usize);
        }
        if want == 0 || waiting > CANDIDATES_PER_ASK {
            return;
        }
        let ask = ToIndex::Ask { want, reject: self.reject.clone() };
        if self.index.words.push(ask).is_ok() {
            self.asked = true;
            self.ask_again = false;
            self.told_since_ask = false;
            self.index.bell.ring_if_asleep();
        }
    }

    fn asked_names(&self) -> u64 {
        let waiting = |resolution: &Resolution| match resolution {
            Resolution::Asked(waiting) => waiting.len() as u64,
            _ => 0,
        };
        if self.config.pages_max.is_some() { self.resolved.values().map(waiting).sum() } else { 0 }
    }

    /// Nothing is open anywhere, and the index has said, knowing everything, that it has nothing more.
    fn is_complete(&self) -> bool {
        !self.asked
            && !self.ask_again
            && self.to_index.is_empty()
            && self.index_stats.fetching == 0
            && self.index_stats.pending == 0
            && self
                .shards
                .iter()
                .all(|side| side.open.is_empty() && side.dealt.is_empty() && side.held.is_empty())
    }

    fn page_limit_reached(&self) -> bool {
        self.config.pages_max.is_some_and(|pages_max| self.counts.pages >= pages_max)
    }

    fn drain(&mut self) {
        if self.draining {
            return;
        }
        self.draining = true;
        for side in &mut self.shards {
            side.dealt.retain(|word| !matches!(word, ToShard::Work { .. }));
            side.dealt.push_back(ToShard::Drain);
        }
        for shard in 0..self.shards.len() {
            self.flush_dealt(shard);
        }
    }

    fn publish(&self) {
        let set = |counter: &std::sync::atomic::AtomicU64, value| counter.store(value, Ordering::Relaxed);
        set(&self.stats.pages, self.counts.pages);
        set(&self.stats.success, self.counts.success);
        set(&self.stats.done, self.counts.done);
        set(&self.stats.known, self.index_stats.known);
        set(&self.stats.restarts, self.counts.restarts);
    }
}

/// The shard that owns an address: its connections are there, to be used again.
pub(super) fn shard_of(ip: IpAddr, shards: usize) -> usize {
    let octets = match ip {
        IpAddr::V4(v4) => fingerprint(&v4.octets()),
        IpAddr::V6(v6) => fingerprint(&v6.octets()),
    };
    (octets % shards as u64) as usize
}
