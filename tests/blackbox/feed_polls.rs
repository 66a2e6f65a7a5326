//! The promise: a feed's server is asked as seldom and as well as its owner could wish. One request without conditions ever,
//! its validators sent back byte for byte, nothing before it is due, however often the crawl is started; 429, 503 and
//! redirects are heeded, and the audit proves it from the log.

use crate::stage::Stage;
use crate::support::*;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

const ETAG: &str = "W/\"v1 \u{e9}!;,\"";
const DATES: [&str; 3] =
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 07 Nov 1994 08:49:37 GMT", "Tue, 08 Nov 1994 08:49:37 GMT"];

/// Seconds, so that a test need not wait for minutes.
const QUICK: &str = "[feeds]\npoll_min = \"1s\"\npoll_min_plain = \"1s\"\npoll_max = \"2s\"\n";

/// A feed with these entries.
fn rss<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) -> String {
    let items: String = urls
        .into_iter()
        .map(|url| {
            let url = url.as_ref();
            format!("<item><title>Story of {url}</title><link>{url}</link><guid>{url}</guid></item>")
        })
        .collect();
    format!("<rss version=\"2.0\"><channel><title>News</title>{items}</channel></rss>")
}

fn feed(urls: &[&str]) -> Reply {
    Reply::new("200 OK", "Content-Type: application/rss+xml\r\n", &rss(urls))
}

fn list(stage: &Stage, urls: &[&String]) -> String {
    let text: String = urls.iter().map(|url| format!("{url}\n")).collect();
    path(stage.dir.write("feeds.txt", text))
}

fn path(path: PathBuf) -> String {
    path.to_str().unwrap().to_string()
}

/// Polls of a host, and the seconds between them.
fn gaps(stage: &Stage, host: &str, target: &str) -> Vec<f64> {
    let polls: Vec<i64> =
        stage.pages_of(host).iter().filter(|asked| asked.target == target).map(|asked| asked.at_ns).collect();
    polls.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e9).collect()
}

/// Polls that the log has whole lines of.
fn logged_polls(stage: &Stage) -> usize {
    stage.log().split_inclusive('\n').filter(|line| line.contains(",why=") && line.ends_with('\n')).count()
}

#[track_caller]
fn audit(stage: &Stage) -> serde_json::Value {
    stage.assert_proved();
    let mut command = nephila();
    Running::start(command.args(["audit", "--json", "--data"]).arg(&stage.data)).wait(PATIENCE).json()
}

#[test]
fn one_request_without_conditions_ever_and_validators_as_they_came() {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut stage = Stage::new(move |asked| match asked.target.as_str() {
        "/feed?a=1&b" => match (asked.header("If-None-Match"), asked.header("If-Modified-Since")) {
            (None, None) => feed(&["/story"]).with(&format!(
                "ETag: {ETAG}\r\nLast-Modified: {}\r\nSet-Cookie: id=7; Path=/\r\n",
                DATES[0]
            )),
            (Some(_), Some(_)) => {
                let nth = (turn.fetch_add(1, Ordering::SeqCst) + 1).min(2);
                Reply::raw(format!("HTTP/1.1 304 Same\r\nLast-Modified: {}\r\n\r\n", DATES[nth]))
            }
            other => Reply::new("400 Bad", "", &format!("{other:?}")),
        },
        _ => Reply::html("a story, with a <a href='/elsewhere'>link</a>"),
    });
    let url = stage.url("a.test", "/feed?a=1&b");
    stage.settings(QUICK);
    let feeds = list(&stage, &[&url]);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    wait_for("three polls", PATIENCE, || (stage.pages_of("a.test").len() >= 4).then_some(()));
    run.signal(Signal::SIGKILL);
    run.wait(PATIENCE);
    let before = stage.pages_of("a.test").len();
    let logged_killed = logged_polls(&stage);
    let restarted_ns = i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
    let run = Running::start(&mut stage.command(["--wait"]));
    wait_for("two more", PATIENCE, || (stage.pages_of("a.test").len() >= before + 2).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();

    let asked = stage.pages_of("a.test");
    let polls: Vec<&Asked> = asked.iter().filter(|asked| asked.target == "/feed?a=1&b").collect();
    let plain = polls.iter().filter(|asked| asked.header("If-None-Match").is_none()).count();
    assert_eq!(plain, 1, "{polls:#?}");
    for (nth, poll) in polls.iter().enumerate().skip(1) {
        assert_eq!(poll.header("If-None-Match").as_deref(), Some(ETAG));
        let (date, before) = (poll.header("If-Modified-Since"), polls[nth - 1].header("If-Modified-Since"));
        // What the 304 before said, unless the kill came before it was written down.
        assert!(date.as_deref() == Some(DATES[(nth - 1).min(2)]) || date == before, "{polls:#?}");
    }
    let last = polls.last().unwrap().header("If-Modified-Since");
    assert_eq!(last.as_deref(), Some(DATES[2]), "taken over from a 304");
    for asked in &asked {
        assert_eq!((asked.header("Cookie"), asked.header("Referer")), (None, None));
    }
    let others: Vec<&str> =
        asked.iter().map(|asked| &*asked.target).filter(|target| *target != "/feed?a=1&b").collect();
    assert_eq!(others, ["/story"], "the story once, and nothing that it links to");
    // The poll that the process was killed over is asked again as if it had not been; and its line may be lost with the
    // process. No other may.
    let polls_killed = polls.iter().filter(|asked| asked.at_ns < restarted_ns).count();
    let cut = polls_killed - logged_killed;
    assert!(cut <= 1, "{logged_killed} of {polls_killed} polls before the kill are in the log");
    let mut gaps = gaps(&stage, "a.test", "/feed?a=1&b");
    gaps.remove(polls_killed - 1);
    assert!(gaps.iter().all(|&gap| gap >= 1.0), "never sooner than poll_min: {gaps:?}");
    assert_eq!(audit(&stage)["polls"], polls.len() - cut, "{}", stage.log());
}

#[test]
fn a_restart_asks_nothing_before_it_is_due() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => feed(&["/story"]).with("ETag: \"1\"\r\n"),
        _ => Reply::html("a story"),
    });
    let url = stage.url("a.test", "/feed");
    stage.settings("[feeds]\npoll_min = \"4s\"\npoll_min_plain = \"4s\"\n");
    let feeds = list(&stage, &[&url]);
    // It ends by itself once everything was asked for.
    let run = Running::start(&mut stage.command(["--feeds", &feeds])).wait(PATIENCE).ended();
    assert_eq!(run.json()["pages"], 2, "{}", run.stderr);
    for _ in 0..2 {
        Running::start(&mut stage.command(["--feeds", &feeds])).wait(PATIENCE).ended();
        Running::start(&mut stage.command(["--again"])).wait(PATIENCE).ended();
    }
    let polls = || stage.pages_of("a.test").iter().filter(|asked| asked.target == "/feed").count();
    // A slow machine takes longer than that over the starts.
    let before = polls();
    let run = Running::start(&mut stage.command(["--wait"]));
    wait_for("the next poll", PATIENCE, || (polls() > before).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    let gaps = gaps(&stage, "a.test", "/feed");
    assert!(gaps.iter().all(|gap| *gap >= 4.0), "{gaps:?}");
    audit(&stage);
}

#[test]
fn what_a_server_asks_for_is_kept_and_a_failure_ends_no_feed() {
    let turns = Arc::new(Mutex::new(std::collections::BTreeMap::<String, usize>::new()));
    let mut stage = Stage::new(move |asked| {
        let nth = {
            let mut turns = turns.lock().unwrap();
            let nth = turns.entry(asked.place()).or_default();
            *nth += 1;
            *nth
        };
        match (asked.place().as_str(), nth) {
            ("slow.test/feed", 1) => Reply::status("429 Too Many Requests").with("Retry-After: 3\r\n"),
            ("busy.test/feed", 1) => Reply::status("503 Unavailable").with("Retry-After: 3\r\n"),
            ("lost.test/feed", 1) => Reply::status("404 Not Found"),
            ("page.test/feed", 1) => Reply::html("<!doctype html><title>Moved</title>not here"),
            ("gone.test/feed", _) => Reply::status("410 Gone"),
            (_, _) if asked.target == "/feed" => feed(&["/story"]),
            _ => Reply::html("a story"),
        }
    });
    let hosts = ["slow.test", "busy.test", "lost.test", "page.test", "gone.test"];
    let urls = hosts.map(|host| stage.url(host, "/feed"));
    stage.settings(QUICK);
    let feeds = list(&stage, &urls.each_ref());
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    let polls = |host: &str| stage.pages_of(host).iter().filter(|asked| asked.target == "/feed").count();
    for host in &hosts[..4] {
        wait_for("another poll", PATIENCE, || (polls(host) >= 2).then_some(()));
        wait_for("the story", PATIENCE, || {
            stage.pages_of(host).iter().any(|asked| asked.target == "/story").then_some(())
        });
    }
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    for host in &hosts[..2] {
        assert!(gaps(&stage, host, "/feed")[0] >= 3.0, "{host}: {:?}", gaps(&stage, host, "/feed"));
    }
    assert_eq!(polls("gone.test"), 1, "gone for good");
    // Also when it is named again.
    let before = polls("lost.test");
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    wait_for("the others go on", PATIENCE, || (polls("lost.test") > before).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    assert_eq!(polls("gone.test"), 1, "gone for good, whoever names it");
    audit(&stage);
}

/// Killed at any moment after a server has asked for a pause, the next process keeps it: it is in the store, if not yet in
/// the book.
#[test]
fn a_pause_that_a_server_asked_for_outlives_a_kill() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => Reply::status("429 Too Many Requests").with("Retry-After: 5\r\n"),
        _ => Reply::html("a story"),
    });
    let hosts: Vec<String> = (0..6).map(|n| format!("busy{n}.test")).collect();
    let urls: Vec<String> = hosts.iter().map(|host| stage.url(host, "/feed")).collect();
    stage.settings(QUICK);
    let feeds = list(&stage, &urls.iter().collect::<Vec<_>>());
    let polls = |host: &str| stage.pages_of(host).len();
    for kill in 0..3 {
        let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
        wait_for("they were asked", PATIENCE, || hosts.iter().all(|host| polls(host) > kill).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(1_500 * kill as u64));
        run.signal(Signal::SIGKILL);
        run.wait(PATIENCE);
    }
    for host in &hosts {
        // The very last answer may be lost with the process.
        let gaps = gaps(&stage, host, "/feed");
        assert!(gaps.iter().skip(1).all(|&gap| gap >= 5.0), "{host}: {gaps:?}");
    }
}

#[test]
fn a_feed_is_read_where_it_leads_and_moves_when_that_is_for_good_twice() {
    let mut stage = Stage::new(|asked| {
        let there = asked.host.replace("old.test", "new.test").replace("here.test", "there.test");
        match asked.place().as_str() {
            "old.test/feed" => Reply::new("301 Moved", &format!("Location: http://{there}/feed\r\n"), ""),
            "here.test/feed" => Reply::redirect(&format!("http://{there}/feed")),
            "new.test/feed" | "there.test/feed" => match asked.header("If-None-Match") {
                None => feed(&["/story"]).with("ETag: \"1\"\r\n"),
                Some(_) => Reply::raw("HTTP/1.1 304 Same\r\n\r\n"),
            },
            _ => Reply::html("a story"),
        }
    });
    let urls = [stage.url("old.test", "/feed"), stage.url("here.test", "/feed")];
    stage.url("new.test", "/");
    stage.url("there.test", "/");
    stage.settings(QUICK);
    let feeds = list(&stage, &urls.each_ref());
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    let polls = |host: &str| stage.pages_of(host).iter().filter(|asked| asked.target == "/feed").count();
    wait_for("it has moved", PATIENCE, || (polls("new.test") >= 4).then_some(()));
    wait_for("the other goes on", PATIENCE, || (polls("there.test") >= 4).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    assert_eq!(polls("old.test"), 2, "a third time nobody asks at the old place");
    let (here, there) = (polls("here.test"), polls("there.test"));
    assert!(here.abs_diff(there) <= 1 && here >= 4, "{here} {there}");
    for host in ["new.test", "there.test"] {
        let asked = stage.pages_of(host);
        let plain = asked
            .iter()
            .filter(|asked| asked.target == "/feed" && asked.header("If-None-Match").is_none())
            .count();
        assert_eq!(plain, 1, "{host}: {asked:#?}");
        assert_eq!(asked.iter().filter(|asked| asked.target == "/story").count(), 1, "{host}");
    }
    audit(&stage);
}

#[test]
fn a_feed_that_lists_the_same_is_stored_as_a_word() {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut stage = Stage::new(move |asked| match asked.target.as_str() {
        "/feed" => {
            let nth = turn.fetch_add(1, Ordering::SeqCst);
            let comment = format!("<!-- made at {nth} -->");
            let text = rss(if nth.is_multiple_of(2) { ["/a", "/b"] } else { ["/b", "/a"] });
            Reply::new("200 OK", "Content-Type: text/plain\r\n", &(text + &comment))
        }
        _ => Reply::html("a story"),
    });
    let url = stage.url("a.test", "/feed");
    stage.settings(QUICK);
    let feeds = list(&stage, &[&url]);
    let run = Running::start(&mut stage.command(["--feeds", &feeds, "--wait"]));
    let polls = || stage.pages_of("a.test").iter().filter(|asked| asked.target == "/feed").count();
    wait_for("three polls", PATIENCE, || (polls() >= 3).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    let of_feed: Vec<Listed> = records(&stage.data).into_iter().filter(|listed| listed.url == url).collect();
    assert!(of_feed.len() >= 3, "{of_feed:?}");
    assert!(of_feed[0].bytes > 100 && of_feed[0].flags.is_empty(), "{:?}", of_feed[0]);
    for listed in &of_feed[1..] {
        assert_eq!(
            (listed.bytes, &listed.flags[..]),
            (16, &["redundant_feed".to_string()][..]),
            "{listed:?}"
        );
    }
    assert_eq!(cat(&stage.data, &url), b"(redundant feed)");
    let stories = stage.pages_of("a.test").iter().filter(|asked| asked.target != "/feed").count();
    assert_eq!(stories, 2, "each once");
}

#[test]
fn lists_are_read_in_every_form_and_what_is_bad_in_them_is_named() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => feed(&["/story"]),
        _ => Reply::html("a story"),
    });
    let urls = ["a.test", "b.test", "c.test"].map(|host| stage.url(host, "/feed"));
    let [a, b, c] = &urls;
    let opml = format!(
        "<opml version='1.0'><body><outline text='World'><outline type='rss' title='A' xmlUrl='{a}'/>\
         <outline xmlUrl='file:///etc/passwd' text='no'/></outline><outline xmlUrl='{b}'/><outline xmlUrl='{b}'/></body></opml>"
    );
    for (name, text, polled) in [
        ("list", format!("# feeds\n\n{a}\nnonsense\n{a}\n"), 1),
        ("csv", format!("url,source,title\n{b},\"The, Post\",News\n{c}\n"), 2),
        ("opml", opml, 2),
    ] {
        let data = stage.dir.join(name);
        stage.data.clone_from(&data);
        let file = path(stage.dir.write(&format!("{name}.txt"), text));
        let run = Running::start(&mut stage.command(["--feeds", &file])).wait(PATIENCE).ended();
        assert_eq!(run.json()["pages"], 2 * polled, "{name}: {}", run.stderr);
        assert_eq!(run.stderr.contains("skipped"), name != "csv", "{name}: {}", run.stderr);
    }
    let none = path(stage.dir.write("none", "# nothing\n"));
    let missing = path(stage.dir.join("missing"));
    for (file, about) in [(none, "names no feed"), (missing, "cannot read")] {
        stage.data = stage.dir.join("other");
        let run = Running::start(&mut stage.command(["--feeds", &file])).wait(PATIENCE);
        assert!(run.code() == 2 && run.stderr.contains(about), "{}", run.stderr);
    }
}

/// Feeds that were added at rest are polled by the next crawl, and a crawl that runs does what it is told, at once.
#[test]
fn what_is_done_with_feeds_is_done_at_rest_and_by_a_running_crawl() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/feed" => feed(&["/story"]),
        _ => Reply::html("a story"),
    });
    let [a, b] = ["a.test", "b.test"].map(|host| stage.url(host, "/feed"));
    stage.settings("[feeds]\npoll_min = \"1h\"\n");
    let tell = |args: &[&str]| {
        let mut command = nephila();
        Running::start(command.args(args).arg("--data").arg(&stage.data)).wait(PATIENCE)
    };
    let polls = |host: &str| stage.pages_of(host).iter().filter(|asked| asked.target == "/feed").count();
    tell(&["feeds", "add", &a]).done();
    let run = Running::start(&mut stage.command(["--wait"]));
    wait_for("the first poll", PATIENCE, || (polls("a.test") == 1).then_some(()));
    let added = tell(&["feeds", "add", &b, "--json"]).done().json();
    assert_eq!((&added["done"], &added["running"]), (&serde_json::json!([2]), &serde_json::json!(true)));
    wait_for("the other", PATIENCE, || (polls("b.test") == 1).then_some(()));
    let story = a.replace("/feed", "/story");
    wait_for("the story is told of", PATIENCE, || {
        tell(&["explain", &story]).text().contains("story 1 of a.test: fetched").then_some(())
    });
    let told = tell(&["explain", &a]).done().text();
    assert!(told.contains("feed 1 of a.test, active; asked next 20"), "{told}");
    tell(&["feeds", "poll", "1"]).done();
    wait_for("asked for", PATIENCE, || (polls("a.test") == 2).then_some(()));
    tell(&["feeds", "pause", "2"]).done();
    assert_eq!(tell(&["feeds", "poll", "2"]).code(), 1, "it is paused");
    tell(&["feeds", "rm", "1"]).done();
    assert_eq!(tell(&["feeds", "poll", "1"]).code(), 1, "it is gone");
    tell(&["feeds", "resume", "2"]).done();
    wait_for("resumed", PATIENCE, || (polls("b.test") == 2).then_some(()));
    run.signal(Signal::SIGTERM);
    run.wait(PATIENCE).ended();
    assert_eq!((polls("a.test"), polls("b.test")), (2, 2));
    assert_eq!(audit(&stage)["polls"], 4);
    assert!(stage.log().contains(",why=asked\n"), "{}", stage.log());
}

/// Who adds a site gets its feeds, under the same source; the site itself is not asked again.
#[test]
fn a_page_that_is_added_leads_to_its_feeds() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::html(
            "<html><head><link rel=alternate type='application/rss+xml' href=/rss>\
             <link rel=alternate type='application/atom+xml' href=/empty></head><body>no feed</body></html>",
        ),
        "/rss" => feed(&["/story"]).with("ETag: \"1\"\r\n"),
        "/empty" => Reply::html("<link rel=alternate type='application/rss+xml' href=/further>"),
        _ => Reply::html("a story"),
    });
    let site = stage.url("a.test", "/");
    stage.settings(QUICK);
    let data = path(stage.data.clone());
    run(["feeds", "add", "--data", &data, "--source", "The Site", &site]).done();
    let crawl = Running::start(&mut stage.command(["--wait"]));
    let polls = |target: &str| stage.pages_of("a.test").iter().filter(|asked| asked.target == target).count();
    wait_for("polls of both", PATIENCE, || (polls("/rss") >= 3 && polls("/empty") >= 2).then_some(()));
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).ended();
    assert_eq!((polls("/"), polls("/story"), polls("/further")), (1, 1, 0));
    let shown = run(["feeds", "show", "--data", &data, "--json", &site]).json();
    assert_eq!((shown["state"].as_str(), shown["why"].as_str()), (Some("gone"), Some("page")), "{shown}");
    assert_eq!(shown["names"].as_array().unwrap().len(), 2, "{shown}");
    let found = run(["feeds", "show", "--data", &data, "--json", &stage.url("a.test", "/rss")]).json();
    assert_eq!(found["named_by"], shown["id"], "{found}");
    assert_eq!(
        (found["source"].as_str(), found["etag"].as_str()),
        (Some("The Site"), Some("\"1\"")),
        "{found}"
    );
    audit(&stage);
}
