use super::host_names::HostName;
use super::robots_state::RobotsState;
use super::url_arena::Queue;
use super::window::{Active, Window};
use crate::base::Now;
use crate::proto::job::TransId;
use crate::url_server::niceness::{Niceness, Pace};

/// One row of the table: a host, its waiting URLs and its active window. A waiting host is this and its name.
pub(crate) struct Host {
    /// Scheme, name and port.
    pub(super) name: HostName,
    pub pace: Pace,
    pub(super) robots: RobotsState,
    /// Requests that are with a spider. A host that has none has no window.
    pub(super) window: Option<Box<Window>>,
    pub(super) queue: Queue,
    /// Its address, as a slot of the table of addresses.
    pub(super) address: u32,
    /// The host behind this one at their address.
    pub(super) next_at_address: u32,
    /// Moves on with every hand-out, so that a late answer is recognised.
    pub(super) generation: u32,
    /// The spider its pages go to; `NO_SPIDER` before the first.
    pub spider: u16,
    waits_in: WaitsIn,
    flags: u8,
}

/// Has nothing to do; counted as idle.
pub(crate) const RESTING: u8 = 1;
/// On the list of idle rows, perhaps from an earlier rest.
pub(super) const IDLE_LISTED: u8 = 2;
/// The robots rules of another host redirected here, and wait to be requested.
pub(crate) const HAS_REMOTE_ROBOTS: u8 = 4;
/// The host has several addresses, which are in the table of fallbacks.
pub(super) const MULTI_ADDRESS: u8 = 8;

const _: () = assert!(size_of::<Host>() == 80, "a million hosts wait in eighty megabytes");

pub(crate) const NO_SPIDER: u16 = u16::MAX;

/// The queue that a host is in while it waits for its turn. It is in one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsIn {
    /// In none: no URL, window full, or robots rules requested.
    Rest,
    /// The timer wheel, until its pause is over.
    Timer,
    /// Nowhere, until it is lent to this node.
    Loan,
    /// The line of hosts at its address.
    Address,
    /// The line of hosts whose spider has no credit.
    Spider,
    /// The list of hosts that may send.
    Ready,
}

impl Host {
    /// A host that may be asked from `due` on.
    pub(super) fn new(name: HostName, address: u32, due: Now, generation: u32) -> Host {
        Host {
            name,
            pace: Pace::from(due),
            robots: RobotsState::Unknown,
            window: None,
            queue: Queue::default(),
            address,
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

    /// Sets or clears a flag, and returns what it was.
    pub fn set(&mut self, flag: u8, on: bool) -> bool {
        let was = self.is(flag);
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
        was
    }

    pub fn address(&self) -> u32 {
        self.address
    }

    pub fn robots(&self) -> &RobotsState {
        &self.robots
    }

    pub fn waits_in(&self) -> WaitsIn {
        self.waits_in
    }

    /// Puts a host that waits nowhere into a queue.
    pub fn enter(&mut self, queue: WaitsIn) {
        debug_assert_eq!(self.waits_in, WaitsIn::Rest);
        self.waits_in = queue;
    }

    /// Takes a host out of the queue that it is in.
    pub fn leave(&mut self, queue: WaitsIn) {
        debug_assert_eq!(self.waits_in, queue);
        self.waits_in = WaitsIn::Rest;
    }

    pub(super) fn next_generation(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1) & 0xff_ffff;
        self.generation
    }

    /// Whether something of this host waits that could go out if time and address allow. The robots rules are
    /// requested alone: nothing else is open beside them.
    pub fn wants_to_send(&self, rules: &Niceness, now: Now) -> bool {
        let open = self.open();
        let unsent = self.has_unsent() && self.pace.gap_us(rules) > 0;
        if self.is(HAS_REMOTE_ROBOTS) && open < usize::from(rules.concurrent) && !unsent {
            return true;
        }
        let room = match &self.robots {
            RobotsState::Asked | RobotsState::Elsewhere { .. } => return false,
            robots if robots.is_known() && !robots.is_expired(now) => usize::from(rules.concurrent),
            _ => 1,
        };
        !self.queue.is_empty() && open < room && !unsent
    }

    /// The requests that are with a spider.
    pub fn active(&self) -> impl Iterator<Item = &Active> {
        let places = self.window.as_ref().map_or(&[][..], |window| window.places());
        places.iter().filter_map(Option::as_ref)
    }

    /// Makes the pauses longer that hold again if a request is not sent.
    pub(super) fn stretch_window(&mut self, rules: &Niceness, asked_by: Now) {
        for active in self.window.iter_mut().flat_map(|window| window.active_mut()) {
            active.before.put_off(asked_by.plus_us(rules.gap_us));
            active.before.stretch(rules);
        }
    }

    /// Whether a request is not on the wire yet, because its connection is being made: the start of the pause after it
    /// is not known, so the next one waits.
    fn has_unsent(&self) -> bool {
        self.active().any(|active| !active.sent)
    }

    pub fn open(&self) -> usize {
        self.active().count()
    }

    /// Pages with a spider.
    pub fn pages_open(&self) -> usize {
        self.active().filter(|active| active.is_page()).count()
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Pages in the row: waiting and with a spider.
    pub fn pages(&self) -> usize {
        self.queue.len() + self.pages_open()
    }

    /// Whether nothing waits for the host and nothing is with a spider: such a row may go to another host.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open() == 0 && !self.is(HAS_REMOTE_ROBOTS)
    }

    pub fn active_ref(&self, trans: TransId) -> Option<&Active> {
        self.window.as_ref()?.get(trans)
    }

    pub fn active_mut(&mut self, trans: TransId) -> Option<&mut Active> {
        self.window.as_mut()?.get_mut(trans)
    }
}
