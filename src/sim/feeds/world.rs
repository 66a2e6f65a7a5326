use super::plan::{DAY_S, FeedsPlan};
use super::web::{NewsWeb, Shared, address_of, feed_url};
use crate::audit::{LogReader, Overrides};
use crate::base::{Now, Rng, SortedSet, Wall};
use crate::driver::{SimDriver, SimNet};
use crate::engine::{
    Actor, CrawlSeat, CrawlShard, CrawlStore, CrawlTask, HostsFile, NamedFeed, Names, NodeCore, NodeSetup,
    OpenIndex, ShardMaker, Turned, assemble,
};
use crate::farm::host_name;
use crate::feeds::{FeedsView, Known, StoriesView, StoryId, StoryState};
use crate::proto::crawl_log::CRAWL_LOG;
use crate::proto::url::CrawlUrl;
use crate::rings::Doorbell;
use crate::sim::report::SimReport;
use crate::sim::turning::DataFolder;
use crate::store_server::DataDir;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::rc::Rc;

/// The node and its world.
struct FeedsWorld {
    plan: Rc<FeedsPlan>,
    web: Rc<RefCell<NewsWeb>>,
    folder: DataFolder,
    hosts: String,
    feeds: Vec<NamedFeed>,
    /// Microseconds since 1970.
    now_us: u64,
    died_us: u64,
    kill: Kill,
    kills_left: u64,
    rng: Rng,
    report: SimReport,
}

/// How a life ends.
#[derive(Clone, Copy, Debug)]
enum Kill {
    Never,
    /// At this time.
    At(u64),
    /// In the moments after the next answer of a feed that is asked for after this time.
    AfterAnswer(u64),
    /// When so many more actors have turned.
    Within(u64),
}

/// A node that runs. It is killed by dropping it.
struct Life {
    node: NodeCore,
    shards: Vec<CrawlShard<SimDriver>>,
    net: Rc<RefCell<SimNet>>,
    wall: Wall,
    keeper_at: Now,
    /// Actors that have more to do at once, a bit for each.
    busy: u32,
    /// When each has something to do, as it said after its last turn.
    due: Vec<Option<Now>>,
    end: Now,
}

/// The day on which it begins: a Friday.
const BEGIN_MS: u64 = 1_800_000_000_000;
/// After the last post everything has this long to be found and fetched: a week until the next poll, and tries again.
const REST_DAYS: u32 = 10;
/// A run that works without time passing has hung.
const STEPS_PER_INSTANT_MAX: u32 = 100_000;
/// So many times in a thousand an actor turns that has nothing to do.
const WOKEN_FOR_NOTHING: u64 = 20;
/// Time that passes at least when no actor has work.
const TICK_US: u64 = 20;

/// Runs the feeds of one seed to their end. Panics with what went wrong; the seed replays it.
pub fn run_feeds(seed: u64) -> SimReport {
    run_plan(FeedsPlan::from_seed(seed))
}

/// Runs so many feeds for so many days: sources post from once in four days to once in four months.
pub fn run_feeds_for(seed: u64, feeds: u32, days: u32) -> SimReport {
    run_plan(FeedsPlan::of(seed, feeds, days, (4.0, 120.0)))
}

fn run_plan(plan: FeedsPlan) -> SimReport {
    let mut world = FeedsWorld::new(plan);
    world.run();
    world.judge_the_end();
    world.report
}

/// The keeper has no queue: it looks when it is its time.
const KEEPER: usize = 3;
/// The first of the shards.
const SHARDS: usize = 4;

impl Life {
    /// Who turns, but for the keeper.
    fn actor(&self, actor: usize) -> Option<&dyn Actor> {
        match actor {
            0 => Some(&self.node.scheduler.actor),
            1 => Some(&self.node.index.actor),
            2 => Some(&self.node.log_writer.actor),
            KEEPER => None,
            n => Some(&self.shards[n - SHARDS]),
        }
    }

    /// What wakes the thread of an actor.
    fn bell(&self, actor: usize) -> Option<&Doorbell> {
        match actor {
            0 => Some(&self.node.scheduler.bell.door),
            1 => Some(&self.node.index.bell.door),
            _ => None,
        }
    }
}

/// Whether an actor has something to do: its thread would sleep otherwise.
fn has_work(life: &Life, actor: usize, now: Now) -> bool {
    let is_more = life.busy >> actor & 1 == 1;
    let is_woken = life.bell(actor).is_some_and(|bell| !bell.is_asleep());
    let is_due = life.due[actor].is_some_and(|due| due <= now);
    let has_messages = life.actor(actor).is_some_and(Actor::has_messages);
    is_more
        || is_woken
        || is_due
        || has_messages
        || match actor {
            0 | 1 => polls_at(life).is_some_and(|at| at <= now),
            KEEPER => now >= life.keeper_at,
            2 => false,
            n => life.net.borrow().has_arrived(n - SHARDS),
        }
}

/// What is due is asked for when the second begins.
fn polls_at(life: &Life) -> Option<Now> {
    let due_s = life.node.index.actor.provider().index().stats().next_due_s?;
    Some(Now::ZERO.plus_ms((u64::from(due_s) * 1_000).saturating_sub(life.wall.unix_ms_at_zero)))
}

impl FeedsWorld {
    fn new(plan: FeedsPlan) -> FeedsWorld {
        let plan = Rc::new(plan);
        let wall = Wall { unix_ms_at_zero: BEGIN_MS };
        let mut hosts = String::new();
        for host in 0..plan.hosts {
            let _ = writeln!(hosts, "{} {}", address_of(&plan, host), host_name(host));
        }
        let feeds = (0..plan.feeds.len() as u32).map(|feed| NamedFeed {
            url: CrawlUrl::parse(&feed_url(&plan, feed, 0)).expect("a URL"),
            source: format!("source-{}", plan.feeds[feed as usize].source),
            title: String::new(),
        });
        let feeds = feeds.collect();
        let mut world = FeedsWorld {
            web: Rc::new(RefCell::new(NewsWeb::new(plan.clone(), wall))),
            folder: DataFolder::new(),
            hosts,
            feeds,
            now_us: BEGIN_MS * 1_000,
            died_us: 0,
            kill: Kill::Never,
            kills_left: plan.kills_max,
            rng: Rng::new(plan.seed ^ 0x5eed),
            report: SimReport::default(),
            plan,
        };
        world.draw_kill();
        world
    }

    fn calm_us(&self) -> u64 {
        BEGIN_MS * 1_000 + u64::from(self.plan.days * DAY_S) * 1_000_000
    }

    fn draw_kill(&mut self) {
        self.kill = Kill::Never;
        if self.plan.kill_s == 0 || self.kills_left == 0 {
            return;
        }
        let at_us = self.now_us + 1 + self.rng.below(2_000_000 * self.plan.kill_s);
        if at_us < self.calm_us() {
            self.kills_left -= 1;
            self.kill = if self.rng.chance(500) { Kill::At(at_us) } else { Kill::AfterAnswer(at_us) };
        }
    }

    fn run(&mut self) {
        loop {
            let mut life = self.begin();
            let is_killed = self.live(&mut life);
            drop(life);
            if !is_killed {
                return;
            }
            self.report.deaths += 1;
            self.died_us = self.now_us;
            self.web.borrow_mut().judge.died(self.now_us);
            let down_s = [1, 60, 6 * 3_600, 5 * u64::from(DAY_S)][self.rng.below(4) as usize];
            // Processes begin with a millisecond.
            self.now_us = (self.now_us + 1_000 + self.rng.below(1_000_000 * down_s)) / 1_000 * 1_000;
            self.draw_kill();
        }
    }

    /// Begins a process on the files of those before.
    fn begin(&mut self) -> Life {
        let wall = Wall { unix_ms_at_zero: self.now_us / 1_000 };
        self.web.borrow_mut().wall = wall;
        let mut config = self.plan.config.clone();
        config.cores = (0..self.plan.shards).collect();
        config.store.data = self.folder.path().to_path_buf();
        let setup = NodeSetup::new(config);
        let directory = DataDir::open(self.folder.path()).expect("the directory is free");
        let now_s = (self.now_us / 1_000_000) as u32;
        let index = OpenIndex::open_at(&setup.config, &directory, None, now_s, |_| {});
        let index = index.unwrap_or_else(|error| panic!("the index: {error}"));
        // Some name their feeds each time.
        let is_named = self.report.deaths == 0 || self.rng.chance(500);
        let feeds = if is_named { self.feeds.clone() } else { Vec::new() };
        let task = CrawlTask { seeds: Vec::new(), feeds, store: CrawlStore::Directory(directory), index };
        let names = |_, _| Ok(Names::table(HostsFile::parse(&self.hosts)));
        let node = assemble(&setup, task, names, wall);
        let node = node.unwrap_or_else(|error| panic!("the node does not start: {error}"));
        let seed = self.rng.next_u64();
        let net = SimNet::new(seed, self.plan.shards, Box::new(Shared(self.web.clone())));
        let make = |(number, seat): (usize, &CrawlSeat)| {
            seat.maker.make(SimDriver::new(net.clone(), number, self.plan.conns_max), 0)
        };
        let shards = node.shards.iter().enumerate().map(make).collect();
        self.judge_the_beginning();
        let end_us = self.calm_us() + u64::from(REST_DAYS * DAY_S) * 1_000_000;
        let end = Now::ZERO.plus_us(end_us.saturating_sub(self.now_us));
        let due = vec![None; SHARDS + self.plan.shards];
        Life { node, shards, net, wall, keeper_at: Now::ZERO, busy: u32::MAX, due, end }
    }

    /// Tells the judge what is on disk of the last answers.
    fn judge_the_beginning(&mut self) {
        let path = self.folder.path();
        let stories = StoriesView::open(path).expect("the disk does not fail");
        let feeds = FeedsView::open(path).expect("the disk does not fail").expect("there are feeds");
        let attempt_s = |feed: usize| {
            let id = feeds.by_url(&feed_url(&self.plan, feed as u32, 0));
            id.and_then(|id| feeds.feed(id)).map_or(0, |feed| feed.polls().attempt_s())
        };
        let is_known = |source: usize, url: &str| {
            let Some(stories) = &stories else { return false };
            let Some(of) = feeds.source_named(&format!("source-{source}")) else { return false };
            let known = stories.by_url(url, feeds.sources()).expect("the disk does not fail");
            known.iter().any(|known| match known {
                Known::Story(story) => story.source == of.id,
                Known::Duplicate { source, .. } => *source == of.id,
            })
        };
        self.web.borrow_mut().judge.begun(self.now_us, self.died_us, attempt_s, is_known);
    }

    /// Lets a process run to its end. True if it was killed.
    fn live(&mut self, life: &mut Life) -> bool {
        let begin_us = self.now_us;
        let mut steps_of_instant = 0;
        loop {
            self.report.steps += 1;
            let now = life.net.borrow().now();
            self.now_us = begin_us + now.us();
            if now >= life.end {
                return false;
            }
            let mut busy = false;
            let actors = (SHARDS + life.shards.len()) as u64;
            let first = self.rng.below(actors);
            for actor in (0..actors).map(|n| ((n + first) % actors) as usize) {
                // Threads are woken for nothing, too.
                if !has_work(life, actor, now) && !self.rng.chance(WOKEN_FOR_NOTHING) {
                    continue;
                }
                busy |= self.turn(life, actor, now);
                if let Kill::Within(turns) = &mut self.kill {
                    match turns {
                        0 => return true,
                        turns => *turns -= 1,
                    }
                }
            }
            self.look_for_death();
            steps_of_instant += 1;
            assert!(steps_of_instant < STEPS_PER_INSTANT_MAX, "busy for ever at {now:?}");
            let (scheduler, index) = (&life.node.scheduler.actor, &life.node.index.actor);
            if !busy && !scheduler.has_messages() && !index.has_messages() {
                let next = self.next_event(life, now, begin_us);
                steps_of_instant = if next > now { 0 } else { steps_of_instant };
                life.net.borrow_mut().advance(next);
            }
        }
    }

    /// Turns one of the actors. True if there may be more to do at once.
    fn turn(&mut self, life: &mut Life, actor: usize, now: Now) -> bool {
        life.busy &= !(1 << actor);
        let turned = match actor {
            0 => life.node.scheduler.actor.turn(now),
            1 => life.node.index.actor.turn(now),
            2 => life.node.log_writer.actor.turn(now),
            KEEPER => {
                let before = life.node.scheduler.actor.has_messages();
                if now >= life.keeper_at {
                    life.node.keeper.turn(now);
                    life.keeper_at = now.plus_ms(1 + self.rng.below(2 * self.plan.commit_ms - 1));
                }
                return life.node.scheduler.actor.has_messages() && !before;
            }
            n => life.shards[n - SHARDS].turn(now),
        };
        life.busy |= u32::from(turned == Turned::Busy) << actor;
        life.due[actor] = life.actor(actor).and_then(Actor::next_due);
        if let Some(bell) = life.bell(actor).filter(|_| turned != Turned::Busy) {
            bell.falling_asleep();
        }
        match (actor, turned) {
            (_, Turned::Stuck) => panic!("the disk does not fail"),
            (_, Turned::Finished) => {
                panic!("actor {actor} has ended at {now:?}: {:?}", life.node.health.take())
            }
            (_, Turned::Busy) => true,
            (1 | 2, Turned::Idle { messages }) => messages > 0,
            (_, Turned::Idle { .. }) => false,
        }
    }

    fn look_for_death(&mut self) {
        match self.kill {
            Kill::At(at_us) if self.now_us >= at_us => self.kill = Kill::Within(self.rng.below(30)),
            Kill::AfterAnswer(from_us) if self.now_us >= from_us => {
                let answer_us = self.web.borrow().answer_us;
                if answer_us > self.now_us {
                    // Until everything is durable that came of it.
                    let window_us = 3_000 * self.plan.commit_ms + 20_000;
                    self.kill = Kill::At(answer_us + self.rng.below(window_us));
                }
            }
            _ => {}
        }
    }

    fn next_event(&self, life: &Life, now: Now, begin_us: u64) -> Now {
        let due = life.shards.iter().filter_map(Actor::next_due);
        // A commit is only worth waking for if somebody waits for it.
        let commit = life.node.scheduler.actor.waits_for_commit().then_some(life.keeper_at);
        let kill = match self.kill {
            Kill::At(at_us) => Some(Now::ZERO.plus_us(at_us.saturating_sub(begin_us))),
            _ => None,
        };
        let polls = polls_at(life).filter(|at| *at > now);
        let next = due
            .chain(life.net.borrow().next_at())
            .chain(commit)
            .chain(kill)
            .chain(polls)
            .chain(life.node.log_writer.actor.next_due())
            .min();
        // A timer may fall due within the present instant; the next look is a tick later.
        next.unwrap_or(life.end).min(life.end).max(now.plus_us(TICK_US))
    }

    /// The crawl log proves that every host and address was treated as it must be, and no feed asked before it was due.
    fn audit(&self) {
        let mut intake = LogReader::new(Overrides::default());
        intake.open_file("the crawl log");
        let log = std::fs::read(self.folder.path().join(CRAWL_LOG)).expect("there is a log");
        log.split_inclusive(|&byte| byte == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
        let report = intake.judge();
        let first = report.violations.first();
        assert!(report.violations.is_empty(), "{} violations, the first {first:?}", report.violations.len());
    }

    /// On disk are the stories of the model, each once and fetched; and what is told of feeds is what their servers saw.
    fn judge_the_end(&mut self) {
        let web = &mut *self.web.borrow_mut();
        web.judge.judge_the_end(self.now_us);
        self.audit();
        let path = self.folder.path();
        let stories = StoriesView::open(path).expect("the disk does not fail").expect("there are stories");
        let view = FeedsView::open(path).expect("the disk does not fail").expect("there are feeds");
        let mut found: Vec<HashSet<String>> = self.plan.sources.iter().map(|_| HashSet::new()).collect();
        for story in stories.since(StoryId(0)).expect("the disk does not fail") {
            let story = story.expect("the disk does not fail");
            let name = view.source(story.source).map_or("", |source| &source.name);
            let source: usize = name.strip_prefix("source-").and_then(|n| n.parse().ok()).expect("a source");
            assert!(found[source].insert(story.url.to_string()), "{} is there twice", story.url);
            assert_eq!(story.state, StoryState::Fetched, "{} of {name}", story.url);
            self.report.stories += 1;
        }
        for (source, (found, book)) in found.iter().zip(web.judge.books()).enumerate() {
            if found != book.stories() {
                let lost: SortedSet<&String> = book.stories().difference(found).collect();
                let more: SortedSet<&String> = found.difference(book.stories()).collect();
                panic!("stories of source {source}: {lost:?} are missing, {more:?} are none");
            }
        }
        for (feed, (gaps, lies)) in web.judge.counts().enumerate() {
            let url = feed_url(&self.plan, feed as u32, 0);
            let Some(id) = view.by_url(&url) else { panic!("{url} is in no book") };
            let Some(known) = view.feed(id) else { panic!("{url} was removed") };
            // What became one with another has that one's figures.
            if known.url().starts_with(&url) {
                let told = known.polls().gaps();
                assert!(gaps.is_none_or(|gaps| gaps == told), "feed {feed}: {told} gaps, not {gaps:?}");
                assert_eq!(known.polls().lies(), lies, "whether feed {feed} lies");
            }
            self.report.gaps += u64::from(gaps.unwrap_or(0));
            self.report.liars += u64::from(lies);
        }
        self.report.requests = web.judge.requests;
        self.report.polls = web.judge.polls;
        self.report.on_time = web.judge.on_time;
        self.report.virtual_seconds = (self.now_us / 1_000 - BEGIN_MS) / 1_000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_of_a_seed_keep_every_promise_and_replay_to_the_step() {
        let run = || {
            let plan = FeedsPlan::of(16, 10, 12, (0.1, 5.0));
            run_plan(FeedsPlan { kill_s: u64::from(DAY_S / 2), ..plan })
        };
        let report = run();
        assert!(report.deaths > 3 && report.stories > 50 && report.polls > 300, "{report:?}");
        assert_eq!(report, run());
    }
}
