use super::closed::ClosedDomains;
use super::departure::{Departed, Departure};
use crate::base::Now;
use crate::engine::inspect::handover::{HandoverLine, HandoverReader, handover_path};
use crate::engine::inspect::questions::Questions;
use crate::engine::runtime::events::Event;
use crate::limits::{HANDED_BYTES_MAX, MASTER_LINE_BYTES_MAX};
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
    /// Domains of which a master was told CLOSED on the link that stands.
    sent: RapidHashSet<Box<str>>,
    /// Of those, what follows once a master has the part before it.
    rests: Vec<Sending>,
    /// Bytes of a part.
    part_bytes: usize,
}

/// A handover that is read.
struct Sending {
    domain: Box<str>,
    reader: HandoverReader<Box<dyn Read + Send>>,
    /// Bytes of the part that is sent.
    bytes: usize,
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
            rests: Vec::new(),
            part_bytes: HANDED_BYTES_MAX,
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
        self.rests.retain(|rest| *rest.domain != *domain);
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
        self.rests.retain(|rest| *rest.domain != *domain);
        self.forget_handover(domain);
    }

    /// A master has what a domain brings along; whether it was waited for, and was all of it.
    pub fn fenced(&mut self, domain: &str) -> bool {
        if self.sent.contains(domain) && self.rests.iter().any(|rest| *rest.domain == *domain) {
            self.sent.remove(domain);
            return false;
        }
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
        self.rests.clear();
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
        let Some(Sending { domain, reader, bytes: part }) = &mut self.sending else { return Ok(bytes) };
        let before = *part;
        let (is_whole, is_part) = loop {
            let word = match reader.next() {
                Ok(HandoverLine::Nice(line)) => NodeWord::Hand { domain, handed: Handed::Nice(line) },
                Ok(HandoverLine::Url(line)) => NodeWord::Hand { domain, handed: Handed::Url(line) },
                Ok(HandoverLine::End) => break (true, false),
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
            *part = before + bytes.len();
            // No line is longer, and the next one is to fit as well.
            let is_part = *part + MASTER_LINE_BYTES_MAX > self.part_bytes;
            if bytes.len() >= PIECE_BYTES || is_part {
                break (false, is_part);
            }
        };
        if is_whole || is_part {
            let _ = NodeWord::Closed { domain }.write(&mut bytes);
            self.sent.insert(domain.clone());
            let rest = self.sending.take().filter(|_| is_part);
            self.rests.extend(rest.map(|rest| Sending { bytes: 0, ..rest }));
        }
        Ok(bytes)
    }

    /// One that is written down, and was not sent.
    fn next_sending(&mut self, now: Now) -> Result<Option<Sending>, DepartureNews> {
        let sent = &self.sent;
        if let Some(at) = self.rests.iter().position(|rest| !sent.contains(&rest.domain)) {
            return Ok(Some(self.rests.remove(at)));
        }
        let is_due =
            |departure: &&mut Departure| departure.is_ready() && !self.sent.contains(&departure.domain);
        let Some(departure) = self.leaving.iter_mut().find(is_due) else { return Ok(None) };
        let domain = departure.domain.clone();
        match departure.read(self.directory.as_deref()) {
            Ok(reader) => Ok(Some(Sending { domain, reader, bytes: 0 })),
            Err(cause) => {
                departure.begin_anew(now);
                let text = format!("{domain}: its handover cannot be read: {cause}");
                Err(DepartureNews { event: Event::HandoverFails, domain, text })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::inspect::handover::HandoverWriter;

    /// A list of more than one part comes whole: the next part follows when a master has the one before.
    #[test]
    fn a_long_list_goes_in_parts_and_none_is_left_out() {
        let directory = std::env::temp_dir().join(format!("nephila-departures-{}", std::process::id()));
        let path = handover_path(&directory, "a.ru");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = HandoverWriter::new(std::fs::File::create(&path).unwrap(), "a.ru").unwrap();
        let url = |number: u32| format!("0\t5\t20260101120000\t0\thttp://a.ru/{number}\t1\t\n");
        (0..2_000).for_each(|number| writer.url(url(number).as_bytes()).unwrap());
        writer.end().unwrap();
        let mut departures = Departures::new(ClosedDomains::default(), Some(directory.clone()));
        departures.closed.close("a.ru", 1, ("m", 0));
        departures.leaving.push(Departure::new("a.ru", Some(&directory)));
        departures.part_bytes = 4 * MASTER_LINE_BYTES_MAX;
        let (mut heard, mut parts) = (Vec::new(), 0);
        loop {
            let piece = departures.piece(Now::ZERO).ok().unwrap();
            heard.extend_from_slice(&piece);
            assert!(piece.len() <= departures.part_bytes);
            if !piece.is_empty() {
                continue;
            }
            assert!(heard.ends_with(b"CLOSED a.ru\n"));
            parts += 1;
            if departures.fenced("a.ru") {
                break;
            }
        }
        let text = String::from_utf8(heard).unwrap();
        assert!(parts > 2 && text.matches("CLOSED").count() == parts, "{parts}");
        for number in 0..2_000 {
            assert_eq!(text.matches(&format!("http://a.ru/{number}\t")).count(), 1, "{number}");
        }
        assert!(!path.exists() && departures.is_empty());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
