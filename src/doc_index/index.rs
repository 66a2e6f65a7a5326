use super::bits::Bits;
use super::documents::{DocumentFiles, Documents};
use super::doubts::Doubts;
use super::due::Due;
use super::entry::{Entry, Origin};
use super::frontier::{Frontier, HostCounts, NEAR_MAX, split};
use super::ledger::Ledger;
use super::line::InLine;
use super::note::Note;
use super::outcome::Outcome;
use super::row::{DocState, Row};
use super::rules::IndexRules;
use super::variants::QueryVariants;
use crate::base::fingerprint;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::storage::seen::{Answer, Seen};
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// See the folder's docs.
///
/// Nothing here fails at once: what the disk refuses is told by [`DocIndex::flush`], and until then it is in memory.
pub struct DocIndex {
    pub(super) rules: IndexRules,
    /// Of the fingerprints.
    pub(super) seed: u64,
    pub(super) ledger: Ledger,
    pub(super) documents: Documents,
    pub(super) seen: Seen,
    pub(super) doubts: Doubts,
    pub(super) frontier: Frontier,
    pub(super) due: Due,
    pub(super) variants: QueryVariants,
    /// Documents handed out and not answered for, and their hosts.
    pub(super) open: RapidHashMap<u32, u32>,
    /// Documents that were handed out or answered for, and are not pending.
    pub(super) taken: Bits,
    /// Documents that have a row.
    pub(super) rowed: Bits,
    /// URLs taken in by domain, if that is limited.
    pub(super) by_domain: RapidHashMap<u64, u32>,
    pub(super) counts: Counts,
    /// Fingerprints of the URLs that the ledger says are in scope: as many as seeds led elsewhere.
    pub(super) scoped: RapidHashSet<u64>,
    /// Where the ledger says that links are followed by the rules of today, and have been since.
    pub(super) rules_since: u64,
    /// What the disk refused since it was last told.
    pub(super) trouble: Option<io::Error>,
    /// New URLs that the seen-set is to be told of.
    unseen: Vec<(u64, u32)>,
    answers: Vec<Answer>,
    fingerprints: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub known: u64,
    pub success: u64,
    pub errors: u64,
    pub excluded: u64,
    pub refused: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    pub known: u64,
    /// To be fetched as soon as may be.
    pub pending: u64,
    pub fetching: u64,
    /// Wait for a retry or to be looked at again, and when the next is due, seconds since 1970.
    pub waiting: u64,
    pub next_due_s: Option<u32>,
    pub success: u64,
    pub errors: u64,
    /// Kept out by the rules of this crawl.
    pub excluded: u64,
    /// Not taken in: over the budget of a host or domain, or one variant of a query too many.
    pub refused: u64,
    pub hosts: u64,
}

impl IndexStats {
    pub fn done(&self) -> u64 {
        self.success + self.errors
    }
}

/// A link, and where it was found.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    pub url: &'a str,
    pub origin: Origin,
    /// The URL of the page that named it, if it is at hand.
    pub via: &'a str,
}

/// A link that is not known.
#[derive(Clone, Copy)]
struct New<'a> {
    url: &'a str,
    fingerprint: u64,
    origin: Origin,
    via: &'a str,
}

/// Where the URL of a link is cut, and what its host is found by; a link that is none has nothing before the cut.
#[derive(Clone, Copy, Default)]
struct Cut {
    path_at: usize,
    host_fingerprint: u64,
}

impl Default for New<'_> {
    fn default() -> Self {
        New { url: "", fingerprint: 0, origin: Origin::SEED, via: "" }
    }
}

/// Hosts that nothing more is wanted of for now, by the fingerprint of their origin.
pub type RejectList = RapidHashSet<u64>;

/// Links asked about in one go.
const LINKS_PER_ASK: usize = 320;

impl Default for DocIndex {
    fn default() -> DocIndex {
        DocIndex::in_memory(IndexRules::default())
    }
}

impl DocIndex {
    /// One that leaves nothing behind.
    pub fn in_memory(rules: IndexRules) -> DocIndex {
        let bytes = || crate::storage::Bytes::Memory(Vec::new());
        let ledger = Ledger::create(bytes(), 0).expect("memory does not fail");
        let files = DocumentFiles { table: bytes(), log: bytes(), notes: bytes() };
        let documents = Documents::open(files, rules.memory_bytes / 64).expect("memory does not fail");
        DocIndex::of_parts(rules, 0, ledger, documents, Seen::in_memory(), crate::storage::Spill::in_memory())
    }

    pub(super) fn of_parts(
        rules: IndexRules,
        seed: u64,
        ledger: Ledger,
        documents: Documents,
        seen: Seen,
        spill: crate::storage::Spill,
    ) -> DocIndex {
        DocIndex {
            doubts: Doubts::new(rules.memory_bytes / 8),
            frontier: Frontier::new(spill, rules.memory_bytes / 4, seed),
            variants: QueryVariants::new(rules.query_variants_max),
            rules,
            seed,
            ledger,
            documents,
            seen,
            due: Due::default(),
            open: RapidHashMap::default(),
            taken: Bits::default(),
            rowed: Bits::default(),
            by_domain: RapidHashMap::default(),
            counts: Counts::default(),
            scoped: RapidHashSet::default(),
            rules_since: 0,
            trouble: None,
            unseen: Vec::new(),
            answers: Vec::new(),
            fingerprints: Vec::new(),
        }
    }

    /// Makes URLs, in normal form, known; the new ones among them are pending.
    pub fn discover<'a>(&mut self, urls: impl IntoIterator<Item = &'a str>, origin: Origin, now_s: u32) {
        self.discover_links(urls.into_iter().map(|url| Link { url, origin, via: "" }), now_s);
    }

    /// The same for links from anywhere. Many at once cost less than one after the other: what they need of memory is
    /// loaded for all of them together.
    pub fn discover_links<'a>(&mut self, links: impl IntoIterator<Item = Link<'a>>, now_s: u32) {
        let mut batch = [Link { url: "", origin: Origin::SEED, via: "" }; LINKS_PER_ASK];
        let mut count = 0;
        links.into_iter().for_each(|link| {
            batch[count] = link;
            count += 1;
            if count == batch.len() {
                self.discover_batch(&batch, now_s);
                count = 0;
            }
        });
        self.discover_batch(&batch[..count], now_s);
    }

    fn discover_batch(&mut self, links: &[Link<'_>], now_s: u32) {
        let (mut fingerprints, mut answers) =
            (std::mem::take(&mut self.fingerprints), std::mem::take(&mut self.answers));
        fingerprints.clear();
        fingerprints.extend(links.iter().map(|link| xxh3_64_with_seed(link.url.as_bytes(), self.seed)));
        self.seen.ask(&fingerprints, &mut answers);
        let mut new: [New<'_>; NEAR_MAX] = [New::default(); NEAR_MAX];
        let mut count = 0;
        for ((link, &fingerprint), answer) in links.iter().zip(&fingerprints).zip(&answers) {
            match answer {
                Answer::Known => {}
                Answer::New => {
                    new[count] = New { url: link.url, fingerprint, origin: link.origin, via: link.via };
                    count += 1;
                    if count == NEAR_MAX {
                        self.admit_all(&new[..count], now_s);
                        count = 0;
                    }
                }
                Answer::Unresolved => {
                    let Link { url, origin, .. } = *link;
                    self.ledger.push(&Entry::Doubt { origin, url }, now_s);
                    self.doubts.park(fingerprint, url, origin);
                }
            }
        }
        self.admit_all(&new[..count], now_s);
        (self.fingerprints, self.answers) = (fingerprints, answers);
        if self.doubts.is_full() {
            self.settle_doubts(now_s);
        }
    }

    pub(super) fn admit_one(&mut self, url: &str, fingerprint: u64, origin: Origin, now_s: u32) {
        self.admit_all(&[New { url, fingerprint, origin, via: "" }], now_s);
    }

    fn admit_all(&mut self, new: &[New<'_>], now_s: u32) {
        let mut cuts = [Cut::default(); NEAR_MAX];
        for (cut, new) in cuts.iter_mut().zip(new) {
            *cut = split(new.url).map_or(Cut::default(), |(origin, _)| Cut {
                path_at: origin.len(),
                host_fingerprint: self.frontier.fingerprint(origin),
            });
        }
        if new.len() > 1 {
            self.frontier.bring_near(cuts[..new.len()].iter().map(|cut| cut.host_fingerprint));
        }
        for (new, &cut) in new.iter().zip(&cuts) {
            self.admit(new, cut, now_s);
        }
    }

    /// Takes in a URL that no table knows, unless it stood twice in one batch or is one too many.
    fn admit(&mut self, new: &New<'_>, cut: Cut, now_s: u32) {
        let New { url, fingerprint, origin, via } = *new;
        let doc_id = self.ledger.next_doc();
        let (host_origin, path) = url.split_at(cut.path_at);
        let waits = || self.unseen.iter().any(|&(waiting, _)| waiting == fingerprint);
        if host_origin.is_empty() || doc_id == u32::MAX || self.seen.holds(fingerprint) || waits() {
            return;
        }
        let host = self.frontier.host_of(cut.host_fingerprint, host_origin);
        // What somebody typed, and where it leads, is not counted against anything.
        if !origin.seed_chain && !self.is_within_budget(host, url) {
            self.counts.refused += 1;
            let counts = self.frontier.counts(host);
            counts.refused = counts.refused.saturating_add(1);
            return;
        }
        self.ledger.push(&Entry::Doc { origin, url }, now_s);
        let waits = !self.unseen.is_empty();
        self.unseen.push((fingerprint, doc_id));
        if !waits {
            self.insert_unseen();
        }
        self.counts.known += 1;
        self.frontier.counts(host).known += 1;
        let via = via.strip_prefix(host_origin).filter(|path| path.starts_with('/')).unwrap_or(via);
        self.frontier.push_back(host, &InLine { doc_id, origin, path, via });
    }

    /// Tells the seen-set of what is new, in order. What a full disk keeps from it is told later, and until then no
    /// word is taken.
    fn insert_unseen(&mut self) {
        let mut told = 0;
        for &(fingerprint, doc_id) in &self.unseen {
            if let Err(error) = self.seen.insert(fingerprint, doc_id) {
                self.trouble.get_or_insert(error);
                break;
            }
            told += 1;
        }
        self.unseen.drain(..told);
    }

    fn is_within_budget(&mut self, host: u32, url: &str) -> bool {
        let rules = &self.rules;
        if rules.pages_per_host > 0 && self.frontier.counts(host).known >= rules.pages_per_host {
            return false;
        }
        if !self.variants.admit(url) {
            return false;
        }
        if rules.pages_per_domain > 0 {
            let known = self.by_domain.entry(domain_fingerprint(url)).or_default();
            if *known >= rules.pages_per_domain {
                return false;
            }
            *known += 1;
        }
        true
    }

    /// Asks the disk about the links that memory could not tell.
    pub(super) fn settle_doubts(&mut self, now_s: u32) {
        if let Err(error) = self.seen.resolve(self.doubts.questions()) {
            // They are parked still, and in the ledger.
            self.trouble.get_or_insert(error);
            return;
        }
        let doubts = std::mem::take(&mut self.doubts);
        for (fingerprint, url, origin, known) in doubts.settled() {
            match known {
                true => self.seen.note(fingerprint),
                false => self.admit_one(url, fingerprint, origin, now_s),
            }
        }
        self.ledger.push(&Entry::Settled, now_s);
        self.doubts = doubts.emptied();
    }

    /// What became of a document that was handed out. True the first time; a second answer changes nothing.
    pub fn record(&mut self, outcome: &Outcome, fixed_s: Option<u32>) -> bool {
        let doc_id = outcome.doc_id;
        let Some(host) = self.open.remove(&doc_id) else { return false };
        let before = self.row(doc_id);
        let mut row = before;
        self.rules.schedule.answered(&mut row, outcome, fixed_s);
        // What is stored is still true, and so is what was noted of it. A head does not stand for a document, either.
        let held_on = outcome.result == ResultCode::NotModified;
        let is_head = outcome.note.as_ref().is_some_and(|note| note.head_only);
        let is_kept = held_on || (is_head && self.holds_whole(doc_id, &before));
        if !is_kept || row.digest != before.digest {
            let kept = if is_kept { self.note(doc_id, &before) } else { Note::default() };
            let note = outcome.note.as_deref().filter(|_| !is_kept).unwrap_or(&kept);
            self.documents.put_note(doc_id, before.note_owner(doc_id), &mut row, note);
        }
        self.frontier.counts(host).fetching -= 1;
        // A head has no links, nor has what failed: nothing of the ledger is needed for these. What has not changed was
        // read before, and is told of apart if it is read once more.
        let is_read = !held_on && (!is_head || outcome.result == ResultCode::Redirect);
        if row.state == DocState::Success && is_read {
            row.after = self.ledger.told();
        }
        self.put_row(doc_id, host, row);
        true
    }

    /// The links of a document that has not changed were read by the rules of today, and told.
    pub fn was_read_again(&mut self, doc_id: u32) {
        let row = self.row(doc_id);
        self.keep_row(doc_id, Row { after: self.ledger.told(), ..row });
    }

    /// Whether the links of a document were last read by other rules than those of today, if at all.
    pub fn was_read_by_other_rules(&mut self, doc_id: u32) -> bool {
        self.row(doc_id).after <= self.rules_since
    }

    /// A sitemap says when a page changed: if that is after we had it, and pages are looked at again, it is due.
    pub fn changed(&mut self, url: &str, lastmod_s: u32, now_s: u32) {
        if lastmod_s == 0 || self.rules.schedule.recrawl.is_none() {
            return;
        }
        let found = self.look(url).unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            None
        });
        let Some(found) = found.filter(|found| self.taken.get(found.doc_id)) else { return };
        let Some(row) = found.row.filter(|row| row.state == DocState::Success) else { return };
        // One that a wrong clock dates after now may be of any time.
        let is_newer = row.fetched_s < lastmod_s || row.fetched_s > now_s;
        if is_newer && lastmod_s <= now_s && row.due_s > now_s {
            self.documents.put(found.doc_id, Row { due_s: now_s, ..row });
            self.due.put(found.doc_id, now_s);
        }
    }

    fn note(&mut self, doc_id: u32, row: &Row) -> Note {
        self.documents.note(doc_id, row).unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            Note::default()
        })
    }

    fn holds_whole(&mut self, doc_id: u32, row: &Row) -> bool {
        let note = self.note(doc_id, row);
        note.held.is_some() && !note.head_only
    }

    /// The rules of this crawl keep out what was handed out.
    pub fn exclude(&mut self, doc_id: u32, reason: &str, now_s: u32) {
        let Some(host) = self.open.remove(&doc_id) else { return };
        let mut row = Row { state: DocState::Excluded, due_s: 0, ..self.row(doc_id) };
        row.fetched_s = if row.fetched_s == 0 { now_s } else { row.fetched_s };
        let mut note = self.note(doc_id, &row);
        note.reason = Some(reason.into());
        self.documents.put_note(doc_id, row.note_owner(doc_id), &mut row, &note);
        self.frontier.counts(host).fetching -= 1;
        self.put_row(doc_id, host, row);
    }

    pub(super) fn row(&mut self, doc_id: u32) -> Row {
        if !self.rowed.get(doc_id) {
            return Row::default();
        }
        let read = self.documents.get(doc_id);
        read.unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            None
        })
        .unwrap_or_default()
    }

    pub(super) fn put_row(&mut self, doc_id: u32, host: u32, row: Row) {
        self.keep_row(doc_id, row);
        self.count(doc_id, host, &row);
    }

    /// Keeps a row of which nothing that is counted has changed.
    pub(super) fn keep_row(&mut self, doc_id: u32, row: Row) {
        self.documents.put(doc_id, row);
        self.rowed.set(doc_id, true);
    }

    /// Counts a document by its row, and notes when it is due.
    pub(super) fn count(&mut self, doc_id: u32, host: u32, row: &Row) {
        let counts = self.frontier.counts(host);
        match row.state {
            DocState::Success => {
                counts.success += 1;
                self.counts.success += 1;
            }
            DocState::Error => {
                counts.errors += 1;
                self.counts.errors += 1;
            }
            DocState::Excluded => self.counts.excluded += 1,
            DocState::Pending | DocState::Fetching => {}
        }
        if row.due_s > 0 {
            self.due.put(doc_id, row.due_s);
        }
    }

    /// Takes back what `count` did, but for the due time.
    pub(super) fn uncount(&mut self, host: u32, row: &Row) {
        let counts = self.frontier.counts(host);
        match row.state {
            DocState::Success => {
                counts.success -= 1;
                self.counts.success -= 1;
            }
            DocState::Error => {
                counts.errors -= 1;
                self.counts.errors -= 1;
            }
            DocState::Excluded | DocState::Pending | DocState::Fetching => {}
        }
    }

    /// A document that was handed out comes back unfetched: it is the next of its host.
    pub fn put_back(&mut self, doc_id: u32) {
        let Some(host) = self.open.remove(&doc_id) else { return };
        self.frontier.counts(host).fetching -= 1;
        self.taken.set(doc_id, false);
        let row = self.row(doc_id);
        match self.ledger.doc(doc_id) {
            Ok(Some(found)) => {
                if let Some((_, path)) = split(&found.url) {
                    let origin = row.raise(found.origin);
                    self.frontier.push_front(host, &InLine { doc_id, origin, path, via: "" });
                }
            }
            Ok(None) => {}
            Err(error) => {
                self.trouble.get_or_insert(error);
            }
        }
    }

    /// Whether a document was handed out and not answered for.
    pub fn is_open(&self, doc_id: u32) -> bool {
        self.open.contains_key(&doc_id)
    }

    /// The disk refused something: [`DocIndex::flush`] tells what.
    pub fn is_troubled(&self) -> bool {
        self.trouble.is_some() || !self.unseen.is_empty()
    }

    /// Whether there is something to hand to the disk.
    pub fn is_dirty(&self) -> bool {
        self.ledger.unwritten_bytes() > 0 || self.documents.is_dirty() || self.is_troubled()
    }

    /// Hands everything to the disk, the ledger first: a row counts only if what it tells of is there. Once a second is
    /// enough for `sync`, which waits for the disk: a crash of the machine costs what was found and fetched since, which
    /// is found and fetched again.
    pub fn flush(&mut self, sync: bool) -> io::Result<()> {
        if !self.unseen.is_empty() {
            self.trouble = None;
            self.insert_unseen();
        }
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        self.ledger.write()?;
        self.documents.write()?;
        if self.documents.is_full() {
            // A row is durable after what it relies upon.
            self.ledger.sync()?;
            self.documents.settle()?;
        }
        self.make_room()?;
        if sync {
            self.ledger.sync()?;
            self.documents.sync()?;
        }
        Ok(())
    }

    /// Makes the next start quick.
    pub fn close(&mut self) -> io::Result<()> {
        self.flush(true)?;
        self.seen.flush()
    }

    pub fn stats(&self) -> IndexStats {
        IndexStats {
            known: self.counts.known,
            pending: self.frontier.len() + self.doubts.len() as u64,
            fetching: self.open.len() as u64,
            waiting: self.due.len(),
            next_due_s: self.due.next_s(),
            success: self.counts.success,
            errors: self.counts.errors,
            excluded: self.counts.excluded,
            refused: self.counts.refused,
            hosts: self.frontier.hosts().len() as u64,
        }
    }

    /// The counts of a host, by its origin.
    pub fn host(&self, origin: &str) -> Option<HostCounts> {
        self.frontier.find(origin).map(|host| self.frontier.hosts()[host as usize].counts)
    }

    /// Hosts with something pending.
    pub fn hosts_pending(&self) -> usize {
        self.frontier.hosts_pending()
    }
}

pub(super) fn domain_fingerprint(url: &str) -> u64 {
    let url = CrawlUrl::from_normal(url).ok();
    fingerprint(url.as_ref().map_or("", CrawlUrl::registrable_domain).as_bytes())
}
