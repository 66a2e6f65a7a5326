use super::cpu::process_us;
use super::feeds_made::feeds;
use super::record::RecordArgs;
use super::stage::Stage;
use crate::commands::shared::Failure;
use crate::engine::feed_read;
use crate::feeds::{EntryRead, FeedFacts, FeedFormat, FeedHints, FeedId, FeedRead, FeedRules, Feeds};
use crate::feeds::{NewFeed, PollOutcome, StoryId};
use crate::handler::{FeedAnswer, FeedReading, Handler, Page, Scope, ScopeKind};
use crate::proto::feed::FeedLimits;
use crate::proto::http1::{Head, HeadLimits, HeadParser, HeadStep, Method};
use crate::proto::job::{Candidate, DocKind, Poll, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Put stories of many feeds into a book, find them again, and print what each costs
///
/// Feeds list twenty entries a poll, all of them new, and the next time all of them known in another order and with one
/// entry more. Everything is flushed and synced every thousand polls, as a busy crawl does. Beside that: a poll of 25 KB that
/// brings the same URLs as before, and a news sitemap of 50,000 entries that are all new, both from their bytes on.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench stories --record bench/runs/my-machine-stories.json\n  nephila bench stories --feeds 200000 --stories 10000000 --data /mnt/disk/bench\n\nCosts are CPU time, that of the system included, without the downloads of stories in the doc index."
)]
pub(super) struct StoriesBenchArgs {
    /// Where the book is written; it is removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-stories")]
    data: PathBuf,
    /// Feeds
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    feeds: u32,
    /// Stories, all of them together
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(20..))]
    stories: u32,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct StoriesBenchReport {
    feeds: u32,
    stories: u32,
    /// A new story: looked up, written to the ledger, synced.
    new_us: f64,
    /// An entry that is known.
    known_us: f64,
    /// The news of its download, when it is known and when it ends.
    download_us: f64,
    /// A poll that brings the same URLs as before, its parsing included.
    redundant_poll_us: f64,
    redundant_poll_bytes: usize,
    sitemap_s: f64,
    sitemap_entries: usize,
    /// Memory that the book says it takes.
    feeds_bytes: usize,
    stories_bytes: usize,
    disk_bytes: u64,
    opened_s: f64,
}

const PER_POLL: u32 = 20;
const FLUSH_POLLS: u32 = 1_000;
const SITEMAP_ENTRIES: usize = 50_000;
const REDUNDANT_POLLS: u32 = 2_000;
/// 2026-11-16.
const NOW_S: u32 = 1_794_787_200;

impl StoriesBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        let stage = Stage::unmade(&self.data)?;
        let (mut book, _) = Feeds::open(&stage.dir, FeedRules::default())?;
        let mut ids = Vec::new();
        for feed in 0..self.feeds {
            let url = format!("http://news{}.example/feeds/{feed}.xml", feed / 4);
            ids.push(book.add(&NewFeed { url: &url, ..NewFeed::default() }, NOW_S)?.feed);
        }
        book.flush(true)?;
        let polls = self.stories / PER_POLL;
        let found_us = self.poll_all(&mut book, &ids, polls, false)?;
        let known_us = self.poll_all(&mut book, &ids, polls, true)?;
        let begun_us = process_us();
        for story in 1..=polls * PER_POLL {
            book.downloads(StoryId(story), story)?;
            if story.is_multiple_of(FLUSH_POLLS * PER_POLL) {
                book.flush(true)?;
            }
        }
        for story in 1..=polls * PER_POLL {
            book.fetched(story, ResultCode::Ok, NOW_S + 60)?;
            if story.is_multiple_of(FLUSH_POLLS * PER_POLL) {
                book.flush(true)?;
            }
        }
        book.flush(true)?;
        let download_us = process_us() - begun_us;
        let (feeds_bytes, stories_bytes) = book.ram_bytes();
        book.close()?;
        drop(book);
        let disk_bytes = bytes_of(&stage.dir)?;
        let begun_us = process_us();
        let (mut book, _) = Feeds::open(&stage.dir, FeedRules::default())?;
        let opened_s = (process_us() - begun_us) / 1e6;
        let (redundant_us, redundant_poll_bytes) = redundant(&mut book)?;
        let sitemap_s = sitemap(&mut book)?;
        book.close()?;
        let stories = polls * PER_POLL;
        let report = StoriesBenchReport {
            feeds: self.feeds,
            stories,
            new_us: found_us / f64::from(stories),
            known_us: known_us / f64::from(stories + polls),
            download_us: download_us / f64::from(stories),
            redundant_poll_us: redundant_us,
            redundant_poll_bytes,
            sitemap_s,
            sitemap_entries: SITEMAP_ENTRIES,
            feeds_bytes,
            stories_bytes,
            disk_bytes,
            opened_s,
        };
        drop(stage);
        self.record.tell(&report, StoriesBenchReport::text)
    }

    /// Polls feeds in turn, and says what that took. What is `known` was told before, and comes with one more.
    fn poll_all(&self, book: &mut Feeds, ids: &[FeedId], polls: u32, known: bool) -> Result<f64, Failure> {
        let mut took_us = 0.0;
        for first in (0..polls).step_by(FLUSH_POLLS as usize) {
            let made: Vec<(FeedId, FeedRead)> = (first..polls.min(first + FLUSH_POLLS))
                .map(|poll| (ids[(poll % self.feeds) as usize], listing(poll, self.feeds, known)))
                .collect();
            let begun_us = process_us();
            for (feed, read) in &made {
                poll(book, *feed, read)?;
            }
            book.flush(true)?;
            took_us += process_us() - begun_us;
        }
        Ok(took_us)
    }
}

/// What a poll lists: its own stories, or those turned round and one that is new.
fn listing(poll: u32, feeds: u32, known: bool) -> FeedRead {
    let host = poll % feeds / 4;
    let entry = |number: u32| EntryRead {
        url: format!("http://news{host}.example/2026/11/story-number-{poll}-{number}").into(),
        guid: format!("tag:news{host}.example,2026:{poll}-{number}").into(),
        title: format!("What was reported of number {poll} and of {number} in these weeks").into(),
        published_s: Some(i64::from(NOW_S) - i64::from(number) * 600),
    };
    let mut entries: Vec<EntryRead> = (0..PER_POLL).map(entry).collect();
    if known {
        entries.reverse();
        entries.push(entry(PER_POLL));
    }
    let facts = FeedFacts {
        format: FeedFormat::Rss20,
        title: String::new(),
        link: None,
        language: None,
        hub: None,
        hints: FeedHints::default(),
        entries: entries.len() as u32,
        damage: None,
    };
    let checksum = u64::from(poll) << 1 | u64::from(known);
    FeedRead { facts, entries, checksum: checksum + 2, digest: checksum + 2, skipped: 0 }
}

fn poll(book: &mut Feeds, feed: FeedId, read: &FeedRead) -> Result<(), Failure> {
    book.read(feed, read, NOW_S, |_| {})?;
    let outcome = PollOutcome { digest: read.digest, ..PollOutcome::new(ResultCode::Ok, 200, NOW_S) };
    book.polled(feed, &outcome, NOW_S);
    Ok(())
}

/// Reads documents as the answers to polls.
struct Desk {
    handler: Handler,
    head_bytes: Vec<u8>,
    head: Head,
    candidate: Candidate,
}

impl Desk {
    fn new(entries_max: usize) -> Result<Desk, Failure> {
        let head_bytes = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n".to_vec();
        let Ok(HeadStep::Done(head)) = HeadParser::new(HeadLimits::default(), Method::Get).parse(&head_bytes)
        else {
            return Err(Failure::cannot_run("a head of our own cannot be read"));
        };
        let limits = FeedLimits { entries_max, ..FeedLimits::default() };
        let handler = Handler::new(Arc::new(Scope::new(ScopeKind::Host, 0)), "nephila".to_string())
            .with_feeds(FeedReading { limits, ..FeedReading::default() });
        let url = CrawlUrl::parse("http://news.test/feed").map_err(Failure::cannot_run)?;
        let provenance = Provenance { kind: DocKind::Feed, ..Provenance::SEED };
        let candidate = Candidate { provenance, ..Candidate::seed(1, url) };
        Ok(Desk { handler, head_bytes, head, candidate })
    }

    fn read(&mut self, document: &[u8], poll: Poll) -> Result<Box<FeedAnswer>, Failure> {
        self.candidate.poll = Some(Box::new(poll));
        let handled = self.handler.handle(&Page {
            candidate: &self.candidate,
            result: ResultCode::Ok,
            head: Some(&self.head),
            head_bytes: &self.head_bytes,
            decoded: false,
            document,
        });
        handled.feed.ok_or_else(|| Failure::cannot_run("a feed of our own is none"))
    }
}

/// A poll that brings the URLs of the last time in other bytes, from these on: CPU µs, and bytes.
fn redundant(book: &mut Feeds) -> Result<(f64, usize), Failure> {
    let made = feeds().into_iter().find(|feed| feed.name == "urdu");
    let text = made.map_or(String::new(), |feed| feed.text);
    let mut desk = Desk::new(2_000)?;
    let feed = book.add(&NewFeed { url: "http://news.test/feed", ..NewFeed::default() }, NOW_S)?.feed;
    let mut first = desk.read(text.as_bytes(), Poll::default())?;
    let listing = first.listing.take().ok_or_else(|| Failure::cannot_run("a feed lists nothing"))?;
    let checksum = listing.checksum;
    poll(book, feed, &feed_read(listing, first.digest))?;
    book.flush(true)?;
    let begun_us = process_us();
    for number in 0..REDUNDANT_POLLS {
        // Another body each time: the digest alone would say that it is the same.
        let other = Poll { checksum, digest: u64::from(number) + 1, ..Poll::default() };
        let mut answer = desk.read(text.as_bytes(), other)?;
        if !answer.is_redundant {
            return Err(Failure::cannot_run("the same URLs are not taken for the same"));
        }
        if let Some(listing) = answer.listing.take() {
            poll(book, feed, &feed_read(listing, u64::from(number) + 2))?;
        }
    }
    book.flush(true)?;
    Ok(((process_us() - begun_us) / f64::from(REDUNDANT_POLLS), text.len()))
}

/// A news sitemap whose entries are all new, from its bytes to the disk: CPU seconds.
fn sitemap(book: &mut Feeds) -> Result<f64, Failure> {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:news=\"http://www.google.com/schemas/sitemap-news/0.9\">\n",
    );
    for number in 0..SITEMAP_ENTRIES {
        text += &format!(
            "<url><loc>http://news.test/sitemap/{number}</loc><news:news><news:publication><news:name>News</news:name>\
             <news:language>en</news:language></news:publication><news:publication_date>2026-11-16T10:00:00Z\
             </news:publication_date><news:title>Item {number} of the sitemap</news:title></news:news></url>\n"
        );
    }
    text += "</urlset>\n";
    let mut desk = Desk::new(SITEMAP_ENTRIES)?;
    let url = "http://news.test/sitemap.xml";
    let feed = book.add(&NewFeed { url, ..NewFeed::default() }, NOW_S)?.feed;
    let begun_us = process_us();
    let mut answer = desk.read(text.as_bytes(), Poll::default())?;
    let listing = answer.listing.take().ok_or_else(|| Failure::cannot_run("a sitemap lists nothing"))?;
    let found = listing.items.len();
    poll(book, feed, &feed_read(listing, answer.digest))?;
    book.flush(true)?;
    match found == SITEMAP_ENTRIES {
        true => Ok((process_us() - begun_us) / 1e6),
        false => Err(Failure::cannot_run("a sitemap was not read to its end")),
    }
}

fn bytes_of(dir: &std::path::Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

impl StoriesBenchReport {
    fn text(&self) -> String {
        let Self { feeds, stories, new_us, known_us, download_us, redundant_poll_us, sitemap_s, .. } = self;
        let per = |bytes: usize, count: u32| bytes as f64 / f64::from(count);
        format!(
            "new story       {new_us:.2} us CPU, synced; {download_us:.2} us for the news of its download\n\
             known entry     {known_us:.2} us\n\
             redundant poll  {redundant_poll_us:.0} us, {} bytes read\n\
             sitemap         {sitemap_s:.3} s, {} entries, all new\n\
             memory          {:.0} bytes a feed ({feeds}), {:.1} a story ({stories})\n\
             disk            {:.0} bytes a story; opened again in {:.2} s of CPU\n",
            self.redundant_poll_bytes,
            self.sitemap_entries,
            per(self.feeds_bytes, *feeds),
            per(self.stories_bytes, *stories),
            self.disk_bytes as f64 / f64::from(*stories),
            self.opened_s,
        )
    }
}
