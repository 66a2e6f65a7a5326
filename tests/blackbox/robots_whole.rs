//! The promise: robots.txt is read to 500 KiB of its text, whatever documents may take and however it comes, by `crawl` and
//! by `urlserver`. An audit finds the log of a crawl that read less.

use crate::link::Link;
use crate::stage::Stage;
use crate::support::*;
use crate::urlserver;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const BOUND: usize = nephila::proto::robots::ROBOTS_BYTES_MAX;

/// A rule behind this much of nothing.
fn late(bytes: usize) -> String {
    let mut text = "User-agent: *\n".to_string();
    while text.len() < bytes {
        text += "# filler filler filler filler filler filler filler\n";
    }
    text + "Disallow: /no\n"
}

/// Rules that end at the bound, a line that the bound cuts, and more behind it.
fn too_long() -> String {
    let (head, last) = ("User-agent: *\n#", "\nDisallow: /no\n");
    let filler = "x".repeat(BOUND - head.len() - last.len() - 12);
    let text = format!("{head}{filler}{last}Disallow: /y");
    assert_eq!(text.len(), BOUND);
    format!("{text}xx\nDisallow: /\n{}", late(BOUND))
}

fn gzip(plain: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zipped(plain: &str) -> Reply {
    let body = gzip(plain);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    Reply::raw([head.as_bytes(), &body].concat())
}

/// How robots.txt comes, by the first label of the host's name.
const HOSTS: [&str; 7] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6"];

fn web(asked: &Asked) -> Reply {
    match (asked.name().split('.').next().unwrap(), asked.target.as_str()) {
        ("h0", "/robots.txt") => Reply::text(&late(2_000)),
        ("h1", "/robots.txt") => Reply::text(&late(100_000)),
        ("h2", "/robots.txt") => zipped(&late(100_000)),
        ("h3", "/robots.txt") => Reply { piece: Some(65_536), ..Reply::text(&late(499_000)) },
        ("h4", "/robots.txt") => Reply::text(&too_long()),
        ("h5", "/robots.txt") => zipped(&too_long()),
        // On another host, which any may be asked by.
        ("h6", "/robots.txt") => {
            let port = asked.host.split(':').nth(1).unwrap();
            Reply::redirect(&format!("http://h1.test:{port}/elsewhere"))
        }
        ("h1", "/elsewhere") => zipped(&late(100_000)),
        _ => Reply::text("a page"),
    }
}

/// `/yes` of every host, and nothing else.
fn allowed() -> Vec<String> {
    HOSTS.map(|host| format!("{host}.test/yes")).to_vec()
}

fn pages(server: &LogServer) -> Vec<String> {
    let mut places = server.places();
    places.retain(|place| !place.ends_with("/elsewhere"));
    places
}

#[test]
fn by_a_crawl() {
    for max_doc_size in ["1000", "65536"] {
        let mut stage = Stage::with_robots(web);
        let names = HOSTS.map(|host| format!("{host}.test"));
        let mut urls = Vec::new();
        for name in &names {
            urls.extend(["/yes", "/no"].map(|path| stage.url(name, path)));
        }
        let report = stage.crawl(urls.iter().map(String::as_str).chain(["--max-doc-size", max_doc_size]));
        assert_eq!(pages(&stage.server), allowed(), "{max_doc_size}: {report}");
        assert_eq!(result_count(&report, "robots_denied"), 7, "{report}");
        stage.assert_proved();
    }
}

#[test]
fn by_a_url_server() {
    for max_doc_size in ["1000", "65536"] {
        let dir = TempDir::new();
        let server = urlserver::web_with(web);
        let urls: Vec<String> = HOSTS
            .iter()
            .flat_map(|host| ["/yes", "/no"].map(|path| urlserver::url(&server, host, path)))
            .collect();
        let mut command = urlserver::command(&dir, urlserver::LISTEN, &urls);
        let (running, addr) = urlserver::listening(command.args(["--max-doc-size", max_doc_size]));
        let mut link = Link::dial(addr);
        link.send("GET 99");
        let mut given = Vec::new();
        while let Some(line) = link.line() {
            let words: Vec<&str> = line.split(' ').collect();
            given.push(words[4].to_string());
            link.send(&format!("DONE {}", words[0]));
            if given.len() > urls.len() {
                break;
            }
        }
        running.wait(PATIENCE).done();
        given.sort();
        let yes: Vec<String> = HOSTS.iter().map(|host| urlserver::url(&server, host, "/yes")).collect();
        assert_eq!(given, yes, "{max_doc_size}");
        assert_eq!(run(["audit", "--data", dir.join("data").to_str().unwrap()]).code(), 0);
    }
}

/// A part is not the file, and neither is what stands behind more padding than any coding needs.
#[test]
fn what_cannot_be_known_allows_nothing() {
    let mut stage = Stage::with_robots(|asked| match (asked.name(), asked.target.as_str()) {
        ("part.test", "/robots.txt") => {
            Reply::new("206 Partial Content", "Content-Range: bytes 0-13/99\r\n", "User-agent: *\n")
        }
        ("same.test", "/robots.txt") => Reply::raw("HTTP/1.1 304 Not Modified\r\n\r\n"),
        // Members that hold nothing.
        ("padded.test", "/robots.txt") => {
            let body = [gzip("").repeat(40_000), gzip("User-agent: *\nDisallow: /\n")].concat();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            Reply::raw([head.as_bytes(), &body].concat())
        }
        _ => Reply::text("a page"),
    });
    let urls = ["part.test", "same.test", "padded.test"].map(|name| stage.url(name, "/"));
    let report = stage.crawl(&urls);
    assert_eq!(stage.server.places(), [] as [&str; 0], "{report}");
    assert_eq!(result_count(&report, "robots_denied"), 3, "{report}");
    stage.assert_proved();
}

/// The line of a crawl whose `max_doc_size` cut robots.txt.
#[test]
fn an_audit_finds_less() {
    let judged = |bytes: usize, result: &str| {
        let dir = TempDir::new();
        dir.write(
            "crawl.log",
            format!(
                "# nephila 0.1.0 run 2026-11-15T10:00:00.000Z req_host_per_sec=1 req_host_concurrent=1\n\
                 2026-11-15T10:00:00.100Z 200 {bytes} http://a.test/robots.txt P - text/plain #000 \
                 20261115100000000000+100000 - 192.0.2.1:80,{result},rules=known,for=http://a.test\n"
            ),
        );
        run(["audit", "--json", "--data", dir.path().to_str().unwrap()])
    };
    let found = judged(65_536, "too_large");
    assert_eq!(found.code(), 1, "{}", found.text());
    let violation = &found.json()["violations"][0];
    assert_eq!(
        (&violation["kind"], &violation["bytes"], &violation["line"]),
        (&"robots_cut".into(), &65_536.into(), &2.into())
    );
    assert_eq!(judged(65_536, "ok").code(), 0);
    assert_eq!(judged(BOUND, "too_large").code(), 0);
}
