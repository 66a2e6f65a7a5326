use super::wrong::{Wanted, Wrong};
use crate::base::{Now, Rng, Wall};
use crate::config::{Bytes, Millis, Rate};
use crate::driver::SimClock;
use crate::proto::partition::Spread;
use crate::proto::sitemap::Sitemaps;
use crate::sim::misfortunes::Misfortunes;
use crate::sim::plan::{Faults, Plan};
use std::ops::RangeInclusive;

/// What one seed stands for: a web, the nodes, what is typed at them, and their misfortunes.
pub struct ClusterPlan {
    /// The web, and the settings of every node.
    pub web: Plan,
    pub nodes: usize,
    /// Of each node.
    pub shards: usize,
    pub spread: Spread,
    /// A node that is silent for so long is taken over; `None` for never.
    pub takeover_us: Option<u64>,
    /// Whether each has a copy of what another knows.
    pub copies: bool,
    /// The etcd that is their council; `None` if they vote.
    pub etcd: Option<EtcdPlan>,
    /// From then on one of them loses its disk, and comes back as another node.
    pub lose_at: Option<Now>,
    /// Cuts, stalls and deaths last so long at most.
    pub trouble_ms: u64,
    /// When each node is started for the first time.
    pub starts: Vec<Now>,
    /// What is typed: when, at which node, and the host whose first page it is.
    pub typed: Vec<(Now, usize, u32)>,
    pub faults: Misfortunes<Misfortune>,
    /// Of each node: how its clock runs, and what its calendar says when it begins.
    pub clocks: Vec<(SimClock, Wall)>,
    /// From then on one of them is to hand over everything and to go.
    pub drain_at: Option<Now>,
    /// What is wrong on purpose.
    pub wrong: Option<Wrong>,
}

/// What befalls an etcd.
#[derive(Clone)]
pub struct EtcdPlan {
    pub outages: Vec<Outage>,
    /// Of a thousand requests so many are lost, so many more have their answers lost, and as many land late.
    pub lost: u64,
    /// A way takes at most this.
    pub slow_us: u64,
    /// From then on nothing befalls it.
    pub until: Now,
    /// A swap that finds something else than it expects is said to be done.
    pub lies: bool,
}

#[derive(Clone)]
pub struct Outage {
    pub from: Now,
    pub until: Now,
    /// Requests have no answer; otherwise they are refused.
    pub hangs: bool,
}

impl EtcdPlan {
    fn draw(rng: &mut Rng, until: Now) -> EtcdPlan {
        let outage = |rng: &mut Rng| {
            let from = Now::ZERO.plus_ms(rng.below(until.us() / 1_000));
            Outage { from, until: from.plus_ms(1 + rng.below(60_000)).min(until), hangs: rng.chance(500) }
        };
        let outages = (0..rng.below(4)).map(|_| outage(rng)).collect();
        let lost = if rng.chance(300) { 0 } else { rng.below(60) };
        EtcdPlan { outages, lost, slow_us: 1_000 + rng.below(400_000), until, lies: false }
    }
}

/// Something that befalls nodes.
#[derive(Clone, Copy)]
pub enum Misfortune {
    Cut,
    Delay,
    Reset,
    Kill,
    /// The process stands still, and does not know it.
    Stall,
}

pub const NODES_MAX: usize = 7;
/// Of nodes that do nothing.
pub const IDLE_NODES_MAX: usize = 250;

const KINDS: [Misfortune; 5] =
    [Misfortune::Cut, Misfortune::Delay, Misfortune::Reset, Misfortune::Kill, Misfortune::Stall];
/// URLs are typed for so long.
const TYPED_S: u64 = 40;

impl ClusterPlan {
    pub fn from_seed(seed: u64, nodes: RangeInclusive<usize>, wrong: Option<Wrong>) -> ClusterPlan {
        let mut web = Plan::from_seed(seed);
        let mut rng = Rng::new(seed ^ 0x00c1_0572);
        let site = &mut web.site;
        site.hosts = 2 + rng.below(20) as u32;
        site.pages = 1 + rng.below(8) as u32;
        site.page_bytes = 300 + rng.below(2_000) as u32;
        (site.errors, site.broken, site.crawl_delay_s) = (0.0, 0.0, None);
        site.redirects = if rng.chance(300) { 0.2 } else { 0.0 };
        // Hosts of several nodes may share an address.
        web.addresses = 1 + rng.below(u64::from(web.site.hosts)) as u32;
        (web.several, web.robots_elsewhere) = (0, 0);
        web.conns_max = 4 + rng.below(12) as usize;
        web.faults = Faults { slow: rng.below(60), ..Faults::default() };
        let config = &mut web.config;
        let url_server = &mut config.url_server;
        (url_server.queue_count, url_server.leftover_urls) = (web.site.hosts as usize, 60);
        url_server.req_ip_concurrent = Some(1 + rng.below(3) as u8);
        url_server.req_ip_per_sec = Some(Rate([1.0, 5.0, 50.0][rng.below(3) as usize]));
        if wrong == Some(Wrong::Tickets) {
            // Everybody wants the same address, for long.
            (web.addresses, url_server.req_ip_per_sec) = (1, Some(Rate(1.0)));
        }
        url_server.hosts_per_ip_max = web.site.hosts as usize;
        url_server.req_host_per_sec = Rate([1.0, 3.0, 50.0][rng.below(3) as usize]);
        // Each request has its answer.
        (config.spider.timeout_req, config.spider.timeout_read) = (Millis(90_000), Millis(60_000));
        config.spider.timeout_first_byte = Millis(60_000);
        config.spider.timeout_connect = Millis(20_000);
        config.store.segment_bytes = Bytes(256 << 10);
        config.store.commit_ms = Millis(5 + rng.below(200));
        config.doc_index.retries_max = 0;
        config.doc_index.sitemaps = Sitemaps::Off;
        config.crawl.wait = true;
        let (least, most) = ((*nodes.start()).max(2), (*nodes.end()).min(NODES_MAX));
        let nodes = least + rng.below((most.max(least) - least) as u64 + 1) as usize;
        // Some join when there are URLs already.
        let late_ms = if rng.chance(500) { 60_000 } else { 20_000 };
        let mut starts: Vec<Now> = (0..nodes).map(|_| Now::ZERO.plus_ms(rng.below(late_ms))).collect();
        // One makes the cluster; the others may look for it before it is there.
        starts[0] = Now::ZERO.plus_ms(rng.below(3_000));
        let hosts = u64::from(web.site.hosts);
        let mut typed: Vec<(Now, usize, u32)> = (0..1 + rng.below(6))
            .map(|_| {
                let at = Now::ZERO.plus_ms(500 + rng.below(1_000 * TYPED_S));
                (at, rng.below(nodes as u64) as usize, rng.below(hosts) as u32)
            })
            .collect();
        typed.sort_unstable_by(|one, other| other.cmp(one));
        let every_ms = if rng.chance(150) { 0 } else { 800 + rng.below(12_000) };
        let mut weights: [u64; 5] =
            std::array::from_fn(|_| if rng.chance(700) { 1 + rng.below(4) } else { 0 });
        weights[3] += u64::from(weights.iter().sum::<u64>() == 0);
        // Half of the clusters take over who is silent; requests are short enough to be over by then.
        let takes_over = rng.chance(500) | wrong.is_some_and(Wrong::takes_over);
        let takeover_us = takes_over.then(|| 1_000_000 * (45 + rng.below(40)));
        if takes_over {
            web.faults = Faults::default();
            let timeout = Millis(10_000);
            let spider = &mut web.config.spider;
            (spider.timeout_req, spider.timeout_read, spider.timeout_connect) = (timeout, timeout, timeout);
        }
        let copies = rng.chance(800);
        let loses_disk = takes_over && nodes > 2 && rng.chance(700);
        let lose_at = loses_disk.then(|| Now::ZERO.plus_ms(30_000 + rng.below(60_000)));
        let trouble_ms = if takes_over { 120_000 } else { 20_000 };
        let until = Now::from_us(1_000_000 * (TYPED_S + 10 + rng.below(30)));
        let drawn = Wanted { every_ms, trouble_ms, weights };
        let Wanted { every_ms, trouble_ms, weights } = wrong.and_then(Wrong::wants).unwrap_or(drawn);
        // There are voters late.
        let until = if wrong == Some(Wrong::Council) { until.plus_ms(60_000) } else { until };
        let clocks = clocks(nodes, wrong, &mut rng);
        let drain_at = (nodes > 2 && rng.chance(400)).then(|| Now::ZERO.plus_ms(20_000 + rng.below(60_000)));
        // Drawn beside the rest: a seed without an etcd is what it was.
        let mut beside = Rng::new(seed ^ 0x0e7c_d5ee);
        let has_etcd = takes_over && beside.chance(500) && wrong != Some(Wrong::Council);
        let lies = wrong == Some(Wrong::Etcd);
        let etcd = (has_etcd || lies).then(|| EtcdPlan { lies, ..EtcdPlan::draw(&mut beside, until) });
        // With an etcd one of two is taken over as well.
        let loses_one_of_two = has_etcd && nodes == 2 && beside.chance(700);
        let lose_at = lose_at.or(loses_one_of_two.then(|| Now::ZERO.plus_ms(30_000 + beside.below(60_000))));
        let (shards, by_domain) = (1 + rng.below(2) as usize, rng.chance(150));
        let mut spread = if by_domain { Spread::Domain } else { Spread::Host };
        // Some have every host at every node, with a pause or without.
        let mut of_many = Rng::new(seed ^ 0x5b7e_ad00);
        let mut drain_at = drain_at;
        if !takes_over && wrong.is_none() && of_many.chance(350) {
            (spread, drain_at) = (Spread::Url, None);
            web.site.hosts = 1 + of_many.below(u64::from(web.site.hosts.min(4))) as u32;
            web.addresses = web.addresses.min(web.site.hosts);
            web.site.pages = 8 + of_many.below(30) as u32;
            typed.iter_mut().for_each(|(_, _, host)| *host %= web.site.hosts);
            let url_server = &mut web.config.url_server;
            url_server.req_host_concurrent = 1 + of_many.below(8) as u8;
            if of_many.chance(500) {
                url_server.req_host_per_sec = Rate(0.0);
                url_server.req_ip_per_sec = Some(Rate(0.0));
                url_server.delay_factor.0 = 0.0;
            }
        }
        ClusterPlan {
            web,
            nodes,
            shards,
            spread,
            takeover_us,
            copies,
            etcd,
            lose_at,
            trouble_ms,
            starts,
            typed,
            faults: Misfortunes { every_ms, until, weights: KINDS.into_iter().zip(weights).collect() },
            clocks,
            drain_at,
            wrong,
        }
    }

    /// Nodes that are started within a moment and are left alone, with the settings that nodes have. One that comes later gets its
    /// share from all the others, each of which changes the table.
    pub fn idle(nodes: usize) -> ClusterPlan {
        let drawn = ClusterPlan::from_seed(0, 2..=2, None);
        let start = |number: usize| Now::ZERO.plus_ms(5 * number as u64);
        let until = start(nodes).plus_ms(10_000);
        ClusterPlan {
            nodes,
            shards: 1,
            spread: Spread::Domain,
            takeover_us: Some(300_000_000),
            copies: true,
            etcd: None,
            lose_at: None,
            starts: (0..nodes).map(start).collect(),
            typed: Vec::new(),
            faults: Misfortunes { every_ms: 0, until, weights: Vec::new() },
            clocks: vec![(SimClock::TRUE, Wall { unix_ms_at_zero: DAY_MS }); nodes],
            drain_at: None,
            ..drawn
        }
    }
}

/// The day on which all of it happens.
const DAY_MS: u64 = 1_800_000_000_000;
/// Rates of clocks are within this of the true one, in parts of a million.
const RATE_PPM: u64 = 10_000;
/// Calendars are within this of the true one.
const APART_MS: u64 = 2 * 3_600_000;

/// Every other cluster has clocks that agree.
fn clocks(nodes: usize, wrong: Option<Wrong>, rng: &mut Rng) -> Vec<(SimClock, Wall)> {
    let differ = rng.chance(500);
    let mut clock = |_| {
        let (rate, apart) = (rng.below(2 * RATE_PPM + 1), rng.below(2 * APART_MS));
        let rate_ppm = match wrong {
            Some(Wrong::Clocks) if rate.is_multiple_of(2) => 400_000,
            Some(Wrong::Clocks) => 1_600_000,
            _ if differ => 1_000_000 - RATE_PPM + rate,
            _ => 1_000_000,
        };
        let unix_ms_at_zero = if differ { DAY_MS - APART_MS + apart } else { DAY_MS };
        (SimClock::at_rate(rate_ppm), Wall { unix_ms_at_zero })
    };
    (0..nodes).map(&mut clock).collect()
}
