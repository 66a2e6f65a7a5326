use super::niceness::{Niceness, Pace};
use crate::base::Now;
use crate::proto::lines::{Job, TransId};
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;
use std::collections::VecDeque;
use std::net::IpAddr;

/// One row of the table: a host, its waiting URLs and its active window.
pub(super) struct Host {
    /// Scheme, name and port.
    pub origin: Box<str>,
    /// Its address, as a slot of the table of addresses.
    pub ip: u32,
    pub queue: VecDeque<Job>,
    /// What is with a spider; at most `req_host_concurrent` places.
    pub active: Vec<Active>,
    pub robots: RobotsState,
    pub pace: Pace,
    pub place: Place,
    /// Times in a row that robots.txt could not be had.
    pub robots_failures: u8,
    /// Has nothing to do; counted as idle.
    pub resting: bool,
    /// On the list of idle rows, perhaps from an earlier rest.
    pub idle_listed: bool,
    /// Moves on when the row is given to another host, so that its timers go stale.
    pub generation: u32,
}

/// A place in the active window.
pub(super) struct Active {
    /// Moves on with every hand-out.
    pub generation: u32,
    pub work: Work,
    /// When it was handed out, then when it was sent.
    pub asked_at: Now,
    pub sent: bool,
    pub last_word: Now,
}

pub(super) enum Work {
    Free,
    Page(Job),
    /// /robots.txt, or where it redirected to; so many hops.
    Robots {
        hops: u8,
    },
}

/// What is known of a host's robots rules.
pub(super) enum RobotsState {
    Unknown,
    /// The request is with a spider, or a hop of it is to be asked for next.
    Asked {
        next: Option<Box<(CrawlUrl, u8)>>,
    },
    Known {
        rules: Robots,
        until: Now,
    },
    /// Could not be learnt: everything is disallowed until then, when it is tried again.
    Unreachable {
        until: Now,
    },
}

/// Where a host is kept while it waits for its turn. It is in one place only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing can be sent: no URL, window full, or robots asked for.
    Rest,
    /// In the timer wheel, until its pause is over.
    Timer,
    /// Behind other hosts of its address.
    Address,
    Ready,
}

impl Host {
    /// A host that may be asked from `due` on.
    pub fn new(origin: &str, ip: u32, due: Now) -> Host {
        Host {
            origin: origin.into(),
            ip,
            queue: VecDeque::new(),
            active: Vec::new(),
            robots: RobotsState::Unknown,
            pace: Pace::from(due),
            place: Place::Rest,
            robots_failures: 0,
            resting: true,
            idle_listed: false,
            generation: 0,
        }
    }

    /// Gives the row to another host. The window keeps its generations, so that late answers stay late.
    pub fn become_host(&mut self, origin: &str, ip: u32, due: Now) {
        let fresh = Host::new(origin, ip, due);
        let active = std::mem::take(&mut self.active);
        *self = Host { active, generation: self.generation.wrapping_add(1), ..fresh };
    }

    /// Whether something of this host waits that could go out if time and address allow. The robots rules are
    /// asked for alone: nothing else is open beside them.
    pub fn wants_to_send(&self, rules: &Niceness, now: Now) -> bool {
        let robots_due = match &self.robots {
            RobotsState::Unknown | RobotsState::Asked { next: Some(_) } => true,
            RobotsState::Known { until, .. } | RobotsState::Unreachable { until } => *until <= now,
            RobotsState::Asked { next: None } => return false,
        };
        let room = if robots_due { 1 } else { usize::from(rules.concurrent) };
        !self.queue.is_empty() && self.open() < room && !(self.has_unsent() && self.pace.gap_us(rules) > 0)
    }

    /// A request that is not on the wire yet, because its connection is being made: nobody knows when the pause
    /// after it will begin, so the next one waits.
    pub fn has_unsent(&self) -> bool {
        self.active.iter().any(|active| !active.sent && !matches!(active.work, Work::Free))
    }

    pub fn open(&self) -> usize {
        self.active.iter().filter(|active| !matches!(active.work, Work::Free)).count()
    }

    /// Pages in the row: waiting and with a spider.
    pub fn pages(&self) -> usize {
        self.queue.len() + self.active.iter().filter(|active| matches!(active.work, Work::Page(_))).count()
    }

    /// Puts work into a free place of the window and names it.
    pub fn hand_out(&mut self, slot: u32, work: Work, now: Now) -> TransId {
        let free = self.active.iter().position(|active| matches!(active.work, Work::Free));
        let place = free.unwrap_or_else(|| {
            // One place is the usual window; a vector would make room for four.
            self.active.reserve_exact(1);
            self.active.push(Active {
                generation: 0,
                work: Work::Free,
                asked_at: now,
                sent: false,
                last_word: now,
            });
            self.active.len() - 1
        });
        let active = &mut self.active[place];
        active.generation = active.generation.wrapping_add(1) & 0xff_ffff;
        active.work = work;
        active.asked_at = now;
        active.sent = false;
        active.last_word = now;
        TransId::new(slot, place as u8, active.generation)
    }

    pub fn active_ref(&self, trans: TransId) -> Option<&Active> {
        self.active
            .get(usize::from(trans.active_slot()))
            .filter(|active| active.generation == trans.generation() && !matches!(active.work, Work::Free))
    }

    pub fn active_mut(&mut self, trans: TransId) -> Option<&mut Active> {
        self.active
            .get_mut(usize::from(trans.active_slot()))
            .filter(|active| active.generation == trans.generation() && !matches!(active.work, Work::Free))
    }
}

/// One address and the hosts that share it.
pub(super) struct Address {
    pub ip: IpAddr,
    pub pace: Pace,
    pub open: u32,
    /// Of those, the ones that are not on the wire yet.
    pub unsent: u32,
    /// Rows that use this address.
    pub hosts: u32,
    /// A host of this address is on the ready list; the others wait until it was sent.
    pub claimed: bool,
    pub timer: bool,
    pub waiting: VecDeque<u32>,
}

impl Address {
    pub fn new(ip: IpAddr, due: Now) -> Address {
        Address {
            ip,
            pace: Pace::from(due),
            open: 0,
            unsent: 0,
            hosts: 0,
            claimed: false,
            timer: false,
            waiting: VecDeque::new(),
        }
    }

    /// Whether its hosts may have another request out, time aside.
    pub fn has_room(&self, rules: &Niceness) -> bool {
        self.open < u32::from(rules.concurrent) && !(self.unsent > 0 && self.pace.gap_us(rules) > 0)
    }
}
