use super::plan::MasterPlan;
use super::process::node_of;
use crate::base::Now;
use crate::sim::web::Witness;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the nodes to the promises of their masters:
///
/// - A host has requests from one node only.
/// - A URL is asked for once, and once more for every tag that is news. What was asked for by a node that was killed, and
///   was not on its disk, is asked for again.
pub struct MasterJudge {
    driver: usize,
    /// The node that each host was asked by.
    owners: BTreeMap<u32, usize>,
    urls: BTreeMap<(u32, String), Url>,
    /// What a connection was last asked for.
    open: BTreeMap<u64, (usize, (u32, String))>,
    pub requests: u64,
}

/// What is known of a URL.
#[derive(Default)]
struct Url {
    /// Tags that masters were given.
    tags: BTreeSet<u32>,
    /// How often it was asked for, and how often it may be because of kills.
    asked: u64,
    excused: u64,
    /// When it was last asked for, and when the answer was out.
    asked_at: Now,
    over_at: Now,
}

/// What was fetched takes at most this long to be on disk, and known to be.
const DURABLE_US: u64 = 3_000_000;

impl MasterJudge {
    pub fn new() -> MasterJudge {
        MasterJudge {
            driver: 0,
            owners: BTreeMap::new(),
            urls: BTreeMap::new(),
            open: BTreeMap::new(),
            requests: 0,
        }
    }

    /// A master is given a file.
    pub fn given(&mut self, plan: &MasterPlan, letter: usize) {
        for line in &plan.letters[letter].lines {
            let url = self.urls.entry((line.host, line.target.clone())).or_default();
            if line.tag > 0 {
                url.tags.insert(line.tag);
            }
        }
    }

    /// A node was killed: what it had not on disk it may ask for again.
    pub fn node_died(&mut self, node: usize, now: Now) {
        let owners = &self.owners;
        for (_, url) in self.urls.iter_mut().filter(|((host, _), _)| owners.get(host) == Some(&node)) {
            let is_open = url.over_at == Now::NEVER || now.since_us(url.over_at) < DURABLE_US;
            url.excused += u64::from(url.asked > 0 && is_open);
        }
        self.open.retain(|_, (by, _)| *by != node);
    }

    /// The URLs that masters were given.
    pub fn urls(&self) -> impl Iterator<Item = (u32, &str)> {
        self.urls.keys().map(|(host, target)| (*host, &**target))
    }
}

impl Witness for MasterJudge {
    fn driver(&mut self, driver: usize) {
        self.driver = driver;
    }

    fn asked(&mut self, conn: u64, host: u32, _: IpAddr, target: &str, now: Now) {
        self.requests += 1;
        let node = node_of(self.driver).expect("masters ask no web server");
        let owner = *self.owners.entry(host).or_insert(node);
        assert_eq!(
            owner, node,
            "host {host} was asked for {target} by node {node} at {now:?}: it has two nodes"
        );
        self.open.remove(&conn);
        if target == "/robots.txt" {
            return;
        }
        let key = (host, target.to_string());
        let Some(url) = self.urls.get_mut(&key) else {
            panic!("host {host} was asked for {target}, which no master was given");
        };
        let news = url.tags.len().max(1) as u64;
        assert!(
            url.asked < news + url.excused,
            "host {host} was asked for {target} at {now:?} once more, the last time at {:?}: {} times with {} tags and {} excuses",
            url.asked_at,
            url.asked,
            url.tags.len(),
            url.excused
        );
        (url.asked, url.asked_at, url.over_at) = (url.asked + 1, now, Now::NEVER);
        self.open.insert(conn, (node, key));
    }

    fn answers(&mut self, conn: u64, at: Now, _: u64) {
        if let Some((_, key)) = self.open.get(&conn)
            && let Some(url) = self.urls.get_mut(key)
        {
            url.over_at = at;
        }
    }

    fn landed(&mut self, conn: u64) {
        self.open.remove(&conn);
    }
}
