use super::dial::{Dial, DialState};
use crate::base::{Now, SortedMap, SortedSet};

/// The peers that are dialed, by number: those of the configuration first, then those that were added.
pub(super) struct Dials {
    by_number: SortedMap<usize, Dial>,
    /// Those that rest, by the end of that: with many peers that is a small part of them.
    resting: SortedSet<(Now, usize)>,
}

impl Dials {
    pub fn new(addresses: Vec<String>, now: Now) -> Dials {
        let mut dials = Dials { by_number: SortedMap::new(), resting: SortedSet::new() };
        for (number, address) in addresses.into_iter().enumerate() {
            dials.add(number, address, now);
        }
        dials
    }

    /// A peer may be dialed more than once; then one of the dials tells the user how it goes.
    pub fn add(&mut self, number: usize, address: String, now: Now) {
        self.remove(number);
        let is_mute = self.by_number.values().any(|dial| dial.address == address);
        let dial = Dial::new(address, is_mute, now);
        self.resting.extend(dial.rests_until().map(|until| (until, number)));
        self.by_number.insert(number, dial);
    }

    pub fn remove(&mut self, number: usize) {
        let until = self.by_number.remove(&number).and_then(|dial| dial.rests_until());
        until.map(|until| self.resting.remove(&(until, number)));
    }

    pub fn get(&self, number: usize) -> Option<&Dial> {
        self.by_number.get(&number)
    }

    /// Changes a dial, if it is there still.
    pub fn change<T>(&mut self, number: usize, act: impl FnOnce(&mut Dial) -> T) -> Option<T> {
        let dial = self.by_number.get_mut(&number)?;
        let before = dial.rests_until();
        let done = act(dial);
        let after = dial.rests_until();
        if before != after {
            before.map(|until| self.resting.remove(&(until, number)));
            self.resting.extend(after.map(|until| (until, number)));
        }
        Some(done)
    }

    /// Those that have rested, in the order of their numbers.
    pub fn due(&self, now: Now) -> Vec<usize> {
        let due = self.resting.iter().take_while(|(until, _)| *until <= now);
        let mut numbers: Vec<usize> = due.map(|&(_, number)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// When the next has rested.
    pub fn next_due(&self) -> Option<Now> {
        self.resting.first().map(|&(until, _)| until)
    }
}

impl Dial {
    fn rests_until(&self) -> Option<Now> {
        match self.state {
            DialState::Resting { until } => Some(until),
            DialState::Resolving | DialState::Linked => None,
        }
    }
}
