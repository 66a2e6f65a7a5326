use crate::base::{Now, Wall, shown};
use crate::doc_index::{IndexStats, RejectList};
use crate::engine::crawl::messages::{FromIndex, ToIndex};
use crate::engine::crawl::peer_provider;
use crate::engine::crawl::provider::Provider;
use crate::engine::inspect::entries::Entries;
use crate::engine::inspect::feed_words::FeedWord;
use crate::engine::inspect::handed::Handed;
use crate::engine::inspect::peer_words::PeerAsk;
use crate::engine::inspect::questions::Leaves;
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::groups::Group;
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::limits::INDEX_RING_WORDS;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use std::io;
use std::sync::Arc;

/// The doc index behind its rings: takes messages, answers questions, and hands what is new to the disk.
pub struct IndexActor {
    provider: Provider,
    messages: Receiver<ToIndex>,
    answers: Sender<FromIndex>,
    /// The scheduler's bell.
    scheduler: Arc<Doorbell>,
    /// What was asked and has no answer yet.
    question: Option<Question>,
    unanswered: Option<FromIndex>,
    /// The answer relies on what is not on disk yet.
    must_sync: bool,
    wall: Wall,
    synced_at: Now,
    measured_at: Now,
    /// The disk has no room: no message is taken until it has.
    is_stalled: bool,
    is_ending: bool,
    health: Arc<Health>,
    counters: Arc<Counters>,
}

/// The scheduler's end.
pub struct IndexPort {
    pub words: Sender<ToIndex>,
    pub answers: Receiver<FromIndex>,
    /// The index thread's bell.
    pub bell: Arc<Doorbell>,
}

enum Question {
    /// What a url server has room for.
    Candidates {
        want: usize,
        reject: Arc<RejectList>,
    },
    Status {
        id: u64,
        url: Box<CrawlUrl>,
    },
    Count {
        id: u64,
    },
    Take {
        id: u64,
        handed: Box<Handed>,
        head_only: bool,
    },
    Enter {
        id: u64,
        entries: Box<Entries>,
    },
    Origins {
        id: u64,
        leaves: Leaves,
    },
    HandOver {
        id: u64,
        domain: Box<str>,
        nice: String,
    },
    Feeds {
        id: u64,
        word: Box<FeedWord>,
    },
    Peers {
        id: u64,
        ask: Box<PeerAsk>,
    },
}

/// Messages that are worked off together.
const MESSAGES_AT_ONCE: usize = 64;
/// A crash of the machine costs no more than this.
const SYNC_US: u64 = 1_000_000;
/// What it takes of memory and disk is measured this often: files are asked for their sizes.
const MEASURE_US: u64 = 1_000_000;

impl IndexActor {
    pub(crate) fn new(
        provider: Provider,
        wall: Wall,
        (scheduler, bell): (Arc<Doorbell>, Arc<Doorbell>),
        health: Arc<Health>,
        counters: Arc<Counters>,
    ) -> (IndexActor, IndexPort) {
        let (words, messages) = ring(INDEX_RING_WORDS);
        let (answers_out, answers) = ring(4);
        let actor = IndexActor {
            provider,
            messages,
            answers: answers_out,
            scheduler,
            question: None,
            unanswered: None,
            must_sync: false,
            wall,
            synced_at: Now::ZERO,
            measured_at: Now::ZERO,
            is_stalled: false,
            is_ending: false,
            health,
            counters,
        };
        (actor, IndexPort { words, answers, bell })
    }

    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    pub fn provider_mut(&mut self) -> &mut Provider {
        &mut self.provider
    }

    /// Works off what has come, and says how many messages that were. A disk that is full is an error that passes: what is
    /// not written is in memory, and nothing more is taken until it is.
    fn work_off(&mut self, now: Now) -> io::Result<u64> {
        let now_s = u32::try_from(self.wall.unix_ms(now) / 1_000).unwrap_or(u32::MAX);
        let mut count = 0;
        while !self.is_stalled && !self.provider.index().is_troubled() && self.unanswered.is_none() {
            if let Some(question) = self.question.take() {
                count += 1;
                self.answer(question, now_s);
                // What was excluded on the way is written before it goes on.
                if self.question.is_some() {
                    break;
                }
                continue;
            }
            let taken = self.gather();
            if taken.is_empty() && self.question.is_none() {
                break;
            }
            count += taken.len() as u64;
            self.provider.receive(taken, now_s);
            for (url, page) in self.provider.take_named_feeds() {
                let text = format!("{} names a feed: {}", shown(&page, 300), shown(url.as_str(), 300));
                let fields = vec![("url", url.as_str().into()), ("page", page.as_ref().into())];
                self.health.tell(Event::FeedNamed, fields, text);
            }
        }
        // What is handed out is in the files: after a kill, the process that fetched it finds it by its number.
        if self.provider.is_dirty() || self.must_sync {
            self.flush(self.must_sync)?;
            self.must_sync = false;
        }
        if let Some(answer) = self.unanswered.take() {
            match self.answers.push(answer) {
                Ok(()) => self.scheduler.ring_if_asleep(),
                Err(back) => self.unanswered = Some(back),
            }
        }
        if now.since_us(self.synced_at) >= SYNC_US {
            self.flush(true)?;
            self.synced_at = now;
        }
        Ok(count)
    }

    fn flush(&mut self, sync: bool) -> io::Result<()> {
        self.is_stalled = true;
        self.provider.flush(sync)?;
        self.is_stalled = false;
        Ok(())
    }

    fn answer(&mut self, question: Question, now_s: u32) {
        match question {
            Question::Candidates { want, reject } => match self.provider.candidates(want, &reject, now_s) {
                Some(candidates) => {
                    let stats = self.provider.index().stats();
                    self.unanswered = Some(FromIndex::Candidates { candidates, stats });
                }
                None => self.question = Some(Question::Candidates { want, reject }),
            },
            Question::Status { id, url } => {
                let looked = Box::new(self.provider.look(&url));
                self.unanswered = Some(FromIndex::Status { id, looked });
            }
            Question::Count { id } => {
                self.unanswered = Some(FromIndex::Counted { id, stats: self.provider.index().stats() });
            }
            Question::Take { id, handed, head_only } => {
                let (taken, into_scope) = self.provider.take_in(&handed, head_only, now_s);
                self.unanswered = Some(FromIndex::Taken { id, taken, into_scope });
                self.must_sync = true;
            }
            Question::Enter { id, entries } => {
                let (entered, into_scope) = self.provider.enter(&entries, now_s);
                let entered = Box::new(entered);
                self.unanswered = Some(FromIndex::Entered { id, entered, into_scope });
                self.must_sync = true;
            }
            Question::Origins { id, leaves } => {
                let origins = self.provider.leave(&leaves);
                self.unanswered = Some(FromIndex::Origins { id, origins });
            }
            Question::HandOver { id, domain, nice } => {
                let made = self.provider.hand_over(&domain, &nice, now_s);
                self.unanswered = Some(FromIndex::HandedOver { id, made });
                self.must_sync = true;
            }
            Question::Feeds { id, word } => {
                let told = self.provider.obey(&word, now_s).map_err(|error| error.to_string());
                self.unanswered = Some(FromIndex::Feeds { id, told });
                self.must_sync = true;
            }
            Question::Peers { id, ask } => {
                // What is read of the ledger need not be durable: whoever hears of it keeps it.
                self.must_sync =
                    matches!(*ask, PeerAsk::Adopt(_) | PeerAsk::Share(_) | PeerAsk::TakeMoved(_));
                let (told, news) = peer_provider::answer(&mut self.provider, *ask, now_s);
                let (told, news) = (Box::new(told), Box::new(news));
                self.unanswered = Some(FromIndex::Peers { id, told, news });
            }
        }
    }

    /// Some of the messages that wait, up to a question: one that is asked has its answer before the next.
    fn gather(&mut self) -> Vec<ToIndex> {
        let mut taken = Vec::new();
        while taken.len() < MESSAGES_AT_ONCE
            && self.question.is_none()
            && let Some(message) = self.messages.pop()
        {
            match message {
                ToIndex::Ask { want, reject } => self.question = Some(Question::Candidates { want, reject }),
                ToIndex::Look { id, url } => self.question = Some(Question::Status { id, url }),
                ToIndex::Count { id } => self.question = Some(Question::Count { id }),
                ToIndex::Take { id, handed, head_only } => {
                    self.question = Some(Question::Take { id, handed, head_only });
                }
                ToIndex::Enter { id, entries } => self.question = Some(Question::Enter { id, entries }),
                ToIndex::Origins { id, leaves } => self.question = Some(Question::Origins { id, leaves }),
                ToIndex::HandOver { id, domain, nice } => {
                    self.question = Some(Question::HandOver { id, domain, nice });
                }
                ToIndex::Feeds { id, word } => self.question = Some(Question::Feeds { id, word }),
                ToIndex::Peers { id, ask } => self.question = Some(Question::Peers { id, ask }),
                message => taken.push(message),
            }
        }
        taken
    }

    fn publish(&mut self, now: Now) {
        let index = self.provider.index();
        let stats = index.stats();
        let IndexStats { pending, handed_out, waiting, success, errors, excluded, .. } = stats;
        let urls = [pending, handed_out, waiting, success, errors, excluded];
        self.counters.set_all(Group::IndexUrls, &urls);
        self.counters.set(Counter::IndexHosts, stats.hosts);
        let links = index.links();
        self.counters.set_all(Group::Links, &[links.new, links.known, links.over_budget, 0]);
        if now.since_us(self.measured_at) >= MEASURE_US {
            self.measured_at = now;
            let bytes = index.bytes();
            let (ram, disk) = (
                [bytes.seen_ram, bytes.frontier_ram, bytes.other_ram],
                [bytes.ledger_disk, bytes.documents_disk, bytes.seen_disk, bytes.frontier_disk],
            );
            self.counters.set_all(Group::IndexMemory, &ram);
            self.counters.set_all(Group::IndexDisk, &disk);
            self.counters.set(Counter::IndexMemoryMax, index.memory_max() as u64);
            if let Some(polls) = self.provider.polls() {
                polls.publish(&self.counters);
            }
        }
        self.counters.set(Counter::Known, stats.known);
        self.counters.set(Counter::Pending, stats.pending + stats.handed_out);
        self.counters.set(Counter::Waiting, stats.waiting);
    }

    fn is_idle(&self) -> bool {
        let is_waiting = self.messages.is_empty() && self.question.is_none();
        (is_waiting || self.is_stalled) && self.unanswered.is_none()
    }

    fn work_off_and_close(&mut self, now: Now, is_over: bool) -> io::Result<u64> {
        let count = self.work_off(now)?;
        if is_over {
            self.provider.close()?;
        }
        Ok(count)
    }
}

impl Actor for IndexActor {
    fn turn(&mut self, now: Now) -> Turned {
        if self.is_ending {
            // The asker is gone.
            (self.question, self.unanswered) = (None, None);
        }
        let is_over = self.is_ending && self.is_idle();
        match self.work_off_and_close(now, is_over) {
            Ok(messages) => {
                self.health.wait_for(Part::Index, None);
                self.publish(now);
                if is_over { Turned::Finished } else { Turned::Idle { messages } }
            }
            // It is all in memory, and nothing more comes in. Without an end to it, it is found again.
            Err(cause) if is_full(&cause) && !is_over => {
                let text = format!("fetching waits for disk space: the doc index: {cause}");
                self.health.wait_for(Part::Index, Some(text));
                Turned::Stuck
            }
            Err(cause) => {
                self.health.fatal(NodeError::Index(cause));
                Turned::Finished
            }
        }
    }

    fn has_messages(&self) -> bool {
        !self.is_idle()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}

/// A disk that may have room again.
fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
