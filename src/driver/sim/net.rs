use super::pipes::Pipes;
use crate::base::{Accepted, Key, NetError, Now, Rng, Transport};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

/// What servers do. One value answers for the whole web.
pub trait SimWeb {
    /// The driver that asks next.
    fn driver(&mut self, _driver: usize) {}

    /// Somebody connects.
    fn connect(&mut self, addr: SocketAddr, now: Now, rng: &mut Rng) -> ConnectFate;

    /// Bytes of a request arrived on a connection that was accepted; `conn` is unique in the whole simulation.
    fn request(
        &mut self,
        conn: u64,
        addr: SocketAddr,
        bytes: &[u8],
        now: Now,
        rng: &mut Rng,
    ) -> Vec<Reaction>;

    /// A datagram arrived at an address. `Then::Bytes` is one datagram back, `Then::Reset` an ICMP refusal;
    /// nothing at all is a datagram lost on either way, which is what a web without name servers does.
    fn datagram(&mut self, _to: SocketAddr, _bytes: &[u8], _now: Now, _rng: &mut Rng) -> Vec<Reaction> {
        Vec::new()
    }

    /// The client let go of a connection.
    fn closed(&mut self, conn: u64);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFate {
    Accept {
        after_us: u64,
    },
    Refuse {
        after_us: u64,
    },
    /// Nothing is ever heard again.
    Silence,
}

/// Something a server does some time after it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    pub after_us: u64,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// The network: who is connected to what, and what will happen when.
pub struct SimNet {
    pub(super) now: Now,
    pub(super) rng: Rng,
    web: Box<dyn SimWeb>,
    future: BinaryHeap<Reverse<(Now, u64)>>,
    /// What is behind the numbers in `future`.
    pub(super) events: HashMap<u64, Planned>,
    next_number: u64,
    pub(super) next_conn: u64,
    /// Open connections of every driver.
    pub(super) conns: HashMap<(usize, usize), SimConn>,
    /// Connections between drivers, and who listens.
    pub(super) pipes: Pipes,
    /// Events whose time has come, per driver.
    pub(super) arrived: Vec<VecDeque<Event>>,
    /// Slots whose last word has not been said; using one again is the mistake this is here to catch.
    lingering: HashSet<(usize, usize)>,
}

pub(super) struct SimConn {
    pub key: Key,
    /// Of a connection with the web, unique in the whole simulation.
    id: u64,
    addr: SocketAddr,
    transport: Transport,
    /// Nothing may arrive before what was sent earlier.
    last_at: Now,
    /// Of a connection with another driver: its pipe, and which end of it is here.
    pub pipe: Option<(u64, usize)>,
}

impl SimConn {
    pub fn of_pipe(key: Key, pipe: (u64, usize), now: Now) -> SimConn {
        let addr = SocketAddr::from(([0, 0, 0, 0], 0));
        SimConn { key, id: 0, addr, transport: Transport::Link, last_at: now, pipe: Some(pipe) }
    }
}

/// Something that will happen.
pub(super) enum Planned {
    /// A driver is told.
    Event(Event),
    /// Something reaches one end of a pipe.
    AtEnd { pipe: u64, side: usize, kind: Kind },
    /// Somebody who connects reaches the address.
    AtListener { pipe: u64, addr: SocketAddr },
}

pub(super) struct Event {
    pub driver: usize,
    pub key: Key,
    pub kind: Kind,
}

pub(super) enum Kind {
    Connected,
    Sent(Vec<u8>),
    Bytes(Vec<u8>),
    Ended,
    Failed(NetError),
    Closed,
    Accepted(Box<Accepted>),
}

impl SimNet {
    pub fn new(seed: u64, drivers: usize, web: Box<dyn SimWeb>) -> Rc<RefCell<SimNet>> {
        Rc::new(RefCell::new(SimNet {
            now: Now::ZERO,
            rng: Rng::new(seed),
            web,
            future: BinaryHeap::new(),
            events: HashMap::new(),
            next_number: 0,
            next_conn: 0,
            conns: HashMap::new(),
            pipes: Pipes::default(),
            arrived: (0..drivers).map(|_| VecDeque::new()).collect(),
            lingering: HashSet::new(),
        }))
    }

    pub fn now(&self) -> Now {
        self.now
    }

    /// When the next event comes.
    pub fn next_at(&self) -> Option<Now> {
        if self.arrived.iter().any(|queue| !queue.is_empty()) {
            return Some(self.now);
        }
        self.next_planned()
    }

    /// Something has come for a driver that it has not taken.
    pub fn has_arrived(&self, driver: usize) -> bool {
        !self.arrived[driver].is_empty()
    }

    /// When something happens next, apart from what has arrived and was not taken.
    pub fn next_planned(&self) -> Option<Now> {
        self.future.peek().map(|Reverse((at, _))| *at)
    }

    /// Lets time pass; it never goes back.
    pub fn advance(&mut self, to: Now) {
        assert!(to >= self.now, "time does not go back");
        self.now = to;
        while let Some(&Reverse((at, number))) = self.future.peek()
            && at <= to
        {
            self.future.pop();
            if let Some(until) = self.held_until(number)
                && until > at
            {
                // Under the same number, so that the order stays.
                self.future.push(Reverse((until, number)));
                continue;
            }
            match self.events.remove(&number) {
                Some(Planned::Event(event)) => self.arrived[event.driver].push_back(event),
                Some(Planned::AtEnd { pipe, side, kind }) => self.reaches_end(pipe, side, kind),
                Some(Planned::AtListener { pipe, addr }) => self.reaches_listener(pipe, addr),
                None => {}
            }
        }
    }

    /// A driver died with its shard or its process: its listeners are gone, and its connections without a word.
    pub fn forget_driver(&mut self, driver: usize) {
        let (web, conns) = (&mut self.web, &mut self.conns);
        conns.retain(|(owner, _), conn| {
            if *owner == driver && conn.transport != Transport::Udp && conn.pipe.is_none() {
                web.closed(conn.id);
            }
            *owner != driver
        });
        self.forget_pipes_of(driver);
        self.lingering.retain(|(owner, _)| *owner != driver);
        self.events.retain(|_, planned| !matches!(planned, Planned::Event(event) if event.driver == driver));
        self.arrived[driver].clear();
    }

    pub(super) fn arrived(&mut self, driver: usize) -> Option<Event> {
        let event = self.arrived[driver].pop_front()?;
        let slot = (driver, event.key.index());
        match event.kind {
            Kind::Closed => {
                assert!(self.lingering.remove(&slot), "closed once");
                Some(event)
            }
            Kind::Accepted(_) => Some(event),
            ref kind => {
                let Some(conn) = self.conns.get(&slot).filter(|conn| conn.key == event.key) else {
                    // What was on its way when the connection was let go is lost.
                    return self.arrived(driver);
                };
                if let (Some(end), Kind::Bytes(bytes)) = (conn.pipe, kind) {
                    self.read_at(end, bytes.len());
                }
                Some(event)
            }
        }
    }

    pub(super) fn connect(&mut self, driver: usize, key: Key, addr: SocketAddr, transport: Transport) {
        self.next_conn += 1;
        if transport != Transport::Udp && self.pipes.knows(addr) {
            let pipe = self.connect_pipe(driver, key, addr);
            return self.take_slot(driver, SimConn::of_pipe(key, (pipe, 0), self.now));
        }
        let (id, last_at) = (self.next_conn, self.now);
        self.take_slot(driver, SimConn { key, id, addr, transport, last_at, pipe: None });
        if transport == Transport::Udp {
            // Nobody is asked: connecting a datagram socket only notes the peer.
            self.plan(driver, key, 0, Kind::Connected);
            return;
        }
        match self.web.connect(addr, self.now, &mut self.rng) {
            ConnectFate::Accept { after_us } => self.plan(driver, key, after_us, Kind::Connected),
            ConnectFate::Refuse { after_us } => {
                self.plan(driver, key, after_us, Kind::Failed(NetError::Refused));
            }
            ConnectFate::Silence => {}
        }
    }

    pub(super) fn take_slot(&mut self, driver: usize, conn: SimConn) {
        let (slot, key) = ((driver, conn.key.index()), conn.key);
        assert!(!self.lingering.contains(&slot), "{key:?}: the slot was used again too soon");
        assert!(self.conns.insert(slot, conn).is_none(), "{key:?} is in use");
    }

    pub(super) fn send(&mut self, driver: usize, key: Key, bytes: Vec<u8>) {
        let conn = &self.conns[&(driver, key.index())];
        assert_eq!(conn.key, key);
        if let Some((pipe, side)) = conn.pipe {
            return self.send_to_peer(pipe, side, bytes);
        }
        let (id, addr) = (conn.id, conn.addr);
        if conn.transport == Transport::Udp {
            self.send_datagram(driver, key, addr, bytes);
            return;
        }
        self.web.driver(driver);
        let reactions = self.web.request(id, addr, &bytes, self.now, &mut self.rng);
        let sent_us = self.rng.below(200);
        // Sometimes the answer overtakes the news that the request is out.
        let overtaken = self.rng.chance(100);
        let mut buffer = Some(bytes);
        if !overtaken {
            let buffer = buffer.take().unwrap_or_default();
            self.plan(driver, key, sent_us, Kind::Sent(buffer));
        }
        for reaction in reactions {
            match reaction.then {
                Then::Bytes(bytes) => self.plan_bytes(driver, key, reaction.after_us, &bytes),
                Then::End => self.plan(driver, key, reaction.after_us, Kind::Ended),
                Then::Reset => self.plan(driver, key, reaction.after_us, Kind::Failed(NetError::Reset)),
            }
        }
        if let Some(buffer) = buffer {
            self.plan(driver, key, sent_us, Kind::Sent(buffer));
        }
    }

    /// Datagrams arrive whole, and may overtake each other.
    fn send_datagram(&mut self, driver: usize, key: Key, addr: SocketAddr, bytes: Vec<u8>) {
        for reaction in self.web.datagram(addr, &bytes, self.now, &mut self.rng) {
            let kind = match reaction.then {
                Then::Bytes(bytes) => Kind::Bytes(bytes),
                Then::Reset => Kind::Failed(NetError::Refused),
                Then::End => continue,
            };
            self.push(self.now.plus_us(reaction.after_us), Event { driver, key, kind });
        }
        self.plan(driver, key, 0, Kind::Sent(bytes));
    }

    pub(super) fn close(&mut self, driver: usize, key: Key) {
        let slot = (driver, key.index());
        let conn = self.conns.remove(&slot).unwrap_or_else(|| panic!("{key:?} is not open"));
        assert_eq!(conn.key, key);
        match conn.pipe {
            Some((pipe, side)) => self.hang_up(pipe, side),
            None if conn.transport != Transport::Udp => self.web.closed(conn.id),
            None => {}
        }
        self.lingering.insert(slot);
        let at = self.now.plus_us(self.rng.below(3_000));
        self.push(at, Event { driver, key, kind: Kind::Closed });
    }

    fn plan_bytes(&mut self, driver: usize, key: Key, after_us: u64, bytes: &[u8]) {
        self.in_pieces(after_us, bytes, |net, after_us, piece| net.plan(driver, key, after_us, piece));
    }

    /// Bytes arrive in pieces, cut anywhere, each some time after the one before.
    pub(super) fn in_pieces(
        &mut self,
        mut after_us: u64,
        bytes: &[u8],
        plan: impl Fn(&mut SimNet, u64, Kind),
    ) {
        let mut rest = bytes;
        let whole = self.rng.chance(500);
        while !rest.is_empty() {
            let take = if whole {
                rest.len().min(16 * 1024)
            } else {
                1 + self.rng.below(rest.len() as u64) as usize
            };
            let (piece, left) = rest.split_at(take.min(16 * 1024));
            plan(self, after_us, Kind::Bytes(piece.to_vec()));
            rest = left;
            after_us = self.rng.below(400);
        }
    }

    fn plan(&mut self, driver: usize, key: Key, after_us: u64, kind: Kind) {
        let Some(conn) = self.conns.get_mut(&(driver, key.index())) else {
            return;
        };
        let at = conn.last_at.max(self.now).plus_us(after_us);
        conn.last_at = at;
        self.push(at, Event { driver, key, kind });
    }

    fn push(&mut self, at: Now, event: Event) {
        self.push_planned(at, Planned::Event(event));
    }

    pub(super) fn push_planned(&mut self, at: Now, planned: Planned) {
        self.next_number += 1;
        self.events.insert(self.next_number, planned);
        self.future.push(Reverse((at, self.next_number)));
    }
}
