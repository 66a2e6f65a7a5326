use crate::base::{Key, Now};
use crate::engine::crawl::shard::{Ended, Next, Received, ShardOut, Start, WorkSource};
use crate::engine::crawl::shard_log::Span;
use crate::engine::crawl::stored::Stored;
use crate::engine::runtime::counters::Counters;
use crate::engine::split::messages::{FromSpider, SpiderOrder, SpiderTask, ToSpider};
use crate::engine::split::order_sink::EndedOrder;
use crate::proto::job::TransId;
use crate::spider::{FetchOrder, Fetched, Retry};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// The work of a spider's shard: orders of URL servers in other processes. Which host may be asked when is decided there;
/// here every order is started as soon as there is room, and leaves a record.
pub(crate) struct OrderQueue {
    epoch: u32,
    /// Orders without room. The dispatcher takes no more than it has a bound for.
    waiting: VecDeque<SpiderOrder>,
    /// Orders that are asked for again, on a new connection or because the server wants to be asked differently, and when it may be: the URL server paces orders, not this.
    later: VecDeque<(Now, SpiderOrder)>,
    /// Between two requests of one order.
    again_gap_us: u64,
    /// What the store holds from before.
    stored: Arc<Stored>,
    open: RapidHashMap<TransId, OpenFetch>,
    is_draining: bool,
}

/// A fetch that has not ended.
struct OpenFetch {
    doc_id: u32,
    /// When its request was on the wire.
    sent: Option<Now>,
}

impl OrderQueue {
    pub fn new(epoch: u32, again_gap_us: u64, stored: Arc<Stored>) -> OrderQueue {
        OrderQueue {
            epoch,
            waiting: VecDeque::new(),
            later: VecDeque::new(),
            again_gap_us,
            stored,
            open: RapidHashMap::default(),
            is_draining: false,
        }
    }

    fn has_room_for(order: &SpiderOrder, start: &mut Start<'_, FromSpider>) -> bool {
        match &order.task {
            SpiderTask::Fetch { url, ip } => {
                start.spider.has_room_for(url, SocketAddr::new(*ip, url.port()), start.actions)
            }
            SpiderTask::Refuse { .. } => true,
        }
    }
}

impl WorkSource for OrderQueue {
    type Message = ToSpider;
    type Reply = FromSpider;
    type Item = EndedOrder;

    const MESSAGES_PER_TURN: usize = 1_024;
    const ORDERS_PER_TURN: usize = 256;

    fn receive(&mut self, message: ToSpider, _: &mut ShardOut<FromSpider>, _: Now) -> Received {
        match message {
            ToSpider::Drain => return Received::Drain,
            // One that was dealt to the shard that stood here before is dealt again.
            ToSpider::Work { epoch, order } if epoch == self.epoch && !self.is_draining => {
                self.waiting.push_back(order);
            }
            ToSpider::Work { .. } => {}
        }
        Received::Taken
    }

    fn poll(&mut self, _: &mut ShardOut<FromSpider>, now: Now) -> bool {
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            self.waiting.extend(self.later.pop_front().map(|(_, order)| order));
        }
        false
    }

    fn next(&mut self, start: &mut Start<'_, FromSpider>) -> Next<EndedOrder> {
        let Some(order) = self.waiting.pop_front() else { return Next::Nothing };
        if !OrderQueue::has_room_for(&order, start) {
            self.waiting.push_front(order);
            return Next::Nothing;
        }
        let SpiderTask::Fetch { url, ip } = order.task else {
            return Next::Store(EndedOrder::Refused { order, at: start.now });
        };
        let addr = SocketAddr::new(ip, url.port());
        self.open.insert(order.trans, OpenFetch { doc_id: order.doc_id, sent: None });
        let validators = self.stored.of(&url, false, start.retired).map(Box::new);
        Next::Fetch(FetchOrder { validators, ..FetchOrder::new(order.trans, url, addr) })
    }

    fn sent(&mut self, trans: TransId, now: Now) {
        if let Some(open) = self.open.get_mut(&trans) {
            open.sent = Some(now);
        }
    }

    /// The dispatcher says WORKING for every order it has not answered, also for those that wait for room.
    fn working(&mut self, _: TransId, _: Now) {}

    fn suspect(&self, trans: TransId) -> u32 {
        suspect(trans)
    }

    fn ended(
        &mut self,
        fetched: Box<Fetched>,
        out: &mut ShardOut<FromSpider>,
        now: Now,
    ) -> Ended<EndedOrder> {
        let OpenFetch { doc_id, sent } =
            self.open.remove(&fetched.trans).expect("an open fetch has its document");
        // An answer may overtake the news that its request is out: then it was out no later than now, and a pause that
        // the URL server counts from there is not too short.
        let is_out = !fetched.result.is_unconnected();
        let unknown = if is_out { now } else { fetched.started };
        let span = Span { sent: sent.unwrap_or(unknown), ended: now };
        match fetched.retry {
            // What stood still is its URL server's to judge, which knows the host's pauses.
            None | Some(Retry::Stalled) => {
                return Ended::Store(EndedOrder::Fetched { doc_id, fetched, span });
            }
            Some(Retry::StaleConnection | Retry::NoSocket | Retry::NoWay | Retry::TooLate) => {}
            Some(Retry::NewRequest) => out.log.order(doc_id, &fetched, span),
            // Nobody is told: its URL server sends it elsewhere, as it does what waits here.
            Some(Retry::Stopped) => return Ended::Over(fetched),
        }
        let task = SpiderTask::Fetch { url: fetched.url.clone(), ip: fetched.addr.ip() };
        let order = SpiderOrder { trans: fetched.trans, doc_id, task };
        // Also after a connection that was dead: its server may have read the request before it closed.
        self.later.push_back((now.plus_us(self.again_gap_us), order));
        Ended::Over(fetched)
    }

    fn flush(&mut self, _: &mut ShardOut<FromSpider>, _: Now) {}

    /// The URL servers of what waits send it elsewhere.
    fn drain(&mut self) {
        self.is_draining = true;
        self.waiting.clear();
        self.later.clear();
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn next_due(&self) -> Option<Now> {
        self.later.front().map(|(at, _)| *at)
    }

    fn publish(&mut self, _: &Counters, _: Now) -> bool {
        true
    }

    fn drained_reply() -> FromSpider {
        FromSpider::Drained
    }
}

/// What the dispatcher calls an order, should the shard die of it: its slot, counted from one.
pub(crate) fn suspect(trans: TransId) -> u32 {
    Key::unpack(trans.as_u64()).0.index() as u32 + 1
}
