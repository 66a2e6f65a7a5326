use super::host_table::{Hosts, RESTING, WaitsIn};
use super::loans::{AHEAD_US, FAR_US, LINGER_US, Lent, LoanTable, Loans, SHORT_LINGER_US, SLACK_US, Turn};
use super::niceness::{Niceness, Pace};
use crate::base::{Now, RowWheel, TimerWheel};
use crate::proto::peer_wire::TicketKey;
use std::collections::VecDeque;
use std::hint::black_box;

/// Where hosts wait for their turn, and how they get it.
///
/// ```text
///   rest ──► timer (its pause) ──► loan (if hosts are lent) ──► address (other hosts there, its pause, its loan) ──► ready
///     ──► handed out
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
    /// The loan of a host may be over.
    HostLoan(u32),
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
            let address = hosts[slot].address();
            read ^= u64::from(hosts.address(address).claimed) ^ self.send_by(slot, address).us();
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
        host.wants_to_send(&self.host_rules(slot), now)
            && host.pace.due() <= now
            && address.pace.due() <= now
            && address.has_room(&self.ip_rules(host.address()))
            && self.is_host_lent(hosts, slot, now)
            && self.is_lent(hosts, host.address(), now)
    }

    /// The rules of a host, of which a part may be lent.
    fn host_rules(&self, slot: u32) -> Niceness {
        let of_hosts = self.loans.as_ref().and_then(|loans| loans.hosts.as_ref());
        let part = of_hosts.and_then(|hosts| hosts.part(slot));
        part.map_or(self.host_rules, |open| self.host_rules.at_most(open))
    }

    /// The rules of an address, likewise.
    fn ip_rules(&self, address: u32) -> Niceness {
        let part = self.loans.as_ref().and_then(|loans| loans.addresses.part(address));
        part.map_or(self.ip_rules, |open| self.ip_rules.at_most(open))
    }

    fn is_lent(&self, hosts: &Hosts, address: u32, now: Now) -> bool {
        let Some(loans) = &self.loans else {
            return true;
        };
        now < loans.address_until(address) && !self.is_part_paused(hosts, address)
    }

    /// Whether a part of an address is lent, at which there is a pause to keep by now: that is kept by one who has all of it.
    fn is_part_paused(&self, hosts: &Hosts, address: u32) -> bool {
        let is_part = self.loans.as_ref().is_some_and(|loans| loans.addresses.part(address).is_some());
        is_part && hosts.address(address).pace.gap_us(&self.ip_rules) > 0
    }

    fn is_host_lent(&self, hosts: &Hosts, slot: u32, now: Now) -> bool {
        let Some(loans) = self.loans.as_ref().filter(|loans| loans.hosts.is_some()) else {
            return true;
        };
        now < loans.host_until(slot) && !self.is_host_part_paused(hosts, slot)
    }

    /// The same of a host.
    fn is_host_part_paused(&self, hosts: &Hosts, slot: u32) -> bool {
        let of_hosts = self.loans.as_ref().and_then(|loans| loans.hosts.as_ref());
        let is_part = of_hosts.is_some_and(|of_hosts| of_hosts.part(slot).is_some());
        is_part && hosts[slot].pace.gap_us(&self.host_rules) > 0
    }

    /// A request that is handed out now must be sent before.
    pub fn send_by(&self, slot: u32, address: u32) -> Now {
        let until = |loans: &Loans| loans.address_until(address).min(loans.host_until(slot));
        self.loans.as_deref().map_or(Now::NEVER, until)
    }

    /// Notes a request of a host to an address.
    pub fn asked(&mut self, slot: u32, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans {
            loans.asked(slot, address, now);
        }
    }

    /// Decides where a host waits. Called after every change; a host that waits already stays where it is until its
    /// turn comes there. True if it has nothing to do any more.
    #[must_use]
    pub fn settle(&mut self, hosts: &mut Hosts, slot: u32, now: Now) -> bool {
        if hosts[slot].waits_in() != WaitsIn::Rest {
            self.give_if_far(hosts, slot, now);
            return false;
        }
        let host_rules = self.host_rules(slot);
        let ip_rules = self.ip_rules(hosts[slot].address());
        let is_host_lent = self.is_host_lent(hosts, slot, now);
        let is_lent = self.is_lent(hosts, hosts[slot].address(), now);
        let (host, address) = hosts.with_address(slot);
        if !host.wants_to_send(&host_rules, now) {
            let is_done = host.is_empty() && !host.is(RESTING);
            if self.loans.is_some() && host.open() == 0 {
                let address = host.address();
                self.linger(hosts, address, now);
                self.give_host(hosts, slot, now);
            }
            return is_done;
        }
        let due = host.pace.due();
        if due > now {
            host.enter(WaitsIn::Timer);
            self.pauses.insert(due, slot);
            let address = host.address();
            self.give_if_far(hosts, slot, now);
            if self.is_host_lent(hosts, slot, now) {
                self.expect_turn(hosts, address, due, now);
            }
        } else if !is_host_lent {
            self.await_host(hosts, slot, now);
        } else if address.claimed
            || address.is_waited_for()
            || address.pace.due() > now
            || !address.has_room(&ip_rules)
            || !is_lent
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
        let (ip_rules, is_lent) = (self.ip_rules(address), self.is_lent(hosts, address, now));
        let row = hosts.address_mut(address);
        if row.claimed || !row.is_waited_for() || !row.has_room(&ip_rules) {
            return self.watch(hosts, address, now);
        }
        if !is_lent {
            return self.await_loan(hosts, address, now);
        }
        if row.pace.due() > now {
            if let Some(due) = row.set_timer() {
                self.timers.insert(due, Timer::Address(address));
            }
            return self.watch(hosts, address, now);
        }
        while let Some(slot) = hosts.first_at_address(address) {
            if self.is_host_lent(hosts, slot, now) {
                return self.make_ready(hosts, slot);
            }
            // Its loan has ended while it waited here.
            self.await_host(hosts, slot, now);
        }
        self.watch(hosts, address, now);
    }

    /// Notes that a host no longer uses an address.
    pub fn leave_address(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        hosts.address_mut(address).hosts -= 1;
        self.free_address(hosts, address, now);
    }

    /// Forgets an address that no host uses, at once or when its pause is over.
    pub fn free_address(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        if self.loans.as_ref().is_some_and(|loans| loans.addresses.is_wanted(address)) {
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
        let Some(turn) = loans.and_then(|loans| loans.addresses.lend(address, lent, now)) else {
            return;
        };
        take_pace(&mut hosts.address_mut(address).pace, turn, told, lent.due);
        self.wake_address(hosts, address, now);
    }

    /// The same of a host.
    pub fn lend_host(&mut self, hosts: &mut Hosts, slot: u32, lent: &Lent<'_>, told: Option<Pace>, now: Now) {
        let of_hosts = self.loans.as_mut().and_then(|loans| loans.hosts.as_mut());
        if let Some(turn) = of_hosts.and_then(|of_hosts| of_hosts.lend(slot, lent, now)) {
            self.timers.insert(lent.until, Timer::HostLoan(slot));
            take_pace(&mut hosts[slot].pace, turn, told, lent.due);
        }
    }

    fn host_loans(&mut self) -> Option<&mut LoanTable> {
        self.loans.as_mut()?.hosts.as_mut()
    }

    /// Has a host wait until it is lent. Nothing is asked of its address before: whoever has the address has a host there, so no
    /// two nodes wait for each other.
    fn await_host(&mut self, hosts: &mut Hosts, slot: u32, now: Now) {
        let is_over = self.host_loans().is_some_and(|loans| loans.is_over(slot, now));
        if is_over || self.is_host_part_paused(hosts, slot) {
            if hosts[slot].open() > 0 {
                // It is given back when that has ended: then this is decided again.
                return;
            }
            self.give_host(hosts, slot, now);
        }
        if let Some(loans) = self.host_loans().filter(|loans| !loans.is_wanted(slot))
            && let Some(key) = TicketKey::of_host(hosts.origin(slot))
        {
            loans.want(slot, key, now);
        }
        hosts[slot].enter(WaitsIn::Loan);
    }

    /// Gives a host back whose turn is far away, or of which a part is lent and that has a pause by now: others are to know.
    fn give_if_far(&mut self, hosts: &Hosts, slot: u32, now: Now) {
        let host = &hosts[slot];
        if self.host_loans().is_some()
            && host.waits_in() == WaitsIn::Timer
            && host.open() == 0
            && (host.pace.due() > now.plus_us(FAR_US) || self.is_host_part_paused(hosts, slot))
        {
            self.give_host(hosts, slot, now);
        }
    }

    /// The end of a loan has come: a host that was not lent again is given back, wherever it waits. True if it is to be looked at
    /// again.
    pub fn host_loan_due(&mut self, hosts: &Hosts, slot: u32, now: Now) -> bool {
        if hosts[slot].open() > 0 || !self.host_loans().is_some_and(|loans| loans.is_over(slot, now)) {
            return false;
        }
        let waits = hosts[slot].waits_in() == WaitsIn::Loan;
        if !waits {
            self.give_host(hosts, slot, now);
        }
        waits
    }

    /// Gives a host back, at which nothing is open.
    fn give_host(&mut self, hosts: &Hosts, slot: u32, now: Now) {
        let host = &hosts[slot];
        let pause_us = host.pace.gap_us(&self.host_rules);
        if let Some(loans) = &mut self.loans
            && loans.hosts.as_ref().is_some_and(|of_hosts| of_hosts.is_wanted(slot))
        {
            loans.give_host(slot, hosts.origin(slot), &host.pace, pause_us, now);
        }
    }

    /// Says that an address is wanted whose hosts wait and that may not be asked; if its pause is long, a little before the end.
    fn await_loan(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        let is_part_paused = self.is_part_paused(hosts, address);
        let (Some(loans), row) = (&mut self.loans, hosts.address_mut(address)) else {
            return;
        };
        if loans.addresses.is_wanted(address) {
            let is_over = loans.addresses.is_over(address, now) || is_part_paused;
            if is_over && !row.has_open() && row.pace.due() <= now.plus_us(FAR_US) {
                let kept = loans.addresses.begin_again(address);
                loans.give_address(address, row.ip, &row.pace, row.pace.gap_us(&self.ip_rules), now);
                loans.addresses.want_again(address, TicketKey::of_address(row.ip), kept);
            }
            return self.watch(hosts, address, now);
        }
        if row.pace.due() <= now.plus_us(AHEAD_US) {
            loans.addresses.want(address, TicketKey::of_address(row.ip), now);
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
        if is_near && loans.addresses.is_wanted(address) {
            loans.addresses.keep(address, due.plus_us(SLACK_US));
        } else if due > now.plus_us(AHEAD_US) {
            self.timers.insert(ahead_of(due), Timer::Ahead(address));
        } else {
            let key = TicketKey::of_address(hosts.address(address).ip);
            loans.addresses.want(address, key, due.plus_us(SLACK_US));
        }
        self.watch(hosts, address, now);
    }

    /// The turn of a host at an address comes soon, unless that has changed.
    pub fn ahead_due(&mut self, hosts: &Hosts, address: u32, now: Now) {
        let (Some(loans), row) = (&mut self.loans, hosts.address(address)) else {
            return;
        };
        let until = now.plus_us(AHEAD_US + SLACK_US);
        if loans.addresses.is_wanted(address) {
            loans.addresses.keep(address, until);
        } else if row.hosts > 0 {
            loans.addresses.want(address, TicketKey::of_address(row.ip), until);
        }
        self.watch(hosts, address, now);
    }

    /// A host of an address has nothing to send: something may come soon.
    fn linger(&mut self, hosts: &Hosts, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans {
            // Without the host it is of no use.
            let linger_us = if loans.hosts.is_some() { SHORT_LINGER_US } else { LINGER_US };
            loans.addresses.keep(address, now.plus_us(linger_us));
            self.watch(hosts, address, now);
        }
    }

    /// Sets the timer by which an address is given back, if nobody needs it at this moment.
    fn watch(&mut self, hosts: &Hosts, address: u32, now: Now) {
        if let Some(loans) = &mut self.loans
            && !hosts.address(address).is_needed(now.plus_us(FAR_US))
            && let Some(at) = loans.addresses.watch(address, now)
        {
            self.timers.insert(at, Timer::Loan(address));
        }
    }

    /// The timer of a loan has fired: an address that nobody needs is given back.
    pub fn loan_due(&mut self, hosts: &mut Hosts, address: u32, now: Now) {
        let Some(loans) = &mut self.loans else {
            return;
        };
        let is_over = loans.addresses.watched(address, now);
        let row = hosts.address(address);
        if !is_over || row.is_needed(now.plus_us(FAR_US)) {
            return self.watch(hosts, address, now);
        }
        loans.give_address(address, row.ip, &row.pace, row.pace.gap_us(&self.ip_rules), now);
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
            let is_wanted = |loans: &Loans| loans.addresses.is_wanted(address as u32);
            let is_watched = |loans: &Loans| loans.addresses.is_watched(address as u32);
            let is_needed = row.is_needed(Now::NEVER);
            assert!(self.loans().is_none_or(|loans| !is_wanted(loans) || is_watched(loans) || is_needed));
        }
        let of_hosts = self.loans().and_then(|loans| loans.hosts.as_ref());
        for (slot, host) in hosts.iter().enumerate() {
            let is_wanted = of_hosts.is_some_and(|of_hosts| of_hosts.is_wanted(slot as u32));
            assert!(is_wanted || host.waits_in() != WaitsIn::Loan, "who waits for a loan wants it");
            assert!(!is_wanted || !host.is(RESTING), "a host at rest is not wanted");
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

/// What another server knew holds from now on, and nothing is asked before `due`.
fn take_pace(pace: &mut Pace, turn: Turn, told: Option<Pace>, due: Now) {
    match (told, turn) {
        (Some(told), Turn::First) => pace.take_over(&told),
        (Some(told), Turn::Again) => pace.join(&told),
        _ => {}
    }
    pace.put_off(due);
}

/// A little before a turn.
fn ahead_of(due: Now) -> Now {
    Now::from_us(due.us().saturating_sub(AHEAD_US))
}
