use crate::base::{AddressGuard, Now, Wall};
use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::index_actor::{IndexActor, ProviderRules};
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::node::{run_index, run_scheduler};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::open_index::{OpenIndex, desk_clock};
use crate::engine::crawl::scheduler::{Scheduler, SchedulerConfig, SchedulerLog, ShardPort};
use crate::engine::crawl::settings::{spider_config, url_server_config};
use crate::engine::links::{LinkPort, Links, LinksConfig, LinksThread};
use crate::engine::names::Names;
use crate::engine::runtime::counters::{RemoteShardStats, SchedulerStats, ShardStats, UrlSummary};
use crate::engine::runtime::log_writer::{LogWriter, LogWriterPort, PreviousRun};
use crate::engine::runtime::log_writer_thread::LogWriterThread;
use crate::engine::runtime::threads::{
    BellSlot, Health, NodeError, Seat, cpu_us, joined, spawn, thread_bell, wall_at,
};
use crate::engine::split::remote_shard::{RemoteShard, RemoteShardParts};
use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use crate::store_server::{Keeper, Medium, StoreRules};
use crate::url_server::SpillEvent;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A URL server process: the scheduler and the doc index of a crawl, and in place of its shards one desk with links
/// to spiders in other processes.
pub struct UrlNode {
    started: Instant,
    driver: &'static str,
    bound: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    scheduler: JoinHandle<Scheduler>,
    scheduler_bell: Arc<Doorbell>,
    index: JoinHandle<IndexActor>,
    index_bell: Arc<Doorbell>,
    index_end: Arc<AtomicBool>,
    scribe: LogWriterThread,
    desk: JoinHandle<()>,
    links: LinksThread,
    stats: Arc<ShardStats>,
    desk_stats: Arc<RemoteShardStats>,
    notices: Arc<Mutex<Vec<String>>>,
    trouble: Arc<Health>,
}

/// What is to be fetched.
pub struct UrlList {
    pub urls: Vec<CrawlUrl>,
    /// Where the URLs are known and noted.
    pub index: OpenIndex,
    /// Stay when everything is done.
    pub wait: bool,
}

impl UrlNode {
    /// Starts every thread. `make_driver` is called on the desk's own thread, again after a restart.
    pub fn start<D: Driver + 'static>(
        setup: &NodeSetup,
        list: UrlList,
        links: LinksConfig,
        names: impl FnOnce(Arc<Doorbell>) -> io::Result<Names>,
        driver: &'static str,
        make_driver: impl Fn(usize) -> io::Result<D> + Send + Sync + 'static,
        started: Instant,
    ) -> Result<UrlNode, NodeError> {
        let NodeSetup { config, kit } = setup;
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Health::default());
        let wall = wall_at(started);
        let (scheduler_thread, scheduler_bell) = thread_bell();
        let (index_thread, index_bell) = thread_bell();
        let (scribe_thread, scribe_bell) = thread_bell();
        let (hook, bell) = BellSlot::with_doorbell();
        let listen = links.listen;
        let (port, links, bound) = Links::start(links, bell.clone()).map_err(|cause| match listen {
            Some(addr) => NodeError::Listen { addr, cause },
            None => NodeError::Thread(cause),
        })?;
        let (mut scribe, scribe_port, heritage) =
            LogWriter::open(&config.store.data, config, wall, scribe_bell.clone())
                .map_err(|cause| NodeError::LogWriter { path: config.store.data.clone(), cause })?;
        let papers = match list.index.opened.first_new {
            0 => ProviderRules::plain(desk_clock(wall, started)),
            _ => list.index.papers(config, &list.index.scope(&list.urls), wall, started),
        };
        let (desk_words, index_port) =
            IndexActor::new(list.index.index, papers, scheduler_bell.clone(), index_bell.clone());
        let (work_out, work) = ring(WORK_RING_WORDS);
        let (done, done_in) = ring(DONE_RING_WORDS);
        // Nothing is stored here, so nothing waits to become durable.
        let share = Keeper::new(
            Medium::Memory { next_number: 0 },
            StoreRules::of_size(config.store.segment_bytes),
            1,
        )
        .share(0);
        let ports = vec![ShardPort { work: work_out, done: done_in, bell: bell.clone(), share }];
        let thread = DeskThread {
            seat: Seat {
                index: 0,
                core: config.cores[0],
                driver,
                hook,
                owner: scheduler_bell.clone(),
                stop: stop.clone(),
                trouble: trouble.clone(),
            },
            config: config.clone(),
            kit: kit.clone(),
            work,
            done,
            spill: scribe.spill_events(bell.clone()),
            bell,
            port: Arc::new(Mutex::new(port)),
            stats: Arc::new(ShardStats::default()),
            desk_stats: Arc::new(RemoteShardStats::default()),
            wall,
            started,
            scribe: scribe_port.clone(),
            heritage,
        };
        let (stats, desk_stats) = (thread.stats.clone(), thread.desk_stats.clone());
        let (ready, started_up) = sync_channel(1);
        let desk = spawn("url-desk", move || thread.run(&make_driver, &ready))?;
        started_up.recv().unwrap_or(Err(NodeError::Restarts(0)))?;

        let scribe = LogWriterThread::start(scribe, scribe_thread, scribe_bell, trouble.clone())?;
        let index_end = Arc::new(AtomicBool::new(false));
        let index = spawn("index", {
            let (end, bell) = (index_end.clone(), index_bell.clone());
            let trouble = trouble.clone();
            move || run_index(desk_words, &end, &index_thread, &bell, &trouble)
        })?;
        let scheduler_config = SchedulerConfig {
            queue_len: config.url_server.queue_len,
            hosts_per_ip_max: config.url_server.hosts_per_ip_max,
            pages_max: None,
            guard: AddressGuard::new(config.allow_net.clone()),
            head_only: false,
            wait: list.wait,
        };
        let names = names(scheduler_bell.clone()).map_err(NodeError::Thread)?;
        let clock = Arc::new(move || now_since(started));
        let mut scheduler = Scheduler::new(
            scheduler_config,
            ports,
            index_port,
            names,
            SchedulerLog { port: scribe_port, wall, clock },
            stop.clone(),
            Arc::new(SchedulerStats::default()),
        );
        scheduler.seeds(list.urls);
        let notices = scheduler.notices();
        let scheduler = spawn("scheduler", {
            let (bell, trouble) = (scheduler_bell.clone(), trouble.clone());
            move || run_scheduler(scheduler, &scheduler_thread, &bell, &trouble)
        })?;
        Ok(UrlNode {
            started,
            driver,
            bound,
            stop,
            scheduler,
            scheduler_bell,
            index,
            index_bell,
            index_end,
            scribe,
            desk,
            links,
            stats,
            desk_stats,
            notices,
            trouble,
        })
    }

    /// Where spiders may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Sends nothing more; what spiders have may end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.scheduler_bell.ring_if_asleep();
    }

    pub fn is_finished(&self) -> bool {
        self.scheduler.is_finished()
    }

    /// Things a user should know that happened since this was last asked.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What it waits for, if it is more than the network.
    pub fn waiting_for(&self) -> Option<String> {
        self.trouble.waiting_for()
    }

    /// Waits for the end, writes everything and sums up.
    pub fn finish(self) -> Result<UrlSummary, NodeError> {
        let stopped = self.stop.load(Ordering::Relaxed);
        let scheduler = joined(self.scheduler);
        joined(self.desk);
        self.links.end();
        self.scribe.end();
        self.index_end.store(true, Ordering::Release);
        self.index_bell.ring_if_asleep();
        let index = joined(self.index).index().stats();
        self.trouble.take()?;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Ok(UrlSummary {
            known: index.known,
            done: index.known - index.pending - index.fetching - index.waiting,
            pending: index.pending + index.fetching + index.waiting,
            sent: get(&self.desk_stats.sent),
            resent: get(&self.stats.resent),
            late: get(&self.desk_stats.late),
            bad_lines: get(&self.desk_stats.bad_lines),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
            driver: self.driver,
            results: scheduler.results(),
            stopped,
        })
    }
}

fn now_since(started: Instant) -> Now {
    Now::from_us(started.elapsed().as_micros() as u64)
}

/// Everything the desk's thread needs to make a desk, once or after a death again.
struct DeskThread {
    seat: Seat,
    config: Config,
    kit: SpiderSetup,
    work: Receiver<ToShard>,
    done: Sender<FromShard>,
    bell: Arc<Doorbell>,
    spill: Receiver<SpillEvent>,
    port: Arc<Mutex<LinkPort>>,
    stats: Arc<ShardStats>,
    desk_stats: Arc<RemoteShardStats>,
    wall: Wall,
    started: Instant,
    scribe: LogWriterPort,
    heritage: PreviousRun,
}

impl DeskThread {
    fn run<D: Driver>(
        self,
        make_driver: &(dyn Fn(usize) -> io::Result<D> + Send + Sync),
        ready: &SyncSender<Result<(), NodeError>>,
    ) {
        let make = |driver, epoch| RemoteShard::new(driver, self.parts(epoch));
        let announce = |epoch| self.seat.say(&self.done, FromShard::Restarted { epoch, suspect: None });
        self.seat.run(make_driver, make, announce, ready);
    }

    fn parts(&self, epoch: u32) -> RemoteShardParts {
        let url_server = url_server_config(&self.config, self.wall, epoch);
        let past = self.heritage.past(&self.scribe, &url_server, self.wall, epoch, now_since(self.started));
        RemoteShardParts {
            url_server,
            spider: spider_config(&self.config, &self.kit, self.wall),
            protocol: self.config.url_server.spider_protocol,
            work: self.work.clone(),
            done: self.done.clone(),
            bell: self.bell.clone(),
            scheduler: self.seat.owner.clone(),
            port: self.port.clone(),
            stop: self.seat.stop.clone(),
            stats: self.stats.clone(),
            desk_stats: self.desk_stats.clone(),
            wall: self.wall,
            epoch,
            scribe: self.scribe.clone(),
            spill: self.spill.clone(),
            memory: past.memory,
            quiet_until: past.quiet_until,
        }
    }
}
