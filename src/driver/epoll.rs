use super::errno::net_error;
use super::listener;
use super::{Bell, Driver, ServerDriver};
use crate::base::{Accepted, Key, NetError, NetEvent, Now, Socket as AcceptedSocket, Transport};
use crate::limits::RECV_BUFFER_BYTES;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UdpSocket};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections over epoll, for machines where io_uring is switched off. Readiness is turned into completions:
/// a send is tried at once, a receive when its socket was reported readable.
pub struct EpollDriver {
    poll: Poll,
    events: Events,
    /// Indexed by the key's index.
    conns: Vec<Option<Conn>>,
    conns_max: usize,
    listeners: Vec<Listener>,
    next_listener: usize,
    /// Completions that need no reading.
    done: VecDeque<(Key, Done)>,
    /// Connections with something to read.
    readable: VecDeque<Key>,
    /// The one receive buffer; lent by `next`, so its bytes are dealt with before it is filled again.
    buffer: Box<[u8]>,
    bell: Arc<WakerBell>,
    started: Instant,
    syscalls: u64,
}

struct Conn {
    key: Key,
    socket: Socket,
    connected: bool,
    /// On the `readable` list already.
    listed: bool,
    paused: bool,
    /// It was found readable while it was paused.
    unread: bool,
    bytes: Vec<u8>,
    sent: usize,
}

impl Conn {
    fn new(key: Key, socket: Socket, connected: bool) -> Conn {
        Conn {
            key,
            socket,
            connected,
            listed: false,
            paused: false,
            unread: false,
            bytes: Vec::new(),
            sent: 0,
        }
    }
}

struct Listener {
    key: Key,
    token: Token,
    socket: TcpListener,
    /// The kernel may have a connection for us.
    acceptable: bool,
    /// The client asked for one.
    wanted: bool,
}

enum Socket {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Socket {
    fn connect(addr: SocketAddr, transport: Transport) -> io::Result<Socket> {
        if transport != Transport::Udp {
            let stream = TcpStream::connect(addr)?;
            if transport == Transport::Link {
                listener::set_link_options(&stream)?;
            }
            return Ok(Socket::Stream(stream));
        }
        let any = match addr {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(addr)?;
        Ok(Socket::Datagrams(socket))
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Stream(stream) => stream,
            Socket::Datagrams(socket) => socket,
        }
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Socket::Stream(stream) => stream.take_error(),
            Socket::Datagrams(socket) => socket.take_error(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Stream(stream) => stream.write(bytes),
            Socket::Datagrams(socket) => socket.send(bytes),
        }
    }

    /// `None` at the end of a stream; datagrams have no end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Socket::Stream(stream) => stream.read(into).map(|n| (n > 0).then_some(n)),
            Socket::Datagrams(socket) => socket.recv(into).map(Some),
        }
    }
}

enum Done {
    Connected,
    Sent(Vec<u8>),
    Failed(NetError),
    Closed,
    Accepted(Result<Box<Accepted>, NetError>),
}

struct WakerBell(Waker);

impl Bell for WakerBell {
    fn ring(&self) {
        let _ = self.0.wake();
    }
}

const BELL: Token = Token(usize::MAX);
/// Tokens of listeners are counted up from here, those of connections are indexes far below.
const FIRST_LISTENER: usize = usize::MAX / 2;

impl EpollDriver {
    pub fn new(conns_max: usize, started: Instant) -> io::Result<EpollDriver> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), BELL)?;
        Ok(EpollDriver {
            poll,
            events: Events::with_capacity(1_024),
            conns: Vec::new(),
            conns_max,
            listeners: Vec::new(),
            next_listener: FIRST_LISTENER,
            done: VecDeque::new(),
            readable: VecDeque::new(),
            buffer: vec![0; RECV_BUFFER_BYTES].into(),
            bell: Arc::new(WakerBell(waker)),
            started,
            syscalls: 0,
        })
    }

    fn conn_mut(&mut self, key: Key) -> &mut Conn {
        let conn = self.conns[key.index()].as_mut().filter(|conn| conn.key == key);
        conn.unwrap_or_else(|| panic!("{key:?} does not name an open connection"))
    }

    /// Writes what is left; `Sent` when all is gone, nothing while the socket is full.
    fn flush(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        let mut calls = 0;
        let done = loop {
            if conn.sent == conn.bytes.len() {
                break Some(Done::Sent(std::mem::take(&mut conn.bytes)));
            }
            calls += 1;
            match conn.socket.write(&conn.bytes[conn.sent..]) {
                Ok(n) => conn.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break None,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    // Failed once; what has come before may still be read.
                    conn.bytes.clear();
                    break Some(Done::Failed(net_error(e.raw_os_error().unwrap_or(0))));
                }
            }
        };
        self.syscalls += calls;
        self.done.extend(done.map(|done| (key, done)));
    }

    /// Watches a socket under the key's slot.
    fn open(&mut self, key: Key, socket: io::Result<Socket>, connected: bool) {
        if self.conns.len() <= key.index() {
            self.conns.resize_with(key.index() + 1, || None);
        }
        assert!(self.conns[key.index()].is_none(), "{key:?} is still in use");
        let opened = socket.and_then(|mut socket| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(socket.source(), Token(key.index()), interest)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => self.conns[key.index()] = Some(Conn::new(key, socket, connected)),
            Err(e) => self.done.push_back((key, Done::Failed(net_error(e.raw_os_error().unwrap_or(0))))),
        }
    }

    /// Accepts a connection if one is wanted and there may be one.
    fn accept_one(&mut self, index: usize) {
        let listener = &mut self.listeners[index];
        while listener.wanted && listener.acceptable {
            self.syscalls += 1;
            let accepted = match listener.socket.accept() {
                Ok((stream, peer)) => {
                    let socket = AcceptedSocket::Kernel(std::net::TcpStream::from(stream).into());
                    Ok(Box::new(Accepted { socket, peer }))
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    listener.acceptable = false;
                    return;
                }
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {
                    continue;
                }
                Err(e) => Err(net_error(e.raw_os_error().unwrap_or(0))),
            };
            listener.wanted = false;
            self.done.push_back((listener.key, Done::Accepted(accepted)));
        }
    }

    /// A socket in connection became writable or failed.
    fn finish_connect(&mut self, index: usize) {
        self.syscalls += 1;
        let Some(conn) = &mut self.conns[index] else {
            return;
        };
        let key = conn.key;
        match conn.socket.take_error() {
            Ok(Some(e)) | Err(e) => {
                self.done.push_back((key, Done::Failed(net_error(e.raw_os_error().unwrap_or(0)))));
            }
            Ok(None) => {
                conn.connected = true;
                self.done.push_back((key, Done::Connected));
            }
        }
    }
}

impl Driver for EpollDriver {
    fn now(&self) -> Now {
        Now::from_us(self.started.elapsed().as_micros() as u64)
    }

    fn has_way(&self, ip: IpAddr) -> bool {
        super::route::has_way(ip)
    }

    fn connect(&mut self, key: Key, addr: SocketAddr, transport: Transport) {
        self.syscalls += 3;
        self.open(key, Socket::connect(addr, transport), false);
    }

    fn send(&mut self, key: Key, bytes: Vec<u8>) {
        let conn = self.conn_mut(key);
        debug_assert!(conn.bytes.is_empty(), "one send at a time");
        conn.bytes = bytes;
        conn.sent = 0;
        self.flush(key);
    }

    fn close(&mut self, key: Key) {
        // A connection that never opened has no socket, but is answered all the same.
        if let Some(mut conn) = self.conns.get_mut(key.index()).and_then(Option::take) {
            assert_eq!(conn.key, key, "does not name an open connection");
            let _ = self.poll.registry().deregister(conn.socket.source());
            self.syscalls += 2;
        }
        self.done.retain(|(other, done)| *other != key || matches!(done, Done::Accepted(_)));
        self.done.push_back((key, Done::Closed));
    }

    fn wait(&mut self, until: Option<Now>, _busy: usize) -> io::Result<()> {
        if !self.done.is_empty() {
            return Ok(());
        }
        // A client that has left some unread does not wait, and still learns who else has something to say.
        let until = if self.readable.is_empty() { until } else { Some(Now::ZERO) };
        let timeout = until.map(|until| Duration::from_micros(until.since_us(self.now())));
        self.syscalls += 1;
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = self.poll.poll(&mut events, timeout);
        for event in polled.is_ok().then_some(&events).into_iter().flatten() {
            if event.token() == BELL {
                continue;
            }
            let index = event.token().0;
            if index >= FIRST_LISTENER {
                let of = self.listeners.iter_mut().position(|listener| listener.token == event.token());
                if let Some(of) = of {
                    self.listeners[of].acceptable = true;
                    self.accept_one(of);
                }
                continue;
            }
            let Some(conn) = &mut self.conns[index] else {
                continue;
            };
            if !conn.connected && (event.is_writable() || event.is_error() || event.is_read_closed()) {
                self.finish_connect(index);
            }
            let Some(conn) = &mut self.conns[index] else {
                continue;
            };
            if !conn.connected {
                continue;
            }
            let key = conn.key;
            // What was refused by ICMP shows as an error of the socket, with nothing to read.
            if event.is_readable() || event.is_error() {
                if conn.paused {
                    conn.unread = true;
                } else if !std::mem::replace(&mut conn.listed, true) {
                    self.readable.push_back(key);
                }
            }
            if event.is_writable() && !conn.bytes.is_empty() {
                self.flush(key);
            }
        }
        self.events = events;
        match polled {
            Err(e) if e.kind() != ErrorKind::Interrupted => Err(e),
            _ => Ok(()),
        }
    }

    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        if let Some((key, done)) = self.done.pop_front() {
            let event = match done {
                Done::Connected => NetEvent::Connected,
                Done::Sent(bytes) => NetEvent::Sent(bytes),
                Done::Failed(error) => NetEvent::Failed(error),
                Done::Closed => NetEvent::Closed,
                Done::Accepted(accepted) => NetEvent::Accepted(accepted),
            };
            return Some((key, event));
        }
        while let Some(&key) = self.readable.front() {
            let Some(conn) = self.conns[key.index()].as_mut().filter(|conn| conn.key == key) else {
                self.readable.pop_front();
                continue;
            };
            if conn.paused {
                (conn.listed, conn.unread) = (false, true);
                self.readable.pop_front();
                continue;
            }
            self.syscalls += 1;
            match conn.socket.read(&mut self.buffer) {
                Ok(None) => {
                    conn.listed = false;
                    self.readable.pop_front();
                    return Some((key, NetEvent::Ended));
                }
                // It stays on the list until the kernel says that there is no more, and waits for its turn: one that
                // never stops does not keep the others waiting.
                Ok(Some(n)) => {
                    self.readable.rotate_left(1);
                    return Some((key, NetEvent::Received(&self.buffer[..n])));
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    conn.listed = false;
                    self.readable.pop_front();
                    if e.kind() != ErrorKind::WouldBlock {
                        return Some((key, NetEvent::Failed(net_error(e.raw_os_error().unwrap_or(0)))));
                    }
                }
            }
        }
        None
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.bell.clone()
    }

    fn conns_max(&self) -> usize {
        self.conns_max
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}

impl ServerDriver for EpollDriver {
    fn listen(&mut self, key: Key, addr: SocketAddr) -> io::Result<SocketAddr> {
        let mut socket = listener::open(addr)?;
        let token = Token(self.next_listener);
        self.next_listener += 1;
        self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
        let bound = socket.local_addr()?;
        self.listeners.push(Listener { key, token, socket, acceptable: true, wanted: false });
        Ok(bound)
    }

    fn accept(&mut self, key: Key) {
        let of = self.listeners.iter().position(|listener| listener.key == key);
        let of = of.unwrap_or_else(|| panic!("{key:?} does not name a listener"));
        self.listeners[of].wanted = true;
        self.accept_one(of);
    }

    fn unlisten(&mut self, key: Key) {
        self.listeners.retain(|listener| listener.key != key);
        self.done.retain(|(of, done)| *of != key || !matches!(done, Done::Accepted(_)));
    }

    fn adopt(&mut self, key: Key, socket: AcceptedSocket) {
        let AcceptedSocket::Kernel(fd) = socket else { panic!("a socket of another world") };
        self.syscalls += 1;
        let stream = TcpStream::from_std(std::net::TcpStream::from(fd));
        self.open(key, Ok(Socket::Stream(stream)), true);
    }

    fn refuse(&mut self, socket: AcceptedSocket) {
        drop(socket);
    }

    fn pause(&mut self, key: Key) {
        self.conn_mut(key).paused = true;
    }

    fn resume(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        conn.paused = false;
        if std::mem::take(&mut conn.unread) && !std::mem::replace(&mut conn.listed, true) {
            self.readable.push_back(key);
        }
    }

    fn finish(&mut self, key: Key) {
        self.syscalls += 1;
        if let Socket::Stream(stream) = &self.conn_mut(key).socket {
            // A peer that is gone already shows as such when it is read.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
