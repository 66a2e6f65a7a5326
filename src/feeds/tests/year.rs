//! Feeds over months of virtual time: what polling promises, and what it costs.

use super::*;
use crate::base::Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Entries that a feed lists.
const LISTED: usize = 20;
const DAY: u32 = 86_400;

/// A site that posts by a rate of its own, sometimes several at once.
struct Site {
    feed: FeedId,
    /// Mean time between two posts.
    gap_s: f64,
    next_s: f64,
    burst: u32,
    posted: u32,
    /// Numbers and times of what it lists, the oldest first.
    listed: VecDeque<(u32, u32)>,
    /// The last post that a poll has seen listed.
    seen: u32,
}

#[derive(Debug, Default)]
struct Figures {
    polls: u64,
    with_news: u64,
    posted: u64,
    found: u64,
    lost: u64,
    delays_s: Vec<u32>,
}

fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

impl Site {
    /// Posts all that is due by then.
    fn post(&mut self, now_s: u32, rng: &mut Rng) {
        while self.next_s <= f64::from(now_s) {
            self.posted += 1;
            self.listed.push_back((self.posted, self.next_s as u32));
            if self.listed.len() > LISTED {
                self.listed.pop_front();
            }
            // Two of five posts come within minutes of another.
            self.next_s += match self.burst {
                0 => {
                    self.burst = if rng.chance(170) { 1 + rng.below(4) as u32 } else { 0 };
                    -(1.0 - unit(rng)).ln() * self.gap_s
                }
                _ => {
                    self.burst -= 1;
                    60.0 + unit(rng) * 540.0
                }
            };
        }
    }

    fn entries(&self) -> Vec<EntryRead> {
        let entry_of = |&(n, at_s): &(u32, u32)| {
            entry(
                &format!("http://{}.example/{n}", self.feed),
                &format!("{n}@{}", self.feed),
                &format!("Post {n} of {}", self.feed),
                at_s,
            )
        };
        self.listed.iter().rev().map(entry_of).collect()
    }
}

/// Runs feeds for some days, and checks every promise at every poll.
fn run(schedule: FeedSchedule, sites: usize, days: u32, seed: u64, folder: Option<&Folder>) -> Figures {
    let rules = FeedRules { schedule, poll_min_plain_s: 300, memory_bytes: 16 << 20, ..FeedRules::default() };
    let mut feeds = match folder {
        Some(folder) => folder.open(rules.clone()),
        None => Feeds::in_memory(rules.clone(), seed).unwrap(),
    };
    let mut rng = Rng::new(seed);
    let end_s = NOON + days * DAY;
    let mut queue = BinaryHeap::new();
    let mut all = Vec::new();
    for n in 0..sites {
        let feed = add(&mut feeds, &format!("http://{n}.example/feed"), "");
        let gap_s = 30.0 * f64::from(DAY) * (1.0f64 / 1_500.0).powf((n as f64 + 0.5) / sites as f64);
        let begin_s = f64::from(NOON) - unit(&mut rng) * gap_s * 20.0;
        let mut site =
            Site { feed, gap_s, next_s: begin_s, burst: 0, posted: 0, listed: VecDeque::new(), seen: 0 };
        site.post(NOON, &mut rng);
        all.push(site);
        queue.push(Reverse((NOON + rng.below(600) as u32, n)));
    }
    let mut figures = Figures::default();
    let mut restart_s = NOON + 20 * DAY;
    while let Some(Reverse((now_s, n))) = queue.pop() {
        if now_s >= end_s {
            break;
        }
        if let Some(folder) = folder.filter(|_| now_s >= restart_s) {
            feeds.flush(false).unwrap();
            drop(feeds);
            feeds = folder.open(rules.clone());
            restart_s += 20 * DAY;
        }
        let site = &mut all[n];
        let before = *feeds.feed(site.feed).unwrap().polls();
        assert!(before.due_s() <= now_s, "seed {seed}: it is asked before it is due");
        site.post(now_s, &mut rng);
        let fresh = site.posted - site.seen;
        let is_first = before.polls() == 0;
        let next = if fresh == 0 && !is_first && !before.next().unconditional {
            same(&mut feeds, site.feed, now_s)
        } else {
            let (entries, mut new) = (site.entries(), 0);
            let read = listing(&entries);
            feeds.read(site.feed, &read, now_s, |_| new += 1).unwrap();
            let listed = fresh.min(LISTED as u32);
            assert_eq!(new, listed, "seed {seed}: each that is listed is new once");
            if !is_first {
                figures.lost += u64::from(fresh - listed);
                figures.with_news += u64::from(new > 0);
                figures.found += u64::from(new);
                figures.posted += u64::from(fresh);
                let news = site.listed.iter().filter(|(number, _)| *number > site.seen);
                figures.delays_s.extend(news.map(|(_, at_s)| now_s - at_s));
            }
            site.seen = site.posted;
            feeds.polled(
                site.feed,
                &PollOutcome {
                    digest: read.digest,
                    had_validators: true,
                    ..PollOutcome::new(ResultCode::Ok, 200, now_s)
                },
                now_s,
            )
        };
        figures.polls += u64::from(!is_first);
        let polls = feeds.feed(site.feed).unwrap().polls();
        let wait_s = next.due_s - now_s;
        assert!((300..=604_800).contains(&wait_s), "seed {seed}: {wait_s}");
        assert!(!next.why.sentence().is_empty() && next.why == polls.why());
        if schedule == FeedSchedule::Backoff && polls.halvings() == 0 {
            let wanted = (now_s - polls.since_s() + 300).min(604_800);
            assert_eq!(wait_s, wanted, "seed {seed}: {:?}", next.why);
        }
        queue.push(Reverse((next.due_s, n)));
    }
    figures
}

impl Figures {
    fn row(&mut self, sites: usize, days: u32) -> Row {
        self.delays_s.sort_unstable();
        let at =
            |share: usize| self.delays_s.get(self.delays_s.len() * share / 100).copied().unwrap_or(0) / 60;
        Row {
            polls_per_story: self.polls as f64 / self.found as f64,
            polls_per_day: self.polls as f64 / sites as f64 / f64::from(days),
            with_news_percent: 100.0 * self.with_news as f64 / self.polls as f64,
            delay_p50_min: at(50),
            delay_p95_min: at(95),
            lost_percent: 100.0 * self.lost as f64 / self.posted as f64,
        }
    }
}

/// What a schedule came to; a test that fails shows it.
#[derive(Debug)]
#[expect(dead_code, reason = "some are only shown")]
struct Row {
    polls_per_story: f64,
    polls_per_day: f64,
    with_news_percent: f64,
    delay_p50_min: u32,
    delay_p95_min: u32,
    lost_percent: f64,
}

/// How much is run: more on request.
fn size(usual: usize) -> usize {
    std::env::var("NEPHILA_FEEDS_SIM").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn by_its_rate_a_feed_is_asked_less_and_its_stories_come_sooner() {
    let (sites, days, seed) = (size(40), 50, 16);
    let backoff = run(FeedSchedule::Backoff, sites, days, seed, None).row(sites, days);
    let rate = run(FeedSchedule::Rate, sites, days, seed, None).row(sites, days);
    let told = format!("{sites} feeds, seed {seed}: {rate:?}, {backoff:?}");
    assert!(rate.polls_per_story <= 1.8 && rate.polls_per_story < backoff.polls_per_story, "{told}");
    assert!(rate.delay_p95_min <= 160 && rate.delay_p95_min < backoff.delay_p95_min, "{told}");
    assert!(rate.lost_percent <= 0.01, "{told}");
}

#[test]
fn a_year_of_feeds_keeps_every_promise_over_restarts() {
    let folder = Folder::new("year");
    let (sites, seed) = (size(6), 2_026);
    let mut figures = run(FeedSchedule::Backoff, sites, 365, seed, Some(&folder));
    let told = format!("{sites} feeds, seed {seed}: {:?}", figures.row(sites, 365));
    assert!(figures.found > 500 && figures.lost * 500 < figures.posted, "{told}");
}
