use super::plan::{SPIDERS, SplitPlan};
use crate::base::Wall;
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    Actor, HostsFile, Links, LinksConfig, LogMedium, MemoryFiles, Names, NodeSetup, OpenIndex, RecordActor,
    RecordSender, RemoteShard, ShardMaker, SpiderCore, SpiderShard, StoreAt, StoreServer, UrlCore, UrlList,
    assemble_spider, assemble_store_server, assemble_url_server,
};
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use crate::sim::turning::{Seat, silent};
use crate::store_server::DataDir;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The day on which all of it happens.
pub const WALL: Wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };

/// The drivers of a process, by their numbers in the network.
///
/// | process      | drivers                                   |
/// |--------------|-------------------------------------------|
/// | URL server   | 0 links, 1 shard                          |
/// | spider n     | 2 + 4n links, sender, two shards          |
/// | store server | 14 acceptor, two workers                  |
pub const URL_LINKS: usize = 0;
const URL_SHARD: usize = 1;
pub const STORE: usize = 2 + 4 * SPIDERS;
pub const DRIVERS: usize = STORE + 3;

pub fn spider_links(spider: usize) -> usize {
    2 + 4 * spider
}

/// The spider that a driver belongs to.
pub fn spider_of(driver: usize) -> Option<usize> {
    (2..STORE).contains(&driver).then(|| (driver - 2) / 4)
}

const URL_ADDRESS: &str = "10.0.1.1:7170";
const STORE_ADDRESS: &str = "10.0.1.2:7172";
const LINKS_MAX: usize = 16;

/// What every process is made with.
pub struct Surroundings<'a> {
    pub plan: &'a SplitPlan,
    pub net: &'a Rc<RefCell<SimNet>>,
    /// How often processes were started before.
    pub starts: u64,
}

/// A process that runs. It is killed by dropping it.
pub enum Process {
    Url(Box<UrlProcess>),
    Spider(Box<SpiderProcess>),
    Store(Box<StoreProcess>),
}

pub struct UrlProcess {
    pub core: UrlCore<Links<SimDriver>>,
    pub shard: RemoteShard<SimDriver>,
}

pub struct SpiderProcess {
    pub core: SpiderCore<Links<SimDriver>, RecordSender<SimDriver>>,
    pub shards: Vec<SpiderShard<SimDriver>>,
    first: usize,
}

pub struct StoreProcess {
    pub core: StoreServer<SimDriver>,
}

impl Process {
    pub fn seats(&mut self) -> Vec<Seat<'_>> {
        match self {
            Process::Url(url) => vec![
                (&mut url.core.scheduler.actor, None),
                (&mut url.core.index.actor, None),
                (&mut url.core.log_writer.actor, None),
                (&mut url.core.links, Some(URL_LINKS)),
                (&mut url.shard, Some(URL_SHARD)),
            ],
            Process::Spider(spider) => {
                let first = spider.first;
                let RecordActor::Server(sender) = &mut spider.core.records else {
                    unreachable!("records go to the store server")
                };
                let mut seats: Vec<Seat<'_>> = vec![
                    (&mut spider.core.dispatcher.actor, None),
                    (&mut spider.core.log_writer.actor, None),
                    (&mut spider.core.links, Some(first)),
                    (sender, Some(first + 1)),
                ];
                let shards = spider.shards.iter_mut().enumerate();
                seats.extend(shards.map(|(n, shard)| (shard as &mut dyn Actor, Some(first + 2 + n))));
                seats
            }
            Process::Store(store) => {
                let mut seats: Vec<Seat<'_>> =
                    vec![(&mut store.core.keeper, None), (&mut store.core.acceptor.actor, Some(STORE))];
                let workers = store.core.workers.iter_mut().enumerate();
                seats.extend(
                    workers.map(|(n, seat)| (&mut seat.actor as &mut dyn Actor, Some(STORE + 1 + n))),
                );
                seats
            }
        }
    }
}

impl Surroundings<'_> {
    fn driver(&self, id: usize, conns_max: usize) -> SimDriver {
        SimDriver::new(self.net.clone(), id, conns_max)
    }

    fn seed(&self) -> u64 {
        self.plan.web.seed.wrapping_mul(1_000).wrapping_add(self.starts)
    }

    fn setup(&self, cores: usize) -> NodeSetup {
        let mut config = self.plan.web.config.clone();
        config.cores = (0..cores).collect();
        NodeSetup::new(config)
    }

    fn links(
        &self,
        id: usize,
        config: LinksConfig,
        owner: Arc<Doorbell>,
        health: &crate::engine::Health,
    ) -> (crate::engine::LinkPort, Links<SimDriver>, Option<std::net::SocketAddr>) {
        let driver = self.driver(id, LINKS_MAX);
        let notices = health.notices().clone();
        let made = Links::new(driver, config, (silent(), owner), notices, self.seed());
        let (links, port, bound) = made.expect("the address is free");
        (port, links, bound)
    }

    pub fn url_server(&self, urls: Vec<CrawlUrl>, hosts: &str, files: &MemoryFiles) -> Process {
        let setup = self.setup(1);
        let list = UrlList { urls, index: OpenIndex::in_memory(&setup.config), wait: false };
        let listen = Some(URL_ADDRESS.parse().expect("an address"));
        let config = LinksConfig { listen, dial: Vec::new(), links_max: LINKS_MAX, answers_end: false };
        let links = |owner, health: &_| Ok(self.links(URL_LINKS, config, owner, health));
        let names = |_, _| Ok(Names::table(HostsFile::parse(hosts)));
        let log = LogMedium::Memory(files.clone());
        let core = assemble_url_server(&setup, list, &log, links, names, WALL).expect("memory does not fail");
        let shard = core.shard.maker.make(self.driver(URL_SHARD, self.plan.web.conns_max), 0);
        Process::Url(Box::new(UrlProcess { core, shard }))
    }

    pub fn spider(&self, number: usize, files: &MemoryFiles) -> Process {
        let shards = self.plan.shards[number];
        let setup = self.setup(shards);
        let first = spider_links(number);
        let dial = vec![URL_ADDRESS.to_string()];
        let config = LinksConfig { listen: None, dial, links_max: LINKS_MAX, answers_end: false };
        let links = |owner, health: &_| Ok(self.links(first, config, owner, health));
        let sender = |parts, shards| {
            let driver = self.driver(first + 1, LINKS_MAX);
            Ok(RecordSender::new(driver, parts, shards, &silent(), self.seed() + 1)
                .expect("it listens nowhere"))
        };
        let (log, store) = (LogMedium::Memory(files.clone()), StoreAt::Server(STORE_ADDRESS.to_string()));
        let core = assemble_spider(&setup, store, &log, links, sender, WALL).expect("memory does not fail");
        let conns_max = self.plan.web.conns_max;
        let make = |(n, seat): (usize, &crate::engine::SpiderSeat)| {
            seat.maker.make(self.driver(first + 2 + n, conns_max), 0)
        };
        let shards = core.shards.iter().enumerate().map(make).collect();
        Process::Spider(Box::new(SpiderProcess { core, shards, first }))
    }

    pub fn store_server(&self, data: &Path) -> Process {
        let setup = self.setup(self.plan.workers);
        let directory = DataDir::open(data).expect("the directory is free");
        let mut next = STORE;
        let driver = |conns_max: usize| {
            next += 1;
            Ok(self.driver(next - 1, conns_max.min(LINKS_MAX)))
        };
        let listen = STORE_ADDRESS.parse().expect("an address");
        let core = assemble_store_server(&setup.config, listen, directory, driver, WALL);
        Process::Store(Box::new(StoreProcess { core: core.expect("the disk does not fail") }))
    }
}
