use crate::base::{AddressGuard, Now, Wall, fingerprint};
use crate::doc_index::{IndexStats, Outcome, RejectList};
use crate::engine::crawl::address_owners::AddressOwners;
use crate::engine::crawl::index_actor::IndexPort;
use crate::engine::crawl::log_lines::Logger;
use crate::engine::crawl::messages::{Done, FromIndex, FromShard, ToIndex, ToShard};
use crate::engine::crawl::open_questions::OpenQuestions;
use crate::engine::crawl::placement::{HostHome, OpenErrand};
use crate::engine::crawl::resolution::Resolution;
use crate::engine::crawl::shutdown::Shutdown;
use crate::engine::inspect::questions::Questions;
use crate::engine::names::Names;
use crate::engine::runtime::counters::{SchedulerStats, Tally};
use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use crate::limits::{CANDIDATES_PER_ASK, OWNED_ADDRESSES_MAX, STRIKES_MAX, URLS_PER_SHARD_MAX};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender};
use crate::store_server::ShardShare;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Between the doc index and the shards: asks for candidates, resolves them, deals each to the shard that owns its
/// address, and holds every DONE back until its record is durable. A host and its address live on one shard.
pub struct Scheduler {
    pub(crate) config: SchedulerConfig,
    pub(crate) shards: Vec<ShardSide>,
    pub(crate) index: IndexPort,
    pub(crate) names: Names,
    pub(crate) batch: Resolution,
    /// Where hosts live, and how full their queues are.
    pub(crate) homes: RapidHashMap<u64, HostHome>,
    /// Whose addresses are whose.
    pub(crate) owners: AddressOwners,
    /// Hosts whose queue is full.
    pub(crate) reject: Arc<RejectList>,
    /// Robots rules that are asked for at another host than theirs.
    pub(crate) errands: RapidHashMap<u64, OpenErrand>,
    pub(crate) next_errand: u64,
    scribe: LogWriterPort,
    /// Lines of the crawl log about what no shard was given.
    pub(crate) log: Vec<u8>,
    pub(crate) logger: Logger,
    clock: Arc<dyn Fn() -> Now + Send + Sync>,
    /// What a user should know, until it is fetched.
    notices: Arc<Mutex<Vec<String>>>,
    /// Words the index ring had no room for. While there are any, no DONE is taken.
    pub(crate) to_index: VecDeque<ToIndex>,
    asked: bool,
    /// Something happened since the last empty answer that could make the next one better.
    ask_again: bool,
    /// Words went to the index since the question that is open was asked.
    told_since_ask: bool,
    strikes: RapidHashMap<u32, u8>,
    /// Where seeds led: brought into scope during the crawl.
    into_scope: Vec<Arc<CrawlUrl>>,
    /// Their prints: whatever is fetched again is not told again.
    scoped: RapidHashSet<u64>,
    index_stats: IndexStats,
    pub(crate) counts: Counts,
    tally: Tally,
    stop: Arc<AtomicBool>,
    pub(crate) draining: bool,
    pub(crate) parting: Shutdown,
    stats: Arc<SchedulerStats>,
    /// What somebody wants to know, and what of it was passed on.
    pub(crate) questions: Arc<Questions>,
    pub(crate) open_questions: OpenQuestions,
}

pub struct SchedulerConfig {
    pub queue_len: usize,
    pub hosts_per_ip_max: usize,
    pub pages_max: Option<u64>,
    pub guard: AddressGuard,
    /// Of the seeds only the heads are asked for.
    pub head_only: bool,
    /// Stay when everything is done.
    pub wait: bool,
}

#[cfg(test)]
impl SchedulerConfig {
    /// Short queues and no end, for tests.
    pub(crate) fn small() -> SchedulerConfig {
        SchedulerConfig {
            queue_len: 8,
            hosts_per_ip_max: 8,
            pages_max: None,
            guard: AddressGuard::default(),
            head_only: false,
            wait: true,
        }
    }
}

/// The rings to one shard.
pub struct ShardPort {
    pub work: Sender<ToShard>,
    pub done: Receiver<FromShard>,
    pub bell: Arc<Doorbell>,
    pub share: Arc<ShardShare>,
}

pub(crate) struct ShardSide {
    port: ShardPort,
    pub epoch: u32,
    /// Documents this shard has, and their hosts.
    pub open: RapidHashMap<u32, u64>,
    /// Jobs its ring had no room for.
    pub dealt: VecDeque<ToShard>,
    /// DONE words whose record is not durable yet, in the order of their sequence.
    pub held: VecDeque<Done>,
    drained: bool,
    /// It has an empty queue.
    wants: bool,
}

#[derive(Default)]
pub(crate) struct Counts {
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

/// How the scheduler writes down what it decides.
pub struct SchedulerLog {
    pub port: LogWriterPort,
    pub wall: Wall,
    /// The scheduler has no driver; this tells it the time.
    pub clock: Arc<dyn Fn() -> Now + Send + Sync>,
}

/// Bytes of log that may wait before no more words are taken.
const LOG_WAITING_MAX: usize = 4 << 20;
/// Things to know that may wait for somebody to read them.
const NOTICES_MAX: usize = 100;

impl Scheduler {
    pub fn new(
        config: SchedulerConfig,
        shards: Vec<ShardPort>,
        index: IndexPort,
        names: Names,
        scribe: SchedulerLog,
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
            wants: true,
        };
        let shard_count = shards.len();
        Scheduler {
            config,
            shards: shards.into_iter().map(side).collect(),
            index,
            names,
            batch: Resolution::default(),
            homes: RapidHashMap::default(),
            owners: AddressOwners::new(shard_count, OWNED_ADDRESSES_MAX),
            errands: RapidHashMap::default(),
            next_errand: 0,
            logger: Logger { wall: scribe.wall, shard: 0 },
            scribe: scribe.port,
            clock: scribe.clock,
            log: Vec::new(),
            notices: Arc::default(),
            reject: Arc::default(),
            to_index: VecDeque::new(),
            asked: false,
            ask_again: true,
            told_since_ask: false,
            strikes: RapidHashMap::default(),
            into_scope: Vec::new(),
            scoped: RapidHashSet::default(),
            index_stats: IndexStats::default(),
            counts: Counts::default(),
            tally: Tally::default(),
            stop,
            draining: false,
            parting: Shutdown::default(),
            stats,
            questions: Arc::default(),
            open_questions: OpenQuestions::default(),
        }
    }

    pub fn seed(&mut self, url: CrawlUrl) {
        self.seeds(vec![url]);
    }

    /// URLs that somebody typed.
    pub fn seeds(&mut self, urls: Vec<CrawlUrl>) {
        self.tell(ToIndex::Seeds { urls, head_only: self.config.head_only });
    }

    /// Works off what has come, and deals what can be dealt.
    pub fn turn(&mut self) -> SchedulerState {
        if self.questions.has_some() {
            self.take_questions();
        }
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
        self.write_log();
        if self.stop.load(Ordering::Relaxed)
            || (self.is_complete() && !self.config.wait)
            || self.page_limit_reached()
        {
            self.drain();
        }
        if self.draining {
            self.part(busy);
        }
        let all_drained = self.shards.iter().all(|side| side.drained && side.held.is_empty());
        if self.draining && all_drained && self.to_index.is_empty() && self.log.is_empty() {
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
            || self.questions.has_some()
    }

    /// Whether a document counts as soon as its record is durable.
    pub fn waits_for_commit(&self) -> bool {
        self.shards.iter().any(|side| !side.held.is_empty())
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

    /// What a user should know; fetched by whoever speaks to users.
    pub fn notices(&self) -> Arc<Mutex<Vec<String>>> {
        self.notices.clone()
    }

    /// Where questions about URLs are asked.
    pub fn questions(&self) -> Arc<Questions> {
        self.questions.clone()
    }

    /// Seconds since 1970.
    pub(crate) fn unix_s(&self) -> u32 {
        unix_s(self.logger.wall, self.now())
    }

    pub(crate) fn now(&self) -> Now {
        (self.clock)()
    }

    fn write_log(&mut self) {
        if self.log.is_empty() {
            return;
        }
        match self.scribe.words.push(ToLogWriter::Log(std::mem::take(&mut self.log))) {
            Ok(()) => self.scribe.bell.ring_if_asleep(),
            Err(ToLogWriter::Log(lines)) => self.log = lines,
            Err(_) => unreachable!("a ring gives back what it was given"),
        }
    }

    pub(crate) fn tell(&mut self, word: ToIndex) {
        if self.parting.has_given_up() {
            return;
        }
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
            && self.log.len() < LOG_WAITING_MAX
            && let Some(word) = self.shards[shard].port.done.pop()
        {
            busy = true;
            match word {
                FromShard::Done(done) => self.hold(shard, done),
                FromShard::Working { .. } => {}
                FromShard::Restarted { epoch, suspect } => self.deal_again(shard, epoch, suspect),
                FromShard::Wants(wants) => self.shards[shard].wants = wants,
                FromShard::Sitemaps { origin, urls } => self.tell(ToIndex::Sitemaps { origin, urls }),
                FromShard::Errand { origin, url } => self.send_errand(shard, origin, url),
                FromShard::ErrandDone { id, answer } => self.errand_done(id, answer),
                FromShard::HandedOver { origin, lines } => self.host_moves(&origin, lines),
                FromShard::Status { id, view, at } => self.shard_looked(id, view.as_deref(), at),
                FromShard::Notice(text) => self.notice(text),
                FromShard::Drained => self.shards[shard].drained = true,
            }
        }
        busy
    }

    /// Links may be known at once; the document counts when its record is durable.
    fn hold(&mut self, shard: usize, mut done: Done) {
        if let Some(mut found) = done.found.take() {
            if let Some(url) = found.into_scope.take()
                && self.scoped.insert(fingerprint(url.as_str().as_bytes()))
            {
                let url = Arc::new(url);
                self.into_scope.push(url.clone());
                for side in &mut self.shards {
                    side.dealt.push_back(ToShard::Scope(url.clone()));
                }
                self.tell(ToIndex::Scope(url));
            }
            self.tell(ToIndex::Discover(found));
        }
        if done.sequence.is_some() {
            self.shards[shard].held.push_back(done);
        } else {
            self.count(shard, done);
        }
    }

    fn count_durable(&mut self, shard: usize) -> bool {
        let durable = self.shards[shard].port.share.durable();
        let mut busy = false;
        while self.shards[shard].held.front().is_some_and(|done| done.sequence <= Some(durable)) {
            let Some(done) = self.shards[shard].held.pop_front() else {
                break;
            };
            self.count(shard, done);
            busy = true;
        }
        busy
    }

    fn count(&mut self, shard: usize, done: Done) {
        // A document that was dealt again may be answered for twice; the first answer counts.
        let Some(host) = self.shards[shard].open.remove(&done.outcome.doc_id) else {
            return;
        };
        self.unload(host);
        self.conclude(done.outcome, done.fetched);
    }

    pub(crate) fn conclude(&mut self, outcome: Outcome, fetched: bool) {
        let result = outcome.result;
        self.counts.done += 1;
        if fetched {
            self.counts.pages += 1;
            self.counts.success += u64::from(result.is_success());
        }
        self.tally.count(result);
        self.tell(ToIndex::Record(outcome));
    }

    pub(crate) fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(text);
        }
    }

    /// A shard died: what it had goes back to the index, which will hand it out anew.
    fn deal_again(&mut self, shard: usize, epoch: u32, suspect: Option<u32>) {
        self.counts.restarts += 1;
        let side = &mut self.shards[shard];
        side.epoch = epoch;
        side.wants = true;
        side.dealt.clear();
        side.dealt.extend(self.into_scope.iter().cloned().map(ToShard::Scope));
        if self.draining {
            side.dealt.push_back(ToShard::Drain);
        }
        // What waits to become durable is written; it will be counted.
        let written: rapidhash::fast::RapidHashSet<u32> =
            side.held.iter().map(|done| done.outcome.doc_id).collect();
        let open = side.open.iter().map(|(&doc_id, &host)| (doc_id, host));
        let mut lost: Vec<(u32, u64)> = open.filter(|(doc_id, _)| !written.contains(doc_id)).collect();
        // In the order they were found, not in that of a hash map: a simulated death can be replayed.
        lost.sort_unstable();
        self.errands_lost(shard);
        for (doc_id, host) in lost {
            self.shards[shard].open.remove(&doc_id);
            self.unload(host);
            let strikes = self.strikes.entry(doc_id).or_default();
            *strikes += u8::from(suspect == Some(doc_id));
            if *strikes >= STRIKES_MAX {
                let outcome = Outcome::new(doc_id, ResultCode::ShardDied, self.unix_s());
                self.conclude(outcome, true);
            } else {
                self.tell(ToIndex::PutBack(doc_id));
            }
        }
        self.strikes.retain(|_, strikes| *strikes > 0);
    }

    fn take_candidates(&mut self) -> bool {
        let mut busy = false;
        while let Some(answer) = self.index.answers.pop() {
            busy = true;
            let (candidates, stats) = match answer {
                FromIndex::Candidates { candidates, stats } => (candidates, stats),
                FromIndex::Status { id, looked } => {
                    self.index_looked(id, looked);
                    continue;
                }
            };
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
        // What waits until it is due is asked for when it is.
        let is_due = self.index_stats.next_due_s.is_some_and(|due_s| due_s <= self.unix_s());
        self.ask_again |= self.config.wait && is_due && !self.asked;
        if self.asked || !self.ask_again || self.draining || !self.to_index.is_empty() {
            return;
        }
        let at_shards: usize = self.shards.iter().map(|side| side.open.len()).sum();
        let waiting: usize = self.shards.iter().map(|side| side.dealt.len()).sum();
        if !self.shards.iter().any(|side| side.wants) {
            return;
        }
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
        // Crowded addresses sit out one question; they are asked for again with the next.
        let crowd = self.batch.begin(self.config.hosts_per_ip_max);
        let mut reject = self.reject.clone();
        if !crowd.is_empty() {
            Arc::make_mut(&mut reject).extend(crowd.iter().copied());
        }
        let ask = ToIndex::Ask { want, reject };
        if self.index.words.push(ask).is_ok() {
            self.asked = true;
            self.ask_again = !crowd.is_empty();
            self.told_since_ask = false;
            self.index.bell.ring_if_asleep();
        }
    }

    pub(crate) fn ask_again(&mut self) {
        self.ask_again = true;
    }

    fn asked_names(&self) -> u64 {
        if self.config.pages_max.is_some() { self.batch.waiting() as u64 + self.moving() } else { 0 }
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

/// Seconds since 1970, for as long as 32 bits last.
pub(crate) fn unix_s(wall: Wall, now: Now) -> u32 {
    u32::try_from(wall.unix_ms(now) / 1_000).unwrap_or(u32::MAX)
}
