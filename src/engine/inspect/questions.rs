use crate::config::Config;
use crate::doc_index::IndexStats;
use crate::engine::inspect::handed::{Handed, Taken};
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
    pub(crate) ask: Ask,
    pub(crate) answer: SyncSender<Reply>,
}

/// What a running crawl can be asked.
pub(crate) enum Ask {
    /// How things stand with a URL.
    Explain(CrawlUrl),
    /// How many URLs are known, and in which state.
    Count,
    /// To take these in.
    Take(Box<Handed>),
    /// To send no new requests, or to go on.
    Pause(bool),
    /// To go by these settings from now on, as far as they may change.
    Set(Arc<Config>),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Explained(Box<Status>),
    Counted(IndexStats),
    /// They are on disk.
    Taken(Taken),
    Done,
}

/// Of more, the oldest goes without an answer; it has timed out long ago.
pub(crate) const OPEN_MAX: usize = 64;

impl Questions {
    pub fn rings(&self, bell: Arc<Doorbell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// Asks, and waits for the answer at most so long.
    pub(crate) fn ask(&self, ask: Ask, patience: Duration) -> Option<Reply> {
        let (answer, answered) = sync_channel(1);
        self.put(Question { ask, answer })?;
        answered.recv_timeout(patience).ok()
    }

    /// Pauses or resumes, and does not wait for it.
    pub(crate) fn pause(&self, paused: bool) {
        let _ = self.put(Question { ask: Ask::Pause(paused), answer: sync_channel(1).0 });
    }

    /// Lets these settings hold, and does not wait for it.
    pub(crate) fn set(&self, config: Arc<Config>) {
        let _ = self.put(Question { ask: Ask::Set(config), answer: sync_channel(1).0 });
    }

    fn put(&self, question: Question) -> Option<()> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) || asked.len() >= OPEN_MAX {
            return None;
        }
        asked.push_back(question);
        self.has_some.store(true, Ordering::Release);
        drop(asked);
        if let Some(bell) = &*self.bell.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring_if_asleep();
        }
        Some(())
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
        assert_eq!(questions.ask(Ask::Count, Duration::from_millis(5)), None);
        assert!(questions.has_some());
        let taken = questions.take();
        assert_eq!((taken.len(), questions.has_some()), (1, false));
        questions.closed.store(true, Ordering::Release);
        let started = Instant::now();
        assert_eq!(questions.ask(Ask::Count, Duration::from_secs(600)), None);
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
