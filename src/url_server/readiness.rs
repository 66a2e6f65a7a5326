use super::host_table::{Hosts, RESTING, WaitsIn};
use super::loans::{AHEAD_US, FAR_US, LINGER_US, Lent, Loans, SLACK_US, Turn};
use super::niceness::{Niceness, Pace};
use crate::base::{Now, RowWheel, TimerWheel};
use std::collections::VecDeque;
use std::hint::black_box;

/// Where hosts wait for their turn, and how they get it.
///
/// ```text
///   rest ──► timer (its pause) ──► address (other hosts there, its pause, its loan) ──► ready ──► handed out
/// ```
pub(super) struct Readiness {
    host_rules: Niceness,
    ip_rules: Niceness,
    ready: VecDeque<u32>,
    /// Of the ready ones, this many at the front have been brought into the cache.
    warm: usize,
    /// Hosts whose pause has an end.
    pauses: RowWheel,
    /// Hosts whose pause is over, in the course of a tick.
    over: VecDeque<u32>,
    timers: TimerWheel<Timer>,
    /// A timer for hosts without a row is set.
    awaits_row: bool,
    /// In a cluster: what may be asked at all.
    loans: Option<Box<Loans>>,
}

#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// The pause of an address, given by its slot, is over.
    Address(u32),
    /// An idle row may have become free for another host.
    Row,
    /// An address that is lent may not be needed any more.
    Loan(u32),
    /// The turn of a host at this address comes soon.
    Ahead(u32),
}

/// Hosts that are brought into the cache together.
const WARM_HOSTS: usize = 64;

impl Readiness {
    pub fn new(host_rules: Niceness, ip_rules: Niceness, now: Now) -> Readiness {
        Readiness {
            host_rules,
            ip_rules,
            ready: VecDeque::new(),
            warm: 0,
            pauses: RowWheel::new(now),
            over: VecDeque::new(),
            timers: TimerWheel::new(now),
            awaits_row: false,
            loans: None,
        }
    }

    /// From now on nothing is asked that is not lent.
    pub fn set_loans(&mut self, loans: Loans) {
        self.loans = Some(Box::new(loans));
    }

    pub fn loans(&self) -> Option<&Loans> {
        self.loans.as_deref()
    }

    pub fn loans_mut(&mut self) -> Option<&mut Loans> {
        self.loans.as_deref_mut()
    }

    /// Other rules hold from now on.
    pub fn set_rules(&mut self, host_rules: Niceness, ip_rules: Niceness) {
        (self.host_rules, self.ip_rules) = (host_rules, ip_rules);
    }

    /// When something here is due: at once if a host is ready.
    pub fn next_due(&self) -> Option<Now> {
        if !self.ready.is_empty() {
            return Some(Now::ZERO);
        }
        [self.pauses.next_due(), self.timers.next_due()].into_iter().flatten().min()
    }

    /// The next host that was found ready. It waits nowhere from here on.
    pub fn next(&mut self, hosts: &mut Hosts) -> Option<u32> {
        if self.warm == 0 {
            self.warm_up(hosts);
        }
        let slot = self.ready.pop_front()?;
        self.warm = self.warm.saturating_sub(1);
        let (host, address) = hosts.with_address(slot);
        host.leave(WaitsIn::Ready);
        address.claimed = false;
        Some(slot)
    }

    /// Reads a little of everything that the next hosts will need. Among a million hosts each of these reads waits
    /// for memory; many at once wait no longer than one.
    fn warm_up(&mut self, hosts: &Hosts) {
        let count = self.ready.len().min(WARM_HOSTS);
        if count < 2 {
            return;
        }
        self.warm = count;
        let next = || self.ready.iter().take(count).copied();
        let mut read = 0u64;
        for slot in next() {
            read ^= u64::from(hosts[slot].address()) ^ hosts[slot].queued() as u64;
        }
        for slot in next() {
            read ^= u64::from(hosts.address(hosts[slot].address()).claimed);
        }
        for slot in next() {
            read ^= hosts.front(slot).map_or(0, |candidate| u64::from(candidate.doc_id));
        }
        for slot in next() {
            let front = hosts.front(slot);
            read ^= front.map_or(0, |candidate| u64::from(candidate.url.as_str().as_bytes()[0]));
        }
        black_box(read);
    }

    /// Whether something of this host may go out at this moment.
    pub fn may_send(&self, hosts: &Hosts, slot: u32, now: Now) -> bool {
        let host = &hosts[slot];
        let address = hosts.address(host.address());
        host.wants_to_send(&self.host_rules, now)
            && host.pace.due() <= now
            && address.pace.due() <= now
            && address.has_room(&self.ip_rules)
            && self.is_lent(host.address(), now)
    }

    fn is_lent(&self, address: u32, now: Now) -> bool {
        self.loans.as_ref().is_none_or(|loans| loans.holds(address, now))
    }

    /// A request that is handed out now must be sent before.
    pub fn send_by(&self, address: u32) -> Now {
        self.loans.as_ref().map_or(Now::NEVER, |loans| loans.send_by(address))
    }

    /// Notes a request to an address.
    pub fn asked(&mut self, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans {
            loans.asked(address, now);
        }
    }

    /// Decides where a host waits. Called after every change; a host that waits already stays where it is until its
    /// turn comes there. True if it has nothing to do any more.
    #[must_use]
    pub fn settle(&mut self, hosts: &mut Hosts, slot: u32, now: Now) -> bool {
        let (host, address) = hosts.with_address(slot);
        if host.waits_in() != WaitsIn::Rest {
            return false;
        }
        if !host.wants_to_send(&self.host_rules, now) {
            let is_done = host.is_empty() && !host.is(RESTING);
            if self.loans.is_some() && host.open() == 0 {
                let address = host.address();
                self.linger(hosts, address, now);
            }
            return is_done;
        }
        let due = host.pace.due();
        if due > now {
            host.enter(WaitsIn::Timer);
            self.pauses.insert(due, slot);
            let address = host.address();
            self.expect_turn(hosts, address, due, now);
        } else if address.claimed
            || address.is_waited_for()
            || address.pace.due() > now
            || !address.has_room(&self.ip_rules)
            || !self.is_lent(host.address(), now)
        {
            let address = host.address();
            hosts.queue_at_address(slot);
            self.wake_address(hosts, address, now);
        } else {
            self.make_ready(hosts, slot);
        }
        false
    }

    fn make_ready(&mut self, hosts: &mut Hosts, slot: u32) {
        let (host, address) = hosts.with_address(slot);
        host.enter(WaitsIn::Ready);
        address.claimed = true;
        self.ready.push_back(slot);
    }

    /// Makes the next host of an address ready if the address may be asked.
    pub fn wake_address(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        let row = hosts.address_mut(address);
        if row.claimed || !row.is_waited_for() || !row.has_room(&self.ip_rules) {
            return self.watch(hosts, address, now);
        }
        if self.loans.as_ref().is_some_and(|loans| !loans.holds(address, now)) {
            return self.await_loan(hosts, address, now);
        }
        if row.pace.due() > now {
            if let Some(due) = row.set_timer() {
                self.timers.insert(due, Timer::Address(address));
            }
            self.watch(hosts, address, now);
        } else if let Some(slot) = hosts.first_at_address(address) {
            self.make_ready(hosts, slot);
        }
    }

    /// Notes that a host no longer uses an address.
    pub fn leave_address(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        hosts.address_mut(address).hosts -= 1;
        self.free_address(hosts, address, now);
    }

    /// Forgets an address that no host uses, at once or when its pause is over.
    pub fn free_address(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        if self.loans.as_ref().is_some_and(|loans| loans.is_wanted(address)) {
            // It is given back first.
            return self.watch(hosts, address, now);
        }
        if let Some(due) = hosts.free_address(address, now) {
            self.timers.insert(due, Timer::Address(address));
        }
    }

    /// Moves a host to the address that it is to stand at. True if it has moved.
    pub fn stand(&mut self, hosts: &mut Hosts, slot: u32, now: Now) -> bool {
        let Some(before) = hosts.stand(slot) else {
            return false;
        };
        self.wake_address(hosts, before, now);
        self.leave_address(hosts, before, now);
        true
    }

    // The loans of a cluster.

    /// Takes a loan: what another server knew of the address holds, and its hosts go on.
    pub fn lend(&mut self, hosts: &mut Hosts, address: u32, lent: &Lent<'_>, told: Option<Pace>, now: Now) {
        let loans = self.loans.as_mut();
        let Some(turn) = loans.and_then(|loans| loans.lend(address, lent.want, lent.until, now)) else {
            return;
        };
        let pace = &mut hosts.address_mut(address).pace;
        match (told, turn) {
            (Some(told), Turn::First) => pace.take_over(&told),
            (Some(told), Turn::Again) => pace.join(&told),
            _ => {}
        }
        pace.put_off(lent.due);
        self.wake_address(hosts, address, now);
    }

    /// Says that an address is wanted whose hosts wait and that may not be asked; if its pause is long, a little before the end.
    fn await_loan(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        let (Some(loans), row) = (&mut self.loans, hosts.address_mut(address)) else {
            return;
        };
        if loans.is_wanted(address) {
            if loans.is_over(address, now) && !row.has_open() && row.pace.due() <= now.plus_us(FAR_US) {
                loans.want_again(address, row.ip, &row.pace, row.pace.gap_us(&self.ip_rules), now);
            }
            return self.watch(hosts, address, now);
        }
        if row.pace.due() <= now.plus_us(AHEAD_US) {
            loans.want(address, row.ip, now);
        } else if let Some(due) = row.set_timer() {
            self.timers.insert(ahead_of(due), Timer::Address(address));
        }
    }

    /// The turn of a host is at `due`: its address is kept until then, or wanted a little before.
    fn expect_turn(&mut self, hosts: &Hosts, address: u32, due: Now, now: Now) {
        let Some(loans) = &mut self.loans else {
            return;
        };
        let is_near = due <= now.plus_us(FAR_US);
        if is_near && loans.is_wanted(address) {
            loans.keep(address, due.plus_us(SLACK_US));
        } else if due > now.plus_us(AHEAD_US) {
            self.timers.insert(ahead_of(due), Timer::Ahead(address));
        } else {
            loans.want(address, hosts.address(address).ip, due.plus_us(SLACK_US));
        }
        self.watch(hosts, address, now);
    }

    /// The turn of a host at an address comes soon, unless that has changed.
    pub fn ahead_due(&mut self, hosts: &Hosts, address: u32, now: Now) {
        let (Some(loans), row) = (&mut self.loans, hosts.address(address)) else {
            return;
        };
        let until = now.plus_us(AHEAD_US + SLACK_US);
        if loans.is_wanted(address) {
            loans.keep(address, until);
        } else if row.hosts > 0 {
            loans.want(address, row.ip, until);
        }
        self.watch(hosts, address, now);
    }

    /// A host of an address has nothing to send: something may come soon.
    fn linger(&mut self, hosts: &Hosts, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans {
            loans.keep(address, now.plus_us(LINGER_US));
            self.watch(hosts, address, now);
        }
    }

    /// Sets the timer by which an address is given back, if nobody needs it at this moment.
    fn watch(&mut self, hosts: &Hosts, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans
            && !hosts.address(address).is_needed(now.plus_us(FAR_US))
            && let Some(at) = loans.watch(address, now)
        {
            self.timers.insert(at, Timer::Loan(address));
        }
    }

    /// The timer of a loan has fired: an address that nobody needs is given back.
    pub fn loan_due(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        let Some(loans) = &mut self.loans else {
            return;
        };
        let is_over = loans.watched(address, now);
        let row = hosts.address(address);
        if !is_over || row.is_needed(now.plus_us(FAR_US)) {
            return self.watch(hosts, address, now);
        }
        loans.idle(address, row.ip, &row.pace, row.pace.gap_us(&self.ip_rules), now);
        if row.is_waited_for() {
            self.timers.insert(ahead_of(row.pace.due()), Timer::Ahead(address));
        }
        self.free_address(hosts, address, now);
    }

    /// Sets the timer for hosts that wait for a row.
    pub fn await_row(&mut self, soonest: Now) {
        if soonest < Now::NEVER && !self.awaits_row {
            self.awaits_row = true;
            self.timers.insert(soonest, Timer::Row);
        }
    }

    /// Collects the hosts whose pause is over, for `next_over`.
    pub fn advance_pauses(&mut self, hosts: &Hosts, now: Now) {
        self.pauses.advance(now, |slot| hosts[slot].pace.due(), |slot| self.over.push_back(slot));
    }

    /// The next host whose pause is over. It waits nowhere from here on.
    pub fn next_over(&mut self, hosts: &mut Hosts) -> Option<u32> {
        let slot = self.over.pop_front()?;
        hosts[slot].leave(WaitsIn::Timer);
        Some(slot)
    }

    /// The timers that have fired.
    pub fn advance_timers(&mut self, now: Now) -> Vec<Timer> {
        let mut fired = Vec::new();
        self.timers.advance(now, |timer| fired.push(timer));
        fired
    }

    /// The timer of an address has fired.
    pub fn address_due(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        hosts.address_mut(address).timer = false;
        self.wake_address(hosts, address, now);
        self.free_address(hosts, address, now);
    }

    /// When a row may become free for a host that waits for one, or a little sooner.
    pub fn row_due_at(&self) -> Option<Now> {
        self.timers.next_due().filter(|_| self.awaits_row)
    }

    /// The timer for hosts without a row has fired.
    pub fn row_due(&mut self) {
        self.awaits_row = false;
    }

    /// A ready host is on the list once and has claimed its address, and no other host is ready. An address that is lent is
    /// looked after if nobody uses it.
    pub fn invariants(&self, hosts: &Hosts) -> bool {
        for (address, row) in hosts.addresses().iter().enumerate() {
            let is_wanted = |loans: &Loans| loans.is_wanted(address as u32);
            let is_watched = |loans: &Loans| loans.is_watched(address as u32);
            let is_needed = row.is_needed(Now::NEVER);
            assert!(self.loans().is_none_or(|loans| !is_wanted(loans) || is_watched(loans) || is_needed));
        }
        for &slot in &self.ready {
            assert_eq!(hosts[slot].waits_in(), WaitsIn::Ready, "on the list is ready");
            assert!(hosts.address(hosts[slot].address()).claimed, "a ready host has its address");
        }
        let ready = hosts.iter().filter(|host| host.waits_in() == WaitsIn::Ready).count();
        let claimed = hosts.addresses().iter().filter(|address| address.claimed).count();
        assert_eq!((ready, claimed), (self.ready.len(), self.ready.len()), "ready is on the list");
        assert!(self.warm <= self.ready.len() && self.over.is_empty());
        true
    }
}

/// A little before a turn.
fn ahead_of(due: Now) -> Now {
    Now::from_us(due.us().saturating_sub(AHEAD_US))
}
