//! What every driver promises of datagrams, of closing, and of being connected to. Otherwise streams are tested by every crawl.

use super::*;
use crate::base::{Accepted, NetError, Rng};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, getsockopt, listen, socket,
    sockopt,
};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// An event with its bytes owned.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Connected,
    Sent,
    Received(Vec<u8>),
    Ended,
    Failed(NetError),
    Closed,
    Accepted(Result<Box<Accepted>, NetError>),
}

impl From<NetEvent<'_>> for Told {
    fn from(event: NetEvent<'_>) -> Told {
        match event {
            NetEvent::Connected => Told::Connected,
            NetEvent::Sent(_) => Told::Sent,
            NetEvent::Received(bytes) => Told::Received(bytes.to_vec()),
            NetEvent::Ended => Told::Ended,
            NetEvent::Failed(error) => Told::Failed(error),
            NetEvent::Closed => Told::Closed,
            NetEvent::Accepted(accepted) => Told::Accepted(accepted),
        }
    }
}

/// The next event; waits for it, at most two seconds.
#[track_caller]
fn told(driver: &mut impl Driver) -> (Key, Told) {
    let until = driver.now().plus_ms(2_000);
    loop {
        if let Some((key, event)) = driver.next() {
            return (key, event.into());
        }
        assert!(driver.now() < until, "nothing within two seconds");
        driver.wait(Some(until), 0).unwrap();
    }
}

/// Nothing more comes for a while.
#[track_caller]
fn quiet(driver: &mut impl Driver) {
    let until = driver.now().plus_ms(60);
    while driver.now() < until {
        driver.wait(Some(until), 0).unwrap();
        assert_eq!(driver.next(), None);
    }
}

fn each_driver(test: fn(&mut dyn FnMut() -> Box<dyn Driver>)) {
    test(&mut || Box::new(EpollDriver::new(64, Instant::now()).unwrap()));
    if UringDriver::probe(1).is_ok() {
        test(&mut || Box::new(UringDriver::new(64, Instant::now()).unwrap()));
    }
}

impl Driver for Box<dyn Driver> {
    fn now(&self) -> Now {
        (**self).now()
    }
    fn connect(&mut self, conn: Key, addr: SocketAddr, transport: Transport) {
        (**self).connect(conn, addr, transport);
    }
    fn send(&mut self, conn: Key, bytes: Vec<u8>) {
        (**self).send(conn, bytes);
    }
    fn close(&mut self, conn: Key) {
        (**self).close(conn);
    }
    fn wait(&mut self, until: Option<Now>, busy: usize) -> io::Result<()> {
        (**self).wait(until, busy)
    }
    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        (**self).next()
    }
    fn bell(&self) -> Arc<dyn Bell> {
        (**self).bell()
    }
    fn conns_max(&self) -> usize {
        (**self).conns_max()
    }
    fn syscalls(&self) -> u64 {
        (**self).syscalls()
    }
}

fn server(ip: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let addr = socket.local_addr().unwrap();
    (socket, addr)
}

#[track_caller]
fn connect(driver: &mut impl Driver, key: Key, addr: SocketAddr) {
    driver.connect(key, addr, Transport::Udp);
    assert_eq!(told(driver), (key, Told::Connected));
}

#[test]
fn a_datagram_is_a_datagram_even_an_empty_one() {
    each_driver(|make| {
        for ip in ["127.0.0.1", "::1"] {
            let Ok(_) = UdpSocket::bind((ip, 0)) else { continue };
            let mut driver = make();
            let (socket, addr) = server(ip);
            let key = Key::new(3, 7);
            connect(&mut driver, key, addr);
            driver.send(key, b"question".to_vec());
            assert_eq!(told(&mut driver), (key, Told::Sent));
            let mut buffer = [0; 100];
            let (n, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..n], b"question");
            for bytes in [&b"one"[..], b"", b"", b"two", &[9; 4_000]] {
                socket.send_to(bytes, from).unwrap();
            }
            for bytes in [&b"one"[..], b"", b"", b"two", &[9; 4_000]] {
                assert_eq!(told(&mut driver), (key, Told::Received(bytes.to_vec())));
            }
            driver.close(key);
            assert_eq!(told(&mut driver), (key, Told::Closed));
            // The slot is free again.
            let again = Key::new(3, 8);
            connect(&mut driver, again, addr);
            driver.close(again);
            assert_eq!(told(&mut driver), (again, Told::Closed));
            quiet(&mut driver);
        }
    });
}

#[test]
fn nobody_but_the_peer_is_heard() {
    each_driver(|make| {
        let mut driver = make();
        let ((socket, addr), (other, _)) = (server("127.0.0.1"), server("127.0.0.1"));
        let key = Key::new(0, 0);
        connect(&mut driver, key, addr);
        driver.send(key, b"q".to_vec());
        assert_eq!(told(&mut driver), (key, Told::Sent));
        let (_, from) = socket.recv_from(&mut [0; 10]).unwrap();
        other.send_to(b"forged", from).unwrap();
        quiet(&mut driver);
        socket.send_to(b"true", from).unwrap();
        assert_eq!(told(&mut driver), (key, Told::Received(b"true".to_vec())));
    });
}

#[test]
fn where_nobody_listens_a_datagram_is_refused() {
    each_driver(|make| {
        let mut driver = make();
        let (socket, addr) = server("127.0.0.1");
        drop(socket);
        let key = Key::new(1, 0);
        connect(&mut driver, key, addr);
        driver.send(key, b"anybody?".to_vec());
        let mut seen = Vec::new();
        while seen.last() != Some(&Told::Failed(NetError::Refused)) {
            seen.push(told(&mut driver).1);
            assert!(seen.len() <= 2, "{seen:?}");
        }
        driver.close(key);
        assert_eq!(told(&mut driver), (key, Told::Closed));
    });
}

#[test]
fn each_socket_has_a_port_of_its_own() {
    each_driver(|make| {
        let mut driver = make();
        let (socket, addr) = server("127.0.0.1");
        let mut ports = Vec::new();
        for index in 0..32 {
            let key = Key::new(index, 0);
            connect(&mut driver, key, addr);
            driver.send(key, vec![0]);
            assert_eq!(told(&mut driver), (key, Told::Sent));
            ports.push(socket.recv_from(&mut [0; 10]).unwrap().1.port());
        }
        let steps = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 2).count();
        ports.sort_unstable();
        ports.dedup();
        assert!(ports.len() == 32 && steps < 16, "drawn at random, not counted up");
    });
}

#[test]
fn a_stream_is_closed_under_a_send_and_a_receive() {
    each_driver(|make| {
        let mut driver = make();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let key = Key::new(5, 1);
        driver.connect(key, listener.local_addr().unwrap(), Transport::Tcp);
        assert_eq!(told(&mut driver), (key, Told::Connected));
        let (mut peer, _) = listener.accept().unwrap();
        // More than the sockets hold, to a peer that does not read.
        let bytes = 64 << 20;
        driver.send(key, vec![7; bytes]);
        quiet(&mut driver);
        driver.close(key);
        assert_eq!(told(&mut driver), (key, Told::Closed));
        peer.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut taken = Vec::new();
        let end = peer.read_to_end(&mut taken);
        assert!(taken.len() < bytes, "the socket is gone, and the rest with it: {end:?}");
        quiet(&mut driver);
    });
}

#[test]
fn whatever_is_open_ends_with_its_driver_and_nothing_begins() {
    if UringDriver::probe(1).is_err() {
        return;
    }
    let mut driver = UringDriver::new(64, Instant::now()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let mut peers = Vec::new();
    for index in 0..5 {
        let key = Key::new(index, 1);
        driver.connect(key, addr, Transport::Tcp);
        assert_eq!(told(&mut driver), (key, Told::Connected));
        peers.push(listener.accept().unwrap().0);
    }
    driver.pause(Key::new(1, 1));
    driver.send(Key::new(2, 1), vec![7; 64 << 20]);
    driver.close(Key::new(3, 1));
    driver.wait(None, 0).unwrap();
    // The kernel has not been told of these.
    driver.connect(Key::new(5, 1), addr, Transport::Tcp);
    driver.send(Key::new(4, 1), b"question".to_vec());
    drop(driver);
    let mut lengths = Vec::new();
    for mut peer in peers {
        peer.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut taken = Vec::new();
        let _ = peer.read_to_end(&mut taken);
        lengths.push(taken.len());
    }
    assert!(lengths[2] > 0 && lengths[2] < 64 << 20, "{lengths:?}");
    lengths[2] = 0;
    assert_eq!(lengths, [0; 5], "what was only queued is not asked");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody is connected to any more");
}

#[test]
fn a_stream_is_closed_before_it_stands() {
    each_driver(|make| {
        let mut driver = make();
        // One connection may wait to be accepted; another gets no answer.
        let flags = SockFlag::SOCK_CLOEXEC;
        let full = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        bind(full.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        listen(&full, Backlog::new(0).unwrap()).unwrap();
        let addr: SockaddrIn = getsockname(full.as_raw_fd()).unwrap();
        let addr = SocketAddr::V4(addr.into());
        let first = Key::new(0, 1);
        driver.connect(first, addr, Transport::Tcp);
        assert_eq!(told(&mut driver), (first, Told::Connected));
        let second = Key::new(1, 1);
        driver.connect(second, addr, Transport::Tcp);
        quiet(&mut driver);
        driver.close(second);
        assert_eq!(told(&mut driver), (second, Told::Closed));
        quiet(&mut driver);
    });
}

/// Runs a test on every driver of the kernel's.
macro_rules! each_server {
    ($test:ident) => {
        $test(|| EpollDriver::new(8, Instant::now()).unwrap());
        if UringDriver::probe(1).is_ok() {
            $test(|| UringDriver::new(8, Instant::now()).unwrap());
        }
    };
}

const LISTENER: Key = Key::new(0, 0);

fn listening(driver: &mut impl ServerDriver) -> SocketAddr {
    driver.listen(LISTENER, "127.0.0.1:0".parse().unwrap()).unwrap()
}

#[track_caller]
fn accepted(driver: &mut impl ServerDriver) -> Accepted {
    match told(driver) {
        (LISTENER, Told::Accepted(Ok(accepted))) => *accepted,
        other => panic!("{other:?}"),
    }
}

fn dial(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    stream
}

#[test]
fn a_listener_takes_one_connection_each_time_it_is_asked_to() {
    each_server!(check);
    fn check<D: ServerDriver>(make: impl Fn() -> D) {
        let mut driver = make();
        let addr = listening(&mut driver);
        assert!(make().listen(LISTENER, addr).is_err(), "the address is taken");
        let (mut first, mut second) = (dial(addr), dial(addr));
        quiet(&mut driver);
        driver.accept(LISTENER);
        let Accepted { socket, peer } = accepted(&mut driver);
        assert_eq!(peer, first.local_addr().unwrap());
        let Socket::Kernel(fd) = &socket else { panic!("a descriptor") };
        assert!(getsockopt(fd, sockopt::TcpNoDelay).unwrap(), "short messages do not wait");
        quiet(&mut driver);
        driver.refuse(socket);
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
        driver.accept(LISTENER);
        let Accepted { socket, .. } = accepted(&mut driver);
        let conn = Key::new(0, 3);
        driver.adopt(conn, socket);
        second.write_all(b"question").unwrap();
        assert_eq!(told(&mut driver), (conn, Told::Received(b"question".to_vec())));
        driver.send(conn, b"answer".to_vec());
        assert_eq!(told(&mut driver), (conn, Told::Sent));
        driver.finish(conn);
        quiet(&mut driver);
        let mut answer = String::new();
        second.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
        second.write_all(b"more").unwrap();
        assert_eq!(told(&mut driver), (conn, Told::Received(b"more".to_vec())));
        drop(second);
        assert_eq!(told(&mut driver), (conn, Told::Ended));
        driver.close(conn);
        assert_eq!(told(&mut driver), (conn, Told::Closed));
        // Nobody is let in any more, also not who was asked for.
        driver.accept(LISTENER);
        driver.unlisten(LISTENER);
        assert!(TcpStream::connect(addr).is_err());
        quiet(&mut driver);
        driver.listen(LISTENER, addr).unwrap();
        driver.accept(LISTENER);
        let _again = dial(addr);
        let Accepted { socket, .. } = accepted(&mut driver);
        driver.refuse(socket);
        drop(driver);
        assert!(TcpStream::connect(addr).is_err(), "a listener ends with its driver");
    }
}

#[test]
fn two_drivers_talk_and_a_connection_can_be_given_to_another_thread() {
    each_server!(check);
    fn check<D: ServerDriver>(make: impl Fn() -> D + Sync) {
        let mut driver = make();
        let addr = listening(&mut driver);
        driver.accept(LISTENER);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let (mut driver, conn) = (make(), Key::new(1, 0));
                driver.connect(conn, addr, Transport::Link);
                assert_eq!(told(&mut driver), (conn, Told::Connected));
                driver.send(conn, b"hello".to_vec());
                assert_eq!(told(&mut driver), (conn, Told::Sent));
                assert_eq!(told(&mut driver), (conn, Told::Received(b"HELLO".to_vec())));
                driver.close(conn);
                assert_eq!(told(&mut driver), (conn, Told::Closed));
                driver.connect(Key::new(1, 1), "127.0.0.1:1".parse().unwrap(), Transport::Link);
                assert_eq!(told(&mut driver), (Key::new(1, 1), Told::Failed(NetError::Refused)));
                driver.close(Key::new(1, 1));
                assert_eq!(told(&mut driver), (Key::new(1, 1), Told::Closed));
            });
            let Accepted { socket, .. } = accepted(&mut driver);
            let (make, conn) = (&make, Key::new(7, 9));
            let server = scope.spawn(move || {
                let mut driver = make();
                driver.adopt(conn, socket);
                assert_eq!(told(&mut driver), (conn, Told::Received(b"hello".to_vec())));
                driver.send(conn, b"HELLO".to_vec());
                assert_eq!(told(&mut driver), (conn, Told::Sent));
                assert_eq!(told(&mut driver), (conn, Told::Ended));
            });
            client.join().unwrap();
            server.join().unwrap();
        });
        quiet(&mut driver);
    }
}

#[test]
fn a_paused_connection_holds_its_peer_back_and_loses_nothing() {
    each_server!(check);
    fn check<D: ServerDriver>(make: impl Fn() -> D) {
        let mut driver = make();
        let addr = listening(&mut driver);
        driver.accept(LISTENER);
        let mut peer = dial(addr);
        let conn = Key::new(2, 5);
        let Accepted { socket, .. } = accepted(&mut driver);
        driver.adopt(conn, socket);
        let total = 24 << 20;
        let writer = std::thread::spawn(move || {
            let bytes: Vec<u8> = (0..total / 4).flat_map(|n: u32| n.to_le_bytes()).collect();
            peer.write_all(&bytes).unwrap();
            peer
        });
        let mut seen = Vec::new();
        for round in 0.. {
            if round % 3 == 0 {
                driver.pause(conn);
                // What was received already may still come, and then nothing.
                while let Some((_, event)) = next_within(&mut driver, 30) {
                    let Told::Received(bytes) = event else { panic!("{event:?}") };
                    seen.extend(bytes);
                }
                assert!(round > 0 || (seen.len() < total as usize && !writer.is_finished()));
                driver.resume(conn);
                driver.pause(conn);
                driver.resume(conn);
            }
            for _ in 0..1 + round * 10 {
                if seen.len() == total as usize {
                    break;
                }
                let (_, Told::Received(bytes)) = told(&mut driver) else { panic!("bytes") };
                seen.extend(bytes);
            }
            if seen.len() == total as usize {
                break;
            }
        }
        assert!(seen.chunks(4).zip(0u32..).all(|(word, n)| word == n.to_le_bytes()), "in order");
        driver.pause(conn);
        drop(writer.join().unwrap());
        quiet(&mut driver);
        driver.resume(conn);
        assert_eq!(told(&mut driver), (conn, Told::Ended));
        driver.close(conn);
        assert_eq!(told(&mut driver), (conn, Told::Closed));
        quiet(&mut driver);
    }
}

fn next_within(driver: &mut impl Driver, ms: u64) -> Option<(Key, Told)> {
    let until = driver.now().plus_ms(ms);
    loop {
        if let Some((key, event)) = driver.next() {
            return Some((key, event.into()));
        }
        if driver.now() >= until {
            return None;
        }
        driver.wait(Some(until), 0).unwrap();
    }
}

#[test]
fn an_adopted_connection_is_closed_in_any_state() {
    each_server!(check);
    fn check<D: ServerDriver>(make: impl Fn() -> D) {
        let mut driver = make();
        let addr = listening(&mut driver);
        for generation in 0..20 {
            driver.accept(LISTENER);
            let mut peer = dial(addr);
            let conn = Key::new(0, generation);
            let Accepted { socket, .. } = accepted(&mut driver);
            driver.adopt(conn, socket);
            match generation % 4 {
                0 => driver.pause(conn),
                1 => driver.finish(conn),
                2 => {
                    driver.pause(conn);
                    driver.resume(conn);
                }
                _ => driver.send(conn, vec![1; 20 << 20]),
            }
            driver.close(conn);
            assert_eq!(told(&mut driver), (conn, Told::Closed));
            let _ = peer.read_to_end(&mut Vec::new());
        }
        quiet(&mut driver);
    }
}

/// Says every datagram back, later each time; port 1 refuses.
struct Echo;

impl SimWeb for Echo {
    fn connect(&mut self, _: SocketAddr, _: Now, _: &mut Rng) -> ConnectFate {
        ConnectFate::Silence
    }

    fn request(&mut self, _: u64, _: SocketAddr, _: &[u8], _: Now, _: &mut Rng) -> Vec<Reaction> {
        Vec::new()
    }

    fn datagram(&mut self, to: SocketAddr, bytes: &[u8], _: Now, _: &mut Rng) -> Vec<Reaction> {
        if to.port() == 1 {
            return vec![Reaction { after_us: 10, then: Then::Reset }];
        }
        let bytes = bytes.to_vec();
        vec![
            Reaction { after_us: 900, then: Then::Bytes(Vec::new()) },
            Reaction { after_us: 500, then: Then::Bytes(bytes) },
        ]
    }

    fn closed(&mut self, _: u64) {
        unreachable!("no stream was opened");
    }
}

#[test]
fn simulated_datagrams_are_whole_and_may_overtake() {
    let net = SimNet::new(5, 1, Box::new(Echo));
    let mut driver = SimDriver::new(net.clone(), 0, 8);
    let (echo, refuses) = (Key::new(0, 0), Key::new(1, 0));
    driver.connect(echo, "192.0.2.1:53".parse().unwrap(), Transport::Udp);
    driver.connect(refuses, "192.0.2.1:1".parse().unwrap(), Transport::Udp);
    let mut seen = Vec::new();
    loop {
        let Some(at) = net.borrow().next_at() else { break };
        net.borrow_mut().advance(at);
        let mut connected = None;
        while let Some((key, event)) = driver.next() {
            match event {
                NetEvent::Connected => connected = Some(key),
                NetEvent::Received(bytes) => seen.push(Told::Received(bytes.to_vec())),
                NetEvent::Failed(error) => seen.push(Told::Failed(error)),
                _ => {}
            }
            if let Some(key) = connected.take() {
                driver.send(key, vec![7; 9_000]);
            }
        }
    }
    assert_eq!(
        seen,
        [Told::Failed(NetError::Refused), Told::Received(vec![7; 9_000]), Told::Received(Vec::new())]
    );
    driver.close(echo);
}

/// Two processes on one simulated network.
struct Pair {
    net: Rc<RefCell<SimNet>>,
    drivers: [SimDriver; 2],
    addr: SocketAddr,
}

const CLIENT: Key = Key::new(0, 0);
const SERVER: Key = Key::new(3, 4);

impl Pair {
    /// The first is connected to the second.
    fn connected(seed: u64) -> Pair {
        let net = SimNet::new(seed, 2, Box::new(Echo));
        let mut drivers = [0, 1].map(|id| SimDriver::new(net.clone(), id, 8));
        let addr = drivers[1].listen(LISTENER, "10.0.0.9:0".parse().unwrap()).unwrap();
        drivers[1].accept(LISTENER);
        drivers[0].connect(CLIENT, addr, Transport::Link);
        let mut pair = Pair { net, drivers, addr };
        let Told::Accepted(Ok(accepted)) = pair.told(1) else { panic!("accepted") };
        pair.drivers[1].adopt(SERVER, accepted.socket);
        assert_eq!(pair.told(0), Told::Connected);
        pair
    }

    /// The next event of one of them; virtual time passes.
    #[track_caller]
    fn told(&mut self, of: usize) -> Told {
        self.told_by(of, Now::NEVER).expect("an event")
    }

    fn told_by(&mut self, of: usize, until: Now) -> Option<Told> {
        loop {
            if let Some((_, event)) = self.drivers[of].next() {
                return Some(event.into());
            }
            // What has arrived for the other waits there.
            let mut net = self.net.borrow_mut();
            let at = net.next_planned().filter(|&at| at <= until)?;
            net.advance(at);
        }
    }

    #[track_caller]
    fn received(&mut self, of: usize, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.told(of) {
                Told::Received(bytes) => all.extend(bytes),
                Told::Sent => {}
                other => panic!("{other:?} after {} bytes", all.len()),
            }
        }
        all
    }
}

#[test]
fn simulated_processes_talk_both_ways_and_hang_up() {
    for seed in 0..50 {
        let mut pair = Pair::connected(seed);
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        pair.drivers[0].send(CLIENT, bytes.clone());
        assert_eq!(pair.received(1, bytes.len()), bytes);
        pair.drivers[1].send(SERVER, b"answer".to_vec());
        assert_eq!(pair.received(0, 6), b"answer");
        pair.drivers[0].finish(CLIENT);
        while pair.told(1) != Told::Ended {}
        pair.drivers[1].send(SERVER, b"last".to_vec());
        assert_eq!(pair.received(0, 4), b"last");
        assert_eq!(pair.told(1), Told::Sent);
        pair.drivers[1].close(SERVER);
        assert_eq!(pair.told(1), Told::Closed);
        assert_eq!(pair.told(0), Told::Ended);
        pair.drivers[1].unlisten(LISTENER);
        pair.drivers[0].connect(Key::new(1, 0), pair.addr, Transport::Link);
        assert_eq!(pair.told(0), Told::Failed(NetError::Refused));
    }
}

#[test]
fn a_simulated_cut_delays_a_reset_loses_and_a_death_is_heard() {
    for seed in 0..50 {
        let mut pair = Pair::connected(seed);
        let healed = pair.net.borrow().now().plus_ms(5_000);
        pair.drivers[0].send(CLIENT, b"before".to_vec());
        pair.net.borrow_mut().cut(1, 0, healed);
        pair.drivers[0].connect(Key::new(1, 0), pair.addr, Transport::Link);
        assert_eq!(pair.told(0), Told::Sent, "the kernel takes it");
        assert_eq!(pair.told_by(1, Now::from_us(healed.us() - 1)), None);
        assert_eq!(pair.received(1, 6), b"before");
        assert_eq!(pair.told(0), Told::Connected, "the other one, at last");

        pair.drivers[1].send(SERVER, b"lost".to_vec());
        pair.net.borrow_mut().reset_between(0, 1);
        let mut told = vec![pair.told(0), pair.told(0), pair.told(1)];
        while told.last() == Some(&Told::Sent) {
            told.push(pair.told(1));
        }
        assert!(told.iter().all(|told| matches!(told, Told::Failed(NetError::Reset) | Told::Sent)));

        let mut pair = Pair::connected(seed);
        pair.drivers[1].send(SERVER, b"sent before".to_vec());
        pair.net.borrow_mut().forget_driver(1);
        assert_eq!(pair.received(0, 11), b"sent before");
        assert_eq!(pair.told(0), Told::Ended);
        let mut pair = Pair::connected(seed);
        pair.drivers[0].send(CLIENT, b"unread".to_vec());
        pair.net.borrow_mut().forget_driver(1);
        while pair.told(0) != Told::Failed(NetError::Reset) {}
        pair.drivers[0].close(CLIENT);
        pair.drivers[0].connect(Key::new(1, 0), pair.addr, Transport::Link);
        while pair.told(0) != Told::Failed(NetError::Refused) {}
    }
}

#[test]
fn a_paused_end_holds_a_simulated_peer_back() {
    for seed in 0..50 {
        let mut pair = Pair::connected(seed);
        pair.drivers[1].pause(SERVER);
        let mut sent = 0;
        pair.drivers[0].send(CLIENT, vec![7; 50_000]);
        while let Some(Told::Sent) = pair.told_by(0, Now::NEVER) {
            sent += 1;
            pair.drivers[0].send(CLIENT, vec![7; 50_000]);
        }
        assert_eq!(sent, 2, "no more than fits in between");
        assert_eq!(pair.told_by(1, Now::NEVER), None);
        pair.drivers[1].resume(SERVER);
        pair.received(1, 150_000);
        assert_eq!(pair.told(0), Told::Sent);
    }
}
