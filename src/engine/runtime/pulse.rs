//! Whether the threads of a process still turn, for a watchdog outside of it.
//!
//! ```text
//!   run ── Pulse::beat, a plain store a turn ──► Pulses ◄── Vigil::have_all_turned, now and then
//!                                                  └── rings who sleeps: it turns, and shows that it can
//! ```
//!
//! A thread that sleeps, is paused or waits for room on its disk turns when it is rung, or of itself. One that is caught in a
//! turn, by a loop or a call that does not return, does not.

use crate::rings::Doorbell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The turns of one thread.
pub struct Pulse {
    name: String,
    bell: Arc<Doorbell>,
    turns: AtomicU64,
    /// Nothing is turned before and after.
    is_turning: AtomicBool,
}

/// The threads of a process that must turn.
#[derive(Default)]
pub struct Pulses(Mutex<Vec<Arc<Pulse>>>);

/// Turns as they were seen, by whoever watches.
#[derive(Default)]
pub struct Vigil {
    seen: Vec<u64>,
}

/// A thread turns until this goes away.
pub(crate) struct Turning<'a> {
    pulse: &'a Pulse,
    turns: u64,
}

impl Pulse {
    pub(crate) fn begin(&self) -> Turning<'_> {
        self.is_turning.store(true, Ordering::Relaxed);
        Turning { pulse: self, turns: self.turns.load(Ordering::Relaxed) }
    }
}

impl Turning<'_> {
    /// One more turn begins.
    pub fn beat(&mut self) {
        self.turns += 1;
        self.pulse.turns.store(self.turns, Ordering::Relaxed);
    }
}

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        self.pulse.is_turning.store(false, Ordering::Relaxed);
    }
}

impl Pulses {
    /// One more thread to be watched; the bell wakes it.
    pub(crate) fn thread(&self, name: &str, bell: Arc<Doorbell>) -> Arc<Pulse> {
        let (turns, is_turning) = (AtomicU64::new(0), AtomicBool::new(false));
        let pulse = Arc::new(Pulse { name: name.to_string(), bell, turns, is_turning });
        self.lock().push(pulse.clone());
        pulse
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Pulse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vigil {
    /// Whether every thread has turned since this last said so. Who has not is rung; who has ended need not.
    pub fn have_all_turned(&mut self, pulses: &Pulses) -> bool {
        let pulses = pulses.lock();
        let mut all = true;
        for pulse in self.late(&pulses) {
            all = false;
            pulse.bell.ring_if_asleep();
        }
        if all {
            self.seen = pulses.iter().map(|pulse| pulse.turns.load(Ordering::Relaxed)).collect();
        }
        all
    }

    /// The names of the threads that have not turned since.
    pub fn late_names(&self, pulses: &Pulses) -> Vec<String> {
        self.late(&pulses.lock()).map(|pulse| pulse.name.clone()).collect()
    }

    fn late<'a>(&'a self, pulses: &'a [Arc<Pulse>]) -> impl Iterator<Item = &'a Arc<Pulse>> {
        let seen = self.seen.iter().copied().chain(std::iter::repeat(0));
        let is_late = |pulse: &Pulse, seen| {
            pulse.is_turning.load(Ordering::Relaxed) && pulse.turns.load(Ordering::Relaxed) == seen
        };
        pulses.iter().zip(seen).filter(move |(pulse, seen)| is_late(pulse, *seen)).map(|(pulse, _)| pulse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_that_does_not_turn_is_enough() {
        let pulses = Pulses::default();
        let rung = Arc::new(AtomicU64::new(0));
        let bell = |rung: &Arc<AtomicU64>| {
            let rung = rung.clone();
            Arc::new(Doorbell::new(move || {
                rung.fetch_add(1, Ordering::Relaxed);
            }))
        };
        let (first, second) = (pulses.thread("a", bell(&rung)), pulses.thread("b", bell(&rung)));
        let mut vigil = Vigil::default();
        assert!(vigil.have_all_turned(&pulses), "nothing turns yet");
        let (mut a, mut b) = (first.begin(), second.begin());
        assert!(!vigil.have_all_turned(&pulses));
        a.beat();
        second.bell.falling_asleep();
        assert!(!vigil.have_all_turned(&pulses));
        assert_eq!(vigil.late_names(&pulses), ["b"]);
        assert_eq!(rung.load(Ordering::Relaxed), 1, "the sleeper was woken, and no one else");
        b.beat();
        assert!(vigil.have_all_turned(&pulses));
        assert!(!vigil.have_all_turned(&pulses), "both must turn again");
        a.beat();
        assert!(!vigil.have_all_turned(&pulses));
        // A thread that has ended is not waited for, until it is made anew.
        drop(b);
        assert!(vigil.have_all_turned(&pulses));
        let mut b = second.begin();
        a.beat();
        assert!(!vigil.have_all_turned(&pulses));
        b.beat();
        assert!(vigil.have_all_turned(&pulses));
        let _late = pulses.thread("c", bell(&rung));
        a.beat();
        b.beat();
        assert!(vigil.have_all_turned(&pulses), "a thread that comes later is no reason to panic");
    }
}
