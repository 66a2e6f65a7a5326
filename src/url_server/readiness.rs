use super::host_table::{Hosts, RESTING, WaitsIn};
use super::niceness::Niceness;
use crate::base::{Now, RowWheel, TimerWheel};
use std::collections::VecDeque;
use std::hint::black_box;

/// Where hosts wait for their turn, and how they get it.
///
/// ```text
///   rest ──► timer (its pause) ──► address (other hosts there, its pause) ──► ready ──► handed out
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
}

#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// The pause of an address, given by its slot, is over.
    Address(u32),
    /// An idle row may have become free for another host.
    Row,
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
        }
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
            return host.is_empty() && !host.is(RESTING);
        }
        let due = host.pace.due();
        if due > now {
            host.enter(WaitsIn::Timer);
            self.pauses.insert(due, slot);
        } else if address.claimed
            || address.is_waited_for()
            || address.pace.due() > now
            || !address.has_room(&self.ip_rules)
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
            return;
        }
        if row.pace.due() > now {
            if let Some(due) = row.set_timer() {
                self.timers.insert(due, Timer::Address(address));
            }
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

    /// A ready host is on the list once and has claimed its address, and no other host is ready.
    pub fn invariants(&self, hosts: &Hosts) -> bool {
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
