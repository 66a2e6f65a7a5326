use crate::base::{Now, Wall};
use crate::doc_index::Outcome;
use crate::driver::Driver;
use crate::engine::crawl::completion::{Completion, result_of};
use crate::engine::crawl::finished::{moved_on, record_of, refusal_note, report_of};
use crate::engine::crawl::log_lines::{Logger, Span};
use crate::engine::crawl::messages::{Done, Found, FromShard, ToShard};
use crate::engine::crawl::papers::Papers;
use crate::engine::crawl::robots_exchange::{admit_errand, host_word, robots_fetched};
use crate::engine::crawl::scheduler::unix_s;
use crate::engine::runtime::counters::{ShardStats, fetch_histogram};
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::engine::runtime::outbox::Outbox;
use crate::engine::runtime::threads::{ShardState, Turn};
use crate::handler::{Handler, Page, Scope};
use crate::limits::{DONE_BACKLOG_MAX, DRAIN_US};
use crate::proto::http1::{Flags, Validators};
use crate::proto::lines::{Job, TransId};
use crate::proto::record::ResultCode;
use crate::rings::{Doorbell, Receiver, Sender};
use crate::spider::{Action, Again, FetchOrder, Fetched, Spider, SpiderConfig};
use crate::store_server::{AppendError, ShardShare, ShardStore};
use crate::url_server::{
    Acquired, Memory, Order, OrderKind, Refusal, SpillEvent, UrlServer, UrlServerConfig,
};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Url server, spider, handler and store on one core, over one driver.
///
/// A turn takes work off the ring, deals with a batch of completions, starts what may be started and hands DONE
/// up. It never waits for anything but the network, in [`Shard::wait`].
pub struct Shard<D: Driver> {
    driver: D,
    url_server: UrlServer,
    spider: Spider,
    handler: Handler,
    papers: Papers,
    store: ShardStore,
    work: Receiver<ToShard>,
    done: Outbox<FromShard>,
    /// Rung by others when this shard sleeps.
    bell: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    wall: Wall,
    epoch: u32,
    actions: Vec<Action>,
    /// Finished pages that wait for a segment. While there are any, nothing new is started.
    unstored: VecDeque<Unstored>,
    drain_by: Option<Now>,
    drained: bool,
    counts: Counts,
    published_at: Now,
    fetch_us: Histogram<u64>,
}

/// A page that was fetched and is not in a segment yet.
struct Unstored {
    job: Job,
    fetched: Box<Fetched>,
    span: Span,
}

#[derive(Default)]
struct Counts {
    fetches: u64,
    bytes: u64,
    stored_bytes: u64,
    robots: u64,
}

/// What a shard is made of, apart from its driver.
pub struct ShardParts {
    pub url_server: UrlServerConfig,
    pub spider: SpiderConfig,
    pub scope: Arc<Scope>,
    /// Our name in robots directives.
    pub product_token: String,
    pub share: Arc<ShardShare>,
    pub work: Receiver<ToShard>,
    pub done: Sender<FromShard>,
    pub bell: Arc<Doorbell>,
    pub scheduler: Arc<Doorbell>,
    pub stats: Arc<ShardStats>,
    pub wall: Wall,
    pub epoch: u32,
    /// Which of the shards it is.
    pub number: usize,
    pub scribe: LogWriterPort,
    pub spill: Receiver<SpillEvent>,
    /// What is known of hosts from before, and until when none of them is asked.
    pub memory: Memory,
    pub quiet_until: Now,
}

/// Counters are published this often.
const PUBLISH_US: u64 = 20_000;
/// Orders started in one turn, so that completions are not kept waiting.
const ORDERS_PER_TURN: usize = 256;
const WORDS_PER_TURN: usize = 1_024;

impl<D: Driver> Shard<D> {
    pub fn new(driver: D, parts: ShardParts) -> Shard<D> {
        let now = driver.now();
        let spider =
            SpiderConfig { conns_max: parts.spider.conns_max.min(driver.conns_max()), ..parts.spider };
        let logger = Logger { wall: parts.wall, shard: parts.number.min(usize::from(u16::MAX)) as u16 };
        Shard {
            url_server: UrlServer::new(parts.url_server, now).after(parts.quiet_until, parts.memory),
            papers: Papers::new(parts.number, logger, parts.scribe, parts.spill),
            spider: Spider::new(spider, now),
            handler: Handler::new(parts.scope, parts.product_token),
            store: ShardStore::new(parts.share),
            work: parts.work,
            done: Outbox::new(parts.done, parts.scheduler),
            bell: parts.bell,
            stats: parts.stats,
            wall: parts.wall,
            epoch: parts.epoch,
            actions: Vec::new(),
            unstored: VecDeque::new(),
            drain_by: None,
            drained: false,
            counts: Counts::default(),
            published_at: now,
            fetch_us: fetch_histogram(),
            driver,
        }
    }

    /// Does what can be done without waiting.
    pub fn turn(&mut self) -> ShardState {
        let now = self.driver.now();
        self.take_words(now);
        self.take_completions(now);
        self.papers.take_leftovers(&mut self.url_server, now);
        self.url_server.tick(now);
        self.spider.tick(now, &mut self.actions);
        self.run_actions(now);
        self.store.tidy();
        self.store_waiting();
        if self.drain_by.is_some_and(|by| by <= now) {
            self.spider.abandon(now, &mut self.actions);
            self.run_actions(now);
            // No segment came for these: they were never answered for, and are fetched another time.
            self.unstored.clear();
        }
        let more = self.start_fetches(now);
        self.papers.hand_on(&mut self.url_server, &mut self.done, now);
        self.done.hand_up();
        if now.since_us(self.published_at) >= PUBLISH_US {
            self.publish(now);
        }
        if self.drain_by.is_some()
            && self.spider.open() == 0
            && self.unstored.is_empty()
            && self.done.waiting() == 0
            && self.papers.close(&mut self.url_server, &mut self.done, now)
        {
            self.finish_draining(now);
            return ShardState::Drained;
        }
        if more || self.has_words() { ShardState::Busy } else { ShardState::Waiting }
    }

    /// Hands what was asked to the kernel and sleeps until something comes, unless there is more to do.
    pub fn wait(&mut self, state: ShardState) -> io::Result<()> {
        if state == ShardState::Busy {
            return self.driver.wait(Some(Now::ZERO), 0);
        }
        self.bell.falling_asleep();
        let until = if self.has_words() { Some(Now::ZERO) } else { self.next_due() };
        let waited = self.driver.wait(until, self.spider.open());
        self.bell.awake();
        waited
    }

    fn has_words(&self) -> bool {
        !self.work.is_empty() || self.papers.has_words()
    }

    /// When the shard must turn again even if nothing comes.
    pub fn next_due(&self) -> Option<Now> {
        // Without a segment or with a full ring it looks again soon: nobody rings for those.
        let stuck = !self.unstored.is_empty()
            || self.done.waiting() > 0
            || self.spider.is_out_of_memory() && !self.url_server.is_empty();
        let soon = stuck.then(|| self.driver.now().plus_ms(2));
        // With every connection in use, the end of a fetch is what to wait for.
        let fetch_due = (self.may_start() && !self.spider.is_full() && !self.spider.is_out_of_memory())
            .then(|| self.url_server.next_due())
            .flatten();
        let papers_due = self.papers.book.next_due(self.driver.now());
        [fetch_due, self.spider.next_due(), soon, papers_due, self.drain_by].into_iter().flatten().min()
    }

    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    pub fn url_server(&self) -> &UrlServer {
        &self.url_server
    }

    pub fn open(&self) -> usize {
        self.spider.open()
    }

    fn take_words(&mut self, now: Now) {
        for _ in 0..WORDS_PER_TURN {
            match self.work.pop() {
                // Dealt to the shard that stood here before; it is dealt again.
                Some(ToShard::Work { epoch, .. }) if epoch != self.epoch => {}
                Some(ToShard::Work { job, .. }) => self.url_server.admit(job, now),
                Some(ToShard::Scope(url)) => self.handler.extend_scope(&url),
                Some(ToShard::Errand { epoch, .. }) if epoch != self.epoch => {}
                Some(ToShard::Errand { errand, .. }) => {
                    admit_errand(&mut self.url_server, &mut self.done, errand, now);
                }
                Some(ToShard::About(word)) => {
                    let (url_server, papers) = (&mut self.url_server, &mut self.papers);
                    host_word(url_server, papers, &mut self.done, word, now);
                }
                Some(ToShard::Drain) => {
                    self.drain_by.get_or_insert(now.plus_us(DRAIN_US));
                }
                None => return,
            }
        }
    }

    fn take_completions(&mut self, now: Now) {
        loop {
            // The event may borrow a buffer of the driver, so it is dealt with before the driver is used again.
            match self.driver.next() {
                Some((conn, event)) => self.spider.step(conn, event, now, &mut self.actions),
                None => return,
            }
            // A request may have gone out since the turn began, and a pause counts from when it did.
            if !self.actions.is_empty() {
                self.run_actions(self.driver.now());
            }
        }
    }

    fn run_actions(&mut self, now: Now) {
        if self.actions.is_empty() {
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Sent(trans) => self.url_server.sent(trans, now),
                Action::Working(trans) => self.working(trans, now),
                Action::Finished(fetched) => self.finished(fetched, now),
            }
        }
        // Nothing above makes the spider act again, so the list comes back empty.
        self.actions = actions;
    }

    fn working(&mut self, trans: TransId, now: Now) {
        self.url_server.working(trans, now);
        if let Some(doc_id) = self.url_server.doc_id(trans) {
            self.done.say(FromShard::Working { doc_id });
        }
    }

    fn may_start(&self) -> bool {
        self.drain_by.is_none()
            && self.unstored.is_empty()
            && self.done.waiting() < DONE_BACKLOG_MAX / 2
            && !self.papers.book.is_full()
    }

    /// Starts what niceness allows. True if there is more to start at once.
    fn start_fetches(&mut self, now: Now) -> bool {
        for _ in 0..ORDERS_PER_TURN {
            if !self.may_start() || !self.spider.has_room(&mut self.actions) {
                self.run_actions(now);
                return false;
            }
            match self.url_server.acquire(now) {
                Acquired::Fetch(order) => self.start(order, now),
                Acquired::Refused(job, refusal) => {
                    let result = refusal.result();
                    self.papers.book.logger.refused_job(&mut self.papers.book.lines, &job, result, now);
                    let unreachable = refusal == Refusal::RobotsUnreachable;
                    let note = refusal_note(&self.url_server, &job, refusal);
                    let outcome = Outcome { unreachable, note, ..self.outcome(&job, result, now) };
                    self.answer(outcome, None, false, None);
                }
                Acquired::Nothing => return false,
            }
        }
        true
    }

    fn start(&mut self, order: Order, now: Now) {
        let addr = SocketAddr::new(order.ip, order.url.port());
        if order.kind != OrderKind::Page {
            self.counts.robots += 1;
        }
        let head_only = order.head_only;
        // A document in a segment that may go away is no answer to "not modified".
        let held = order.held.filter(|held| head_only || held.segment > self.store.retired());
        let validators = held.map(|held| Box::new(held.validators));
        let more = order.more;
        let order =
            FetchOrder { head_only, validators, more, ..FetchOrder::new(order.trans, order.url, addr) };
        self.spider.take(order, now, &mut self.actions);
        self.run_actions(now);
    }

    /// A fetch has ended: its place is freed, and what it brought is stored and read.
    fn finished(&mut self, fetched: Box<Fetched>, now: Now) {
        let report = report_of(&fetched, now, self.wall);
        if let Some(again) = fetched.again {
            match again {
                Again::Stale => self.url_server.put_back(fetched.trans, now),
                Again::Differently => {
                    self.papers.log_again(&self.url_server, &fetched, now);
                    self.url_server.ask_again(fetched.trans, &report, now);
                }
            }
            return self.spider.recycle(fetched.bytes);
        }
        let is_page = self.url_server.doc_id(fetched.trans).is_some();
        if moved_on(&mut self.url_server, &fetched, now) {
            self.counts.robots -= u64::from(!is_page);
            return self.spider.recycle(fetched.bytes);
        }
        let Some(doc_id) = self.url_server.doc_id(fetched.trans) else {
            let (url_server, papers) = (&mut self.url_server, &mut self.papers);
            robots_fetched(url_server, papers, &mut self.done, &fetched, now);
            self.spider.recycle(fetched.bytes);
            return;
        };
        self.stats.current.store(doc_id, Ordering::Relaxed);
        let span = Papers::span(&self.url_server, &fetched, now);
        let Some(job) = self.url_server.release(fetched.trans, &report, now) else {
            return self.spider.recycle(fetched.bytes);
        };
        self.counts.fetches += 1;
        self.counts.bytes += fetched.bytes.len() as u64;
        let _ = self.fetch_us.record(fetched.took_us.max(1));
        self.store_page(Unstored { job, fetched, span });
        self.stats.current.store(0, Ordering::Relaxed);
    }

    /// Stores a page, reads its links and answers for it; without a segment it waits.
    fn store_page(&mut self, page: Unstored) {
        if !self.unstored.is_empty() {
            self.unstored.push_back(page);
            return;
        }
        let back = self.try_store(page);
        self.unstored.extend(back);
    }

    /// Gives a page back for which there is no segment.
    fn try_store(&mut self, page: Unstored) -> Option<Unstored> {
        // Before the page is read: reading notes its links as seen.
        match self.store.make_room(page.fetched.bytes.len()) {
            Ok(()) => {}
            Err(AppendError::NoSegment) => return Some(page),
            Err(AppendError::TooLarge) => {
                unreachable!("a segment holds the largest document: checked at start")
            }
        }
        let Unstored { job, fetched, span } = page;
        let handled = self.handler.handle(&Page {
            candidate: &job.candidate,
            result: fetched.result,
            head: fetched.head.as_ref(),
            head_bytes: fetched.head_bytes(),
            decoded: fetched.flags.contains(Flags::DECODED),
            document: fetched.document(),
        });
        let candidate = &job.candidate;
        let result = result_of(candidate, fetched.result, &handled);
        let new_url = handled.new_url.as_ref().map(|url| url.as_str());
        let mut record = record_of(&fetched, candidate.doc_id, new_url, result, self.wall);
        if handled.noindex {
            record.flags |= Flags::NOINDEX.bits();
        }
        let appended = self.store.append(&record);
        let appended = appended.expect("room was made");
        self.counts.stored_bytes += appended.bytes as u64;
        let digest = Some(appended.digest).filter(|&digest| digest != 0);
        self.papers.book.logger.page(&mut self.papers.book.lines, candidate, &fetched, result, digest, span);
        let head = fetched.head.as_ref().filter(|_| fetched.result == ResultCode::Ok);
        let answered = Completion {
            candidate,
            result,
            status: fetched.status(),
            at_s: unix_s(self.wall, span.ended),
            digest: appended.digest,
            validators: head.and_then(|head| Validators::of(head, fetched.head_bytes())),
            segment: appended.segment,
        };
        let (outcome, found) = answered.tell(handled);
        self.answer(outcome, Some(appended.sequence), true, found);
        self.spider.recycle(fetched.bytes);
        None
    }

    fn store_waiting(&mut self) {
        while let Some(page) = self.unstored.pop_front() {
            if let Some(back) = self.try_store(page) {
                self.unstored.push_front(back);
                return;
            }
        }
    }

    fn outcome(&self, job: &Job, result: ResultCode, at: Now) -> Outcome {
        Outcome::new(job.candidate.doc_id, result, unix_s(self.wall, at))
    }

    fn answer(&mut self, outcome: Outcome, sequence: Option<u64>, fetched: bool, found: Option<Box<Found>>) {
        let done = Done { outcome, sequence, fetched, found };
        self.done.say(FromShard::Done(done));
    }

    fn finish_draining(&mut self, now: Now) {
        if self.drained {
            return;
        }
        self.drained = true;
        self.store.finish();
        self.publish(now);
        self.stats.keep_histogram(&self.fetch_us);
        self.done.say(FromShard::Drained);
        self.done.hand_up();
    }

    fn publish(&mut self, now: Now) {
        self.published_at = now;
        let stats = &self.stats;
        ShardStats::set(&stats.fetches, self.counts.fetches);
        ShardStats::set(&stats.bytes, self.counts.bytes);
        ShardStats::set(&stats.stored_bytes, self.counts.stored_bytes);
        ShardStats::set(&stats.robots, self.counts.robots);
        ShardStats::set(&stats.open, self.spider.open() as u64);
        ShardStats::set(&stats.hosts, self.url_server.hosts_busy() as u64);
        ShardStats::set(&stats.queued, self.url_server.len() as u64);
        ShardStats::set(&stats.resent, self.url_server.stats().resent);
        ShardStats::set(&stats.syscalls, self.driver.syscalls());
    }
}

impl<D: Driver> Turn for Shard<D> {
    fn turn(&mut self) -> ShardState {
        Shard::turn(self)
    }

    fn wait(&mut self, state: ShardState) -> io::Result<()> {
        Shard::wait(self, state)
    }
}
