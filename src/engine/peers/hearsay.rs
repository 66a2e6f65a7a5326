use super::Peer;
use crate::base::Now;
use std::collections::VecDeque;

/// Later tables than ours that peers say they have. Whoever changes the table tells it to all: it is asked for only where it has
/// not come after a moment, of one peer at a time.
#[derive(Default)]
pub(super) struct Hearsay {
    /// Who says so, and the epoch.
    said: VecDeque<(Peer, u64)>,
    ask_at: Now,
}

/// Those who said it first are forgotten for others.
const SAID_MAX: usize = 8;
/// A table that is on its way comes within this time, and who was asked for one answers.
const PATIENCE_US: u64 = 100_000;

impl Hearsay {
    pub fn heard(&mut self, peer: Peer, epoch: u64, now: Now) {
        if self.said.is_empty() {
            self.ask_at = now.plus_us(PATIENCE_US);
        }
        self.said.retain(|(says, _)| *says != peer);
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back((peer, epoch));
    }

    pub fn down(&mut self, peer: Peer) {
        self.said.retain(|(says, _)| *says != peer);
    }

    /// Who is to be asked for its table now, while this is the epoch of ours.
    pub fn turn(&mut self, epoch: u64, now: Now) -> Option<Peer> {
        self.said.retain(|(_, says)| *says > epoch);
        if now < self.ask_at {
            return None;
        }
        let (peer, _) = self.said.pop_front()?;
        self.ask_at = now.plus_us(PATIENCE_US);
        Some(peer)
    }

    pub fn next_due(&self) -> Option<Now> {
        (!self.said.is_empty()).then_some(self.ask_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Key;

    fn peer(node: u16) -> Peer {
        Peer { link: Key::new(u32::from(node), 1), node }
    }

    #[test]
    fn a_table_that_does_not_come_is_asked_for_of_one_peer_after_the_other() {
        let mut hearsay = Hearsay::default();
        let at = |ms: u64| Now::ZERO.plus_ms(ms);
        assert_eq!((hearsay.turn(4, at(0)), hearsay.next_due()), (None, None));
        hearsay.heard(peer(1), 5, at(1_000));
        hearsay.heard(peer(2), 6, at(1_050));
        hearsay.heard(peer(3), 6, at(1_060));
        assert_eq!((hearsay.turn(4, at(1_099)), hearsay.next_due()), (None, Some(at(1_100))));
        assert_eq!(hearsay.turn(4, at(1_100)), Some(peer(1)));
        assert_eq!((hearsay.turn(4, at(1_150)), hearsay.next_due()), (None, Some(at(1_200))));
        hearsay.down(peer(2));
        assert_eq!(hearsay.turn(5, at(1_200)), Some(peer(3)));
        assert_eq!((hearsay.turn(5, at(2_000)), hearsay.next_due()), (None, None));
    }

    #[test]
    fn a_table_that_has_come_is_not_asked_for() {
        let mut hearsay = Hearsay::default();
        for node in 1..=20 {
            hearsay.heard(peer(node), 5, Now::ZERO);
        }
        assert_eq!(hearsay.said.len(), SAID_MAX);
        assert_eq!(hearsay.turn(5, Now::ZERO.plus_ms(200)), None);
        assert_eq!(hearsay.next_due(), None);
    }
}
