use crate::handler::{Handled, Handler, Page};
use crate::proto::http1::{Flags, Head, HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::job::Candidate;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::{Document, Reader};
use std::path::PathBuf;

/// Reads the links of a page that has not changed from what is stored of it: the server did not send it again, and by
/// the rules of today it may lead to more than it did. On the index thread, which may wait for the disk.
pub struct StoredPages {
    data: PathBuf,
    /// The store as it was when this was last opened.
    reader: Option<Reader>,
    handler: Handler,
}

impl StoredPages {
    pub fn new(data: PathBuf, handler: Handler) -> StoredPages {
        StoredPages { data, reader: None, handler }
    }

    /// A seed led there.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        self.handler.extend_scope(url);
    }

    pub fn read(&mut self, candidate: &Candidate) -> Option<Handled> {
        if self.reader.is_none() {
            self.reader = Reader::open(&self.data).ok();
        }
        let found = self.reader.as_ref()?.find(candidate.url.as_str());
        if found.is_err() {
            // What is there now may read better.
            self.reader = None;
        }
        let (_, document) = found.ok()??;
        // A document that was not decoded is no success, and nobody is asked whether it has changed.
        let page = StoredPage::new(document?, Flags::DECODED)?;
        page.head.is_some().then(|| page.handle(&mut self.handler, candidate, ResultCode::Ok))
    }
}

/// A response out of the store, as a handler reads it.
pub(crate) struct StoredPage {
    /// `None` where nothing came.
    pub head: Option<Head>,
    pub document: Document,
    flags: Flags,
}

impl StoredPage {
    /// `None` for a head that does not read like one.
    pub fn new(document: Document, flags: Flags) -> Option<StoredPage> {
        if document.head.is_empty() {
            return Some(StoredPage { head: None, document, flags });
        }
        let method = if flags.contains(Flags::HEAD_ONLY) { Method::Head } else { Method::Get };
        match HeadParser::new(HeadLimits::default(), method).parse(&document.head) {
            Ok(HeadStep::Done(head)) => Some(StoredPage { head: Some(head), document, flags }),
            _ => None,
        }
    }

    pub fn handle(&self, handler: &mut Handler, candidate: &Candidate, result: ResultCode) -> Handled {
        handler.handle(&Page {
            candidate,
            result,
            head: self.head.as_ref(),
            head_bytes: &self.document.head,
            decoded: self.flags.contains(Flags::DECODED),
            document: &self.document.body,
        })
    }
}
