use crate::base::{Now, shown};
use crate::engine::crawl::log_book::LogBook;
use crate::engine::crawl::log_lines::{Logger, Span};
use crate::engine::crawl::messages::FromShard;
use crate::engine::runtime::log_writer::{LogWriterPort, ToLogWriter};
use crate::engine::runtime::outbox::Outbox;
use crate::rings::Receiver;
use crate::spider::Fetched;
use crate::url_server::{RobotsStep, SpillEvent, UrlServer};

/// What a url server has written down, and fetches back.
pub(crate) struct Papers {
    shard: usize,
    pub book: LogBook,
    spill: Receiver<SpillEvent>,
    /// What the scheduler was last told.
    wants: bool,
    /// Hosts out of reach that were spoken of.
    unreachable_said: u8,
}

/// More of them would only hide the rest; the crawl log has them all.
const UNREACHABLE_SAID_MAX: u8 = 8;

impl Papers {
    pub fn new(shard: usize, logger: Logger, scribe: LogWriterPort, spill: Receiver<SpillEvent>) -> Papers {
        Papers { shard, book: LogBook::new(logger, scribe), spill, wants: true, unreachable_said: 0 }
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
            self.book.say(ToLogWriter::Spill { shard: self.shard, ask });
        }
        if let Some(lines) = url_server.take_journal() {
            // What the next process will rely upon is to be found in the log as well: neither goes without the other.
            self.book.say(ToLogWriter::Journal(lines));
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

    /// The robots rules of a host could not be had, so that nothing is asked of it: says why.
    pub fn unreachable(&mut self, origin: &str, fetched: &Fetched, out: &mut Outbox<FromShard>) {
        if self.unreachable_said == UNREACHABLE_SAID_MAX {
            return;
        }
        self.unreachable_said += 1;
        let cause = match fetched.status() {
            0 => fetched.result.to_string(),
            status => format!("{}, status {status}", fetched.result),
        };
        let flags: String = fetched.flags.names().map(|name| format!(", {name}")).collect();
        let text = format!("{}: nothing is asked of it, as its robots.txt cannot be had", shown(origin, 200));
        out.say(FromShard::Notice(format!("{text} ({cause}{flags})")));
    }

    /// Logs a request whose answer was that it is to be made differently.
    pub fn log_again(&mut self, url_server: &UrlServer, fetched: &Fetched, now: Now) {
        let span = Papers::span(url_server, fetched, now);
        let (logger, lines) = (self.book.logger, &mut self.book.lines);
        match url_server.doc_id(fetched.trans) {
            Some(doc_id) => logger.order(lines, doc_id, fetched, span),
            None => {
                let origin = url_server.origin(fetched.trans).unwrap_or_default();
                logger.robots(lines, origin, fetched, &RobotsStep::Hop, span);
            }
        }
    }

    /// When a fetch was on the wire, by the url server's book; to be asked before its release.
    pub fn span(url_server: &UrlServer, fetched: &Fetched, now: Now) -> Span {
        Span { sent: url_server.asked_at(fetched.trans).unwrap_or(fetched.started), ended: now }
    }
}
