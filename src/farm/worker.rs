//! One thread of the farm: accepts, turns readiness into calls of [`Conn`], and keeps the timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nix::libc;
use rustls::ServerConfig;

use crate::base::{Key, Slots};

use super::conn::{Conn, Next, Readiness, Responder};
use super::site_spec::host_index;
use super::tls::TlsSide;

const EVENTS: usize = 1024;
/// As many as a thread could have descriptors for.
const CONNS_MAX: usize = 1 << 24;
/// Connections accepted in a row before those that are open get their turn.
const ACCEPTS_PER_TURN: usize = 256;
/// Without descriptors or memory, accepting rests this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Idle connections that are closed to make room for others.
const LET_GO_PER_TURN: usize = 256;
const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

pub(super) struct Worker {
    poll: Poll,
    listener: TcpListener,
    accepting: Accepting,
    conns: Slots<Conn>,
    /// The slot from which on idle connections are closed next, so that none goes twice before all others did.
    let_go_from: usize,
    /// Earliest first. A connection that closes leaves its timer behind, which then finds no connection.
    timers: BinaryHeap<Reverse<(Instant, Token)>>,
    responder: Responder,
    /// Connections speak TLS, and this is how.
    tls: Option<Arc<ServerConfig>>,
    stop: Arc<AtomicBool>,
}

enum Accepting {
    /// Nothing in the backlog: an event will tell.
    Idle,
    /// There may be more in the backlog.
    Pending,
    /// Out of descriptors or memory; no event will tell when to go on.
    Paused { until: Instant },
}

impl Accepting {
    /// The backlog has grown; a pause continues all the same.
    fn wake(&mut self) {
        if let Accepting::Idle = self {
            *self = Accepting::Pending;
        }
    }
}

impl Worker {
    /// The waker makes the worker look at `stop`.
    pub(super) fn new(
        mut listener: TcpListener,
        responder: Responder,
        tls: Option<Arc<ServerConfig>>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<(Worker, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let worker = Worker {
            poll,
            listener,
            accepting: Accepting::Idle,
            conns: Slots::new(CONNS_MAX),
            let_go_from: 0,
            timers: BinaryHeap::new(),
            responder,
            tls,
            stop,
        };
        Ok((worker, waker))
    }

    /// Serves until told to stop; connections that are open then are closed.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stop.load(Ordering::Acquire) {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the farm's own epoll descriptor fails: {error}"),
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accepting.wake(),
                    WAKER => {}
                    token => self.ready(token, event),
                }
            }
            self.fire_timers();
            self.accept();
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let accept_at = match self.accepting {
            Accepting::Idle => None,
            Accepting::Pending => return Some(Duration::ZERO),
            Accepting::Paused { until } => Some(until),
        };
        let timer_at = self.timers.peek().map(|Reverse((at, _))| *at);
        let at = accept_at.into_iter().chain(timer_at).min()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    fn ready(&mut self, token: Token, event: &Event) {
        let Some(conn) = self.conns.get_mut(key_of(token)) else {
            return;
        };
        let next = if event.is_error() {
            Next::Close
        } else {
            let ready = Readiness { readable: event.is_readable(), hung_up: event.is_read_closed() };
            conn.on_ready(ready, &mut self.responder)
        };
        self.follow(token, next);
    }

    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(&Reverse((at, token))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            if let Some(conn) = self.conns.get_mut(key_of(token)) {
                let next = conn.on_timer(&mut self.responder);
                self.follow(token, next);
            }
        }
    }

    fn follow(&mut self, token: Token, next: Next) {
        match next {
            Next::Readable => {}
            Next::Writable => {
                // Set for good: while nothing is blocked, it raises no events of its own.
                let conn = self.conns.get_mut(key_of(token)).expect("it has just been served");
                let interest = Interest::READABLE | Interest::WRITABLE;
                if self.poll.registry().reregister(conn.stream(), token, interest).is_err() {
                    self.conns.remove(key_of(token));
                }
            }
            Next::Timer { delay_ms } => {
                let at = Instant::now() + Duration::from_millis(u64::from(delay_ms));
                self.timers.push(Reverse((at, token)));
            }
            Next::Close => drop(self.conns.remove(key_of(token))),
            Next::Reset => {
                let conn = self.conns.remove(key_of(token));
                conn.expect("it has just been served").arm_reset();
            }
        }
    }

    fn accept(&mut self) {
        match self.accepting {
            Accepting::Idle => return,
            Accepting::Paused { until } if until > Instant::now() => return,
            Accepting::Pending | Accepting::Paused { .. } => self.accepting = Accepting::Pending,
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) => match error.raw_os_error() {
                    // The backlog is empty.
                    Some(libc::EAGAIN) => {
                        self.accepting = Accepting::Idle;
                        return;
                    }
                    // A signal, or the peer gave up while it stood in the backlog.
                    Some(libc::EINTR | libc::ECONNABORTED) => {}
                    // Out of descriptors or memory, which closing connections give back.
                    _ if self.let_idle_go() => {}
                    _ => {
                        self.accepting = Accepting::Paused { until: Instant::now() + ACCEPT_PAUSE };
                        return;
                    }
                },
            }
        }
    }

    /// Closes connections that wait for a further request, as servers do that have no room. Says whether there were any.
    fn let_idle_go(&mut self) -> bool {
        let idle = self.conns.iter().filter(|(_, conn)| conn.is_idle());
        let idle: Vec<Key> = idle.map(|(key, _)| key).collect();
        let first = idle.partition_point(|key| key.index() < self.let_go_from);
        let (before, behind) = idle.split_at(first);
        for key in behind.iter().chain(before).take(LET_GO_PER_TURN) {
            self.conns.remove(*key);
            self.let_go_from = key.index() + 1;
        }
        !idle.is_empty()
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        // Where the listener could not be tied to the loopback device, this keeps the farm private.
        if !peer.ip().is_loopback() {
            return;
        }
        let host = match stream.local_addr() {
            Ok(SocketAddr::V4(addr)) => host_index(*addr.ip()),
            _ => None,
        };
        let hosts = self.responder.site().spec().all_hosts();
        let tls = match self.tls.as_ref().map(TlsSide::new).transpose() {
            Ok(tls) => tls.map(Box::new),
            Err(_) => return,
        };
        let conn = Conn::new(stream, host.filter(|&host| host < hosts), tls);
        let Some(key) = self.conns.insert(conn) else { return };
        self.responder.counters().connections.add(1);
        let conn = self.conns.get_mut(key).expect("it has just been inserted");
        if self.poll.registry().register(conn.stream(), token_of(key), Interest::READABLE).is_err() {
            self.conns.remove(key);
        }
    }
}

/// The key of a connection, which an event or a timer of a closed one does not share with the next in its slot.
fn key_of(token: Token) -> Key {
    Key::unpack(token.0 as u64).0
}

fn token_of(key: Key) -> Token {
    Token(key.pack(0) as usize)
}

const _: () = assert!(usize::BITS == 64, "a token holds a slot and a generation");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_token_finds_no_connection() {
        let mut conns = Slots::new(1);
        let first = token_of(conns.insert("one").unwrap());
        assert!(conns.get(key_of(first)).is_some());
        conns.remove(key_of(first));
        let second = token_of(conns.insert("another").unwrap());
        assert_ne!(first, second);
        assert!(conns.get(key_of(first)).is_none());
        assert!(conns.get(key_of(second)).is_some());
    }
}
