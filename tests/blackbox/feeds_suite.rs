//! The promise: feeds are read as feedparser reads them. Its own suite is the judge, from its source package: nothing of it
//! that it can read is refused, nothing panics, and nearly all entries are the same.

use nephila::proto::feed::{FeedEntry, FeedFacts, FeedLimits, FeedSource, plain, read};
use nephila::proto::url::CrawlUrl;
use serde::Deserialize;
use std::borrow::Cow;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;

const URL: &str = "http://feeds.test/suite/feed.xml";

/// Of a hundred entries, how many must be the same in link, id, title and dates.
const SAME_PERCENT_MIN: f64 = 97.0;

#[derive(Deserialize)]
struct Said {
    file: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    entries: Vec<Entry>,
    failed: Option<String>,
}

/// An entry, as either makes it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
struct Entry {
    link: Option<String>,
    id: Option<String>,
    title: Option<String>,
    title_type: Option<String>,
    published_s: Option<i64>,
    updated_s: Option<i64>,
}

fn ours(bytes: &[u8]) -> Option<(Vec<Entry>, FeedFacts)> {
    let mut entries = Vec::new();
    let told = |entry: FeedEntry<'_>| {
        entries.push(Entry {
            link: entry.url.map(Into::into),
            id: entry.guid.map(Into::into),
            title: Some(entry.title.into()),
            title_type: None,
            published_s: entry.published_s,
            updated_s: entry.updated_s,
        });
    };
    let facts =
        read(bytes, &FeedSource { url: URL, content_type: None }, &FeedLimits::default(), told).ok()?;
    Some((entries, facts))
}

/// What is compared: texts as plain text, links in normal form where they have one.
fn normal(entry: &Entry) -> [String; 5] {
    let link = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or("").trim();
        CrawlUrl::parse(text).map_or_else(|_| text.to_string(), |url| url.as_str().to_string())
    };
    let is_html = entry.title_type.as_deref().is_some_and(|kind| kind.contains("html"));
    let title = entry.title.as_deref().unwrap_or("");
    let title = plain(Cow::Borrowed(title), is_html).into_owned();
    let date = |date: Option<i64>| date.map(|date| date.to_string()).unwrap_or_default();
    [link(&entry.link), link(&entry.id), title, date(entry.published_s), date(entry.updated_s)]
}

#[test]
fn entries_are_those_of_feedparser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let judges = std::env::var("NEPHILA_JUDGES").map_or_else(|_| root.join("target/judges"), Into::into);
    let made = Command::new(root.join("tests/judges")).output().expect("tests/judges");
    assert!(made.status.success(), "tests/judges: {}", String::from_utf8_lossy(&made.stderr));
    let said = Command::new(judges.join("bin/python"))
        .arg(root.join("tests/blackbox/scripts/feedparser_says.py"))
        .args([judges.join("feedparser/tests").as_os_str(), URL.as_ref()])
        .output()
        .expect("the judge");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said: Vec<Said> = String::from_utf8_lossy(&said.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of the judge"))
        .collect();
    assert!(said.len() > 1_500, "{} files of the suite", said.len());
    let (mut entries, mut same, mut by_field, mut refused, mut panics) =
        (0, 0, [0; 5], Vec::new(), Vec::new());
    let mut different = Vec::new();
    for Said { file, version, entries: expected, failed } in &said {
        let bytes = std::fs::read(file).expect("a file of the suite");
        let Ok(found) = catch_unwind(|| ours(&bytes)) else {
            panics.push(file);
            continue;
        };
        if failed.is_some() {
            continue;
        }
        let Some((found, _)) = found else {
            if !version.is_empty() || !expected.is_empty() {
                refused.push(file);
                entries += expected.len();
            }
            continue;
        };
        entries += expected.len().max(found.len());
        if found.len() != expected.len() {
            different.push(format!("{file}: {} entries, not {}", found.len(), expected.len()));
        }
        for (found, expected) in found.iter().zip(expected) {
            let (found, expected) = (normal(found), normal(expected));
            for (count, is_same) in by_field.iter_mut().zip(found.iter().zip(&expected).map(|(a, b)| a == b))
            {
                *count += usize::from(is_same);
            }
            if found == expected {
                same += 1;
            } else {
                let fields = ["link", "id", "title", "published", "updated"];
                let apart = fields.iter().zip(found.iter().zip(&expected)).filter(|(_, (a, b))| a != b);
                different.push(format!("{file}: {:?}", apart.collect::<Vec<_>>()));
            }
        }
    }
    let percent = 100.0 * f64::from(same) / entries as f64;
    println!(
        "{} files, {entries} entries, {percent:.2} % the same; link, id, title, published, updated: {by_field:?}; \
         {} refused, {} panics",
        said.len(),
        refused.len(),
        panics.len()
    );
    if std::env::var_os("NEPHILA_JUDGES_ALL").is_some() {
        println!("{}\nrefused: {refused:#?}", different.join("\n"));
    }
    assert!(panics.is_empty(), "{panics:#?}");
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(percent >= SAME_PERCENT_MIN, "{percent:.2} %:\n{}", different.join("\n"));
}
