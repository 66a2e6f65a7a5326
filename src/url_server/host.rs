use super::host_names::HostName;
use super::niceness::{Niceness, Pace};
use super::order::RemoteRobots;
use super::url_arena::Queue;
use crate::base::Now;
use crate::proto::lines::{Candidate, TransId};
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;

/// One row of the table: a host, its waiting URLs and its active window. A waiting host is this and its name.
pub(super) struct Host {
    /// Scheme, name and port.
    pub name: HostName,
    pub pace: Pace,
    pub robots: RobotsState,
    /// What is with a spider. A host that has nothing there has no window.
    pub window: Option<Box<Window>>,
    pub queue: Queue,
    /// Its address, as a slot of the table of addresses.
    pub ip: u32,
    /// The host behind this one at their address.
    pub next_at_address: u32,
    /// Moves on with every hand-out, so that a late answer is recognised.
    pub generation: u32,
    /// The spider its work goes to; `NO_SPIDER` before the first.
    pub spider: u16,
    pub waits_in: WaitsIn,
    flags: u8,
}

/// Has nothing to do; counted as idle.
pub(super) const RESTING: u8 = 1;
/// On the list of idle rows, perhaps from an earlier rest.
pub(super) const IDLE_LISTED: u8 = 2;
/// Robots rules of another host redirected here, and wait to be asked for.
pub(super) const HAS_REMOTE_ROBOTS: u8 = 4;
/// It has several addresses, which are in the table of fallback.
pub(super) const MULTI_ADDRESS: u8 = 8;

const _: () = assert!(size_of::<Host>() == 80, "a million hosts wait in eighty megabytes");

pub(super) const NO_SPIDER: u16 = u16::MAX;

/// The active window: at most `req_host_concurrent` places.
#[derive(Default)]
pub(super) struct Window {
    pub places: Vec<Active>,
}

/// A place in the active window.
pub(super) struct Active {
    pub generation: u32,
    pub work: Work,
    /// When it was handed out, then when it was sent.
    pub asked_at: Now,
    pub sent: bool,
    pub last_word: Now,
    /// The spider that has it.
    pub spider: u16,
    /// Its place in the list of what is open.
    pub open_key: u32,
    /// The address it was sent to; the host may have moved on since.
    pub ip: u32,
    /// Its connection is not waited for long, as there are other addresses.
    pub more: bool,
    /// The host's pace before it: if nothing is sent, it was not asked.
    pub before: Pace,
}

pub(super) enum Work {
    Free,
    Page(Candidate),
    /// /robots.txt, or where it redirected to; so many hops.
    Robots {
        hops: u8,
    },
    /// The robots rules of another host, which redirected here.
    RemoteRobots(Box<RemoteRobots>),
}

/// What is known of a host's robots rules. Times are whole seconds, as they are hours away.
pub(super) enum RobotsState {
    Unknown,
    /// The request is with a spider.
    Asked,
    /// They are somewhere else on this host: to be asked for next, after so many hops.
    Hop(Box<(CrawlUrl, u8)>),
    /// They are on another host, and asked for there; so many hops.
    Elsewhere {
        hops: u8,
    },
    /// `None`: everything is allowed.
    Known {
        until_s: u32,
        rules: Option<Box<Robots>>,
    },
    /// Could not be learnt for so many times, the first of them `since_s` (before the node started, if
    /// negative): everything is disallowed until then, when it is tried again.
    Unreachable {
        until_s: u32,
        since_s: i32,
        failures: u8,
    },
}

/// Where a host is kept while it waits for its turn. It is in one place only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsIn {
    /// Nothing can be sent: no URL, window full, or robots asked for.
    Rest,
    /// In the timer wheel, until its pause is over.
    Timer,
    /// Behind other hosts of its address.
    Address,
    /// Until a spider has room for it.
    Spider,
    Ready,
}

impl Host {
    /// A host that may be asked from `due` on.
    pub fn new(name: HostName, ip: u32, due: Now, generation: u32) -> Host {
        Host {
            name,
            pace: Pace::from(due),
            robots: RobotsState::Unknown,
            window: None,
            queue: Queue::default(),
            ip,
            next_at_address: u32::MAX,
            generation,
            spider: NO_SPIDER,
            waits_in: WaitsIn::Rest,
            flags: RESTING,
        }
    }

    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sets or clears a flag, and says what it was.
    pub fn set(&mut self, flag: u8, on: bool) -> bool {
        let was = self.is(flag);
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
        was
    }

    /// Whether something of this host waits that could go out if time and address allow. The robots rules are
    /// asked for alone: nothing else is open beside them.
    pub fn wants_to_send(&self, rules: &Niceness, now: Now) -> bool {
        let open = self.open();
        let unsent = self.has_unsent() && self.pace.gap_us(rules) > 0;
        if self.is(HAS_REMOTE_ROBOTS) && open < usize::from(rules.concurrent) && !unsent {
            return true;
        }
        let room = match &self.robots {
            RobotsState::Unknown | RobotsState::Hop(_) => 1,
            RobotsState::Asked | RobotsState::Elsewhere { .. } => return false,
            RobotsState::Known { until_s, .. } if is_past(*until_s, now) => 1,
            RobotsState::Unreachable { .. } => 1,
            RobotsState::Known { .. } => usize::from(rules.concurrent),
        };
        !self.queue.is_empty() && open < room && !unsent
    }

    pub fn places(&self) -> &[Active] {
        self.window.as_ref().map_or(&[], |window| &window.places)
    }

    /// A request that is not on the wire yet, because its connection is being made: nobody knows when the pause
    /// after it will begin, so the next one waits.
    pub fn has_unsent(&self) -> bool {
        self.places().iter().any(|active| !active.sent && !matches!(active.work, Work::Free))
    }

    pub fn open(&self) -> usize {
        self.places().iter().filter(|active| !matches!(active.work, Work::Free)).count()
    }

    /// Pages with a spider.
    pub fn pages_open(&self) -> usize {
        self.places().iter().filter(|active| matches!(active.work, Work::Page(_))).count()
    }

    /// Pages in the row: waiting and with a spider.
    pub fn pages(&self) -> usize {
        self.queue.len() + self.pages_open()
    }

    /// Puts work into a free place of the window and names it.
    pub fn hand_out(
        &mut self,
        slot: u32,
        work: Work,
        spider: u16,
        more: bool,
        open_key: u32,
        now: Now,
    ) -> TransId {
        self.generation = self.generation.wrapping_add(1) & 0xff_ffff;
        let generation = self.generation;
        let active = Active {
            generation,
            work,
            asked_at: now,
            sent: false,
            last_word: now,
            spider,
            open_key,
            ip: self.ip,
            more,
            before: self.pace,
        };
        let places = &mut self.window.get_or_insert_default().places;
        let free = places.iter().position(|active| matches!(active.work, Work::Free));
        let place = match free {
            Some(place) => {
                places[place] = active;
                place
            }
            None => {
                // One place is the usual window; a vector would make room for four.
                places.reserve_exact(1);
                places.push(active);
                places.len() - 1
            }
        };
        TransId::new(slot, place as u8, generation)
    }

    pub fn active_ref(&self, trans: TransId) -> Option<&Active> {
        self.places()
            .get(usize::from(trans.active_slot()))
            .filter(|active| active.generation == trans.generation() && !matches!(active.work, Work::Free))
    }

    pub fn active_mut(&mut self, trans: TransId) -> Option<&mut Active> {
        self.window
            .as_mut()?
            .places
            .get_mut(usize::from(trans.active_slot()))
            .filter(|active| active.generation == trans.generation() && !matches!(active.work, Work::Free))
    }
}

/// Whether a second has come.
pub(super) fn is_past(at_s: u32, now: Now) -> bool {
    u64::from(at_s) * 1_000_000 <= now.us()
}

/// The last whole second before `now` plus so many microseconds have passed.
pub(super) fn second_before(now: Now, us: u64) -> u32 {
    (now.plus_us(us).us() / 1_000_000).min(u64::from(u32::MAX)) as u32
}

/// The first whole second by which `now` plus so many microseconds have passed.
pub(super) fn second_after(now: Now, us: u64) -> u32 {
    now.plus_us(us).us().div_ceil(1_000_000).min(u64::from(u32::MAX)) as u32
}
