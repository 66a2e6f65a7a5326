use super::conn::{Conn, ConnState, IdlePool, route};
use super::fetch::{Fetch, FetchOrder, FetchState, Fetched};
use super::request::write_request;
use crate::base::{AddressGuard, Key, NetAsk, NetError, NetEvent, Now, Slots, TimerWheel, Transport};
use crate::proto::http1::{
    BodyDecoder, BodyEnd, BodyLimits, BodyStep, Flags, HeadLimits, HeadParser, HeadStep, Method,
};
use crate::proto::lines::TransId;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::SocketAddr;

/// The settings this role needs, as built.
#[derive(Clone, Debug)]
pub struct SpiderConfig {
    pub user_agent: String,
    /// WORKING is said this often while a fetch is open.
    pub working_us: u64,
    /// A fetch may take this long in all.
    pub total_us: u64,
    pub connect_us: u64,
    /// The same, where there is another address to try.
    pub fallback_us: u64,
    /// Between two signs of life of a server.
    pub read_us: u64,
    /// A connection is kept this long without use.
    pub idle_us: u64,
    pub head: HeadLimits,
    pub body: BodyLimits,
    /// Connections, busy and idle together.
    pub conns_max: usize,
    pub guard: AddressGuard,
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
    config: SpiderConfig,
    fetches: Slots<Fetch>,
    conns: Slots<Conn>,
    idle: IdlePool,
    closing: usize,
    /// One timer per fetch slot, not per fetch: it fires, looks at who is in the slot, and is set again.
    wheel: TimerWheel<u32>,
    /// When the timer of a slot fires; `NEVER` if there is none.
    armed: Vec<Now>,
    due: Vec<u32>,
    /// Buffers for requests and for documents, to be used again.
    requests: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
}

/// Buffers kept for reuse, and how large a document buffer may be to be kept.
const BUFFERS_KEPT: usize = 64;
const BODY_BYTES_KEPT: usize = 256 * 1024;
/// Room made at once for an announced document; a larger one grows as it comes.
const BODY_RESERVE_MAX: u64 = 1 << 20;

impl Spider {
    pub fn new(config: SpiderConfig, now: Now) -> Spider {
        Spider {
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

    /// Connections: busy, idle and being let go.
    pub fn conns(&self) -> usize {
        self.conns.len()
    }

    /// Whether another order can be taken. When only idle connections stand in the way, the oldest is let go.
    pub fn has_room(&mut self, out: &mut Vec<Action>) -> bool {
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
        self.idle.leads_to(route(url.origin(), addr)) || self.has_room(out)
    }

    /// Starts a fetch. There must be room.
    pub fn take(&mut self, order: FetchOrder, now: Now, out: &mut Vec<Action>) {
        if self.config.guard.check(order.addr.ip(), order.addr.port()).is_err() {
            let fetched = Fetched {
                trans: order.trans,
                url: order.url,
                addr: order.addr,
                result: ResultCode::BlockedAddress,
                head: None,
                bytes: Vec::new(),
                flags: Flags::default(),
                started: now,
                took_us: 0,
                stale: false,
            };
            out.push(Action::Finished(Box::new(fetched)));
            return;
        }
        let route = route(order.url.origin(), order.addr);
        let reused = self.idle.take(route);
        let conn = reused.unwrap_or_else(|| {
            // Given to the fetch below, which needs the key first.
            let state = ConnState::Idle { until: now };
            let conn = Conn { state, route, reused: false, sent: false, aged: false };
            self.conns.insert(conn).expect("there is room")
        });
        let fetch = Fetch {
            trans: order.trans,
            url: order.url,
            addr: order.addr,
            conn,
            state: FetchState::Connect,
            bytes: self.bodies.pop().unwrap_or_default(),
            started: now,
            state_by: now.plus_us(if order.more { self.config.fallback_us } else { self.config.connect_us }),
            working_at: now.plus_us(self.config.working_us),
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

    /// Takes a network event. Every transition of a fetch is in the match below.
    pub fn step(&mut self, conn: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the driver speaks of connections that were asked for");
        let fetch = match (slot.state, &event) {
            (ConnState::Closing, NetEvent::Closed) => {
                self.closing -= 1;
                self.conns.remove(conn);
                return;
            }
            // What comes after we let go is of no interest.
            (ConnState::Closing, _) => return,
            // The server closed a connection that was kept, or spoke out of turn.
            (ConnState::Idle { .. }, _) => {
                let route = slot.route;
                self.idle.remove(route, conn);
                self.close(conn, out);
                return;
            }
            (ConnState::Busy { fetch }, _) => fetch,
        };
        let open = self.fetches.get_mut(fetch).expect("a busy connection has its fetch");
        match (&mut open.state, event) {
            (FetchState::Connect, NetEvent::Connected) => self.send_request(fetch, now, out),
            (_, NetEvent::Sent(buffer)) => {
                slot.sent = true;
                out.push(Action::Sent(open.trans));
                keep(&mut self.requests, buffer, usize::MAX);
            }
            (FetchState::Await { .. }, NetEvent::Received(bytes)) => {
                open.state_by = now.plus_us(self.config.read_us);
                self.receive_head(fetch, bytes, now, out);
            }
            (FetchState::Body { .. }, NetEvent::Received(bytes)) => {
                open.state_by = now.plus_us(self.config.read_us);
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
                self.finish(fetch, result, false, now, out);
            }
            (FetchState::Body { .. }, NetEvent::Failed(_)) => {
                self.finish(fetch, ResultCode::Truncated, false, now, out);
            }
            // A peer that ends before the connection is reported as made will fail it, too.
            (FetchState::Connect, NetEvent::Ended) => {}
            (FetchState::Connect, NetEvent::Received(_))
            | (FetchState::Await { .. } | FetchState::Body { .. }, NetEvent::Connected)
            | (_, NetEvent::Closed) => unreachable!("the driver reports in order"),
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

    /// Takes a document buffer back for another fetch.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        keep(&mut self.bodies, bytes, BODY_BYTES_KEPT);
    }

    fn send_request(&mut self, fetch: Key, now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let mut bytes = self.requests.pop().unwrap_or_default();
        write_request(&mut bytes, &open.url, &self.config.user_agent);
        open.state = FetchState::Await { parser: HeadParser::new(self.config.head, Method::Get) };
        open.state_by = now.plus_us(self.config.read_us);
        out.push(Action::Net(NetAsk::Send { conn: open.conn, bytes }));
    }

    /// Head bytes: usually the whole head in one piece, straight from the receive buffer.
    fn receive_head(&mut self, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let FetchState::Await { parser } = &mut open.state else { unreachable!("the caller matched") };
        let split = !open.bytes.is_empty();
        if split {
            open.bytes.extend_from_slice(bytes);
        }
        let step = parser.parse(if split { &open.bytes } else { bytes });
        let head = match step {
            Ok(HeadStep::Done(head)) => head,
            Ok(HeadStep::NeedMore) => {
                if !split {
                    open.bytes.extend_from_slice(bytes);
                }
                return;
            }
            Err(_) => {
                open.bytes.clear();
                self.finish(fetch, ResultCode::Malformed, false, now, out);
                return;
            }
        };
        let head_bytes = head.head_bytes as usize;
        let decoder = BodyDecoder::new(head.framing, self.config.body);
        let expected = decoder.size_hint().unwrap_or(0).min(BODY_RESERVE_MAX) as usize;
        open.state = FetchState::Body { head, decoder };
        if split {
            let rest = open.bytes.split_off(head_bytes);
            open.bytes.reserve(expected);
            self.receive_body(fetch, &rest, now, out);
        } else {
            open.bytes.reserve(head_bytes + expected);
            open.bytes.extend_from_slice(&bytes[..head_bytes]);
            self.receive_body(fetch, &bytes[head_bytes..], now, out);
        }
    }

    fn receive_body(&mut self, fetch: Key, bytes: &[u8], now: Now, out: &mut Vec<Action>) {
        let open = self.fetches.get_mut(fetch).expect("the caller's fetch is open");
        let FetchState::Body { head, decoder } = &mut open.state else { unreachable!("the caller matched") };
        match decoder.push(bytes, &mut open.bytes) {
            Ok(BodyStep::NeedMore) => {}
            Ok(BodyStep::Done { consumed }) => {
                // Bytes after the response are never a next one: we asked for one only.
                let reusable = head.keep_alive && decoder.keep_alive() && consumed == bytes.len();
                let result = complete(head.status);
                self.finish(fetch, result, reusable, now, out);
            }
            Ok(BodyStep::TooLarge) => self.finish(fetch, ResultCode::TooLarge, false, now, out),
            Err(_) => self.finish(fetch, ResultCode::Malformed, false, now, out),
        }
    }

    /// Ends a fetch: its connection is kept or let go, and the result goes out.
    fn finish(&mut self, fetch: Key, result: ResultCode, reusable: bool, now: Now, out: &mut Vec<Action>) {
        let fetch = self.fetches.remove(fetch).expect("a fetch finishes once");
        let conn = self.conns.get_mut(fetch.conn).expect("an open fetch has its connection");
        // What is no response may be the rest of the one before, which came when the request was out already.
        let astray = result == ResultCode::Malformed && !matches!(fetch.state, FetchState::Body { .. });
        let died = matches!(result, ResultCode::Empty | ResultCode::Reset);
        let stale = conn.reused && (astray || died && fetch.bytes.is_empty());
        if reusable && conn.sent {
            let until = now.plus_us(self.config.idle_us);
            conn.state = ConnState::Idle { until };
            self.idle.put(conn.route, fetch.conn);
            if !std::mem::replace(&mut conn.aged, true) {
                self.idle.age(fetch.conn, until);
            }
        } else {
            let route = conn.route;
            self.close(fetch.conn, out);
            // Its siblings have been idle for as long: they are likely as dead.
            while let Some(sibling) = stale.then(|| self.idle.take(route)).flatten() {
                self.close(sibling, out);
            }
        }
        let (head, mut flags) = match fetch.state {
            FetchState::Body { head, decoder } => (Some(head), head.flags | decoder.flags()),
            FetchState::Connect | FetchState::Await { .. } => (None, Flags::default()),
        };
        if result == ResultCode::TooLarge {
            flags.insert(Flags::CUT);
        }
        let bytes = if head.is_some() { fetch.bytes } else { Vec::new() };
        out.push(Action::Finished(Box::new(Fetched {
            trans: fetch.trans,
            url: fetch.url,
            addr: fetch.addr,
            result,
            head,
            bytes,
            flags,
            started: fetch.started,
            took_us: now.since_us(fetch.started),
            stale,
        })));
    }

    fn close(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("closing an open connection");
        debug_assert_ne!(slot.state, ConnState::Closing, "closed once");
        if let ConnState::Idle { .. } = slot.state {
            let route = slot.route;
            self.idle.remove(route, conn);
        }
        self.conns.get_mut(conn).expect("still open").state = ConnState::Closing;
        self.closing += 1;
        out.push(Action::Net(NetAsk::Close { conn }));
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
                FetchState::Connect => ResultCode::ConnectTimeout,
                FetchState::Await { .. } | FetchState::Body { .. } => ResultCode::ReadTimeout,
            };
            self.finish(key, result, false, now, out);
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

/// What a whole response means by its status.
fn complete(status: u16) -> ResultCode {
    match status {
        200..=299 => ResultCode::Ok,
        304 => ResultCode::NotModified,
        301 | 302 | 303 | 307 | 308 => ResultCode::Redirect,
        _ => ResultCode::HttpError,
    }
}

fn keep(pool: &mut Vec<Vec<u8>>, buffer: Vec<u8>, bytes_max: usize) {
    if pool.len() < BUFFERS_KEPT && buffer.capacity() <= bytes_max && buffer.capacity() > 0 {
        pool.push(buffer);
    }
}
