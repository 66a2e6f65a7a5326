use super::host_table::{Active, Clock, HostMemory, Hosts, InFlight, Journal, Work};
use super::leftover::Leftover;
use super::niceness::Niceness;
use super::order::{Refusal, RemoteRobots};
use super::readiness::{Readiness, Timer};
use super::robots_gate::RobotsGate;
use super::spider_credits::SpiderCredits;
use super::spill::{SpillAsk, SpillEvent};
use crate::base::{Now, Wall};
use crate::proto::job::{Job, TransId};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::collections::VecDeque;

/// The settings of this role, as built.
#[derive(Clone, Debug)]
pub struct UrlServerConfig {
    pub queue_count: usize,
    pub queue_len: usize,
    pub host: Niceness,
    pub ip: Niceness,
    /// After this long without a sign of life from its spider a URL is sent again.
    pub spider_silence_us: u64,
    /// Our name in robots.txt.
    pub product_token: String,
    /// Leftovers kept in memory; `usize::MAX` for all of them.
    pub leftover_urls: usize,
    /// A host that failed this often in a row is set aside.
    pub host_failures_max: u8,
    /// The calendar, for what is remembered beyond this process.
    pub wall: Wall,
    /// Where generations start.
    pub seed: u32,
}

/// The rules of niceness, which may change while a server runs.
#[derive(Clone, Copy, Debug)]
pub struct NicenessRules {
    pub host: Niceness,
    pub ip: Niceness,
    pub host_failures_max: u8,
}

/// The role as one value; see the folder's docs. Its verbs are in `admission`, `acquisition` and `release`.
pub struct UrlServer {
    pub(super) config: UrlServerConfig,
    pub(super) hosts: Hosts,
    pub(super) readiness: Readiness,
    pub(super) spiders: SpiderCredits,
    pub(super) in_flight: InFlight,
    pub(super) robots_gate: RobotsGate,
    pub(super) leftover: Leftover,
    /// URLs that are not to be fetched, to be reported by the next `acquire`.
    pub(super) refused: VecDeque<(Job, Refusal)>,
    pub(super) journal: Journal,
    /// Lines for the operator.
    pub(super) set_aside: Vec<SetAside>,
    /// Origins that nothing is asked of, as they move to another server.
    pub(super) closed: RapidHashSet<Box<str>>,
    /// URLs here, whether waiting, left over, refused or open.
    pub(super) pages: usize,
    pub(super) stats: UrlServerStats,
    /// The most requests that any rules so far allowed to be open.
    open_max: (u8, u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlServerStats {
    /// URLs sent again because their spider fell silent or went away.
    pub resent: u64,
    /// Reports on transactions that are no longer open, or never were.
    pub late: u64,
    /// Rows that were given to another host.
    pub slots_reused: u64,
    /// Requests that were put back because their host had another address to try.
    pub moved_on: u64,
    pub back_offs: BackOffs,
    /// How the pause of a host was kept to, and that of an address.
    pub host_margin: Margin,
    pub address_margin: Margin,
}

/// How often a host was left alone for longer than its rate asks, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOffs {
    /// It answered 429 or 503.
    pub penalty: u64,
    pub retry_after: u64,
    /// It did not answer, again and again; the last time for too often.
    pub failures: u64,
    pub set_aside: u64,
    /// Its robots rules are out of reach.
    pub robots: u64,
}

/// By how much requests came after the end of their pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margin {
    pub requests: u64,
    /// Those that came before.
    pub violations: u64,
    /// `i64::MAX` before the first that had a pause to keep.
    pub smallest_us: i64,
}

impl Default for Margin {
    fn default() -> Margin {
        Margin { requests: 0, violations: 0, smallest_us: i64::MAX }
    }
}

impl Margin {
    /// A request goes out now. It was to wait until `due`, if there is a pause between requests.
    pub(super) fn note(&mut self, due: Now, has_pause: bool, now: Now) {
        self.requests += 1;
        let margin_us = now.us().cast_signed() - due.us().cast_signed();
        self.violations += u64::from(margin_us < 0);
        if has_pause || margin_us < 0 {
            self.smallest_us = self.smallest_us.min(margin_us);
        }
    }
}

/// A host that did nothing but fail, and is not asked for a day.
pub struct SetAside {
    pub origin: Box<str>,
    pub failures: u8,
}

impl UrlServer {
    /// A URL server for the spider on its own shard.
    pub fn new(config: UrlServerConfig, now: Now) -> UrlServer {
        UrlServer {
            hosts: Hosts::new(config.queue_count, config.seed),
            readiness: Readiness::new(config.host, config.ip, now),
            spiders: SpiderCredits::local(),
            in_flight: InFlight::new(config.spider_silence_us, now),
            robots_gate: RobotsGate::new(config.product_token.clone()),
            leftover: Leftover::new(config.leftover_urls, config.seed),
            refused: VecDeque::new(),
            journal: Journal::new(config.wall, &config.product_token),
            set_aside: Vec::new(),
            closed: RapidHashSet::default(),
            pages: 0,
            stats: UrlServerStats::default(),
            open_max: (config.host.concurrent, config.ip.concurrent),
            config,
        }
    }

    /// Its spiders are behind links: they join, give credit and leave. Those of a server before it may have made requests
    /// until now, whenever their lines were sent.
    #[must_use]
    pub fn with_spiders_behind_links(mut self, now: Now) -> UrlServer {
        self.spiders = SpiderCredits::behind_links();
        self.hosts.asked_until(now);
        self
    }

    /// Takes over from a server that may have asked any host just before: each is left alone until then, and what
    /// is remembered of a host stays in force.
    #[must_use]
    pub fn after(mut self, quiet_until: Now, memory: HostMemory) -> UrlServer {
        self.hosts.after(quiet_until, memory);
        let gap_us = self.config.host.gap_us.max(self.config.ip.gap_us);
        self.hosts.were_asked_by(Now::from_us(quiet_until.us().saturating_sub(gap_us)));
        self
    }

    /// Keeps to other rules from now on. A longer pause holds at once, a shorter one from the next request.
    pub fn set_rules(&mut self, rules: NicenessRules, now: Now) {
        let NicenessRules { host, ip, host_failures_max } = rules;
        (self.config.host, self.config.ip) = (host, ip);
        self.config.host_failures_max = host_failures_max;
        self.open_max = (self.open_max.0.max(host.concurrent), self.open_max.1.max(ip.concurrent));
        self.readiness.set_rules(host, ip);
        self.hosts.stretch(&host, &ip, now);
        // More may be open at once: what rested because of that does so no longer.
        for slot in 0..self.hosts.len() as u32 {
            self.settle(slot, now);
        }
        for address in 0..self.hosts.addresses().len() as u32 {
            self.readiness.wake_address(&mut self.hosts, address, now);
        }
    }

    /// What another server must know of a host that moves to it, as lines of the journal.
    pub fn hand_over(&self, origin: &str, now: Now) -> String {
        let mut journal = Journal::new(self.config.wall, &self.config.product_token);
        if let Some(slot) = self.hosts.find(origin) {
            journal.pace(origin, &self.hosts[slot].pace, now);
            journal.robots(origin, self.hosts[slot].robots());
        }
        journal.take().unwrap_or_default()
    }

    /// Asks nothing more of a host: what waits for it is refused, and what others wanted of it is given back.
    pub fn close_host(&mut self, origin: &str, now: Now) -> Vec<RemoteRobots> {
        self.closed.insert(origin.into());
        let mut remote = Vec::new();
        if let Some(slot) = self.hosts.find(origin) {
            self.refuse_all(slot, Refusal::Moved);
            while let Some(request) = self.robots_gate.pop_remote(&mut self.hosts, slot) {
                remote.push(request);
            }
            self.settle(slot, now);
        }
        while let Some(job) = self.leftover.pop_of(origin) {
            self.refused.push_back((job, Refusal::Moved));
        }
        remote
    }

    /// Takes a host up again.
    pub fn open_host(&mut self, origin: &str) {
        self.closed.remove(origin);
    }

    /// Whether a request to a host is on the wire.
    pub fn is_asking(&self, origin: &str) -> bool {
        self.hosts.find(origin).is_some_and(|slot| self.hosts[slot].open() > 0)
    }

    pub(super) fn is_closed(&self, slot: u32) -> bool {
        !self.closed.is_empty() && self.closed.contains(self.hosts.origin(slot))
    }

    /// What the server of another node must know of a host that was closed here, and of its address, as lines of the
    /// journal.
    pub fn last_words(&self, origin: &str, now: Now) -> String {
        let mut journal = Journal::new(self.config.wall, &self.config.product_token);
        self.hosts.tell(origin, &mut journal, now);
        journal.take().unwrap_or_default()
    }

    /// Takes over what another server knew of a host that moved here.
    pub fn remember(&mut self, origin: &str, lines: &str, now: Now) {
        let clock = Clock { wall: self.config.wall, now };
        self.hosts.remember(origin, lines, clock, &self.config.product_token);
        self.hosts.were_asked_by(now);
        // The rules have just become stricter, and the other server may not have known.
        if self.hosts.is_quiet(now) {
            let until = now.plus_us(self.config.host.gap_us.max(self.config.ip.gap_us));
            self.hosts.keep_quiet(until);
            if let Some(slot) = self.hosts.find(origin) {
                self.hosts[slot].pace.put_off(until);
            }
        }
    }

    /// Moves hosts whose pause is over, looks for spiders that fell silent, and fetches leftovers back.
    pub fn tick(&mut self, now: Now) {
        self.readiness.advance_pauses(&self.hosts, now);
        while let Some(slot) = self.readiness.next_over(&mut self.hosts) {
            self.settle(slot, now);
        }
        for timer in self.readiness.advance_timers(now) {
            match timer {
                Timer::Address(address) => self.readiness.address_due(&mut self.hosts, address, now),
                Timer::Row => {
                    self.readiness.row_due();
                    self.place_waiting_hosts(now);
                }
                Timer::Loan(address) => self.readiness.loan_due(&mut self.hosts, address, now),
                Timer::HostLoan(slot) => {
                    if self.readiness.host_loan_due(&self.hosts, slot, now) {
                        self.wake_lent(slot, now);
                    }
                }
                Timer::Ahead(address) => self.readiness.ahead_due(&self.hosts, address, now),
            }
        }
        for trans in self.in_flight.silent(&self.hosts, now) {
            self.spider_is_silent(trans, now);
        }
        while self.leftover.make_progress() {
            self.take_back(None, now);
        }
    }

    /// When `tick` or `acquire` will next have something to do.
    pub fn next_due(&self) -> Option<Now> {
        let at_once =
            !self.refused.is_empty() || self.spiders.has_next_host() || self.leftover.can_progress();
        if at_once {
            return Some(Now::ZERO);
        }
        [self.readiness.next_due(), self.in_flight.next_due()].into_iter().flatten().min()
    }

    /// What the disk is to do with leftovers.
    pub fn spill_ask(&mut self) -> Option<SpillAsk> {
        self.leftover.next_ask()
    }

    pub fn spill_event(&mut self, event: SpillEvent, now: Now) {
        match event {
            SpillEvent::Written { chunk } => self.leftover.written(chunk),
            SpillEvent::Read { chunk, bytes } => self.take_back(Some((chunk, &bytes)), now),
        }
    }

    /// Lines for the journal of what must outlive this process.
    pub fn take_journal(&mut self) -> Option<String> {
        self.journal.take()
    }

    /// Writes to the journal what must outlive this process and is not there yet: the pauses that are open now.
    pub fn journal_pauses(&mut self, now: Now) {
        for (origin, host) in self.hosts.named().filter(|(_, host)| host.pace.due() > now) {
            self.journal.pace(origin, &host.pace, now);
        }
        for address in self.hosts.addresses().iter().filter(|address| address.pace.due() > now) {
            self.journal.address(address.ip, &address.pace, now);
        }
    }

    /// Hosts that were set aside since this was last asked.
    pub fn take_set_aside(&mut self) -> Vec<SetAside> {
        std::mem::take(&mut self.set_aside)
    }

    /// Lets a spider join; with `pull` it takes nothing before it gave credit.
    pub fn join(&mut self, pull: bool) -> u16 {
        self.spiders.join(pull)
    }

    pub fn credit(&mut self, spider: u16, count: u32) {
        self.spiders.credit(spider, count);
    }

    /// Notes that the link to a spider is full, or has room again.
    pub fn hold(&mut self, spider: u16, held: bool) {
        self.spiders.hold(spider, held);
    }

    /// Sends again the pages of a spider that is gone. Robots rules are requested by the URL server itself, whichever
    /// spider the host has.
    pub fn leave(&mut self, spider: u16, now: Now) {
        self.spiders.leave(spider);
        let is_theirs = |active: &Active| active.spider == spider && active.is_page();
        for trans in self.in_flight.select(&self.hosts, is_theirs) {
            self.give_up(trans, now);
        }
    }

    /// The document that an open transaction is about; `None` for robots.txt and for what is not open.
    pub fn doc_id(&self, trans: TransId) -> Option<u32> {
        match &self.hosts.active(trans)?.work {
            Work::Page(candidate) => Some(candidate.doc_id),
            _ => None,
        }
    }

    /// Every page that is with a spider: its transaction, the spider, the URL.
    pub fn open_pages(&self) -> impl Iterator<Item = (TransId, u16, &CrawlUrl)> {
        let open = self.in_flight.select(&self.hosts, Active::is_page);
        open.into_iter().filter_map(|trans| {
            let active = self.hosts.active(trans)?;
            match &active.work {
                Work::Page(candidate) => Some((trans, active.spider, &candidate.url)),
                _ => None,
            }
        })
    }

    /// The spider that has an open transaction.
    pub fn spider(&self, trans: TransId) -> Option<u16> {
        Some(self.hosts.active(trans)?.spider)
    }

    /// When an open transaction was handed out or, later, sent.
    pub fn asked_at(&self, trans: TransId) -> Option<Now> {
        Some(self.hosts.active(trans)?.asked_at)
    }

    /// The host that an open transaction is about.
    pub fn origin(&self, trans: TransId) -> Option<&str> {
        self.hosts.active(trans).map(|_| self.hosts.origin(trans.host_slot()))
    }

    pub fn is_remote_robots(&self, trans: TransId) -> bool {
        self.hosts.active(trans).is_some_and(|active| matches!(active.work, Work::RemoteRobots(_)))
    }

    pub fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Transactions that are with a spider.
    pub fn open(&self) -> usize {
        self.in_flight.len()
    }

    /// Hosts that have a row and something to do.
    pub fn hosts_busy(&self) -> usize {
        self.hosts.busy()
    }

    /// Hosts that may have a row.
    pub fn hosts_max(&self) -> usize {
        self.config.queue_count
    }

    /// URLs in the rows of hosts, those on the wire among them.
    pub fn queued(&self) -> usize {
        self.pages - self.leftover.len() - self.refused.len()
    }

    /// URLs that found no place in a row: in memory, and on disk.
    pub fn left_over(&self) -> (usize, usize) {
        let on_disk = self.leftover.spilled();
        (self.leftover.len() - on_disk, on_disk)
    }

    /// Whether a queue is empty and no leftover can fill it.
    pub fn wants_more(&mut self) -> bool {
        self.hosts.has_vacancy() && !self.leftover.could_fill()
    }

    pub fn stats(&self) -> UrlServerStats {
        self.stats
    }

    /// What must hold between any two calls; the tests and the simulation check it.
    pub fn invariants(&self) -> bool {
        assert!(
            self.hosts.invariants(self.config.queue_len, self.open_max)
                && self.readiness.invariants(&self.hosts)
        );
        assert!(self.spiders.invariants(&self.hosts) && self.in_flight.invariants(&self.hosts));
        assert!(self.robots_gate.invariants(&self.hosts) && self.leftover.invariants());
        let in_rows: usize = self.hosts.iter().map(|host| host.pages()).sum();
        assert_eq!(in_rows + self.leftover.len() + self.refused.len(), self.pages, "every URL is somewhere");
        true
    }
}
