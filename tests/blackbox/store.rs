//! The promise: `store` shows what is there in the shapes that scripts rely on, says "no" with status 1, cannot
//! run with status 3, and does not mind a reader who has seen enough.

use crate::support::*;
use nephila::farm::SiteSpec;
use std::process::Stdio;
use std::time::SystemTime;

/// A small store: documents, a redirect, an error and an empty page.
fn filled() -> (TempDir, LogServer) {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/a", "/moved", "/gone", "/empty"]),
        "/a" => Reply::new("200 OK", "X-Mine: yes\r\nContent-Type: text/plain\r\n", "one document\n"),
        "/moved" => Reply::new("301 Moved Permanently", "Location: /a?b=c#d\r\n", ""),
        "/gone" => Reply::status("410 Gone"),
        "/empty" => Reply::new("204 No Content", "", ""),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    crawl(&dir.join("data"), [&server.url("/"), "--req-host-per-sec", "0"]);
    (dir, server)
}

#[test]
fn ls_tells_everything_of_a_record() {
    let (dir, server) = filled();
    let stored = stored(&dir.join("data"));
    assert_eq!(stored.len(), 6, "{stored:?}");
    let of = |path: &str| &stored[&server.url(path)];
    let facts = |path: &str| {
        let listed = of(path);
        (&*listed.result, listed.http_status, listed.success, listed.bytes)
    };
    assert_eq!(facts("/a"), ("ok", Some(200), true, 13));
    assert_eq!(of("/a").sha1, sha1_hex(b"one document\n"));
    assert_eq!(facts("/moved"), ("redirect", Some(301), false, 0));
    assert_eq!(of("/moved").new_url, Some(server.url("/a?b=c")), "without its fragment");
    assert_eq!(facts("/gone"), ("http_error", Some(410), false, 3));
    assert_eq!(facts("/empty"), ("ok", Some(204), true, 0));
    assert_eq!(of("/empty").sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for listed in stored.values() {
        assert_eq!(listed.ip, "127.0.0.1");
        let at = unix_seconds(&listed.fetched_at);
        assert!((now - 120..=now).contains(&at), "{} is not now", listed.fetched_at);
    }
}

/// Seconds since 1970 of `2026-01-31T23:59:59.123Z`.
#[track_caller]
fn unix_seconds(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert!(shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z'), "{text} is RFC 3339 in UTC");
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = |year: u64| {
        u64::from(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)))
    };
    let days: u64 = (1970..year).map(|year| 365 + leap(year)).sum();
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = days + lengths[..month as usize - 1].iter().sum::<u64>() + day - 1;
    days * 86_400 + number(11, 13) * 3_600 + number(14, 16) * 60 + number(17, 19)
}

#[test]
fn ls_for_people_is_plain_in_a_pipe() {
    let (dir, server) = filled();
    let run = store(&["ls"], &dir.join("data")).done();
    let text = run.text();
    assert_eq!(text.lines().count(), 6);
    assert!(!text.contains('\u{1b}'));
    let line = text.lines().find(|line| line.ends_with(&server.url("/gone"))).unwrap();
    assert!(line.contains("http_error") && line.contains("410"), "{line}");
}

#[test]
fn cat_writes_the_document_and_nothing_else() {
    let (dir, server) = filled();
    let data = dir.join("data");
    assert_eq!(cat(&data, &server.url("/a")), b"one document\n");
    assert_eq!(cat(&data, &format!("HTTP://127.0.0.1:{}/x/../a#y", server.port())), b"one document\n");
    assert_eq!(cat(&data, &server.url("/empty")), b"");
    let run = store(&["cat", "--head", &server.url("/a")], &data).done();
    let text = run.text();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\nX-Mine: yes\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\none document\n"), "{text}");
}

#[test]
fn what_is_not_there_is_a_no() {
    let (dir, server) = filled();
    for url in [&server.url("/unknown"), "http://else.test/", "no url at all", ""] {
        let run = store(&["cat", url], &dir.join("data"));
        assert_eq!(run.code(), 1, "{url}: {}", run.stderr);
        assert_eq!((run.text().as_str(), run.stderr.lines().count()), ("", 1), "{}", run.stderr);
    }
}

#[test]
fn a_store_that_is_not_there() {
    let dir = TempDir::new();
    let file = dir.write("file", "");
    for path in [dir.join("missing"), file, dir.path().to_path_buf()] {
        for args in [&["ls"][..], &["ls", "--json"], &["stat"], &["cat", "http://a.test/"]] {
            let run = store(args, &path);
            assert_eq!(run.code(), 3, "{args:?}: {}", run.stderr);
            assert_eq!((run.text().as_str(), run.stderr.lines().count()), ("", 1), "{}", run.stderr);
            assert!(
                run.stderr.contains(path.to_str().unwrap()) && run.stderr.contains("--data"),
                "{}",
                run.stderr
            );
        }
        assert!(!dir.join("missing").exists(), "looking makes nothing");
    }
}

#[test]
fn stat_counts_what_ls_lists() {
    let (dir, _server) = filled();
    let data = dir.join("data");
    let stat = store(&["stat", "--json"], &data).done().json();
    let records = records(&data);
    assert_eq!(stat["records"], records.len());
    assert_eq!(stat["urls"], records.len());
    assert_eq!(stat["document_bytes"], records.iter().map(|record| record.bytes).sum::<u64>());
    for name in ["ok", "redirect", "http_error"] {
        assert_eq!(
            stat["results"][name],
            records.iter().filter(|record| record.result == name).count(),
            "{stat}"
        );
    }
    assert!(store(&["stat"], &data).done().text().contains("redirect"));
}

/// Scripts translate codes by this table: names and values stay as they are.
#[test]
fn codes_are_a_table() {
    let text = run(["store", "codes"]).done().text();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 3 && row[1].parse::<u8>().is_ok()), "{text}");
    for row in [
        "result 1 ok",
        "result 2 redirect",
        "result 4 http_error",
        "result 6 truncated",
        "result 34 robots_denied",
    ] {
        assert!(text.lines().any(|line| line == row), "{row} in\n{text}");
    }
    let mut keys: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "a value names one thing");
}

/// `… | head -1`: whoever reads has seen enough. No panic, no complaint.
#[test]
fn a_reader_who_has_seen_enough() {
    let farm = Farm::start(SiteSpec { hosts: 10, pages: 100, page_bytes: 1_000, ..SiteSpec::default() });
    let dir = TempDir::new();
    let data = dir.join("data");
    crawl(&data, farm.flags());
    for args in ["ls", "ls --json", "ls --all", "stat", "stat --json", "codes"] {
        let program = env!("CARGO_BIN_EXE_nephila");
        let data_flag = if args == "codes" { String::new() } else { format!("--data {}", data.display()) };
        let script = format!("{program} store {args} {data_flag} | head -1");
        let run = Running::start(std::process::Command::new("sh").args(["-c", &script])).wait(PATIENCE);
        assert_eq!((run.code(), run.stderr.as_str(), run.text().lines().count()), (0, "", 1), "{args}");

        // Nobody reads from the start.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = nephila();
        command.arg("store").args(args.split(' '));
        if args != "codes" {
            command.arg("--data").arg(&data);
        }
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "store {args}: {stderr}");
    }
}

/// A full disk is not a reader who has seen enough.
#[test]
fn output_that_cannot_be_written_is_said() {
    let (dir, server) = filled();
    for args in [vec!["ls"], vec!["ls", "--json"], vec!["cat", &server.url("/a")], vec!["stat"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = nephila();
        command.arg("store").args(&args).arg("--data").arg(dir.join("data"));
        let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(3), 1), "{args:?}: {stderr}");
    }
}

/// A byte that flips in a sealed segment is noticed: the answer is no, and everything else is shown.
#[test]
fn damage_is_noticed() {
    let (dir, _server) = filled();
    let data = dir.join("data");
    let segment = segments(&data, "seg").remove(0);
    let whole = std::fs::read(&segment).unwrap();
    let mut damaged = whole.clone();
    let last = damaged.len() - 20;
    damaged[last] ^= 1;
    std::fs::write(&segment, &damaged).unwrap();
    let run = store(&["ls", "--json"], &data);
    assert_eq!(run.code(), 1, "{}", run.stderr);
    assert_eq!(run.json_lines().len(), 5, "all but the last");
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    // Cut short, it is damaged too.
    std::fs::write(&segment, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(store(&["ls"], &data).code(), 1);
    std::fs::write(&segment, &whole).unwrap();
    assert_eq!(store(&["ls"], &data).code(), 0);
}
