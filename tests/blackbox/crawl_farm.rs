//! The promise: every document of a web that misbehaves in all the usual ways is stored once and byte for byte,
//! everything else leaves the record that says what went wrong, and what robots.txt denies is never asked for,
//! with either driver, on one core and on two.

use crate::support::*;
use nephila::farm::{Breakage, PageKind, Site, SiteSpec, host_addr};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// What the store must say of a page.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    result: &'static str,
    http_status: Option<u16>,
    success: bool,
    new_url: Option<String>,
    bytes: u64,
    sha1: String,
    ip: String,
}

impl Expected {
    fn of(listed: &Listed) -> Expected {
        let known = ["ok", "redirect", "http_error", "truncated", "malformed", "empty", "reset"];
        Expected {
            result: known.into_iter().find(|name| *name == listed.result).unwrap_or("another"),
            http_status: listed.http_status,
            success: listed.success,
            new_url: listed.new_url.clone(),
            bytes: listed.bytes,
            sha1: listed.sha1.clone(),
            ip: listed.ip.clone(),
        }
    }
}

/// A web with every kind of page. A 503 makes its host wait, so no host has more than one of them.
fn varied_spec() -> SiteSpec {
    let spec = SiteSpec {
        hosts: 8,
        pages: 60,
        page_bytes: 6_000,
        links: 10,
        redirects: 0.12,
        errors: 0.08,
        broken: 0.15,
        chunked: 0.4,
        denied: 3,
        ..SiteSpec::default()
    };
    let suits = |seed: &u64| {
        let spec = SiteSpec { seed: *seed, ..spec.clone() };
        let site = Site::new(spec.clone()).unwrap();
        let pages = |host| (0..spec.pages).map(move |page| (host, page));
        let kinds: BTreeSet<String> = (0..spec.hosts)
            .flat_map(pages)
            .map(|(host, page)| match site.kind(host, page) {
                PageKind::Redirect { .. } => "redirect".to_string(),
                kind => format!("{kind:?}"),
            })
            .collect();
        let refusals = |host| {
            pages(host)
                .filter(|&(host, page)| site.kind(host, page) == PageKind::Error { status: 503 })
                .count()
        };
        // Documents, redirects, four statuses and four breakages.
        kinds.len() == 10 && (0..spec.hosts).all(|host| refusals(host) <= 1)
    };
    let seed = (1..).find(suits).unwrap();
    SiteSpec { seed, ..spec }
}

fn expected(farm: &Farm) -> BTreeMap<String, Expected> {
    let site = &farm.site;
    let mut expected = BTreeMap::new();
    for host in 0..site.spec().hosts {
        for page in 0..site.spec().pages {
            let url = farm.url(host, page);
            let target = url.split_once(&format!(":{}", farm.port)).unwrap().1.to_string();
            let mut answer = Vec::new();
            site.answer(host, target.as_bytes(), farm.port, false, &mut answer);
            let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            let raw_body = head_end.map_or(&[][..], |at| &answer[at..]);
            let raw_status = || std::str::from_utf8(&answer[9..12]).unwrap().parse().ok();
            let (result, http_status, body) = match site.kind(host, page) {
                PageKind::Document | PageKind::Slow => {
                    ("ok", Some(200), site.document(host, page, farm.port))
                }
                PageKind::Redirect { .. } => ("redirect", raw_status(), raw_body.to_vec()),
                PageKind::Error { status } => ("http_error", Some(status), raw_body.to_vec()),
                PageKind::Broken(Breakage::Reset) => ("reset", None, Vec::new()),
                PageKind::Broken(Breakage::Truncated) => ("truncated", Some(200), raw_body.to_vec()),
                PageKind::Broken(Breakage::BadStatusLine) => ("malformed", None, Vec::new()),
                // What came before the malformed chunk is kept.
                PageKind::Broken(Breakage::BadChunk) => {
                    ("malformed", Some(200), b"<!doctype html>\n".to_vec())
                }
            };
            let new_url = match site.kind(host, page) {
                PageKind::Redirect { to } => Some(farm.url(host, to)),
                _ => None,
            };
            let page = Expected {
                result,
                http_status,
                success: result == "ok",
                new_url,
                bytes: body.len() as u64,
                sha1: sha1_hex(&body),
                ip: host_addr(host).to_string(),
            };
            expected.insert(url, page);
        }
    }
    expected
}

#[track_caller]
fn crawl_all(driver: &str, cores: &str) {
    let farm = Farm::start(varied_spec());
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut flags = farm.flags();
    flags.extend(["--driver", driver, "--cores", cores].map(str::to_string));
    let (report, run) = crawl(&data, &flags);

    let stored = stored(&data);
    let expected = expected(&farm);
    for (url, page) in &expected {
        let listed = stored.get(url).unwrap_or_else(|| panic!("not stored: {url}, {page:?}"));
        assert_eq!(&Expected::of(listed), page, "{listed:?}");
        assert!(listed.doc_id > 0 && listed.flags.is_empty(), "{listed:?}");
    }
    assert_eq!(stored.len(), expected.len(), "nothing else is stored");
    let doc_ids: BTreeSet<u32> = stored.values().map(|listed| listed.doc_id).collect();
    assert_eq!(doc_ids.len(), stored.len(), "a doc_id names one document");

    // `store ls` without --all has each URL once, too.
    let newest = run_store_ls(&data);
    assert_eq!(newest, stored.keys().cloned().collect::<BTreeSet<_>>());

    let spec = farm.site.spec();
    let sample = (0..spec.hosts).map(|host| (host, host * 7 % spec.pages)).chain([(0, 0)]);
    for (host, page) in sample {
        let url = farm.url(host, page);
        if expected[&url].success {
            assert!(cat(&data, &url) == farm.site.document(host, page, farm.port), "{url}");
        }
    }
    let cut = expected.iter().find(|(_, page)| page.result == "truncated").unwrap();
    assert_eq!(sha1_hex(&cat(&data, cut.0)), cut.1.sha1, "what came is kept");

    let count = |result: &str| expected.values().filter(|page| page.result == result).count() as u64;
    let denied = u64::from(spec.hosts) * u64::from(spec.denied);
    for result in ["ok", "redirect", "http_error", "truncated", "malformed", "reset"] {
        assert_eq!(result_count(&report, result), count(result), "{result} in {report}");
    }
    assert_eq!(result_count(&report, "robots_denied"), denied);
    assert_eq!(report["results"].as_object().unwrap().len(), 7, "no other results: {report}");
    assert_eq!(report["pages"], expected.len());
    assert_eq!(report["success"], count("ok"));
    // What a server broke off or could not serve is tried again another time.
    assert_eq!(report["pending"], report["waiting"]);
    assert_eq!(report["known"], expected.len() as u64 + denied);
    assert_eq!(report["driver"], driver);
    let cores: Vec<usize> = cores.split(',').map(|core| core.parse().unwrap()).collect();
    assert_eq!(report["cores"], json!(cores));
    assert_eq!(report["shard_restarts"], 0);
    let documents: u64 = expected.values().map(|page| page.bytes).sum();
    assert!(report["bytes"].as_u64().unwrap() >= documents, "{report}");
    assert!(run.stderr.contains(&format!("driver: {driver}")), "{}", run.stderr);

    let stats = farm.stats();
    assert_eq!(stats["denied_requests"], 0, "{stats}");
    // One robots.txt per host, one request per page, and a second one where a kept connection died.
    let resets = count("reset") + count("truncated") + count("malformed");
    let requests = stats["requests"].as_u64().unwrap();
    let least = expected.len() as u64 + u64::from(spec.hosts);
    assert!((least..=least + resets).contains(&requests), "{least} + {resets}: {stats}");
}

fn run_store_ls(data: &std::path::Path) -> BTreeSet<String> {
    let run = run(["store", "ls", "--json", "--data", data.to_str().unwrap()]).done();
    let lines = run.json_lines();
    let urls: BTreeSet<String> = lines.iter().map(|line| line["url"].as_str().unwrap().to_string()).collect();
    assert_eq!(urls.len(), lines.len());
    urls
}

#[test]
fn uring_on_one_core() {
    crawl_all("uring", "0");
}

#[test]
fn uring_on_two_cores() {
    crawl_all("uring", "0,1");
}

#[test]
fn epoll_on_one_core() {
    crawl_all("epoll", "0");
}

#[test]
fn epoll_on_two_cores() {
    crawl_all("epoll", "0,1");
}

#[test]
fn both_drivers_store_the_same() {
    let farm = Farm::start(SiteSpec {
        hosts: 20,
        pages: 30,
        redirects: 0.1,
        errors: 0.0,
        broken: 0.1,
        chunked: 0.5,
        ..SiteSpec::default()
    });
    let dir = TempDir::new();
    let [uring, epoll] = DRIVERS.map(|driver| {
        let data = dir.join(driver);
        let mut flags = farm.flags();
        flags.extend(["--driver", driver, "--cores", "0,1"].map(str::to_string));
        crawl(&data, &flags);
        let pages = stored(&data).into_values();
        pages.map(|page| (page.url, page.result, page.sha1)).collect::<BTreeSet<_>>()
    });
    assert_eq!(uring.len(), 600);
    assert!(uring == epoll, "{:#?}", uring.symmetric_difference(&epoll).collect::<Vec<_>>());
}

/// More hosts than queues, more pages than a queue holds, fewer connections than hosts, segments that hold a few
/// dozen pages: everything is had all the same.
#[test]
fn small_tables_lose_nothing() {
    let farm = Farm::start(SiteSpec { hosts: 40, pages: 40, page_bytes: 8_000, ..SiteSpec::default() });
    let settings = [
        "[url_server]\nqueue_count = 3\nqueue_len = 2\n",
        "[spider]\nfetches_max = 2\n",
        "[spider]\nmax_doc_size = 10000\n[store]\nsegment_bytes = 300000\n",
    ];
    for (number, settings) in settings.into_iter().enumerate() {
        for driver in DRIVERS {
            let dir = TempDir::new();
            let data = dir.join("data");
            let config = dir.write("c.toml", settings);
            let mut flags = farm.flags();
            let config = config.to_str().unwrap();
            flags.extend(["--config", config, "--driver", driver, "--cores", "0,1"].map(str::to_string));
            let (report, _) = crawl(&data, &flags);
            assert_eq!((&report["success"], &report["pending"]), (&json!(1_600), &json!(0)), "{settings}");
            let stored = stored(&data);
            assert_eq!(stored.len(), 1_600, "{settings}");
            for (host, page) in (0..40).map(|host| (host, host * 3 % 40)) {
                let listed = &stored[&farm.url(host, page)];
                assert_eq!(listed.sha1, sha1_hex(&farm.site.document(host, page, farm.port)), "{listed:?}");
            }
            if number == 2 {
                let segments = std::fs::read_dir(data.join("segments")).unwrap().count();
                assert!(segments > 5, "{segments} segments");
            }
        }
    }
    assert_eq!(farm.stats()["denied_requests"], 0);
}

/// One page with more links to its host than a queue holds, by far.
#[test]
fn one_page_with_thousands_of_links() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links((0..3_000).map(|page| format!("/{page}"))),
        target => Reply::text(target),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let (report, _) = crawl(&data, [&server.url("/"), "--req-host-per-sec", "0", "--cores", "0,1"]);
    assert_eq!(report["success"], 3_001);
    let stored = stored(&data);
    assert!(
        (0..3_000)
            .all(|page| stored[&server.url(&format!("/{page}"))].sha1
                == sha1_hex(format!("/{page}").as_bytes()))
    );
}

/// A server that says `Connection: close` every time, and one whose documents are larger than any buffer.
#[test]
fn closed_connections_and_large_documents() {
    for (close, page_bytes) in [(true, 3_000), (false, 900_000)] {
        let farm = Farm::start(SiteSpec {
            hosts: 3,
            pages: 8,
            page_bytes,
            close,
            chunked: 0.5,
            ..SiteSpec::default()
        });
        let dir = TempDir::new();
        for driver in DRIVERS {
            let data = dir.join(driver);
            let mut flags = farm.flags();
            flags.extend(["--driver", driver].map(str::to_string));
            crawl(&data, &flags);
            let stored = stored(&data);
            assert_eq!(stored.len(), 24);
            for (host, page) in (0..3).flat_map(|host| (0..8).map(move |page| (host, page))) {
                let listed = &stored[&farm.url(host, page)];
                assert_eq!(listed.sha1, sha1_hex(&farm.site.document(host, page, farm.port)), "{listed:?}");
                assert_eq!(listed.bytes, u64::from(page_bytes).max(listed.bytes));
            }
        }
    }
}
