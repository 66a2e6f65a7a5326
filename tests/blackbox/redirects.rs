//! The promise: a redirect is a record of its own, and its target a page of its own host, asked for by the rules of that
//! host; chains end, and lead nowhere that the first URL could not have led.

use crate::name_server::{ScriptedServer, at_once};
use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;
use std::net::TcpListener;

/// `302` unless the target says otherwise: what stands in a table, by place.
fn to(location: &str) -> Reply {
    Reply::new("302 Found", &format!("Location: {location}\r\n"), "")
}

#[track_caller]
fn assert_redirect(listed: &Listed, result: &str, new_url: Option<&str>) {
    let seen = (&*listed.result, listed.success, listed.new_url.as_deref());
    assert_eq!(seen, (result, false, new_url), "{listed:?}");
}

// Hops ------------------------------------------------------------------------------------------------------

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

#[test]
fn each_hop_is_a_record_and_each_target_a_page_of_its_host() {
    for driver in DRIVERS {
        let mut stage = Stage::with_robots(|asked| match (asked.name(), asked.target.as_str()) {
            ("to308.test", "/robots.txt") => Reply::text("User-agent: *\nDisallow: /\n"),
            (_, "/robots.txt") => Reply::status("404 Not Found"),
            (name, "/") => {
                let (status, port) = (&name[4..7], asked.host.rsplit(':').next().unwrap());
                let location = format!("Location: http://to{status}.test:{port}/there\r\n");
                Reply::new(&format!("{status} Elsewhere"), &location, "a body")
            }
            _ => Reply::text("there"),
        });
        let from = STATUSES.map(|status| stage.url(&format!("from{status}.test"), "/"));
        let there = STATUSES.map(|status| stage.url(&format!("to{status}.test"), "/there"));
        let report = stage.crawl(from.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        for ((status, from), there) in STATUSES.iter().zip(&from).zip(&there) {
            let listed = &stored[from];
            assert_redirect(listed, "redirect", Some(there));
            assert_eq!((listed.http_status, listed.bytes), (Some(*status), 6), "{listed:?}");
            let host = format!("to{status}.test");
            let asked: Vec<String> = stage
                .server
                .asked()
                .into_iter()
                .filter(|asked| asked.name() == host)
                .map(|asked| asked.target)
                .collect();
            if *status == 308 {
                assert!(!stored.contains_key(there), "its robots rules count");
                assert_eq!(asked, ["/robots.txt"]);
            } else {
                assert_record(&stored[there], "ok", Some(200), b"there", &[]);
                assert_eq!(asked, ["/robots.txt", "/there"]);
            }
        }
        assert_eq!(result_count(&report, "robots_denied"), 1, "{report}");
        stage.assert_proved();
    }
}

/// A hop within a host waits its turn like any other request.
#[test]
fn a_hop_keeps_the_gap() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match asked.target.as_str() {
            "/end" => Reply::text("end"),
            "/1" => to("/end"),
            _ => to("/1"),
        });
        let url = stage.url("a.test", "/");
        stage.crawl([&url, "--driver", driver, "--req-host-per-sec", "4"]);
        let asked = stage.server.asked();
        assert_eq!(stage.server.targets(), ["/robots.txt", "/", "/1", "/end"]);
        for pair in asked.windows(2) {
            let gap_ms = (pair[1].at_ns - pair[0].at_ns) / 1_000_000;
            assert!(gap_ms >= 240, "{gap_ms} ms before {}", pair[1].target);
        }
        stage.assert_proved();
    });
}

/// What stands in Location, at `/dir/page`, and where it leads; `None` for nowhere.
#[rustfmt::skip]
const LOCATIONS: [(&str, Option<&str>); 33] = [
    ("Location: /abs", Some("http://a.test:PORT/abs")),
    ("Location: rel", Some("http://a.test:PORT/dir/rel")),
    ("Location: ../up", Some("http://a.test:PORT/up")),
    ("Location: ../../../far/up", Some("http://a.test:PORT/far/up")),
    ("Location: //b.test:PORT/slashes", Some("http://b.test:PORT/slashes")),
    ("Location: HTTP://B.TEST:PORT/capitals", Some("http://b.test:PORT/capitals")),
    ("Location: http://b.test:PORT/frag#ment", Some("http://b.test:PORT/frag")),
    ("Location: http://b.test:PORT", Some("http://b.test:PORT/")),
    ("Location:/no-space", Some("http://a.test:PORT/no-space")),
    ("Location: \t /padded \t", Some("http://a.test:PORT/padded")),
    ("location: /lower", Some("http://a.test:PORT/lower")),
    ("Location: /sp ace", Some("http://a.test:PORT/sp%20ace")),
    ("Location: /\u{e9}", Some("http://a.test:PORT/%C3%A9")),
    ("Location: \\back\\slash", Some("http://a.test:PORT/back/slash")),
    ("X: no Location at all", None),
    ("Location: http://", None),
    ("Location: http://[::1/", None),
    ("Location: http://a b/", None),
    ("Location: http://b.test:99999/", None),
    ("Location: http://b%00.test/", None),
    ("Location: http://256.256.256.256/", None),
    ("Location: http://exa<mple.test/", None),
    ("Location: file:///etc/passwd", None),
    ("Location: data:text/html,<a href=/x>", None),
    ("Location: javascript:alert(1)", None),
    ("Location: ftp://b.test/x", None),
    ("Location: gopher://b.test/x", None),
    ("Location: mailto:a@b.test", None),
    ("Location: about:blank", None),
    ("Location: blob:http://b.test/x", None),
    ("Location: view-source:http://b.test/", None),
    ("Location: feed:http://b.test/", None),
    ("Location: jar:http://b.test/!/x", None),
];

#[test]
fn locations_are_read_as_a_browser_reads_them() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| {
            let nth = asked.target.strip_prefix("/dir/page").and_then(|rest| rest.parse::<usize>().ok());
            let port = asked.host.rsplit(':').next().unwrap();
            match nth {
                Some(n) => {
                    Reply::new("302 Found", &format!("{}\r\n", LOCATIONS[n].0.replace("PORT", port)), "")
                }
                None => Reply::text(&asked.place()),
            }
        });
        let pages: Vec<String> =
            (0..LOCATIONS.len()).map(|n| stage.url("a.test", &format!("/dir/page{n}"))).collect();
        stage.url("b.test", "/");
        stage.crawl(pages.iter().map(String::as_str).chain(["--driver", driver]));
        let port = stage.server.port().to_string();
        let stored = stage.stored();
        let (mut wrong, mut targets) = (String::new(), 0);
        for ((location, target), page) in LOCATIONS.iter().zip(&pages) {
            let target = target.map(|target| target.replace("PORT", &port));
            let listed = &stored[page];
            targets += usize::from(target.is_some());
            let fetched =
                target.as_ref().is_none_or(|target| stored.get(target).is_some_and(|to| to.success));
            if listed.new_url != target || listed.result != "redirect" || listed.success || !fetched {
                wrong += &format!("{location}: {listed:?}, not to {target:?}\n");
            }
        }
        assert!(wrong.is_empty(), "{driver}:\n{wrong}");
        assert_eq!(stored.len(), LOCATIONS.len() + targets, "and nothing else was fetched");
    }
}

/// Other 3xx are no redirects, whatever they name.
#[test]
fn other_statuses_lead_nowhere() {
    for status in ["300 Multiple Choices", "305 Use Proxy", "306 Switch", "201 Created", "404 Not Found"] {
        let mut stage = Stage::new(move |asked| match asked.target.as_str() {
            "/" => Reply::new(status, "Location: /there\r\n", "x"),
            _ => Reply::text("there"),
        });
        let url = stage.url("a.test", "/");
        stage.crawl([&url]);
        assert_eq!(stage.server.targets(), ["/robots.txt", "/"], "{status}");
        assert_eq!(stage.stored()[&url].new_url, None, "{status}");
    }
}

// Chains ----------------------------------------------------------------------------------------------------

/// Loops of one, of two and of three, and one that is entered from outside: each URL is asked for once, and the hop that
/// would close the ring says so.
#[test]
fn loops_are_found() {
    for driver in DRIVERS {
        let next = |path: &str| match path {
            "/one" => "/one",
            "/two" => "/two-back",
            "/two-back" => "/two",
            "/three" => "http://b.test:PORT/x",
            "/x" => "http://c.test:PORT/y",
            "/y" => "http://a.test:PORT/three",
            "/in" => "/ring1",
            "/ring1" => "/ring2",
            "/ring2" => "/ring1",
            _ => unreachable!("{path}"),
        };
        let mut stage = Stage::new(move |asked| {
            to(&next(&asked.target).replace("PORT", asked.host.rsplit(':').next().unwrap()))
        });
        let seeds = ["/one", "/two", "/three", "/in"].map(|path| stage.url("a.test", path));
        let [_, x, y] =
            [("a.test", "/"), ("b.test", "/x"), ("c.test", "/y")].map(|(host, path)| stage.url(host, path));
        stage.crawl(seeds.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        let at = |path: &str| format!("http://a.test:{}{path}", stage.server.port());
        assert_redirect(&stored[&at("/one")], "redirect_loop", Some(&at("/one")));
        assert_redirect(&stored[&at("/two")], "redirect", Some(&at("/two-back")));
        assert_redirect(&stored[&at("/two-back")], "redirect_loop", Some(&at("/two")));
        assert_redirect(&stored[&at("/three")], "redirect", Some(&x));
        assert_redirect(&stored[&x], "redirect", Some(&y));
        assert_redirect(&stored[&y], "redirect_loop", Some(&at("/three")));
        assert_redirect(&stored[&at("/in")], "redirect", Some(&at("/ring1")));
        assert_redirect(&stored[&at("/ring1")], "redirect", Some(&at("/ring2")));
        assert_redirect(&stored[&at("/ring2")], "redirect_loop", Some(&at("/ring1")));
        let places = stage.server.places();
        assert_eq!(places.len(), stored.len(), "each once: {places:?}");
    }
}

/// A Location that is nothing but a fragment, or nothing at all, names the page it stands on.
#[test]
fn a_location_without_a_path_is_a_loop() {
    for location in ["#again", ""] {
        let mut stage = Stage::new(move |_| to(location));
        let url = stage.url("a.test", "/dir/page?query");
        stage.crawl([&url]);
        assert_eq!(stage.server.places(), ["a.test/dir/page?query"], "asked for once");
        assert_redirect(&stage.stored()[&url], "redirect_loop", Some(&url));
    }
}

#[test]
fn ten_hops_are_followed_and_eleven_are_not() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| {
            let (chain, hop) = asked.target[1..].split_once('/').unwrap();
            let (length, hop): (u32, u32) = (chain.parse().unwrap(), hop.parse().unwrap());
            if hop == length { Reply::text("end") } else { to(&format!("/{chain}/{}", hop + 1)) }
        });
        let (ten, eleven) = (stage.url("ten.test", "/10/0"), stage.url("eleven.test", "/11/0"));
        stage.crawl([&ten, &eleven, "--driver", driver]);
        let stored = stage.stored();
        assert_record(&stored[&stage.url("ten.test", "/10/10")], "ok", Some(200), b"end", &[]);
        for hop in 0..10 {
            let (from, to) = (format!("/11/{hop}"), stage.url("eleven.test", &format!("/11/{}", hop + 1)));
            assert_redirect(&stored[&stage.url("eleven.test", &from)], "redirect", Some(&to));
        }
        let last = &stored[&stage.url("eleven.test", "/11/10")];
        assert_eq!((&*last.result, last.success), ("too_many_redirects", false), "{last:?}");
        assert_eq!(stage.pages_of("eleven.test").len(), 11, "the eleventh hop is not made");
        assert_eq!(stored.len(), 22);
    }
}

fn refresh(content: &str) -> Reply {
    Reply::html(&format!("<meta http-equiv=refresh content=\"{content}\">"))
}

#[test]
fn meta_refresh_is_followed_up_to_half_a_minute() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| match asked.target.as_str() {
            "/at-once" => refresh("0;url=/a"),
            "/half-a-minute" => refresh("30; URL='/b'"),
            "/longer" => refresh("31; url=/no"),
            "/hour" => refresh("3600; url=/no"),
            "/itself" => refresh("5"),
            "/script" => refresh("0;url=javascript:alert(1)"),
            "/file" => refresh("0;url=file:///etc/passwd"),
            "/data" => refresh("0;url=data:text/html,x"),
            "/ping" => refresh("0;url=/pong"),
            "/pong" => refresh("0;url=/ping"),
            _ => Reply::text("end"),
        });
        let paths = [
            "/at-once",
            "/half-a-minute",
            "/longer",
            "/hour",
            "/itself",
            "/script",
            "/file",
            "/data",
            "/ping",
        ];
        let seeds = paths.map(|path| stage.url("a.test", path));
        stage.crawl(seeds.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        let mut at = |path: &str| stage.url("a.test", path);
        for (from, to) in [("/at-once", "/a"), ("/half-a-minute", "/b"), ("/ping", "/pong")] {
            let listed = &stored[&at(from)];
            assert_eq!((&*listed.result, listed.success, listed.new_url.clone()), ("ok", true, Some(at(to))));
            assert!(stored[&at(to)].success);
        }
        for from in ["/longer", "/hour", "/itself", "/script", "/file", "/data"] {
            let listed = &stored[&at(from)];
            assert_eq!((&*listed.result, listed.new_url.as_deref()), ("ok", None), "{listed:?}");
        }
        assert_eq!(stored.len(), seeds.len() + 3, "/a, /b, /pong");
    }
}

/// Refreshes count as hops.
#[test]
fn a_chain_of_refreshes_ends() {
    let mut stage =
        Stage::new(|asked| refresh(&format!("0;url=/{}", asked.target[1..].parse::<u32>().unwrap() + 1)));
    let url = stage.url("a.test", "/0");
    stage.crawl([&url]);
    assert_eq!(stage.stored().len(), 11);
}

// robots.txt ------------------------------------------------------------------------------------------------

#[test]
fn robots_rules_are_found_after_five_hops_and_not_looked_for_after_six() {
    for driver in DRIVERS {
        let mut stage = Stage::with_robots(|asked| {
            let length = if asked.name() == "five.test" { 5 } else { 6 };
            let hop = match asked.target.as_str() {
                "/robots.txt" => 0,
                "/private" | "/public" => return Reply::text("x"),
                target => target[2..].parse::<u32>().unwrap(),
            };
            if hop == length {
                Reply::text("User-agent: *\nDisallow: /private\n")
            } else {
                to(&format!("/r{}", hop + 1))
            }
        });
        let five = ["/private", "/public"].map(|path| stage.url("five.test", path));
        let six = stage.url("six.test", "/private");
        let flags = [&*six, "--driver", driver];
        stage.crawl(five.iter().map(String::as_str).chain(flags));
        let asked = stage.server.asked();
        let of = |name: &str| -> Vec<String> {
            asked.iter().filter(|asked| asked.name() == name).map(|asked| asked.target.clone()).collect()
        };
        assert_eq!(of("five.test"), ["/robots.txt", "/r1", "/r2", "/r3", "/r4", "/r5", "/public"]);
        assert!(!of("six.test").contains(&"/r6".to_string()), "{:?}", of("six.test"));
    }
}

#[test]
fn robots_redirects_that_lead_in_circles_or_nowhere_end() {
    let mut stage = Stage::with_robots(|asked| match (asked.name(), asked.target.as_str()) {
        ("circle.test", "/robots.txt") => to("/robots.txt"),
        ("file.test", "/robots.txt") => to("file:///etc/passwd"),
        ("nowhere.test", "/robots.txt") => Reply::new("302 Found", "", ""),
        ("empty.test", "/robots.txt") => to(""),
        _ => Reply::text("x"),
    });
    let hosts = ["circle.test", "file.test", "nowhere.test", "empty.test"];
    let seeds = hosts.map(|host| stage.url(host, "/"));
    let report = stage.crawl(&seeds);
    for host in hosts {
        let asked = stage.server.asked().iter().filter(|asked| asked.name() == host).count();
        assert!(asked <= 7, "{host} was asked {asked} times: {report}");
    }
}

// Where nobody may go ---------------------------------------------------------------------------------------

/// From allowed hosts, by redirect, by meta refresh and for robots.txt: not one connection to what is not allowed, in
/// whatever way it is written, nor to a port that is not for web servers.
#[test]
fn no_redirect_leads_to_a_forbidden_address() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = canary.local_addr().unwrap().port();
    canary.set_nonblocking(true).unwrap();
    let canary_v6 = TcpListener::bind(("::1", port)).ok();
    let names = ScriptedServer::start(|asked| at_once(asked.addresses(&["127.0.0.1", "::1"])));
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "rebound.test",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
    ];
    let targets: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    let bad_ports = [22, 25, 110, 6667].map(|port| format!("http://127.60.0.1:{port}/"));
    let targets: Vec<String> = targets.into_iter().chain(bad_ports).collect();
    for (driver, way) in
        [("uring", "location"), ("epoll", "location"), ("uring", "refresh"), ("epoll", "robots")]
    {
        let locations = targets.clone();
        let mut stage = Stage::with_robots(move |asked| {
            let location = &locations[asked.name()[1..].trim_end_matches(".test").parse::<usize>().unwrap()];
            match (asked.target.as_str(), way) {
                ("/robots.txt", "robots") => to(location),
                ("/robots.txt", _) => Reply::status("404 Not Found"),
                (_, "refresh") => refresh(&format!("0;url={location}")),
                _ => to(location),
            }
        });
        let seeds: Vec<String> = (0..targets.len()).map(|n| stage.url(&format!("r{n}.test"), "/")).collect();
        let usual = stage.command(&seeds);
        let mut command = nephila();
        // All that is usual, but another network.
        command.args(
            usual
                .get_args()
                .map(|arg| if arg == "127.0.0.0/8" { "127.60.0.0/16".into() } else { arg.to_os_string() }),
        );
        command.args(["--driver", driver, "--scope", "any", "--dns", &names.flag()]);
        let report = Running::start(&mut command).wait(PATIENCE).ended().json();
        check_report(&report);
        assert!(canary.accept().is_err(), "{way}, {driver}: a connection to 127.0.0.1");
        assert!(
            canary_v6
                .as_ref()
                .is_none_or(|canary| canary.set_nonblocking(true).is_ok() && canary.accept().is_err())
        );
        if way != "robots" {
            let blocked = result_count(&report, "blocked_address");
            let one_each: std::collections::BTreeSet<_> =
                stage.stored().into_values().filter_map(|l| l.new_url).collect();
            assert_eq!(blocked, one_each.len() as u64, "{way}, {driver}: {one_each:?} {report}");
            assert!(one_each.len() >= 12, "{one_each:?}");
            assert_eq!(stage.stored().len(), targets.len(), "{way}, {driver}: {report}");
        }
    }
}
