use super::words::{FromIndex, ToIndex};
use crate::doc_index::{DocIndex, Origin};
use crate::limits::INDEX_RING_WORDS;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use std::sync::Arc;

/// The doc index behind its rings: takes words, answers questions.
pub struct IndexDesk {
    index: DocIndex,
    words: Receiver<ToIndex>,
    answers: Sender<FromIndex>,
    /// The scheduler's bell.
    scheduler: Arc<Doorbell>,
    unanswered: Option<FromIndex>,
}

/// The scheduler's end.
pub struct IndexPort {
    pub words: Sender<ToIndex>,
    pub answers: Receiver<FromIndex>,
    /// The index thread's bell.
    pub bell: Arc<Doorbell>,
}

impl IndexDesk {
    pub fn new(index: DocIndex, scheduler: Arc<Doorbell>, bell: Arc<Doorbell>) -> (IndexDesk, IndexPort) {
        let (words, words_in) = ring(INDEX_RING_WORDS);
        let (answers_out, answers) = ring(4);
        let desk = IndexDesk { index, words: words_in, answers: answers_out, scheduler, unanswered: None };
        (desk, IndexPort { words, answers, bell })
    }

    /// Works off what has come, and says how many words that were.
    pub fn turn(&mut self) -> usize {
        let mut words = 0;
        while self.unanswered.is_none()
            && let Some(word) = self.words.pop()
        {
            words += 1;
            self.take(word);
        }
        if let Some(answer) = self.unanswered.take() {
            match self.answers.push(answer) {
                Ok(()) => self.scheduler.ring_if_asleep(),
                Err(back) => self.unanswered = Some(back),
            }
        }
        words
    }

    pub fn is_idle(&self) -> bool {
        self.words.is_empty() && self.unanswered.is_none()
    }

    pub fn index(&self) -> &DocIndex {
        &self.index
    }

    fn take(&mut self, word: ToIndex) {
        match word {
            ToIndex::Seed(url) => {
                self.index.discover(url.as_str(), Origin::SEED);
            }
            ToIndex::Discover(found) => {
                if let Some(new) = found.new_url {
                    let origin = Origin {
                        via: found.doc_id,
                        depth: new.depth,
                        hops: new.hops,
                        seed_chain: new.seed_chain,
                    };
                    self.index.discover(new.url.as_str(), origin);
                }
                let origin = Origin { via: found.doc_id, depth: found.depth, hops: 0, seed_chain: false };
                for link in found.links.iter() {
                    self.index.discover(link, origin);
                }
            }
            ToIndex::Record { doc_id, result } => {
                self.index.record(doc_id, result);
            }
            ToIndex::Sitemaps(urls) => urls.iter().for_each(|url| self.index.sitemap(url)),
            ToIndex::PutBack(doc_id) => self.index.put_back(doc_id),
            ToIndex::Ask { want, reject } => {
                let candidates = self.index.candidates(want, &reject);
                self.unanswered = Some(FromIndex::Candidates { candidates, stats: self.index.stats() });
            }
        }
    }
}
