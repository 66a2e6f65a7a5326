//! Nodes that take turns on one thread; what befalls them and how a run ends are in files of their own.

mod ending;
mod forgetting;
mod idle;
mod misfortunes;
mod tables;
mod typing;

pub use idle::run_idle;

use super::claims::Claims;
use super::etcd::SimEtcd;
use super::judge::{ClusterJudge, Loss};
use super::node::{ClusterNode, KEEPER, PEERS, SEATS_MAX, Surroundings, drivers_of};
use super::plan::ClusterPlan;
use super::wrong::Wrong;
use crate::base::{Now, Rng};
use crate::driver::SimNet;
use crate::engine::{NodeError, Turned};
use crate::farm::{Site, host_name};
use crate::proto::url::CrawlUrl;
use crate::sim::report::SimReport;
use crate::sim::turning::DataFolder;
use crate::sim::web::{MisbehavingWeb, PORT, addresses_of};
use forgetting::Forgetting;
use idle::Meter;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::rc::Rc;
use tables::{News, SeenTables};
use typing::Typing;

/// The nodes and their world.
struct ClusterWorld {
    plan: ClusterPlan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<ClusterJudge>>,
    hosts: String,
    etcd: Option<SimEtcd>,
    nodes: Vec<Option<ClusterNode>>,
    /// One of its actors has turned since all were looked at.
    is_stirred: Vec<bool>,
    /// Actors of each that have more to do at once, a bit for each.
    busy: Vec<u32>,
    /// When each actor of each has something to do by the clock of the node, as it said after its last turn: its thread would sleep
    /// until then.
    seat_due: Vec<[Option<Now>; SEATS_MAX]>,
    /// When each has something to do, if nothing comes to it before.
    due: Vec<Option<Now>>,
    start_at: Vec<Option<Now>>,
    /// Nodes that stand still until then.
    stalled: Vec<Now>,
    /// When each began to stand still last.
    stalled_from: Vec<Now>,
    /// It had something to do when it was killed.
    died_busy: Vec<bool>,
    folder: DataFolder,
    typing: Typing,
    tables: SeenTables,
    /// What was not looked at yet of what the peers of each told last.
    unseen: Vec<Unseen>,
    claims: Claims,
    /// Of voters that lose what they wrote last, on purpose.
    forgetting: Forgetting,
    lose_at: Option<Now>,
    drain_at: Option<Now>,
    /// Nodes that hand over everything, and know it.
    drains: Vec<bool>,
    /// Nodes that were drained, and are not started again.
    gone: Vec<bool>,
    starts: u64,
    fault_at: Now,
    /// All is healed.
    is_calm: bool,
    /// A node said that all is done.
    is_ready: bool,
    /// When a node that is no member, and knows URLs, was seen last: one that was taken over and is back with its disk.
    outsider_at: Option<Now>,
    rng: Rng,
    report: SimReport,
    /// While it is measured what nodes cost.
    meter: Option<Meter>,
}

/// Only a turn of a node's peers changes what it tells of its cluster: nobody looks at it between two of them.
#[derive(Clone, Copy)]
struct Unseen {
    membership: bool,
    table: bool,
}

/// A run that works without time passing has hung.
const STEPS_PER_INSTANT_MAX: u32 = 10_000;

/// Runs the nodes of one seed, as many as it draws of these numbers, to their end. Panics with what went wrong; the seed replays it.
/// With something that is wrong on purpose it may be found or not.
pub fn run_cluster(seed: u64, nodes: RangeInclusive<usize>, wrong: Option<Wrong>) -> SimReport {
    let mut world = ClusterWorld::new(ClusterPlan::from_seed(seed, nodes, wrong));
    world.run(ClusterWorld::is_over);
    world.judge_the_end();
    world.report
}

impl ClusterWorld {
    fn new(plan: ClusterPlan) -> ClusterWorld {
        let site = Rc::new(Site::new(plan.web.site.clone()).expect("plans are valid"));
        let judge = Rc::new(RefCell::new(ClusterJudge::new(&plan)));
        let web = MisbehavingWeb::new(&plan.web, site, judge.clone());
        let net = SimNet::new(plan.web.seed, drivers_of(plan.nodes), Box::new(web));
        let mut hosts = String::new();
        for host in 0..plan.web.site.hosts {
            for ip in addresses_of(&plan.web, host) {
                let _ = writeln!(hosts, "{ip} {}", host_name(host));
            }
        }
        let mut rng = Rng::new(plan.web.seed ^ 0x5eed);
        let fault_at = plan.faults.next_at(&mut rng, Now::ZERO);
        let count = plan.nodes;
        ClusterWorld {
            net,
            judge,
            hosts,
            etcd: plan.etcd.clone().map(|etcd| SimEtcd::new(etcd, plan.web.seed)),
            nodes: (0..count).map(|_| None).collect(),
            is_stirred: vec![true; count],
            busy: vec![0; count],
            seat_due: vec![[None; SEATS_MAX]; count],
            due: vec![None; count],
            start_at: plan.starts.iter().copied().map(Some).collect(),
            stalled: vec![Now::ZERO; count],
            stalled_from: vec![Now::ZERO; count],
            died_busy: vec![false; count],
            folder: DataFolder::new(),
            typing: Typing::new(plan.typed.clone()),
            tables: SeenTables::new(count, plan.web.site.hosts),
            unseen: vec![Unseen { membership: true, table: true }; count],
            claims: Claims::new(&plan),
            forgetting: Forgetting::default(),
            lose_at: plan.lose_at,
            drain_at: plan.drain_at,
            drains: vec![false; count],
            gone: vec![false; count],
            starts: 0,
            fault_at,
            is_calm: false,
            is_ready: false,
            outsider_at: None,
            rng,
            report: SimReport::default(),
            meter: None,
            plan,
        }
    }

    /// Lets every actor that has something to do turn, in an order drawn anew each time, and time pass when none has, until
    /// it is over.
    fn run(&mut self, is_over: impl Fn(&mut ClusterWorld, Now) -> bool) {
        let mut steps_of_instant = 0;
        loop {
            self.report.steps += 1;
            steps_of_instant += 1;
            let now = self.net.borrow().now();
            assert!(steps_of_instant < STEPS_PER_INSTANT_MAX, "busy for ever at {now:?}");
            self.start_what_is_due(now);
            self.type_what_is_due(now);
            self.let_things_happen(now);
            let count = self.nodes.len();
            let first = self.rng.below(count as u64) as usize;
            let mut busy = false;
            for node in (0..count).map(|n| (n + first) % count) {
                if self.has_work(node, now) {
                    busy |= self.turn(node, now);
                }
            }
            if busy {
                continue;
            }
            self.look_at_tables(now);
            self.look_for_outsiders(now);
            if is_over(self, now) {
                return;
            }
            let next = self.next_event(now);
            self.net.borrow_mut().advance(next);
            steps_of_instant = 0;
        }
    }

    fn has_work(&self, number: usize, now: Now) -> bool {
        let Some(node) = self.nodes[number].as_ref().filter(|_| self.stalled[number] <= now) else {
            return false;
        };
        let arrived = |driver| self.net.borrow().has_arrived(driver);
        self.is_stirred[number]
            || self.busy[number] > 0
            || self.due[number].is_some_and(|due| due <= now)
            || node.drivers().any(arrived)
    }

    /// Turns the actors of a node. True if one may have something more to do.
    fn turn(&mut self, number: usize, now: Now) -> bool {
        let Some(node) = &mut self.nodes[number] else { return false };
        let clock = self.plan.clocks[number].0;
        let here = clock.shows(now);
        self.is_stirred[number] = false;
        let count = node.seats();
        let first = self.rng.below(count as u64) as usize;
        let mut busy = false;
        for n in (0..count).map(|n| (n + first) % count) {
            let is_woken = node.bell(n).is_some_and(|bell| !bell.is_asleep());
            let (actor, driver) = node.seat(n);
            let has_more = self.busy[number] >> n & 1 == 1;
            self.busy[number] &= !(1 << n);
            let is_due = self.seat_due[number][n].is_some_and(|due| due <= here)
                || actor.has_messages()
                || driver.is_some_and(|driver| self.net.borrow().has_arrived(driver));
            if !is_woken && !has_more && !is_due {
                continue;
            }
            if let Some(meter) = &mut self.meter {
                meter.begins();
            }
            let turned = actor.turn(here);
            if let Some(meter) = &mut self.meter {
                meter.ended(n);
            }
            let (has_messages, due) = (actor.has_messages(), actor.next_due());
            if n == PEERS {
                self.unseen[number] = Unseen { membership: true, table: true };
                if node.report.get().taken_over {
                    self.begin_anew(number, now);
                    return true;
                }
                self.claims.look(number, node.peers(), clock, now);
            }
            match turned {
                Turned::Stuck => panic!("the disk does not fail"),
                Turned::Finished => panic!("actor {n} of node {number} has ended at {now:?}"),
                Turned::Busy | Turned::Idle { .. } => {}
            }
            let mut is_busy = turned == Turned::Busy || has_messages;
            if let Turned::Idle { messages } = turned {
                is_busy |= messages > 0 && driver.is_none();
            }
            self.busy[number] |= u32::from(turned == Turned::Busy) << n;
            self.is_stirred[number] = true;
            busy |= is_busy;
            if let Some(bell) = node.bell(n).filter(|_| turned != Turned::Busy) {
                bell.falling_asleep();
            }
            self.seat_due[number][n] = due;
            let is_asleep = !is_busy && driver.is_none() && (n == PEERS || n > KEEPER);
            if let Some(due) = due.filter(|due| is_asleep && *due <= here) {
                panic!("actor {n} of node {number} has nothing to do at {here:?}, and is due since {due:?}");
            }
        }
        let has_more = busy || self.is_stirred[number];
        if !has_more {
            // A commit is only worth waking for if somebody waits for it.
            let commits = node.core.scheduler.actor.waits_for_commit();
            let dues = self.seat_due[number].iter().enumerate().filter(|(n, _)| *n != KEEPER || commits);
            let due = dues.filter_map(|(_, due)| *due).min();
            self.due[number] = due.map(|due| clock.when(due));
        }
        has_more
    }

    /// Others have what it had: the process begins anew.
    fn begin_anew(&mut self, number: usize, now: Now) {
        self.report.begun_anew += 1;
        self.kill(number, now, now);
    }

    fn next_event(&self, now: Now) -> Now {
        let parts = [Some(self.fault_at), self.net.borrow().next_planned()];
        let due = self.due.iter().zip(&self.stalled).map(|(due, stalled)| due.map(|due| due.max(*stalled)));
        let next = parts.into_iter().chain(due).flatten().min();
        let awake = self.stalled.iter().copied().filter(|until| *until > now).min();
        let next = next.into_iter().chain(awake).min();
        let typed = self.typing.next_at(now);
        let calm = Some(self.plan.faults.until).filter(|_| !self.is_calm);
        let typed = typed.into_iter().chain(self.lose_at).chain(self.drain_at).min();
        let next =
            next.into_iter().chain(typed).chain(calm).chain(self.start_at.iter().flatten().copied()).min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(now).max(now.plus_us(10))
    }

    fn start_what_is_due(&mut self, now: Now) {
        for number in 0..self.nodes.len() {
            if self.start_at[number].take_if(|at| *at <= now).is_none() {
                continue;
            }
            self.starts += 1;
            let surroundings = Surroundings {
                plan: &self.plan,
                net: &self.net,
                folder: self.folder.path(),
                hosts: &self.hosts,
                etcd: self.etcd.as_ref(),
                starts: self.starts,
            };
            let here = self.plan.clocks[number].0.shows(now);
            let node = surroundings.node(number, here);
            self.judge.borrow_mut().node_begins(number, node.report.clone());
            self.nodes[number] = Some(node);
            self.seat_due[number] = [None; SEATS_MAX];
            self.unseen[number] = Unseen { membership: true, table: true };
            (self.is_stirred[number], self.busy[number]) = (true, u32::MAX);
        }
    }

    /// Somebody types a URL at a node; at one that does not run, when it does.
    fn type_what_is_due(&mut self, now: Now) {
        let takes = |node: usize| self.nodes[node].is_some() && self.stalled[node] <= now;
        let Some((number, host)) = self.typing.take(now, takes) else { return };
        let url = CrawlUrl::parse(&format!("http://{}:{PORT}/", host_name(host))).expect("a URL");
        if let Some(node) = &mut self.nodes[number] {
            node.core.scheduler.actor.seeds(vec![url]);
            (self.is_stirred[number], self.busy[number]) = (true, u32::MAX);
            self.report.lines += 1;
        }
    }

    /// Every node goes by tables as it should.
    fn look_at_tables(&mut self, now: Now) {
        let mut first = None;
        for number in 0..self.nodes.len() {
            let Some(node) = &self.nodes[number] else { continue };
            if !std::mem::take(&mut self.unseen[number].table) {
                continue;
            }
            if let Err(error @ NodeError::Cluster(_)) = node.core.health.take() {
                panic!("node {number} ends at {now:?}: {error}");
            }
            let before = self.tables.latest().map_or(0, |table| table.epoch);
            let News { gone, moved } = self.tables.look(number, node, now);
            first =
                first.or((self.tables.latest().map_or(0, |table| table.epoch) > before).then_some(number));
            for gone in gone {
                let mut judge = self.judge.borrow_mut();
                let loss = Loss { at: now, known: gone.known };
                judge.node_lost(gone.place, loss);
                // It may have got a host with all its pages, and never have asked it.
                for host in gone.hosts {
                    judge.host_lost(host, loss);
                }
            }
            for host in moved {
                self.judge.borrow_mut().host_moved(host, now);
            }
        }
        if self.plan.wrong == Some(Wrong::Council) {
            self.forget_votes(first, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_to_the_step() {
        for seed in 0..3 {
            assert_eq!(run_cluster(seed, 2..=5, None), run_cluster(seed, 2..=5, None));
        }
    }

    /// Its disk is wiped, and the one that its pages went to is lost a moment later.
    #[test]
    fn a_drained_node_leaves_its_pages_on_two_disks() {
        let report = run_cluster(100_538, 3..=7, None);
        assert!(report.drained == 1 && report.lost == 1, "{report:?}");
    }

    /// Its disk is lost with the pages of a host, and the one that comes in its place knows of a table before it goes by any.
    #[test]
    fn a_node_that_goes_by_no_table_yet_says_nothing_of_who_has_a_host() {
        let report = run_cluster(2_002_411, 3..=7, None);
        assert!(report.lost == 1, "{report:?}");
    }

    /// A voter that was to go has given everything away, and is taken over while it stands still; then another voter loses its
    /// disk.
    #[test]
    fn a_voter_that_was_drained_keeps_its_disk() {
        let report = run_cluster(2_001_487, 3..=7, None);
        assert!(report.lost == 1 && report.drained == 0, "{report:?}");
    }

    /// It comes back with its disk, and tells the only member what that has said to be done.
    #[test]
    fn what_a_node_tells_that_is_no_member_ends_ready_at_once() {
        let report = run_cluster(400_541, 3..=7, None);
        assert!(report.begun_anew > 0, "{report:?}");
    }
}
