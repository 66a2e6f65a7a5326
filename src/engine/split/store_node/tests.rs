//! What takes too long, or too much memory, to be seen from outside: the bounds of the acceptor and of a worker.

mod sent_again;

use super::acceptor::{Acceptor, WorkerPort};
use super::store_core::StoreBounds;
use super::worker::{Worker, WorkerParts};
use crate::base::{Accepted, Socket, Wall};
use crate::driver::{Driver, EpollDriver};
use crate::engine::runtime::actor::{InDriver, run};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::notices::Notices;
use crate::engine::runtime::pulse::Pulses;
use crate::proto::record::{HttpCode, ResultCode, WireRecord};
use crate::rings::{Doorbell, Receiver, ring};
use crate::store_server::{Keeper, Medium, StoreRules};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn dial(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[track_caller]
fn wait_for(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn driver(conns_max: usize) -> EpollDriver {
    EpollDriver::new(conns_max, Instant::now()).unwrap()
}

fn bell_of(driver: &EpollDriver) -> Arc<Doorbell> {
    let bell = driver.bell();
    Arc::new(Doorbell::new(move || bell.ring()))
}

#[test]
fn a_full_house_refuses_and_lets_in_again() {
    let (driver, notices) = (driver(0), Notices::default());
    let bell = bell_of(&driver);
    let listen = "127.0.0.1:0".parse().unwrap();
    let (ports, inside): (Vec<WorkerPort>, Vec<Receiver<Box<Accepted>>>) = (0..2)
        .map(|_| {
            let (accepted, inside) = ring(8);
            let (open, bell) = (Arc::new(AtomicUsize::new(0)), Arc::new(Doorbell::new(|| ())));
            (WorkerPort { accepted, open, bell }, inside)
        })
        .unzip();
    let (mut acceptor, addr) = Acceptor::new(driver, listen, ports.clone(), 4, notices.clone()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let (bell, stop) = (bell.clone(), stop.clone());
        let pulse = Pulses::default().thread("test", bell.clone());
        move || run(&mut acceptor, &InDriver(bell), &pulse, &stop, || false).unwrap()
    });
    let guests: Vec<TcpStream> = (0..4).map(|_| dial(addr)).collect();
    let open = |port: &WorkerPort| port.open.load(Ordering::Relaxed);
    wait_for(|| ports.iter().map(open).sum::<usize>() == 4);
    assert_eq!([open(&ports[0]), open(&ports[1])], [2, 2], "dealt evenly");
    let mut refused = dial(addr);
    assert!(!matches!(refused.read(&mut [0]), Ok(1..)), "it is closed");
    assert!(notices.take().notices[0].text.starts_with("storeserver: all 4 connections are in use: "));
    drop(inside[1].pop());
    ports[1].open.fetch_sub(1, Ordering::Relaxed);
    let _again = dial(addr);
    wait_for(|| open(&ports[1]) == 2);
    stop.store(true, Ordering::Release);
    bell.ring_if_asleep();
    thread.join().unwrap();
    assert!(TcpStream::connect(addr).is_err(), "and in the end nobody");
    drop(guests);
}

/// A worker on a thread of its own, with one peer.
struct Stage {
    keeper: Keeper,
    peer: TcpStream,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: JoinHandle<()>,
}

fn stage(held_bytes_max: usize) -> Stage {
    let keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 1);
    let driver = driver(8);
    let bell = bell_of(&driver);
    let (accepted_out, accepted) = ring(8);
    let (counters, stop) = (Arc::new(Counters::default()), Arc::new(AtomicBool::new(false)));
    let parts = WorkerParts {
        share: keeper.share(0),
        accepted,
        open: Arc::new(AtomicUsize::new(1)),
        keepers_bell: Arc::new(Doorbell::new(|| ())),
        counters: counters.clone(),
        health: Arc::default(),
        wall: Wall { unix_ms_at_zero: 0 },
        bounds: StoreBounds { connections_max: 8, doc_bytes_max: 1 << 30, held_bytes_max },
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = dial(listener.local_addr().unwrap());
    let (stream, addr) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let accepted = Accepted { socket: Socket::Kernel(stream.into()), peer: addr };
    accepted_out.push(Box::new(accepted)).unwrap();
    let mut worker = Worker::new(driver, parts);
    let thread = std::thread::spawn({
        let (bell, stop) = (bell.clone(), stop.clone());
        let pulse = Pulses::default().thread("test", bell.clone());
        move || run(&mut worker, &InDriver(bell), &pulse, &stop, || false).unwrap()
    });
    Stage { keeper, peer, counters, stop, bell, thread }
}

fn record(document: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (result, http_code) = (ResultCode::Ok, HttpCode::from_status(200));
    let url = "http://a.test/";
    WireRecord { doc_id: 1, success: true, result, http_code, took_ms: 0, url, new_url: None, document }
        .write(&mut bytes);
    bytes
}

impl Stage {
    fn count(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.peer.read_exact(&mut bytes).unwrap();
        u64::from_be_bytes(bytes)
    }

    fn end(self) {
        drop(self.peer);
        self.stop.store(true, Ordering::Release);
        self.bell.ring_if_asleep();
        self.thread.join().unwrap();
    }
}

#[test]
fn unfinished_records_take_no_more_memory_than_there_is_for_them() {
    let mut stage = stage(1 << 20);
    stage.keeper.prepare(0).unwrap();
    stage.peer.write_all(&record(b"whole")).unwrap();
    wait_for(|| stage.counters.get(Counter::Records) == 1);
    let much = record(&vec![b'x'; 8 << 20]);
    // It is not read to its end, so that writing waits and fails.
    let mut peer = stage.peer.try_clone().unwrap();
    let writing = std::thread::spawn(move || drop(peer.write_all(&much[..much.len() - 1])));
    wait_for(|| stage.counters.get(Counter::BadConnections) == 1);
    stage.keeper.turn(0).unwrap();
    // While it waited for the keeper it may have said that nothing is durable yet.
    let counted = std::iter::repeat_with(|| stage.count()).find(|&count| count > 0);
    assert_eq!(counted, Some(1), "what came before is counted");
    assert_eq!(stage.counters.get(Counter::Records), 1);
    stage.end();
    writing.join().unwrap();
}

/// A spider whose first record is long on its way knows by then that it will be counted.
#[test]
fn a_peer_that_sends_nothing_is_told_that_it_is_counted() {
    let mut stage = stage(1 << 20);
    let accepted = Instant::now();
    assert_eq!(stage.count(), 0);
    let waited = accepted.elapsed();
    assert!(waited.as_millis() >= 900, "a peer that sends at once sees nothing but its records: {waited:?}");
    stage.peer.set_read_timeout(Some(Duration::from_millis(1_500))).unwrap();
    assert!(stage.peer.read(&mut [0]).is_err(), "once");
    stage.end();
}

/// A spider would take a store server that says nothing for one that never counts.
#[test]
fn without_a_segment_the_last_count_is_said_again() {
    let mut stage = stage(1 << 20);
    let sent = Instant::now();
    stage.peer.write_all(&record(b"page").repeat(3)).unwrap();
    assert_eq!(stage.count(), 0);
    let waited = sent.elapsed();
    assert!(waited.as_millis() >= 900, "not before there is need: {waited:?}");
    stage.keeper.prepare(0).unwrap();
    wait_for(|| stage.counters.get(Counter::Records) == 3);
    stage.keeper.turn(0).unwrap();
    let counted = std::iter::repeat_with(|| stage.count()).find(|&count| count > 0);
    assert_eq!(counted, Some(3));
    stage.end();
}
