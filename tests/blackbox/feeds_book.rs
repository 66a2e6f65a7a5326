//! The promise: feeds are put into the book of a directory, looked at, changed and carried elsewhere without a crawl;
//! what is wrong with a list is named, and what cannot be is refused with cause and mend.

use crate::support::{TempDir, nephila};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn feeds(dir: &TempDir, args: &[&str]) -> Output {
    let (what, rest) = args.split_at(2);
    nephila().args(what).arg("--data").arg(dir.join("data")).args(rest).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn json_lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn feeds_are_added_listed_shown_paused_and_removed_at_rest() {
    let dir = TempDir::new();
    let out =
        ok(&feeds(&dir, &["feeds", "add", "HTTP://A.example/rss", "http://a.example/two", "--source", "A"]));
    assert!(out.starts_with("2 new feeds, numbers 1 to 2;"), "{out}");
    let out = ok(&feeds(&dir, &["feeds", "add", "http://a.example/rss", "http://www.b.example/f", "--json"]));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["done"], &told["known"], &told["running"]), (&[3].into(), &[1].into(), &false.into()));
    let all = json_lines(&ok(&feeds(&dir, &["feeds", "ls", "--json"])));
    let named: Vec<(&str, &str)> =
        all.iter().map(|feed| (feed["url"].as_str().unwrap(), feed["source"].as_str().unwrap())).collect();
    assert_eq!(
        named,
        [
            ("http://a.example/rss", "A"),
            ("http://a.example/two", "A"),
            ("http://www.b.example/f", "b.example")
        ]
    );
    assert!(all.iter().all(|feed| feed["why"] == "new" && feed["state"] == "active"));
    assert_eq!(ok(&feeds(&dir, &["feeds", "ls", "--source", "A"])).lines().count(), 3);
    assert_eq!(ok(&feeds(&dir, &["feeds", "ls", "--failing"])).lines().count(), 1);
    ok(&feeds(&dir, &["feeds", "pause", "2", "http://a.example/rss"]));
    let shown = ok(&feeds(&dir, &["feeds", "show", "http://a.example/rss"]));
    assert!(shown.contains("next poll       never: it is paused"), "{shown}");
    ok(&feeds(&dir, &["feeds", "resume", "1"]));
    let poll = feeds(&dir, &["feeds", "poll", "1", "2"]);
    assert_eq!(poll.status.code(), Some(1), "one of them is paused");
    assert!(text(&poll.stderr).contains("feed 2 is paused"), "{}", text(&poll.stderr));
    ok(&feeds(&dir, &["feeds", "rm", "2"]));
    assert_eq!(ok(&feeds(&dir, &["feeds", "ls", "--json"])).lines().count(), 2);
    for (args, status, said) in [
        (["feeds", "show", "2"], 1, "there is no feed 2"),
        (["feeds", "rm", "http://none.example/"], 1, "there is no feed http://none.example/"),
        (["feeds", "add", "file:///etc/passwd"], 2, "file:///etc/passwd"),
        (["stories", "why", "http://a.example/1"], 3, "has no stories"),
    ] {
        let output = feeds(&dir, &args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn lists_of_feeds_come_in_and_go_out() {
    let dir = TempDir::new();
    let path = |name: &str| dir.join(name).display().to_string();
    fs::write(
        path("list.opml"),
        "<opml><body><outline text='News'><outline text='One' xmlUrl='http://a.example/1'/>\n<outline text='Again' xmlUrl='http://a.example/1'/>\n<outline xmlUrl='file:///etc/passwd'/></outline>",
    )
    .unwrap();
    fs::write(path("feeds.csv"), "source,url\nMore,http://a.example/2\n").unwrap();
    fs::write(path("feeds.txt"), "# none\nhttp://a.example/3\nnonsense\n").unwrap();
    let output = feeds(&dir, &["feeds", "import", &path("list.opml"), "--json"]);
    let told: Value = serde_json::from_str(&ok(&output)).unwrap();
    assert_eq!((&told["done"], &told["skipped"], &told["twice"]), (&[1].into(), &1.into(), &1.into()));
    assert!(
        text(&output.stderr).contains("list.opml:3: skipped: file:///etc/passwd"),
        "{}",
        text(&output.stderr)
    );
    ok(&feeds(&dir, &["feeds", "import", &path("feeds.csv")]));
    let output = feeds(&dir, &["feeds", "import", &path("feeds.txt")]);
    ok(&output);
    assert!(text(&output.stderr).contains("feeds.txt:3: skipped: nonsense"), "{}", text(&output.stderr));
    let opml = ok(&feeds(&dir, &["feeds", "export", "--opml"]));
    assert!(opml.contains("http://a.example/1") && opml.contains("More"), "{opml}");
    fs::write(path("out.opml"), &opml).unwrap();
    let other = TempDir::new();
    ok(&feeds(&other, &["feeds", "import", &path("out.opml")]));
    let of = |dir: &TempDir| -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = json_lines(&ok(&feeds(dir, &["feeds", "export"])))
            .iter()
            .map(|feed| (feed["url"].to_string(), feed["source"].to_string()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(of(&dir), of(&other), "what goes out comes in as it was");
    fs::write(path("page.html"), "<html><body>no list</body></html>").unwrap();
    assert_eq!(feeds(&dir, &["feeds", "import", &path("page.html")]).status.code(), Some(2));
    fs::write(path("empty.txt"), "\n").unwrap();
    assert_eq!(feeds(&dir, &["feeds", "import", &path("empty.txt")]).status.code(), Some(1));
    assert_eq!(feeds(&dir, &["feeds", "import", &path("none")]).status.code(), Some(2));
    // A journal that is not what it was is refused, with the mend.
    let journal = dir.join("data/feeds/journal");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[60] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let output = feeds(&dir, &["feeds", "ls"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("damaged (put a copy back)"), "{}", text(&output.stderr));
}
