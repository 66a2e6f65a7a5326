use crate::base::{Now, Wall};
use crate::config::Config;
use crate::doc_index::DocState;
use crate::engine::crawl::messages::{HostWord, ToIndex};
use crate::engine::inspect::questions::{Answer, Ask, OPEN_MAX, Questions, Reply};
use crate::engine::inspect::status::{Place, Status};
use crate::proto::url::CrawlUrl;
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
    answer: Answer,
    /// Of a question about a URL.
    url: Option<CrawlUrl>,
    looked: Option<Box<Status>>,
}

/// What the scheduler is to do about a question.
pub(crate) enum Asked {
    /// To ask the index. One that its ring has no room for may go unanswered.
    Index(ToIndex),
    /// To hand this to the index, whatever waits before it.
    Take(ToIndex),
    /// To pause, or to go on, and to answer when that is so.
    Pause { id: u64, paused: bool },
    /// To go by these settings.
    Set { id: u64, config: Arc<Config> },
}

impl OpenQuestions {
    /// Where questions are asked.
    pub fn asked(&self) -> Arc<Questions> {
        self.asked.clone()
    }

    pub fn has_some(&self) -> bool {
        self.asked.has_some()
    }

    /// What is to be done because of questions that have come.
    pub fn take_asked(&mut self, head_only: bool) -> Vec<Asked> {
        if !self.asked.has_some() {
            return Vec::new();
        }
        let mut todo = Vec::new();
        for question in self.asked.take() {
            self.next += 1;
            let (id, answer) = (self.next, question.answer);
            let mut open = OpenQuestion { id, answer, url: None, looked: None };
            let asked = match question.ask {
                Ask::Explain(url) => {
                    open.url = Some(url.clone());
                    Asked::Index(ToIndex::Look { id, url: Box::new(url) })
                }
                Ask::Count => Asked::Index(ToIndex::Count { id }),
                Ask::Take(handed) => Asked::Take(ToIndex::Take { id, handed, head_only }),
                Ask::Enter(entries) => Asked::Take(ToIndex::Enter { id, entries }),
                Ask::Close(leaves) => Asked::Take(ToIndex::Origins { id, leaves }),
                Ask::HandOver { domain, nice } => Asked::Take(ToIndex::HandOver { id, domain, nice }),
                Ask::Peers(ask) => Asked::Take(ToIndex::Peers { id, ask }),
                Ask::Feeds(word) => Asked::Take(ToIndex::Feeds { id, word }),
                Ask::Pause(paused) => Asked::Pause { id, paused },
                Ask::Set(config) => Asked::Set { id, config },
            };
            todo.push(asked);
            self.open.push_back(open);
            if self.open.len() > OPEN_MAX {
                self.open.pop_front();
            }
        }
        todo
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
            self.answer(id, Reply::Explained(looked));
            return None;
        };
        match place(doc_id) {
            Some((shard, false)) => {
                let open = self.open.iter_mut().find(|open| open.id == id)?;
                open.looked = Some(looked);
                let url = Box::new(open.url.clone()?);
                return Some((shard, HostWord::Look { id, url, doc_id }));
            }
            Some((_, true)) => looked.place.at = Place::Stored,
            None => looked.place.at = Place::Resolving,
        }
        self.answer(id, Reply::Explained(looked));
        None
    }

    pub fn shard_answered(&mut self, id: u64, view: Option<&HostView>, wall: Wall, now: Now) {
        let open = self.open.iter_mut().find(|open| open.id == id);
        let Some(mut looked) = open.and_then(|open| open.looked.take()) else { return };
        match view {
            Some(view) => looked.at_shard(view, wall, now),
            None => looked.place.at = Place::Leftover,
        }
        self.answer(id, Reply::Explained(looked));
    }

    pub fn answer(&mut self, id: u64, reply: Reply) {
        if let Some(at) = self.open.iter().position(|open| open.id == id)
            && let Some(open) = self.open.remove(at)
        {
            (open.answer)(reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn an_answer_finds_whoever_asked_and_late_ones_nobody() {
        let mut open = OpenQuestions::default();
        let (answer, answered) = channel();
        let answer: Answer = Box::new(move |reply| answer.send(reply).unwrap());
        let explained = |live| Reply::Explained(Box::new(Status { live, ..Status::default() }));
        open.open.push_back(OpenQuestion { id: 7, answer, url: None, looked: None });
        open.answer(6, explained(false));
        assert!(answered.try_recv().is_err(), "another's");
        open.answer(7, explained(true));
        assert_eq!(answered.try_recv().unwrap(), explained(true));
        open.answer(7, explained(false));
        assert!(open.open.is_empty() && answered.try_recv().is_err());
    }
}
