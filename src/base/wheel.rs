use super::Now;

/// A hierarchical timer wheel: six levels of 64 slots, one millisecond a tick, two years of range.
///
/// Inserting and firing cost a few nanoseconds whatever the number of timers. There is no cancelling: what fires
/// is a key, and its owner looks whether it still means anything. A timer never fires early; it fires within one
/// tick after its time.
///
/// ```text
///   level 0   64 × 1 ms      ▮▯▯▮▯…      entries fire when their slot comes up
///   level 1   64 × 64 ms     ▯▮▯▯▯…      entries fall one level when theirs does
///   …
///   level 5   64 × 12.4 days
/// ```
pub struct TimerWheel<T> {
    levels: Levels<(u64, T)>,
}

/// The same wheel for rows of a table that know their own time: an entry is the row's number alone, four bytes.
///
/// A row may put its time off while it is in here; it then goes on to its new place instead of firing.
pub struct RowWheel {
    levels: Levels<u32>,
}

/// The slots of a wheel, whatever an entry is.
struct Levels<E> {
    /// All ticks up to and including this one have fired.
    elapsed: u64,
    levels: Vec<Level<E>>,
    len: usize,
    /// Taken apart while a slot is emptied, so that slots keep their capacity.
    scratch: Vec<E>,
}

struct Level<E> {
    /// Bit i is set while slot i holds anything.
    occupied: u64,
    slots: Vec<Vec<E>>,
}

const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const TICK_US: u64 = 1_000;
const TICKS_MAX: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;

/// A slot that grew past this gives its memory back once it has fired.
const SLOT_KEEP: usize = 1_024;

impl<T: Copy> TimerWheel<T> {
    pub fn new(now: Now) -> TimerWheel<T> {
        TimerWheel { levels: Levels::new(now) }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.levels.len
    }

    pub fn insert(&mut self, at: Now, item: T) {
        let tick = self.levels.tick_of(at);
        self.levels.insert(tick, (tick, item));
    }

    /// When the wheel wants to be advanced next: no later than its first timer.
    pub fn next_due(&self) -> Option<Now> {
        self.levels.next_due()
    }

    /// Fires everything due at `now`.
    pub fn advance(&mut self, now: Now, mut fire: impl FnMut(T)) {
        self.levels.advance(now, |&(tick, _)| tick, |(_, item)| fire(item));
    }
}

impl RowWheel {
    pub fn new(now: Now) -> RowWheel {
        RowWheel { levels: Levels::new(now) }
    }

    pub fn insert(&mut self, at: Now, row: u32) {
        let tick = self.levels.tick_of(at);
        self.levels.insert(tick, row);
    }

    /// As [`TimerWheel::next_due`].
    pub fn next_due(&self) -> Option<Now> {
        self.levels.next_due()
    }

    /// Fires the rows whose time, told by `due`, has come.
    pub fn advance(&mut self, now: Now, due: impl Fn(u32) -> Now, fire: impl FnMut(u32)) {
        let elapsed = self.levels.elapsed;
        let tick = |at: Now| at.us().div_ceil(TICK_US).min(elapsed.saturating_add(TICKS_MAX / 2));
        self.levels.advance(now, |&row| tick(due(row)), fire);
    }
}

impl<E: Copy> Levels<E> {
    fn new(now: Now) -> Levels<E> {
        let level = || Level { occupied: 0, slots: (0..1 << SLOT_BITS).map(|_| Vec::new()).collect() };
        Levels {
            elapsed: now.us() / TICK_US,
            levels: (0..LEVELS).map(|_| level()).collect(),
            len: 0,
            scratch: Vec::new(),
        }
    }

    /// Rounded up: a timer may be late by less than a tick, never early.
    fn tick_of(&self, at: Now) -> u64 {
        at.us().div_ceil(TICK_US).clamp(self.elapsed + 1, self.elapsed.saturating_add(TICKS_MAX / 2))
    }

    fn insert(&mut self, tick: u64, entry: E) {
        self.place(tick, entry);
        self.len += 1;
    }

    fn next_due(&self) -> Option<Now> {
        let (_, _, tick) = self.next_slot()?;
        Some(Now::from_us(tick * TICK_US))
    }

    fn advance(&mut self, now: Now, tick_of: impl Fn(&E) -> u64, mut fire: impl FnMut(E)) {
        let target = now.us() / TICK_US;
        while let Some((level, slot, tick)) = self.next_slot().filter(|&(_, _, tick)| tick <= target) {
            self.elapsed = tick;
            let mut entries = std::mem::take(&mut self.scratch);
            std::mem::swap(&mut entries, &mut self.levels[level].slots[slot]);
            self.levels[level].occupied &= !(1 << slot);
            for entry in entries.drain(..) {
                let at = tick_of(&entry);
                if at <= tick {
                    self.len -= 1;
                    fire(entry);
                } else {
                    self.place(at, entry);
                }
            }
            if entries.capacity() > SLOT_KEEP {
                entries = Vec::new();
            }
            self.scratch = entries;
        }
        self.elapsed = self.elapsed.max(target);
    }

    fn place(&mut self, tick: u64, entry: E) {
        // The level is that of the highest bit in which the tick differs from the present.
        let differing = (tick ^ self.elapsed) | 1;
        let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
        let level = level.min(LEVELS - 1);
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize & 63;
        self.levels[level].slots[slot].push(entry);
        self.levels[level].occupied |= 1 << slot;
    }

    /// The next slot to empty, and the tick at which its time begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        for (index, level) in self.levels.iter().enumerate() {
            if level.occupied == 0 {
                continue;
            }
            let shift = SLOT_BITS * index as u32;
            let here = (self.elapsed >> shift) as u32 & 63;
            let ahead = level.occupied.rotate_right(here).trailing_zeros();
            let slot = (here + ahead) & 63;
            let span = 1u64 << shift;
            let turn = span << SLOT_BITS;
            let mut tick = (self.elapsed & !(turn - 1)) + u64::from(slot) * span;
            if tick < (self.elapsed & !(span - 1)) {
                tick += turn;
            }
            return Some((index, slot as usize, tick.max(self.elapsed)));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn fires_in_time_and_never_early() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut wheel = TimerWheel::new(Now::from_us(rng.below(1 << 40)));
            let mut now = Now::from_us(wheel.levels.elapsed * TICK_US);
            let mut model: Vec<(Now, u32)> = Vec::new();
            for step in 0..3_000u32 {
                if rng.below(3) > 0 {
                    let span_us = 1u64 << rng.below(36);
                    let at = now.plus_us(rng.below(span_us));
                    wheel.insert(at, step);
                    model.push((at, step));
                }
                if rng.below(4) == 0 {
                    let span_us = 1u64 << rng.below(34);
                    now = now.plus_us(rng.below(span_us));
                    let mut fired = Vec::new();
                    wheel.advance(now, |item| fired.push(item));
                    for item in &fired {
                        let index = model.iter().position(|(_, i)| i == item).expect("fired once");
                        assert!(model[index].0 <= now, "seed {seed}: early");
                        model.swap_remove(index);
                    }
                    let late = model.iter().filter(|(at, _)| at.plus_us(2 * TICK_US) <= now).count();
                    assert_eq!(late, 0, "seed {seed}: late");
                    assert_eq!(wheel.len(), model.len());
                }
                if let Some(due) = wheel.next_due() {
                    let first = model.iter().map(|&(at, _)| at).min().unwrap();
                    assert!(due <= first.plus_us(2 * TICK_US), "seed {seed}: {due:?} after {first:?}");
                }
            }
        }
    }

    #[test]
    fn rows_that_put_their_time_off_fire_then() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut wheel = RowWheel::new(Now::ZERO);
            let mut now = Now::ZERO;
            let mut due: Vec<Now> = (0..500).map(|_| now.plus_us(rng.below(1 << 33))).collect();
            let mut fired = vec![false; due.len()];
            for (row, &at) in due.iter().enumerate() {
                wheel.insert(at, row as u32);
            }
            while let Some(next) = wheel.next_due() {
                let span_us = 1u64 << rng.below(30);
                now = now.max(next).plus_us(rng.below(span_us));
                let row = rng.below(due.len() as u64) as usize;
                if !fired[row] {
                    due[row] = due[row].max(now).plus_us(rng.below(1 << 30));
                }
                let due_of = |row: u32| due[row as usize];
                let mut came = Vec::new();
                wheel.advance(now, due_of, |row| came.push(row));
                for row in came {
                    assert!(due_of(row) <= now, "seed {seed}: early");
                    assert!(!std::mem::replace(&mut fired[row as usize], true), "seed {seed}: twice");
                }
                let late = |(row, at): (usize, &Now)| !fired[row] && at.plus_us(2 * TICK_US) <= now;
                assert!(!due.iter().enumerate().any(late), "seed {seed}: late");
            }
            assert!(fired.iter().all(|&fired| fired), "seed {seed}: lost");
        }
    }
}
