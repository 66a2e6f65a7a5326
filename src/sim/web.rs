use super::plan::{Faults, Plan};
use crate::base::{Now, Rng};
use crate::driver::{ConnectFate, Reaction, SimWeb, Then};
use crate::farm::{self, Site, host_name};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// Sees what the servers of the web see.
pub trait Witness {
    /// The driver that the next request comes from.
    fn driver(&mut self, _driver: usize) {}

    /// A request reached a server.
    fn asked(&mut self, conn: u64, host: u32, ip: IpAddr, target: &str, now: Now);

    /// The server answers it in full, no earlier than then.
    fn answers(&mut self, _conn: u64, _at: Now, _retry_after_s: u64) {}

    /// The client closed a connection.
    fn landed(&mut self, conn: u64);
}

/// The farm's pages behind servers that misbehave as the plan says.
pub struct MisbehavingWeb<J> {
    site: Rc<Site>,
    hosts: HashMap<String, u32>,
    faults: Faults,
    robots_elsewhere: u32,
    judge: Rc<RefCell<J>>,
}

pub const PORT: u16 = 8080;

/// The addresses of a host, in the order of its name's; several hosts share one.
pub fn addresses_of(plan: &Plan, host: u32) -> Vec<IpAddr> {
    let live = |n: u32| IpAddr::V4(Ipv4Addr::from(u32::from_be_bytes([198, 51, 0, 0]) + n % plan.addresses));
    let dead = IpAddr::V6(Ipv6Addr::from(DEAD_NET | u128::from(host % plan.addresses)));
    let mut rng = Rng::new(plan.seed ^ u64::from(host));
    match rng.chance(plan.several).then(|| rng.below(3)) {
        None => vec![live(host)],
        Some(0) => vec![dead, live(host)],
        Some(1) => vec![live(host), dead],
        Some(_) => vec![live(host), live(host + 1)],
    }
}

/// Nobody answers here: addresses with an even number refuse, the others are silent.
const DEAD_NET: u128 = 0x2600_0dea_d000_0000_0000_0000_0000_0000;

/// What becomes of a connection to an address where nobody is.
fn dead_fate(ip: IpAddr, rng: &mut Rng) -> Option<ConnectFate> {
    let IpAddr::V6(v6) = ip else { return None };
    Some(match v6.to_bits() % 2 {
        0 => ConnectFate::Refuse { after_us: rng.below(50_000) },
        _ => ConnectFate::Silence,
    })
}

impl<J: Witness> MisbehavingWeb<J> {
    pub fn new(plan: &Plan, site: Rc<Site>, judge: Rc<RefCell<J>>) -> MisbehavingWeb<J> {
        let hosts = (0..plan.site.hosts).map(|host| (format!("{}:{PORT}", host_name(host)), host)).collect();
        MisbehavingWeb { site, hosts, faults: plan.faults, robots_elsewhere: plan.robots_elsewhere, judge }
    }

    /// The farm's answer, but that some hosts have their robots.txt on the next host.
    fn answer(&self, host: u32, target: &str, answer: &mut Vec<u8>) -> farm::Answer {
        if target == "/robots.txt" && self.robots_elsewhere > 0 && host.is_multiple_of(self.robots_elsewhere)
        {
            let next = host_name((host + 1) % self.hosts.len() as u32);
            let place = format!("http://{next}:{PORT}/robots-of-{host}.txt");
            answer.extend_from_slice(
                format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").as_bytes(),
            );
            return farm::Answer { delay_ms: 0, then: farm::Then::KeepAlive };
        }
        match robots_of(target) {
            Some(other) => self.site.answer(other, b"/robots.txt", PORT, false, answer),
            None => self.site.answer(host, target.as_bytes(), PORT, false, answer),
        }
    }
}

/// The host whose robots.txt a target is, kept by another.
pub fn robots_of(target: &str) -> Option<u32> {
    target.strip_prefix("/robots-of-")?.strip_suffix(".txt")?.parse().ok()
}

fn busy(rng: &mut Rng) -> (Vec<u8>, u64) {
    let status = if rng.chance(500) { "429 Too Many Requests" } else { "503 Service Unavailable" };
    let seconds = rng.chance(700).then(|| rng.below(20));
    let wait = seconds.map_or(String::new(), |seconds| format!("Retry-After: {seconds}\r\n"));
    let answer = format!("HTTP/1.1 {status}\r\n{wait}Content-Length: 0\r\n\r\n");
    (answer.into_bytes(), seconds.unwrap_or(0))
}

impl<J: Witness> SimWeb for MisbehavingWeb<J> {
    fn driver(&mut self, driver: usize) {
        self.judge.borrow_mut().driver(driver);
    }

    fn connect(&mut self, addr: SocketAddr, _now: Now, rng: &mut Rng) -> ConnectFate {
        if let Some(fate) = dead_fate(addr.ip(), rng) {
            return fate;
        }
        // A process that is not there yet is no web server.
        if addr.port() != PORT {
            return ConnectFate::Refuse { after_us: rng.below(50_000) };
        }
        match rng.below(1_000) {
            n if n < self.faults.refuse => ConnectFate::Refuse { after_us: rng.below(50_000) },
            n if n < self.faults.refuse + self.faults.silence => ConnectFate::Silence,
            _ => {
                let slow = rng.chance(self.faults.slow);
                ConnectFate::Accept { after_us: rng.below(if slow { 4_000_000 } else { 30_000 }) }
            }
        }
    }

    fn request(
        &mut self,
        conn: u64,
        addr: SocketAddr,
        bytes: &[u8],
        now: Now,
        rng: &mut Rng,
    ) -> Vec<Reaction> {
        let text = std::str::from_utf8(bytes).expect("requests are ASCII");
        let mut lines = text.split("\r\n");
        let target = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a request line");
        let name = lines.find_map(|line| line.strip_prefix("Host: ")).expect("a host");
        let host = self.hosts[name];
        self.judge.borrow_mut().asked(conn, host, addr.ip(), target, now);

        let (mut answer, mut retry_after_s) = (Vec::new(), 0);
        let said = self.answer(host, target, &mut answer);
        if rng.chance(self.faults.busy) {
            (answer, retry_after_s) = busy(rng);
        }
        let slow = rng.chance(self.faults.slow);
        let mut after_us =
            u64::from(said.delay_ms) * 1_000 + rng.below(if slow { 30_000_000 } else { 20_000 });
        let whole = answer.len();
        let mut reactions = Vec::new();
        if rng.chance(self.faults.stall) {
            // Some of it comes, then nothing for ever.
            answer.truncate(rng.below(answer.len() as u64 + 1) as usize);
            if answer.len() == whole {
                self.judge.borrow_mut().answers(conn, now.plus_us(after_us), retry_after_s);
            }
            reactions.push(Reaction { after_us, then: Then::Bytes(answer) });
            return reactions;
        }
        let cut = rng.chance(self.faults.cut);
        if cut {
            answer.truncate(rng.below(answer.len() as u64 + 1) as usize);
        }
        if answer.len() == whole {
            self.judge.borrow_mut().answers(conn, now.plus_us(after_us), retry_after_s);
        }
        if !answer.is_empty() {
            reactions.push(Reaction { after_us, then: Then::Bytes(answer) });
            after_us = rng.below(1_000);
        }
        let reset = rng.chance(self.faults.reset) || said.then == farm::Then::Reset;
        if reset {
            reactions.push(Reaction { after_us, then: Then::Reset });
        } else if cut || said.then == farm::Then::Close || rng.chance(self.faults.close) {
            // Right away, or while the connection is idle and about to be used again.
            let later = rng.below(3_000_000);
            let after_us = if cut || rng.chance(500) { after_us } else { later };
            reactions.push(Reaction { after_us, then: Then::End });
        }
        reactions
    }

    fn closed(&mut self, conn: u64) {
        self.judge.borrow_mut().landed(conn);
    }
}
