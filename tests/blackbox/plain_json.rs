//! The promise: JSON is as safe to look at as a table. Whatever a server, a peer or a file said, no control character and
//! nothing that turns text around stands in it as it is; it is escaped, so that a reader gets the very same text.

use crate::storeserver::{self, Sent};
use crate::support::*;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::Stdio;

/// DEL, controls of C1, line and paragraph ends, marks that turn text around, one that cannot be seen; and plain text.
const EVIL: &str = "\u{7f}\u{80}\u{9b}31m\u{9f}\u{2028}\u{2029}\u{202e}txt.exe\u{2066}\u{2069}\u{200b}\u{200f}\u{61c}\u{feff}\"\\grün\u{1f577}";

#[track_caller]
fn assert_plain(what: &str, bytes: &[u8]) {
    let text = str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
    let steers = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    assert!(!text.contains(steers), "{what}: {:?}", text.lines().find(|line| line.contains(steers)));
}

#[test]
fn a_response_is_told_in_plain_json() {
    let mut child = nephila();
    let child = child.arg("parse").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut response = b"HTTP/1.1 200 OK\r\nX-All: ".to_vec();
    response.extend((0x80..=0xff).chain([0x7f_u8]));
    response.extend(b"\r\nContent-Length: 0\r\n\r\n");
    child.stdin.take().unwrap().write_all(&response).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_plain("parse", &output.stdout);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all: String = (0x80..=0xff).chain([0x7f_u8]).map(char::from).collect();
    let header = |name: &str| {
        let found = told["headers"].as_array().unwrap().iter().find(|header| header[0] == name);
        found.unwrap_or_else(|| panic!("{name} in {told}"))[1].as_str().unwrap().to_string()
    };
    assert_eq!(header("X-All"), all, "the same text is read back");
}

#[test]
fn a_store_is_told_in_plain_json() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, addr) = storeserver::listening_on(&mut storeserver::command(&data), "127.0.0.1:0");
    let url = format!("http://a.test/{EVIL}");
    let mut client = std::net::TcpStream::connect(addr).unwrap();
    let mut record = Sent::page(7, &url, "x");
    record.new_url = url.clone().into_bytes();
    client.write_all(&record.bytes()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.read_exact(&mut [0; 8]).unwrap();
    drop(client);
    storeserver::stop(server);
    let listed = store(&["ls", "--json"], &data).done();
    assert_plain("store ls --json", &listed.stdout);
    assert_eq!(
        (&listed.json()["url"], &listed.json()["new_url"]),
        (&Value::from(&*url), &Value::from(&*url))
    );
    assert_plain("store ls", &store(&["ls"], &data).done().stdout);
    // A WARC's own text is not ours to change; its index is JSON, and what is said of it is.
    let out = dir.join(&format!("{EVIL}.cdxj"));
    for kind in ["cdxj", "warc"] {
        let mut command = nephila();
        command.args(["export", kind, "--json", "--data"]).arg(&data).arg("--out").arg(&out).arg("--force");
        let run = Running::start(&mut command).wait(PATIENCE).done();
        assert_plain(kind, &run.stdout);
        assert_eq!(run.json()["files"][0], out.to_str().unwrap());
        if kind == "cdxj" {
            assert_plain("the index", &std::fs::read(&out).unwrap());
        }
    }
}

#[test]
fn rules_are_told_in_plain_json() {
    let dir = TempDir::new();
    let url = format!("http://a.test/{EVIL}");
    let file = dir.write("robots.txt", format!("User-agent: *\nDisallow: /{EVIL}\n"));
    for more in [&["--json"][..], &[]] {
        let mut command = nephila();
        command.args(["robots", "--agent", "nephila"]).args(more).arg(&file).arg(&url).arg(EVIL);
        let run = Running::start(&mut command).wait(PATIENCE);
        assert_plain("robots", &run.stdout);
        assert_plain("robots", run.stderr.as_bytes());
    }
    // A log may have been written by anybody.
    let data = dir.join("data");
    let line = format!("2026-11-15T00:00:00.000Z {EVIL} http://a.test/{EVIL}\n");
    let log = dir.write("data/crawl.log", line);
    for more in [&["--json"][..], &[]] {
        for place in [["--data".as_ref(), data.as_os_str()].as_slice(), &[log.as_os_str()]] {
            let mut command = nephila();
            let run = Running::start(command.arg("audit").args(more).args(place)).wait(PATIENCE);
            assert_plain("audit", &run.stdout);
            assert_plain("audit", run.stderr.as_bytes());
        }
    }
    let mut command = nephila();
    command
        .args(["index", "import", "--json", "--data"])
        .arg(&data)
        .arg(dir.write("list", format!("{EVIL}\n{url}\n")));
    let run = Running::start(&mut command).wait(PATIENCE);
    assert_plain("index import", &run.stdout);
    assert_plain("index import", run.stderr.as_bytes());
    for args in [&["index", "export"][..], &["index", "pending", "--json"], &["index", "hosts", "--json"]] {
        let mut command = nephila();
        let run = Running::start(command.args(args).arg("--data").arg(&data)).wait(PATIENCE);
        assert_plain(args[1], &run.stdout);
    }
}

/// What a feed tells, and what its list calls it, is a stranger's as well.
#[test]
fn feeds_are_told_in_plain_json() {
    let rss = format!(
        "<rss version='2.0'><channel><title>{EVIL}</title><language>{EVIL}</language><item><title>{EVIL}</title>\
         <link>/story</link><guid isPermaLink='false'>{EVIL}</guid><author>{EVIL}</author></item></channel></rss>"
    );
    let rss = rss.replace('"', "&quot;");
    let of_feed = rss.clone();
    let web = LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/rss" => Reply::new("200 OK", "Content-Type: application/rss+xml; charset=utf-8\r\n", &of_feed),
        _ => Reply::html(&format!("<title>{EVIL}</title><p>{EVIL}")),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let named = EVIL.replace('"', "\"\"");
    let list =
        dir.write("feeds.csv", format!("url,source,title\n{},\"{named}\",\"{named}\"\n", web.url("/rss")));
    let file = dir.write("feed.xml", &rss);
    let feeds = |args: &[&str], more: &[&std::ffi::OsStr]| {
        let mut command = nephila();
        command.args(args);
        if args[1] != "parse" {
            command.arg("--data").arg(&data);
        }
        let run = Running::start(command.args(more)).wait(PATIENCE).done();
        assert_plain(&args.join(" "), &run.stdout);
        assert_plain(&args.join(" "), run.stderr.as_bytes());
        run
    };
    feeds(&["feeds", "import", "--json"], &[list.as_os_str()]);
    let (report, _) = crawl(&data, ["--req-host-per-sec", "0"]);
    assert_eq!(report["success"], 2, "{report}");
    let listed = feeds(&["feeds", "ls", "--json"], &[]).json();
    assert_eq!(listed["source"], EVIL, "the same text is read back");
    for json in [&["--json"][..], &[]] {
        for args in
            [&["feeds", "ls"][..], &["feeds", "show", "1"], &["feeds", "poll", "1"], &["stories", "ls"]]
        {
            feeds(&[args, json].concat(), &[]);
        }
        feeds(&["feeds", "parse"], &[file.as_os_str()]);
        feeds(&[&["stories", "why"], json].concat(), &[web.url("/story").as_ref()]);
        feeds(&[&["feeds", "pause"], json].concat(), &["1".as_ref()]);
        feeds(&[&["feeds", "resume"], json].concat(), &["1".as_ref()]);
    }
}
