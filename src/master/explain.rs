//! How things stand with a URL at a master: when it came and was sent, to whom, and why not now.

use super::args::Args;
use super::epoch::{CurrentRow, DomainBy, TagMark};
use super::keeping::MasterView;
use super::queue::{BlockKind, Entry, QueueError};
use super::{MapRow, ServerId};
use crate::base::{counted, rfc3339};
use crate::proto::url::CrawlUrl;
use std::io::{self, BufRead};

/// What is known of a URL.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The normal form.
    pub url: String,
    /// The URL that it counts as, if parameters that make no other document are left out.
    pub counts_as: Option<String>,
    pub id: Option<u64>,
    pub domain: String,
    pub row: Option<MapRow>,
    /// What current_log says.
    pub current: Option<CurrentRow>,
    /// Sendings that the queues still have, the oldest first.
    pub sent: Vec<SentAt>,
    /// Hits that are held.
    pub held_hits: u64,
    /// Why, in a sentence.
    pub verdict: String,
}

/// One sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentAt {
    pub server: ServerId,
    pub seq: u64,
    pub epoch: u64,
    /// In reflog time.
    pub at_s: u32,
    pub hits: u32,
    pub tag: String,
}

const SENT_MAX: usize = 100;

impl Explained {
    pub fn of(view: &mut MasterView, url: &CrawlUrl, now_s: u32) -> io::Result<Explained> {
        let rules = view.rules();
        let domain = match rules.by() {
            DomainBy::Registrable => url.registrable_domain(),
            DomainBy::Host => url.host(),
        };
        let text = url.as_str();
        // Parameters that make no other document are not part of what it is known by.
        let args = view.query_args()?;
        let identity = args.identity(text);
        let id = view.key()?.map(|key| key.id(identity.as_bytes()));
        let current = match (view.current()?, id) {
            (Some(current), Some(id)) => current.find(id)?,
            _ => None,
        };
        let row = view.map().get(domain);
        let same = Same { args: &args, identity: &identity };
        let sent = sendings(view, &same)?;
        let held_hits = held_hits(view, &same)?;
        let mut explained = Explained {
            url: text.to_string(),
            counts_as: (identity != text).then(|| identity.to_string()),
            id,
            domain: domain.to_string(),
            row,
            current,
            sent,
            held_hits,
            verdict: String::new(),
        };
        explained.verdict = explained.verdict(view, now_s);
        Ok(explained)
    }

    /// Whether the master knows it at all.
    pub fn is_known(&self) -> bool {
        self.current.is_some() || !self.sent.is_empty() || self.held_hits > 0
    }

    fn verdict(&self, view: &MasterView, now_s: u32) -> String {
        let rules = view.rules();
        if self.held_hits > 0 {
            let why = match &self.row {
                None => match view.unplaced_since_s() {
                    Some(since_s) => format!("its domain could not be placed since {}", at(since_s)),
                    None => "its domain has no server yet".to_string(),
                },
                Some(row) => match row.moving_to {
                    Some(to) => format!("its domain moves from server {} to {}", row.server.0, to.0),
                    None => {
                        format!("the queue of server {} is full, or the server not configured", row.server.0)
                    }
                },
            };
            return format!("not sent: {why}; {} held", counted_hits(self.held_hits));
        }
        let Some(current) = self.current.filter(|current| current.sent_s > 0) else {
            return match self.sent.last() {
                Some(last) => format!(
                    "sent {} before, and forgotten since: sent at once when it comes again",
                    ago(last.at_s, now_s)
                ),
                None => "not seen in the last hour: sent at once when it comes".to_string(),
            };
        };
        let age_s = now_s.saturating_sub(current.sent_s);
        if age_s > rules.resend_after {
            let waiting = match current.hits {
                0 => String::new(),
                hits => format!(", with the {} that wait", counted_hits(u64::from(hits))),
            };
            return format!("sent {} before: sent when it comes again{waiting}", ago(current.sent_s, now_s));
        }
        let mut room = [0; 8];
        let tag = match (current.tag, current.tag.text(&mut room)) {
            // The first tag that comes is no change.
            (TagMark::NONE, _) => "without a tag: sent again".to_string(),
            (_, Some(tag)) => {
                format!(
                    "with tag {}: sent again when it comes with another, or",
                    String::from_utf8_lossy(tag)
                )
            }
            (_, None) => "with a tag: sent again when it comes with another, or".to_string(),
        };
        let waiting = match current.hits {
            0 => "no hits wait".to_string(),
            hits => waiting_hits(u64::from(hits)),
        };
        let again = at(current.sent_s.saturating_add(rules.resend_after).saturating_add(1));
        format!(
            "sent {} before, {tag} from {again} on ({} after it was sent); {waiting}",
            ago(current.sent_s, now_s),
            length(rules.resend_after)
        )
    }
}

fn counted_hits(hits: u64) -> String {
    counted(hits, "hit")
}

fn waiting_hits(hits: u64) -> String {
    format!("{} {}", counted_hits(hits), if hits == 1 { "waits" } else { "wait" })
}

fn at(unix_s: u32) -> String {
    rfc3339(u64::from(unix_s) * 1_000)
}

fn ago(at_s: u32, now_s: u32) -> String {
    length(now_s.saturating_sub(at_s))
}

/// A length of time in its two largest units.
fn length(seconds: u32) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(size, _)| seconds >= *size).unwrap_or(units.len() - 1);
    let (size, unit) = units[first];
    match units.get(first + 1).map(|(next, unit)| (seconds % size / next, unit)) {
        None | Some((0, _)) => format!("{} {unit}", seconds / size),
        Some((rest, next)) => format!("{} {unit} {rest} {next}", seconds / size),
    }
}

/// URLs that count as one.
struct Same<'a> {
    args: &'a Args,
    identity: &'a str,
}

impl Same<'_> {
    /// What all of them begin with.
    fn beginning(&self) -> &[u8] {
        let end = self.identity.find('?').unwrap_or(self.identity.len());
        &self.identity.as_bytes()[..end]
    }

    fn holds(&self, url: &[u8]) -> bool {
        let text = str::from_utf8(url).ok().filter(|_| url.starts_with(self.beginning()));
        text.is_some_and(|text| self.args.identity(text) == self.identity)
    }
}

/// Where the queues have a URL.
fn sendings(view: &mut MasterView, same: &Same<'_>) -> io::Result<Vec<SentAt>> {
    let finder = memchr::memmem::Finder::new(same.beginning());
    let mut found = Vec::new();
    for (server, queue) in view.queues() {
        let mut from = queue.first_seq();
        loop {
            let read = queue.blocks(from, |header, lines| {
                if header.kind == BlockKind::Epoch && finder.find(lines).is_some() {
                    let lines = lines[..lines.len() - 1].split(|byte| *byte == b'\n');
                    for (seq, line) in (header.first_seq..).zip(lines) {
                        if let Entry::Url(record) = Entry::read(line)
                            && same.holds(record.url)
                        {
                            let tag = String::from_utf8_lossy(record.tag).into_owned();
                            let (epoch, at_s, hits) = (header.epoch, record.at.s(), record.hits);
                            found.push(SentAt { server, seq, epoch, at_s, hits, tag });
                        }
                    }
                }
                true
            });
            match read {
                Ok(_) => break,
                Err(QueueError::Damaged { seq, next, .. }) => from = next.max(seq + 1),
                Err(e) => return Err(io::Error::other(e.to_string())),
            }
        }
    }
    found.sort_by_key(|sent| sent.epoch);
    let more = found.len().saturating_sub(SENT_MAX);
    found.drain(..more);
    Ok(found)
}

fn held_hits(view: &MasterView, same: &Same<'_>) -> io::Result<u64> {
    let Some(path) = view.held_path() else { return Ok(0) };
    let mut hits = 0;
    for line in io::BufReader::new(std::fs::File::open(path)?).split(b'\n') {
        if let Entry::Url(record) = Entry::read(&line?)
            && same.holds(record.url)
        {
            hits += u64::from(record.hits);
        }
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_has_units() {
        assert_eq!(ago(0, 17 * 60 + 3), "17 min 3 s");
        assert_eq!(ago(0, 5 * 3_600), "5 h");
        assert_eq!(ago(0, 3_600 + 59), "1 h");
        assert_eq!(ago(0, 3 * 86_400 + 3_660), "3 d 1 h");
        assert_eq!(ago(50, 0), "0 s");
        assert_eq!(waiting_hits(12), "12 hits wait");
        assert_eq!(waiting_hits(1), "1 hit waits");
    }
}
