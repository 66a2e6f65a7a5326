use super::log_lines::{Logger, Span};
use super::outbox::Outbox;
use super::scribe::{ScribePort, ToScribe};
use super::words::FromShard;
use crate::base::Now;
use crate::limits::{LOG_BATCH_BYTES, SCRIBE_BACKLOG_MAX};
use crate::rings::Receiver;
use crate::spider::Fetched;
use crate::url_server::{SpillEvent, UrlServer};
use std::collections::VecDeque;

/// What a shard has written down, and fetches back: its end of the scribe.
pub(super) struct Papers {
    shard: usize,
    pub logger: Logger,
    pub log: Vec<u8>,
    scribe: ScribePort,
    spill: Receiver<SpillEvent>,
    /// Words the scribe's ring had no room for.
    backlog: VecDeque<ToScribe>,
    /// What the scheduler was last told.
    wants: bool,
    handed_on_at: Now,
}

/// A log that is not full is handed on this often.
const HAND_ON_US: u64 = 20_000;

impl Papers {
    pub fn new(shard: usize, logger: Logger, scribe: ScribePort, spill: Receiver<SpillEvent>) -> Papers {
        Papers {
            shard,
            logger,
            log: Vec::new(),
            scribe,
            spill,
            backlog: VecDeque::new(),
            wants: true,
            handed_on_at: Now::ZERO,
        }
    }

    /// Fetches back what the disk had, before the url server's turn.
    pub fn take_leftovers(&mut self, url_server: &mut UrlServer, now: Now) {
        while let Some(event) = self.spill.pop() {
            url_server.spill_event(event, now);
        }
    }

    /// Hands on what the url server wants written or known, after its turn.
    pub fn hand_on(&mut self, url_server: &mut UrlServer, out: &mut Outbox<FromShard>, now: Now) {
        while let Some(ask) = url_server.spill_ask() {
            self.backlog.push_back(ToScribe::Spill { shard: self.shard, ask });
        }
        let journal = url_server.take_journal();
        // What the next process will rely upon is to be found in the log as well, so neither goes without the other.
        let must_follow = journal.is_some();
        self.backlog.extend(journal.map(ToScribe::Journal));
        url_server.take_notices().into_iter().for_each(|text| out.say(FromShard::Notice(text)));
        let due = now.since_us(self.handed_on_at) >= HAND_ON_US;
        if self.log.len() >= LOG_BATCH_BYTES || ((due || must_follow) && !self.log.is_empty()) {
            self.handed_on_at = now;
            let next = Vec::with_capacity(self.log.capacity());
            self.backlog.push_back(ToScribe::Log(std::mem::replace(&mut self.log, next)));
        }
        let wants = url_server.wants_more();
        if std::mem::replace(&mut self.wants, wants) != wants {
            out.say(FromShard::Wants(wants));
        }
        self.push();
    }

    /// Hands on everything, at the end.
    pub fn close(&mut self, url_server: &mut UrlServer, out: &mut Outbox<FromShard>, now: Now) {
        url_server.journal_pauses(now);
        self.handed_on_at = Now::ZERO;
        self.hand_on(url_server, out, now.plus_us(HAND_ON_US));
    }

    fn push(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        while let Some(word) = self.backlog.pop_front() {
            if let Err(word) = self.scribe.words.push(word) {
                self.backlog.push_front(word);
                break;
            }
        }
        self.scribe.bell.ring_if_asleep();
    }

    /// When something must be handed on even if nothing comes.
    pub fn next_due(&self, now: Now) -> Option<Now> {
        if !self.backlog.is_empty() {
            return Some(now.plus_ms(2));
        }
        (!self.log.is_empty()).then(|| self.handed_on_at.plus_us(HAND_ON_US))
    }

    /// Nothing is waiting to be written.
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty() && self.log.is_empty()
    }

    /// Something waits to be read.
    pub fn has_words(&self) -> bool {
        !self.spill.is_empty()
    }

    /// The scribe cannot keep up, or the disk is full.
    pub fn is_full(&self) -> bool {
        self.backlog.len() >= SCRIBE_BACKLOG_MAX
    }

    /// When a fetch was on the wire, by the url server's book; to be asked before its release.
    pub fn span(url_server: &UrlServer, fetched: &Fetched, now: Now) -> Span {
        Span { sent: url_server.asked_at(fetched.trans).unwrap_or(fetched.started), ended: now }
    }
}
