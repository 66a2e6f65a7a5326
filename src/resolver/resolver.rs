use super::cache::Cache;
use super::lookup::{Answer, Asking, Failure, Finding, Half, Lookup};
use super::servers::Servers;
use crate::base::{Durations, Key, NetAsk, NetError, NetEvent, Now, Rng, Slots, TimerWheel, Transport};
use crate::proto::dns::{HostName, Question, RecordKind, Reply};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The settings this role needs, as built.
#[derive(Clone, Debug)]
pub struct ResolverConfig {
    /// In the order they are asked; at least one.
    pub servers: Vec<SocketAddr>,
    /// Whether the addresses of a name begin with IPv6; either way the kinds take turns.
    pub ipv6_first: bool,
    /// How long the first try at a server may take; it doubles with every round, twice at most.
    pub timeout_us: u64,
    /// Rounds through all servers.
    pub attempts: u8,
    /// Answers remembered.
    pub cache_max: usize,
    /// Names asked for at once.
    pub lookups_max: usize,
    /// Sockets open at once, including those being closed.
    pub sockets_max: usize,
}

/// What the resolver wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    Net(NetAsk),
    /// The one answer to a name for which `ask` said `Pending`, however often.
    Answer {
        name: Box<str>,
        answer: Answer,
    },
}

/// What is known of a name at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Known(Answer),
    /// An `Action::Answer` will come.
    Pending,
    /// Too many names are open: ask again when one of them is answered.
    Full,
}

/// See the folder's docs.
pub struct Resolver {
    config: ResolverConfig,
    servers: Servers,
    cache: Cache,
    lookups: Slots<Lookup>,
    /// Open names: a second question about one of them waits for the same answer.
    open: RapidHashMap<Box<str>, Key>,
    conns: Slots<Conn>,
    /// Names asked for within the last moment, oldest first, and how many of them have no answer yet.
    fresh: VecDeque<(Key, Now)>,
    fresh_open: usize,
    /// Of lookups. A timer whose lookup is gone, or has moved on, finds nothing to do.
    wheel: TimerWheel<Key>,
    due: Vec<Key>,
    /// Source of ids and spellings. An attacker who sees enough of them to predict the next need not guess.
    rng: Rng,
    stats: ResolverStats,
}

/// What names were asked for, and with what success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverStats {
    /// Answers of servers: addresses, no such name, no address, no answer to the question, none in time.
    pub lookups: [u64; 5],
    /// Questions that the cache knew the answer to, and those that it did not.
    pub cache: [u64; 2],
    pub times: Durations,
}

/// A socket: one try at one server.
struct Conn {
    lookup: Key,
    kind: RecordKind,
    server: usize,
    state: ConnState,
}

enum ConnState {
    /// The question goes out with `Connected`; what comes in is counted when it is no answer to it.
    Datagram { question: Question, strays: u8 },
    /// An answer that did not fit in a datagram: length and message, as far as they have come.
    Stream { question: Question, received: Vec<u8> },
    /// Closed by the resolver; the slot is free when the driver reports `Closed`.
    Closing,
}

/// Once IPv4 addresses are in, IPv6 ones may take this much longer. Servers are asked for both at once and a cache
/// answers both at once; a server that needs longer would delay every page of the host for an address it can do without.
const SETTLE_MS: u64 = 50;
/// Questions wait in the server's receive buffer, which by default holds some 270 of them. So no more names than
/// this are asked for within a moment unless they are answered; a burst would be lost and cost a time-out.
const FRESH_MAX: usize = 128;
const FRESH_MS: u64 = 20;
/// A try that finds no socket free is made again after this long.
const NO_SOCKET_MS: u64 = 10;
/// Tries that may still be answered while the latest one runs.
const TRIES_OPEN_MAX: usize = 4;
/// More stray datagrams at one socket mean that a third party is guessing.
const STRAYS_MAX: u8 = 32;
/// Rounds after which the time-out doubles no more.
const DOUBLINGS_MAX: u32 = 2;

impl Resolver {
    /// The seed should be one that an attacker cannot guess.
    pub fn new(config: ResolverConfig, now: Now, seed: u64) -> Resolver {
        Resolver {
            servers: Servers::new(&config.servers),
            cache: Cache::new(config.cache_max),
            lookups: Slots::new(config.lookups_max),
            open: RapidHashMap::default(),
            conns: Slots::new(config.sockets_max),
            fresh: VecDeque::new(),
            fresh_open: 0,
            wheel: TimerWheel::new(now),
            due: Vec::new(),
            rng: Rng::new(seed),
            stats: ResolverStats::default(),
            config,
        }
    }

    /// Names open.
    pub fn open(&self) -> usize {
        self.lookups.len()
    }

    /// Sockets: open and being closed.
    #[cfg(test)]
    pub fn conns(&self) -> usize {
        self.conns.len()
    }

    pub fn stats(&self) -> &ResolverStats {
        &self.stats
    }

    /// Answers that are remembered.
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    /// However its servers behave, a name is answered within this time.
    pub fn answered_within_us(&self) -> u64 {
        let rounds = (0..self.config.attempts).map(|round| timeout_us(&self.config, round));
        // Every try may go on over TCP, and the last timers fire a tick late.
        2 * self.config.servers.len() as u64 * rounds.sum::<u64>() + 100_000
    }

    /// Asks for the addresses of a host.
    pub fn ask(&mut self, name: &str, now: Now, out: &mut Vec<Action>) -> Asked {
        if let Some(answer) = self.cache.get(name, now) {
            self.stats.cache[0] += 1;
            return Asked::Known(answer);
        }
        if self.open.contains_key(name) {
            self.stats.cache[1] += 1;
            return Asked::Pending;
        }
        let Ok(host) = HostName::parse(name) else {
            return Asked::Known(Err(Failure::BadName));
        };
        self.age(now);
        if self.fresh_open >= FRESH_MAX || self.conns.len() + 2 > self.config.sockets_max {
            return Asked::Full;
        }
        let lookup = Lookup {
            name: name.into(),
            host,
            a: Half::Open(Asking::new(now)),
            aaaa: Half::Open(Asking::new(now)),
            fresh: true,
            settle_by: Now::NEVER,
            deadline: now.plus_us(self.answered_within_us()),
            armed: Now::NEVER,
        };
        let Some(key) = self.lookups.insert(lookup) else {
            return Asked::Full;
        };
        self.stats.cache[1] += 1;
        self.open.insert(name.into(), key);
        self.fresh.push_back((key, now.plus_ms(FRESH_MS)));
        self.fresh_open += 1;
        self.next_try(key, RecordKind::A, now, out);
        self.next_try(key, RecordKind::Aaaa, now, out);
        self.arm(key);
        Asked::Pending
    }

    /// Takes a network event. Every transition of a socket is in the match below.
    pub fn step(&mut self, conn: Key, event: NetEvent<'_>, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("the driver speaks of sockets that were asked for");
        let (lookup, kind) = (slot.lookup, slot.kind);
        match (&mut slot.state, event) {
            (ConnState::Closing, NetEvent::Closed) => {
                self.conns.remove(conn);
                return;
            }
            // What comes after the close is of no interest.
            (ConnState::Closing, _) => return,
            (ConnState::Datagram { question, .. }, NetEvent::Connected) => {
                let bytes = question.datagram(edns(&mut self.lookups, lookup, kind));
                out.push(Action::Net(NetAsk::Send { conn, bytes }));
            }
            (ConnState::Stream { question, .. }, NetEvent::Connected) => {
                let bytes = question.framed(edns(&mut self.lookups, lookup, kind));
                out.push(Action::Net(NetAsk::Send { conn, bytes }));
            }
            (_, NetEvent::Sent(_)) => {}
            (ConnState::Datagram { question, strays }, NetEvent::Received(bytes)) => {
                match question.read(bytes, Transport::Udp) {
                    Reply::Stray => {
                        *strays += 1;
                        if *strays > STRAYS_MAX {
                            self.over_tcp(conn, now, out);
                        }
                    }
                    Reply::Unfit(_) => self.over_tcp(conn, now, out),
                    reply => self.replied(conn, reply, now, out),
                }
            }
            (ConnState::Stream { question, received }, NetEvent::Received(bytes)) => {
                received.extend_from_slice(bytes);
                if let Some(message) = whole_message(received) {
                    let reply = question.read(message, Transport::Tcp);
                    self.replied(conn, reply, now, out);
                }
            }
            // A lack of descriptors or memory here is not the server's fault.
            (_, NetEvent::Failed(NetError::Exhausted)) => self.give_up_try(conn, now, out),
            (_, NetEvent::Failed(_) | NetEvent::Ended) => {
                self.servers.missed(slot.server, now);
                self.give_up_try(conn, now, out);
            }
            (_, NetEvent::Closed | NetEvent::Accepted(_)) => unreachable!("the driver reports in order"),
        }
        self.arm(lookup);
    }

    /// Time-outs.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Action>) {
        self.age(now);
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now, |key| due.push(key));
        for key in due.drain(..) {
            if let Some(lookup) = self.lookups.get_mut(key) {
                if lookup.armed <= now {
                    lookup.armed = Now::NEVER;
                }
                self.check_times(key, now, out);
                self.arm(key);
            }
        }
        self.due = due;
    }

    pub fn next_due(&self) -> Option<Now> {
        // A caller that got `Full` because of the fresh names may ask again when they have aged.
        let aged = self.fresh.front().filter(|_| self.fresh_open >= FRESH_MAX).map(|&(_, until)| until);
        [self.wheel.next_due(), aged].into_iter().flatten().min()
    }

    /// Names asked for a moment ago have left the server's buffer, with or without an answer.
    fn age(&mut self, now: Now) {
        while let Some(&(key, _)) = self.fresh.front().filter(|(_, until)| *until <= now) {
            self.fresh.pop_front();
            if let Some(lookup) = self.lookups.get_mut(key)
                && std::mem::take(&mut lookup.fresh)
            {
                self.fresh_open -= 1;
            }
        }
    }

    fn check_times(&mut self, key: Key, now: Now, out: &mut Vec<Action>) {
        for kind in [RecordKind::A, RecordKind::Aaaa] {
            let Some(lookup) = self.lookups.get_mut(key) else {
                return;
            };
            let late = lookup.deadline <= now;
            let Some(asking) = lookup.half(kind).asking() else {
                continue;
            };
            if late {
                let failure = asking.failure();
                self.conclude(key, kind, Finding::Failed(failure), now, out);
            } else if asking.retry_at <= now {
                if let Some(conn) = asking.latest.take().and_then(|latest| self.conns.get(latest)) {
                    self.servers.missed(conn.server, now);
                }
                self.next_try(key, kind, now, out);
            }
        }
        self.settle(key, now, out);
    }

    /// A server has answered the question, or refused to.
    fn replied(&mut self, conn: Key, reply: Reply, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn).expect("the caller's socket is open");
        let (key, kind, server) = (slot.lookup, slot.kind, slot.server);
        let asking = asking(&mut self.lookups, key, kind);
        let finding = match reply {
            Reply::Addresses { addresses, ttl_s } => Finding::Addresses { addresses, ttl_s },
            Reply::NoAddress { ttl_s } => Finding::NoAddress { ttl_s },
            Reply::NoSuchName { ttl_s } => Finding::NoSuchName { ttl_s },
            // Asked again without EDNS; that does not count as a try.
            Reply::NotUnderstood if asking.edns => {
                asking.edns = false;
                asking.asked[server] -= 1;
                self.give_up_try(conn, now, out);
                return;
            }
            fault => {
                asking.faulted = true;
                // SERVFAIL may be the fault of the name's own servers; anything else is that of this one.
                if fault != Reply::Fault(SERVFAIL) {
                    self.servers.missed(server, now);
                }
                self.give_up_try(conn, now, out);
                return;
            }
        };
        self.servers.answered(server);
        self.conclude(key, kind, finding, now, out);
        self.settle(key, now, out);
    }

    /// One of the two questions is answered, or given up.
    fn conclude(&mut self, key: Key, kind: RecordKind, finding: Finding, now: Now, out: &mut Vec<Action>) {
        let lookup = self.lookups.get_mut(key).expect("the caller's lookup is open");
        if let (RecordKind::A, Finding::Addresses { .. }) = (kind, &finding) {
            lookup.settle_by = now.plus_ms(SETTLE_MS);
        }
        let half = std::mem::replace(lookup.half(kind), Half::In(finding));
        let Half::Open(asking) = half else { unreachable!("a question is answered once") };
        for conn in asking.tries {
            self.close(conn, out);
        }
    }

    /// Gives the answer if it can be given.
    fn settle(&mut self, key: Key, now: Now, out: &mut Vec<Action>) {
        let Some(lookup) = self.lookups.get(key) else {
            return;
        };
        let Some((answer, ttl_s)) = lookup.verdict(self.config.ipv6_first, now) else {
            return;
        };
        let lookup = self.lookups.remove(key).expect("just looked at");
        self.open.remove(&lookup.name);
        self.fresh_open -= usize::from(lookup.fresh);
        for half in [lookup.a, lookup.aaaa] {
            if let Half::Open(asking) = half {
                asking.tries.into_iter().for_each(|conn| self.close(conn, out));
            }
        }
        self.stats.lookups[match answer {
            Ok(_) => 0,
            Err(Failure::NoSuchName | Failure::BadName) => 1,
            Err(Failure::NoAddress) => 2,
            Err(Failure::ServersFailed) => 3,
            Err(Failure::TimedOut) => 4,
        }] += 1;
        self.stats.times.note(self.answered_within_us().saturating_sub(lookup.deadline.since_us(now)));
        self.cache.put(&lookup.name, answer.clone(), now.plus_ms(u64::from(ttl_s) * 1_000), now);
        out.push(Action::Answer { name: lookup.name, answer });
    }

    /// Asks the server whose turn it is; after the last of them the question is given up.
    fn next_try(&mut self, key: Key, kind: RecordKind, now: Now, out: &mut Vec<Action>) {
        let asking = asking(&mut self.lookups, key, kind);
        asking.latest = None;
        let Some(server) = self.servers.choose(&asking.asked, self.config.attempts, now) else {
            let failure = asking.failure();
            self.conclude(key, kind, Finding::Failed(failure), now, out);
            self.settle(key, now, out);
            return;
        };
        asking.asked[server] += 1;
        if self.open_try(key, kind, server, Transport::Udp, now, out) {
            return;
        }
        let asking = self::asking(&mut self.lookups, key, kind);
        asking.asked[server] -= 1;
        asking.retry_at = now.plus_ms(NO_SOCKET_MS);
        if asking.tries.len() > 1 {
            let oldest = asking.tries.remove(0);
            self.close(oldest, out);
        }
    }

    /// Asks the same server over TCP, in place of a datagram without an answer.
    fn over_tcp(&mut self, conn: Key, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn).expect("the caller's socket is open");
        let (key, kind, server) = (slot.lookup, slot.kind, slot.server);
        self.let_go_of_try(conn, out);
        let was_latest = asking(&mut self.lookups, key, kind).latest == Some(conn);
        if !self.open_try(key, kind, server, Transport::Tcp, now, out) && was_latest {
            self.next_try(key, kind, now, out);
        }
    }

    /// Opens a socket for a question and starts its time-out. False if no socket is free.
    fn open_try(
        &mut self,
        key: Key,
        kind: RecordKind,
        server: usize,
        transport: Transport,
        now: Now,
        out: &mut Vec<Action>,
    ) -> bool {
        let lookup = self.lookups.get_mut(key).expect("the caller's lookup is open");
        let (id, case) = (self.rng.next_u64() as u16, self.rng.next_u64());
        let question = Question::new(&lookup.host, kind, id, case);
        let state = match transport {
            Transport::Udp => ConnState::Datagram { question, strays: 0 },
            Transport::Tcp | Transport::Link => ConnState::Stream { question, received: Vec::new() },
        };
        let Some(conn) = self.conns.insert(Conn { lookup: key, kind, server, state }) else {
            return false;
        };
        let asking = asking(&mut self.lookups, key, kind);
        asking.tries.push(conn);
        asking.latest = Some(conn);
        asking.retry_at = now.plus_us(timeout_us(&self.config, asking.asked[server].saturating_sub(1)));
        let oldest = (asking.tries.len() > TRIES_OPEN_MAX).then(|| asking.tries.remove(0));
        out.push(Action::Net(NetAsk::Connect { conn, addr: self.servers.addr(server), transport }));
        if let Some(oldest) = oldest {
            self.close(oldest, out);
        }
        true
    }

    /// A try has failed. If it was the latest one, the next server is asked at once.
    fn give_up_try(&mut self, conn: Key, now: Now, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn).expect("the caller's socket is open");
        let (key, kind) = (slot.lookup, slot.kind);
        self.let_go_of_try(conn, out);
        if asking(&mut self.lookups, key, kind).latest == Some(conn) {
            self.next_try(key, kind, now, out);
        }
    }

    fn let_go_of_try(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.conns.get(conn).expect("the caller's socket is open");
        let (key, kind) = (slot.lookup, slot.kind);
        asking(&mut self.lookups, key, kind).tries.retain(|&other| other != conn);
        self.close(conn, out);
    }

    fn close(&mut self, conn: Key, out: &mut Vec<Action>) {
        let slot = self.conns.get_mut(conn).expect("closing an open socket");
        debug_assert!(!matches!(slot.state, ConnState::Closing), "closed once");
        slot.state = ConnState::Closing;
        out.push(Action::Net(NetAsk::Close { conn }));
    }

    /// Makes sure that the lookup's timer fires no later than it needs.
    fn arm(&mut self, key: Key) {
        let Some(lookup) = self.lookups.get_mut(key) else {
            return;
        };
        let due = lookup.due();
        if due < lookup.armed {
            lookup.armed = due;
            self.wheel.insert(due, key);
        }
    }
}

const SERVFAIL: u8 = 2;

/// An open socket belongs to an open question.
fn asking(lookups: &mut Slots<Lookup>, key: Key, kind: RecordKind) -> &mut Asking {
    let lookup = lookups.get_mut(key).expect("an open socket has its lookup");
    lookup.half(kind).asking().expect("an open socket has its question")
}

fn edns(lookups: &mut Slots<Lookup>, key: Key, kind: RecordKind) -> bool {
    asking(lookups, key, kind).edns
}

fn timeout_us(config: &ResolverConfig, round: u8) -> u64 {
    config.timeout_us << u32::from(round).min(DOUBLINGS_MAX)
}

/// The message behind its two bytes of length, once all of it is there. That is 64 KiB at most.
fn whole_message(received: &[u8]) -> Option<&[u8]> {
    let (length, rest) = received.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}
