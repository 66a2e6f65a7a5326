//! A scheduler between a doc index and two shards that the test plays.

use crate::base::{AddressGuard, Now, Wall};
use crate::config::Config;
use crate::doc_index::{DocIndex, Outcome};
use crate::engine::crawl::address_owners::shard_of;
use crate::engine::crawl::assembly::Dealer;
use crate::engine::crawl::index_actor::IndexActor;
use crate::engine::crawl::messages::{Done, FromShard, HostWord, RobotsAnswer, ToIndex, ToShard};
use crate::engine::crawl::provider::{Provider, ProviderRules};
use crate::engine::crawl::scheduler::Scheduler;
use crate::engine::crawl::scheduler_setup::SchedulerConfig;
use crate::engine::inspect::handed::Handed;
use crate::engine::inspect::questions::{Ask, OPEN_MAX, Reply};
use crate::engine::names::scripted::scripted;
use crate::engine::names::{HostsFile, Names};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::health::Health;
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::{LogMedium, MemoryFiles};
use crate::engine::runtime::shard_lane::LaneEnd;
use crate::engine::runtime::wiring::Wiring;
use crate::limits::DRAIN_US;
use crate::proto::dns::made_up::MadeUp;
use crate::proto::job::Job;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Shards that the test plays.
struct Stage {
    scheduler: Scheduler,
    index: IndexActor,
    shards: Vec<LaneEnd<ToShard, FromShard>>,
    health: Arc<Health>,
    stop: Arc<AtomicBool>,
    /// Without it the ring to the log writer would be closed.
    _wiring: Wiring,
}

fn stage(hosts: &str) -> Stage {
    stage_that(true, hosts)
}

fn stage_that(wait: bool, hosts: &str) -> Stage {
    let wall = Wall { unix_ms_at_zero: 0 };
    let mut wiring =
        Wiring::open(&Config::default(), &LogMedium::Memory(MemoryFiles::default()), wall).unwrap();
    let (lanes, shards) = (0..2)
        .map(|_| {
            let (lane, wire) = wiring.shard(Arc::new(()));
            (lane, wire.lane)
        })
        .unzip();
    let config = SchedulerConfig {
        queue_len: 8,
        hosts_per_ip_max: 8,
        pages_max: None,
        seconds_max: None,
        guard: AddressGuard::default(),
        head_only: false,
        wait,
        linger_us: 0,
    };
    let provider = Provider::new(DocIndex::default(), ProviderRules::plain());
    let live = LiveConfig::new(&Config::default());
    let dealer = Dealer { provider, seeds: Vec::new(), config, live };
    let names = |_, _| Ok(Names::table(HostsFile::parse(hosts)));
    let (scheduler, index) = dealer.join(&mut wiring, lanes, names).unwrap();
    let (health, stop) = (wiring.health.clone(), wiring.stop.clone());
    Stage { scheduler: scheduler.actor, index: index.actor, shards, health, stop, _wiring: wiring }
}

impl Stage {
    fn seed(&mut self, url: &str) {
        self.scheduler.seeds(vec![CrawlUrl::parse(url).unwrap()]);
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..5 {
            self.scheduler.turn(Now::ZERO);
            self.index.turn(Now::ZERO);
        }
    }

    fn say(&mut self, shard: usize, word: FromShard) {
        assert!(self.shards[shard].replies.push(word).is_ok());
        self.settle();
    }

    fn work(&mut self, shard: usize) -> Job {
        match self.shards[shard].work.pop() {
            Some(ToShard::Work { job, .. }) => job,
            _ => panic!("no work for shard {shard}"),
        }
    }

    fn is_idle(&self) -> bool {
        self.shards.iter().all(|shard| shard.work.is_empty())
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
    let of =
        |shard: usize| (1..=255u8).map(|n| IpAddr::from([8, 8, 8, n])).find(|ip| shard_of(*ip, 2) == shard);
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
    stage.scheduler.set_names(Names::table(HostsFile::parse(&format!("{second} a.test"))));
    stage.seed("http://a.test/2");
    let other = stage.work(0);
    assert_eq!((other.ip, &other.others), (first, &None));
    stage.done(0, &job);
    stage.done(0, &other);
    // Then it moves, by way of its old shard.
    stage.seed("http://a.test/3");
    let Some(ToShard::About(HostWord::HandOver { origin })) = stage.shards[0].work.pop() else {
        panic!("a hand-over first")
    };
    assert!(stage.is_idle(), "and nothing before that");
    stage.seed("http://a.test/4");
    assert!(stage.is_idle());
    stage.say(0, FromShard::HandedOver { origin: origin.clone(), lines: "pace …".to_string() });
    let Some(ToShard::About(HostWord::Remember { origin: whose, lines })) = stage.shards[1].work.pop() else {
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
    stage.scheduler.set_names(Names::table(HostsFile::parse(&format!("{second} a.test\n{first} a.test"))));
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
    // A request has them as well, and goes to the same place.
    let url = CrawlUrl::parse("http://d.test/robots.txt").unwrap();
    stage.say(0, FromShard::RemoteRobots { origin: "http://x.test".into(), url });
    let Some(ToShard::RemoteRobots { request, .. }) = stage.shards[1].work.pop() else { panic!("a request") };
    assert_eq!((request.ip, request.others.as_deref()), (first, Some(&[second][..])));
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
fn a_request_for_robots_goes_to_the_shard_of_its_host_and_its_answer_back() {
    let [first, second] = two_addresses();
    let mut stage = stage(&format!("{first} a.test\n{second} b.test"));
    let request = |host: &str| FromShard::RemoteRobots {
        origin: "http://a.test".into(),
        url: CrawlUrl::parse(&format!("http://{host}/robots.txt")).unwrap(),
    };
    stage.say(0, request("b.test"));
    let Some(ToShard::RemoteRobots { request: sent, .. }) = stage.shards[1].work.pop() else {
        panic!("a request")
    };
    assert_eq!(sent.ip, second);
    // The asker dies and asks again: one request is enough.
    stage.say(0, request("b.test"));
    assert!(stage.is_idle());
    // The other shard dies with it: it is asked again there.
    stage.say(1, FromShard::Restarted { epoch: 1, suspect: None });
    assert!(matches!(stage.shards[1].work.pop(), Some(ToShard::Pause(false))));
    let Some(ToShard::RemoteRobots { epoch: 1, request: again }) = stage.shards[1].work.pop() else {
        panic!("again")
    };
    assert_eq!(again, sent);
    let answer = RobotsAnswer { status: 404, body: Vec::new(), target: None };
    stage.say(1, FromShard::RemoteRobotsDone { id: sent.id, answer: Box::new(answer) });
    let Some(ToShard::About(HostWord::RobotsElsewhere { origin, answer })) = stage.shards[0].work.pop()
    else {
        panic!("answer")
    };
    assert_eq!((&*origin, answer.status), ("http://a.test", 404));
    // A name that does not resolve is out of reach at once.
    stage.say(0, request("nowhere.test"));
    let Some(ToShard::About(HostWord::RobotsElsewhere { answer, .. })) = stage.shards[0].work.pop() else {
        panic!("answer")
    };
    assert_eq!(answer.status, 0);
}

#[test]
fn a_pause_reaches_every_shard_those_made_anew_too_and_nothing_is_dealt_in_it() {
    let [first, _] = two_addresses();
    let mut stage = stage(&format!("{first} a.test"));
    let questions = stage.scheduler.questions();
    let is_told = |stage: &mut Stage, paused: bool| {
        stage.settle();
        let shards = stage.shards.iter();
        shards
            .map(|shard| shard.work.pop())
            .all(|word| matches!(word, Some(ToShard::Pause(to)) if to == paused))
    };
    questions.ask(Ask::Pause(true), drop);
    assert!(is_told(&mut stage, true));
    questions.ask(Ask::Pause(true), drop);
    stage.seed("http://a.test/");
    assert!(stage.is_idle(), "said once, and nothing is dealt");
    stage.say(1, FromShard::Restarted { epoch: 1, suspect: None });
    assert!(matches!(stage.shards[1].work.pop(), Some(ToShard::Pause(true))));
    questions.ask(Ask::Pause(false), drop);
    assert!(is_told(&mut stage, false));
    assert_eq!(stage.work(0).candidate.url.as_str(), "http://a.test/");
    assert_eq!(stage.health.notices().take().notices.len(), 2);
}

/// The index takes no messages, its ring is full, and the shard has more to say than the end.
#[test]
fn an_index_that_takes_nothing_keeps_nobody_from_stopping() {
    let mut stage = stage("");
    while stage.scheduler.fill_index_ring(ToIndex::PutBack(1)) {}
    stage.scheduler.seeds(Vec::new());
    // Written, and not durable; a crawl that goes on waits for as long as it takes.
    let outcome = Outcome::new(3, ResultCode::Ok, 1);
    let done = Done { outcome, sequence: Some(9), fetched: true, found: None };
    assert!(stage.shards[0].replies.push(FromShard::Done(done)).is_ok());
    for shard in &stage.shards {
        assert!(shard.replies.push(FromShard::Drained).is_ok());
    }
    let turn = |scheduler: &mut Scheduler, at_us| {
        (0..5).any(|_| scheduler.turn(Now::from_us(at_us)) == Turned::Finished)
    };
    let scheduler = &mut stage.scheduler;
    assert!(!turn(scheduler, 0) && !turn(scheduler, 100 * DRAIN_US));
    stage.stop.store(true, Ordering::Relaxed);
    let stopped_us = 101 * DRAIN_US;
    assert!(!turn(scheduler, stopped_us) && !turn(scheduler, stopped_us + DRAIN_US - 1));
    assert!(turn(scheduler, stopped_us + DRAIN_US));
    assert!(scheduler.has_given_up());
    assert_eq!(stage.health.notices().take().notices.len(), 1, "told once");
    // There is room again, but what came after a gap is not told.
    scheduler.seeds(Vec::new());
    assert!(turn(scheduler, stopped_us + DRAIN_US), "nothing waits to be told");
}

#[test]
fn what_is_handed_in_while_the_index_is_stuck_has_a_bound() {
    let mut stage = stage("");
    while stage.scheduler.fill_index_ring(ToIndex::PutBack(1)) {}
    let questions = stage.scheduler.questions();
    let hand_in = |stage: &mut Stage, urls: std::ops::Range<usize>| {
        for url in urls {
            let handed = Handed::read(&format!("http://a.test/{url}"), false).unwrap();
            questions.ask(Ask::Take(Box::new(handed)), drop);
            stage.scheduler.turn(Now::ZERO);
        }
    };
    let known = |stage: &mut Stage| {
        (0..1_000).for_each(|_| stage.settle());
        let (answer, answered) = std::sync::mpsc::channel();
        stage.scheduler.questions().ask(Ask::Count, move |reply| drop(answer.send(reply)));
        (0..1_000).for_each(|_| stage.settle());
        match answered.try_recv() {
            Ok(Reply::Counted(stats)) => stats.known as usize,
            other => panic!("{other:?}"),
        }
    };
    hand_in(&mut stage, 0..3 * OPEN_MAX);
    assert_eq!(known(&mut stage), OPEN_MAX, "the rest went without an answer");
    hand_in(&mut stage, 1_000..1_010);
    assert_eq!(known(&mut stage), OPEN_MAX + 10, "it takes more again");
}

/// Turns at a time of the scheduler until that is so.
fn turn_until(stage: &mut Stage, now: Now, is_so: impl Fn(&Stage) -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so(stage) {
        assert!(Instant::now() < until, "it is not so");
        stage.scheduler.turn(now);
        stage.index.turn(now);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_end_that_has_begun_does_not_fail_for_want_of_names() {
    let mut stage = stage_that(false, "");
    let count = Arc::new(AtomicU8::new(0));
    let counting = count.clone();
    stage.scheduler.set_names(scripted(move |_| {
        counting.fetch_add(1, Ordering::Relaxed);
        None
    }));
    stage.seed("http://mute.test/");
    turn_until(&mut stage, Now::ZERO, |_| count.load(Ordering::Relaxed) > 0);
    stage.stop.store(true, Ordering::Relaxed);
    stage.settle();
    assert!(stage.scheduler.ended().is_some());
    // Longer than the server is given, and what it is asked to show that it is there.
    let until = Instant::now() + Duration::from_secs(5);
    turn_until(&mut stage, Now::ZERO, |_| Instant::now() > until);
    for shard in 0..2 {
        stage.say(shard, FromShard::Drained);
    }
    assert!(!stage.health.is_fatal(), "{:?}", stage.health.take());
}

#[test]
fn a_wait_for_names_is_over_when_servers_tell_again() {
    let mut stage = stage("");
    let rcode = Arc::new(AtomicU8::new(2));
    let says = rcode.clone();
    stage.scheduler.set_names(scripted(move |heard| {
        let rcode = says.load(Ordering::Relaxed);
        Some(heard.answer(&MadeUp { rcode, soa: Some((9, 9)), ..MadeUp::default() }))
    }));
    stage.seed("http://a.test/");
    turn_until(&mut stage, Now::ZERO, |stage| stage.health.waiting_for().is_some());
    // No name resolves, but that is the names' own fault.
    rcode.store(3, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(5_100));
    let later = Now::ZERO.plus_ms(7_000);
    turn_until(&mut stage, later, |stage| stage.scheduler.documents_done() == 1);
    assert_eq!(stage.health.waiting_for(), None);
}
