use crate::doc_index::DocIndex;
use crate::engine::crawl::completion::{Completion, result_of, retry_after_of, validators_of};
use crate::engine::crawl::messages::ToIndex;
use crate::engine::crawl::provider::Provider;
use crate::engine::crawl::stored_pages::StoredPage;
use crate::handler::Handler;
use crate::proto::http1::Flags;
use crate::proto::job::Candidate;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::{Located, ReadError, Reader, Record};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the folder's docs.
pub(crate) struct Resumption<'a> {
    provider: &'a mut Provider,
    /// Seconds since 1970.
    now_s: u32,
    handler: Handler,
    taken: Resumed,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Resumed {
    pub pages: u64,
    pub took: Duration,
    /// Where seeds led.
    pub(crate) into_scope: Vec<CrawlUrl>,
    /// Why some of it could not be read.
    pub(crate) trouble: Option<ReadError>,
}

impl<'a> Resumption<'a> {
    pub fn new(provider: &'a mut Provider, handler: Handler, now_s: u32) -> Resumption<'a> {
        Resumption { provider, now_s, handler, taken: Resumed::default() }
    }

    /// Goes through what was stored from this segment on. An error is one of the index; what cannot be read of the store
    /// is fetched again.
    pub fn run(mut self, data: &Path, first: u64) -> io::Result<Resumed> {
        let started = Instant::now();
        match Reader::open(data) {
            Ok(reader) => {
                let segments = reader.tail(first, |located| {
                    untold(self.provider.index_mut(), &located.record, self.now_s).is_some()
                });
                for segment in segments {
                    self.take_segment(&reader, segment)?;
                }
            }
            Err(ReadError::NoStore(_)) => {}
            Err(error) => self.taken.trouble = Some(error),
        }
        if self.taken.pages > 0 {
            self.provider.flush(true)?;
        }
        self.taken.took = started.elapsed();
        Ok(self.taken)
    }

    fn take_segment(&mut self, reader: &Reader, segment: u64) -> io::Result<()> {
        let mut told = Ok(());
        let shown = reader.each_in(segment, |located, bytes| {
            if told.is_ok() {
                told = self.take(reader, &located, bytes);
            }
        });
        if let Err(error) = shown {
            self.taken.trouble.get_or_insert(error);
        }
        told
    }

    pub(crate) fn take(&mut self, reader: &Reader, located: &Located, bytes: &[u8]) -> io::Result<()> {
        let record = &located.record;
        let Some(mut candidate) = untold(self.provider.index_mut(), record, self.now_s) else {
            return Ok(());
        };
        let document = reader.document_of(located, bytes).unwrap_or_else(|error| {
            self.taken.trouble.get_or_insert(error);
            None
        });
        let flags = Flags::from_bits(record.flags);
        let Some(page) = document.and_then(|document| StoredPage::new(document, flags)) else {
            return Ok(());
        };
        // It may have been asked for in another way than it was discovered; the record knows, if there was an answer.
        if page.head.is_some() {
            candidate.provenance.head_only =
                flags.contains(Flags::HEAD_ONLY) || flags.contains(Flags::HEAD_BY_GET);
        }
        self.provider.mark_feed(&mut candidate);
        if !self.provider.index_mut().take_up(candidate.doc_id) {
            return Ok(());
        }
        let result = as_fetched(record.result);
        let mut handled = page.handle(&mut self.handler, &candidate, result);
        if let (Some(feed), Some(head)) = (&mut handled.feed, &page.head) {
            let ended_ms = record.fetched_unix_ms.saturating_add(u64::from(record.took_ms));
            feed.retry_after_s = retry_after_of(head, &page.document.head, ended_ms);
        }
        let answered = Completion {
            candidate: &candidate,
            result: result_of(&candidate, result, &handled),
            status: record.status,
            at_s: believed_s(record, self.now_s),
            digest: record.digest,
            validators: validators_of(result, flags, page.head.as_ref(), &page.document.head),
            segment: located.segment,
            trouble: None,
        };
        let (outcome, found) = answered.tell(handled);
        let mut words = Vec::with_capacity(3);
        if let Some(mut found) = found {
            if let Some(url) = found.into_scope.take() {
                self.taken.into_scope.push(url.clone());
                words.push(ToIndex::Scope(Arc::new(url)));
            }
            words.push(ToIndex::Discover(found));
        }
        words.push(ToIndex::Record(outcome));
        self.taken.pages += 1;
        self.provider.work_off(words, self.now_s)
    }
}

/// The document that a record is of, if the index was not told of it.
fn untold(index: &mut DocIndex, record: &Record, now_s: u32) -> Option<Candidate> {
    if index.is_told(record.doc_id, answered_s(record), now_s) {
        return None;
    }
    index.candidate(record.doc_id).filter(|candidate| candidate.url.as_str() == record.url)
}

/// When it was answered, in seconds since 1970; the row of the same answer has no earlier time.
fn answered_s(record: &Record) -> u32 {
    let unix_ms = record.fetched_unix_ms.saturating_add(u64::from(record.took_ms));
    u32::try_from(unix_ms / 1_000).unwrap_or(u32::MAX)
}

/// The same for the index. A clock that was ahead by more than clocks are corrected by parks nothing.
fn believed_s(record: &Record, now_s: u32) -> u32 {
    match answered_s(record) {
        at_s if at_s > now_s.saturating_add(CLOCK_SLACK_S) => now_s,
        at_s => at_s,
    }
}

const CLOCK_SLACK_S: u32 = 60;

/// The result that the spider had; what its chain made of a redirect is found once more.
fn as_fetched(result: ResultCode) -> ResultCode {
    match result {
        ResultCode::TooManyRedirects | ResultCode::RedirectLoop => ResultCode::Redirect,
        result => result,
    }
}
