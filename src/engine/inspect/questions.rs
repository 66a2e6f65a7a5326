use crate::engine::inspect::status::Status;
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Questions on their way to the scheduler.
#[derive(Default)]
pub struct Questions {
    asked: Mutex<VecDeque<Question>>,
    /// So that nobody takes the lock to find nothing.
    has_some: AtomicBool,
    /// The scheduler's bell.
    bell: Mutex<Option<Arc<Doorbell>>>,
    /// Nobody answers any more.
    closed: AtomicBool,
}

pub(crate) struct Question {
    pub(crate) url: CrawlUrl,
    pub(crate) answer: SyncSender<Box<Status>>,
}

/// Of more, the oldest goes without an answer; it has timed out long ago.
pub(crate) const OPEN_MAX: usize = 64;

impl Questions {
    pub fn rings(&self, bell: Arc<Doorbell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// Asks, and waits for the answer at most so long.
    pub fn ask(&self, url: CrawlUrl, patience: Duration) -> Option<Box<Status>> {
        let (answer, answered) = sync_channel(1);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) || asked.len() >= OPEN_MAX {
            return None;
        }
        asked.push_back(Question { url, answer });
        self.has_some.store(true, Ordering::Release);
        drop(asked);
        if let Some(bell) = &*self.bell.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring_if_asleep();
        }
        answered.recv_timeout(patience).ok()
    }

    pub(crate) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    /// Nobody answers from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn take(&self) -> VecDeque<Question> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_some.store(false, Ordering::Release);
        std::mem::take(&mut asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_question_that_nobody_takes_ends_in_time_and_none_waits_after_the_end() {
        let questions = Questions::default();
        let url = CrawlUrl::parse("http://a/").unwrap();
        assert_eq!(questions.ask(url.clone(), Duration::from_millis(5)), None);
        assert!(questions.has_some());
        let taken = questions.take();
        assert_eq!((taken.len(), questions.has_some()), (1, false));
        questions.closed.store(true, Ordering::Release);
        let started = Instant::now();
        assert_eq!(questions.ask(url, Duration::from_secs(600)), None);
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
