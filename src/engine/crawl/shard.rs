use crate::base::{Durations, NetEvent, Now, Wall};
use crate::driver::Driver;
use crate::engine::crawl::live::ShardRules;
use crate::engine::crawl::shard_log::ShardLog;
use crate::engine::crawl::stages::{Stage, Stages};
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::counters::{Counter, Counters, ShardStats, fetch_histogram};
use crate::engine::runtime::groups::Group;
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::engine::runtime::network::Network;
use crate::engine::runtime::outbox::Outbox;
use crate::engine::runtime::shard_lane::LaneEnd;
use crate::limits::{DONE_BACKLOG_MAX, DRAIN_US};
use crate::proto::job::TransId;
use crate::proto::record::Fault;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver};
use crate::spider::{Action, FetchOrder, Fetched, Retry, Spider, SpiderConfig};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::sync::Arc;

/// A spider on one core over one driver, between a source of work and a sink for records.
///
/// ```text
///   owner ── messages ──► WorkSource ── next ──► Spider ──► driver
///     ▲                       ▲                    │ fetched
///     │                       └────── ended ◄──────┘
///     └──── replies ◄── RecordSink ◄── item ──┘
/// ```
///
/// | process      | source                                   | sink                                     |
/// |--------------|------------------------------------------|------------------------------------------|
/// | crawl        | queues of this shard (`LocalQueues`)     | handler and segments (`PageSink`)        |
/// | spider       | orders of URL servers (`OrderQueue`)     | segments or a store server (`OrderSink`) |
/// | URL server   | queues, spiders behind links (`RemoteQueues`) | none: robots.txt alone is fetched here |
///
/// A turn takes messages off the ring, deals with a batch of completions, starts what may be started and hands replies up.
/// It never waits for anything but the network, in its driver.
pub struct Shard<D: Driver, W: WorkSource, S: RecordSink<Item = W::Item, Reply = W::Reply>> {
    driver: D,
    spider: Spider,
    source: W,
    sink: S,
    out: ShardOut<W::Reply>,
    work: Receiver<W::Message>,
    stats: Arc<ShardStats>,
    actions: Vec<Action>,
    /// What has ended and waits for room in the sink. While there is any, nothing new is started.
    unstored: VecDeque<W::Item>,
    drain_by: Option<Now>,
    /// The machine had no room for another connection: nothing is started before.
    starved_until: Now,
    network: Network,
    is_drained: bool,
    bytes: u64,
    /// As the network brought them.
    wire_bytes: u64,
    published_at: Now,
    /// Something may have changed since.
    is_unpublished: bool,
    fetch_us: Histogram<u64>,
    fetch_times: Durations,
}

/// Where a shard's work comes from, and what is told of it.
pub trait WorkSource {
    /// What the shard's owner sends, and what it is sent.
    type Message;
    type Reply;
    /// What is to be stored of an ended fetch.
    type Item;

    /// Messages taken in one turn, and orders started, so that completions are not kept waiting.
    const MESSAGES_PER_TURN: usize;
    const ORDERS_PER_TURN: usize;

    fn receive(&mut self, message: Self::Message, out: &mut ShardOut<Self::Reply>, now: Now) -> Received;

    /// Takes what comes by other ways than the ring, and moves timers. True if there is more at once.
    fn poll(&mut self, out: &mut ShardOut<Self::Reply>, now: Now) -> bool;

    /// The next order, if the spider has room for it.
    fn next(&mut self, start: &mut Start<'_, Self::Reply>) -> Next<Self::Item>;

    /// The request of an order is on the wire.
    fn sent(&mut self, trans: TransId, now: Now);

    /// An order takes its time.
    fn working(&mut self, trans: TransId, now: Now);

    /// What the owner would blame, should the shard die of this order; 0 for nothing.
    fn suspect(&self, trans: TransId) -> u32;

    fn ended(
        &mut self,
        fetched: Box<Fetched>,
        out: &mut ShardOut<Self::Reply>,
        now: Now,
    ) -> Ended<Self::Item>;

    /// Hands on what has gathered in this turn.
    fn flush(&mut self, out: &mut ShardOut<Self::Reply>, now: Now);

    /// Other rules hold from now on.
    fn set_rules(&mut self, _: &ShardRules, _: Now) {}

    /// The shard starts nothing more.
    fn drain(&mut self) {}

    /// Nothing is open elsewhere that the shard should wait for.
    fn is_settled(&self) -> bool {
        true
    }

    /// Hands on everything, at the end.
    fn close(&mut self, _: &mut ShardOut<Self::Reply>, _: Now) {}

    /// Whether something came by another way than the ring.
    fn has_messages(&self) -> bool {
        false
    }

    /// Whether orders may be started at all.
    fn may_start(&self) -> bool {
        true
    }

    fn is_empty(&self) -> bool;

    /// When there will be something to start.
    fn next_due(&self) -> Option<Now>;

    /// True once all that it counts has been counted; a large table is counted a part at a time.
    fn publish(&mut self, counters: &Counters, now: Now) -> bool;

    /// The last reply of a shard.
    fn drained_reply() -> Self::Reply;
}

/// Where what was fetched goes.
pub trait RecordSink {
    type Item;
    type Reply;

    /// Stores an item and replies for it. Gives back the fetch that it was, if it was one, or the item if there is no room.
    fn store(&mut self, item: Self::Item, out: &mut ShardOut<Self::Reply>) -> Stored<Self::Item>;

    /// Documents in segments up to this number may go away.
    fn retired(&self) -> u64 {
        0
    }

    /// This URL's host is in scope from now on.
    fn extend_scope(&mut self, _: &CrawlUrl) {}

    /// Lets go of a segment that the disk refused.
    fn tidy(&mut self) {}

    /// The shard is done.
    fn finish(&mut self) {}

    fn publish(&self, counters: &Counters);
}

/// What a message was about, if it was not for the source itself.
pub enum Received {
    Taken,
    /// A seed's redirects ended there: its host is in scope.
    Scope(Arc<CrawlUrl>),
    /// Keep to these from now on.
    Rules(Arc<ShardRules>),
    /// Start nothing new; let what is open end.
    Drain,
}

pub enum Next<T> {
    Fetch(FetchOrder),
    /// It is not fetched, and leaves a record.
    Store(T),
    /// It was dealt with; there may be more.
    Handled,
    /// Nothing can be started now.
    Nothing,
}

pub enum Ended<T> {
    Store(T),
    /// It is dealt with; its memory is used again.
    Over(Box<Fetched>),
}

/// What a sink gives back: the memory of what it has stored, or what it has no room for.
pub type Stored<T> = Result<Option<Box<Fetched>>, T>;

/// What a source has at hand when it chooses an order.
pub struct Start<'a, R> {
    pub spider: &'a mut Spider,
    pub actions: &'a mut Vec<Action>,
    pub out: &'a mut ShardOut<R>,
    /// Documents in segments up to this number may go away.
    pub retired: u64,
    pub now: Now,
}

/// A shard's ways out: the crawl log, and replies to its owner.
pub struct ShardOut<R> {
    pub(crate) log: ShardLog,
    pub(crate) stages: Stages,
    pub(crate) replies: Outbox<R>,
}

/// What a shard is made of, apart from its driver, source and sink.
pub struct ShardParts<M, R> {
    pub spider: SpiderConfig,
    pub lane: LaneEnd<M, R>,
    /// Of the shard's owner.
    pub owner: Arc<Doorbell>,
    pub stats: Arc<ShardStats>,
    pub wall: Wall,
    /// Which of the shards it is.
    pub number: usize,
    pub log: LogWriterPort,
    pub network: Network,
}

/// Counters are published this often.
const PUBLISH_US: u64 = 20_000;
/// Ports come back when connections have been closed for a while.
const STARVED_MS: u64 = 100;

impl<D: Driver, W: WorkSource, S: RecordSink<Item = W::Item, Reply = W::Reply>> Shard<D, W, S> {
    pub fn new(driver: D, parts: ShardParts<W::Message, W::Reply>, source: W, sink: S) -> Shard<D, W, S> {
        let now = driver.now();
        let spider =
            SpiderConfig { conns_max: parts.spider.conns_max.min(driver.conns_max()), ..parts.spider };
        Shard {
            driver,
            spider: Spider::new(spider, now),
            source,
            sink,
            out: ShardOut {
                log: ShardLog::new(parts.wall, parts.number, parts.log),
                stages: Stages::default(),
                replies: Outbox::new(parts.lane.replies, parts.owner),
            },
            work: parts.lane.work,
            stats: parts.stats,
            actions: Vec::new(),
            unstored: VecDeque::new(),
            drain_by: None,
            starved_until: Now::ZERO,
            network: parts.network,
            is_drained: false,
            bytes: 0,
            wire_bytes: 0,
            published_at: now,
            is_unpublished: true,
            fetch_us: fetch_histogram(),
            fetch_times: Durations::default(),
        }
    }

    pub fn source(&self) -> &W {
        &self.source
    }

    fn receive(&mut self, now: Now) {
        for _ in 0..W::MESSAGES_PER_TURN {
            let Some(message) = self.work.pop() else { return };
            self.is_unpublished = true;
            match self.source.receive(message, &mut self.out, now) {
                Received::Taken => {}
                Received::Scope(url) => self.sink.extend_scope(&url),
                Received::Rules(rules) => self.set_rules(&rules, now),
                Received::Drain => {
                    self.drain_by.get_or_insert(now.plus_us(DRAIN_US));
                    self.source.drain();
                }
            }
        }
    }

    /// What was decided before this was decided by the rules before these; the log tells them apart.
    fn set_rules(&mut self, rules: &ShardRules, now: Now) {
        self.source.set_rules(rules, now);
        self.spider.set_limits(rules.limits.clone());
        self.out.log.rules(&rules.told, now);
    }

    fn take_completions(&mut self, now: Now) {
        loop {
            // The event may borrow a buffer of the driver, so it is dealt with before the driver is used again.
            match self.driver.next() {
                Some((conn, event)) => {
                    if let NetEvent::Received(bytes) = &event {
                        self.wire_bytes += bytes.len() as u64;
                    }
                    self.spider.step(conn, event, now, &mut self.actions);
                }
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
        self.is_unpublished = true;
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Sent(trans) => self.source.sent(trans, now),
                Action::Working(trans) => self.source.working(trans, now),
                Action::Finished(fetched) => self.finished(fetched, now),
            }
        }
        // Nothing above makes the spider act again, so the list comes back empty.
        self.actions = actions;
    }

    /// A fetch has ended: its place is freed, and what it brought is stored.
    fn finished(&mut self, mut fetched: Box<Fetched>, now: Now) {
        self.judge_network(&mut fetched, now);
        self.stats.busy_with(self.source.suspect(fetched.trans));
        let (bytes, took_us) = (fetched.bytes.len() as u64, fetched.took_us);
        if fetched.retry == Some(Retry::NoSocket) {
            self.starved_until = now.plus_ms(STARVED_MS);
        }
        let ended = self.source.ended(fetched, &mut self.out, now);
        if let Ended::Store(_) = ended {
            self.bytes += bytes;
            let _ = self.fetch_us.record(took_us.max(1));
            self.fetch_times.note(took_us);
        }
        self.settle(ended);
        self.stats.busy_with(0);
    }

    /// Tells a host that cannot be reached from a network of our own that is down: what that cuts is to be made again.
    fn judge_network(&mut self, fetched: &mut Fetched, now: Now) {
        let ip = fetched.addr.ip();
        let is_broken = fetched.retry == Some(Retry::NoWay)
            || fetched.retry.is_none() && fetched.result.fault() == Fault::Network;
        if is_broken {
            let driver = &self.driver;
            let is_ours = self.network.failed(ip, now, |ip| driver.has_way(ip));
            fetched.retry = is_ours.then_some(Retry::NoWay);
        } else if fetched.retry.is_none() {
            self.network.reached(ip);
        }
    }

    /// Stores what is to be stored, unless it must wait, and gives the memory of every fetch back to the spider.
    fn settle(&mut self, ended: Ended<W::Item>) {
        let fetched = match ended {
            Ended::Over(fetched) => Some(fetched),
            Ended::Store(item) if !self.unstored.is_empty() => return self.unstored.push_back(item),
            Ended::Store(item) => match self.sink.store(item, &mut self.out) {
                Ok(fetched) => fetched,
                Err(item) => return self.unstored.push_front(item),
            },
        };
        if let Some(fetched) = fetched {
            self.spider.recycle(fetched);
        }
    }

    /// Stores what had to wait, in its order.
    fn store_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.unstored);
        while self.unstored.is_empty()
            && let Some(item) = waiting.pop_front()
        {
            self.settle(Ended::Store(item));
        }
        self.unstored.append(&mut waiting);
    }

    fn may_start(&self) -> bool {
        self.drain_by.is_none()
            && self.unstored.is_empty()
            && self.out.replies.waiting() < DONE_BACKLOG_MAX / 2
            && !self.out.log.is_full()
            && self.source.may_start()
    }

    /// Starts what may be started. True if there is more to start at once.
    fn start_fetches(&mut self, now: Now) -> bool {
        for _ in 0..W::ORDERS_PER_TURN {
            let driver = &self.driver;
            if !self.may_start()
                || self.starved_until > now
                || !self.network.may_start(now, |ip| driver.has_way(ip))
            {
                return false;
            }
            let mut start = Start {
                spider: &mut self.spider,
                actions: &mut self.actions,
                out: &mut self.out,
                retired: self.sink.retired(),
                now,
            };
            match self.source.next(&mut start) {
                Next::Fetch(order) => self.spider.take(order, now, &mut self.actions),
                Next::Store(item) => self.settle(Ended::Store(item)),
                Next::Handled => {}
                Next::Nothing => {
                    // Looking for room may have closed a connection.
                    self.run_actions(now);
                    return false;
                }
            }
            self.run_actions(now);
        }
        true
    }

    fn finish_draining(&mut self, now: Now) {
        if std::mem::replace(&mut self.is_drained, true) {
            return;
        }
        self.sink.finish();
        self.publish(now);
        self.stats.keep_histogram(&self.fetch_us);
        self.out.replies.send(W::drained_reply());
        self.out.replies.hand_up();
    }

    fn publish(&mut self, now: Now) {
        self.published_at = now;
        let counters = &self.stats.counters;
        counters.count(Counter::Bytes, self.bytes);
        counters.count(Counter::WireBytes, self.wire_bytes);
        counters.count(Counter::Syscalls, self.driver.syscalls());
        counters.set(Counter::Open, self.spider.open() as u64);
        counters.set(Counter::OpenMax, self.spider.open_max() as u64);
        counters.set(Counter::Unstored, self.unstored.len() as u64);
        counters.count_all(Group::FetchTimes, &self.fetch_times.figures());
        counters.count_all(Group::Connections, &self.spider.stats().connections);
        counters.count_all(Group::Handshakes, &self.spider.stats().handshakes);
        counters.count_all(Group::Statuses, &self.out.log.counts().statuses);
        counters.count_all(Group::Robots, &self.out.log.counts().robots);
        counters.count_all(Group::Stages, &self.out.stages.us());
        self.sink.publish(counters);
        self.is_unpublished = !self.source.publish(counters, now);
    }
}

impl<D: Driver, W: WorkSource, S: RecordSink<Item = W::Item, Reply = W::Reply>> Actor for Shard<D, W, S> {
    fn turn(&mut self, now: Now) -> Turned {
        self.out.stages.begin();
        self.receive(now);
        let mut more = self.source.poll(&mut self.out, now);
        self.out.stages.mark(Stage::Receive);
        self.take_completions(now);
        self.spider.tick(now, &mut self.actions);
        self.run_actions(now);
        self.sink.tidy();
        self.store_waiting();
        let is_out_of_time = self.drain_by.is_some_and(|by| by <= now);
        if is_out_of_time {
            self.spider.abandon(now, &mut self.actions);
            self.run_actions(now);
            // There was no room for these: they were never answered for, and are fetched another time.
            self.unstored.clear();
        }
        self.out.stages.mark(Stage::Network);
        more |= self.start_fetches(now);
        self.out.stages.mark(Stage::Start);
        self.source.flush(&mut self.out, now);
        self.out.log.hand_on(now);
        self.out.replies.hand_up();
        if now.since_us(self.published_at) >= PUBLISH_US {
            self.publish(now);
        }
        self.out.stages.mark(Stage::Record);
        if self.drain_by.is_some()
            && self.spider.open() == 0
            && (self.source.is_settled() || is_out_of_time)
            && self.unstored.is_empty()
            && self.out.replies.waiting() == 0
        {
            self.source.close(&mut self.out, now);
            if self.out.log.close(now) {
                self.finish_draining(now);
                return Turned::Finished;
            }
        }
        Turned::busy_if(more || self.has_messages())
    }

    fn next_due(&self) -> Option<Now> {
        let now = self.driver.now();
        // Without room in the sink or with a full ring it looks again soon: no bell rings for those.
        let is_out_of_memory = self.spider.is_out_of_memory();
        let is_stuck = !self.unstored.is_empty()
            || self.out.replies.waiting() > 0
            || is_out_of_memory && !self.source.is_empty();
        let soon = is_stuck.then(|| now.plus_ms(2));
        // With every connection in use, the end of a fetch is what to wait for.
        let start_due = (self.may_start() && !self.spider.is_full() && !is_out_of_memory)
            .then(|| self.source.next_due())
            .flatten()
            .map(|due| due.max(self.starved_until).max(self.network.next_look().unwrap_or(Now::ZERO)));
        let log_due = self.out.log.next_due(now);
        let publish_due = self.is_unpublished.then(|| self.published_at.plus_us(PUBLISH_US));
        [publish_due, start_due, self.spider.next_due(), soon, log_due, self.drain_by]
            .into_iter()
            .flatten()
            .min()
    }

    fn has_messages(&self) -> bool {
        !self.work.is_empty() || self.source.has_messages()
    }
}

impl<D: Driver, W: WorkSource, S: RecordSink<Item = W::Item, Reply = W::Reply>> Networked for Shard<D, W, S> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    fn expects(&self) -> usize {
        self.spider.open()
    }
}
