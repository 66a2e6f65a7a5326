//! The promise: the pause between two requests to a host or an address is never shorter than asked for, no more
//! requests are open than allowed, robots.txt comes first and is obeyed.

use crate::support::*;
use std::collections::BTreeSet;

fn links_to(pages: usize) -> Reply {
    Reply::links((1..pages).map(|page| format!("/p{page}")))
}

/// Pauses between requests as they arrived, in nanoseconds.
fn gaps_ns(asked: &[Asked]) -> Vec<i64> {
    asked.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).collect()
}

#[track_caller]
fn assert_gaps(asked: &[Asked], least_ns: i64, what: &str) {
    let gaps = gaps_ns(asked);
    let shortest = gaps.iter().min().copied().unwrap_or(i64::MAX);
    println!("{what}: shortest pause {:.3} ms of {} ms", shortest as f64 / 1e6, least_ns as f64 / 1e6);
    assert!(shortest >= least_ns, "{what}: a pause of {shortest} ns, below {least_ns}: {gaps:?}");
}

#[test]
fn the_rate_of_a_host_is_never_exceeded() {
    for driver in DRIVERS {
        for (concurrent, answer_ms) in [("1", 0), ("4", 60)] {
            let dir = TempDir::new();
            let server = LogServer::start(move |asked| match asked.target.as_str() {
                "/robots.txt" => Reply::text("User-agent: *\nDisallow: /private\n"),
                "/" => links_to(30),
                _ => Reply::text("x").after_ms(answer_ms),
            });
            // Without k times the response time, only the rate holds requests back.
            let config = dir.write("c.toml", "[url_server]\ndelay_factor = 0.0\n");
            let flags = [&server.url("/"), "--driver", driver, "--req-host-per-sec", "25"];
            let more = ["--req-host-concurrent", concurrent, "--config", config.to_str().unwrap()];
            let (report, _) = crawl(&dir.join("data"), flags.into_iter().chain(more));
            assert_eq!(report["pages"], 30);
            let asked = server.asked();
            assert_eq!(asked.len(), 31);
            assert_eq!(asked[0].target, "/robots.txt");
            assert_gaps(&asked, 40_000_000, &format!("{driver}, {concurrent} at once"));
            let open_max = server.open_max();
            assert!(open_max <= concurrent.parse().unwrap(), "{open_max} open, {concurrent} allowed");
            if answer_ms > 40 {
                assert!(open_max > 1, "an answer that takes longer than the pause does not hold up the next");
            }
        }
    }
}

/// Several hosts at one address share its rate and its open requests, by default the host's figures.
#[test]
fn the_rate_holds_for_an_address_over_all_its_hosts() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let web = |asked: &Asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => links_to(4),
            _ => Reply::text("x").after_ms(5),
        };
        // Two ports of one address are two hosts as well.
        let (server, other) = (LogServer::start(web), LogServer::start(web));
        let names = ["a.test", "b.test", "c.test"];
        let hosts = dir.write("hosts", "127.0.0.1 a.test b.test c.test\n");
        let mut flags: Vec<String> =
            names.iter().map(|name| format!("http://{name}:{}/", server.port())).collect();
        flags.push(other.url("/"));
        let hosts = hosts.to_str().unwrap();
        flags.extend(["--hosts-file", hosts, "--req-host-per-sec", "20", "--cores", "0,1"].map(String::from));
        flags.extend(["--driver", driver].map(String::from));
        let (report, _) = crawl(&dir.join("data"), &flags);
        assert_eq!(report["pages"], 16);
        let mut asked = server.asked();
        asked.extend(other.asked());
        asked.sort_by_key(|asked| asked.at_ns);
        assert_eq!(asked.len(), 20);
        assert_gaps(&asked, 50_000_000, driver);
        assert_eq!((server.open_max(), other.open_max()), (1, 1));
    }
}

#[test]
fn open_requests_reach_their_limit_and_stop_there() {
    for driver in DRIVERS {
        for concurrent in [1, 3] {
            let dir = TempDir::new();
            let server = LogServer::start(|asked| match asked.target.as_str() {
                "/robots.txt" => Reply::status("404 Not Found"),
                "/" => links_to(24),
                _ => Reply::text("x").after_ms(30),
            });
            let concurrent_flag = concurrent.to_string();
            let flags = [&server.url("/"), "--driver", driver, "--req-host-per-sec", "0"];
            let more = ["--req-host-concurrent", &concurrent_flag, "--cores", "0,1"];
            crawl(&dir.join("data"), flags.into_iter().chain(more));
            assert_eq!(server.open_max(), concurrent);
            assert!(server.connections() <= concurrent, "{} connections", server.connections());
        }
    }
}

/// The pause is k times the last response time.
#[test]
fn a_slow_answer_stretches_the_pause() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let server = LogServer::start(|asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => links_to(8),
            _ => Reply::text("x").after_ms(40),
        });
        let config = dir.write("c.toml", "[url_server]\ndelay_factor = 4.0\n");
        let flags = [&server.url("/"), "--req-host-per-sec", "1000", "--driver", driver];
        crawl(&dir.join("data"), flags.into_iter().chain(["--config", config.to_str().unwrap()]));
        let asked = server.asked();
        assert_eq!(asked.len(), 9);
        // The first two are answered at once.
        assert_gaps(&asked[2..], 160_000_000, driver);
    }
}

/// With several requests open, too: the pause is between two requests, whichever answer told of it.
#[test]
fn a_slow_answer_stretches_the_pause_after_the_latest_request() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => links_to(6),
        _ => Reply::text("x").after_ms(150),
    });
    let flags = [&server.url("/"), "--req-host-per-sec", "1000", "--req-host-concurrent", "4"];
    crawl(&dir.join("data"), flags);
    let asked = server.asked();
    assert_eq!(asked.len(), 7);
    // Four are out before the first slow answer is known. The last waits for one of them, so an answer that took
    // 150 ms is known by then.
    assert_gaps(&asked[5..], 150_000_000, "four at once");
}

#[test]
fn crawl_delay_holds_without_a_rate() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nCrawl-delay: 0.25\nDisallow: /d\n"),
        "/" => links_to(5),
        _ => Reply::text("x"),
    });
    crawl(&dir.join("data"), [&server.url("/"), "--req-host-per-sec", "0"]);
    assert_eq!(server.asked().len(), 6);
    assert_gaps(&server.asked()[1..], 250_000_000, "Crawl-delay");
    // robots.txt counts like any other request, and its own answer asks for the pause.
    assert_gaps(&server.asked()[..2], 250_000_000, "Crawl-delay after robots.txt");
}

#[test]
fn retry_after_holds_without_a_rate() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => links_to(3),
        "/p1" => Reply::new("429 Too Many Requests", "Retry-After: 2\r\n", "later"),
        _ => Reply::text("x"),
    });
    crawl(&dir.join("data"), [&server.url("/"), "--req-host-per-sec", "0"]);
    let asked = server.asked();
    let refused = asked.iter().position(|asked| asked.target == "/p1").unwrap();
    assert_gaps(&asked[refused..refused + 2], 2_000_000_000, "Retry-After");
}

/// A 429 or 503 without Retry-After at least doubles the pause.
#[test]
fn a_refusal_doubles_the_pause() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let dir = TempDir::new();
        let server = LogServer::start(move |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => links_to(3),
            "/p1" => Reply::status(status),
            _ => Reply::text("x"),
        });
        crawl(&dir.join("data"), [&server.url("/"), "--req-host-per-sec", "2"]);
        let asked = server.asked();
        let refused = asked.iter().position(|asked| asked.target == "/p1").unwrap();
        assert_gaps(&asked, 500_000_000, status);
        assert_gaps(&asked[refused..refused + 2], 1_000_000_000, status);
    }
}

/// Crawls `/` of a server with this robots.txt; what was asked for besides it, and the summary.
#[track_caller]
fn under_robots(
    robots: impl Fn() -> Reply + Send + Sync + 'static,
    links: &'static [&'static str],
    flags: &[&str],
) -> (BTreeSet<String>, serde_json::Value) {
    let dir = TempDir::new();
    let server = LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => robots(),
        "/rules.txt" => Reply::text("User-agent: *\nDisallow: /no\n"),
        "/" => Reply::links(links),
        _ => Reply::text("x"),
    });
    let data = dir.join("data");
    let seed = server.url("/");
    let all = [&seed, "--req-host-per-sec", "0"].into_iter().chain(flags.iter().copied());
    let (report, _) = crawl(&data, all);
    let targets = server.targets();
    assert_eq!(targets[0], "/robots.txt", "asked for first");
    assert_eq!(targets.iter().filter(|target| *target == "/robots.txt").count(), 1, "and once");
    let pages: BTreeSet<String> = targets.into_iter().filter(|target| !target.ends_with(".txt")).collect();
    let stored: BTreeSet<String> =
        stored(&data).into_keys().map(|url| url.replace(&server.url(""), "")).collect();
    assert_eq!(stored, pages, "asked for is stored, denied is not");
    (pages, report)
}

fn set(pages: &[&str]) -> BTreeSet<String> {
    pages.iter().map(|page| page.to_string()).collect()
}

#[test]
fn no_robots_txt_is_no_rules() {
    for status in ["404 Not Found", "410 Gone", "401 Unauthorized", "403 Forbidden"] {
        let (pages, report) = under_robots(move || Reply::status(status), &["/a"], &[]);
        assert_eq!(pages, set(&["/", "/a"]), "{status}");
        assert_eq!(report["pages"], 2);
    }
}

#[test]
fn robots_txt_that_cannot_be_had_denies_everything() {
    let broken: [fn() -> Reply; 5] = [
        || Reply::status("500 Internal Server Error"),
        || Reply::status("503 Service Unavailable"),
        || Reply::status("429 Too Many Requests"),
        Reply::hang_up,
        || Reply {
            bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nUser-agent: *\nAllow".to_vec(),
            ..Reply::hang_up()
        },
    ];
    for robots in broken {
        let (pages, report) = under_robots(robots, &["/a"], &[]);
        assert_eq!(pages, set(&[]), "no page is asked for");
        assert_eq!((&report["pages"], result_count(&report, "robots_denied")), (&0.into(), 1), "{report}");
    }
}

#[test]
fn the_longest_match_decides() {
    let rules = "User-agent: *\nDisallow: /shop/\nAllow: /shop/open\nDisallow: /shop/open/no$\nDisallow: /*.cgi\nAllow: /tie\nDisallow: /tie\nDisallow: /%7Eme\n";
    let links = &[
        "/shop/",
        "/shop/x",
        "/shop/open",
        "/shop/open/yes",
        "/shop/open/no",
        "/shop/open/note",
        "/a/b.cgi?x",
        "/tie",
        "/Shop/",
        "/~me/",
        "/private?x=/shop/",
    ];
    let (pages, report) = under_robots(|| Reply::text(rules), links, &[]);
    let allowed =
        ["/", "/shop/open", "/shop/open/yes", "/shop/open/note", "/tie", "/Shop/", "/private?x=/shop/"];
    assert_eq!(pages, set(&allowed));
    assert_eq!(result_count(&report, "robots_denied"), 5);
}

#[test]
fn rules_for_our_name_win_over_the_star() {
    let rules = "User-agent: *\nDisallow: /\n\nUser-agent: OtherBot\nUser-agent: SpiderX\nDisallow: /x\n\nUser-agent: nephila\nDisallow: /n\n";
    let links = &["/n", "/x", "/y"];
    let (pages, _) = under_robots(|| Reply::text(rules), links, &[]);
    assert_eq!(pages, set(&["/", "/x", "/y"]), "by default our name is nephila");
    let agent = ["--user-agent", "spiderx/2.0 (+http://spider.test/)"];
    let (pages, _) = under_robots(|| Reply::text(rules), links, &agent);
    assert_eq!(pages, set(&["/", "/n", "/y"]), "its first word, in any case");
    let (pages, report) = under_robots(|| Reply::text(rules), links, &["--user-agent", "Someone/1"]);
    assert_eq!(pages, set(&[]));
    assert_eq!(result_count(&report, "robots_denied"), 1);
}

#[test]
fn the_user_agent_is_sent_as_given() {
    let dir = TempDir::new();
    let server = LogServer::start(|_| Reply::text(""));
    let agent = "TestBot/7 (+http://bot.test/about)";
    crawl(&dir.join("data"), [&server.url("/"), "--user-agent", agent, "--req-host-per-sec", "0"]);
    assert!(server.asked().iter().all(|asked| asked.user_agent == agent), "{:?}", server.asked());
    let host = server.addr.to_string();
    assert!(server.asked().iter().all(|asked| asked.host == host), "{:?}", server.asked());
}

/// Also across hosts; the rules count for the host first asked.
#[test]
fn robots_txt_redirected_to_another_host_counts() {
    let other = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /no\n"),
        _ => Reply::text("x"),
    });
    let target = other.url("/robots.txt");
    let (pages, report) = under_robots(move || Reply::redirect(&target), &["/no/x", "/yes"], &[]);
    assert_eq!(pages, set(&["/", "/yes"]), "{report}");
}

/// Rules at the end of a file of half a mebibyte count.
#[test]
fn a_long_robots_txt_is_read_to_its_end() {
    let line = format!("Disallow: /filler/{}\n", "x".repeat(100));
    long_robots_txt(&line);
}

/// However many rules stand in it: a rule that is dropped lets us where we were told not to go.
#[test]
fn a_robots_txt_of_many_rules_is_read_to_its_end() {
    long_robots_txt("Disallow: /fill\n");
}

#[track_caller]
fn long_robots_txt(line: &str) {
    let filler = line.repeat(450 * 1_024 / line.len());
    let rules = format!("\u{feff}User-agent: *\r\n{filler}Disallow: /no\r");
    let (pages, _) = under_robots(move || Reply::text(&rules), &["/no/x", "/yes"], &[]);
    assert_eq!(pages, set(&["/", "/yes"]), "of {} rules", 450 * 1_024 / line.len());
}

#[test]
fn redirected_robots_txt_counts_where_it_ends() {
    let (pages, report) = under_robots(|| Reply::redirect("/rules.txt"), &["/no/x", "/yes"], &[]);
    assert_eq!(pages, set(&["/", "/yes"]));
    assert_eq!(result_count(&report, "robots_denied"), 1);
}
