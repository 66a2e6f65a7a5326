use super::document_info::DocumentInfo;
use super::documents::{DocumentFiles, Documents, Note, Row, RowsInOrder};
use super::files::{LEDGER, NOTES, ROWS, ROWS_LOG, SEEN};
use super::index::IndexError;
use super::ledger::{Discovered, Entry, Ledger, LedgerView};
use crate::proto::url::CrawlUrl;
use crate::storage::Bytes;
use crate::storage::seen::SeenReader;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A doc index as it is on disk, for a process that only looks. A crawl may be writing to it: what is seen is true of
/// some moment of the last second.
pub struct IndexView {
    folder: PathBuf,
    ledger: LedgerView,
    documents: Documents,
    seen: SeenReader,
    seed: u64,
}

impl IndexView {
    /// `None` where there is no index.
    pub fn open(folder: &Path) -> Result<Option<IndexView>, IndexError> {
        let unusable = |cause| IndexError::Unusable { path: folder.to_path_buf(), cause };
        let file = |name: &str| Bytes::read_only(&folder.join(name)).map_err(unusable);
        let ledger = file(LEDGER)?;
        if ledger.len() == 0 {
            return Ok(None);
        }
        let Some(seed) = Ledger::seed_of(&ledger).map_err(unusable)? else {
            return Err(IndexError::Foreign(folder.join(LEDGER)));
        };
        let files = DocumentFiles { table: file(ROWS)?, log: file(ROWS_LOG)?, notes: file(NOTES)? };
        Ok(Some(IndexView {
            folder: folder.to_path_buf(),
            ledger: LedgerView::new(ledger),
            documents: Documents::open(files, 0).map_err(unusable)?,
            seen: SeenReader::open(&folder.join(SEEN), seed).map_err(unusable)?,
            seed,
        }))
    }

    /// What is known of a URL in normal form.
    pub fn find(&self, url: &str) -> io::Result<Option<DocumentInfo>> {
        let fingerprint = xxh3_64_with_seed(url.as_bytes(), self.seed);
        if let Some(doc_id) = self.seen.find(fingerprint)?
            && let Some(found) = self.document(doc_id)?.filter(|found| *found.discovered.url == *url)
        {
            return Ok(Some(found));
        }
        // What came since the last run was written is in the ledger alone.
        let from = self.seen.covered().saturating_add(1);
        let doc_id = self.ledger.each_from(from, |told| match told.entry {
            Entry::Doc { url: found, .. } if found == url => ControlFlow::Break(told.doc_id),
            _ => ControlFlow::Continue(()),
        })?;
        doc_id.map_or(Ok(None), |doc_id| self.document(doc_id))
    }

    pub fn document(&self, doc_id: u32) -> io::Result<Option<DocumentInfo>> {
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(None) };
        let row = self.documents.get(doc_id)?.filter(|row| row.after <= self.ledger.bytes());
        let note = row.map_or(Ok(Note::default()), |row| self.documents.note(doc_id, &row))?;
        Ok(Some(DocumentInfo { doc_id, discovered, row, note }))
    }

    /// Every document in the order they were discovered, with its row. Notes are left to [`IndexView::note`].
    pub fn each(
        &self,
        mut each: impl FnMut(u32, &Discovered, Option<&Row>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut rows = RowsInOrder::new(Bytes::read_only(&self.folder.join(ROWS))?);
        let bytes = self.ledger.bytes();
        let ended = self.ledger.each_from(0, |told| {
            let Entry::Doc { origin, url } = told.entry else { return ControlFlow::Continue(()) };
            let recent = self.documents.recent(told.doc_id);
            let row = match recent.map_or_else(|| rows.get(told.doc_id), |row| Ok(Some(row))) {
                Ok(row) => row.filter(|row| row.after <= bytes),
                Err(error) => return ControlFlow::Break(Err(error)),
            };
            let discovered = Discovered { url: url.into(), origin, at_s: told.at_s };
            each(told.doc_id, &discovered, row.as_ref()).map_break(Ok)
        })?;
        ended.unwrap_or(Ok(()))
    }

    /// Whether no URL is known.
    pub fn is_empty(&self) -> io::Result<bool> {
        let found = self.ledger.each_from(0, |told| match told.entry {
            Entry::Doc { .. } | Entry::Unresolved { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        Ok(found?.is_none())
    }

    pub fn note(&self, doc_id: u32, row: &Row) -> io::Result<Note> {
        self.documents.note(doc_id, row)
    }

    /// Where seeds led: in scope beside the seeds themselves.
    pub fn scope_urls(&self) -> io::Result<Vec<CrawlUrl>> {
        let mut urls = Vec::new();
        self.ledger.each_from(0, |told| {
            match told.entry {
                Entry::Scope { url } | Entry::PeerScope { url } => {
                    urls.extend(CrawlUrl::from_normal(url).ok())
                }
                Entry::Doc { origin, url } if origin.provenance.is_seed() => {
                    urls.extend(CrawlUrl::from_normal(url).ok());
                }
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(urls)
    }

    /// Bytes on disk: the ledger, the documents, the seen-set.
    pub fn disk_bytes(&self) -> [u64; 3] {
        let seen = std::fs::read_dir(self.folder.join(SEEN)).into_iter().flatten().flatten();
        let seen = seen.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
        [self.ledger.bytes(), self.documents.disk_bytes(), seen]
    }
}
