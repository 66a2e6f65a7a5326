use super::net::{Event, Kind, Planned, SimConn, SimNet};
use crate::base::{Accepted, Key, NetError, Now, Socket};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;

/// Connections between the drivers of one network: the processes of a cluster talk over them.
pub(super) struct Pipes {
    open: HashMap<u64, Pipe>,
    listeners: Vec<SimListener>,
    /// Addresses that have been listened at: without a listener they refuse, and are never the web's.
    known: HashSet<SocketAddr>,
    /// Pairs of drivers between which nothing arrives before a time.
    cuts: Vec<(usize, usize, Now)>,
    /// One way between two drivers takes up to this long.
    latency_us: u64,
    /// Writes to connections, and their bytes.
    carried: (u64, u64),
}

struct SimListener {
    driver: usize,
    key: Key,
    addr: SocketAddr,
    wanted: bool,
    /// Pipes that were connected and are not accepted.
    waiting: VecDeque<u64>,
}

/// The end that connected is 0, the one that was accepted is 1.
struct Pipe {
    ends: [End; 2],
    /// Who connects has reached the listener; before that the far process knows nothing of it.
    reached: bool,
    /// It was reset: nothing more arrives.
    broken: bool,
}

struct End {
    /// The driver that holds it; until it is adopted, the listener's.
    driver: usize,
    key: Option<Key>,
    gone: bool,
    /// It said that it sends no more.
    finished: bool,
    paused: bool,
    /// What arrived while it was paused, or before it was adopted.
    held: VecDeque<Kind>,
    /// Bytes on their way to it that its client has not been told.
    unread: usize,
    /// What it sent, while the other end has too much unread to say so.
    blocked: Option<Vec<u8>>,
    /// Nothing may arrive before what was sent earlier.
    last_at: Now,
}

/// Bytes that fit between two ends.
const WINDOW: usize = 128 * 1024;
const FIRST_PORT: u16 = 40_000;

impl Default for Pipes {
    fn default() -> Pipes {
        Pipes {
            open: HashMap::new(),
            listeners: Vec::new(),
            known: HashSet::new(),
            cuts: Vec::new(),
            latency_us: 1_000,
            carried: (0, 0),
        }
    }
}

impl Pipes {
    pub fn knows(&self, addr: SocketAddr) -> bool {
        self.known.contains(&addr)
    }
}

impl End {
    fn new(driver: usize, key: Option<Key>, now: Now) -> End {
        End {
            driver,
            key,
            gone: false,
            finished: false,
            paused: false,
            held: VecDeque::new(),
            unread: 0,
            blocked: None,
            last_at: now,
        }
    }
}

/// Faults, for whoever runs the simulation.
impl SimNet {
    /// Nothing passes between two drivers until then; what was on its way arrives later.
    pub fn cut(&mut self, a: usize, b: usize, until: Now) {
        let now = self.now;
        self.pipes.cuts.retain(|&(_, _, until)| until > now);
        self.pipes.cuts.push((a, b, until));
    }

    /// What connections between drivers carried so far: writes, and bytes.
    pub fn carried(&self) -> (u64, u64) {
        self.pipes.carried
    }

    /// One way between two drivers takes up to this long from now on.
    pub fn delay(&mut self, latency_us: u64) {
        self.pipes.latency_us = latency_us;
    }

    /// Every connection between two drivers breaks; what was on its way is lost.
    pub fn reset_between(&mut self, a: usize, b: usize) {
        for pipe in self.pipes_where(|pipe| {
            let drivers = (pipe.ends[0].driver, pipe.ends[1].driver);
            pipe.reached && (drivers == (a, b) || drivers == (b, a))
        }) {
            (0..2).for_each(|side| self.lose_what_comes(pipe, side));
        }
    }

    /// In the order in which they were made, so that a seed replays.
    fn pipes_where(&self, which: impl Fn(&Pipe) -> bool) -> Vec<u64> {
        let open = self.pipes.open.iter();
        let mut found: Vec<u64> = open.filter(|(_, pipe)| which(pipe)).map(|(&id, _)| id).collect();
        found.sort_unstable();
        found
    }

    pub(super) fn held_until(&self, number: u64) -> Option<Now> {
        if self.pipes.cuts.is_empty() {
            return None;
        }
        let pipe = match self.events.get(&number)? {
            Planned::AtEnd { kind: Kind::Sent(_), .. } | Planned::Event(_) => return None,
            Planned::AtEnd { pipe, .. } | Planned::AtListener { pipe, .. } => self.pipes.open.get(pipe)?,
        };
        let (from, to) = (pipe.ends[0].driver, pipe.ends[1].driver);
        let between = |&&(a, b, _): &&(usize, usize, Now)| (a, b) == (from, to) || (b, a) == (from, to);
        self.pipes.cuts.iter().filter(between).map(|&(_, _, until)| until).max()
    }

    pub(super) fn forget_pipes_of(&mut self, driver: usize) {
        let listeners: Vec<Key> =
            self.pipes.listeners.iter().filter(|one| one.driver == driver).map(|one| one.key).collect();
        listeners.into_iter().for_each(|key| self.unlisten(driver, key));
        for side in 0..2 {
            let held = |pipe: &Pipe| pipe.ends[side].driver == driver && (pipe.reached || side == 0);
            self.pipes_where(held).into_iter().for_each(|pipe| self.hang_up(pipe, side));
        }
    }
}

/// Listening.
impl SimNet {
    pub(super) fn listen(&mut self, driver: usize, key: Key, addr: SocketAddr) -> io::Result<SocketAddr> {
        let addr = match addr.port() {
            0 => SocketAddr::new(addr.ip(), FIRST_PORT + self.pipes.known.len() as u16),
            _ => addr,
        };
        if self.pipes.listeners.iter().any(|listener| listener.addr == addr) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.pipes.known.insert(addr);
        self.pipes.listeners.push(SimListener { driver, key, addr, wanted: false, waiting: VecDeque::new() });
        Ok(addr)
    }

    pub(super) fn accept(&mut self, driver: usize, key: Key) {
        let index = self.listener_of(driver, key).unwrap_or_else(|| panic!("{key:?} is not a listener"));
        self.pipes.listeners[index].wanted = true;
        self.accept_one(index);
    }

    pub(super) fn unlisten(&mut self, driver: usize, key: Key) {
        let Some(index) = self.listener_of(driver, key) else { return };
        let listener = self.pipes.listeners.remove(index);
        let untold = self.arrived[driver].iter().filter_map(|event| match &event.kind {
            Kind::Accepted(accepted) if event.key == key => number_of(&accepted.socket),
            _ => None,
        });
        let refused: Vec<u64> = listener.waiting.into_iter().chain(untold).collect();
        self.arrived[driver].retain(|event| event.key != key || !matches!(event.kind, Kind::Accepted(_)));
        refused.into_iter().for_each(|pipe| self.hang_up(pipe, 1));
    }

    pub(super) fn adopt(&mut self, driver: usize, key: Key, socket: &Socket) {
        let number = number_of(socket).expect("a socket of another world");
        self.take_slot(driver, SimConn::of_pipe(key, (number, 1), self.now));
        let Some(pipe) = self.pipes.open.get_mut(&number) else {
            // Its peer came and went.
            let event = Event { driver, key, kind: Kind::Failed(NetError::Reset) };
            return self.arrived[driver].push_back(event);
        };
        (pipe.ends[1].driver, pipe.ends[1].key) = (driver, Some(key));
        self.let_go_of_held(number, 1);
    }

    pub(super) fn refuse(&mut self, socket: &Socket) {
        self.hang_up(number_of(socket).expect("a socket of another world"), 1);
    }

    fn listener_of(&self, driver: usize, key: Key) -> Option<usize> {
        self.pipes.listeners.iter().position(|listener| (listener.driver, listener.key) == (driver, key))
    }

    fn accept_one(&mut self, index: usize) {
        let listener = &mut self.pipes.listeners[index];
        if !listener.wanted {
            return;
        }
        let Some(pipe) = listener.waiting.pop_front() else { return };
        listener.wanted = false;
        // Every process has an address of its own, and every connection a port.
        let connected = self.pipes.open.get(&pipe).map_or(0, |pipe| pipe.ends[0].driver);
        let peer = SocketAddr::from(([10, 0, 0, connected as u8], FIRST_PORT + (pipe % 20_000) as u16));
        let accepted = Box::new(Accepted { socket: Socket::Simulated(pipe), peer });
        let event = Event { driver: listener.driver, key: listener.key, kind: Kind::Accepted(accepted) };
        self.arrived[listener.driver].push_back(event);
    }
}

/// The life of a pipe.
impl SimNet {
    pub(super) fn connect_pipe(&mut self, driver: usize, key: Key, addr: SocketAddr) -> u64 {
        let (number, now) = (self.next_conn, self.now);
        let listener = self.pipes.listeners.iter().find(|listener| listener.addr == addr);
        let there = listener.map_or(usize::MAX, |listener| listener.driver);
        let ends = [End::new(driver, Some(key), now), End::new(there, None, now)];
        self.pipes.open.insert(number, Pipe { ends, reached: false, broken: false });
        let at = now.plus_us(1 + self.rng.below(self.pipes.latency_us));
        self.push_planned(at, Planned::AtListener { pipe: number, addr });
        number
    }

    pub(super) fn reaches_listener(&mut self, number: u64, addr: SocketAddr) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        if pipe.ends[0].gone {
            self.pipes.open.remove(&number);
            return;
        }
        pipe.reached = true;
        let Some(index) = self.pipes.listeners.iter().position(|listener| listener.addr == addr) else {
            pipe.ends[1].gone = true;
            return self.plan_at(number, 0, self.pipes.latency_us, Kind::Failed(NetError::Refused));
        };
        pipe.ends[1].driver = self.pipes.listeners[index].driver;
        self.pipes.listeners[index].waiting.push_back(number);
        self.plan_at(number, 0, self.pipes.latency_us, Kind::Connected);
        self.accept_one(index);
    }

    pub(super) fn reaches_end(&mut self, number: u64, side: usize, kind: Kind) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        let end = &mut pipe.ends[side];
        let is_local = matches!(kind, Kind::Sent(_));
        match end.key {
            _ if end.gone => {}
            Some(key) if is_local || (!end.paused && end.held.is_empty()) => {
                self.arrived[end.driver].push_back(Event { driver: end.driver, key, kind });
            }
            _ => end.held.push_back(kind),
        }
    }

    fn let_go_of_held(&mut self, number: u64, side: usize) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        let end = &mut pipe.ends[side];
        if let (Some(key), false) = (end.key, end.paused) {
            let driver = end.driver;
            let events = end.held.drain(..).map(|kind| Event { driver, key, kind });
            self.arrived[driver].extend(events);
        }
    }

    pub(super) fn set_paused(&mut self, driver: usize, key: Key, paused: bool) {
        let Some((number, side)) = self.conns.get(&(driver, key.index())).and_then(|conn| conn.pipe) else {
            return;
        };
        if let Some(pipe) = self.pipes.open.get_mut(&number) {
            pipe.ends[side].paused = paused;
            self.let_go_of_held(number, side);
        }
    }

    pub(super) fn send_to_peer(&mut self, number: u64, side: usize, bytes: Vec<u8>) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        if pipe.broken || pipe.ends[1 - side].gone {
            // The kernel takes it, and hears that nobody is there, if it has not heard so before.
            self.plan_at(number, side, 200, Kind::Sent(bytes));
            return self.break_end(number, side);
        }
        assert!(!pipe.ends[side].finished, "it said that it sends no more");
        let other = &mut pipe.ends[1 - side];
        other.unread += bytes.len();
        self.pipes.carried.0 += 1;
        self.pipes.carried.1 += bytes.len() as u64;
        let fits = other.unread <= WINDOW;
        let first_us = self.rng.below(self.pipes.latency_us);
        self.in_pieces(first_us, &bytes, |net, after_us, piece| {
            net.plan_at(number, 1 - side, after_us, piece);
        });
        match self.pipes.open.get_mut(&number) {
            Some(pipe) if !fits => pipe.ends[side].blocked = Some(bytes),
            _ => self.plan_at(number, side, 200, Kind::Sent(bytes)),
        }
    }

    /// A client was told of bytes: there is room for more of them.
    pub(super) fn read_at(&mut self, (number, side): (u64, usize), bytes: usize) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        pipe.ends[side].unread -= bytes;
        if pipe.ends[side].unread <= WINDOW
            && let Some(buffer) = pipe.ends[1 - side].blocked.take()
        {
            self.plan_at(number, 1 - side, 200, Kind::Sent(buffer));
        }
    }

    pub(super) fn finish(&mut self, driver: usize, key: Key) {
        let Some((number, side)) = self.conns.get(&(driver, key.index())).and_then(|conn| conn.pipe) else {
            return;
        };
        if let Some(pipe) = self.pipes.open.get_mut(&number)
            && !std::mem::replace(&mut pipe.ends[side].finished, true)
        {
            self.plan_at(number, 1 - side, self.pipes.latency_us, Kind::Ended);
        }
    }

    /// One end is closed, or its process died. With bytes unread the other end loses what it has not read, as it does with
    /// the kernel's sockets.
    pub(super) fn hang_up(&mut self, number: u64, side: usize) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        let end = &mut pipe.ends[side];
        if std::mem::replace(&mut end.gone, true) {
            return;
        }
        let (unread, finished) = (end.unread, end.finished);
        if pipe.ends[1 - side].gone {
            self.pipes.open.remove(&number);
        } else if pipe.broken {
            // The other end has heard of it.
        } else if unread > 0 {
            self.break_end(number, 1 - side);
        } else if !finished {
            self.plan_at(number, 1 - side, self.pipes.latency_us, Kind::Ended);
        }
    }

    /// One end hears that the pipe is broken, unless it has heard so.
    fn break_end(&mut self, number: u64, side: usize) {
        if self.pipes.open.get_mut(&number).is_some_and(|pipe| !std::mem::replace(&mut pipe.broken, true)) {
            self.lose_what_comes(number, side);
        }
    }

    /// What is on its way to one end is lost, and the end hears that.
    fn lose_what_comes(&mut self, number: u64, side: usize) {
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        pipe.broken = true;
        pipe.ends[side].held.clear();
        pipe.ends[side].blocked = None;
        self.events.retain(|_, planned| {
            !matches!(planned, Planned::AtEnd { pipe, side: to, .. } if (*pipe, *to) == (number, side))
        });
        self.plan_at(number, side, self.pipes.latency_us, Kind::Failed(NetError::Reset));
    }

    fn plan_at(&mut self, number: u64, side: usize, within_us: u64, kind: Kind) {
        let us = self.rng.below(within_us + 1);
        let Some(pipe) = self.pipes.open.get_mut(&number) else { return };
        let end = &mut pipe.ends[side];
        let at = end.last_at.max(self.now).plus_us(us);
        end.last_at = at;
        self.push_planned(at, Planned::AtEnd { pipe: number, side, kind });
    }
}

fn number_of(socket: &Socket) -> Option<u64> {
    match socket {
        Socket::Simulated(number) => Some(*number),
        Socket::Kernel(_) => None,
    }
}
