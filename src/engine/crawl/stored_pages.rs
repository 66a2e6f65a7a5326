use crate::handler::{Handled, Handler, Page};
use crate::proto::http1::{Flags, Head, HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::job::{Candidate, Held};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::{Document, Holdings, ReadError, ShardShare};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is stored of pages: whether it is there to be asked about, and the links of a page that has not changed. The server
/// did not send that again, and by the rules of today it may lead to more than it did. On the index thread, which may wait
/// for the disk.
pub struct StoredPages {
    data: PathBuf,
    /// What was stored when this was last opened; `None` before that, and where it could not be read.
    holdings: Option<Holdings>,
    /// When it was last seen that opening it anew tells nothing new.
    looked_at: Option<Instant>,
    /// Segments from here on are of this process, which knows what it lets go.
    first_new: u64,
    /// Shards that refer to what is stored.
    shares: Vec<Arc<ShardShare>>,
    handler: Handler,
}

/// Documents that are not there may be very many: it is not looked for each of them whether the store has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A store may be packed once more while it is opened.
const RENEWALS_MAX: usize = 3;

impl StoredPages {
    pub fn new(data: PathBuf, first_new: u64, handler: Handler) -> StoredPages {
        StoredPages { data, holdings: None, looked_at: None, first_new, shares: Vec::new(), handler }
    }

    /// Whom to tell that documents are gone.
    pub fn tell(&mut self, shares: Vec<Arc<ShardShare>>) {
        self.shares = shares;
    }

    /// Whether a stored document is there to be read, so that its server can be asked whether it has changed. Asked about
    /// every candidate, so nothing but the starts of records is read for it.
    pub fn holds(&mut self, url: &CrawlUrl, held: &Held) -> bool {
        match held.segment {
            segment if segment >= self.first_new => true,
            // Nobody asks about what may go.
            segment if segment <= self.retired() => false,
            _ => self
                .look(false, |holdings| holdings.holds(url.as_str()).map(|is_held| is_held.then_some(())))
                .is_some(),
        }
    }

    /// Whether there is a document for a 304 to stand on, which is read for it. What was packed is looked for where it is
    /// now. A document that is gone, though we let go nothing of its segment, somebody else has removed.
    pub fn stands(&mut self, url: &CrawlUrl, held: &Held) -> bool {
        if held.segment >= self.first_new {
            return true;
        }
        let must_know = held.segment > self.retired();
        if self.look(must_know, |holdings| holdings.document(url.as_str())).is_some() {
            return true;
        }
        // Segments are retired before they are packed: this is true of the look.
        if held.segment > self.retired() {
            self.lost();
        }
        false
    }

    /// Somebody removes what is stored while we are at work: nothing relies on what was there before.
    fn lost(&self) {
        for share in &self.shares {
            share.retire(self.first_new.saturating_sub(1));
        }
    }

    /// Segments up to this one may go.
    fn retired(&self) -> u64 {
        self.shares.iter().map(|share| share.retired()).max().unwrap_or(0)
    }

    /// Finds something in the store as it was, and if it is not there, in the store as it is.
    fn look<T>(
        &mut self,
        must_know: bool,
        find: impl Fn(&Holdings) -> Result<Option<T>, ReadError>,
    ) -> Option<T> {
        for _ in 0..=RENEWALS_MAX {
            if let Some(found) = self.holdings.as_ref().and_then(|holdings| find(holdings).ok().flatten()) {
                return Some(found);
            }
            if !self.renew(must_know) {
                break;
            }
        }
        None
    }

    /// Opens the store anew if there is something new to it. Looked for once in a while, unless it must be known.
    fn renew(&mut self, must_know: bool) -> bool {
        if !must_know && self.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return false;
        }
        let is_current = self.holdings.as_ref().is_some_and(Holdings::is_current);
        if !is_current {
            self.holdings = Holdings::open(&self.data).ok();
        }
        let is_renewed = !is_current && self.holdings.is_some();
        if !is_renewed {
            self.looked_at = Some(Instant::now());
        }
        is_renewed
    }

    /// A seed led there.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        self.handler.extend_scope(url);
    }

    pub fn read(&mut self, candidate: &Candidate) -> Option<Handled> {
        let document = self.look(false, |holdings| holdings.document(candidate.url.as_str()))?;
        // A document that was not decoded is no success, and nobody is asked whether it has changed.
        let page = StoredPage::new(document, Flags::DECODED)?;
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
