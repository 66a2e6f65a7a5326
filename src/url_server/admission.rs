//! How URLs come in: to the queue of their host, which may need a row first, or among the leftovers.

use super::host_table::{RobotsState, WaitsIn};
use super::order::{Refusal, RemoteRobots};
use super::server::UrlServer;
use crate::base::Now;
use crate::proto::job::Job;
use std::net::IpAddr;

/// Larger rules are not kept for a host that has nothing to do; they are requested again.
const RULES_KEPT_BYTES: usize = 16 * 1024;

impl UrlServer {
    /// Takes a URL into the queue of its host, or among the leftovers.
    pub fn admit(&mut self, job: Job, now: Now) {
        self.pages += 1;
        if let Some((job, is_rowless)) = self.enqueue(job, now) {
            self.leftover.push(job, is_rowless);
        }
    }

    /// Takes a request for the robots rules of another host, which redirected here. It counts like any other to
    /// this host and address, and goes before the host's own pages. False if the host gets no row.
    pub fn admit_remote_robots(&mut self, request: RemoteRobots, now: Now) -> bool {
        let origin = request.url.origin();
        if self.closed.contains(origin) {
            return false;
        }
        let found = self.hosts.find(origin);
        let Some(slot) =
            found.or_else(|| self.place_host(origin, request.ip, request.others.as_deref(), now))
        else {
            return false;
        };
        self.hosts.wake(slot);
        self.add_remote_robots(slot, request, false);
        self.settle(slot, now);
        true
    }

    /// Adds a request that the URL server sends itself: a host that waits for its spider to have room need not wait
    /// for it.
    pub(super) fn add_remote_robots(&mut self, slot: u32, request: RemoteRobots, again: bool) {
        self.robots_gate.push_remote(&mut self.hosts, slot, request, again);
        self.spiders.forget(&mut self.hosts, slot);
    }

    /// Takes in the oldest leftovers that are not in memory: what still finds no place is kept there, ahead of those
    /// that came later.
    pub(super) fn take_back(&mut self, read: Option<(u32, &[u8])>, now: Now) {
        for job in self.leftover.take_back(read) {
            if let Some((job, is_rowless)) = self.enqueue(job, now) {
                self.leftover.keep(job, is_rowless);
            }
        }
    }

    /// Puts a URL into the queue of its host. Gives the job back if that is full or, with the flag set, if the host
    /// gets no row.
    fn enqueue(&mut self, job: Job, now: Now) -> Option<(Job, bool)> {
        let (origin, others) = (job.candidate.url.origin(), job.others.as_deref());
        let slot = match self.hosts.find(origin) {
            Some(slot) => {
                if let Some(left) = self.hosts.follow(slot, job.ip, others) {
                    self.readiness.leave_address(&mut self.hosts, left, now);
                }
                slot
            }
            None => match self.place_host(origin, job.ip, others, now) {
                Some(slot) => slot,
                None => return Some((job, true)),
            },
        };
        if let Some(refusal) = self.refusal(slot, now) {
            self.refused.push_back((job, refusal));
            // A host that waits somewhere comes to rest when its turn comes.
            if self.hosts[slot].is_empty() && self.hosts[slot].waits_in() == WaitsIn::Rest {
                self.hosts.rest(slot);
            }
            return None;
        }
        if !self.has_room(slot) {
            return Some((job, false));
        }
        self.hosts.push_back(slot, job.candidate);
        self.settle(slot, now);
        None
    }

    fn has_room(&self, slot: u32) -> bool {
        self.hosts[slot].pages() < self.config.queue_len
    }

    /// Why nothing of a host is fetched at present.
    fn refusal(&self, slot: u32, now: Now) -> Option<Refusal> {
        if self.is_closed(slot) {
            return Some(Refusal::Moved);
        }
        let host = &self.hosts[slot];
        if host.pace.is_set_aside(self.config.host_failures_max, now) {
            return Some(Refusal::SetAside);
        }
        // While the rules are being requested again, URLs wait for the answer.
        (host.robots().disallows_all(now) && host.open() == 0).then_some(Refusal::RobotsUnreachable)
    }

    /// Finds a row for a host that has none.
    fn place_host(&mut self, origin: &str, ip: IpAddr, others: Option<&[IpAddr]>, now: Now) -> Option<u32> {
        let address = self.hosts.join_address(ip);
        match self.hosts.place(origin, address, others, now) {
            Ok((slot, left)) => {
                if let Some(left) = left {
                    self.stats.slots_reused += 1;
                    self.readiness.leave_address(&mut self.hosts, left, now);
                }
                Some(slot)
            }
            Err(soonest) => {
                self.readiness.leave_address(&mut self.hosts, address, now);
                self.readiness.await_row(soonest);
                None
            }
        }
    }

    /// Decides where a host waits. Called after every change. A host without URLs first gets its leftovers; then its
    /// row may go to another.
    pub(super) fn settle(&mut self, slot: u32, now: Now) {
        if !self.readiness.settle(&mut self.hosts, slot, now) {
            return;
        }
        if self.leftover.len_of(self.hosts.origin(slot)) > 0 {
            return self.refill(slot, now);
        }
        if self.hosts[slot].robots().rules_bytes() > RULES_KEPT_BYTES {
            self.hosts.set_robots(slot, RobotsState::Unknown);
        }
        self.hosts.rest(slot);
        self.place_waiting_hosts(now);
    }

    /// Fills a queue that has room again from the leftovers of its host.
    pub(super) fn refill(&mut self, slot: u32, now: Now) {
        if self.leftover.len() > 0 {
            while self.has_room(slot) {
                let Some(job) = self.leftover.pop_of(self.hosts.origin(slot)) else {
                    break;
                };
                self.hosts.push_back(slot, job.candidate);
            }
        }
        self.settle(slot, now);
    }

    /// Gives rows to hosts that wait among the leftovers.
    pub(super) fn place_waiting_hosts(&mut self, now: Now) {
        while let Some(origin) = self.leftover.first_host() {
            let origin: Box<str> = origin.into();
            let Some(job) = self.leftover.pop_of(&origin) else {
                return;
            };
            let found = self.hosts.find(&origin);
            match found.or_else(|| self.place_host(&origin, job.ip, job.others.as_deref(), now)) {
                Some(slot) if self.has_room(slot) => {
                    self.leftover.first_host_placed();
                    self.hosts.push_back(slot, job.candidate);
                    self.refill(slot, now);
                }
                Some(_) => {
                    // It has got a row meanwhile, whose queue draws on the leftovers by itself.
                    self.leftover.put_first(job);
                    self.leftover.first_host_placed();
                }
                None => return self.leftover.put_first(job),
            }
        }
    }
}
