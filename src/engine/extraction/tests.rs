use super::actor::Extraction;
use super::hands::{Hands, STACK_BYTES, ThreadHands, Work};
use super::job::Job;
use super::waiting::{FetchedStory, Ledger, Page, Pages, StoryWork};
use crate::base::{Now, Rng};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::extractor::{ExtractDepth, Extracted, Extractor, StoryText, Texts, TextsView};
use crate::rings::Doorbell;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A ledger that a test writes: what is at a place is how far the story of that number is.
#[derive(Clone, Default)]
struct Script(Rc<RefCell<Vec<StoryWork>>>);

impl Ledger for Script {
    fn each(&mut self, from: u32, show: &mut dyn FnMut(u32, StoryWork) -> ControlFlow<()>) -> io::Result<()> {
        for (story, work) in self.0.borrow().iter().enumerate().skip(from as usize) {
            if show(story as u32, work.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn fetched(story: u32) -> StoryWork {
    StoryWork::Fetched(of(story))
}

fn of(story: u32) -> FetchedStory {
    FetchedStory {
        story,
        doc_id: story + 1_000,
        url: format!("http://a.example/{story}").into(),
        ..FetchedStory::default()
    }
}

/// Pages that name their document. Some are not there, some cannot be read now.
#[derive(Clone, Default)]
struct Shelf {
    missing: Vec<u32>,
    fails: Rc<RefCell<u32>>,
}

impl Pages for Shelf {
    fn read(
        &mut self,
        stories: &[FetchedStory],
        show: &mut dyn FnMut(usize, Option<Page>),
    ) -> io::Result<()> {
        if *self.fails.borrow() > 0 {
            *self.fails.borrow_mut() -= 1;
            return Err(io::Error::other("the disk is away"));
        }
        for (index, story) in stories.iter().enumerate() {
            let body = format!("page {}", story.doc_id).into_bytes();
            show(index, (!self.missing.contains(&story.story)).then(|| Page { body, ..Page::default() }));
        }
        Ok(())
    }
}

/// Hands without threads, that come back in any order.
struct Jugglers {
    jobs: VecDeque<Job>,
    rng: Rng,
}

impl Hands for Jugglers {
    fn free(&self) -> usize {
        3 - self.jobs.len()
    }

    fn give(&mut self, job: Job, _: Now) {
        self.jobs.push_back(job);
    }

    fn take(&mut self, _: Now) -> Option<StoryText> {
        if self.jobs.is_empty() || self.rng.chance(300) {
            return None;
        }
        let index = self.rng.below(self.jobs.len() as u64) as usize;
        let job = self.jobs.remove(index)?;
        Some(job.run(|html, _, _| Extracted { text: html.to_string(), ..Extracted::default() }))
    }

    fn next_due(&self) -> Option<Now> {
        None
    }
}

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let path = std::env::temp_dir().join(format!("nephila-extraction-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        TestDir(path)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn extraction(dir: &Path, ledger: &Script, pages: &Shelf, seed: u64) -> Extraction<Script, Shelf, Jugglers> {
    let hands = Jugglers { jobs: VecDeque::new(), rng: Rng::new(seed) };
    Extraction::new(ledger.clone(), pages.clone(), hands, Texts::open(dir).unwrap())
}

fn turn_for(extraction: &mut impl Actor, now: &mut Now, seconds: u64) {
    for _ in 0..seconds * 10 {
        while extraction.turn(*now) == Turned::Busy {}
        *now = now.plus_ms(100);
    }
}

#[test]
fn every_story_that_was_fetched_gets_a_text_once() {
    let (dir, pages) = (TestDir::new("once"), Shelf { missing: vec![4], fails: Rc::new(RefCell::new(3)) });
    let ledger = Script::default();
    ledger.0.borrow_mut().extend((0..600).map(|story| match story % 3 {
        0 => StoryWork::Settled,
        1 => fetched(story),
        _ => StoryWork::Pending,
    }));
    let mut now = Now::ZERO;
    let mut actor = extraction(&dir.0, &ledger, &pages, 1);
    turn_for(&mut actor, &mut now, 60);
    let stories = |dir: &Path| {
        let view = TextsView::open(dir).unwrap();
        let mut all: Vec<u32> = view.since(0).map(|read| read.unwrap().1.story).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(stories(&dir.0), (0..600).filter(|story| story % 3 == 1).collect::<Vec<u32>>());
    let view = TextsView::open(&dir.0).unwrap();
    assert_eq!(view.by_story(4).unwrap().unwrap().failed.as_deref(), Some("its page is not in the store"));
    assert_eq!(view.by_story(7).unwrap().unwrap().text, "page 1007");
    assert_eq!(actor.refused(), 3, "a store that could not be read was asked again");
    // The rest arrives, the last first.
    for story in (0..600).rev().filter(|story| story % 3 == 2) {
        ledger.0.borrow_mut()[story as usize] = fetched(story);
        if story % 50 == 0 {
            turn_for(&mut actor, &mut now, 3);
        }
    }
    turn_for(&mut actor, &mut now, 60);
    assert_eq!(stories(&dir.0), (0..600).filter(|story| story % 3 != 0).collect::<Vec<u32>>());
    actor.end(now);
    assert_eq!(actor.turn(now), Turned::Finished);
}

/// The process is killed at any turn and what it had not synced is lost in part: nothing is skipped.
#[test]
fn a_kill_repeats_and_never_skips() {
    for seed in 0..40 {
        let (dir, pages) = (TestDir::new(&format!("kill-{seed}")), Shelf::default());
        let mut rng = Rng::new(seed);
        let ledger = Script::default();
        ledger.0.borrow_mut().extend((0..120).map(fetched));
        for life in 0..4 {
            let mut actor = extraction(&dir.0, &ledger, &pages, seed * 10 + life);
            let synced = fs::metadata(dir.0.join("texts")).unwrap().len();
            let mut now = Now::ZERO;
            for _ in 0..rng.below(60) {
                actor.turn(now);
                now = now.plus_ms(5);
            }
            drop(actor);
            let written = fs::metadata(dir.0.join("texts")).unwrap().len();
            let kept = synced + rng.below(written - synced + 1);
            fs::OpenOptions::new().write(true).open(dir.0.join("texts")).unwrap().set_len(kept).unwrap();
        }
        let mut actor = extraction(&dir.0, &ledger, &pages, seed);
        turn_for(&mut actor, &mut Now::ZERO.clone(), 10);
        let view = TextsView::open(&dir.0).unwrap();
        for story in 0..120 {
            let text =
                view.by_story(story).unwrap().unwrap_or_else(|| panic!("seed {seed}: {story} was skipped"));
            assert_eq!(text.text, format!("page {}", story + 1_000));
        }
        assert_eq!(view.since(0).count(), 120, "seed {seed}: one that was durable was made again");
    }
}

fn job(story: u32, body: impl Into<Vec<u8>>) -> Job {
    Job { story: of(story), page: Page { body: body.into(), ..Page::default() } }
}

/// Waits for a text by real threads; the time of the deadline is the caller's.
fn wait(hands: &mut ThreadHands, now: Now) -> StoryText {
    let started = Instant::now();
    loop {
        if let Some(text) = hands.take(now) {
            return text;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "nothing came back");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_page_that_panics_or_hangs_is_marked_and_its_thread_replaced() {
    let release = Arc::new(AtomicBool::new(false));
    let work: Work = Arc::new({
        let release = release.clone();
        move |job| {
            job.run(|html, _, _| {
                if html.contains("hang") {
                    while !release.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                assert!(!html.contains("panic"), "a \u{1b}[31mbad page");
                Extracted { text: html.to_string(), ..Extracted::default() }
            })
        }
    });
    let bell = Arc::new(Doorbell::new(|| {}));
    let mut hands = ThreadHands::with_deadline(1, work, bell, 1_000, 2).unwrap();
    let (early, late) = (Now::ZERO, Now::from_us(1_000));
    hands.give(job(1, "panic"), early);
    let text = wait(&mut hands, early);
    let failed = text.failed.unwrap();
    assert!(failed.starts_with("the parser panicked: a ") && !failed.contains('\u{1b}'), "{failed}");
    hands.give(job(2, "fine"), early);
    assert_eq!(wait(&mut hands, early).text, "fine", "the thread goes on after a panic");
    // Two hang, each with its thread; the third has none to go to.
    for story in [3, 4] {
        assert_eq!(hands.free(), 1);
        hands.give(job(story, "hang"), early);
        assert_eq!((hands.free(), hands.take(early)), (0, None));
        let text = wait(&mut hands, late);
        assert_eq!(
            (text.story, text.failed.as_deref()),
            (story, Some("the parser was not done after 0.001 s"))
        );
    }
    assert_eq!((hands.free(), hands.left()), (0, (2, true)), "no more threads are left to themselves");
    release.store(true, Ordering::Relaxed);
    let started = Instant::now();
    while hands.free() == 0 {
        assert_eq!(hands.take(early), None, "who comes back late is not heard");
        assert!(started.elapsed() < Duration::from_secs(120), "no thread came back");
        std::thread::sleep(Duration::from_millis(2));
    }
    hands.give(job(5, "fine again"), early);
    assert_eq!(wait(&mut hands, early).text, "fine again");
}

#[test]
fn what_is_no_page_is_said_to_be_none() {
    let of = |content_type: &str, body: &[u8]| {
        let page = Page { content_type: content_type.into(), body: body.to_vec(), fetched_s: 0 };
        Job { story: of(1), page }
            .run(|html, _, _| Extracted { text: html.to_string(), ..Extracted::default() })
    };
    assert_eq!(
        of("application/pdf; x=y", b"%PDF").failed.as_deref(),
        Some("the page is not HTML but application/pdf")
    );
    assert_eq!(of("Text/HTML; charset=iso-8859-1", b"caf\xe9").text, "caf\u{e9}");
    assert_eq!(of("", "\u{feff}café".as_bytes()).text, "café");
    assert_eq!(of("text/html; charset=utf-8", b"a\xffb").text, "a\u{fffd}b");
}

/// Real parsers on a real thread: whatever a page is made of, a text or a mark comes back.
#[test]
fn bombs_are_survived() {
    if !Extractor::is_built() {
        return;
    }
    let words =
        "The council of the town has agreed on a plan for the harbour after a year of talks. ".repeat(10);
    let deep = |tag: &str, count: usize| format!("{}<p>{words}</p>", format!("<{tag}>").repeat(count));
    let pages = [
        deep("div", 1_000_000),
        deep("div", 500),
        deep("b", 500),
        deep("table><tr><td", 170),
        deep("ul><li", 250),
        format!("<svg><style>{}</style></svg><p>{words}", "<div>".repeat(3_000)),
        format!("<p>{}", "x".repeat(16 << 20)),
        format!("{}{}", "<b><i><u><s>".repeat(100), "<p>a</p>".repeat(10_000)),
        format!("<p>{words}</p>{}", "<a href=/x>".repeat(20_000)),
        format!("<p title=\"{}\">{words}</p>", "&amp;".repeat(100_000)),
        "\0".repeat(10_000),
    ];
    for depth in [ExtractDepth::Fast, ExtractDepth::Full] {
        let extractor = Extractor::new(depth).unwrap();
        let work: Work = Arc::new(move |job| job.run_by(&extractor));
        let mut hands = ThreadHands::start(1, work, Arc::new(Doorbell::new(|| {}))).unwrap();
        for (story, page) in pages.iter().enumerate() {
            hands.give(job(story as u32, page.as_str()), Now::ZERO);
            let text = wait(&mut hands, Now::ZERO);
            assert_eq!(text.story, story as u32);
            assert!(text.failed.is_some() || !text.text.is_empty());
            assert_eq!(
                text.failed.is_some(),
                [0, 5, 6, 7, 10].contains(&story),
                "{depth:?} {story} {:?}",
                text.failed
            );
        }
    }
    const { assert!(STACK_BYTES >= 8 << 20) };
}

/// The role's own files: what it says of a story is what is done for it.
#[test]
fn stories_of_a_data_directory() {
    use super::stories::StoriesLedger;
    use crate::feeds::{EntryRead, FeedFacts, FeedFormat, FeedHints, FeedRead, FeedRules, Feeds, NewFeed};
    use crate::proto::record::ResultCode;

    let dir = TestDir::new("ledger");
    fs::create_dir_all(&dir.0).unwrap();
    let (mut feeds, _) = Feeds::open(&dir.0, FeedRules::default()).unwrap();
    let url = "http://a.example/feed";
    let feed = feeds.add(&NewFeed { url, source: "A", title: "" }, 1_800_000_000).unwrap().feed;
    let entries: Vec<EntryRead> = (0..4)
        .map(|number| EntryRead {
            url: format!("http://a.example/{number}").into(),
            title: format!("Title {number}").into(),
            published_s: (number == 1).then_some(1_799_999_999),
            ..EntryRead::default()
        })
        .collect();
    let facts = FeedFacts {
        format: FeedFormat::Rss20,
        title: String::new(),
        link: None,
        language: Some("en".to_string()),
        hub: None,
        hints: FeedHints::default(),
        entries: 4,
        damage: None,
    };
    let mut new = Vec::new();
    let read = FeedRead { facts, entries, checksum: 1, digest: 1, skipped: 0 };
    feeds.read(feed, &read, 1_800_000_000, |story| new.push(story.story)).unwrap();
    for (index, story) in new.iter().enumerate() {
        feeds.downloads(*story, 100 + index as u32).unwrap();
    }
    feeds.fetched(101, ResultCode::Ok, 1_800_000_001).unwrap();
    feeds.fetched(102, ResultCode::ConnectRefused, 1_800_000_001).unwrap();
    feeds.flush(true).unwrap();
    let mut ledger = StoriesLedger::new(dir.0.clone());
    let mut seen = Vec::new();
    ledger
        .each(0, &mut |story, work| {
            seen.push((story, work));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(
        seen.iter().map(|(story, _)| *story).collect::<Vec<_>>(),
        new.iter().map(|id| id.0).collect::<Vec<_>>()
    );
    let kinds: Vec<&StoryWork> = seen.iter().map(|(_, work)| work).collect();
    assert!(matches!(kinds[0], StoryWork::Pending) && matches!(kinds[3], StoryWork::Pending), "{kinds:?}");
    let StoryWork::Fetched(fetched) = kinds[1] else { panic!("{kinds:?}") };
    assert_eq!((fetched.doc_id, &*fetched.title, fetched.published_s), (101, "Title 1", Some(1_799_999_999)));
    assert_eq!(kinds[2], &StoryWork::Settled);
    let mut later = Vec::new();
    ledger
        .each(new[2].0, &mut |story, _| {
            later.push(story);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(later, [new[2].0, new[3].0]);
}
