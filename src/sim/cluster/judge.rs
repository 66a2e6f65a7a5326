use super::node::node_of;
use super::plan::ClusterPlan;
use super::wrong::Wrong;
use crate::base::{Now, SortedMap};
use crate::engine::ClusterReport;
use crate::farm::host_name;
use crate::proto::partition::Spread;
use crate::sim::web::{PORT, Witness};
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the nodes to what they promise together:
///
/// - Nobody asks a host that another node has by a later table.
/// - A host has requests from one node at a time, at the pace of one: when its partition has moved another one may ask it, once
///   nothing that the first one asked is open.
/// - An address that hosts of several nodes have is asked at the pace of one, and by one node at a time.
/// - A page is asked for once over all nodes. What a node that was killed had not on its disk is asked for again. So are the
///   pages of a node that was taken over, as far as the other one had no copy of what it knew.
#[derive(Default)]
pub struct ClusterJudge {
    driver: usize,
    /// The node that each host is asked by, and when it was last.
    owners: SortedMap<u32, (usize, Now)>,
    /// The pause between two requests to a host.
    host_pause_us: u64,
    /// What each node goes by, while it runs.
    reports: SortedMap<usize, ClusterReport>,
    /// Nodes that were ever taken over, and what the other one knew of them the last time.
    lost: SortedMap<usize, Loss>,
    pub taken: u64,
    pages: SortedMap<(u32, String), Page>,
    /// Requests that connections have, or had last.
    open: SortedMap<u64, OpenRequest>,
    /// The last request that each address had, and the node that it was of.
    addresses: SortedMap<IpAddr, (Now, usize)>,
    /// The pause between two requests to an address.
    pause_us: u64,
    /// How many requests may be open at a host and at an address, where several nodes have a part of it.
    parts: Option<(usize, usize)>,
    /// One host has URLs at many nodes.
    is_spread: bool,
    pub handed_on: u64,
    /// Hosts that another node asked than before, without a takeover.
    pub moved: u64,
    /// Pages that whoever took over had to know.
    pub known: u64,
    pub requests: u64,
}

struct OpenRequest {
    node: usize,
    ip: IpAddr,
    page: (u32, String),
    /// When the answer is out.
    over_at: Now,
}

#[derive(Debug, Default)]
struct Page {
    asked: u64,
    /// How often it may be asked for once more, because of kills.
    excused: u64,
    over_at: Now,
    /// When its host was given to who has it now, and to who had it before: no copy of theirs had the page earlier, unless
    /// they had fetched it themselves.
    moved_at: Now,
    moved_before: Now,
    /// The node that asked for it last.
    by: usize,
    /// Nobody may know any more that there is such a page.
    forgotten: bool,
}

/// A node that is lost: when that was seen, and up to when whoever takes it over knows what it knew.
#[derive(Clone, Copy)]
pub struct Loss {
    pub at: Now,
    pub known: Option<Now>,
}

/// A clock shows a second a hundredth too early, at the most.
const CLOCKS: f64 = 1.010_1;

/// What was fetched takes at most this long to be on disk, and known to be.
pub const DURABLE_US: u64 = 3_000_000;

impl ClusterJudge {
    pub fn new(plan: &ClusterPlan) -> ClusterJudge {
        let rate = plan.web.config.url_server.req_ip_per_sec.map_or(0.0, |rate| rate.0);
        let host_rate = plan.web.config.url_server.req_host_per_sec.0;
        // The pace is by clocks: where those are wrong on purpose, only whose a host is counts.
        let is_paced = plan.wrong != Some(Wrong::Clocks);
        let (rate, host_rate) = if is_paced { (rate, host_rate) } else { (0.0, 0.0) };
        // By a clock that is fast by a hundredth.
        let pause_us = if rate > 0.0 { (1e6 / rate / CLOCKS) as u64 } else { 0 };
        let host_pause_us = if host_rate > 0.0 { (1e6 / host_rate / CLOCKS) as u64 } else { 0 };
        let is_spread = plan.spread == Spread::Url;
        let url_server = &plan.web.config.url_server;
        let of_address = url_server.req_ip_concurrent.unwrap_or(url_server.req_host_concurrent);
        let most = (usize::from(url_server.req_host_concurrent), usize::from(of_address));
        let parts = (is_spread && is_paced && pause_us == 0).then_some(most);
        ClusterJudge { pause_us, host_pause_us, parts, is_spread, ..ClusterJudge::default() }
    }

    /// A node runs, and tells what it goes by.
    pub fn node_begins(&mut self, node: usize, report: ClusterReport) {
        self.reports.insert(node, report);
    }

    /// Nobody asks a host that another node has by a later table: whoever had it stops before that.
    fn judge_right(&self, host: u32, target: &str, node: usize, now: Now) {
        // Robots rules of a host that is spread are asked for by all.
        if self.is_spread && target == "/robots.txt" {
            return;
        }
        let url = format!("http://{}:{PORT}{target}", host_name(host));
        let owner = |of: &ClusterReport| of.owner(&url);
        let Some(own) = self.reports.get(&node).and_then(owner) else { return };
        let others = self.reports.iter().filter(|(other, _)| **other != node);
        for found in others.filter_map(|(_, report)| owner(report)) {
            assert!(
                !found.here || found.epoch <= own.epoch,
                "host {host} was asked by node {node} at {now:?} by the table of epoch {}, and is node {}'s by that of {}",
                own.epoch,
                found.node,
                found.epoch,
            );
        }
    }

    /// A node asks an address.
    fn address_asked(&mut self, ip: IpAddr, node: usize, target: &str, now: Now) {
        let Some((before, by)) = self.addresses.insert(ip, (now, node)) else { return };
        let gap_us = now.since_us(before);
        assert!(
            gap_us >= self.pause_us,
            "{ip} was asked for {target} by node {node} at {now:?}, {gap_us} us after node {by}"
        );
        if by == node {
            return;
        }
        self.handed_on += 1;
        if self.parts.is_some() {
            return;
        }
        let is_open = |open: &&OpenRequest| open.node == by && open.ip == ip && open.over_at > now;
        if let Some(open) = self.open.values().find(is_open) {
            panic!(
                "{ip} was asked for {target} by node {node} at {now:?}, while node {by} asks for {:?}",
                open.page
            );
        }
    }

    /// Where several nodes ask at once, no more is open than one might have.
    fn judge_parts(&self, host: u32, ip: IpAddr, now: Now) {
        let Some((of_host, of_address)) = self.parts else { return };
        let open = || self.open.values().filter(|open| open.over_at > now);
        let at_host = open().filter(|open| open.page.0 == host).count();
        let at_address = open().filter(|open| open.ip == ip).count();
        assert!(at_host <= of_host, "{at_host} requests are open at host {host} at {now:?}");
        assert!(at_address <= of_address, "{at_address} requests are open at {ip} at {now:?}");
    }

    /// A host is asked by another node than before.
    fn host_passed(&mut self, host: u32, (owner, before): (usize, Now), node: usize, now: Now) {
        let gap_us = now.since_us(before);
        assert!(
            gap_us >= self.host_pause_us,
            "host {host} was asked by node {node} at {now:?}, {gap_us} us after node {owner}"
        );
        let is_open = |open: &&OpenRequest| open.node == owner && open.page.0 == host && open.over_at > now;
        if self.parts.is_none()
            && let Some(open) = self.open.values().find(is_open)
        {
            panic!(
                "host {host} was asked by node {node} at {now:?}, while node {owner} asks for {:?}",
                open.page
            );
        }
        let Some(loss) = self.lost.get(&owner).copied() else {
            self.moved += 1;
            return;
        };
        self.taken += 1;
        self.host_lost(host, loss);
    }

    /// Whoever has a host now knows what was fetched of it up to a time, or nothing.
    pub fn host_lost(&mut self, host: u32, loss: Loss) {
        for (_, page) in self.pages.iter_mut().filter(|((of, _), _)| *of == host) {
            // The host was given away by the loss itself: what counts is when whoever is lost had got it.
            let moves = [page.moved_at, page.moved_before];
            let Some(moved_at) = moves.into_iter().find(|moved_at| *moved_at < loss.at) else { continue };
            let (over_at, had_at) = (page.over_at, page.over_at.max(moved_at));
            let is_known = |known: Now| over_at < Now::NEVER && had_at.plus_us(DURABLE_US) <= known;
            if loss.known.is_some_and(is_known) {
                self.known += 1;
                page.forgotten = false;
            } else {
                page.excused = page.excused.max(page.asked);
            }
        }
    }

    /// A host is another node's by a new table, which has learned by then what is known of it.
    pub fn host_moved(&mut self, host: u32, now: Now) {
        for (_, page) in self.pages.iter_mut().filter(|((of, _), _)| *of == host) {
            (page.moved_before, page.moved_at) = (page.moved_at, now);
        }
    }

    /// A node is taken over: who does so knows what it knew at a time, or nothing.
    pub fn node_lost(&mut self, node: usize, loss: Loss) {
        self.lost.insert(node, loss);
    }

    /// A node was killed: what it had not on disk it may ask for again.
    pub fn node_died(&mut self, node: usize, now: Now) {
        self.reports.remove(&node);
        self.node_stalled(node, now);
        self.open.retain(|_, open| open.node != node);
    }

    /// A node stands still: its requests may be over when it goes on, and whoever has their hosts by then asks again.
    pub fn node_stalled(&mut self, node: usize, now: Now) {
        for page in self.pages.values_mut().filter(|page| page.by == node) {
            let is_open = page.over_at == Now::NEVER || now.since_us(page.over_at) < DURABLE_US;
            page.excused += u64::from(page.asked > page.excused && is_open);
        }
    }

    /// The disk of a node is lost, which had these hosts: nobody may know of their pages, until somebody takes over from a copy.
    pub fn disk_lost(&mut self, hosts: &[u32]) {
        for (_, page) in self.pages.iter_mut().filter(|((host, _), _)| hosts.contains(host)) {
            page.forgotten = true;
        }
    }

    /// When the last answer about a page was out.
    pub fn fetched_at(&self, url: &str) -> Now {
        let named = |host: u32, target: &str| url == format!("http://{}:{PORT}{target}", host_name(host));
        let found = self.pages.iter().find(|((host, target), _)| named(*host, target));
        found.map_or(Now::ZERO, |(_, page)| page.over_at)
    }

    /// The pages that were asked for and are known, each with its host.
    pub fn pages(&self) -> impl Iterator<Item = (u32, &str)> {
        let known = self.pages.iter().filter(|(_, page)| !page.forgotten);
        known.map(|((host, target), _)| (*host, &**target))
    }
}

impl Witness for ClusterJudge {
    fn driver(&mut self, driver: usize) {
        self.driver = driver;
    }

    fn asked(&mut self, conn: u64, host: u32, ip: IpAddr, target: &str, now: Now) {
        self.requests += 1;
        let node = node_of(self.driver);
        self.judge_right(host, target, node, now);
        let (owner, before) = self.owners.insert(host, (node, now)).unwrap_or((node, Now::ZERO));
        if owner != node {
            self.host_passed(host, (owner, before), node, now);
        }
        self.open.remove(&conn);
        self.address_asked(ip, node, target, now);
        let page = (host, target.to_string());
        self.open.insert(conn, OpenRequest { node, ip, page, over_at: Now::NEVER });
        self.judge_parts(host, ip, now);
        if target == "/robots.txt" {
            return;
        }
        let page = self.pages.entry((host, target.to_string())).or_default();
        assert!(
            page.asked <= page.excused,
            "host {host} was asked for {target} at {now:?} by node {node} once more, with {} excuses: {page:?}",
            page.excused
        );
        (page.asked, page.over_at, page.forgotten, page.by) = (page.asked + 1, Now::NEVER, false, node);
    }

    fn answers(&mut self, conn: u64, at: Now, _: u64) {
        let Some(open) = self.open.get_mut(&conn) else { return };
        open.over_at = at;
        if let Some(page) = self.pages.get_mut(&open.page) {
            page.over_at = at;
        }
    }

    fn landed(&mut self, conn: u64) {
        self.open.remove(&conn);
    }
}
