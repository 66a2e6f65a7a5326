use crate::base::Now;

/// How long the last counts are waited for once the spider is to stop.
#[derive(Default)]
pub(super) struct LastCounts {
    /// When waiting began, and when something was counted last or came to wait.
    since: Option<Now>,
    progress_at: Now,
    uncounted: usize,
    is_told: bool,
}

/// What is to be done about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Waits,
    /// The user should know.
    Tells,
    GivesUp,
}

/// Nothing counted for this long is told, then given up.
const TELL_US: u64 = 1_000_000;
const IDLE_US: u64 = 10_000_000;
/// It ends after this time even while counts come.
const ALL_US: u64 = 60_000_000;

impl LastCounts {
    /// `records` are not counted.
    pub fn wait(&mut self, records: usize, now: Now) -> Patience {
        let since = *self.since.get_or_insert(now);
        if since == now || records < self.uncounted || self.uncounted == 0 {
            self.progress_at = now;
        }
        self.uncounted = records;
        let idle_us = now.since_us(self.progress_at);
        if records > 0 && (idle_us >= IDLE_US || now.since_us(since) >= ALL_US) {
            Patience::GivesUp
        } else if records > 0 && idle_us >= TELL_US && !std::mem::replace(&mut self.is_told, true) {
            Patience::Tells
        } else {
            Patience::Waits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_come_are_waited_for_and_a_silence_is_not() {
        let at = |ms: u64| Now::ZERO.plus_ms(ms);
        let mut last = LastCounts::default();
        assert_eq!(last.wait(3, at(0)), Patience::Waits);
        assert_eq!(last.wait(3, at(1_000)), Patience::Tells);
        assert_eq!(last.wait(3, at(9_999)), Patience::Waits);
        assert_eq!(last.wait(2, at(9_999)), Patience::Waits);
        assert_eq!(last.wait(2, at(19_998)), Patience::Waits);
        assert_eq!(last.wait(2, at(19_999)), Patience::GivesUp);
        let mut last = LastCounts::default();
        assert!((0..60).all(|s| last.wait(100 - s as usize, at(1_000 * s)) == Patience::Waits));
        assert_eq!(last.wait(1, at(60_000)), Patience::GivesUp);
        assert_eq!(last.wait(0, at(60_000)), Patience::Waits);
    }
}
