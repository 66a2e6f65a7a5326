//! Links over loopback: every byte in order, one `Up` and one `Down` each, peers dialed until they answer.

use super::*;
use crate::base::{Key, Now, Rng};
use crate::driver::{ConnectFate, NoWeb, Reaction, SimDriver, SimNet, SimWeb, UringDriver};
use crate::engine::runtime::notices::Notices;
use crate::engine::{Actor, Health};
use crate::limits::{LINK_DIALS_MAX, LINK_OUT_BYTES_MAX, LINK_RING_WORDS, RECV_BUFFER_BYTES};
use crate::rings::{Doorbell, ThreadBell};
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

thread_local! {
    static DRIVER: Cell<&'static str> = const { Cell::new("epoll") };
}

fn on_each_driver(test: fn()) {
    for driver in ["epoll", "uring"] {
        if driver == "epoll" || UringDriver::probe(1).is_ok() {
            DRIVER.set(driver);
            test();
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

struct End {
    port: LinkPort,
    bell: Arc<Doorbell>,
    sleeper: Arc<ThreadBell>,
    bound: Option<SocketAddr>,
    thread: Option<LinksThread>,
}

impl End {
    fn start(listen: bool, dial: Vec<String>, links_max: usize) -> End {
        let sleeper = Arc::new(ThreadBell::default());
        sleeper.belongs_to_me();
        let bell = Arc::new(Doorbell::new({
            let sleeper = sleeper.clone();
            move || sleeper.ring()
        }));
        let listen = listen.then(|| "127.0.0.1:0".parse().unwrap());
        let config = LinksConfig { listen, dial, links_max, answers_end: false };
        let driver = DRIVER.get();
        let (port, thread, bound) =
            LinksThread::start(config, driver, Instant::now(), bell.clone(), &Health::default()).unwrap();
        End { port, bell, sleeper, bound, thread: Some(thread) }
    }

    fn listening() -> (End, SocketAddr) {
        let end = End::start(true, Vec::new(), 8);
        let addr = end.bound.unwrap();
        (end, addr)
    }

    fn dialing(addr: impl ToString) -> End {
        End::start(false, vec![addr.to_string()], 8)
    }

    /// The next event; a lost ring of the bell would cost all patience.
    #[track_caller]
    fn next(&mut self) -> LinkEvent {
        let until = Instant::now() + PATIENCE;
        loop {
            self.bell.falling_asleep();
            if let Some(event) = self.port.next() {
                self.bell.awake();
                return event;
            }
            assert!(Instant::now() < until, "no event");
            self.sleeper.sleep(PATIENCE);
            self.bell.awake();
        }
    }

    #[track_caller]
    fn up(&mut self) -> Key {
        match self.next() {
            LinkEvent::Up { link, .. } => link,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.next() {
                LinkEvent::Bytes { bytes, .. } => all.extend(bytes),
                LinkEvent::Sent { .. } => {}
                other => panic!("{other:?} after {} bytes", all.len()),
            }
        }
        all
    }

    #[track_caller]
    fn down(&mut self) -> (Key, String) {
        loop {
            match self.next() {
                LinkEvent::Down { link, why } => return (link, why),
                LinkEvent::Bytes { .. } | LinkEvent::Sent { .. } | LinkEvent::Ended { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[track_caller]
    fn is_quiet_for(&mut self, time: Duration) {
        std::thread::sleep(time);
        assert_eq!(self.port.next(), None);
    }
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn bytes_go_both_ways_between_two_ends() {
    on_each_driver(|| {
        let (mut server, addr) = End::listening();
        let mut client = End::dialing(format!("localhost:{}", addr.port()));
        let (here, there) = (server.up(), client.up());
        server.port.send(here, b"work\n".to_vec());
        assert_eq!(client.bytes(5), b"work\n");
        client.port.send(there, b"DONE".to_vec());
        client.port.send(there, b" 1\n".to_vec());
        assert_eq!(server.bytes(7), b"DONE 1\n");
        // Everything that was sent is accounted for.
        let mut sent = 0;
        while sent < 7 {
            match client.next() {
                LinkEvent::Sent { link, bytes } if link == there => sent += bytes,
                other => panic!("{other:?}"),
            }
        }
        server.port.close(here);
        assert_eq!(server.down().0, here);
        assert_eq!(client.down(), (there, "closed by the peer".to_string()));
    });
}

#[test]
fn every_peer_has_a_link_of_its_own_and_no_more_than_there_is_room_for() {
    on_each_driver(|| {
        let mut end = End::start(true, Vec::new(), 2);
        let addr = end.bound.unwrap();
        let (mut a, first) = (connect(addr), end.up());
        let (mut b, second) = (connect(addr), end.up());
        assert_ne!(first, second);
        let mut turned_away = connect(addr);
        assert_eq!(turned_away.read(&mut [0; 8]).unwrap(), 0);
        for (stream, link) in [(&mut b, second), (&mut a, first)] {
            stream.write_all(b"x\n").unwrap();
            assert_eq!(end.next(), LinkEvent::Bytes { link, bytes: b"x\n".to_vec() });
        }
        drop(a);
        assert_eq!(end.down().0, first);
        let _c = connect(addr);
        let third = end.up();
        assert_eq!(third.index(), first.index());
        assert_ne!(third, first, "a key is not used again");
        end.port.send(first, b"late".to_vec());
        end.is_quiet_for(Duration::from_millis(50));
    });
}

#[test]
fn after_close_nothing_comes_but_one_down() {
    on_each_driver(|| {
        let (mut end, addr) = End::listening();
        let (mut peer, link) = (connect(addr), end.up());
        peer.write_all(&[b'x'; 100_000]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        end.port.close(link);
        end.port.close(link);
        end.port.send(link, b"late".to_vec());
        assert_eq!(end.next(), LinkEvent::Down { link, why: "closed".to_string() });
        end.is_quiet_for(Duration::from_millis(50));
    });
}

#[test]
fn a_peer_is_dialed_until_it_answers_and_again_when_it_went_away() {
    on_each_driver(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        let mut end = End::dialing(addr);
        end.is_quiet_for(Duration::from_millis(350));
        let listener = TcpListener::bind(addr).unwrap();
        for round in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let link = end.up();
            stream.write_all(b"hello").unwrap();
            assert_eq!(end.bytes(5), b"hello", "round {round}");
            drop(stream);
            assert_eq!(end.down().0, link);
        }
    });
}

/// The owner does not look: the peer's bytes wait in the kernel, and not one is lost.
#[test]
fn a_full_ring_stops_reading_and_drops_nothing() {
    on_each_driver(|| {
        let (mut end, addr) = End::listening();
        let (mut peer, _) = (connect(addr), end.up());
        let total = (LINK_RING_WORDS + 600) * RECV_BUFFER_BYTES;
        let writer = std::thread::spawn(move || {
            for at in 0..total / 4 {
                // Written in one go per page, so that the test is about the ring and not about system calls.
                if at % 4_096 == 0 {
                    let page: Vec<u8> = (at..at + 4_096).flat_map(|n| (n as u32).to_le_bytes()).collect();
                    peer.write_all(&page).unwrap();
                }
            }
            peer
        });
        std::thread::sleep(Duration::from_millis(300));
        let (mut seen, mut next) = (0usize, Vec::new());
        while seen < total {
            next.extend(end.bytes(1));
            let whole = next.len() / 4 * 4;
            for word in next[..whole].chunks(4) {
                assert_eq!(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize, seen / 4);
                seen += 4;
            }
            next.drain(..whole);
        }
        drop(writer.join().unwrap());
        end.down();
    });
}

#[test]
fn a_peer_that_does_not_read_is_let_go() {
    on_each_driver(|| {
        let (mut end, addr) = End::listening();
        let (_peer, link) = (connect(addr), end.up());
        for _ in 0..LINK_OUT_BYTES_MAX / (1 << 20) + 16 {
            end.port.send(link, vec![b'x'; 1 << 20]);
        }
        let (gone, why) = end.down();
        assert_eq!(gone, link);
        assert!(why.starts_with("it does not read"), "{why}");
    });
}

/// The end comes after what was said: a peer that has not read yet gets all of it, though it talks on.
#[test]
fn the_last_words_arrive() {
    on_each_driver(|| {
        let (mut end, addr) = End::listening();
        let (mut peer, link) = (connect(addr), end.up());
        peer.write_all(b"unread").unwrap();
        end.port.send(link, vec![b'x'; 3 << 20]);
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let mut all = Vec::new();
            peer.read_to_end(&mut all).unwrap();
            all.len()
        });
        end.thread.take().unwrap().end();
        assert_eq!(reader.join().unwrap(), 3 << 20);
        assert!(TcpStream::connect(addr).is_err(), "nobody listens any more");
    });
}

#[test]
fn peers_are_dialed_and_undialed_while_it_runs() {
    on_each_driver(|| {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [a, b, c] = [0, 1, 2].map(|n| listeners[n].local_addr().unwrap().to_string());
        let mut end = End::start(false, vec![a], 8);
        assert!(matches!(end.next(), LinkEvent::Up { dial: Some(0), .. }));
        let b = end.port.dial(b).unwrap();
        let c = end.port.dial(c.replace("127.0.0.1", "localhost")).unwrap();
        assert_eq!((b, c), (1, 2));
        let mut up = || match end.next() {
            LinkEvent::Up { link, dial, .. } => (dial, link),
            other => panic!("{other:?}"),
        };
        let mut links = [up(), up()];
        links.sort_by_key(|(dial, _)| *dial);
        assert_eq!(links.map(|(dial, _)| dial), [Some(b), Some(c)]);
        let (mut peer, _) = listeners[1].accept().unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        end.port.send(links[0].1, b"last words".to_vec());
        end.port.undial(b);
        end.port.undial(b);
        peer.write_all(b"unheard").unwrap();
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"last words");
        drop(peer);
        assert_eq!(end.next(), LinkEvent::Down { link: links[0].1, why: "closed".to_string() });
        listeners[1].set_nonblocking(true).unwrap();
        end.is_quiet_for(Duration::from_millis(400));
        assert!(listeners[1].accept().is_err(), "it is dialed no more");
        let again = end.port.dial(listeners[1].local_addr().unwrap().to_string()).unwrap();
        assert_eq!(again, 3, "a number is not used again");
        assert!(matches!(end.next(), LinkEvent::Up { dial: Some(3), .. }));
        // One of the list is undialed like the others.
        end.port.undial(0);
        assert_eq!(end.down().1, "closed");
    });
}

#[test]
fn dials_have_a_bound() {
    on_each_driver(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = listener.local_addr().unwrap().to_string();
        drop(listener);
        let mut end = End::start(false, vec![nobody.clone()], 8);
        let numbers: Vec<usize> =
            (1..LINK_DIALS_MAX).map(|_| end.port.dial(nobody.clone()).unwrap()).collect();
        assert_eq!(end.port.dial(nobody.clone()), None);
        end.port.undial(numbers[7]);
        assert_eq!(end.port.dial(nobody), Some(LINK_DIALS_MAX));
    });
}

/// One process of a simulated pair: what it said and heard on its present link.
struct Process {
    links: Links<SimDriver>,
    port: LinkPort,
    link: Option<Key>,
    heard: Vec<u8>,
    said: usize,
    ups: usize,
    downs: usize,
}

const SERVER: &str = "10.0.0.1:7170";

impl Process {
    fn new(net: &Rc<RefCell<SimNet>>, id: usize) -> Process {
        let silent = || Arc::new(Doorbell::new(|| ()));
        let (listen, dial) = match id {
            0 => (Some(SERVER.parse().unwrap()), Vec::new()),
            _ => (None, vec![SERVER.to_string()]),
        };
        let config = LinksConfig { listen, dial, links_max: 4, answers_end: false };
        let driver = SimDriver::new(net.clone(), id, 4);
        let made = Links::new(driver, config, (silent(), silent()), Notices::default(), id as u64);
        let (links, port, _) = made.unwrap();
        Process { links, port, link: None, heard: Vec::new(), said: 0, ups: 0, downs: 0 }
    }

    /// Every byte that is heard is the next one of 0, 1, 2, 3 and so on, on every link from the start.
    fn turn(&mut self, now: Now) {
        self.links.turn(now);
        while let Some(event) = self.port.next() {
            match event {
                LinkEvent::Up { link, .. } => {
                    // A peer may come back before we know that it was away.
                    if let Some(old) = self.link.replace(link) {
                        self.port.close(old);
                    }
                    (self.heard, self.said) = (Vec::new(), 0);
                    self.ups += 1;
                }
                LinkEvent::Bytes { link, bytes } if self.link == Some(link) => {
                    for byte in bytes {
                        assert_eq!(byte, self.heard.len() as u8, "in order, from the first");
                        self.heard.push(byte);
                    }
                }
                LinkEvent::Bytes { .. } | LinkEvent::Sent { .. } | LinkEvent::Ended { .. } => {}
                LinkEvent::Down { link, .. } => {
                    self.downs += 1;
                    if self.link == Some(link) {
                        self.link = None;
                    }
                }
            }
        }
        assert!(self.ups - self.downs <= 4);
    }

    fn say(&mut self, count: usize) {
        if let Some(link) = self.link {
            let bytes = (self.said..self.said + count).map(|n| n as u8).collect();
            self.said += count;
            self.port.send(link, bytes);
        }
    }
}

/// The same value that the thread turns, in virtual time: cut, reset and killed, it comes back each time.
#[test]
fn links_survive_cuts_resets_and_deaths() {
    let mut deaths = 0;
    for seed in 0..20 {
        let net = SimNet::new(seed, 2, Box::new(NoWeb));
        let mut rng = Rng::new(seed);
        let mut processes = [0, 1].map(|id| Process::new(&net, id));
        let until = Now::from_us(60_000_000);
        let (mut say_at, mut fault_at) = (Now::ZERO, Now::from_us(500_000));
        while net.borrow().now() < until.plus_us(60_000_000) {
            let now = net.borrow().now();
            for process in &mut processes {
                process.turn(now);
            }
            if now >= say_at && now < until {
                say_at = now.plus_us(rng.below(100_000));
                let n = rng.below(2) as usize;
                let count = 1 + rng.below(3_000) as usize;
                processes[n].say(count);
            }
            // Then there is a minute without faults.
            if now >= fault_at && now < until {
                fault_at = now.plus_us(rng.below(8_000_000));
                match rng.below(4) {
                    0 => net.borrow_mut().cut(0, 1, now.plus_us(rng.below(7_000_000))),
                    1 => net.borrow_mut().reset_between(0, 1),
                    2 => net.borrow_mut().delay(1 + rng.below(300_000)),
                    _ => {
                        let id = rng.below(2) as usize;
                        net.borrow_mut().forget_driver(id);
                        processes[id] = Process::new(&net, id);
                        deaths += 1;
                    }
                }
            }
            let due = processes.iter().filter_map(|process| process.links.next_due());
            let next = due.chain(net.borrow().next_at()).chain([now.plus_us(100_000)]).min().unwrap();
            net.borrow_mut().advance(next.max(now.plus_us(10)));
        }
        let [a, b] = &processes;
        assert!(a.link.is_some() && b.link.is_some(), "seed {seed}: it stands in the end");
        assert_eq!((a.said, b.said), (b.heard.len(), a.heard.len()), "seed {seed}: all of it arrived");
    }
    assert!(deaths > 10, "{deaths}");
}

/// Whatever a dial is at (resting, connecting, standing), when it is undialed it is over: at most a link that the owner knows
/// goes down, and nothing comes to stand.
#[test]
fn an_undialed_peer_is_left_alone_whatever_it_was_at() {
    let (mut unseen, mut seen) = (0, 0);
    for at_us in (0..6_000).step_by(40) {
        let net = SimNet::new(at_us, 2, Box::new(NoWeb));
        let mut server = Process::new(&net, 0);
        let mut client = Process::new(&net, 1);
        let step = |processes: &mut [&mut Process]| {
            let now = net.borrow().now();
            processes.iter_mut().for_each(|process| process.turn(now));
            net.borrow_mut().advance(now.plus_us(20));
        };
        client.port.undial(0);
        step(&mut [&mut client]);
        let number = client.port.dial(SERVER.to_string()).unwrap();
        while net.borrow().now() < Now::from_us(at_us) {
            step(&mut [&mut server, &mut client]);
        }
        // What happens from here on is told, and not heard before the peer is undialed.
        for _ in 0..25 {
            let now = net.borrow().now();
            client.links.turn(now);
            step(&mut [&mut server]);
        }
        let known = client.ups;
        client.port.undial(number);
        for _ in 0..20_000 {
            step(&mut [&mut server, &mut client]);
        }
        assert_eq!((client.ups, client.downs), (known, known), "{at_us}");
        assert_eq!((server.ups, server.link), (server.downs, None), "{at_us}");
        assert!(client.links.next_due().is_none(), "{at_us}: nothing is to be done");
        *if known == 0 { &mut unseen } else { &mut seen } += 1;
    }
    assert!(unseen > 10 && seen > 10, "{unseen} {seen}");
}

/// A web that remembers which ports were asked for.
struct Asked(Rc<RefCell<Vec<u16>>>);

impl SimWeb for Asked {
    fn connect(&mut self, addr: SocketAddr, _: Now, _: &mut Rng) -> ConnectFate {
        self.0.borrow_mut().push(addr.port());
        ConnectFate::Refuse { after_us: 100 }
    }

    fn request(&mut self, _: u64, _: SocketAddr, _: &[u8], _: Now, _: &mut Rng) -> Vec<Reaction> {
        Vec::new()
    }

    fn closed(&mut self, _: u64) {}
}

#[test]
fn a_name_that_is_undialed_while_it_is_looked_up_is_forgotten() {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let net = SimNet::new(1, 2, Box::new(Asked(asked.clone())));
    let mut client = Process::new(&net, 1);
    client.port.undial(0);
    let [forgotten, kept] = [9, 10].map(|port| client.port.dial(format!("localhost:{port}")).unwrap());
    client.turn(Now::ZERO);
    client.port.undial(forgotten);
    client.turn(Now::ZERO);
    let until = Instant::now() + PATIENCE;
    while asked.borrow().is_empty() {
        assert!(Instant::now() < until, "nobody was asked");
        std::thread::sleep(Duration::from_millis(1));
        client.turn(Now::ZERO);
    }
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(1));
        client.turn(Now::ZERO);
    }
    client.port.undial(kept);
    assert_eq!(*asked.borrow(), [10]);
}
