//! Documents on their way to another node, with all that is known of them.

use super::super::documents::{DocState, Note, NoteOwner, ROW_BYTES, Row};
use super::super::frontier::split;
use super::super::ledger::{Entry, Origin, Told};
use super::DocIndex;
use crate::base::SortedSet;
use crate::limits::MOVED_ROW_BYTES_MAX;
use crate::proto::partition::Partition;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::cell::RefCell;
use std::io;

/// Documents of partitions that leave, out of a stretch of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moving {
    pub items: Vec<MovingItem>,
    /// Where the stretch ends, and the next one begins.
    pub upto: u64,
    /// The ledger ended there.
    pub is_whole: bool,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovingItem {
    pub partition: Partition,
    pub url: Box<str>,
    pub origin: Origin,
    /// What became of it, as [`DocIndex::take_moved`] reads it; empty if nothing did yet.
    pub row: Box<[u8]>,
}

/// Items of one stretch, about.
const ITEMS_AT_ONCE: usize = 4_096;
/// Bytes of the ledger that one stretch is looked for in: the index does nothing else meanwhile.
const STRETCH_BYTES: u64 = 4 << 20;
/// A note that travels is nobody's in particular.
const TRAVELLING: u32 = 0;

impl DocIndex {
    /// Whether something of these partitions is handed out.
    pub fn is_out(&self, partitions: &SortedSet<Partition>) -> bool {
        let Some(share) = self.share() else { return false };
        let is_in = |host| share.has_some_in(self.frontier.origin(host), partitions);
        self.books.open_hosts().any(is_in)
    }

    /// What is known of the documents of these partitions, out of the ledger from `from` on. Who gets them is told whose store
    /// has what was fetched.
    pub fn moving(&mut self, from: u64, partitions: &SortedSet<Partition>) -> io::Result<Moving> {
        let Some(share) = self.share().cloned() else { return Ok(Moving::default()) };
        let node = share.node();
        self.ledger.write()?;
        let items = RefCell::new(Vec::new());
        let mut trouble = Ok(());
        let each = |told: Told<'_>| {
            let Entry::Doc { origin, url } = told.entry else { return };
            let partition = share.partition_of(url);
            if !partitions.contains(&partition) {
                return;
            }
            let (origin, row) = match self.travelling(told.doc_id, node) {
                Ok(Some((row, bytes))) => (row.raise(origin), bytes),
                Ok(None) => (origin, Box::default()),
                Err(error) => return trouble = Err(error),
            };
            items.borrow_mut().push(MovingItem { partition, url: url.into(), origin, row });
        };
        let goes_on =
            |at: u64| at.saturating_sub(from) < STRETCH_BYTES && items.borrow().len() < ITEMS_AT_ONCE;
        let upto = self.ledger.each_from(from, each, goes_on)?;
        trouble?;
        Ok(Moving { items: items.into_inner(), upto, is_whole: upto >= self.ledger.told() })
    }

    /// The row of a document, and how it travels: without what only this node has.
    pub(super) fn travelling(&self, doc_id: u32, node: u16) -> io::Result<Option<(Row, Box<[u8]>)>> {
        if !self.documents.has_row(doc_id) {
            return Ok(None);
        }
        let Some(row) = self.documents.get(doc_id)? else { return Ok(None) };
        let mut note = self.documents.note(doc_id, &row)?;
        note.held = None;
        if row.state == DocState::Success && note.store == 0 {
            note.store = node;
        }
        let mut bytes = Row { after: 0, note: Default::default(), ..row }.encode().to_vec();
        note.encode(NoteOwner { doc_id: TRAVELLING, digest: row.digest }, &mut bytes);
        if bytes.len() > MOVED_ROW_BYTES_MAX {
            bytes.truncate(ROW_BYTES);
        }
        Ok(Some((row, bytes.into())))
    }

    /// A document that another node hands over, with its partition: it is known, and gets its place when the partition is
    /// ours. What is ours already is left as it is, if it is known. True if it was not known; nothing if its row cannot be read.
    pub fn take_moved(&mut self, url: &CrawlUrl, origin: Origin, row: &[u8], now_s: u32) -> Option<bool> {
        let moved = if row.is_empty() { None } else { Some(arrived(row)?) };
        let (known_url, url) = (url, url.as_str());
        if !self.shares.is_foreign(url) {
            // A node that is taken over may have found it for this one, and not told it.
            let found = self.look(url);
            let is_known = self.trouble.or_default(found).is_some();
            return Some(!is_known && self.adopt(known_url, origin, now_s));
        }
        let found = self.look(url);
        let known = self.trouble.or_default(found).map(|found| found.doc_id);
        let doc_id = known.unwrap_or_else(|| self.ledger.next_doc());
        if known.is_none() {
            let via = if origin.is_of_peer() { origin.via } else { Origin::VIA_PEER };
            let origin = Origin { via, ..origin };
            self.admit_one(url, self.known.fingerprint(url), origin, now_s);
        }
        if let Some((row, mut note)) = moved.filter(|_| doc_id < self.ledger.next_doc()) {
            // It comes back to who fetched it.
            if self.share().is_some_and(|share| share.node() == note.store) {
                note.store = 0;
            }
            self.put_moved(doc_id, url, row, &note);
        }
        Some(known.is_none())
    }

    fn put_moved(&mut self, doc_id: u32, url: &str, row: Row, note: &Note) {
        let Some((origin, _)) = split(url) else { return };
        let before = self.row(doc_id);
        // Clocks of nodes differ; answers only get more.
        if before.fetched_s > row.fetched_s && before.fetches >= row.fetches {
            return;
        }
        let mut row = Row { after: self.ledger.told(), note: before.note, ..row };
        self.documents.put_note(doc_id, before.note_owner(doc_id), &mut row, note);
        self.documents.put(doc_id, row);
        let is_done = |state| matches!(state, DocState::Success | DocState::Error);
        let host = self.frontier.host(origin);
        let counts = self.frontier.counts(host);
        // Of another node's, those are counted that were fetched.
        match (is_done(before.state), is_done(row.state)) {
            (false, true) => {
                counts.known += 1;
                self.books.counts.foreign -= 1;
            }
            (true, false) => {
                counts.known -= 1;
                self.books.counts.foreign += 1;
            }
            _ => {}
        }
        self.books.uncount(counts, before.state);
        self.books.uncount_elsewhere(doc_id, before.state);
        if is_done(row.state) {
            self.books.count(counts, row.state);
            self.books.count_elsewhere(row.state);
        }
    }
}

/// The page that a row tells of which travels, as [`MovingItem::row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageElsewhere {
    /// The node whose store has it.
    pub node: u16,
    pub fetched_s: u32,
}

impl PageElsewhere {
    /// Nothing if no page was fetched.
    pub fn of(row: &[u8]) -> Option<PageElsewhere> {
        let (row, note) = arrived(row)?;
        let is_page = row.state == DocState::Success && row.result == Some(ResultCode::Ok) && !note.head_only;
        is_page.then_some(PageElsewhere { node: note.store, fetched_s: row.fetched_s })
    }
}

/// What travelled, or nothing if it cannot be read.
fn arrived(bytes: &[u8]) -> Option<(Row, Note)> {
    let (row, note) = bytes.split_first_chunk::<ROW_BYTES>()?;
    let row = Row::decode(row)?;
    let note = match note.is_empty() {
        true => Note::default(),
        false => Note::decode(NoteOwner { doc_id: TRAVELLING, digest: row.digest }, note)?,
    };
    Some((Row { after: 0, note: Default::default(), ..row }, note))
}
