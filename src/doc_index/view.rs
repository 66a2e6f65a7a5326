use super::documents::{DocumentFiles, Documents, RowsInOrder};
use super::entry::Entry;
use super::index::{DocIndex, domain_fingerprint};
use super::ledger::{Discovered, Ledger, LedgerView};
use super::note::Note;
use super::open::{IndexError, LEDGER, NOTES, ROWS, ROWS_LOG, SEEN};
use super::row::{DocState, Row};
use crate::proto::url::CrawlUrl;
use crate::storage::Bytes;
use crate::storage::seen::SeenReader;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// All that is known of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier {
    pub doc_id: u32,
    pub discovered: Discovered,
    /// `None` if it was never answered for.
    pub row: Option<Row>,
    pub note: Note,
}

impl Dossier {
    pub fn state(&self) -> DocState {
        self.row.map_or(DocState::Pending, |row| row.state)
    }
}

/// A doc index as it is on disk, for whoever only looks. A crawl may be writing to it: what is seen is true of some
/// moment of the last second.
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
        Ok(Some(IndexView {
            folder: folder.to_path_buf(),
            ledger: LedgerView::new(ledger),
            documents: Documents::open(
                DocumentFiles { table: file(ROWS)?, log: file(ROWS_LOG)?, notes: file(NOTES)? },
                0,
            )
            .map_err(unusable)?,
            seen: SeenReader::open(&folder.join(SEEN), seed).map_err(unusable)?,
            seed,
        }))
    }

    /// What is known of a URL in normal form.
    pub fn find(&self, url: &str) -> io::Result<Option<Dossier>> {
        let fingerprint = xxh3_64_with_seed(url.as_bytes(), self.seed);
        if let Some(doc_id) = self.seen.find(fingerprint)?
            && let Some(found) = self.document(doc_id)?.filter(|found| *found.discovered.url == *url)
        {
            return Ok(Some(found));
        }
        // What came since the last run was written is in the ledger alone.
        let (from, mut doc_id) = (self.seen.covered().saturating_add(1), None);
        self.ledger.each_from(from, |told| match told.entry {
            Entry::Doc { url: found, .. } if found == url => {
                doc_id = Some(told.doc_id);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        match doc_id {
            Some(doc_id) => self.document(doc_id),
            None => Ok(None),
        }
    }

    pub fn document(&self, doc_id: u32) -> io::Result<Option<Dossier>> {
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(None) };
        let row = self.documents.get(doc_id)?.filter(|row| row.after <= self.ledger.bytes());
        let note = row.map_or(Ok(Note::default()), |row| self.documents.note(doc_id, &row))?;
        Ok(Some(Dossier { doc_id, discovered, row, note }))
    }

    /// Every document in the order they were discovered, with its row. Notes are left to [`IndexView::note`].
    pub fn each(
        &self,
        mut each: impl FnMut(u32, &Discovered, Option<&Row>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut rows = RowsInOrder::new(Bytes::read_only(&self.folder.join(ROWS))?);
        let mut failed = Ok(());
        let bytes = self.ledger.bytes();
        self.ledger.each_from(0, |told| {
            let Entry::Doc { origin, url } = told.entry else { return ControlFlow::Continue(()) };
            let recent = self.documents.recent(told.doc_id);
            match recent.map_or_else(|| rows.get(told.doc_id), |row| Ok(Some(row))) {
                Ok(row) => {
                    let discovered = Discovered { url: url.into(), origin, at_s: told.at_s };
                    each(told.doc_id, &discovered, row.filter(|row| row.after <= bytes).as_ref())
                }
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed
    }

    pub fn note(&self, doc_id: u32, row: &Row) -> io::Result<Note> {
        self.documents.note(doc_id, row)
    }

    /// Where seeds led: in scope beside the seeds themselves.
    pub fn scope_urls(&self) -> io::Result<Vec<CrawlUrl>> {
        let mut urls = Vec::new();
        self.ledger.each_from(0, |told| {
            match told.entry {
                Entry::Scope { url } => urls.extend(CrawlUrl::from_normal(url).ok()),
                Entry::Doc { origin, url } if origin.seed_chain && origin.hops == 0 => {
                    urls.extend(CrawlUrl::from_normal(url).ok());
                }
                _ => {}
            }
            ControlFlow::Continue(())
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

impl DocIndex {
    /// All that is known of a URL in normal form. Reads the disk.
    pub fn look(&self, url: &str) -> io::Result<Option<Dossier>> {
        let fingerprint = xxh3_64_with_seed(url.as_bytes(), self.seed);
        let Some(doc_id) = self.seen.find(fingerprint)? else { return Ok(None) };
        Ok(self.document(doc_id)?.filter(|found| *found.discovered.url == *url))
    }

    /// All that is known of a document.
    pub fn document(&self, doc_id: u32) -> io::Result<Option<Dossier>> {
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(None) };
        let mut row = if self.rowed.get(doc_id) { self.documents.get(doc_id)? } else { None };
        let note = row.map_or(Ok(Note::default()), |row| self.documents.note(doc_id, &row))?;
        if self.open.contains_key(&doc_id) {
            row = Some(Row { state: DocState::Fetching, ..row.unwrap_or_default() });
        }
        Ok(Some(Dossier { doc_id, discovered, row, note }))
    }

    /// Whether a page has named a URL of which only the disk can tell whether it is known.
    pub fn is_parked(&self, url: &str) -> bool {
        self.doubts.urls().any(|parked| parked == url)
    }

    /// URLs that count against the budget of a domain; `None` without one.
    pub fn domain_known(&self, url: &CrawlUrl) -> Option<u32> {
        let limited = self.rules.pages_per_domain > 0;
        limited.then(|| self.by_domain.get(&domain_fingerprint(url.as_str())).copied().unwrap_or(0))
    }

    /// URLs that differ from this one in the values of their query only; `None` without a guard.
    pub fn variants_known(&self, url: &CrawlUrl) -> Option<u32> {
        (self.rules.query_variants_max > 0).then(|| self.variants.count(url.as_str()))
    }

    pub fn url(&mut self, doc_id: u32) -> Option<CrawlUrl> {
        let found = self.ledger.doc(doc_id);
        let found = found.unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            None
        });
        CrawlUrl::from_normal(&found?.url).ok()
    }

    /// Documents are numbered from 1 up to below this.
    pub fn next_doc(&self) -> u32 {
        self.ledger.next_doc()
    }

    /// The URL of a document that is stored, for a user to look at.
    pub fn example(&mut self) -> Option<String> {
        (1..self.next_doc().min(EXAMPLE_DOCS)).find_map(|doc_id| {
            let found = self.document(doc_id).ok()??;
            let has_document = found.row?.result?.is_success();
            has_document.then(|| found.discovered.url.into())
        })
    }
}

/// If none of so many is stored, the user has other questions.
const EXAMPLE_DOCS: u32 = 1_000;
