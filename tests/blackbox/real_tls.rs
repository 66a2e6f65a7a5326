//! The promise: TLS as servers speak it, of either version, with sessions taken up again; a bad certificate is named
//! and stores nothing as success unless it was asked to be overlooked; what is no TLS at all is found out soon.

use crate::real_support::*;
use crate::support::*;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn origin(port: u16) -> String {
    format!("https://{NAME}:{port}")
}

/// A crawl of one page of the site with these flags on top.
#[track_caller]
fn fetch(dir: &TempDir, data: &Path, url: &str, more: &[&str]) -> serde_json::Value {
    let flags = flags(dir);
    let all = [url, "--depth", "0"].into_iter().chain(flags.iter().map(String::as_str));
    crawl(data, all.chain(more.iter().copied())).0
}

#[test]
fn either_version_of_tls_and_sessions_taken_up_again() {
    let dir = site_dir(&Authority::new());
    let server = nginx(&dir, 2, |ports| {
        let server = |port: u16, version: &str| {
            format!(
                "server {{
                    listen 127.0.0.1:{port} ssl;
                    ssl_protocols {version};
                    ssl_session_cache shared:s{port}:1m;
                    keepalive_timeout 0;
                }}\n"
            )
        };
        server(ports[0], "TLSv1.2") + &server(ports[1], "TLSv1.3")
    });
    for driver in DRIVERS {
        for (port, version) in [(server.ports[0], "TLSv1.2"), (server.ports[1], "TLSv1.3")] {
            let _ = std::fs::File::create(dir.join("access")).unwrap();
            let crawls = TempDir::new();
            let data = crawls.join("data");
            let (seed, flags) = (format!("{}/", origin(port)), flags(&dir));
            let (report, _) = crawl(
                &data,
                [&seed].into_iter().chain(&flags).map(String::as_str).chain(["--driver", driver]),
            );
            assert_eq!(report["pages"], PAGES.len(), "{report}");
            for (path, status) in PAGES {
                let url = format!("{}{path}", origin(port));
                assert!(cat(&data, &url) == curl(&dir, &url, &[]).body, "{version} {path} {status}");
            }
            let log = std::fs::read_to_string(dir.join("access")).unwrap();
            // Curl's own requests come after ours, one each.
            let ours: Vec<&str> = log.lines().take(PAGES.len() + 1).collect();
            assert!(ours.iter().all(|line| line.split(' ').nth(4) == Some(version)), "{log}");
            let reused = ours.iter().filter(|line| line.ends_with(" r")).count();
            assert!(
                reused >= PAGES.len() / 2,
                "{driver}, {version}: {reused} of {} connections\n{log}",
                ours.len()
            );
            assert!(ours[0].ends_with(" ."), "the first session has nothing to take up: {log}");
        }
    }
}

const FAULTS: [(Certificate, &str); 3] = [
    (Certificate::WrongName, "cert_wrong_name"),
    (Certificate::Expired, "cert_expired"),
    (Certificate::SelfSigned, "cert_unknown_issuer"),
];

#[test]
fn bad_certificates_are_named_and_only_on_request_overlooked() {
    let authority = Authority::new();
    let dir = site_dir(&authority);
    for (number, (fault, _)) in FAULTS.into_iter().enumerate() {
        let (cert, key) = authority.issue(fault);
        dir.write(&format!("cert{number}.pem"), cert);
        dir.write(&format!("key{number}.pem"), key);
    }
    let server = nginx(&dir, FAULTS.len(), |ports| {
        let path = dir.path().display();
        let server = |(number, port): (usize, &u16)| {
            format!(
                "server {{
                    listen 127.0.0.1:{port} ssl;
                    ssl_certificate {path}/cert{number}.pem;
                    ssl_certificate_key {path}/key{number}.pem;
                }}\n"
            )
        };
        ports.iter().enumerate().map(server).collect()
    });
    for driver in DRIVERS {
        for (&port, (_, flag)) in server.ports.iter().zip(FAULTS) {
            let crawls = TempDir::new();
            let url = format!("{}/plain.html", origin(port));
            let robots = format!("{}/robots.txt", origin(port));

            // Without a word from robots.txt there is no page.
            let strict = crawls.join("strict");
            let report = fetch(&dir, &strict, &url, &["--driver", driver]);
            assert_eq!(
                (&report["success"], result_count(&report, "robots_denied")),
                (&0.into(), 1),
                "{report}"
            );
            let lines = log_lines(&strict, &robots);
            assert!(lines.len() == 1 && lines[0].contains(",tls_failed"), "{lines:?}");
            assert_eq!(records(&strict), [], "{flag}");

            // Overlooked, but noted.
            let data = crawls.join("data");
            let report = fetch(&dir, &data, &url, &["--driver", driver, "--insecure-tls"]);
            assert_eq!(report["success"], 1, "{report}");
            let record = &newest(&data)[&url];
            assert_eq!((&*record.result, record.http_status), ("ok", Some(200)), "{record:?}");
            assert!(record.flags.iter().any(|found| found == flag), "{record:?}");
            let document = std::fs::read(dir.join("root/plain.html")).unwrap();
            assert!(cat(&data, &url) == document);

            // The rules are known from there, so the page itself is asked for, and fails.
            let report = fetch(&dir, &data, &url, &["--driver", driver, "--again", "--insecure-tls=false"]);
            assert_eq!(report["success"], 0, "{report}");
            let record = &newest(&data)[&url];
            assert_eq!((&*record.result, record.success), ("tls_failed", false), "{record:?}");
            assert_eq!((record.http_status, record.bytes), (None, 0), "{record:?}");
            assert!(record.flags.iter().any(|found| found == flag), "{record:?}");
        }
    }
}

#[test]
fn a_document_to_the_close_tells_whether_tls_ended_it() {
    let dir = site_dir(&Authority::new());
    let script = dir.write("to_the_close.py", include_str!("scripts/to_the_close.py"));
    let server = RealServer::start(&dir, 1, |ports| {
        let mut command = Command::new(program("python3", "python3"));
        command.arg(&script).arg(ports[0].to_string()).arg(dir.join("cert.pem")).arg(dir.join("key.pem"));
        command
    });
    for driver in DRIVERS {
        let crawls = TempDir::new();
        let data = crawls.join("data");
        let urls = ["/clean", "/abrupt"].map(|path| format!("{}{path}", origin(server.ports[0])));
        fetch(&dir, &data, &urls[0], &[&urls[1], "--driver", driver]);
        let records = newest(&data);
        for (url, is_abrupt) in urls.iter().zip([false, true]) {
            let record = &records[url];
            assert_eq!((&*record.result, record.success), ("ok", true), "{record:?}");
            assert!(cat(&data, url) == "<p>as far as it goes</p>".repeat(100).as_bytes());
            let noted = record.flags.iter().any(|flag| flag == "no_close_notify");
            assert_eq!(noted, is_abrupt, "{driver}: {record:?}");
        }
    }
}

#[test]
fn plain_http_where_tls_was_asked_for_fails_soon() {
    let dir = site_dir(&Authority::new());
    let server = nginx(&dir, 1, |ports| format!("server {{ listen 127.0.0.1:{}; }}", ports[0]));
    for driver in DRIVERS {
        let crawls = TempDir::new();
        let data = crawls.join("data");
        let begun = Instant::now();
        let report = fetch(&dir, &data, &format!("{}/", origin(server.ports[0])), &["--driver", driver]);
        assert_eq!((&report["success"], result_count(&report, "robots_denied")), (&0.into(), 1), "{report}");
        let lines = log_lines(&data, &format!("{}/robots.txt", origin(server.ports[0])));
        assert!(lines.len() == 1 && lines[0].contains(",tls_failed"), "{lines:?}");
        // The time-outs are longer by far.
        assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_handshake_that_stalls_is_a_connect_timeout() {
    let dir = site_dir(&Authority::new());
    // The kernel completes connections to a listener that nobody accepts from.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = dir.write("c.toml", "[spider]\ntimeout_connect = 700\n");
    for driver in DRIVERS {
        let crawls = TempDir::new();
        let data = crawls.join("data");
        let config = ["--driver", driver, "--config", settings.to_str().unwrap()];
        let report = fetch(&dir, &data, &format!("{}/", origin(port)), &config);
        assert_eq!((&report["success"], result_count(&report, "robots_denied")), (&0.into(), 1), "{report}");
        let lines = log_lines(&data, &format!("{}/robots.txt", origin(port)));
        assert!(lines.len() == 1 && lines[0].contains(",connect_timeout"), "{lines:?}");
    }
}
