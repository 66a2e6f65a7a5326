use crate::base::{Now, TimerWheel};

/// One timer per fetch slot, not per fetch: it fires, its owner checks the fetch in the slot, and it is set again.
pub(super) struct SlotTimers {
    wheel: TimerWheel<u32>,
    /// When the timer of a slot fires; `NEVER` if it has none.
    armed: Vec<Now>,
}

impl SlotTimers {
    pub fn new(now: Now) -> SlotTimers {
        SlotTimers { wheel: TimerWheel::new(now), armed: Vec::new() }
    }

    /// Makes sure that the timer of a slot fires no later than `due`.
    pub fn arm(&mut self, slot: usize, due: Now) {
        if self.armed.len() <= slot {
            self.armed.resize(slot + 1, Now::NEVER);
        }
        if due < self.armed[slot] {
            self.armed[slot] = due;
            self.wheel.insert(due, slot as u32);
        }
    }

    /// Appends the slots whose timers have fired. Returns how late the first of them is: somebody was to call this then.
    pub fn fire(&mut self, now: Now, fired: &mut Vec<u32>) -> u64 {
        let (armed, mut late_us) = (&mut self.armed, 0);
        self.wheel.advance(now, |slot| {
            let at = &mut armed[slot as usize];
            if *at <= now {
                late_us = late_us.max(now.since_us(*at));
                *at = Now::NEVER;
            }
            fired.push(slot);
        });
        late_us
    }

    pub fn next_due(&self) -> Option<Now> {
        self.wheel.next_due()
    }
}
