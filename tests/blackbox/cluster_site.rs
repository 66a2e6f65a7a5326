//! The promise of `--spread url`: one site on four nodes, of which every node has a part, sees one crawler: no more requests open
//! than one node might have, no gap shorter than one node would leave, and each page once.

use crate::cluster::Cluster;
use crate::log_server::{Asked, LogServer, Reply};
use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u16 = 4;

/// A site whose first page leads to all others, each answered after so many milliseconds.
fn site(pages: usize, after_ms: u64, robots: &'static str) -> LogServer {
    LogServer::start(move |asked: &Asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text(robots),
        "/" => Reply::links((1..pages).map(|page| format!("/{page}"))),
        _ => Reply::html("<!doctype html><title>page</title>a page").after_ms(after_ms),
    })
}

/// All of it is fetched by four nodes. What the site was asked, and by whom each page was fetched.
fn crawled(site: &LogServer, pages: usize, more: &[&str]) -> (Vec<Asked>, BTreeMap<String, u16>) {
    let rules = ["--allow-net", "127.0.0.0/8", "--timeout-req", "10000"];
    let mut cluster = Cluster::new(&[&rules[..], more].concat());
    cluster.spread = "url";
    (1..=NODES).for_each(|number| cluster.start(number));
    cluster.wait(1, NODES.into());
    let seeds = cluster.dir.join("seeds");
    std::fs::write(&seeds, site.url("/\n")).unwrap();
    cluster.ask(3, &["add-seeds", seeds.to_str().unwrap()]).done();
    cluster.wait(2, NODES.into());
    assert_eq!(cluster.status(4)["spread"], "url");
    cluster.stop_all();
    let fetched = |(number, node): (&u16, &crate::cluster::Node)| -> Vec<(String, u16)> {
        records(&node.data).into_iter().map(|record| (record.url, *number)).collect()
    };
    let by: Vec<(String, u16)> = cluster.nodes.iter().flat_map(fetched).collect();
    let whose: BTreeMap<String, u16> = by.iter().cloned().collect();
    assert_eq!((by.len(), whose.len()), (pages, pages), "each page is stored once");
    let asked = site.asked();
    let mut targets: Vec<&str> = asked.iter().map(|asked| &*asked.target).collect();
    targets.retain(|target| *target != "/robots.txt");
    assert_eq!(
        (targets.len(), targets.iter().collect::<BTreeSet<_>>().len()),
        (pages, pages),
        "and asked for once"
    );
    assert_eq!(whose.values().collect::<BTreeSet<_>>().len(), usize::from(NODES), "every node has a part");
    let data = cluster.nodes.values().flat_map(|node| ["--data", node.data.to_str().unwrap()]);
    let audited = run(["audit"].into_iter().chain(data));
    assert_eq!(audited.code(), 0, "{}{}", audited.text(), audited.stderr);
    (asked, whose)
}

/// Requests that were open when another came, itself included.
fn most_open(asked: &[Asked]) -> usize {
    let open_at = |at: i64| asked.iter().filter(|other| other.at_ns <= at && other.answered_ns > at).count();
    asked.iter().map(|asked| open_at(asked.at_ns)).max().unwrap_or(0)
}

#[test]
fn a_site_with_a_rate_sees_the_pace_of_one_node() {
    let site = site(80, 120, "");
    let more = ["--req-host-per-sec", "20", "--req-host-concurrent", "4"];
    let (asked, _) = crawled(&site, 80, &more);
    let gaps = asked.windows(2).map(|two| two[1].at_ns - two[0].at_ns);
    let least = gaps.min().unwrap();
    assert!(least >= 49_000_000, "{least} ns between two requests");
    let most = most_open(&asked);
    assert!((2..=4).contains(&most), "{most} open at once");
}

#[test]
fn a_site_without_a_rate_is_asked_by_several_nodes_at_once() {
    let site = site(600, 100, "");
    let settings = TempDir::new();
    let file = settings.join("nephila.toml");
    std::fs::write(&file, "[url_server]\ndelay_factor = 0\n").unwrap();
    let more = ["--config", file.to_str().unwrap(), "--req-host-per-sec", "0", "--req-host-concurrent", "8"];
    let (asked, whose) = crawled(&site, 600, &more);
    let most = most_open(&asked);
    assert!((3..=8).contains(&most), "{most} open at once");
    let node = |asked: &Asked| whose.get(&site.url(&asked.target)).copied();
    let at_once = |one: &Asked| {
        let overlaps = |other: &&Asked| other.at_ns <= one.at_ns && other.answered_ns > one.at_ns;
        asked.iter().filter(overlaps).filter_map(node).collect::<BTreeSet<_>>().len()
    };
    let nodes = asked.iter().map(at_once).max().unwrap_or(0);
    assert!(nodes > 1, "one node at a time");
}

#[test]
fn a_site_without_a_rate_that_wants_a_pause_has_it_from_one_node_at_a_time() {
    let site = site(24, 0, "User-agent: *\nCrawl-delay: 0.5\n");
    let settings = TempDir::new();
    let file = settings.join("nephila.toml");
    std::fs::write(&file, "[url_server]\ndelay_factor = 0\n").unwrap();
    let more = ["--config", file.to_str().unwrap(), "--req-host-per-sec", "0", "--req-host-concurrent", "8"];
    let (asked, _) = crawled(&site, 24, &more);
    // Rules are asked for by each node, before it can know of the pause.
    let pages: Vec<&Asked> = asked.iter().filter(|asked| asked.target != "/robots.txt").collect();
    let least = pages.windows(2).map(|two| two[1].at_ns - two[0].at_ns).min().unwrap();
    assert!(least >= 490_000_000, "{least} ns between two requests");
}
