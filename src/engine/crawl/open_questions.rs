use crate::base::{Now, Wall};
use crate::doc_index::DocState;
use crate::engine::crawl::messages::{HostWord, ToIndex};
use crate::engine::inspect::questions::{OPEN_MAX, Question, Questions};
use crate::engine::inspect::status::{Place, Status};
use crate::url_server::HostView;
use std::collections::VecDeque;
use std::sync::Arc;

/// Questions about URLs that the index or a shard was asked.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    asked: Arc<Questions>,
    open: VecDeque<OpenQuestion>,
    next: u64,
}

struct OpenQuestion {
    id: u64,
    question: Question,
    looked: Option<Box<Status>>,
}

impl OpenQuestions {
    /// Where questions are asked.
    pub fn asked(&self) -> Arc<Questions> {
        self.asked.clone()
    }

    pub fn has_some(&self) -> bool {
        self.asked.has_some()
    }

    /// What the index is asked because of questions that have come.
    pub fn take_asked(&mut self) -> Vec<ToIndex> {
        if !self.asked.has_some() {
            return Vec::new();
        }
        let mut messages = Vec::new();
        for question in self.asked.take() {
            self.next += 1;
            let (id, url) = (self.next, Box::new(question.url.clone()));
            messages.push(ToIndex::Look { id, url });
            self.open.push_back(OpenQuestion { id, question, looked: None });
            if self.open.len() > OPEN_MAX {
                self.open.pop_front();
            }
        }
        messages
    }

    /// Lets everybody go who still waits for an answer: there will be none.
    pub fn end(&mut self) {
        self.asked.close();
        self.asked.take();
        self.open.clear();
    }

    /// The index has looked. What it handed out is with a shard, or on its way to one: `place` finds that shard, and
    /// whether it is done with the document. If the shard is to be asked, what to ask it.
    pub fn index_answered(
        &mut self,
        id: u64,
        mut looked: Box<Status>,
        place: impl FnOnce(u32) -> Option<(usize, bool)>,
    ) -> Option<(usize, HostWord)> {
        let handed_out = looked.dossier.as_ref().filter(|dossier| dossier.state == Some(DocState::HandedOut));
        let Some(doc_id) = handed_out.map(|dossier| dossier.doc_id) else {
            self.answer(id, looked);
            return None;
        };
        match place(doc_id) {
            Some((shard, false)) => {
                let open = self.open.iter_mut().find(|open| open.id == id)?;
                open.looked = Some(looked);
                let url = Box::new(open.question.url.clone());
                return Some((shard, HostWord::Look { id, url, doc_id }));
            }
            Some((_, true)) => looked.place.at = Place::Stored,
            None => looked.place.at = Place::Resolving,
        }
        self.answer(id, looked);
        None
    }

    pub fn shard_answered(&mut self, id: u64, view: Option<&HostView>, wall: Wall, now: Now) {
        let open = self.open.iter_mut().find(|open| open.id == id);
        let Some(mut looked) = open.and_then(|open| open.looked.take()) else { return };
        match view {
            Some(view) => looked.at_shard(view, wall, now),
            None => looked.place.at = Place::Leftover,
        }
        self.answer(id, looked);
    }

    fn answer(&mut self, id: u64, looked: Box<Status>) {
        if let Some(at) = self.open.iter().position(|open| open.id == id)
            && let Some(open) = self.open.remove(at)
        {
            // The asker may have gone.
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
        assert!(open.open.is_empty() && answered.try_recv().is_err());
    }
}
