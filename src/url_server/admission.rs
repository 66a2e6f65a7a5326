//! Which row a host gets, and which URLs go there.

use super::host::{MULTI_ADDRESS, RobotsState, WaitsIn, is_past};
use super::host_table::Vacancy;
use super::order::Refusal;
use super::server::{Timer, UrlServer};
use crate::base::Now;
use crate::proto::lines::{Candidate, Job};
use std::net::IpAddr;

impl UrlServer {
    /// Gives the job back if its host's queue is full or its host finds no slot, which the flag says.
    pub(super) fn find_place(&mut self, job: Job, now: Now) -> Option<(Job, bool)> {
        let origin = job.candidate.url.origin();
        let slot = match self.table.find(origin) {
            Some(slot) => {
                self.follow(slot, job.ip, job.others.as_deref(), now);
                Some(slot)
            }
            None => self.place_host(origin, job.ip, job.others.as_deref(), now),
        };
        match slot {
            Some(slot) if self.refusal(slot, now).is_some() => {
                let refusal = self.refusal(slot, now).unwrap_or(Refusal::SetAside);
                self.refused.push_back((job, refusal));
                let host = &self.table.rows[slot as usize];
                // One that waits somewhere comes to rest when its turn comes.
                if host.is_empty() && host.waits_in == WaitsIn::Rest {
                    self.table.rest(slot);
                }
            }
            Some(slot) if self.table.rows[slot as usize].pages() < self.config.queue_len => {
                self.enqueue(slot, job.candidate);
                self.settle(slot, now);
            }
            slot => return Some((job, slot.is_none())),
        }
        None
    }

    /// Why nothing of a host is fetched at present.
    pub(super) fn refusal(&self, slot: u32, now: Now) -> Option<Refusal> {
        let host = &self.table.rows[slot as usize];
        match host.robots {
            _ if host.pace.is_set_aside(self.config.host_failures_max, now) => Some(Refusal::SetAside),
            // Being asked for again: whoever comes meanwhile waits for the answer.
            RobotsState::Unreachable { .. } if host.open() > 0 => None,
            RobotsState::Unreachable { until_s, .. } if !is_past(until_s, now) => {
                Some(Refusal::RobotsUnreachable)
            }
            _ => None,
        }
    }

    /// Finds a slot for a host.
    pub(super) fn place_host(
        &mut self,
        origin: &str,
        ip: IpAddr,
        others: Option<&[IpAddr]>,
        now: Now,
    ) -> Option<u32> {
        let address = self.join_address(ip);
        match self.table.place(origin, address, self.quiet_until, now) {
            Vacancy::Fresh(slot) => {
                self.recall(slot);
                self.note_fallback(slot, ip, others);
                Some(slot)
            }
            Vacancy::Reused(slot, before) => {
                self.stats.slots_reused += 1;
                let (origin, before) = *before;
                if before.is(MULTI_ADDRESS) {
                    self.fallbacks.remove(&slot);
                }
                self.leave_address(before.ip, now);
                if let RobotsState::Known { rules: Some(rules), .. } = &before.robots {
                    self.rules_bytes -= rules.heap_bytes();
                }
                self.memory.keep(&origin, before);
                self.recall(slot);
                self.note_fallback(slot, ip, others);
                Some(slot)
            }
            Vacancy::None { soonest } => {
                self.leave_address(address, now);
                // Somebody must come back for the hosts that wait for a slot.
                if soonest < Now::NEVER && !self.slots_timer {
                    self.slots_timer = true;
                    self.timers.insert(soonest, Timer::Slots);
                }
                None
            }
        }
    }

    pub(super) fn join_address(&mut self, ip: IpAddr) -> u32 {
        self.addresses.join(ip, || {
            let mut pace = self.memory.recall_address(ip).unwrap_or_default();
            pace.put_off(self.quiet_until);
            pace
        })
    }

    /// Gives a host that got a row what is remembered of it.
    pub(super) fn recall(&mut self, slot: u32) {
        let host = &mut self.table.rows[slot as usize];
        self.memory.recall(self.table.names.get(host.name), host);
        if let RobotsState::Known { rules: Some(rules), .. } = &host.robots {
            self.rules_bytes += rules.heap_bytes();
        }
    }

    pub(super) fn leave_address(&mut self, slot: u32, now: Now) {
        self.addresses.get_mut(slot).hosts -= 1;
        self.free_address(slot, now);
    }

    /// Forgets an address that no host uses and at which nothing is open, once its pause is over.
    pub(super) fn free_address(&mut self, slot: u32, now: Now) {
        let address = self.addresses.get_mut(slot);
        if address.hosts > 0 || address.open > 0 || address.timer {
            return;
        }
        if address.pace.due() > now {
            address.timer = true;
            let due = address.pace.due();
            self.timers.insert(due, Timer::Address { slot });
        } else {
            self.memory.keep_address(address.ip, address.pace);
            self.addresses.remove(slot);
        }
    }

    pub(super) fn enqueue(&mut self, slot: u32, candidate: Candidate) {
        self.table.wake(slot);
        self.urls.push_back(&mut self.table.rows[slot as usize].queue, candidate);
    }
}
