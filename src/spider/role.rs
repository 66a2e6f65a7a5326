use super::budget::{BodyBudget, Held};
use super::conn::{Conn, ConnState, IdlePool, route};
use super::fetch::{Fetch, FetchOrder, FetchState, Fetched, Rate};
use super::manners::{Asked, Manners};
use super::reading::complete;
use crate::base::{AddressGuard, Key, NetAsk, NetError, NetEvent, Now, Slots, TimerWheel, Transport, Wall};
use crate::proto::auth::Sites;
use crate::proto::coding::ContentDecoder;
use crate::proto::http1::{BodyEnd, BodyLimits, Flags, HeadLimits, Method};
use crate::proto::lines::TransId;
use crate::proto::record::ResultCode;
use crate::proto::tls::{TlsClient, TlsSettings};
use crate::proto::url::{CrawlUrl, Scheme};
use std::net::SocketAddr;
use std::sync::Arc;

/// The settings this role needs, as built.
#[derive(Clone)]
pub struct SpiderConfig {
    pub user_agent: String,
    /// WORKING is said this often while a fetch is open.
    pub working_us: u64,
    /// A fetch may take this long in all.
    pub total_us: u64,
    /// For the connection, and again for the TLS handshake.
    pub connect_us: u64,
    /// From the request to the first byte of the answer.
    pub first_byte_us: u64,
    /// The same, where there is another address to try.
    pub fallback_us: u64,
    /// Between two signs of life of a server.
    pub read_us: u64,
    /// Once it sends, this much has to come on average; 0 for no such rule.
    pub rate_bytes_per_s: u64,
    /// A connection is kept this long without use.
    pub idle_us: u64,
    pub head: HeadLimits,
    pub body: BodyLimits,
    /// Connections, busy and idle together.
    pub conns_max: usize,
    pub guard: AddressGuard,
    pub tls: Arc<TlsSettings>,
    pub sites: Arc<Sites>,
    pub cookies: bool,
    pub budget: Arc<BodyBudget>,
    pub wall: Wall,
}

/// What the spider wants done.
#[derive(Debug)]
pub enum Action {
    Net(NetAsk),
    /// The request is with the kernel.
    Sent(TransId),
    /// The fetch needs more time.
    Working(TransId),
    Finished(Box<Fetched>),
}

/// See the folder's docs.
pub struct Spider {
    pub(super) config: SpiderConfig,
    pub(super) fetches: Slots<Fetch>,
    pub(super) conns: Slots<Conn>,
    pub(super) idle: IdlePool,
    pub(super) closing: usize,
    /// One timer per fetch slot, not per fetch: it fires, looks at who is in the slot, and is set again.
    wheel: TimerWheel<u32>,
    /// When the timer of a slot fires; `NEVER` if there is none.
    armed: Vec<Now>,
    due: Vec<u32>,
    /// Buffers for requests and for documents, to be used again.
    pub(super) requests: Vec<Vec<u8>>,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) tls: TlsClient,
    /// What TLS let out of its last bytes.
    plain: Vec<u8>,
    pub(super) manners: Manners,
    pub(super) held: Held,
    pub(super) decoder: ContentDecoder,
}

/// Buffers kept for reuse, and how large a document buffer may be to be kept.
const BUFFERS_KEPT: usize = 64;
const BODY_BYTES_KEPT: usize = 256 * 1024;

impl Spider {
    /// The settings of TLS must have been found good: a spider without it would be of half the use.
    pub fn new(config: SpiderConfig, now: Now) -> Spider {
        let seed = config.wall.unix_ms_at_zero ^ now.us().rotate_left(32);
        Spider {
            tls: TlsClient::new(&config.tls).expect("the settings of TLS were checked at start"),
            plain: Vec::new(),
            manners: Manners::new(config.sites.clone(), config.cookies, seed),
            held: Held::new(config.budget.clone()),
            decoder: ContentDecoder::new(),
            fetches: Slots::new(config.conns_max),
            conns: Slots::new(config.conns_max),
            idle: IdlePool::default(),
            closing: 0,
            wheel: TimerWheel::new(now),
            armed: Vec::new(),
            due: Vec::new(),
            requests: Vec::new(),
            bodies: Vec::new(),
            config,
        }
    }

    /// Open fetches.
    pub fn open(&self) -> usize {
        self.fetches.len()
    }

    /// No order can be taken before a connection was let go, which the network will tell.
    pub fn is_full(&self) -> bool {
        self.conns.is_full()
    }

    /// No order is taken before documents that are on their way, here or at another spider, have gone theirs.
    pub fn is_out_of_memory(&self) -> bool {
        self.held.is_used_up()
    }

    /// Connections: busy, idle and being let go.
    pub fn conns(&self) -> usize {
        self.conns.len()
    }

    /// Whether another order can be taken. When only idle connections stand in the way, the oldest is let go.
    pub fn has_room(&mut self, out: &mut Vec<Action>) -> bool {
        if self.held.is_used_up() {
            return false;
        }
        if !self.conns.is_full() {
            return true;
        }
        if self.closing == 0 {
            while let Some(key) = self.idle.pop_oldest() {
                match self.conns.get_mut(key) {
                    Some(Conn { state: ConnState::Idle { .. }, .. }) => {
                        self.close(key, out);
                        break;
                    }
                    // At work again: it is noted anew when it falls idle.
                    Some(conn) => conn.aged = false,
                    None => {}
                }
            }
        }
        false
    }

    /// The same for an order that is known: a connection that is kept for its host is room enough, and is not let go
    /// to make some.
    pub fn has_room_for(&mut self, url: &CrawlUrl, addr: SocketAddr, out: &mut Vec<Action>) -> bool {
        !self.held.is_used_up() && self.idle.leads_to(route(url.origin(), addr)) || self.has_room(out)
    }

    /// Starts a fetch. There must be room.
    pub fn take(&mut self, order: FetchOrder, now: Now, out: &mut Vec<Action>) {
        if self.config.guard.check(order.addr.ip(), order.addr.port()).is_err() {
            out.push(Action::Finished(Box::new(unasked(order, ResultCode::BlockedAddress, now))));
            return;
        }
        let route = route(order.url.origin(), order.addr);
        let reused = self.idle.take(route);
        let conn = reused.unwrap_or_else(|| {
            // Given to the fetch below, which needs the key first.
            let state = ConnState::Idle { until: now };
            let conn = Conn { state, route, reused: false, sent: false, aged: false, secure: None };
            self.conns.insert(conn).expect("there is room")
        });
        let fetch = Fetch {
            trans: order.trans,
            url: order.url,
            addr: order.addr,
            conn,
            state: FetchState::Connect,
            asked: Asked { method: Method::Get, authorized: false },
            head_only: order.head_only,
            validators: order.validators,
            flags: Flags::NONE,
            bytes: self.bodies.pop().unwrap_or_default(),
            started: now,
            state_by: now.plus_us(if order.more { self.config.fallback_us } else { self.config.connect_us }),
            working_at: now.plus_us(self.config.working_us),
            rate: Rate::NOT_YET,
        };
        let key = self.fetches.insert(fetch).expect("there are as many fetches as connections");
        let slot = self.conns.get_mut(conn).expect("just found or made");
        slot.state = ConnState::Busy { fetch: key };
        slot.sent = false;
        if reused.is_some() {
            slot.reused = true;
            self.send_request(key, now, out);
        } else {
            let addr = self.fetches.get(key).expect("just inserted").addr;
            out.push(Action::Net(NetAsk::Connect { conn, addr, transport: Transport::Tcp }));
        }
        self.arm(key);
    }

    /// Takes a network event. Every transition of a fetch is in the match of `step_fetch`.
    pub fn step(&mut self, conn: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the driver speaks of connections that were asked for");
        match (slot.state, event) {
            (ConnState::Closing, NetEvent::Closed) => {
                self.closing -= 1;
                self.conns.remove(conn);
            }
            // What comes after we let go is of no interest.
            (ConnState::Closing, _) => {}
            (ConnState::Idle { .. }, event) => self.step_idle(conn, event, out),
            (ConnState::Busy { fetch }, NetEvent::Received(bytes)) if slot.secure.is_some() => {
                self.step_secure(conn, fetch, bytes, now, out);
            }
            (ConnState::Busy { fetch }, event) => self.step_fetch(conn, fetch, event, now, out),
        }
    }

    /// The server closed a connection that was kept, or spoke out of turn; TLS may do so about its keys.
    fn step_idle(&mut self, conn: Key, event: NetEvent<'_>, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the caller's connection is open");
        match (&mut slot.secure, event) {
            (Some(secure), NetEvent::Received(bytes)) => {
                self.plain.clear();
                let sound = secure.receive(bytes, &mut self.plain).is_ok() && !secure.peer_closed();
                if sound && self.plain.is_empty() {
                    self.send_secure(conn, out);
                    return;
                }
            }
            (Some(secure), NetEvent::Sent(buffer)) => {
                secure.sent();
                keep(&mut self.requests, buffer, usize::MAX);
                self.send_secure(conn, out);
                return;
            }
            _ => {}
        }
        self.close(conn, out);
    }

    /// Bytes of the wire, under TLS.
    fn step_secure(&mut self, conn: Key, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the caller's connection is open");
        let secure = slot.secure.as_mut().expect("the caller looked");
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let received = secure.receive(bytes, &mut plain);
        let (handshaking, closed) = (secure.is_handshaking(), secure.peer_closed());
        let open = self.fetches.get_mut(fetch).expect("a busy connection has its fetch");
        match open.state {
            FetchState::Handshake if received.is_err() || closed => {
                self.send_secure(conn, out);
                self.finish(fetch, ResultCode::TlsFailed, false, now, out);
            }
            FetchState::Handshake if !handshaking => self.send_request(fetch, now, out),
            _ => self.send_secure(conn, out),
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
        } else if let Some(Conn { state: ConnState::Idle { .. }, .. }) = self.conns.get(conn)
            && (received.is_err() || closed)
        {
            self.close(conn, out);
        }
    }

    fn step_fetch(&mut self, conn: Key, fetch: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the caller's connection is open");
        let open = self.fetches.get_mut(fetch).expect("a busy connection has its fetch");
        match (&mut open.state, event) {
            (FetchState::Connect, NetEvent::Connected) if open.url.scheme() == Scheme::Https => {
                self.start_handshake(fetch, now, out);
            }
            (FetchState::Connect, NetEvent::Connected) => self.send_request(fetch, now, out),
            (_, NetEvent::Sent(buffer)) => {
                keep(&mut self.requests, buffer, usize::MAX);
                if slot.secure.as_mut().is_none_or(|secure| secure.sent()) {
                    slot.sent = true;
                    out.push(Action::Sent(open.trans));
                }
                self.send_secure(conn, out);
            }
            (FetchState::Await { .. }, NetEvent::Received(bytes)) => {
                open.state_by = now.plus_us(self.config.read_us);
                open.rate.received(bytes.len(), now);
                self.receive_head(fetch, bytes, now, out);
            }
            (FetchState::Body { .. }, NetEvent::Received(bytes)) => {
                open.state_by = now.plus_us(self.config.read_us);
                open.rate.received(bytes.len(), now);
                self.receive_body(fetch, bytes, now, out);
            }
            (FetchState::Connect, NetEvent::Failed(error)) => {
                let result = match error {
                    NetError::Refused => ResultCode::ConnectRefused,
                    NetError::TimedOut => ResultCode::ConnectTimeout,
                    NetError::Reset | NetError::Unreachable | NetError::Exhausted | NetError::Other(_) => {
                        ResultCode::ConnectFailed
                    }
                };
                self.finish(fetch, result, false, now, out);
            }
            (FetchState::Handshake, NetEvent::Ended | NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::TlsFailed, false, now, out);
            }
            (FetchState::Await { .. }, NetEvent::Ended) => {
                let result = if open.bytes.is_empty() { ResultCode::Empty } else { ResultCode::Malformed };
                self.finish(fetch, result, false, now, out);
            }
            (FetchState::Await { .. }, NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::Reset, false, now, out)
            }
            (FetchState::Body { head, decoder }, NetEvent::Ended) => {
                let result = match decoder.end() {
                    BodyEnd::Complete => complete(head.status),
                    BodyEnd::Truncated => ResultCode::Truncated,
                };
                if slot.secure.as_ref().is_some_and(|secure| !secure.peer_closed()) {
                    open.flags.insert(Flags::NO_CLOSE_NOTIFY);
                }
                self.finish(fetch, result, false, now, out);
            }
            (FetchState::Body { .. }, NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::Truncated, false, now, out);
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
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now, |slot| due.push(slot));
        for slot in due.drain(..) {
            if self.armed[slot as usize] <= now {
                self.armed[slot as usize] = Now::NEVER;
            }
            if let Some(key) = self.fetches.key_at(slot as usize) {
                self.check_times(key, now, out);
            }
        }
        self.due = due;
        while self.idle.oldest().is_some_and(|(until, _)| until <= now) {
            let Some(key) = self.idle.pop_oldest() else { break };
            let Some(conn) = self.conns.get_mut(key) else {
                continue;
            };
            match conn.state {
                ConnState::Idle { until } if until <= now => self.close(key, out),
                ConnState::Idle { until } => self.idle.age(key, until),
                ConnState::Busy { .. } | ConnState::Closing => conn.aged = false,
            }
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        [self.wheel.next_due(), self.idle.oldest().map(|(until, _)| until)].into_iter().flatten().min()
    }

    /// Ends every open fetch as out of time.
    pub fn abandon(&mut self, now: Now, out: &mut Vec<Action>) {
        let open: Vec<Key> = self.fetches.iter().map(|(key, _)| key).collect();
        for key in open {
            self.finish(key, ResultCode::TotalTimeout, false, now, out);
        }
    }

    /// Takes the bytes of a finished fetch back, for another one. Until then they count as held.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.held.resized(bytes.len(), 0);
        self.keep_body(bytes);
    }

    pub(super) fn keep_body(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        keep(&mut self.bodies, bytes, BODY_BYTES_KEPT);
    }

    /// A timer of this fetch's slot fired.
    fn check_times(&mut self, key: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(key).expect("the caller found it");
        if open.started.plus_us(self.config.total_us) <= now {
            self.finish(key, ResultCode::TotalTimeout, false, now, out);
            return;
        }
        if open.state_by <= now {
            let result = match open.state {
                FetchState::Connect | FetchState::Handshake => ResultCode::ConnectTimeout,
                FetchState::Await { .. } | FetchState::Body { .. } => ResultCode::ReadTimeout,
            };
            self.finish(key, result, false, now, out);
            return;
        }
        if open.rate.look_at <= now && !open.rate.is_enough(self.config.rate_bytes_per_s, now) {
            self.finish(key, ResultCode::TooSlow, false, now, out);
            return;
        }
        if open.working_at <= now {
            open.working_at = now.plus_us(self.config.working_us);
            out.push(Action::Working(open.trans));
        }
        self.arm(key);
    }

    /// Sees to it that the slot's timer fires no later than the fetch in it needs.
    fn arm(&mut self, key: Key) {
        let open = self.fetches.get(key).expect("the caller's fetch is open");
        let due = open.due(self.config.total_us);
        if self.armed.len() <= key.index() {
            self.armed.resize(key.index() + 1, Now::NEVER);
        }
        if due < self.armed[key.index()] {
            self.armed[key.index()] = due;
            self.wheel.insert(due, key.index() as u32);
        }
    }
}

/// An order that nobody was asked about.
fn unasked(order: FetchOrder, result: ResultCode, now: Now) -> Fetched {
    Fetched {
        trans: order.trans,
        url: order.url,
        addr: order.addr,
        result,
        head: None,
        bytes: Vec::new(),
        flags: Flags::default(),
        started: now,
        took_us: 0,
        again: None,
    }
}

pub(super) fn keep(pool: &mut Vec<Vec<u8>>, buffer: Vec<u8>, bytes_max: usize) {
    if pool.len() < BUFFERS_KEPT && buffer.capacity() <= bytes_max && buffer.capacity() > 0 {
        pool.push(buffer);
    }
}
