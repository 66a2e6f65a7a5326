use crate::base::{Now, Wall};
use crate::config::{Config, SpiderProtocol};
use crate::driver::Driver;
use crate::engine::crawl::messages::{FromSpider, ToSpider};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::settings::{gap_us, spider_config, store_rules};
use crate::engine::links::{Links, LinksConfig, LinksThread};
use crate::engine::runtime::counters::{ShardStats, SpiderStats, SpiderSummary, merged_histogram};
use crate::engine::runtime::log_writer::{LogWriter, LogWriterPort};
use crate::engine::runtime::log_writer_thread::LogWriterThread;
use crate::engine::runtime::store_threads::{StoreBells, StoreThreads};
use crate::engine::runtime::threads::{
    BellSlot, Health, NodeError, SLEEP_MAX, Seat, cpu_us, joined, rest, spawn, thread_bell, wall_at,
};
use crate::engine::split::spider_dispatcher::{
    DispatcherConfig, DispatcherState, SpiderDispatcher, SpiderPort,
};
use crate::engine::split::spider_shard::{SpiderShard, SpiderShardParts};
use crate::engine::store_line::{RecordPlace, StoreThread};
use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::rings::{Doorbell, Receiver, Sender, ThreadBell, ring};
use crate::store_server::{DataDir, Keeper, Medium};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A spider process: links to URL servers, a desk, a shard per core, and the keeper or a line to a store server.
pub struct SpiderNode {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    bound: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    desk: JoinHandle<SpiderDispatcher>,
    desk_bell: Arc<Doorbell>,
    links: LinksThread,
    shards: Vec<JoinHandle<()>>,
    scribe: LogWriterThread,
    kept: Kept,
    shard_stats: Vec<Arc<ShardStats>>,
    stats: Arc<SpiderStats>,
    trouble: Arc<Health>,
}

/// Where the documents go.
pub enum StoreAt {
    Directory(DataDir),
    /// `host:port` of a store server.
    Server(String),
}

/// The threads that see to it that records are kept.
enum Kept {
    Segments(StoreThreads),
    Line(StoreThread),
}

/// A keeper before its thread is started, or a line.
enum Keeping {
    Keeper(Box<Keeper>),
    Line(StoreThread),
}

impl SpiderNode {
    /// Starts every thread. `make_driver` is called on each shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        links: LinksConfig,
        store: StoreAt,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<SpiderNode, NodeError> {
        let NodeSetup { config, kit } = setup;
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Health::default());
        let stats = Arc::new(SpiderStats::default());
        let wall = wall_at(started);
        let (desk_thread, desk_bell) = thread_bell();
        // Before anything that takes long: whoever is refused the address learns it at once.
        let listen = links.listen;
        let (port, links, bound) = Links::start(links, desk_bell.clone()).map_err(|cause| match listen {
            Some(addr) => NodeError::Listen { addr, cause },
            None => NodeError::Thread(cause),
        })?;
        let shard_count = config.cores.len();
        let (scribe_thread, scribe_bell) = thread_bell();
        let (keeping, places, (scribe, scribe_port)) = match store {
            StoreAt::Directory(directory) => {
                let mut keeper = Keeper::new(Medium::Directory(directory), store_rules(config), shard_count);
                keeper.prepare(wall.unix_ms_at_zero)?;
                let places: Vec<_> =
                    (0..shard_count).map(|index| RecordPlace::Segments(keeper.share(index))).collect();
                let (scribe, port, _) =
                    LogWriter::open(&config.store.data, config, wall, scribe_bell.clone())
                        .map_err(|cause| NodeError::LogWriter { path: config.store.data.clone(), cause })?;
                (Keeping::Keeper(Box::new(keeper)), places, (scribe, port))
            }
            StoreAt::Server(address) => {
                let (bell, stop, trouble) = (desk_bell.clone(), stop.clone(), trouble.clone());
                let (line, ports) = StoreThread::start(&address, shard_count, bell, stop, trouble, started)?;
                let places = ports.into_iter().map(RecordPlace::Line).collect();
                (Keeping::Line(line), places, LogWriter::nowhere(scribe_bell.clone()))
            }
        };
        let mut ports = Vec::new();
        let mut shards = Vec::new();
        let mut shard_stats = Vec::new();
        let (ready, started_up) = sync_channel(shard_count);
        let make_driver = Arc::new(make_driver);
        for (index, &core) in config.cores.iter().enumerate() {
            let (hook, bell) = BellSlot::with_doorbell();
            let (work_out, work) = ring(WORK_RING_WORDS);
            let (done, done_in) = ring(DONE_RING_WORDS);
            let thread = SpiderThread {
                seat: Seat {
                    index,
                    core,
                    driver,
                    hook,
                    owner: desk_bell.clone(),
                    stop: stop.clone(),
                    trouble: trouble.clone(),
                },
                config: config.clone(),
                kit: kit.clone(),
                records: places[index].clone(),
                work,
                done,
                bell: bell.clone(),
                stats: Arc::new(ShardStats::default()),
                wall,
                scribe: scribe_port.clone(),
            };
            shard_stats.push(thread.stats.clone());
            ports.push(SpiderPort { work: work_out, done: done_in, bell, records: places[index].clone() });
            let (make_driver, ready) = (make_driver.clone(), ready.clone());
            shards.push(spawn(&format!("shard-{index}"), move || thread.run(&*make_driver, &ready))?);
        }
        for _ in &shards {
            started_up.recv().unwrap_or(Err(NodeError::Restarts(0)))?;
        }

        let scribe = LogWriterThread::start(scribe, scribe_thread, scribe_bell, trouble.clone())?;
        let kept = match keeping {
            Keeping::Keeper(keeper) => {
                let bells = StoreBells {
                    owner: desk_bell.clone(),
                    shards: ports.iter().map(|port| port.bell.clone()).collect(),
                };
                Kept::Segments(StoreThreads::start(*keeper, config, wall, started, bells, &trouble)?)
            }
            Keeping::Line(line) => Kept::Line(line),
        };
        let desk_config = DispatcherConfig {
            slots: config.spider.fetches_max * shard_count,
            pull: config.url_server.spider_protocol == SpiderProtocol::Pull,
            report: config.spider.report,
            working_us: config.spider.timeout_update_ms * 1_000,
        };
        let desk =
            SpiderDispatcher::new(desk_config, port, ports, stop.clone(), stats.clone(), now_since(started));
        let desk = spawn("desk", {
            let (bell, trouble) = (desk_bell.clone(), trouble.clone());
            move || run_desk(desk, started, &desk_thread, &bell, &trouble)
        })?;
        Ok(SpiderNode {
            started,
            driver,
            cores: config.cores.clone(),
            bound,
            stop,
            desk,
            desk_bell,
            links,
            shards,
            scribe,
            kept,
            shard_stats,
            stats,
            trouble,
        })
    }

    /// Where URL servers may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Takes no more work; what is open may end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.desk_bell.ring_if_asleep();
    }

    pub fn is_finished(&self) -> bool {
        self.desk.is_finished()
    }

    /// What the spider waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.trouble.waiting_for()
    }

    /// Things a user should know that happened since this was last asked.
    pub fn notices(&self) -> Vec<String> {
        self.trouble.take_notes()
    }

    /// Waits for the end, says the last words, writes everything and sums up.
    pub fn finish(self) -> Result<SpiderSummary, NodeError> {
        let desk = joined(self.desk);
        let results = desk.results();
        // What the desk has said is sent before the links are let go.
        self.links.end();
        self.shards.into_iter().for_each(joined);
        self.scribe.end();
        let kept = match self.kept {
            Kept::Segments(store) => store.end(),
            Kept::Line(line) => {
                line.end();
                Ok(())
            }
        };
        self.trouble.take()?;
        kept?;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let sum = |of: fn(&ShardStats) -> &std::sync::atomic::AtomicU64| {
            self.shard_stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum::<u64>()
        };
        Ok(SpiderSummary {
            pages: get(&self.stats.pages),
            success: get(&self.stats.success),
            bytes: sum(|stats| &stats.bytes),
            stored_bytes: sum(|stats| &stats.stored_bytes),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            cores: self.cores,
            results,
            fetch_us: merged_histogram(&self.shard_stats),
            untold: get(&self.stats.untold),
            bad_lines: get(&self.stats.bad_lines),
            restarts: get(&self.stats.restarts),
            syscalls: sum(|stats| &stats.syscalls),
        })
    }
}

/// Everything a shard thread needs to make a shard, once or after a death again.
struct SpiderThread {
    seat: Seat,
    config: Config,
    kit: SpiderSetup,
    records: RecordPlace,
    work: Receiver<ToSpider>,
    done: Sender<FromSpider>,
    bell: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    wall: Wall,
    scribe: LogWriterPort,
}

impl SpiderThread {
    fn run<D: Driver>(
        self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        let make = |driver, epoch| SpiderShard::new(driver, self.parts(epoch));
        self.seat.run(make_driver, make, |epoch| self.announce(epoch), ready);
    }

    fn parts(&self, epoch: u32) -> SpiderShardParts {
        SpiderShardParts {
            spider: spider_config(&self.config, &self.kit, self.wall),
            stored: self.kit.stored.clone(),
            store: self.records.sink(),
            work: self.work.clone(),
            done: self.done.clone(),
            bell: self.bell.clone(),
            desk: self.seat.owner.clone(),
            stats: self.stats.clone(),
            wall: self.wall,
            epoch,
            number: self.seat.index,
            scribe: self.scribe.clone(),
            again_gap_us: gap_us(&self.config),
        }
    }

    /// Tells the desk that the shard before this one died.
    fn announce(&self, epoch: u32) {
        let suspect = self.stats.current.swap(0, Ordering::Relaxed).checked_sub(1);
        self.seat.say(&self.done, FromSpider::Restarted { epoch, suspect });
    }
}

fn run_desk(
    mut desk: SpiderDispatcher,
    started: Instant,
    thread: &ThreadBell,
    bell: &Doorbell,
    trouble: &Health,
) -> SpiderDispatcher {
    thread.belongs_to_me();
    let mut answered_before = 0;
    loop {
        let now = now_since(started);
        match desk.turn(now) {
            DispatcherState::Finished => return desk,
            DispatcherState::Busy => {}
            DispatcherState::Waiting => {
                if trouble.is_fatal() {
                    return desk;
                }
                let answered = desk.answered() - answered_before;
                answered_before += answered;
                let due = desk.next_due().map_or(SLEEP_MAX, |due| Duration::from_micros(due.since_us(now)));
                rest(thread, bell, due.min(SLEEP_MAX), answered, || desk.has_words());
            }
        }
    }
}

fn now_since(started: Instant) -> Now {
    Now::from_us(started.elapsed().as_micros() as u64)
}
