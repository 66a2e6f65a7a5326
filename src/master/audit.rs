//! The promises of a master, held against what it keeps: no URL was sent twice within the hour without another tag, no
//! domain was with two servers at once, and every hit is accounted for.

use super::EpochCounts;
use super::epoch::{CurrentRows, Domains, TagMark};
use super::keeping::{EpochTold, MasterView};
use super::queue::{BlockHeader, BlockKind, Entry, QueueError};
use crate::base::{fingerprint, named_enum, rfc3339, shown};
use crate::proto::reflog::Stamp;
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// What an audit found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MasterAudit {
    pub epochs: u64,
    /// URLs in the queues, as far as they are kept.
    pub urls: u64,
    pub domains: u64,
    pub servers: u64,
    pub hits_in: u64,
    pub hits_sent: u64,
    pub hits_waiting: u64,
    pub hits_expired: u64,
    pub hits_rejected: u64,
    pub hits_held: u64,
    /// More than a row or a line has room for.
    pub hits_capped: u64,
    pub violations_total: u64,
    /// The first of them.
    pub violations: Vec<Violation>,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub kind: ViolationKind,
    pub text: String,
}

named_enum! {
    pub enum ViolationKind {
        /// A URL was sent twice within the hour, and its tag was the same.
        SentTwice = "sent_twice",
        /// A domain was with two servers at once, or with another than the map says.
        TwoServers = "two_servers",
        /// Hits or lines do not add up.
        Unaccounted = "unaccounted",
        /// What is kept cannot be read.
        Damaged = "damaged",
    }
}

const VIOLATIONS_MAX: usize = 10_000;
/// URLs that are held in memory at once, at 32 bytes each.
const URLS_AT_ONCE: u64 = 4 << 20;

/// A URL that was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sending {
    url: u64,
    epoch: u64,
    at_s: u32,
    server: u16,
    tag: u64,
    /// When the epoch was made.
    made_s: u32,
}

/// The time in which a server had a domain, as epochs.
#[derive(Clone, Copy)]
struct Stint {
    server: u16,
    first: u64,
    last: u64,
    is_over: bool,
}

/// What the queues have of an epoch.
#[derive(Clone, Copy, Default)]
struct Queued {
    urls: u64,
    hits: u64,
}

impl MasterAudit {
    /// Goes through all that a master keeps.
    pub fn of(view: &mut MasterView) -> io::Result<MasterAudit> {
        let mut audit = MasterAudit::default();
        for told in view.told() {
            audit.found(ViolationKind::Damaged, told.to_string());
        }
        let history: Vec<EpochTold> = view.history().collect();
        audit.epochs = view.totals().epochs;
        let mut queued: BTreeMap<u64, Queued> = BTreeMap::new();
        let mut stints: RapidHashMap<Box<str>, Vec<Stint>> = RapidHashMap::default();
        // Of epochs up to this one, some may have been let go.
        let mut partly = 0;
        let mut domains = Domains::new(view.rules().by());
        audit.servers = view.queues().count() as u64;
        audit.each_entry(view, |_, header, server, entry| match entry {
            Entry::Url(record) => {
                if header.kind == BlockKind::Epoch {
                    let sum = queued.entry(header.epoch).or_default();
                    sum.urls += 1;
                    sum.hits += u64::from(record.hits);
                }
                let place = domains.place(record.url);
                let domain = std::str::from_utf8(&record.url[place]).unwrap_or_default();
                note_stint(&mut stints, domain, server, header.epoch);
            }
            Entry::Close(domain) => end_stint(&mut stints, domain, server),
            Entry::Open(_) | Entry::Nice(_) | Entry::Unknown => {}
        })?;
        for (_, queue) in view.queues() {
            if queue.first_seq() > 0 {
                let first = queue.first_seq();
                let mut epoch = 0;
                let _ = queue.blocks(first, |header, _| {
                    epoch = header.epoch;
                    false
                });
                partly = partly.max(epoch);
            }
        }
        audit.urls = queued.values().map(|sum| sum.urls).sum();
        audit.domains = stints.len() as u64;
        audit.sent_twice(view)?;
        audit.two_servers(view, &stints);
        audit.accounts(view, &history, &queued, partly)?;
        Ok(audit)
    }

    fn found(&mut self, kind: ViolationKind, text: String) {
        self.violations_total += 1;
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { kind, text });
        }
    }

    /// Tells every entry of every queue; what cannot be read is a violation.
    fn each_entry(
        &mut self,
        view: &mut MasterView,
        mut each: impl FnMut(u64, &BlockHeader, u16, Entry<'_>),
    ) -> io::Result<()> {
        let mut damages = Vec::new();
        for (server, queue) in view.queues() {
            let mut from = queue.first_seq();
            loop {
                let read = queue.blocks(from, |header, lines| {
                    let lines = lines[..lines.len() - 1].split(|byte| *byte == b'\n');
                    for (seq, line) in (header.first_seq..).zip(lines) {
                        each(seq, header, server.0, Entry::read(line));
                    }
                    true
                });
                match read {
                    Ok(_) => break,
                    Err(QueueError::Damaged { seq, next, file }) => {
                        damages.push(QueueError::Damaged { seq, next, file }.to_string());
                        from = next.max(seq + 1);
                    }
                    Err(QueueError::Io(e)) => return Err(e),
                    Err(other) => return Err(io::Error::other(other.to_string())),
                }
            }
        }
        damages.dedup();
        damages.into_iter().for_each(|text| self.found(ViolationKind::Damaged, text));
        Ok(())
    }

    /// Sendings of one URL are held against each other, some URLs at a time.
    fn sent_twice(&mut self, view: &mut MasterView) -> io::Result<()> {
        let resend_after_s = view.rules().resend_after;
        let passes = (self.urls / URLS_AT_ONCE + 1).next_power_of_two();
        for pass in 0..passes {
            let mut sendings: Vec<Sending> = Vec::new();
            self.quietly(view, |_, header, server, entry| {
                let Entry::Url(record) = entry else { return };
                let url = fingerprint(record.url);
                if header.kind == BlockKind::Epoch && url % passes == pass {
                    sendings.push(Sending {
                        url,
                        epoch: header.epoch,
                        at_s: record.at.s(),
                        server,
                        tag: TagMark::of(record.tag).word(),
                        made_s: header.at_s,
                    });
                }
            })?;
            sendings.sort_unstable();
            let none = TagMark::NONE.word();
            for pair in sendings.windows(2) {
                let [one, two] = pair else { continue };
                let is_again = one.url == two.url && (two.tag == none || two.tag == one.tag);
                // A time from the future says nothing of how long ago it was sent.
                let is_again = is_again && Stamp::from_s(one.at_s).is_credible(two.made_s);
                if is_again && two.at_s.saturating_sub(one.at_s) <= resend_after_s {
                    let text = format!(
                        "a URL was sent at {} in epoch {} to server {}, and again at {} in epoch {} to server {}",
                        rfc3339(u64::from(one.at_s) * 1_000),
                        one.epoch,
                        one.server,
                        rfc3339(u64::from(two.at_s) * 1_000),
                        two.epoch,
                        two.server
                    );
                    let url = self.url_of(view, two)?;
                    self.found(ViolationKind::SentTwice, format!("{}: {text}", shown(&url, 300)));
                }
            }
        }
        Ok(())
    }

    /// The same without a word on damage, which was told.
    fn quietly(
        &mut self,
        view: &mut MasterView,
        each: impl FnMut(u64, &BlockHeader, u16, Entry<'_>),
    ) -> io::Result<()> {
        let (total, told) = (self.violations_total, self.violations.len());
        self.each_entry(view, each)?;
        self.violations_total = total;
        self.violations.truncate(told);
        Ok(())
    }

    fn url_of(&mut self, view: &mut MasterView, sending: &Sending) -> io::Result<String> {
        let mut found = String::new();
        // Reading all of it for each would take long.
        if self.violations.len() < 20 {
            self.quietly(view, |_, header, server, entry| {
                if let Entry::Url(record) = entry
                    && (header.epoch, server) == (sending.epoch, sending.server)
                    && fingerprint(record.url) == sending.url
                {
                    found = String::from_utf8_lossy(record.url).into_owned();
                }
            })?;
        }
        Ok(found)
    }

    fn two_servers(&mut self, view: &MasterView, stints: &RapidHashMap<Box<str>, Vec<Stint>>) {
        let mut domains: Vec<_> = stints.iter().collect();
        domains.sort_unstable_by_key(|(domain, _)| *domain);
        for (domain, stints) in domains {
            for (at, one) in stints.iter().enumerate() {
                // Between two epochs it may leave one server and come to another.
                let follows = |one: &Stint, two: &Stint| one.is_over && one.last <= two.first;
                let overlaps = |two: &&Stint| {
                    let at_once = one.first <= two.last && two.first <= one.last;
                    one.server != two.server && at_once && !follows(one, two) && !follows(two, one)
                };
                if let Some(two) = stints[at + 1..].iter().find(overlaps) {
                    let text = format!(
                        "{} was sent to server {} in epochs {} to {} and to server {} in epochs {} to {}",
                        shown(domain, 253),
                        one.server,
                        one.first,
                        one.last,
                        two.server,
                        two.first,
                        two.last
                    );
                    self.found(ViolationKind::TwoServers, text);
                }
            }
            let last = stints.iter().max_by_key(|stint| stint.last);
            let (Some(last), Some(row)) = (last, view.map().get(domain)) else { continue };
            if !last.is_over && last.server != row.server.0 && row.fence == 0 {
                let text = format!(
                    "{} was sent to server {}, and the map has it with server {}",
                    shown(domain, 253),
                    last.server,
                    row.server.0
                );
                self.found(ViolationKind::TwoServers, text);
            }
        }
    }

    /// Hits in and before are hits sent, waiting, expired, rejected and held: in every epoch, from one to the next, and in
    /// the files themselves.
    fn accounts(
        &mut self,
        view: &MasterView,
        history: &[EpochTold],
        queued: &BTreeMap<u64, Queued>,
        partly: u64,
    ) -> io::Result<()> {
        let mut before: Option<EpochCounts> = None;
        for told in history {
            let counts = &told.counts;
            if !counts.add_up() {
                let text = format!(
                    "epoch {}: of {} hits that came and {} that waited, not every one is accounted for",
                    told.epoch, counts.hits_in, counts.hits_before
                );
                self.found(ViolationKind::Unaccounted, text);
            }
            if let Some(before) = before
                && before.hits_waiting + before.hits_held != counts.hits_before
            {
                let text = format!(
                    "epoch {}: {} hits waited before, of {} that epoch {} left",
                    told.epoch,
                    counts.hits_before,
                    before.hits_waiting + before.hits_held,
                    told.epoch - 1
                );
                self.found(ViolationKind::Unaccounted, text);
            }
            let sum = queued.get(&told.epoch).copied().unwrap_or_default();
            if told.epoch > partly && (sum.urls, sum.hits) != (counts.sent, counts.hits_sent) {
                let text = format!(
                    "epoch {}: the queues have {} URLs with {} hits, of {} with {} that were sent",
                    told.epoch, sum.urls, sum.hits, counts.sent, counts.hits_sent
                );
                self.found(ViolationKind::Unaccounted, text);
            }
            before = Some(*counts);
        }
        let last = view.counts();
        if let Some(current) = view.current()? {
            let (rows, waiting) = waiting(current.all())?;
            if (rows, waiting) != (last.kept, last.hits_waiting) {
                let text = format!(
                    "current_log has {rows} rows with {waiting} hits, of {} with {} that the journal says",
                    last.kept, last.hits_waiting
                );
                self.found(ViolationKind::Unaccounted, text);
            }
        }
        self.held(view)?;
        self.rejects(view, history)?;
        let totals = view.totals();
        (self.hits_in, self.hits_sent) = (totals.hits_in, totals.hits_sent);
        (self.hits_expired, self.hits_rejected) = (totals.hits_expired, totals.hits_rejected);
        (self.hits_waiting, self.hits_held) = (last.hits_waiting, last.hits_held);
        self.hits_capped = totals.hits_capped;
        Ok(())
    }

    fn held(&mut self, view: &MasterView) -> io::Result<()> {
        let (Some(held), Some(path)) = (view.held(), view.held_path()) else { return Ok(()) };
        let (mut lines, mut hits) = (0, 0);
        for line in io::BufReader::new(std::fs::File::open(path)?).split(b'\n') {
            if let Entry::Url(record) = Entry::read(&line?) {
                (lines, hits) = (lines + 1, hits + u64::from(record.hits));
            }
        }
        if (lines, hits) != (held.lines, held.hits) {
            let text = format!(
                "{lines} lines with {hits} hits are held, of {} with {} that the journal says",
                held.lines, held.hits
            );
            self.found(ViolationKind::Unaccounted, text);
        }
        Ok(())
    }

    fn rejects(&mut self, view: &MasterView, history: &[EpochTold]) -> io::Result<()> {
        let there = view.rejects()?;
        for told in history.iter().filter(|told| there.contains(&told.epoch)) {
            let mut lines = 0;
            for line in io::BufReader::new(std::fs::File::open(view.rejects_path(told.epoch))?).split(b'\n') {
                let line = line?;
                if line.ends_with(b" more lines were rejected, and are not listed") {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    lines += text.split(' ').next().and_then(|more| more.parse().ok()).unwrap_or(0);
                } else {
                    lines += 1;
                }
            }
            // A file that breaks off is listed, too.
            let rejected = told.counts.rejected + told.counts.files_cut;
            if lines != rejected {
                let text = format!("epoch {}: {lines} rejects are listed, of {rejected}", told.epoch);
                self.found(ViolationKind::Unaccounted, text);
            }
        }
        Ok(())
    }
}

fn waiting(mut rows: CurrentRows<'_>) -> io::Result<(u64, u64)> {
    let (mut count, mut hits) = (0, 0);
    while let Some(row) = rows.next()? {
        (count, hits) = (count + 1, hits + u64::from(row.hits));
    }
    Ok((count, hits))
}

fn note_stint(stints: &mut RapidHashMap<Box<str>, Vec<Stint>>, domain: &str, server: u16, epoch: u64) {
    let fresh = Stint { server, first: epoch, last: epoch, is_over: false };
    let Some(known) = stints.get_mut(domain) else {
        stints.insert(domain.into(), vec![fresh]);
        return;
    };
    match known.iter_mut().rev().find(|stint| stint.server == server && !stint.is_over) {
        Some(stint) => stint.last = stint.last.max(epoch),
        None => known.push(fresh),
    }
}

fn end_stint(stints: &mut RapidHashMap<Box<str>, Vec<Stint>>, domain: &str, server: u16) {
    if let Some(known) = stints.get_mut(domain) {
        known.iter_mut().filter(|stint| stint.server == server).for_each(|stint| stint.is_over = true);
    }
}
