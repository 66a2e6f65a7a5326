use crate::base::Now;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::limits::DRAIN_US;

/// How an end that hangs is noticed. A disk without room keeps the doc index and the crawl log from taking messages; while
/// a crawl goes on, it waits for room, but one that was told to stop must not.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// Nothing has moved since, though something waits.
    stuck_since: Option<Now>,
    /// What waits is let go, and so is what still comes.
    given_up: bool,
}

impl Shutdown {
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Called with every turn of a scheduler that ends. True once nothing has moved for as long as open fetches may take to
    /// end, and from then on.
    pub fn is_over(&mut self, waits: bool, busy: bool, now: Now) -> bool {
        if self.given_up {
            return waits;
        }
        if !waits {
            self.stuck_since = None;
            return false;
        }
        let since = *self.stuck_since.get_or_insert(now);
        if busy {
            self.stuck_since = Some(now);
            return false;
        }
        now.since_us(since) >= DRAIN_US
    }

    /// Notes that the process gives up, and says so the first time.
    pub fn tell_once(&mut self, health: &Health) {
        if !std::mem::replace(&mut self.given_up, true) {
            let text = "stopped before all was written: what is missing is fetched again the next time";
            health.tell(Event::StoppedEarly, Vec::new(), text);
        }
    }
}
