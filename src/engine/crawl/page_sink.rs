use crate::engine::crawl::completion::{
    Completion, record_of, result_of, retry_after_s, trouble_of, validators_of, validators_of_poll,
};
use crate::engine::crawl::messages::FromShard;
use crate::engine::crawl::shard::{RecordSink, ShardOut, Stored};
use crate::engine::crawl::shard_log::Span;
use crate::engine::crawl::stages::Stage;
use crate::engine::inspect::reports::Reports;
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::groups::Group;
use crate::handler::{Handler, Page, REDUNDANT_FEED};
use crate::proto::http1::Flags;
use crate::proto::job::Job;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::spider::Fetched;
use crate::store_server::{AppendError, ShardStore};

/// A page that was fetched and is not in a segment yet.
pub struct FetchedPage {
    pub(crate) job: Job,
    pub(crate) fetched: Box<Fetched>,
    pub(crate) span: Span,
}

/// Reads pages and stores them in this shard's segment.
pub struct PageSink {
    handler: Handler,
    store: ShardStore,
    stored_bytes: u64,
    /// Links that lead where this crawl does not go.
    out_of_scope: u64,
    /// Where a master is told of pages.
    reports: Option<Reports>,
}

impl PageSink {
    pub fn new(handler: Handler, store: ShardStore) -> PageSink {
        PageSink { handler, store, stored_bytes: 0, out_of_scope: 0, reports: None }
    }

    /// A master is told of pages.
    pub(crate) fn with_reports(self, reports: Option<Reports>) -> PageSink {
        PageSink { reports, ..self }
    }
}

impl RecordSink for PageSink {
    type Item = FetchedPage;
    type Reply = FromShard;

    fn store(&mut self, page: FetchedPage, out: &mut ShardOut<FromShard>) -> Stored<FetchedPage> {
        // Before the page is read: reading notes its links as seen.
        match self.store.make_room(page.fetched.bytes.len()) {
            Ok(()) => {}
            Err(AppendError::NoSegment) => return Err(page),
            Err(AppendError::TooLarge) => {
                unreachable!("a segment holds the largest document: checked at start")
            }
        }
        out.stages.mark(Stage::Network);
        let FetchedPage { job, fetched, span } = page;
        let candidate = &job.candidate;
        let mut handled = self.handler.handle(&Page {
            candidate,
            result: fetched.result,
            head: fetched.head.as_ref(),
            head_bytes: fetched.head_bytes(),
            decoded: fetched.flags.contains(Flags::DECODED),
            document: fetched.document(),
        });
        out.stages.mark(Stage::Parse);
        self.out_of_scope += u64::from(handled.out_of_scope);
        let result = result_of(candidate, fetched.result, &handled);
        let new_url = handled.new_url.as_ref().map(|url| url.as_str());
        let mut record = record_of(&fetched, candidate.doc_id, new_url, result, out.log.wall());
        if handled.noindex {
            record.flags |= Flags::NOINDEX.bits();
        }
        let mut redundant = Vec::new();
        if let Some(feed) = &mut handled.feed {
            feed.retry_after_s = retry_after_s(&fetched, out.log.wall());
            if feed.is_redundant {
                redundant.extend_from_slice(fetched.head_bytes());
                redundant.extend_from_slice(REDUNDANT_FEED);
                record.flags |= Flags::REDUNDANT_FEED.bits();
                record.bytes = &redundant;
            }
        }
        let appended = self.store.append(&record).expect("room was made");
        out.stages.mark(Stage::Compress);
        self.stored_bytes += appended.bytes as u64;
        let digest = Some(appended.digest).filter(|&digest| digest != 0);
        out.log.page(candidate, &fetched, result, digest, span);
        if let Some(reports) = &self.reports {
            let canonical = handled.canonical.as_ref().map(CrawlUrl::as_str);
            reports.page(fetched.status(), appended.digest as u64, canonical, candidate.url.as_str());
        }
        let completion = Completion {
            candidate,
            result,
            status: fetched.status(),
            at_s: out.log.unix_s(span.ended),
            digest: appended.digest,
            validators: match candidate.poll.is_some() && fetched.result == ResultCode::NotModified {
                true => {
                    validators_of_poll(candidate, fetched.result, fetched.head.as_ref(), fetched.head_bytes())
                }
                false => {
                    validators_of(fetched.result, fetched.flags, fetched.head.as_ref(), fetched.head_bytes())
                }
            },
            segment: appended.segment,
            trouble: trouble_of(&fetched),
        };
        let (outcome, found) = completion.tell(handled);
        out.answer(outcome, Some(appended.sequence), true, found);
        out.stages.mark(Stage::Record);
        Ok(Some(fetched))
    }

    fn retired(&self) -> u64 {
        self.store.retired()
    }

    fn extend_scope(&mut self, url: &CrawlUrl) {
        self.handler.extend_scope(url);
    }

    fn tidy(&mut self) {
        self.store.tidy();
    }

    fn finish(&mut self) {
        self.store.finish();
    }

    fn publish(&self, counters: &Counters) {
        counters.count(Counter::StoredBytes, self.stored_bytes);
        counters.count_all(Group::Records, &self.store.records());
        counters.count_all(Group::Links, &[0, 0, 0, self.out_of_scope]);
    }
}
