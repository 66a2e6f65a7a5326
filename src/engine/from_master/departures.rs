use super::closed::ClosedDomains;
use super::departure::{Departed, Departure};
use crate::base::Now;
use crate::engine::inspect::handover::{HandoverLine, HandoverReader, handover_path};
use crate::engine::inspect::questions::Questions;
use crate::engine::runtime::events::Event;
use crate::proto::lines::{Handed, NodeWord};
use crate::rings::Doorbell;
use rapidhash::fast::RapidHashSet;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Domains that are with other servers, and what those that are on their way there bring along.
pub(super) struct Departures {
    /// Where it is kept; a simulation has no place.
    directory: Option<PathBuf>,
    closed: ClosedDomains,
    is_closed_written: bool,
    /// Those that are on their way, in the order they were closed.
    leaving: Vec<Departure>,
    /// What one of them brings along, on its way to the master.
    sending: Option<Sending>,
    /// Domains whose handover was sent on the link that stands.
    sent: RapidHashSet<Box<str>>,
}

/// A handover that is read.
struct Sending {
    domain: Box<str>,
    reader: HandoverReader<Box<dyn Read + Send>>,
}

/// What is to be told of a domain.
pub(super) struct DepartureNews {
    pub event: Event,
    pub domain: Box<str>,
    pub text: String,
}

/// Domains that are closed at the same time.
const AT_ONCE: usize = 16;
/// A handover is sent in pieces of so much.
const PIECE_BYTES: usize = 64 * 1_024;

impl Departures {
    pub fn new(closed: ClosedDomains, directory: Option<PathBuf>) -> Departures {
        let depart = |domain| Departure::new(domain, directory.as_deref());
        let leaving = closed.leaving().map(depart).collect();
        Departures {
            directory,
            closed,
            is_closed_written: true,
            leaving,
            sending: None,
            sent: RapidHashSet::default(),
        }
    }

    pub fn closed(&self) -> &ClosedDomains {
        &self.closed
    }

    /// Whether no domain is on its way.
    pub fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    /// A domain is another server's from here on. Nothing behind `seq` of `master` may be done until a master has what the
    /// domain brings along. Says whether that is news.
    pub fn close(&mut self, domain: &str, fence: u32, at: (&str, u64)) -> bool {
        self.closed.close(domain, fence, at);
        self.is_closed_written = false;
        self.sent.remove(domain);
        let is_news = !self.leaving.iter().any(|departure| *departure.domain == *domain);
        if is_news {
            self.leaving.push(Departure::new(domain, None));
        }
        is_news
    }

    /// A domain is with this server.
    pub fn open(&mut self, domain: &str, fence: u32) {
        self.closed.open(domain, fence);
        self.is_closed_written = false;
        self.leaving.retain(|departure| *departure.domain != *domain);
        self.sending.take_if(|sending| *sending.domain == *domain);
        self.forget_handover(domain);
    }

    /// A master has what a domain brings along; whether it was waited for.
    pub fn fenced(&mut self, domain: &str) -> bool {
        if !self.sent.contains(domain) || !self.closed.fenced(domain) {
            return false;
        }
        self.leaving.retain(|departure| *departure.domain != *domain);
        self.sent.remove(domain);
        // First, so that a kill in between only sends a little again.
        self.forget_handover(domain);
        self.is_closed_written = false;
        true
    }

    fn forget_handover(&self, domain: &str) {
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_file(handover_path(directory, domain));
        }
    }

    /// Writes down which domains are closed, unless that is on disk.
    pub fn write_closed(&mut self) -> io::Result<()> {
        if let Some(directory) = self.directory.as_ref().filter(|_| !self.is_closed_written) {
            self.closed.write(directory)?;
        }
        self.is_closed_written = true;
        Ok(())
    }

    /// What was sent on a link that is gone is sent again.
    pub fn begin_anew(&mut self) {
        self.sending = None;
        self.sent.clear();
    }

    /// Goes on with those that are on their way.
    pub fn look(
        &mut self,
        questions: &Questions,
        bell: &Arc<Doorbell>,
        now: Now,
        mut told: impl FnMut(DepartureNews),
    ) {
        for departure in self.leaving.iter_mut().take(AT_ONCE) {
            let (event, text) = match departure.look(questions, bell, now) {
                Departed::Waits => continue,
                Departed::Whole(urls) => {
                    (Event::DomainReady, format!("nothing is on the wire, and {urls} URLs go along"))
                }
                Departed::Trouble(cause) => {
                    (Event::HandoverFails, format!("its handover cannot be written: {cause}"))
                }
            };
            let domain = departure.domain.clone();
            told(DepartureNews { event, text: format!("{domain}: {text}"), domain });
        }
    }

    /// The next piece of what a domain brings along, and at its end that this was all; empty if nothing is to be sent.
    pub fn piece(&mut self, now: Now) -> Result<Vec<u8>, DepartureNews> {
        if self.sending.is_none() {
            self.sending = self.next_sending(now)?;
        }
        let mut bytes = Vec::new();
        let Some(Sending { domain, reader }) = &mut self.sending else { return Ok(bytes) };
        let is_over = loop {
            let word = match reader.next() {
                Ok(HandoverLine::Nice(line)) => NodeWord::Hand { domain, handed: Handed::Nice(line) },
                Ok(HandoverLine::Url(line)) => NodeWord::Hand { domain, handed: Handed::Url(line) },
                Ok(HandoverLine::End) => break true,
                Err(_) => {
                    let domain = std::mem::take(domain);
                    self.sending = None;
                    let damaged = self.leaving.iter_mut().find(|departure| departure.domain == domain);
                    damaged.into_iter().for_each(|departure| departure.begin_anew(now));
                    self.forget_handover(&domain);
                    return Ok(Vec::new());
                }
            };
            // Rules that do not go into a line are asked for again by whoever gets the domain.
            let _ = word.write(&mut bytes);
            if bytes.len() >= PIECE_BYTES {
                break false;
            }
        };
        if is_over {
            let _ = NodeWord::Closed { domain }.write(&mut bytes);
            self.sent.insert(domain.clone());
            self.sending = None;
        }
        Ok(bytes)
    }

    /// One that is written down, and was not sent.
    fn next_sending(&mut self, now: Now) -> Result<Option<Sending>, DepartureNews> {
        let is_due =
            |departure: &&mut Departure| departure.is_ready() && !self.sent.contains(&departure.domain);
        let Some(departure) = self.leaving.iter_mut().find(is_due) else { return Ok(None) };
        let domain = departure.domain.clone();
        match departure.read(self.directory.as_deref()) {
            Ok(reader) => Ok(Some(Sending { domain, reader })),
            Err(cause) => {
                departure.begin_anew(now);
                let text = format!("{domain}: its handover cannot be read: {cause}");
                Err(DepartureNews { event: Event::HandoverFails, domain, text })
            }
        }
    }
}
