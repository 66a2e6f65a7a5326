use crate::base::{Key, Now, Wall};
use crate::driver::Driver;
use crate::engine::crawl::finished::{record_of, reported_ms, retry_after_s};
use crate::engine::crawl::log_book::LogBook;
use crate::engine::crawl::log_lines::{Logger, Span};
use crate::engine::crawl::messages::{FromSpider, SpiderDone, SpiderOrder, SpiderTask, ToSpider};
use crate::engine::crawl::stored::Stored;
use crate::engine::runtime::counters::{ShardStats, fetch_histogram};
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::engine::runtime::outbox::Outbox;
use crate::engine::runtime::threads::{ShardState, Turn};
use crate::engine::store_line::RecordSink;
use crate::handler::redirect_target;
use crate::limits::{DONE_BACKLOG_MAX, DRAIN_US};
use crate::proto::lines::{Reported, TransId};
use crate::proto::record::{HttpCode, ResultCode};
use crate::rings::{Doorbell, Receiver, Sender};
use crate::spider::{Action, Again, FetchOrder, Fetched, Spider, SpiderConfig};
use crate::store_server::{AppendError, NewRecord};
use hdrhistogram::Histogram;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Spider and store, or the line to a store server, on one core, for work that comes from a URL server in another process. Which host may be asked
/// when is decided there; here every order is started as soon as there is room, and leaves a record.
pub(crate) struct SpiderShard<D: Driver> {
    driver: D,
    spider: Spider,
    store: RecordSink,
    work: Receiver<ToSpider>,
    done: Outbox<FromSpider>,
    /// Rung by others when this shard sleeps.
    bell: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    wall: Wall,
    epoch: u32,
    /// Orders without room. The desk takes no more than it has a bound for.
    waiting: VecDeque<SpiderOrder>,
    /// Orders whose server wants to be asked differently, and when it may be: the URL server paces orders, not this.
    later: VecDeque<(Now, SpiderOrder)>,
    again_gap_us: u64,
    stored: Arc<Stored>,
    /// What is open.
    open: RapidHashMap<TransId, OpenFetch>,
    book: LogBook,
    actions: Vec<Action>,
    /// Ended, but without a segment to be stored in, or with a full line. While there are any, nothing new is started.
    unstored: VecDeque<Unstored>,
    drain_by: Option<Now>,
    drained: bool,
    counts: Counts,
    published_at: Now,
    fetch_us: Histogram<u64>,
}

/// A fetch that has not ended.
struct OpenFetch {
    doc_id: u32,
    /// When its request was on the wire.
    sent: Option<Now>,
}

enum Unstored {
    Page(u32, Box<Fetched>, Span),
    Refused(SpiderOrder),
}

#[derive(Default)]
struct Counts {
    fetches: u64,
    bytes: u64,
    stored_bytes: u64,
}

/// What it is made of, apart from its driver.
pub(crate) struct SpiderShardParts {
    pub spider: SpiderConfig,
    pub store: RecordSink,
    pub work: Receiver<ToSpider>,
    pub done: Sender<FromSpider>,
    pub bell: Arc<Doorbell>,
    pub desk: Arc<Doorbell>,
    pub stats: Arc<ShardStats>,
    pub wall: Wall,
    pub epoch: u32,
    /// Which of the shards it is.
    pub number: usize,
    pub scribe: LogWriterPort,
    /// What the store holds from before.
    pub stored: Arc<Stored>,
    /// Between two requests of one order.
    pub again_gap_us: u64,
}

/// Counters are published this often.
const PUBLISH_US: u64 = 20_000;
/// Orders started in one turn, so that completions are not kept waiting.
const ORDERS_PER_TURN: usize = 256;
const WORDS_PER_TURN: usize = 1_024;

impl<D: Driver> SpiderShard<D> {
    pub fn new(driver: D, parts: SpiderShardParts) -> SpiderShard<D> {
        let now = driver.now();
        let spider =
            SpiderConfig { conns_max: parts.spider.conns_max.min(driver.conns_max()), ..parts.spider };
        let logger = Logger { wall: parts.wall, shard: parts.number.min(usize::from(u16::MAX)) as u16 };
        SpiderShard {
            spider: Spider::new(spider, now),
            store: parts.store,
            work: parts.work,
            done: Outbox::new(parts.done, parts.desk),
            bell: parts.bell,
            stats: parts.stats,
            wall: parts.wall,
            epoch: parts.epoch,
            waiting: VecDeque::new(),
            later: VecDeque::new(),
            again_gap_us: parts.again_gap_us,
            stored: parts.stored,
            open: RapidHashMap::default(),
            book: LogBook::new(logger, parts.scribe),
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

    fn take_words(&mut self, now: Now) {
        for _ in 0..WORDS_PER_TURN {
            match self.work.pop() {
                // Dealt to the shard that stood here before; it is dealt again.
                Some(ToSpider::Work { epoch, .. }) if epoch != self.epoch => {}
                Some(ToSpider::Work { order, .. }) if self.drain_by.is_none() => {
                    self.waiting.push_back(order);
                }
                Some(ToSpider::Work { .. }) => {}
                Some(ToSpider::Drain) => {
                    self.drain_by.get_or_insert(now.plus_us(DRAIN_US));
                    // Nobody waits for these: their URL server sends them elsewhere.
                    self.waiting.clear();
                    self.later.clear();
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
            // A request may have gone out since the turn began, and the log tells when it did.
            if !self.actions.is_empty() {
                self.run_actions(self.driver.now());
            }
        }
    }

    fn run_actions(&mut self, now: Now) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Finished(fetched) => self.finished(fetched, now),
                Action::Sent(trans) => {
                    if let Some(open) = self.open.get_mut(&trans) {
                        open.sent = Some(now);
                    }
                }
                // The desk says WORKING for every order it has not answered, also for those that wait for room.
                Action::Working(_) => {}
            }
        }
        // Nothing above makes the spider act again, so the list comes back empty.
        self.actions = actions;
    }

    fn may_start(&self) -> bool {
        self.drain_by.is_none()
            && self.unstored.is_empty()
            && self.done.waiting() < DONE_BACKLOG_MAX / 2
            && !self.book.is_full()
    }

    /// Starts what there is room for. True if there is more to start at once.
    fn start_fetches(&mut self, now: Now) -> bool {
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            self.waiting.extend(self.later.pop_front().map(|(_, order)| order));
        }
        for _ in 0..ORDERS_PER_TURN {
            let Some(order) = self.waiting.pop_front() else {
                return false;
            };
            if !self.may_start() || !self.has_room_for(&order) {
                self.waiting.push_front(order);
                self.run_actions(now);
                return false;
            }
            self.start(order, now);
        }
        true
    }

    fn has_room_for(&mut self, order: &SpiderOrder) -> bool {
        match &order.task {
            SpiderTask::Fetch { url, ip } => {
                self.spider.has_room_for(url, SocketAddr::new(*ip, url.port()), &mut self.actions)
            }
            SpiderTask::Refuse { .. } => true,
        }
    }

    fn start(&mut self, order: SpiderOrder, now: Now) {
        let SpiderTask::Fetch { url, ip } = order.task else {
            return self.store(Unstored::Refused(order));
        };
        let addr = SocketAddr::new(ip, url.port());
        self.open.insert(order.trans, OpenFetch { doc_id: order.doc_id, sent: None });
        let validators = self.stored.of(&url, false, self.store.retired()).map(Box::new);
        let order = FetchOrder { validators, ..FetchOrder::new(order.trans, url, addr) };
        self.spider.take(order, now, &mut self.actions);
        self.run_actions(now);
    }

    fn finished(&mut self, fetched: Box<Fetched>, now: Now) {
        let OpenFetch { doc_id, sent } =
            self.open.remove(&fetched.trans).expect("an open fetch has its document");
        let span = Span { sent: sent.unwrap_or(fetched.started), ended: now };
        if let Some(again) = fetched.again {
            if again == Again::Differently {
                self.book.logger.order(&mut self.book.lines, doc_id, &fetched, span);
            }
            let Fetched { trans, url, addr, bytes, .. } = *fetched;
            self.spider.recycle(bytes);
            let order = SpiderOrder { trans, doc_id, task: SpiderTask::Fetch { url, ip: addr.ip() } };
            match again {
                Again::Stale => self.waiting.push_front(order),
                Again::Differently => self.later.push_back((now.plus_us(self.again_gap_us), order)),
            }
            return;
        }
        self.counts.fetches += 1;
        self.counts.bytes += fetched.bytes.len() as u64;
        let _ = self.fetch_us.record(fetched.took_us.max(1));
        self.store(Unstored::Page(doc_id, fetched, span));
    }

    /// Stores what has ended and answers for it; without a segment it waits.
    fn store(&mut self, ended: Unstored) {
        self.unstored.push_back(ended);
        if self.unstored.len() == 1 {
            self.store_waiting();
        }
    }

    fn store_waiting(&mut self) {
        while let Some(ended) = self.unstored.pop_front() {
            self.stats.current.store(ended.slot() + 1, Ordering::Relaxed);
            let stored = self.try_store(ended);
            self.stats.current.store(0, Ordering::Relaxed);
            if let Err(back) = stored {
                self.unstored.push_front(back);
                return;
            }
        }
    }

    fn try_store(&mut self, ended: Unstored) -> Result<(), Unstored> {
        match self.store.make_room(ended.bytes()) {
            Ok(()) => {}
            Err(AppendError::NoSegment) => return Err(ended),
            Err(AppendError::TooLarge) => {
                unreachable!("a segment holds the largest document: checked at start")
            }
        }
        let (trans, result, reported, sequence) = match ended {
            Unstored::Page(doc_id, fetched, span) => {
                self.book.logger.order(&mut self.book.lines, doc_id, &fetched, span);
                let head = fetched.head.filter(|_| fetched.result == ResultCode::Redirect);
                let target = head.and_then(|head| redirect_target(&fetched.url, &head, &fetched.bytes));
                let new_url = target.as_ref().map(|url| url.as_str());
                let record = record_of(&fetched, doc_id, new_url, fetched.result, self.wall);
                let sequence = self.append(&record);
                let reported = Reported {
                    status: fetched.status(),
                    took_ms: reported_ms(&fetched, span.ended),
                    retry_after_s: retry_after_s(&fetched, self.wall).unwrap_or(0),
                };
                let (trans, result) = (fetched.trans, fetched.result);
                self.spider.recycle(fetched.bytes);
                (trans, result, reported, sequence)
            }
            Unstored::Refused(order) => {
                let SpiderTask::Refuse { url_text, ip, result } = &order.task else {
                    unreachable!("what can be fetched is fetched")
                };
                let sequence = self.append(&NewRecord {
                    doc_id: order.doc_id,
                    url: url_text,
                    new_url: None,
                    success: false,
                    result: *result,
                    http_code: HttpCode::NONE,
                    status: 0,
                    flags: 0,
                    took_ms: 0,
                    fetched_unix_ms: self.wall.unix_ms(self.driver.now()),
                    ip: *ip,
                    port: 0,
                    bytes: &[],
                    head_len: 0,
                });
                (order.trans, *result, Reported::default(), sequence)
            }
        };
        self.done.say(FromSpider::Done(SpiderDone { trans, result, sequence, reported }));
        Ok(())
    }

    fn append(&mut self, record: &NewRecord<'_>) -> u64 {
        let appended = self.store.append(record).expect("room was made");
        self.counts.stored_bytes += appended.bytes as u64;
        appended.sequence
    }

    fn finish_draining(&mut self, now: Now) {
        if self.drained {
            return;
        }
        self.drained = true;
        self.store.finish();
        self.publish(now);
        self.stats.keep_histogram(&self.fetch_us);
        self.done.say(FromSpider::Drained);
        self.done.hand_up();
    }

    fn publish(&mut self, now: Now) {
        self.published_at = now;
        let stats = &self.stats;
        ShardStats::set(&stats.fetches, self.counts.fetches);
        ShardStats::set(&stats.bytes, self.counts.bytes);
        ShardStats::set(&stats.stored_bytes, self.counts.stored_bytes);
        ShardStats::set(&stats.open, self.spider.open() as u64);
        ShardStats::set(&stats.queued, self.waiting.len() as u64);
        ShardStats::set(&stats.syscalls, self.driver.syscalls());
    }

    fn next_due(&self) -> Option<Now> {
        // Without a segment or with a full ring it looks again soon: nobody rings for those.
        let stuck = !self.unstored.is_empty()
            || self.done.waiting() > 0
            || self.spider.is_out_of_memory() && !self.waiting.is_empty();
        let soon = stuck.then(|| self.driver.now().plus_ms(2));
        let later = self.later.front().map(|(at, _)| *at);
        [self.spider.next_due(), soon, later, self.book.next_due(self.driver.now()), self.drain_by]
            .into_iter()
            .flatten()
            .min()
    }
}

impl<D: Driver> Turn for SpiderShard<D> {
    fn turn(&mut self) -> ShardState {
        let now = self.driver.now();
        self.take_words(now);
        self.take_completions(now);
        self.spider.tick(now, &mut self.actions);
        self.run_actions(now);
        self.store.tidy();
        self.store_waiting();
        if self.drain_by.is_some_and(|by| by <= now) {
            self.spider.abandon(now, &mut self.actions);
            self.run_actions(now);
            // No segment came for these: they were never answered for, and their URL server sends them again.
            self.unstored.clear();
        }
        let more = self.start_fetches(now);
        self.book.hand_on(now);
        self.done.hand_up();
        if now.since_us(self.published_at) >= PUBLISH_US {
            self.publish(now);
        }
        if self.drain_by.is_some()
            && self.spider.open() == 0
            && self.unstored.is_empty()
            && self.done.waiting() == 0
            && self.book.close(now)
        {
            self.finish_draining(now);
            return ShardState::Drained;
        }
        if more || !self.work.is_empty() { ShardState::Busy } else { ShardState::Waiting }
    }

    fn wait(&mut self, state: ShardState) -> io::Result<()> {
        if state == ShardState::Busy {
            return self.driver.wait(Some(Now::ZERO), 0);
        }
        self.bell.falling_asleep();
        let until = if self.work.is_empty() { self.next_due() } else { Some(Now::ZERO) };
        let waited = self.driver.wait(until, self.spider.open());
        self.bell.awake();
        waited
    }
}

impl Unstored {
    /// The desk's slot of this order, for whoever finds the shard dead.
    fn slot(&self) -> u32 {
        let trans = match self {
            Unstored::Page(_, fetched, _) => fetched.trans,
            Unstored::Refused(order) => order.trans,
        };
        Key::unpack(trans.as_u64()).0.index() as u32
    }

    fn bytes(&self) -> usize {
        match self {
            Unstored::Page(_, fetched, _) => fetched.bytes.len(),
            Unstored::Refused(_) => 0,
        }
    }
}
