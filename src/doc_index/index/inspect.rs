//! What is known of one URL or document, for those who ask.

use super::super::document_info::DocumentInfo;
use super::super::documents::{DocState, Note, Row};
use super::DocIndex;
use crate::proto::url::CrawlUrl;
use std::io;

impl DocIndex {
    /// All that is known of a URL in normal form. Reads the disk.
    pub fn look(&self, url: &str) -> io::Result<Option<DocumentInfo>> {
        let Some(doc_id) = self.known.seen().find(self.known.fingerprint(url))? else { return Ok(None) };
        Ok(self.document(doc_id)?.filter(|found| *found.discovered.url == *url))
    }

    /// All that is known of a document.
    pub fn document(&self, doc_id: u32) -> io::Result<Option<DocumentInfo>> {
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(None) };
        let mut row = if self.documents.has_row(doc_id) { self.documents.get(doc_id)? } else { None };
        let note = row.map_or(Ok(Note::default()), |row| self.documents.note(doc_id, &row))?;
        if self.books.is_open(doc_id) {
            row = Some(Row { state: DocState::HandedOut, ..row.unwrap_or_default() });
        }
        Ok(Some(DocumentInfo { doc_id, discovered, row, note }))
    }

    /// Whether a page has named a URL of which only the disk can tell whether it is known.
    pub fn is_parked(&self, url: &str) -> bool {
        self.known.unresolved().urls().any(|parked| parked == url)
    }

    /// URLs that count against the budget of a domain; `None` without one.
    pub fn domain_known(&self, url: &CrawlUrl) -> Option<u32> {
        self.budgets.domain_known(url.as_str())
    }

    /// URLs that differ from this one in the values of their query only; `None` without a guard.
    pub fn variants_known(&self, url: &CrawlUrl) -> Option<u32> {
        (self.rules.query_variants_max > 0).then(|| self.budgets.variants().count(url.as_str()))
    }

    pub fn url(&mut self, doc_id: u32) -> Option<CrawlUrl> {
        let found = self.trouble.or_default(self.ledger.doc(doc_id))?;
        CrawlUrl::from_normal(&found.url).ok()
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

/// If none of this many is stored, the user has other questions.
const EXAMPLE_DOCS: u32 = 1_000;
