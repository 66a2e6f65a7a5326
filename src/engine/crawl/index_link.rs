use crate::doc_index::{IndexStats, RejectList};
use crate::engine::crawl::index_actor::IndexPort;
use crate::engine::crawl::messages::{FromIndex, ToIndex};
use crate::engine::inspect::questions::OPEN_MAX;
use std::collections::VecDeque;
use std::sync::Arc;

/// The scheduler's side of the doc index: what it is told, in order, and what it is asked.
pub(crate) struct IndexLink {
    port: IndexPort,
    /// Messages that the ring had no room for.
    backlog: VecDeque<ToIndex>,
    /// Pieces of URLs that somebody has handed in, and that are not taken yet.
    handed: usize,
    /// A question is open.
    is_asked: bool,
    /// Something happened since the last empty answer that could make the next one better.
    is_worth_asking: bool,
    /// A question found no room.
    is_held_up: bool,
    /// Messages went to the index since the question that is open was asked.
    told_since: bool,
    /// What the index knew when it was last asked.
    stats: IndexStats,
    /// The process ends without the disk: nothing is told any more.
    given_up: bool,
}

/// Something that somebody hands in, and that the index answers once it has it.
fn is_handed(message: &ToIndex) -> bool {
    matches!(
        message,
        ToIndex::Take { .. }
            | ToIndex::Enter { .. }
            | ToIndex::Origins { .. }
            | ToIndex::HandOver { .. }
            | ToIndex::Feeds { .. }
            | ToIndex::Peers { .. }
    )
}

fn is_taken(answer: &FromIndex) -> bool {
    matches!(
        answer,
        FromIndex::Taken { .. }
            | FromIndex::Entered { .. }
            | FromIndex::Origins { .. }
            | FromIndex::HandedOver { .. }
            | FromIndex::Feeds { .. }
            | FromIndex::Peers { .. }
    )
}

impl IndexLink {
    pub fn new(port: IndexPort) -> IndexLink {
        IndexLink {
            port,
            backlog: VecDeque::new(),
            handed: 0,
            is_asked: false,
            is_worth_asking: true,
            is_held_up: false,
            told_since: false,
            stats: IndexStats::default(),
            given_up: false,
        }
    }

    pub fn send(&mut self, message: ToIndex) {
        if self.given_up {
            return;
        }
        self.told_since = true;
        self.is_worth_asking = true;
        self.handed += usize::from(is_handed(&message));
        if !self.backlog.is_empty() {
            self.backlog.push_back(message);
        } else if let Err(message) = self.port.words.push(message) {
            self.backlog.push_back(message);
        }
    }

    /// Sends something that may be lost: true if the ring had room.
    pub fn try_send(&mut self, message: ToIndex) -> bool {
        let sent = self.port.words.push(message).is_ok();
        self.port.bell.ring_if_asleep();
        sent
    }

    /// Hands on what waits, as far as there is room. True if anything went.
    pub fn flush(&mut self) -> bool {
        let mut busy = false;
        while let Some(message) = self.backlog.pop_front() {
            if let Err(message) = self.port.words.push(message) {
                self.backlog.push_front(message);
                break;
            }
            busy = true;
        }
        self.port.bell.ring_if_asleep();
        busy
    }

    /// Whether somebody may hand in more URLs. Whoever does not wait for an answer could fill the memory with them while
    /// a disk is waited for.
    pub fn takes_more(&self) -> bool {
        self.handed < OPEN_MAX
    }

    /// Messages wait for room.
    pub fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub fn receive(&mut self) -> Option<FromIndex> {
        let answer = self.port.answers.pop()?;
        if let FromIndex::Candidates { candidates, stats } = &answer {
            self.is_asked = false;
            self.stats = *stats;
            // An answer that could have been better is asked for again.
            self.is_worth_asking |= self.told_since || !candidates.is_empty();
        }
        self.handed -= usize::from(is_taken(&answer));
        Some(answer)
    }

    pub fn has_answers(&self) -> bool {
        !self.port.answers.is_empty()
    }

    /// Whether a question may be asked, and its answer may be better than the last.
    pub fn may_ask(&self) -> bool {
        !self.is_asked && self.is_worth_asking && self.backlog.is_empty()
    }

    /// Asks for candidates. `is_partial` says that some hosts sit out this one question.
    pub fn ask(&mut self, want: usize, reject: Arc<RejectList>, is_partial: bool) {
        self.is_held_up = !self.try_send(ToIndex::Ask { want, reject });
        if !self.is_held_up {
            self.is_asked = true;
            self.is_worth_asking = is_partial;
            self.told_since = false;
        }
    }

    /// A queue has room again: the next answer may be better.
    pub fn ask_again(&mut self) {
        self.is_worth_asking = true;
    }

    /// Something is due, and no question about it is open.
    pub fn ask_when_idle(&mut self) {
        self.is_worth_asking |= !self.is_asked;
    }

    /// The index has said, knowing everything, that it has nothing more.
    pub fn is_exhausted(&self) -> bool {
        !self.is_asked
            && !self.is_worth_asking
            && self.backlog.is_empty()
            && self.stats.handed_out == 0
            && self.stats.pending == 0
    }

    /// Nothing is on its way to the index or from it.
    pub fn is_quiet(&self) -> bool {
        !self.is_asked && !self.is_held_up && self.backlog.is_empty()
    }

    pub fn stats(&self) -> IndexStats {
        self.stats
    }

    /// Lets go of what the index does not take. Nothing is told after that, as a document must not be done whose links were
    /// let go.
    pub fn give_up(&mut self) {
        self.given_up = true;
        self.backlog.clear();
    }
}
