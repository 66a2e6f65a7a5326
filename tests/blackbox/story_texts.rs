//! The promise: a story that a feed tells of is fetched, its text taken out of its page, and found by its words, in the first
//! crawl of a directory and in the next; a page that an extractor cannot deal with is marked with the reason and harms no other.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;

const SENTENCES: &str = "The ferries of the northern harbour will be replaced by two larger ships next spring. \
    The council decided so on Tuesday evening after a debate of three hours. Passengers had complained about delays for \
    years, and the company that runs the line had promised new vessels twice before. The ships cost forty million each.";

fn article(words: &str) -> Reply {
    Reply::html(&format!(
        "<html lang=en><head><title>Ferries</title><meta name=author content='Ada Writer'></head><body><nav><a href=/>Home</a></nav>\
         <article><h1>New ferries for the harbour</h1><p>{SENTENCES}</p><p>{words} {SENTENCES}</p></article>\
         <footer>All rights reserved by somebody</footer></body></html>"
    ))
}

fn feed(targets: &[&str]) -> Reply {
    let items: String = targets
        .iter()
        .map(|target| format!("<item><title>Of {target}</title><link>{target}</link></item>"))
        .collect();
    let text = format!("<rss version='2.0'><channel><title>News</title>{items}</channel></rss>");
    Reply::new("200 OK", "Content-Type: application/rss+xml\r\n", &text)
}

fn stories(data: &Path) -> Vec<Value> {
    let mut command = nephila();
    Running::start(command.args(["stories", "ls", "--json", "--data"]).arg(data)).wait(PATIENCE).json_lines()
}

fn search(data: &Path, word: &str) -> Vec<Value> {
    let mut command = nephila();
    Running::start(command.args(["search", word, "--json", "--data"]).arg(data)).wait(PATIENCE).json_lines()
}

#[test]
fn stories_get_their_texts_and_are_found_by_their_words() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => feed(&["/good", "/deep", "/none", "/gone"]),
        "/late" => feed(&["/second"]),
        "/good" => article("Zeppelins were ruled out."),
        "/second" => article("Hovercrafts were ruled out."),
        // Deeper than any page of people, and more than a stack bears.
        "/deep" => Reply::html(&format!("<html><body>{}deep", "<div>".repeat(200_000))),
        "/none" => Reply::html("<html><body></body></html>"),
        _ => Reply::new("404 Not Found", "", ""),
    });
    let (first, late) = (stage.url("a.test", "/feed"), stage.url("a.test", "/late"));
    let list = stage.dir.write("feeds.txt", format!("{first}\n"));
    let list = list.to_str().unwrap();
    // A crawl that ends by itself leaves no story without its text.
    stage.crawl(["--feeds", list]);
    let state = |target: &str| {
        let all = stories(&stage.data);
        let story = all.iter().find(|story| story["url"].as_str().unwrap().ends_with(target));
        story.map_or("unknown".to_string(), |story| story["state"].as_str().unwrap().to_string())
    };
    assert_eq!(
        ["/good", "/deep", "/none", "/gone"].map(state),
        ["extracted", "fetched", "fetched", "failed"]
    );
    let found = search(&stage.data, "zeppelin");
    assert_eq!(found.len(), 1, "{found:?}");
    let data = stage.data.to_str().unwrap().to_string();
    let text = |story: &str| {
        let mut command = nephila();
        Running::start(command.args(["stories", "text", "--data", &data, "--json", story])).wait(PATIENCE)
    };
    let told = text(found[0]["url"].as_str().unwrap()).done().json();
    let body = told["text"].as_str().unwrap();
    assert!(body.contains("larger ships next spring") && !body.contains("All rights reserved"), "{told}");
    assert_eq!(
        (told["language"].as_str(), told["author"].as_str()),
        (Some("en"), Some("Ada Writer")),
        "{told}"
    );
    for (target, code) in [("/deep", 1), ("/none", 1), ("/gone", 1)] {
        let said = text(&first.replace("/feed", target));
        assert_eq!((said.code(), said.stderr.lines().count()), (code, 1), "{target}: {}", said.stderr);
        assert!(said.stderr.contains("has no text"), "{target}: {}", said.stderr);
    }
    // One that goes on takes in a feed that it is given, and what it brings is found while it runs.
    let crawl = Running::start(&mut stage.command(["--wait"]));
    wait_for("it answers", PATIENCE, || {
        let mut command = nephila();
        let run = Running::start(command.args(["feeds", "add", "--data", &data, &late])).wait(PATIENCE);
        (run.code() == 0 && run.text().contains("running crawl")).then_some(())
    });
    wait_for("the story is found", PATIENCE, || (search(&stage.data, "hovercraft").len() == 1).then_some(()));
    let mut command = nephila();
    let figures = Running::start(command.args(["metrics", "--data", &data])).wait(PATIENCE).done().text();
    assert!(figures.contains("nephila_story_texts_total{outcome=\"made\"} 1\n"), "{figures}");
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).ended();
    stage.assert_proved();
}
