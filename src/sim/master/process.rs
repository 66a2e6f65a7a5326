use super::plan::{MASTERS_MAX, MasterPlan, NODES_MAX};
use crate::base::{Now, OneWorker, Wall};
use crate::config::{Config, MasterAddress, Server};
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    Actor, CrawlShard, CrawlStore, CrawlTask, Health, HostsFile, LinkPort, Links, LinksConfig, MasterCore,
    MasterFeed, MasterMeans, MasterReport, Names, NodeCore, NodeSetup, OpenIndex, Seated, ShardMaker,
    assemble, assemble_master,
};
use crate::master::epoch::IdKey;
use crate::master::map::ServerState;
use crate::master::{MemoryTable, PartnerDomain};
use crate::rings::Doorbell;
use crate::sim::turning::{Seat, silent};
use crate::store_server::DataDir;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The day on which all of it happens.
pub const WALL: Wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };

/// The drivers of a process, by their numbers in the network.
///
/// | process  | drivers                      |
/// |----------|------------------------------|
/// | master m | m                            |
/// | node n   | 2 + 3n links, two shards     |
pub const DRIVERS: usize = MASTERS_MAX + 3 * NODES_MAX;

pub fn node_links(node: usize) -> usize {
    MASTERS_MAX + 3 * node
}

/// The node that a driver belongs to.
pub fn node_of(driver: usize) -> Option<usize> {
    driver.checked_sub(MASTERS_MAX).map(|driver| driver / 3)
}

pub fn address_of(master: usize) -> String {
    format!("10.0.1.{}:7190", 1 + master)
}

const LINKS_MAX: usize = 16;

/// What every process is made with.
pub struct Surroundings<'a> {
    pub plan: &'a MasterPlan,
    pub net: &'a Rc<RefCell<SimNet>>,
    pub folder: &'a Path,
    /// How often processes were started before.
    pub starts: u64,
}

/// A process that runs. It is killed by dropping it.
pub enum Process {
    Master(Box<MasterProcess>),
    Node(Box<NodeProcess>),
}

pub struct MasterProcess {
    pub core: MasterCore<Links<SimDriver>>,
    driver: usize,
}

pub struct NodeProcess {
    pub core: NodeCore,
    pub shards: Vec<CrawlShard<SimDriver>>,
    pub report: MasterReport,
    feed: Seated<MasterFeed>,
    links: Links<SimDriver>,
    driver: usize,
}

impl Process {
    pub fn seats(&mut self) -> Vec<Seat<'_>> {
        match self {
            Process::Master(master) => vec![
                (&mut master.core.epochs.actor, None),
                (&mut master.core.nodes.actor, None),
                (&mut master.core.links, Some(master.driver)),
            ],
            Process::Node(node) => {
                let driver = node.driver;
                let mut seats: Vec<Seat<'_>> = vec![
                    (&mut node.core.scheduler.actor, None),
                    (&mut node.core.index.actor, None),
                    (&mut node.core.log_writer.actor, None),
                    (&mut node.core.keeper, None),
                    (&mut node.feed.actor, None),
                    (&mut node.links, Some(driver)),
                ];
                let shards = node.shards.iter_mut().enumerate();
                seats.extend(shards.map(|(n, shard)| (shard as &mut dyn Actor, Some(driver + 1 + n))));
                seats
            }
        }
    }
}

pub fn master_folder(folder: &Path, master: usize) -> PathBuf {
    folder.join(format!("master-{master}"))
}

pub fn node_folder(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("node-{node}"))
}

impl Surroundings<'_> {
    fn driver(&self, id: usize, conns_max: usize) -> SimDriver {
        SimDriver::new(self.net.clone(), id, conns_max)
    }

    fn links(
        &self,
        id: usize,
        config: LinksConfig,
        owner: Arc<Doorbell>,
        health: &Health,
    ) -> (LinkPort, Links<SimDriver>, Option<SocketAddr>) {
        let seed = self.plan.web.seed.wrapping_mul(1_000).wrapping_add(self.starts);
        let driver = self.driver(id, LINKS_MAX);
        let made = Links::new(driver, config, (silent(), owner), health.notices().clone(), seed);
        let (links, port, bound) = made.expect("the address is free");
        (port, links, bound)
    }

    pub fn master(&self, number: usize, table: Option<MemoryTable>) -> Process {
        let plan = self.plan;
        let mut config = plan.web.config.clone();
        let data = master_folder(self.folder, number);
        // Ids, and with them the order of lines, are the same each time.
        if !data.exists() {
            std::fs::create_dir_all(&data).expect("the disk does not fail");
            let key = IdKey::from_seed(plan.web.seed + number as u64);
            key.keep(&data.join("id.key")).expect("the disk does not fail");
        }
        config.master.data = data;
        config.master.listen = Some(address_of(number).parse().expect("an address"));
        config.master.peer = (plan.masters > 1).then(|| address_of(1 - number));
        config.servers = servers(plan.nodes);
        let clock_s = plan.clocks_s[number];
        let wall = Wall { unix_ms_at_zero: WALL.unix_ms_at_zero.wrapping_add_signed(1_000 * clock_s) };
        let means = MasterMeans {
            table: table
                .map(|table| (Box::new(table) as Box<dyn PartnerDomain + Send>, "memory".to_string())),
            workers: Box::new(OneWorker),
            clock: Box::new(move |now: Now| wall.unix_ms(now) / 1_000),
            wall,
        };
        let links = |_, owner, health: &Health| {
            let dial = config.master.peer.iter().cloned().collect();
            let links =
                LinksConfig { listen: config.master.listen, dial, links_max: LINKS_MAX, answers_end: false };
            Ok(self.links(number, links, owner, health))
        };
        let core = assemble_master(&config, means, links);
        let core = core.unwrap_or_else(|error| panic!("master {number} does not start: {error}"));
        Process::Master(Box::new(MasterProcess { core, driver: number }))
    }

    pub fn node(&self, number: usize, hosts: &str, now: Now) -> Process {
        let plan = self.plan;
        let mut config: Config = plan.web.config.clone();
        config.cores = (0..plan.shards).collect();
        config.crawl.server = Some(1 + number as u16);
        // Some prefer the one, some the other.
        let masters = (0..plan.masters).map(|n| (n + number) % plan.masters);
        config.crawl.master = masters.map(|master| MasterAddress(address_of(master))).collect();
        config.store.data = node_folder(self.folder, number);
        let setup = NodeSetup::new(config);
        let (config, folder) = (&setup.config, setup.config.store.data.clone());
        let directory = DataDir::open(&folder).expect("the directory is free");
        let now_s = u32::try_from(WALL.unix_ms(now) / 1_000).expect("a time of this century");
        let index = OpenIndex::open_at(config, &directory, None, now_s, |_| {});
        let index = index.unwrap_or_else(|error| panic!("the index of node {number}: {error}"));
        let task = CrawlTask {
            seeds: Vec::new(),
            feeds: Vec::new(),
            store: CrawlStore::Directory(directory),
            index,
        };
        let names = |_, _| Ok(Names::table(HostsFile::parse(hosts)));
        let core = assemble(&setup, task, names, WALL);
        let mut core = core.unwrap_or_else(|error| panic!("node {number} does not start: {error}"));
        let first = node_links(number);
        let links = |dial, owner, health: &Health| {
            let (port, links, _) = self.links(first, dial, owner, health);
            Ok((port, links))
        };
        let joined = core.join_masters(config, Some(&folder), WALL, links);
        let joined = joined.unwrap_or_else(|error| panic!("node {number}: {error}"));
        let (feed, links, report) = joined.expect("it has masters");
        let conns_max = plan.web.conns_max;
        let make = |(n, seat): (usize, &crate::engine::CrawlSeat)| {
            seat.maker.make(self.driver(first + 1 + n, conns_max), 0)
        };
        let shards = core.shards.iter().enumerate().map(make).collect();
        Process::Node(Box::new(NodeProcess { core, shards, report, feed, links, driver: first }))
    }
}

fn servers(nodes: usize) -> Vec<Server> {
    let server = |id| Server { id, capacity: 1.0, state: ServerState::Active };
    (1..=nodes as u16).map(server).collect()
}
