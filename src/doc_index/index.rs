mod candidates;
mod copying;
mod import;
mod inspect;
mod memory;
mod moving;
mod outcomes;
mod peers;
mod replay;
mod seeds;

pub use copying::Copying;
pub use import::{Import, ImportError, Imported, MOVED, Mention, TagHash};
pub use moving::{Moving, MovingItem, PageElsewhere};
pub use outcomes::NEVER_S;
pub use peers::{OutItem, Outbox, Shares, StillOurs, ToTell};
pub use replay::{IndexError, Opened};
pub use seeds::Named;

use super::bookkeeping::Bookkeeping;
use super::budgets::Budgets;
use super::documents::{DocumentFiles, Documents, Row};
use super::due::Due;
use super::frontier::{Frontier, HostCounts, NEAR_MAX, QueuedDoc, split};
use super::known_urls::{Asked, KnownUrls};
use super::ledger::{Entry, Ledger, Origin};
use super::rules::IndexRules;
use super::said::Said;
use super::trouble::Trouble;
use crate::storage::seen::{Answer, Seen};
use crate::storage::{Bytes, Spill};
use rapidhash::fast::RapidHashSet;
use std::io;

/// See the folder's docs.
///
/// Nothing here fails at once: what the disk refuses is told by [`DocIndex::flush`], and until then it is in memory.
pub struct DocIndex {
    rules: IndexRules,
    ledger: Ledger,
    documents: Documents,
    known: KnownUrls,
    frontier: Frontier,
    due: Due,
    budgets: Budgets,
    books: Bookkeeping,
    trouble: Trouble,
    asked: Asked,
    links: LinkCounts,
    said: Said,
    shares: Shares,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    pub known: u64,
    /// To be fetched as soon as may be.
    pub pending: u64,
    pub handed_out: u64,
    /// Wait for a retry or to be looked at again, and when the next is due, seconds since 1970.
    pub waiting: u64,
    pub next_due_s: Option<u32>,
    pub success: u64,
    pub errors: u64,
    /// Of `success`: of URLs that are other nodes' by now, which count them, too.
    pub elsewhere: u64,
    /// Kept out by the rules of this crawl.
    pub excluded: u64,
    /// Of other nodes: known here, and never fetched.
    pub foreign: u64,
    /// Not taken in: over the budget of a host or domain, or one variant of a query too many.
    pub refused: u64,
    pub hosts: u64,
}

/// Links by what was made of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    pub new: u64,
    pub known: u64,
    /// Over the budget of a host or domain, or one variant of a query too many.
    pub over_budget: u64,
}

impl IndexStats {
    /// What is still to be fetched, now or when it is due.
    pub fn left(&self) -> u64 {
        self.pending + self.handed_out + self.waiting
    }

    pub fn done(&self) -> u64 {
        self.success + self.errors
    }

    /// Of the URLs that are this node's: over all nodes, each page counts once.
    pub fn own_success(&self) -> u64 {
        self.success.saturating_sub(self.elsewhere)
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

impl Link<'_> {
    const NONE: Self = Link { url: "", origin: Origin::SEED, via: "" };
}

/// A link that is not known.
#[derive(Clone, Copy)]
struct NewLink<'a> {
    link: Link<'a>,
    fingerprint: u64,
}

/// Where the URL of a link is cut, and what its host is found by; a link that is none has nothing before the cut.
#[derive(Clone, Copy, Default)]
struct Cut {
    path_at: usize,
    host_fingerprint: u64,
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
        let bytes = || Bytes::Memory(Vec::new());
        let ledger = Ledger::create(bytes(), 0).expect("memory does not fail");
        let files = DocumentFiles { table: bytes(), log: bytes(), notes: bytes() };
        let documents = Documents::open(files, rules.memory_bytes / 64).expect("memory does not fail");
        DocIndex::of_parts(rules, 0, ledger, documents, Seen::in_memory(), Spill::in_memory())
    }

    fn of_parts(
        rules: IndexRules,
        seed: u64,
        ledger: Ledger,
        documents: Documents,
        seen: Seen,
        spill: Spill,
    ) -> DocIndex {
        let shares = Shares::of(rules.share.clone());
        DocIndex {
            known: KnownUrls::new(seed, seen, rules.memory_bytes / 8),
            frontier: Frontier::new(spill, seed),
            budgets: Budgets::new(&rules),
            rules,
            ledger,
            documents,
            due: Due::default(),
            books: Bookkeeping::default(),
            trouble: Trouble::default(),
            asked: Asked::default(),
            links: LinkCounts::default(),
            said: Said::default(),
            shares,
        }
    }

    /// Makes URLs, in normal form, known; the new ones among them are pending.
    pub fn discover<'a>(&mut self, urls: impl IntoIterator<Item = &'a str>, origin: Origin, now_s: u32) {
        self.discover_links(urls.into_iter().map(|url| Link { url, origin, via: "" }), now_s);
    }

    /// The same for links from anywhere. Many at once cost less than one after the other: what they need of memory is
    /// loaded for all of them together.
    pub fn discover_links<'a>(&mut self, links: impl IntoIterator<Item = Link<'a>>, now_s: u32) {
        let mut batch = [Link::NONE; LINKS_PER_ASK];
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
        let mut asked = std::mem::take(&mut self.asked);
        self.known.ask(links.iter().map(|link| link.url), &mut asked);
        let mut new = [NewLink { link: Link::NONE, fingerprint: 0 }; NEAR_MAX];
        let mut count = 0;
        for ((link, &fingerprint), answer) in links.iter().zip(&asked.fingerprints).zip(&asked.answers) {
            match answer {
                Answer::Known => self.links.known += 1,
                Answer::New => {
                    new[count] = NewLink { link: *link, fingerprint };
                    count += 1;
                    if count == NEAR_MAX {
                        self.admit_all(&new[..count], now_s);
                        count = 0;
                    }
                }
                Answer::Unresolved => {
                    let Link { url, origin, .. } = *link;
                    self.ledger.push(&Entry::Unresolved { origin, url }, now_s);
                    self.known.park(fingerprint, url, origin);
                }
            }
        }
        self.admit_all(&new[..count], now_s);
        self.asked = asked;
        if self.known.unresolved().is_full() {
            self.resolve(now_s);
        }
    }

    fn admit_one(&mut self, url: &str, fingerprint: u64, origin: Origin, now_s: u32) {
        self.admit_all(&[NewLink { link: Link { url, origin, via: "" }, fingerprint }], now_s);
    }

    fn admit_all(&mut self, new: &[NewLink<'_>], now_s: u32) {
        let mut cuts = [Cut::default(); NEAR_MAX];
        for (cut, new) in cuts.iter_mut().zip(new) {
            *cut = split(new.link.url).map_or(Cut::default(), |(origin, _)| Cut {
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
    fn admit(&mut self, new: &NewLink<'_>, cut: Cut, now_s: u32) {
        let NewLink { link: Link { url, origin, via }, fingerprint } = *new;
        let doc_id = self.ledger.next_doc();
        let (host_origin, path) = url.split_at(cut.path_at);
        if host_origin.is_empty() || doc_id >= Origin::DOCS_END || self.known.holds(fingerprint) {
            self.links.known += 1;
            return;
        }
        if !self.shares.admit(url) {
            self.links.new += 1;
            self.ledger.push(&Entry::Doc { origin, url }, now_s);
            self.place_foreign(doc_id);
            let inserted = self.known.insert(fingerprint, doc_id);
            return self.trouble.or_default(inserted);
        }
        let host = self.frontier.host_of(cut.host_fingerprint, host_origin);
        let of_host = self.frontier.counts(host);
        // A seed or a story, and where it leads, is not counted against anything.
        let is_named = origin.provenance.seed_chain || origin.provenance.is_story();
        if !is_named && !self.budgets.admit(url, of_host.known) {
            self.books.counts.refused += 1;
            self.links.over_budget += 1;
            of_host.refused = of_host.refused.saturating_add(1);
            return;
        }
        of_host.known += 1;
        self.books.counts.known += 1;
        self.links.new += 1;
        self.ledger.push(&Entry::Doc { origin, url }, now_s);
        if let Err(error) = self.known.insert(fingerprint, doc_id) {
            self.trouble.note(error);
        }
        let via = via.strip_prefix(host_origin).filter(|path| path.starts_with('/')).unwrap_or(via);
        self.frontier.push_back(host, &QueuedDoc { doc_id, origin, path, via });
    }

    /// Asks the disk about the links that memory could not tell.
    fn resolve(&mut self, now_s: u32) {
        let resolved = match self.known.resolve() {
            Ok(resolved) => resolved,
            // They are parked still, and in the ledger.
            Err(error) => return self.trouble.note(error),
        };
        for (fingerprint, url, origin, known) in resolved.answered() {
            match known {
                true => {
                    self.links.known += 1;
                    self.known.seen_mut().note(fingerprint);
                }
                false => self.admit_one(url, fingerprint, origin, now_s),
            }
        }
        self.ledger.push(&Entry::Resolved, now_s);
        self.known.resolved(resolved);
    }

    pub(super) fn row(&mut self, doc_id: u32) -> Row {
        self.trouble.or_default(self.documents.row(doc_id))
    }

    fn put_row(&mut self, doc_id: u32, host: u32, row: Row) {
        self.documents.put(doc_id, row);
        self.count(doc_id, host, &row);
    }

    /// Counts a document by its row, and notes when it is due.
    fn count(&mut self, doc_id: u32, host: u32, row: &Row) {
        self.books.count(self.frontier.counts(host), row.state);
        self.books.count_taken_up(doc_id, row.state);
        if row.due_s > 0 && row.due_s != NEVER_S {
            self.due.put(doc_id, row.due_s);
        }
    }

    /// Takes back what `count` did, but for the due time.
    fn uncount(&mut self, host: u32, row: &Row) {
        self.books.uncount(self.frontier.counts(host), row.state);
    }

    #[cfg(test)]
    pub(super) fn documents_mut(&mut self) -> &mut Documents {
        &mut self.documents
    }

    /// The disk refused something: [`DocIndex::flush`] tells what.
    pub fn is_troubled(&self) -> bool {
        self.trouble.is_some() || self.known.has_untold()
    }

    /// Whether there is something to hand to the disk.
    pub fn is_dirty(&self) -> bool {
        self.ledger.unwritten_bytes() > 0 || self.documents.is_dirty() || self.is_troubled()
    }

    /// Hands everything to the disk, the ledger first: a row counts only if what it tells of is there. Once a second is
    /// enough for `sync`, which waits for the disk: a crash of the machine costs what was found and fetched since,
    /// which is found and fetched again.
    pub fn flush(&mut self, sync: bool) -> io::Result<()> {
        self.flush_with(sync, |_| Ok(()))
    }

    /// The same; `between` hands to the disk what tells of the ledger, and what rows tell of: it is called once the ledger
    /// is there, and before any row is, and told whether to wait for the disk.
    pub fn flush_with(&mut self, sync: bool, between: impl FnOnce(bool) -> io::Result<()>) -> io::Result<()> {
        if self.known.has_untold() {
            self.trouble = Trouble::default();
            self.known.tell()?;
        }
        self.trouble.tell()?;
        self.ledger.write()?;
        let is_sure = sync || self.documents.is_full();
        if is_sure {
            self.ledger.sync()?;
        }
        between(is_sure)?;
        self.documents.write()?;
        if self.documents.is_full() {
            // A row is durable after what it relies upon.
            self.documents.settle()?;
        }
        self.make_room()?;
        if sync {
            self.documents.sync()?;
        }
        Ok(())
    }

    /// Makes the next start quick.
    pub fn close(&mut self) -> io::Result<()> {
        self.flush(true)?;
        self.known.seen_mut().flush()
    }

    /// What was made of links since it was opened.
    pub fn links(&self) -> LinkCounts {
        self.links
    }

    pub fn memory_max(&self) -> usize {
        self.rules.memory_bytes
    }

    pub fn stats(&self) -> IndexStats {
        IndexStats {
            pending: self.frontier.len() + self.known.unresolved().len() as u64,
            handed_out: self.books.open_count() as u64,
            waiting: self.due.len(),
            next_due_s: self.due.next_s(),
            hosts: self.frontier.hosts() as u64,
            ..self.books.counts
        }
    }

    /// The origins of all hosts that are known.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.frontier.origins()
    }

    /// The counts of a host, by its origin.
    pub fn host(&self, origin: &str) -> Option<HostCounts> {
        self.frontier.counts_of(origin)
    }
}
