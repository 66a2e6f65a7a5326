use super::etcd::SimEtcd;
use super::plan::ClusterPlan;
use super::wrong::Wrong;
use crate::base::{Now, Rng};
use crate::config::Rate;
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    Boot, ClusterReport, ClusterTold, CrawlShard, CrawlStore, CrawlTask, Health, HostsFile, Links, Names,
    NodeCore, NodeSetup, OpenIndex, PeerActor, PeersSetup, Seated, ShardMaker, assemble,
};
use crate::rings::Doorbell;
use crate::sim::turning::{Seat, silent};
use crate::store_server::DataDir;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Each node has a driver for its links and two for its shards.
const DRIVERS_PER_NODE: usize = 3;

/// Drivers of so many nodes.
pub fn drivers_of(nodes: usize) -> usize {
    DRIVERS_PER_NODE * nodes
}

pub fn links_of(node: usize) -> usize {
    DRIVERS_PER_NODE * node
}

/// The node that a driver belongs to.
pub fn node_of(driver: usize) -> usize {
    driver / DRIVERS_PER_NODE
}

fn address_of(node: usize) -> String {
    format!("10.0.1.{}:7174", 1 + node)
}

/// Two to each of a few nodes; of many, there are as many more.
const LINKS_MAX: usize = 64;

/// A node that runs. It is killed by dropping it.
pub struct ClusterNode {
    pub core: NodeCore,
    pub report: ClusterReport,
    shards: Vec<CrawlShard<SimDriver>>,
    peers: Seated<PeerActor>,
    links: Links<SimDriver>,
    driver: usize,
}

/// Actors of a node, by their seats.
const SCHEDULER: usize = 0;
const INDEX: usize = 1;
pub const PEERS: usize = 2;
const LOG: usize = 3;
pub const KEEPER: usize = 4;
/// Behind it are the shards.
pub const LINKS: usize = 5;
/// With two shards.
pub const SEATS_MAX: usize = 8;

impl ClusterNode {
    /// How many actors it has.
    pub fn seats(&self) -> usize {
        LINKS + 1 + self.shards.len()
    }

    pub fn seat(&mut self, number: usize) -> Seat<'_> {
        let driver = self.driver;
        match number {
            SCHEDULER => (&mut self.core.scheduler.actor, None),
            INDEX => (&mut self.core.index.actor, None),
            PEERS => (&mut self.peers.actor, None),
            LOG => (&mut self.core.log_writer.actor, None),
            KEEPER => (&mut self.core.keeper, None),
            LINKS => (&mut self.links, Some(driver)),
            _ => (&mut self.shards[number - LINKS - 1], Some(driver + number - LINKS)),
        }
    }

    /// What wakes the actor at a seat, if it is woken by a bell.
    pub fn bell(&self, seat: usize) -> Option<&Doorbell> {
        match seat {
            SCHEDULER => Some(&self.core.scheduler.bell.door),
            INDEX => Some(&self.core.index.bell.door),
            PEERS => Some(&self.peers.bell.door),
            _ => None,
        }
    }

    /// What it knows of its cluster, and may do.
    pub fn peers(&self) -> &PeerActor {
        &self.peers.actor
    }

    /// What its actors sleep in.
    pub fn drivers(&self) -> RangeInclusive<usize> {
        self.driver..=self.driver + self.shards.len()
    }
}

/// What every node is made with.
pub struct Surroundings<'a> {
    pub plan: &'a ClusterPlan,
    pub net: &'a Rc<RefCell<SimNet>>,
    pub folder: &'a Path,
    pub hosts: &'a str,
    /// The council, if they do not vote.
    pub etcd: Option<&'a SimEtcd>,
    /// How often nodes were started before.
    pub starts: u64,
}

pub fn node_folder(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("node-{node}"))
}

impl Surroundings<'_> {
    fn driver(&self, id: usize, conns_max: usize) -> SimDriver {
        let (clock, _) = self.plan.clocks[node_of(id)];
        SimDriver::new(self.net.clone(), id, conns_max).with_clock(clock)
    }

    fn told(&self, number: usize) -> ClusterTold {
        let plan = self.plan;
        let mut rng = Rng::new(plan.web.seed ^ (self.starts << 20));
        // Some know all, some know one.
        let knows = if plan.web.seed.is_multiple_of(2) { plan.nodes } else { 1 };
        ClusterTold {
            cluster: [7; 16],
            partition_seed: plan.web.seed,
            identity: None,
            listen: address_of(number).parse().expect("an address"),
            address: address_of(number),
            join: if number == 0 { Vec::new() } else { (0..knows).map(address_of).collect() },
            weight: 100,
            spread: Some(plan.spread),
            takeover_us: plan.takeover_us,
            request_us: 1_000 * plan.web.config.spider.timeout_req.0,
            copies: plan.copies,
            reserve_bytes: 0,
            council: self.etcd.map(|etcd| etcd.port(plan.clocks[number].0)),
            boot: Boot::Simulated,
            rules: 1,
            random: rng.next_u64(),
        }
    }

    /// Starts a node at a time by its own clock.
    pub fn node(&self, number: usize, now: Now) -> ClusterNode {
        let plan = self.plan;
        let (_, wall) = plan.clocks[number];
        let mut config = plan.web.config.clone();
        config.cores = (0..plan.shards).collect();
        config.store.data = node_folder(self.folder, number);
        if plan.wrong == Some(Wrong::Pace) && number == 1 {
            let url_server = &mut config.url_server;
            url_server.req_host_per_sec = Rate(10.0 * url_server.req_host_per_sec.0);
            url_server.req_ip_per_sec = url_server.req_ip_per_sec.map(|rate| Rate(10.0 * rate.0));
        }
        let setup = NodeSetup::new(config);
        let (config, folder) = (&setup.config, setup.config.store.data.clone());
        let directory = DataDir::open(&folder).expect("the directory is free");
        let peers = PeersSetup::open(self.told(number), &folder).unwrap_or_else(|error| panic!("{error}"));
        let now_s = u32::try_from(wall.unix_ms(now) / 1_000).expect("a time of this century");
        let index = OpenIndex::open_at(config, &directory, Some(peers.share()), now_s, |_| {});
        let index = index.unwrap_or_else(|error| panic!("the index of node {number}: {error}"));
        let store = CrawlStore::Directory(directory);
        let task = CrawlTask { seeds: Vec::new(), feeds: Vec::new(), store, index };
        let names = |_, _| Ok(Names::table(HostsFile::parse(self.hosts)));
        let core = assemble(&setup, task, names, wall);
        let mut core = core.unwrap_or_else(|error| panic!("node {number} does not start: {error}"));
        let first = links_of(number);
        let seed = plan.web.seed.wrapping_mul(1_000).wrapping_add(self.starts);
        let links = |config, owner, health: &Health| {
            let driver = self.driver(first, LINKS_MAX.max(4 * plan.nodes));
            let made = Links::new(driver, config, (silent(), owner), health.notices().clone(), seed);
            let (links, port, _) = made.expect("the address is free");
            Ok((port, links))
        };
        let joined = core.join_peers(peers, wall, links);
        let (peers, links, report) = joined.unwrap_or_else(|error| panic!("node {number}: {error}"));
        let conns_max = plan.web.conns_max;
        let make = |(n, seat): (usize, &crate::engine::CrawlSeat)| {
            seat.maker.make(self.driver(first + 1 + n, conns_max), 0)
        };
        let shards = core.shards.iter().enumerate().map(make).collect();
        ClusterNode { core, report, shards, peers, links, driver: first }
    }
}
