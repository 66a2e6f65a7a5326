//! The promise: a crawl goes as far as its scope, its depth and its page limit say, and no further; seeds files
//! are read line by line.

use crate::support::*;
use nephila::farm::SiteSpec;
use std::collections::BTreeSet;

/// Three names of two domains on one address.
fn hosts_file(dir: &TempDir) -> String {
    let path = dir.write("hosts", "127.0.0.1 a.one.test b.one.test c.two.test\n");
    path.to_str().unwrap().to_string()
}

/// `a` links to all three hosts and within itself.
fn web() -> LogServer {
    LogServer::start(|asked| {
        let port = asked.host.rsplit(':').next().unwrap();
        match asked.place().as_str() {
            "a.one.test/dir/start" => Reply::links([
                "x".to_string(),
                "/dir/sub/y?q=/../z".to_string(),
                "/other/z".to_string(),
                "/dirt".to_string(),
                "/".to_string(),
                format!("http://b.one.test:{port}/dir/b"),
                format!("http://c.two.test:{port}/dir/c"),
                "mailto:nobody@one.test".to_string(),
                "https://a.one.test/dir/secure".to_string(),
                "javascript:void(0)".to_string(),
                "#top".to_string(),
            ]),
            _ if asked.target == "/robots.txt" => Reply::status("404 Not Found"),
            _ => Reply::text("leaf\n"),
        }
    })
}

#[track_caller]
fn reached(scope: &str) -> Vec<String> {
    let dir = TempDir::new();
    let server = web();
    let seed = format!("http://a.one.test:{}/dir/start", server.port());
    let flags = [&seed, "--scope", scope, "--hosts-file", &hosts_file(&dir), "--req-host-per-sec", "0"];
    let data = dir.join("data");
    let (report, _) = crawl(&data, flags);
    let places = server.places();
    assert_eq!(report["pages"], places.len());
    let stored: Vec<String> = stored(&data)
        .into_keys()
        .map(|url| url.replace("http://", "").replace(&format!(":{}", server.port()), ""))
        .collect();
    assert_eq!(stored, places, "asked for is stored");
    places
}

const OWN: [&str; 6] = [
    "a.one.test/",
    "a.one.test/dir/start",
    "a.one.test/dir/sub/y?q=/../z",
    "a.one.test/dir/x",
    "a.one.test/dirt",
    "a.one.test/other/z",
];

#[test]
fn scope_host() {
    assert_eq!(reached("host"), OWN);
}

#[test]
fn scope_prefix() {
    assert_eq!(reached("prefix"), OWN[1..4]);
}

#[test]
fn scope_domain() {
    assert_eq!(reached("domain"), [&OWN[..], &["b.one.test/dir/b"]].concat());
}

#[test]
fn scope_any() {
    assert_eq!(reached("any"), [&OWN[..], &["b.one.test/dir/b", "c.two.test/dir/c"]].concat());
}

/// `/` links to `/1`, that to `/2`, and so on.
fn chain() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/moved" => Reply::redirect("/hop"),
        "/hop" => Reply::redirect("/5"),
        "/" => Reply::links(["1"]),
        page => Reply::links([(page[1..].parse::<u32>().unwrap() + 1).to_string()]),
    })
}

#[test]
fn depth_counts_links() {
    for (depth, pages) in [("0", &["/"][..]), ("1", &["/", "/1"]), ("3", &["/", "/1", "/2", "/3"])] {
        let (dir, server) = (TempDir::new(), chain());
        let flags = [&server.url("/"), "--depth", depth, "--req-host-per-sec", "0"];
        let (report, _) = crawl(&dir.join("data"), flags);
        assert_eq!(server.targets()[1..], *pages, "depth {depth}");
        assert_eq!(report["known"], pages.len());
    }
}

#[test]
fn redirect_hops_are_no_depth() {
    for (depth, pages) in [("0", &["/moved", "/hop", "/5"][..]), ("1", &["/moved", "/hop", "/5", "/6"])] {
        let (dir, server) = (TempDir::new(), chain());
        let flags = [&server.url("/moved"), "--depth", depth, "--req-host-per-sec", "0"];
        crawl(&dir.join("data"), flags);
        assert_eq!(server.targets()[1..], *pages, "depth {depth}");
    }
}

#[test]
fn where_a_seeds_redirects_end_is_in_scope() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| {
        let port = asked.host.rsplit(':').next().unwrap();
        match asked.place().as_str() {
            "a.one.test/" => Reply::redirect(&format!("http://c.two.test:{port}/home")),
            "c.two.test/home" => Reply::links(["/more".to_string(), format!("http://b.one.test:{port}/out")]),
            // A page that is no seed may not lead out.
            "c.two.test/more" => Reply::redirect(&format!("http://b.one.test:{port}/away")),
            _ => Reply::status("404 Not Found"),
        }
    });
    let seed = format!("http://a.one.test:{}/", server.port());
    let data = dir.join("data");
    crawl(&data, [&seed, "--hosts-file", &hosts_file(&dir), "--req-host-per-sec", "0"]);
    assert_eq!(server.places(), ["a.one.test/", "c.two.test/home", "c.two.test/more"]);
    let more = &stored(&data)[&format!("http://c.two.test:{}/more", server.port())];
    assert_eq!(more.result, "redirect");
    assert_eq!(more.new_url.as_deref(), Some(&*format!("http://b.one.test:{}/away", server.port())));
}

#[test]
fn redirects_end_after_ten_hops_and_loops_end() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/ping" => Reply::redirect("/pong"),
        "/pong" => Reply::redirect("/ping"),
        "/self" => Reply::redirect("/self"),
        hop => Reply::redirect(&format!("/{}", hop[1..].parse::<u32>().unwrap() + 1)),
    });
    let data = dir.join("data");
    let seeds = [server.url("/0"), server.url("/ping"), server.url("/self")];
    let (report, _) = crawl(&data, seeds.iter().map(String::as_str).chain(["--req-host-per-sec", "0"]));
    let asked: BTreeSet<String> = server.targets()[1..].iter().cloned().collect();
    let expected = (0..=10).map(|hop| format!("/{hop}")).chain(["/ping", "/pong", "/self"].map(String::from));
    assert_eq!(asked, expected.collect(), "{report}");
    assert_eq!(server.targets().len(), 1 + asked.len(), "each once");
}

#[test]
fn max_pages_is_exact() {
    let farm =
        Farm::start(SiteSpec { hosts: 30, pages: 20, errors: 0.0, redirects: 0.2, ..SiteSpec::default() });
    for (max, cores) in [(1, "0"), (7, "0,1"), (137, "0"), (138, "0,1")] {
        let dir = TempDir::new();
        let data = dir.join("data");
        let mut flags = farm.flags();
        flags.extend(["--max-pages", &max.to_string(), "--cores", cores].map(str::to_string));
        flags.extend(["--req-host-concurrent", "4"].map(str::to_string));
        let before = farm.stats()["requests"].as_u64().unwrap();
        let (report, _) = crawl(&data, &flags);
        assert_eq!(report["pages"], max);
        assert_eq!(records(&data).len(), max, "and as many are stored");
        assert!(report["pending"].as_u64().unwrap() > 0, "{report}");
        let asked = farm.stats()["requests"].as_u64().unwrap() - before;
        let robots = report["robots"].as_u64().unwrap();
        assert!(asked <= max as u64 + robots, "{asked} requests for {max} pages and {robots} robots.txt");
    }
}

#[test]
fn seeds_file_with_comments_and_bad_lines() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("x"),
    });
    let text = format!(
        "# a comment\n\n{}\n   \nnot a url\n  {}  \r\n#http://127.0.0.1:1/\nftp://127.0.0.1/f\nftps://127.0.0.1/s\n\u{1b}[31mhttp://\n{}",
        server.url("/one"),
        server.url("/two"),
        server.url("/last"),
    );
    let seeds = dir.write("the.seeds", text);
    let data = dir.join("data");
    let flags = ["--seeds", seeds.to_str().unwrap(), "--req-host-per-sec", "0", &server.url("/flag")];
    let (report, run) = crawl(&data, flags);
    assert_eq!(report["known"], 4);
    let mut targets = server.targets();
    targets.sort();
    assert_eq!(targets, ["/flag", "/last", "/one", "/robots.txt", "/two"]);
    let reported: Vec<&str> = run.stderr.lines().filter(|line| line.contains("the.seeds:")).collect();
    assert_eq!(reported.len(), 4, "{}", run.stderr);
    for (line, number) in reported.iter().zip([5, 8, 9, 10]) {
        assert!(line.contains(&format!("the.seeds:{number}:")), "{line} is line {number}");
    }
    assert!(!run.stderr.contains('\u{1b}'), "no escapes reach a terminal");
}

#[test]
fn a_seed_is_fetched_once_however_it_is_written() {
    let (dir, server) = (TempDir::new(), chain());
    let port = server.port();
    let same = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}"),
        format!("HTTP://127.0.0.1:{port}/#part"),
        format!("http://127.0.0.1:{port}/a/.."),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
    ];
    let flags = ["--depth", "0", "--req-host-per-sec", "0"];
    let (report, _) = crawl(&dir.join("data"), same.iter().map(String::as_str).chain(flags));
    assert_eq!(server.targets(), ["/robots.txt", "/"]);
    assert_eq!(report["known"], 1);
}
