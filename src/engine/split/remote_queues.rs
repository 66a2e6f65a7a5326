use crate::base::{Key, Now, shown};
use crate::doc_index::Outcome;
use crate::engine::crawl::live::ShardRules;
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::queues::{Queues, Settled};
use crate::engine::crawl::shard::{Ended, Next, Received, RecordSink, ShardOut, Start, Stored, WorkSource};
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::limits::LINK_UNSENT_MAX;
use crate::proto::job::{Job, TransId};
use crate::proto::lines::{Dialect, LineBuffer, Reported, SpiderWord, WorkOrder};
use crate::proto::record::{ResultCode, StatusAction};
use crate::spider::{FetchOrder, Fetched};
use crate::url_server::{Acquired, Order, OrderKind, Report, UrlServer};
use rapidhash::fast::RapidHashMap;
use std::convert::Infallible;
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
pub(crate) struct RemoteQueues {
    queues: Queues,
    port: Arc<Mutex<LinkPort>>,
    links: RapidHashMap<Key, SpiderLink>,
    by_taker: RapidHashMap<u16, Key>,
    /// Links with lines to be sent this turn.
    to_send: Vec<Key>,
    dialect: Dialect,
    /// Nothing more is to be sent, though the message to drain may still be on its way.
    stop: Arc<AtomicBool>,
    sent: u64,
    bad_lines: u64,
}

/// A page that is with a spider.
pub(crate) struct OpenPage {
    pub trans: TransId,
    pub url: Box<str>,
    pub spider: Option<SocketAddr>,
}

/// Stores nothing: pages are stored where they are fetched.
pub(crate) struct NoRecords;

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

const LINK_EVENTS_PER_TURN: usize = 1_024;

type Out = ShardOut<FromShard>;

impl RemoteQueues {
    pub fn new(
        queues: Queues,
        port: Arc<Mutex<LinkPort>>,
        dialect: Dialect,
        stop: Arc<AtomicBool>,
        epoch: u32,
    ) -> RemoteQueues {
        if epoch > 0 {
            // What the spiders have belongs to a shard that died; they dial again, or are dialed.
            port.lock().unwrap_or_else(PoisonError::into_inner).close_all();
        }
        RemoteQueues {
            queues,
            port,
            links: RapidHashMap::default(),
            by_taker: RapidHashMap::default(),
            to_send: Vec::new(),
            dialect,
            stop,
            sent: 0,
            bad_lines: 0,
        }
    }

    /// The pages that are with spiders, and where those are: for the simulation, which holds requests against them.
    pub fn open_pages(&self) -> Vec<OpenPage> {
        let pages = self.queues.url_server.open_pages();
        let peer = |taker| Some(self.links.get(self.by_taker.get(&taker)?)?.peer);
        pages
            .map(|(trans, taker, url)| OpenPage { trans, url: url.as_str().into(), spider: peer(taker) })
            .collect()
    }

    pub fn url_server(&self) -> &UrlServer {
        &self.queues.url_server
    }

    /// What spiders said, and which came and went. True if there is more.
    fn take_link_events(&mut self, out: &mut Out, now: Now) -> bool {
        let port = self.port.clone();
        let mut port = port.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..LINK_EVENTS_PER_TURN {
            match port.next() {
                Some(LinkEvent::Up { link, peer, .. }) => self.joined(link, peer, out),
                Some(LinkEvent::Bytes { link, bytes }) => {
                    if let Err(error) = self.heard(link, &bytes, out, now) {
                        let peer =
                            self.links.get(&link).map_or(String::new(), |known| known.peer.to_string());
                        let fields = vec![("peer", (&peer).into()), ("cause", error.to_string().into())];
                        out.tell(
                            Event::BadLine,
                            fields,
                            format!("spider {peer}: {error}; connection closed"),
                        );
                        self.bad_lines += 1;
                        port.close(link);
                        self.left(link, now);
                    }
                }
                Some(LinkEvent::Sent { link, bytes }) => self.link_has_room(link, bytes),
                Some(LinkEvent::Ended { .. }) => {}
                Some(LinkEvent::Down { link, why }) => {
                    if let Some(known) = self.links.get(&link) {
                        let (peer, why) = (known.peer, shown(&why, 200));
                        let text = format!("spider {peer} is gone: {why}");
                        out.tell(Event::SpiderGone, vec![("peer", peer.into()), ("cause", why.into())], text);
                    }
                    self.left(link, now);
                }
                None => return false,
            }
        }
        true
    }

    fn joined(&mut self, link: Key, peer: SocketAddr, out: &mut Out) {
        let taker = self.queues.url_server.join(self.dialect == Dialect::Pull);
        self.by_taker.insert(taker, link);
        let buffer = LineBuffer::default();
        self.links
            .insert(link, SpiderLink { peer, taker, buffer, lines: Vec::new(), unsent: 0, held: false });
        out.tell(Event::SpiderJoined, vec![("peer", peer.into())], format!("spider {peer} has joined"));
    }

    /// A spider is gone: what it had is sent again.
    fn left(&mut self, link: Key, now: Now) {
        if let Some(known) = self.links.remove(&link) {
            self.by_taker.remove(&known.taker);
            self.queues.url_server.leave(known.taker, now);
        }
    }

    fn link_has_room(&mut self, link: Key, bytes: usize) {
        let Some(known) = self.links.get_mut(&link) else {
            return;
        };
        known.unsent = known.unsent.saturating_sub(bytes);
        if known.held && known.unsent <= LINK_UNSENT_MAX / 2 {
            known.held = false;
            self.queues.url_server.hold(known.taker, false);
        }
    }

    fn heard(&mut self, link: Key, bytes: &[u8], out: &mut Out, now: Now) -> Result<(), String> {
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
                SpiderWord::Get(count) => self.queues.url_server.credit(taker, count),
                SpiderWord::Working(trans) if self.queues.url_server.spider(trans) == Some(taker) => {
                    self.queues.url_server.working(trans, now);
                }
                SpiderWord::Done(trans, reported) if self.queues.url_server.spider(trans) == Some(taker) => {
                    self.page_done(trans, reported, out, now);
                }
                // Late, never given, or given to another.
                SpiderWord::Working(_) | SpiderWord::Done(..) => self.queues.url_server.ignored(),
            }
        }
        error
    }

    fn page_done(&mut self, trans: TransId, reported: Option<Reported>, out: &mut Out, now: Now) {
        // A robots.txt is with our own spider, whatever a stranger says of it.
        if self.queues.url_server.doc_id(trans).is_none() {
            return self.queues.url_server.ignored();
        }
        let asked_at = self.queues.url_server.asked_at(trans).unwrap_or(now);
        let report = match reported {
            Some(reported) => {
                let took_us = u64::from(reported.took_ms) * 1_000;
                // The spider may have taken its time to begin: its request was out no later than this. The time that it
                // tells is rounded up, by less than a millisecond.
                let since_us = took_us.saturating_sub(1_000);
                let begun = Now::from_us(now.us().saturating_sub(since_us)).max(asked_at);
                self.queues.url_server.sent(trans, begun);
                Report {
                    result: result_of(reported.status),
                    status: reported.status,
                    took_us,
                    retry_after_s: Some(reported.retry_after_s).filter(|&seconds| seconds > 0),
                }
            }
            None => {
                // When its request was out is not known, but that it was by now: the pause counts from here.
                self.queues.url_server.sent(trans, now);
                Report {
                    result: ResultCode::Ok,
                    status: 0,
                    took_us: now.since_us(asked_at),
                    retry_after_s: None,
                }
            }
        };
        if let Some(job) = self.queues.url_server.release(trans, &report, now) {
            let outcome = Outcome { status: report.status, ..outcome(&job, report.result, out, now) };
            out.answer(outcome, None, true, None);
        }
    }

    /// Whether a line can hold this URL, whatever its transaction will be called. Asked before it is queued: one
    /// that cannot be sent needs neither robots rules nor a spider's credit.
    fn fits_a_line(&self, job: &Job) -> bool {
        let (trans, doc_id) = (TransId::from(u64::MAX), job.candidate.doc_id);
        let line = WorkOrder { trans, doc_id, ip: job.ip, url: &job.candidate.url };
        line.write(self.dialect, &mut Vec::new()).is_ok()
    }

    /// A URL that no line can hold never reaches a spider.
    fn refuse_unsendable(job: &Job, out: &mut Out, now: Now) {
        out.log.refused_job(job, ResultCode::BadUrl, now);
        out.answer(outcome(job, ResultCode::BadUrl, out, now), None, false, None);
    }

    fn send_line(&mut self, order: &Order, out: &mut Out, now: Now) {
        let Order { trans, doc_id, ip, url, spider: taker, .. } = order;
        let link = self.by_taker.get(taker).and_then(|link| Some((*link, self.links.get_mut(link)?)));
        let Some((link, known)) = link else {
            // It left in this very turn.
            return self.queues.url_server.put_back(*trans, now);
        };
        let line = WorkOrder { trans: *trans, doc_id: *doc_id, ip: *ip, url };
        if known.lines.is_empty() {
            self.to_send.push(link);
        }
        if line.write(self.dialect, &mut known.lines).is_err() {
            // It did when it was queued, but its host has an address with a longer name by now. Nothing is sent, so
            // the spider has its credit back.
            self.queues.url_server.credit(*taker, 1);
            let report = Report { result: ResultCode::BadUrl, ..Report::UNKNOWN };
            if let Some(job) = self.queues.url_server.release(*trans, &report, now) {
                RemoteQueues::refuse_unsendable(&job, out, now);
            }
            return;
        }
        if known.unsent + known.lines.len() > LINK_UNSENT_MAX && !known.held {
            known.held = true;
            self.queues.url_server.hold(known.taker, true);
        }
        self.sent += 1;
        self.queues.url_server.sent(*trans, now);
    }

    fn flush_lines(&mut self) {
        if self.to_send.is_empty() {
            return;
        }
        let port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        for link in self.to_send.drain(..) {
            if let Some(known) = self.links.get_mut(&link) {
                known.unsent += known.lines.len();
                port.send(link, std::mem::take(&mut known.lines));
            }
        }
    }
}

fn outcome(job: &Job, result: ResultCode, out: &Out, now: Now) -> Outcome {
    Outcome::new(job.candidate.doc_id, result, out.log.unix_s(now))
}

impl WorkSource for RemoteQueues {
    type Message = ToShard;
    type Reply = FromShard;
    type Item = Infallible;

    const MESSAGES_PER_TURN: usize = 4_096;
    const ORDERS_PER_TURN: usize = 4_096;

    fn receive(&mut self, message: ToShard, out: &mut Out, now: Now) -> Received {
        match message {
            ToShard::Work { epoch, .. } | ToShard::RemoteRobots { epoch, .. }
                if self.queues.is_late(epoch) => {}
            ToShard::Work { job, .. } if !self.fits_a_line(&job) => {
                RemoteQueues::refuse_unsendable(&job, out, now);
            }
            ToShard::Work { job, .. } => self.queues.url_server.admit(job, now),
            ToShard::RemoteRobots { request, .. } => self.queues.admit_remote_robots(request, out, now),
            ToShard::About(word) => self.queues.about(word, out, now),
            ToShard::Rest(question) => self.queues.say_rest(question, out, now),
            // Links are not followed here.
            ToShard::Scope(_) => {}
            ToShard::Pause(paused) => self.queues.pause(paused),
            ToShard::Rules(rules) => return Received::Rules(rules),
            ToShard::Drain => return Received::Drain,
        }
        Received::Taken
    }

    fn set_rules(&mut self, rules: &ShardRules, now: Now) {
        self.queues.url_server.set_rules(rules.niceness, now);
    }

    fn poll(&mut self, out: &mut Out, now: Now) -> bool {
        let more = self.take_link_events(out, now);
        self.queues.poll(now);
        more
    }

    fn next(&mut self, start: &mut Start<'_, FromShard>) -> Next<Infallible> {
        if !start.spider.has_room(start.actions) {
            return Next::Nothing;
        }
        match self.queues.url_server.acquire(start.now) {
            Acquired::Fetch(order) if order.kind == OrderKind::Page => {
                self.send_line(&order, start.out, start.now);
                Next::Handled
            }
            Acquired::Fetch(order) => {
                let addr = SocketAddr::new(order.ip, order.url.port());
                self.queues.counts(order.kind);
                let more = order.more;
                Next::Fetch(FetchOrder {
                    more,
                    robots: true,
                    ..FetchOrder::new(order.trans, order.url, addr)
                })
            }
            Acquired::Refused(job, refusal) => {
                self.queues.refuse(&job, refusal, start.out, start.now);
                Next::Handled
            }
            Acquired::Nothing => Next::Nothing,
        }
    }

    fn sent(&mut self, trans: TransId, now: Now) {
        self.queues.url_server.sent(trans, now);
    }

    fn working(&mut self, trans: TransId, now: Now) {
        self.queues.url_server.working(trans, now);
    }

    fn suspect(&self, _: TransId) -> u32 {
        0
    }

    fn ended(&mut self, fetched: Box<Fetched>, out: &mut Out, now: Now) -> Ended<Infallible> {
        if let Settled::Page(_) = self.queues.settle(&fetched, out, now) {
            unreachable!("pages are fetched by spiders in other processes")
        }
        Ended::Over(fetched)
    }

    fn flush(&mut self, out: &mut Out, now: Now) {
        self.flush_lines();
        self.queues.flush(out, now);
    }

    /// What spiders have may end.
    fn is_settled(&self) -> bool {
        self.queues.url_server.open() == 0
    }

    fn close(&mut self, out: &mut Out, now: Now) {
        self.queues.close(out, now);
    }

    fn has_messages(&self) -> bool {
        self.queues.has_messages() || !self.port.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn may_start(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && !self.queues.is_paused()
    }

    fn is_empty(&self) -> bool {
        self.queues.url_server.is_empty()
    }

    fn next_due(&self) -> Option<Now> {
        self.queues.url_server.next_due()
    }

    fn publish(&mut self, counters: &Counters, now: Now) -> bool {
        counters.count(Counter::Sent, self.sent);
        counters.count(Counter::BadLines, self.bad_lines);
        counters.count(Counter::Late, self.queues.url_server.stats().late);
        self.queues.publish(counters, now)
    }

    fn drained_reply() -> FromShard {
        FromShard::Drained
    }
}

impl RecordSink for NoRecords {
    type Item = Infallible;
    type Reply = FromShard;

    fn store(&mut self, item: Infallible, _: &mut Out) -> Stored<Infallible> {
        match item {}
    }

    fn publish(&self, _: &Counters) {}
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
