use crate::config::Config;
use crate::doc_index::IndexStats;
use crate::engine::inspect::entries::{Entered, Entries, HandedOver};
use crate::engine::inspect::feed_words::{FeedWord, FeedsTold};
use crate::engine::inspect::handed::{Handed, Taken};
use crate::engine::inspect::peer_words::{Partitions, PeerAsk, PeerTold};
use crate::engine::inspect::status::Status;
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
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
    pub(crate) answer: Answer,
}

/// The way back to whoever asked: called on the scheduler's thread, which does not wait for it. One that is dropped
/// uncalled says that there will be no answer.
pub(crate) type Answer = Box<dyn FnOnce(Reply) + Send>;

/// What a running crawl can be asked.
pub(crate) enum Ask {
    /// How things stand with a URL.
    Explain(CrawlUrl),
    /// How many URLs are known, and in which state.
    Count,
    /// To take these in.
    Take(Box<Handed>),
    /// To take in entries of a master's queue.
    Enter(Box<Entries>),
    /// To ask nothing more of some hosts, and to say what is known of them when nothing of them is on the wire.
    Close(Leaves),
    /// To write down what a closed domain brings along.
    HandOver { domain: Box<str>, nice: String },
    /// To do something with feeds.
    Feeds(Box<FeedWord>),
    /// What other nodes of a cluster ask.
    Peers(Box<PeerAsk>),
    /// To send no new requests, or to go on.
    Pause(bool),
    /// To go by these settings from now on, as far as they may change.
    Set(Arc<Config>),
}

/// Hosts that leave together.
#[derive(Clone, Debug)]
pub(crate) enum Leaves {
    Domain(Box<str>),
    Partitions(Partitions),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Explained(Box<Status>),
    Counted(IndexStats),
    /// They are on disk.
    Taken(Taken),
    /// They are on disk, too.
    Entered(Box<Entered>),
    /// Nothing of the hosts is on the wire; lines of their journal.
    Closed {
        lines: String,
    },
    HandedOver(HandedOver),
    /// It is on disk, if it was done; nothing where there can be no feeds.
    Feeds(Result<Option<FeedsTold>, String>),
    /// It is on disk, if something was told.
    Peers(Box<PeerTold>),
    /// It is paused, or goes on; `changed` if it did not already.
    Paused {
        changed: bool,
    },
    /// The settings hold.
    Set,
}

/// Of more, the oldest goes without an answer; it has timed out long ago.
pub(crate) const OPEN_MAX: usize = 64;

impl Questions {
    pub fn rings(&self, bell: Arc<Doorbell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// Asks, and waits for the answer at most so long.
    pub(crate) fn ask_and_wait(&self, ask: Ask, patience: Duration) -> Option<Reply> {
        let (answer, answered) = sync_channel(1);
        self.ask(ask, move |reply| drop(answer.send(reply)));
        answered.recv_timeout(patience).ok()
    }

    /// Asks, and does not wait: `answer` is called with the reply, or dropped.
    pub(crate) fn ask(&self, ask: Ask, answer: impl FnOnce(Reply) + Send + 'static) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) || asked.len() >= OPEN_MAX {
            return;
        }
        asked.push_back(Question { ask, answer: Box::new(answer) });
        self.has_some.store(true, Ordering::Release);
        drop(asked);
        if let Some(bell) = &*self.bell.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring_if_asleep();
        }
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
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    #[test]
    fn nobody_waits_for_a_question_that_cannot_be_answered() {
        let questions = Questions::default();
        let (answer, answered) = channel();
        let ask = |answer: &std::sync::mpsc::Sender<Reply>| {
            let answer = answer.clone();
            questions.ask(Ask::Count, move |reply| drop(answer.send(reply)));
        };
        (0..OPEN_MAX + 9).for_each(|_| ask(&answer));
        assert!(questions.has_some());
        let taken = questions.take();
        assert_eq!((taken.len(), questions.has_some()), (OPEN_MAX, false), "the rest went without");
        for question in taken.into_iter().take(1) {
            (question.answer)(Reply::Paused { changed: true });
        }
        assert_eq!(answered.recv(), Ok(Reply::Paused { changed: true }));
        questions.close();
        ask(&answer);
        drop(answer);
        let none = answered.recv_timeout(Duration::from_secs(60));
        assert_eq!(none, Err(RecvTimeoutError::Disconnected), "every way back is gone");
    }
}
