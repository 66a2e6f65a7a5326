use super::dial::{Dial, DialState};
use crate::base::Now;
use std::collections::BTreeMap;

/// The peers that are dialed, by number: those of the configuration first, then those that were added.
pub(super) struct Dials {
    by_number: BTreeMap<usize, Dial>,
}

impl Dials {
    pub fn new(addresses: Vec<String>, now: Now) -> Dials {
        let mut dials = Dials { by_number: BTreeMap::new() };
        for (number, address) in addresses.into_iter().enumerate() {
            dials.add(number, address, now);
        }
        dials
    }

    /// A peer may be dialed more than once; then one of the dials tells the user how it goes.
    pub fn add(&mut self, number: usize, address: String, now: Now) {
        let is_mute = self.by_number.values().any(|dial| dial.address == address);
        self.by_number.insert(number, Dial::new(address, is_mute, now));
    }

    pub fn remove(&mut self, number: usize) {
        self.by_number.remove(&number);
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut Dial> {
        self.by_number.get_mut(&number)
    }

    /// Those that have rested.
    pub fn due(&self, now: Now) -> Vec<usize> {
        let is_due = |dial: &Dial| matches!(dial.state, DialState::Resting { until } if until <= now);
        self.by_number.iter().filter(|(_, dial)| is_due(dial)).map(|(&number, _)| number).collect()
    }

    /// When the next has rested.
    pub fn next_due(&self) -> Option<Now> {
        let resting = self.by_number.values().filter_map(|dial| match dial.state {
            DialState::Resting { until } => Some(until),
            DialState::Resolving | DialState::Linked => None,
        });
        resting.min()
    }
}
