use super::expected::{Answer, Expected, PollRules, Said, Validators};
use super::listing::Entry;
use super::plan::{FeedPlan, FeedsPlan};
use super::story_book::{Brought, Remembered, StoryBook};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Sees every request as the servers do, and holds the node to its promises.
///
/// What a node knows after a kill is not certain: an answer that came moments before may be lost, and is asked for again.
/// So a feed has several states that a node may think it in; each request must agree with one of them, and those that it
/// does not agree with are gone.
pub struct FeedsJudge {
    pub began_s: u32,
    rules: PollRules,
    gap_us: u64,
    /// What a kill may cost, from the moment of an answer on.
    window_us: u64,
    /// Nothing holds a poll up: each is on time to the second.
    is_prompt: bool,
    feeds: Vec<JudgedFeed>,
    books: Vec<StoryBook>,
    /// Answers of feeds that are on their way, by when they are there.
    coming: BTreeMap<u64, Coming>,
    stories: HashMap<String, Page>,
    hosts: HashMap<u32, Host>,
    last_of_ip: HashMap<IpAddr, u64>,
    /// When the process that lives began.
    life_us: u64,
    pub requests: u64,
    pub polls: u64,
    pub on_time: u64,
}

struct JudgedFeed {
    source: usize,
    states: Vec<Expected>,
    /// Before the last answer, and when that was.
    before: (u64, Vec<Expected>),
    remembered: Remembered,
    /// The last answer had news.
    had_news: bool,
    /// A kill came moments after the answer to its last poll, which was at this time. Counts may differ by one for good.
    unsure_s: Option<u32>,
    was_unsure: bool,
    is_open: bool,
}

/// An answer of a feed that is on its way.
pub struct Coming {
    pub feed: usize,
    pub place: u32,
    pub answer: Answer,
    /// Of a listing.
    pub entries: Vec<Entry>,
    /// It was asked for with conditions.
    pub conditional: bool,
}

#[derive(Default)]
struct Page {
    /// When it was answered as it should be.
    had_us: Option<u64>,
    not_before_us: u64,
    /// A kill may have undone that.
    is_unsure: bool,
}

#[derive(Default)]
struct Host {
    last_us: u64,
    has_robots: bool,
    /// It asked for a pause, and when.
    rests_until_us: u64,
    said_us: u64,
}

/// A request.
#[derive(Debug)]
pub struct Asked {
    pub host: u32,
    pub ip: IpAddr,
    pub target: String,
    pub now_us: u64,
}

impl Asked {
    pub fn now_s(&self) -> u32 {
        (self.now_us / 1_000_000) as u32
    }
}

/// What is written down of a host takes at most this long to be on disk.
const JOURNAL_US: u64 = 600_000;
/// The last bytes of an answer come this much after its first at most.
const WHOLE_US: u64 = 50_000;
/// The first try of a page that failed again.
const RETRY_S: u64 = 3_600;
/// A poll that nothing holds up but slow answers at its address is this late at most.
const LATE_S_MAX: u32 = 30;

impl FeedsJudge {
    pub fn new(plan: &FeedsPlan, began_s: u32) -> FeedsJudge {
        let per_sec = plan.config.url_server.req_host_per_sec.0;
        let judged = |feed: &FeedPlan| JudgedFeed {
            source: feed.source,
            states: vec![Expected::new(began_s)],
            before: (0, Vec::new()),
            remembered: Remembered::default(),
            had_news: false,
            unsure_s: None,
            was_unsure: false,
            is_open: false,
        };
        FeedsJudge {
            began_s,
            rules: plan.rules(),
            gap_us: if per_sec > 0.0 { (1_000_000.0 / per_sec).ceil() as u64 } else { 0 },
            window_us: 2_000 * plan.commit_ms + WHOLE_US,
            is_prompt: plan.is_prompt,
            feeds: plan.feeds.iter().map(judged).collect(),
            books: (0..plan.sources.len()).map(|n| StoryBook::new(&format!("source-{n}"))).collect(),
            coming: BTreeMap::new(),
            stories: HashMap::new(),
            hosts: HashMap::new(),
            last_of_ip: HashMap::new(),
            life_us: u64::from(began_s) * 1_000_000,
            requests: 0,
            polls: 0,
            on_time: 0,
        }
    }

    /// A request for anything.
    pub fn asked(&mut self, asked: &Asked) {
        self.settle(asked.now_us);
        self.requests += 1;
        let Asked { host: number, ip, now_us, .. } = *asked;
        let host = self.hosts.entry(number).or_default();
        let gap_us = now_us - host.last_us.max(self.life_us.min(now_us));
        let is_first = host.last_us < self.life_us;
        assert!(
            is_first || gap_us >= self.gap_us,
            "{asked:?}: {gap_us} µs after the last request to its host"
        );
        host.last_us = now_us;
        assert!(
            now_us >= host.rests_until_us,
            "{asked:?}: its host asked for a pause until {}",
            host.rests_until_us
        );
        match asked.target == "/robots.txt" {
            true => host.has_robots = true,
            false => assert!(host.has_robots, "{asked:?}: before its robots.txt"),
        }
        let last_us = self.last_of_ip.insert(ip, now_us).unwrap_or(0);
        let is_first = last_us < self.life_us;
        assert!(is_first || now_us - last_us >= self.gap_us, "{asked:?}: too soon for its address");
    }

    pub fn feed_asked(&mut self, asked: &Asked, number: u32, place: u32, with: &Validators) {
        self.polls += 1;
        let feed = &mut self.feeds[number as usize];
        assert!(!feed.is_open, "{asked:?}: feed {number} is being asked already");
        feed.is_open = true;
        let now_s = asked.now_s();
        let tried: Vec<Result<Expected, String>> =
            feed.states.iter().map(|state| state.asked(place, with, now_s)).collect();
        let mut fit = Vec::new();
        for next in tried.iter().flatten() {
            if !fit.contains(next) {
                fit.push(next.clone());
            }
        }
        assert!(!fit.is_empty(), "{asked:?} with {with:?}: {tried:?}, as it is known: {:#?}", feed.states);
        // To the second, where nothing holds a poll up.
        if let [state] = &feed.states[..]
            && self.is_prompt
            && state.hop.is_none()
            && u64::from(state.due_s) * 1_000_000 > self.life_us + 1_000_000
        {
            let late_s = now_s - state.due_s;
            assert!(
                late_s <= LATE_S_MAX,
                "{asked:?}: {late_s} s late, though nothing held it up: {state:#?}"
            );
            self.on_time += 1;
        }
        feed.states = fit;
    }

    /// The answer to it is whole at this time.
    pub fn feed_answers(&mut self, asked: &Asked, coming: Coming, mut at_us: u64) {
        self.rests(asked.host, coming.answer.retry_after_s, at_us);
        while self.coming.contains_key(&at_us) {
            at_us += 1;
        }
        self.coming.insert(at_us, coming);
    }

    fn rests(&mut self, host: u32, retry_after_s: Option<u32>, at_us: u64) {
        if let Some(seconds) = retry_after_s {
            let host = self.hosts.entry(host).or_default();
            let until_us = at_us + u64::from(seconds.min(86_400)) * 1_000_000;
            (host.rests_until_us, host.said_us) = (until_us.max(host.rests_until_us), at_us);
        }
    }

    pub fn story_asked(&mut self, asked: &Asked, source: usize, url: &str, busy_s: Option<u32>, at_us: u64) {
        let is_story = self.books[source].stories().contains(url);
        assert!(is_story, "{asked:?}: it is no story of source {source}");
        let page = self.stories.entry(url.to_string()).or_default();
        assert!(page.had_us.is_none() || page.is_unsure, "{asked:?}: it was had at {:?}", page.had_us);
        assert!(asked.now_us >= page.not_before_us, "{asked:?}: a try too soon");
        page.is_unsure = false;
        match busy_s {
            None => page.had_us = Some(at_us),
            // The doc index counts whole seconds.
            Some(_) => page.not_before_us = (at_us / 1_000_000 + RETRY_S) * 1_000_000,
        }
        self.rests(asked.host, busy_s, at_us);
    }

    /// Takes note of the answers that have come by now.
    pub fn settle(&mut self, now_us: u64) {
        while let Some(first) = self.coming.first_entry().filter(|first| *first.key() <= now_us) {
            let (at_us, coming) = first.remove_entry();
            let Coming { feed: number, place, answer, entries, conditional } = coming;
            let feed = &mut self.feeds[number];
            feed.is_open = false;
            feed.before = (at_us, feed.states.clone());
            let at_s = (at_us / 1_000_000) as u32;
            let brought = match answer.said {
                Said::Listing(..) => {
                    self.books[feed.source].listed((number, &mut feed.remembered), &entries, at_s)
                }
                _ => Brought::default(),
            };
            feed.had_news = brought.new > 0;
            for state in &mut feed.states {
                // A second that has begun counts whole.
                state.answered(place, &answer, &brought, conditional, at_s + 1, &self.rules);
            }
        }
    }

    /// The process is gone. What came moments before may be lost with it.
    pub fn died(&mut self, now_us: u64) {
        self.settle(now_us);
        self.coming.clear();
        let lost = |at_us: u64| now_us - at_us <= self.window_us;
        for feed in &mut self.feeds {
            feed.is_open = false;
            let is_lost = lost(feed.before.0);
            feed.unsure_s = is_lost.then_some((feed.before.0 / 1_000_000) as u32 + 1);
            feed.was_unsure |= is_lost;
        }
        for page in self.stories.values_mut() {
            let is_coming = page.had_us.is_some_and(|had_us| had_us > now_us);
            page.is_unsure |= is_coming || page.had_us.is_some_and(lost);
            if page.not_before_us + self.window_us + 1_000_000 > now_us + RETRY_S * 1_000_000 {
                page.not_before_us = 0;
            }
        }
        for host in self.hosts.values_mut() {
            if now_us < host.said_us + JOURNAL_US {
                host.rests_until_us = 0;
            }
        }
    }

    /// Another process has begun. What it knows of the last answers before the end of the one before it is read from its
    /// files: `attempt_s` when a feed was polled last, `is_known` whether a URL is in the book of a source.
    pub fn begun(
        &mut self,
        now_us: u64,
        died_us: u64,
        mut attempt_s: impl FnMut(usize) -> u32,
        mut is_known: impl FnMut(usize, &str) -> bool,
    ) {
        self.life_us = now_us;
        for (source, book) in self.books.iter_mut().enumerate() {
            let Some((feed, url)) = book.last_addition() else { continue };
            if died_us.saturating_sub(self.feeds[feed].before.0) <= self.window_us && !is_known(source, url) {
                let Some((feed, before)) = book.forget_last() else { continue };
                (self.feeds[feed].remembered, self.feeds[feed].had_news) = (before, false);
            }
        }
        for (number, feed) in self.feeds.iter_mut().enumerate() {
            let before = std::mem::take(&mut feed.before.1);
            let is_led = feed.states.iter().any(|state| state.hop.is_some());
            match feed.unsure_s.take() {
                // A poll that goes on elsewhere is noted nowhere.
                Some(_) if is_led => feed.states.extend(before),
                Some(at_s) if attempt_s(number) != at_s => {
                    feed.states = before;
                    feed.states.iter_mut().for_each(|state| state.has_news |= feed.had_news);
                }
                _ => {}
            }
            let without: Vec<Expected> =
                feed.states.iter().filter(|state| state.hop.is_some()).map(Expected::without_hop).collect();
            feed.states.extend(without);
        }
    }

    /// All is at rest: no feed was left behind, and every story was had.
    pub fn judge_the_end(&mut self, now_us: u64) {
        self.settle(now_us);
        let now_s = (now_us / 1_000_000) as u32;
        for (number, feed) in self.feeds.iter().enumerate() {
            let is_late = |state: &Expected| !state.is_gone && state.due_s + 86_400 + 3_600 < now_s;
            assert!(
                self.rules.by_rate || !feed.states.iter().all(is_late),
                "feed {number} was forgotten: {:#?}",
                feed.states
            );
        }
        for (source, book) in self.books.iter().enumerate() {
            for url in book.stories() {
                let had = self.stories.get(url).and_then(|page| page.had_us);
                assert!(had.is_some(), "story {url} of source {source} was not asked for");
            }
        }
    }

    pub fn books(&self) -> &[StoryBook] {
        &self.books
    }

    /// Of each feed: how often stories fell out unseen, if that is certain; and whether its 304s lie.
    pub fn counts(&self) -> impl Iterator<Item = (Option<u32>, bool)> {
        self.feeds.iter().map(|feed| {
            let lies = feed.states.iter().any(|state| state.lies);
            (Some(feed.remembered.gaps).filter(|_| !feed.was_unsure), lies)
        })
    }
}
