//! A node as plain values and rings, without a thread: threads turn it ([`super::node::Node`]), and so does the simulation.

use crate::base::{Now, Wall};
use crate::config::Config;
use crate::driver::Driver;
use crate::engine::crawl::away_domains::AwayDomains;
use crate::engine::crawl::feeds_home::FeedsHome;
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::local_queues::LocalQueues;
use crate::engine::crawl::messages::{FromShard, ToIndex, ToShard};
use crate::engine::crawl::node_setup::{NodeSetup, SpiderSetup};
use crate::engine::crawl::open_index::{OpenIndex, handler_of};
use crate::engine::crawl::page_sink::PageSink;
use crate::engine::crawl::provider::Provider;
use crate::engine::crawl::queues::{Queues, QueuesParts};
use crate::engine::crawl::resume::{IndexedMark, Resumed, Resumption};
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::crawl::scheduler_setup::{SchedulerConfig, SchedulerLane, SchedulerParts};
use crate::engine::crawl::seed_fates::SeedFates;
use crate::engine::crawl::settings::{niceness_rules, spider_config, store_rules, url_server_config};
use crate::engine::crawl::shard::{Shard, ShardParts};
use crate::engine::from_master::{ClosedDomains, MasterFeed, MasterParts, MasterPosition};
use crate::engine::inspect::cluster_view::ClusterReport;
use crate::engine::inspect::domains::Domains;
use crate::engine::inspect::feed_words::NamedFeed;
use crate::engine::inspect::handover::handover_path;
use crate::engine::inspect::loan_desk::LoanDesk;
use crate::engine::inspect::master_line::MasterReport;
use crate::engine::inspect::reports::{Reported, Reports, reports};
use crate::engine::links::{LinkPort, LinksConfig};
use crate::engine::names::Names;
use crate::engine::peers::{ActorParts, PeerActor, PeersSetup};
use crate::engine::runtime::actor::{ActorBell, Seated};
use crate::engine::runtime::counters::{CounterTable, ShardStats};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::{LogMedium, LogWriter, LogWriterPort, MemoryFiles, PreviousRun};
use crate::engine::runtime::network::Network;
use crate::engine::runtime::shard_thread::{ShardMaker, ShardSeat, send_up};
use crate::engine::runtime::store_actors::KeeperActor;
use crate::engine::runtime::wiring::{ShardWire, Wiring};
use crate::handler::Scope;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Fill};
use crate::store_server::{DataDir, HeldDirectory, Keeper, Medium, ShardShare, ShardStore};
use crate::url_server::NicenessRules;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A crawl in one process, before it has threads.
pub struct NodeCore {
    pub scheduler: Seated<Scheduler>,
    pub index: Seated<IndexActor>,
    pub log_writer: Seated<LogWriter>,
    pub keeper: KeeperActor,
    pub shards: Vec<CrawlSeat>,
    pub table: CounterTable,
    pub stop: Arc<AtomicBool>,
    pub(crate) shard_stats: Vec<Arc<ShardStats>>,
    pub(crate) rings: Vec<(&'static str, Fill)>,
    pub(crate) health: Arc<Health>,
    pub(crate) resumed: Resumed,
    pub(crate) known_before: u64,
    pub(crate) seeds: SeedFates,
    pub(crate) told: Option<IndexedMark>,
    /// Domains that are with other servers.
    closed: ClosedDomains,
    reported: Option<Reported>,
    log: LogWriterPort,
    /// No other process writes there until the index is closed.
    pub(crate) held: Option<HeldDirectory>,
    /// Of a node of a cluster: where its shards want addresses.
    loans: Option<Arc<LoanDesk>>,
    /// How hosts and addresses are asked.
    paces: NicenessRules,
}

/// What a crawl begins with.
pub struct CrawlTask {
    pub seeds: Vec<CrawlUrl>,
    /// Feeds to poll, besides those of its book.
    pub feeds: Vec<NamedFeed>,
    pub store: CrawlStore,
    pub index: OpenIndex,
}

/// Where a crawl keeps what it fetches.
pub enum CrawlStore {
    Directory(DataDir),
    /// For the simulation: segments in memory, and files that it looks into.
    Memory(MemoryFiles),
}

/// What makes the shards of a crawl.
pub struct CrawlMaker {
    config: LiveConfig,
    setup: SpiderSetup,
    scope: Arc<Scope>,
    share: Arc<ShardShare>,
    wire: ShardWire<ToShard, FromShard>,
    previous: PreviousRun,
    reports: Option<Reports>,
    loans: Option<Arc<LoanDesk>>,
}

/// A place for a shard of a crawl.
pub type CrawlSeat = ShardSeat<CrawlMaker>;
/// A shard of a crawl.
pub type CrawlShard<D> = Shard<D, LocalQueues, PageSink>;

/// Makes every part of a crawl and joins them.
pub fn assemble(
    setup: &NodeSetup,
    task: CrawlTask,
    names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
    wall: Wall,
) -> Result<NodeCore, NodeError> {
    let NodeSetup { config, kit } = setup;
    let CrawlTask { seeds, feeds, store, index } = task;
    let mut scope = index.scope(&seeds);
    let known_before = index.index.stats().known;
    let fates = SeedFates::new(&seeds, config);
    let is_among_others = index.index.share().is_some();
    let rules = index.provider_rules(config, &scope);
    let OpenIndex { index, mut told, .. } = index;
    let mut provider = Provider::new(index, rules);
    let mut closed = ClosedDomains::default();
    if let CrawlStore::Directory(directory) = &store {
        closed = ClosedDomains::read(directory.path()).map_err(NodeError::Master)?;
        let mut away = AwayDomains::kept_in(directory.path());
        closed.fences().for_each(|(domain, fence, comes)| away.remember(domain, fence, comes));
        for (domain, leaving) in closed.iter() {
            // Without a master nobody waits for what it brings along.
            let is_leaving = config.crawl.has_master()
                && !leaving.is_empty()
                && !handover_path(directory.path(), domain).exists();
            away.add(domain, is_leaving);
        }
        provider.set_away(away);
    }
    let mut resumed = Resumed::default();
    let now_s = u32::try_from(wall.unix_ms_at_zero / 1_000).unwrap_or(u32::MAX);
    let home = FeedsHome {
        directory: match &store {
            CrawlStore::Directory(directory) => Some(directory.path().to_path_buf()),
            CrawlStore::Memory(_) => None,
        },
        rules: config.feeds.rules(),
        discover: config.feeds.discover,
    };
    let feeds_told = provider.begin_feeds(home, &feeds, now_s).map_err(NodeError::Feeds)?;
    // Numbers of segments that are gone are used again.
    if let (CrawlStore::Directory(directory), Some(told)) = (&store, &mut told) {
        told.move_to(told.first().min(directory.next_segment())).map_err(NodeError::Index)?;
    }
    // Before a segment is made: from then on, all that is older is told. What is to be asked for again in any case need not
    // be taken up.
    if let (CrawlStore::Directory(directory), Some(told)) =
        (&store, told.as_mut().filter(|_| !config.crawl.again))
    {
        let resumption = Resumption::new(&mut provider, handler_of(config, &scope), now_s);
        resumed = resumption.run(&config.store.data, told.first()).map_err(NodeError::Index)?;
        told.move_to(directory.next_segment()).map_err(NodeError::Index)?;
    }
    resumed.into_scope.iter().for_each(|url| Arc::make_mut(&mut scope).add(url));

    let (log_medium, medium, held) = match store {
        CrawlStore::Directory(directory) => {
            let held = Some(directory.hold());
            (LogMedium::Directory(&config.store.data), Medium::Directory(directory), held)
        }
        CrawlStore::Memory(files) => (LogMedium::Memory(files), Medium::Memory { next_number: 0 }, None),
    };
    let shard_count = config.cores.len();
    let mut keeper = Keeper::new(medium, store_rules(config), shard_count);
    if let Err(error) = keeper.prepare(wall.unix_ms_at_zero) {
        // What was typed is pending in the next process. A disk that refuses this as well has the same mend.
        let seeds = ToIndex::Seeds { urls: seeds, head_only: config.crawl.head };
        let _ = provider.work_off(vec![seeds], now_s).and_then(|()| provider.close());
        return Err(NodeError::NoStore(error));
    }
    provider.tell(keeper.shares());
    let mut wiring = Wiring::open(config, &log_medium, wall)?;
    if let Some(error) = &resumed.trouble {
        let text = format!("some pages that are stored may be fetched again: {error}");
        wiring.health.tell(Event::PagesLost, vec![("cause", error.to_string().into())], text);
    }
    for told in &feeds_told {
        wiring.health.tell(Event::FeedsMended, vec![("what", told.name().into())], told.to_string());
    }
    let live = LiveConfig::new(config);
    let (reports_out, reported) = config.crawl.has_master().then(reports).unzip();
    let mut lanes = Vec::new();
    let mut shards = Vec::new();
    let wires: Vec<_> = (0..shard_count)
        .map(|number| {
            let share = keeper.share(number);
            (wiring.shard(share.clone()), share)
        })
        .collect();
    let loans = is_among_others
        .then(|| Arc::new(LoanDesk::new(wires.iter().map(|((_, wire), _)| wire.bell.clone()))));
    for ((lane, wire), share) in wires {
        lanes.push(lane);
        let (slot, bell) = (wire.slot.clone(), wire.bell.clone());
        let maker = CrawlMaker {
            config: live.clone(),
            setup: kit.clone(),
            scope: scope.clone(),
            share,
            wire,
            previous: wiring.previous.clone(),
            reports: reports_out.clone(),
            loans: loans.clone(),
        };
        shards.push(ShardSeat { maker, slot, bell });
    }
    let bells = shards.iter().map(|seat| seat.bell.clone()).collect();
    let owner = wiring.dealer.door.clone();
    let counters = wiring.table.thread();
    let keeper = KeeperActor::new(keeper, config, wall, owner, bells, &wiring.health, counters)
        .with_live(live.clone());
    let dealer = Dealer { provider, seeds, config: SchedulerConfig::new(config), live };
    let (mut scheduler, index) = dealer.join(&mut wiring, lanes, names)?;
    let mut away = Domains::default();
    closed.iter().for_each(|(domain, _)| away.insert(domain));
    scheduler.actor.set_away(away);
    Ok(NodeCore {
        closed,
        reported,
        log: wiring.log,
        scheduler,
        index,
        log_writer: wiring.log_writer,
        keeper,
        shards,
        table: wiring.table,
        stop: wiring.stop,
        shard_stats: wiring.shard_stats,
        rings: wiring.rings,
        health: wiring.health,
        resumed,
        known_before,
        seeds: fates,
        told,
        held,
        loans,
        paces: niceness_rules(config),
    })
}

impl NodeCore {
    /// What takes URLs from masters, if the settings name any, and what turns its links. `links` is given whom to dial and
    /// the bell of their owner.
    pub(crate) fn join_masters<L>(
        &mut self,
        config: &Config,
        directory: Option<&Path>,
        wall: Wall,
        links: impl FnOnce(LinksConfig, Arc<Doorbell>, &Health) -> Result<(LinkPort, L), NodeError>,
    ) -> Result<Option<(Seated<MasterFeed>, L, MasterReport)>, NodeError> {
        let (true, Some(server)) = (config.crawl.has_master(), config.crawl.server) else {
            return Ok(None);
        };
        let position = directory.map(MasterPosition::read).transpose();
        let position = position.map_err(|error| NodeError::Master(error.to_string()))?.flatten();
        let position = position.unwrap_or_default();
        let masters: Vec<String> = config.crawl.master.iter().map(|master| master.0.clone()).collect();
        // Room for a link that goes while its successor stands.
        let dial = LinksConfig {
            listen: None,
            dial: masters.clone(),
            links_max: 2 * masters.len(),
            answers_end: false,
        };
        let bell = ActorBell::default();
        let (port, links) = links(dial, bell.door.clone(), &self.health)?;
        let report = MasterReport::default();
        let feed = MasterFeed::new(MasterParts {
            server,
            masters,
            timeout_us: config.crawl.timeout_master.us(),
            position,
            closed: self.closed.clone(),
            log: self.log.clone(),
            reported: self.reported.take(),
            directory: directory.map(Path::to_path_buf),
            port,
            questions: self.scheduler.actor.questions(),
            bell: bell.door.clone(),
            counters: self.table.thread(),
            table: self.table.clone(),
            health: self.health.clone(),
            report: report.clone(),
            wall,
        });
        Ok(Some((Seated { actor: feed, bell }, links, report)))
    }

    /// What joins a node to the others of its cluster, and what turns its links.
    pub(crate) fn join_peers<L>(
        &mut self,
        setup: PeersSetup,
        wall: Wall,
        links: impl FnOnce(LinksConfig, Arc<Doorbell>, &Health) -> Result<(LinkPort, L), NodeError>,
    ) -> Result<(Seated<PeerActor>, L, ClusterReport), NodeError> {
        let bell = ActorBell::default();
        let (port, links) = links(setup.links(), bell.door.clone(), &self.health)?;
        let report = ClusterReport::default();
        let actor = setup.actor(ActorParts {
            port,
            log: self.log.clone(),
            report: report.clone(),
            loans: self.loans.clone().ok_or_else(no_share)?,
            paces: self.paces,
            questions: self.scheduler.actor.questions(),
            bell: bell.door.clone(),
            ledger_end: self.index.actor.provider().index().ledger_end(),
            health: self.health.clone(),
            wall,
        })?;
        Ok((Seated { actor, bell }, links, report))
    }
}

/// An index that was opened as that of a crawl which stands alone.
fn no_share() -> NodeError {
    NodeError::Cluster("the doc index was opened without a share of the cluster".to_string())
}

/// What stands between the doc index and shards of any kind.
pub(crate) struct Dealer {
    pub provider: Provider,
    pub seeds: Vec<CrawlUrl>,
    pub config: SchedulerConfig,
    pub live: LiveConfig,
}

impl Dealer {
    /// Joins the scheduler and the index to the lanes of the shards.
    pub fn join(
        self,
        wiring: &mut Wiring,
        lanes: Vec<SchedulerLane>,
        names: impl FnOnce(Arc<Doorbell>, Arc<Health>) -> io::Result<Names>,
    ) -> Result<(Seated<Scheduler>, Seated<IndexActor>), NodeError> {
        let (bell, index_bell) = (wiring.dealer.clone(), ActorBell::default());
        let (index, port) = IndexActor::new(
            self.provider,
            wiring.wall,
            (bell.door.clone(), index_bell.door.clone()),
            wiring.health.clone(),
            wiring.table.thread(),
        );
        wiring.rings.push(("index", port.words.fill()));
        let names = names(bell.door.clone(), wiring.health.clone()).map_err(NodeError::Thread)?;
        if let Some((counters, fill)) = names.published() {
            wiring.table.join(counters);
            wiring.rings.push(("names", fill));
        }
        let parts = SchedulerParts {
            lanes,
            index: port,
            names,
            log: wiring.log.clone(),
            wall: wiring.wall,
            stop: wiring.stop.clone(),
            counters: wiring.table.thread(),
            health: wiring.health.clone(),
            live: self.live,
        };
        let mut scheduler = Scheduler::new(self.config, parts);
        scheduler.questions().rings(bell.door.clone());
        scheduler.seeds(self.seeds);
        Ok((Seated { actor: scheduler, bell }, Seated { actor: index, bell: index_bell }))
    }
}

impl<D: Driver> ShardMaker<D> for CrawlMaker {
    type Shard = CrawlShard<D>;

    fn make(&self, driver: D, epoch: u32) -> CrawlShard<D> {
        let (now, config) = (driver.now(), self.config.get());
        let handler = handler_of(&config, &self.scope);
        let sink = PageSink::new(handler, ShardStore::new(self.share.clone()));
        let sink = sink.with_reports(self.reports.clone());
        let queues = queues(&config, &self.wire, &self.previous, epoch, now);
        let queues = queues.with_reports(self.reports.clone());
        let source = LocalQueues(match &self.loans {
            Some(loans) => queues.with_loans(loans.clone()),
            None => queues,
        });
        let parts = shard_parts(&config, &self.setup, &self.wire);
        Shard::new(driver, parts, source, sink)
    }

    fn announce(&self, epoch: u32) {
        let suspect = self.wire.stats.died(epoch);
        send_up(&self.wire.lane.replies, &self.wire.owner, FromShard::Restarted { epoch, suspect });
    }
}

/// The queues of a shard, with what is known of hosts from before.
pub(crate) fn queues<M, R>(
    config: &Config,
    wire: &ShardWire<M, R>,
    previous: &PreviousRun,
    epoch: u32,
    now: Now,
) -> Queues {
    let rules = url_server_config(config, wire.wall, epoch);
    let inherited = previous.inherited(&wire.log, &rules, epoch, now);
    let spill = wire.spill.clone();
    Queues::new(QueuesParts { config: rules, inherited, spill, shard: wire.number, epoch }, now)
}

/// What a shard is made of, out of its end of the wiring.
pub(crate) fn shard_parts<M, R>(
    config: &Config,
    setup: &SpiderSetup,
    wire: &ShardWire<M, R>,
) -> ShardParts<M, R> {
    ShardParts {
        spider: spider_config(config, setup, wire.wall),
        lane: wire.lane.clone(),
        owner: wire.owner.clone(),
        stats: wire.stats.clone(),
        wall: wire.wall,
        number: wire.number,
        log: wire.log.clone(),
        network: Network::new(wire.health.clone(), wire.health.without_network.clone()),
    }
}
