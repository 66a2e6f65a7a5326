use super::indexing::IndexingActor;
use super::story_texts::StoryTexts;
use crate::base::{Now, OneWorker};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::health::Health;
use crate::extractor::{StoryText, Texts};
use crate::feeds::{EntryRead, FeedFacts, FeedFormat, FeedHints, FeedRead, FeedRules, Feeds, NewFeed};
use crate::search::{Library, SearchDoc, SearchQuery, SearchSource};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Stories that others add to; a place is the number of those before it.
#[derive(Clone, Default)]
struct Shelf {
    stories: Arc<Mutex<u64>>,
    at: u64,
    is_broken: Arc<Mutex<bool>>,
}

impl SearchSource for Shelf {
    fn place(&self) -> u64 {
        self.at
    }

    fn seek(&mut self, place: u64) -> io::Result<bool> {
        self.at = place;
        Ok(place <= *self.stories.lock().unwrap())
    }

    fn next(&mut self) -> io::Result<Option<SearchDoc>> {
        if *self.is_broken.lock().unwrap() {
            return Err(io::Error::other("it is broken"));
        }
        if self.at == *self.stories.lock().unwrap() {
            return Ok(None);
        }
        self.at += 1;
        let text = "some words".to_string();
        Ok(Some(SearchDoc {
            story: self.at,
            text,
            after: self.at,
            language: "en".to_string(),
            ..Default::default()
        }))
    }
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("nephila-indexing-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn found(path: &Path) -> usize {
    let query = SearchQuery::parse("word").unwrap();
    Library::open(path).map_or(0, |library| library.find(&query, 1_000, &OneWorker).unwrap().len())
}

fn turn_all(actor: &mut IndexingActor<Shelf>, now: Now) -> Turned {
    loop {
        match actor.turn(now) {
            Turned::Busy => {}
            turned => return turned,
        }
    }
}

#[test]
fn stories_are_found_within_seconds_and_all_of_them_at_the_end() {
    let path = folder("life");
    let (shelf, health) = (Shelf::default(), Arc::<Health>::default());
    let mut actor = IndexingActor::new(path.clone(), shelf.clone(), health);
    let at = |ms: u64| Now::ZERO.plus_ms(ms);
    assert_eq!(turn_all(&mut actor, at(0)), Turned::IDLE);
    *shelf.stories.lock().unwrap() = 450;
    assert_eq!(turn_all(&mut actor, at(500)), Turned::IDLE);
    assert_eq!((found(&path), actor.next_due()), (0, Some(at(1_000))));
    turn_all(&mut actor, at(1_000));
    turn_all(&mut actor, at(5_900));
    assert_eq!(found(&path), 0, "a commit is not made for every story");
    turn_all(&mut actor, at(7_000));
    assert_eq!(found(&path), 450);
    // A kill: what was not committed is read again.
    *shelf.stories.lock().unwrap() = 700;
    turn_all(&mut actor, at(9_000));
    drop(actor);
    assert_eq!(found(&path), 450);
    let mut actor = IndexingActor::new(path.clone(), shelf.clone(), Arc::default());
    *shelf.stories.lock().unwrap() = 710;
    actor.end(at(0));
    assert_eq!(turn_all(&mut actor, at(0)), Turned::Finished);
    drop(actor);
    assert_eq!(found(&path), 710);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_may_pass_is_tried_again_and_damage_is_not() {
    let path = folder("trouble");
    let (shelf, health) = (Shelf::default(), Arc::<Health>::default());
    *shelf.stories.lock().unwrap() = 3;
    *shelf.is_broken.lock().unwrap() = true;
    let mut actor = IndexingActor::new(path.clone(), shelf.clone(), health.clone());
    let at = |ms: u64| Now::ZERO.plus_ms(ms);
    let told = || health.notices().take().notices.into_iter().map(|notice| notice.text).collect::<Vec<_>>();
    assert_eq!(turn_all(&mut actor, at(0)), Turned::IDLE);
    turn_all(&mut actor, at(30_000));
    assert_eq!(told(), ["search: stories are not indexed: stories cannot be read: it is broken"]);
    *shelf.is_broken.lock().unwrap() = false;
    turn_all(&mut actor, at(60_000));
    turn_all(&mut actor, at(70_000));
    assert_eq!((found(&path), told()), (3, vec!["search: stories are indexed again".to_string()]));
    drop(actor);
    std::fs::write(path.join("manifest"), b"{").unwrap();
    let mut actor = IndexingActor::new(path.clone(), shelf, health.clone());
    assert_eq!((turn_all(&mut actor, at(0)), actor.next_due()), (Turned::IDLE, None));
    let said = told();
    assert!(
        said.len() == 1 && said[0].contains("damaged") && said[0].contains("nephila search reindex"),
        "{said:?}"
    );
    actor.end(at(1));
    assert_eq!(turn_all(&mut actor, at(1)), Turned::Finished);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn texts_that_come_after_it_has_begun_are_indexed() {
    let data = folder("texts");
    std::fs::create_dir_all(&data).unwrap();
    let (mut feeds, _) = Feeds::open(&data, FeedRules::default()).unwrap();
    let mut texts = Texts::open(&data.join("stories")).unwrap();
    // It begins when there is nothing yet, as in the first crawl of a directory.
    let mut source = StoryTexts::open(&data).unwrap();
    assert!(source.seek(0).unwrap() && source.next().unwrap().is_none());
    let feed = feeds.add(&NewFeed { url: "http://a.test/feed", source: "A", title: "" }, 9).unwrap().feed;
    let entry = |number: u32| EntryRead {
        url: format!("http://a.test/{number}").into(),
        guid: "".into(),
        title: format!("Story number {number}").into(),
        published_s: None,
    };
    let facts = FeedFacts {
        format: FeedFormat::Rss20,
        title: String::new(),
        link: None,
        language: None,
        hub: None,
        hints: FeedHints::default(),
        entries: 2,
        damage: None,
    };
    let entries = vec![entry(1), entry(2)];
    let read = FeedRead { facts, entries, checksum: 1, digest: 1, skipped: 0 };
    feeds.read(feed, &read, 9, |_| {}).unwrap();
    feeds.flush(true).unwrap();
    for story in 1..=2 {
        texts.append(&StoryText { story, text: "some words".to_string(), ..StoryText::default() }).unwrap();
        texts.sync().unwrap();
        let place = source.place();
        assert!(source.seek(place).unwrap());
        let found = source.next().unwrap().expect("it is there");
        assert_eq!(
            (found.story, &*found.url, &*found.source),
            (story.into(), &*format!("http://a.test/{story}"), "A")
        );
        assert!(source.next().unwrap().is_none());
    }
    std::fs::remove_dir_all(data).unwrap();
}
