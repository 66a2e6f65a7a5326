use crate::base::{Now, SortedMap, Wall, fingerprint};
use crate::config::Config;
use crate::doc_index::{DocIndex, Note, Outcome};
use crate::engine::crawl::away_hosts::{AwayHosts, by_owner};
use crate::engine::crawl::ending::{Ending, Left};
use crate::engine::crawl::index_link::IndexLink;
use crate::engine::crawl::live::ShardRules;
use crate::engine::crawl::messages::{
    Done, Found, FromIndex, FromShard, HostWord, RobotsAnswer, ToIndex, ToShard,
};
use crate::engine::crawl::open_questions::{Asked, OpenQuestions};
use crate::engine::crawl::placement::{Arrived, Placed, Placement, host_key};
use crate::engine::crawl::resolution::{Judged, Resolution, Resolved, Waiter};
use crate::engine::crawl::robots_exchange::{Asker, RobotsExchange};
use crate::engine::crawl::scheduler_setup::{SchedulerConfig, SchedulerLane, SchedulerParts};
use crate::engine::crawl::shard_log::ShardLog;
use crate::engine::crawl::shutdown::Shutdown;
use crate::engine::inspect::domains::Domains;
use crate::engine::inspect::entries::Entered;
use crate::engine::inspect::peer_words::PeerNews;
use crate::engine::inspect::questions::{Questions, Reply};
use crate::engine::names::Addresses;
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters, Ended, WaitingHosts};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::engine::runtime::live_config::LiveConfig;
use crate::limits::{CANDIDATES_PER_ASK, STRIKES_MAX, URLS_PER_SHARD_MAX};
use crate::proto::job::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::Rest;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Between the doc index and the shards: asks for candidates, resolves them, deals each to the shard that owns its
/// address, and holds every DONE back until its record is durable. A host and its address live on one shard.
pub struct Scheduler {
    config: SchedulerConfig,
    shards: Vec<ShardSide>,
    index: IndexLink,
    resolution: Resolution,
    placement: Placement,
    robots: RobotsExchange,
    log: ShardLog,
    strikes: RapidHashMap<u32, u8>,
    scope: ScopeNews,
    /// It was said that names are waited for.
    waits_for_names: bool,
    /// URLs were typed.
    has_seeds: bool,
    /// It was said that an address is not allowed.
    refusal_said: bool,
    counts: Counts,
    ending: Ending,
    shutdown: Shutdown,
    counters: Arc<Counters>,
    health: Arc<Health>,
    questions: OpenQuestions,
    live: LiveConfig,
    /// What the shards were told to keep to since the start, if they were.
    rules: Option<Arc<ShardRules>>,
    away: AwayHosts,
    now: Now,
}

struct ShardSide {
    lane: SchedulerLane,
    /// Documents this shard has, and their hosts.
    open: RapidHashMap<u32, u64>,
    /// It has an empty queue.
    wants: bool,
}

/// Where seeds led: brought into scope during the crawl.
#[derive(Default)]
struct ScopeNews {
    urls: Vec<Arc<CrawlUrl>>,
    /// Their fingerprints: what is fetched again is not told again.
    told: RapidHashSet<u64>,
}

#[derive(Default)]
struct Counts {
    pages: u64,
    success: u64,
    done: u64,
    /// Of those, what the last idle turn knew.
    done_before: u64,
    restarts: u64,
}

impl Scheduler {
    pub(crate) fn new(config: SchedulerConfig, parts: SchedulerParts) -> Scheduler {
        let side = |lane| ShardSide { lane, open: RapidHashMap::default(), wants: true };
        Scheduler {
            waits_for_names: false,
            placement: Placement::new(parts.lanes.len(), config.queue_len),
            ending: Ending::new(&config, parts.stop),
            config,
            shards: parts.lanes.into_iter().map(side).collect(),
            index: IndexLink::new(parts.index),
            resolution: Resolution::new(parts.names),
            robots: RobotsExchange::default(),
            log: ShardLog::new(parts.wall, 0, parts.log),
            strikes: RapidHashMap::default(),
            scope: ScopeNews::default(),
            has_seeds: false,
            refusal_said: false,
            counts: Counts::default(),
            shutdown: Shutdown::default(),
            counters: parts.counters,
            health: parts.health,
            questions: OpenQuestions::default(),
            live: parts.live,
            rules: None,
            away: AwayHosts::default(),
            now: Now::ZERO,
        }
    }

    /// URLs that a user typed.
    pub fn seeds(&mut self, urls: Vec<CrawlUrl>) {
        self.has_seeds |= !urls.is_empty();
        self.index.send(ToIndex::Seeds { urls, head_only: self.config.head_only });
    }

    /// These domains are with other servers, or on their way there.
    pub(crate) fn set_away(&mut self, domains: Domains) {
        self.away = AwayHosts::new(domains);
    }

    #[cfg(test)]
    pub(crate) fn set_names(&mut self, names: crate::engine::names::Names) {
        self.resolution.set_names(names);
    }

    #[cfg(test)]
    pub(crate) fn fill_index_ring(&mut self, message: ToIndex) -> bool {
        self.index.try_send(message)
    }

    /// Whether a document counts as soon as its record is durable.
    pub fn waits_for_commit(&self) -> bool {
        self.shards.iter().any(|side| side.lane.held().next().is_some())
    }

    pub fn pages(&self) -> u64 {
        self.counts.pages
    }

    pub fn success(&self) -> u64 {
        self.counts.success
    }

    pub fn restarts(&self) -> u64 {
        self.counts.restarts
    }

    pub fn results(&self) -> SortedMap<&'static str, u64> {
        self.counters.results()
    }

    pub fn documents_done(&self) -> u64 {
        self.counts.done
    }

    /// Where questions about URLs are asked.
    pub fn questions(&self) -> Arc<Questions> {
        self.questions.asked()
    }

    /// The settings that hold.
    pub(crate) fn live(&self) -> LiveConfig {
        self.live.clone()
    }

    /// Nothing will be answered from now on.
    pub(crate) fn end_questions(&mut self) {
        self.questions.end();
    }

    /// It ended without the disk: not everything is told.
    pub(crate) fn has_given_up(&self) -> bool {
        self.shutdown.has_given_up()
    }

    // From the shards -------------------------------------------------------------------------------------

    fn receive(&mut self, shard: usize) -> bool {
        let mut busy = false;
        // With a backlog towards the index nothing more is taken: the rings hold the shards back.
        while !self.index.is_behind()
            && !self.log.is_full()
            && let Some(reply) = self.shards[shard].lane.receive()
        {
            busy = true;
            match reply {
                FromShard::Done(done) => self.hold(shard, done),
                FromShard::Restarted { epoch, suspect } => self.deal_again(shard, epoch, suspect),
                FromShard::Wants(wants) => self.shards[shard].wants = wants,
                FromShard::Sitemaps { origin, urls } => self.index.send(ToIndex::Sitemaps { origin, urls }),
                FromShard::RemoteRobots { origin, url } if self.away.holds(&url) => {
                    self.tell_robots(Asker { shard, origin }, Box::new(RobotsAnswer::FAILED));
                }
                FromShard::RemoteRobots { origin, url } => {
                    if !self.robots.is_open(shard, &origin, &url) {
                        let name: Box<str> = url.host_bare().into();
                        self.look_up(&name, Waiter::RemoteRobots { asker: Asker { shard, origin }, url });
                    }
                }
                FromShard::RemoteRobotsDone { id, answer } => {
                    if let Some(asker) = self.robots.answered(id) {
                        self.tell_robots(asker, answer);
                    }
                }
                FromShard::HandedOver { origin, lines } => {
                    if let Some(arrived) = self.placement.arrived(&origin) {
                        let word = HostWord::Remember { origin, lines };
                        self.shards[arrived.shard].lane.deal(ToShard::About(word));
                        self.deal_arrived(arrived);
                    }
                }
                FromShard::HostClosed { origin, lines } => {
                    if let Some((id, lines)) = self.away.closed(&origin, &lines) {
                        self.questions.answer(id, Reply::Closed { lines });
                    }
                }
                FromShard::PutBack(doc_id) => {
                    if let Some(host) = self.shards[shard].open.remove(&doc_id) {
                        self.unload(host);
                        self.index.send(ToIndex::PutBack(doc_id));
                    }
                }
                FromShard::Status { id, view, at } => {
                    self.questions.shard_answered(id, view.as_deref(), self.log.wall(), at);
                }
                FromShard::Rest { round, rest } => {
                    self.ending.linger_mut().answered(round, rest.map(|rest| *rest), self.now)
                }
                FromShard::Notice(notice) => self.health.notices().put(*notice),
                FromShard::Drained => self.shards[shard].lane.drained(),
            }
        }
        busy
    }

    /// Links may be known at once; the document counts when its record is durable.
    fn hold(&mut self, shard: usize, mut done: Done) {
        if let Some(found) = done.found.take() {
            self.discover(found);
        }
        match done.sequence {
            Some(sequence) => self.shards[shard].lane.hold(sequence, done),
            None => self.count(shard, done),
        }
    }

    fn discover(&mut self, mut found: Box<Found>) {
        if let Some(url) = found.into_scope.take()
            && let Some(url) = self.bring_into_scope(url)
        {
            self.index.send(ToIndex::Scope(url));
        }
        self.index.send(ToIndex::Discover(found));
    }

    /// Tells every shard, once.
    fn bring_into_scope(&mut self, url: CrawlUrl) -> Option<Arc<CrawlUrl>> {
        if !self.scope.told.insert(fingerprint(url.as_str().as_bytes())) {
            return None;
        }
        let url = Arc::new(url);
        self.scope.urls.push(url.clone());
        for side in &mut self.shards {
            side.lane.deal(ToShard::Scope(url.clone()));
        }
        Some(url)
    }

    fn count_durable(&mut self, shard: usize) -> bool {
        let mut busy = false;
        while let Some(done) = self.shards[shard].lane.next_durable() {
            self.count(shard, done);
            busy = true;
        }
        busy
    }

    fn count(&mut self, shard: usize, done: Done) {
        // A document that was dealt again may be answered for twice; the first answer counts.
        if let Some(host) = self.shards[shard].open.remove(&done.outcome.doc_id) {
            self.unload(host);
            self.conclude(done.outcome, done.fetched);
        }
    }

    fn unload(&mut self, host: u64) {
        if self.placement.unload(host) {
            self.index.ask_again();
        }
    }

    fn conclude(&mut self, outcome: Outcome, fetched: bool) {
        self.counts.done += 1;
        if fetched {
            self.counts.pages += 1;
            self.counts.success += u64::from(outcome.result.is_success());
        }
        self.counters.concluded(outcome.result);
        self.index.send(ToIndex::Record(outcome));
    }

    /// A shard died: what it had goes back to the index, which will hand it out anew.
    fn deal_again(&mut self, shard: usize, epoch: u32, suspect: Option<u32>) {
        self.ending.linger_mut().disturbed(self.now);
        self.counts.restarts += 1;
        let side = &mut self.shards[shard];
        side.wants = true;
        side.lane.restarted(epoch);
        self.scope.urls.iter().for_each(|url| side.lane.deal(ToShard::Scope(url.clone())));
        // It was made with the settings of the moment; the log is to tell which those were.
        self.rules.iter().for_each(|rules| side.lane.deal(ToShard::Rules(rules.clone())));
        for origin in self.away.closed_at(shard) {
            side.lane.deal(ToShard::About(HostWord::Close { origin }));
        }
        // One that the shard before it has not heard may still be on its way.
        side.lane.deal(ToShard::Pause(self.ending.is_paused()));
        if self.ending.has_begun() {
            side.lane.deal(ToShard::Drain);
        }
        // What waits to become durable is written; it will be counted.
        let written: RapidHashSet<u32> = side.lane.held().map(|done| done.outcome.doc_id).collect();
        let open = side.open.iter().map(|(&doc_id, &host)| (doc_id, host));
        let mut lost: Vec<(u32, u64)> = open.filter(|(doc_id, _)| !written.contains(doc_id)).collect();
        // In the order they were found, not in that of a hash map: a simulated death can be replayed.
        lost.sort_unstable();
        for request in self.robots.lost_with(shard) {
            side.lane.deal(ToShard::RemoteRobots { epoch, request });
        }
        for arrived in self.placement.stranded(shard) {
            self.deal_arrived(arrived);
        }
        for (doc_id, host) in lost {
            self.shards[shard].open.remove(&doc_id);
            self.unload(host);
            let strikes = self.strikes.entry(doc_id).or_default();
            *strikes += u8::from(suspect == Some(doc_id));
            if *strikes >= STRIKES_MAX {
                let at_s = self.log.unix_s(self.now);
                self.conclude(Outcome::new(doc_id, ResultCode::ShardDied, at_s), true);
            } else {
                self.index.send(ToIndex::PutBack(doc_id));
            }
        }
        self.strikes.retain(|_, strikes| *strikes > 0);
    }

    // From the index to the shards ------------------------------------------------------------------------

    fn take_answers(&mut self) -> bool {
        let mut busy = false;
        while let Some(answer) = self.index.receive() {
            busy = true;
            match answer {
                FromIndex::Candidates { candidates, .. } => {
                    for candidate in candidates {
                        let name: Box<str> = candidate.url.host_bare().into();
                        self.look_up(&name, Waiter::Candidate(candidate));
                    }
                }
                FromIndex::Counted { id, stats } => self.questions.answer(id, Reply::Counted(stats)),
                FromIndex::Taken { id, taken, into_scope } => {
                    into_scope.into_iter().for_each(|url| drop(self.bring_into_scope(url)));
                    self.questions.answer(id, Reply::Taken(taken));
                }
                FromIndex::Entered { id, entered, into_scope } => {
                    into_scope.into_iter().for_each(|url| drop(self.bring_into_scope(url)));
                    self.take_moves(&entered);
                    self.questions.answer(id, Reply::Entered(entered));
                }
                FromIndex::Peers { id, told, news } => {
                    let PeerNews { into_scope, opened, nice } = *news;
                    into_scope.into_iter().for_each(|url| drop(self.bring_into_scope(url)));
                    for origin in opened {
                        if self.away.open(&origin) {
                            // It may have lived elsewhere when it was closed.
                            for side in &mut self.shards {
                                side.lane.deal(ToShard::About(HostWord::Open { origin: origin.clone() }));
                            }
                            self.index.ask_again();
                        }
                    }
                    self.remember(&nice);
                    self.questions.answer(id, Reply::Peers(told));
                }
                FromIndex::Origins { id, origins } => self.close_hosts(id, origins),
                FromIndex::Feeds { id, told } => self.questions.answer(id, Reply::Feeds(told)),
                FromIndex::HandedOver { id, made } => self.questions.answer(id, Reply::HandedOver(made)),
                FromIndex::Status { id, looked } => {
                    let shards = self.shards.iter();
                    let place = |doc_id| {
                        let shard = shards.clone().position(|side| side.open.contains_key(&doc_id))?;
                        let mut held = self.shards[shard].lane.held();
                        Some((shard, held.any(|done| done.outcome.doc_id == doc_id)))
                    };
                    if let Some((shard, word)) = self.questions.index_answered(id, looked, place) {
                        self.shards[shard].lane.deal(ToShard::About(word));
                    }
                }
            }
        }
        busy
    }

    /// Nothing more is asked of these hosts; what is known of them is told when nothing of them is on the wire.
    fn close_hosts(&mut self, id: u64, origins: Vec<Box<str>>) {
        let placed = origins.into_iter().map(|origin| {
            // One that lives nowhere is remembered by every shard alike.
            let shard = self.placement.shard_of(&origin).unwrap_or(0);
            (origin, shard)
        });
        let placed: Vec<(Box<str>, usize)> = placed.collect();
        if placed.is_empty() {
            return self.questions.answer(id, Reply::Closed { lines: String::new() });
        }
        for (origin, shard) in &placed {
            self.shards[*shard].lane.deal(ToShard::About(HostWord::Close { origin: origin.clone() }));
        }
        self.away.close(id, placed);
    }

    /// Domains come and go: what is known of hosts that come is with every shard before their first URL.
    fn take_moves(&mut self, entered: &Entered) {
        for word in self.away.take(&entered.moves) {
            let (origin, shard) = word;
            self.shards[shard].lane.deal(ToShard::About(HostWord::Open { origin }));
        }
        self.remember(&entered.nice);
    }

    /// Tells every shard what is known of hosts that come.
    fn remember(&mut self, nice: &str) {
        for (origin, lines) in by_owner(nice) {
            for side in &mut self.shards {
                let (origin, lines) = (origin.clone(), lines.clone());
                side.lane.deal(ToShard::About(HostWord::Remember { origin, lines }));
            }
        }
    }

    fn take_names(&mut self) -> bool {
        let mut busy = false;
        while let Some((waiters, addresses)) = self.resolution.answer() {
            busy = true;
            if addresses.is_some() && std::mem::take(&mut self.waits_for_names) {
                self.health.wait_for(Part::Names, None);
            }
            for waiter in waiters {
                self.resolved(waiter, addresses.as_ref());
            }
        }
        // Without a network nobody can say anything of names.
        let wait = self.config.wait || self.health.lacks_network();
        match self.resolution.judged(wait, self.now) {
            None => {}
            Some(Judged::Theirs(waiters)) => {
                if std::mem::take(&mut self.waits_for_names) {
                    self.health.wait_for(Part::Names, None);
                }
                waiters.into_iter().for_each(|waiter| self.resolved(waiter, None));
            }
            Some(Judged::Again(waiters)) => {
                for waiter in waiters {
                    self.look_up(&Box::<str>::from(waiter.name()), waiter);
                }
            }
            // It ends for a better reason.
            Some(Judged::Ours(_)) if self.ending.has_begun() => {}
            Some(Judged::Ours(fault)) if wait => {
                self.waits_for_names = true;
                self.health.wait_for(Part::Names, Some(format!("fetching waits: {fault}")));
            }
            // What waits for names stays as it is, and is pending in the next process.
            Some(Judged::Ours(fault)) => self.ending.without_names(fault),
        }
        busy
    }

    fn look_up(&mut self, name: &str, waiter: Waiter) {
        match self.resolution.look_up(name, waiter) {
            Resolved::Now(waiter, addresses) => self.resolved(waiter, addresses.as_ref()),
            Resolved::Asked => {}
            Resolved::Later(Waiter::Candidate(candidate)) => {
                self.index.send(ToIndex::PutBack(candidate.doc_id));
            }
            Resolved::Later(waiter) => self.resolved(waiter, None),
        }
    }

    /// A name has resolved, or not.
    fn resolved(&mut self, waiter: Waiter, addresses: Option<&Addresses>) {
        match (waiter, addresses) {
            (Waiter::Candidate(candidate), Some(addresses)) => self.deal(candidate, addresses),
            (Waiter::Candidate(candidate), None) => self.fail(&candidate, ResultCode::DnsFailed),
            (Waiter::RemoteRobots { asker, url }, addresses) => {
                let allowed = addresses.map(|addresses| self.allowed(&url, addresses)).unwrap_or_default();
                if allowed.is_empty() {
                    return self.tell_robots(asker, Box::new(RobotsAnswer::FAILED));
                }
                self.ending.linger_mut().disturbed(self.now);
                let place = self.placement.ask_at(&url, &allowed);
                let lane = &mut self.shards[place.shard].lane;
                let request = self.robots.send(asker, url, place);
                lane.deal(ToShard::RemoteRobots { epoch: lane.epoch(), request });
            }
        }
    }

    fn tell_robots(&mut self, asker: Asker, answer: Box<RobotsAnswer>) {
        self.ending.linger_mut().disturbed(self.now);
        let word = HostWord::RobotsElsewhere { origin: asker.origin, answer };
        self.shards[asker.shard].lane.deal(ToShard::About(word));
    }

    /// The addresses that may be connected to.
    fn allowed(&self, url: &CrawlUrl, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let allowed = |ip: &&IpAddr| self.config.guard.check(**ip, url.port()).is_ok();
        addresses.iter().filter(allowed).copied().collect()
    }

    /// The name of a URL failed.
    fn fail(&mut self, candidate: &Candidate, result: ResultCode) {
        self.log.refused(candidate, None, result, self.now);
        self.conclude(Outcome::new(candidate.doc_id, result, self.log.unix_s(self.now)), false);
    }

    /// The rules of this run keep a URL from every spider: none of its addresses is allowed.
    fn refuse(&mut self, candidate: &Candidate, ip: Option<IpAddr>) {
        let result = ResultCode::BlockedAddress;
        self.log.refused(candidate, ip, result, self.now);
        let refusal = ip.and_then(|ip| self.config.guard.check(ip, candidate.url.port()).err());
        let reason = refusal.map(|refusal| refusal.to_string());
        // A crawl that goes on and has nothing to show for it says why. What somebody typed is told of at the end.
        if let Some(reason) = reason.as_ref().filter(|_| self.counts.pages == 0 && !self.has_seeds)
            && !std::mem::replace(&mut self.refusal_said, true)
        {
            let origin = candidate.url.origin();
            let fields = vec![("origin", origin.into()), ("cause", reason.into())];
            self.health.tell(Event::AddressRefused, fields, format!("{origin}: left out: {reason}"));
        }
        let note = Note { reason: reason.map(String::into_boxed_str), ..Note::default() };
        let outcome = Outcome::new(candidate.doc_id, result, self.log.unix_s(self.now));
        self.conclude(Outcome { note: Some(Box::new(note)), ..outcome }, false);
    }

    /// Deals a resolved candidate to the shard that owns its address. That address goes along, and others of that
    /// shard, so that what was checked here is what the shard connects to.
    fn deal(&mut self, candidate: Candidate, addresses: &[IpAddr]) {
        if self.ending.has_begun() {
            return self.index.send(ToIndex::PutBack(candidate.doc_id));
        }
        let allowed = self.allowed(&candidate.url, addresses);
        if allowed.is_empty() {
            return self.refuse(&candidate, addresses.first().copied());
        }
        match self.placement.place(candidate, allowed) {
            Placed::Waits => {}
            Placed::Leaves { from, origin } => {
                self.shards[from].lane.deal(ToShard::About(HostWord::HandOver { origin }));
            }
            Placed::At(place, candidate) => {
                self.ending.linger_mut().disturbed(self.now);
                self.resolution.shares(place.ip, &candidate.url);
                let side = &mut self.shards[place.shard];
                side.open.insert(candidate.doc_id, host_key(&candidate.url));
                let job = Job { candidate, ip: place.ip, others: place.others };
                side.lane.deal(ToShard::Work { epoch: side.lane.epoch(), job });
            }
        }
    }

    /// A host has come to the shard of its new address.
    fn deal_arrived(&mut self, arrived: Arrived) {
        for candidate in arrived.waiting {
            self.deal(candidate, &arrived.addresses);
        }
    }

    /// Asks the index for candidates while shards have room and the last answer may be out of date.
    fn ask(&mut self) {
        // What waits until it is due is asked for when it is.
        let next_due_s = self.index.stats().next_due_s;
        if self.config.wait && next_due_s.is_some_and(|due_s| due_s <= self.log.unix_s(self.now)) {
            self.index.ask_when_idle();
        }
        if self.ending.has_begun()
            || self.ending.is_paused()
            || self.resolution.is_waiting()
            || !self.index.may_ask()
            || !self.shards.iter().any(|side| side.wants)
        {
            return;
        }
        let at_shards: usize = self.shards.iter().map(|side| side.open.len()).sum();
        let at_names = self.resolution.waiting();
        let dealt: usize = self.shards.iter().map(|side| side.lane.dealt()).sum();
        let mut want = CANDIDATES_PER_ASK
            .min((self.shards.len() * URLS_PER_SHARD_MAX).saturating_sub(at_shards + at_names));
        if let Some(pages_max) = self.config.pages_max {
            let on_their_way = at_names as u64 + self.placement.waiting();
            let begun = self.counts.pages + at_shards as u64 + on_their_way;
            want = want.min(pages_max.saturating_sub(begun) as usize);
        }
        if want == 0 || dealt > CANDIDATES_PER_ASK {
            return;
        }
        // Crowded addresses sit out one question; they are asked for again with the next.
        let crowd = self.resolution.begin(self.config.hosts_per_ip_max);
        let mut reject = self.placement.reject_list();
        if !crowd.is_empty() {
            Arc::make_mut(&mut reject).extend(crowd.iter().copied());
        }
        self.index.ask(want, reject, !crowd.is_empty());
    }

    // The end ---------------------------------------------------------------------------------------------

    /// Nothing is open anywhere, and the index has nothing more.
    fn is_complete(&self) -> bool {
        let is_idle = |side: &ShardSide| {
            side.open.is_empty() && side.lane.dealt() == 0 && side.lane.held().next().is_none()
        };
        self.index.is_exhausted() && self.shards.iter().all(is_idle)
    }

    /// Everything that is left is with the shards.
    fn is_quiet(&self) -> bool {
        let is_quiet = |side: &ShardSide| side.lane.dealt() == 0 && side.lane.held().next().is_none();
        self.index.is_quiet()
            && self.shards.iter().all(is_quiet)
            && self.resolution.waiting() == 0
            && self.placement.waiting() == 0
    }

    /// Asks the shards whether all they have must wait, when there is nothing else to do.
    fn look_for_rest(&mut self) {
        if self.ending.linger().is_due(self.now) && !self.ending.is_paused() && self.is_quiet() {
            let question = self.ending.linger_mut().ask(self.shards.len());
            self.shards.iter_mut().for_each(|side| side.lane.deal(ToShard::Rest(question)));
        }
    }

    /// The hosts it did not stay for, if it ended because everything waits too long.
    pub(crate) fn waiting_hosts(&self, wall: Wall, index: &DocIndex) -> WaitingHosts {
        let urls = |origin: &str| index.host(origin).map(|counts| counts.pending + counts.handed_out);
        let rests = self.ending.linger().rests().filter(|_| self.ending.why() == Some(Ended::Linger));
        let rest = rests.map(|rests| Rest::join(rests.to_vec()));
        rest.map_or_else(WaitingHosts::default, |rest| WaitingHosts::of(rest, wall, urls))
    }

    /// Why it ended.
    pub fn ended(&self) -> Option<Ended> {
        self.ending.why()
    }

    fn take_questions(&mut self) {
        for asked in self.questions.take_asked(self.config.head_only) {
            match asked {
                Asked::Index(message) => drop(self.index.try_send(message)),
                // Who hands something in as the crawl ends, or too much at once, is not answered.
                Asked::Take(message) if !self.ending.has_begun() && self.index.takes_more() => {
                    self.index.send(message);
                }
                Asked::Take(_) => {}
                Asked::Pause { id, paused } => {
                    let changed = self.pause(paused);
                    self.publish();
                    self.questions.answer(id, Reply::Paused { changed });
                }
                Asked::Set { id, config } => {
                    self.set(config);
                    self.questions.answer(id, Reply::Set);
                }
            }
        }
    }

    /// Other settings hold from now on, as far as they may change.
    fn set(&mut self, config: Arc<Config>) {
        self.config.renew(&config);
        self.ending.set_limits(&self.config, self.now);
        let rules = Arc::new(ShardRules::of(&config));
        self.shards.iter_mut().for_each(|side| side.lane.deal(ToShard::Rules(rules.clone())));
        self.rules = Some(rules);
        self.index.send(ToIndex::Rules(config.clone()));
        self.live.set(config);
    }

    /// No new requests go out, or all may go on. What is open ends as ever, and every pause of a host keeps counting.
    /// Whether it was otherwise before.
    fn pause(&mut self, paused: bool) -> bool {
        if !self.ending.pause(paused) {
            return false;
        }
        // What was said before it may be long ago when it ends.
        self.ending.linger_mut().disturbed(self.now);
        self.shards.iter_mut().for_each(|side| side.lane.deal(ToShard::Pause(paused)));
        let (event, text) = match paused {
            true => (Event::Paused, "paused: no new requests go out until nephila resume"),
            false => (Event::Resumed, "resumed"),
        };
        self.health.tell(event, Vec::new(), text);
        true
    }

    fn drain(&mut self) {
        for side in &mut self.shards {
            side.lane.retain(|message| !matches!(message, ToShard::Work { .. }));
            side.lane.deal(ToShard::Drain);
            side.lane.flush();
        }
    }

    /// Something waits for a thread that may wait for a disk.
    fn waits(&self) -> bool {
        self.index.is_behind() || !self.log.is_empty() || self.waits_for_commit()
    }

    /// Lets go of what no other thread takes: it is found and fetched again by the next process, as after a kill.
    fn give_up(&mut self) {
        self.index.give_up();
        self.log.clear();
        self.shards.iter_mut().for_each(|side| side.lane.let_go_of_held());
    }

    fn publish(&self) {
        self.counters.set(Counter::Pages, self.counts.pages);
        self.counters.set(Counter::Success, self.counts.success);
        self.counters.set(Counter::Done, self.counts.done);
        self.counters.set(Counter::Started, 1);
        self.counters.set(Counter::Draining, u64::from(self.ending.has_begun()));
        self.counters.set(Counter::Paused, u64::from(self.ending.is_paused()));
    }
}

impl Actor for Scheduler {
    fn turn(&mut self, now: Now) -> Turned {
        self.now = now;
        self.take_questions();
        let mut busy = self.index.flush();
        busy |= self.take_names();
        busy |= self.take_answers();
        for shard in 0..self.shards.len() {
            busy |= self.receive(shard);
            busy |= self.count_durable(shard);
            busy |= self.shards[shard].lane.flush();
        }
        self.ask();
        self.look_for_rest();
        self.publish();
        self.log.hurry();
        self.log.hand_on(now);
        let left = Left {
            pages: self.counts.pages,
            is_nothing: self.is_complete(),
            rests: self.ending.linger().rests().is_some() && self.is_quiet(),
        };
        if self.ending.begin(&left, now) {
            self.drain();
        }
        if self.ending.has_begun() && self.shutdown.is_over(self.waits(), busy, now) {
            self.shutdown.tell_once(&self.health);
            self.give_up();
        }
        let all_drained = self.shards.iter().all(|side| side.lane.is_over());
        if self.ending.has_begun() && all_drained && !self.index.is_behind() && self.log.is_empty() {
            self.ending.take_fault().into_iter().for_each(|fault| self.health.fatal(NodeError::Names(fault)));
            return Turned::Finished;
        }
        match busy {
            true => Turned::Busy,
            false if self.health.is_fatal() => {
                self.shards.iter().for_each(|side| side.lane.wake());
                Turned::Finished
            }
            false => {
                let messages = self.counts.done - self.counts.done_before;
                self.counts.done_before = self.counts.done;
                Turned::Idle { messages }
            }
        }
    }

    fn has_messages(&self) -> bool {
        self.index.has_answers()
            || self.resolution.has_answers()
            || self.shards.iter().any(|side| side.lane.has_messages())
            || self.ending.is_asked_for()
            || self.questions.has_some()
    }
}
