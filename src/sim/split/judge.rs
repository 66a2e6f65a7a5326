use super::plan::SplitPlan;
use super::process::spider_of;
use crate::base::{Key, Now, SortedMap, SortedSet};
use crate::farm::host_name;
use crate::proto::job::TransId;
use crate::sim::web::{PORT, Witness, robots_of};
use std::collections::HashMap;
use std::net::IpAddr;

/// Holds all processes together to the promises of the crate.
///
/// What is promised of a request depends on whose it is:
///
/// - A request is **in charge** while the URL server that lives has its page open with the spider that asks. All of these,
///   with the URL server's own for robots.txt, keep the rate of host and address and never are two at one host.
/// - A request is **left behind** once the URL server gave its page up: the link to the spider was lost, the spider was
///   silent for `timeout_spider_status`, or the URL server died. The spider is not told. It ends what it has, stores it and
///   answers nobody, so the URL server can neither wait for it nor count it: what goes out after that is exempt from rate
///   and concurrency, and nothing else is. It, too, was ordered from that very spider process, comes after the host's
///   robots.txt and keeps to it. What went out before still counts: the next request of the URL server is a pause away
///   from it.
///
/// Of a transaction: what leaves the window of the URL server was answered by the spider that had it, or goes back to its
/// queue; at the end every URL has its answer, once.
///
/// Of a record: when a spider answers an order, its record is with the store server for good, whatever dies afterwards.
///
/// Of the journal: what it has of a host is in force with the next URL server. Rules that are known are not asked for again,
/// and a host that asked for a pause has it.
pub struct SplitJudge {
    gap_us: u64,
    /// From the Crawl-delay of every robots.txt.
    host_gap_us: u64,
    /// DONE tells what the server asked for.
    reports: bool,
    driver: usize,
    /// Pages that the URL server has open, by spider and URL.
    orders: SortedMap<(usize, String), TransId>,
    /// Pages that it gave up, and that the spider may still ask for.
    left: HashMap<(usize, String), u32>,
    /// What spiders have answered: told the URL server, if the link stands.
    answered: SortedSet<(usize, TransId)>,
    /// Orders of every spider, as its dispatcher has them.
    held: HashMap<(usize, u64), (String, Option<TransId>)>,
    /// Requests that keep the rate, as long as they matter.
    recent: Vec<Asked>,
    /// By connection, the newest last.
    open: SortedMap<u64, OpenRequest>,
    /// Hosts whose robots.txt was asked for.
    robots: SortedSet<u32>,
    /// Origins of hosts whose rules the URL server knows, or has written down, and since when.
    known: SortedMap<String, Now>,
    /// Hosts that asked for a pause, and when the URL server was told so: until when it holds.
    pauses: HashMap<u32, (Now, Now)>,
    /// URLs whose records must be there at the end.
    pub promised: SortedSet<String>,
    pub requests: u64,
    pub left_behind: u64,
}

struct Asked {
    at: Now,
    host: u32,
    ip: IpAddr,
    order: Option<(usize, String)>,
}

struct OpenRequest {
    host: u32,
    order: Option<(usize, String)>,
    in_charge: bool,
    /// When the answer is out.
    over_at: Now,
    retry_after_s: u64,
}

/// What is written down of a host takes at most this long to be on disk.
const JOURNAL_US: u64 = 500_000;
/// Rules are asked for again after a day.
const RULES_US: u64 = 86_400_000_000;

impl SplitJudge {
    pub fn new(plan: &SplitPlan) -> SplitJudge {
        let gap_us = (1_000_000.0 / plan.web.config.url_server.req_host_per_sec.0).ceil() as u64;
        let crawl_delay_us = (1_000_000.0 * plan.web.site.crawl_delay_s.unwrap_or(0.0)) as u64;
        SplitJudge {
            gap_us,
            host_gap_us: gap_us.max(crawl_delay_us),
            reports: plan.web.config.spider.report,
            driver: 0,
            orders: SortedMap::new(),
            left: HashMap::new(),
            answered: SortedSet::new(),
            held: HashMap::new(),
            recent: Vec::new(),
            open: SortedMap::new(),
            robots: SortedSet::new(),
            known: SortedMap::new(),
            pauses: HashMap::new(),
            promised: SortedSet::new(),
            requests: 0,
            left_behind: 0,
        }
    }

    /// The URL server has turned: these pages are open, each with a spider. `has_resent` says that it gave some up.
    pub fn url_server_has(
        &mut self,
        open: impl Iterator<Item = (usize, String, TransId)>,
        has_resent: bool,
        now: Now,
    ) {
        let open: SortedMap<(usize, String), TransId> =
            open.map(|(spider, url, trans)| ((spider, url), trans)).collect();
        let before = std::mem::take(&mut self.orders);
        for (order, trans) in before.into_iter().filter(|(order, trans)| open.get(order) != Some(trans)) {
            if !self.answered.contains(&(order.0, trans)) {
                assert!(
                    has_resent,
                    "{} left the window of spider {}, which has not answered",
                    order.1, order.0
                );
                self.give_up(order);
            } else if self.reports && !has_resent {
                // Of a page that was given up before, an older request may be on the list.
                // And a spider that hung up may have done so before the answer came.
                let is_its = |open: &&mut OpenRequest| {
                    let has_come = open.over_at != Now::ZERO && open.over_at <= now;
                    open.in_charge && has_come && open.order.as_ref() == Some(&order)
                };
                let Some(told) = self.open.values_mut().rev().find(is_its) else { continue };
                let seconds = std::mem::take(&mut told.retry_after_s);
                if seconds > 0 {
                    self.pauses.insert(told.host, (now, now.plus_ms(1_000 * seconds)));
                }
            }
        }
        for (_, url) in open.keys() {
            // The first two slashes are of the scheme.
            let end = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
            if !self.known.contains_key(&url[..end]) {
                self.known.insert(url[..end].to_string(), now);
            }
        }
        self.orders = open;
    }

    fn give_up(&mut self, order: (usize, String)) {
        for request in self.open.values_mut().filter(|open| open.order.as_ref() == Some(&order)) {
            request.in_charge = false;
        }
        *self.left.entry(order).or_default() += 1;
    }

    /// The URL server died: the next one knows nothing of what spiders have.
    pub fn url_server_died(&mut self, now: Now) {
        for (order, _) in std::mem::take(&mut self.orders) {
            self.give_up(order);
        }
        self.answered.clear();
        self.known.retain(|_, since| now.since_us(*since) > JOURNAL_US);
        self.pauses.retain(|_, (told, _)| now.since_us(*told) > JOURNAL_US);
    }

    /// A dispatcher has turned: these orders are not answered. Those that were and are not here, are.
    pub fn spider_has<'a>(
        &mut self,
        spider: usize,
        open: impl Iterator<Item = (Key, &'a str, Option<TransId>)>,
    ) {
        let open: HashMap<(usize, u64), (String, Option<TransId>)> =
            open.map(|(key, url, trans)| ((spider, key.pack(0)), (url.to_string(), trans))).collect();
        let over: Vec<(usize, u64)> =
            self.held.keys().filter(|key| key.0 == spider && !open.contains_key(key)).copied().collect();
        for key in over {
            let Some((url, trans)) = self.held.remove(&key) else { continue };
            self.promised.insert(url.clone());
            let order = (spider, url);
            match trans.filter(|trans| self.orders.get(&order) == Some(trans)) {
                Some(trans) => drop(self.answered.insert((spider, trans))),
                None => {
                    if let Some(left) = self.left.get_mut(&order) {
                        *left = left.saturating_sub(1);
                    }
                }
            }
        }
        self.held.extend(open);
    }

    pub fn spider_died(&mut self, spider: usize) {
        self.held.retain(|key, _| key.0 != spider);
        self.left.retain(|order, _| order.0 != spider);
    }
}

impl Witness for SplitJudge {
    fn driver(&mut self, driver: usize) {
        self.driver = driver;
    }

    fn asked(&mut self, conn: u64, host: u32, ip: IpAddr, target: &str, now: Now) {
        self.requests += 1;
        self.open.remove(&conn);
        let spider = spider_of(self.driver);
        let is_robots = target == "/robots.txt" || robots_of(target).is_some();
        assert_eq!(is_robots, spider.is_none(), "{target} of host {host}: asked for by the wrong process");
        assert!(
            !target.starts_with("/private/"),
            "host {host} was asked for {target} against its robots.txt"
        );
        if target == "/robots.txt" {
            self.robots.insert(host);
        }
        let rules_of = robots_of(target).unwrap_or(host);
        let known = self.known.get(&origin_of(rules_of)).filter(|since| now.since_us(**since) < RULES_US);
        if let Some(since) = known.filter(|_| is_robots) {
            panic!(
                "host {host} was asked for {target} at {now:?}, though the rules are known since {since:?}"
            );
        }
        assert!(self.robots.contains(&rules_of), "host {host} was asked for {target} before its robots.txt");
        let order = spider.map(|spider| (spider, origin_of(host) + target));
        let in_charge = order.as_ref().is_none_or(|order| self.is_in_charge(order));
        if in_charge {
            let asked = Asked { at: now, host, ip, order: order.clone() };
            self.keeps_its_distance(&asked, target);
            self.recent.push(asked);
        } else {
            let left = order.as_ref().and_then(|order| self.left.get(order)).copied().unwrap_or(0);
            assert!(left > 0, "{order:?} was not ordered");
            self.left_behind += 1;
        }
        self.open.insert(conn, OpenRequest { host, order, in_charge, over_at: Now::NEVER, retry_after_s: 0 });
    }

    fn answers(&mut self, conn: u64, at: Now, retry_after_s: u64) {
        if let Some(request) = self.open.get_mut(&conn) {
            (request.over_at, request.retry_after_s) = (at, retry_after_s);
        }
    }

    fn landed(&mut self, conn: u64) {
        if let Some(request) = self.open.get_mut(&conn) {
            request.over_at = Now::ZERO;
        }
    }
}

fn origin_of(host: u32) -> String {
    format!("http://{}:{PORT}", host_name(host))
}

impl SplitJudge {
    /// Whether a request that a spider makes is for the page that the URL server has open with it. A spider that holds an
    /// older order of the same page may ask for that one.
    fn is_in_charge(&self, order: &(usize, String)) -> bool {
        let Some(open) = self.orders.get(order) else { return false };
        let mut held =
            self.held.iter().filter(|((spider, _), (url, _))| (*spider, url) == (order.0, &order.1));
        held.all(|(_, (_, trans))| trans.as_ref() == Some(open))
    }

    fn keeps_its_distance(&mut self, next: &Asked, target: &str) {
        let Asked { at: now, host, ip, .. } = *next;
        self.recent.retain(|asked| now.since_us(asked.at) < self.host_gap_us);
        let knows_delay = self.known.contains_key(&origin_of(host));
        let too_soon = |asked: &&Asked| {
            // A spider that asks again for one order knows the rate, and not what the host says in its robots.txt.
            let is_again = asked.order.is_some() && asked.order == next.order;
            let is_delayed = asked.host == host && knows_delay && !is_again;
            let is_near = asked.host == host || asked.ip == ip;
            is_delayed || (is_near && now.since_us(asked.at) < self.gap_us)
        };
        if let Some(last) = self.recent.iter().find(too_soon) {
            let gap = now.since_us(last.at);
            panic!("host {host} at {ip} asked for {target} {gap} µs after host {}, at {now:?}", last.host);
        }
        let beside =
            self.open.values().find(|open| open.in_charge && open.host == host && open.over_at > now);
        if let Some(beside) = beside {
            panic!("host {host} asked for {target} at {now:?} while {:?} is open", beside.order);
        }
        if let Some((told, until)) = self.pauses.get(&host).filter(|(_, until)| now < *until) {
            panic!(
                "host {host} asked for {target} at {now:?}, though it was to be left alone from {told:?} to {until:?}"
            );
        }
    }
}
