//! What every driver promises of datagrams, and of closing. Otherwise streams are tested by every crawl.

use super::*;
use crate::base::{NetError, Rng};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
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
}

/// The next event; waits for it, at most two seconds.
#[track_caller]
fn told(driver: &mut impl Driver) -> (Key, Told) {
    let until = driver.now().plus_ms(2_000);
    loop {
        if let Some((key, event)) = driver.next() {
            let told = match event {
                NetEvent::Connected => Told::Connected,
                NetEvent::Sent(_) => Told::Sent,
                NetEvent::Received(bytes) => Told::Received(bytes.to_vec()),
                NetEvent::Ended => Told::Ended,
                NetEvent::Failed(error) => Told::Failed(error),
                NetEvent::Closed => Told::Closed,
            };
            return (key, told);
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
    if UringDriver::probe().is_ok() {
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
