//! The promise: nothing that a server wrote reaches a terminal, a log or a request as anything but text, a URL means to us
//! what it means to a browser, and a name is connected to where it was found to be allowed.

use crate::name_server::{ScriptedServer, at_once};
use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};

// What is shown ---------------------------------------------------------------------------------------------

/// A red word, a window title, a bell, a C1 control, NUL, a line that overwrites itself, and text turned around.
const EVIL: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}31m\u{8}\u{7f}\u{202e}txt.exe\u{2066}\u{2069}\u{200f}\u{61c}\u{feff}";

/// Nothing but text: no control but the end of a line and the tab, nothing that turns text around.
#[track_caller]
fn assert_text(what: &str, bytes: &[u8]) {
    let text =
        str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}: {:?}", String::from_utf8_lossy(bytes)));
    let bad = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
    };
    if let Some(at) = text.find(bad) {
        let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
        panic!("{what}: {:?}", text[from..].lines().next());
    }
}

fn evil_page(asked: &Asked) -> Reply {
    let port = asked.host.rsplit(':').next().unwrap();
    match asked.target.as_str() {
        "/robots.txt" => Reply::text(&format!(
            "User-agent: {EVIL}\nDisallow: /{EVIL}\nSitemap: http://a.test/{EVIL}\nUser-agent: *\nDisallow: /no{EVIL}\nSitemap: http://{EVIL}/\n"
        )),
        "/" => Reply::html(&format!(
            "<title>{EVIL}</title><meta name=robots content='{EVIL}'><a href='/page{EVIL}'>{EVIL}</a><a href='/no{EVIL}'>x</a>\
             <a href='http://x{EVIL}.test/'>x</a><a href='/type'>x</a><a href='/reason'>x</a><a href='/to'>x</a><a href='/to-host'>x</a>\
             <a href='/refresh'>x</a><a href='/retry'>x</a><a href='/broken'>x</a><a href='/name'>x</a><a href='/etag'>x</a>\
             <a href='?q={EVIL}#{EVIL}'>x</a><a href='{EVIL}:{EVIL}'>x</a>"
        )),
        "/type" => Reply::new(
            "200 OK",
            &format!("Content-Type: text/{EVIL}; charset={EVIL}\r\nContent-Encoding: {EVIL}\r\n"),
            "x",
        ),
        "/reason" => Reply::new(&format!("200 {EVIL}"), "", "x"),
        "/to" => Reply::redirect(&format!("/there{EVIL}")),
        "/to-host" => Reply::redirect(&format!("http://x{EVIL}.test:{port}/")),
        "/refresh" => Reply::html(&format!("<meta http-equiv=refresh content='0;url=/fresh{EVIL}'>")),
        "/retry" => Reply::new(
            "404 No",
            &format!("Retry-After: {EVIL}\r\nServer: {EVIL}\r\nSet-Cookie: {EVIL}\r\n"),
            "",
        ),
        "/broken" => Reply::raw(format!("HTTP/1.1 {EVIL}\r\n\r\n")).then_close(),
        "/name" => Reply::new("200 OK", &format!("X-{EVIL}: x\r\n"), "x"),
        "/etag" => {
            Reply::new("401 No", &format!("ETag: {EVIL}\r\nWWW-Authenticate: Basic realm={EVIL}\r\n"), "")
        }
        _ => Reply::text(EVIL),
    }
}

#[test]
fn nothing_of_a_server_reaches_a_terminal_or_a_log_as_it_is() {
    for driver in DRIVERS {
        let mut stage = Stage::with_robots(evil_page);
        let url = stage.url("a.test", "/");
        for format in [&["--json"][..], &[]] {
            let usual = stage.command([&*url, "--driver", driver, "--scope", "any", "--again"]);
            let mut command = nephila();
            command.args(usual.get_args().filter(|arg| *arg != "--json" || !format.is_empty()));
            let run = Running::start(&mut command).wait(PATIENCE).done();
            assert_text("the summary", &run.stdout);
            assert_text("what the crawl said", run.stderr.as_bytes());
        }
        assert!(records(&stage.data).len() > 20, "most of it was fetched, twice");
        let data = stage.data.to_str().unwrap().to_string();
        for args in [
            &["store", "ls"][..],
            &["store", "ls", "--all"],
            &["store", "ls", "--json"],
            &["store", "stat"],
            &["store", "stat", "--json"],
            &["audit"],
            &["audit", "--json"],
        ] {
            let run = run(args.iter().copied().chain(["--data", &*data]));
            assert_text(&args.join(" "), &run.stdout);
            assert_text(&args.join(" "), run.stderr.as_bytes());
        }
        assert_text("crawl.log", &std::fs::read(stage.data.join("crawl.log")).unwrap());
        for asked in stage.server.asked() {
            assert_text("a request", asked.head.replace("\r\n", "\n").as_bytes());
        }
        // Inside the lines of the log, too, a tab or a line end would start a new field.
        stage.assert_proved();
    }
}

/// Nor does what a user was given to paste: seeds, settings, names.
#[test]
fn what_was_typed_is_shown_as_text() {
    let dir = TempDir::new();
    let data = dir.join("data").to_str().unwrap().to_string();
    let seeds = dir.write("seeds", format!("http://{EVIL}/\n{EVIL}\nhttp://127.0.0.1:9/{EVIL}\n"));
    let config = dir.write("c.toml", format!("[spider]\n\"{}\" = 1\n", "\\u001b[31m\u{202e}"));
    let (seeds, config) = (seeds.to_str().unwrap(), config.to_str().unwrap());
    let evil = EVIL;
    for args in [
        &["crawl", "--seeds", seeds, "--allow-net", "127.0.0.0/8", "--data", &data][..],
        &["crawl", "http://127.0.0.1:9/", "--config", config, "--data", &data],
        &["crawl", "http://127.0.0.1:9/", "--hosts-file", evil, "--data", &data],
        &["crawl", "http://127.0.0.1:9/", "--user-agent", evil, "--data", &data],
        &["crawl", evil, "--data", &data],
        &["store", "cat", "--data", &data, evil],
        &["robots", "--agent", evil, seeds, evil],
    ] {
        let run = run(args);
        assert!((0..=3).contains(&run.code()), "{args:?}");
        assert_text(&format!("{args:?}"), run.stderr.as_bytes());
        assert_text(&format!("{args:?}"), &run.stdout);
    }
}

// What a URL means ------------------------------------------------------------------------------------------

/// A link, as it stands in a page of `http://a.test:PORT/dir/page`, and what is asked for: host and target.
#[rustfmt::skip]
const LINKS: [(&str, &str); 22] = [
    ("/sp ace", "a.test/sp%20ace"),
    ("/line\nend", "a.test/lineend"),
    ("/carriage\r\nHost: evil.test\r\nX: y", "a.test/carriageHost:%20evil.testX:%20y"),
    ("/t\tab", "a.test/tab"),
    ("/crlf%0d%0aX:%20y", "a.test/crlf%0D%0AX:%20y"),
    ("/nul%00", "a.test/nul%00"),
    ("/esc\u{1b}[0m", "a.test/esc%1B[0m"),
    ("/del\u{7f}", "a.test/del%7F"),
    ("/quo\u{22}te", "a.test/quo%22te"),
    ("/less<than>", "a.test/less%3Cthan%3E"),
    ("/u\u{202e}turn", "a.test/u%E2%80%AEturn"),
    ("/q?a b\u{22}<>'c", "a.test/q?a%20b%22%3C%3E%27c"),
    ("http://a.test:PORT#@evil.test/", "a.test/"),
    ("http://a.test:PORT?@evil.test/", "a.test/?@evil.test/"),
    ("http://a.test:PORT/\\@evil.test/1", "a.test//@evil.test/1"),
    ("http://a.test:PORT\\@evil.test/2", "a.test/@evil.test/2"),
    ("http:\\\\a.test:PORT\\3", "a.test/3"),
    ("\\\\b.test:PORT\\4", "b.test/4"),
    ("/\\b.test:PORT/5", "b.test/5"),
    ("http:/b.test:PORT/6", "a.test/b.test:PORT/6"),
    ("ht\ntp://b.te\tst:PORT/7", "b.test/7"),
    (" \u{1} http://b.test:PORT/8 \u{1f} ", "b.test/8"),
];

#[test]
fn urls_are_read_as_the_standard_reads_them() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| {
            let port = asked.host.rsplit(':').next().unwrap();
            match asked.target.as_str() {
                "/dir/page" => {
                    let links =
                        LINKS.iter().map(|(link, _)| link.replace("PORT", port).replace('"', "&quot;"));
                    Reply::links(links)
                }
                _ => Reply::text("x"),
            }
        });
        let url = stage.url("a.test", "/dir/page");
        for host in ["b.test", "evil.test"] {
            stage.url(host, "/");
        }
        stage.crawl([&*url, "--driver", driver, "--scope", "any"]);
        let port = stage.server.port().to_string();
        let places = stage.server.places();
        let mut wrong = String::new();
        for (link, place) in LINKS {
            if !places.contains(&place.replace("PORT", &port)) {
                wrong += &format!("{link:?} should have been {place}\n");
            }
        }
        let strangers: Vec<&String> = places
            .iter()
            .filter(|place| {
                *place != "a.test/dir/page"
                    && !LINKS.iter().any(|(_, known)| known.replace("PORT", &port) == **place)
            })
            .collect();
        assert!(
            wrong.is_empty() && strangers.is_empty(),
            "{driver}:\n{wrong}and these were asked for: {strangers:?}"
        );
        for asked in stage.server.asked() {
            let lines: Vec<&str> = asked.head.trim_end().lines().collect();
            assert!(lines[0].starts_with("GET /") && lines[0].ends_with(" HTTP/1.1"), "{}", asked.head);
            assert_eq!(lines[0].matches(' ').count(), 2, "{}", asked.head);
            assert!(
                lines[1..].iter().all(|line| !line.contains("evil") && !line.starts_with("X:")),
                "{}",
                asked.head
            );
        }
    }
}

/// A header cannot be split by what a server puts into a Location, and a page that tries is refused.
#[test]
fn line_ends_in_a_location_are_refused() {
    for location in ["/a\rX: y", "/a\0b", "/a\r\r\nX: y"] {
        let mut stage = Stage::new(move |asked| match asked.target.as_str() {
            "/" => Reply::redirect(location),
            _ => Reply::text("x"),
        });
        let url = stage.url("a.test", "/");
        stage.crawl([&url]);
        assert_record(&stage.stored()[&url], "malformed", None, b"", &[]);
        assert_eq!(stage.server.targets(), ["/robots.txt", "/"], "{location:?}");
    }
}

// Names that change -----------------------------------------------------------------------------------------

/// A name that is allowed when it is first asked for, and forbidden ever after, or the other way round: connections go to
/// what was found allowed, or are not made.
#[test]
fn a_name_that_changes_leads_nowhere_else() {
    by_each_driver(|driver| {
        let server = LogServer::start_on(Ipv4Addr::new(127, 60, 0, 1), |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            _ => Reply::text("allowed").with("Connection: close\r\n"),
        });
        let port = server.port();
        let canary = TcpListener::bind(("127.0.0.1", port)).unwrap();
        canary.set_nonblocking(true).unwrap();
        let answers = AtomicUsize::new(0);
        let names = ScriptedServer::start(move |asked| {
            let first = answers.fetch_add(1, Ordering::SeqCst) == 0 || asked.nth == 0;
            let allowed = first == asked.name.starts_with("good");
            at_once(asked.addresses(&[if allowed { "127.60.0.1" } else { "127.0.0.1" }]))
        });
        let dir = TempDir::new();
        let data = dir.join("data");
        let mut command = nephila();
        command.args([
            "crawl",
            "--json",
            "--driver",
            driver,
            "--allow-net",
            "127.60.0.0/16",
            "--req-host-per-sec",
            "2",
        ]);
        command.args(["--dns", &names.flag(), "--data"]).arg(&data);
        // Longer than the second that an answer is good for.
        command.args((0..5).map(|n| format!("http://good-then-bad.test:{port}/{n}")));
        command.args((0..2).map(|n| format!("http://bad-then-good.test:{port}/{n}")));
        let report = Running::start(&mut command).wait(PATIENCE).done().json();
        check_report(&report);
        assert!(canary.accept().is_err(), "{driver}: a connection to the forbidden address");
        for listed in records(&data) {
            assert!(listed.ip == "127.60.0.1" || !listed.success, "{listed:?}");
        }
        assert!(result_count(&report, "ok") > 0 && result_count(&report, "blocked_address") > 0, "{report}");
    });
}
