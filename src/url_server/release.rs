//! How requests end: what an answer, or its absence, means for the URL, for the robots rules, and for the pauses of host
//! and address.

use super::host_table::{Active, NO_SPIDER, NextHop, RobotsState, Work};
use super::niceness::{Pace, Report};
use super::order::Refusal;
use super::robots_gate::{Meaning, RobotsStep, Robotstxt};
use super::server::{SetAside, UrlServer};
use crate::base::Now;
use crate::proto::job::{Job, TransId};
use crate::proto::record::{Fault, ResultCode, StatusAction};
use crate::proto::robots::Robots;
use std::net::IpAddr;

/// How a request ended.
#[derive(Clone, Copy)]
enum Ending<'a> {
    Answered(&'a Report),
    /// No answer came, so nothing is known that would change a pause.
    Unknown,
    /// No connection was made, or nothing was sent over it: the host was not asked.
    NotSent,
    /// Its spider left or is silent. When that made the request is not known, but that it was by now.
    GivenUp,
}

/// What an open transaction was about.
struct Released {
    work: Work,
    /// Where it was sent.
    ip: IpAddr,
    /// A connection was made.
    reached: bool,
}

/// Rules of all hosts together. Beyond this a file is as good as out of reach: it is requested again later.
const RULES_BYTES_MAX: usize = 256 << 20;

impl UrlServer {
    /// Notes that the request is on the wire: the pause until the next one starts here, not when it was acquired.
    pub fn sent(&mut self, trans: TransId, now: Now) {
        let slot = trans.host_slot();
        let Some(active) = self.hosts.active_mut(trans) else {
            return;
        };
        active.asked_at = now;
        let is_first = !std::mem::replace(&mut active.sent, true);
        let (address, before) = (active.address, active.before);
        let due = (active.host_due, active.address_due);
        if is_first {
            self.check(address, &before, due, now);
        }
        self.hosts.address_mut(address).sent(is_first);
        self.asked(slot, address, now);
        self.settle(slot, now);
        self.readiness.wake_address(&mut self.hosts, address, now);
    }

    /// Starts the pauses of host and address. A pause longer than the plain one is written before the answer: a process
    /// that is killed must keep it.
    fn asked(&mut self, slot: u32, address: u32, now: Now) {
        let plain_us = self.config.host.gap_us.max(self.config.ip.gap_us);
        self.readiness.asked(slot, address, now);
        let row = self.hosts.address_mut(address);
        row.pace.asked(&self.config.ip, now);
        if row.pace.gap_us(&self.config.ip) > plain_us {
            self.journal.address(row.ip, &row.pace, now);
        }
        let pace = &mut self.hosts[slot].pace;
        pace.asked(&self.config.host, now);
        if pace.gap_us(&self.config.host) > plain_us {
            self.journal_pace(slot, now);
        }
    }

    /// Holds a request that goes out against the pauses that were to be over before it.
    fn check(&mut self, address: u32, before: &Pace, (host_due, address_due): (Now, Now), now: Now) {
        let has_pause = before.gap_us(&self.config.host) > 0;
        self.stats.host_margin.note(host_due, has_pause, now);
        let has_pause = self.hosts.address(address).pace.gap_us(&self.config.ip) > 0;
        self.stats.address_margin.note(address_due, has_pause, now);
    }

    fn journal_pace(&mut self, slot: u32, now: Now) {
        self.journal.pace(self.hosts.origin(slot), &self.hosts[slot].pace, now);
    }

    /// Notes a sign of life from the spider that has a transaction.
    pub fn working(&mut self, trans: TransId, now: Now) {
        match self.hosts.active_mut(trans) {
            Some(active) => active.last_word = now,
            None => self.stats.late += 1,
        }
    }

    /// Counts a report on a transaction that was never given, or to another spider.
    pub fn ignored(&mut self) {
        self.stats.late += 1;
    }

    /// DONE for a page: frees its place in the window and hands the job back. `None` for a report that comes late.
    pub fn release(&mut self, trans: TransId, report: &Report, now: Now) -> Option<Job> {
        let Released { work: Work::Page(candidate), ip, .. } =
            self.close(trans, Ending::Answered(report), now)?
        else {
            return None;
        };
        self.pages -= 1;
        let slot = trans.host_slot();
        // The row may go at once to another host, which may have another address.
        let address = self.hosts[slot].address();
        self.refill(slot, now);
        self.readiness.wake_address(&mut self.hosts, address, now);
        Some(Job::at(ip, candidate))
    }

    /// DONE for the robots rules of another host: the number of the request. `None` for a report that comes late.
    pub fn release_remote_robots(&mut self, trans: TransId, report: &Report, now: Now) -> Option<u64> {
        let Released { work: Work::RemoteRobots(request), .. } =
            self.close(trans, Ending::Answered(report), now)?
        else {
            return None;
        };
        self.freed(trans.host_slot(), now);
        Some(request.id)
    }

    /// Puts a URL back to the front of its queue, where it waits for the host's next turn: the connection turned out to be
    /// dead before the request reached the server, or the spider was gone before it was sent.
    pub fn put_back(&mut self, trans: TransId, now: Now) {
        self.back(trans, Ending::Unknown, now);
    }

    /// Puts a URL back that was not sent, as its time was over: its host was not asked.
    pub fn not_sent(&mut self, trans: TransId, now: Now) {
        self.back(trans, Ending::NotSent, now);
    }

    /// Puts a URL back that the server has answered and wants to be asked for differently: at the host's next turn,
    /// after the pause that any other answer has.
    pub fn ask_again(&mut self, trans: TransId, report: &Report, now: Now) {
        self.back(trans, Ending::Answered(report), now);
    }

    /// Notes that a request could not be sent because no connection was made, for this reason. If the host has another
    /// address to try, it moves there, the request is put back and true is returned: no host was asked, and nothing has
    /// failed yet. Otherwise the request failed, and the caller releases it as such.
    pub fn unreachable(&mut self, trans: TransId, result: ResultCode, now: Now) -> bool {
        let slot = trans.host_slot();
        let Some(active) = self.hosts.active(trans).filter(|active| !active.sent) else {
            return false;
        };
        let ip = self.hosts.address(active.address).ip;
        let cut_short = active.more && result == ResultCode::ConnectTimeout;
        let Some(has_another) = self.hosts.failed_at(slot, ip, cut_short) else {
            return false;
        };
        if has_another {
            self.stats.moved_on += 1;
            self.back(trans, Ending::NotSent, now);
        } else {
            // Its open requests still count where they were sent.
            self.readiness.stand(&mut self.hosts, slot, now);
        }
        has_another
    }

    /// Puts back what was handed out and is to be handed out again.
    fn back(&mut self, trans: TransId, ending: Ending<'_>, now: Now) {
        let slot = trans.host_slot();
        let Some(Released { work, .. }) = self.close(trans, ending, now) else {
            return;
        };
        // Closing it may have left the row with nothing to do.
        self.hosts.wake(slot);
        match work {
            Work::Page(candidate) => self.hosts.push_front(slot, candidate),
            Work::Robots { .. } => {
                self.hosts.set_robots(slot, self.hosts[slot].robots().request_again());
            }
            Work::RemoteRobots(request) => self.add_remote_robots(slot, *request, true),
        }
        self.readiness.stand(&mut self.hosts, slot, now);
        self.freed(slot, now);
    }

    /// Lets the next request go, after a place in a window has become free and the host's row is in order again.
    fn freed(&mut self, slot: u32, now: Now) {
        let address = self.hosts[slot].address();
        self.settle(slot, now);
        self.readiness.wake_address(&mut self.hosts, address, now);
    }

    /// Takes the work of an open transaction and paces its host and address by the answer, if there was one. The caller
    /// puts the row in order and then calls `freed`.
    fn close(&mut self, trans: TransId, ending: Ending<'_>, now: Now) -> Option<Released> {
        let slot = trans.host_slot();
        let closed = self.hosts.get_mut(slot).and_then(|host| self.in_flight.close(host, trans));
        let Some(Active { work, sent, address, asked_at, before, host_due, address_due, .. }) = closed else {
            self.stats.late += 1;
            return None;
        };
        let row = self.hosts.address_mut(address);
        row.closed(sent);
        let ip = row.ip;
        match ending {
            Ending::GivenUp => self.asked(slot, address, now),
            _ if sent => {}
            Ending::NotSent => {
                // The address keeps its pause: one that cannot be connected to is not tried more often for that.
                let mut asked = before;
                asked.asked(&self.config.host, asked_at);
                let pace = &mut self.hosts[slot].pace;
                if *pace == asked {
                    *pace = before;
                }
            }
            Ending::Answered(_) | Ending::Unknown => {
                // An answer may overtake the news that the request is out; it was sent no later than now.
                if let Ending::Answered(Report { status: 1.., .. }) = ending {
                    self.check(address, &before, (host_due, address_due), now);
                }
                self.asked(slot, address, now);
            }
        }
        let mut reached = false;
        if let Ending::Answered(report) = ending {
            reached = report.status != 0 || (sent && !report.result.is_unconnected());
            self.pace_address(address, report, now);
            // A robots.txt that redirects is not the end: a host that disconnects after each hop would be asked for ever.
            if reached && !matches!(work, Work::Robots { .. }) {
                self.hosts.reached(slot, ip);
            }
        }
        if self.hosts[slot].address() != address {
            // The host has moved on: what waits at the old address may go, or the address is of no use any more.
            self.readiness.wake_address(&mut self.hosts, address, now);
            self.readiness.free_address(&mut self.hosts, address, now);
        }
        if let Ending::Answered(report) = ending {
            self.pace_host(slot, report, now);
        }
        Some(Released { work, ip, reached })
    }

    /// Paces an address by an answer. Retry-After was said by a host for itself; its neighbours need not wait for it.
    fn pace_address(&mut self, address: u32, report: &Report, now: Now) {
        let row = self.hosts.address_mut(address);
        let before = row.pace;
        row.pace.answered(&self.config.ip, &Report { retry_after_s: None, ..*report }, now);
        if row.pace.is_notable(&before, &self.config.ip, now) {
            self.journal.address(row.ip, &row.pace, now);
        }
    }

    /// Paces a host by an answer, or by its absence, and notes what must not be forgotten.
    fn pace_host(&mut self, slot: u32, report: &Report, now: Now) {
        let pace = &mut self.hosts[slot].pace;
        let before = *pace;
        pace.answered(&self.config.host, report, now);
        let has_failed = report.status == 0 && report.result.fault() == Fault::Network;
        let due = pace.due();
        let is_set_aside = has_failed && pace.failed(self.config.host_failures_max, now);
        let back_offs = &mut self.stats.back_offs;
        back_offs.penalty += u64::from(StatusAction::of(report.status) == StatusAction::BackOff);
        back_offs.retry_after += u64::from(report.retry_after_s > Some(0));
        back_offs.failures += u64::from(has_failed && !is_set_aside && pace.due() > due);
        back_offs.set_aside += u64::from(is_set_aside);
        if is_set_aside {
            self.set_aside(slot, now);
        }
        let asked_to_wait = report.retry_after_s.is_some_and(|seconds| seconds > 0);
        if asked_to_wait || self.hosts[slot].pace.is_notable(&before, &self.config.host, now) {
            self.journal_pace(slot, now);
        }
    }

    /// Sets a host aside that has done nothing but fail: what waits for it is refused until its next chance.
    fn set_aside(&mut self, slot: u32, now: Now) {
        let (origin, failures) = (self.hosts.origin(slot).into(), self.hosts[slot].pace.failures());
        self.set_aside.push(SetAside { origin, failures });
        self.refuse_all(slot, Refusal::SetAside);
        self.settle(slot, now);
    }

    /// Refuses everything that waits for a host.
    pub(super) fn refuse_all(&mut self, slot: u32, refusal: Refusal) {
        let ip = self.hosts.ip(slot);
        while let Some(candidate) = self.hosts.pop_front(slot) {
            self.refused.push_back((Job::at(ip, candidate), refusal));
        }
        while let Some(job) = self.leftover.pop_of(self.hosts.origin(slot)) {
            self.refused.push_back((job, refusal));
        }
    }

    /// Sends again what nobody will answer for.
    pub(super) fn give_up(&mut self, trans: TransId, now: Now) {
        self.stats.resent += 1;
        self.back(trans, Ending::GivenUp, now);
    }

    /// Sends again what a silent spider had. The spider may be dead though its connection stands: a host of which it has
    /// no page left need not wait for its credit.
    pub(super) fn spider_is_silent(&mut self, trans: TransId, now: Now) {
        let (slot, was_page) = (trans.host_slot(), self.doc_id(trans).is_some());
        self.give_up(trans, now);
        if !was_page || self.hosts[slot].pages_open() > 0 {
            return;
        }
        self.hosts[slot].spider = NO_SPIDER;
        if self.spiders.forget(&mut self.hosts, slot) {
            self.settle(slot, now);
        }
    }

    /// DONE for robots.txt: the host's pages may go out, are refused, or another hop is requested.
    pub fn robots(
        &mut self,
        trans: TransId,
        answer: &Robotstxt<'_>,
        report: &Report,
        now: Now,
    ) -> RobotsStep {
        let slot = trans.host_slot();
        let released = self.close(trans, Ending::Answered(report), now);
        let Some(Released { work: Work::Robots { hops }, ip, reached }) = released else {
            return RobotsStep::Late;
        };
        let step = self.learn_robots(slot, hops, answer, now);
        if reached && step != RobotsStep::Hop {
            self.hosts.reached(slot, ip);
        }
        self.freed(slot, now);
        step
    }

    /// Takes the answer to a hop that led to another host.
    pub fn robots_elsewhere(&mut self, origin: &str, answer: &Robotstxt<'_>, now: Now) -> RobotsStep {
        let Some(slot) = self.hosts.find(origin) else {
            return RobotsStep::Late;
        };
        let RobotsState::Elsewhere { hops, .. } = *self.hosts[slot].robots() else {
            return RobotsStep::Late;
        };
        let step = self.learn_robots(slot, hops, answer, now);
        self.freed(slot, now);
        step
    }

    fn learn_robots(&mut self, slot: u32, hops: u8, answer: &Robotstxt<'_>, now: Now) -> RobotsStep {
        let failing = self.hosts[slot].robots().failing();
        match self.robots_gate.read(answer, hops) {
            Meaning::Rules(mut rules) => {
                let sitemaps = rules.take_sitemaps();
                match self.hosts.rules_bytes() + rules.heap_bytes() > RULES_BYTES_MAX {
                    true => self.out_of_reach(slot, now),
                    false => self.know_rules(slot, Some(rules), sitemaps, now),
                }
            }
            Meaning::AllowAll => self.know_rules(slot, None, Vec::new(), now),
            Meaning::OutOfReach => self.out_of_reach(slot, now),
            Meaning::Redirect(url) if url.origin() == self.hosts.origin(slot) => {
                let next = NextHop { url, hops: hops + 1, failing };
                self.hosts.set_robots(slot, RobotsState::Hop(Box::new(next)));
                RobotsStep::Hop
            }
            Meaning::Redirect(url) => {
                let hops = hops + 1;
                self.hosts.set_robots(slot, RobotsState::Elsewhere { hops, failing });
                RobotsStep::Elsewhere { url, hops }
            }
        }
    }

    fn know_rules(
        &mut self,
        slot: u32,
        rules: Option<Robots>,
        sitemaps: Vec<Box<str>>,
        now: Now,
    ) -> RobotsStep {
        let crawl_delay_ms = rules.as_ref().and_then(Robots::crawl_delay_ms);
        let pace = &mut self.hosts[slot].pace;
        let before = *pace;
        pace.set_crawl_delay(crawl_delay_ms);
        pace.stretch(&self.config.host);
        if pace.is_notable(&before, &self.config.host, now) {
            self.journal_pace(slot, now);
        }
        self.learnt(slot, RobotsState::known(rules, now));
        RobotsStep::Known { crawl_delay_ms, sitemaps }
    }

    /// Disallows everything until the next attempt; after a month without an answer everything is allowed, until one comes.
    fn out_of_reach(&mut self, slot: u32, now: Now) -> RobotsStep {
        let robots = self.hosts[slot].robots().out_of_reach(now);
        if robots.is_known() {
            let step = self.know_rules(slot, None, Vec::new(), now);
            self.learnt(slot, robots);
            return step;
        }
        self.stats.back_offs.robots += 1;
        self.learnt(slot, robots);
        self.refuse_all(slot, Refusal::RobotsUnreachable);
        RobotsStep::Unreachable
    }

    fn learnt(&mut self, slot: u32, robots: RobotsState) {
        self.journal.robots(self.hosts.origin(slot), &robots);
        self.hosts.set_robots(slot, robots);
    }
}
