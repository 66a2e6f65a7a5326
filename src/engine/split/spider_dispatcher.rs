use crate::base::{Key, Now, Slots, SortedMap, TimerWheel};
use crate::engine::crawl::address_owners::shard_of;
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::engine::runtime::shard_lane::ShardLane;
use crate::engine::split::messages::{FromSpider, SpiderDone, SpiderOrder, SpiderTask, ToSpider};
use crate::engine::split::order_queue::suspect;
use crate::limits::{SPIDER_BACKLOG_ORDERS, STRIKES_MAX};
use crate::proto::job::TransId;
use crate::proto::lines::{Dialect, LineBuffer, LineError, SpiderWord, WorkLine};
use crate::proto::record::ResultCode;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Between the URL servers and the shards of a spider: reads lines of work, deals each to the shard that owns its
/// address, says WORKING while it is open and DONE when its record is durable, and asks for more by free slots.
pub(crate) struct SpiderDispatcher {
    config: DispatcherConfig,
    port: LinkPort,
    links: RapidHashMap<Key, UrlServerLink>,
    /// Links with lines that were not read for want of room.
    unread: VecDeque<Key>,
    /// Links with words to be sent this turn.
    to_send: Vec<Key>,
    lanes: Vec<DispatcherLane>,
    /// Every order that was taken and is not answered. Its slot is our own transaction.
    orders: Slots<Order>,
    /// Orders of links that are gone: they take slots, and nobody waits for them.
    orphans: usize,
    /// One timer per slot, not per order: all of them run for the same time, so an older one fires early enough.
    wheel: TimerWheel<u32>,
    armed: Vec<bool>,
    due: Vec<u32>,
    counts: Counts,
    stop: Arc<AtomicBool>,
    is_draining: bool,
    counters: Arc<Counters>,
    health: Arc<Health>,
}

/// The settings that the dispatcher needs, as built.
pub(crate) struct DispatcherConfig {
    /// Fetches that all shards can have open.
    pub slots: usize,
    /// Ask for work as soon as a link stands.
    pub pull: bool,
    /// DONE tells status, milliseconds and Retry-After.
    pub report: bool,
    /// WORKING is said this often.
    pub working_us: u64,
}

pub(crate) type DispatcherLane = ShardLane<ToSpider, FromSpider, SpiderDone>;

struct UrlServerLink {
    peer: SocketAddr,
    lines: LineBuffer,
    /// It gets GETs: until it sends work that was not asked for in that way.
    pull: bool,
    /// URLs asked for that have not come.
    credits: usize,
    /// Orders of this link that are not answered.
    open: usize,
    /// Words of this turn.
    out: Vec<u8>,
    on_unread: bool,
}

struct Order {
    /// Where it came from; it may be gone.
    link: Key,
    /// The URL server's own id.
    trans: TransId,
    dialect: Dialect,
    shard: usize,
    /// To be dealt again should the shard die.
    order: SpiderOrder,
    strikes: u8,
    /// It is stored, and waits to be durable.
    held: bool,
    working_at: Now,
}

#[derive(Default)]
struct Counts {
    pages: u64,
    /// Of those, what the last idle turn knew.
    pages_before: u64,
    success: u64,
    untold: u64,
    bad_lines: u64,
    restarts: u64,
}

impl SpiderDispatcher {
    pub fn new(
        config: DispatcherConfig,
        port: LinkPort,
        lanes: Vec<DispatcherLane>,
        stop: Arc<AtomicBool>,
        counters: Arc<Counters>,
        health: Arc<Health>,
    ) -> SpiderDispatcher {
        SpiderDispatcher {
            port,
            links: RapidHashMap::default(),
            unread: VecDeque::new(),
            to_send: Vec::new(),
            lanes,
            orders: Slots::new(config.slots + SPIDER_BACKLOG_ORDERS),
            orphans: 0,
            wheel: TimerWheel::new(Now::ZERO),
            armed: Vec::new(),
            due: Vec::new(),
            counts: Counts::default(),
            stop,
            is_draining: false,
            counters,
            health,
            config,
        }
    }

    /// Every order that is not answered, by its slot here: its URL, and its name at the URL server, if that is still
    /// linked. For the simulation, which holds answers against the store.
    pub fn open_orders(&self) -> impl Iterator<Item = (Key, &str, Option<TransId>)> {
        self.orders.iter().map(|(key, order)| {
            let url = match &order.order.task {
                SpiderTask::Fetch { url, .. } => url.as_str(),
                SpiderTask::Refuse { url_text, .. } => url_text,
            };
            (key, url, self.links.contains_key(&order.link).then_some(order.trans))
        })
    }

    pub fn results(&self) -> SortedMap<&'static str, u64> {
        self.counters.results()
    }

    // From the URL servers --------------------------------------------------------------------------------

    /// Takes what happens on the links. Without room for orders nothing is taken, which in the end stops the
    /// reading of sockets.
    fn take_events(&mut self, now: Now) -> bool {
        let mut busy = false;
        while !self.orders.is_full() && self.unread.is_empty() {
            let Some(event) = self.port.next() else {
                break;
            };
            busy = true;
            match event {
                LinkEvent::Up { link, peer, .. } => {
                    let side = UrlServerLink {
                        peer,
                        lines: LineBuffer::default(),
                        pull: self.config.pull,
                        credits: 0,
                        open: 0,
                        out: Vec::new(),
                        on_unread: false,
                    };
                    self.links.insert(link, side);
                    // At once, whatever else there is to do.
                    self.ask(false);
                }
                LinkEvent::Bytes { link, bytes } => {
                    if let Some(side) = self.links.get_mut(&link)
                        && !self.is_draining
                    {
                        side.lines.push(&bytes);
                        self.read_lines(link, now);
                    }
                }
                LinkEvent::Down { link, .. } => self.forget(link),
                LinkEvent::Sent { .. } | LinkEvent::Ended { .. } => {}
            }
        }
        busy
    }

    /// Goes on with lines that had to wait for room.
    fn take_lines(&mut self, now: Now) -> bool {
        let mut busy = false;
        while !self.orders.is_full()
            && let Some(link) = self.unread.pop_front()
        {
            busy = true;
            if let Some(side) = self.links.get_mut(&link) {
                side.on_unread = false;
                self.read_lines(link, now);
            }
        }
        busy
    }

    fn read_lines(&mut self, link: Key, now: Now) {
        loop {
            let Some(side) = self.links.get_mut(&link) else {
                return;
            };
            if self.orders.is_full() {
                if !std::mem::replace(&mut side.on_unread, true) {
                    self.unread.push_back(link);
                }
                return;
            }
            let read = match side.lines.next_line() {
                Ok(Some(line)) => read_work(line),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            match read {
                Ok(work) => self.take_order(link, work, now),
                Err(error) => return self.hang_up(link, &error),
            }
        }
    }

    fn take_order(&mut self, link: Key, work: Work, now: Now) {
        let Some(side) = self.links.get_mut(&link) else {
            return;
        };
        match work.dialect {
            Dialect::Pull => side.credits = side.credits.saturating_sub(1),
            Dialect::Push => {
                side.pull = false;
                side.credits = 0;
            }
        }
        side.open += 1;
        let shard = shard_of(work.task.ip(), self.lanes.len());
        let order = Order {
            link,
            trans: work.trans,
            dialect: work.dialect,
            shard,
            order: SpiderOrder { trans: TransId::from(0), doc_id: work.doc_id, task: work.task },
            strikes: 0,
            held: false,
            working_at: now.plus_us(self.config.working_us),
        };
        let working_at = order.working_at;
        let key = self.orders.insert(order).expect("the caller looked for room");
        if self.armed.len() <= key.index() {
            self.armed.resize(key.index() + 1, false);
        }
        if !std::mem::replace(&mut self.armed[key.index()], true) {
            self.wheel.insert(working_at, key.index() as u32);
        }
        self.deal(key);
    }

    fn deal(&mut self, key: Key) {
        let order = self.orders.get_mut(key).expect("the caller's order is open");
        order.order.trans = TransId::from(key.pack(0));
        let lane = &mut self.lanes[order.shard];
        lane.deal(ToSpider::Work { epoch: lane.epoch(), order: order.order.clone() });
    }

    /// A peer that cannot be understood is let go; nothing else is disturbed.
    fn hang_up(&mut self, link: Key, error: &LineError) {
        if let Some(side) = self.links.get(&link) {
            let text = format!("spider: closing the link to {}: {error}", side.peer);
            let fields = vec![("peer", side.peer.into()), ("cause", error.to_string().into())];
            self.health.tell(Event::BadLine, fields, text);
            self.counts.bad_lines += 1;
        }
        self.send_words();
        self.port.close(link);
        self.forget(link);
    }

    /// The link is gone. Its fetches end and are stored, and nobody is told: a URL server that comes back sends
    /// them again.
    fn forget(&mut self, link: Key) {
        let Some(side) = self.links.remove(&link) else {
            return;
        };
        self.orphans += side.open;
    }

    // From the shards -------------------------------------------------------------------------------------

    fn receive(&mut self, shard: usize) -> bool {
        let mut busy = false;
        while let Some(reply) = self.lanes[shard].receive() {
            busy = true;
            match reply {
                FromSpider::Done(done) => {
                    if let Some(order) = self.orders.get_mut(Key::unpack(done.trans.as_u64()).0) {
                        order.held = true;
                        self.lanes[shard].hold(done.sequence, done);
                    }
                }
                FromSpider::Restarted { epoch, suspect } => self.deal_again(shard, epoch, suspect),
                FromSpider::Drained => self.lanes[shard].drained(),
            }
        }
        while let Some(done) = self.lanes[shard].next_durable() {
            self.answer(&done);
            busy = true;
        }
        busy
    }

    /// The record is durable: the order's slot is free, and its URL server is told.
    fn answer(&mut self, done: &SpiderDone) {
        let Some(order) = self.orders.remove(Key::unpack(done.trans.as_u64()).0) else {
            return;
        };
        self.counts.pages += 1;
        self.counts.success += u64::from(done.result.is_success());
        self.counters.concluded(done.result);
        let Some(side) = self.links.get_mut(&order.link) else {
            self.counts.untold += 1;
            self.orphans -= 1;
            return;
        };
        side.open -= 1;
        let reported = self.config.report.then_some(done.reported);
        side.say(order.link, SpiderWord::Done(order.trans, reported), order.dialect, &mut self.to_send);
    }

    /// A shard died: what it had is dealt again, to the one in its place. What it was busy with twice is given up.
    fn deal_again(&mut self, shard: usize, epoch: u32, blamed: Option<u32>) {
        self.counts.restarts += 1;
        self.lanes[shard].restarted(epoch);
        if self.is_draining {
            // What it had open is lost, and will be sent again by its URL server.
            self.lanes[shard].deal(ToSpider::Drain);
            return;
        }
        let lost = self.orders.iter().filter(|(_, order)| order.shard == shard && !order.held);
        let lost: Vec<Key> = lost.map(|(key, _)| key).collect();
        for key in lost {
            let order = self.orders.get_mut(key).expect("just found");
            order.strikes += u8::from(blamed == Some(suspect(order.order.trans)));
            if order.strikes >= STRIKES_MAX
                && let SpiderTask::Fetch { url, ip } = &order.order.task
            {
                let (url_text, ip) = (url.as_str().into(), *ip);
                order.order.task = SpiderTask::Refuse { url_text, ip, result: ResultCode::ShardDied };
            }
            self.deal(key);
        }
    }

    fn drain(&mut self) {
        if std::mem::replace(&mut self.is_draining, true) {
            return;
        }
        for lane in &mut self.lanes {
            lane.retain(|_| false);
            lane.deal(ToSpider::Drain);
        }
    }

    // To the URL servers ----------------------------------------------------------------------------------

    /// WORKING for every order that is not answered, whatever it waits for.
    fn say_working(&mut self, now: Now) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now, |slot| due.push(slot));
        for slot in due.drain(..) {
            self.armed[slot as usize] = false;
            let Some(key) = self.orders.key_at(slot as usize) else {
                continue;
            };
            let order = self.orders.get_mut(key).expect("just found");
            if order.working_at <= now {
                order.working_at = now.plus_us(self.config.working_us);
                if let Some(side) = self.links.get_mut(&order.link) {
                    side.say(order.link, SpiderWord::Working(order.trans), order.dialect, &mut self.to_send);
                }
            }
            self.armed[slot as usize] = true;
            self.wheel.insert(order.working_at, slot);
        }
        self.due = due;
    }

    /// Asks every URL server for as much as its share of the slots has room for: by the quarter, so that a GET is
    /// worth its line, or for whatever there is when nothing else goes on and it has nothing to send us.
    fn ask(&mut self, idle: bool) {
        if self.is_draining {
            return;
        }
        let asked = self.links.values().filter(|side| side.pull).count();
        let pushed: usize = self.links.values().filter(|side| !side.pull).map(|side| side.open).sum();
        if asked == 0 {
            return;
        }
        // In one order each time, so that a simulation replays.
        let mut keys: Vec<Key> = self.links.keys().copied().collect();
        keys.sort_unstable_by_key(|key| key.pack(0));
        let share = self.config.slots.saturating_sub(self.orphans + pushed) / asked;
        for key in keys {
            let Some(side) = self.links.get_mut(&key).filter(|side| side.pull) else { continue };
            let want = share.saturating_sub(side.open + side.credits);
            if want > 0 && (want >= share.div_ceil(4) || (idle && side.credits == 0)) {
                side.credits += want;
                let urls = want.try_into().unwrap_or(u32::MAX);
                side.say(key, SpiderWord::Get(urls), Dialect::Pull, &mut self.to_send);
            }
        }
    }

    fn send_words(&mut self) {
        for key in self.to_send.drain(..) {
            if let Some(side) = self.links.get_mut(&key) {
                self.port.send(key, std::mem::take(&mut side.out));
            }
        }
    }

    fn publish(&self) {
        self.counters.set(Counter::Pages, self.counts.pages);
        self.counters.set(Counter::Success, self.counts.success);
        self.counters.set(Counter::Untold, self.counts.untold);
        self.counters.set(Counter::BadLines, self.counts.bad_lines);
        self.counters.set(Counter::Started, 1);
    }
}

impl Actor for SpiderDispatcher {
    fn turn(&mut self, now: Now) -> Turned {
        if self.stop.load(Ordering::Relaxed) {
            self.drain();
        }
        let mut busy = false;
        for shard in 0..self.lanes.len() {
            busy |= self.receive(shard);
        }
        busy |= self.take_lines(now);
        busy |= self.take_events(now);
        self.lanes.iter_mut().for_each(|lane| busy |= lane.flush());
        self.say_working(now);
        self.ask(!busy);
        self.send_words();
        self.publish();
        if self.is_draining && self.lanes.iter().all(DispatcherLane::is_over) {
            return Turned::Finished;
        }
        match busy {
            true => Turned::Busy,
            false if self.health.is_fatal() => {
                self.lanes.iter().for_each(DispatcherLane::wake);
                Turned::Finished
            }
            false => {
                let messages = self.counts.pages - self.counts.pages_before;
                self.counts.pages_before = self.counts.pages;
                Turned::Idle { messages }
            }
        }
    }

    fn next_due(&self) -> Option<Now> {
        self.wheel.next_due()
    }

    fn has_messages(&self) -> bool {
        let takes = !self.orders.is_full();
        (takes && (!self.port.is_empty() || !self.unread.is_empty()))
            || self.lanes.iter().any(DispatcherLane::has_messages)
            || (self.stop.load(Ordering::Relaxed) && !self.is_draining)
    }
}

impl UrlServerLink {
    fn say(&mut self, key: Key, word: SpiderWord, dialect: Dialect, to_send: &mut Vec<Key>) {
        if self.out.is_empty() {
            to_send.push(key);
        }
        word.write(dialect, &mut self.out);
    }
}

/// A line of work that can be answered for.
struct Work {
    trans: TransId,
    doc_id: u32,
    dialect: Dialect,
    task: SpiderTask,
}

fn read_work(line: &[u8]) -> Result<Work, LineError> {
    Ok(match WorkLine::parse(line)? {
        WorkLine::Work { trans, doc_id, ip, url, dialect, .. } => {
            Work { trans, doc_id, dialect, task: SpiderTask::Fetch { url, ip } }
        }
        WorkLine::Bad { trans, doc_id, dialect, url_text, .. } => {
            let ip = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            let task = SpiderTask::Refuse { url_text: url_text.into(), ip, result: ResultCode::BadUrl };
            Work { trans, doc_id, dialect, task }
        }
    })
}

impl SpiderTask {
    fn ip(&self) -> IpAddr {
        match self {
            SpiderTask::Fetch { ip, .. } | SpiderTask::Refuse { ip, .. } => *ip,
        }
    }
}
