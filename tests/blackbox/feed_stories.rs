//! The promise: a story is found once, however many feeds of a source tell of it and however they tell it, and every story is
//! fetched; also if the crawl is killed at any moment.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const FEEDS: usize = 50;
const STORIES: usize = 120;

/// What feed `feed` lists of story `story`: the story itself, and then the same told otherwise, which is no other story;
/// and a namesake of three weeks before, which is.
fn entries(feed: usize, story: usize, nth: usize) -> Vec<String> {
    let entry = |url: String, guid: String, title: String, day: usize| {
        format!(
            "<item><title>{title}</title><link>{url}</link>{guid}<pubDate>{day:02} Nov 2026 10:00:00 GMT</pubDate></item>"
        )
    };
    let guid = |guid: String| format!("<guid isPermaLink='false'>{guid}</guid>");
    let title = format!("What happened on the street of number {story} today");
    let url = format!("/s/{story}");
    let told = entry(url.clone(), guid(format!("g{story}")), title.clone(), 11);
    let mut all = vec![match feed % 5 {
        // In lower case, with another date of the same week.
        0 => entry(url.clone(), guid(format!("g{story}")), title.to_lowercase(), 12),
        // Under another number each time.
        2 => entry(url.clone(), guid(format!("n{nth}-{story}")), title.clone(), 11),
        _ => told,
    }];
    all.extend(match feed % 5 {
        1 => Some(entry(url, String::new(), format!("Reworded {feed} {story}"), 11)),
        3 => Some(entry(
            format!("/s/{story}/retold{feed}"),
            guid(format!("x{feed}-{story}")),
            title.to_uppercase(),
            13,
        )),
        _ if story.is_multiple_of(10) => {
            Some(entry(format!("/s/{story}/before"), String::new(), title, 3).replace("Nov", "Oct"))
        }
        _ => None,
    });
    all
}

/// What is a story by the rules.
fn model() -> BTreeSet<String> {
    (0..STORIES)
        .flat_map(|story| {
            let before = (story % 10 == 0).then(|| format!("/s/{story}/before"));
            [Some(format!("/s/{story}")), before].into_iter().flatten()
        })
        .collect()
}

fn number(target: &str) -> Option<usize> {
    target.strip_prefix("/feed/")?.parse().ok()
}

#[test]
fn fifty_feeds_of_one_source_tell_of_each_story_once_through_twenty_kills() {
    let (polls, is_whole) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let whole_polls = Arc::new(AtomicUsize::new(0));
    let (whole, count) = (is_whole.clone(), whole_polls.clone());
    let mut stage = Stage::new(move |asked| {
        let Some(feed) = number(&asked.target) else { return Reply::html("a story") };
        let nth = polls.fetch_add(1, Ordering::SeqCst);
        // A window that moves on with every poll, and everything at the end.
        let from = (nth * 3 + feed * 7) % STORIES;
        let window: Vec<usize> = match whole.load(Ordering::SeqCst) {
            true => {
                count.fetch_add(1, Ordering::SeqCst);
                (0..STORIES).collect()
            }
            false => (from..from + 12).map(|story| story % STORIES).collect(),
        };
        let items: String = window.into_iter().flat_map(|story| entries(feed, story, nth)).collect();
        let text = format!("<rss version='2.0'><channel><title>F{feed}</title>{items}</channel></rss>");
        Reply::new("200 OK", "Content-Type: application/rss+xml\r\n", &text)
    });
    let lines: String = (0..FEEDS)
        .map(|feed| format!("{},The Street,\n", stage.url("a.test", &format!("/feed/{feed}"))))
        .collect();
    let feeds = stage.dir.write("feeds.csv", lines).to_str().unwrap().to_string();
    stage.settings("[feeds]\npoll_min = \"1s\"\npoll_min_plain = \"1s\"\npoll_max = \"2s\"\n");
    let kills = 20;
    for kill in 0..kills {
        let before = stage.server.asked().len();
        let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
        // At some moment of its work.
        wait_for("it is at work", PATIENCE, || (stage.server.asked().len() > before + kill).then_some(()));
        std::thread::sleep(Duration::from_millis(7 * kill as u64 % 90));
        run.signal(Signal::SIGKILL);
        run.wait(PATIENCE);
    }
    is_whole.store(true, Ordering::SeqCst);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    let expected = model();
    let asked = || -> BTreeMap<String, usize> {
        let mut asked = BTreeMap::new();
        for target in stage.pages_of("a.test").into_iter().map(|asked| asked.target) {
            *asked.entry(target).or_default() += 1;
        }
        asked
    };
    wait_for("every story was asked for", PATIENCE, || {
        let asked = asked();
        let is_told = whole_polls.load(Ordering::SeqCst) > 2 * FEEDS;
        (is_told && expected.iter().all(|url| asked.contains_key(url))).then_some(())
    });
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();

    let fetched: BTreeSet<String> = asked().into_keys().filter(|target| number(target).is_none()).collect();
    assert_eq!(fetched, expected, "what is no story is not asked for");
    let mut command = nephila();
    let listed =
        Running::start(command.args(["stories", "ls", "--json", "--data"]).arg(&stage.data)).wait(PATIENCE);
    let stories: Vec<Value> = listed.json_lines();
    let path = |story: &Value| {
        let url = story["url"].as_str().unwrap();
        url[url.find("/s/").unwrap()..].to_string()
    };
    let urls: Vec<String> = stories.iter().map(path).collect();
    assert_eq!(urls.len(), expected.len(), "none twice: {urls:?}");
    assert_eq!(urls.into_iter().collect::<BTreeSet<_>>(), expected);
    let is_there = |story: &Value| story["state"] == "fetched" || story["state"] == "extracted";
    assert!(stories.iter().all(is_there), "{stories:?}");
    stage.assert_proved();
}
