use crate::base::Now;
use crate::engine::crawl::messages::{HostWord, ToIndex, ToShard};
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::inspect::questions::{OPEN_MAX, Question};
use crate::engine::inspect::status::{Place, Status};
use crate::url_server::HostView;
use std::collections::VecDeque;

/// Questions that the index or a shard was asked.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    open: VecDeque<OpenQuestion>,
    next: u64,
}

struct OpenQuestion {
    id: u64,
    question: Question,
    looked: Option<Box<Status>>,
}

impl Scheduler {
    /// Passes questions on to the index. One that its ring has no room for goes unanswered.
    pub(crate) fn take_questions(&mut self) {
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
    pub(crate) fn end_questions(&mut self) {
        self.questions.close();
        self.questions.take();
        self.open_questions.open.clear();
    }

    /// The index has looked. What it handed out is with a shard, or on its way to one.
    pub(crate) fn index_looked(&mut self, id: u64, mut looked: Box<Status>) {
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

    pub(crate) fn shard_looked(&mut self, id: u64, view: Option<&HostView>, now: Now) {
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

    fn answer(&mut self, id: u64, looked: Box<Status>) {
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
    use crate::proto::url::CrawlUrl;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn an_answer_finds_whoever_asked_and_late_ones_nobody() {
        let mut open = OpenQuestions::default();
        let (answer, answered) = sync_channel(1);
        let question = Question { url: CrawlUrl::parse("http://a/").unwrap(), answer };
        open.open.push_back(OpenQuestion { id: 7, question, looked: None });
        open.answer(6, Box::default());
        assert!(answered.try_recv().is_err(), "another's");
        open.answer(7, Box::new(Status { live: true, ..Status::default() }));
        assert!(answered.try_recv().unwrap().live);
        open.answer(7, Box::default());
        assert!(open.find(7).is_none() && answered.try_recv().is_err());
    }
}
