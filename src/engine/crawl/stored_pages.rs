use crate::handler::{Handled, Handler, Page};
use crate::proto::http1::{Flags, Head, HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::job::{Candidate, Held};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::{Document, Reader, ShardShare};
use std::path::PathBuf;
use std::sync::Arc;

/// What is stored of pages: whether it is there to be asked about, and the links of a page that has not changed. The server
/// did not send that again, and by the rules of today it may lead to more than it did. On the index thread, which may wait
/// for the disk.
pub struct StoredPages {
    data: PathBuf,
    /// The store as it was when this was last opened.
    reader: Option<Reader>,
    /// Segments from here on are of this process, which knows what it lets go.
    first_new: u64,
    /// Shards that refer to what is stored.
    shares: Vec<Arc<ShardShare>>,
    handler: Handler,
}

impl StoredPages {
    pub fn new(data: PathBuf, first_new: u64, handler: Handler) -> StoredPages {
        StoredPages { data, reader: None, first_new, shares: Vec::new(), handler }
    }

    /// Whom to tell that documents are gone.
    pub fn tell(&mut self, shares: Vec<Arc<ShardShare>>) {
        self.shares = shares;
    }

    /// Somebody removes what is stored while we are at work: nothing relies on what was there before.
    pub fn lost(&self) {
        for share in &self.shares {
            share.retire(self.first_new.saturating_sub(1));
        }
    }

    /// Whether a stored document can be read, so that its server can be asked whether it has changed.
    pub fn holds(&mut self, url: &CrawlUrl, held: &Held) -> bool {
        held.segment >= self.first_new
            || self.reader().is_some_and(|reader| reader.holds(url.as_str()).unwrap_or(false))
    }

    fn reader(&mut self) -> Option<&Reader> {
        if self.reader.is_none() {
            self.reader = Reader::open(&self.data).ok();
        }
        self.reader.as_ref()
    }

    /// A seed led there.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        self.handler.extend_scope(url);
    }

    pub fn read(&mut self, candidate: &Candidate) -> Option<Handled> {
        let found = self.reader()?.find(candidate.url.as_str());
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
