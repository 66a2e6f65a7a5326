//! The URL server against a simple model of what it promises, under random events in virtual time.
//!
//! The model keeps plain lists and judges from the outside: every URL is answered once, no host or address is asked
//! too soon or too often at once, nothing passes the robots gate, credits hold, and no host starves. It is no copy of
//! the server: it says when something must not happen yet, and when it must have happened.
//!
//! `NEPHILA_MODEL_SEEDS=20000` runs longer; `NEPHILA_MODEL_SEED=n` runs one. A failure prints its seed.

use super::addresses::{address, some_of};
use super::judge::TICKS;
use super::lender::Lender;
use super::web::{Gate, Manners, RobotsAnswer, SECOND, Temper, report};
use crate::base::{Now, Rng, Wall};
use crate::proto::job::{Candidate, Job, TransId};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::*;
use std::collections::{BTreeMap, HashSet, VecDeque};

const STEPS: usize = 1_500;
const DOCS_MAX: usize = 80;

pub(super) struct Host {
    pub url: CrawlUrl,
    /// Its addresses, one or more.
    pub ips: Vec<usize>,
    /// Addresses that no connection could be made to since the last that was made, or since all had failed.
    pub tried: HashSet<usize>,
    /// How often in a row it was sent on to another address.
    pub moves: usize,
    pub temper: Temper,
    pub manners: Manners,
    pub gate: Gate,
    /// The latest that was learnt for good, which is what another process knows.
    pub learnt: Gate,
    pub hop: Option<(CrawlUrl, u8)>,
    pub taker: Option<u16>,
    /// Failures in a row, as one counts who forgets nothing.
    pub streak: u8,
    pub set_asides: u32,
    pub was_unreachable: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    Page(u32),
    Robots { hops: u8 },
    RemoteRobots(u64),
}

pub(super) struct Open {
    pub trans: TransId,
    pub kind: Kind,
    pub host: usize,
    pub ip: usize,
    /// The connection will fail.
    pub dead: bool,
    /// There was said to be another address.
    pub more: bool,
    /// The latest request to the host before this one, and when this one was handed out.
    pub before: Option<u64>,
    pub at: u64,
    pub taker: u16,
    pub sent: bool,
    /// Its spider will never report on it.
    pub mute: bool,
    pub last_word: u64,
    /// It may not be sent from then on.
    pub send_by: u64,
}

#[derive(Debug)]
pub(super) struct Ask {
    pub url: CrawlUrl,
    pub host: usize,
    pub asker: Option<usize>,
    pub since: u64,
    pub placed: bool,
    pub open: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Spider {
    pub id: u16,
    pub credits: Option<u64>,
    pub held: bool,
}

pub(super) struct Model {
    pub step: usize,
    pub rng: Rng,
    pub server: UrlServer,
    pub config: UrlServerConfig,
    /// Virtual time, and where the present process began.
    pub now: u64,
    pub base: u64,
    pub hosts: Vec<Host>,
    pub ips: Vec<Manners>,
    /// Addresses that cannot be connected to.
    pub dead: Vec<bool>,
    pub moved_on: u64,
    /// Every host has a slot of its own, so nothing of it is ever forgotten.
    pub roomy: bool,
    pub links: bool,
    /// Who lends addresses, in a cluster.
    pub lender: Option<Lender>,
    pub restarted: bool,
    pub calm: bool,
    pub docs: BTreeMap<u32, (Job, bool)>,
    pub next_doc: u32,
    pub open: Vec<Open>,
    pub used: HashSet<TransId>,
    pub gone: Vec<TransId>,
    pub late: u64,
    pub slots: BTreeMap<u32, usize>,
    pub errands: BTreeMap<u64, Ask>,
    pub next_errand: u64,
    pub spiders: Vec<Spider>,
    pub asks: VecDeque<SpillAsk>,
    pub disk: BTreeMap<u32, Vec<u8>>,
    pub journal: String,
}

/// Prints the seed if the test panics while this value lives.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with NEPHILA_MODEL_SEED={}", self.0);
        }
    }
}

#[test]
fn the_server_keeps_its_promises_whatever_happens() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("NEPHILA_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NEPHILA_MODEL_SEEDS").unwrap_or(5_000),
    };
    for seed in seeds {
        let _named = Named(seed);
        let mut model = Model::new(seed);
        for step in 0..STEPS {
            model.step = step;
            model.random_step();
            model.check();
        }
        model.drain();
    }
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut rng = Rng::new(seed);
        let roomy = rng.chance(500);
        let host_count = 2 + rng.below(8) as usize;
        let ip_count = 1 + rng.below(host_count as u64) as usize;
        let rate = |rng: &mut Rng| [0.0, 0.2, 1.0, 4.0, 100.0][rng.below(5) as usize];
        let factor = |rng: &mut Rng| [0.0, 1.0, 3.0][rng.below(3) as usize];
        let niceness = |rng: &mut Rng| Niceness::from_rate(rate(rng), 1 + rng.below(3) as u8, factor(rng));
        let config = UrlServerConfig {
            queue_count: if roomy { host_count } else { 1 + rng.below(4) as usize },
            queue_len: 1 + rng.below(4) as usize,
            host: niceness(&mut rng),
            ip: niceness(&mut rng),
            spider_silence_us: 60 * SECOND,
            product_token: "nephila".to_string(),
            leftover_urls: if rng.chance(800) { 1 + rng.below(8) as usize } else { usize::MAX },
            host_failures_max: 3 + rng.below(4) as u8,
            wall: Wall { unix_ms_at_zero: 1_763_182_800_123 },
            seed: rng.next_u64() as u32,
        };
        let dead = (0..ip_count).map(|_| rng.chance(250)).collect();
        let hosts = (0..host_count).map(|n| Host {
            url: CrawlUrl::parse(&format!("http://h{n}/")).unwrap(),
            ips: some_of(&mut rng, ip_count),
            tried: HashSet::new(),
            moves: 0,
            temper: Temper::any(&mut rng),
            manners: Manners::default(),
            gate: Gate::Unknown,
            learnt: Gate::Unknown,
            hop: None,
            taker: None,
            streak: 0,
            set_asides: 0,
            was_unreachable: false,
        });
        let hosts = hosts.collect();
        let links = rng.chance(400);
        let lender = rng.chance(500).then(|| Lender::new(ip_count));
        let server = UrlServer::new(config.clone(), Now::ZERO);
        let server = if lender.is_some() { server.with_loans() } else { server };
        Model {
            step: 0,
            server: if links { server.with_spiders_behind_links(Now::ZERO) } else { server },
            rng,
            config,
            now: 0,
            base: 0,
            hosts,
            ips: vec![Manners::default(); ip_count],
            dead,
            moved_on: 0,
            roomy,
            links,
            lender,
            restarted: false,
            calm: false,
            docs: BTreeMap::new(),
            next_doc: 1,
            open: Vec::new(),
            used: HashSet::new(),
            gone: Vec::new(),
            late: 0,
            slots: BTreeMap::new(),
            errands: BTreeMap::new(),
            next_errand: 1,
            spiders: Vec::new(),
            asks: VecDeque::new(),
            disk: BTreeMap::new(),
            journal: String::new(),
        }
    }

    pub(super) fn at(&self) -> Now {
        Now::from_us(self.now - self.base)
    }

    fn random_step(&mut self) {
        match self.rng.below(1_000) {
            0..150 => self.admit(),
            150..300 => self.advance(),
            300..500 => self.serve(),
            500..530 => _ = self.acquire(),
            530..560 => self.tick(),
            560..680 => self.speak(),
            680..900 => self.answer_any(),
            900..920 => self.put_back(),
            920..940 => self.speak_late(),
            940..965 => self.errand(),
            965..970 => self.now += self.rng.below(30 * 3_600 * SECOND),
            970..972 if self.step > 200 => self.restart(),
            _ => self.spider(),
        }
        self.disk_turn();
        self.place_errands();
        if self.rng.chance(250) {
            self.lender_step();
        }
    }

    fn admit(&mut self) {
        if self.docs.len() >= DOCS_MAX {
            return;
        }
        for _ in 0..=self.rng.below(4) {
            // Some hosts are asked for more than others.
            let n = self.rng.below(self.hosts.len() as u64);
            let n = self.rng.below(n + 1) as usize;
            let (ip, others) = self.addresses(n);
            let host = &self.hosts[n];
            let doc_id = self.next_doc;
            self.next_doc += 1;
            let path = format!("/{}{doc_id}", if self.rng.chance(200) { "no/" } else { "" });
            let candidate = Candidate::seed(doc_id, host.url.with_path(&path));
            let job = Job { candidate, ip, others };
            self.docs.insert(doc_id, (job.clone(), false));
            self.server.admit(job, self.at());
        }
    }

    fn advance(&mut self) {
        self.now += match self.rng.below(20) {
            0..10 => self.rng.below(5_000),
            10..15 => self.rng.below(2 * SECOND),
            15 => self.rng.below(60 * SECOND),
            _ => {
                let due = self.server.next_due().unwrap_or(Now::ZERO);
                due.since_us(self.at()).min(3_600 * SECOND)
            }
        };
    }

    /// One round of the loop that runs the server: nothing that can happen is left undone.
    pub(super) fn serve(&mut self) {
        for _ in 0..DOCS_MAX {
            self.tick();
            while self.acquire() {}
            let due = self.server.next_due();
            if due.is_none_or(|due| due > self.at()) {
                self.hear_loans();
                return self.nobody_starves(due);
            }
        }
        panic!("the loop spins: {:?} at {:?}", self.server.next_due(), self.at());
    }

    pub(super) fn tick(&mut self) {
        self.server.tick(self.at());
        self.hear_loans();
        let silence = self.config.spider_silence_us;
        let (kept, lost): (Vec<Open>, Vec<Open>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| self.server.asked_at(open.trans).is_some());
        self.open = kept;
        for open in &self.open {
            assert!(self.now - open.last_word <= silence + silence / 4 + TICKS, "a silent spider is noticed");
        }
        for open in lost {
            assert!(self.now - open.last_word >= silence, "taken from a spider that spoke: {:?}", open.kind);
            let (host, was_page) = (open.host, matches!(open.kind, Kind::Page(_)));
            self.given_up(open);
            let is_page_here = |open: &Open| open.host == host && matches!(open.kind, Kind::Page(_));
            if was_page && !self.open.iter().any(is_page_here) {
                self.hosts[host].taker = None;
            }
        }
    }

    /// A hand-out has ended without an answer, and what it was about waits again.
    fn back(&mut self, open: Open) {
        self.pace(&open, None);
        self.wait_again(open);
    }

    /// Nobody will answer for it. When its spider made the request is not known, but that it was by now.
    fn given_up(&mut self, open: Open) {
        self.back(Open { sent: false, ..open });
    }

    pub(super) fn wait_again(&mut self, open: Open) {
        match open.kind {
            Kind::Page(doc_id) => self.docs.get_mut(&doc_id).unwrap().1 = false,
            Kind::Robots { .. } => {
                self.hosts[open.host].gate = Gate::Unknown;
                self.hosts[open.host].hop = None;
            }
            Kind::RemoteRobots(id) => self.errands.get_mut(&id).unwrap().open = false,
        }
        self.gone.push(open.trans);
    }

    fn pace(&mut self, open: &Open, report: Option<&Report>) {
        let (rules, now) = (&self.config, self.now);
        let host = &mut self.hosts[open.host];
        let ip = &mut self.ips[open.ip];
        if !open.sent {
            host.manners.asked(&rules.host, now);
            ip.asked(&rules.ip, now);
        }
        let Some(report) = report else {
            return;
        };
        host.manners.answered(&rules.host, report, now);
        ip.answered(&rules.ip, &Report { retry_after_s: None, ..*report }, now);
        host.streak = if report.status == 0 { host.streak.saturating_add(1) } else { 0 };
        host.set_asides += u32::from(host.streak >= rules.host_failures_max);
        host.manners.failed(report, rules.host_failures_max, now);
    }

    fn acquire(&mut self) -> bool {
        let at = self.at();
        match self.server.acquire(at) {
            Acquired::Nothing => return false,
            Acquired::Fetch(order) => self.fetched(&order),
            Acquired::Refused(job, refusal) => self.refused(&job, refusal),
        }
        true
    }

    pub(super) fn host_of(&self, url: &CrawlUrl) -> usize {
        self.hosts.iter().position(|host| host.url.origin() == url.origin()).expect("a host of ours")
    }

    /// The request is on the wire, or the spider is still at it.
    fn speak(&mut self) {
        let at = self.at();
        let count = self.open.len() as u64;
        let index = self.rng.below(count) as usize;
        let Some(open) = self.open.get_mut(index).filter(|open| !open.mute) else {
            return;
        };
        if self.now >= open.send_by && !open.sent {
            self.come_too_late(index);
        } else if self.rng.chance(800) && !open.dead {
            open.sent = true;
            let host = &mut self.hosts[open.host];
            host.manners.asked(&self.config.host, self.now);
            self.ips[open.ip].asked(&self.config.ip, self.now);
            self.server.sent(open.trans, at);
            assert_eq!(self.server.asked_at(open.trans), Some(at));
        } else {
            open.last_word = self.now;
            self.server.working(open.trans, at);
        }
    }

    fn answer_any(&mut self) {
        let at = self.rng.below(self.open.len() as u64) as usize;
        if self.open.get(at).is_some_and(|open| !open.mute) {
            self.answer(at);
        }
    }

    pub(super) fn answer(&mut self, index: usize) {
        let open = self.open.remove(index);
        let result = [ResultCode::ConnectTimeout, ResultCode::ConnectRefused][self.rng.below(2) as usize];
        let failed = open.dead.then_some(result);
        if let Some(result) = failed
            && self.server.unreachable(open.trans, result, self.at())
        {
            return self.moved_on(open, result);
        }
        if open.dead {
            self.all_failed(&open);
        }
        self.gone.push(open.trans);
        match open.kind {
            Kind::Page(doc_id) => self.answer_page(&open, doc_id),
            Kind::Robots { hops } => self.answer_robots(&open, hops),
            Kind::RemoteRobots(id) => self.answer_errand(&open, id),
        }
    }

    fn report(&mut self, open: &Open, status: u16) -> Report {
        let report = report(&mut self.rng, status);
        let result = match report.result {
            _ if open.dead => ResultCode::ConnectTimeout,
            ResultCode::ConnectTimeout => ResultCode::ReadTimeout,
            result => result,
        };
        Report { result, retry_after_s: report.retry_after_s.filter(|_| !self.calm), ..report }
    }

    fn answer_page(&mut self, open: &Open, doc_id: u32) {
        let status = match self.calm {
            _ if open.dead => 0,
            true => 200,
            false => self.hosts[open.host].temper.page_status(&mut self.rng),
        };
        let report = self.report(open, status);
        assert_eq!(self.server.doc_id(open.trans), Some(doc_id));
        let job = self.server.release(open.trans, &report, self.at()).expect("it was open");
        let (known, was_open) = self.docs.remove(&doc_id).expect("one that was admitted");
        assert_eq!((known.candidate, was_open), (job.candidate, true));
        assert_eq!(job.ip, address(open.ip));
        self.pace(open, Some(&report));
        self.reached(open, &report);
    }

    fn robots_answer(&mut self, open: &Open) -> (RobotsAnswer, u16) {
        if open.dead {
            return (RobotsAnswer::Failed, 0);
        }
        let n = open.host;
        let other = self.rng.below(self.hosts.len() as u64) as usize;
        let elsewhere = self.hosts[other].url.with_path("/robots.txt");
        let answer = self.hosts[n].temper.robots(&mut self.rng, &self.hosts[n].url, &elsewhere);
        let status = match &answer {
            RobotsAnswer::Body { .. } => 200,
            RobotsAnswer::Status(status) => *status,
            RobotsAnswer::Failed => 0,
            RobotsAnswer::Redirect(_) => 302,
        };
        (answer, status)
    }

    fn answer_robots(&mut self, open: &Open, hops: u8) {
        let (answer, status) = self.robots_answer(open);
        let report = self.report(open, status);
        let at = self.at();
        let step = self.server.robots(open.trans, &shown(&answer), &report, at);
        self.pace(open, Some(&report));
        if step != RobotsStep::Hop {
            self.reached(open, &report);
        }
        self.learnt(open.host, hops, &answer, step);
    }

    fn answer_errand(&mut self, open: &Open, id: u64) {
        let (answer, status) = self.robots_answer(open);
        let report = self.report(open, status);
        assert_eq!(self.server.release_remote_robots(open.trans, &report, self.at()), Some(id));
        self.pace(open, Some(&report));
        self.reached(open, &report);
        let ask = self.errands.remove(&id).unwrap();
        self.come_back(&ask, &answer);
    }

    pub(super) fn new_errand(&mut self, url: CrawlUrl, asker: Option<usize>) {
        let host = self.host_of(&url);
        self.errands
            .insert(self.next_errand, Ask { url, host, asker, since: self.now, placed: false, open: false });
        self.next_errand += 1;
    }

    fn errand(&mut self) {
        if self.errands.len() < 3 {
            let host = self.rng.below(self.hosts.len() as u64) as usize;
            self.new_errand(self.hosts[host].url.with_path("/robots.txt"), None);
        }
    }

    /// Errands that found no slot are tried again, but not for ever: those who wait for them may have all slots.
    pub(super) fn place_errands(&mut self) {
        let at = self.at();
        let unplaced = |(&id, ask): (&u64, &Ask)| (!ask.placed).then_some((id, ask.host));
        let unplaced: Vec<(u64, usize)> = self.errands.iter().filter_map(unplaced).collect();
        for (id, host) in unplaced {
            let (ip, others) = self.addresses(host);
            let ask = self.errands.get_mut(&id).unwrap();
            ask.placed =
                self.server.admit_remote_robots(RemoteRobots { id, url: ask.url.clone(), ip, others }, at);
            assert!(ask.placed || !self.roomy);
        }
        let given_up = |ask: &Ask| !ask.placed && ask.since + 60 * SECOND < self.now;
        let id = self.errands.iter().find(|(_, ask)| given_up(ask)).map(|(&id, _)| id);
        if let Some(ask) = id.and_then(|id| self.errands.remove(&id)) {
            self.come_back(&ask, &RobotsAnswer::Failed);
        }
    }

    /// Tells the host that sent an errand what came of it.
    fn come_back(&mut self, ask: &Ask, answer: &RobotsAnswer) {
        let Some(asker) = ask.asker else { return };
        let Gate::Elsewhere { hops } = self.hosts[asker].gate else { panic!("nobody waits for {ask:?}") };
        let origin = self.hosts[asker].url.origin().to_string();
        let step = self.server.robots_elsewhere(&origin, &shown(answer), self.at());
        if step == RobotsStep::Late {
            assert!(self.hosts[asker].set_asides > 0, "a host that waits for its rules keeps its row");
            self.hosts[asker].gate = Gate::Unknown;
            return;
        }
        self.learnt(asker, hops, answer, step);
    }

    fn put_back(&mut self) {
        let index = self.rng.below(self.open.len() as u64) as usize;
        if self.open.get(index).is_none_or(|open| open.mute) {
            return;
        }
        if !self.open[index].sent && self.lender.is_some() && self.rng.chance(400) {
            return self.come_too_late(index);
        }
        let open = self.open.remove(index);
        self.server.put_back(open.trans, self.at());
        self.back(open);
    }

    /// Words on what is long over change nothing but a count.
    fn speak_late(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let trans = self.gone[self.rng.below(self.gone.len() as u64) as usize];
        let (at, report) = (self.at(), report(&mut self.rng, 429));
        match self.rng.below(5) {
            0 => self.server.working(trans, at),
            1 => assert_eq!(self.server.release_remote_robots(trans, &report, at), None),
            2 => assert_eq!(self.server.robots(trans, &Robotstxt::Failed, &report, at), RobotsStep::Late),
            3 => self.server.put_back(trans, at),
            _ => assert_eq!(self.server.release(trans, &report, at), None),
        }
        self.server.sent(trans, at);
        assert!(!self.server.unreachable(trans, ResultCode::ConnectRefused, at));
        self.late += 1;
        if self.gone.len() > 200 {
            self.gone.drain(..100);
        }
    }

    fn spider(&mut self) {
        if !self.links {
            return;
        }
        let index = self.rng.below(self.spiders.len() as u64) as usize;
        let count = self.spiders.len();
        match (self.rng.below(10), self.spiders.get_mut(index)) {
            (8.., _) if count < 3 => self.join(),
            (0, Some(spider)) => {
                let gone = spider.id;
                self.spiders.remove(index);
                self.server.leave(gone, self.at());
                let (lost, kept): (Vec<Open>, Vec<Open>) = std::mem::take(&mut self.open)
                    .into_iter()
                    .partition(|open| matches!(open.kind, Kind::Page(_)) && open.taker == gone);
                self.open = kept;
                for open in lost {
                    assert_eq!(self.server.asked_at(open.trans), None, "its pages come again");
                    self.given_up(open);
                }
                assert!(self.open.iter().all(|open| self.server.asked_at(open.trans).is_some()));
            }
            (1..3, Some(spider)) => {
                spider.held = !spider.held;
                self.server.hold(spider.id, spider.held);
            }
            (_, Some(spider)) => {
                let count = self.rng.below(6) as u32;
                spider.credits = spider.credits.map(|credits| credits + u64::from(count));
                self.server.credit(spider.id, count);
            }
            (_, None) => {}
        }
    }

    pub(super) fn join(&mut self) {
        let pull = self.rng.chance(700);
        let id = self.server.join(pull);
        assert!(!self.spiders.iter().any(|spider| spider.id == id), "two spiders of one name");
        self.spiders.push(Spider { id, credits: pull.then_some(0), held: false });
    }

    pub(super) fn disk_is_asked(&mut self) -> bool {
        self.asks.extend(std::iter::from_fn(|| self.server.spill_ask()));
        !self.asks.is_empty()
    }

    /// The disk is slow, and writes are sometimes lost silently.
    pub(super) fn disk_turn(&mut self) {
        self.disk_is_asked();
        if !self.calm && self.rng.chance(600) {
            return;
        }
        let event = match self.asks.pop_front() {
            None => return,
            Some(SpillAsk::Write { .. }) if self.rng.chance(200) => return,
            Some(SpillAsk::Write { chunk, bytes }) => {
                self.disk.insert(chunk, bytes);
                SpillEvent::Written { chunk }
            }
            Some(SpillAsk::Forget { chunk }) => {
                self.disk.remove(&chunk);
                return;
            }
            Some(SpillAsk::Read { chunk }) => {
                let bytes = self.disk.remove(&chunk).expect("read once, after it was written");
                SpillEvent::Read { chunk, bytes }
            }
        };
        self.server.spill_event(event, self.at());
    }

    /// Another process takes over: after a clean end with every open pause, after a kill with what was written.
    fn restart(&mut self) {
        let clean = self.rng.chance(500);
        if clean {
            self.server.journal_pauses(self.at());
        }
        self.collect_journal();
        // What was not out yet never went out, or is covered by the pause that `after` makes.
        for open in std::mem::take(&mut self.open) {
            self.back(Open { sent: true, ..open });
        }
        for host in &mut self.hosts {
            let manners = &mut host.manners;
            let rate = manners.last.map_or(0, |last| last + self.config.host.gap_us);
            let open = if clean { manners.allowed_at(&self.config.host) } else { rate };
            manners.promised = manners.promised.max(open);
            if self.links {
                manners.latest = manners.latest.max(self.now + manners.crawl_delay_us);
            }
            (manners.last, manners.response_us) = (None, 0);
            host.gate = host.learnt;
            // A Crawl-delay is part of the rules.
            if !matches!(host.gate, Gate::Known { .. }) {
                manners.crawl_delay_us = 0;
            }
            (host.hop, host.taker) = (None, None);
            (host.tried, host.moves) = Default::default();
        }
        for ip in &mut self.ips {
            let promised = ip.last.map_or(0, |last| last + self.config.ip.gap_us);
            *ip = Manners { promised, ..Manners::default() };
        }
        if self.rng.chance(500) {
            let now_us = self.config.wall.unix_ms_at_zero * 1_000 + self.now;
            self.journal = String::from_utf8(compacted(self.journal.as_bytes(), now_us)).unwrap();
        }
        // A clock of its own, which began a while ago.
        self.base = (self.now - self.rng.below(self.now - self.base + 1)) / 1_000 * 1_000;
        let zero = self.config.wall.unix_ms_at_zero + self.base / 1_000;
        let mut config = UrlServerConfig { wall: Wall { unix_ms_at_zero: zero }, ..self.config.clone() };
        config.seed = self.rng.next_u64() as u32;
        let mut memory = HostMemory::new(1_000);
        let clock = Clock { wall: config.wall, now: self.at() };
        assert_eq!(memory.read(self.journal.as_bytes(), clock, &config.product_token), 0);
        self.server = UrlServer::new(config, self.at())
            .after(self.at().plus_us(self.config.host.gap_us.max(self.config.ip.gap_us)), memory);
        if self.links {
            let server = std::mem::replace(&mut self.server, UrlServer::new(self.config.clone(), Now::ZERO));
            self.server = server.with_spiders_behind_links(self.at());
        }
        self.restart_lender();
        self.restarted = true;
        (self.late, self.moved_on) = (0, 0);
        (self.used, self.gone, self.slots) = Default::default();
        (self.errands, self.spiders, self.asks, self.disk) = Default::default();
        for (job, _) in self.docs.values() {
            self.server.admit(job.clone(), self.at());
        }
    }

    pub(super) fn collect_journal(&mut self) {
        self.journal.push_str(&self.server.take_journal().unwrap_or_default());
    }
}

fn shown(answer: &RobotsAnswer) -> Robotstxt<'_> {
    match answer {
        RobotsAnswer::Body { text, .. } => {
            Robotstxt::Answer { status: 200, body: text.as_bytes(), target: None }
        }
        RobotsAnswer::Status(status) => Robotstxt::Answer { status: *status, body: b"", target: None },
        RobotsAnswer::Redirect(target) => {
            Robotstxt::Answer { status: 302, body: b"", target: target.as_ref() }
        }
        RobotsAnswer::Failed => Robotstxt::Failed,
    }
}
