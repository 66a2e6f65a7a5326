use crate::base::{Key, Now, Wall, shown};
use crate::config::SpiderProtocol;
use crate::doc_index::Outcome;
use crate::driver::Driver;
use crate::engine::crawl::finished::{moved_on, refusal_note, report_of};
use crate::engine::crawl::log_lines::Logger;
use crate::engine::crawl::messages::{Done, FromShard, ToShard};
use crate::engine::crawl::papers::Papers;
use crate::engine::crawl::robots_exchange::{admit_errand, host_word, robots_fetched};
use crate::engine::crawl::scheduler::unix_s;
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::counters::{RemoteShardStats, ShardStats};
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::engine::runtime::outbox::Outbox;
use crate::engine::runtime::threads::{ShardState, Turn};
use crate::limits::{DRAIN_US, LINK_UNSENT_MAX};
use crate::proto::lines::{Dialect, Job, LineBuffer, Reported, SpiderWord, TransId, WorkOrder};
use crate::proto::record::{ResultCode, StatusAction};
use crate::rings::{Doorbell, Receiver, Sender};
use crate::spider::{Action, Again, FetchOrder, Fetched, Spider, SpiderConfig};
use crate::url_server::{
    Acquired, Memory, Order, OrderKind, Refusal, Report, SpillEvent, UrlServer, UrlServerConfig,
};
use rapidhash::fast::RapidHashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The URL server of a process of its own: queues here, spiders behind links. Robots rules it fetches itself.
///
/// To the scheduler it looks like a shard: work comes down the same ring, DONE goes up the same ring.
///
/// A line to a spider names one address. Of a host that has several it is the one at which its robots.txt was had:
/// that comes first, is asked for from here, and is tried at one address after the other.
///
/// ```text
///   scheduler ── work ring ──► UrlServer ── acquire ──► line ──► LinkPort ──► spiders
///        ▲                        ▲   └─ robots.txt ──► Spider ──► driver
///        └───── DONE ring ────────┴──── GET, WORKING, DONE ◄──── LinkPort ◄── spiders
/// ```
pub(crate) struct RemoteShard<D: Driver> {
    driver: D,
    url_server: UrlServer,
    /// For robots.txt only.
    spider: Spider,
    papers: Papers,
    work: Receiver<ToShard>,
    done: Outbox<FromShard>,
    bell: Arc<Doorbell>,
    port: Arc<Mutex<LinkPort>>,
    links: RapidHashMap<Key, SpiderLink>,
    by_taker: RapidHashMap<u16, Key>,
    dialect: Dialect,
    epoch: u32,
    actions: Vec<Action>,
    /// Nothing more is to be sent, though the word to drain may still be on its way.
    stop: Arc<AtomicBool>,
    drain_by: Option<Now>,
    drained: bool,
    stats: Arc<ShardStats>,
    desk_stats: Arc<RemoteShardStats>,
}

/// A spider that is connected.
struct SpiderLink {
    peer: SocketAddr,
    taker: u16,
    buffer: LineBuffer,
    /// Lines of this turn.
    lines: Vec<u8>,
    /// Bytes that the kernel has not taken yet.
    unsent: usize,
    held: bool,
}

/// What it is made of, apart from its driver.
pub(crate) struct RemoteShardParts {
    pub url_server: UrlServerConfig,
    pub spider: SpiderConfig,
    pub protocol: SpiderProtocol,
    pub work: Receiver<ToShard>,
    pub done: Sender<FromShard>,
    pub bell: Arc<Doorbell>,
    pub scheduler: Arc<Doorbell>,
    pub port: Arc<Mutex<LinkPort>>,
    pub stop: Arc<AtomicBool>,
    pub stats: Arc<ShardStats>,
    pub desk_stats: Arc<RemoteShardStats>,
    pub wall: Wall,
    pub epoch: u32,
    pub scribe: LogWriterPort,
    pub spill: Receiver<SpillEvent>,
    pub memory: Memory,
    pub quiet_until: Now,
}

const ORDERS_PER_TURN: usize = 4_096;
const WORDS_PER_TURN: usize = 4_096;
const LINK_EVENTS_PER_TURN: usize = 1_024;

impl<D: Driver> RemoteShard<D> {
    pub fn new(driver: D, parts: RemoteShardParts) -> RemoteShard<D> {
        let now = driver.now();
        let spider =
            SpiderConfig { conns_max: parts.spider.conns_max.min(driver.conns_max()), ..parts.spider };
        if parts.epoch > 0 {
            // What the spiders have belongs to a desk that died; they dial again, or are dialed.
            parts.port.lock().unwrap_or_else(PoisonError::into_inner).close_all();
        }
        let url_server = UrlServer::new(parts.url_server, now).after(parts.quiet_until, parts.memory);
        RemoteShard {
            url_server: url_server.with_spiders_behind_links(),
            spider: Spider::new(spider, now),
            papers: Papers::new(0, Logger { wall: parts.wall, shard: 0 }, parts.scribe, parts.spill),
            work: parts.work,
            done: Outbox::new(parts.done, parts.scheduler),
            bell: parts.bell,
            port: parts.port,
            links: RapidHashMap::default(),
            by_taker: RapidHashMap::default(),
            dialect: parts.protocol.into(),
            epoch: parts.epoch,
            actions: Vec::new(),
            stop: parts.stop,
            drain_by: None,
            drained: false,
            stats: parts.stats,
            desk_stats: parts.desk_stats,
            driver,
        }
    }

    fn take_words(&mut self, now: Now) {
        for _ in 0..WORDS_PER_TURN {
            match self.work.pop() {
                Some(ToShard::Work { epoch, .. } | ToShard::Errand { epoch, .. }) if epoch != self.epoch => {}
                Some(ToShard::Work { job, .. }) if !self.fits_a_line(&job) => {
                    self.refuse_unsendable(&job, now)
                }
                Some(ToShard::Work { job, .. }) => self.url_server.admit(job, now),
                Some(ToShard::Errand { errand, .. }) => {
                    admit_errand(&mut self.url_server, &mut self.done, errand, now);
                }
                Some(ToShard::About(word)) => {
                    let (url_server, papers) = (&mut self.url_server, &mut self.papers);
                    host_word(url_server, papers, &mut self.done, word, now);
                }
                // Links are not followed here.
                Some(ToShard::Scope(_)) => {}
                Some(ToShard::Drain) => {
                    self.drain_by.get_or_insert(now.plus_us(DRAIN_US));
                }
                None => return,
            }
        }
    }

    /// What spiders said, and which came and went. True if there is more.
    fn take_link_events(&mut self, now: Now) -> bool {
        let port = self.port.clone();
        let mut port = port.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..LINK_EVENTS_PER_TURN {
            match port.next() {
                Some(LinkEvent::Up { link, peer, .. }) => self.joined(link, peer),
                Some(LinkEvent::Bytes { link, bytes }) => {
                    if let Err(error) = self.heard(link, &bytes, now) {
                        let peer =
                            self.links.get(&link).map_or(String::new(), |known| known.peer.to_string());
                        self.done
                            .say(FromShard::Notice(format!("spider {peer}: {error}; connection closed")));
                        self.desk_stats.bad_lines.fetch_add(1, Ordering::Relaxed);
                        port.close(link);
                        self.left(link, now);
                    }
                }
                Some(LinkEvent::Sent { link, bytes }) => self.link_has_room(link, bytes),
                Some(LinkEvent::Down { link, why }) => {
                    if let Some(known) = self.links.get(&link) {
                        let text = format!("spider {} is gone: {}", known.peer, shown(&why, 200));
                        self.done.say(FromShard::Notice(text));
                    }
                    self.left(link, now);
                }
                None => return false,
            }
        }
        true
    }

    fn joined(&mut self, link: Key, peer: SocketAddr) {
        let taker = self.url_server.join(self.dialect == Dialect::Pull);
        self.by_taker.insert(taker, link);
        let buffer = LineBuffer::default();
        self.links
            .insert(link, SpiderLink { peer, taker, buffer, lines: Vec::new(), unsent: 0, held: false });
        self.done.say(FromShard::Notice(format!("spider {peer} has joined")));
    }

    /// A spider is gone: what it had is sent again.
    fn left(&mut self, link: Key, now: Now) {
        if let Some(known) = self.links.remove(&link) {
            self.by_taker.remove(&known.taker);
            self.url_server.leave(known.taker, now);
        }
    }

    fn link_has_room(&mut self, link: Key, bytes: usize) {
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        known.unsent = known.unsent.saturating_sub(bytes);
        if known.held && known.unsent <= LINK_UNSENT_MAX / 2 {
            known.held = false;
            self.url_server.hold(known.taker, false);
        }
    }

    fn heard(&mut self, link: Key, bytes: &[u8], now: Now) -> Result<(), String> {
        let Some(known) = self.links.get_mut(&link) else {
            return Ok(());
        };
        let taker = known.taker;
        known.buffer.push(bytes);
        let mut words = Vec::new();
        let error = loop {
            match known.buffer.next_line() {
                Ok(Some(line)) => match SpiderWord::parse(line) {
                    Ok(word) => words.push(word),
                    Err(error) => break Err(error.to_string()),
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        // What was said before a line that cannot be read still counts.
        for word in words {
            match word {
                SpiderWord::Get(count) => self.url_server.credit(taker, count),
                SpiderWord::Working(trans) if self.url_server.taker(trans) == Some(taker) => {
                    self.url_server.working(trans, now);
                }
                SpiderWord::Done(trans, reported) if self.url_server.taker(trans) == Some(taker) => {
                    self.page_done(trans, reported, now);
                }
                // Late, never given, or given to another.
                SpiderWord::Working(_) | SpiderWord::Done(..) => self.url_server.ignored(),
            }
        }
        error
    }

    fn page_done(&mut self, trans: TransId, reported: Option<Reported>, now: Now) {
        // A robots.txt is with our own spider, whatever a stranger says of it.
        if self.url_server.doc_id(trans).is_none() {
            return self.url_server.ignored();
        }
        let asked_at = self.url_server.asked_at(trans).unwrap_or(now);
        let report = match reported {
            Some(reported) => {
                let took_us = u64::from(reported.took_ms) * 1_000;
                // The spider may have taken its time to begin: its request was out no later than this.
                let begun = Now::from_us(now.us().saturating_sub(took_us)).max(asked_at);
                self.url_server.sent(trans, begun);
                Report {
                    result: result_of(reported.status),
                    status: reported.status,
                    took_us,
                    retry_after_s: Some(reported.retry_after_s).filter(|&seconds| seconds > 0),
                }
            }
            None => {
                // When its request was out is not known, but that it was by now: the pause counts from here.
                self.url_server.sent(trans, now);
                Report {
                    result: ResultCode::Ok,
                    status: 0,
                    took_us: now.since_us(asked_at),
                    retry_after_s: None,
                }
            }
        };
        if let Some(job) = self.url_server.release(trans, &report, now) {
            let outcome = Outcome { status: report.status, ..self.outcome(&job, report.result, now) };
            self.answer(outcome, true);
        }
    }

    fn outcome(&self, job: &Job, result: ResultCode, now: Now) -> Outcome {
        Outcome::new(job.candidate.doc_id, result, unix_s(self.papers.book.logger.wall, now))
    }

    fn answer(&mut self, outcome: Outcome, fetched: bool) {
        self.done.say(FromShard::Done(Done { outcome, sequence: None, fetched, found: None }));
    }

    fn take_completions(&mut self, now: Now) {
        loop {
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
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Net(ask) => self.driver.ask(ask),
                Action::Sent(trans) => self.url_server.sent(trans, now),
                Action::Working(trans) => self.url_server.working(trans, now),
                Action::Finished(fetched) => self.finished(*fetched, now),
            }
        }
        self.actions = actions;
    }

    fn finished(&mut self, fetched: Fetched, now: Now) {
        match fetched.again {
            Some(Again::Stale) => self.url_server.put_back(fetched.trans, now),
            Some(Again::Differently) => {
                self.papers.log_again(&self.url_server, &fetched, now);
                let report = report_of(&fetched, now, self.papers.book.logger.wall);
                self.url_server.ask_again(fetched.trans, &report, now);
            }
            None if moved_on(&mut self.url_server, &fetched, now) => {}
            None => {
                let (url_server, papers) = (&mut self.url_server, &mut self.papers);
                robots_fetched(url_server, papers, &mut self.done, &fetched, now);
            }
        }
        self.spider.recycle(fetched.bytes);
    }

    fn may_start(&self) -> bool {
        self.drain_by.is_none() && !self.stop.load(Ordering::Relaxed) && !self.papers.book.is_full()
    }

    /// Sends what niceness and credits allow. True if there is more to send at once.
    fn hand_out(&mut self, now: Now) -> bool {
        for _ in 0..ORDERS_PER_TURN {
            if !self.may_start() || !self.spider.has_room(&mut self.actions) {
                self.run_actions(now);
                return false;
            }
            match self.url_server.acquire(now) {
                Acquired::Fetch(order) if order.kind == OrderKind::Page => self.send_line(&order, now),
                Acquired::Fetch(order) => {
                    let addr = SocketAddr::new(order.ip, order.url.port());
                    let more = order.more;
                    let order = FetchOrder { more, ..FetchOrder::new(order.trans, order.url, addr) };
                    self.spider.take(order, now, &mut self.actions);
                    self.run_actions(now);
                }
                Acquired::Refused(job, refusal) => {
                    let result = refusal.result();
                    self.papers.book.logger.refused_job(&mut self.papers.book.lines, &job, result, now);
                    let unreachable = refusal == Refusal::RobotsUnreachable;
                    let note = refusal_note(&self.url_server, &job, refusal);
                    let outcome = Outcome { unreachable, note, ..self.outcome(&job, result, now) };
                    self.answer(outcome, false);
                }
                Acquired::Nothing => return false,
            }
        }
        true
    }

    /// Whether a line can hold this URL, whatever its transaction will be called. Asked before it is queued: one
    /// that cannot be sent needs neither robots rules nor a spider's credit.
    fn fits_a_line(&self, job: &Job) -> bool {
        let (trans, doc_id) = (TransId::from(u64::MAX), job.candidate.doc_id);
        let line = WorkOrder { trans, doc_id, ip: job.ip, url: &job.candidate.url };
        line.write(self.dialect, &mut Vec::new()).is_ok()
    }

    /// A URL that no line can hold never reaches a spider.
    fn refuse_unsendable(&mut self, job: &Job, now: Now) {
        self.papers.book.logger.refused_job(&mut self.papers.book.lines, job, ResultCode::BadUrl, now);
        self.answer(self.outcome(job, ResultCode::BadUrl, now), false);
    }

    fn send_line(&mut self, order: &Order, now: Now) {
        let Order { trans, doc_id, ip, url, taker, .. } = order;
        let link = self.by_taker.get(taker).and_then(|link| self.links.get_mut(link));
        let Some(known) = link else {
            // It left in this very turn.
            return self.url_server.put_back(*trans, now);
        };
        let line = WorkOrder { trans: *trans, doc_id: *doc_id, ip: *ip, url };
        if line.write(self.dialect, &mut known.lines).is_err() {
            // It did when it was queued, but its host has an address with a longer name by now. Nothing is sent, so
            // the spider has its credit back.
            self.url_server.credit(*taker, 1);
            let report = Report { result: ResultCode::BadUrl, ..Report::UNKNOWN };
            if let Some(job) = self.url_server.release(*trans, &report, now) {
                self.refuse_unsendable(&job, now);
            }
            return;
        }
        if known.unsent + known.lines.len() > LINK_UNSENT_MAX && !known.held {
            known.held = true;
            self.url_server.hold(known.taker, true);
        }
        self.desk_stats.sent.fetch_add(1, Ordering::Relaxed);
        self.url_server.sent(*trans, now);
    }

    fn flush_lines(&mut self) {
        let mut port = None;
        for (&link, known) in self.links.iter_mut().filter(|(_, known)| !known.lines.is_empty()) {
            let port = port.get_or_insert_with(|| self.port.lock().unwrap_or_else(PoisonError::into_inner));
            known.unsent += known.lines.len();
            port.send(link, std::mem::take(&mut known.lines));
        }
    }

    fn publish(&self) {
        let stats = &self.stats;
        ShardStats::set(&stats.open, self.url_server.open() as u64);
        ShardStats::set(&stats.hosts, self.url_server.hosts_busy() as u64);
        ShardStats::set(&stats.queued, self.url_server.len() as u64);
        ShardStats::set(&stats.resent, self.url_server.stats().resent);
        ShardStats::set(&stats.syscalls, self.driver.syscalls());
        ShardStats::set(&self.desk_stats.late, self.url_server.stats().late);
        ShardStats::set(&self.desk_stats.spiders, self.links.len() as u64);
    }

    fn has_words(&self) -> bool {
        !self.work.is_empty()
            || self.papers.has_words()
            || !self.port.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn next_due(&self) -> Option<Now> {
        let stuck = self.done.waiting() > 0 || self.spider.is_out_of_memory() && !self.url_server.is_empty();
        let soon = stuck.then(|| self.driver.now().plus_ms(2));
        // With every connection in use, the end of a fetch is what to wait for.
        let fetch_due = (self.may_start() && !self.spider.is_full() && !self.spider.is_out_of_memory())
            .then(|| self.url_server.next_due())
            .flatten();
        let papers_due = self.papers.book.next_due(self.driver.now());
        [fetch_due, self.spider.next_due(), soon, papers_due, self.drain_by].into_iter().flatten().min()
    }
}

impl<D: Driver> Turn for RemoteShard<D> {
    fn turn(&mut self) -> ShardState {
        let now = self.driver.now();
        self.take_words(now);
        let mut more = self.take_link_events(now);
        self.take_completions(now);
        self.papers.take_leftovers(&mut self.url_server, now);
        self.url_server.tick(now);
        self.spider.tick(now, &mut self.actions);
        self.run_actions(now);
        more |= self.hand_out(now);
        self.flush_lines();
        self.papers.hand_on(&mut self.url_server, &mut self.done, now);
        self.done.hand_up();
        self.publish();
        let out_of_time = self.drain_by.is_some_and(|by| by <= now);
        if out_of_time {
            self.spider.abandon(now, &mut self.actions);
            self.run_actions(now);
        }
        if self.drain_by.is_some()
            && (self.url_server.open() == 0 || out_of_time)
            && self.done.waiting() == 0
            && self.papers.close(&mut self.url_server, &mut self.done, now)
        {
            if !std::mem::replace(&mut self.drained, true) {
                self.done.say(FromShard::Drained);
                self.done.hand_up();
            }
            return ShardState::Drained;
        }
        if more || self.has_words() { ShardState::Busy } else { ShardState::Waiting }
    }

    fn wait(&mut self, state: ShardState) -> io::Result<()> {
        if state == ShardState::Busy {
            return self.driver.wait(Some(Now::ZERO), 0);
        }
        self.bell.falling_asleep();
        let until = if self.has_words() { Some(Now::ZERO) } else { self.next_due() };
        let waited = self.driver.wait(until, 0);
        self.bell.awake();
        waited
    }
}

/// What a reported status means to the doc index.
fn result_of(status: u16) -> ResultCode {
    match StatusAction::of(status) {
        _ if status == 0 => ResultCode::ConnectFailed,
        StatusAction::Document => ResultCode::Ok,
        StatusAction::Unchanged => ResultCode::NotModified,
        StatusAction::Follow => ResultCode::Redirect,
        StatusAction::Retry | StatusAction::Drop | StatusAction::BackOff => ResultCode::HttpError,
    }
}
