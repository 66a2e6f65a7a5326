//! How URLs go out: the next host that may send, and what of it is sent. Nothing of a host goes out before its robots
//! rules are known.

use super::host_table::{HAS_REMOTE_ROBOTS, RobotsState, Work};
use super::order::{Acquired, Order, OrderKind, Refusal};
use super::server::UrlServer;
use super::spider_credits::LOCAL;
use crate::base::Now;
use crate::proto::job::Job;
use crate::proto::url::CrawlUrl;

impl UrlServer {
    /// The next thing to do. Call until it says `Nothing`, while there is room for fetches.
    pub fn acquire(&mut self, now: Now) -> Acquired {
        if !self.refused.is_empty() {
            return self.next_refused();
        }
        while let Some(slot) = self.next_ready(now) {
            let address = self.hosts[slot].address();
            // Time has passed since the host was found ready, so everything is checked again.
            let may_send = self.readiness.may_send(&self.hosts, slot, now);
            let mut acquired = if may_send { self.hand_out(slot, now) } else { Acquired::Nothing };
            if let Acquired::Fetch(order) = &mut acquired {
                let address_due = self.hosts.address(address).pace.due();
                if let Some(active) = self.hosts.active_mut(order.trans) {
                    active.address_due = address_due;
                }
                self.hosts.address_mut(address).handed_out(&self.config.ip, now);
                self.hosts[slot].pace.asked(&self.config.host, now);
                self.readiness.asked(slot, address, now);
                order.send_by = self.readiness.send_by(slot, address);
            }
            self.settle(slot, now);
            self.readiness.wake_address(&mut self.hosts, address, now);
            if acquired != Acquired::Nothing {
                return acquired;
            }
        }
        Acquired::Nothing
    }

    fn next_refused(&mut self) -> Acquired {
        match self.refused.pop_front() {
            Some((job, refusal)) => self.refuse(job, refusal),
            None => Acquired::Nothing,
        }
    }

    fn refuse(&mut self, job: Job, refusal: Refusal) -> Acquired {
        self.pages -= 1;
        Acquired::Refused(job, refusal)
    }

    /// The next host that was found ready, or that a spider has room for again.
    fn next_ready(&mut self, now: Now) -> Option<u32> {
        loop {
            let slot = match self.readiness.next(&mut self.hosts) {
                Some(slot) if !self.readiness.stand(&mut self.hosts, slot, now) => return Some(slot),
                Some(slot) => slot,
                None => self.spiders.next_host(&mut self.hosts)?,
            };
            self.settle(slot, now);
        }
    }

    /// Chooses what to send for a host that may send.
    fn hand_out(&mut self, slot: u32, now: Now) -> Acquired {
        if self.is_closed(slot) {
            self.refuse_all(slot, Refusal::Moved);
            return self.next_refused();
        }
        let host = &self.hosts[slot];
        if host.is(HAS_REMOTE_ROBOTS) {
            return self.hand_out_remote_robots(slot, now);
        }
        if host.robots().disallows_all(now) {
            self.refuse_all(slot, Refusal::RobotsUnreachable);
            return self.next_refused();
        }
        if host.robots().is_expired(now) {
            self.hosts.set_robots(slot, self.hosts[slot].robots().request_again());
        }
        let (url, hops) = match self.hosts[slot].robots() {
            RobotsState::Known { .. } | RobotsState::GivenUp { .. } => return self.hand_out_page(slot, now),
            RobotsState::Asked | RobotsState::Elsewhere { .. } => return Acquired::Nothing,
            RobotsState::Hop(next) => (next.url.clone(), next.hops),
            RobotsState::Unknown | RobotsState::Unreachable { .. } => match self.hosts.front(slot) {
                Some(front) => (front.url.with_path("/robots.txt"), 0),
                None => return Acquired::Nothing,
            },
        };
        self.hosts.set_robots(slot, self.hosts[slot].robots().requested());
        self.hand_out_ours(slot, Work::Robots { hops }, url, OrderKind::Robots, now)
    }

    fn hand_out_page(&mut self, slot: u32, now: Now) -> Acquired {
        let Some(front) = self.hosts.front(slot) else {
            return Acquired::Nothing;
        };
        let ip = self.hosts.ip(slot);
        if !self.hosts[slot].robots().allows(front.url.path_and_query()) {
            let Some(candidate) = self.hosts.pop_front(slot) else {
                return Acquired::Nothing;
            };
            self.refill(slot, now);
            return self.refuse(Job::at(ip, candidate), Refusal::Robots);
        }
        let Some(spider) = self.spiders.take(&mut self.hosts[slot], slot) else {
            return Acquired::Nothing;
        };
        let Some(candidate) = self.hosts.pop_front(slot) else {
            return Acquired::Nothing;
        };
        let (doc_id, url, head_only) =
            (candidate.doc_id, candidate.url.clone(), candidate.provenance.head_only);
        let (held, more) = (candidate.held.clone(), self.hosts.has_more(slot));
        let host = (slot, &mut self.hosts[slot]);
        let trans = self.in_flight.open(host, Work::Page(candidate), spider, more, now);
        let kind = OrderKind::Page;
        let send_by = Now::NEVER;
        Acquired::Fetch(Order { trans, doc_id, url, ip, more, kind, spider, head_only, held, send_by })
    }

    fn hand_out_remote_robots(&mut self, slot: u32, now: Now) -> Acquired {
        let Some(request) = self.robots_gate.pop_remote(&mut self.hosts, slot) else {
            return Acquired::Nothing;
        };
        let (url, kind) = (request.url.clone(), OrderKind::RemoteRobots(request.id));
        self.hand_out_ours(slot, Work::RemoteRobots(Box::new(request)), url, kind, now)
    }

    /// Hands out what the URL server has fetched itself, whichever spider the host has.
    fn hand_out_ours(&mut self, slot: u32, work: Work, url: CrawlUrl, kind: OrderKind, now: Now) -> Acquired {
        let (ip, more) = (self.hosts.ip(slot), self.hosts.has_more(slot));
        let trans = self.in_flight.open((slot, &mut self.hosts[slot]), work, LOCAL, more, now);
        let (spider, head_only, held, send_by) = (LOCAL, false, None, Now::NEVER);
        Acquired::Fetch(Order { trans, doc_id: 0, url, ip, more, kind, spider, head_only, held, send_by })
    }
}
