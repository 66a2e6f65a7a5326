use super::dial::{Dial, DialState};
use super::link::{Link, Phase};
use super::port::{Command, LinkEvent, LinkPort};
use crate::base::{Key, Rng, Slots, random_u64};
use crate::limits::{LINK_OUT_BYTES_MAX, LINK_RING_WORDS, RECV_BUFFER_BYTES};
use crate::rings::{Doorbell, Receiver, Sender, ring};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Who may be linked with.
pub struct LinksConfig {
    /// Where peers may dial in; port 0 takes a free one.
    pub listen: Option<SocketAddr>,
    /// `host:port` of peers to dial, for ever.
    pub dial: Vec<String>,
    pub links_max: usize,
}

/// The thread's side: every socket, and the rings to the owner.
pub struct Links {
    poll: Poll,
    waker: Arc<Waker>,
    listener: Option<TcpListener>,
    /// The listener may have more to accept.
    acceptable: bool,
    dials: Vec<Dial>,
    resolved: mpsc::Receiver<Resolved>,
    resolver: mpsc::Sender<Resolved>,
    links: Slots<Link>,
    /// Links with something to read.
    readable: VecDeque<Key>,
    /// Links with something to tell the owner.
    telling: VecDeque<Key>,
    events: Sender<LinkEvent>,
    commands: Receiver<Command>,
    owner: Arc<Doorbell>,
    bell: Arc<Doorbell>,
    buffer: Box<[u8]>,
    rng: Rng,
    end: Arc<AtomicBool>,
    said_full: bool,
}

type Resolved = (usize, io::Result<Vec<SocketAddr>>);

/// Ends the thread: by `end`, or when it goes away.
pub struct LinksThread {
    end: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

const LISTENER: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX);

/// A connection attempt may take this long.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// At the end peers have this long to take what was sent and to hang up.
const END_TIME: Duration = Duration::from_secs(1);
const END_STEP: Duration = Duration::from_millis(20);
/// With a full event ring, or without descriptors, it looks again after this: nobody rings for those.
const STUCK_PAUSE: Duration = Duration::from_millis(2);

impl Links {
    /// Starts the thread. `owner` is rung when there are events; the address is that of the listener.
    pub fn start(
        config: LinksConfig,
        owner: Arc<Doorbell>,
    ) -> io::Result<(LinkPort, LinksThread, Option<SocketAddr>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut listener = config.listen.map(TcpListener::bind).transpose()?;
        if let Some(listener) = &mut listener {
            poll.registry().register(listener, LISTENER, Interest::READABLE)?;
        }
        let bound = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let (events, events_in) = ring(LINK_RING_WORDS);
        let (commands_out, commands) = ring(LINK_RING_WORDS);
        let (resolver, resolved) = mpsc::channel();
        let bell = Arc::new(Doorbell::new({
            let waker = waker.clone();
            move || {
                let _ = waker.wake();
            }
        }));
        let end = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let links = Links {
            poll,
            waker: waker.clone(),
            listener,
            acceptable: true,
            dials: dials_of(config.dial, now),
            resolved,
            resolver,
            links: Slots::new(config.links_max),
            readable: VecDeque::new(),
            telling: VecDeque::new(),
            events,
            commands,
            owner,
            bell: bell.clone(),
            buffer: vec![0; RECV_BUFFER_BYTES].into(),
            rng: Rng::new(random_u64()),
            end: end.clone(),
            said_full: false,
        };
        let thread = std::thread::Builder::new().name("links".to_string()).spawn(move || links.run())?;
        let port =
            LinkPort { events: events_in, commands: commands_out, bell, known: RapidHashMap::default() };
        Ok((port, LinksThread { end, waker, thread: Some(thread) }, bound))
    }

    fn run(mut self) {
        let mut polled = Events::with_capacity(256);
        while !self.end.load(Ordering::Acquire) {
            self.take_commands();
            self.take_resolved();
            self.accept();
            self.dial();
            self.read();
            self.tell();
            self.bell.falling_asleep();
            let timeout = if self.commands.is_empty() { self.next_due() } else { Some(Duration::ZERO) };
            let result = self.poll.poll(&mut polled, timeout);
            self.bell.awake();
            match result {
                Err(e) if e.kind() != ErrorKind::Interrupted => {
                    eprintln!("links: cannot poll: {e}");
                    return;
                }
                _ => self.take_readiness(&polled),
            }
        }
        self.take_commands();
        self.wind_up(&mut polled);
    }

    fn take_commands(&mut self) {
        while let Some(command) = self.commands.pop() {
            match command {
                Command::Send { link, bytes } => self.send(link, bytes),
                Command::Close { link } => self.lose(link, "closed".to_string()),
            }
        }
    }

    fn send(&mut self, key: Key, bytes: Vec<u8>) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.stands()) else {
            return;
        };
        link.queue(bytes);
        self.flush(key);
        let waiting = self.links.get(key).map_or(0, Link::waiting);
        if waiting > LINK_OUT_BYTES_MAX {
            self.lose(key, format!("it does not read: {waiting} bytes wait"));
        }
    }

    /// Hands the kernel what it takes.
    fn flush(&mut self, key: Key) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.stands()) else {
            return;
        };
        let result = link.write_out();
        if link.untold_bytes > 0 {
            self.list_to_tell(key);
        }
        if let Err(e) = result {
            self.lose(key, e.to_string());
        }
    }

    /// A link is of no more use. Its socket is closed when the owner has been told.
    fn lose(&mut self, key: Key, why: String) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let told = match link.phase {
            Phase::Opening { .. } => false,
            Phase::Standing { told } => told,
            Phase::Gone { .. } => return,
        };
        link.phase = Phase::Gone { told, why };
        let _ = self.poll.registry().deregister(&mut link.stream);
        let _ = link.stream.shutdown(Shutdown::Both);
        if let Some(dial) = link.dial {
            let received = link.received;
            self.dials[dial].lost(received, Instant::now(), &mut self.rng);
        }
        self.list_to_tell(key);
    }

    fn accept(&mut self) {
        while self.acceptable && self.events.room() > 0 {
            let Some(listener) = &self.listener else {
                return;
            };
            match listener.accept() {
                Ok((stream, peer)) => {
                    if self.links.is_full() {
                        if !std::mem::replace(&mut self.said_full, true) {
                            eprintln!("links: {} stand, {peer} and others are turned away", self.links.len());
                        }
                        continue;
                    }
                    if let Some(key) = self.open(stream, peer, None, Phase::Standing { told: false }) {
                        self.list_to_tell(key);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.acceptable = false,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Out of descriptors or memory: `next_due` sees to another try.
                Err(_) => return,
            }
        }
    }

    /// Watches a socket under a slot of its own.
    fn open(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
        dial: Option<usize>,
        phase: Phase,
    ) -> Option<Key> {
        // Lines are short and wanted at once.
        let _ = stream.set_nodelay(true);
        let key = self.links.insert(Link::new(stream, peer, dial, phase))?;
        let link = self.links.get_mut(key)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut link.stream, Token(key.index()), interest).is_err() {
            self.links.remove(key);
            return None;
        }
        Some(key)
    }

    /// Dials whoever is due.
    fn dial(&mut self) {
        let now = Instant::now();
        for index in 0..self.dials.len() {
            match self.dials[index].state {
                DialState::Resting { until } if until <= now => self.resolve(index),
                DialState::Linked { link } => {
                    let by = match self.links.get(link).map(|link| &link.phase) {
                        Some(Phase::Opening { by }) => *by,
                        _ => continue,
                    };
                    if by <= now {
                        self.dial_failed(index, &io::Error::from(ErrorKind::TimedOut), Some(link));
                    }
                }
                DialState::Resting { .. } | DialState::Resolving => {}
            }
        }
    }

    /// An address is dialed at once; a name is looked up where waiting for it holds nobody up.
    fn resolve(&mut self, index: usize) {
        let address = self.dials[index].address.clone();
        if let Ok(addr) = address.parse() {
            return self.connect(index, addr);
        }
        self.dials[index].state = DialState::Resolving;
        let (answers, waker) = (self.resolver.clone(), self.waker.clone());
        let spawned = std::thread::Builder::new().name("links-name".to_string()).spawn(move || {
            let found = address.to_socket_addrs().map(Iterator::collect);
            let _ = answers.send((index, found));
            let _ = waker.wake();
        });
        if let Err(e) = spawned {
            self.dial_failed(index, &e, None);
        }
    }

    fn take_resolved(&mut self) {
        while let Ok((index, found)) = self.resolved.try_recv() {
            match found {
                Ok(addrs) if !addrs.is_empty() => {
                    self.connect(index, addrs[self.dials[index].attempts % addrs.len()]);
                }
                Ok(_) => self.dial_failed(index, &io::Error::other("the name has no address"), None),
                Err(e) => self.dial_failed(index, &e, None),
            }
        }
    }

    fn connect(&mut self, index: usize, addr: SocketAddr) {
        self.dials[index].attempts += 1;
        let by = Instant::now() + CONNECT_TIME;
        let opened = match TcpStream::connect(addr) {
            Ok(_) if self.links.is_full() => Err(io::Error::other("too many links stand already")),
            Ok(stream) => self
                .open(stream, addr, Some(index), Phase::Opening { by })
                .ok_or_else(|| io::Error::other("cannot watch its socket")),
            Err(e) => Err(e),
        };
        match opened {
            Ok(link) => self.dials[index].state = DialState::Linked { link },
            Err(e) => self.dial_failed(index, &e, None),
        }
    }

    fn dial_failed(&mut self, index: usize, cause: &io::Error, link: Option<Key>) {
        if let Some(link) = link {
            self.links.remove(link);
        }
        if let Some(line) = self.dials[index].failed(cause, Instant::now(), &mut self.rng) {
            eprintln!("{line}");
        }
    }

    /// A socket in connection became writable, or failed.
    fn finish_connect(&mut self, key: Key) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Some(dial) = link.dial else {
            return;
        };
        match link.stream.take_error().and_then(|error| error.map_or(Ok(()), Err)) {
            Err(e) => self.dial_failed(dial, &e, Some(key)),
            // Without a peer it was a false alarm.
            Ok(()) if link.stream.peer_addr().is_err() => {}
            Ok(()) => {
                link.phase = Phase::Standing { told: false };
                if let Some(line) = self.dials[dial].stands(link.peer) {
                    eprintln!("{line}");
                }
                self.list_to_tell(key);
            }
        }
    }

    fn take_readiness(&mut self, polled: &Events) {
        for event in polled {
            match event.token() {
                WAKER => {}
                LISTENER => self.acceptable = true,
                Token(index) => {
                    let Some(key) = self.links.key_at(index) else {
                        continue;
                    };
                    if self.links.get(key).is_some_and(|link| matches!(link.phase, Phase::Opening { .. })) {
                        self.finish_connect(key);
                    }
                    if event.is_writable() {
                        self.flush(key);
                    }
                    if let Some(link) = self.links.get_mut(key)
                        && (event.is_readable() || event.is_read_closed() || event.is_error())
                        && !std::mem::replace(&mut link.on_readable, true)
                    {
                        self.readable.push_back(key);
                    }
                }
            }
        }
    }

    /// Reads a buffer of each link in turn while the owner has room for it.
    fn read(&mut self) {
        let mut rounds = self.readable.len();
        while rounds > 0 && self.events.room() > 0 {
            rounds -= 1;
            let Some(key) = self.readable.pop_front() else {
                return;
            };
            let Some(link) = self.links.get_mut(key) else {
                continue;
            };
            match link.phase {
                Phase::Standing { told: true } => {}
                // What comes first is told first.
                Phase::Opening { .. } | Phase::Standing { told: false } => {
                    self.readable.push_back(key);
                    continue;
                }
                Phase::Gone { .. } => continue,
            }
            match link.stream.read(&mut self.buffer) {
                Ok(0) => self.lose(key, "closed by the peer".to_string()),
                Ok(n) => {
                    link.received = true;
                    let bytes = self.buffer[..n].to_vec();
                    let pushed = self.events.push(LinkEvent::Bytes { link: key, bytes });
                    assert!(pushed.is_ok(), "there was room, and nobody else pushes");
                    self.owner.ring_if_asleep();
                    // It stays on the list until the kernel says that there is no more.
                    self.readable.push_back(key);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => self.readable.push_back(key),
                Err(e) if e.kind() == ErrorKind::WouldBlock => link.on_readable = false,
                Err(e) => self.lose(key, e.to_string()),
            }
        }
    }

    fn list_to_tell(&mut self, key: Key) {
        if let Some(link) = self.links.get_mut(key)
            && !std::mem::replace(&mut link.on_telling, true)
        {
            self.telling.push_back(key);
        }
    }

    /// Tells the owner what happened to links, in order, as far as it has room.
    fn tell(&mut self) {
        let mut told_any = false;
        while let Some(&key) = self.telling.front() {
            // The most that one link has to tell.
            if self.events.room() < 2 {
                break;
            }
            self.telling.pop_front();
            let Some(link) = self.links.get_mut(key) else {
                continue;
            };
            link.on_telling = false;
            told_any = true;
            let say = |event| assert!(self.events.push(event).is_ok(), "there was room");
            if let Phase::Standing { told: told @ false } = &mut link.phase {
                *told = true;
                say(LinkEvent::Up { link: key, peer: link.peer, dialed: link.dial.is_some() });
            }
            let bytes = std::mem::take(&mut link.untold_bytes);
            if bytes > 0 && !matches!(link.phase, Phase::Gone { told: false, .. }) {
                say(LinkEvent::Sent { link: key, bytes });
            }
            if let Phase::Gone { told, why } = &mut link.phase {
                if *told {
                    say(LinkEvent::Down { link: key, why: std::mem::take(why) });
                }
                self.links.remove(key);
            }
        }
        if told_any {
            self.owner.ring_if_asleep();
        }
    }

    /// How long nothing is to be done if nothing comes.
    fn next_due(&self) -> Option<Duration> {
        let unread = self.readable.iter().any(|&key| {
            self.links.get(key).is_some_and(|link| matches!(link.phase, Phase::Standing { told: true }))
        });
        if unread && self.events.room() > 0 {
            return Some(Duration::ZERO);
        }
        if unread || !self.telling.is_empty() || (self.acceptable && self.listener.is_some()) {
            return Some(STUCK_PAUSE);
        }
        let now = Instant::now();
        let due = self.dials.iter().filter_map(|dial| match dial.state {
            DialState::Resting { until } => Some(until),
            DialState::Resolving => None,
            DialState::Linked { link } => match self.links.get(link)?.phase {
                Phase::Opening { by } => Some(by),
                Phase::Standing { .. } | Phase::Gone { .. } => None,
            },
        });
        due.min().map(|due| due.saturating_duration_since(now) + Duration::from_millis(1))
    }

    /// Hands out what is still to be sent, says goodbye and waits for the peers to hang up: a socket closed with
    /// bytes unread would take back what the peer has not read yet.
    fn wind_up(&mut self, polled: &mut Events) {
        self.listener = None;
        let until = Instant::now() + END_TIME;
        let mut open: Vec<Key> =
            self.links.iter().filter(|(_, link)| link.stands()).map(|(key, _)| key).collect();
        loop {
            open.retain(|&key| match self.links.get_mut(key) {
                Some(link) => link.wind_up(&mut self.buffer),
                None => false,
            });
            let left = until.saturating_duration_since(Instant::now());
            if open.is_empty() || left.is_zero() {
                return;
            }
            let _ = self.poll.poll(polled, Some(left.min(END_STEP)));
        }
    }
}

impl LinksThread {
    /// Sends what is still to be sent, closes every link and ends the thread; it takes a second at most.
    pub fn end(mut self) {
        self.wind_up();
    }

    fn wind_up(&mut self) {
        self.end.store(true, Ordering::Release);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for LinksThread {
    fn drop(&mut self) {
        self.wind_up();
    }
}

/// A peer may be dialed more than once; then one of the dials tells the user how it goes.
fn dials_of(addresses: Vec<String>, now: Instant) -> Vec<Dial> {
    let mut dials = Vec::<Dial>::new();
    for address in addresses {
        let is_mute = dials.iter().any(|dial| dial.address == address);
        dials.push(Dial::new(address, is_mute, now));
    }
    dials
}
