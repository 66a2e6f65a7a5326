use super::address_table::AddressTable;
use super::fallback::Fallback;
use super::host::{Active, Host, RobotsState, WaitsIn, Window, Work};
use super::host::{HAS_REMOTE_ROBOTS, MULTI_ADDRESS, RESTING};
use super::host_memory::{HostMemory, write_address, write_pace, write_robots};
use super::host_table::HostTable;
use super::leftover::Leftover;
use super::niceness::{Niceness, Report};
use super::order::{Acquired, Refusal, RemoteRobots};
use super::release::{Ending, Taken};
use super::spider_credits::SpiderCredits;
use super::spill::{SpillAsk, SpillEvent};
use super::url_arena::UrlArena;
use crate::base::{Now, RowWheel, TimerWheel, Wall};
use crate::proto::lines::{Job, TransId};
use rapidhash::fast::RapidHashMap;
use slab::Slab;
use std::collections::VecDeque;

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
    /// Leftovers kept in memory; `usize::MAX` for all of them.
    pub leftover_urls: usize,
    /// A host that failed this often in a row, and did nothing else, is set aside.
    pub host_failures_max: u8,
    /// The calendar, for what is remembered beyond this process.
    pub wall: Wall,
    /// Where generations start.
    pub seed: u32,
}

/// See the folder's docs.
pub struct UrlServer {
    pub(super) config: UrlServerConfig,
    pub(super) table: HostTable,
    pub(super) addresses: AddressTable,
    /// Of the hosts that have several addresses.
    pub(super) fallbacks: RapidHashMap<u32, Fallback>,
    pub(super) urls: UrlArena,
    pub(super) leftover: Leftover,
    pub(super) spiders: SpiderCredits,
    pub(super) memory: HostMemory,
    pub(super) ready: VecDeque<u32>,
    /// Of the ready ones, so many at the front have been brought into the cache.
    pub(super) warm: usize,
    /// URLs that are not to be fetched, to be reported by the next `acquire`.
    pub(super) refused: VecDeque<(Job, Refusal)>,
    /// Requests for the robots rules of others, by the host they redirected to.
    pub(super) errands: RapidHashMap<u32, VecDeque<RemoteRobots>>,
    /// Hosts whose pause has an end.
    pub(super) turns: RowWheel,
    pub(super) timers: TimerWheel<Timer>,
    pub(super) slots_timer: bool,
    /// What is with a spider.
    pub(super) open: Slab<TransId>,
    /// When silent spiders are looked for next.
    sweep_at: Now,
    #[expect(clippy::vec_box, reason = "a window moves into a row, where only a pointer has room")]
    pub(super) spare_windows: Vec<Box<Window>>,
    /// Lines for the journal of what must not be forgotten.
    pub(super) journal: String,
    /// Lines for whoever watches.
    pub(super) notices: Vec<String>,
    /// Nothing is asked before: what stood here before may have asked just now.
    pub(super) quiet_until: Now,
    /// Bytes of robots rules.
    pub(super) rules_bytes: usize,
    pub(super) pages: usize,
    pub(super) stats: UrlServerStats,
    due: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) enum Timer {
    Address {
        slot: u32,
    },
    /// An idle row may have become free for another host.
    Slots,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlServerStats {
    /// URLs sent again because their spider fell silent or went away.
    pub resent: u64,
    /// Words on transactions that are no longer open, or never were.
    pub late: u64,
    /// URLs that were not to be fetched.
    pub refused: u64,
    /// Rows that were given to another host.
    pub slots_reused: u64,
    /// Hosts that were set aside.
    pub set_aside: u64,
    /// Requests that were put back because their host had another address to try.
    pub moved_on: u64,
}

/// Windows kept for the next host that becomes active.
pub(super) const SPARE_WINDOWS: usize = 1_024;

impl UrlServer {
    /// A URL server for the spider beside it.
    pub fn new(config: UrlServerConfig, now: Now) -> UrlServer {
        UrlServer {
            table: HostTable::new(config.queue_count, config.seed),
            addresses: AddressTable::new(config.queue_count),
            fallbacks: RapidHashMap::default(),
            urls: UrlArena::default(),
            leftover: Leftover::new(config.leftover_urls, config.seed),
            spiders: SpiderCredits::here(),
            memory: HostMemory::new(config.queue_count),
            ready: VecDeque::new(),
            warm: 0,
            refused: VecDeque::new(),
            errands: RapidHashMap::default(),
            turns: RowWheel::new(now),
            timers: TimerWheel::new(now),
            slots_timer: false,
            open: Slab::new(),
            sweep_at: now.plus_us(config.spider_silence_us / 4),
            spare_windows: Vec::new(),
            journal: String::new(),
            notices: Vec::new(),
            quiet_until: Now::ZERO,
            rules_bytes: 0,
            pages: 0,
            stats: UrlServerStats::default(),
            due: Vec::new(),
            config,
        }
    }

    /// Its spiders are behind links: they join, give credit and leave.
    #[must_use]
    pub fn with_spiders_behind_links(mut self) -> UrlServer {
        self.spiders = SpiderCredits::behind_links();
        self
    }

    /// Takes over from a server that may have asked any host just before: each is left alone until then, and what
    /// is remembered of a host holds on.
    #[must_use]
    pub fn after(mut self, quiet_until: Now, memory: HostMemory) -> UrlServer {
        self.quiet_until = quiet_until;
        self.memory = memory;
        self
    }

    /// What another server must know of a host that moves to it, as lines of the journal.
    pub fn hand_over(&self, origin: &str) -> String {
        let mut lines = String::new();
        if let Some(slot) = self.table.find(origin) {
            let host = &self.table.rows[slot as usize];
            write_pace(&mut lines, origin, &host.pace, self.config.wall);
            write_robots(&mut lines, origin, &host.robots, self.config.wall);
        }
        lines
    }

    /// What another server knew of a host that moved here.
    pub fn remember(&mut self, origin: &str, lines: &str, now: Now) {
        self.memory.read(lines.as_bytes(), self.config.wall, now);
        if let Some(slot) = self.table.find(origin) {
            self.forget_rules(slot);
            self.recall(slot);
        }
    }

    /// Takes a URL into the queue of its host, or among the leftovers.
    pub fn admit(&mut self, job: Job, now: Now) {
        self.pages += 1;
        if let Some((job, slotless)) = self.find_place(job, now) {
            self.leftover.push(job, slotless);
        }
    }

    /// The oldest leftovers that are not in memory: what still finds no place is kept there, ahead of those that
    /// came later.
    fn take_back(&mut self, read: Option<(u32, &[u8])>, now: Now) {
        for job in self.leftover.take_back(read) {
            if let Some((job, slotless)) = self.find_place(job, now) {
                self.leftover.keep(job, slotless);
            }
        }
    }

    /// The next thing to do. Call until it says `Nothing`, while there is room for fetches.
    pub fn acquire(&mut self, now: Now) -> Acquired {
        if let Some((job, refusal)) = self.refused.pop_front() {
            return self.refuse(job, refusal);
        }
        while let Some(slot) = self.next_ready(now) {
            let ip = self.table.rows[slot as usize].ip;
            // Time has passed since the host was found ready, so everything is looked at again.
            let acquired =
                if self.may_send(slot, now) { self.hand_out(slot, now) } else { Acquired::Nothing };
            if let Acquired::Fetch(_) = &acquired {
                let address = self.addresses.get_mut(ip);
                address.open += 1;
                address.unsent += 1;
                address.pace.asked(&self.config.ip, now);
                self.table.rows[slot as usize].pace.asked(&self.config.host, now);
            }
            self.settle(slot, now);
            self.wake_address(ip, now);
            if acquired != Acquired::Nothing {
                return acquired;
            }
        }
        Acquired::Nothing
    }

    pub(super) fn refuse(&mut self, job: Job, refusal: Refusal) -> Acquired {
        self.pages -= 1;
        self.stats.refused += 1;
        Acquired::Refused(job, refusal)
    }

    /// The request is on the wire: the pause until the next one starts here, not when it was acquired.
    pub fn sent(&mut self, trans: TransId, now: Now) {
        let Some(host) = self.table.rows.get_mut(trans.host_slot() as usize) else {
            return;
        };
        let Some(active) = host.active_mut(trans) else {
            return;
        };
        active.asked_at = now;
        let first = !std::mem::replace(&mut active.sent, true);
        let ip = active.ip;
        host.pace.asked(&self.config.host, now);
        let address = self.addresses.get_mut(ip);
        address.pace.asked(&self.config.ip, now);
        address.unsent -= u8::from(first);
        // Its answer would be too late: a process that is killed first would not keep a pause longer than the plain one.
        let plain_us = self.config.host.gap_us.max(self.config.ip.gap_us);
        if address.pace.gap_us(&self.config.ip) > plain_us {
            write_address(&mut self.journal, address.ip, &address.pace, self.config.wall);
        }
        let pace = self.table.rows[trans.host_slot() as usize].pace;
        if pace.gap_us(&self.config.host) > plain_us {
            let origin = self.table.origin(trans.host_slot());
            write_pace(&mut self.journal, origin, &pace, self.config.wall);
        }
        self.settle(trans.host_slot(), now);
        self.wake_address(ip, now);
    }

    /// The document that an open transaction is about; `None` for robots.txt and for what is not open.
    pub fn doc_id(&self, trans: TransId) -> Option<u32> {
        match &self.active(trans)?.work {
            Work::Page(candidate) => Some(candidate.doc_id),
            Work::Free | Work::Robots { .. } | Work::RemoteRobots(_) => None,
        }
    }

    /// The spider that has an open transaction.
    pub fn spider(&self, trans: TransId) -> Option<u16> {
        Some(self.active(trans)?.spider)
    }

    /// When an open transaction was handed out or, later, sent.
    pub fn asked_at(&self, trans: TransId) -> Option<Now> {
        Some(self.active(trans)?.asked_at)
    }

    pub(super) fn active(&self, trans: TransId) -> Option<&Active> {
        self.table.rows.get(trans.host_slot() as usize)?.active_ref(trans)
    }

    /// The spider is still at it.
    pub fn working(&mut self, trans: TransId, now: Now) {
        let host = self.table.rows.get_mut(trans.host_slot() as usize);
        match host.and_then(|host| host.active_mut(trans)) {
            Some(active) => active.last_word = now,
            None => self.stats.late += 1,
        }
    }

    /// A word on a transaction that was never given, or to another spider.
    pub fn ignored(&mut self) {
        self.stats.late += 1;
    }

    /// DONE for a page: frees its place in the window and hands the job back. `None` for a word that comes late.
    pub fn release(&mut self, trans: TransId, report: &Report, now: Now) -> Option<Job> {
        let Taken { work: Work::Page(candidate), ip, .. } =
            self.take_open(trans, Ending::Answered(report), now)?
        else {
            return None;
        };
        self.pages -= 1;
        let slot = trans.host_slot();
        // The row may go to another host at once, which may have another address.
        let address = self.table.rows[slot as usize].ip;
        self.refill(slot, now);
        self.wake_address(address, now);
        Some(Job::at(ip, candidate))
    }

    /// The connection turned out to be dead before the request reached the server, or nobody will answer for it:
    /// the URL goes back to the front of its queue and waits for the host's next turn.
    pub fn put_back(&mut self, trans: TransId, now: Now) {
        self.back(trans, Ending::Unknown, now);
    }

    /// The server has answered, and wants to be asked differently: at the host's next turn, after the pause that any
    /// other answer has.
    pub fn ask_again(&mut self, trans: TransId, report: &Report, now: Now) {
        self.back(trans, Ending::Answered(report), now);
    }

    /// Puts back what was handed out and is to be handed out again.
    pub(super) fn back(&mut self, trans: TransId, ending: Ending<'_>, now: Now) {
        let slot = trans.host_slot();
        let Some(Taken { work, .. }) = self.take_open(trans, ending, now) else {
            return;
        };
        // Taking it may have left the row with nothing to do.
        self.table.wake(slot);
        let host = &mut self.table.rows[slot as usize];
        match work {
            Work::Page(candidate) => self.urls.push_front(&mut host.queue, candidate),
            // A chain starts again at its first link.
            Work::Robots { .. } => match &mut host.robots {
                RobotsState::Unreachable { until_s, .. } => *until_s = 0,
                robots => *robots = RobotsState::Unknown,
            },
            Work::RemoteRobots(errand) => {
                self.errands.entry(slot).or_default().push_front(*errand);
                self.has_remote_robots(slot);
            }
            Work::Free => {}
        }
        self.stand(slot, now);
        self.freed(slot, now);
    }

    /// Moves hosts whose pause is over, looks for spiders that fell silent, and fetches leftovers back.
    pub fn tick(&mut self, now: Now) {
        let mut due = std::mem::take(&mut self.due);
        let rows = &self.table.rows;
        self.turns.advance(now, |slot| rows[slot as usize].pace.due(), |slot| due.push(slot));
        for slot in due.drain(..) {
            let host = &mut self.table.rows[slot as usize];
            debug_assert_eq!(host.waits_in, WaitsIn::Timer);
            host.waits_in = WaitsIn::Rest;
            self.settle(slot, now);
        }
        self.due = due;
        let mut timers = Vec::new();
        self.timers.advance(now, |timer| timers.push(timer));
        for timer in timers {
            match timer {
                Timer::Address { slot } => {
                    self.addresses.get_mut(slot).timer = false;
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
        while self.leftover.make_progress() {
            self.take_back(None, now);
        }
    }

    /// When `tick` or `acquire` will next have something to do.
    pub fn next_due(&self) -> Option<Now> {
        let at_once = !self.ready.is_empty() || !self.refused.is_empty() || self.spiders.has_next_host();
        if at_once || self.leftover.can_progress() {
            return Some(Now::ZERO);
        }
        let sweep = (!self.open.is_empty()).then_some(self.sweep_at);
        [self.turns.next_due(), self.timers.next_due(), sweep].into_iter().flatten().min()
    }

    /// What is to be done with leftovers on disk.
    pub fn spill_ask(&mut self) -> Option<SpillAsk> {
        self.leftover.next_ask()
    }

    pub fn has_spill_asks(&self) -> bool {
        self.leftover.has_asks()
    }

    pub fn spill_event(&mut self, event: SpillEvent, now: Now) {
        match event {
            SpillEvent::Written { chunk } => self.leftover.written(chunk),
            SpillEvent::Read { chunk, bytes } => self.take_back(Some((chunk, &bytes)), now),
        }
    }

    /// Lines for the journal of what must outlive this process.
    pub fn take_journal(&mut self) -> Option<String> {
        (!self.journal.is_empty()).then(|| std::mem::take(&mut self.journal))
    }

    /// Lines for whoever watches.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// A spider joined; with `pull` it takes nothing before it gave credit.
    pub fn join(&mut self, pull: bool) -> u16 {
        self.spiders.join(pull)
    }

    pub fn credit(&mut self, spider: u16, count: u32) {
        self.spiders.credit(spider, count);
    }

    /// The link to a spider is full, or has room again.
    pub fn hold(&mut self, spider: u16, held: bool) {
        self.spiders.hold(spider, held);
    }

    /// A spider is gone: everything it had is sent again.
    pub fn leave(&mut self, spider: u16, now: Now) {
        self.spiders.leave(spider);
        let theirs = |trans: &TransId| self.active(*trans).is_some_and(|active| active.spider == spider);
        let mut lost: Vec<TransId> = self.open.iter().map(|(_, trans)| *trans).filter(theirs).collect();
        // In an order that does not hang on which places were free: what happened can be replayed.
        lost.sort_unstable();
        for trans in lost {
            // Robots rules are asked for from here, whoever the host's spider is.
            if self.doc_id(trans).is_some() {
                self.stats.resent += 1;
                self.put_back(trans, now);
            }
        }
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
        self.open.len()
    }

    /// Hosts that have a slot and something to do.
    pub fn hosts_busy(&self) -> usize {
        self.table.busy()
    }

    pub fn leftover_len(&self) -> usize {
        self.leftover.len()
    }

    /// Leftovers that are on disk or on their way there.
    pub fn spilled_len(&self) -> usize {
        self.leftover.spilled()
    }

    /// A queue is empty, and nothing that was left over can fill it.
    pub fn wants_more(&mut self) -> bool {
        self.table.has_vacancy() && !self.leftover.could_fill()
    }

    pub fn stats(&self) -> UrlServerStats {
        self.stats
    }

    /// What must hold between any two calls; run under `debug_assert!` by the tests and the simulation.
    pub fn invariants(&self) -> bool {
        let mut pages = self.leftover.len() + self.refused.len();
        let mut waiting = 0;
        let mut open_of = vec![0; self.addresses.rows().len()];
        let mut hosts_of = vec![0; self.addresses.rows().len()];
        let mut open = 0;
        for (slot, host) in self.table.rows.iter().enumerate() {
            assert_eq!(
                self.table.find(self.table.names.get(host.name)),
                Some(slot as u32),
                "a host is in one slot only"
            );
            assert!(host.open() <= usize::from(self.config.host.concurrent), "the active window holds");
            assert!(host.pages() <= self.config.queue_len.max(1), "a queue is bounded");
            assert!(!(host.is(RESTING) && host.waits_in != WaitsIn::Rest), "a host at rest waits nowhere");
            pages += host.pages();
            waiting += host.queue.len();
            open += host.open();
            for active in host.places().iter().filter(|active| !matches!(active.work, Work::Free)) {
                open_of[active.ip as usize] += 1;
            }
            hosts_of[host.ip as usize] += 1;
            assert_eq!(
                host.is(MULTI_ADDRESS),
                self.fallbacks.contains_key(&(slot as u32)),
                "fallbacks are of rows"
            );
            if !matches!(host.robots, RobotsState::Known { .. }) {
                assert_eq!(host.pages_open(), 0, "no page before the robots rules are known");
            }
        }
        for (address, (open, hosts)) in self.addresses.rows().iter().zip(open_of.iter().zip(&hosts_of)) {
            assert_eq!(address.hosts, *hosts, "an address counts its hosts");
            assert_eq!(usize::from(address.open), *open, "an address counts what its hosts have open");
            assert!(address.unsent <= address.open);
            assert!(address.open <= self.config.ip.concurrent);
        }
        assert_eq!(open, self.open.len());
        assert_eq!(waiting, self.urls.len());
        assert_eq!(pages, self.pages, "every URL is somewhere");
        true
    }

    /// Puts work into a host's window.
    pub(super) fn open_window(
        &mut self,
        slot: u32,
        work: Work,
        spider: u16,
        more: bool,
        now: Now,
    ) -> TransId {
        let host = &mut self.table.rows[slot as usize];
        if host.window.is_none() {
            host.window = self.spare_windows.pop();
        }
        let entry = self.open.vacant_entry();
        let trans = host.hand_out(slot, work, spider, more, entry.key() as u32, now);
        entry.insert(trans);
        trans
    }
}

impl Host {
    /// What waits for a host, or is with a spider, keeps its row.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open() == 0 && !self.is(HAS_REMOTE_ROBOTS)
    }
}
