//! What the model holds the server to: whether a request may go out, whether one must, and what an answer means.

use super::addresses::address;
use super::model::{Host, Kind, Model, Open, Spider};
use super::web::{DAY, Gate, Manners, RobotsAnswer, SECOND};
use crate::base::Now;
use crate::proto::job::Job;
use crate::proto::url::CrawlUrl;
use crate::url_server::{Order, OrderKind, Refusal, RobotsStep};

/// A timer may be late by a tick, and ticks are whole milliseconds.
pub(super) const TICKS: u64 = 2_000;
/// However little a host answers, a drained server has answered for everything by then.
const DRAIN_MAX: u64 = 40 * DAY;

impl Model {
    pub(super) fn refused(&mut self, job: &Job, refusal: Refusal) {
        let (known, open) =
            self.docs.remove(&job.candidate.doc_id).expect("refused once, and not after DONE");
        assert_eq!((&known.candidate, open), (&job.candidate, false), "refused while a spider has it");
        let host = &self.hosts[self.host_of(&job.candidate.url)];
        let path = job.candidate.url.path_and_query();
        match refusal {
            Refusal::Robots => {
                assert!(matches!(host.gate, Gate::Known { no: true, .. }) && path.starts_with("/no"));
            }
            Refusal::RobotsUnreachable => assert!(host.was_unreachable),
            // A host that memory had no room for may be remembered by the journal as it was before.
            Refusal::Moved => panic!("no host was closed"),
            Refusal::SetAside => assert!(host.set_asides > 0 || (self.restarted && !self.roomy)),
        }
    }

    /// The heart of it: whether this request may go out at this moment.
    pub(super) fn fetched(&mut self, order: &Order) {
        let n = self.host_of(&order.url);
        let (now, roomy) = (self.now, self.roomy);
        assert!(self.used.insert(order.trans), "{:?} a second time", order.trans);
        let ips = &self.hosts[n].ips;
        let ip = ips.iter().copied().find(|&ip| address(ip) == order.ip).expect("an address of its host");
        assert!(!order.more || ips.len() > 1);
        let of_ip = |open: &&Open| open.ip == ip;
        let (host_rules, ip_rules) = (self.config.host, self.config.ip);
        let here: Vec<&Open> = self.open.iter().filter(|open| open.host == n).collect();
        let there: Vec<&Open> = self.open.iter().filter(of_ip).collect();
        assert!(here.len() < usize::from(host_rules.concurrent), "too many open at a host");
        assert!(there.len() < usize::from(ip_rules.concurrent), "too many open at an address");
        let (host, address) = (&self.hosts[n], &self.ips[ip]);
        let (due, ip_due) = (host.manners.allowed_at(&host_rules), address.allowed_at(&ip_rules));
        assert!(now >= due, "{} asked {} us early: {:?}", host.url, due - now, host.manners);
        assert!(now >= ip_due, "an address asked {} us early: {address:?}", ip_due - now);
        let waits = |open: &[&Open], gap: u64| gap > 0 && open.iter().any(|open| !open.sent);
        self.may_ask(ip, order.send_by);
        assert!(!waits(&here, host.manners.gap(&host_rules)), "beside one that is not out yet");
        assert!(!waits(&there, address.gap(&ip_rules)), "beside one of its address that is not out yet");

        // One host, one slot, and a slot changes hands only when its host's pause is over.
        let slot = order.trans.host_slot();
        assert!((slot as usize) < self.config.queue_count);
        assert!(here.iter().all(|open| open.trans.host_slot() == slot), "a host in two slots");
        let moved = |before: usize| self.slots.iter().any(|(&other, &host)| host == before && other != slot);
        if let Some(&before) = self.slots.get(&slot).filter(|&&before| before != n && !moved(before)) {
            assert!(!self.open.iter().any(|open| open.host == before && open.trans.host_slot() == slot));
            assert!(self.hosts[before].manners.allowed_at(&host_rules) <= now, "a slot reused in a pause");
            assert!(!roomy);
        }
        let idle = (here.is_empty(), there.is_empty());
        let bound = here.iter().find(|open| matches!(open.kind, Kind::Page(_))).map(|open| open.taker);
        let asked = here.iter().any(|open| matches!(open.kind, Kind::Robots { .. }));

        let kind = match order.kind {
            OrderKind::Page => {
                let (job, open) = self.docs.get_mut(&order.doc_id).expect("not answered yet");
                assert!(!std::mem::replace(open, true), "{} is with a spider already", order.doc_id);
                assert_eq!(job.candidate.url, order.url);
                assert!(!asked, "a page beside robots.txt");
                assert!(host.gate.allows(order.url.path_and_query(), now), "{}: {:?}", order.url, host.gate);
                self.credited(n, order.spider, bound);
                Kind::Page(order.doc_id)
            }
            OrderKind::Robots => {
                assert!(!asked, "robots.txt twice at once");
                let kind = self.robots_asked(n, &order.url);
                self.hosts[n].gate = Gate::Unknown;
                kind
            }
            OrderKind::RemoteRobots(id) => {
                let ask = self.errands.get_mut(&id).expect("an errand of ours");
                assert!(!std::mem::replace(&mut ask.open, true) && ask.placed && ask.url == order.url);
                Kind::RemoteRobots(id)
            }
        };
        self.slots.retain(|_, host| *host != n);
        self.slots.insert(slot, n);
        // A host that had nothing to do and whose pause was over may have lost its row, and with it its past; not
        // so if its robots rules are remembered. Its address may have been forgotten likewise.
        let manners = &mut self.hosts[n].manners;
        if !roomy && idle.0 && order.kind != OrderKind::Page {
            *manners = Manners { promised: manners.promised, latest: manners.latest, ..Manners::default() };
        }
        let before = manners.last;
        manners.asked(&host_rules, now);
        let address = &mut self.ips[ip];
        if !roomy && idle.1 {
            *address = Manners { latest: address.latest, ..Manners::default() };
        }
        address.asked(&ip_rules, now);
        let (trans, taker) = (order.trans, order.spider);
        let mute = !self.calm && self.rng.chance(30);
        // What is dead may live for a moment, and the other way round. In the end everybody can be had somewhere.
        let somewhere = self.hosts[n].ips.iter().any(|&ip| !self.dead[ip]);
        let dead = match self.calm {
            true => self.dead[ip] && somewhere,
            false => self.dead[ip] != self.rng.chance(50),
        };
        let (more, last_word) = (order.more, now);
        let send_by = order.send_by.us().saturating_add(self.base);
        let open = Open {
            trans,
            kind,
            host: n,
            ip,
            dead,
            more,
            before,
            at: now,
            taker,
            sent: false,
            mute,
            last_word,
            send_by,
        };
        self.open.push(open);
    }

    fn robots_asked(&mut self, n: usize, url: &CrawlUrl) -> Kind {
        let (now, roomy) = (self.now, self.roomy);
        let host = &mut self.hosts[n];
        if roomy {
            match host.gate {
                Gate::Known { at, .. } => assert!(now + 4 * SECOND >= at + DAY, "rules are kept for a day"),
                Gate::Unreachable { at, .. } => assert!(now >= at + 56 * SECOND, "tried again at once"),
                _ => {}
            }
        }
        match host.hop.take().filter(|(target, _)| target == url) {
            Some((_, hops)) => Kind::Robots { hops },
            None => {
                assert_eq!(url.path_and_query(), "/robots.txt");
                Kind::Robots { hops: 0 }
            }
        }
    }

    /// A page goes to a spider that is there and has room, the one that its host has already.
    fn credited(&mut self, n: usize, taker: u16, bound: Option<u16>) {
        if !self.links {
            return;
        }
        assert!(bound.is_none_or(|bound| bound == taker), "a host's pages with two spiders");
        let before = self.hosts[n].taker.filter(|&before| before != taker && self.roomy);
        assert!(
            !self.spiders.iter().any(|spider| Some(spider.id) == before),
            "away from a spider that lives"
        );
        self.hosts[n].taker = Some(taker);
        let spider =
            self.spiders.iter_mut().find(|spider| spider.id == taker).expect("a spider that is gone");
        assert!(!spider.held, "a line for a full link");
        if let Some(credits) = &mut spider.credits {
            *credits = credits.checked_sub(1).expect("more lines than credits");
        }
    }

    /// Checks that every request that may go out has gone, and that the server wakes for every one that may go later.
    pub(super) fn nobody_starves(&self, due: Option<Now>) {
        let silence = self.config.spider_silence_us * 5 / 4 + TICKS;
        if let Some(first) = self.open.iter().map(|open| open.last_word).min() {
            let due = due.expect("spiders may fall silent");
            assert!(due.us() + self.base <= first + silence, "silence would be noticed too late");
        }
        if !self.roomy || self.server.leftover.spilled() > 0 {
            return;
        }
        let of = |n: usize| self.docs.values().filter(|(job, _)| self.is_of(job, n)).count();
        let over = |n: usize| of(n).saturating_sub(self.config.queue_len);
        let left = (0..self.hosts.len()).map(over).sum::<usize>();
        assert_eq!(self.server.leftover.len(), left, "what fits into queues is there");
        if self.restarted {
            return;
        }
        for (n, host) in self.hosts.iter().enumerate() {
            let docs = |n: usize| self.docs.values().any(|(job, open)| !open && self.is_of(job, n));
            let errand = |n: usize| self.errands.values().any(|ask| ask.placed && !ask.open && ask.host == n);
            // Where a host of several addresses stands is not known here: it may be any.
            let meet = |other: &Host| other.ips.iter().any(|ip| host.ips.contains(ip));
            let neighbour = |(m, other): (usize, &Host)| m != n && meet(other) && (docs(m) || errand(m));
            let here: Vec<&Open> = self.open.iter().filter(|open| open.host == n).collect();
            let there: Vec<&Open> = self.open.iter().filter(|open| host.ips.contains(&open.ip)).collect();
            let full = here.len() >= usize::from(self.config.host.concurrent)
                || there.len() >= usize::from(self.config.ip.concurrent)
                || there.iter().any(|open| !open.sent);
            if full || self.hosts.iter().enumerate().any(neighbour) || !(docs(n) || errand(n)) {
                continue;
            }
            let gate_open = match host.gate {
                // Robots rules are asked for alone.
                Gate::Known { at, .. } => here.is_empty() || self.now + 10 * SECOND < at + DAY,
                Gate::Unknown | Gate::Unreachable { .. } => here.is_empty(),
                Gate::Elsewhere { .. } => false,
            };
            // The active window is a part of the queue.
            let waits = here.len() < self.config.queue_len;
            let page = waits && gate_open && self.has_room_for(host);
            if !errand(n) && !page {
                continue;
            }
            let ips = host.ips.iter().map(|&ip| self.ips[ip].latest).max().unwrap_or(0);
            let when = host.manners.latest.max(ips) + TICKS;
            if !self.is_lent(host, when, due) {
                continue;
            }
            assert!(when > self.now, "{} could have been asked: {:?}", host.url, host.gate);
            let due = due.expect("somebody waits for a pause to end");
            assert!(due.us() + self.base <= when, "{}: {due:?} would be too late", host.url);
        }
    }

    fn is_of(&self, job: &Job, n: usize) -> bool {
        job.candidate.url.origin() == self.hosts[n].url.origin()
    }

    fn has_room_for(&self, host: &Host) -> bool {
        let has_room = |spider: &Spider| !spider.held && spider.credits != Some(0);
        let bound = self.spiders.iter().find(|spider| Some(spider.id) == host.taker);
        !self.links || bound.map_or_else(|| self.spiders.iter().any(has_room), has_room)
    }

    /// What an answer to robots.txt means (RFC 9309), beside what the server made of it.
    pub(super) fn learnt(&mut self, n: usize, hops: u8, answer: &RobotsAnswer, step: RobotsStep) {
        let now = self.now;
        let host = &mut self.hosts[n];
        let since = match host.gate {
            Gate::Unreachable { since, .. } => since,
            _ => now,
        };
        let allow_all = match answer {
            RobotsAnswer::Status(status) => (400..500).contains(status) && *status != 429,
            RobotsAnswer::Redirect(target) => target.is_none() || hops >= 5,
            _ => false,
        };
        match (answer, step) {
            (RobotsAnswer::Body { no, delay_us, .. }, RobotsStep::Known { .. }) => {
                host.gate = Gate::Known { at: now, no: *no };
                host.manners.crawl_delay_us = *delay_us;
            }
            (_, RobotsStep::Known { crawl_delay_ms: None, .. }) if allow_all => {
                host.gate = Gate::Known { at: now, no: false };
                host.manners.crawl_delay_us = 0;
            }
            (RobotsAnswer::Redirect(Some(target)), RobotsStep::Hop) if hops < 5 => {
                assert_eq!(target.origin(), host.url.origin());
                host.hop = Some((target.clone(), hops + 1));
            }
            (RobotsAnswer::Redirect(Some(target)), RobotsStep::Elsewhere { url, hops: told }) if hops < 5 => {
                assert_eq!((target, hops + 1), (&url, told));
                host.gate = Gate::Elsewhere { hops: told };
                self.new_errand(url, Some(n));
            }
            (RobotsAnswer::Status(_) | RobotsAnswer::Failed, RobotsStep::Unreachable) if !allow_all => {
                host.was_unreachable = true;
                host.gate = Gate::Unreachable { at: now, since };
            }
            (_, step) => panic!("robots.txt after {hops} hops led to {step:?}"),
        }
        let host = &mut self.hosts[n];
        if matches!(host.gate, Gate::Known { .. } | Gate::Unreachable { .. }) {
            host.learnt = host.gate;
        }
        host.manners.note(&self.config.host);
    }

    /// What holds between any two events.
    pub(super) fn check(&mut self) {
        self.hear_loans();
        self.collect_journal();
        self.server.take_set_aside();
        assert!(self.server.invariants());
        assert_eq!(self.server.pages, self.docs.len(), "every URL is somewhere");
        assert_eq!(self.server.open(), self.open.len());
        assert_eq!(self.server.stats().late, self.late);
        assert_eq!(self.server.stats().moved_on, self.moved_on);
        let in_memory = self.server.leftover.len() - self.server.leftover.spilled();
        assert!(in_memory <= self.config.leftover_urls, "leftovers in memory are bounded");
    }

    /// Everybody answers from here on: within a bounded time nothing is left.
    pub(super) fn drain(&mut self) {
        self.calm = true;
        for index in 0..self.spiders.len() {
            self.spiders[index].held = false;
            self.server.hold(self.spiders[index].id, false);
        }
        if self.links && self.spiders.is_empty() {
            self.join();
        }
        let end = self.now + DRAIN_MAX;
        let mut rounds = 0;
        while !self.docs.is_empty() || !self.errands.is_empty() {
            for spider in self.spiders.iter_mut().filter(|spider| spider.credits.is_some()) {
                spider.credits = spider.credits.map(|credits| credits + 100);
                self.server.credit(spider.id, 100);
            }
            self.disk_turn();
            self.place_errands();
            self.lend_all();
            self.serve();
            self.check();
            rounds += 1;
            assert!(rounds < 20_000, "no end in sight for {:?}", self.docs);
            assert!(self.now < end, "{} left after {DRAIN_MAX} us: {:?}", self.docs.len(), self.docs);
            self.open.iter_mut().for_each(|open| open.mute = false);
            if !self.open.is_empty() {
                self.now += self.rng.below(SECOND / 10);
                self.tick();
                while !self.open.is_empty() {
                    self.answer(0);
                }
                continue;
            }
            let answered = self.docs.is_empty() && self.errands.is_empty();
            if answered || self.disk_is_asked() || self.has_wants() {
                continue;
            }
            let unplaced = self.errands.values().any(|ask| !ask.placed);
            let due = self.server.next_due().map(|due| due.since_us(self.at()));
            let due = due.or_else(|| unplaced.then_some(SECOND));
            let Some(due) = due else {
                panic!("asleep for ever with {:?} and {:?}", self.errands, self.docs)
            };
            self.now += due;
        }
        assert_eq!((self.server.pages, self.server.open(), self.server.leftover.len()), (0, 0, 0));
        while self.disk_is_asked() {
            self.disk_turn();
        }
        assert!(self.disk.is_empty(), "nobody comes back for {:?}", self.disk.keys());
        self.all_given_back();
    }
}
