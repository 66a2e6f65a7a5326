use super::expected::{Place, PollRules};
use super::listing::Hints;
use crate::base::Rng;
use crate::config::{Bytes, Config, Millis, Rate, Seconds};
use crate::extractor::ExtractDepth;
use crate::feeds::FeedSchedule;
use crate::handler::ScopeKind;

/// What one seed stands for: sources and their feeds, the servers they are on, a configuration, and kills.
pub struct FeedsPlan {
    pub seed: u64,
    pub hosts: u32,
    pub addresses: u32,
    pub sources: Vec<SourcePlan>,
    pub feeds: Vec<FeedPlan>,
    /// Of posts and kills; after them, all come to rest.
    pub days: u32,
    pub shards: usize,
    pub conns_max: usize,
    pub config: Config,
    pub commit_ms: u64,
    /// No server asks for a pause, and nothing else holds a poll up: each is to be on time to the second.
    pub is_prompt: bool,
    /// Mean seconds between two kills; 0: none.
    pub kill_s: u64,
    pub kills_max: u64,
}

/// A source posts stories; its feeds list some of them, or all.
pub struct SourcePlan {
    /// Mean seconds between two stories.
    pub gap_s: f64,
    /// The host of its stories.
    pub host: u32,
    pub is_shared: bool,
}

pub struct FeedPlan {
    pub host: u32,
    pub source: usize,
    /// Entries that it lists.
    pub listed: usize,
    pub gives: Gives,
    pub hints: Hints,
    pub max_age_s: Option<u32>,
    pub guids: Guids,
    /// Titles change, and with them the text, but not the URLs.
    pub rewords: bool,
    /// Entries have no date.
    pub is_dateless: bool,
    /// One in so many stories is under a URL of its own; 0: none.
    pub own_urls: u32,
    /// In order of time.
    pub phases: Vec<Phase>,
}

/// The validators that a server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Both,
    Etag,
    Modified,
    Neither,
    /// Another one with each answer.
    Fresh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guids {
    None,
    /// One for all.
    Same,
    Own,
    /// Another one each hour.
    Renumbered,
    /// They begin anew after so many.
    Wrapped(u32),
}

/// What a server does for a while.
pub struct Phase {
    /// Seconds since the beginning.
    pub from_s: u32,
    pub until_s: u32,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Missing,
    Gone,
    Busy {
        status: u16,
        retry_after_s: Option<u32>,
    },
    Html,
    /// Leads elsewhere; in a chain of two if `far`.
    Moved {
        to: Place,
        for_good: bool,
        far: bool,
    },
    /// Leads away and back.
    RoundTrip,
    /// 304 to whoever has validators.
    Lies,
}

pub const DAY_S: u32 = 86_400;

impl FeedsPlan {
    pub fn from_seed(seed: u64) -> FeedsPlan {
        let mut rng = Rng::new(seed);
        let feeds = 4 + rng.below(26) as u32;
        let days = 5 + rng.below(30) as u32;
        FeedsPlan::of(seed, feeds, days, (0.1, 10.0))
    }

    /// So many feeds for so many days, with the least and the longest mean time between two stories, in days.
    pub fn of(seed: u64, feeds: u32, days: u32, gaps: (f64, f64)) -> FeedsPlan {
        let mut rng = Rng::new(seed ^ 0xfeed);
        let hosts = 1 + rng.below(u64::from(feeds)) as u32;
        let mut plan = FeedsPlan {
            seed,
            hosts,
            addresses: 1 + rng.below(u64::from(hosts)) as u32,
            sources: Vec::new(),
            feeds: Vec::new(),
            days,
            shards: 1 + rng.below(2) as usize,
            conns_max: 16 + rng.below(48) as usize,
            config: config(&mut rng),
            commit_ms: 1 + rng.below(200),
            is_prompt: false,
            kill_s: if rng.chance(800) { u64::from(days) * u64::from(DAY_S) / 15 } else { 0 },
            kills_max: 24,
        };
        plan.is_prompt = rng.chance(350);
        if plan.is_prompt {
            plan.config.url_server.req_host_per_sec = Rate(0.0);
            plan.config.feeds.schedule = FeedSchedule::Backoff;
        }
        while plan.feeds.len() < feeds as usize {
            plan.draw_source(feeds, gaps, &mut rng);
        }
        for feed in 0..plan.feeds.len() {
            let phases = plan.draw_phases(feed, &mut rng);
            plan.feeds[feed].phases = phases;
        }
        plan
    }

    fn draw_source(&mut self, feeds: u32, gaps: (f64, f64), rng: &mut Rng) {
        let left = feeds as usize - self.feeds.len();
        let of_source = if rng.chance(700) { 1 } else { (2 + rng.below(8) as usize).min(left) };
        let share = rng.below(1_000) as f64 / 1_000.0;
        let gap_s = f64::from(DAY_S) * gaps.0 * (gaps.1 / gaps.0).powf(share);
        let host = rng.below(u64::from(self.hosts)) as u32;
        let source = self.sources.len();
        self.sources.push(SourcePlan { gap_s, host, is_shared: of_source > 1 });
        for _ in 0..of_source {
            // Some are with their stories, some elsewhere.
            let host = if rng.chance(600) { host } else { rng.below(u64::from(self.hosts)) as u32 };
            let feed = draw_feed(host, source, of_source > 1, rng);
            self.feeds.push(feed);
        }
    }

    /// What befalls a feed.
    fn draw_phases(&self, feed: usize, rng: &mut Rng) -> Vec<Phase> {
        let end_s = self.days * DAY_S;
        let mut phases = Vec::new();
        let mut from_s = DAY_S / 2 + rng.below(u64::from(end_s) / 2) as u32;
        let mut is_led = false;
        while from_s < end_s && phases.len() < 6 && rng.chance(650) {
            let retry_after_s = rng.chance(700).then(|| rng.below(20_000) as u32);
            let to = match rng.chance(300).then(|| self.stays(feed, rng)).flatten() {
                Some(other) => Place::Of(other),
                None => Place::Own(1),
            };
            let far = to == Place::Own(1) && rng.chance(300);
            let what = match rng.below(12) {
                0 => What::Missing,
                1 if rng.chance(400) => What::Gone,
                2..=4 if !self.is_prompt => {
                    What::Busy { status: if rng.chance(500) { 429 } else { 503 }, retry_after_s }
                }
                5 => What::Html,
                6 | 7 if !is_led => What::Moved { to, for_good: rng.chance(800), far },
                8 if !is_led => What::RoundTrip,
                9..=11 => What::Lies,
                _ => What::Missing,
            };
            is_led |= matches!(what, What::Moved { .. } | What::RoundTrip);
            let long_s = match what {
                What::Gone => end_s,
                What::Lies => u64::from(end_s).div_ceil(2) as u32,
                _ => [600, 7_200, 3 * DAY_S, end_s][rng.below(4) as usize],
            };
            let until_s = (from_s + 1 + rng.below(u64::from(long_s)) as u32).min(end_s);
            // What is gone stays gone, also when all else comes to rest.
            let until_s = if what == What::Gone { u32::MAX } else { until_s };
            phases.push(Phase { from_s, until_s, what });
            from_s = until_s.saturating_add(rng.below(u64::from(end_s) / 3) as u32);
        }
        phases
    }

    /// Another feed of the same source that nothing befalls as far as is known: those before are drawn.
    fn stays(&self, feed: usize, rng: &mut Rng) -> Option<u32> {
        let source = self.feeds[feed].source;
        let is_fit = |&n: &usize| {
            self.feeds[n].source == source
                && self.feeds[n]
                    .phases
                    .iter()
                    .all(|phase| !matches!(phase.what, What::Moved { .. } | What::Gone))
        };
        let fit: Vec<usize> = (0..feed).filter(is_fit).collect();
        (!fit.is_empty()).then(|| fit[rng.below(fit.len() as u64) as usize] as u32)
    }

    pub fn rules(&self) -> PollRules {
        let settings = &self.config.feeds;
        PollRules {
            by_rate: settings.schedule == FeedSchedule::Rate,
            min_s: settings.poll_min.0 as u32,
            max_s: settings.poll_max.0 as u32,
            plain_s: settings.poll_min_plain.0 as u32,
            hint_max_s: settings.hint_max.0 as u32,
        }
    }
}

fn draw_feed(host: u32, source: usize, is_shared: bool, rng: &mut Rng) -> FeedPlan {
    let gives = [Gives::Both, Gives::Both, Gives::Etag, Gives::Modified, Gives::Neither, Gives::Fresh]
        [rng.below(6) as usize];
    let mut hints = Hints::default();
    if rng.chance(150) {
        hints.ttl_s = Some(60 * [1, 30, 180, 10_000][rng.below(4) as usize]);
    }
    if rng.chance(100) {
        hints.period_s = Some(DAY_S / [1, 4, 24][rng.below(3) as usize]);
    }
    if rng.chance(150) {
        hints.skip_hours = rng.next_u64() as u32 & 0x00ff_ffff;
    }
    if rng.chance(100) {
        hints.skip_days = rng.next_u64() as u8 & 0x7f;
    }
    let guids = match rng.below(6) {
        0 => Guids::None,
        1 => Guids::Same,
        2 => Guids::Renumbered,
        3 => Guids::Wrapped(5 + rng.below(40) as u32),
        _ => Guids::Own,
    };
    FeedPlan {
        host,
        source,
        listed: if rng.chance(150) { 1 + rng.below(4) as usize } else { 10 + rng.below(16) as usize },
        gives,
        hints,
        max_age_s: rng.chance(200).then(|| [60, 1_800, 7_200, 400_000][rng.below(4) as usize]),
        guids,
        rewords: rng.chance(200),
        is_dateless: rng.chance(100),
        own_urls: if is_shared && rng.chance(300) { 1 + rng.below(4) as u32 } else { 0 },
        phases: Vec::new(),
    }
}

fn config(rng: &mut Rng) -> Config {
    let mut config = Config::default();
    config.crawl.scope = ScopeKind::Any;
    config.crawl.wait = true;
    let url_server = &mut config.url_server;
    url_server.req_host_per_sec = Rate([0.0, 0.0, 0.5, 1.0, 3.0][rng.below(5) as usize]);
    let spider = &mut config.spider;
    spider.keep_alive = Millis(100 + rng.below(20_000));
    config.store.segment_bytes = Bytes(1 << 20);
    // When the keeper commits is drawn by the simulation.
    config.store.commit_ms.0 = 0;
    config.store.log_bytes = Bytes(1 << 40);
    let feeds = &mut config.feeds;
    feeds.extract = ExtractDepth::Off;
    if rng.chance(200) {
        feeds.schedule = FeedSchedule::Rate;
    }
    if rng.chance(200) {
        (feeds.poll_min, feeds.poll_max) = (Seconds(60 + rng.below(900)), Seconds(86_400));
        feeds.poll_min_plain = Seconds(60 + rng.below(7_200));
        feeds.hint_max = Seconds(rng.below(200_000));
    }
    config
}
