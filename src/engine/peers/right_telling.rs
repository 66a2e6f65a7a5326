use super::council_desk::CouncilDesk;
use crate::base::Now;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::peer::beat::{Beat, Rights};

/// What others and the operator know of a node's right.
#[derive(Default)]
pub(super) struct RightTelling {
    /// The beat that peers were told last.
    beat: Option<Beat>,
    /// Whether the operator knows it to have the right.
    is_held: bool,
    seen: Now,
}

/// A node without a right for so long has lost it.
const LOST_US: u64 = 5_000_000;

impl RightTelling {
    /// Tells the operator when the right is lost and when it is back. Returns a beat that peers are to be told.
    pub fn turn(&mut self, council: &CouncilDesk, has_left: bool, health: &Health, now: Now) -> Option<Beat> {
        let rights = council.rights()?;
        let news = rights.beat().filter(|beat| Some(*beat) != self.beat);
        self.beat = rights.beat();
        let has_right = rights.right_until() > now;
        if has_right {
            self.seen = now;
        }
        // A moment without it is no news: it is got anew with each generation, and when there are more voters.
        let is_lost = now.since_us(self.seen) >= LOST_US && !has_left;
        if has_right == self.is_held || !has_right && !is_lost {
            return news;
        }
        self.is_held = has_right;
        let was_ever = council.table().is_some_and(|table| table.voters().len() != 1 && self.beat.is_some());
        if !has_right {
            let who = match council.is_outside() {
                true => "etcd does not answer",
                false => "no majority of the voters answers",
            };
            let text = format!("this node has no right to ask hosts any more, as {who}: it waits");
            health.tell(Event::RightLost, Vec::new(), text);
        } else if was_ever {
            let text = "this node has the right to ask the hosts of its partitions";
            health.tell(Event::RightHeld, Vec::new(), text);
        }
        news
    }

    /// The end of a right is told when it comes.
    pub fn next_due(&self, rights: Option<&Rights>) -> Option<Now> {
        let until = rights.map_or(Now::ZERO, Rights::right_until);
        let is_awaited = self.is_held && until < Now::NEVER;
        is_awaited.then(|| until.max(self.seen).plus_us(LOST_US))
    }
}
