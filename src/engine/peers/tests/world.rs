//! Nodes on a simulated network, peers that say what they like, and what all of them heard.

use crate::base::{Key, Now};
use crate::driver::{NoWeb, SimDriver, SimNet};
use crate::engine::links::{LinkEvent, LinkPort, Links, LinksConfig, LinksThread};
use crate::engine::peers::{Introduction, Peer, PeerEvent, PeerOwner, Wires};
use crate::engine::runtime::notices::Notices;
use crate::engine::{Actor, Health};
use crate::proto::peer_tls::{NodeIdentity, new_cluster_key};
use crate::proto::peer_wire::{FrameBuffer, Hello, PeerWord};
use crate::rings::Doorbell;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static IDENTITY: LazyLock<NodeIdentity> = LazyLock::new(identity);
static OTHER: LazyLock<NodeIdentity> = LazyLock::new(identity);

fn identity() -> NodeIdentity {
    NodeIdentity::new(&new_cluster_key().unwrap()).unwrap()
}

/// Where the process of that driver listens.
pub fn address(n: usize) -> String {
    format!("10.0.1.{}:7174", n + 1)
}

pub fn introduction(node: u16) -> Introduction {
    Introduction {
        cluster: [7; 16],
        id: 1_000 + u64::from(node),
        node,
        generation: 1,
        epoch: 7,
        version: "0.2.0".to_string(),
        rules: 0x11,
        listen: address(usize::from(node).saturating_sub(1)),
        weight: 100,
        joining: false,
        outside: false,
        spread: None,
    }
}

pub trait WordBytes {
    fn bytes(&self) -> Vec<u8>;
}

impl WordBytes for PeerWord<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

pub fn word_of(word: &PeerWord<'_>) -> String {
    format!("{word:?}")
}

#[derive(Clone, Debug)]
pub struct Up {
    pub peer: Peer,
    pub generation: u32,
    pub epoch: u64,
    pub listen: String,
}

/// What an owner heard.
#[derive(Default)]
pub struct Heard {
    pub ups: Vec<Up>,
    pub downs: Vec<(Peer, String)>,
    pub refused: Vec<(String, String, bool)>,
    /// All words but COUNTED, of which there may be many.
    pub words: Vec<(Peer, String)>,
    pub counted: Vec<u64>,
    pub order: Vec<String>,
    /// The owner refuses everybody.
    pub deny: Option<String>,
    open: Vec<Peer>,
}

impl Heard {
    /// Words that owners sent.
    pub fn said(&self) -> Vec<String> {
        let words = self.words.iter().map(|(_, word)| word);
        words.filter(|word| !word.starts_with("TableAsk")).cloned().collect()
    }
}

impl PeerOwner for Heard {
    fn judge(&mut self, _: &Hello<'_>) -> Result<(), String> {
        self.deny.clone().map_or(Ok(()), Err)
    }

    fn take(&mut self, event: PeerEvent<'_>) {
        match event {
            PeerEvent::Up { peer, hello, .. } => {
                assert!(
                    !self.open.iter().any(|open| open.node == peer.node && peer.node != 0),
                    "one at a time"
                );
                assert_eq!(hello.node, peer.node);
                self.open.push(peer);
                self.order.push(format!("up {}", peer.node));
                let (generation, epoch, listen) = (hello.generation, hello.epoch, hello.listen.to_string());
                self.ups.push(Up { peer, generation, epoch, listen });
            }
            PeerEvent::Word { peer, word } => {
                assert!(self.open.contains(&peer), "words come between up and down");
                self.order.push("word".to_string());
                match word {
                    PeerWord::Counted { batch } => self.counted.push(batch),
                    word => self.words.push((peer, word_of(&word))),
                }
            }
            PeerEvent::Down { peer, why } => {
                let at = self.open.iter().position(|open| *open == peer).expect("it was up");
                self.open.remove(at);
                self.order.push(format!("down {}", peer.node));
                self.downs.push((peer, why.to_string()));
            }
            PeerEvent::Refused { address, why, by_us } => {
                self.refused.push((address.to_string(), why.to_string(), by_us));
            }
        }
    }
}

pub struct Node {
    links: Links<SimDriver>,
    pub wires: Wires,
    pub heard: Heard,
    /// Words that the test sent from here.
    pub said: u64,
    me: Introduction,
    /// Its owner does not look.
    pub is_held_up: bool,
    /// Its whole process stands still.
    pub is_stopped: bool,
}

impl Node {
    /// As it was started.
    pub fn wires_introduction(&self) -> Introduction {
        self.me.clone()
    }

    fn turn(&mut self, now: Now) {
        if self.is_stopped {
            return;
        }
        self.links.turn(now);
        if !self.is_held_up {
            self.wires.take(now, &mut self.heard);
            self.links.turn(now);
        }
    }

    fn next_due(&self) -> Option<Now> {
        let wires = self.wires.next_due().filter(|_| !self.is_held_up);
        let due = self.links.next_due().into_iter().chain(wires).min();
        due.filter(|_| !self.is_stopped)
    }
}

/// A process that speaks without rules.
pub struct Raw {
    links: Links<SimDriver>,
    port: LinkPort,
    /// Said on every link.
    pub greeting: Vec<u8>,
    /// It does not dial again.
    pub once: bool,
    pub ups: usize,
    pub downs: usize,
    /// On the last link.
    heard: Vec<u8>,
    /// Everything is passed on to there.
    pass_to: Option<String>,
    passages: Vec<Passage>,
}

struct Passage {
    inner: Key,
    number: usize,
    outer: Option<Key>,
    held: Vec<u8>,
}

impl Raw {
    fn new(world: &World, id: usize, listen: Option<String>, dial: Vec<String>) -> Raw {
        let (links, port) = links(world, id, listen, dial);
        let (greeting, heard, passages) = (Vec::new(), Vec::new(), Vec::new());
        Raw { links, port, greeting, once: false, ups: 0, downs: 0, heard, pass_to: None, passages }
    }

    pub fn dialing(world: &World, id: usize, to: &str) -> Raw {
        Raw::new(world, id, None, vec![to.to_string()])
    }

    pub fn listening(world: &World, id: usize) -> Raw {
        Raw::new(world, id, Some(address(id)), Vec::new())
    }

    /// Passes on what is said there, and back.
    pub fn passing(world: &World, id: usize, to: &str) -> Raw {
        Raw { pass_to: Some(to.to_string()), ..Raw::listening(world, id) }
    }

    /// What it heard on its last link.
    pub fn words(&self) -> Vec<&'static str> {
        let mut frames = FrameBuffer::default();
        frames.push(&self.heard);
        std::iter::from_fn(|| frames.next_frame().unwrap().map(|frame| frame.kind.name())).collect()
    }

    fn turn(&mut self, now: Now) {
        self.links.turn(now);
        while let Some(event) = self.port.next() {
            match (event, self.pass_to.clone()) {
                (LinkEvent::Up { link, dial: Some(number), .. }, Some(_)) => {
                    if let Some(passage) = self.passages.iter_mut().find(|passage| passage.number == number) {
                        passage.outer = Some(link);
                        self.port.send(link, std::mem::take(&mut passage.held));
                    }
                }
                (LinkEvent::Up { link, .. }, Some(to)) => {
                    self.ups += 1;
                    let number = self.port.dial(to).unwrap();
                    self.passages.push(Passage { inner: link, number, outer: None, held: Vec::new() });
                }
                (LinkEvent::Bytes { link, bytes }, Some(_)) => {
                    for passage in &mut self.passages {
                        match passage.outer {
                            Some(outer) if passage.inner == link => self.port.send(outer, bytes.clone()),
                            None if passage.inner == link => passage.held.extend_from_slice(&bytes),
                            Some(outer) if outer == link => self.port.send(passage.inner, bytes.clone()),
                            _ => {}
                        }
                    }
                }
                (LinkEvent::Down { link, .. }, Some(_)) => {
                    let ended = |passage: &Passage| passage.inner == link || passage.outer == Some(link);
                    for at in (0..self.passages.len()).rev().filter(|&at| ended(&self.passages[at])) {
                        self.port.close(self.passages[at].inner);
                        self.port.undial(self.passages[at].number);
                    }
                    self.passages.retain(|passage| !ended(passage));
                }
                (LinkEvent::Up { link, .. }, None) => {
                    self.ups += 1;
                    self.heard.clear();
                    self.port.send(link, self.greeting.clone());
                }
                (LinkEvent::Bytes { bytes, .. }, None) => self.heard.extend(bytes),
                (LinkEvent::Down { .. }, None) => {
                    self.downs += 1;
                    if self.once {
                        self.port.undial(0);
                    }
                }
                (LinkEvent::Sent { .. } | LinkEvent::Ended { .. }, _) => {}
            }
        }
        self.links.turn(now);
    }
}

fn links(
    world: &World,
    id: usize,
    listen: Option<String>,
    dial: Vec<String>,
) -> (Links<SimDriver>, LinkPort) {
    let silent = || Arc::new(Doorbell::new(|| ()));
    let listen = listen.map(|address| address.parse().unwrap());
    let config = LinksConfig { listen, dial, links_max: 32, answers_end: false };
    let driver = SimDriver::new(world.net.clone(), id, 32);
    let made = Links::new(driver, config, (silent(), silent()), Notices::default(), id as u64);
    let (links, port, _) = made.unwrap();
    (links, port)
}

pub struct World {
    pub net: Rc<RefCell<SimNet>>,
    pub nodes: Vec<Node>,
    pub raws: Vec<Raw>,
    processes: usize,
    identity: Option<NodeIdentity>,
}

impl World {
    pub fn new(seed: u64, processes: usize) -> World {
        let net = SimNet::new(seed, processes, Box::new(NoWeb));
        World { net, nodes: Vec::new(), raws: Vec::new(), processes, identity: None }
    }

    pub fn with_tls(mut self) -> World {
        self.identity = Some(IDENTITY.clone());
        self
    }

    /// Nodes that are started from here on have it.
    pub fn with_other_key(&mut self) -> &mut World {
        self.identity = Some(OTHER.clone());
        self
    }

    pub fn now(&self) -> Now {
        self.net.borrow().now()
    }

    /// Starts a node as a process, or starts it again.
    pub fn start(&mut self, id: usize, me: Introduction) {
        let (links, port) = links(self, id, Some(address(id)), Vec::new());
        let wires = Wires::new(port, self.identity.clone(), me.clone());
        let heard = Heard::default();
        let node = Node { links, wires, heard, said: 0, me, is_held_up: false, is_stopped: false };
        match self.nodes.get_mut(id) {
            Some(old) => *old = node,
            None => self.nodes.push(node),
        }
    }

    pub fn kill(&mut self, id: usize) {
        self.net.borrow_mut().forget_driver(id);
        self.nodes[id].is_stopped = true;
    }

    pub fn dial_all(&mut self, id: usize) {
        for other in (0..self.processes).filter(|&other| other != id) {
            assert!(self.nodes[id].wires.dial(&address(other)));
        }
    }

    pub fn run_s(&mut self, s: u64) {
        self.run_us(s * 1_000_000);
    }

    pub fn run_us(&mut self, us: u64) {
        let until = self.now().plus_us(us);
        loop {
            let now = self.now();
            self.nodes.iter_mut().for_each(|node| node.turn(now));
            self.raws.iter_mut().for_each(|raw| raw.turn(now));
            if now >= until {
                return;
            }
            let nodes = self.nodes.iter().filter_map(Node::next_due);
            let raws = self.raws.iter().filter_map(|raw| raw.links.next_due());
            let next = nodes.chain(raws).chain(self.net.borrow().next_at()).min();
            let next = next.unwrap_or(until).max(now.plus_us(10)).min(until.max(now.plus_us(10)));
            self.net.borrow_mut().advance(next);
        }
    }
}

/// A node over the kernel's sockets.
struct Real {
    wires: Wires,
    heard: Heard,
    address: String,
    _thread: LinksThread,
}

impl Real {
    fn start(node: u16, started: Instant) -> Real {
        let listen = Some("127.0.0.1:0".parse().unwrap());
        let config = LinksConfig { listen, dial: Vec::new(), links_max: 8, answers_end: false };
        let bell = Arc::new(Doorbell::new(|| ()));
        let (port, thread, bound) =
            LinksThread::start(config, "epoll", started, bell, &Health::default()).unwrap();
        let address = bound.unwrap().to_string();
        let me = Introduction { listen: address.clone(), ..introduction(node) };
        let wires = Wires::new(port, Some(IDENTITY.clone()), me);
        Real { wires, heard: Heard::default(), address, _thread: thread }
    }
}

pub fn over_loopback() {
    let started = Instant::now();
    let mut nodes = [1, 2, 3].map(|node| Real::start(node, started));
    let addresses = [0, 1, 2].map(|n| nodes[n].address.clone());
    for node in &mut nodes {
        assert!(addresses.iter().all(|address| node.wires.dial(address)), "its own among them");
    }
    let patience = Duration::from_secs(60);
    let until = |what: &str, nodes: &mut [Real; 3], is_so: &dyn Fn(&Real) -> bool| {
        let by = Instant::now() + patience;
        while !nodes.iter().all(is_so) {
            assert!(Instant::now() < by, "{what}");
            let now = Now::from_us(started.elapsed().as_micros() as u64);
            nodes.iter_mut().for_each(|node| node.wires.take(now, &mut node.heard));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    until("each has a link with each", &mut nodes, &|node| {
        (1..=3).filter(|&other| node.wires.peer(other).is_some()).count() == 2 && node.wires.count() == 2
    });
    for (n, node) in nodes.iter_mut().enumerate() {
        for other in (1..=3).filter(|&other| usize::from(other) != n + 1) {
            let peer = node.wires.peer(other).unwrap();
            for batch in 0..1_000 {
                assert!(node.wires.send(peer, &PeerWord::Counted { batch }));
            }
        }
        node.wires.flush();
    }
    until("all of it arrives", &mut nodes, &|node| node.heard.counted.len() == 2_000);
    for node in &nodes {
        assert!(node.heard.refused.is_empty() && node.heard.downs.is_empty(), "{:?}", node.heard.downs);
        assert_eq!(node.heard.counted.iter().sum::<u64>(), 2 * 999 * 1_000 / 2);
    }
}
