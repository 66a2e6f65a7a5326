//! What takes too long, or too much memory, to be seen from outside: the bounds of a door and of a worker.

use super::door::{Door, WorkerDoor};
use super::node::StoreStats;
use super::worker::{Newcomer, WAKER, Worker, WorkerParts};
use crate::engine::runtime::threads::Health;
use crate::proto::record::{HttpCode, ResultCode, WireRecord};
use crate::rings::{Doorbell, Receiver, ring};
use crate::store_server::{Keeper, Medium, StoreRules};
use mio::{Poll, Waker};
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

#[test]
fn a_full_house_refuses_and_lets_in_again() {
    let (listener, poll, waker) = Door::open("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (doors, inside): (Vec<WorkerDoor>, Vec<Receiver<Newcomer>>) = (0..2)
        .map(|_| {
            let (newcomers, inside) = ring(8);
            let (open, bell) = (Arc::new(AtomicUsize::new(0)), Arc::new(Doorbell::new(|| ())));
            (WorkerDoor { newcomers, open, bell }, inside)
        })
        .unzip();
    let door = Door::new(listener, poll, doors.clone(), 4, stop.clone());
    let thread = std::thread::spawn(move || door.run());
    let guests: Vec<TcpStream> = (0..4).map(|_| dial(addr)).collect();
    let open = |door: &WorkerDoor| door.open.load(Ordering::Relaxed);
    wait_for(|| doors.iter().map(open).sum::<usize>() == 4);
    assert_eq!([open(&doors[0]), open(&doors[1])], [2, 2], "dealt evenly");
    let mut refused = dial(addr);
    assert!(!matches!(refused.read(&mut [0]), Ok(1..)), "it is closed");
    drop(inside[1].pop());
    doors[1].open.fetch_sub(1, Ordering::Relaxed);
    let _again = dial(addr);
    wait_for(|| open(&doors[1]) == 2);
    stop.store(true, Ordering::Release);
    waker.wake().unwrap();
    thread.join().unwrap();
    assert!(TcpStream::connect(addr).is_err(), "and in the end nobody");
    drop(guests);
}

/// A worker on a thread of its own, with one peer.
struct Stage {
    keeper: Keeper,
    peer: TcpStream,
    stats: Arc<StoreStats>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<()>>,
}

fn stage(held_bytes_max: usize) -> Stage {
    let keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 1);
    let poll = Poll::new().unwrap();
    let waker = Waker::new(poll.registry(), WAKER).unwrap();
    let bell = Arc::new(Doorbell::new(move || waker.wake().unwrap()));
    let (newcomers, newcomers_in) = ring(8);
    let (stats, stop) = (Arc::new(StoreStats::default()), Arc::new(AtomicBool::new(false)));
    let parts = WorkerParts {
        share: keeper.share(0),
        newcomers: newcomers_in,
        open: Arc::new(AtomicUsize::new(1)),
        bell: bell.clone(),
        keepers_bell: Arc::new(Doorbell::new(|| ())),
        stats: stats.clone(),
        trouble: Arc::new(Health::default()),
        stop: stop.clone(),
        doc_bytes_max: 1 << 30,
        held_bytes_max,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = dial(listener.local_addr().unwrap());
    let (stream, addr) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let newcomer = Newcomer { stream: mio::net::TcpStream::from_std(stream), peer: addr };
    assert!(newcomers.push(newcomer).is_ok());
    let worker = Worker::new(poll, parts);
    Stage { keeper, peer, stats, stop, thread: std::thread::spawn(move || worker.run()) }
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
        self.thread.join().unwrap().unwrap();
    }
}

#[test]
fn unfinished_records_take_no_more_memory_than_there_is_for_them() {
    let mut stage = stage(1 << 20);
    stage.keeper.prepare(0).unwrap();
    stage.peer.write_all(&record(b"whole")).unwrap();
    wait_for(|| stage.stats.records.load(Ordering::Relaxed) == 1);
    let much = record(&vec![b'x'; 8 << 20]);
    // It is not read to its end, so that writing waits and fails.
    let mut peer = stage.peer.try_clone().unwrap();
    let writing = std::thread::spawn(move || drop(peer.write_all(&much[..much.len() - 1])));
    wait_for(|| stage.stats.bad_connections.load(Ordering::Relaxed) == 1);
    stage.keeper.turn(0).unwrap();
    // While it waited for the keeper it may have said that nothing is durable yet.
    let counted = std::iter::repeat_with(|| stage.count()).find(|&count| count > 0);
    assert_eq!(counted, Some(1), "what came before is counted");
    assert_eq!(stage.stats.records.load(Ordering::Relaxed), 1);
    stage.end();
    writing.join().unwrap();
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
    wait_for(|| stage.stats.records.load(Ordering::Relaxed) == 3);
    stage.keeper.turn(0).unwrap();
    let counted = std::iter::repeat_with(|| stage.count()).find(|&count| count > 0);
    assert_eq!(counted, Some(3));
    stage.end();
}
