//! What an answer, or its absence, means for the pauses of its host and address.

use super::host::{NO_SPIDER, WaitsIn, Work};
use super::host_memory::{write_address, write_pace};
use super::niceness::{Niceness, Pace, Report};
use super::order::Refusal;
use super::server::{SPARE_WINDOWS, UrlServer};
use crate::base::Now;
use crate::proto::lines::{Job, TransId};
use crate::proto::record::Fault;
use std::net::IpAddr;

/// How a hand-out ended.
#[derive(Clone, Copy)]
pub(super) enum Ending<'a> {
    Answered(&'a Report),
    /// Nobody has answered, so nothing is known that would change a pause.
    Unknown,
    /// No connection was made: the host was not asked.
    NotSent,
}

/// What an open transaction was about.
pub(super) struct Taken {
    pub work: Work,
    /// Where it was sent.
    pub ip: IpAddr,
    /// A connection was made.
    pub reached: bool,
}

impl UrlServer {
    /// Takes the work of an open transaction and paces its host and address by the answer, if there was one. The caller
    /// puts the row in order and then calls `freed`.
    pub(super) fn take_open(&mut self, trans: TransId, ending: Ending<'_>, now: Now) -> Option<Taken> {
        let slot = trans.host_slot();
        let Some(host) = self.table.rows.get_mut(slot as usize) else {
            self.stats.late += 1;
            return None;
        };
        let Some(active) = host.active_mut(trans) else {
            self.stats.late += 1;
            return None;
        };
        let work = std::mem::replace(&mut active.work, Work::Free);
        let (sent, slot_of_ip) = (active.sent, active.ip);
        let (before, asked_at) = (active.before, active.asked_at);
        self.open.remove(active.open_key as usize);
        let address = self.addresses.get_mut(slot_of_ip);
        address.open -= 1;
        address.unsent -= u8::from(!sent);
        match ending {
            _ if sent => {}
            Ending::NotSent => {
                // The address keeps its pause: whoever cannot be connected to is not to be tried more often for it.
                let mut asked = before;
                asked.asked(&self.config.host, asked_at);
                if host.pace == asked {
                    host.pace = before;
                }
            }
            Ending::Answered(_) | Ending::Unknown => {
                // An answer may overtake the news that the request is out; it was sent no later than now.
                host.pace.asked(&self.config.host, now);
                address.pace.asked(&self.config.ip, now);
            }
        }
        if host.open() == 0
            && let Some(mut window) = host.window.take()
            && self.spare_windows.len() < SPARE_WINDOWS
        {
            window.places.clear();
            self.spare_windows.push(window);
        }
        let ip = address.ip;
        let Ending::Answered(report) = ending else {
            self.left_open(slot, slot_of_ip, now);
            return Some(Taken { work, ip, reached: false });
        };
        let reached = report.status != 0 || (sent && !report.result.is_unconnected());
        // Retry-After was said by this host, for itself; its neighbours need not wait for it.
        let neighbours = Report { retry_after_s: None, ..*report };
        let before = address.pace;
        address.pace.answered(&self.config.ip, &neighbours, now);
        if is_notable(&before, &address.pace, &self.config.ip, now) {
            write_address(&mut self.journal, address.ip, &address.pace, self.config.wall);
        }
        // A robots.txt that leads on is not the end of it: a host that lets go after each hop would be asked for ever.
        if reached && !matches!(work, Work::Robots { .. }) {
            self.reached(slot, ip);
        }
        self.left_open(slot, slot_of_ip, now);
        self.pace_host(slot, report, now);
        Some(Taken { work, ip, reached })
    }

    /// Something of a host is no longer open at an address where it does not stand any more.
    fn left_open(&mut self, slot: u32, address: u32, now: Now) {
        if self.table.rows[slot as usize].ip != address {
            self.wake_address(address, now);
            self.free_address(address, now);
        }
    }

    /// Paces a host by an answer, or by there being none, and notes what must not be forgotten.
    pub(super) fn pace_host(&mut self, slot: u32, report: &Report, now: Now) {
        let host = &mut self.table.rows[slot as usize];
        let before = host.pace;
        host.pace.answered(&self.config.host, report, now);
        if report.status == 0
            && report.result.fault() == Fault::Network
            && host.pace.failed(self.config.host_failures_max, now)
        {
            self.set_aside(slot, now);
        }
        let pace = &self.table.rows[slot as usize].pace;
        let asked_to_wait = report.retry_after_s.is_some_and(|seconds| seconds > 0);
        if asked_to_wait || is_notable(&before, pace, &self.config.host, now) {
            write_pace(&mut self.journal, self.table.origin(slot), pace, self.config.wall);
        }
    }

    /// A host has done nothing but fail: what waits for it is refused until it gets another chance.
    pub(super) fn set_aside(&mut self, slot: u32, now: Now) {
        self.stats.set_aside += 1;
        self.notices.push(super::host_memory::set_aside_line(
            self.table.origin(slot),
            &self.table.rows[slot as usize].pace,
        ));
        self.refuse_all(slot, Refusal::SetAside);
        self.settle(slot, now);
    }

    /// Refuses everything that waits for a host.
    pub(super) fn refuse_all(&mut self, slot: u32, refusal: Refusal) {
        let host = &mut self.table.rows[slot as usize];
        let ip = self.addresses.get(host.ip).ip;
        while let Some(candidate) = self.urls.pop_front(&mut host.queue) {
            self.refused.push_back((Job::at(ip, candidate), refusal));
        }
        while let Some(job) = self.leftover.pop_of(self.table.names.get(host.name)) {
            self.refused.push_back((job, refusal));
        }
    }

    /// Sends again what a silent spider had.
    pub(super) fn sweep(&mut self, now: Now) {
        let silence_us = self.config.spider_silence_us;
        let silent = |trans: &TransId| {
            self.active(*trans).is_some_and(|active| now.since_us(active.last_word) >= silence_us)
        };
        let mut lost: Vec<TransId> = self.open.iter().map(|(_, trans)| *trans).filter(silent).collect();
        lost.sort_unstable();
        for trans in lost {
            let was_page = self.doc_id(trans).is_some();
            self.stats.resent += 1;
            self.put_back(trans, now);
            if was_page {
                self.unbind(trans.host_slot(), now);
            }
        }
    }

    /// A spider that fell silent may be dead though its connection stands: a host of which it has nothing left need
    /// not wait for its credit.
    fn unbind(&mut self, slot: u32, now: Now) {
        let host = &mut self.table.rows[slot as usize];
        if host.pages_open() > 0 {
            return;
        }
        host.spider = NO_SPIDER;
        if host.waits_in == WaitsIn::Spider {
            host.waits_in = WaitsIn::Rest;
            self.spiders.forget(slot);
            self.settle(slot, now);
        }
    }
}

/// Whether a pause changed in a way that must outlive this process: more than a plain gap, or back to one.
pub(super) fn is_notable(before: &Pace, after: &Pace, rules: &Niceness, now: Now) -> bool {
    let far_ahead = after.due().since_us(now) > rules.gap_us.max(1_000);
    let slate_changed = (after.penalty_us > 0) != (before.penalty_us > 0)
        || after.penalty_us > before.penalty_us
        || after.failures() != before.failures();
    // The pause after the next request will be this long, though the one after the last may be over.
    let slower = after.response_pause_us > before.response_pause_us
        && u64::from(after.response_pause_us) > rules.gap_us;
    far_ahead || slate_changed || slower
}
