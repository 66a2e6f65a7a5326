use super::plan::{Line, MASTERS_MAX, MasterPlan};
use super::process::node_of;
use crate::base::{Now, SortedMap, SortedSet};
use crate::sim::web::Witness;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the nodes to the promises of their masters:
///
/// - A host has requests from one node only. Where somebody ordered that it be moved it may have them from another
///   afterwards, once for each order, and never while a request of the one before is open.
/// - A URL is asked for once, and once more whenever its tag changes, as one of the masters gets the files. What was asked for
///   by a node that was killed, and was not on its disk, is asked for again. So is, after `resend_after`, what a master
///   sends again with the last tag that it knows of: the other one may know of a later. And so is what was sent shortly
///   before its host was moved, as the new node does not know what the one before has fetched.
pub struct MasterJudge {
    resend_after_us: u64,
    driver: usize,
    /// The node that each host was asked by last.
    owners: SortedMap<u32, usize>,
    /// Orders to move a host, less those that it was moved by.
    orders: SortedMap<u32, u64>,
    moved: SortedSet<u32>,
    urls: BTreeMap<(u32, String), Url>,
    /// Requests that connections have, or had last.
    open: SortedMap<u64, OpenRequest>,
    pub requests: u64,
}

struct OpenRequest {
    node: usize,
    url: (u32, String),
    /// When the answer is out.
    over_at: Now,
}

/// What is known of a URL.
#[derive(Default)]
struct Url {
    /// The last tag that each master was given, and how often it was another than the one before.
    tags: [(u32, u64); MASTERS_MAX],
    /// All that any of them was given.
    all_tags: SortedSet<u32>,
    /// When it was first given.
    given_at: Option<Now>,
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
    pub fn new(plan: &MasterPlan) -> MasterJudge {
        MasterJudge {
            resend_after_us: plan.web.config.master.resend_after.us(),
            driver: 0,
            owners: SortedMap::new(),
            orders: SortedMap::new(),
            moved: SortedSet::new(),
            urls: BTreeMap::new(),
            open: SortedMap::new(),
            requests: 0,
        }
    }

    /// A master is given a file. Of the lines of a URL the last counts.
    pub fn given(&mut self, plan: &MasterPlan, master: usize, letter: usize, now: Now) {
        let mut lines: Vec<&Line> = plan.letters[letter].lines.iter().collect();
        lines.sort_by_key(|line| line.at_s);
        let mut tags: SortedMap<(u32, &str), u32> = SortedMap::new();
        for line in lines {
            let tag = tags.entry((line.host, &line.target)).or_default();
            *tag = if line.tag > 0 { line.tag } else { *tag };
        }
        for ((host, target), tag) in tags {
            let url = self.urls.entry((host, target.to_string())).or_default();
            url.given_at.get_or_insert(now);
            let (last, changes) = &mut url.tags[master];
            *changes += u64::from(tag > 0 && *last > 0 && tag != *last);
            if tag > 0 {
                *last = tag;
                url.all_tags.insert(tag);
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
        self.open.retain(|_, open| open.node != node);
    }

    /// Somebody orders that a host be moved.
    pub fn may_move(&mut self, host: u32) {
        *self.orders.entry(host).or_default() += 1;
        self.moved.insert(host);
    }

    pub fn has_moved(&self, host: u32) -> bool {
        self.moved.contains(&host)
    }

    /// A node asks a host for the first time after another.
    fn moves(&mut self, host: u32, node: usize, target: &str, now: Now) {
        let Some(owner) = self.owners.insert(host, node).filter(|owner| *owner != node) else { return };
        let orders = self.orders.entry(host).or_default();
        assert!(
            *orders > 0,
            "host {host} was asked for {target} by node {node} at {now:?}: it is with node {owner}"
        );
        *orders -= 1;
        self.urls
            .range_mut((host, String::new())..(host + 1, String::new()))
            .for_each(|(_, url)| url.excused += 1);
        let is_open = |open: &&OpenRequest| open.node == owner && open.url.0 == host && open.over_at > now;
        if let Some(open) = self.open.values().find(is_open) {
            panic!(
                "host {host} was asked for {target} by node {node} at {now:?}, while node {owner} asks for {}",
                open.url.1
            );
        }
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
        self.open.remove(&conn);
        self.moves(host, node, target, now);
        let key = (host, target.to_string());
        self.open.insert(conn, OpenRequest { node, url: key.clone(), over_at: Now::NEVER });
        if target == "/robots.txt" {
            return;
        }
        let Some(url) = self.urls.get_mut(&key) else {
            panic!("host {host} was asked for {target}, which no master was given");
        };
        // Each tag is news once; one that comes back behind another is so again.
        let of_one = url.tags.iter().map(|(_, changes)| *changes);
        let changes = of_one.chain([url.all_tags.len().saturating_sub(1) as u64]).max().unwrap_or(0);
        let again = now.since_us(url.given_at.unwrap_or(now)) / self.resend_after_us;
        assert!(
            url.asked < 1 + changes + again + url.excused,
            "host {host} was asked for {target} at {now:?} once more, the last time at {:?}: {} times before, with {changes} changes of its tag and {} excuses",
            url.asked_at,
            url.asked,
            url.excused
        );
        (url.asked, url.asked_at, url.over_at) = (url.asked + 1, now, Now::NEVER);
    }

    fn answers(&mut self, conn: u64, at: Now, _: u64) {
        let Some(open) = self.open.get_mut(&conn) else { return };
        open.over_at = at;
        if let Some(url) = self.urls.get_mut(&open.url) {
            url.over_at = at;
        }
    }

    fn landed(&mut self, conn: u64) {
        self.open.remove(&conn);
    }
}
