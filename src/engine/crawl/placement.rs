//! Candidates get an address and go to the shard that owns it.

use crate::base::fingerprint;
use crate::doc_index::Outcome;
use crate::engine::crawl::address_owners::AddressOwners;
use crate::engine::crawl::messages::{HostWord, RobotsAnswer, ToIndex, ToShard};
use crate::engine::crawl::resolution::{NameState, Waiter};
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::names::{Addresses, Lookup};
use crate::limits::{ADDRESSES_PER_HOST_MAX, HOMES_MAX};
use crate::proto::lines::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::Errand;
use std::net::IpAddr;
use std::sync::Arc;

/// Where a host lives. It stays there for as long as its name resolves to that address among others: its pauses, its
/// robots rules and its connections are on that shard.
pub(crate) struct HostHome {
    ip: IpAddr,
    /// Further addresses that are of the same shard, as they were last dealt.
    others: Option<Arc<[IpAddr]>>,
    /// Documents at the shard.
    load: u32,
    /// It moves: these wait until its new shard knows how to treat it.
    moving: Option<Box<Moving>>,
}

struct Moving {
    from: usize,
    /// What its name resolved to.
    addresses: Vec<IpAddr>,
    waiting: Vec<Candidate>,
}

/// Robots rules that are asked for at another host than theirs.
pub(crate) struct OpenErrand {
    asker: usize,
    origin: Box<str>,
    /// The shard that asks.
    at: usize,
    errand: Errand,
}

impl Scheduler {
    pub(crate) fn resolve(&mut self, candidate: Candidate) {
        let name: Box<str> = candidate.url.host_bare().into();
        self.look_up(&name, Waiter::Candidate(candidate));
    }

    fn look_up(&mut self, name: &str, waiter: Waiter) {
        match self.batch.get_mut(name) {
            Some(NameState::Known(addresses)) => {
                let addresses = addresses.clone();
                self.found(waiter, Some(&addresses));
            }
            Some(NameState::Asked(waiters)) => waiters.push(waiter),
            Some(NameState::Unknown) => self.found(waiter, None),
            None => match self.names.lookup(name) {
                Lookup::Known(addresses) => {
                    self.batch.resolved(name.into(), Some(addresses.clone()));
                    self.found(waiter, Some(&addresses));
                }
                Lookup::Unknown => {
                    self.batch.resolved(name.into(), None);
                    self.found(waiter, None);
                }
                Lookup::Asked => self.batch.asked(name, waiter),
                Lookup::Later => match waiter {
                    Waiter::Candidate(candidate) => self.tell(ToIndex::PutBack(candidate.doc_id)),
                    Waiter::Errand { .. } => self.found(waiter, None),
                },
            },
        }
    }

    pub(crate) fn take_names(&mut self) -> bool {
        let mut busy = false;
        while let Some((name, addresses)) = self.names.answer() {
            busy = true;
            for waiter in self.batch.resolved(name, addresses.clone()) {
                self.found(waiter, addresses.as_ref());
            }
        }
        busy
    }

    /// A name has resolved, or not.
    fn found(&mut self, waiter: Waiter, addresses: Option<&Addresses>) {
        match (waiter, addresses) {
            (Waiter::Candidate(candidate), Some(addresses)) => self.deal(candidate, addresses),
            (Waiter::Candidate(candidate), None) => self.refuse(&candidate, None, ResultCode::DnsFailed),
            (Waiter::Errand { asker, origin, url }, Some(addresses)) => {
                let allowed = self.allowed(&url, addresses);
                match allowed.is_empty() {
                    false => self.deal_errand(asker, origin, url, &allowed),
                    true => self.answer_errand(asker, origin, Box::new(RobotsAnswer::FAILED)),
                }
            }
            (Waiter::Errand { asker, origin, .. }, None) => {
                self.answer_errand(asker, origin, Box::new(RobotsAnswer::FAILED));
            }
        }
    }

    /// The addresses that may be connected to.
    fn allowed(&self, url: &CrawlUrl, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let allowed = |ip: &&IpAddr| self.config.guard.check(**ip, url.port()).is_ok();
        addresses.iter().filter(allowed).copied().collect()
    }

    /// Our own rules keep a URL from every spider.
    fn refuse(&mut self, candidate: &Candidate, ip: Option<IpAddr>, result: ResultCode) {
        let now = self.now();
        self.logger.refused(&mut self.log, candidate, ip, result, now);
        self.conclude(Outcome::new(candidate.doc_id, result, self.unix_s()), false);
    }

    /// Deals a resolved candidate to the shard that owns its address. That address goes along, and others of that
    /// shard, so that what was checked here is what the shard connects to.
    fn deal(&mut self, candidate: Candidate, addresses: &[IpAddr]) {
        if self.draining {
            self.tell(ToIndex::PutBack(candidate.doc_id));
            return;
        }
        let allowed = self.allowed(&candidate.url, addresses);
        if allowed.is_empty() {
            self.refuse(&candidate, addresses.first().copied(), ResultCode::BlockedAddress);
            return;
        }
        let host = fingerprint(candidate.url.origin().as_bytes());
        let (owners, home) = self.home(host, &allowed);
        if let Some(moving) = &mut home.moving {
            moving.waiting.push(candidate);
            return;
        }
        if home.load == 0 && !allowed.contains(&home.ip) {
            let from = owners.shard_of(home.ip);
            home.ip = owners.settle_first(&allowed);
            if from != owners.shard_of(home.ip) {
                let origin: Box<str> = candidate.url.origin().into();
                let moving = Moving { from, addresses: allowed, waiting: vec![candidate] };
                home.moving = Some(Box::new(moving));
                self.shards[from].dealt.push_back(ToShard::About(HostWord::HandOver { origin }));
                return;
            }
        }
        let (ip, others) = (home.ip, home.beside(owners, &allowed));
        let shard = owners.shard_of(ip);
        home.load += 1;
        if home.load as usize >= self.config.queue_len {
            Arc::make_mut(&mut self.reject).insert(host);
        }
        self.batch.shares(ip, &candidate.url);
        let side = &mut self.shards[shard];
        side.open.insert(candidate.doc_id, host);
        side.dealt.push_back(ToShard::Work { epoch: side.epoch, job: Job { candidate, ip, others } });
    }

    /// Where a host lives. One that lives nowhere yet comes to the shard of one of its addresses.
    fn home(&mut self, host: u64, allowed: &[IpAddr]) -> (&mut AddressOwners, &mut HostHome) {
        if self.homes.len() >= HOMES_MAX && !self.homes.contains_key(&host) {
            self.homes.retain(|_, home| home.load > 0 || home.moving.is_some());
        }
        let owners = &mut self.owners;
        let home = self.homes.entry(host).or_insert_with(|| {
            let ip = owners.settle_first(allowed);
            HostHome { ip, others: None, load: 0, moving: None }
        });
        (owners, home)
    }

    /// The old shard of a host has said what must be known of it.
    pub(crate) fn host_moves(&mut self, origin: &str, lines: String) {
        let host = fingerprint(origin.as_bytes());
        let Some(home) = self.homes.get_mut(&host) else {
            return;
        };
        let Some(moving) = home.moving.take() else {
            return;
        };
        let to = self.owners.shard_of(home.ip);
        self.shards[to].dealt.push_back(ToShard::About(HostWord::Remember { origin: origin.into(), lines }));
        for candidate in moving.waiting {
            self.deal(candidate, &moving.addresses);
        }
    }

    /// Candidates that wait for their host to move.
    pub(crate) fn moving(&self) -> u64 {
        self.homes
            .values()
            .filter_map(|home| home.moving.as_ref())
            .map(|moving| moving.waiting.len() as u64)
            .sum()
    }

    /// A host's queue has one document fewer; at half it is taken off the reject list.
    pub(crate) fn unload(&mut self, host: u64) {
        let Some(home) = self.homes.get_mut(&host) else {
            return;
        };
        home.load = home.load.saturating_sub(1);
        if (home.load as usize) <= self.config.queue_len / 2 && self.reject.contains(&host) {
            Arc::make_mut(&mut self.reject).remove(&host);
            self.ask_again();
        }
    }

    /// The robots rules of a shard's host are on another host.
    pub(crate) fn send_errand(&mut self, asker: usize, origin: Box<str>, url: CrawlUrl) {
        // A shard that died may have sent it already; the answer is for the one that took its place.
        let same = |open: &OpenErrand| open.asker == asker && open.origin == origin && open.errand.url == url;
        if self.errands.values().any(same) {
            return;
        }
        let name: Box<str> = url.host_bare().into();
        self.look_up(&name, Waiter::Errand { asker, origin, url });
    }

    fn deal_errand(&mut self, asker: usize, origin: Box<str>, url: CrawlUrl, allowed: &[IpAddr]) {
        // A host that has a home is asked there: its pauses are known there. One that had none has one from then on.
        let (owners, home) = self.home(fingerprint(url.origin().as_bytes()), allowed);
        let (ip, others) = (home.ip, home.beside(owners, allowed));
        let at = owners.shard_of(ip);
        self.next_errand += 1;
        let id = self.next_errand;
        let errand = Errand { id, url, ip, others };
        self.errands.insert(id, OpenErrand { asker, origin, at, errand: errand.clone() });
        let side = &mut self.shards[at];
        side.dealt.push_back(ToShard::Errand { epoch: side.epoch, errand });
    }

    pub(crate) fn errand_done(&mut self, id: u64, answer: Box<RobotsAnswer>) {
        if let Some(errand) = self.errands.remove(&id) {
            self.answer_errand(errand.asker, errand.origin, answer);
        }
    }

    fn answer_errand(&mut self, asker: usize, origin: Box<str>, answer: Box<RobotsAnswer>) {
        self.shards[asker].dealt.push_back(ToShard::About(HostWord::RobotsElsewhere { origin, answer }));
    }

    /// A shard died: what it was to ask for others is asked by the next, and what it was to hand over is gone.
    pub(crate) fn errands_lost(&mut self, shard: usize) {
        let side = &mut self.shards[shard];
        let lost = self.errands.values().filter(|errand| errand.at == shard);
        let mut lost: Vec<Errand> = lost.map(|errand| errand.errand.clone()).collect();
        lost.sort_unstable_by_key(|errand| errand.id);
        for errand in lost {
            side.dealt.push_back(ToShard::Errand { epoch: side.epoch, errand });
        }
        let left = |home: &HostHome| home.moving.as_ref().is_some_and(|moving| moving.from == shard);
        let mut stranded: Vec<u64> =
            self.homes.iter().filter(|(_, home)| left(home)).map(|(&host, _)| host).collect();
        stranded.sort_unstable();
        for host in stranded {
            let Some(home) = self.homes.get_mut(&host) else { continue };
            let Some(moving) = home.moving.take() else { continue };
            for candidate in moving.waiting {
                self.deal(candidate, &moving.addresses);
            }
        }
    }
}

impl HostHome {
    /// The further addresses of a host that may be tried from where it lives.
    fn beside(&mut self, owners: &mut AddressOwners, allowed: &[IpAddr]) -> Option<Arc<[IpAddr]>> {
        if allowed == [self.ip] {
            self.others = None;
            return None;
        }
        let shard = owners.shard_of(self.ip);
        let others = allowed.iter().copied().filter(|&ip| ip != self.ip).take(ADDRESSES_PER_HOST_MAX - 1);
        let others: Vec<IpAddr> = others.filter(|&ip| owners.settle(ip, shard)).collect();
        if self.others.as_deref().unwrap_or_default() != others {
            self.others = (!others.is_empty()).then(|| others.into());
        }
        self.others.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Now, Wall};
    use crate::config::Config;
    use crate::doc_index::DocIndex;
    use crate::engine::crawl::address_owners::shard_of;
    use crate::engine::crawl::index_actor::{IndexActor, IndexPort, ProviderRules};
    use crate::engine::crawl::messages::{Done, FromShard, RobotsAnswer, ToShard};
    use crate::engine::crawl::scheduler::{Scheduler, SchedulerConfig, SchedulerLog, ShardPort};
    use crate::engine::names::{HostsFile, Names};
    use crate::engine::runtime::counters::SchedulerStats;
    use crate::engine::runtime::log_writer::LogWriter;
    use crate::rings::{Doorbell, Receiver, Sender, ring};
    use crate::store_server::{Keeper, Medium, StoreRules};

    /// A scheduler with two shards that the test plays.
    struct Stage {
        scheduler: Scheduler,
        desk: IndexActor,
        shards: Vec<(Receiver<ToShard>, Sender<FromShard>)>,
        _scribe: LogWriter,
    }

    fn stage(hosts: &str) -> Stage {
        let silent = || Arc::new(Doorbell::new(|| ()));
        let wall = Wall { unix_ms_at_zero: 0 };
        let (scribe, port) = LogWriter::in_memory(&Config::default(), wall);
        let keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 2);
        let (desk, index): (IndexActor, IndexPort) = IndexActor::new(
            DocIndex::default(),
            ProviderRules::plain(Arc::new(|| (Now::ZERO, 1))),
            silent(),
            silent(),
        );
        let mut ports = Vec::new();
        let mut shards = Vec::new();
        for number in 0..2 {
            let (work, work_out) = ring(64);
            let (done_in, done) = ring(64);
            ports.push(ShardPort { work, done, bell: silent(), share: keeper.share(number) });
            shards.push((work_out, done_in));
        }
        let scribe_end = SchedulerLog { port, wall, clock: Arc::new(|| Now::ZERO) };
        let names = Names::table(HostsFile::parse(hosts));
        let scheduler = Scheduler::new(
            SchedulerConfig::small(),
            ports,
            index,
            names,
            scribe_end,
            Arc::default(),
            Arc::new(SchedulerStats::default()),
        );
        Stage { scheduler, desk, shards, _scribe: scribe }
    }

    impl Stage {
        fn seed(&mut self, url: &str) {
            self.scheduler.seed(CrawlUrl::parse(url).unwrap());
            self.settle();
        }

        fn settle(&mut self) {
            for _ in 0..5 {
                self.scheduler.turn();
                self.desk.turn().unwrap();
            }
        }

        fn say(&mut self, shard: usize, word: FromShard) {
            assert!(self.shards[shard].1.push(word).is_ok());
            self.settle();
        }

        fn work(&mut self, shard: usize) -> Job {
            match self.shards[shard].0.pop() {
                Some(ToShard::Work { job, .. }) => job,
                _ => panic!("no work for shard {shard}"),
            }
        }

        fn is_idle(&self) -> bool {
            self.shards.iter().all(|(work, _)| work.is_empty())
        }

        fn done(&mut self, shard: usize, job: &Job) {
            let doc_id = job.candidate.doc_id;
            let outcome = Outcome::new(doc_id, ResultCode::Ok, 1);
            let done = Done { outcome, sequence: None, fetched: true, found: None };
            self.say(shard, FromShard::Done(done));
        }
    }

    /// Two addresses that live on different shards.
    fn two_addresses() -> [IpAddr; 2] {
        let of = |shard: usize| {
            (1..=255u8).map(|n| IpAddr::from([8, 8, 8, n])).find(|ip| shard_of(*ip, 2) == shard)
        };
        [of(0).unwrap(), of(1).unwrap()]
    }

    #[test]
    fn a_host_that_moves_to_another_shard_is_known_there_before_it_is_asked() {
        let [first, second] = two_addresses();
        let mut stage = stage(&format!("{first} a.test\n{second} b.test"));
        stage.seed("http://b.test/");
        stage.work(1);
        stage.seed("http://a.test/1");
        let job = stage.work(0);
        assert_eq!(job.ip, first);
        // While it has work at its old address, it stays there. The new one is at home elsewhere.
        stage.scheduler.names = Names::table(HostsFile::parse(&format!("{second} a.test")));
        stage.seed("http://a.test/2");
        let other = stage.work(0);
        assert_eq!((other.ip, &other.others), (first, &None));
        stage.done(0, &job);
        stage.done(0, &other);
        // Then it moves, by way of its old shard.
        stage.seed("http://a.test/3");
        let Some(ToShard::About(HostWord::HandOver { origin })) = stage.shards[0].0.pop() else {
            panic!("a hand-over first")
        };
        assert!(stage.is_idle(), "and nothing before that");
        stage.seed("http://a.test/4");
        assert!(stage.is_idle());
        stage.say(0, FromShard::HandedOver { origin: origin.clone(), lines: "pace …".to_string() });
        let Some(ToShard::About(HostWord::Remember { origin: whose, lines })) = stage.shards[1].0.pop()
        else {
            panic!("memory")
        };
        assert_eq!((&whose, lines.as_str()), (&origin, "pace …"));
        assert_eq!((stage.work(1).ip, stage.work(1).ip), (second, second));
    }

    #[test]
    fn a_host_stays_at_one_of_its_addresses_while_its_name_has_it() {
        let [first, second] = two_addresses();
        let mut stage = stage(&format!("{first} a.test"));
        stage.seed("http://a.test/1");
        let job = stage.work(0);
        stage.done(0, &job);
        stage.scheduler.names = Names::table(HostsFile::parse(&format!("{second} a.test\n{first} a.test")));
        stage.seed("http://a.test/2");
        assert_eq!(stage.work(0).ip, first, "though the other comes first by now");
    }

    #[test]
    fn all_addresses_of_a_host_come_to_one_shard_and_whoever_shares_them_follows() {
        let [first, second] = two_addresses();
        let inside = IpAddr::from([10, 0, 0, 1]);
        let mut stage = stage(&format!(
            "{second} a.test b.test\n{inside} a.test\n{first} a.test c.test d.test\n{second} d.test"
        ));
        // Nobody is known: the first address decides, the other joins it, and what is not allowed is left out.
        stage.seed("http://a.test/");
        let job = stage.work(1);
        assert_eq!((job.ip, job.others.as_deref()), (second, Some(&[first][..])));
        stage.seed("http://b.test/");
        assert_eq!(stage.work(1).ip, second);
        stage.seed("http://c.test/");
        let job = stage.work(1);
        assert_eq!((job.ip, job.others), (first, None), "though by itself it would be on the other shard");
        // An errand has them as well, and goes to the same place.
        let url = CrawlUrl::parse("http://d.test/robots.txt").unwrap();
        stage.say(0, FromShard::Errand { origin: "http://x.test".into(), url });
        let Some(ToShard::Errand { errand, .. }) = stage.shards[1].0.pop() else { panic!("an errand") };
        assert_eq!((errand.ip, errand.others.as_deref()), (first, Some(&[second][..])));
    }

    #[test]
    fn an_address_that_is_at_home_elsewhere_is_no_other_way() {
        let [first, second] = two_addresses();
        let mut stage = stage(&format!("{first} a.test\n{second} b.test\n{first} c.test\n{second} c.test"));
        stage.seed("http://a.test/");
        stage.seed("http://b.test/");
        assert_eq!((stage.work(0).ip, stage.work(1).ip), (first, second));
        stage.seed("http://c.test/");
        let job = stage.work(0);
        assert_eq!((job.ip, job.others), (first, None));
    }

    #[test]
    fn an_errand_goes_to_the_shard_of_its_host_and_its_answer_back() {
        let [first, second] = two_addresses();
        let mut stage = stage(&format!("{first} a.test\n{second} b.test"));
        let errand = |host: &str| FromShard::Errand {
            origin: "http://a.test".into(),
            url: CrawlUrl::parse(&format!("http://{host}/robots.txt")).unwrap(),
        };
        stage.say(0, errand("b.test"));
        let Some(ToShard::Errand { errand: sent, .. }) = stage.shards[1].0.pop() else { panic!("an errand") };
        assert_eq!(sent.ip, second);
        // The asker dies and asks again: one request is enough.
        stage.say(0, errand("b.test"));
        assert!(stage.is_idle());
        // The other shard dies with it: it is asked again there.
        stage.say(1, FromShard::Restarted { epoch: 1, suspect: None });
        let Some(ToShard::Errand { epoch: 1, errand: again }) = stage.shards[1].0.pop() else {
            panic!("again")
        };
        assert_eq!(again, sent);
        let answer = RobotsAnswer { status: 404, body: Vec::new(), target: None };
        stage.say(1, FromShard::ErrandDone { id: sent.id, answer: Box::new(answer) });
        let Some(ToShard::About(HostWord::RobotsElsewhere { origin, answer })) = stage.shards[0].0.pop()
        else {
            panic!("answer")
        };
        assert_eq!((&*origin, answer.status), ("http://a.test", 404));
        // A name that does not resolve is out of reach at once.
        stage.say(0, errand("nowhere.test"));
        let Some(ToShard::About(HostWord::RobotsElsewhere { answer, .. })) = stage.shards[0].0.pop() else {
            panic!("answer")
        };
        assert_eq!(answer.status, 0);
    }
}
