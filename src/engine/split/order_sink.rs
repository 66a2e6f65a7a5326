use crate::base::Now;
use crate::engine::crawl::completion::{record_of, reported_ms, retry_after_s};
use crate::engine::crawl::shard::{RecordSink, ShardOut, Stored};
use crate::engine::crawl::shard_log::Span;
use crate::engine::crawl::stages::Stage;
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::groups::Group;
use crate::engine::split::messages::{FromSpider, SpiderDone, SpiderOrder, SpiderTask};
use crate::engine::split::record_sender::RecordSink as Records;
use crate::handler::redirect_target;
use crate::proto::lines::Reported;
use crate::proto::record::{HttpCode, ResultCode};
use crate::spider::Fetched;
use crate::store_server::{AppendError, NewRecord};

/// An order that has ended, and whose record is not written yet.
pub(crate) enum EndedOrder {
    Fetched {
        doc_id: u32,
        fetched: Box<Fetched>,
        span: Span,
    },
    /// It was not fetched, and leaves a record that says so.
    Refused {
        order: SpiderOrder,
        at: Now,
    },
}

/// Stores what was ordered, in segments of this process or with a store server.
pub(crate) struct OrderSink {
    records: Records,
    stored_bytes: u64,
}

impl OrderSink {
    pub fn new(records: Records) -> OrderSink {
        OrderSink { records, stored_bytes: 0 }
    }

    fn append(&mut self, record: &NewRecord<'_>) -> u64 {
        let appended = self.records.append(record).expect("room was made");
        self.stored_bytes += appended.bytes as u64;
        appended.sequence
    }
}

impl RecordSink for OrderSink {
    type Item = EndedOrder;
    type Reply = FromSpider;

    fn store(&mut self, ended: EndedOrder, out: &mut ShardOut<FromSpider>) -> Stored<EndedOrder> {
        let bytes = match &ended {
            EndedOrder::Fetched { fetched, .. } => fetched.bytes.len(),
            EndedOrder::Refused { .. } => 0,
        };
        match self.records.make_room(bytes) {
            Ok(()) => {}
            Err(AppendError::NoSegment) => return Err(ended),
            Err(AppendError::TooLarge) => {
                unreachable!("a segment holds the largest document: checked at start")
            }
        }
        out.stages.mark(Stage::Network);
        let wall = out.log.wall();
        let (done, fetched) = match ended {
            EndedOrder::Fetched { doc_id, fetched, span } => {
                out.log.order(doc_id, &fetched, span);
                let head = fetched.head.filter(|_| fetched.result == ResultCode::Redirect);
                let target = head.and_then(|head| redirect_target(&fetched.url, &head, &fetched.bytes));
                let new_url = target.as_ref().map(|url| url.as_str());
                let sequence = self.append(&record_of(&fetched, doc_id, new_url, fetched.result, wall));
                let reported = Reported {
                    status: fetched.status(),
                    took_ms: reported_ms(span),
                    retry_after_s: retry_after_s(&fetched, wall).unwrap_or(0),
                };
                let done = SpiderDone { trans: fetched.trans, result: fetched.result, sequence, reported };
                (done, Some(fetched))
            }
            EndedOrder::Refused { order, at } => {
                let SpiderTask::Refuse { url_text, ip, result } = &order.task else {
                    unreachable!("what can be fetched is fetched")
                };
                let sequence = self.append(&NewRecord {
                    doc_id: order.doc_id,
                    url: url_text,
                    new_url: None,
                    success: false,
                    result: *result,
                    http_code: HttpCode::NONE,
                    status: 0,
                    flags: 0,
                    took_ms: 0,
                    fetched_unix_ms: wall.unix_ms(at),
                    ip: *ip,
                    port: 0,
                    bytes: &[],
                    head_len: 0,
                });
                let reported = Reported::default();
                (SpiderDone { trans: order.trans, result: *result, sequence, reported }, None)
            }
        };
        out.replies.send(FromSpider::Done(done));
        out.stages.mark(Stage::Compress);
        Ok(fetched)
    }

    fn retired(&self) -> u64 {
        self.records.retired()
    }

    fn tidy(&mut self) {
        self.records.tidy();
    }

    fn finish(&mut self) {
        self.records.finish();
    }

    fn publish(&self, counters: &Counters) {
        counters.count(Counter::StoredBytes, self.stored_bytes);
        counters.count_all(Group::Records, &self.records.records());
    }
}
