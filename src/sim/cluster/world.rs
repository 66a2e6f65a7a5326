use super::etcd::SimEtcd;
use super::judge::{ClusterJudge, DURABLE_US};
use super::node::{ClusterNode, DRIVERS, KEEPER, Surroundings, WOKEN, links_of, node_folder};
use super::plan::{ClusterPlan, Misfortune};
use super::wrong::Wrong;
use crate::base::{Now, Rng};
use crate::driver::SimNet;
use crate::engine::{ClusterOrder, ClusterReport, ClusterView, NodeError, Turned};
use crate::farm::{Site, host_name};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::sim::report::SimReport;
use crate::sim::turning::{DataFolder, is_due};
use crate::sim::web::{MisbehavingWeb, PORT, addresses_of};
use crate::store_server::Holdings;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// The nodes and their world.
struct ClusterWorld {
    plan: ClusterPlan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<ClusterJudge>>,
    hosts: String,
    etcd: Option<SimEtcd>,
    nodes: Vec<Option<ClusterNode>>,
    /// One of its actors has turned since those that are woken last looked.
    is_stirred: Vec<bool>,
    /// Actors of each that have more to do at once, a bit for each.
    busy: Vec<u32>,
    /// When each has something to do, if nothing comes to it before.
    due: Vec<Option<Now>>,
    start_at: Vec<Option<Now>>,
    /// Nodes that stand still until then.
    stalled: Vec<Now>,
    /// When each began to stand still last.
    stalled_from: Vec<Now>,
    /// The number that each was last known by.
    numbers: Vec<u16>,
    /// It had something to do when it was killed.
    died_busy: Vec<bool>,
    folder: DataFolder,
    /// What is typed and was not taken yet, the next one last.
    typed: Vec<(Now, usize, u32)>,
    /// What was taken, and when: a node that is killed soon after has not told anybody yet that it has it.
    taken: Vec<(Now, usize, u32)>,
    /// The table of each epoch that any node was seen to go by: its nodes and who owns how much.
    tables: BTreeMap<u64, ClusterView>,
    /// What each node last told of the table that it goes by, while it runs.
    views: Vec<Option<Arc<ClusterView>>>,
    /// When that was seen.
    viewed_at: Vec<Now>,
    /// Nodes that are gone by the latest table, by their numbers.
    left: BTreeSet<u16>,
    /// A node whose disk is lost: its number, its place, and what it told last of its copy, and when.
    lost_disk: Option<(u16, usize, Option<Arc<ClusterView>>, Now)>,
    lose_at: Option<Now>,
    drain_at: Option<Now>,
    /// Nodes that hand over everything, and know it.
    drains: Vec<bool>,
    /// Nodes that were drained, and are not started again.
    gone: Vec<bool>,
    /// The epoch that each node was last seen to go by.
    epochs: Vec<u64>,
    /// The number of the node that has each host, by the latest table that any node was seen to go by.
    host_owners: Vec<u16>,
    starts: u64,
    fault_at: Now,
    /// All is healed.
    is_calm: bool,
    rng: Rng,
    report: SimReport,
}

/// A run that takes longer than this after the last misfortune does not come to rest.
const REST_S_MAX: u64 = 1_800;
/// A run that works without time passing has hung.
const STEPS_PER_INSTANT_MAX: u32 = 10_000;
/// If no node has lost its disk by then, none does.
const LOSE_BY: Now = Now::from_us(300_000_000);
/// What was typed is known to every node that says something of all of them within this: two rounds, and the next.
const TOLD_US: u64 = 10_000_000;

/// Runs the nodes of one seed, as many as it draws of these numbers, to their end. Panics with what went wrong; the seed replays it.
/// With something that is wrong on purpose it may be found or not.
pub fn run_cluster(seed: u64, nodes: RangeInclusive<usize>, wrong: Option<Wrong>) -> SimReport {
    let mut world = ClusterWorld::new(ClusterPlan::from_seed(seed, nodes, wrong));
    world.run();
    world.judge_the_end();
    world.report
}

impl ClusterWorld {
    fn new(plan: ClusterPlan) -> ClusterWorld {
        let site = Rc::new(Site::new(plan.web.site.clone()).expect("plans are valid"));
        let judge = Rc::new(RefCell::new(ClusterJudge::new(&plan)));
        let web = MisbehavingWeb::new(&plan.web, site, judge.clone());
        let net = SimNet::new(plan.web.seed, DRIVERS, Box::new(web));
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
            due: vec![None; count],
            start_at: plan.starts.iter().copied().map(Some).collect(),
            stalled: vec![Now::ZERO; count],
            stalled_from: vec![Now::ZERO; count],
            numbers: vec![0; count],
            died_busy: vec![false; count],
            folder: DataFolder::new(),
            typed: plan.typed.clone(),
            taken: Vec::new(),
            tables: BTreeMap::new(),
            views: vec![None; count],
            viewed_at: vec![Now::ZERO; count],
            left: BTreeSet::new(),
            lost_disk: None,
            lose_at: plan.lose_at,
            drain_at: plan.drain_at,
            drains: vec![false; count],
            gone: vec![false; count],
            epochs: vec![0; count],
            host_owners: vec![0; plan.web.site.hosts as usize],
            starts: 0,
            fault_at,
            is_calm: false,
            rng,
            report: SimReport::default(),
            plan,
        }
    }

    /// Lets every actor that has something to do turn, in an order drawn anew each time, and time pass when none has.
    fn run(&mut self) {
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
            if self.is_over(now) {
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
        let report = node.report.clone();
        let was_stirred = std::mem::take(&mut self.is_stirred[number]);
        let mut seats = node.seats();
        let count = seats.len();
        let first = self.rng.below(count as u64) as usize;
        let mut busy = false;
        for n in (0..count).map(|n| (n + first) % count) {
            let (actor, driver) = &mut seats[n];
            let is_woken = was_stirred && n < WOKEN;
            let has_more = self.busy[number] >> n & 1 == 1;
            self.busy[number] &= !(1 << n);
            if !is_woken && !has_more && !is_due(*actor, *driver, &self.net.borrow(), here) {
                continue;
            }
            let turned = actor.turn(here);
            match turned {
                _ if report.get().taken_over => {
                    self.begin_anew(number, now);
                    return true;
                }
                Turned::Stuck => panic!("the disk does not fail"),
                Turned::Finished => panic!("actor {n} of node {number} has ended at {now:?}"),
                Turned::Busy | Turned::Idle { .. } => {}
            }
            // Turned because it was stirred, it stirs nobody but by what it did.
            let mut is_busy = turned == Turned::Busy || actor.has_messages();
            if let Turned::Idle { messages } = turned {
                is_busy |= messages > 0 && driver.is_none();
            }
            self.busy[number] |= u32::from(turned == Turned::Busy) << n;
            self.is_stirred[number] |= is_busy || !is_woken;
            busy |= is_busy;
            let is_asleep = !is_busy && driver.is_none() && (n == 2 || n > KEEPER);
            if let Some(due) = actor.next_due().filter(|due| is_asleep && *due <= here) {
                panic!("actor {n} of node {number} has nothing to do at {here:?}, and is due since {due:?}");
            }
        }
        let has_more = busy || self.is_stirred[number];
        if !has_more {
            // A commit is only worth waking for if somebody waits for it.
            let commits = node.core.scheduler.actor.waits_for_commit();
            let seats = node.seats().into_iter().enumerate();
            let seats = seats.filter(|(n, _)| *n != KEEPER || commits);
            let due = seats.filter_map(|(_, (actor, _))| actor.next_due()).min();
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
        let typed = self.typed.iter().map(|(at, ..)| *at).filter(|at| *at > now).min();
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
            (self.is_stirred[number], self.busy[number]) = (true, u32::MAX);
        }
    }

    /// Somebody types a URL at a node; at one that does not run, when it does.
    fn type_what_is_due(&mut self, now: Now) {
        let is_due = |&(at, node, _): &(Now, usize, u32)| {
            at <= now && self.nodes[node].is_some() && self.stalled[node] <= now
        };
        let Some(at) = self.typed.iter().rposition(is_due) else { return };
        let (_, number, host) = self.typed.remove(at);
        let url = CrawlUrl::parse(&format!("http://{}:{PORT}/", host_name(host))).expect("a URL");
        if let Some(node) = &mut self.nodes[number] {
            node.core.scheduler.actor.seeds(vec![url]);
            (self.is_stirred[number], self.busy[number]) = (true, u32::MAX);
            self.taken.push((now, number, host));
            self.report.lines += 1;
        }
    }

    fn let_things_happen(&mut self, now: Now) {
        if now >= self.fault_at {
            self.fault_at = self.plan.faults.next_at(&mut self.rng, now);
            self.misfortune(now);
        }
        self.lose_one(now);
        self.drain_one(now);
        if !self.is_calm && now >= self.plan.faults.until {
            self.is_calm = true;
            self.net.borrow_mut().delay(1_000);
            if self.plan.wrong == Some(Wrong::Cut) {
                self.net.borrow_mut().cut(links_of(0), links_of(1), Now::NEVER);
            }
        }
    }

    fn misfortune(&mut self, now: Now) {
        let count = self.plan.nodes as u64;
        let one = self.rng.below(count) as usize;
        let other = (one + 1 + self.rng.below(count - 1) as usize) % self.plan.nodes;
        let until = now.plus_ms(1 + self.rng.below(self.plan.trouble_ms));
        match self.plan.faults.draw(&mut self.rng) {
            Misfortune::Cut => self.net.borrow_mut().cut(links_of(one), links_of(other), until),
            Misfortune::Reset => self.net.borrow_mut().reset_between(links_of(one), links_of(other)),
            Misfortune::Delay => self.net.borrow_mut().delay(1 + self.rng.below(300_000)),
            Misfortune::Kill => return self.kill(one, until, now),
            Misfortune::Stall => {
                if self.stalled[one] <= now {
                    (self.stalled[one], self.is_stirred[one]) = (until, true);
                    self.stalled_from[one] = now;
                    self.judge.borrow_mut().node_stalled(one, now);
                    self.report.stalls += 1;
                }
                return;
            }
        }
        self.report.broken += 1;
    }

    /// The first node makes the cluster, so that it could not come back as another. One that never had a right of a council is
    /// not taken over.
    fn may_lose(&self, number: usize) -> bool {
        let of_itself = |view: &Arc<ClusterView>| {
            let told =
                view.nodes.iter().find(|node| node.number == view.node).and_then(|node| node.told.clone());
            view.mode != "frozen" && told.is_some_and(|told| (1..u32::MAX).contains(&told.right_left_ms))
        };
        let has_right = self.nodes[number].is_some() && self.views[number].as_ref().is_some_and(of_itself);
        number != 0 && has_right
    }

    /// One that is there by now loses its disk; if none is, it is looked again.
    fn lose_one(&mut self, now: Now) {
        let Some(at) = self.lose_at.filter(|at| *at <= now) else { return };
        let able: Vec<usize> = (0..self.plan.nodes).filter(|&number| self.may_lose(number)).collect();
        self.lose_at = Some(at.plus_ms(5_000)).filter(|_| able.is_empty() && now < LOSE_BY);
        if !able.is_empty() {
            let number = able[self.rng.below(able.len() as u64) as usize];
            let until = now.plus_ms(1 + self.rng.below(self.plan.trouble_ms));
            self.lose(number, until, now);
        }
    }

    /// One of them is to go, and is stopped when it has. Its disk is not needed any more if another one has its pages.
    fn drain_one(&mut self, now: Now) {
        if let Some(at) = self.drain_at.filter(|at| *at <= now) {
            let is_there = |number: &usize| *number != 0 && self.nodes[*number].is_some();
            let able: Vec<usize> = (0..self.plan.nodes).filter(is_there).collect();
            let one = able.get(self.rng.below(able.len().max(1) as u64) as usize).copied();
            let asked = self.nodes.iter().flatten().next().map(|node| node.report.clone());
            let order = one.map(|one| ClusterOrder::Drain { node: self.numbers[one] });
            let is_taken = |(report, order): (ClusterReport, _)| report.order(order).is_ok();
            let is_ordered = asked.zip(order).is_some_and(is_taken);
            self.drain_at = Some(at.plus_ms(5_000)).filter(|_| !is_ordered && now < LOSE_BY);
            self.is_stirred.fill(true);
        }
        for number in 0..self.nodes.len() {
            let Some(node) = &self.nodes[number] else { continue };
            let view = node.report.get();
            let of_itself = view.nodes.iter().find(|node| node.number == view.node);
            let is_as = |membership: &str| of_itself.is_some_and(|node| node.membership == membership);
            self.drains[number] |= is_as("draining");
            // Who is taken over has left, too.
            if !self.drains[number] || !is_as("left") || view.taken_over {
                continue;
            }
            self.report.drained += 1;
            self.kill(number, Now::NEVER, now);
            (self.start_at[number], self.gone[number]) = (None, true);
            // What was to be typed there is typed elsewhere.
            for typed in self.typed.iter_mut().filter(|(_, node, _)| *node == number) {
                *typed = (typed.0.min(now), 0, typed.2);
            }
            if self.plan.copies {
                let folder = node_folder(self.folder.path(), number);
                std::fs::remove_dir_all(folder).expect("it has a folder");
            }
        }
    }

    /// The process is gone, and its disk: another node comes in its place.
    fn lose(&mut self, number: usize, until: Now, now: Now) {
        self.kill(number, until, now);
        self.report.lost += 1;
        std::fs::remove_dir_all(node_folder(self.folder.path(), number)).expect("it has a folder");
        let (node, view) = (self.numbers[number], self.views[number].take());
        self.lost_disk = Some((node, number, view, self.viewed_at[number]));
        (self.numbers[number], self.epochs[number], self.died_busy[number]) = (0, 0, false);
        // What was typed there may be known to nobody.
        let (typed, taken): (Vec<_>, Vec<_>) = self.taken.drain(..).partition(|(_, at, _)| *at == number);
        self.taken = taken;
        self.typed.extend(typed.into_iter().map(|(_, node, host)| (until, node, host)));
        let hosts = self.host_owners.iter().enumerate().filter(|(_, of)| **of == node);
        let hosts: Vec<u32> = hosts.map(|(host, _)| host as u32).collect();
        self.judge.borrow_mut().disk_lost(&hosts);
    }

    /// The process is gone without a word; what its files had stays.
    fn kill(&mut self, number: usize, until: Now, now: Now) {
        let Some(node) = self.nodes[number].take() else { return };
        let was_stalled = self.stalled[number];
        (self.due[number], self.stalled[number], self.drains[number]) = (None, Now::ZERO, false);
        self.report.deaths += 1;
        self.start_at[number] = Some(until);
        (links_of(number)..links_of(number + 1))
            .for_each(|driver| self.net.borrow_mut().forget_driver(driver));
        let stats = node.core.index.actor.provider().index().stats();
        self.died_busy[number] = stats.pending + stats.handed_out > 0;
        drop(node);
        if let Some(wrong) = self.plan.wrong {
            wrong.when_killed(self.folder.path(), self.plan.nodes, (number, self.numbers[number]));
        }
        // What it did just before it stood still is not on its disk, however long it did so.
        let is_fresh = now.since_us(was_stalled) < DURABLE_US;
        let active = if is_fresh { self.stalled_from[number] } else { now };
        self.judge.borrow_mut().node_died(number, active);
        let is_lost = |(at, node, _): &(Now, usize, u32)| {
            *node == number && (active.since_us(*at) < DURABLE_US || now.since_us(*at) < DURABLE_US)
        };
        let (lost, taken): (Vec<_>, Vec<_>) = self.taken.drain(..).partition(is_lost);
        self.taken = taken;
        self.typed.extend(lost.into_iter().map(|(_, node, host)| (until, node, host)));
    }

    /// Epochs only grow, and two tables of one epoch are equal.
    fn look_at_tables(&mut self, now: Now) {
        for number in 0..self.nodes.len() {
            let Some(node) = &self.nodes[number] else { continue };
            if let Err(error @ NodeError::Cluster(_)) = node.core.health.take() {
                panic!("node {number} ends at {now:?}: {error}");
            }
            let report = node.report.clone();
            let view = report.get();
            let is_known = self.views[number].as_ref().is_some_and(|known| Arc::ptr_eq(known, &view));
            if view.epoch == 0 || is_known {
                continue;
            }
            self.views[number] = Some(view.clone());
            self.viewed_at[number] = now;
            self.numbers[number] = view.node;
            let mut view = ClusterView::clone(&view);
            assert!(view.epoch >= self.epochs[number], "the table of node {number} went back");
            self.epochs[number] = view.epoch;
            if self.tables.keys().next_back().is_none_or(|last| view.epoch >= *last) {
                self.look_who_left(&view);
                for (host, owner) in self.host_owners.iter_mut().enumerate() {
                    let url = format!("http://{}:{PORT}/", host_name(host as u32));
                    *owner = report.owner(&url).map_or(*owner, |found| found.node);
                }
            }
            // What is of the node that tells, and not of the table.
            (view.node, view.ready, view.received, view.received_new, view.round) = (0, false, 0, 0, 0);
            (view.taken_over, view.copy, view.takes_in, view.council) = (false, None, 0, None);
            for node in &mut view.nodes {
                (node.linked, node.told) = (false, None);
            }
            let first = self.tables.entry(view.epoch).or_insert_with(|| view.clone());
            assert_eq!(*first, view, "two tables of epoch {}", view.epoch);
        }
    }

    /// Nodes that are gone since the table before, and what is known of them by who took them over.
    fn look_who_left(&mut self, view: &ClusterView) {
        let left = |view: &ClusterView| -> BTreeSet<u16> {
            view.nodes.iter().filter(|node| node.membership == "left").map(|node| node.number).collect()
        };
        let gone = left(view);
        for &node in gone.difference(&self.left) {
            let lost_disk = self.lost_disk.as_ref().filter(|(number, ..)| *number == node);
            let place = self.numbers.iter().position(|number| *number == node);
            let Some(lost) = place.or(lost_disk.map(|(_, place, ..)| *place)) else { continue };
            let (told, at) = match lost_disk {
                Some((.., told, at)) => (told.clone(), *at),
                None => (self.views[lost].clone(), self.viewed_at[lost]),
            };
            let known = told.and_then(|told| self.known_of(node, &told, at, view));
            self.judge.borrow_mut().node_lost(lost, known);
            // It may have got a host with all its pages, and never have asked it.
            for (host, _) in self.host_owners.iter().enumerate().filter(|(_, of)| **of == node) {
                self.judge.borrow_mut().host_lost(host as u32, known);
            }
        }
        self.left = gone;
    }

    /// Up to when another node knows all that a node knew which is gone by this table: if it has both its copy and its partitions.
    fn known_of(&self, lost: u16, told: &ClusterView, at: Now, view: &ClusterView) -> Option<Now> {
        let (_, before) = self.tables.range(..view.epoch).next_back()?;
        let had = |view: &ClusterView, node: u16| {
            view.nodes.iter().find(|known| known.number == node).map_or(0, |known| known.partitions)
        };
        let copy = told.copy.as_ref()?;
        let came = had(view, copy.node).saturating_sub(had(before, copy.node));
        let has_all = came == had(before, lost) && before.epoch + 1 == view.epoch;
        copied_until(told, at).filter(|_| has_all)
    }

    /// Whether every node says that all is done; and whether it is.
    fn is_over(&mut self, now: Now) -> bool {
        let is_told = |(at, ..): &(Now, usize, u32)| now.since_us(*at) > TOLD_US;
        let is_all_typed = self.typed.is_empty() && self.taken.iter().all(is_told);
        let (mut ready, mut left) = (0, None);
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else {
                if self.died_busy[number] && !self.is_taken_over(number) {
                    left = Some(format!("node {number} was killed and had something to do"));
                }
                continue;
            };
            let stats = node.core.index.actor.provider().index().stats();
            // One that stands still says what it said, and nobody hears it.
            ready += usize::from(node.report.get().ready && self.stalled[number] <= now);
            if stats.pending + stats.handed_out > 0 {
                left = Some(format!("node {number} has {stats:?}"));
            }
        }
        if let Some(left) = left.as_ref().filter(|_| ready > 0 && is_all_typed) {
            let says_so = self.nodes.iter().flatten().map(|node| node.report.get()).find(|view| view.ready);
            panic!("{ready} nodes say that all is done at {now:?}: {left}: {says_so:?}");
        }
        if now.since_us(self.plan.faults.until) > 1_000_000 * REST_S_MAX {
            let views: Vec<_> = self.nodes.iter().flatten().map(|node| node.report.get()).collect();
            panic!("it does not come to rest: {left:?}, {ready} of {} are ready: {views:?}", self.plan.nodes);
        }
        let count = self.gone.iter().filter(|is_gone| !**is_gone).count();
        let is_whole = |view: &ClusterView| view.copy.as_ref().is_none_or(|copy| copy.in_step);
        let drains = |view: &ClusterView| {
            let of_itself = view.nodes.iter().find(|node| node.number == view.node);
            // A voter stays.
            let goes = of_itself.is_some_and(|node| node.membership == "draining");
            goes && !view.voters.contains(&view.node) && view.members().count() > 1
        };
        let mut views = self.nodes.iter().flatten().map(|node| node.report.get());
        if !views.all(|view| is_whole(&view) && !drains(&view)) {
            return false;
        }
        self.is_calm && is_all_typed && self.lose_at.is_none() && self.drain_at.is_none() && ready == count
    }

    /// Whether a node that runs knows that another one is gone: what that one had waits until it is back.
    fn is_taken_over(&self, number: usize) -> bool {
        let number = self.numbers[number];
        let has_left = |view: &ClusterView| {
            view.nodes.iter().any(|node| node.number == number && node.membership == "left")
        };
        self.nodes.iter().flatten().any(|node| has_left(&node.report.get()))
    }

    /// What any node knows is known to its owner, with what became of it.
    fn judge_the_end(&mut self) {
        if let Some(wrong) = self.plan.wrong {
            wrong.at_the_end(self.folder.path(), self.plan.nodes);
        }
        let mut urls: BTreeMap<String, Vec<(u16, bool)>> = BTreeMap::new();
        for node in self.nodes.iter().flatten() {
            let number = node.report.get().node;
            let index = node.core.index.actor.provider().index();
            for doc_id in 1..=u32::try_from(index.stats().known).expect("a small web") {
                let found = index.document(doc_id).expect("the disk does not fail");
                let Some(found) = found else { continue };
                let is_had = found.row.is_some_and(|row| row.result.is_some());
                urls.entry(found.discovered.url.to_string()).or_default().push((number, is_had));
            }
        }
        let owners = self.nodes.iter().flatten().next().expect("they run").report.clone();
        for (url, known) in &urls {
            let owner = owners.owner(url).expect("there is a table").node;
            let had: Vec<u16> = known.iter().filter(|(_, is_had)| *is_had).map(|(node, _)| *node).collect();
            // Whoever fetched it before it was another node's keeps it.
            assert!(had.contains(&owner), "{url} is node {owner}'s, and known to {known:?}");
            self.report.documents += 1;
        }
        for (host, target) in self.judge.borrow().pages() {
            let url = format!("http://{}:{PORT}{target}", host_name(host));
            assert!(urls.contains_key(&url), "{url} was asked for, and nobody knows it");
            self.report.success += 1;
        }
        self.judge_the_pages();
        let expected = self.reached();
        let missing: Vec<&String> = expected.iter().filter(|url| !urls.contains_key(*url)).collect();
        assert!(missing.is_empty(), "never found: {missing:?}");
        self.report.requests = self.judge.borrow().requests;
        self.report.fail_overs = self.judge.borrow().handed_on;
        self.report.unanswered = self.etcd.as_ref().map_or(0, SimEtcd::unanswered);
        self.report.takeovers = self.judge.borrow().taken;
        self.report.moves = self.judge.borrow().moved;
        self.report.known = self.judge.borrow().known;
        self.report.virtual_seconds = self.net.borrow().now().us() / 1_000_000;
    }

    /// Every page that counts can be read, at whichever node. Those of a disk that was lost are where its copy was, if they were in
    /// that by then.
    fn judge_the_pages(&mut self) {
        let folders = (0..self.nodes.len()).map(|number| node_folder(self.folder.path(), number));
        let folders = folders.filter(|folder| folder.is_dir());
        let stores: Vec<Holdings> = folders.flat_map(|folder| stores_of(&folder)).collect();
        let is_held =
            |url: &str| stores.iter().any(|store| store.holds(url).expect("the disk does not fail"));
        for node in self.nodes.iter().flatten() {
            let (view, index) = (node.report.get(), node.core.index.actor.provider().index());
            for doc_id in 1..=u32::try_from(index.stats().known).expect("a small web") {
                let Some(found) = index.document(doc_id).expect("the disk does not fail") else { continue };
                let url = &*found.discovered.url;
                let is_page = found.row.is_some_and(|row| row.result == Some(ResultCode::Ok));
                let is_ours = node.report.owner(url).is_some_and(|owner| owner.node == view.node);
                if !is_page || !is_ours {
                    continue;
                }
                let lost = self.lost_disk.as_ref().filter(|(number, ..)| *number == found.note.store);
                if is_held(url) {
                    self.report.restored += u64::from(lost.is_some());
                    continue;
                }
                let copied =
                    lost.map(|(.., told, at)| told.as_ref().and_then(|told| copied_until(told, *at)));
                let at = self.judge.borrow().fetched_at(url);
                assert!(
                    copied.is_some_and(|until| until.is_none_or(|until| at.plus_us(DURABLE_US) > until)),
                    "{url} of node {} cannot be read: it was fetched at {at:?} by node {} ({:?})",
                    view.node,
                    found.note.store,
                    self.lost_disk,
                );
            }
        }
    }

    /// The pages of hosts that were typed: all of them are reached from the first.
    fn reached(&self) -> Vec<String> {
        let path = |page: u32| if page == 0 { "/".to_string() } else { format!("/p/{page}.html") };
        let pages = |&(_, _, host): &(Now, usize, u32)| {
            let of_host = move |page| format!("http://{}:{PORT}{}", host_name(host), path(page));
            (0..self.plan.web.site.pages).map(of_host)
        };
        self.plan.typed.iter().flat_map(pages).collect()
    }
}

/// The stores of a node: its own, those that came to it, and copies of others.
fn stores_of(folder: &Path) -> Vec<Holdings> {
    let copies = std::fs::read_dir(folder.join("copies")).into_iter().flatten().flatten();
    let folders = copies.map(|entry| entry.path()).filter(|path| path.join("segments").is_dir());
    let all = std::iter::once(folder.to_path_buf()).chain(folders);
    all.map(|folder| Holdings::open(&folder).unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Up to when another node has everything of one that told this at a time.
fn copied_until(told: &ClusterView, at: Now) -> Option<Now> {
    let copy = told.copy.as_ref().filter(|copy| copy.knowledge.was_whole && copy.pages.was_whole)?;
    let behind_ms = copy.knowledge.behind_ms.max(copy.pages.behind_ms);
    Some(Now::from_us(at.us().saturating_sub(1_000 * behind_ms)))
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
}
