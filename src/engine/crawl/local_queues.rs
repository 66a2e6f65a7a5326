use crate::base::Now;
use crate::engine::crawl::live::ShardRules;
use crate::engine::crawl::messages::{FromShard, ToShard};
use crate::engine::crawl::page_sink::FetchedPage;
use crate::engine::crawl::queues::{Queues, Settled};
use crate::engine::crawl::shard::{Ended, Next, Received, ShardOut, Start, WorkSource};
use crate::engine::runtime::counters::Counters;
use crate::proto::job::TransId;
use crate::spider::{FetchOrder, Fetched};
use crate::url_server::{Acquired, Order, OrderKind, UrlServer};
use std::net::SocketAddr;

/// The work of a crawl's shard: queues here, and the spider beside them.
pub struct LocalQueues(pub(crate) Queues);

impl LocalQueues {
    pub fn url_server(&self) -> &UrlServer {
        &self.0.url_server
    }
}

impl WorkSource for LocalQueues {
    type Message = ToShard;
    type Reply = FromShard;
    type Item = FetchedPage;

    const MESSAGES_PER_TURN: usize = 1_024;
    const ORDERS_PER_TURN: usize = 256;

    fn receive(&mut self, message: ToShard, out: &mut ShardOut<FromShard>, now: Now) -> Received {
        match message {
            ToShard::Work { epoch, .. } | ToShard::RemoteRobots { epoch, .. } if self.0.is_late(epoch) => {}
            ToShard::Work { job, .. } => self.0.url_server.admit(job, now),
            ToShard::RemoteRobots { request, .. } => self.0.admit_remote_robots(request, out, now),
            ToShard::About(word) => self.0.about(word, out, now),
            ToShard::Rest(question) => self.0.say_rest(question, out, now),
            ToShard::Scope(url) => return Received::Scope(url),
            ToShard::Pause(paused) => self.0.pause(paused),
            ToShard::Rules(rules) => return Received::Rules(rules),
            ToShard::Drain => return Received::Drain,
        }
        Received::Taken
    }

    fn poll(&mut self, _: &mut ShardOut<FromShard>, now: Now) -> bool {
        self.0.poll(now);
        false
    }

    fn next(&mut self, start: &mut Start<'_, FromShard>) -> Next<FetchedPage> {
        if !start.spider.has_room(start.actions) {
            return Next::Nothing;
        }
        match self.0.url_server.acquire(start.now) {
            Acquired::Fetch(order) => {
                self.0.counts(order.kind);
                Next::Fetch(fetch_order(order, start.retired))
            }
            Acquired::Refused(job, refusal) => {
                self.0.refuse(&job, refusal, start.out, start.now);
                Next::Handled
            }
            Acquired::Nothing => Next::Nothing,
        }
    }

    fn sent(&mut self, trans: TransId, now: Now) {
        self.0.url_server.sent(trans, now);
    }

    fn working(&mut self, trans: TransId, now: Now) {
        self.0.url_server.working(trans, now);
    }

    fn suspect(&self, trans: TransId) -> u32 {
        self.0.url_server.doc_id(trans).unwrap_or(0)
    }

    fn ended(
        &mut self,
        fetched: Box<Fetched>,
        out: &mut ShardOut<FromShard>,
        now: Now,
    ) -> Ended<FetchedPage> {
        let Settled::Page(report) = self.0.settle(&fetched, out, now) else {
            return Ended::Over(fetched);
        };
        let span = self.0.span(&fetched, now);
        match self.0.url_server.release(fetched.trans, &report, now) {
            Some(job) => Ended::Store(FetchedPage { job, fetched, span }),
            None => Ended::Over(fetched),
        }
    }

    fn set_rules(&mut self, rules: &ShardRules, now: Now) {
        self.0.url_server.set_rules(rules.niceness, now);
    }

    fn flush(&mut self, out: &mut ShardOut<FromShard>, now: Now) {
        self.0.flush(out, now);
    }

    fn close(&mut self, out: &mut ShardOut<FromShard>, now: Now) {
        self.0.close(out, now);
    }

    fn has_messages(&self) -> bool {
        self.0.has_messages()
    }

    fn may_start(&self) -> bool {
        !self.0.is_paused()
    }

    fn is_empty(&self) -> bool {
        self.0.url_server.is_empty()
    }

    fn next_due(&self) -> Option<Now> {
        self.0.url_server.next_due()
    }

    fn publish(&mut self, counters: &Counters, now: Now) -> bool {
        self.0.publish(counters, now)
    }

    fn drained_reply() -> FromShard {
        FromShard::Drained
    }
}

fn fetch_order(order: Order, retired: u64) -> FetchOrder {
    let addr = SocketAddr::new(order.ip, order.url.port());
    let head_only = order.head_only;
    // A document in a segment that may go away is no answer to "not modified".
    let held = order.held.filter(|held| head_only || held.segment > retired);
    let validators = held.map(|held| Box::new(held.validators));
    let (more, send_by, robots) = (order.more, order.send_by, order.kind != OrderKind::Page);
    FetchOrder {
        head_only,
        robots,
        validators,
        more,
        send_by,
        ..FetchOrder::new(order.trans, order.url, addr)
    }
}
