use super::host::{Address, Host, Place, RobotsState, Work};
use super::leftover::Leftover;
use super::niceness::{Niceness, Report};
use crate::base::{Now, TimerWheel};
use crate::limits::ROBOTS_REDIRECTS_MAX;
use crate::proto::lines::{Job, TransId};
use crate::proto::robots::Robots;
use crate::proto::url::{CrawlUrl, Scheme};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

/// The settings this role needs, as built.
#[derive(Clone, Debug)]
pub struct UrlServerConfig {
    pub queue_count: usize,
    pub queue_len: usize,
    pub host: Niceness,
    pub ip: Niceness,
    /// After this long without a word on a transaction its URL is sent again.
    pub spider_silence_us: u64,
    /// Our name in robots.txt.
    pub product_token: String,
}

/// See the folder's docs.
pub struct UrlServer {
    config: UrlServerConfig,
    hosts: Vec<Host>,
    by_origin: RapidHashMap<Box<str>, u32>,
    /// Rows that came to rest, oldest first; some may be busy again.
    idle: VecDeque<u32>,
    resting: usize,
    slots_timer: bool,
    addresses: Vec<Address>,
    by_ip: RapidHashMap<IpAddr, u32>,
    addresses_free: Vec<u32>,
    leftover: Leftover,
    ready: VecDeque<u32>,
    /// URLs that robots rules forbid, to be reported by the next `acquire`.
    denied: VecDeque<Job>,
    wheel: TimerWheel<Timer>,
    sweep_at: Now,
    /// Nothing is asked before: what stood here before may have asked just now.
    quiet_until: Now,
    pages: usize,
    open: usize,
    stats: UrlServerStats,
}

#[derive(Clone, Copy)]
enum Timer {
    Host {
        slot: u32,
        generation: u32,
    },
    Address {
        slot: u32,
    },
    /// An idle row may have become free for another host.
    Slots,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlServerStats {
    /// URLs sent again because their spider fell silent.
    pub resent: u64,
    /// Words on transactions that are no longer open.
    pub late: u64,
    /// URLs that robots rules forbade.
    pub denied: u64,
    /// Rows that were given to another host.
    pub slots_reused: u64,
}

/// What `acquire` found.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired {
    /// To be fetched now.
    Fetch(Order),
    /// Not to be fetched: robots rules say no.
    Denied(Job),
    /// Nothing may be sent at this moment.
    Nothing,
}

/// A request that may go out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub trans: TransId,
    pub doc_id: u32,
    pub url: CrawlUrl,
    pub ip: IpAddr,
    pub kind: OrderKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    Page,
    Robots,
}

/// What came of a request for robots.txt.
#[derive(Debug)]
pub enum Robotstxt<'a> {
    /// A status and, for 2xx, the document; for 3xx the target in normal form, if there is one.
    Answer { status: u16, body: &'a [u8], target: Option<&'a CrawlUrl> },
    /// No usable answer.
    Failed,
}

/// Whether a URL is of the host that an origin names, at whatever port.
fn is_of_host(url: &CrawlUrl, origin: &str) -> bool {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    authority.strip_prefix(url.host()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Robots rules are asked for again after a day.
const ROBOTS_TTL_US: u64 = 86_400_000_000;
/// Larger rules are not kept for a host that has nothing to do; they are asked for again.
const ROBOTS_KEPT_BYTES: usize = 16 * 1024;
/// First pause after robots.txt could not be had; doubled up to a day.
const ROBOTS_RETRY_US: u64 = 60_000_000;

impl UrlServer {
    pub fn new(config: UrlServerConfig, now: Now) -> UrlServer {
        let sweep_at = now.plus_us(config.spider_silence_us / 4);
        UrlServer {
            config,
            hosts: Vec::new(),
            by_origin: RapidHashMap::default(),
            idle: VecDeque::new(),
            resting: 0,
            slots_timer: false,
            addresses: Vec::new(),
            by_ip: RapidHashMap::default(),
            addresses_free: Vec::new(),
            leftover: Leftover::default(),
            ready: VecDeque::new(),
            denied: VecDeque::new(),
            wheel: TimerWheel::new(now),
            sweep_at,
            quiet_until: Now::ZERO,
            pages: 0,
            open: 0,
            stats: UrlServerStats::default(),
        }
    }

    /// Takes over from a server that died and may have asked any host just now: each is left alone for a pause.
    #[must_use]
    pub fn after_a_death(mut self, now: Now) -> UrlServer {
        self.quiet_until = now.plus_us(self.config.host.gap_us.max(self.config.ip.gap_us));
        self
    }

    /// Takes a URL into the queue of its host, or among the leftovers.
    pub fn admit(&mut self, job: Job, now: Now) {
        self.pages += 1;
        let origin = job.candidate.url.origin();
        let slot = match self.by_origin.get(origin) {
            Some(&slot) => Some(slot),
            None => self.place_host(origin, job.ip, now),
        };
        match slot {
            Some(slot) if self.hosts[slot as usize].pages() < self.config.queue_len => {
                self.enqueue(slot, job);
                self.settle(slot, now);
            }
            Some(_) => self.leftover.push(job, false),
            None => self.leftover.push(job, true),
        }
    }

    /// The next thing to do. Call until it says `Nothing`, while there is room for fetches.
    pub fn acquire(&mut self, now: Now) -> Acquired {
        if let Some(job) = self.denied.pop_front() {
            self.pages -= 1;
            self.stats.denied += 1;
            return Acquired::Denied(job);
        }
        while let Some(slot) = self.ready.pop_front() {
            let host = &mut self.hosts[slot as usize];
            debug_assert_eq!(host.place, Place::Ready);
            host.place = Place::Rest;
            let ip = host.ip as usize;
            self.addresses[ip].claimed = false;
            // Time has passed since the host was found ready, so everything is looked at again.
            if !self.may_send(slot, now) {
                self.settle(slot, now);
                self.wake_address(ip as u32, now);
                continue;
            }
            let acquired = self.hand_out(slot, now);
            if let Acquired::Fetch(_) = acquired {
                self.open += 1;
                let address = &mut self.addresses[ip];
                address.open += 1;
                address.unsent += 1;
                address.pace.asked(&self.config.ip, now);
                self.hosts[slot as usize].pace.asked(&self.config.host, now);
            }
            self.settle(slot, now);
            self.wake_address(ip as u32, now);
            if let Acquired::Nothing = acquired {
                continue;
            }
            return acquired;
        }
        Acquired::Nothing
    }

    /// The request is on the wire: the pause until the next one starts here, not when it was acquired.
    pub fn sent(&mut self, trans: TransId, now: Now) {
        let Some(host) = self.hosts.get_mut(trans.host_slot() as usize) else {
            return;
        };
        let Some(active) = host.active_mut(trans) else {
            return;
        };
        active.asked_at = now;
        let first = !std::mem::replace(&mut active.sent, true);
        host.pace.asked(&self.config.host, now);
        let ip = host.ip;
        let address = &mut self.addresses[ip as usize];
        address.pace.asked(&self.config.ip, now);
        address.unsent -= u32::from(first);
        self.settle(trans.host_slot(), now);
        self.wake_address(ip, now);
    }

    /// The document that an open transaction is about; `None` for robots.txt and for what is not open.
    pub fn doc_id(&self, trans: TransId) -> Option<u32> {
        match &self.hosts.get(trans.host_slot() as usize)?.active_ref(trans)?.work {
            Work::Page(job) => Some(job.candidate.doc_id),
            Work::Free | Work::Robots { .. } => None,
        }
    }

    /// The spider is still at it.
    pub fn working(&mut self, trans: TransId, now: Now) {
        let host = self.hosts.get_mut(trans.host_slot() as usize);
        match host.and_then(|host| host.active_mut(trans)) {
            Some(active) => active.last_word = now,
            None => self.stats.late += 1,
        }
    }

    /// DONE for a page: frees its place in the window and hands the job back. `None` for a word that comes late.
    pub fn release(&mut self, trans: TransId, report: &Report, now: Now) -> Option<Job> {
        let Work::Page(job) = self.take_open(trans, report, now)? else {
            return None;
        };
        self.pages -= 1;
        self.refill(trans.host_slot(), now);
        self.freed(trans.host_slot(), now);
        Some(job)
    }

    /// The connection turned out to be dead before the request reached the server: the URL goes back to the
    /// front of its queue and waits for the host's next turn.
    pub fn put_back(&mut self, trans: TransId, report: &Report, now: Now) {
        let slot = trans.host_slot();
        let Some(work) = self.take_open(trans, report, now) else {
            return;
        };
        let host = &mut self.hosts[slot as usize];
        match work {
            Work::Page(job) => host.queue.push_front(job),
            Work::Robots { .. } => host.robots = RobotsState::Unknown,
            Work::Free => {}
        }
        self.freed(slot, now);
    }

    /// DONE for robots.txt: the host's pages may go out, are denied, or another hop is asked for.
    pub fn robots(&mut self, trans: TransId, answer: &Robotstxt<'_>, report: &Report, now: Now) {
        let slot = trans.host_slot();
        let Some(Work::Robots { hops }) = self.take_open(trans, report, now) else {
            return;
        };
        let host = &mut self.hosts[slot as usize];
        let retry_us = (ROBOTS_RETRY_US << host.robots_failures.min(11)).min(ROBOTS_TTL_US);
        let unreachable = RobotsState::Unreachable { until: now.plus_us(retry_us) };
        let known = |rules| RobotsState::Known { rules, until: now.plus_us(ROBOTS_TTL_US) };
        host.robots = match answer {
            Robotstxt::Answer { status: 200..=299, body, .. } => {
                let rules = Robots::parse(body, &self.config.product_token);
                host.pace.set_crawl_delay(rules.crawl_delay_ms());
                host.pace.stretch(&self.config.host);
                known(rules)
            }
            Robotstxt::Answer { status: 300..=399, target, .. } => match target {
                // A chain that is too long, or a redirect that says nowhere, is as good as no file.
                None => known(Robots::allow_all()),
                Some(_) if hops >= ROBOTS_REDIRECTS_MAX => known(Robots::allow_all()),
                // The same host, perhaps at another port: its address is known.
                Some(target) if is_of_host(target, &host.origin) && target.scheme() == Scheme::Http => {
                    RobotsState::Asked { next: Some(Box::new(((*target).clone(), hops + 1))) }
                }
                // Elsewhere: its rules would count for this host, so until they can be had nothing is asked.
                Some(_) => unreachable,
            },
            // 429 asks us to go away, which is not the same as having no rules.
            Robotstxt::Answer { status: 400..=499, .. } if report.status != 429 => known(Robots::allow_all()),
            Robotstxt::Answer { .. } | Robotstxt::Failed => unreachable,
        };
        if let RobotsState::Unreachable { .. } = host.robots {
            host.robots_failures = host.robots_failures.saturating_add(1);
            self.denied.extend(host.queue.drain(..));
            while let Some(job) = self.leftover.pop_of(&self.hosts[slot as usize].origin) {
                self.denied.push_back(job);
            }
        }
        self.freed(slot, now);
    }

    /// Moves hosts whose pause is over, and looks for spiders that fell silent.
    pub fn tick(&mut self, now: Now) {
        let mut due = Vec::new();
        self.wheel.advance(now, |timer| due.push(timer));
        for timer in due {
            match timer {
                Timer::Host { slot, generation } => {
                    let host = &mut self.hosts[slot as usize];
                    if host.generation == generation && host.place == Place::Timer {
                        host.place = Place::Rest;
                        self.settle(slot, now);
                    }
                }
                Timer::Address { slot } => {
                    self.addresses[slot as usize].timer = false;
                    self.wake_address(slot, now);
                    self.free_address(slot, now);
                }
                Timer::Slots => {
                    self.slots_timer = false;
                    self.place_waiting_hosts(now);
                }
            }
        }
        if now >= self.sweep_at {
            self.sweep(now);
            self.sweep_at = now.plus_us(self.config.spider_silence_us / 4);
        }
    }

    /// When `tick` or `acquire` will next have something to do.
    pub fn next_due(&self) -> Option<Now> {
        if !self.ready.is_empty() || !self.denied.is_empty() {
            return Some(Now::ZERO);
        }
        let sweep = (self.open > 0).then_some(self.sweep_at);
        [self.wheel.next_due(), sweep].into_iter().flatten().min()
    }

    /// URLs here, whether waiting, left over or open.
    pub fn len(&self) -> usize {
        self.pages
    }

    pub fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Transactions that are with a spider.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Hosts that have a slot and something to do.
    pub fn hosts_busy(&self) -> usize {
        self.hosts.len() - self.resting
    }

    pub fn leftover_len(&self) -> usize {
        self.leftover.len()
    }

    pub fn stats(&self) -> UrlServerStats {
        self.stats
    }

    /// Gives every URL back, open ones too. The server is empty afterwards.
    pub fn drain(&mut self) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.denied.drain(..).chain(self.leftover.drain()).collect();
        for host in &mut self.hosts {
            jobs.extend(host.queue.drain(..));
            for active in &mut host.active {
                if let Work::Page(job) = std::mem::replace(&mut active.work, Work::Free) {
                    jobs.push(job);
                }
            }
        }
        self.pages = 0;
        self.open = 0;
        jobs
    }

    /// What must hold between any two calls; run under `debug_assert!` by the tests and the simulation.
    pub fn invariants(&self) -> bool {
        let mut pages = self.leftover.len() + self.denied.len();
        let mut open_of = vec![0u32; self.addresses.len()];
        for (slot, host) in self.hosts.iter().enumerate() {
            assert_eq!(self.by_origin.get(&host.origin), Some(&(slot as u32)), "a host is in one slot only");
            assert!(host.open() <= usize::from(self.config.host.concurrent), "the active window holds");
            assert!(host.pages() <= self.config.queue_len.max(1), "a queue is bounded");
            pages += host.pages();
            open_of[host.ip as usize] += host.open() as u32;
            if host.open() > 0 && !matches!(host.robots, RobotsState::Known { .. }) {
                let pages_open = host.active.iter().filter(|a| matches!(a.work, Work::Page(_))).count();
                assert_eq!(pages_open, 0, "no page before the robots rules are known");
            }
        }
        for (address, open) in self.addresses.iter().zip(&open_of) {
            assert_eq!(address.open, *open, "an address counts what its hosts have open");
            assert!(address.unsent <= address.open);
            assert!(address.open <= u32::from(self.config.ip.concurrent));
        }
        assert_eq!(pages, self.pages, "every URL is somewhere");
        true
    }

    /// Whether something of this host may go out at this moment.
    fn may_send(&self, slot: u32, now: Now) -> bool {
        let host = &self.hosts[slot as usize];
        let address = &self.addresses[host.ip as usize];
        host.wants_to_send(&self.config.host, now)
            && host.pace.due() <= now
            && address.pace.due() <= now
            && address.has_room(&self.config.ip)
    }

    /// Chooses what to send for a host that may send.
    fn hand_out(&mut self, slot: u32, now: Now) -> Acquired {
        let host = &mut self.hosts[slot as usize];
        let ip = self.addresses[host.ip as usize].ip;
        match &host.robots {
            RobotsState::Known { until, .. } | RobotsState::Unreachable { until } if *until <= now => {
                host.robots = RobotsState::Unknown;
            }
            _ => {}
        }
        let (url, hops) = match &mut host.robots {
            RobotsState::Known { rules, .. } => {
                let Some(job) = host.queue.pop_front() else {
                    return Acquired::Nothing;
                };
                if !rules.allows(job.candidate.url.path_and_query().as_bytes()) {
                    self.pages -= 1;
                    self.stats.denied += 1;
                    self.refill(slot, now);
                    return Acquired::Denied(job);
                }
                let (doc_id, url) = (job.candidate.doc_id, job.candidate.url.clone());
                let trans = host.hand_out(slot, Work::Page(job), now);
                return Acquired::Fetch(Order { trans, doc_id, url, ip, kind: OrderKind::Page });
            }
            RobotsState::Unreachable { .. } => {
                self.denied.extend(host.queue.drain(..));
                return match self.denied.pop_front() {
                    Some(job) => {
                        self.pages -= 1;
                        self.stats.denied += 1;
                        Acquired::Denied(job)
                    }
                    None => Acquired::Nothing,
                };
            }
            RobotsState::Unknown => (host.queue[0].candidate.url.with_path("/robots.txt"), 0),
            RobotsState::Asked { next } => match next.take() {
                Some(next) => *next,
                None => return Acquired::Nothing,
            },
        };
        host.robots = RobotsState::Asked { next: None };
        let trans = host.hand_out(slot, Work::Robots { hops }, now);
        Acquired::Fetch(Order { trans, doc_id: 0, url, ip, kind: OrderKind::Robots })
    }

    /// Takes the work of an open transaction and paces its host and address. The caller puts the row in order and
    /// then calls `freed`.
    fn take_open(&mut self, trans: TransId, report: &Report, now: Now) -> Option<Work> {
        let slot = trans.host_slot();
        let Some(active) = self.hosts.get_mut(slot as usize).and_then(|host| host.active_mut(trans)) else {
            self.stats.late += 1;
            return None;
        };
        let work = std::mem::replace(&mut active.work, Work::Free);
        let unsent = !active.sent;
        let host = &mut self.hosts[slot as usize];
        let address = &mut self.addresses[host.ip as usize];
        if unsent {
            // An answer may overtake the news that the request is out; it was sent no later than now.
            host.pace.asked(&self.config.host, now);
            address.pace.asked(&self.config.ip, now);
            address.unsent -= 1;
        }
        host.pace.answered(&self.config.host, report, now);
        address.open -= 1;
        self.open -= 1;
        // Retry-After and back-off were said by this host; its address is paced by the rate alone.
        let plain = Report { status: 0, retry_after_s: None, ..*report };
        address.pace.answered(&self.config.ip, &plain, now);
        Some(work)
    }

    /// A place in a window is free, and the host's row is in order again: whoever waited may go.
    fn freed(&mut self, slot: u32, now: Now) {
        let ip = self.hosts[slot as usize].ip;
        self.settle(slot, now);
        self.wake_address(ip, now);
    }

    /// Decides where a host waits. Called after every change; a host that waits already stays where it is and is
    /// looked at again when its place comes up.
    fn settle(&mut self, slot: u32, now: Now) {
        let host = &self.hosts[slot as usize];
        if host.place != Place::Rest {
            return;
        }
        if !host.wants_to_send(&self.config.host, now) {
            if host.pages() == 0 && host.open() == 0 {
                self.retire(slot, now);
            }
            return;
        }
        let due = host.pace.due();
        let ip = host.ip;
        let address = &mut self.addresses[ip as usize];
        if due > now {
            let timer = Timer::Host { slot, generation: host.generation };
            self.hosts[slot as usize].place = Place::Timer;
            self.wheel.insert(due, timer);
        } else if address.claimed
            || !address.waiting.is_empty()
            || address.pace.due() > now
            || !address.has_room(&self.config.ip)
        {
            address.waiting.push_back(slot);
            self.hosts[slot as usize].place = Place::Address;
            self.wake_address(ip, now);
        } else {
            address.claimed = true;
            self.hosts[slot as usize].place = Place::Ready;
            self.ready.push_back(slot);
        }
    }

    /// Lets the next host of an address through if the address may be asked.
    fn wake_address(&mut self, ip: u32, now: Now) {
        let address = &mut self.addresses[ip as usize];
        if address.claimed || address.waiting.is_empty() || !address.has_room(&self.config.ip) {
            return;
        }
        if address.pace.due() > now {
            if !address.timer {
                address.timer = true;
                self.wheel.insert(address.pace.due(), Timer::Address { slot: ip });
            }
            return;
        }
        if let Some(slot) = address.waiting.pop_front() {
            address.claimed = true;
            let host = &mut self.hosts[slot as usize];
            debug_assert_eq!(host.place, Place::Address);
            host.place = Place::Ready;
            self.ready.push_back(slot);
        }
    }

    /// A host without URLs: first what was left over of it, then its slot may go to another.
    fn retire(&mut self, slot: u32, now: Now) {
        if self.leftover.holds(&self.hosts[slot as usize].origin) {
            self.refill(slot, now);
            return;
        }
        let host = &mut self.hosts[slot as usize];
        if !std::mem::replace(&mut host.resting, true) {
            self.resting += 1;
        }
        if matches!(&host.robots, RobotsState::Known { rules, .. } if rules.heap_bytes() > ROBOTS_KEPT_BYTES)
        {
            host.robots = RobotsState::Unknown;
        }
        if !std::mem::replace(&mut host.idle_listed, true) {
            self.idle.push_back(slot);
        }
        self.place_waiting_hosts(now);
    }

    /// Fills a queue that has room again from what was left over of its host.
    fn refill(&mut self, slot: u32, now: Now) {
        while self.hosts[slot as usize].pages() < self.config.queue_len {
            let Some(job) = self.leftover.pop_of(&self.hosts[slot as usize].origin) else {
                break;
            };
            self.enqueue(slot, job);
        }
        self.settle(slot, now);
    }

    /// Gives slots to hosts that wait among the leftovers.
    fn place_waiting_hosts(&mut self, now: Now) {
        while let Some(origin) = self.leftover.first_host() {
            let origin: Box<str> = origin.into();
            let Some(job) = self.leftover.pop_of(&origin) else {
                return;
            };
            let Some(slot) = self.place_host(&origin, job.ip, now) else {
                self.leftover.put_first(job);
                return;
            };
            self.leftover.first_host_placed();
            self.enqueue(slot, job);
            self.refill(slot, now);
        }
    }

    /// Finds a slot for a host: a fresh one, or the one that has been idle longest and whose pause is over.
    fn place_host(&mut self, origin: &str, ip: IpAddr, now: Now) -> Option<u32> {
        let slot = if self.hosts.len() < self.config.queue_count {
            let ip = self.use_address(ip);
            self.hosts.push(Host::new(origin, ip, self.quiet_until));
            self.resting += 1;
            self.hosts.len() as u32 - 1
        } else {
            let slot = self.idle_slot(now)?;
            let ip = self.use_address(ip);
            let host = &mut self.hosts[slot as usize];
            self.by_origin.remove(&host.origin);
            let old_ip = host.ip;
            host.become_host(origin, ip, self.quiet_until);
            self.addresses[old_ip as usize].hosts -= 1;
            self.free_address(old_ip, now);
            self.stats.slots_reused += 1;
            slot
        };
        self.by_origin.insert(origin.into(), slot);
        Some(slot)
    }

    /// The oldest row that is idle still and whose host could be asked again at once: forgetting it forgets
    /// nothing that niceness needs.
    fn idle_slot(&mut self, now: Now) -> Option<u32> {
        let mut soonest = Now::NEVER;
        for _ in 0..self.idle.len() {
            let slot = self.idle.pop_front()?;
            let host = &mut self.hosts[slot as usize];
            if !host.resting {
                host.idle_listed = false;
            } else if host.pace.due() <= now {
                host.idle_listed = false;
                return Some(slot);
            } else {
                soonest = soonest.min(host.pace.due());
                self.idle.push_back(slot);
            }
        }
        // Somebody must come back for the hosts that wait for a slot.
        if soonest < Now::NEVER && !self.slots_timer {
            self.slots_timer = true;
            self.wheel.insert(soonest, Timer::Slots);
        }
        None
    }

    fn enqueue(&mut self, slot: u32, job: Job) {
        let host = &mut self.hosts[slot as usize];
        if std::mem::replace(&mut host.resting, false) {
            self.resting -= 1;
        }
        if host.queue.is_empty() {
            // Most hosts have one URL waiting; a queue would make room for four.
            host.queue.reserve_exact(1);
        }
        host.queue.push_back(job);
    }

    fn use_address(&mut self, ip: IpAddr) -> u32 {
        let slot = match self.by_ip.get(&ip) {
            Some(&slot) => slot,
            None => {
                let slot = self.addresses_free.pop().unwrap_or(self.addresses.len() as u32);
                match self.addresses.get_mut(slot as usize) {
                    Some(address) => *address = Address::new(ip, self.quiet_until),
                    None => self.addresses.push(Address::new(ip, self.quiet_until)),
                }
                self.by_ip.insert(ip, slot);
                slot
            }
        };
        self.addresses[slot as usize].hosts += 1;
        slot
    }

    /// Forgets an address that no host uses, once its pause is over.
    fn free_address(&mut self, slot: u32, now: Now) {
        let address = &mut self.addresses[slot as usize];
        if address.hosts > 0 || address.timer {
            return;
        }
        if address.pace.due() > now {
            address.timer = true;
            self.wheel.insert(address.pace.due(), Timer::Address { slot });
        } else if self.by_ip.get(&address.ip) == Some(&slot) {
            self.by_ip.remove(&address.ip);
            self.addresses_free.push(slot);
        }
    }

    /// Sends again what a silent spider had.
    fn sweep(&mut self, now: Now) {
        for slot in 0..self.hosts.len() as u32 {
            for place in 0..self.hosts[slot as usize].active.len() {
                let active = &self.hosts[slot as usize].active[place];
                let silent = now.since_us(active.last_word) >= self.config.spider_silence_us;
                if silent && !matches!(active.work, Work::Free) {
                    let trans = TransId::new(slot, place as u8, active.generation);
                    self.stats.resent += 1;
                    let report = Report {
                        result: crate::proto::record::ResultCode::TotalTimeout,
                        status: 0,
                        took_us: 0,
                        retry_after_s: None,
                    };
                    self.put_back(trans, &report, now);
                }
            }
        }
    }
}
