use super::index_desk::IndexDesk;
use super::names::Names;
use super::scheduler::{Scheduler, SchedulerConfig, SchedulerState, ShardPort};
use super::settings::{scope_of, spider_config, url_server_config};
use super::shard::{Shard, ShardParts, ShardState};
use super::stats::{SchedulerStats, ShardStats, Snapshot, Summary, fetch_histogram};
use super::words::{FromShard, ToShard};
use crate::base::{AddressGuard, Wall};
use crate::config::Config;
use crate::doc_index::{DocIndex, DocState};
use crate::driver::{Bell, Driver};
use crate::handler::Scope;
use crate::limits::{DONE_RING_WORDS, SHARD_RESTARTS_MAX, WORK_RING_WORDS};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ThreadBell, ring};
use crate::store_server::{DataDir, Keeper, KeeperError, Medium, ShardShare};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// A crawl in one process: the threads and what joins them.
pub struct Node {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    stop: Arc<AtomicBool>,
    scheduler: JoinHandle<Scheduler>,
    index: JoinHandle<IndexDesk>,
    keeper: JoinHandle<Result<(), KeeperError>>,
    shards: Vec<JoinHandle<()>>,
    ends: Ends,
    scheduler_bell: Arc<Doorbell>,
    index_bell: Arc<Doorbell>,
    shard_stats: Vec<Arc<ShardStats>>,
    stats: Arc<SchedulerStats>,
    trouble: Arc<Trouble>,
}

/// Flags that end threads, in the order they are used.
struct Ends {
    keeper: Arc<AtomicBool>,
    index: Arc<AtomicBool>,
}

/// What went wrong on some thread.
#[derive(Default)]
struct Trouble {
    /// The node cannot go on.
    fatal: Mutex<Option<NodeError>>,
    has_fatal: AtomicBool,
    /// It waits for something, in words for a user.
    waiting: Mutex<Option<String>>,
}

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("cannot pin a shard to core {core}: {cause} (choose others with --cores)")]
    Pin { core: usize, cause: io::Error },
    #[error("cannot start the {driver} driver: {cause}")]
    Driver { driver: &'static str, cause: io::Error },
    #[error("the {driver} driver failed: {cause}")]
    Wait { driver: &'static str, cause: io::Error },
    #[error("a shard died {0} times: giving up")]
    Restarts(u32),
    #[error("{0}; nothing that was counted is lost")]
    Keeper(#[from] KeeperError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Trouble {
    fn fatal(&self, error: NodeError) {
        let mut fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner);
        fatal.get_or_insert(error);
        self.has_fatal.store(true, Ordering::Release);
    }

    fn wait_for(&self, what: Option<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}

/// The shard's doorbell outlives the driver behind it: a restarted shard hangs its own bell here.
#[derive(Default)]
struct BellHook(Mutex<Option<Arc<dyn Bell>>>);

impl BellHook {
    fn hang(&self, bell: Arc<dyn Bell>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    fn ring(&self) {
        if let Some(bell) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring();
        }
    }
}

impl Node {
    /// Starts every thread. `make_driver` is called on each shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        config: &Config,
        seeds: Vec<CrawlUrl>,
        directory: DataDir,
        names: impl FnOnce(Arc<Doorbell>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<Node, NodeError> {
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Trouble::default());
        let stats = Arc::new(SchedulerStats::default());
        let wall = wall_at(started);
        let (scheduler_thread, scheduler_bell) = thread_bell();
        let (index_thread, index_bell) = thread_bell();

        let mut keeper =
            Keeper::new(Medium::Directory(directory), config.store.segment_bytes, config.cores.len());
        keeper.prepare(wall.unix_ms_at_zero)?;

        let (desk, index_port) =
            IndexDesk::new(DocIndex::default(), scheduler_bell.clone(), index_bell.clone());
        let ends = Ends { keeper: Arc::default(), index: Arc::default() };

        let mut ports = Vec::new();
        let mut shards = Vec::new();
        let mut shard_stats = Vec::new();
        let (ready, started_up) = sync_channel(config.cores.len());
        let make_driver = Arc::new(make_driver);
        let scope = Arc::new(scope_of(config, &seeds));
        for (index, &core) in config.cores.iter().enumerate() {
            let hook = Arc::new(BellHook::default());
            let bell = Arc::new(Doorbell::new({
                let hook = hook.clone();
                move || hook.ring()
            }));
            let (work_out, work) = ring(WORK_RING_WORDS);
            let (done, done_in) = ring(DONE_RING_WORDS);
            let thread = ShardThread {
                index,
                core,
                config: config.clone(),
                scope: scope.clone(),
                share: keeper.share(index),
                work,
                done,
                bell: bell.clone(),
                hook,
                scheduler: scheduler_bell.clone(),
                stats: Arc::new(ShardStats::default()),
                trouble: trouble.clone(),
                stop: stop.clone(),
                driver,
                wall,
            };
            shard_stats.push(thread.stats.clone());
            ports.push(ShardPort { work: work_out, done: done_in, bell, share: keeper.share(index) });
            let (make_driver, ready) = (make_driver.clone(), ready.clone());
            shards.push(spawn(&format!("shard-{index}"), move || thread.run(&*make_driver, &ready))?);
        }
        for _ in &shards {
            started_up.recv().unwrap_or(Err(NodeError::Restarts(0)))?;
        }

        let keeper = spawn("keeper", {
            let (end, trouble, bell) = (ends.keeper.clone(), trouble.clone(), scheduler_bell.clone());
            let pause = Duration::from_millis(config.store.commit_ms);
            move || keep(keeper, pause, wall, started, &end, &trouble, &bell)
        })?;
        let index = spawn("index", {
            let (end, bell) = (ends.index.clone(), index_bell.clone());
            move || run_index(desk, &end, &index_thread, &bell)
        })?;

        let scheduler_config = SchedulerConfig {
            queue_len: config.url_server.queue_len,
            pages_max: config.pages_max,
            guard: AddressGuard::new(config.allow_net.clone()),
        };
        let names = names(scheduler_bell.clone()).map_err(NodeError::Thread)?;
        let mut scheduler =
            Scheduler::new(scheduler_config, ports, index_port, names, stop.clone(), stats.clone());
        for seed in seeds {
            scheduler.seed(seed);
        }
        let scheduler = spawn("scheduler", {
            let (bell, trouble) = (scheduler_bell.clone(), trouble.clone());
            move || run_scheduler(scheduler, &scheduler_thread, &bell, &trouble)
        })?;

        Ok(Node {
            started,
            driver,
            cores: config.cores.clone(),
            stop,
            scheduler,
            index,
            keeper,
            shards,
            ends,
            scheduler_bell,
            index_bell,
            shard_stats,
            stats,
            trouble,
        })
    }

    /// Starts nothing new; what is open may end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.scheduler_bell.ring_if_asleep();
    }

    pub fn is_finished(&self) -> bool {
        self.scheduler.is_finished()
    }

    /// What the node waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.trouble.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn snapshot(&self) -> Snapshot {
        let sum = |of: fn(&ShardStats) -> &std::sync::atomic::AtomicU64| {
            self.shard_stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum::<u64>()
        };
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (pages, success) = (get(&self.stats.pages), get(&self.stats.success));
        let known = get(&self.stats.known);
        Snapshot {
            pages,
            success,
            errors: pages.saturating_sub(success),
            bytes: sum(|stats| &stats.bytes),
            stored_bytes: sum(|stats| &stats.stored_bytes),
            open: sum(|stats| &stats.open),
            hosts: sum(|stats| &stats.hosts),
            known,
            pending: known.saturating_sub(get(&self.stats.done)),
        }
    }

    /// Waits for the end, writes everything and sums up.
    pub fn finish(self) -> Result<Summary, NodeError> {
        let stopped = self.stop.load(Ordering::Relaxed);
        let scheduler = joined(self.scheduler);
        self.shards.into_iter().for_each(joined);
        self.ends.keeper.store(true, Ordering::Release);
        let kept = joined(self.keeper);
        self.ends.index.store(true, Ordering::Release);
        self.index_bell.ring_if_asleep();
        let desk = joined(self.index);
        if let Some(error) = self.trouble.fatal.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        kept?;
        let mut fetch_us = fetch_histogram();
        for stats in &self.shard_stats {
            if let Some(histogram) = &*stats.fetch_us.lock().unwrap_or_else(PoisonError::into_inner) {
                let _ = fetch_us.add(histogram);
            }
        }
        let sum = |of: fn(&ShardStats) -> &std::sync::atomic::AtomicU64| {
            self.shard_stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum::<u64>()
        };
        let index = desk.index().stats();
        let example = desk.index().iter().find(|(_, _, state)| *state == DocState::Done(ResultCode::Ok));
        Ok(Summary {
            pages: scheduler.pages(),
            success: scheduler.success(),
            errors: scheduler.pages() - scheduler.success(),
            bytes: sum(|stats| &stats.bytes),
            stored_bytes: sum(|stats| &stats.stored_bytes),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            cores: self.cores,
            pending: index.pending + index.fetching,
            known: index.known,
            results: scheduler.results(),
            fetch_us,
            robots: sum(|stats| &stats.robots),
            restarts: scheduler.restarts(),
            syscalls: sum(|stats| &stats.syscalls),
            example: example.map(|(_, url, _)| url.to_string()),
            stopped,
        })
    }
}

/// Everything a shard thread needs to make a shard, once or after a death again.
struct ShardThread {
    index: usize,
    core: usize,
    config: Config,
    scope: Arc<Scope>,
    share: Arc<ShardShare>,
    work: Receiver<ToShard>,
    done: Sender<FromShard>,
    bell: Arc<Doorbell>,
    hook: Arc<BellHook>,
    scheduler: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    trouble: Arc<Trouble>,
    stop: Arc<AtomicBool>,
    driver: &'static str,
    wall: Wall,
}

impl ShardThread {
    fn run<D: Driver>(
        self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        if let Err(cause) = pin(self.core) {
            let _ = ready.send(Err(NodeError::Pin { core: self.core, cause }));
            return;
        }
        for epoch in 0..=SHARD_RESTARTS_MAX {
            let driver = match make_driver(self.index) {
                Ok(driver) => driver,
                Err(cause) => {
                    let error = NodeError::Driver { driver: self.driver, cause };
                    if epoch == 0 {
                        let _ = ready.send(Err(error));
                    } else {
                        self.give_up(error);
                    }
                    return;
                }
            };
            self.hook.hang(driver.bell());
            if epoch == 0 {
                let _ = ready.send(Ok(()));
            } else {
                self.announce(epoch);
            }
            // A panic leaves nothing half done that anybody else can see: the segment ends at its last published
            // record, and what was open is dealt again.
            match catch_unwind(AssertUnwindSafe(|| {
                self.turn_until_drained(Shard::new(driver, self.parts(epoch)))
            })) {
                Ok(Ok(())) => return,
                Ok(Err(cause)) => {
                    return self.give_up(NodeError::Wait { driver: self.driver, cause });
                }
                Err(_) => {}
            }
        }
        self.give_up(NodeError::Restarts(SHARD_RESTARTS_MAX));
    }

    fn turn_until_drained<D: Driver>(&self, mut shard: Shard<D>) -> io::Result<()> {
        loop {
            let state = shard.turn();
            if state == ShardState::Drained || self.trouble.has_fatal.load(Ordering::Relaxed) {
                return Ok(());
            }
            shard.wait(state)?;
        }
    }

    fn parts(&self, epoch: u32) -> ShardParts {
        ShardParts {
            url_server: url_server_config(&self.config, self.wall),
            spider: spider_config(&self.config, self.config.spider.fetches_max),
            scope: self.scope.clone(),
            product_token: url_server_config(&self.config, self.wall).product_token,
            share: self.share.clone(),
            work: self.work.clone(),
            done: self.done.clone(),
            bell: self.bell.clone(),
            scheduler: self.scheduler.clone(),
            stats: self.stats.clone(),
            wall: self.wall,
            epoch,
        }
    }

    /// Tells the scheduler that the shard before this one died.
    fn announce(&self, epoch: u32) {
        let suspect = Some(self.stats.current.swap(0, Ordering::Relaxed)).filter(|&doc_id| doc_id != 0);
        let mut word = FromShard::Restarted { epoch, suspect };
        while let Err(back) = self.done.push(word) {
            word = back;
            self.scheduler.ring_if_asleep();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.scheduler.ring_if_asleep();
    }

    fn give_up(&self, error: NodeError) {
        self.trouble.fatal(error);
        self.stop.store(true, Ordering::Relaxed);
        self.scheduler.ring_if_asleep();
    }
}

fn run_scheduler(
    mut scheduler: Scheduler,
    thread: &ThreadBell,
    bell: &Doorbell,
    trouble: &Trouble,
) -> Scheduler {
    thread.belongs_to_me();
    let mut done_before = 0;
    loop {
        match scheduler.turn() {
            SchedulerState::Finished => return scheduler,
            SchedulerState::Busy => {}
            SchedulerState::Waiting => {
                if trouble.has_fatal.load(Ordering::Acquire) {
                    return scheduler;
                }
                let words = scheduler.documents_done() - done_before;
                done_before += words;
                rest(thread, bell, words, || scheduler.has_words());
            }
        }
    }
}

fn run_index(mut desk: IndexDesk, end: &AtomicBool, thread: &ThreadBell, bell: &Doorbell) -> IndexDesk {
    thread.belongs_to_me();
    loop {
        let words = desk.turn();
        if end.load(Ordering::Acquire) && desk.is_idle() {
            return desk;
        }
        rest(thread, bell, words as u64, || !desk.is_idle());
    }
}

/// Sleeps until the bell rings; after a busy turn only for a moment, and deaf. A shard that hands up a few words
/// at a time would otherwise wake this thread for each few of them: a nap lets them gather.
fn rest(thread: &ThreadBell, bell: &Doorbell, words: u64, has_words: impl Fn() -> bool) {
    if words >= BUSY_WORDS {
        std::thread::sleep(NAP);
        return;
    }
    bell.falling_asleep();
    if !has_words() {
        thread.sleep(Duration::from_millis(100));
    }
    bell.awake();
}

/// A turn with this many words is a busy one; the queues of the shards hold more than comes in during a nap.
const BUSY_WORDS: u64 = 8;
const NAP: Duration = Duration::from_millis(8);

fn keep(
    mut keeper: Keeper,
    pause: Duration,
    wall: Wall,
    started: Instant,
    end: &AtomicBool,
    trouble: &Trouble,
    scheduler: &Doorbell,
) -> Result<(), KeeperError> {
    loop {
        let unix_ms = wall.unix_ms_at_zero + started.elapsed().as_millis() as u64;
        match keeper.turn(unix_ms) {
            Ok(moved) => {
                trouble.wait_for(None);
                if moved {
                    scheduler.ring_if_asleep();
                }
            }
            Err(error @ KeeperError::NoRoom { .. }) => {
                trouble.wait_for(Some(format!("fetching waits for disk space: {error}")));
                scheduler.ring_if_asleep();
            }
            Err(error) => {
                trouble.fatal(NodeError::Keeper(error));
                scheduler.ring_if_asleep();
                return Ok(());
            }
        }
        if end.load(Ordering::Acquire) {
            return keeper.close();
        }
        std::thread::sleep(pause);
    }
}

fn thread_bell() -> (Arc<ThreadBell>, Arc<Doorbell>) {
    let thread = Arc::new(ThreadBell::default());
    let bell = Doorbell::new({
        let thread = thread.clone();
        move || thread.ring()
    });
    (thread, Arc::new(bell))
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NodeError> {
    std::thread::Builder::new().name(name.to_string()).spawn(body).map_err(NodeError::Thread)
}

/// A panic on one of our own threads is a mistake of ours and goes on.
fn joined<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn wall_at(started: Instant) -> Wall {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall { unix_ms_at_zero: unix.saturating_sub(started.elapsed()).as_millis() as u64 }
}

/// User and system time of the whole process.
fn cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map(|usage| (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64)
        .unwrap_or(0)
}
