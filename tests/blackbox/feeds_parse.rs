//! The promise: `feeds parse` says what is made of a feed, whatever it is, and of anything else in one line that it is none.

use crate::support::*;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const RSS: &str = "<rss version='2.0'><channel><title>News</title><ttl>60</ttl><item><title>One &amp;amp; two</title>\
    <link>/1</link><guid isPermaLink='false'>g</guid><pubDate>Fri, 28 May 2004 21:31:25 GMT</pubDate></item>";

struct Parsed {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

#[track_caller]
fn parse(bytes: &[u8], args: &[&str]) -> Parsed {
    let mut command = nephila();
    command.args(["feeds", "parse"]).args(args).arg("-");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().expect("a pipe").write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Parsed { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_feed_is_told_as_json_also_when_it_is_cut() {
    let run = parse(RSS.as_bytes(), &["--url", "http://h.test/feed"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        told,
        json!({
            "format": "rss20", "title": "News", "link": null, "language": null, "hub": null,
            "hints": {"ttl_s": 3600, "period_s": null, "skip_hours": 0, "skip_days": 0},
            "damage": "it is cut off",
            "entries": [{"url": "http://h.test/1", "guid": "g", "title": "One & two", "published_s": 1_085_779_885,
                "updated_s": null, "author": null, "language": null}],
        })
    );
    let none = parse(RSS.as_bytes(), &["--entries-max", "0"]);
    let told: Value = serde_json::from_str(&none.stdout).unwrap();
    assert_eq!(told["entries"], json!([]));
}

#[test]
fn what_is_no_feed_is_one_line_and_exit_1() {
    for (bytes, cause) in [
        (&b"<!doctype html><html></html>"[..], "it is a page of HTML"),
        (b"", "it is empty"),
        (b"<sitemapindex/>", "it is a list of sitemaps"),
        (b"\x89PNG\r\n\x1a\n\0\0", "neither RSS nor Atom"),
    ] {
        let run = parse(bytes, &[]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{cause}");
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("stdin is no feed") && run.stderr.contains(cause), "{}", run.stderr);
    }
    let missing = Running::start(nephila().args(["feeds", "parse", "/nowhere/feed.xml"])).wait(PATIENCE);
    assert_eq!(missing.status.code(), Some(2));
    assert!(missing.stderr.contains("cannot read /nowhere/feed.xml"), "{}", missing.stderr);
}
