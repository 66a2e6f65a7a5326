//! The promise: what goes out of a store and into another is what it was: the same results, and as old as it is, in
//! whatever order it came in. What cannot be told in a WARC's own words is told beside them.

use crate::stage::Stage;
use crate::storeserver::{self, Sent};
use crate::support::*;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

#[track_caller]
fn ran<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Running::start(nephila().args(args)).wait(PATIENCE).done()
}

#[track_caller]
fn import(data: &Path, files: &[&Path]) {
    let mut command = nephila();
    Running::start(command.args(["import", "warc", "--data"]).arg(data).args(files)).wait(PATIENCE).done();
}

#[track_caller]
fn export(kind: &str, data: &Path, out: &Path, more: &[&str]) {
    let mut command = nephila();
    command.args(["export", kind, "--data"]).arg(data).arg("--out").arg(out).args(more);
    Running::start(&mut command).wait(PATIENCE).done();
}

/// A WARC of one response, or of an answer that nothing has changed.
fn warc(dir: &TempDir, date: &str, body: Option<&str>) -> PathBuf {
    let (kind, more, block) = match body {
        Some(body) => {
            let length = body.len();
            ("response", "", format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"))
        }
        None => (
            "revisit",
            "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n",
            "HTTP/1.1 304 Same\r\n\r\n".to_string(),
        ),
    };
    let length = block.len();
    let text = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.test/\r\nWARC-Date: {date}\r\n{more}Content-Type: application/http;msgtype=response\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
    );
    dir.write(&format!("{date}.warc"), text)
}

/// The newest of imported records is the latest, in whatever order they come, also of several imports.
#[test]
fn the_newest_record_is_the_latest_and_not_the_last_imported() {
    let dir = TempDir::new();
    let old = warc(&dir, "2020-01-01T00:00:00Z", Some("old"));
    let new = warc(&dir, "2024-01-01T00:00:00Z", Some("new"));
    let same = warc(&dir, "2022-01-01T00:00:00Z", None);
    let newest = |data: &Path, date: &str, body: &[u8]| {
        let listed = store(&["ls", "--json"], data).done().json();
        assert_eq!(listed["fetched_at"], date, "{}: {listed}", data.display());
        assert_eq!(cat(data, "http://a.test/"), body, "{}", data.display());
        let out = data.with_extension("cdxj");
        export("cdxj", data, &out, &["--newest", "--force"]);
        let lines = std::fs::read_to_string(&out).unwrap();
        assert_eq!(lines.lines().count(), 1, "{lines}");
        lines
    };
    let new_at = "2024-01-01T00:00:00.000Z";
    for (name, imports) in [
        ("in-order", &[&[&*old][..], &[&new]][..]),
        ("newer-first", &[&[&*new], &[&old]]),
        ("in-one", &[&[&*new, &old]]),
        ("with-a-304", &[&[&*new], &[&same], &[&old]]),
    ] {
        let data = dir.join(name);
        for files in imports {
            import(&data, files);
        }
        assert!(newest(&data, new_at, b"new").contains("20240101"));
        // Packing keeps the latest; indexes that are made anew say the same.
        ran(["store", "reindex", "--data", data.to_str().unwrap()]);
        assert!(newest(&data, new_at, b"new").contains("20240101"));
        ran(["store", "repack", "--data", data.to_str().unwrap()]);
        assert!(newest(&data, new_at, b"new").contains("20240101"));
        assert_eq!(records(&data).len(), 1, "{name}");
        ran(["store", "verify", "--data", data.to_str().unwrap()]);
    }
    // A 304 stands for the document before it, not for one that was imported after it.
    let data = dir.join("unchanged");
    for files in [[&*same], [&old]] {
        import(&data, &files);
    }
    for _ in 0..2 {
        assert!(newest(&data, "2022-01-01T00:00:00.000Z", b"old").contains("20200101"));
        ran(["store", "repack", "--data", data.to_str().unwrap()]);
        assert_eq!(records(&data).len(), 2, "the document that the 304 stands for stays");
    }
    // What is fetched today is newer than any of it, before it or after it.
    let mut stage = Stage::new(|_| Reply::text("fetched"));
    let url = stage.url("a.test", "/");
    import(&stage.data, &[&warc_of(&dir, &url, "2024-01-01T00:00:00Z")]);
    stage.crawl([&*url]);
    import(&stage.data, &[&warc_of(&dir, &url, "2020-01-01T00:00:00Z")]);
    assert_eq!(cat(&stage.data, &url), b"fetched");
    ran(["store", "repack", "--data", stage.data.to_str().unwrap()]);
    assert_eq!(cat(&stage.data, &url), b"fetched");
    assert_eq!(records(&stage.data).len(), 1);
}

fn warc_of(dir: &TempDir, url: &str, date: &str) -> PathBuf {
    let text = std::fs::read_to_string(warc(dir, date, Some(date))).unwrap();
    dir.write(&format!("of-{date}.warc"), text.replace("http://a.test/", url))
}

/// Results and flags come back, also those that a WARC has no word for.
#[test]
fn results_come_back() {
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let coded = move |body: &[u8]| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n");
        Reply::raw([head.as_bytes(), body].concat())
    };
    const PATHS: [&str; 9] =
        ["/half", "/none", "/text", "/chunk", "/torn", "/part", "/missing", "/moved", "/slow"];
    let mut stage = Stage::new(move |asked| {
        let text = filling(&asked.target, 4_000);
        let whole = gzip(&text);
        match asked.target.as_str() {
            "/" => Reply::links(PATHS).into(),
            // Broken in the middle, from the start, and no gzip at all.
            "/half" => coded(&[&whole[..2_000], &[0xff; 500][..]].concat()).into(),
            "/none" => coded(&[0x1f; 400]).into(),
            "/text" => coded(b"text all the same").into(),
            "/chunk" => {
                Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\nzz\r\n")
                    .then_close()
                    .into()
            }
            "/torn" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc").then_close().into(),
            "/part" => Reply::new("206 Partial Content", "Content-Range: bytes 0-3/100\r\n", "part").into(),
            "/missing" => Reply::status("404 Not Found").into(),
            "/moved" => Reply::redirect("/part").into(),
            "/slow" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc").later(60_000, "x"),
            _ => Reply::text("x").into(),
        }
    });
    let url = stage.url("a.test", "/");
    stage.settings("[spider]\ntimeout_read = 500\n");
    stage.crawl([&*url]);
    let told = |data: &Path| -> BTreeMap<String, (String, bool, Vec<String>, String)> {
        let of = |listed: Listed| (listed.result, listed.success, listed.flags, listed.sha1);
        stored(data).into_iter().map(|(url, listed)| (url, of(listed))).collect()
    };
    let before = told(&stage.data);
    let result = |path: &str| &*before[&format!("{}{path}", url.trim_end_matches('/'))].0;
    assert_eq!(["/half", "/none", "/text"].map(result), ["decode_failed"; 3]);
    assert_eq!(["/chunk", "/torn", "/slow"].map(result), ["malformed", "truncated", "read_timeout"]);
    assert_eq!(before.len(), PATHS.len() + 1);
    let part = &before[&format!("{url}part")];
    assert_eq!((&*part.0, part.1, &part.2[..]), ("ok", true, &["partial".to_string()][..]), "{part:?}");
    let (out, back) = (stage.dir.join("out.warc.gz"), stage.dir.join("back"));
    export("warc", &stage.data, &out, &[]);
    import(&back, &[&out]);
    assert_eq!(told(&back), before);
}

/// Nothing of a file makes a failure a success.
#[test]
fn what_a_file_says_of_results_is_taken_for_worse_only() {
    let dir = TempDir::new();
    for (n, (status, said, expected)) in [
        ("404 No", "ok", "http_error"),
        ("200 OK", "ok", "ok"),
        ("200 OK", "decode_failed", "decode_failed"),
        ("200 OK", "nonsense", "ok"),
        ("200 OK", "robots_denied", "ok"),
        ("302 To", "ok", "redirect"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = std::fs::read_to_string(warc(&dir, "2024-01-01T00:00:00Z", Some("x"))).unwrap();
        let text = text.replace("WARC-Date", &format!("Nephila-Result: {said}\r\nWARC-Date"));
        let file = dir.write("a.warc", text.replace("200 OK", status));
        let data = dir.join(&n.to_string());
        import(&data, &[&file]);
        assert_eq!(records(&data)[0].result, expected, "{status} and {said}");
    }
}

/// A status line may have tabs where spaces belong.
#[test]
fn a_status_between_tabs_is_in_the_index() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::links(["/tabs", "/both"]),
        "/tabs" => Reply::raw("HTTP/1.1\t200\tFine\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx"),
        _ => Reply::raw("HTTP/1.1 \t 200 \t Fine\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx"),
    });
    let url = stage.url("a.test", "/");
    stage.crawl([&*url]);
    let stored = stage.stored();
    let out = stage.dir.join("a.cdxj");
    export("cdxj", &stage.data, &out, &[]);
    let lines = std::fs::read_to_string(&out).unwrap();
    for path in ["tabs", "both"] {
        let Some(listed) = stored.get(&format!("{url}{path}")).filter(|listed| listed.success) else {
            assert_eq!(path, "both", "a head of tabs is taken");
            continue;
        };
        let line = lines.lines().find(|line| line.contains(&format!("/{path}\""))).unwrap();
        assert!(line.contains("\"status\": \"200\""), "{listed:?}: {line}");
    }
    // The same of a file of somebody else.
    let warc = stage.dir.join("a.warc");
    export("warc", &stage.data, &warc, &[]);
    let other = stage.dir.join("other.cdxj");
    let mut command = nephila();
    command.args(["export", "cdxj", "--warc"]).arg(&warc).arg("--out").arg(&other);
    Running::start(&mut command).wait(PATIENCE).done();
    let statuses = std::fs::read_to_string(&other).unwrap().matches("\"status\": \"200\"").count();
    assert_eq!(statuses, lines.matches("\"status\": \"200\"").count());
}

/// A store server's records are as old as their place: it stamps them itself.
#[test]
fn records_of_a_store_server_are_in_the_order_of_their_coming() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, addr) = storeserver::listening_on(&mut storeserver::command(&data), "127.0.0.1:0");
    let mut client = std::net::TcpStream::connect(addr).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for body in ["first", "second", "third"] {
        // Without a number and a time, as an import has none.
        let record = Sent { ms: 0, ..Sent::page(0, "http://a.test/", body) };
        client.write_all(&record.bytes()).unwrap();
        client.read_exact(&mut [0; 8]).unwrap();
    }
    drop(client);
    storeserver::stop(server);
    assert_eq!(cat(&data, "http://a.test/"), b"third");
}
