use super::judge::SplitJudge;
use super::plan::{Misfortune, SPIDERS, SplitPlan};
use super::process::{DRIVERS, Process, STORE, Surroundings, URL_LINKS, spider_links, spider_of};
use crate::audit::{LogReader, Overrides};
use crate::base::{Now, Rng, SortedSet};
use crate::driver::SimNet;
use crate::engine::{Actor, MemoryFiles, RecordActor, Turned};
use crate::farm::{Site, host_name};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::sim::report::SimReport;
use crate::sim::turning::{DataFolder, is_due};
use crate::sim::web::{MisbehavingWeb, PORT, addresses_of};
use crate::store_server::{DataDir, Reader};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

/// The processes and their world.
struct SplitWorld {
    plan: SplitPlan,
    net: Rc<RefCell<SimNet>>,
    judge: Rc<RefCell<SplitJudge>>,
    urls: Vec<CrawlUrl>,
    hosts: String,
    /// The URL server, the spiders, the store server.
    processes: Vec<Option<Process>>,
    restart_at: Vec<Option<Now>>,
    files: Vec<MemoryFiles>,
    data: DataFolder,
    starts: u64,
    resent: u64,
    fault_at: Now,
    rng: Rng,
    report: SimReport,
}

const URL: usize = 0;
const STORE_PROCESS: usize = SPIDERS + 1;
const PROCESSES: usize = SPIDERS + 2;
/// A run that takes longer than this has hung.
const VIRTUAL_SECONDS_MAX: u64 = 2 * 86_400;
/// So has one that works without time passing.
const STEPS_PER_INSTANT_MAX: u32 = 10_000;

/// Runs the processes of one seed to their end. Panics with what went wrong; the seed replays it.
pub fn run_split(seed: u64) -> SimReport {
    let mut world = SplitWorld::new(SplitPlan::from_seed(seed));
    world.run();
    world.judge_the_end();
    world.report
}

impl SplitWorld {
    fn new(plan: SplitPlan) -> SplitWorld {
        let site = Rc::new(Site::new(plan.web.site.clone()).expect("plans are valid"));
        let judge = Rc::new(RefCell::new(SplitJudge::new(&plan)));
        let web = MisbehavingWeb::new(&plan.web, site, judge.clone());
        let net = SimNet::new(plan.web.seed, DRIVERS, Box::new(web));
        let (mut urls, mut hosts) = (Vec::new(), String::new());
        for host in 0..plan.web.site.hosts {
            let name = host_name(host);
            for ip in addresses_of(&plan.web, host) {
                let _ = writeln!(hosts, "{ip} {name}");
            }
            let paths = (1..plan.web.site.pages).map(|page| format!("p/{page}.html"));
            let paths = [String::new(), "private/0.html".to_string()].into_iter().chain(paths);
            let url = |path: String| CrawlUrl::parse(&format!("http://{name}:{PORT}/{path}"));
            urls.extend(paths.map(|path| url(path).expect("a farm URL")));
        }
        let mut rng = Rng::new(plan.web.seed ^ 0x5eed);
        let fault_at = plan.faults.next_at(&mut rng, Now::ZERO);
        let mut world = SplitWorld {
            net,
            judge,
            urls,
            hosts,
            processes: (0..PROCESSES).map(|_| None).collect(),
            restart_at: vec![Some(Now::ZERO); PROCESSES],
            files: vec![MemoryFiles::default(); PROCESSES],
            data: DataFolder::new(),
            starts: 0,
            resent: 0,
            fault_at,
            rng,
            report: SimReport::default(),
            plan,
        };
        // Each has files of its own.
        world.files.fill_with(MemoryFiles::default);
        world
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
            if now >= self.fault_at {
                self.fault_at = self.plan.faults.next_at(&mut self.rng, now);
                self.misfortune(now);
            }
            if now >= self.plan.faults.until {
                self.net.borrow_mut().delay(1_000);
            }
            let first = self.rng.below(PROCESSES as u64) as usize;
            let mut busy = false;
            for process in (0..PROCESSES).map(|n| (n + first) % PROCESSES) {
                match self.turn(process, now) {
                    Turned::Finished => return,
                    turned => busy |= turned == Turned::Busy,
                }
            }
            if !busy {
                let next = self.next_event(now);
                self.net.borrow_mut().advance(next);
                steps_of_instant = 0;
                assert!(next.us() < VIRTUAL_SECONDS_MAX * 1_000_000, "the run does not end");
            }
        }
    }

    /// Turns the actors of a process. Busy if one may have something more to do; finished if it is the URL server, and all
    /// is done.
    fn turn(&mut self, number: usize, now: Now) -> Turned {
        let Some(process) = &mut self.processes[number] else { return Turned::IDLE };
        let count = process.seats().len();
        let first = self.rng.below(count as u64) as usize;
        let mut busy = false;
        for n in (0..count).map(|n| (n + first) % count) {
            let Some(process) = &mut self.processes[number] else { unreachable!("it lives while it turns") };
            let mut seats = process.seats();
            let (actor, driver) = &mut seats[n];
            // Scheduler and doc index are woken by bells that do not ring here.
            let always = number == URL && n < 2;
            if !always && !is_due(*actor, *driver, &self.net.borrow(), now) {
                continue;
            }
            let turned = actor.turn(now);
            assert_ne!(turned, Turned::Stuck, "memory does not fail");
            busy |= turned == Turned::Busy || actor.has_messages();
            if let Turned::Idle { messages } = turned {
                busy |= messages > 0 && driver.is_none();
            }
            drop(seats);
            self.observe(number, n, now);
            if turned == Turned::Finished && number == URL && n == 4 {
                return Turned::Finished;
            }
        }
        Turned::busy_if(busy)
    }

    /// Shows the judge what has changed.
    fn observe(&mut self, number: usize, actor: usize, now: Now) {
        let mut judge = self.judge.borrow_mut();
        match &self.processes[number] {
            Some(Process::Url(url)) if actor == 4 => {
                let source = url.shard.source();
                assert!(source.url_server().invariants());
                let resent = source.url_server().stats().resent;
                let has_resent = std::mem::replace(&mut self.resent, resent) != resent;
                let open = source.open_pages().into_iter().map(|page| {
                    let peer = page.spider.expect("an open page is with a spider that is linked");
                    let std::net::IpAddr::V4(ip) = peer.ip() else { unreachable!("drivers have addresses") };
                    let spider = spider_of(usize::from(ip.octets()[3])).expect("a spider has it");
                    (spider, page.url.into_string(), page.trans)
                });
                judge.url_server_has(open, has_resent, now);
            }
            Some(Process::Spider(spider)) if actor == 0 => {
                judge.spider_has(number - 1, spider.core.dispatcher.actor.open_orders());
            }
            _ => {}
        }
    }

    fn next_event(&mut self, now: Now) -> Now {
        let mut next = [Some(self.fault_at), self.net.borrow().next_at()].into_iter().flatten().min();
        for process in self.processes.iter_mut().flatten() {
            for (actor, _) in process.seats() {
                next = next.into_iter().chain(actor.next_due()).min();
            }
        }
        let next = next.into_iter().chain(self.restart_at.iter().flatten().copied()).min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(now).max(now.plus_us(10))
    }

    fn start_what_is_due(&mut self, now: Now) {
        for number in 0..PROCESSES {
            if self.restart_at[number].take_if(|at| *at <= now).is_none() {
                continue;
            }
            self.starts += 1;
            let surroundings = Surroundings { plan: &self.plan, net: &self.net, starts: self.starts };
            let files = &self.files[number];
            self.processes[number] = Some(match number {
                URL => surroundings.url_server(self.urls.clone(), &self.hosts, files),
                STORE_PROCESS => surroundings.store_server(self.data.path()),
                spider => surroundings.spider(spider - 1, files),
            });
        }
    }

    fn misfortune(&mut self, now: Now) {
        let spider = self.rng.below(SPIDERS as u64) as usize;
        let ends = match self.rng.chance(500) {
            true => vec![(URL_LINKS, spider_links(spider))],
            // The acceptor has a connection until a worker adopts it.
            false => (STORE..DRIVERS).map(|store| (store, spider_links(spider) + 1)).collect(),
        };
        let kind = self.plan.faults.draw(&mut self.rng);
        let until = now.plus_ms(1 + self.rng.below(8_000));
        let to_store = ends.len() > 1;
        let mut net = self.net.borrow_mut();
        match kind {
            // It cannot tell a store server that is cut off before its first word from one that never counts.
            Misfortune::Cut if to_store && !self.is_counted(spider) => return,
            Misfortune::Cut => ends.into_iter().for_each(|(a, b)| net.cut(a, b, until)),
            Misfortune::Reset => ends.into_iter().for_each(|(a, b)| net.reset_between(a, b)),
            Misfortune::Delay => net.delay(1 + self.rng.below(300_000)),
            Misfortune::Kill | Misfortune::PowerLoss => {
                drop(net);
                let victim = match kind {
                    Misfortune::PowerLoss => STORE_PROCESS,
                    _ => self.rng.below(PROCESSES as u64) as usize,
                };
                return self.kill(victim, matches!(kind, Misfortune::PowerLoss), now);
            }
        }
        self.report.broken += 1;
    }

    /// Whether a spider that runs knows that its records are counted.
    fn is_counted(&self, spider: usize) -> bool {
        let Some(Process::Spider(process)) = &self.processes[1 + spider] else { return true };
        matches!(&process.core.records, RecordActor::Server(sender) if sender.is_counted())
    }

    /// The process is gone without a word; what its files had stays.
    fn kill(&mut self, number: usize, loses_power: bool, now: Now) {
        let Some(process) = self.processes[number].take() else { return };
        self.report.deaths += 1;
        self.restart_at[number] = Some(now.plus_ms(1 + self.rng.below(4_000)));
        if let (Process::Store(store), true) = (&process, loses_power) {
            store.core.keeper.lose_power().expect("the disk does not fail");
        }
        let drivers = match number {
            URL => URL_LINKS..URL_LINKS + 2,
            STORE_PROCESS => STORE..DRIVERS,
            spider => spider_links(spider - 1)..spider_links(spider - 1) + 4,
        };
        drivers.for_each(|driver| self.net.borrow_mut().forget_driver(driver));
        drop(process);
        match number {
            URL => {
                self.resent = 0;
                self.judge.borrow_mut().url_server_died(now);
            }
            STORE_PROCESS => {}
            spider => self.judge.borrow_mut().spider_died(spider - 1),
        }
    }

    fn judge_the_end(&mut self) {
        self.judge_the_answers();
        let now = self.net.borrow().now();
        for process in self.processes.iter_mut().flatten() {
            match process {
                Process::Url(url) => drop(url.core.log_writer.actor.turn(now)),
                Process::Spider(spider) => drop(spider.core.log_writer.actor.turn(now)),
                Process::Store(_) => {}
            }
        }
        // Without reports a URL server does not learn which hosts ask for more time.
        if self.report.deaths + self.report.broken == 0 && self.plan.web.config.spider.report {
            self.audit();
        }
        let kills = self.report.deaths;
        self.kill(STORE_PROCESS, true, now);
        self.report.deaths = kills;
        self.judge_the_store();
        let judge = self.judge.borrow();
        (self.report.requests, self.report.left_behind) = (judge.requests, judge.left_behind);
        self.report.virtual_seconds = now.us() / 1_000_000;
    }

    /// Every URL of the list has its answer, once.
    fn judge_the_answers(&mut self) {
        let Some(Process::Url(url)) = &mut self.processes[URL] else {
            panic!("the URL server ends of itself")
        };
        let done = url.core.scheduler.actor.documents_done();
        let index = url.core.index.actor.provider().index();
        let stats = index.stats();
        assert_eq!((stats.pending, stats.handed_out, stats.waiting), (0, 0, 0), "URLs were left over");
        assert_eq!(stats.known, self.urls.len() as u64, "every URL of the list, and no other");
        assert_eq!(done, stats.known, "each is counted once");
        for doc_id in 1..index.next_doc() {
            let found = index.document(doc_id).expect("memory does not fail").expect("a document");
            let url = &found.discovered.url;
            let Some(result) = found.row.and_then(|row| row.result) else { panic!("{url} has no answer") };
            self.report.success += u64::from(result.is_success());
            if url.contains("/private/") {
                let refused = matches!(result, ResultCode::RobotsDenied | ResultCode::HostSetAside);
                assert!(refused, "{result} of {url}, which robots.txt denies");
            }
        }
        self.report.documents = stats.known;
    }

    /// The logs of all processes together prove how every host was treated.
    fn audit(&self) {
        let mut reader = LogReader::new(Overrides::default());
        for (number, files) in self.files.iter().enumerate().take(STORE_PROCESS) {
            reader.open_file(&format!("the log of process {number}"));
            files.written().0.split_inclusive(|&byte| byte == b'\n').for_each(|line| reader.line(line));
            reader.close_file();
        }
        let report = reader.judge();
        let Some(first) = report.violations.first() else { return };
        let line = |place: crate::audit::Place| {
            let log = self.files[place.file as usize].written().0;
            let line = log.split(|&byte| byte == b'\n').nth(place.line as usize - 1).unwrap_or_default();
            String::from_utf8_lossy(line).into_owned()
        };
        let lines = (line(first.place), first.other.map(line));
        panic!("{} violations, the first {first:?}: {lines:?}", report.violations.len());
    }

    /// Whatever a spider answered for is in the store, whole.
    fn judge_the_store(&mut self) {
        drop(DataDir::open(self.data.path()).expect("the store is opened again"));
        let reader = Reader::open(self.data.path()).expect("the store reads");
        let mut stored = SortedSet::new();
        let damage = reader.each(|located, _| {
            stored.insert(located.record.url.to_string());
        });
        let damage = damage.expect("the store reads");
        assert!(damage.is_empty(), "damaged at {:?}", damage.first().map(|damage| damage.bytes.clone()));
        let judge = self.judge.borrow();
        let lost: Vec<&String> = judge.promised.iter().filter(|url| !stored.contains(*url)).collect();
        assert!(
            lost.is_empty(),
            "{} records that were answered for are not stored, one of {}",
            lost.len(),
            lost[0]
        );
        self.report.stored = judge.promised.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_to_the_step() {
        for seed in 0..4 {
            assert_eq!(run_split(seed), run_split(seed));
        }
    }
}
