use super::looked::{Looked, Place};
use super::scheduler::Scheduler;
use super::words::{HostWord, ToIndex, ToShard};
use crate::base::Now;
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use crate::url_server::HostView;
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

pub(super) struct Question {
    url: CrawlUrl,
    answer: SyncSender<Box<Looked>>,
}

/// Questions that the index or a shard was asked.
#[derive(Default)]
pub(super) struct OpenQuestions {
    open: VecDeque<OpenQuestion>,
    next: u64,
}

struct OpenQuestion {
    id: u64,
    question: Question,
    looked: Option<Box<Looked>>,
}

/// Of more, the oldest goes without an answer; it has timed out long ago.
const OPEN_MAX: usize = 64;

impl Questions {
    pub fn rings(&self, bell: Arc<Doorbell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// Asks, and waits for the answer at most so long.
    pub fn ask(&self, url: CrawlUrl, patience: Duration) -> Option<Box<Looked>> {
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

    pub(super) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    fn take(&self) -> VecDeque<Question> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_some.store(false, Ordering::Release);
        std::mem::take(&mut asked)
    }
}

impl Scheduler {
    /// Passes questions on to the index. One that its ring has no room for goes unanswered.
    pub(super) fn take_questions(&mut self) {
        for question in self.questions.take() {
            let open = &mut self.open_questions;
            open.next += 1;
            let (id, url) = (open.next, Box::new(question.url.clone()));
            if self.index.words.push(ToIndex::Look { id, url }).is_ok() {
                open.open.push_back(OpenQuestion { id, question, looked: None });
            }
            if open.open.len() > OPEN_MAX {
                open.open.pop_front();
            }
        }
        self.index.bell.ring_if_asleep();
    }

    /// Lets everybody go who still waits for an answer: there will be none.
    pub(super) fn end_questions(&mut self) {
        self.questions.closed.store(true, Ordering::Release);
        self.questions.take();
        self.open_questions.open.clear();
    }

    /// The index has looked. What it handed out is with a shard, or on its way to one.
    pub(super) fn index_looked(&mut self, id: u64, mut looked: Box<Looked>) {
        let handed_out = looked.dossier.as_ref().filter(|dossier| dossier.state == "fetching");
        let Some(doc_id) = handed_out.map(|dossier| dossier.doc_id) else {
            return self.open_questions.answer(id, looked);
        };
        let shard = self.shards.iter().position(|side| side.open.contains_key(&doc_id));
        let (Some(shard), Some(open)) = (shard, self.open_questions.find(id)) else {
            looked.place.at = Place::Resolving;
            return self.open_questions.answer(id, looked);
        };
        if self.shards[shard].held.iter().any(|done| done.outcome.doc_id == doc_id) {
            looked.place.at = Place::Stored;
            return self.open_questions.answer(id, looked);
        }
        open.looked = Some(looked);
        let url = Box::new(open.question.url.clone());
        self.shards[shard].dealt.push_back(ToShard::About(HostWord::Look { id, url, doc_id }));
    }

    pub(super) fn shard_looked(&mut self, id: u64, view: Option<&HostView>, now: Now) {
        let wall = self.logger.wall;
        let Some(mut looked) = self.open_questions.find(id).and_then(|open| open.looked.take()) else {
            return;
        };
        match view {
            Some(view) => looked.at_shard(view, wall, now),
            None => looked.place.at = Place::Leftover,
        }
        self.open_questions.answer(id, looked);
    }
}

impl OpenQuestions {
    fn find(&mut self, id: u64) -> Option<&mut OpenQuestion> {
        self.open.iter_mut().find(|open| open.id == id)
    }

    fn answer(&mut self, id: u64, looked: Box<Looked>) {
        if let Some(at) = self.open.iter().position(|open| open.id == id)
            && let Some(open) = self.open.remove(at)
        {
            // Whoever asked may have gone.
            let _ = open.question.answer.try_send(looked);
        }
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

    #[test]
    fn an_answer_finds_whoever_asked_and_late_ones_nobody() {
        let mut open = OpenQuestions::default();
        let (answer, answered) = sync_channel(1);
        let question = Question { url: CrawlUrl::parse("http://a/").unwrap(), answer };
        open.open.push_back(OpenQuestion { id: 7, question, looked: None });
        open.answer(6, Box::default());
        assert!(answered.try_recv().is_err(), "another's");
        open.answer(7, Box::new(Looked { live: true, ..Looked::default() }));
        assert!(answered.try_recv().unwrap().live);
        open.answer(7, Box::default());
        assert!(open.find(7).is_none() && answered.try_recv().is_err());
    }
}
