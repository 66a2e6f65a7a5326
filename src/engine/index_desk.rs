use super::rereading::Rereading;
use super::words::{FromIndex, ToIndex};
use crate::doc_index::{DocIndex, Origin};
use crate::limits::INDEX_RING_WORDS;
use crate::proto::record::ResultCode;
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
    rereading: Option<Rereading>,
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
        let desk = IndexDesk {
            index,
            words: words_in,
            answers: answers_out,
            scheduler,
            unanswered: None,
            rereading: None,
        };
        (desk, IndexPort { words, answers, bell })
    }

    /// Has pages that have not changed read from the store.
    pub fn with_rereading(self, rereading: Rereading) -> IndexDesk {
        IndexDesk { rereading: Some(rereading), ..self }
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

    fn read_again(&mut self, doc_id: u32) {
        let Some(rereading) = &mut self.rereading else { return };
        let Some(candidate) = self.index.candidate(doc_id) else { return };
        let Some(handled) = rereading.read(&candidate).filter(|_| !candidate.head_only) else { return };
        let (depth, seed_chain) = (candidate.depth, candidate.seed_chain);
        if let Some(url) = handled.new_url.filter(|_| handled.follow) {
            let hops = candidate.hops + 1;
            let origin = Origin { via: doc_id, depth, hops, seed_chain, head_only: false };
            self.index.discover(url.as_str(), origin);
        }
        let depth = depth.saturating_add(1);
        let origin = Origin { via: doc_id, depth, hops: 0, seed_chain: false, head_only: false };
        for link in handled.links.iter() {
            self.index.discover(link, origin);
        }
    }

    fn take(&mut self, word: ToIndex) {
        match word {
            ToIndex::Seed { url, head_only } => {
                self.index.discover(url.as_str(), Origin { head_only, ..Origin::SEED });
            }
            ToIndex::Discover(found) => {
                if let Some(new) = found.new_url {
                    let origin = Origin {
                        via: found.doc_id,
                        depth: new.depth,
                        hops: new.hops,
                        seed_chain: new.seed_chain,
                        head_only: new.head_only,
                    };
                    self.index.discover(new.url.as_str(), origin);
                }
                let (via, depth) = (found.doc_id, found.depth);
                let origin = Origin { via, depth, hops: 0, seed_chain: false, head_only: false };
                for link in found.links.iter() {
                    self.index.discover(link, origin);
                }
            }
            ToIndex::Record { doc_id, result } => {
                if self.index.record(doc_id, result) && result == ResultCode::NotModified {
                    self.read_again(doc_id);
                }
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
