use super::judge::Judge;
use super::plan::Plan;
use super::web::{MisbehavingWeb, PORT, addresses_of};
use crate::audit::{Intake, Overrides};
use crate::base::{AddressGuard, Now, Rng, Wall};
use crate::doc_index::DocIndex;
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    FromShard, HostsFile, IndexActor, LogWriter, LogWriterPort, Names, ProviderRules, Scheduler,
    SchedulerConfig, SchedulerLog, SchedulerState, SchedulerStats, Shard, ShardParts, ShardPort, ShardState,
    ShardStats, SpiderSetup, ToShard, scope_of, spider_config, url_server_config,
};
use crate::farm::{PageKind, Resource, Site, host_name};
use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::rings::{Doorbell, Receiver, Sender, ring};
use crate::spider::SpiderConfig;
use crate::store_server::{Keeper, Medium, ShardShare, StoreRules};
use crate::url_server::{Memory, SpillEvent};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a run came to, for whoever counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimReport {
    pub requests: u64,
    pub documents: u64,
    pub success: u64,
    pub deaths: u64,
    pub slots_reused: u64,
    /// Requests that went to another address because nobody was at the first.
    pub moved_on: u64,
    pub virtual_seconds: u64,
    pub steps: u64,
}

/// A node and its world.
struct World {
    plan: Plan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<Judge>>,
    site: Rc<Site>,
    seeds: Vec<CrawlUrl>,
    shards: Vec<SimShard>,
    scheduler: Scheduler,
    desk: IndexActor,
    keeper: Keeper,
    scribe: LogWriter,
    /// What the scheduler's clock says.
    clock: Arc<AtomicU64>,
    keeper_at: Now,
    death_at: Now,
    rng: Rng,
    report: SimReport,
}

struct SimShard {
    shard: Shard<SimDriver>,
    state: ShardState,
    epoch: u32,
    seat: SimSeat,
}

/// What outlives a shard.
struct SimSeat {
    index: usize,
    share: Arc<ShardShare>,
    work: Receiver<ToShard>,
    done: Sender<FromShard>,
    stats: Arc<ShardStats>,
    scribe: LogWriterPort,
    spill: Receiver<SpillEvent>,
}

/// A crawl that takes longer than this has hung.
const VIRTUAL_SECONDS_MAX: u64 = 10 * 86_400;
/// So has one that works without time passing.
const STEPS_PER_INSTANT_MAX: u32 = 100_000;
const SEGMENT_BYTES: u64 = 1 << 20;
/// A crawl that waits for hours would otherwise be a long row of deaths.
const DEATHS_MAX: u64 = 20;
/// The day on which all of it happens.
const WALL: Wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };

/// Runs the crawl of one seed to its end. Panics with what went wrong; the seed replays it.
pub fn run(seed: u64) -> SimReport {
    let mut world = World::new(Plan::from_seed(seed));
    world.crawl();
    world.judge_the_end();
    world.report
}

impl World {
    fn new(plan: Plan) -> World {
        let site = Rc::new(Site::new(plan.site.clone()).expect("plans are valid"));
        let judge = Rc::new(RefCell::new(Judge::new(&plan)));
        let web = MisbehavingWeb::new(&plan, site.clone(), judge.clone());
        let net = SimNet::new(plan.seed, plan.shards, Box::new(web));
        let mut keeper =
            Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(SEGMENT_BYTES), plan.shards);
        keeper.prepare(0).expect("memory");
        let silent = || Arc::new(Doorbell::new(|| ()));
        let clock = Arc::new(AtomicU64::new(0));
        let desk_clock: Arc<dyn Fn() -> (Now, u32) + Send + Sync> = Arc::new({
            let clock = clock.clone();
            move || {
                let now = Now::from_us(clock.load(Ordering::Relaxed));
                (now, (WALL.unix_ms(now) / 1_000) as u32)
            }
        });
        let (desk, index_port) =
            IndexActor::new(DocIndex::default(), ProviderRules::plain(desk_clock), silent(), silent());
        let seeds: Vec<CrawlUrl> =
            vec![CrawlUrl::parse(&format!("http://{}:{PORT}/", host_name(0))).expect("a farm URL")];
        let mut rng = Rng::new(plan.seed ^ 0x5eed);
        let (mut scribe, scribe_port) = LogWriter::in_memory(&plan.config, WALL);
        let mut ports = Vec::new();
        let mut shards = Vec::new();
        for index in 0..plan.shards {
            let (work_out, work) = ring(WORK_RING_WORDS);
            let (done, done_in) = ring(DONE_RING_WORDS);
            let share = keeper.share(index);
            ports.push(ShardPort { work: work_out, done: done_in, bell: silent(), share: share.clone() });
            let stats = Arc::new(ShardStats::default());
            let spill = scribe.spill_events(silent());
            let seat = SimSeat { index, share, work, done, stats, scribe: scribe_port.clone(), spill };
            let memory = Memory::new(0);
            let shard = make_shard(&plan, &net, &seeds, 0, &seat, (memory, Now::ZERO));
            shards.push(SimShard { shard, state: ShardState::Waiting, epoch: 0, seat });
        }
        let mut hosts = String::new();
        for host in 0..plan.site.hosts {
            for ip in addresses_of(&plan, host) {
                let _ = writeln!(hosts, "{ip} {}", host_name(host));
            }
        }
        let scheduler_config = SchedulerConfig {
            queue_len: plan.config.url_server.queue_len,
            hosts_per_ip_max: plan.config.url_server.hosts_per_ip_max,
            pages_max: None,
            guard: AddressGuard::default(),
            head_only: false,
            wait: false,
        };
        let schedulers_scribe = SchedulerLog {
            port: scribe_port.clone(),
            wall: WALL,
            clock: Arc::new({
                let clock = clock.clone();
                move || Now::from_us(clock.load(Ordering::Relaxed))
            }),
        };
        let mut scheduler = Scheduler::new(
            scheduler_config,
            ports,
            index_port,
            Names::table(HostsFile::parse(&hosts)),
            schedulers_scribe,
            Arc::new(AtomicBool::new(false)),
            Arc::new(SchedulerStats::default()),
        );
        for seed in &seeds {
            scheduler.seed(seed.clone());
        }
        let death_at = next_death(&plan, &mut rng, Now::ZERO);
        World {
            plan,
            net,
            judge,
            site,
            seeds,
            shards,
            scheduler,
            desk,
            keeper,
            scribe,
            clock,
            keeper_at: Now::ZERO,
            death_at,
            rng,
            report: SimReport::default(),
        }
    }

    /// Lets everybody work in an order drawn anew each time, and time pass when nobody has anything to do.
    fn crawl(&mut self) {
        let mut steps_of_instant = 0;
        loop {
            self.report.steps += 1;
            let mut busy = false;
            let actors = self.shards.len() as u64 + 3;
            self.clock.store(self.net.borrow().now().us(), Ordering::Relaxed);
            let first = self.rng.below(actors);
            for actor in (0..actors).map(|n| ((n + first) % actors) as usize) {
                match actor {
                    0 => match self.scheduler.turn() {
                        SchedulerState::Finished => return,
                        state => busy |= state == SchedulerState::Busy,
                    },
                    1 => busy |= self.desk.turn().expect("memory does not fail") > 0,
                    2 => busy |= self.scribe.turn().expect("memory does not fail") > 0,
                    n => {
                        let slot = &mut self.shards[n - 3];
                        if slot.state != ShardState::Drained {
                            slot.state = slot.shard.turn();
                            slot.shard.wait(slot.state).expect("the simulated network does not fail");
                            busy |= slot.state == ShardState::Busy;
                            assert!(slot.shard.url_server().invariants());
                        }
                    }
                }
            }
            let now = self.net.borrow().now();
            if now >= self.keeper_at {
                busy |= self.keeper.turn(0).expect("memory does not fail");
                self.keeper_at = now.plus_ms(1 + self.rng.below(2 * self.plan.commit_ms));
            }
            if now >= self.death_at {
                self.let_a_shard_die(now);
                busy = true;
            }
            steps_of_instant += 1;
            assert!(steps_of_instant < STEPS_PER_INSTANT_MAX, "busy for ever at {now:?}");
            if !busy && !self.scheduler.has_words() && self.desk.is_idle() {
                let next = self.next_event(now);
                if next > now {
                    steps_of_instant = 0;
                }
                self.net.borrow_mut().advance(next);
                assert!(next.us() < VIRTUAL_SECONDS_MAX * 1_000_000, "the crawl does not end");
            }
        }
    }

    fn next_event(&self, now: Now) -> Now {
        let shards = self.shards.iter().filter(|slot| slot.state != ShardState::Drained);
        let due = shards.filter_map(|slot| slot.shard.next_due());
        // A commit is only worth waking for if somebody waits for it.
        let commit = self.scheduler.waits_for_commit().then_some(self.keeper_at);
        let next = due.chain(self.net.borrow().next_at()).chain(commit).chain([self.death_at]).min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(now).max(now.plus_us(10))
    }

    /// What a panic does: the shard and its driver are gone, and a new one takes the place.
    fn let_a_shard_die(&mut self, now: Now) {
        self.death_at = next_death(&self.plan, &mut self.rng, now);
        if self.report.deaths >= DEATHS_MAX {
            self.death_at = Now::NEVER;
        }
        let index = self.rng.below(self.shards.len() as u64) as usize;
        let slot = &mut self.shards[index];
        if slot.state == ShardState::Drained {
            return;
        }
        self.report.deaths += 1;
        self.report.slots_reused += slot.shard.url_server().stats().slots_reused;
        self.report.moved_on += slot.shard.url_server().stats().moved_on;
        slot.epoch += 1;
        self.net.borrow_mut().forget_driver(index);
        // What it had said is in the journal, from which the next one learns how hosts are to be treated.
        self.scribe.turn().expect("memory does not fail");
        let mut memory = Memory::new(self.plan.config.url_server.queue_count);
        assert_eq!(memory.read(self.scribe.written().1.as_bytes(), WALL, now), 0, "the journal reads");
        let rules = url_server_config(&self.plan.config, WALL, slot.epoch);
        let quiet_until = now.plus_us(rules.host.gap_us.max(rules.ip.gap_us));
        let past = (memory, quiet_until);
        slot.shard = make_shard(&self.plan, &self.net, &self.seeds, slot.epoch, &slot.seat, past);
        slot.state = ShardState::Busy;
        let word = FromShard::Restarted { epoch: slot.epoch, suspect: None };
        assert!(slot.seat.done.push(word).is_ok(), "the ring has room in a small crawl");
    }

    /// The crawl log proves that every host and address was treated as it must be.
    fn audit(&mut self) {
        self.scribe.turn().expect("memory does not fail");
        let mut intake = Intake::new(Overrides::default());
        intake.open_file("the crawl log");
        let (log, _) = self.scribe.written();
        log.split_inclusive(|&byte| byte == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
        let report = intake.judge();
        let first = report.violations.first();
        assert!(report.violations.is_empty(), "{} violations, the first {first:?}", report.violations.len());
    }

    /// Nothing was lost: every URL has been answered for, and so has every URL that a stored page names.
    fn judge_the_end(&mut self) {
        self.audit();
        let index = self.desk.index();
        let stats = index.stats();
        assert_eq!((stats.pending, stats.fetching), (0, 0), "URLs were left over");
        let mut done: HashMap<(u32, Resource), ResultCode> = HashMap::new();
        for doc_id in 1..index.next_doc() {
            let found = index.document(doc_id).expect("memory does not fail").expect("a document");
            let url = CrawlUrl::from_normal(&found.discovered.url).expect("in normal form");
            let Some(result) = found.row.and_then(|row| row.result) else { panic!("{url} has no answer") };
            let host = url.host().strip_prefix('h').and_then(|rest| rest.split('.').next()?.parse().ok());
            let host: u32 = host.unwrap_or_else(|| panic!("{url} is not of the farm"));
            done.insert((host, self.site.resource(url.path_and_query().as_bytes())), result);
        }
        for (&(host, resource), &result) in &done {
            let Resource::Page(page) = resource else { continue };
            self.report.success += u64::from(result.is_success());
            if result == ResultCode::Ok {
                assert!(matches!(self.site.kind(host, page), PageKind::Document | PageKind::Slow));
                for child in self.site.children(page) {
                    assert!(
                        done.contains_key(&(host, Resource::Page(child))),
                        "page {child} of host {host} is lost"
                    );
                }
            }
            if let (ResultCode::Redirect, PageKind::Redirect { to }) = (result, self.site.kind(host, page)) {
                assert!(done.contains_key(&(host, Resource::Page(to))), "the target of page {page} is lost");
            }
        }
        let denied = |resource: &Resource| matches!(resource, Resource::Denied(_));
        for ((host, resource), result) in &done {
            if denied(resource) {
                let refused = matches!(result, ResultCode::RobotsDenied | ResultCode::HostSetAside);
                assert!(refused, "{result} of a page of host {host} that robots.txt denies");
            }
        }
        assert_eq!(self.scheduler.documents_done(), stats.known, "each document is counted once");
        assert_eq!(stats.done() + stats.waiting, stats.known);
        self.report.documents = stats.known;
        self.report.requests = self.judge.borrow().requests;
        self.report.virtual_seconds = self.net.borrow().now().us() / 1_000_000;
        for slot in &self.shards {
            self.report.slots_reused += slot.shard.url_server().stats().slots_reused;
            self.report.moved_on += slot.shard.url_server().stats().moved_on;
        }
    }
}

fn make_shard(
    plan: &Plan,
    net: &Rc<RefCell<SimNet>>,
    seeds: &[CrawlUrl],
    epoch: u32,
    seat: &SimSeat,
    (memory, quiet_until): (Memory, Now),
) -> Shard<SimDriver> {
    let silent = || Arc::new(Doorbell::new(|| ()));
    let url_server = url_server_config(&plan.config, WALL, epoch);
    let parts = ShardParts {
        product_token: url_server.product_token.clone(),
        url_server,
        spider: SpiderConfig {
            conns_max: plan.conns_max,
            ..spider_config(&plan.config, &SpiderSetup::new(&plan.config), WALL)
        },
        scope: Arc::new(scope_of(&plan.config, seeds)),
        share: seat.share.clone(),
        work: seat.work.clone(),
        done: seat.done.clone(),
        bell: silent(),
        scheduler: silent(),
        stats: seat.stats.clone(),
        wall: WALL,
        epoch,
        number: seat.index,
        scribe: seat.scribe.clone(),
        spill: seat.spill.clone(),
        memory,
        quiet_until,
    };
    Shard::new(SimDriver::new(net.clone(), seat.index, plan.conns_max), parts)
}

fn next_death(plan: &Plan, rng: &mut Rng, now: Now) -> Now {
    if plan.death_ms == 0 { Now::NEVER } else { now.plus_ms(1 + rng.below(2 * plan.death_ms)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_had_at_another_address_if_nobody_is_at_the_first() {
        let moved_on: u64 = (0..40).map(|seed| run(seed).moved_on).sum();
        assert!(moved_on > 20, "{moved_on}");
    }

    #[test]
    fn a_seed_replays_to_the_step() {
        for seed in 0..5 {
            assert_eq!(run(seed), run(seed));
        }
    }
}
