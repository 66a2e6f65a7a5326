use super::log_book::LogBook;
use super::log_lines::{Logger, Span};
use super::outbox::Outbox;
use super::scribe::{ScribePort, ToScribe};
use super::words::FromShard;
use crate::base::Now;
use crate::rings::Receiver;
use crate::spider::Fetched;
use crate::url_server::{SpillEvent, UrlServer};

/// What a url server has written down, and fetches back.
pub(super) struct Papers {
    shard: usize,
    pub book: LogBook,
    spill: Receiver<SpillEvent>,
    /// What the scheduler was last told.
    wants: bool,
}

impl Papers {
    pub fn new(shard: usize, logger: Logger, scribe: ScribePort, spill: Receiver<SpillEvent>) -> Papers {
        Papers { shard, book: LogBook::new(logger, scribe), spill, wants: true }
    }

    /// Fetches back what the disk had, before the url server's turn.
    pub fn take_leftovers(&mut self, url_server: &mut UrlServer, now: Now) {
        while let Some(event) = self.spill.pop() {
            url_server.spill_event(event, now);
        }
    }

    /// Hands on what the url server wants written or known, after its turn.
    pub fn hand_on(&mut self, url_server: &mut UrlServer, out: &mut Outbox<FromShard>, now: Now) {
        self.gather(url_server, out);
        self.book.hand_on(now);
    }

    /// Hands on everything, at the end. True once nothing is left.
    pub fn close(&mut self, url_server: &mut UrlServer, out: &mut Outbox<FromShard>, now: Now) -> bool {
        url_server.journal_pauses(now);
        self.gather(url_server, out);
        self.book.close(now)
    }

    fn gather(&mut self, url_server: &mut UrlServer, out: &mut Outbox<FromShard>) {
        while let Some(ask) = url_server.spill_ask() {
            self.book.say(ToScribe::Spill { shard: self.shard, ask });
        }
        if let Some(lines) = url_server.take_journal() {
            // What the next process will rely upon is to be found in the log as well: neither goes without the other.
            self.book.say(ToScribe::Journal(lines));
            self.book.hurry();
        }
        url_server.take_notices().into_iter().for_each(|text| out.say(FromShard::Notice(text)));
        let wants = url_server.wants_more();
        if std::mem::replace(&mut self.wants, wants) != wants {
            out.say(FromShard::Wants(wants));
        }
    }

    /// Something waits to be read.
    pub fn has_words(&self) -> bool {
        !self.spill.is_empty()
    }

    /// When a fetch was on the wire, by the url server's book; to be asked before its release.
    pub fn span(url_server: &UrlServer, fetched: &Fetched, now: Now) -> Span {
        Span { sent: url_server.asked_at(fetched.trans).unwrap_or(fetched.started), ended: now }
    }
}
