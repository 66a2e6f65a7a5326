//! The promise: a host that has several addresses is tried at one after the other, soon, and counts as failed only when
//! it can be had at none of them; nobody is asked sooner for it, and no address is connected to that is not allowed.

use crate::support::*;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, socket};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

const PAGES: u64 = 4;

/// A site of a few pages, on one address.
fn site(ip: impl Into<IpAddr>) -> LogServer {
    LogServer::start_on(ip, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/1", "/2", "/3"]),
        _ => Reply::text("leaf\n"),
    })
}

/// Crawls `a.test`, which has these addresses, in this order.
#[track_caller]
fn crawl_at(data: &Path, port: u16, addresses: &[&str], flags: &[&str]) -> (Value, Duration) {
    let dir = TempDir::new();
    let hosts: String = addresses.iter().map(|ip| format!("{ip} a.test\n")).collect();
    let hosts = dir.write("hosts", hosts);
    // A connection that is waited for to the end takes longer than any of these tests.
    let config = dir.write("config", "[spider]\ntimeout_connect = 50000\nfallback_delay = 200\n");
    let seed = format!("http://a.test:{port}/");
    let own = [&seed, "--hosts-file", hosts.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let from = Instant::now();
    let (report, _) = crawl(data, own.iter().chain(flags));
    let took = from.elapsed();
    let judged = run(["audit", "--json", "--data", data.to_str().unwrap()]).done().json();
    assert!(judged["violations"].as_array().is_none_or(Vec::is_empty), "{judged}");
    (report, took)
}

/// Every page was had, each at this address, and the pauses were kept.
#[track_caller]
fn had_at(server: &LogServer, report: &Value, data: &Path, ip: &str, gap: Duration) {
    assert_eq!((&report["success"], &report["known"]), (&PAGES.into(), &PAGES.into()), "{report}");
    assert!(stored(data).into_values().all(|record| record.ip == ip), "{:?}", stored(data));
    let asked = server.asked();
    assert_eq!(asked.len() as u64, PAGES + 1, "each once, and robots.txt: {asked:?}");
    for two in asked.windows(2) {
        let ns = two[1].at_ns - two[0].at_ns;
        assert!(ns >= i64::try_from(gap.as_nanos()).unwrap(), "{ns} ns between {two:?}");
    }
    // Failing to connect is no request: the log has one line for each that was made.
    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    assert!(!log.contains("connect_"), "{log}");
    assert_eq!(log.matches("/robots.txt").count(), 1, "{log}");
}

const PACE: [&str; 2] = ["--req-host-per-sec", "10"];
const GAP: Duration = Duration::from_millis(100);

#[test]
fn a_host_is_had_by_whichever_family_listens() {
    for driver in DRIVERS {
        let flags = [&PACE[..], &["--driver", driver, "--allow-net", "::1/128"]].concat();
        let (dir, server) = (TempDir::new(), site(Ipv4Addr::LOCALHOST));
        let data = dir.join("data");
        let (report, took) = crawl_at(&data, server.port(), &["::1", "127.0.0.1"], &flags);
        had_at(&server, &report, &data, "127.0.0.1", GAP);
        assert!(took < Duration::from_secs(30), "{took:?}");

        let (dir, server) = (TempDir::new(), site(Ipv6Addr::LOCALHOST));
        let data = dir.join("data");
        let (report, took) = crawl_at(&data, server.port(), &["127.0.0.9", "127.0.0.8", "::1"], &flags);
        had_at(&server, &report, &data, "::1", GAP);
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
}

/// A socket that listens and takes nobody any more: its backlog is full, so who connects hears nothing.
fn black_hole(ip: Ipv4Addr, port: u16) -> (OwnedFd, Vec<TcpStream>) {
    let hole = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
    let addr = SocketAddrV4::new(ip, port);
    bind(std::os::fd::AsRawFd::as_raw_fd(&hole), &SockaddrIn::from(addr)).unwrap();
    listen(&hole, Backlog::new(0).unwrap()).unwrap();
    let knock = || TcpStream::connect_timeout(&SocketAddr::V4(addr), Duration::from_millis(300));
    let inside: Vec<TcpStream> = (0..8).map_while(|_| knock().ok()).collect();
    assert!(inside.len() < 8 && knock().is_err(), "it is full");
    (hole, inside)
}

#[test]
fn an_address_that_says_nothing_is_waited_for_only_a_moment() {
    for driver in DRIVERS {
        let (dir, server) = (TempDir::new(), site(Ipv4Addr::LOCALHOST));
        let hole = black_hole(Ipv4Addr::new(127, 0, 0, 7), server.port());
        let data = dir.join("data");
        let flags = [&PACE[..], &["--driver", driver]].concat();
        let (report, took) = crawl_at(&data, server.port(), &["127.0.0.7", "127.0.0.1"], &flags);
        had_at(&server, &report, &data, "127.0.0.1", GAP);
        assert!(took < Duration::from_secs(30), "{took:?}: not the fifty seconds of a connection time-out");
        assert!(took >= Duration::from_millis(200), "{took:?}: it was tried");
        drop(hole);
    }
}

#[test]
fn a_host_fails_once_when_nobody_is_at_any_of_its_addresses() {
    let dir = TempDir::new();
    // A port on which nobody listens: it was just given back.
    let port = site(Ipv4Addr::LOCALHOST).port();
    let data = dir.join("data");
    let (report, _) = crawl_at(&data, port, &["127.0.0.9", "127.0.0.8", "127.0.0.7"], &PACE);
    assert_eq!((&report["pages"], result_count(&report, "robots_denied")), (&0.into(), 1), "{report}");
    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    let failures: Vec<&str> = log.lines().filter(|line| line.contains("connect_refused")).collect();
    assert_eq!(failures.len(), 1, "{log}");
    assert!(
        failures[0].contains("/robots.txt") && failures[0].contains("127.0.0.7"),
        "the last of them: {log}"
    );
}

#[test]
fn an_address_that_is_not_allowed_is_no_other_way() {
    let (dir, server) = (TempDir::new(), site(Ipv6Addr::LOCALHOST));
    let data = dir.join("data");
    let (report, _) = crawl_at(&data, server.port(), &["127.0.0.9", "::1", "10.0.0.1"], &PACE);
    assert_eq!((&report["pages"], result_count(&report, "robots_denied")), (&0.into(), 1), "{report}");
    assert_eq!(server.connections(), 0, "nobody was connected to");
}

#[test]
fn hosts_that_share_addresses_share_their_pace_wherever_they_stand() {
    let (dir, server) = (TempDir::new(), site(Ipv4Addr::UNSPECIFIED));
    let port = server.port();
    // On two shards by themselves; what they have in common brings them together.
    let hosts = "127.0.1.1 a.test\n127.0.1.2 a.test\n127.0.1.2 b.test\n127.0.1.3 b.test\n127.0.1.3 c.test\n";
    let hosts = dir.write("hosts", format!("::1 a.test\n::1 c.test\n{hosts}"));
    let seeds = ["a", "b", "c"].map(|host| format!("http://{host}.test:{port}/"));
    let data = dir.join("data");
    let mut flags: Vec<&str> = seeds.iter().map(String::as_str).collect();
    // Nobody listens at ::1, which two of them have first.
    flags.extend(["--hosts-file", hosts.to_str().unwrap(), "--allow-net", "::1/128", "--cores", "0-1"]);
    flags.extend(PACE);
    let (report, _) = crawl(&data, flags);
    assert_eq!(report["success"], 3 * PAGES, "{report}");
    run(["audit", "--data", data.to_str().unwrap()]).done();
    let asked = server.asked();
    for ip in [1, 2, 3].map(|n| IpAddr::from([127, 0, 1, n])) {
        let here: Vec<&Asked> = asked.iter().filter(|asked| asked.ip == ip).collect();
        let gap = i64::try_from(GAP.as_nanos()).unwrap();
        assert!(here.windows(2).all(|two| two[1].at_ns - two[0].at_ns >= gap), "{here:?}");
    }
}
