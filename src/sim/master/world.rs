use super::judge::MasterJudge;
use super::plan::{MASTERS_MAX, MasterPlan, Misfortune};
use super::process::{DRIVERS, Process, Surroundings, address_of, master_folder, node_links};
use crate::base::{Now, Rng, SortedMap};
use crate::driver::SimNet;
use crate::engine::Turned;
use crate::farm::{Site, host_name};
use crate::master::audit::MasterAudit;
use crate::master::keeping::MasterView;
use crate::master::{Fault, MemoryTable, ServerId};
use crate::sim::report::SimReport;
use crate::sim::turning::{DataFolder, is_due};
use crate::sim::web::{MisbehavingWeb, PORT, addresses_of};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::rc::Rc;

/// The processes and their world.
struct MasterWorld {
    plan: MasterPlan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<MasterJudge>>,
    hosts: String,
    /// Masters, then nodes.
    processes: Vec<Option<Process>>,
    /// One of its actors has turned since its scheduler last looked.
    is_stirred: Vec<bool>,
    /// Actors of each that have more to do at once, a bit for each.
    busy: Vec<u32>,
    restart_at: Vec<Option<Now>>,
    folder: DataFolder,
    /// The files that each master is to be given, the next one last.
    letters: [Vec<(Now, usize)>; MASTERS_MAX],
    table: Option<MemoryTable>,
    /// The view of each master.
    views: [usize; MASTERS_MAX],
    table_until: [Option<Now>; MASTERS_MAX],
    starts: u64,
    fault_at: Now,
    /// All is healed.
    is_calm: bool,
    /// Since when nothing was left to do.
    quiet_since: Option<Now>,
    rng: Rng,
    report: SimReport,
}

/// A run that takes longer than this after the last misfortune does not come to rest.
const REST_S_MAX: u64 = 1_800;
/// Rest that lasts for so long is the end.
const QUIET_US: u64 = 5_000_000;
/// A run that works without time passing has hung.
const STEPS_PER_INSTANT_MAX: u32 = 10_000;

/// Runs the processes of one seed to their end. Panics with what went wrong; the seed replays it.
pub fn run_master(seed: u64) -> SimReport {
    let mut world = MasterWorld::new(MasterPlan::from_seed(seed));
    world.run();
    world.judge_the_end();
    world.report
}

impl MasterWorld {
    fn new(plan: MasterPlan) -> MasterWorld {
        let site = Rc::new(Site::new(plan.web.site.clone()).expect("plans are valid"));
        let judge = Rc::new(RefCell::new(MasterJudge::new(&plan)));
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
        let processes = plan.masters + plan.nodes;
        let letters = std::array::from_fn(|master| {
            let all = plan.letters.iter().enumerate().filter(|_| master < plan.masters);
            let mut letters: Vec<(Now, usize)> = all.map(|(n, letter)| (letter.at[master], n)).collect();
            letters.sort_unstable_by(|a, b| b.cmp(a));
            letters
        });
        let table = plan.has_table.then(MemoryTable::default);
        MasterWorld {
            net,
            judge,
            hosts,
            processes: (0..processes).map(|_| None).collect(),
            is_stirred: vec![true; processes],
            busy: vec![0; processes],
            restart_at: vec![Some(Now::ZERO); processes],
            folder: DataFolder::new(),
            letters,
            table,
            views: [0; MASTERS_MAX],
            table_until: [None; MASTERS_MAX],
            starts: 0,
            fault_at,
            is_calm: false,
            quiet_since: None,
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
            self.give_letters(now);
            self.let_things_happen(now);
            let count = self.processes.len();
            let first = self.rng.below(count as u64) as usize;
            let mut busy = false;
            for process in (0..count).map(|n| (n + first) % count) {
                busy |= self.turn(process, now);
            }
            if busy {
                continue;
            }
            if self.is_over(now) {
                return;
            }
            let next = self.next_event(now);
            self.net.borrow_mut().advance(next);
            steps_of_instant = 0;
        }
    }

    /// Turns the actors of a process. True if one may have something more to do.
    fn turn(&mut self, number: usize, now: Now) -> bool {
        let Some(process) = &mut self.processes[number] else { return false };
        let is_node = matches!(process, Process::Node(_));
        let was_stirred = std::mem::take(&mut self.is_stirred[number]);
        let mut seats = process.seats();
        let count = seats.len();
        let first = self.rng.below(count as u64) as usize;
        let mut busy = false;
        for n in (0..count).map(|n| (n + first) % count) {
            let (actor, driver) = &mut seats[n];
            // Scheduler and doc index are woken by bells that do not ring here.
            let is_woken = was_stirred && is_node && n < 2;
            let has_more = self.busy[number] >> n & 1 == 1;
            self.busy[number] &= !(1 << n);
            if !is_woken && !has_more && !is_due(*actor, *driver, &self.net.borrow(), now) {
                continue;
            }
            let turned = actor.turn(now);
            match turned {
                Turned::Stuck => panic!("the disk does not fail"),
                Turned::Finished => panic!("actor {n} of process {number} has ended at {now:?}"),
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
            let is_asleep = !is_busy && driver.is_none() && !(is_node && n < 4);
            if let Some(due) = actor.next_due().filter(|due| is_asleep && *due <= now) {
                panic!(
                    "actor {n} of process {number} has nothing to do at {now:?}, and is due since {due:?}"
                );
            }
        }
        busy || self.is_stirred[number]
    }

    fn next_event(&mut self, now: Now) -> Now {
        let mut next = [Some(self.fault_at), self.net.borrow().next_at()].into_iter().flatten().min();
        for process in self.processes.iter_mut().flatten() {
            // A commit is only worth waking for if somebody waits for it.
            let commits = match process {
                Process::Node(node) => node.core.scheduler.actor.waits_for_commit(),
                Process::Master(_) => true,
            };
            for (n, (actor, _)) in process.seats().into_iter().enumerate() {
                if n != KEEPER || commits {
                    next = next.into_iter().chain(actor.next_due()).min();
                }
            }
        }
        let letters = self.letters.iter().filter_map(|letters| letters.last()).map(|(at, _)| *at);
        let times = self.restart_at.iter().chain(&self.table_until).flatten().copied();
        let next = next.into_iter().chain(letters).chain(times).min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(now).max(now.plus_us(10))
    }

    fn start_what_is_due(&mut self, now: Now) {
        for number in 0..self.processes.len() {
            if self.restart_at[number].take_if(|at| *at <= now).is_none() {
                continue;
            }
            self.starts += 1;
            let surroundings = Surroundings {
                plan: &self.plan,
                net: &self.net,
                folder: self.folder.path(),
                starts: self.starts,
            };
            self.processes[number] = Some(match number.checked_sub(self.plan.masters) {
                None => {
                    let table = self.table.as_ref().map(MemoryTable::view);
                    self.views[number] = table.as_ref().map_or(0, MemoryTable::number);
                    self.table_until[number] = None;
                    surroundings.master(number, table)
                }
                Some(node) => surroundings.node(node, &self.hosts, now),
            });
            (self.is_stirred[number], self.busy[number]) = (true, u32::MAX);
        }
    }

    /// Renames files into the spools of masters, whether they run or not.
    fn give_letters(&mut self, now: Now) {
        for (master, letters) in self.letters.iter_mut().enumerate() {
            while let Some((_, number)) = letters.pop_if(|(at, _)| *at <= now) {
                let letter = &self.plan.letters[number];
                let spool = master_folder(self.folder.path(), master).join("spool");
                let (part, whole) = (spool.join(".coming"), spool.join(&letter.name));
                fs::create_dir_all(&spool).expect("the disk does not fail");
                fs::write(&part, &letter.text).expect("the disk does not fail");
                fs::rename(&part, &whole).expect("the disk does not fail");
                self.judge.borrow_mut().given(&self.plan, master, number, now);
                self.report.lines += letter.lines.len() as u64;
            }
        }
    }

    fn let_things_happen(&mut self, now: Now) {
        if now >= self.fault_at {
            self.fault_at = self.plan.faults.next_at(&mut self.rng, now);
            self.misfortune(now);
        }
        for master in 0..MASTERS_MAX {
            if self.table_until[master].take_if(|until| *until <= now).is_some()
                && let Some(table) = &self.table
            {
                table.fail(self.views[master], Fault::None);
            }
        }
        if !self.is_calm && now >= self.plan.faults.until {
            self.is_calm = true;
            self.net.borrow_mut().delay(1_000);
        }
    }

    fn misfortune(&mut self, now: Now) {
        let master = self.rng.below(self.plan.masters as u64) as usize;
        let node = self.rng.below(self.plan.nodes as u64) as usize;
        let until = now.plus_ms(1 + self.rng.below(20_000));
        match self.plan.faults.draw(&mut self.rng) {
            Misfortune::Cut => self.net.borrow_mut().cut(master, node_links(node), until),
            Misfortune::Reset => self.net.borrow_mut().reset_between(master, node_links(node)),
            Misfortune::Delay => self.net.borrow_mut().delay(1 + self.rng.below(300_000)),
            Misfortune::Table => {
                let Some(table) = &self.table else { return };
                let fault = [Fault::Away, Fault::HalfWay, Fault::Slow][self.rng.below(3) as usize];
                table.fail(self.views[master], fault);
                self.table_until[master] = Some(until);
            }
            Misfortune::Move => return self.order_a_move(master, node),
            Misfortune::KillMaster => return self.kill(master, until, now),
            Misfortune::KillNode => return self.kill(self.plan.masters + node, until, now),
        }
        self.report.broken += 1;
    }

    /// Somebody tells a master that a domain is to be with another server; it does as it finds right.
    fn order_a_move(&mut self, master: usize, node: usize) {
        let host = self.rng.below(u64::from(self.plan.web.site.hosts)) as u32;
        let orders = master_folder(self.folder.path(), master).join("orders");
        fs::create_dir_all(&orders).expect("the disk does not fail");
        self.report.moves += 1;
        let order = orders.join(format!("{:08}.order", self.report.moves));
        fs::write(order, format!("move {} {}\n", host_name(host), 1 + node)).expect("the disk does not fail");
        self.judge.borrow_mut().may_move(host);
    }

    /// The process is gone without a word; what its files had stays.
    fn kill(&mut self, number: usize, until: Now, now: Now) {
        let Some(process) = self.processes[number].take() else { return };
        self.report.deaths += 1;
        self.restart_at[number] = Some(until);
        if let Process::Node(node) = &process {
            self.report.fail_overs += node.report.get().changes;
        }
        let node = number.checked_sub(self.plan.masters);
        let drivers = match node {
            None => number..number + 1,
            Some(node) => node_links(node)..node_links(node + 1),
        };
        drivers.for_each(|driver| self.net.borrow_mut().forget_driver(driver));
        drop(process);
        if let Some(node) = node {
            self.judge.borrow_mut().node_died(node, now);
        }
    }

    /// Whether all is done, and stays so.
    fn is_over(&mut self, now: Now) -> bool {
        let left = self.left_to_do();
        if left.is_some() {
            self.quiet_since = None;
        }
        let longest = 1_000_000 * REST_S_MAX;
        if let Some(left) = left.filter(|_| now.since_us(self.plan.faults.until) > longest) {
            panic!("it does not come to rest: {left}");
        }
        self.is_calm && now.since_us(*self.quiet_since.get_or_insert(now)) >= QUIET_US
    }

    /// What there is to do yet.
    fn left_to_do(&mut self) -> Option<String> {
        if self.letters.iter().any(|letters| !letters.is_empty()) {
            return Some("files are to come".to_string());
        }
        let mut ends: SortedMap<(String, u16), u64> = SortedMap::new();
        for (number, process) in self.processes.iter_mut().enumerate() {
            match process {
                None => return Some(format!("process {number} is to be started")),
                Some(Process::Master(master)) => {
                    let status = master.core.board.read();
                    let spool = master_folder(self.folder.path(), number).join("spool");
                    let mut files = fs::read_dir(&spool).into_iter().flatten().flatten();
                    if let Some(file) = files.find(|file| file.file_name() != "done") {
                        return Some(format!("master {number} has not taken {}", file.path().display()));
                    }
                    let orders = master_folder(self.folder.path(), number).join("orders");
                    let mut orders = fs::read_dir(&orders).into_iter().flatten().flatten();
                    if orders.any(|order| order.path().extension().is_some_and(|end| end == "order")) {
                        return Some(format!("master {number} has orders"));
                    }
                    if status.held > 0 {
                        return Some(format!("master {number} holds {} lines", status.held));
                    }
                    let next =
                        status.servers.iter().map(|server| ((address_of(number), server.id), server.next));
                    ends.extend(next);
                }
                Some(Process::Node(node)) => {
                    let stats = node.core.index.actor.provider().index().stats();
                    let number = number - self.plan.masters;
                    if stats.pending + stats.handed_out > 0 {
                        return Some(format!("node {number} has {stats:?}"));
                    }
                    let line = node.report.get();
                    if !line.leaving_domains.is_empty() {
                        return Some(format!("node {number} hands over {:?}", line.leaving_domains));
                    }
                    let end = line.used.as_ref().and_then(|used| ends.get(&(used.clone(), line.server)));
                    if end != Some(&line.seq) {
                        return Some(format!("node {number} has not taken all up to {end:?}: {line:?}"));
                    }
                }
            }
        }
        None
    }

    fn judge_the_end(&mut self) {
        self.judge_the_indexes();
        let domains: Vec<SortedMap<u32, ServerId>> =
            (0..self.plan.masters).map(|master| self.judge_a_master(master)).collect();
        for pair in domains.windows(2) {
            assert_eq!(pair[0], pair[1], "the masters have different maps");
        }
        self.report.requests = self.judge.borrow().requests;
        self.report.virtual_seconds = self.net.borrow().now().us() / 1_000_000;
    }

    /// Every URL is known to one node, and was fetched by it; where its domain was moved, to one at least.
    fn judge_the_indexes(&mut self) {
        let judge = self.judge.borrow();
        for (host, target) in judge.urls() {
            let url = format!("http://{}:{PORT}{target}", host_name(host));
            let mut known = Vec::new();
            for (number, process) in self.processes.iter_mut().enumerate() {
                let Some(Process::Node(node)) = process else { continue };
                let index = node.core.index.actor.provider().index();
                let Some(found) = index.look(&url).expect("the disk does not fail") else { continue };
                let result = found.row.and_then(|row| row.result);
                known.push((number - self.plan.masters, result));
            }
            let had = known.iter().filter(|(_, result)| result.is_some_and(|result| result.is_success()));
            let has_moved = judge.has_moved(host);
            assert!(had.count() > 0, "{url} was not fetched: it is known to {known:?}");
            assert!(known.len() == 1 || has_moved, "{url} is known to two nodes: {known:?}");
            self.report.documents += 1;
            self.report.success += 1;
        }
        for process in self.processes.iter().flatten() {
            if let Process::Node(node) = process {
                self.report.fail_overs += node.report.get().changes;
            }
        }
    }

    /// Its audit is clean, and it accounts for every hit; the map of its hosts.
    fn judge_a_master(&self, master: usize) -> SortedMap<u32, ServerId> {
        let folder = master_folder(self.folder.path(), master);
        let view = MasterView::open(&folder).expect("the disk does not fail");
        let mut view = view.expect("there is a master");
        let audit = MasterAudit::of(&mut view).expect("the disk does not fail");
        let violations = audit.violations_total;
        assert_eq!(violations, 0, "master {master}: {:?}", audit.violations.first());
        let given: u64 =
            self.plan.letters.iter().flat_map(|letter| &letter.lines).map(|line| u64::from(line.hits)).sum();
        assert_eq!(audit.hits_in, given, "hits that master {master} was given: {audit:?}");
        let out =
            audit.hits_sent + audit.hits_waiting + audit.hits_expired + audit.hits_rejected + audit.hits_held;
        assert_eq!(audit.hits_in, out, "hits of master {master}: {audit:?}");
        let server = |host| {
            let row = view.map().get(&host_name(host))?;
            assert_eq!(row.moving_to, None, "host {host} is still on its way, in master {master}");
            Some((host, row.server))
        };
        (0..self.plan.web.site.hosts).filter_map(server).collect()
    }
}

/// The keeper of a node, among its actors.
const KEEPER: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_to_the_step() {
        for seed in 0..3 {
            assert_eq!(run_master(seed), run_master(seed));
        }
    }
}
