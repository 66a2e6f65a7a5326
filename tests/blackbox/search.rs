//! The promise: stories are found by their words, an index can be made anew from what was extracted, and whatever is wrong
//! with it or with a question is one line with its mend.

use crate::support::*;
use nephila::extractor::{StoryText, Texts};
use nephila::feeds::{EntryRead, FeedRead, FeedRules, Feeds, NewFeed};
use nephila::proto::feed::{FeedFacts, FeedFormat, FeedHints};
use std::path::Path;

const NOW_S: u32 = 1_794_744_000;

fn search(data: &Path, args: &[&str]) -> Run {
    let mut command = nephila();
    // What follows a -- is a word.
    let commands = args.iter().take_while(|arg| ["reindex", "stat"].contains(arg)).count();
    command.arg("search").args(&args[..commands]).arg("--data").arg(data).args(&args[commands..]);
    Running::start(&mut command).wait(PATIENCE)
}

fn facts() -> FeedFacts {
    FeedFacts {
        format: FeedFormat::Rss10,
        title: String::new(),
        link: None,
        language: None,
        hub: None,
        hints: FeedHints::default(),
        entries: 1,
        damage: None,
    }
}

/// A data directory with stories of two sources and their texts, as a crawl leaves it.
fn told(stories: &[(&str, &str, &str, &str)]) -> TempDir {
    let data = TempDir::new();
    let (mut feeds, _) = Feeds::open(data.path(), FeedRules::default()).unwrap();
    let mut texts = Texts::open(&data.join("stories")).unwrap();
    for (number, (source, title, language, text)) in stories.iter().enumerate() {
        let feed = format!("http://{source}/feed");
        let added = feeds.add(&NewFeed { url: &feed, source, title: "" }, NOW_S).unwrap();
        let entry = EntryRead {
            url: format!("http://{source}/{number}").into(),
            guid: "".into(),
            title: (*title).into(),
            published_s: Some(i64::from(NOW_S) - 86_400 * number as i64),
        };
        let digest = number as u64 + 1;
        let read = FeedRead { facts: facts(), entries: vec![entry], checksum: digest, digest, skipped: 0 };
        let mut story = 0;
        feeds.read(added.feed, &read, NOW_S, |new| story = new.story.0).unwrap();
        let (language, text) = (language.to_string(), text.to_string());
        texts.append(&StoryText { story, language, text, ..StoryText::default() }).unwrap();
    }
    feeds.flush(true).unwrap();
    texts.sync().unwrap();
    data
}

fn library() -> TempDir {
    told(&[
        ("one.test", "Rivers rise", "en", "The rivers were rising quickly."),
        ("one.test", "Flüsse steigen", "de", "Die Häuser am Fluss wurden geräumt, sea level."),
        ("two.test", "Sea level\u{1b}[2J", "en", "The level of the sea rises. A river."),
        ("two.test", "東京の天気", "ja", "東京都で大雨。"),
    ])
}

#[test]
fn stories_are_found_by_their_words() {
    let data = library();
    let none = search(data.path(), &["river"]);
    let said = none.stderr.clone();
    assert_eq!(none.code(), 3, "{said}");
    assert!(said.contains("has no search index") && said.contains("nephila search reindex"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    search(data.path(), &["reindex"]).done();
    let found = |args: &[&str]| {
        let run = search(data.path(), &[args, &["--json"]].concat());
        let mut urls: Vec<String> =
            run.json_lines().iter().map(|line| line["url"].as_str().unwrap().to_string()).collect();
        urls.sort();
        assert_eq!(run.code(), if urls.is_empty() { 1 } else { 0 }, "{args:?}");
        urls
    };
    let (one, two, three, four) =
        ("http://one.test/0", "http://one.test/1", "http://two.test/2", "http://two.test/3");
    assert_eq!(found(&["river"]), [one, three]);
    assert_eq!(found(&["river", "source:two.test"]), [three]);
    assert_eq!(found(&["rivers", "--source", "ONE.test"]), [one]);
    assert_eq!(found(&["\"sea level\""]), [two, three]);
    assert_eq!(found(&["sea", "level", "--lang", "de"]), [two]);
    assert_eq!(found(&["haus"]), [two]);
    assert_eq!(found(&["東京"]), [four]);
    assert_eq!(found(&["river", "--since", "2026-11-15"]), [one]);
    assert_eq!(found(&["river", "--until", "2026-11-14"]), [three]);
    assert_eq!(found(&["nowhere"]), [""; 0]);
    assert_eq!(search(data.path(), &["river", "--limit", "1", "--json"]).json_lines().len(), 1);
    let text = search(data.path(), &["level", "--source", "two.test"]).done().text();
    assert!(text.contains("Sea level\\u{1b}[2J  (two.test)") && text.contains(three), "{text}");
    let stat = search(data.path(), &["stat", "--json"]).done().json();
    assert_eq!((&stat["stories"], &stat["replaced"]), (&4.into(), &0.into()), "{stat}");
}

#[test]
fn what_is_wrong_is_one_line_with_its_mend() {
    let data = library();
    search(data.path(), &["reindex"]).done();
    let refused = |args: &[&str], code: i32, words: &str| {
        let run = search(data.path(), args);
        let said = run.stderr.clone();
        assert_eq!((run.code(), said.lines().count()), (code, 1), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    refused(&["nowhere"], 1, "no story has that");
    refused(&["--", "--"], 2, "there is no word to look for");
    refused(&[&"x".repeat(2_000)], 2, "at most 1000 bytes");
    refused(&[&"東京".repeat(100)], 2, "at most 32 words and phrases");
    refused(&["\"a b"], 2, "a quotation mark is not closed");
    refused(&["a", "--lang", "\u{1b}[2J"], 2, "is no language");
    refused(&["a", "--since", "2026-11-02", "--until", "2026-11-01"], 2, "--until is before --since");
    let folder = data.join("stories/search");
    let segments = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let largest = segments.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&largest, &bytes).unwrap();
    refused(&["stat"], 3, "is damaged");
    std::fs::write(folder.join("manifest"), "{").unwrap();
    refused(&["river"], 3, "make it anew: nephila search reindex");
    search(data.path(), &["reindex"]).done();
    search(data.path(), &["river"]).done();
    search(data.path(), &["stat"]).done();
}
