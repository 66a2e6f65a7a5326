use crate::engine::Event;
use std::time::Duration;

/// How many lines of each event are shown: so many a second, and of the rest the number.
pub(super) struct Limiter {
    /// By event.
    seconds: Vec<Second>,
}

/// The second in which an event is told, if it was not over long ago.
#[derive(Clone, Copy, Default)]
struct Second {
    began: Duration,
    shown: u32,
    held: u64,
}

const LINES_PER_SECOND: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

impl Default for Limiter {
    fn default() -> Limiter {
        Limiter { seconds: vec![Second::default(); Event::ALL.len()] }
    }
}

impl Limiter {
    /// Whether a line is shown. What was held back before is to be told first: see [`Limiter::over`].
    pub fn admit(&mut self, event: Event, at: Duration) -> bool {
        let second = self.second(event, at);
        let is_shown = second.shown < LINES_PER_SECOND;
        match is_shown {
            true => second.shown += 1,
            false => second.held += 1,
        }
        is_shown
    }

    /// Holds back so many that nobody has the text of.
    pub fn hold(&mut self, event: Event, count: u64, at: Duration) {
        self.second(event, at).held += count;
    }

    /// What was held back in seconds that are over, once.
    pub fn over(&mut self, at: Duration) -> Vec<(Event, u64)> {
        self.take(|second| at >= second.began + SECOND)
    }

    /// What was held back, at the end.
    pub fn rest(&mut self) -> Vec<(Event, u64)> {
        self.take(|_| true)
    }

    fn take(&mut self, is_over: impl Fn(&Second) -> bool) -> Vec<(Event, u64)> {
        let seconds = Event::ALL.iter().zip(&mut self.seconds);
        let held = seconds.filter(|(_, second)| second.held > 0 && is_over(second));
        held.map(|(&event, second)| (event, std::mem::take(&mut second.held))).collect()
    }

    /// The second of an event that a moment is in; a new one begins after what was held back has been told.
    fn second(&mut self, event: Event, at: Duration) -> &mut Second {
        let second = &mut self.seconds[event as usize];
        if second.held == 0 && (second.shown == 0 || at >= second.began + SECOND) {
            *second = Second { began: at, ..Second::default() };
        }
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn twenty_a_second_then_a_number() {
        let mut limiter = Limiter::default();
        let mut shown = 0;
        // A line each millisecond, from the middle of a second on.
        for at in 500..1_500 {
            assert!(limiter.over(ms(at)).is_empty(), "the second is not over at {at}");
            shown += u32::from(limiter.admit(Event::LinkFails, ms(at)));
        }
        assert_eq!(shown, LINES_PER_SECOND);
        assert!(limiter.admit(Event::BadLine, ms(1_400)), "another event has a second of its own");
        assert_eq!(limiter.over(ms(1_500)), [(Event::LinkFails, 980)]);
        assert!(limiter.over(ms(1_501)).is_empty(), "told once");
        assert!(limiter.admit(Event::LinkFails, ms(1_501)), "a new second");
    }

    #[test]
    fn what_is_held_back_is_told_whenever_it_is_asked_for() {
        let mut limiter = Limiter::default();
        assert_eq!((0..25).filter(|_| limiter.admit(Event::LinkFails, ms(10))).count(), 20);
        limiter.hold(Event::LinkFails, 300, ms(20));
        limiter.hold(Event::Paused, 7, ms(30));
        assert!(!limiter.admit(Event::LinkFails, ms(5_000)), "not before the number is told");
        assert_eq!(limiter.rest(), [(Event::Paused, 7), (Event::LinkFails, 306)]);
        assert!(limiter.rest().is_empty());
        assert!(limiter.admit(Event::LinkFails, ms(5_000)));
    }

    #[test]
    fn a_slow_event_is_never_held_back() {
        let mut limiter = Limiter::default();
        for at in (0..100_000).step_by(60) {
            assert!(limiter.admit(Event::LinkFails, ms(at)), "{at}");
        }
    }
}
