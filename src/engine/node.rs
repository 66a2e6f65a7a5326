use super::index_desk::IndexDesk;
use super::names::Names;
use super::scheduler::{Scheduler, SchedulerConfig, SchedulerState, ShardPort};
use super::settings::{scope_of, spider_config, url_server_config};
use super::shard::{Shard, ShardParts};
use super::stats::{SchedulerStats, ShardStats, Snapshot, Summary, merged_histogram};
use super::threads::{
    BellHook, NodeError, SLEEP_MAX, Seat, Trouble, cpu_us, joined, keep, rest, spawn, thread_bell, wall_at,
};
use super::words::{FromShard, ToShard};
use crate::base::{AddressGuard, Wall};
use crate::config::Config;
use crate::doc_index::{DocIndex, DocState};
use crate::driver::Driver;
use crate::handler::Scope;
use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ThreadBell, ring};
use crate::store_server::{DataDir, Keeper, KeeperError, Medium, ShardShare};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
            let (hook, bell) = BellHook::with_doorbell();
            let (work_out, work) = ring(WORK_RING_WORDS);
            let (done, done_in) = ring(DONE_RING_WORDS);
            let thread = ShardThread {
                seat: Seat {
                    index,
                    core,
                    driver,
                    hook,
                    owner: scheduler_bell.clone(),
                    stop: stop.clone(),
                    trouble: trouble.clone(),
                },
                config: config.clone(),
                scope: scope.clone(),
                share: keeper.share(index),
                work,
                done,
                bell: bell.clone(),
                stats: Arc::new(ShardStats::default()),
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
        self.trouble.waiting_for()
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
        self.trouble.take()?;
        kept?;
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
            fetch_us: merged_histogram(&self.shard_stats),
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
    seat: Seat,
    config: Config,
    scope: Arc<Scope>,
    share: Arc<ShardShare>,
    work: Receiver<ToShard>,
    done: Sender<FromShard>,
    bell: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    wall: Wall,
}

impl ShardThread {
    fn run<D: Driver>(
        self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        let make = |driver, epoch| Shard::new(driver, self.parts(epoch));
        self.seat.run(make_driver, make, |epoch| self.announce(epoch), ready);
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
            scheduler: self.seat.owner.clone(),
            stats: self.stats.clone(),
            wall: self.wall,
            epoch,
        }
    }

    /// Tells the scheduler that the shard before this one died.
    fn announce(&self, epoch: u32) {
        let suspect = Some(self.stats.current.swap(0, Ordering::Relaxed)).filter(|&doc_id| doc_id != 0);
        self.seat.say(&self.done, FromShard::Restarted { epoch, suspect });
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
                if trouble.is_fatal() {
                    return scheduler;
                }
                let words = scheduler.documents_done() - done_before;
                done_before += words;
                rest(thread, bell, SLEEP_MAX, words, || scheduler.has_words());
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
        rest(thread, bell, SLEEP_MAX, words as u64, || !desk.is_idle());
    }
}
