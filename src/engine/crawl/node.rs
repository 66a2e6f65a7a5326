use crate::base::{AddressGuard, Now, Wall};
use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::open_index::{OpenIndex, handler_of};
use crate::engine::crawl::resume::{IndexedMark, Resumed, Resumption};
use crate::engine::crawl::scheduler::{Scheduler, SchedulerConfig, SchedulerLog, SchedulerState, ShardPort};
use crate::engine::crawl::settings::{spider_config, store_rules, url_server_config};
use crate::engine::crawl::shard::{Shard, ShardParts};
use crate::engine::inspect::control::{CONTROL_SOCKET, Control};
use crate::engine::names::Names;
use crate::engine::runtime::counters::{SchedulerStats, ShardStats, Snapshot, Summary, merged_histogram};
use crate::engine::runtime::log_writer::{LogWriter, LogWriterPort, PreviousRun};
use crate::engine::runtime::log_writer_thread::LogWriterThread;
use crate::engine::runtime::store_threads::{StoreBells, StoreThreads};
use crate::engine::runtime::threads::{
    BellSlot, Health, NodeError, SLEEP_MAX, Seat, cpu_us, joined, rest, spawn, thread_bell, wall_at,
};
use crate::handler::Scope;
use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ThreadBell, ring};
use crate::store_server::{DataDir, HeldDirectory, Keeper, Medium, ShardShare};
use crate::url_server::SpillEvent;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What a crawl begins with.
pub struct CrawlTask {
    pub seeds: Vec<CrawlUrl>,
    pub directory: DataDir,
    pub index: OpenIndex,
}

/// A crawl in one process: the threads and what joins them.
pub struct Node {
    started: Instant,
    driver: &'static str,
    cores: Vec<usize>,
    stop: Arc<AtomicBool>,
    scheduler: JoinHandle<Scheduler>,
    index: JoinHandle<IndexActor>,
    store: StoreThreads,
    scribe: LogWriterThread,
    notices: Arc<Mutex<Vec<String>>>,
    shards: Vec<JoinHandle<()>>,
    index_end: Arc<AtomicBool>,
    scheduler_bell: Arc<Doorbell>,
    index_bell: Arc<Doorbell>,
    shard_stats: Vec<Arc<ShardStats>>,
    stats: Arc<SchedulerStats>,
    trouble: Arc<Health>,
    known_before: u64,
    /// Nobody else writes there until the index is closed.
    held: HeldDirectory,
    told: Option<IndexedMark>,
    taken_up: Resumed,
    /// Without it, questions are answered from the files.
    control: Option<Control>,
}

impl Node {
    /// Starts every thread. `make_driver` is called on each shard's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        task: CrawlTask,
        names: impl FnOnce(Arc<Doorbell>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<Node, NodeError> {
        let NodeSetup { config, kit } = setup;
        let CrawlTask { seeds, directory, index } = task;
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Health::default());
        let stats = Arc::new(SchedulerStats::default());
        let wall = wall_at(started);
        let (scheduler_thread, scheduler_bell) = thread_bell();
        let (index_thread, index_bell) = thread_bell();

        let mut scope = index.scope(&seeds);
        let known_before = index.index.stats().known;
        let papers = index.papers(config, &scope, wall, started);
        let OpenIndex { index, mut told, .. } = index;
        let (mut desk, index_port) =
            IndexActor::new(index, papers, scheduler_bell.clone(), index_bell.clone());
        let index_end = Arc::new(AtomicBool::new(false));

        // Before a segment is made: from then on, all that is older is told.
        let mut taken_up = Resumed::default();
        // What is to be asked for again in any case need not be taken up.
        if let Some(told) = told.as_mut().filter(|_| !config.again) {
            let taking_up = Resumption::new(&mut desk, handler_of(config, &scope));
            taken_up = taking_up.run(&config.store.data, told.first()).map_err(NodeError::Index)?;
            told.move_to(directory.next_segment()).map_err(NodeError::Index)?;
        }
        for url in &taken_up.into_scope {
            Arc::make_mut(&mut scope).add(url);
        }
        if let Some(error) = &taken_up.trouble {
            trouble.note(format!("some pages that are stored may be fetched again: {error}"));
        }

        let held = directory.hold();
        let mut keeper = Keeper::new(Medium::Directory(directory), store_rules(config), config.cores.len());
        keeper.prepare(wall.unix_ms_at_zero)?;

        let (scribe_thread, scribe_bell) = thread_bell();
        let (mut scribe, scribe_port, heritage) =
            LogWriter::open(&config.store.data, config, wall, scribe_bell.clone())
                .map_err(|cause| NodeError::LogWriter { path: config.store.data.clone(), cause })?;

        let mut ports = Vec::new();
        let mut shards = Vec::new();
        let mut shard_stats = Vec::new();
        let (ready, started_up) = sync_channel(config.cores.len());
        let make_driver = Arc::new(make_driver);
        for (index, &core) in config.cores.iter().enumerate() {
            let (hook, bell) = BellSlot::with_doorbell();
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
                kit: kit.clone(),
                scope: scope.clone(),
                share: keeper.share(index),
                work,
                done,
                bell: bell.clone(),
                stats: Arc::new(ShardStats::default()),
                wall,
                started,
                scribe: scribe_port.clone(),
                spill: scribe.spill_events(bell.clone()),
                heritage: heritage.clone(),
            };
            shard_stats.push(thread.stats.clone());
            ports.push(ShardPort { work: work_out, done: done_in, bell, share: keeper.share(index) });
            let (make_driver, ready) = (make_driver.clone(), ready.clone());
            shards.push(spawn(&format!("shard-{index}"), move || thread.run(&*make_driver, &ready))?);
        }
        for _ in &shards {
            started_up.recv().unwrap_or(Err(NodeError::Restarts(0)))?;
        }

        let bells = StoreBells {
            owner: scheduler_bell.clone(),
            shards: ports.iter().map(|port| port.bell.clone()).collect(),
        };
        let store = StoreThreads::start(keeper, config, wall, started, bells, &trouble)?;
        let scribe = LogWriterThread::start(scribe, scribe_thread, scribe_bell, trouble.clone())?;
        let index = spawn("index", {
            let (end, bell) = (index_end.clone(), index_bell.clone());
            let trouble = trouble.clone();
            move || run_index(desk, &end, &index_thread, &bell, &trouble)
        })?;

        let scheduler_config = SchedulerConfig {
            queue_len: config.url_server.queue_len,
            hosts_per_ip_max: config.url_server.hosts_per_ip_max,
            pages_max: config.pages_max,
            guard: AddressGuard::new(config.allow_net.clone()),
            head_only: config.head_only,
            wait: config.wait,
        };
        let names = names(scheduler_bell.clone()).map_err(NodeError::Thread)?;
        let schedulers_scribe = SchedulerLog {
            port: scribe_port,
            wall,
            clock: Arc::new(move || Now::from_us(started.elapsed().as_micros() as u64)),
        };
        let mut scheduler = Scheduler::new(
            scheduler_config,
            ports,
            index_port,
            names,
            schedulers_scribe,
            stop.clone(),
            stats.clone(),
        );
        let notices = scheduler.notices();
        let questions = scheduler.questions();
        questions.rings(scheduler_bell.clone());
        scheduler.seeds(seeds);
        let scheduler = spawn("scheduler", {
            let (bell, trouble) = (scheduler_bell.clone(), trouble.clone());
            move || run_scheduler(scheduler, &scheduler_thread, &bell, &trouble)
        })?;

        let control = Control::start(&config.store.data, questions)
            .map_err(|cause| trouble.note(format!("nobody can ask this crawl: no {CONTROL_SOCKET}: {cause}")))
            .ok();
        Ok(Node {
            control,
            started,
            driver,
            cores: config.cores.clone(),
            stop,
            scheduler,
            index,
            store,
            scribe,
            shards,
            index_end,
            notices,
            scheduler_bell,
            index_bell,
            shard_stats,
            stats,
            trouble,
            known_before,
            held,
            told,
            taken_up,
        })
    }

    /// What was stored by a process that was killed, and known to nobody.
    pub fn taken_up(&self) -> &Resumed {
        &self.taken_up
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

    /// Things a user should know that happened since this was last asked.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.trouble.take_notes();
        notices.append(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        notices
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
        let mut scheduler = joined(self.scheduler);
        scheduler.end_questions();
        self.control.into_iter().for_each(Control::end);
        self.shards.into_iter().for_each(joined);
        let kept = self.store.end();
        self.scribe.end();
        self.index_end.store(true, Ordering::Release);
        self.index_bell.ring_if_asleep();
        let mut desk = joined(self.index);
        self.trouble.take()?;
        kept?;
        // Everything is told, unless the disk was waited for in vain. If it cannot be noted, the next start looks for
        // itself.
        let all_told = !scheduler.parting.has_given_up();
        if let (Some(mut told), Ok(first)) = (self.told.filter(|_| all_told), self.held.next_segment()) {
            let _ = told.move_to(first);
        }
        let example = desk.index_mut().example();
        let sum = |of: fn(&ShardStats) -> &std::sync::atomic::AtomicU64| {
            self.shard_stats.iter().map(|stats| of(stats).load(Ordering::Relaxed)).sum::<u64>()
        };
        let index = desk.index().stats();
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
            pending: index.pending + index.fetching + index.waiting,
            waiting: index.waiting,
            next_due_s: index.next_due_s,
            known_before: self.known_before,
            taken_up: self.taken_up.pages,
            known: index.known,
            results: scheduler.results(),
            fetch_us: merged_histogram(&self.shard_stats),
            robots: sum(|stats| &stats.robots),
            restarts: scheduler.restarts(),
            syscalls: sum(|stats| &stats.syscalls),
            example,
            stopped,
        })
    }
}

/// Everything a shard thread needs to make a shard, once or after a death again.
struct ShardThread {
    seat: Seat,
    config: Config,
    kit: SpiderSetup,
    scope: Arc<Scope>,
    share: Arc<ShardShare>,
    work: Receiver<ToShard>,
    done: Sender<FromShard>,
    bell: Arc<Doorbell>,
    stats: Arc<ShardStats>,
    wall: Wall,
    started: Instant,
    scribe: LogWriterPort,
    spill: Receiver<SpillEvent>,
    heritage: PreviousRun,
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
        let url_server = url_server_config(&self.config, self.wall, epoch);
        let now = Now::from_us(self.started.elapsed().as_micros() as u64);
        let past = self.heritage.past(&self.scribe, &url_server, self.wall, epoch, now);
        ShardParts {
            number: self.seat.index,
            scribe: self.scribe.clone(),
            spill: self.spill.clone(),
            memory: past.memory,
            quiet_until: past.quiet_until,
            product_token: url_server.product_token.clone(),
            url_server,
            spider: spider_config(&self.config, &self.kit, self.wall),
            scope: self.scope.clone(),
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

pub(crate) fn run_scheduler(
    mut scheduler: Scheduler,
    thread: &ThreadBell,
    bell: &Doorbell,
    trouble: &Health,
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

pub(crate) fn run_index(
    mut desk: IndexActor,
    end: &AtomicBool,
    thread: &ThreadBell,
    bell: &Doorbell,
    trouble: &Health,
) -> IndexActor {
    thread.belongs_to_me();
    let mut waits = false;
    loop {
        let is_ending = end.load(Ordering::Acquire);
        if is_ending {
            desk.forget_answer();
        }
        // A mistake of ours ends the crawl with a word, and does not leave everybody waiting for an answer.
        let turned = catch_unwind(AssertUnwindSafe(|| desk.turn()));
        let turned =
            turned.unwrap_or_else(|_| Err(io::Error::other("its thread died of a mistake in the program")));
        let is_over = is_ending && desk.is_idle();
        let turned = if is_over { turned.and_then(|_| desk.index_mut().close()).map(|()| 0) } else { turned };
        match turned {
            Ok(words) => {
                if std::mem::replace(&mut waits, false) {
                    trouble.index_waits(None);
                }
                if is_over {
                    return desk;
                }
                rest(thread, bell, SLEEP_MAX, words as u64, || !desk.is_idle());
            }
            // It is all in memory, and nothing more comes in. Without an end to it, it is found again.
            Err(cause) if is_full(&cause) && !is_over => {
                waits = true;
                trouble.index_waits(Some(format!("fetching waits for disk space: the doc index: {cause}")));
                std::thread::sleep(SLEEP_MAX);
            }
            Err(cause) => {
                trouble.fatal(NodeError::Index(cause));
                return desk;
            }
        }
    }
}

/// A disk that may have room again.
fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
