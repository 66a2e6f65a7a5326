use super::judge::Judge;
use super::plan::Plan;
use super::report::SimReport;
use super::web::{MisbehavingWeb, PORT, addresses_of};
use crate::audit::{LogReader, Overrides};
use crate::base::{Now, Rng, Wall};
use crate::config::Bytes;
use crate::doc_index::{DocIndex, IndexRules};
use crate::driver::Driver;
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    Actor, Ask, CrawlShard, CrawlStore, CrawlTask, HostsFile, MemoryFiles, Names, Networked, NodeCore,
    NodeSetup, OpenIndex, ShardMaker, Turned, assemble,
};
use crate::farm::{PageKind, Resource, Site, host_name};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::{Clock, HostMemory};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

/// A node and its world.
struct World {
    plan: Plan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<Judge>>,
    site: Rc<Site>,
    files: MemoryFiles,
    node: NodeCore,
    shards: Vec<SimShard>,
    keeper_at: Now,
    death_at: Now,
    pauses: Pauses,
    /// When somebody changes the rules, and how often that is still done.
    change_at: Now,
    changes_left: u32,
    rng: Rng,
    report: SimReport,
}

/// When the crawl is paused, and resumed.
struct Pauses {
    /// When something is to be done next, and what that is.
    next: (Now, PauseStep),
    /// Requests that had been sent when nothing more could be on its way.
    requests: u64,
    left: u32,
}

#[derive(Clone, Copy)]
enum PauseStep {
    Pause,
    /// What was begun before the pause has been sent by now, or never will be.
    Settle,
    Resume,
}

struct SimShard {
    shard: CrawlShard<SimDriver>,
    state: Turned,
    epoch: u32,
}

/// A crawl that takes longer than this has hung.
const VIRTUAL_SECONDS_MAX: u64 = 10 * 86_400;
/// So has one that works without time passing.
const STEPS_PER_INSTANT_MAX: u32 = 100_000;
const SEGMENT_BYTES: u64 = 1 << 20;
/// A crawl that waits for hours would otherwise be a long row of deaths.
const DEATHS_MAX: u64 = 20;
const PAUSES_MAX: u32 = 4;
const CHANGES_MAX: u32 = 12;
/// More than any plan gives connections, at one address after the other.
const SETTLE_MS: u64 = 60_000;
/// The day on which all of it happens.
const WALL: Wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };

/// Runs the crawl of one seed to its end. Panics with what went wrong; the seed replays it.
pub fn run(seed: u64) -> SimReport {
    run_plan(Plan::from_seed(seed))
}

/// Runs a crawl of about this many pages without faults: the same work for each page, run after run.
pub fn run_pages(pages: u32) -> SimReport {
    run_plan(Plan::of_pages(pages))
}

fn run_plan(plan: Plan) -> SimReport {
    let mut world = World::new(plan);
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
        let seeds: Vec<CrawlUrl> =
            vec![CrawlUrl::parse(&format!("http://{}:{PORT}/", host_name(0))).expect("a farm URL")];
        let mut hosts = String::new();
        for host in 0..plan.site.hosts {
            for ip in addresses_of(&plan, host) {
                let _ = writeln!(hosts, "{ip} {}", host_name(host));
            }
        }
        let mut config = plan.config.clone();
        config.cores = (0..plan.shards).collect();
        // When the keeper commits is drawn by the simulation.
        config.store.commit_ms.0 = 0;
        config.store.segment_bytes = Bytes(SEGMENT_BYTES);
        // A crawl of days would try again what failed in its first hour; each document is to be counted once.
        let mut rules = IndexRules::default();
        rules.schedule.retries_max = 0;
        let index = OpenIndex::over(DocIndex::in_memory(rules), &config);
        let files = MemoryFiles::default();
        let task = CrawlTask { seeds, feeds: Vec::new(), store: CrawlStore::Memory(files.clone()), index };
        let names = |_, _| Ok(Names::table(HostsFile::parse(&hosts)));
        let node = assemble(&NodeSetup::new(config), task, names, WALL).expect("memory does not fail");
        let shard = |(number, seat): (usize, &crate::engine::CrawlSeat)| {
            let driver = SimDriver::new(net.clone(), number, plan.conns_max);
            SimShard { shard: seat.maker.make(driver, 0), state: Turned::IDLE, epoch: 0 }
        };
        let shards = node.shards.iter().enumerate().map(shard).collect();
        let mut rng = Rng::new(plan.seed ^ 0x5eed);
        let death_at = next_death(&plan, &mut rng, Now::ZERO);
        let pause_at = if plan.pause_ms == 0 { Now::NEVER } else { Now::ZERO.plus_ms(plan.pause_ms) };
        let pauses = Pauses { next: (pause_at, PauseStep::Pause), requests: 0, left: PAUSES_MAX };
        let change_at = if plan.change_ms == 0 { Now::NEVER } else { Now::ZERO.plus_ms(plan.change_ms) };
        let report = SimReport::default();
        World {
            plan,
            net,
            judge,
            site,
            files,
            node,
            shards,
            keeper_at: Now::ZERO,
            death_at,
            pauses,
            change_at,
            changes_left: CHANGES_MAX,
            rng,
            report,
        }
    }

    /// Lets everybody work in an order drawn anew each time, and time pass when nobody has anything to do.
    fn crawl(&mut self) {
        let mut steps_of_instant = 0;
        loop {
            self.report.steps += 1;
            let mut busy = false;
            let actors = self.shards.len() as u64 + 3;
            let now = self.net.borrow().now();
            let first = self.rng.below(actors);
            for actor in (0..actors).map(|n| ((n + first) % actors) as usize) {
                let turned = match actor {
                    0 => self.node.scheduler.actor.turn(now),
                    1 => self.node.index.actor.turn(now),
                    2 => self.node.log_writer.actor.turn(now),
                    n => self.shards[n - 3].turn(now, self.plan.checked),
                };
                match (actor, turned) {
                    (0, Turned::Finished) => return,
                    (_, Turned::Stuck) => panic!("memory does not fail"),
                    (_, Turned::Busy) => busy = true,
                    (1 | 2, Turned::Idle { messages }) => busy |= messages > 0,
                    (_, Turned::Idle { .. } | Turned::Finished) => {}
                }
            }
            if now >= self.keeper_at {
                let held = self.node.scheduler.actor.has_messages();
                self.node.keeper.turn(now);
                busy |= self.node.scheduler.actor.has_messages() && !held;
                self.keeper_at = now.plus_ms(1 + self.rng.below(2 * self.plan.commit_ms));
            }
            if now >= self.death_at {
                self.let_a_shard_die(now);
                busy = true;
            }
            if now >= self.pauses.next.0 {
                self.pause_or_resume(now);
                busy = true;
            }
            if now >= self.change_at {
                self.change_the_rules(now);
                busy = true;
            }
            steps_of_instant += 1;
            assert!(steps_of_instant < STEPS_PER_INSTANT_MAX, "busy for ever at {now:?}");
            if !busy && !self.node.scheduler.actor.has_messages() && !self.node.index.actor.has_messages() {
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
        let shards = self.shards.iter().filter(|slot| slot.state != Turned::Finished);
        let due = shards.filter_map(|slot| slot.shard.next_due());
        // A commit is only worth waking for if somebody waits for it.
        let commit = self.node.scheduler.actor.waits_for_commit().then_some(self.keeper_at);
        let next = due
            .chain(self.net.borrow().next_at())
            .chain(commit)
            .chain([self.death_at, self.pauses.next.0, self.change_at])
            .min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(now).max(now.plus_us(self.plan.tick_us))
    }

    /// Somebody pauses the crawl, and goes on with it later. In between nothing new is asked of any host.
    fn pause_or_resume(&mut self, now: Now) {
        let questions = self.node.scheduler.actor.questions();
        let requests = self.judge.borrow().requests;
        self.pauses.next = match self.pauses.next.1 {
            PauseStep::Pause => {
                questions.ask(Ask::Pause(true), drop);
                self.pauses.left -= 1;
                (now.plus_ms(SETTLE_MS), PauseStep::Settle)
            }
            PauseStep::Settle => {
                self.pauses.requests = requests;
                (now.plus_ms(1 + self.rng.below(200_000)), PauseStep::Resume)
            }
            PauseStep::Resume => {
                assert_eq!(requests, self.pauses.requests, "requests went out in a pause");
                questions.ask(Ask::Pause(false), drop);
                self.report.pauses += 1;
                let at = now.plus_ms(1 + self.rng.below(2 * self.plan.pause_ms));
                (if self.pauses.left > 0 { at } else { Now::NEVER }, PauseStep::Pause)
            }
        };
    }

    /// Somebody sets other rules. What is decided from then on keeps to them, and the audit knows when that was.
    fn change_the_rules(&mut self, now: Now) {
        let config = Plan::changed(&self.node.scheduler.actor.live().get(), &mut self.rng);
        self.judge.borrow_mut().changed(&config, now.plus_ms(SETTLE_MS));
        self.node.scheduler.actor.questions().ask(Ask::Set(Arc::new(config)), drop);
        self.report.changes += 1;
        self.changes_left -= 1;
        let at = now.plus_ms(1 + self.rng.below(2 * self.plan.change_ms));
        self.change_at = if self.changes_left > 0 { at } else { Now::NEVER };
    }

    /// What a panic does: the shard and its driver are gone, and a new one takes the place.
    fn let_a_shard_die(&mut self, now: Now) {
        self.death_at = next_death(&self.plan, &mut self.rng, now);
        if self.report.deaths >= DEATHS_MAX {
            self.death_at = Now::NEVER;
        }
        let index = self.rng.below(self.shards.len() as u64) as usize;
        let slot = &mut self.shards[index];
        if slot.state == Turned::Finished {
            return;
        }
        self.report.deaths += 1;
        slot.count(&mut self.report);
        slot.epoch += 1;
        self.net.borrow_mut().forget_driver(index);
        // What it had said is in the journal, from which the next one learns how hosts are to be treated.
        self.node.log_writer.actor.turn(now);
        let mut memory = HostMemory::new(self.plan.config.url_server.queue_count);
        let (_, journal) = self.files.written();
        let clock = Clock { wall: WALL, now };
        assert_eq!(memory.read(journal.as_bytes(), clock, "nephila"), 0, "the journal reads");
        let maker = &self.node.shards[index].maker;
        ShardMaker::<SimDriver>::announce(maker, slot.epoch);
        slot.shard = maker.make(SimDriver::new(self.net.clone(), index, self.plan.conns_max), slot.epoch);
        slot.state = Turned::Busy;
    }

    /// The crawl log proves that every host and address was treated as it must be.
    fn audit(&mut self) {
        self.node.log_writer.actor.turn(self.net.borrow().now());
        let mut intake = LogReader::new(Overrides::default());
        intake.open_file("the crawl log");
        let (log, _) = self.files.written();
        log.split_inclusive(|&byte| byte == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
        let report = intake.judge();
        let first = report.violations.first();
        assert!(report.violations.is_empty(), "{} violations, the first {first:?}", report.violations.len());
    }

    /// Nothing was lost: every URL has been answered for, and so has every URL that a stored page names.
    fn judge_the_end(&mut self) {
        self.audit();
        let index = self.node.index.actor.provider().index();
        let stats = index.stats();
        assert_eq!((stats.pending, stats.handed_out), (0, 0), "URLs were left over");
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
        assert_eq!(self.node.scheduler.actor.documents_done(), stats.known, "each document is counted once");
        assert_eq!(stats.done() + stats.waiting, stats.known);
        self.report.documents = stats.known;
        self.report.requests = self.judge.borrow().requests;
        self.report.virtual_seconds = self.net.borrow().now().us() / 1_000_000;
        self.shards.iter().for_each(|slot| slot.count(&mut self.report));
    }
}

impl SimShard {
    fn turn(&mut self, now: Now, checked: bool) -> Turned {
        if self.state != Turned::Finished {
            self.state = self.shard.turn(now);
            self.shard.driver().wait(Some(Now::ZERO), 0).expect("the simulated network does not fail");
            assert!(!checked || self.shard.source().url_server().invariants());
        }
        self.state
    }

    fn count(&self, report: &mut SimReport) {
        let stats = self.shard.source().url_server().stats();
        report.slots_reused += stats.slots_reused;
        report.moved_on += stats.moved_on;
    }
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
    fn nothing_is_asked_in_a_pause_and_nothing_is_lost_by_it() {
        let pauses: u64 = (0..40).map(|seed| run(seed).pauses).sum();
        assert!(pauses > 8, "{pauses}");
    }

    #[test]
    fn rules_that_change_are_kept_from_that_moment_on() {
        let changes: u64 = (0..40).map(|seed| run(seed).changes).sum();
        assert!(changes > 40, "{changes}");
    }

    #[test]
    fn a_seed_replays_to_the_step() {
        for seed in 0..5 {
            assert_eq!(run(seed), run(seed));
        }
    }

    #[test]
    fn a_crawl_of_pages_asks_for_each_page_once_and_is_the_same_work_every_time() {
        let report = run_pages(400);
        assert_eq!((report.success, report.requests), (400, 410), "and robots.txt of ten hosts");
        assert_eq!(report, run_pages(400));
    }
}
