//! An epoch in text, for whoever wants to look at it with sort and join: the same steps, with URLs beside the rows.

use super::buckets::{Buckets, Ways};
use super::domain::{DomainsPool, LentDomains};
use super::groups::Grouped;
use super::id_key::IdKey;
use super::intake::take_in;
use super::job::{JoinJob, UrlCanon};
use super::join::each_partition;
use super::known::{Known, KnownRows, KnownText};
use super::line::{Line, LineHead};
use super::partition::{SentNow, Sink};
use super::row::{CurrentRow, TagMark};
use super::spill_file::{Part, SpillFile};
use crate::base::{push_decimal, shown, u32_at};
use crate::master::EpochCounts;
use crate::proto::reflog::{Stamp, StampReader, StampWriter};
use crate::proto::url::{CrawlUrl, is_normal};
use memchr::memchr;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::{Mutex, PoisonError};

/// Where the lines of filtered_log and current_log go.
pub struct TextOut<'a> {
    /// URL, domain, time, hits, tag.
    pub filtered: &'a mut (dyn Write + Send),
    /// URL, domain, sent, seen, hits since sent, tag.
    pub current: &'a mut (dyn Write + Send),
}

/// Makes an epoch whose logs are text, in the order of ids. What is known is told by `current`, a text, or by the job; of a
/// row that only the job's knows there is no URL, and `#` with its id stands for it.
pub fn join_text(
    mut job: JoinJob<'_>,
    current: Option<&mut dyn Read>,
    out: TextOut<'_>,
) -> io::Result<EpochCounts> {
    let idle = Mutex::<Vec<Texts>>::default();
    let spill = SpillFile::new(job.work);
    let eighth = job.rules.memory_bytes / 8;
    let known =
        current.map(|text| TextLog::read(text, job.key, job.canon, eighth * 2, &spill)).transpose()?;
    let taken = take_in(&mut job, eighth * 4, &spill)?;
    let domains = DomainsPool::new(job.rules.by);
    let make = |_| TextSink {
        domains: domains.lend(),
        stamps: StampWriter::default(),
        texts: idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default(),
    };
    let in_order = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), out, idle: &idle });
    let made =
        |partition, sink| in_order.lock().unwrap_or_else(PoisonError::into_inner).take(partition, sink);
    match &known {
        Some(known) => each_partition(&job, &spill, taken, known, make, made),
        None => each_partition(&job, &spill, taken, &job.current, make, made),
    }
}

/// A current_log of text, by partition.
struct TextLog<'s> {
    /// A row as a line: the page is its domain, the batch its time of being seen.
    parts: Vec<Mutex<Vec<Part>>>,
    spill: &'s SpillFile,
}

const READ_BYTES: usize = 1 << 18;

impl<'s> TextLog<'s> {
    fn read(
        text: &mut dyn Read,
        key: &IdKey,
        canon: &dyn UrlCanon,
        memory_bytes: usize,
        spill: &'s SpillFile,
    ) -> io::Result<TextLog<'s>> {
        let mut buckets = Buckets::new(Ways::PARTITIONS, memory_bytes, false, spill);
        let mut read =
            TextReader { key, canon, scratch: String::new(), stamps: StampReader::default(), line: 0 };
        let mut buffer = vec![0; READ_BYTES];
        let mut filled = 0;
        loop {
            if filled == buffer.len() {
                buffer.resize(2 * filled, 0);
            }
            let count = text.read(&mut buffer[filled..])?;
            filled += count;
            let mut at = 0;
            while let Some(end) = memchr(b'\n', &buffer[at..filled]) {
                read.row(&buffer[at..at + end], &mut buckets)?;
                at += end + 1;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
            if filled > TEXT_LINE_BYTES_MAX {
                return Err(read.wrong("too long", &buffer[..filled]));
            }
            if count == 0 {
                break;
            }
        }
        if filled > 0 {
            read.row(&buffer[..filled], &mut buckets)?;
        }
        Ok(TextLog { parts: buckets.into_parts().0.into_iter().map(Mutex::new).collect(), spill })
    }
}

const TEXT_LINE_BYTES_MAX: usize = 64 * 1_024;

struct TextReader<'a> {
    key: &'a IdKey,
    canon: &'a dyn UrlCanon,
    scratch: String,
    stamps: StampReader,
    line: u64,
}

impl TextReader<'_> {
    fn wrong(&self, what: &str, text: &[u8]) -> io::Error {
        let shown = shown(&String::from_utf8_lossy(&text[..text.len().min(100)]), 100);
        let text = format!("current_log: line {}: {what}: {shown}", self.line);
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    fn row(&mut self, text: &[u8], buckets: &mut Buckets<'_>) -> io::Result<()> {
        self.line += 1;
        let mut fields = [b"".as_slice(); 6];
        let mut rest = text;
        for field in &mut fields[..5] {
            let Some(end) = memchr(b'\t', rest) else {
                return Err(self.wrong("not URL, domain, sent, seen, hits and tag, with tabs", text));
            };
            (*field, rest) = (&rest[..end], &rest[end + 1..]);
        }
        fields[5] = rest;
        let [url, domain, sent, seen, hits, tag] = fields;
        let (Some(sent), Some(seen)) = (self.stamps.parse(sent), self.stamps.parse(seen)) else {
            return Err(self.wrong("no time as YYYYMMDDhhmmss", text));
        };
        let digits = !hits.is_empty() && hits.len() < 20 && hits.iter().all(u8::is_ascii_digit);
        let number = |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let hits = match digits {
            true => number(hits).min(u64::from(u32::MAX)) as u32,
            false => return Err(self.wrong("no count of hits", text)),
        };
        if memchr(b'\t', tag).is_some() || tag.len() > usize::from(u8::MAX) {
            return Err(self.wrong("a tag with a tab in it, or too long", text));
        }
        let normal;
        let url = if is_normal(url) {
            url
        } else {
            let Some(parsed) = str::from_utf8(url).ok().and_then(|url| CrawlUrl::parse(url).ok()) else {
                return Err(self.wrong("not a URL", text));
            };
            normal = parsed;
            normal.as_str().as_bytes()
        };
        let id = match self.canon.is_identity() {
            true => self.key.id(url),
            false => {
                let form = self.canon.apply(str::from_utf8(url).unwrap_or_default(), &mut self.scratch);
                self.key.id(form.as_bytes())
            }
        };
        let page = if domain.len() <= usize::from(u8::MAX) { domain } else { b"" };
        let batch = &seen.s().to_le_bytes();
        buckets.push(&Line { id, at_s: sent.s(), hits, priority: 0, url, page, batch, tag })
    }
}

impl Known for TextLog<'_> {
    type Rows<'a>
        = TextRows
    where
        Self: 'a;

    fn rows(&self, partition: u8) -> io::Result<TextRows> {
        let parts = &self.parts[usize::from(partition)];
        let parts = mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = |part| match part {
            Part::Memory(bytes) => Ok(bytes),
            spilled => {
                let mut bytes = Vec::new();
                self.spill.part(&spilled, &mut bytes)?;
                bytes.truncate(spilled.bytes());
                Ok(bytes)
            }
        };
        let parts = parts.into_iter().map(bytes).collect::<io::Result<Vec<_>>>()?;
        let mut order = Vec::new();
        for (number, part) in (0..).zip(&parts) {
            let mut at = 0;
            while at < part.len() {
                let head = LineHead::read(&part[at..]);
                order.push((head.id(), number, at as u32));
                at += head.bytes();
            }
        }
        order.sort_unstable();
        // Of two rows for one URL the later counts.
        order.reverse();
        order.dedup_by_key(|(id, _, _)| *id);
        Ok(TextRows { parts, order })
    }
}

struct TextRows {
    parts: Vec<Vec<u8>>,
    /// Id, part and place, the first of them last.
    order: Vec<(u64, u32, u32)>,
}

impl TextRows {
    fn line(&self) -> Option<Line<'_>> {
        let &(_, part, at) = self.order.last()?;
        Some(Line::read(&self.parts[part as usize][at as usize..]))
    }
}

impl KnownRows for TextRows {
    fn peek(&mut self) -> io::Result<Option<CurrentRow>> {
        Ok(self.line().map(|line| CurrentRow {
            id: line.id,
            sent_s: line.at_s,
            seen_s: u32_at(line.batch, 0),
            hits: line.hits,
            tag: TagMark::of(line.tag),
        }))
    }

    fn advance(&mut self) {
        self.order.pop();
    }

    fn text(&self) -> Option<KnownText<'_>> {
        self.line().map(|line| KnownText { url: line.url, domain: line.page, tag: line.tag })
    }
}

/// The lines of a partition.
struct TextSink<'p> {
    domains: LentDomains<'p>,
    stamps: StampWriter,
    texts: Texts,
}

/// Lines of both logs.
#[derive(Default)]
struct Texts {
    filtered: Vec<u8>,
    current: Vec<u8>,
}

/// A tag: as far as a row has it, as it came, or as it was known.
fn push_tag(tag: TagMark, came: Option<&Grouped<'_>>, known: Option<KnownText<'_>>, out: &mut Vec<u8>) {
    if let Some(text) = tag.text(&mut [0; 8]) {
        return out.extend_from_slice(text);
    }
    let came = came.filter(|came| came.tag() == tag).map(Grouped::tag_text);
    out.extend_from_slice(came.or(known.map(|known| known.tag)).unwrap_or_default());
}

impl Sink for TextSink<'_> {
    fn sent(&mut self, sent: &SentNow<'_>) -> io::Result<()> {
        let line = sent.came.last();
        let domain = &line.url[self.domains.place(line.url)];
        let Texts { filtered, current } = &mut self.texts;
        for out in [&mut *filtered, current] {
            out.extend_from_slice(line.url);
            out.push(b'\t');
            out.extend_from_slice(domain);
            out.push(b'\t');
        }
        filtered.extend_from_slice(&self.stamps.digits(Stamp::from_s(sent.came.at_s())));
        filtered.push(b'\t');
        push_decimal(filtered, u64::from(sent.hits));
        filtered.push(b'\t');
        push_tag(sent.tag, Some(sent.came), sent.known, filtered);
        filtered.push(b'\n');
        self.end_row(sent.next, Some(sent.came), sent.known);
        Ok(())
    }

    fn kept(
        &mut self,
        next: &CurrentRow,
        came: Option<&Grouped<'_>>,
        known: Option<KnownText<'_>>,
    ) -> io::Result<()> {
        let url = known.map(|known| known.url).or_else(|| came.map(|came| came.last().url));
        let current = &mut self.texts.current;
        match url {
            Some(url) => {
                current.extend_from_slice(url);
                current.push(b'\t');
                let domain = known.map(|known| known.domain).filter(|domain| !domain.is_empty());
                let domain = domain.unwrap_or_else(|| &url[self.domains.place(url)]);
                current.extend_from_slice(domain);
                current.push(b'\t');
            }
            None => write!(current, "#{:016x}\t\t", next.id)?,
        }
        self.end_row(next, came, known);
        Ok(())
    }
}

impl TextSink<'_> {
    /// What follows the domain.
    fn end_row(&mut self, next: &CurrentRow, came: Option<&Grouped<'_>>, known: Option<KnownText<'_>>) {
        let current = &mut self.texts.current;
        for time_s in [next.sent_s, next.seen_s] {
            current.extend_from_slice(&self.stamps.digits(Stamp::from_s(time_s)));
            current.push(b'\t');
        }
        push_decimal(current, u64::from(next.hits));
        current.push(b'\t');
        push_tag(next.tag, came, known, current);
        current.push(b'\n');
    }
}

/// Partitions in their order, whoever is done first.
struct InOrder<'a, 'p, 'o> {
    next: u16,
    waiting: BTreeMap<u16, TextSink<'p>>,
    out: TextOut<'o>,
    /// Texts that were written, to be filled again.
    idle: &'a Mutex<Vec<Texts>>,
}

impl<'p> InOrder<'_, 'p, '_> {
    fn take(&mut self, partition: u8, sink: TextSink<'p>) -> io::Result<()> {
        self.waiting.insert(u16::from(partition), sink);
        while let Some(TextSink { mut texts, .. }) = self.waiting.remove(&self.next) {
            self.out.filtered.write_all(&texts.filtered)?;
            self.out.current.write_all(&texts.current)?;
            texts.filtered.clear();
            texts.current.clear();
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(texts);
            self.next += 1;
        }
        Ok(())
    }
}
