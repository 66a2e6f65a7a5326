//! The promise: ten thousand connections that are held open by slow hosts cost at most 20 MB.

use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

const HOSTS: u32 = 10_000;
/// 20 MB in the kibibytes that the kernel calls kB.
const COST_KB_MAX: u64 = 20_000_000 / 1_024;

/// Resident memory in kB: all of it, and the parts that are anonymous and that map files.
#[derive(Clone, Copy)]
struct Resident {
    all: u64,
    anon: u64,
    file: u64,
}

fn resident(pid: u32) -> Resident {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    Resident { all: of("VmRSS:"), anon: of("RssAnon:"), file: of("RssFile:") }
}

/// Established connections to the farm's port, as the kernel counts them.
fn established(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter(|line| {
            let mut words = line.split_whitespace().skip(2);
            words.next().is_some_and(|address| address.ends_with(&remote)) && words.next() == Some("01")
        })
        .count()
}

/// Open requests, as the crawl counts them.
fn open(data: &Path) -> u64 {
    let ended = run(["status", "--json", "--data", data.to_str().unwrap()]);
    if ended.code() == 0 { ended.json()["open"].as_u64().unwrap() } else { 0 }
}

/// Memory of a crawl of these seeds once it holds `count` connections.
fn resident_with(farm: &Farm, dir: &TempDir, driver: &str, seeds: &str, count: usize) -> Resident {
    let data = dir.join(&format!("data-{driver}-{count}"));
    let mut command = crawl_command(&data);
    command.args(["--req-host-per-sec", "0", "--cores", "0", "--driver", driver, "--seeds", seeds]);
    command.arg("--hosts-file").arg(farm.hosts_file());
    let crawl = Running::start(&mut command);
    wait_for("all connections are open", Duration::from_secs(30), || {
        (established(farm.port) >= count && open(&data) >= count as u64).then_some(())
    });
    let resident = resident(crawl.pid());
    let held = established(farm.port);
    assert!(held >= count, "{held} connections when memory was read");
    crawl.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    crawl.signal(Signal::SIGINT);
    assert_eq!(crawl.wait(Duration::from_secs(10)).code(), 3);
    wait_for("connections are gone", Duration::from_secs(30), || (established(farm.port) == 0).then_some(()));
    resident
}

#[track_caller]
fn ten_thousand_connections(driver: &str) {
    let farm = Farm::start(SiteSpec { hosts: HOSTS, pages: 2, latency_ms: 28_000, ..SiteSpec::default() });
    let dir = TempDir::new();
    let one = dir.write("one", farm.url(0, 0));
    let idle = resident_with(&farm, &dir, driver, one.to_str().unwrap(), 1);
    let all = farm.seeds_file();
    let busy = resident_with(&farm, &dir, driver, all.to_str().unwrap(), HOSTS as usize);
    let cost = busy.all.saturating_sub(idle.all);
    println!(
        "{driver}: {} kB with one connection, {} kB with {HOSTS}: {cost} kB, {:.2} kB each (anonymous {} to {}, files {} to {})",
        idle.all,
        busy.all,
        cost as f64 / f64::from(HOSTS),
        idle.anon,
        busy.anon,
        idle.file,
        busy.file
    );
    assert!(cost <= COST_KB_MAX, "{driver}: {HOSTS} connections cost {cost} kB");
}

#[test]
fn ten_thousand_connections_uring() {
    ten_thousand_connections("uring");
}

#[test]
fn ten_thousand_connections_epoll() {
    ten_thousand_connections("epoll");
}
