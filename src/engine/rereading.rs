use crate::handler::{Handled, Handler, Page};
use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::lines::Candidate;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::Reader;
use std::path::PathBuf;

/// Reads the links of a page that has not changed from what is stored of it: the server did not send it again, and by
/// the rules of today it may lead to more than it did. On the index thread, which may wait for the disk.
pub struct Rereading {
    data: PathBuf,
    /// The store as it was when this was last opened.
    reader: Option<Reader>,
    handler: Handler,
}

impl Rereading {
    pub fn new(data: PathBuf, handler: Handler) -> Rereading {
        Rereading { data, reader: None, handler }
    }

    /// A seed led there.
    pub fn extend_scope(&mut self, url: &CrawlUrl) {
        self.handler.extend_scope(url);
    }

    pub fn read(&mut self, candidate: &Candidate) -> Option<Handled> {
        if self.reader.is_none() {
            self.reader = Reader::open(&self.data).ok();
        }
        let (_, document) = self.reader.as_ref()?.find(candidate.url.as_str()).ok()??;
        let document = document?;
        let parsed = HeadParser::new(HeadLimits::default(), Method::Get).parse(&document.head);
        let Ok(HeadStep::Done(head)) = parsed else {
            return None;
        };
        Some(self.handler.handle(&Page {
            candidate,
            result: ResultCode::Ok,
            head: Some(&head),
            head_bytes: &document.head,
            document: &document.body,
            // A document that was not decoded is no success, and nobody is asked whether it has changed.
            decoded: true,
        }))
    }
}
