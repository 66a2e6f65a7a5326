//! The promise: a crawl none of whose seeds could be had says what happened to each, with the mend where there is one, and
//! exits 1.

use crate::support::*;
use std::net::TcpListener;

#[track_caller]
fn crawl_no(flags: &[&str]) -> Run {
    let dir = TempDir::new();
    let mut command = nephila();
    command
        .args(["crawl", "--cores", "0", "--req-host-per-sec", "0", "--data"])
        .arg(dir.join("data"))
        .args(flags);
    let run = Running::start(&mut command).wait(PATIENCE);
    assert_eq!(run.code(), 1, "{}", run.stderr);
    run
}

/// A port on which nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn an_address_that_is_not_allowed_is_named_with_the_flag_that_allows_it() {
    let server = LogServer::start(|_| Reply::text("must not be read"));
    let port = server.port();
    for (host, said) in [
        ("localhost", "127.0.0.1 is not a public address: allow it with --allow-net 127.0.0.0/8"),
        ("[::ffff:7f00:1]", "127.0.0.1 is not a public address: allow it with --allow-net 127.0.0.0/8"),
        ("[::1]", "::1 is not a public address: allow it with --allow-net ::1/128"),
        ("[fec0::1]", "fec0::1 is not a public address: allow it with --allow-net fec0::/10"),
        ("[::808:808]", "::808:808 is not a public address: allow it with --allow-net ::/96"),
        ("10.1.2.3", "10.1.2.3 is not a public address: allow it with --allow-net 10.0.0.0/8"),
    ] {
        let url = format!("http://{host}:{port}/");
        let run = crawl_no(&[&url]);
        let last = run.stderr.lines().last().unwrap();
        assert!(last.contains(said) && last.contains(&url), "{}", run.stderr);
    }
    assert_eq!(server.connections(), 0);
    let run = crawl_no(&["http://localhost:22/"]);
    assert!(
        run.stderr.contains("port 22 is on the list of ports that are never web servers"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_port_that_nobody_listens_on_is_told_as_a_port() {
    for driver in DRIVERS {
        let port = free_port();
        let url = format!("http://localhost:{port}/");
        let run = crawl_no(&[&url, "--allow-net", "127.0.0.0/8", "--driver", driver]);
        let said = format!("nothing listens on 127.0.0.1 port {port}");
        assert!(run.stderr.lines().last().unwrap().contains(&said), "{driver}: {}", run.stderr);
    }
}

#[test]
fn what_happened_to_each_seed_is_said_and_the_list_has_an_end() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /private\n"),
        "/ok" => Reply::text("x"),
        _ => Reply::status("404 Not Found"),
    });
    let (gone, private) = (server.url("/gone"), server.url("/private"));
    let run = crawl_no(&[&gone, &private, "--allow-net", "127.0.0.0/8"]);
    let told =
        |url: &str, what: &str| run.stderr.lines().any(|line| line.contains(url) && line.contains(what));
    assert!(told(&gone, "status 404"), "{}", run.stderr);
    assert!(told(&private, "Disallow: /private"), "{}", run.stderr);
    assert!(run.text().contains("pages"), "the summary is there all the same: {}", run.text());

    let many: Vec<String> = (0..40).map(|n| server.url(&format!("/{n}"))).collect();
    let mut flags = vec!["--allow-net", "127.0.0.0/8"];
    flags.extend(many.iter().map(String::as_str));
    let run = crawl_no(&flags);
    assert!(run.stderr.contains("and 30 more"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("status 404").count(), 10, "{}", run.stderr);

    // One that could be had is enough, and a crawl that was cut short was not asked about the rest.
    let dir = TempDir::new();
    crawl(&dir.join("one"), [&gone, &server.url("/ok")]);
    crawl(&dir.join("none"), [gone.as_str(), "--max-pages", "0"]);
    // On a second run it is known what became of it.
    let data = dir.join("again");
    for _ in 0..2 {
        let run = Running::start(crawl_command(&data).arg(&gone)).wait(PATIENCE);
        assert_eq!(run.code(), 1, "{}", run.stderr);
        run.json();
        assert!(run.stderr.contains("status 404"), "{}", run.stderr);
    }
}
