//! Name servers that follow a script, on the simulated network.

use super::super::lookup::{Answer, Failure};
use super::super::*;
use crate::base::{NetAsk, Now, Rng};
use crate::driver::{ConnectFate, Driver, Reaction, SimDriver, SimNet, SimWeb, Then};
use crate::proto::dns::made_up::Heard;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// A question as it arrived at a server.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    /// From 1.
    pub(super) server: u8,
    pub(super) tcp: bool,
    pub(super) heard: Heard,
    pub(super) at: Now,
}

pub(super) type Script = Box<dyn FnMut(&Arrived, &mut Rng) -> Vec<Reaction>>;

pub(super) struct NameServers {
    pub(super) script: Script,
    pub(super) log: Rc<RefCell<Vec<Arrived>>>,
}

impl NameServers {
    pub(super) fn arrived(
        &mut self,
        addr: SocketAddr,
        tcp: bool,
        bytes: &[u8],
        now: Now,
        rng: &mut Rng,
    ) -> Vec<Reaction> {
        let IpAddr::V4(ip) = addr.ip() else { unreachable!("servers have IPv4 addresses here") };
        let arrived = Arrived { server: ip.octets()[3], tcp, heard: Heard::read(bytes), at: now };
        self.log.borrow_mut().push(arrived.clone());
        (self.script)(&arrived, rng)
    }
}

impl SimWeb for NameServers {
    fn connect(&mut self, addr: SocketAddr, _: Now, _: &mut Rng) -> ConnectFate {
        // The fourth server takes no streams.
        if addr.ip() == IpAddr::from([192, 0, 2, 4]) {
            return ConnectFate::Refuse { after_us: 100 };
        }
        ConnectFate::Accept { after_us: 100 }
    }

    fn request(&mut self, _: u64, addr: SocketAddr, bytes: &[u8], now: Now, rng: &mut Rng) -> Vec<Reaction> {
        assert_eq!(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), bytes.len() - 2, "framed");
        let mut reactions = self.arrived(addr, true, &bytes[2..], now, rng);
        for reaction in &mut reactions {
            if let Then::Bytes(bytes) = &mut reaction.then {
                let mut framed = (bytes.len() as u16).to_be_bytes().to_vec();
                framed.append(bytes);
                *bytes = framed;
            }
        }
        reactions
    }

    fn datagram(&mut self, addr: SocketAddr, bytes: &[u8], now: Now, rng: &mut Rng) -> Vec<Reaction> {
        self.arrived(addr, false, bytes, now, rng)
    }

    fn closed(&mut self, _: u64) {}
}

pub(super) fn say(after_us: u64, bytes: Vec<u8>) -> Reaction {
    Reaction { after_us, then: Then::Bytes(bytes) }
}

pub(super) fn soon(bytes: Vec<u8>) -> Vec<Reaction> {
    vec![say(1_000, bytes)]
}

pub(super) fn refuse() -> Vec<Reaction> {
    vec![Reaction { after_us: 500, then: Then::Reset }]
}

pub(super) const BOTH: [&str; 2] = ["192.0.2.80", "2001:db8::80"];

pub(super) struct World {
    pub(super) net: Rc<RefCell<SimNet>>,
    pub(super) driver: SimDriver,
    pub(super) resolver: Resolver,
    pub(super) out: Vec<Action>,
    pub(super) log: Rc<RefCell<Vec<Arrived>>>,
    pub(super) answers: Vec<(Now, Box<str>, Answer)>,
}

pub(super) fn config(servers: u8) -> ResolverConfig {
    ResolverConfig {
        servers: (1..=servers).map(|n| SocketAddr::from(([192, 0, 2, n], 53))).collect(),
        ipv6_first: false,
        timeout_us: 2_000_000,
        attempts: 2,
        cache_max: 100,
        lookups_max: 50,
        sockets_max: 200,
    }
}

impl World {
    pub(super) fn new(
        config: ResolverConfig,
        script: impl FnMut(&Arrived, &mut Rng) -> Vec<Reaction> + 'static,
    ) -> World {
        World::seeded(config, 7, script)
    }

    pub(super) fn seeded(
        config: ResolverConfig,
        seed: u64,
        script: impl FnMut(&Arrived, &mut Rng) -> Vec<Reaction> + 'static,
    ) -> World {
        let log = Rc::new(RefCell::new(Vec::new()));
        let servers = NameServers { script: Box::new(script), log: log.clone() };
        let net = SimNet::new(seed, 1, Box::new(servers));
        let driver = SimDriver::new(net.clone(), 0, config.sockets_max);
        let resolver = Resolver::new(config, Now::ZERO, seed);
        World { net, driver, resolver, out: Vec::new(), log, answers: Vec::new() }
    }

    pub(super) fn now(&self) -> Now {
        self.driver.now()
    }

    pub(super) fn ask(&mut self, name: &str) -> Asked {
        let asked = self.resolver.ask(name, self.now(), &mut self.out);
        self.act();
        asked
    }

    pub(super) fn act(&mut self) {
        let now = self.now();
        for action in self.out.drain(..) {
            match action {
                Action::Net(NetAsk::Connect { conn, addr, transport }) => {
                    self.driver.connect(conn, addr, transport)
                }
                Action::Net(NetAsk::Send { conn, bytes }) => self.driver.send(conn, bytes),
                Action::Net(NetAsk::Close { conn }) => self.driver.close(conn),
                Action::Answer { name, answer } => self.answers.push((now, name, answer)),
            }
        }
    }

    /// Runs until nothing is open, or until some time.
    pub(super) fn run(&mut self, until: Now) {
        loop {
            let now = self.now();
            while let Some((conn, event)) = self.driver.next() {
                self.resolver.step(conn, event, now, &mut self.out);
                self.act();
            }
            self.resolver.tick(now, &mut self.out);
            self.act();
            if until == Now::NEVER && self.resolver.open() + self.resolver.conns() == 0 {
                break;
            }
            let next = [self.net.borrow().next_at(), self.resolver.next_due()].into_iter().flatten().min();
            match next.map(|next| next.max(now)) {
                Some(next) if next <= until => self.net.borrow_mut().advance(next),
                _ => break,
            }
        }
        if until < Now::NEVER && self.now() < until {
            self.net.borrow_mut().advance(until);
        }
    }

    /// Asks for one name and runs until all is quiet: the answer, and after how many milliseconds it came.
    pub(super) fn answer(&mut self, name: &str) -> (Answer, u64) {
        let from = self.now();
        assert_eq!(self.ask(name), Asked::Pending);
        self.run(Now::NEVER);
        assert_eq!((self.resolver.open(), self.resolver.conns()), (0, 0), "all is let go");
        let (at, told, answer) = self.answers.pop().expect("an answer");
        assert!(self.answers.is_empty() && &*told == name, "one answer");
        (answer, at.since_us(from) / 1_000)
    }

    /// Server, over TCP, of every question about A.
    pub(super) fn tries(&self) -> Vec<(u8, bool)> {
        let log = self.log.borrow();
        log.iter()
            .filter(|arrived| !arrived.heard.wants_v6)
            .map(|arrived| (arrived.server, arrived.tcp))
            .collect()
    }
}

pub(super) fn yes(ips: &[&str]) -> Answer {
    Ok(ips.iter().map(|ip| ip.parse::<IpAddr>().unwrap()).collect::<Arc<[IpAddr]>>())
}

pub(super) fn no(failure: Failure) -> Answer {
    Err(failure)
}
