use crate::base::{Key, Now};
use crate::limits::MASTER_LINE_BYTES_MAX;
use crate::proto::lines::LineBuffer;

/// One master: its link, and when it may be asked again after it refused.
pub(super) struct Side {
    /// `host:port` as it was given.
    pub address: String,
    pub link: Option<Key>,
    pub lines: LineBuffer,
    /// It refused, or sent what makes no sense: nothing is asked before then.
    rests_until: Now,
    rest_us: u64,
    /// What was said of it last.
    said: Option<String>,
    /// It does not know our place in its queue: the next question goes by the time.
    pub lost_place: bool,
    /// Answers in a row that broke off.
    cuts: u32,
    /// It was told how far we are, since its link stands.
    pub greeted: bool,
}

const REST_US_MIN: u64 = 1_000_000;
const REST_US_MAX: u64 = 60_000_000;

impl Side {
    pub fn new(address: String) -> Side {
        Side {
            address,
            link: None,
            lines: LineBuffer::of_lines(MASTER_LINE_BYTES_MAX),
            rests_until: Now::ZERO,
            rest_us: REST_US_MIN,
            said: None,
            lost_place: false,
            cuts: 0,
            greeted: false,
        }
    }

    pub fn up(&mut self, link: Key) {
        self.link = Some(link);
        self.greeted = false;
        self.lines = LineBuffer::of_lines(MASTER_LINE_BYTES_MAX);
    }

    pub fn may_be_asked(&self, now: Now) -> bool {
        self.link.is_some() && self.rests_until <= now
    }

    /// When it may be asked again, if it must wait.
    pub fn rests_until(&self, now: Now) -> Option<Now> {
        Some(self.rests_until).filter(|until| *until > now)
    }

    /// It is of no use for a while, each time for longer. True if the cause is news.
    pub fn rest(&mut self, cause: &str, now: Now) -> bool {
        self.rests_until = now.plus_us(self.rest_us);
        self.rest_us = (2 * self.rest_us).min(REST_US_MAX);
        self.is_news(cause)
    }

    /// Whether this was not said of it last.
    pub fn is_news(&mut self, cause: &str) -> bool {
        let is_news = self.said.as_deref() != Some(cause);
        if is_news {
            self.said = Some(cause.to_string());
        }
        is_news
    }

    /// An answer broke off. True if it is not the first in a row: one may be a restart.
    pub fn was_cut_again(&mut self) -> bool {
        self.cuts += 1;
        self.cuts > 1
    }

    /// It has answered as it should.
    pub fn answered(&mut self) {
        self.cuts = 0;
        self.rest_us = REST_US_MIN;
        self.said = None;
        self.lost_place = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_refuses_is_asked_ever_more_rarely_and_spoken_of_once() {
        let mut side = Side::new("a:1".to_string());
        let mut now = Now::ZERO;
        for (round, pause_s) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            assert_eq!(side.rest("taken", now), round == 0);
            assert_eq!(side.rests_until(now), Some(now.plus_us(pause_s * 1_000_000)));
            now = now.plus_us(pause_s * 1_000_000);
            assert_eq!(side.rests_until(now), None);
        }
        assert!(side.rest("something else", now));
        side.answered();
        assert!(side.rest("taken", now), "it was in order in between");
        assert_eq!(side.rests_until(now), Some(now.plus_us(1_000_000)));
    }
}
