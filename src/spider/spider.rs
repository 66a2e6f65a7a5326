use super::buffers::Buffers;
use super::conns::{ConnState, Conns};
use super::document_decoder::DocumentDecoder;
use super::fetch::{Fetch, FetchEnd, FetchState};
use super::idle_pool::route;
use super::origin_policy::OriginPolicy;
use super::slot_timers::SlotTimers;
use super::tls_conn::TlsConn;
use super::{FetchLimits, FetchOrder, Fetched, Retry, SpiderConfig};
use crate::base::{Key, NetAsk, NetError, NetEvent, Now, Slots, Transport};
use crate::proto::http1::{Flags, Method};
use crate::proto::job::TransId;
use crate::proto::record::ResultCode;
use crate::proto::tls::{CertFault, TlsClient};
use crate::proto::url::{CrawlUrl, Scheme};
use std::net::SocketAddr;

/// After a timer that fires so late nobody can say of a fetch that it is late by its server's doing.
const STALLED_US: u64 = 1_000_000;

/// What the spider wants done, or reports.
#[derive(Debug)]
pub enum Action {
    Net(NetAsk),
    /// The kernel has taken the request.
    Sent(TransId),
    /// The fetch needs more time.
    Working(TransId),
    Finished(Box<Fetched>),
}

/// See the folder's docs.
pub struct Spider {
    config: SpiderConfig,
    fetches: Slots<Fetch>,
    conns: Conns,
    timers: SlotTimers,
    /// Slots whose timers have fired; empty between two ticks.
    fired: Vec<u32>,
    buffers: Buffers,
    tls: TlsClient,
    /// The bytes that TLS decrypted last.
    plain: Vec<u8>,
    policy: OriginPolicy,
    decoder: DocumentDecoder,
    stats: SpiderStats,
}

/// How connections came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpiderStats {
    /// Made, used again, used again and found dead, not to be had.
    pub connections: [u64; 4],
    /// In full, from an earlier session, in vain.
    pub handshakes: [u64; 3],
}

impl Spider {
    /// The TLS settings must have been checked: a spider without TLS would be of half the use.
    pub fn new(config: SpiderConfig, now: Now) -> Spider {
        let seed = config.wall.unix_ms_at_zero ^ now.us().rotate_left(32);
        Spider {
            tls: TlsClient::new(&config.tls).expect("the settings of TLS were checked at start"),
            plain: Vec::new(),
            policy: OriginPolicy::new(config.sites.clone(), config.cookies, seed),
            decoder: DocumentDecoder::new(config.limits.body.doc_bytes_max),
            fetches: Slots::new(config.conns_max),
            conns: Conns::new(config.conns_max),
            timers: SlotTimers::new(now),
            fired: Vec::new(),
            stats: SpiderStats::default(),
            buffers: Buffers::new(config.budget.clone()),
            config,
        }
    }

    /// Other limits hold for fetches that begin from now on. Those that are open keep what they have of the old ones.
    pub fn set_limits(&mut self, limits: FetchLimits) {
        self.decoder.set_max(limits.body.doc_bytes_max);
        self.config.budget.set_max(limits.body_memory);
        self.config.limits = limits;
    }

    /// Open fetches.
    pub fn open(&self) -> usize {
        self.fetches.len()
    }

    /// Fetches that may be open.
    pub fn open_max(&self) -> usize {
        self.config.conns_max
    }

    pub fn stats(&self) -> &SpiderStats {
        &self.stats
    }

    /// No order can be taken before a connection is closed, which the driver will report.
    pub fn is_full(&self) -> bool {
        self.conns.is_full()
    }

    /// No order is taken before documents in flight, of this spider or another, have been stored.
    pub fn is_out_of_memory(&self) -> bool {
        self.buffers.is_used_up()
    }

    /// Whether another order can be taken. When only idle connections stand in the way, the oldest is closed.
    pub fn has_room(&mut self, out: &mut Vec<Action>) -> bool {
        if self.buffers.is_used_up() {
            return false;
        }
        if !self.conns.is_full() {
            return true;
        }
        self.conns.make_room(out);
        false
    }

    /// The same for an order that is known: a connection kept for its host is room enough, and is not closed to make
    /// some.
    pub fn has_room_for(&mut self, url: &CrawlUrl, addr: SocketAddr, out: &mut Vec<Action>) -> bool {
        !self.buffers.is_used_up() && self.conns.has_idle(route(url.origin(), addr)) || self.has_room(out)
    }

    /// Starts a fetch. There must be room.
    pub fn take(&mut self, order: FetchOrder, now: Now, out: &mut Vec<Action>) {
        let addr = order.addr;
        if self.config.limits.guard.check(addr.ip(), addr.port()).is_err() {
            let fetched = Fetched::without_response(order, ResultCode::BlockedAddress, now);
            return out.push(Action::Finished(Box::new(fetched)));
        }
        if now >= order.send_by {
            let mut fetched = Fetched::without_response(order, ResultCode::TotalTimeout, now);
            fetched.retry = Some(Retry::TooLate);
            return out.push(Action::Finished(Box::new(fetched)));
        }
        let (conn, is_open) = self.conns.assign(route(order.url.origin(), addr), now);
        let fetch = Fetch::new(order, conn, self.buffers.document(), &self.config, now);
        let key = self.fetches.insert(fetch).expect("there are as many fetches as connections");
        self.conns.get(conn).start(key, is_open);
        if is_open {
            self.stats.connections[1] += 1;
            self.send_request(key, now, out);
        } else {
            out.push(Action::Net(NetAsk::Connect { conn, addr, transport: Transport::Tcp }));
        }
        self.arm(key);
    }

    /// Takes a network event. Every transition of a fetch is in the match of `step_fetch`.
    pub fn step(&mut self, conn: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn);
        match (slot.state(), event) {
            (ConnState::Closing, NetEvent::Closed) => self.conns.closed(conn),
            (ConnState::Closing, NetEvent::Sent(buffer)) => self.buffers.keep_request(buffer),
            // What comes after the close is of no interest.
            (ConnState::Closing, _) => {}
            (ConnState::Idle { .. }, event) => self.step_idle(conn, event, out),
            (ConnState::Busy { fetch }, NetEvent::Received(bytes)) if slot.tls().is_some() => {
                self.step_tls(conn, fetch, bytes, now, out);
            }
            (ConnState::Busy { fetch }, event) => self.step_fetch(conn, fetch, event, now, out),
        }
    }

    /// The server closed an idle connection, or spoke out of turn; TLS may do so about its keys.
    fn step_idle(&mut self, conn: Key, event: NetEvent<'_>, out: &mut Vec<Action>) {
        let goes_on = match (self.conns.get(conn).tls(), event) {
            (Some(tls), NetEvent::Received(bytes)) => {
                self.plain.clear();
                tls.receive(bytes, &mut self.plain).is_ok() && !tls.peer_closed() && self.plain.is_empty()
            }
            (Some(tls), NetEvent::Sent(buffer)) => {
                tls.sent();
                self.buffers.keep_request(buffer);
                true
            }
            _ => false,
        };
        if goes_on {
            self.send_tls(conn, out);
        } else {
            self.conns.close(conn, out);
        }
    }

    /// Encrypted bytes.
    fn step_tls(&mut self, conn: Key, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let tls = self.conns.get(conn).tls().expect("the caller looked");
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let received = tls.receive(bytes, &mut plain);
        let (handshaking, closed) = (tls.is_handshaking(), tls.peer_closed());
        let is_resumed = tls.is_resumed();
        let open = self.fetches.get(fetch).expect("a busy connection has its fetch");
        match open.state() {
            FetchState::Handshake if received.is_err() || closed => {
                self.send_tls(conn, out);
                self.finish(fetch, ResultCode::TlsFailed, now, out);
            }
            FetchState::Handshake if !handshaking => {
                self.stats.handshakes[usize::from(is_resumed)] += 1;
                self.send_request(fetch, now, out);
            }
            _ => self.send_tls(conn, out),
        }
        if !plain.is_empty() && self.fetches.get(fetch).is_some() {
            self.step_fetch(conn, fetch, NetEvent::Received(&plain), now, out);
        }
        self.plain = plain;
        // The fetch may have ended with these bytes, and its connection may be idle.
        if self.fetches.get(fetch).is_some() {
            if received.is_err() {
                self.step_fetch(conn, fetch, NetEvent::Failed(NetError::Reset), now, out);
            } else if closed {
                self.step_fetch(conn, fetch, NetEvent::Ended, now, out);
            }
        } else if let ConnState::Idle { .. } = self.conns.get(conn).state()
            && (received.is_err() || closed)
        {
            self.conns.close(conn, out);
        }
    }

    fn step_fetch(&mut self, conn: Key, fetch: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn);
        let open = self.fetches.get_mut(fetch).expect("a busy connection has its fetch");
        if let NetEvent::Connected = event {
            self.stats.connections[0] += 1;
        }
        match (open.state(), event) {
            (FetchState::Connect, NetEvent::Connected) if open.url().scheme() == Scheme::Https => {
                self.start_handshake(fetch, now, out);
            }
            (FetchState::Connect, NetEvent::Connected) => self.send_request(fetch, now, out),
            (_, NetEvent::Sent(buffer)) => {
                self.buffers.keep_request(buffer);
                if slot.sent() {
                    out.push(Action::Sent(open.trans()));
                }
                self.send_tls(conn, out);
            }
            (FetchState::Await { .. } | FetchState::Body { .. }, NetEvent::Received(bytes)) => {
                let held = open.held();
                let end = open.receive(bytes, &self.config, now);
                self.buffers.resized(held, open.held());
                if let Some(end) = end {
                    self.finish(fetch, end, now, out);
                }
            }
            (FetchState::Connect, NetEvent::Failed(error)) => {
                let result = match error {
                    NetError::Refused => ResultCode::ConnectRefused,
                    NetError::TimedOut => ResultCode::ConnectTimeout,
                    NetError::Reset
                    | NetError::Unreachable
                    | NetError::NoAddress
                    | NetError::Exhausted
                    | NetError::Other(_) => ResultCode::ConnectFailed,
                };
                self.finish(fetch, result, now, out);
                if let Some(Action::Finished(fetched)) = out.last_mut() {
                    fetched.retry = match error {
                        NetError::Exhausted => Some(Retry::NoSocket),
                        NetError::NoAddress if fetched.addr.is_ipv4() => Some(Retry::NoSocket),
                        NetError::NoAddress | NetError::Unreachable => Some(Retry::NoWay),
                        _ => fetched.retry,
                    };
                }
            }
            (FetchState::Handshake, NetEvent::Ended | NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::TlsFailed, now, out);
            }
            (FetchState::Await { .. } | FetchState::Body { .. }, NetEvent::Ended) => {
                let result = open.end_of_stream(slot.lacks_close_notify());
                self.finish(fetch, result, now, out);
            }
            (FetchState::Await { .. }, NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::Reset, now, out);
            }
            (FetchState::Body { .. }, NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::Truncated, now, out);
            }
            // A peer that ends before the connection is reported as made will fail it, too.
            (FetchState::Connect, NetEvent::Ended) => {}
            (FetchState::Connect | FetchState::Handshake, NetEvent::Received(_))
            | (
                FetchState::Handshake | FetchState::Await { .. } | FetchState::Body { .. },
                NetEvent::Connected,
            )
            | (_, NetEvent::Closed | NetEvent::Accepted(_)) => unreachable!("the driver reports in order"),
        }
    }

    /// Deadlines and WORKING.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Action>) {
        let mut fired = std::mem::take(&mut self.fired);
        let is_stalled = self.timers.fire(now, &mut fired) > STALLED_US;
        for slot in fired.drain(..) {
            if let Some(key) = self.fetches.key_at(slot as usize) {
                self.check_deadlines(key, is_stalled, now, out);
            }
        }
        self.fired = fired;
        self.conns.expire(now, out);
    }

    pub fn next_due(&self) -> Option<Now> {
        [self.timers.next_due(), self.conns.next_due()].into_iter().flatten().min()
    }

    /// Ends every open fetch without a result: it is to be made again, by whoever comes next.
    pub fn abandon(&mut self, now: Now, out: &mut Vec<Action>) {
        let open: Vec<Key> = self.fetches.iter().map(|(key, _)| key).collect();
        for key in open {
            self.finish(key, ResultCode::TotalTimeout, now, out);
            if let Some(Action::Finished(fetched)) = out.last_mut() {
                fetched.retry = Some(Retry::Stopped);
            }
        }
    }

    /// Takes a finished fetch back, for the memory of another one. Until then its bytes count as held.
    pub fn recycle(&mut self, fetched: Box<Fetched>) {
        self.buffers.resized(fetched.bytes.len(), 0);
        self.buffers.keep(fetched);
    }

    /// The timer of this fetch's slot has fired.
    fn check_deadlines(&mut self, key: Key, is_stalled: bool, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(key).expect("the caller found it");
        match open.overdue(&self.config, now) {
            Err(result) => {
                self.finish(key, result, now, out);
                if is_stalled && let Some(Action::Finished(fetched)) = out.last_mut() {
                    fetched.retry = Some(Retry::Stalled);
                }
                return;
            }
            Ok(true) => out.push(Action::Working(open.trans())),
            Ok(false) => {}
        }
        self.arm(key);
    }

    /// Makes sure that the slot's timer fires no later than the fetch in it needs.
    fn arm(&mut self, key: Key) {
        let open = self.fetches.get(key).expect("the caller's fetch is open");
        self.timers.arm(key.index(), open.due(&self.config));
    }

    fn start_handshake(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        match self.tls.open(open.url().host_bare()) {
            Ok(tls) => {
                open.start_handshake(&self.config, now);
                let conn = open.conn();
                self.conns.get(conn).secure(TlsConn::new(tls));
                self.send_tls(conn, out);
            }
            // A name that no certificate can be for.
            Err(_) => self.finish(fetch, ResultCode::TlsFailed, now, out),
        }
    }

    /// Sends what TLS has to send, if the kernel has no send of this connection.
    fn send_tls(&mut self, conn: Key, out: &mut Vec<Action>) {
        if let Some(tls) = self.conns.get(conn).tls()
            && let Some(ask) = tls.next_send(conn, &mut self.buffers)
        {
            out.push(Action::Net(ask));
        }
    }

    fn send_request(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        if open.is_too_late(now) {
            return self.finish_unsent(fetch, now, out);
        }
        let mut bytes = self.buffers.request();
        open.start_request(&mut self.policy, &self.config, &mut bytes, now);
        let conn = open.conn();
        let ask = self.conns.get(conn).request(conn, bytes, &mut self.buffers);
        out.extend(ask.map(Action::Net));
    }

    /// Ends a fetch whose connection stands too late: nothing is sent over it.
    fn finish_unsent(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        self.finish(fetch, ResultCode::TotalTimeout, now, out);
        if let Some(Action::Finished(fetched)) = out.last_mut() {
            fetched.retry = Some(Retry::TooLate);
        }
    }

    /// Ends a fetch: its connection is kept or closed, and the result goes out.
    fn finish(&mut self, fetch: Key, end: impl Into<FetchEnd>, now: Now, out: &mut Vec<Action>) {
        let FetchEnd { result, reusable, trailed } = end.into();
        let fetch = self.fetches.remove(fetch).expect("a fetch finishes once");
        let (held, asked, head_only) = (fetch.held(), fetch.asked(), fetch.head_only());
        let is_robots = fetch.is_robots();
        let conn = self.conns.get(fetch.conn());
        let stale = conn.is_reused() && fetch.went_unanswered(result);
        let cert_fault = conn.cert_fault();
        self.stats.connections[2] += u64::from(stale);
        self.stats.connections[3] += u64::from(result.is_unconnected());
        self.stats.handshakes[2] += u64::from(result == ResultCode::TlsFailed);
        if reusable && conn.is_sent() {
            self.conns.keep(fetch.conn(), now.plus_us(self.config.limits.idle_us));
        } else if stale {
            self.conns.close_route(fetch.conn(), out);
        } else {
            self.conns.close(fetch.conn(), out);
        }
        if trailed && asked.method == Method::Head {
            self.policy.refuses_head(fetch.url());
        }
        let mut fetched = self.buffers.boxed(fetch.into_fetched(result, now));
        fetched.flags.insert(cert_fault.map_or(Flags::NONE, flag_of));
        fetched.retry = stale.then_some(Retry::StaleConnection);
        if let Some(head) = &fetched.head {
            let now_unix_s = self.config.wall.unix_ms(now) / 1_000;
            if self.policy.learn(&fetched.url, asked, head, &fetched.bytes, now_unix_s) {
                fetched.retry = Some(Retry::NewRequest);
            }
            if head_only {
                let by_get = asked.method == Method::Get;
                // The first byte of a document that has none.
                if by_get && head.status == 416 {
                    fetched.result = ResultCode::Ok;
                }
                fetched.flags.insert(if by_get { Flags::HEAD_BY_GET } else { Flags::HEAD_ONLY });
                fetched.bytes.truncate(fetched.head_len());
            } else if head.status == 206 {
                fetched.flags.insert(Flags::PARTIAL);
            }
            self.decoder.decode(&mut fetched, is_robots, &mut self.buffers);
        } else {
            fetched.bytes.clear();
        }
        self.buffers.resized(held, fetched.bytes.len());
        out.push(Action::Finished(fetched));
    }
}

/// The flag that a bad certificate leaves on the record.
fn flag_of(fault: CertFault) -> Flags {
    match fault {
        CertFault::Expired => Flags::CERT_EXPIRED,
        CertFault::UnknownIssuer => Flags::CERT_UNKNOWN_ISSUER,
        CertFault::WrongName => Flags::CERT_WRONG_NAME,
        CertFault::Other => Flags::CERT_BAD,
    }
}
