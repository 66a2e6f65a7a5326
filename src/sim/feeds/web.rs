use super::expected::{Answer, Place, Said, Validators};
use super::judge::{Asked, Coming, FeedsJudge};
use super::listing::{Entry, rss};
use super::plan::{DAY_S, FeedPlan, FeedsPlan, Gives, Guids, SourcePlan, What};
use crate::base::{Now, Rng, Wall};
use crate::driver::{ConnectFate, Reaction, SimWeb, Then};
use crate::farm::{host_name, imf_date};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

pub const PORT: u16 = 8080;

/// The servers of all feeds and stories, and the judge who sits with them.
pub struct NewsWeb {
    pub plan: Rc<FeedsPlan>,
    pub judge: FeedsJudge,
    /// The clock of the process that lives.
    pub wall: Wall,
    sources: Vec<Newsroom>,
    /// When the last answer of a feed is out; the world may end a life there.
    pub answer_us: u64,
}

/// What a source has posted.
struct Newsroom {
    rng: Rng,
    posts: Vec<Post>,
    next_s: f64,
    /// Posts of a burst that are to come.
    burst: u32,
    /// The last answer that any of its feeds gives.
    last_us: u64,
}

#[derive(Clone, Copy)]
struct Post {
    at_s: u32,
    /// One of many with the same title.
    is_briefing: bool,
}

/// Answers of feeds of one source come one after the other, so that everybody knows in which order they were heard.
const APART_US: u64 = 60_000;
/// An answer is whole within the second that it begins in.
const IN_SECOND_US: std::ops::Range<u64> = 5_000..900_000;
/// The place between the ends of a way that leads back.
const TURNING_PLACE: u32 = 9;
/// The place in the middle of a long way.
const MIDDLE_PLACE: u32 = 2;
const BURST_GAP_S: f64 = 300.0;

pub fn address_of(plan: &FeedsPlan, host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(u32::from_be_bytes([198, 51, 0, 0]) + host % plan.addresses))
}

pub fn feed_url(plan: &FeedsPlan, feed: u32, place: u32) -> String {
    let host = host_name(plan.feeds[feed as usize].host);
    match place {
        0 => format!("http://{host}:{PORT}/feed/{feed}"),
        place => format!("http://{host}:{PORT}/feed/{feed}/{place}"),
    }
}

/// Whether its servers now and then ask for a pause without being planned to.
fn is_rough(plan: &FeedsPlan, host: u32) -> bool {
    host % 3 == 2 && !plan.is_prompt
}

impl Newsroom {
    fn new(plan: &SourcePlan, seed: u64, began_s: u32) -> Newsroom {
        let mut rng = Rng::new(seed);
        let before_s = plan.gap_s * (1.0 + rng.below(12) as f64);
        let next_s = f64::from(began_s) - before_s;
        Newsroom { rng, posts: Vec::new(), next_s, burst: 0, last_us: 0 }
    }

    /// Posts all that is due by then.
    fn post(&mut self, gap_s: f64, now_s: u32) {
        while self.next_s <= f64::from(now_s) {
            self.posts.push(Post { at_s: self.next_s as u32, is_briefing: self.rng.chance(100) });
            let unit = self.rng.below(1 << 40) as f64 / (1u64 << 40) as f64;
            self.next_s += match self.burst {
                0 => {
                    self.burst = match self.rng.below(100) {
                        0..17 => 1 + self.rng.below(4) as u32,
                        // More than any feed lists.
                        17 => 30 + self.rng.below(30) as u32,
                        _ => 0,
                    };
                    1.0 - (1.0 - unit).ln() * gap_s
                }
                _ => {
                    self.burst -= 1;
                    1.0 + unit * BURST_GAP_S
                }
            };
        }
    }
}

fn hash(numbers: [u64; 3]) -> u64 {
    numbers.iter().fold(0, |hash, number| Rng::mix(hash ^ number.wrapping_add(0x9e37)))
}

/// What a server does for this feed at this time.
fn phase_of(feed: &FeedPlan, since_s: u32) -> Option<What> {
    let phase = feed.phases.iter().find(|phase| (phase.from_s..phase.until_s).contains(&since_s));
    phase.map(|phase| phase.what)
}

/// An answer, with what a listing has.
struct Made {
    answer: Answer,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl NewsWeb {
    pub fn new(plan: Rc<FeedsPlan>, wall: Wall) -> NewsWeb {
        let began_s = (wall.unix_ms_at_zero / 1_000) as u32;
        let sources = plan.sources.iter().enumerate();
        let sources = sources.map(|(n, of)| Newsroom::new(of, hash([plan.seed, 7, n as u64]), began_s));
        let sources = sources.collect();
        NewsWeb { judge: FeedsJudge::new(&plan, began_s), plan, wall, sources, answer_us: 0 }
    }

    fn entries(&mut self, feed: u32, now_s: u32) -> (Vec<Entry>, String, u32) {
        let plan = self.plan.clone();
        let of = &plan.feeds[feed as usize];
        let source = &plan.sources[of.source];
        let room = &mut self.sources[of.source];
        // When all come to rest, nothing more is posted.
        room.post(source.gap_s, now_s.min(self.judge.began_s + plan.days * DAY_S));
        let hour = if of.rewords || of.guids == Guids::Renumbered { now_s / 3_600 } else { 0 };
        let carries = |n: usize| !source.is_shared || hash([plan.seed, u64::from(feed), n as u64]) % 10 < 7;
        let listed: Vec<usize> =
            (0..room.posts.len()).rev().filter(|&n| carries(n)).take(of.listed).collect();
        let newest_s = listed.first().map_or(0, |&n| room.posts[n].at_s).max(hour * 3_600);
        let version = format!("{}-{hour}", listed.first().map_or(0, |&n| n + 1));
        let entry = |&n: &usize| {
            let Post { at_s, is_briefing } = room.posts[n];
            let mut url = format!("http://{}:{PORT}/s/{}/{n}", host_name(source.host), of.source);
            if of.own_urls > 0 && (n as u32).is_multiple_of(of.own_urls) {
                url += &format!("/{feed}");
            }
            let guid = match of.guids {
                Guids::None => String::new(),
                Guids::Same => "the-one".to_string(),
                Guids::Own => format!("g{}-{n}", of.source),
                Guids::Renumbered => format!("r{feed}-{n}-{hour}"),
                Guids::Wrapped(count) => format!("w{}-{}", of.source, n as u32 % count),
            };
            let title = match (is_briefing, of.rewords) {
                (true, _) => format!("The daily briefing of source {}", of.source),
                (_, true) => format!("Story {n} of source {}, told at {hour}", of.source),
                _ => format!("Story number {n} of source {}", of.source),
            };
            // Feeds of one source do not agree on when something was.
            let shift_s = if source.is_shared { feed % 3 * 3_600 } else { 0 };
            Entry { url, guid, title, at_s: (!of.is_dateless).then_some(at_s + shift_s) }
        };
        (listed.iter().map(entry).collect(), version, newest_s)
    }

    fn answer_feed(&mut self, feed: u32, place: u32, with: &Validators, now_s: u32, rng: &mut Rng) -> Made {
        let plan = self.plan.clone();
        let of = &plan.feeds[feed as usize];
        let is_rest = now_s >= self.judge.began_s + plan.days * DAY_S;
        let mut what = phase_of(of, now_s - self.judge.began_s);
        if what.is_none() && is_rough(&plan, of.host) && !is_rest && rng.chance(20) {
            what = Some(What::Busy { status: 503, retry_after_s: Some(rng.below(7_200) as u32) });
        }
        let leads = |to: Place, for_good: bool| {
            let url = match to {
                Place::Own(place) => feed_url(&plan, feed, place),
                Place::Of(other) => feed_url(&plan, other, 0),
            };
            let status = if for_good { "301 Moved Permanently" } else { "302 Found" };
            made(Said::Leads { to, for_good }, format!("{status}\r\nLocation: {url}"), "")
        };
        match what {
            Some(What::Missing) => made(Said::Failed, "404 Not Found".to_string(), "no"),
            Some(What::Gone) => made(Said::Gone, "410 Gone".to_string(), "no"),
            Some(What::Busy { status, retry_after_s }) => {
                let wait = retry_after_s.map_or(String::new(), |s| format!("\r\nRetry-After: {s}"));
                let mut busy = made(Said::Failed, format!("{status} Busy{wait}"), "later");
                busy.answer.retry_after_s = retry_after_s;
                busy
            }
            Some(What::Html) => {
                let head = "200 OK\r\nContent-Type: text/html".to_string();
                made(Said::Page, head, "<!doctype html><title>Sorry</title><p>Something is wrong.")
            }
            Some(What::Moved { to, for_good, far }) if place == 0 => {
                leads(if far { Place::Own(MIDDLE_PLACE) } else { to }, for_good)
            }
            Some(What::Moved { to, for_good, .. }) if place == MIDDLE_PLACE => leads(to, for_good),
            Some(What::RoundTrip) if place == TURNING_PLACE => leads(Place::Own(0), true),
            Some(What::RoundTrip) => leads(Place::Own(TURNING_PLACE), true),
            what => self.listing(feed, with, what == Some(What::Lies), now_s, rng),
        }
    }

    fn listing(&mut self, feed: u32, with: &Validators, lies: bool, now_s: u32, rng: &mut Rng) -> Made {
        let plan = self.plan.clone();
        let of = &plan.feeds[feed as usize];
        let (entries, version, newest_s) = self.entries(feed, now_s);
        let mut gives = Validators::default();
        if matches!(of.gives, Gives::Both | Gives::Etag | Gives::Fresh) {
            gives.etag = match of.gives {
                Gives::Fresh => format!("\"{:x}\"", rng.next_u64()),
                _ => format!("W/\"{feed};, {version}\""),
            };
        }
        if matches!(of.gives, Gives::Both | Gives::Modified) {
            gives.modified = imf_date(u64::from(newest_s));
        }
        let holds = match with.etag.is_empty() {
            true => !with.modified.is_empty() && with.modified == gives.modified,
            false => with.etag == gives.etag,
        };
        let mut head = String::new();
        for (name, value) in [("ETag", &gives.etag), ("Last-Modified", &gives.modified)] {
            if !value.is_empty() {
                head += &format!("\r\n{name}: {value}");
            }
        }
        if let Some(seconds) = of.max_age_s {
            head += &format!("\r\nCache-Control: max-age={seconds}");
        }
        let mut made = if lies && !with.is_empty() {
            made(Said::Same(Validators::default()), "304 Not Modified".to_string(), "")
        } else if holds {
            made(Said::Same(gives), format!("304 Not Modified{head}"), "")
        } else {
            let text = rss(&format!("Feed {feed}"), &of.hints, &entries);
            let head = format!("200 OK\r\nContent-Type: application/rss+xml{head}");
            Made { entries, ..made(Said::Listing(gives, of.hints), head, &text) }
        };
        let is_plain_lie = lies && !with.is_empty();
        made.answer.max_age_s = of.max_age_s.filter(|_| !is_plain_lie);
        made
    }

    fn feed_asked(
        &mut self,
        asked: &Asked,
        feed: u32,
        place: u32,
        with: Validators,
        rng: &mut Rng,
    ) -> (Vec<u8>, u64) {
        self.judge.feed_asked(asked, feed, place, &with);
        let made = self.answer_feed(feed, place, &with, asked.now_s(), rng);
        let source = self.plan.feeds[feed as usize].source;
        let slow = rng.chance(20);
        let mut at_us = asked.now_us + 1_000 + rng.below(if slow { 3_000_000 } else { 20_000 });
        at_us = at_us.max(self.sources[source].last_us + APART_US);
        match at_us % 1_000_000 {
            us if us < IN_SECOND_US.start => at_us += IN_SECOND_US.start,
            us if us >= IN_SECOND_US.end => at_us += 1_000_000 - us + IN_SECOND_US.start,
            _ => {}
        }
        self.sources[source].last_us = at_us;
        self.answer_us = at_us;
        let Made { answer, entries, bytes } = made;
        let coming = Coming { feed: feed as usize, place, answer, entries, conditional: !with.is_empty() };
        self.judge.feed_answers(asked, coming, at_us);
        (bytes, at_us - asked.now_us)
    }

    fn story_asked(&mut self, asked: &Asked, source: usize, url: &str, rng: &mut Rng) -> (Vec<u8>, u64) {
        let after_us = 1_000 + rng.below(20_000);
        let is_rest = asked.now_s() >= self.judge.began_s + self.plan.days * DAY_S;
        let busy = is_rough(&self.plan, asked.host) && !is_rest && rng.chance(30);
        let retry_after_s = busy.then(|| rng.below(7_200) as u32);
        self.judge.story_asked(asked, source, url, retry_after_s, asked.now_us + after_us);
        let made = match retry_after_s {
            Some(seconds) => made(Said::Failed, format!("503 Busy\r\nRetry-After: {seconds}"), "later"),
            None => {
                let text = format!("<!doctype html><title>Story</title><p>What happened: {url}");
                made(Said::Page, "200 OK\r\nContent-Type: text/html".to_string(), &text)
            }
        };
        (made.bytes, after_us)
    }
}

fn made(said: Said, head: String, body: &str) -> Made {
    let length = match said {
        Said::Same(_) => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let bytes = format!("HTTP/1.1 {head}\r\n{length}\r\n{body}").into_bytes();
    Made { answer: Answer { said, max_age_s: None, retry_after_s: None }, entries: Vec::new(), bytes }
}

/// The web as a network has it: it outlives every node.
pub struct Shared(pub Rc<RefCell<NewsWeb>>);

impl SimWeb for Shared {
    fn connect(&mut self, _: SocketAddr, _: Now, rng: &mut Rng) -> ConnectFate {
        ConnectFate::Accept { after_us: rng.below(10_000) }
    }

    fn request(&mut self, _: u64, addr: SocketAddr, bytes: &[u8], now: Now, rng: &mut Rng) -> Vec<Reaction> {
        let web = &mut *self.0.borrow_mut();
        let text = str::from_utf8(bytes).expect("requests are text");
        let mut lines = text.split("\r\n");
        let target = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a request line");
        let header = |name: &str| {
            let mut lines = text.split("\r\n");
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or("").to_string()
        };
        let name = header("Host");
        let host = name.strip_prefix('h').and_then(|rest| rest.split('.').next()?.parse().ok());
        let host = host.unwrap_or_else(|| panic!("nobody is {name}"));
        let now_us = web.wall.unix_ms_at_zero * 1_000 + now.us();
        let asked = Asked { host, ip: addr.ip(), target: target.to_string(), now_us };
        for unwanted in ["Cookie", "Referer"] {
            assert_eq!(header(unwanted), "", "{unwanted} was sent with {asked:?}");
        }
        web.judge.asked(&asked);
        let with = Validators { etag: header("If-None-Match"), modified: header("If-Modified-Since") };
        let parts: Vec<&str> = target.split('/').skip(1).collect();
        let number = |at: usize| parts.get(at).map_or(0, |part| part.parse().expect("a number"));
        let (answer, after_us) = match parts[0] {
            "robots.txt" => (made(Said::Failed, "404 Not Found".to_string(), "no").bytes, 1_000),
            "feed" => {
                let feed = number(1);
                assert_eq!(host, web.plan.feeds[feed as usize].host, "{target} is not with {name}");
                web.feed_asked(&asked, feed, number(2), with, rng)
            }
            "s" => {
                assert!(with.is_empty(), "a story was asked for with {with:?}");
                web.story_asked(&asked, number(1) as usize, &format!("http://{name}{target}"), rng)
            }
            _ => panic!("nobody told of {target}"),
        };
        let mut reactions = vec![Reaction { after_us, then: Then::Bytes(answer) }];
        // Later, a request might be lost that the servers have counted.
        if rng.chance(300) {
            reactions.push(Reaction { after_us: 0, then: Then::End });
        }
        reactions
    }

    fn closed(&mut self, _: u64) {}
}
