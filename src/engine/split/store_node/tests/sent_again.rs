//! The promise: whatever becomes of connections and of the store server, every record of a spider is stored, in order; what
//! the spider takes as safe is durable; and what it takes as safe is not sent again. Sender, acceptor and worker run over the
//! simulated network in virtual time, the store in a directory.

use super::super::store_core::{StoreBounds, StoreCore};
use crate::base::{Now, Rng, Wall};
use crate::driver::{NoWeb, SimDriver, SimNet};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::health::Health;
use crate::engine::runtime::shard_lane::DurablePoint;
use crate::engine::split::record_sender::{RecordPlace, RecordSender, RecordSink, SenderParts};
use crate::rings::Doorbell;
use crate::store_server::{DataDir, Keeper, Medium, NewRecord, Reader, StoreRules};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The drivers.
const SENDER: usize = 0;
const ACCEPTOR: usize = 1;
const WORKER: usize = 2;

const SEGMENT_BYTES: u64 = 1 << 20;
const DOC_BYTES_MAX: u64 = 1 << 18;

/// A store server that can be killed.
struct Server {
    core: StoreCore<SimDriver>,
    /// Records that its predecessors have left behind.
    found: usize,
}

struct World {
    seed: u64,
    rng: Rng,
    net: Rc<RefCell<SimNet>>,
    data: PathBuf,
    addr: SocketAddr,
    sender: RecordSender<SimDriver>,
    health: Arc<Health>,
    safe: Arc<dyn DurablePoint>,
    sink: RecordSink,
    server: Option<Server>,
    written: u32,
    faults: usize,
    /// At the last look: records in the store, and those that the sender took as safe.
    seen: (usize, u64),
}

fn no_bell() -> Arc<Doorbell> {
    Arc::new(Doorbell::new(|| ()))
}

fn driver(net: &Rc<RefCell<SimNet>>, id: usize) -> SimDriver {
    SimDriver::new(net.clone(), id, 16)
}

/// Some are larger than what fits between two processes at once.
fn document(number: u32) -> Vec<u8> {
    let bytes = if number % 17 == 3 { 150_000 } else { number as usize * 37 % 2_000 };
    let mut rng = Rng::new(u64::from(number));
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

impl Server {
    fn start(net: &Rc<RefCell<SimNet>>, data: &Path, addr: SocketAddr) -> Server {
        let found = stored(data).len();
        let directory = DataDir::open(data).unwrap();
        let keeper = Keeper::new(Medium::Directory(directory), StoreRules::of_size(SEGMENT_BYTES), 1);
        let drivers = (driver(net, ACCEPTOR), vec![driver(net, WORKER)]);
        let bounds =
            StoreBounds { connections_max: 8, doc_bytes_max: DOC_BYTES_MAX, held_bytes_max: 1 << 22 };
        let wall = Wall { unix_ms_at_zero: 0 };
        let mut core = StoreCore::assemble(keeper, addr, drivers, bounds, wall, &Arc::default()).unwrap();
        core.keeper.prepare(0).unwrap();
        Server { core, found }
    }

    /// Turns acceptor and workers; when they are to be turned again.
    fn turn(&mut self, now: Now) -> Option<Now> {
        let StoreCore { acceptor, workers, .. } = &mut self.core;
        acceptor.actor.turn(now);
        for worker in workers.iter_mut() {
            worker.actor.turn(now);
        }
        let dues = workers.iter().filter_map(|worker| worker.actor.next_due());
        dues.chain(acceptor.actor.next_due()).min()
    }
}

/// The documents of the store, in the order in which they were stored.
fn stored(data: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(reader) = Reader::open(data) else {
        return found;
    };
    let damaged = reader.each(|located, bytes| {
        let (record, body) = (&located.record, reader.unpack(&located, bytes).unwrap());
        let body = body.expect("a whole record unpacks").body;
        // What came again and was durable is stored as a reference.
        assert!(record.is_reference || body == document(record.doc_id), "as it was sent");
        found.push(located.record.doc_id);
    });
    assert!(damaged.unwrap().is_empty());
    found
}

impl World {
    fn new(seed: u64) -> World {
        let data = std::env::temp_dir().join(format!("nephila-sent-again-{seed}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let net = SimNet::new(seed, 3, Box::new(NoWeb));
        let addr = SocketAddr::from(([10, 0, 0, 9], 7_172));
        let server = Server::start(&net, &data, addr);
        let health = Arc::new(Health::default());
        let parts = SenderParts {
            address: addr.to_string(),
            owner: no_bell(),
            stop: Arc::default(),
            health: health.clone(),
        };
        let (sender, mut ports) =
            RecordSender::new(driver(&net, SENDER), parts, 1, &no_bell(), seed).unwrap();
        let place = RecordPlace::Server(ports.remove(0));
        World {
            seed,
            rng: Rng::new(seed ^ 0x5eed),
            net,
            data,
            addr,
            sender,
            health,
            sink: place.sink(),
            safe: place.durable_point(),
            server: Some(server),
            written: 0,
            faults: 0,
            seen: (0, 0),
        }
    }

    fn now(&self) -> Now {
        self.net.borrow().now()
    }

    /// Turns everybody, and lets time pass until somebody has something to do, or `until`.
    fn step(&mut self, until: Now) {
        let now = self.now();
        self.sender.turn(now);
        let server_due = self.server.as_mut().and_then(|server| server.turn(now));
        let dues = self.sender.next_due().into_iter().chain(server_due);
        let next = dues.chain(self.net.borrow().next_at()).min().unwrap_or(until);
        let to = next.min(until).max(now.plus_us(10));
        self.net.borrow_mut().advance(to);
    }

    fn run_for(&mut self, us: u64) {
        let until = self.now().plus_us(us);
        while self.now() < until {
            self.step(until);
        }
    }

    fn write(&mut self) {
        let number = self.written + 1;
        let (url, bytes) = (format!("http://a.test/{number}"), document(number));
        if self.sink.make_room(bytes.len()).is_err() {
            return;
        }
        let record = NewRecord { doc_id: number, ..NewRecord::sample(&url, &bytes) };
        assert_eq!(self.sink.append(&record).unwrap().sequence, u64::from(number));
        self.written = number;
    }

    fn commit(&mut self) {
        if let Some(server) = &mut self.server {
            server.core.keeper.turn(0).unwrap();
        }
    }

    /// Breaks connections, holds them up, or kills the store server; another takes its place at once.
    fn fault(&mut self) {
        self.faults += 1;
        let until = self.now().plus_us(self.rng.below(3_000_000));
        match self.rng.below(4) {
            0 | 1 => {
                let mut net = self.net.borrow_mut();
                [ACCEPTOR, WORKER].into_iter().for_each(|there| net.reset_between(SENDER, there));
            }
            2 => {
                let mut net = self.net.borrow_mut();
                [ACCEPTOR, WORKER].into_iter().for_each(|there| net.cut(SENDER, there, until));
            }
            _ => {
                self.look();
                self.server = None;
                [ACCEPTOR, WORKER].into_iter().for_each(|id| self.net.borrow_mut().forget_driver(id));
                self.server = Some(Server::start(&self.net, &self.data, self.addr));
            }
        }
    }

    /// Compares what the sender takes as safe with what the store has.
    fn look(&mut self) {
        let (seed, safe) = (self.seed, self.safe.durable());
        let stored = stored(&self.data);
        let server = self.server.as_ref().expect("it runs");
        let durable = server.found + server.core.keeper.share(0).durable() as usize;
        let kept: BTreeSet<u32> = stored[..durable].iter().copied().collect();
        assert!(safe <= u64::from(self.written), "seed {seed}");
        assert!(
            (1..=safe as u32).all(|number| kept.contains(&number)),
            "seed {seed}: {safe} are taken as safe, durable are {kept:?}"
        );
        let (seen, safe_then) = self.seen;
        assert!(
            stored[seen..].iter().all(|&number| u64::from(number) > safe_then),
            "seed {seed}: a record came again that was counted"
        );
        // In order: each follows the one before, or sending began anew at one that was sent before.
        let mut most = 0;
        for pair in [0].iter().chain(&stored).zip(&stored) {
            assert!(*pair.1 == pair.0 + 1 || *pair.1 <= most, "seed {seed}: {} follows {}", pair.1, pair.0);
            most = most.max(*pair.1);
        }
        assert!(self.faults > 0 || stored.len() == most as usize, "seed {seed}: twice without need");
        self.seen = (stored.len(), safe);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

#[test]
fn whatever_breaks_every_record_is_stored_and_what_is_safe_is_durable() {
    let (mut again, mut faults) = (0, 0);
    for seed in 0..8 {
        let mut world = World::new(seed);
        // A store server that has counted once is known to count.
        world.write();
        world.run_for(100_000);
        world.commit();
        world.run_for(300_000);
        assert_eq!(world.safe.durable(), 1, "seed {seed}");
        for _ in 0..400 {
            match world.rng.below(100) {
                0..60 => world.write(),
                60..80 => world.commit(),
                80..83 if seed % 4 > 0 => world.fault(),
                83..85 => world.look(),
                _ => {
                    let us = world.rng.below(200_000);
                    world.run_for(us);
                }
            }
            let us = world.rng.below(2_000);
            world.run_for(us);
        }
        let by = world.now().plus_us(120_000_000);
        while world.safe.durable() < u64::from(world.written) {
            assert!(world.now() < by, "seed {seed}: {} of {}", world.safe.durable(), world.written);
            world.commit();
            world.run_for(50_000);
        }
        world.look();
        assert!(!world.health.is_fatal());
        let count = stored(&world.data).len();
        again += count - world.written as usize;
        faults += world.faults;
        // Everybody ends in good order, and nothing is added by that.
        let now = world.now();
        world.sender.end(now);
        let core = &mut world.server.as_mut().unwrap().core;
        core.acceptor.actor.end(now);
        core.workers[0].actor.end(now);
        world.run_for(3_000_000);
        let (now, core) = (world.now(), &mut world.server.as_mut().unwrap().core);
        assert_eq!(world.sender.turn(now), Turned::Finished, "seed {seed}");
        assert_eq!(core.workers[0].actor.turn(now), Turned::Finished, "seed {seed}");
        core.keeper.close().unwrap();
        assert_eq!(stored(&world.data).len(), count, "seed {seed}");
    }
    assert!(faults > 20 && again > 0, "{faults} faults, {again} records came again");
}
