//! The promise: what is exported is what was stored, by the word of tools that were not written here. warcio finds every
//! digest right, its payloads are the stored documents, cdxj-indexer writes our index byte for byte, pywb replays our
//! pages, py-wacz takes our package; and what is imported is what was exported.

use crate::stage::Stage;
use crate::support::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

// Judges ----------------------------------------------------------------------------------------------------

/// A program of the judges, which are made if need be.
#[track_caller]
fn judge(name: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut make = Command::new(root.join("tests/judges"));
    let made = Running::start(make.stdin(Stdio::null())).wait(Duration::from_secs(300));
    assert_eq!(made.status.code(), Some(0), "tests/judges: {}{}", made.text(), made.stderr);
    let mut command = Command::new(root.join("target/judges/bin").join(name));
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn judged(command: &mut Command) -> Run {
    let run = Running::start(command).wait(PATIENCE);
    let end: String = run.text().chars().take(2_000).collect();
    assert_eq!(run.status.code(), Some(0), "{:?}: {end}\n{}", command.get_program(), run.stderr);
    run
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/scripts").join(name)
}

/// All records of files, as warcio reads them.
#[track_caller]
fn payloads(files: &[PathBuf]) -> Vec<Value> {
    judged(judge("python").arg(script("payloads.py")).args(files)).json_lines()
}

#[track_caller]
fn indexed(files: &[PathBuf]) -> String {
    judged(judge("cdxj-indexer").arg("--sort").args(files)).text()
}

#[track_caller]
fn ran<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Running::start(nephila().args(args)).wait(PATIENCE)
}

#[track_caller]
fn export(kind: &str, data: &Path, out: &Path, more: &[&str]) -> Value {
    let mut command = nephila();
    command.args(["export", kind, "--json", "--data"]).arg(data).arg("--out").arg(out).args(more);
    let run = Running::start(&mut command).wait(PATIENCE).done();
    assert_eq!(run.stderr, "", "nothing to say to a pipe");
    run.json()
}

#[track_caller]
fn import(files: &[&Path], data: &Path) -> Run {
    let mut command = nephila();
    command.args(["import", "warc", "--json", "--data"]).arg(data).args(files);
    Running::start(&mut command).wait(PATIENCE)
}

// A web of odd responses ------------------------------------------------------------------------------------

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

const PATHS: [&str; 15] = [
    "/",
    "/gz",
    "/chunked",
    "/moved",
    "/missing",
    "/empty",
    "/same",
    "/early",
    "/folded",
    "/notgzip",
    "/unknown",
    "/torn",
    "/hangup",
    "/bytes",
    "/q?b=2&A=1",
];

/// A crawl of it, twice, so that some of it has not changed.
fn odd_crawl() -> Stage {
    let mut stage = Stage::new(|asked| {
        let text = filling(&asked.target, 3_000);
        match asked.target.as_str() {
            "/" => Reply::links(PATHS),
            "/gz" => Reply::raw(coded("gzip", &gzip(text.as_bytes()))),
            "/chunked" => Reply::raw(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain; charset=x\r\n\r\n{:x}\r\n{text}\r\n0\r\n\r\n",
                text.len()
            )),
            "/moved" => Reply::redirect("/gz"),
            "/missing" => Reply::status("404 Not Found"),
            "/empty" => Reply::text(""),
            "/same" if asked.header("If-None-Match").is_some() => {
                Reply::raw("HTTP/1.1 304 Same\r\nETag: \"1\"\r\n\r\n")
            }
            "/same" => Reply::text(&text).with("ETag: \"1\"\r\n"),
            "/early" => Reply::raw(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            ),
            "/folded" => {
                Reply::raw("HTTP/1.1 200 OK\nX: a\n \n  b\nContent-Type:text/plain\nContent-Length:2\n\nok")
            }
            "/notgzip" => Reply::raw(coded("gzip", b"<p>no gzip at all</p>")),
            "/unknown" => Reply::raw(coded("sdch", b"who knows")),
            "/torn" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").then_close(),
            "/hangup" => Reply::hang_up(),
            "/bytes" => {
                let body: Vec<u8> = (0..20_000_u32).map(|at| ((at * at) >> 3) as u8).collect();
                let head = format!("HTTP/1.0 200\r\nContent-Length: {}\r\n\r\n", body.len());
                Reply::raw([head.as_bytes(), &body].concat()).then_close()
            }
            _ => Reply::html(&text),
        }
    });
    let url = stage.url("odd.test", "/");
    stage.crawl([url.as_str()]);
    let urls: Vec<String> = ["/same", "/gz"].map(|path| stage.url("odd.test", path)).to_vec();
    stage.crawl(&urls);
    stage
}

// WARC ------------------------------------------------------------------------------------------------------

#[test]
fn every_payload_is_the_stored_document() {
    let stage = odd_crawl();
    let stored = records(&stage.data);
    assert!(stored.len() >= PATHS.len() + 2, "{}", stored.len());
    for name in ["out.warc.gz", "out.warc"] {
        let out = stage.dir.join(name);
        let summary = export("warc", &stage.data, &out, &[]);
        judged(judge("warcio").arg("check").arg(&out));
        let read = payloads(std::slice::from_ref(&out));
        assert_eq!(summary["records"], read.len());
        assert_eq!(summary["bytes"], std::fs::metadata(&out).unwrap().len());
        let of = |kind: &str| read.iter().filter(|record| record["type"] == kind).collect::<Vec<_>>();
        assert_eq!(summary["responses"], of("response").len());
        assert_eq!(summary["left_out"], stored.iter().filter(|listed| listed.http_status.is_none()).count());
        let ids: BTreeSet<&str> = read.iter().map(|record| record["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), read.len(), "every id once");
        let info = read[0]["text"].as_str().unwrap();
        assert!(info.contains("robots: obey") && info.contains("no credentials"), "{info}");
        let answers: Vec<&Value> = read
            .iter()
            .filter(|record| ["response", "revisit"].contains(&record["type"].as_str().unwrap()))
            .collect();
        let expected: Vec<&Listed> = stored.iter().filter(|listed| listed.http_status.is_some()).collect();
        assert_eq!(answers.len(), expected.len());
        let requests: BTreeMap<&str, &Value> =
            of("request").into_iter().map(|record| (record["id"].as_str().unwrap(), record)).collect();
        assert_eq!(requests.len(), answers.len());
        for (answer, listed) in answers.iter().zip(&expected) {
            assert_eq!(answer["url"], listed.url);
            assert_eq!(answer["date"], listed.fetched_at, "{answer}");
            assert_eq!(answer["ip"], listed.ip);
            assert_eq!(answer["status"], listed.http_status.unwrap().to_string());
            let request = requests[answer["concurrent"].as_str().unwrap()];
            assert_eq!(request["concurrent"], answer["id"]);
            assert_eq!((&request["url"], &request["date"]), (&answer["url"], &answer["date"]));
            if listed.result == "not_modified" {
                assert!(answer["profile"].as_str().unwrap().ends_with("/server-not-modified"));
            } else if listed.flags.iter().any(|flag| flag == "reference") {
                assert!(answer["profile"].as_str().unwrap().ends_with("/identical-payload-digest"));
                let digest = answer["digest"].as_str().unwrap().trim_start_matches("sha1:");
                let original = of("response").into_iter().find(|response| {
                    response["digest"].as_str().is_some_and(|told| told.trim_start_matches("sha1:") == digest)
                });
                let original = original.unwrap_or_else(|| panic!("nothing has the payload of {answer}"));
                assert_eq!(original["sha1"], listed.sha1, "{answer}");
            } else {
                assert_eq!(
                    (&answer["type"], &answer["sha1"]),
                    (&"response".into(), &listed.sha1.clone().into())
                );
                let header = |name: &str| {
                    let headers = answer["headers"].as_array().unwrap();
                    let found =
                        headers.iter().find(|pair| pair[0].as_str().unwrap().eq_ignore_ascii_case(name));
                    found.map(|pair| pair[1].as_str().unwrap().to_string())
                };
                assert_eq!(header("Content-Length"), Some(listed.bytes.to_string()), "{answer}");
                assert_eq!(header("Transfer-Encoding"), None);
                let decoded = listed.flags.iter().any(|flag| flag == "decoded");
                assert_eq!(header("X-Archive-Orig-Content-Encoding").is_some(), decoded, "{answer}");
            }
            let truncated = (listed.result == "truncated").then_some("disconnect");
            assert_eq!(answer["truncated"].as_str(), truncated, "{listed:?}");
        }
        let page =
            requests.values().find(|request| request["url"].as_str().unwrap().contains("/q?")).unwrap();
        assert_eq!(page["request"], "GET /q?b=2&A=1 HTTP/1.1");
        assert!(!page["headers"].to_string().contains("If-None-Match"));
    }
}

#[test]
fn what_is_exported_comes_back_and_what_came_twice_is_a_revisit() {
    let stage = odd_crawl();
    let first = stage.dir.join("first.warc.gz");
    export("warc", &stage.data, &first, &[]);
    let twice = stage.dir.join("twice");
    // The second time nearly all of it is stored already.
    let said = import(&[&first, &first], &twice).done().json();
    let with_response = records(&stage.data).into_iter().filter(|listed| listed.http_status.is_some());
    let key = |listed: &Listed| {
        (listed.url.clone(), listed.http_status, listed.sha1.clone(), listed.fetched_at.clone())
    };
    let expected: Vec<_> = with_response.map(|listed| key(&listed)).collect();
    let back: Vec<_> = records(&twice).iter().map(key).collect();
    assert_eq!(said["records"], 2 * expected.len());
    assert_eq!(back, [&expected[..], &expected[..]].concat(), "the same twice, references or not");
    let out = stage.dir.join("twice.warc.gz");
    let summary = export("warc", &twice, &out, &[]);
    assert_eq!(summary["requests"], 0, "nobody knows how they were asked for");
    judged(judge("warcio").arg("check").arg(&out));
    let read = payloads(std::slice::from_ref(&out));
    let originals: BTreeMap<(String, String), String> = read
        .iter()
        .filter(|record| record["type"] == "response")
        .map(|record| ((record["url"].to_string(), record["date"].to_string()), record["digest"].to_string()))
        .collect();
    let same: Vec<&Value> = read
        .iter()
        .filter(|record| {
            record["profile"].as_str().is_some_and(|profile| profile.ends_with("/identical-payload-digest"))
        })
        .collect();
    assert!(same.len() >= 5, "{} of {}", same.len(), read.len());
    for revisit in &same {
        assert_eq!((&revisit["type"], &revisit["bytes"]), (&"revisit".into(), &0.into()));
        let refers = (revisit["refers_url"].to_string(), revisit["refers_date"].to_string());
        assert_eq!(originals.get(&refers), Some(&revisit["digest"].to_string()), "{revisit}");
    }
    let index = stage.dir.join("twice.cdxj");
    export("cdxj", &twice, &index, &[]);
    assert_eq!(std::fs::read_to_string(&index).unwrap(), indexed(std::slice::from_ref(&out)));
    let revisit = same.iter().find(|revisit| revisit["url"].as_str().unwrap().ends_with("/gz")).unwrap();
    let page = filling("/gz", 3_000);
    assert!(replayed(&stage, &out, revisit) == page.as_bytes(), "the replay of a revisit is the document");
}

/// What pywb shows for a record.
#[track_caller]
fn replayed(stage: &Stage, warc: &Path, record: &Value) -> Vec<u8> {
    let dir = stage.dir.join("pywb");
    std::fs::create_dir_all(&dir).unwrap();
    judged(judge("wb-manager").current_dir(&dir).args(["init", "coll"]));
    judged(judge("wb-manager").current_dir(&dir).args(["add", "coll"]).arg(warc));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut wayback =
        Running::start(judge("wayback").current_dir(&dir).args(["-b", "127.0.0.1", "-p", &port.to_string()]));
    let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    wait_for("pywb listens", PATIENCE, || {
        assert!(!wayback.has_ended(), "{}", wayback.stderr());
        std::net::TcpStream::connect(addr).ok()
    });
    let digits: String =
        record["date"].as_str().unwrap().chars().filter(char::is_ascii_digit).take(14).collect();
    let (head, body) = get(addr, &format!("/coll/{digits}id_/{}", record["url"].as_str().unwrap()));
    assert!(
        head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.0 200"),
        "{head}\n{}",
        wayback.stderr()
    );
    body
}

#[test]
fn a_replay_shows_the_stored_page() {
    let stage = odd_crawl();
    let out = stage.dir.join("out.warc.gz");
    export("warc", &stage.data, &out, &[]);
    let read = payloads(std::slice::from_ref(&out));
    let page = read
        .iter()
        .find(|record| record["type"] == "response" && record["url"].as_str().unwrap().ends_with("/chunked"))
        .unwrap();
    let body = replayed(&stage, &out, page);
    assert!(body == cat(&stage.data, page["url"].as_str().unwrap()), "{} bytes", body.len());
}

// CDXJ ------------------------------------------------------------------------------------------------------

#[test]
fn an_index_is_that_of_cdxj_indexer_byte_for_byte() {
    let stage = odd_crawl();
    let dir = &stage.dir;
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    export("warc", &stage.data, &dir.join("out.warc.gz"), &[]);
    let said = export("cdxj", &stage.data, &dir.join("out.cdxj"), &[]);
    let theirs = indexed(&[dir.join("out.warc.gz")]);
    assert_eq!(text("out.cdxj"), theirs);
    assert_eq!(said["lines"], theirs.lines().count());
    // The same of several files, and of a plain one that is there.
    let split = export("warc", &stage.data, &dir.join("s.warc.gz"), &["--size", "4000"]);
    export("cdxj", &stage.data, &dir.join("s.cdxj"), &["--size", "4000"]);
    let files: Vec<PathBuf> =
        split["files"].as_array().unwrap().iter().map(|file| PathBuf::from(file.as_str().unwrap())).collect();
    assert!(files.len() > 2 && files[1].ends_with("s-00002.warc.gz"), "{files:?}");
    assert_eq!(text("s.cdxj"), indexed(&files));
    export("warc", &stage.data, &dir.join("plain.warc"), &[]);
    let run = ran(["export", "cdxj", "--warc", dir.join("plain.warc").to_str().unwrap(), "--out"]
        .map(String::from)
        .into_iter()
        .chain([dir.join("plain.cdxj").to_str().unwrap().to_string()]));
    run.done();
    assert_eq!(text("plain.cdxj"), indexed(&[dir.join("plain.warc")]));
}

#[test]
fn an_index_of_odd_urls_is_theirs_too() {
    let dir = TempDir::new();
    for (name, seed) in [("odd.warc.gz", "1"), ("odd.warc", "2")] {
        let (warc, ours) = (dir.join(name), dir.join(&format!("{name}.cdxj")));
        judged(judge("python").arg(script("odd_warc.py")).arg(&warc).arg(seed));
        ran([Path::new("export"), Path::new("cdxj"), Path::new("--warc"), &warc, Path::new("--out"), &ours])
            .done();
        let (ours, theirs) = (std::fs::read_to_string(&ours).unwrap(), indexed(&[warc]));
        assert!(theirs.lines().count() > 1_000);
        let odd: Vec<(&str, &str)> =
            ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs).collect();
        assert!(ours == theirs, "{} lines differ: {:#?}", odd.len(), &odd[..odd.len().min(3)]);
    }
}

// WACZ ------------------------------------------------------------------------------------------------------

#[test]
fn a_package_is_taken_by_its_validator() {
    let stage = odd_crawl();
    let out = stage.dir.join("out.wacz");
    let said = export("wacz", &stage.data, &out, &[]);
    assert_eq!(said["bytes"], std::fs::metadata(&out).unwrap().len());
    judged(judge("wacz").args(["validate", "-f"]).arg(&out));
    judged(judge("python").args(["-m", "zipfile", "-t"]).arg(&out));
    let inside = stage.dir.join("inside");
    judged(judge("python").args(["-m", "zipfile", "-e"]).arg(&out).arg(&inside));
    let warc = inside.join("archive/data.warc.gz");
    judged(judge("warcio").arg("check").arg(&warc));
    let lines =
        judged(Command::new("gzip").arg("-dc").arg(inside.join("indexes/index.cdx.gz")).stdin(Stdio::null()));
    assert_eq!(lines.text(), indexed(&[warc]));
    let pages = std::fs::read_to_string(inside.join("pages/pages.jsonl")).unwrap();
    assert!(pages.lines().any(|page| page.contains("odd.test") && page.contains("/gz")), "{pages}");
    let first = std::fs::read(&out).unwrap();
    export("wacz", &stage.data, &out, &["--force"]);
    assert!(std::fs::read(&out).unwrap() == first, "the same data has the same bytes");
}

// Edges -----------------------------------------------------------------------------------------------------

#[test]
fn every_failure_has_its_status_and_says_why() {
    let dir = TempDir::new();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let mut warc = Vec::new();
    for at in 0..3 {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nn{at}");
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h.test/{at}\r\nWARC-Date: 2020-01-02T03:04:05Z\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        warc.extend_from_slice(&gzip(format!("{head}{block}\r\n\r\n").as_bytes()));
        if at == 0 {
            warc.extend_from_slice(b"this is no gzip");
        }
    }
    dir.write("torn.warc.gz", &warc);
    let run = ran(["import", "warc", "--json", "--data", &path("data"), &path("torn.warc.gz")]);
    assert_eq!(run.code(), 1, "{run:?}");
    let said = run.json();
    assert_eq!((&said["records"], &said["skipped"]), (&3.into(), &1.into()), "{said}");
    assert!(run.stderr.contains("torn.warc.gz: byte "), "{}", run.stderr);
    assert_eq!(cat(&dir.join("data"), "http://h.test/2"), b"n2");
    // A file that is there is not replaced, and the line says how it would be.
    dir.write("there.warc.gz", "precious");
    let run = ran(["export", "warc", "--data", &path("data"), "--out", &path("there.warc.gz")]);
    assert_eq!(run.code(), 2, "{run:?}");
    assert!(run.stderr.contains("--force") && run.stderr.lines().count() == 1, "{}", run.stderr);
    assert_eq!(std::fs::read(dir.join("there.warc.gz")).unwrap(), b"precious");
    ran(["export", "warc", "--force", "--data", &path("data"), "--out", &path("there.warc.gz")]).done();
    for (args, code) in [
        (vec!["export", "warc", "--data", "/nonexistent", "--out", "x.warc"], 3),
        (vec!["export", "warc", "--data", &path("data"), "--out", "/nonexistent/x.warc"], 3),
        (vec!["export", "warc", "--data", &path("data")], 2),
        (vec!["export", "warc", "--data", &path("data"), "--out", "x.warc", "--size", "0"], 2),
        (vec!["import", "warc", "--data", &path("data"), "/nonexistent.warc"], 3),
        (vec!["import", "warc", "--data", &path("data")], 2),
    ] {
        let run = ran(&args);
        assert_eq!(run.code(), code, "{args:?}: {run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}
