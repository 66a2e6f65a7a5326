//! What a node of a cluster knows of the URLs of others.

use super::super::documents::DocState;
use super::super::frontier::split;
use super::super::ledger::{Entry, Origin, Told};
use super::{DocIndex, Link};
use crate::base::SortedSet;
use crate::proto::job::DocKind;
use crate::proto::partition::{PARTITIONS, Partition, Share};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;

/// Which URLs are this node's own, and how many of each partition it has.
#[derive(Default)]
pub struct Shares {
    share: Option<Arc<Share>>,
    /// Of the partitions that are ours; empty without a cluster.
    docs: Vec<u32>,
    /// Partitions that are ours and on their way to another node: nothing of them is handed out.
    leaving: Arc<SortedSet<Partition>>,
}

/// Hosts of which nothing is handed out, as their partitions are on their way to another node.
pub struct Leaving {
    share: Arc<Share>,
    partitions: Arc<SortedSet<Partition>>,
}

impl Leaving {
    /// Whether a host is one of them, by its origin.
    pub fn holds(&self, origin: &str) -> bool {
        self.share.has_some_in(origin, &self.partitions)
    }
}

/// What is to be told to other nodes, out of a stretch of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    pub items: Vec<OutItem>,
    /// Where the stretch ends, and the next one begins.
    pub upto: u64,
}

/// Something that other nodes are to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutItem {
    /// Where the block of the ledger begins that has it.
    pub at: u64,
    pub url: Box<str>,
    pub partition: Partition,
    pub told: ToTell,
}

/// Who is to know it, and what it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToTell {
    /// The owner, to fetch it.
    Owner { node: u16, found: Origin },
    /// Everybody: it spans the scope.
    All,
}

/// A share that cannot be gone by: these partitions are lost by it and have URLs here, which were not handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StillOurs(pub Vec<Partition>);

/// Items of one stretch, about.
const ITEMS_AT_ONCE: usize = 4_096;
/// Bytes of the ledger that one stretch is looked for in: whoever asks waits no longer than this takes.
const STRETCH_BYTES: u64 = 4 << 20;

impl Shares {
    pub(super) fn of(share: Option<Arc<Share>>) -> Shares {
        let docs = if share.is_some() { vec![0; PARTITIONS] } else { Vec::new() };
        Shares { share, docs, leaving: Arc::default() }
    }

    /// Whether a URL is another node's.
    pub(super) fn is_foreign(&self, url: &str) -> bool {
        self.share.as_ref().is_some_and(|share| !share.is_ours(url))
    }

    /// Whether a URL is ours; then it is counted.
    pub(super) fn admit(&mut self, url: &str) -> bool {
        let Some(share) = &self.share else { return true };
        let partition = share.partition_of(url);
        let is_ours = share.owns(partition);
        if is_ours {
            self.docs[partition.index()] += 1;
        }
        is_ours
    }
}

impl DocIndex {
    /// A document that another node is to fetch: it is known, and never pending.
    pub(super) fn place_foreign(&mut self, doc_id: u32) {
        self.books.take(doc_id);
        self.books.counts.known += 1;
        self.books.counts.foreign += 1;
    }

    /// Nothing of these partitions, which are ours, is handed out from now on.
    pub fn begin_to_leave(&mut self, partitions: &SortedSet<Partition>) {
        Arc::make_mut(&mut self.shares.leaving).extend(partitions);
    }

    /// These partitions stay.
    pub fn stay(&mut self, partitions: &SortedSet<Partition>) {
        Arc::make_mut(&mut self.shares.leaving).retain(|partition| !partitions.contains(partition));
    }

    /// What is not handed out, if anything is on its way to another node.
    pub fn leaving(&self) -> Option<Leaving> {
        let share = self.shares.share.clone().filter(|_| !self.shares.leaving.is_empty())?;
        Some(Leaving { share, partitions: self.shares.leaving.clone() })
    }

    /// The hosts that may have URLs in partitions, by their origins.
    pub fn origins_in<'a>(&'a self, partitions: &'a SortedSet<Partition>) -> impl Iterator<Item = &'a str> {
        let share = self.shares.share.as_ref();
        let is_in = move |origin: &&str| share.is_some_and(|share| share.has_some_in(origin, partitions));
        self.origins().filter(is_in)
    }

    /// Goes by another share from now on. What was found here and belongs to partitions that are gained is pending, or waits,
    /// by its row. What was ours and has URLs stays ours, unless it was to leave and is where it goes: otherwise the share is
    /// not taken.
    pub fn set_share(&mut self, share: Arc<Share>) -> io::Result<Result<(), StillOurs>> {
        let Some(before) = self.shares.share.clone() else {
            // An index without a share owns everything it knows.
            let none = Share::new(*share.partitioner(), share.node(), 0, &[share.node(); PARTITIONS]);
            self.shares = Shares::of(Some(Arc::new(none)));
            self.count_partitions()?;
            return self.set_share(share);
        };
        let has_docs = |&partition: &Partition| self.partition_docs(partition) > 0;
        let lost: SortedSet<Partition> = before.lost_in(&share).filter(has_docs).collect();
        let kept: Vec<Partition> = lost.difference(&self.shares.leaving).copied().collect();
        if !kept.is_empty() {
            return Ok(Err(StillOurs(kept)));
        }
        if !lost.is_empty() {
            self.let_go(&lost, &share)?;
        }
        let gains = share.lost_in(&before).next().is_some();
        if gains && self.books.counts.known > 0 {
            self.take_up_gained(&before, &share)?;
        }
        self.shares.share = Some(share);
        Ok(Ok(()))
    }

    /// What was ours is another node's: it is known, and neither pending nor due. What was fetched here stays so.
    fn let_go(&mut self, lost: &SortedSet<Partition>, next: &Share) -> io::Result<()> {
        self.ledger.write()?;
        let DocIndex { ledger, shares, books, frontier, documents, due, trouble, .. } = self;
        let mut waiting = RapidHashSet::default();
        let each = |told: Told<'_>| {
            let Entry::Doc { url, .. } = told.entry else { return };
            let Some((origin, _)) = split(url).filter(|_| lost.contains(&next.partition_of(url))) else {
                return;
            };
            let (doc_id, host) = (told.doc_id, frontier.host(origin));
            let is_pending = books.is_pending(doc_id);
            // One that cannot be read counts as none: this is gone through once.
            let row = trouble.or_default(documents.get(doc_id)).filter(|_| documents.has_row(doc_id));
            if is_pending {
                books.take(doc_id);
                frontier.pass_over(host);
            }
            if row.is_some_and(|row| row.due_s > 0) {
                waiting.insert(doc_id);
            }
            match row.map(|row| row.state) {
                // It is in the store of this node.
                Some(state @ (DocState::Success | DocState::Error)) => {
                    if is_pending {
                        books.count(frontier.counts(host), state);
                    }
                    books.count_elsewhere(state);
                    return;
                }
                Some(DocState::Excluded) if !is_pending => books.uncount_excluded(),
                _ => {}
            }
            frontier.counts(host).known -= 1;
            books.counts.foreign += 1;
        };
        ledger.each_from(0, each, |_| true)?;
        // One may wait more than once: for a time that does not count any more, too.
        let gone = due.take_out(u64::MAX, frontier.spill_mut(), |doc_id, _| Ok(waiting.contains(&doc_id)));
        drop(trouble.or_default(gone));
        for partition in lost {
            shares.docs[partition.index()] = 0;
        }
        self.stay(lost);
        Ok(())
    }

    fn count_partitions(&mut self) -> io::Result<()> {
        if self.books.counts.known == 0 {
            return Ok(());
        }
        self.ledger.write()?;
        let DocIndex { ledger, shares, .. } = self;
        let each = |told: Told<'_>| {
            if let Entry::Doc { url, .. } = told.entry {
                shares.admit(url);
            }
        };
        ledger.each_from(0, each, |_| true).map(|_| ())
    }

    /// Gives their places to documents that are ours by the next share: found here for other nodes, or handed over by them.
    fn take_up_gained(&mut self, before: &Share, next: &Share) -> io::Result<()> {
        self.ledger.write()?;
        let DocIndex { ledger, shares, books, frontier, documents, due, rules, trouble, .. } = self;
        let looks_again = rules.schedule.recrawl.is_some();
        let each = |told: Told<'_>| {
            let (Entry::Doc { origin, url }, doc_id) = (told.entry, told.doc_id) else { return };
            let partition = next.partition_of(url);
            if !next.owns(partition) || before.owns(partition) {
                return;
            }
            shares.docs[partition.index()] += 1;
            if books.is_pending(doc_id) {
                return;
            }
            // One that cannot be read counts as none: this is gone through once.
            let row = trouble.or_default(documents.get(doc_id)).filter(|_| documents.has_row(doc_id));
            let origin = row.map_or(origin, |row| row.raise(origin));
            let waits = row.is_some_and(|row| row.due_s > 0);
            match row.map(|row| row.state) {
                // It is counted by its row already.
                Some(state @ (DocState::Success | DocState::Error)) => {
                    books.uncount_elsewhere(doc_id, state);
                    if let Some(row) = row.filter(|_| waits && looks_again) {
                        due.put(doc_id, row.due_s);
                    }
                    return;
                }
                Some(DocState::Pending) if waits => {
                    let Some((host, _)) = split(url) else { return };
                    let host = frontier.host(host);
                    frontier.counts(host).known += 1;
                    due.put(doc_id, row.map_or(0, |row| row.due_s));
                }
                _ => {
                    let Some(host) = frontier.push_url(url, doc_id, origin) else { return };
                    frontier.counts(host).known += 1;
                    books.make_pending(doc_id);
                }
            }
            books.counts.foreign -= 1;
        };
        ledger.each_from(0, each, |_| true).map(|_| ())
    }

    /// Documents of a partition that is ours.
    pub fn partition_docs(&self, partition: Partition) -> u32 {
        self.shares.docs.get(partition.index()).copied().unwrap_or(0)
    }

    pub fn share(&self) -> Option<&Arc<Share>> {
        self.shares.share.as_ref()
    }

    /// Where the ledger ends, with what is not in its file yet.
    pub fn ledger_end(&self) -> u64 {
        self.ledger.told()
    }

    /// What nodes among those that `wanted` names are to know, out of the ledger from `from` on and before `until`, both of
    /// which are ends of earlier stretches.
    pub fn outbox(&self, from: u64, until: u64, wanted: impl Fn(u16) -> bool) -> io::Result<Outbox> {
        let Some(share) = &self.shares.share else { return Ok(Outbox { upto: from, ..Outbox::default() }) };
        let items = RefCell::new(Vec::new());
        let each = |told: Told<'_>| {
            let (url, found) = match told.entry {
                Entry::Doc { origin, url } => (url, origin),
                // It was typed here, or a seed led to it, when it was known already.
                Entry::Scope { url } => (url, Origin::SEED),
                _ => return,
            };
            let partition = share.partition_of(url);
            let node = share.owner(partition);
            let mut items = items.borrow_mut();
            let item = |told_to| OutItem { at: told.at, url: url.into(), partition, told: told_to };
            // Who handed it over knows it, and no other owner does.
            if !share.owns(partition) && wanted(node) && !found.is_from(node) {
                items.push(item(ToTell::Owner { node, found }));
            }
            let is_page = found.provenance.kind == DocKind::Content;
            if found.provenance.is_seed() && is_page && !found.is_of_peer() {
                items.push(item(ToTell::All));
            }
        };
        let goes_on = |at: u64| {
            let is_near = at < until && at.saturating_sub(from) < STRETCH_BYTES;
            is_near && items.borrow().len() < ITEMS_AT_ONCE
        };
        let upto = self.ledger.each_from(from, each, goes_on)?;
        Ok(Outbox { items: items.into_inner(), upto })
    }

    /// A URL that another node found, and that is ours. True if it is new.
    pub fn adopt(&mut self, url: &CrawlUrl, origin: Origin, now_s: u32) -> bool {
        let before = self.ledger.next_doc();
        let origin = Origin { via: Origin::VIA_PEER, ..origin };
        match origin.provenance.is_seed() {
            true => {
                let seeded = self.try_seed(url, origin, now_s);
                self.trouble.or_default(seeded);
            }
            false => self.discover_links([Link { url: url.as_str(), origin, via: "" }], now_s),
        }
        self.ledger.next_doc() > before
    }

    /// What another node says is in scope. True the first time.
    pub fn adopt_scope(&mut self, url: &CrawlUrl, now_s: u32) -> bool {
        let is_new = self.known.put_in_scope(url.as_str());
        if is_new {
            self.ledger.push(&Entry::PeerScope { url: url.as_str() }, now_s);
        }
        is_new
    }
}
