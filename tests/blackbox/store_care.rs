//! The promise: a store can be looked through, indexed anew, cut down and packed, by hand and by a crawl itself, and
//! everything that is to stay reads as before.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn stat(data: &Path) -> Value {
    store(&["stat", "--json"], data).done().json()
}

/// The newest record of each URL.
fn newest(data: &Path) -> BTreeMap<String, Listed> {
    let listed = store(&["ls", "--json"], data).done().json_lines().into_iter();
    let listed = listed.map(|line| serde_json::from_value::<Listed>(line).unwrap());
    let mut by_url = BTreeMap::new();
    for record in listed {
        assert_eq!(by_url.insert(record.url.clone(), record), None, "once");
    }
    by_url
}

/// Three pages that stay as they are, and one that is new each time its server is asked, without an ETag to tell.
fn changing() -> (LogServer, Arc<AtomicU32>) {
    let round = Arc::new(AtomicU32::new(0));
    let server = LogServer::start({
        let round = round.clone();
        move |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => Reply::links(["/same", "/also", "/new"]),
            "/same" => Reply::text(&filling("same", 2_000)),
            "/also" => Reply::text(&filling("also", 2_000)),
            "/new" => Reply::text(&filling(&format!("round {}", round.load(Ordering::Relaxed)), 2_000)),
            _ => Reply::status("404 Not Found"),
        }
    });
    (server, round)
}

fn crawl_rounds(data: &Path, server: &LogServer, round: &AtomicU32, rounds: u32, config: Option<&Path>) {
    for _ in 0..rounds {
        round.fetch_add(1, Ordering::Relaxed);
        let mut args = vec![server.url("/"), "--req-host-per-sec".into(), "0".into(), "--again".into()];
        if let Some(config) = config {
            args.extend(["--config".into(), config.display().to_string()]);
        }
        crawl(data, args);
    }
}

#[test]
fn a_page_fetched_again_unchanged_takes_no_room_and_reads_the_same() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 3, None);
    let all = records(&data);
    let of = |path: &str| all.iter().filter(|listed| listed.url == server.url(path)).collect::<Vec<_>>();
    for path in ["/", "/same", "/also"] {
        let flags: Vec<bool> =
            of(path).iter().map(|listed| listed.flags.iter().any(|flag| flag == "reference")).collect();
        assert_eq!(flags, [false, true, true], "{path}");
        let sha1s: Vec<&str> = of(path).iter().map(|listed| &*listed.sha1).collect();
        assert!(sha1s.iter().all(|sha1| *sha1 == sha1s[0]), "{path}: {sha1s:?}");
        assert!(of(path).iter().all(|listed| listed.bytes == of(path)[0].bytes));
    }
    assert!(of("/new").iter().all(|listed| listed.flags.is_empty()));
    assert_eq!(cat(&data, &server.url("/same")), filling("same", 2_000).into_bytes());
    assert_eq!(cat(&data, &server.url("/new")), filling("round 3", 2_000).into_bytes());
    assert_eq!(stat(&data)["references"], 6);
    assert_eq!(store(&["verify"], &data).done().text().lines().last(), Some("sound"));
}

#[test]
fn for_any_url_and_for_none_by_setting() {
    for (dedup, references) in [("any", 1), ("off", 0)] {
        let dir = TempDir::new();
        let data = dir.join("data");
        let config = dir.write("c.toml", format!("[store]\ndedup = \"{dedup}\"\ncommit_ms = 1\n"));
        let server = LogServer::start(|asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/a" => Reply::new("200 OK", "Content-Type: text/html\r\n", &same_page("/a")),
            "/b" => Reply::new("200 OK", "Content-Type: text/html\r\n", &same_page("/a")),
            _ => Reply::status("404 Not Found"),
        });
        let config = config.display().to_string();
        // The first is durable when its process has ended, however slow the disk is.
        for path in ["/a", "/b"] {
            crawl(&data, [&server.url(path), "--req-host-per-sec", "0", "--config", &config]);
        }
        assert_eq!(stat(&data)["references"], references, "{dedup}");
        for path in ["/a", "/b"] {
            assert_eq!(cat(&data, &server.url(path)), same_page("/a").into_bytes(), "{dedup} {path}");
        }
        store(&["verify"], &data).done();
    }
}

/// Pages of a site that has a frame: what they take is less, and everything else is as it was.
#[test]
fn pages_of_a_site_share_their_frame_unless_told_otherwise() {
    let frame = || (0..120).map(|n| format!("<li>{:x}</li>", 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n + 1)));
    let page = move |n: u32| {
        let links: String = (1..40).map(|link| format!("<a href=\"/{link}\">{link}</a>")).collect();
        format!("<html>{}{links}<p>{}</p></html>", frame().collect::<String>(), filling(&n.to_string(), 400))
    };
    let server = LogServer::start(move |asked| match asked.target.trim_start_matches('/').parse() {
        Ok(n) => Reply::new("200 OK", "Content-Type: text/html\r\n", &page(n)),
        Err(_) => Reply::status("404 Not Found"),
    });
    let dir = TempDir::new();
    let crawled = |name: &str, how: &[&str]| {
        let data = dir.join(name);
        crawl(&data, [&[server.url("/0").as_str(), "--req-host-per-sec", "0"], how].concat());
        assert_eq!(store(&["verify"], &data).done().text().lines().last(), Some("sound"));
        data
    };
    let (plain, template) = (crawled("plain", &["--compress", "plain"]), crawled("template", &[]));
    let bytes = [&plain, &template].map(|data| stat(data)["file_bytes"].as_u64().unwrap());
    assert!(bytes[1] * 2 < bytes[0], "{bytes:?}");
    for n in [0, 1, 20, 39] {
        assert_eq!(cat(&template, &server.url(&format!("/{n}"))), page(n).into_bytes(), "{n}");
    }
    // It is kept with the data, like every setting; and one that is none is named.
    let kept = run(["config", "show", "--data", plain.to_str().unwrap(), "compress"]).done().text();
    assert!(kept.contains("\"plain\""), "{kept}");
    let wrong =
        run(["crawl", "http://h.test/", "--compress", "zip", "--data", dir.join("x").to_str().unwrap()]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("plain, template"), "{}", wrong.stderr);
    // What is packed is compressed anew.
    store(&["repack"], &template).done();
    store(&["verify"], &template).done();
    assert_eq!(cat(&template, &server.url("/39")), page(39).into_bytes());
}

fn same_page(link: &str) -> String {
    format!("<a href=\"{link}\">on</a>{}", filling("same", 3_000))
}

#[test]
fn verify_tells_what_is_wrong_and_reindex_mends_indexes() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 1, None);
    let verified = store(&["verify", "--json"], &data).done().json();
    assert_eq!((&verified["sound"], &verified["records"]), (&Value::Bool(true), &Value::from(4)));
    let index = segments(&data, "idx").remove(0);
    let sound = std::fs::read(&index).unwrap();
    // An index that lies.
    let mut lying = sound.clone();
    let at = lying.len() - 30;
    lying[at] ^= 1;
    std::fs::remove_file(&index).unwrap();
    std::fs::write(&index, &lying).unwrap();
    let run = store(&["verify"], &data);
    assert_eq!(run.code(), 1);
    assert!(run.stderr.contains("reindex") && run.stderr.lines().count() == 1, "{}", run.stderr);
    store(&["reindex"], &data).done();
    store(&["verify"], &data).done();
    assert_eq!(std::fs::read(&index).unwrap(), sound, "made from the segment, and the same");
    // A segment that was cut between two records: its index knows that there was more.
    let segment = segments(&data, "seg").remove(0);
    let whole = std::fs::read(&segment).unwrap();
    let last = whole.chunks(8).rposition(|eight| eight.starts_with(b"NREC")).unwrap() * 8;
    std::fs::write(&segment, &whole[..last]).unwrap();
    let run = store(&["verify"], &data);
    assert!(run.code() == 1 && run.text().contains("damaged"), "{}", run.text());
    std::fs::write(&segment, &whole).unwrap();
    store(&["verify"], &data).done();
    // None at all: the store is read itself.
    std::fs::remove_file(&index).unwrap();
    assert_eq!(store(&["verify", "--json"], &data).done().json()["unindexed"], 1);
    assert_eq!(cat(&data, &server.url("/same")), filling("same", 2_000).into_bytes());
    // A damaged document.
    let segment = segments(&data, "seg").remove(0);
    let mut bytes = std::fs::read(&segment).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let run = store(&["verify"], &data);
    assert_eq!(run.code(), 1);
    assert!(
        run.text().contains("damaged") && run.stderr.contains("not sound"),
        "{}{}",
        run.text(),
        run.stderr
    );
}

#[test]
fn by_document_number() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 1, None);
    for listed in newest(&data).values() {
        let run = store(&["cat", "--doc-id", &listed.doc_id.to_string()], &data).done();
        assert_eq!(sha1_hex(&run.stdout), listed.sha1, "{}", listed.url);
    }
    let run = store(&["cat", "--doc-id", "77"], &data);
    assert_eq!((run.code(), run.stderr.lines().count()), (1, 1), "{}", run.stderr);
}

#[test]
fn old_segments_go_by_date_and_by_size() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 3, None);
    // Nothing is that old.
    let run = store(&["drop", "--before", "2020-01-01"], &data).done();
    assert!(run.text().starts_with("0 segments and 0 records"), "{}", run.text());
    // All but one segment: what the last round's references stand on stays.
    let before = newest(&data);
    let size = std::fs::metadata(segments(&data, "seg").last().unwrap()).unwrap().len();
    store(&["drop", "--to", &size.to_string()], &data).done();
    store(&["verify"], &data).done();
    let after = newest(&data);
    assert_eq!(after.len(), 4);
    for (url, listed) in &after {
        assert_eq!(listed.sha1, before[url].sha1, "{url}");
    }
    assert!(records(&data).len() < 12);
    // Everything is older than the far future.
    store(&["drop", "--before", "2100-01-01T00:00:00Z"], &data).done();
    assert_eq!(records(&data).len(), 0);
    assert!(segments(&data, "seg").is_empty() && segments(&data, "idx").is_empty());
    for args in
        [&["drop"][..], &["drop", "--before", "soon"], &["drop", "--before", "2026-01-01", "--to", "5"]]
    {
        assert_eq!(store(args, &data).code(), 2, "{args:?}");
    }
}

#[test]
fn packing_leaves_the_newest_of_each_url() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 4, None);
    let before = newest(&data);
    store(&["repack"], &data).done();
    store(&["verify"], &data).done();
    let after = newest(&data);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for (url, listed) in &after {
        assert_eq!((&listed.sha1, &listed.fetched_at), (&before[url].sha1, &before[url].fetched_at), "{url}");
    }
    let of = |path: &str| records(&data).into_iter().filter(|listed| listed.url == server.url(path)).count();
    assert_eq!(of("/new"), 1);
    assert_eq!(of("/same"), 2, "the newest is a reference, and what it stands on");
    // A crawl goes on from there.
    crawl_rounds(&data, &server, &round, 1, None);
    assert_eq!(cat(&data, &server.url("/new")), filling("round 5", 2_000).into_bytes());
    store(&["verify"], &data).done();
}

/// `bytes_max` and `history` are kept by the crawl that writes, while it writes.
#[test]
fn a_crawl_keeps_its_store_within_bounds() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let config = dir.write(
        "c.toml",
        "[spider]\nmax_doc_size = 65536\n[store]\nsegment_bytes = 524288\nbytes_max = 4194304\ncommit_ms = 2\ndedup = \"off\"\n",
    );
    let spec = nephila::farm::SiteSpec { hosts: 4, pages: 400, page_bytes: 10_000, ..Default::default() };
    let farm = Farm::start(spec);
    let mut args = farm.flags();
    args.extend(["--config".into(), config.display().to_string()]);
    let (report, _) = crawl(&data, &args);
    let whole = report["stored_bytes"].as_u64().unwrap();
    assert!(whole > 5_000_000, "there was more than it may keep: {whole}");
    let kept = stat(&data)["file_bytes"].as_u64().unwrap();
    assert!(kept <= 4_194_304, "{kept} bytes are kept");
    // While it runs, segments in use count at their full size: two a shard.
    assert!(kept > 500_000, "and no more went than had to: {kept}");
    store(&["verify"], &data).done();
}

#[test]
fn nothing_goes_from_under_a_crawl() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, round) = changing();
    crawl_rounds(&data, &server, &round, 1, None);
    let _held = nephila::store_server::DataDir::open(&data).unwrap();
    for args in [&["reindex"][..], &["repack"], &["drop", "--before", "2100-01-01"]] {
        let run = store(args, &data);
        assert_eq!((run.code(), run.stderr.lines().count()), (3, 1), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains("in use"), "{}", run.stderr);
    }
    assert_eq!(records(&data).len(), 4);
    // Reading is for everybody.
    for args in [&["verify"][..], &["ls"], &["stat"]] {
        store(args, &data).done();
    }
}
