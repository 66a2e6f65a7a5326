//! What an index knows, for the node that would take it over: everything once, and from then on what changes.

use super::super::ledger::{Entry, Origin, Told};
use super::DocIndex;
use super::moving::MovingItem;
use crate::proto::job::DocKind;
use crate::proto::partition::Partition;
use crate::proto::url::CrawlUrl;
use std::cell::RefCell;
use std::io;

/// A piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copying {
    pub items: Vec<MovingItem>,
    /// What spans the scope.
    pub in_scope: Vec<(Partition, Box<str>)>,
    /// Where the stretch of the ledger ends, and the next one begins.
    pub upto: u64,
    /// With this piece all is told that was known when it was made.
    pub is_whole: bool,
    /// More has changed than was noted: everything has to be told again.
    pub is_torn: bool,
}

/// Items of one piece, about; and bytes of the ledger that it is looked for in: the index does nothing else meanwhile.
const ITEMS_AT_ONCE: usize = 4_096;
const STRETCH_BYTES: u64 = 4 << 20;

impl DocIndex {
    /// All that is known, out of the ledger from `from` on; behind its end what became of documents since. From 0 on it is begun
    /// anew. A page is told after the links that it led to.
    pub fn copying(&mut self, from: u64) -> io::Result<Copying> {
        let Some(share) = self.share().cloned() else { return Ok(Copying::default()) };
        if from == 0 {
            self.documents.note_changes(self.ledger.next_doc());
        }
        self.ledger.write()?;
        let (items, in_scope) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let mut trouble = Ok(());
        let each = |told: Told<'_>| match told.entry {
            Entry::Doc { origin, url } => {
                let is_page = origin.provenance.kind == DocKind::Content;
                if origin.provenance.is_seed() && is_page && !origin.is_of_peer() {
                    in_scope.borrow_mut().push((share.partition_of(url), url.into()));
                }
                // What became of it since is told behind the links that it led to.
                match self.copied(told.doc_id, url, origin, !self.documents.is_noted(told.doc_id)) {
                    Ok(item) => items.borrow_mut().push(item),
                    Err(error) => trouble = Err(error),
                }
            }
            // It may be known; who takes over finds out.
            Entry::Unresolved { origin, url } => {
                let (partition, row) = (share.partition_of(url), Box::default());
                items.borrow_mut().push(MovingItem { partition, url: url.into(), origin, row });
            }
            Entry::Scope { url } | Entry::PeerScope { url } => {
                in_scope.borrow_mut().push((share.partition_of(url), url.into()));
            }
            _ => {}
        };
        let goes_on =
            |at: u64| at.saturating_sub(from) < STRETCH_BYTES && items.borrow().len() < ITEMS_AT_ONCE;
        let upto = self.ledger.each_from(from, each, goes_on)?;
        trouble?;
        let (mut items, in_scope) = (items.into_inner(), in_scope.into_inner());
        let mut is_whole = upto >= self.ledger.told();
        if is_whole {
            let changed = self.documents.take_changed(ITEMS_AT_ONCE);
            let told = self.ledger.docs(&changed, |doc_id, url, origin| {
                self.copied(doc_id, url, origin, true).map(|item| items.push(item))
            });
            // What was taken and is not told is told with everything else, from the beginning.
            told.inspect_err(|_| self.documents.tear())?;
            is_whole = !self.documents.has_changed();
        }
        Ok(Copying { items, in_scope, upto, is_whole, is_torn: self.documents.is_torn() })
    }

    /// A document as whoever takes over is to know it.
    fn copied(&self, doc_id: u32, url: &str, origin: Origin, with_row: bool) -> io::Result<MovingItem> {
        let Some(share) = self.share() else { return Err(io::Error::other("there is no share")) };
        let row = if with_row { self.travelling(doc_id, share.node())? } else { None };
        let (origin, row) = match row {
            Some((row, bytes)) => (row.raise(origin), bytes),
            None => (origin, Box::default()),
        };
        Ok(MovingItem { partition: share.partition_of(url), url: url.into(), origin, row })
    }

    /// What a node that is taken over had in scope: the others are told of it, as if it were of this one.
    pub fn take_over_scope(&mut self, url: &CrawlUrl, now_s: u32) -> bool {
        let is_new = self.known.put_in_scope(url.as_str());
        self.ledger.push(&Entry::Scope { url: url.as_str() }, now_s);
        is_new
    }
}
