//! Where hosts wait for their turn, and how they get it.

use super::host::{RESTING, RobotsState, WaitsIn};
use super::host_memory::{write_address, write_pace};
use super::server::{Timer, UrlServer};
use crate::base::Now;
use std::hint::black_box;

/// Hosts that are brought into the cache together.
const WARM_HOSTS: usize = 64;
/// Larger rules are not kept for a host that has nothing to do; they are asked for again.
const RULES_KEPT_BYTES: usize = 16 * 1024;

impl UrlServer {
    /// The next host that was found ready, or that a spider has room for again.
    pub(super) fn next_ready(&mut self, now: Now) -> Option<u32> {
        loop {
            if self.warm == 0 {
                self.warm_up();
            }
            if let Some(slot) = self.ready.pop_front() {
                self.warm = self.warm.saturating_sub(1);
                let host = &mut self.table.rows[slot as usize];
                debug_assert_eq!(host.waits_in, WaitsIn::Ready);
                host.waits_in = WaitsIn::Rest;
                let ip = host.ip;
                self.addresses.get_mut(ip).claimed = false;
                if !self.stand(slot, now) {
                    return Some(slot);
                }
                self.settle(slot, now);
                continue;
            }
            let slot = self.spiders.next_host()?;
            let host = &mut self.table.rows[slot as usize];
            debug_assert_eq!(host.waits_in, WaitsIn::Spider);
            host.waits_in = WaitsIn::Rest;
            self.settle(slot, now);
        }
    }

    /// Reads a little of everything that the next hosts will need. Among a million hosts each of these reads waits
    /// for memory; many at once wait no longer than one.
    fn warm_up(&mut self) {
        let count = self.ready.len().min(WARM_HOSTS);
        if count < 2 {
            return;
        }
        self.warm = count;
        let next = || self.ready.iter().take(count).map(|&slot| &self.table.rows[slot as usize]);
        let mut read = 0u64;
        for host in next() {
            read ^= u64::from(host.ip) ^ u64::from(host.generation);
        }
        for host in next() {
            read ^= u64::from(self.addresses.get(host.ip).open);
        }
        for host in next() {
            read ^= self.urls.front(host.queue).map_or(0, |candidate| u64::from(candidate.doc_id));
        }
        for host in next() {
            let front = self.urls.front(host.queue);
            read ^= front.map_or(0, |candidate| u64::from(candidate.url.as_str().as_bytes()[0]));
        }
        black_box(read);
    }

    /// Whether something of this host may go out at this moment.
    pub(super) fn may_send(&self, slot: u32, now: Now) -> bool {
        let host = &self.table.rows[slot as usize];
        let address = self.addresses.get(host.ip);
        host.wants_to_send(&self.config.host, now)
            && host.pace.due() <= now
            && address.pace.due() <= now
            && address.has_room(&self.config.ip)
    }

    /// A place in a window is free, and the host's row is in order again: whoever waited may go.
    pub(super) fn freed(&mut self, slot: u32, now: Now) {
        let ip = self.table.rows[slot as usize].ip;
        self.settle(slot, now);
        self.wake_address(ip, now);
    }

    /// Decides where a host waits. Called after every change; a host that waits already stays where it is and is
    /// looked at again when its place comes up.
    pub(super) fn settle(&mut self, slot: u32, now: Now) {
        let host = &mut self.table.rows[slot as usize];
        if host.waits_in != WaitsIn::Rest {
            return;
        }
        if !host.wants_to_send(&self.config.host, now) {
            if host.is_empty() && !host.is(RESTING) {
                self.retire(slot, now);
            }
            return;
        }
        let due = host.pace.due();
        let ip = host.ip;
        let address = self.addresses.get_mut(ip);
        if due > now {
            host.waits_in = WaitsIn::Timer;
            self.turns.insert(due, slot);
        } else if address.claimed
            || address.is_waited_for()
            || address.pace.due() > now
            || !address.has_room(&self.config.ip)
        {
            address.queue(slot, &mut self.table.rows);
            self.wake_address(ip, now);
        } else {
            address.claimed = true;
            host.waits_in = WaitsIn::Ready;
            self.ready.push_back(slot);
        }
    }

    /// Lets the next host of an address through if the address may be asked.
    pub(super) fn wake_address(&mut self, ip: u32, now: Now) {
        let address = self.addresses.get_mut(ip);
        if address.claimed || !address.is_waited_for() || !address.has_room(&self.config.ip) {
            return;
        }
        if address.pace.due() > now {
            if !address.timer {
                address.timer = true;
                let due = address.pace.due();
                self.timers.insert(due, Timer::Address { slot: ip });
            }
            return;
        }
        if let Some(slot) = address.first_host(&mut self.table.rows) {
            address.claimed = true;
            self.table.rows[slot as usize].waits_in = WaitsIn::Ready;
            self.ready.push_back(slot);
        }
    }

    /// A host without URLs: first what was left over of it, then its slot may go to another.
    fn retire(&mut self, slot: u32, now: Now) {
        if self.leftover.holds(self.table.origin(slot)) {
            self.refill(slot, now);
            return;
        }
        let host = &mut self.table.rows[slot as usize];
        if let RobotsState::Known { rules: Some(rules), .. } = &host.robots
            && rules.heap_bytes() > RULES_KEPT_BYTES
        {
            self.rules_bytes -= rules.heap_bytes();
            host.robots = RobotsState::Unknown;
        }
        self.table.rest(slot);
        self.place_waiting_hosts(now);
    }

    /// Fills a queue that has room again from what was left over of its host.
    pub(super) fn refill(&mut self, slot: u32, now: Now) {
        if self.leftover.len() > 0 {
            while self.table.rows[slot as usize].pages() < self.config.queue_len {
                let Some(job) = self.leftover.pop_of(self.table.origin(slot)) else {
                    break;
                };
                self.enqueue(slot, job.candidate);
            }
        }
        self.settle(slot, now);
    }

    /// Gives slots to hosts that wait among the leftovers.
    pub(super) fn place_waiting_hosts(&mut self, now: Now) {
        while let Some(origin) = self.leftover.first_host() {
            let origin: Box<str> = origin.into();
            let Some(job) = self.leftover.pop_of(&origin) else {
                return;
            };
            let slot = match self.table.find(&origin) {
                Some(slot) => Some(slot),
                None => self.place_host(&origin, job.ip, job.others.as_deref(), now),
            };
            match slot {
                Some(slot) if self.table.rows[slot as usize].pages() < self.config.queue_len => {
                    self.leftover.first_host_placed();
                    self.enqueue(slot, job.candidate);
                    self.refill(slot, now);
                }
                Some(_) => {
                    // It has a slot by now, and its queue draws on the leftovers by itself.
                    self.leftover.put_first(job);
                    self.leftover.first_host_placed();
                }
                None => {
                    self.leftover.put_first(job);
                    return;
                }
            }
        }
    }

    /// Everything that must outlive this process and is not in the journal yet: the pauses that are open now.
    pub fn journal_pauses(&mut self, now: Now) {
        for host in self.table.rows.iter().filter(|host| host.pace.due() > now) {
            let origin = self.table.names.get(host.name);
            write_pace(&mut self.journal, origin, &host.pace, self.config.wall);
        }
        for address in self.addresses.rows().iter().filter(|address| address.pace.due() > now) {
            write_address(&mut self.journal, address.ip, &address.pace, self.config.wall);
        }
    }
}
