//! Feeds that post stories by the clock, each in its own form and with its own habits.
//!
//! ```text
//!   feed 17 of a farm of 10 hosts ── /feed/1 on host 7: its newest stories at this moment
//!   its story 42                  ── /story/17/42.html, from the moment it is posted
//! ```
//!
//! Which story is posted when follows from the seed and the moment that the farm began: a test computes what a crawler
//! ought to have found.

use super::answer::Answer;
use super::rng::{Purpose, Rng};
use super::site::Site;
use crate::base::{Civil, named_enum, push_decimal, rfc3339};

/// What the feeds of a farm are like.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct NewsSpec {
    /// Of all hosts together; feed n is on host n modulo the hosts.
    pub feeds: u32,
    /// Mean seconds from one story of a feed to the next.
    pub every_s: f64,
    /// Every feed has a habit that makes work for those who read it.
    pub rough: bool,
}

impl Default for NewsSpec {
    fn default() -> NewsSpec {
        NewsSpec { feeds: 0, every_s: 600.0, rough: false }
    }
}

named_enum! {
    /// What a feed does that others do not. A feed's own follows from its number.
    #[derive(Default)]
    pub enum FeedHabit {
        /// None: ETag and Last-Modified, and 304 when they hold.
        #[default]
        Plain = "plain",
        /// No validators at all.
        Bare = "bare",
        /// Another ETag with every answer.
        FreshEtag = "fresh_etag",
        /// 304 to every question with conditions, whatever was posted.
        Lies = "lies",
        /// One guid for all stories.
        OneGuid = "one_guid",
        /// Another guid for a story with every minute.
        Renumbers = "renumbers",
        /// Another title for a story with every minute.
        Rewords = "rewords",
        /// The date of a story is that of the answer.
        Redates = "redates",
        /// No dates.
        Dateless = "dateless",
        /// Links are relative.
        Relative = "relative",
        /// The stories of the next feed are listed, too.
        Shares = "shares",
        /// Says to be asked once an hour at most.
        Ttl = "ttl",
    }
}

/// How a feed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForm {
    Rss,
    Atom,
    Rdf,
    Json,
}

/// A question for a feed or a story, and when it is asked.
pub struct FeedQuestion<'a> {
    pub host: u32,
    pub port: u16,
    pub head_only: bool,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Of the request; empty without one.
    pub if_none_match: &'a [u8],
    pub if_modified_since: &'a [u8],
}

/// A story of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Posted {
    pub feed: u32,
    pub number: u32,
}

/// Stories that were posted before the farm began.
pub const STORIES_BEFORE: u32 = 10;
/// Stories that a feed lists.
pub const STORIES_LISTED: u32 = 20;
/// What changes from answer to answer does so with this.
const MINUTE_MS: u64 = 60_000;
const FORMS: [FeedForm; 4] = [FeedForm::Rss, FeedForm::Atom, FeedForm::Rdf, FeedForm::Json];

impl Site {
    /// The feed behind `/feed/{number}` of a host.
    pub fn feed_at(&self, host: u32, number: u32) -> Option<u32> {
        let feed = u64::from(number) * u64::from(self.spec.hosts) + u64::from(host);
        u32::try_from(feed).ok().filter(|feed| *feed < self.spec.news.feeds && host < self.spec.hosts)
    }

    pub fn feed_form(&self, feed: u32) -> FeedForm {
        FORMS[feed as usize % FORMS.len()]
    }

    pub fn feed_habit(&self, feed: u32) -> FeedHabit {
        match self.spec.news.rough {
            true => FeedHabit::ALL[feed as usize % FeedHabit::ALL.len()],
            false => FeedHabit::Plain,
        }
    }

    /// The URL of a feed.
    pub fn feed_url(&self, feed: u32, port: u16) -> String {
        let mut url = Vec::new();
        self.origin(feed % self.spec.hosts, port).push(&mut url);
        url.extend_from_slice(b"/feed/");
        push_decimal(&mut url, u64::from(feed / self.spec.hosts));
        String::from_utf8(url).expect("a URL of the farm is ASCII")
    }

    pub fn story_url(&self, story: Posted, port: u16) -> String {
        let mut url = Vec::new();
        self.origin(story.feed % self.spec.hosts, port).push(&mut url);
        push_story_path(story, &mut url);
        String::from_utf8(url).expect("a URL of the farm is ASCII")
    }

    /// When a story is posted, in milliseconds since 1970.
    pub fn posted_ms(&self, story: Posted) -> u64 {
        let gap_ms = self.gap_ms(story.feed);
        let late = Rng::of_page(self.spec.seed, Purpose::Story, story.feed, story.number).unit() * 0.9;
        let since_ms = (f64::from(story.number) - f64::from(STORIES_BEFORE) + late) * gap_ms;
        (self.spec.began_unix_ms as f64 + since_ms).max(0.0) as u64
    }

    /// Stories of a feed that are posted by a moment: they are numbered from 0 on.
    pub fn posted_by(&self, feed: u32, unix_ms: u64) -> u32 {
        let since_ms = unix_ms as f64 - self.spec.began_unix_ms as f64;
        let about = (since_ms / self.gap_ms(feed)).floor() + f64::from(STORIES_BEFORE);
        let mut count = about.clamp(0.0, f64::from(u32::MAX - 2)) as u32;
        while self.posted_ms(Posted { feed, number: count }) <= unix_ms {
            count += 1;
        }
        count
    }

    /// What a feed lists at a moment, the newest first.
    pub fn listed(&self, feed: u32, unix_ms: u64) -> Vec<Posted> {
        let newest = |feed: u32| {
            let count = self.posted_by(feed, unix_ms);
            (count.saturating_sub(STORIES_LISTED)..count).rev().map(move |number| Posted { feed, number })
        };
        let mut all: Vec<Posted> = newest(feed).collect();
        if self.feed_habit(feed) == FeedHabit::Shares {
            all.extend(newest((feed + 1) % self.spec.news.feeds));
        }
        all
    }

    /// From a quarter of the mean to twice as much.
    fn gap_ms(&self, feed: u32) -> f64 {
        let draw = Rng::of_page(self.spec.seed, Purpose::Feed, feed, 0).unit();
        (self.spec.news.every_s * 1_000.0 * 0.25 * 8f64.powf(draw)).max(1.0)
    }

    /// Appends the answer for a feed.
    pub fn answer_feed(&self, feed: u32, question: &FeedQuestion<'_>, out: &mut Vec<u8>) -> Answer {
        let habit = self.feed_habit(feed);
        let listed = self.listed(feed, question.unix_ms);
        let newest_ms = listed.iter().map(|story| self.posted_ms(*story)).max().unwrap_or(0);
        let etag = match habit {
            FeedHabit::Bare => String::new(),
            FeedHabit::FreshEtag => format!("\"{:x}\"", question.unix_ms),
            _ => format!("\"{feed}-{}\"", self.posted_by(feed, question.unix_ms)),
        };
        let modified = if habit == FeedHabit::Bare { String::new() } else { imf_date(newest_ms / 1_000) };
        let asks = !question.if_none_match.is_empty() || !question.if_modified_since.is_empty();
        let holds = match question.if_none_match {
            b"" => !modified.is_empty() && question.if_modified_since == modified.as_bytes(),
            asked => !etag.is_empty() && asked == etag.as_bytes(),
        };
        let is_same = holds || (habit == FeedHabit::Lies && asks);
        let form = self.feed_form(feed);
        self.push_head(if is_same { 304 } else { 200 }, form.content_type(), out);
        for (name, value) in [("ETag", &etag), ("Last-Modified", &modified)] {
            if !value.is_empty() {
                out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        if is_same {
            out.extend_from_slice(b"\r\n");
            return Answer { delay_ms: self.latency_ms(question.host), then: self.then() };
        }
        let text = self.feed_text(feed, &listed, question);
        super::answer::push_body(text.as_bytes(), question.head_only, out);
        Answer { delay_ms: self.latency_ms(question.host), then: self.then() }
    }

    /// Appends the answer for a story; one that is not posted yet is missing.
    pub fn answer_story(&self, story: Posted, question: &FeedQuestion<'_>, out: &mut Vec<u8>) -> Answer {
        let is_here = story.feed < self.spec.news.feeds && story.feed % self.spec.hosts == question.host;
        let then = match is_here && self.posted_ms(story) <= question.unix_ms {
            true => self.push_whole(out, question.head_only, |out| self.push_story(story, out)),
            false => self.push_status(404, question.head_only, out),
        };
        Answer { delay_ms: self.latency_ms(question.host), then }
    }

    fn push_story(&self, story: Posted, out: &mut Vec<u8>) {
        let start = out.len();
        let title = self.story_title(story);
        let posted = rfc3339(self.posted_ms(story));
        let head = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
             <meta property=\"article:published_time\" content=\"{posted}\">\n</head>\n<body>\n<nav><a href=\"/\">Home</a></nav>\n\
             <article>\n<h1>{title}</h1>\n"
        );
        out.extend_from_slice(head.as_bytes());
        const CLOSING: &[u8] = b"</article>\n</body>\n</html>\n";
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Story, story.feed, story.number);
        let bytes = out.len() - start + CLOSING.len();
        self.corpus.fill((self.spec.page_bytes as usize).saturating_sub(bytes), &mut rng, out);
        out.extend_from_slice(CLOSING);
    }

    /// A title that no other story has.
    pub fn story_title(&self, story: Posted) -> String {
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Story, story.feed, story.number);
        let words = String::from_utf8_lossy(self.corpus.title(&mut rng)).into_owned();
        format!("{words} {} of {}", story.number, story.feed)
    }

    fn feed_text(&self, feed: u32, listed: &[Posted], question: &FeedQuestion<'_>) -> String {
        let (habit, form) = (self.feed_habit(feed), self.feed_form(feed));
        let minute = question.unix_ms / MINUTE_MS;
        let entry = |story: &Posted| {
            let url = self.story_url(*story, question.port);
            let mut path = Vec::new();
            push_story_path(*story, &mut path);
            let is_elsewhere = story.feed % self.spec.hosts != question.host;
            Entry {
                link: match habit == FeedHabit::Relative && !is_elsewhere {
                    true => String::from_utf8_lossy(&path).into_owned(),
                    false => url.clone(),
                },
                guid: match habit {
                    FeedHabit::OneGuid => "the-one".to_string(),
                    FeedHabit::Renumbers => format!("{}-{}-{minute}", story.feed, story.number),
                    _ => url,
                },
                title: match habit {
                    FeedHabit::Rewords => format!("{} (update {minute})", self.story_title(*story)),
                    _ => self.story_title(*story),
                },
                at_ms: match habit {
                    FeedHabit::Dateless => None,
                    FeedHabit::Redates => Some(question.unix_ms),
                    _ => Some(self.posted_ms(*story)),
                },
            }
        };
        let entries: Vec<Entry> = listed.iter().map(entry).collect();
        let title = format!("Feed {feed}");
        let mut home = Vec::new();
        self.origin(question.host, question.port).push(&mut home);
        let home = String::from_utf8_lossy(&home).into_owned();
        let ttl = if habit == FeedHabit::Ttl { "<ttl>60</ttl>\n" } else { "" };
        form.write(&Channel { title: &title, home: &home, ttl }, &entries)
    }
}

/// What stands above the entries.
struct Channel<'a> {
    title: &'a str,
    home: &'a str,
    ttl: &'a str,
}

struct Entry {
    link: String,
    guid: String,
    title: String,
    at_ms: Option<u64>,
}

impl FeedForm {
    pub fn content_type(self) -> &'static str {
        match self {
            FeedForm::Rss => "application/rss+xml; charset=utf-8",
            FeedForm::Atom => "application/atom+xml; charset=utf-8",
            FeedForm::Rdf => "application/rdf+xml",
            FeedForm::Json => "application/feed+json",
        }
    }

    fn write(self, channel: &Channel<'_>, entries: &[Entry]) -> String {
        let Channel { title, home, ttl } = channel;
        let (head, foot) = match self {
            FeedForm::Rss => (
                format!(
                    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\">\n<channel>\n<title>{title}</title>\n\
                     <link>{home}/</link>\n<description>Made up</description>\n{ttl}"
                ),
                "</channel>\n</rss>\n",
            ),
            FeedForm::Atom => (
                format!(
                    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
                     <title>{title}</title>\n<link href=\"{home}/\"/>\n<id>{home}/</id>\n"
                ),
                "</feed>\n",
            ),
            FeedForm::Rdf => (
                format!(
                    "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
                     xmlns=\"http://purl.org/rss/1.0/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n\
                     <channel rdf:about=\"{home}/\">\n<title>{title}</title>\n<link>{home}/</link>\n</channel>\n"
                ),
                "</rdf:RDF>\n",
            ),
            FeedForm::Json => (
                format!(
                    "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"{title}\",\"home_page_url\":\"{home}/\",\"items\":[\n"
                ),
                "\n]}\n",
            ),
        };
        let between = if self == FeedForm::Json { ",\n" } else { "" };
        let entries: Vec<String> = entries.iter().map(|entry| self.entry(entry)).collect();
        head + &entries.join(between) + foot
    }

    fn entry(self, entry: &Entry) -> String {
        let Entry { link, guid, title, at_ms } = entry;
        let dated = |before: &str, behind: &str, date: &dyn Fn(u64) -> String| {
            at_ms.map_or(String::new(), |at_ms| format!("{before}{}{behind}", date(at_ms)))
        };
        match self {
            FeedForm::Rss => {
                let date = dated("<pubDate>", "</pubDate>\n", &|ms| imf_date(ms / 1_000));
                format!(
                    "<item>\n<title>{title}</title>\n<link>{link}</link>\n<guid isPermaLink=\"false\">{guid}</guid>\n{date}\
                     <description>What happened.</description>\n</item>\n"
                )
            }
            FeedForm::Atom => {
                let date = dated("<updated>", "</updated>\n", &rfc3339);
                format!(
                    "<entry>\n<title>{title}</title>\n<link rel=\"alternate\" href=\"{link}\"/>\n<id>{guid}</id>\n{date}\
                     <summary>What happened.</summary>\n</entry>\n"
                )
            }
            FeedForm::Rdf => {
                let date = dated("<dc:date>", "</dc:date>\n", &rfc3339);
                format!(
                    "<item rdf:about=\"{guid}\">\n<title>{title}</title>\n<link>{link}</link>\n{date}</item>\n"
                )
            }
            FeedForm::Json => {
                let date = dated(",\"date_published\":\"", "\"", &rfc3339);
                format!("{{\"id\":\"{guid}\",\"url\":\"{link}\",\"title\":\"{title}\"{date}}}")
            }
        }
    }
}

/// `/story/{feed}/{number}.html`.
fn push_story_path(story: Posted, out: &mut Vec<u8>) {
    out.extend_from_slice(b"/story/");
    push_decimal(out, u64::from(story.feed));
    out.push(b'/');
    push_decimal(out, u64::from(story.number));
    out.extend_from_slice(b".html");
}

/// A date as HTTP and RSS write it.
pub(crate) fn imf_date(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = u32::try_from(unix_s / 86_400).unwrap_or(u32::MAX);
    let Civil { year, month, day } = Civil::from_days(days);
    let (weekday, month) = (DAYS[days as usize % 7], MONTHS[month as usize - 1]);
    let (hour, minute, second) = (unix_s / 3_600 % 24, unix_s / 60 % 60, unix_s % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::super::answer::Then;
    use super::super::site_spec::SiteSpec;
    use super::*;
    use crate::proto::http1::http_date;

    const BEGAN_MS: u64 = 1_800_000_000_000;
    const PORT: u16 = 8080;

    fn site(rough: bool) -> Site {
        let news = NewsSpec { feeds: 24, every_s: 60.0, rough };
        Site::new(SiteSpec { hosts: 5, news, began_unix_ms: BEGAN_MS, ..SiteSpec::default() }).unwrap()
    }

    fn ask(site: &Site, feed: u32, unix_ms: u64, etag: &str) -> String {
        let mut out = Vec::new();
        let question = FeedQuestion {
            host: feed % 5,
            port: PORT,
            head_only: false,
            unix_ms,
            if_none_match: etag.as_bytes(),
            if_modified_since: b"",
        };
        assert_eq!(site.feed_at(feed % 5, feed / 5), Some(feed));
        assert_eq!(site.answer_feed(feed, &question, &mut out).then, Then::KeepAlive);
        String::from_utf8(out).unwrap()
    }

    fn etag_of(answer: &str) -> Option<&str> {
        answer.split("ETag: ").nth(1)?.split("\r\n").next()
    }

    #[test]
    fn stories_are_posted_one_after_the_other_and_stay_what_they_are() {
        let site = site(false);
        for feed in 0..24 {
            assert!(site.posted_by(feed, BEGAN_MS).abs_diff(STORIES_BEFORE) <= 1);
            let mut before = 0;
            for number in 0..200 {
                let at = site.posted_ms(Posted { feed, number });
                assert!(at > before);
                assert_eq!(site.posted_by(feed, at), number + 1, "to the millisecond");
                assert_eq!(site.posted_by(feed, at - 1), number);
                before = at;
            }
        }
        let hour = BEGAN_MS + 3_600_000;
        let counts: Vec<u32> = (0..24).map(|feed| site.posted_by(feed, hour)).collect();
        assert!(counts.iter().max().unwrap() > &(3 * counts.iter().min().unwrap()), "{counts:?}");
        assert_eq!(site.listed(3, hour).len(), 20);
    }

    #[test]
    fn a_feed_that_is_the_same_says_304_and_habits_are_kept() {
        let site = site(true);
        for feed in 0..24 {
            let habit = site.feed_habit(feed);
            let answer = ask(&site, feed, BEGAN_MS, "");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            let next = site.posted_ms(Posted { feed, number: site.posted_by(feed, BEGAN_MS) });
            let again = |at| ask(&site, feed, at, etag_of(&answer).unwrap_or("\"x\""));
            let (same, later) = (again(BEGAN_MS + 1), again(next));
            let is_304 = |answer: &str| answer.starts_with("HTTP/1.1 304 ") && answer.ends_with("\r\n\r\n");
            match habit {
                FeedHabit::Bare => assert!(etag_of(&answer).is_none() && !is_304(&same)),
                FeedHabit::FreshEtag => assert!(!is_304(&same)),
                FeedHabit::Lies => assert!(is_304(&same) && is_304(&later)),
                _ => assert!(is_304(&same) && !is_304(&later), "{habit:?}"),
            }
            let listed = answer.matches("/story/").count();
            assert!(listed >= site.listed(feed, BEGAN_MS).len(), "{answer}");
        }
    }

    #[test]
    fn a_story_is_there_from_the_moment_it_is_posted() {
        let site = site(false);
        let story = Posted { feed: 7, number: 30 };
        let answer = |unix_ms, host| {
            let mut out = Vec::new();
            let question = FeedQuestion {
                host,
                port: PORT,
                head_only: false,
                unix_ms,
                if_none_match: b"",
                if_modified_since: b"",
            };
            site.answer_story(story, &question, &mut out);
            String::from_utf8(out).unwrap()
        };
        let at = site.posted_ms(story);
        assert!(answer(at - 1, 2).starts_with("HTTP/1.1 404 "));
        let there = answer(at, 2);
        assert!(there.starts_with("HTTP/1.1 200 ") && there.contains(&site.story_title(story)));
        assert!(answer(at, 3).starts_with("HTTP/1.1 404 "), "on its own host alone");
        assert_eq!(site.story_url(story, PORT), "http://h2.farm.test:8080/story/7/30.html");
    }

    #[test]
    fn dates_are_read_as_they_were_written() {
        for unix_s in [0, 951_782_399, 1_709_164_800, 1_800_000_000, 4_102_444_799] {
            assert_eq!(http_date(imf_date(unix_s).as_bytes()), Some(unix_s));
        }
    }
}
