//! The promise: an address has one budget, however it is written: an IPv4-mapped IPv6 address is the IPv4 address in it, in
//! queues, journal, log, store and audit, and for `--allow-net`.

use crate::name_server::*;
use crate::support::*;
use std::time::Duration;

const GAP: Duration = Duration::from_millis(200);

fn site() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nCrawl-delay: 0.1\n"),
        "/" => Reply::links(["/1", "/2"]),
        _ => Reply::text("x"),
    })
}

#[test]
fn a_mapped_address_shares_the_budget_of_the_one_in_it() {
    for (driver, cores) in [("uring", "0-1"), ("epoll", "0")] {
        let (dir, server) = (TempDir::new(), site());
        let port = server.port();
        let names = ScriptedServer::start(|asked| at_once(asked.addresses(&["::ffff:127.0.0.1"])));
        let hosts = "::ffff:127.0.0.1 mapped.test\n127.0.0.1 plain.test\n127.0.0.1 both.test\n::ffff:7f00:1 both.test\n";
        let hosts = dir.write("hosts", hosts);
        let seeds =
            ["mapped.test", "plain.test", "both.test", "asked.test", "[::ffff:127.0.0.1]", "127.0.0.1"]
                .map(|host| format!("http://{host}:{port}/"));
        let data = dir.join("data");
        let flags = ["--driver", driver, "--cores", cores, "--req-host-per-sec", "5", "--dns", &names.flag()];
        let hosts = ["--hosts-file", hosts.to_str().unwrap()];
        let (report, _) = crawl(&data, seeds.iter().map(String::as_str).chain(flags).chain(hosts));
        assert_eq!(report["success"], 18, "{report}");
        let asked = server.asked();
        let gap = i64::try_from(GAP.as_nanos()).unwrap();
        for two in asked.windows(2) {
            assert!(
                two[1].at_ns - two[0].at_ns >= gap,
                "{driver}: one machine, asked twice at once: {two:?}"
            );
        }
        // The last field of the log has the address; a journal names it first.
        let text = |file: &str| std::fs::read_to_string(data.join(file)).unwrap_or_default();
        let (log, journal) = (text("crawl.log"), text("niceness.journal"));
        let mut addresses = log.lines().filter_map(|line| line.rsplit(' ').next());
        assert!(addresses.all(|notes| !notes.starts_with("[::ffff")), "{log}");
        assert!(!journal.contains("address ::ffff"), "{journal}");
        assert!(records(&data).iter().all(|record| record.ip == "127.0.0.1"));
        run(["audit", "--data", data.to_str().unwrap()]).done();
    }
}

/// As it was written when the two were thought to be different.
#[test]
fn the_audit_takes_a_mapped_address_for_the_one_in_it() {
    let dir = TempDir::new();
    let robots = |host: &str, ip: &str, at: &str| {
        format!(
            "2026-11-15T10:59:59.000Z 200 12 http://{host}/robots.txt P - text/plain #000 2026111510{at}+1000 - {ip}:80,ok,for=http://{host},rules=known\n"
        )
    };
    let log = |ip: &str| {
        let run = "# nephila 0.1.0 run 2026-11-15T10:00:00.000Z req_host_per_sec=1 req_host_concurrent=1 \
                   req_ip_per_sec=1 req_ip_concurrent=1 delay_factor=1\n";
        format!("{run}{}{}", robots("a.test", "192.0.2.1", "0000000000"), robots("b.test", ip, "0000002000"))
    };
    for (name, ip, code) in
        [("mapped", "[::ffff:192.0.2.1]", 1), ("plain", "192.0.2.1", 1), ("other", "[::ffff:192.0.2.2]", 0)]
    {
        dir.write(&format!("{name}/crawl.log"), log(ip));
        let run = run(["audit", "--json", "--data", dir.join(name).to_str().unwrap()]);
        assert_eq!(run.code(), code, "{name}: {}", run.text());
        if code == 1 {
            assert_eq!(run.json()["violations"][0]["ip"], "192.0.2.1", "{}", run.text());
        }
    }
}

#[test]
fn a_network_is_allowed_however_it_is_written() {
    for (allowed, host) in [
        ("::ffff:127.0.0.0/104", "127.0.0.1"),
        ("::ffff:127.0.0.0/104", "[::ffff:127.0.0.1]"),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]"),
    ] {
        let (dir, server) = (TempDir::new(), site());
        let mut command = nephila();
        command.args([
            "crawl",
            "--json",
            "--req-host-per-sec",
            "0",
            "--allow-net",
            allowed,
            "--max-pages",
            "1",
        ]);
        command.arg(format!("http://{host}:{}/", server.port())).arg("--data").arg(dir.join("data"));
        let report = Running::start(&mut command).wait(PATIENCE).done().json();
        assert_eq!(report["success"], 1, "{allowed} {host}: {report}");
    }
}
