use crate::base::{Now, SortedMap};
use crate::engine::links::LinkPort;

/// Addresses where nodes are looked for. One is dialed while no link stands with the node behind it.
#[derive(Default)]
pub(super) struct Dialing {
    targets: SortedMap<String, Target>,
    /// None has rested before then.
    due: Option<Now>,
}

struct Target {
    state: State,
    /// The node that was met there; 0 if none was, or it had no number.
    node: u16,
}

enum State {
    /// Under a number of the port, which makes the link and makes it again.
    Dialed { number: usize },
    /// Not before then.
    Resting { until: Now },
    /// A link with the node stands, and it is another one.
    Covered,
    /// It is our own.
    Ours,
}

/// After the port has no room for one more dial.
const NO_ROOM_US: u64 = 10_000_000;

impl Dialing {
    /// Whether there was room for it.
    pub fn add(&mut self, address: &str, port: &mut LinkPort) -> bool {
        if self.targets.contains_key(address) {
            return true;
        }
        let number = port.dial(address.to_string());
        let state = number.map(|number| State::Dialed { number });
        state.map(|state| self.targets.insert(address.to_string(), Target { state, node: 0 })).is_some()
    }

    pub fn remove(&mut self, address: &str, port: &mut LinkPort) {
        if let Some(Target { state: State::Dialed { number }, .. }) = self.targets.remove(address) {
            port.undial(number);
        }
    }

    pub fn address(&self, number: usize) -> Option<&str> {
        let by_number = |target: &Target| matches!(target.state, State::Dialed { number: n } if n == number);
        self.targets.iter().find(|(_, target)| by_number(target)).map(|(address, _)| address.as_str())
    }

    /// A node said who it is, where that number led.
    pub fn met(&mut self, number: usize, node: u16) {
        if let Some(target) = self.by_number(number) {
            target.node = node;
        }
    }

    /// A link with a node stands, which was made by `own`: its other addresses are not dialed while it does.
    pub fn stands(&mut self, node: u16, listen: &str, own: Option<usize>, port: &mut LinkPort) {
        if node == 0 {
            return;
        }
        for (address, target) in &mut self.targets {
            if target.node != node && address != listen {
                continue;
            }
            target.node = node;
            match target.state {
                State::Dialed { number } if own == Some(number) => continue,
                State::Dialed { number } => port.undial(number),
                State::Resting { .. } | State::Covered => {}
                State::Ours => continue,
            }
            target.state = State::Covered;
        }
    }

    /// The link with a node is gone.
    pub fn gone(&mut self, node: u16, until: Now) {
        for target in self.targets.values_mut() {
            if target.node == node && matches!(target.state, State::Covered) {
                target.state = State::Resting { until };
            }
        }
        self.look_by(until);
    }

    /// Lets a target rest.
    pub fn rest(&mut self, number: usize, until: Now, port: &mut LinkPort) {
        self.leave(number, State::Resting { until }, port);
        self.look_by(until);
    }

    /// The link that it made was one too many.
    pub fn cover(&mut self, number: usize, port: &mut LinkPort) {
        self.leave(number, State::Covered, port);
    }

    /// It leads back here.
    pub fn is_ours(&mut self, number: usize, port: &mut LinkPort) {
        self.leave(number, State::Ours, port);
    }

    /// Who we are has changed, and so has which of them are ours.
    pub fn begin_anew(&mut self, now: Now) {
        for target in self.targets.values_mut().filter(|target| matches!(target.state, State::Ours)) {
            target.state = State::Resting { until: now };
        }
        self.look_by(now);
    }

    /// Dials those that have rested.
    pub fn dial(&mut self, now: Now, port: &mut LinkPort) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for (address, target) in &mut self.targets {
            if matches!(target.state, State::Resting { until } if until <= now) {
                target.state = match port.dial(address.clone()) {
                    Some(number) => State::Dialed { number },
                    None => State::Resting { until: now.plus_us(NO_ROOM_US) },
                };
            }
        }
        let resting = self.targets.values().filter_map(|target| match target.state {
            State::Resting { until } => Some(until),
            State::Dialed { .. } | State::Covered | State::Ours => None,
        });
        self.due = resting.min();
    }

    /// When `dial` is to be called.
    pub fn next_due(&self) -> Option<Now> {
        self.due
    }

    fn look_by(&mut self, time: Now) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    fn leave(&mut self, number: usize, state: State, port: &mut LinkPort) {
        if let Some(target) = self.by_number(number) {
            target.state = state;
            port.undial(number);
        }
    }

    fn by_number(&mut self, number: usize) -> Option<&mut Target> {
        let is_it = |target: &&mut Target| matches!(target.state, State::Dialed { number: n } if n == number);
        self.targets.values_mut().find(is_it)
    }
}
