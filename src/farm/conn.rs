//! One connection: bytes in, answers out.
//!
//! ```text
//!             answered at once
//!                ┌───┐
//!                │   ▼
//!   accepted ──→ Head ── delay ──→ Wait
//!                 │  ▲               │
//!                 │  └──── timer ────┘
//!                 │
//!                 ├── window full ──→ Send ── all sent ──→ Head
//!                 │
//!                 ├── closing with bytes unread ──→ Drain ──→ closed
//!                 │
//!                 └── a host that keeps its peers waiting ──→ Linger
//! ```
//!
//! Readiness is edge-triggered: it is reported once and must be remembered until a read or write finds nothing
//! left to do. While an answer waits or is being sent nothing is read, so a connection holds at most one
//! buffer of pipelined requests.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mio::net::TcpStream;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

use super::answer::{Asked, Resource, Then, push_json, push_refusal};
use super::farm_stats::{Counters, FarmStats};
use super::framing::{Packer, takes_gzip};
use super::misbehaviour::Linger;
use super::newsroom::FeedQuestion;
use super::request::{self, HEAD_BYTES_MAX, Head, Request, field};
use super::site::Site;
use super::tls::TlsSide;

/// What one read may bring.
const INPUT_BYTES: usize = 32 << 10;
/// Answers to one connection in a row before the others get their turn.
const ANSWERS_PER_TURN: u32 = 64;
/// How long, and how many bytes, a closing connection listens before it is cut.
const DRAIN_MS: u32 = 1000;
const DRAIN_BYTES_MAX: usize = 1 << 20;

// Whatever is no whole head yet leaves room to read on.
const _: () = assert!(INPUT_BYTES > HEAD_BYTES_MAX);

pub(super) struct Conn {
    stream: TcpStream,
    /// Between the socket and requests, where the farm speaks TLS.
    tls: Option<Box<TlsSide>>,
    /// From the address the peer connected to; none, if no host of the farm lives there.
    host: Option<u32>,
    state: State,
    /// Bytes read and not used yet. An idle connection holds no memory here.
    stash: Vec<u8>,
    /// Reading may bring something.
    readable: bool,
    /// The peer has sent its last byte: it stays readable until the end is read.
    hung_up: bool,
    /// It has had an answer, and was kept for the next one.
    kept: bool,
}

enum State {
    /// Between requests, or within a head.
    Head,
    /// A whole head stands at the front of the stash; it is answered when the timer fires.
    Wait,
    /// Bytes `sent..` of an answer, as they go over the wire, still to go.
    Send { answer: Vec<u8>, sent: usize, then: Then },
    /// Our side is shut. What the peer still sends is thrown away, up to `left` bytes, until it closes or the
    /// timer fires.
    Drain { left: usize },
    /// The answer has no end. What the peer still sends is thrown away until it closes.
    Linger(Linger),
}

/// What an event said about a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readiness {
    pub(super) readable: bool,
    pub(super) hung_up: bool,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Readable,
    Writable,
    Timer { delay_ms: u32 },
    Close,
    Reset,
}

/// Composes the answers of one thread: the site, and the buffers that its connections share.
pub(super) struct Responder {
    site: Arc<Site>,
    port: u16,
    counters: Arc<[Counters]>,
    thread: usize,
    input: Box<[u8]>,
    output: Vec<u8>,
    packer: Packer,
}

/// How far an answer got.
enum Sent {
    All,
    Part(usize),
    Failed,
}

impl Conn {
    pub(super) fn new(stream: TcpStream, host: Option<u32>, tls: Option<Box<TlsSide>>) -> Conn {
        Conn {
            stream,
            tls,
            host,
            state: State::Head,
            stash: Vec::new(),
            readable: false,
            hung_up: false,
            kept: false,
        }
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Whether it waits for a further request, so that a peer loses nothing by its end but the connection.
    pub(super) fn is_idle(&self) -> bool {
        self.kept && matches!(self.state, State::Head) && self.stash.is_empty()
    }

    pub(super) fn on_ready(&mut self, ready: Readiness, responder: &mut Responder) -> Next {
        self.readable |= ready.readable | ready.hung_up;
        self.hung_up |= ready.hung_up;
        match self.state {
            State::Head => self.serve(responder, false),
            State::Wait => Next::Readable,
            State::Send { .. } => self.resume(responder),
            State::Drain { .. } => self.drain(responder),
            State::Linger(_) => self.hear_out(responder),
        }
    }

    pub(super) fn on_timer(&mut self, responder: &mut Responder) -> Next {
        match self.state {
            State::Wait => self.serve(responder, true),
            State::Drain { .. } => Next::Close,
            State::Linger(_) => self.linger(responder),
            State::Head | State::Send { .. } => unreachable!("a timer outlived its state"),
        }
    }

    /// Makes the close that follows a reset.
    pub(super) fn arm_reset(&self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // The peer may have gone already; then there is nothing left to reset.
        let _ = setsockopt(&self.stream, sockopt::Linger, &linger);
    }

    /// Answers every whole head that has come, one after the other. `due` says that the first one's delay has
    /// passed.
    fn serve(&mut self, responder: &mut Responder, mut due: bool) -> Next {
        self.state = State::Head;
        let mut answers = 0;
        let mut start = 0;
        let mut end = self.stash.len();
        if end > 0 {
            responder.input[..end].copy_from_slice(&self.stash);
            self.stash = Vec::new();
        }
        loop {
            // start <= end <= INPUT_BYTES
            let then = match request::parse(&responder.input[start..end]) {
                Head::NeedMore => {
                    responder.input.copy_within(start..end, 0);
                    end -= start;
                    start = 0;
                    if !self.readable {
                        self.stash.extend_from_slice(&responder.input[..end]);
                        return Next::Readable;
                    }
                    match self.read(&mut responder.input[end..]) {
                        Ok(0) => return Next::Close,
                        Ok(bytes) => end += bytes,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return Next::Close,
                    }
                    continue;
                }
                Head::Request(request) => {
                    let head = start..start + request.bytes;
                    if let Some(linger) = responder.linger(self.host, head.start, &request) {
                        responder.counters().requests.add(1);
                        self.state = State::Linger(linger);
                        return linger.pause_ms().map_or(Next::Readable, |delay_ms| Next::Timer { delay_ms });
                    }
                    let delay_ms = if due { 0 } else { responder.delay_ms(self.host, head.start, &request) };
                    if delay_ms > 0 || answers == ANSWERS_PER_TURN {
                        self.stash.extend_from_slice(&responder.input[start..end]);
                        self.state = State::Wait;
                        return Next::Timer { delay_ms };
                    }
                    due = false;
                    answers += 1;
                    start = head.end;
                    responder.answer(self.host, head.start, &request)
                }
                Head::Refused(status) => {
                    responder.refuse(status);
                    // Its body may follow, and its end is not known.
                    start = end;
                    self.readable = true;
                    Then::Close
                }
            };
            if let Some(tls) = &mut self.tls {
                tls.seal(&mut responder.output, then == Then::Close);
            }
            match self.send(&responder.output, responder.counters()) {
                Sent::All => match then {
                    Then::KeepAlive => self.kept = true,
                    Then::Close => return self.close(responder),
                    Then::Reset => return Next::Reset,
                },
                Sent::Part(sent) => {
                    self.stash.extend_from_slice(&responder.input[start..end]);
                    self.state = State::Send { answer: responder.output[sent..].to_vec(), sent: 0, then };
                    return Next::Writable;
                }
                Sent::Failed => return Next::Close,
            }
        }
    }

    /// Continues an answer that the peer's window had no room for.
    fn resume(&mut self, responder: &mut Responder) -> Next {
        let State::Send { answer, sent, then } = std::mem::replace(&mut self.state, State::Head) else {
            unreachable!("only an answer under way is resumed");
        };
        match (self.send(&answer[sent..], responder.counters()), then) {
            (Sent::All, Then::KeepAlive) => {
                self.kept = true;
                self.serve(responder, false)
            }
            (Sent::All, Then::Close) => self.close(responder),
            (Sent::All, Then::Reset) => Next::Reset,
            (Sent::Part(more), _) => {
                self.state = State::Send { answer, sent: sent + more, then };
                Next::Writable
            }
            (Sent::Failed, _) => Next::Close,
        }
    }

    /// Closes after an answer. To close with bytes unread is to reset, and could take the answer with it:
    /// then the peer is heard out first.
    fn close(&mut self, responder: &mut Responder) -> Next {
        if !self.readable || self.stream.shutdown(Shutdown::Write).is_err() {
            return Next::Close;
        }
        self.state = State::Drain { left: DRAIN_BYTES_MAX };
        match self.drain(responder) {
            Next::Readable => Next::Timer { delay_ms: DRAIN_MS },
            next => next,
        }
    }

    fn drain(&mut self, responder: &mut Responder) -> Next {
        while self.readable {
            let read = self.read_wire(&mut responder.input);
            let State::Drain { left } = &mut self.state else {
                unreachable!("only a closing connection is drained");
            };
            match read {
                Ok(bytes) if bytes > 0 && bytes < *left => *left -= bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Next::Close,
            }
        }
        Next::Readable
    }

    /// Whether the peer of an answer without an end is still there.
    fn hear_out(&mut self, responder: &mut Responder) -> Next {
        while self.readable {
            match self.read(&mut responder.input) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Next::Close,
            }
        }
        Next::Readable
    }

    /// Continues an answer that has no end. What the peer's window has no room for is left out.
    fn linger(&mut self, responder: &mut Responder) -> Next {
        let State::Linger(linger) = &mut self.state else {
            unreachable!("only an answer without an end is continued");
        };
        responder.output.clear();
        linger.push(&mut responder.output);
        let pause_ms = linger.pause_ms();
        match (self.send(&responder.output, responder.counters()), pause_ms) {
            (Sent::Failed, _) => Next::Close,
            (_, Some(delay_ms)) => Next::Timer { delay_ms },
            (_, None) => Next::Readable,
        }
    }

    /// Bytes of requests.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.read_wire(room);
        };
        loop {
            match tls.read(&mut self.stream, room) {
                Ok(opened) => {
                    self.readable = opened.more || self.hung_up;
                    return Ok(opened.bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing in the socket; its end, after the peer's last byte, is read at once.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.hung_up => {
                    self.hung_up = false
                }
                Err(error) => {
                    self.readable = false;
                    return Err(error);
                }
            }
        }
    }

    /// One read. Fewer bytes than there is room for are all there were, and the next ones raise an event
    /// again; after the peer's last byte no event follows, so its end is read at once.
    fn read_wire(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(room) {
                Ok(bytes) => {
                    self.readable = bytes == room.len() || self.hung_up;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.readable = false;
                    return Err(error);
                }
            }
        }
    }

    fn send(&mut self, answer: &[u8], counters: &Counters) -> Sent {
        let mut sent = 0;
        while sent < answer.len() {
            match self.stream.write(&answer[sent..]) {
                Ok(bytes) => {
                    counters.bytes.add(bytes as u64);
                    sent += bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sent::Part(sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The peer has closed or reset the connection.
                Err(_) => return Sent::Failed,
            }
        }
        Sent::All
    }
}

impl Responder {
    /// `thread` is the place of this thread's counters among those of the farm.
    pub(super) fn new(site: Arc<Site>, port: u16, counters: Arc<[Counters]>, thread: usize) -> Responder {
        assert!(thread < counters.len());
        let input = vec![0; INPUT_BYTES].into_boxed_slice();
        Responder { site, port, counters, thread, input, output: Vec::new(), packer: Packer::default() }
    }

    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters[self.thread]
    }

    fn delay_ms(&self, host: Option<u32>, start: usize, request: &Request) -> u32 {
        let target = &self.input[start..][request.target.clone()];
        match host {
            Some(host) if !is_stats(target) => self.site.delay_ms(host, self.site.resource(target)),
            _ => 0,
        }
    }

    /// How the host keeps the peer waiting, if it does.
    fn linger(&self, host: Option<u32>, start: usize, request: &Request) -> Option<Linger> {
        let target = &self.input[start..][request.target.clone()];
        let resource = self.site.resource(target);
        if is_stats(target) { None } else { self.site.misbehaviour(host?, resource)?.linger() }
    }

    /// Composes the answer to the request whose head starts at `start` of the input.
    fn answer(&mut self, host: Option<u32>, start: usize, request: &Request) -> Then {
        let target = &self.input[start..][request.target.clone()];
        self.output.clear();
        let then = if is_stats(target) {
            push_json(&FarmStats::sum(&self.counters).to_string(), request.head_only, &mut self.output);
            Then::KeepAlive
        } else if let Some(host) = host {
            // Counted before the answer leaves: who has read it finds it counted.
            let counters = &self.counters[self.thread];
            counters.requests.add(1);
            match self.site.resource(target) {
                Resource::Robots => counters.robots_requests.add(1),
                Resource::Denied(_) => counters.denied_requests.add(1),
                _ => {}
            }
            let resource = self.site.resource(target);
            match resource {
                Resource::Feed(_) | Resource::Story(_) => self.answer_news(host, resource, start, request),
                _ => {
                    let head = &self.input[start..][..request.bytes];
                    let takes = self.site.spec().gzip > 0.0 && takes_gzip(field(head, b"accept-encoding"));
                    let packer = takes.then_some(&mut self.packer);
                    let (port, head_only) = (self.port, request.head_only);
                    let asked = Asked { host, target, port, head_only, packer };
                    self.site.answer_asked(asked, &mut self.output).then
                }
            }
        } else {
            self.refuse(421);
            Then::Close
        };
        if then == Then::KeepAlive && request.close { Then::Close } else { then }
    }

    /// Composes the answer for a feed or a story as they are now.
    fn answer_news(&mut self, host: u32, resource: Resource, start: usize, request: &Request) -> Then {
        let head = &self.input[start..][..request.bytes];
        let question = FeedQuestion {
            host,
            port: self.port,
            head_only: request.head_only,
            unix_ms: unix_ms(),
            if_none_match: field(head, b"if-none-match"),
            if_modified_since: field(head, b"if-modified-since"),
        };
        let answer = match resource {
            Resource::Feed(number) => match self.site.feed_at(host, number) {
                Some(feed) => self.site.answer_feed(feed, &question, &mut self.output),
                None => return self.site.push_status(404, request.head_only, &mut self.output),
            },
            Resource::Story(story) => self.site.answer_story(story, &question, &mut self.output),
            _ => unreachable!("pages are told without a clock"),
        };
        answer.then
    }

    fn refuse(&mut self, status: u16) {
        self.counters().requests.add(1);
        self.output.clear();
        push_refusal(status, &mut self.output);
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn is_stats(target: &[u8]) -> bool {
    target == b"/farm-stats"
}
