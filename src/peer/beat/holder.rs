//! A node's own beat: opened once, renewed from then on.

use super::{Beat, Timing};
use crate::base::Now;
use crate::peer::register::{Change, Outcome};

/// What was asked of the register.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Read,
    Swap { to: Beat, sent: Now },
}

/// Holds the right of a node. It is open for one generation; once that is sealed, or anybody else's, it opens the next.
#[derive(Clone, Debug)]
pub struct Holder {
    timing: Timing,
    /// The beat of this process, as it is in the register as far as is known.
    open: Option<Beat>,
    /// What the register holds, for who is to open a generation.
    held: Option<Option<Beat>>,
    asked: Option<Asked>,
    /// When the beat after `open` was sent first: it may be in the register, if no answer came.
    tried_at: Option<Now>,
    /// Read before anything else.
    unsure: bool,
    ask_at: Now,
    right_until: Now,
}

impl Holder {
    pub fn new(timing: Timing) -> Holder {
        Holder {
            timing,
            open: None,
            held: None,
            asked: None,
            tried_at: None,
            unsure: false,
            ask_at: Now::ZERO,
            right_until: Now::ZERO,
        }
    }

    /// The generation that is open, if one is.
    pub fn generation(&self) -> Option<u32> {
        self.open.map(|beat| beat.generation)
    }

    /// The last beat that is known to be in the register: what is told to others.
    pub fn beat(&self) -> Option<Beat> {
        self.open
    }

    /// When the right ends, whatever else happens: so long after the sending of the last renewal that succeeded.
    pub fn right_until(&self) -> Now {
        self.right_until
    }

    pub fn next_due(&self) -> Option<Now> {
        self.asked.is_none().then_some(self.ask_at)
    }

    /// What is to be asked of the register: one thing at a time.
    pub fn tick(&mut self, now: Now) -> Option<Change> {
        if self.asked.is_some() || now < self.ask_at {
            return None;
        }
        let (from, to) = match (self.open, self.held) {
            _ if self.unsure => return Some(self.read()),
            (Some(beat), _) => {
                self.tried_at.get_or_insert(now);
                (beat.value(), beat.renewed())
            }
            (None, None) => return Some(self.read()),
            (None, Some(held)) => (held.and_then(Beat::value), Beat::of_next_generation(held)),
        };
        self.asked = Some(Asked::Swap { to, sent: now });
        Some(Change::Swap { expect: from, new: to.value() })
    }

    fn read(&mut self) -> Change {
        self.asked = Some(Asked::Read);
        Change::Read
    }

    /// Takes what became of what was asked. True if a generation has ended: everything that was asked for under it stops.
    pub fn answered(&mut self, outcome: &Outcome, now: Now) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        match (asked, outcome) {
            (Asked::Swap { to, sent }, Outcome::Swapped) => {
                self.renewed(to, sent);
                false
            }
            (_, Outcome::Read(value) | Outcome::Differs(value)) => self.found(Beat::of(value), now),
            _ => {
                self.unsure = true;
                self.ask_at = now.plus_us(self.timing.again_us());
                false
            }
        }
    }

    fn renewed(&mut self, to: Beat, sent: Now) {
        self.open = Some(to);
        self.tried_at = None;
        self.unsure = false;
        self.right_until = self.right_until.max(sent.plus_us(self.timing.hold_us));
        self.ask_at = sent.plus_us(self.timing.beat_us);
    }

    fn found(&mut self, held: Option<Beat>, now: Now) -> bool {
        self.unsure = false;
        self.ask_at = now;
        match (self.open, held) {
            (Some(open), Some(held)) if held == open => false,
            // Only this process renews its generation, so it was a swap whose answer was lost: the first of them, at worst.
            (Some(open), Some(held)) if held == open.renewed() && self.tried_at.is_some() => {
                self.renewed(held, self.tried_at.unwrap_or(Now::ZERO));
                false
            }
            (open, held) => {
                // A generation whose opening was not confirmed is left alone: it may be the process before that sent it.
                self.held = Some(held);
                self.open = None;
                self.tried_at = None;
                self.right_until = Now::ZERO;
                open.is_some()
            }
        }
    }
}
