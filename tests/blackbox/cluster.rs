//! The promise: many nodes, one crawl. Seeds go in at any node, each page of the web is fetched once by the node that owns
//! its host, nothing is lost when a node is killed and comes back, `ready` is true, and whoever gets a flag or a file wrong
//! is told in one line what to do.

use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Longer than anything here takes on a machine that is busy with other tests.
const WAIT_S: &str = "45";

/// Nodes in one directory, each at an address of its own, which it has again after it was killed.
pub(crate) struct Cluster {
    pub(crate) dir: TempDir,
    pub(crate) more: Vec<String>,
    /// What keeps URLs together.
    pub(crate) spread: &'static str,
    pub(crate) nodes: BTreeMap<u16, Node>,
}

pub(crate) struct Node {
    pub(crate) data: PathBuf,
    pub(crate) address: String,
    pub(crate) running: Option<Running>,
}

/// An address that nobody else is at.
pub(crate) fn free_address() -> String {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    // Tests are processes of their own, or threads of one.
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let ip = Ipv4Addr::new(127, 80 + (process >> 8) as u8 % 100, process as u8, count);
    TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().to_string()
}

impl Cluster {
    /// Of no nodes yet; all of them get these flags.
    pub(crate) fn new(more: &[&str]) -> Cluster {
        let more = more.iter().map(ToString::to_string).collect();
        Cluster { dir: TempDir::new(), more, spread: "host", nodes: BTreeMap::new() }
    }

    /// With the names of a farm, whose hosts are shared out. Who takes over lends addresses when the requests that others may have
    /// open are over, so these are short.
    pub(crate) fn of_farm(farm: &Farm, rate: &str) -> Cluster {
        let hosts = farm.hosts_file();
        let reach = ["--hosts-file", hosts.to_str().unwrap(), "--allow-net", "127.0.0.0/8"];
        let rules = ["--scope", "any", "--req-host-per-sec", rate, "--timeout-req", "10000"];
        Cluster::new(&[&reach[..], &rules].concat())
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.dir.join("n1/cluster.key")
    }

    /// Starts a node for the first time. It is the one of that number if it joins as such.
    pub(crate) fn start(&mut self, number: u16) {
        let (data, address) = (self.dir.join(&format!("n{number}")), free_address());
        let mut command = nephila();
        command.args(["node", "--cores", "0", "--listen", &address, "--data"]).arg(&data).args(&self.more);
        match number {
            1 => command.args(["--spread", self.spread]),
            _ => command.args(["--join", &self.nodes[&1].address, "--key"]).arg(self.key()),
        };
        let running = Running::start(&mut command);
        self.nodes.insert(number, Node { data, address, running: Some(running) });
        self.answers(number);
        // Numbers are given in the order in which nodes are taken in.
        wait_for("it has its number", PATIENCE, || {
            let status = self.ask(number, &["status", "--json"]).text();
            let view: Value = serde_json::from_str(&status).unwrap_or_default();
            (view["node"] == number).then_some(())
        });
    }

    /// Starts it again: its directory has its settings.
    pub(crate) fn start_again(&mut self, number: u16) {
        let node = self.nodes.get_mut(&number).unwrap();
        assert!(node.running.is_none());
        node.running = Some(Running::start(nephila().args(["node", "--data"]).arg(&node.data)));
        self.answers(number);
    }

    #[track_caller]
    pub(crate) fn answers(&mut self, number: u16) {
        let node = self.nodes.get_mut(&number).unwrap();
        wait_for("the node answers", PATIENCE, || {
            let running = node.running.as_mut().unwrap();
            assert!(!running.has_ended(), "{}", running.stderr());
            (run(["status", "--data", node.data.to_str().unwrap()]).code() == 0).then_some(())
        });
    }

    pub(crate) fn kill(&mut self, number: u16) {
        let running = self.nodes.get_mut(&number).unwrap().running.take().unwrap();
        running.signal(Signal::SIGKILL);
        running.wait(PATIENCE);
    }

    /// What it printed at its end, and said on the way.
    pub(crate) fn stop(&mut self, number: u16) -> (String, String) {
        let running = self.nodes.get_mut(&number).unwrap().running.take().unwrap();
        running.signal(Signal::SIGTERM);
        let ended = running.wait(PATIENCE).done();
        (ended.text(), ended.stderr)
    }

    pub(crate) fn stop_all(&mut self) {
        let running: Vec<u16> =
            self.nodes.iter().filter(|(_, node)| node.running.is_some()).map(|(number, _)| *number).collect();
        running.into_iter().for_each(|number| drop(self.stop(number)));
    }

    pub(crate) fn data(&self, number: u16) -> &str {
        self.nodes[&number].data.to_str().unwrap()
    }

    pub(crate) fn ask(&self, number: u16, args: &[&str]) -> Run {
        run([&["cluster"], args, &["--data", self.data(number)]].concat())
    }

    pub(crate) fn status(&self, number: u16) -> Value {
        self.ask(number, &["status", "--json"]).json()
    }

    /// Waits at a node until so many have their share and all is done.
    #[track_caller]
    pub(crate) fn wait(&self, number: u16, nodes: usize) {
        // Whoever took over lends no address for a minute, as it does not know what was lent before.
        let ask = || self.ask(number, &["wait", "--nodes", &nodes.to_string(), "--timeout", WAIT_S]);
        let ended = (0..4).map(|_| ask()).find(|ended| ended.code() == 0).unwrap_or_else(ask);
        let told = || -> Vec<String> {
            self.nodes.values().filter_map(|node| node.running.as_ref()).map(Running::stderr).collect()
        };
        assert_eq!(ended.code(), 0, "{}\n{}", ended.stderr, told().join("\n---\n"));
    }

    /// Waits until three nodes vote, and every node has its right by them.
    #[track_caller]
    pub(crate) fn has_council(&self) {
        let is_held = |node: &Value| {
            node["told"]["right_left_ms"]
                .as_u64()
                .is_some_and(|left| (1..u64::from(u32::MAX)).contains(&left))
        };
        wait_for("a council", 2 * PATIENCE, || {
            let status = self.status(1);
            let has_voters = status["mode"] == "council"
                && status["voters"].as_array().is_some_and(|voters| voters.len() == 3);
            (has_voters && status["nodes"].as_array().unwrap().iter().all(is_held)).then_some(())
        });
    }

    pub(crate) fn pages(&self, number: u16) -> u64 {
        let nodes = self.status(number)["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node["told"]["pages"].as_u64().unwrap_or(0)).sum()
    }

    /// How often each page is stored, over all nodes.
    pub(crate) fn stored_times(&self) -> BTreeMap<String, u32> {
        let mut times = BTreeMap::new();
        for record in self.nodes.values().flat_map(|node| records(&node.data)) {
            *times.entry(record.url).or_default() += u32::from(record.success);
        }
        times
    }

    /// Each page of a farm is stored once, no host is with two nodes, and every host was treated as promised.
    #[track_caller]
    pub(crate) fn assert_all_once(&self, farm: &Farm, spec: &SiteSpec) {
        let expected: BTreeMap<String, u32> = (0..spec.hosts)
            .flat_map(|host| (0..spec.pages).map(move |page| (host, page)))
            .map(|(host, page)| (farm.url(host, page), 1))
            .collect();
        let times = self.stored_times();
        let wrong: Vec<_> = times.iter().filter(|(url, times)| expected.get(*url) != Some(*times)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let missing: Vec<_> = expected.keys().filter(|url| !times.contains_key(*url)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let mut whose: BTreeMap<String, u16> = BTreeMap::new();
        for (number, node) in &self.nodes {
            for host in hosts_of(&node.data) {
                assert_eq!(whose.insert(host.clone(), *number), None, "{host} is with two nodes");
            }
        }
        let data = self.nodes.values().flat_map(|node| ["--data", node.data.to_str().unwrap()]);
        let audited = run(["audit"].into_iter().chain(data));
        assert_eq!(audited.code(), 0, "{}{}", audited.text(), audited.stderr);
        assert!(audited.text().contains(&format!(" to {} hosts ", spec.hosts)), "{}", audited.text());
    }
}

fn hosts_of(data: &Path) -> BTreeSet<String> {
    records(data).iter().map(|record| record.url.split('/').nth(2).unwrap().to_string()).collect()
}

pub(crate) fn spec(hosts: u32, pages: u32) -> SiteSpec {
    SiteSpec { hosts, pages, page_bytes: 2_000, ..SiteSpec::default() }
}

/// Partitions by node.
pub(crate) fn partitions(status: &Value) -> Vec<u64> {
    status["nodes"].as_array().unwrap().iter().map(|node| node["partitions"].as_u64().unwrap()).collect()
}

#[test]
fn three_nodes_fetch_every_page_of_a_web_once() {
    let spec = spec(24, 8);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "0");
    cluster.start(1);
    cluster.start(2);
    cluster.wait(1, 2);
    // A node that comes before there are URLs gets its share.
    cluster.start(3);
    cluster.wait(3, 3);
    let status = cluster.status(2);
    let shares = partitions(&status);
    assert_eq!((shares.iter().sum::<u64>(), shares.len()), (4_096, 3), "{status}");
    assert!(shares.iter().all(|share| (1_365..=1_366).contains(share)), "{status}");
    assert_eq!((&status["spread"], status["node"].as_u64()), (&"host".into(), Some(2)));
    cluster.has_council();
    let seeds = farm.seeds_file();
    let added = cluster.ask(2, &["add-seeds", seeds.to_str().unwrap(), "--json"]).done().json();
    assert_eq!((added["new"].as_u64(), added["running"].as_bool()), (Some(24), Some(true)), "{added}");
    cluster.wait(1, 3);
    // Everybody sees the same, and each URL is where the table says.
    let status = cluster.status(3);
    assert!(status["ready"] == true && status["short"] == Value::Array(Vec::new()), "{status}");
    assert_eq!(cluster.pages(1), u64::from(spec.hosts * spec.pages));
    let table = cluster.ask(1, &["status"]).done().text();
    assert!(
        table.starts_with("cluster ") && table.contains(" epoch ") && table.contains("ready: "),
        "{table}"
    );
    // What it is, a head, three nodes, and where the copy is.
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.lines().last().unwrap().starts_with("what node 1 has is on the disk of node "), "{table}");
    let mut owners = BTreeMap::new();
    for host in 0..spec.hosts {
        let url = farm.url(host, 1);
        let asked = [1, 2, 3].map(|at| cluster.ask(at, &["table", &url, "--json"]).done().json());
        let owner = asked[0]["node"].as_u64().unwrap() as u16;
        for (answer, at) in asked.iter().zip(1..) {
            assert_eq!(answer["node"], owner, "{answer}");
            assert_eq!(answer["address"].as_str().unwrap(), cluster.nodes[&owner].address);
            assert_eq!(answer["here"], owner == at);
        }
        owners.insert(url.split('/').nth(2).unwrap().to_string(), owner);
    }
    let listed = cluster.ask(1, &["table"]).done().text();
    assert_eq!(listed.matches(" partitions, 33.3 %").count(), 3, "{listed}");
    let line = run(["status", "--data", cluster.data(2)]).done().text();
    assert!(line.contains("cluster    node 2 of 3 (3 linked)"), "{line}");
    let (foreign, _) = owners.iter().find(|(_, owner)| **owner == 3).unwrap();
    let explained = run(["explain", &format!("http://{foreign}/"), "--data", cluster.data(1)]);
    assert!(explained.text().contains("owner      node 3 at "), "{}", explained.text());
    let asked = farm.stats();
    assert_eq!(
        asked["requests"].as_u64().unwrap() - asked["robots_requests"].as_u64().unwrap(),
        u64::from(spec.hosts * spec.pages),
        "no page was asked for twice: {asked}"
    );
    let (summary, _) = cluster.stop(2);
    assert!(summary.contains(&format!("go on        nephila node --data {}", cluster.data(2))), "{summary}");
    cluster.stop_all();
    for (number, node) in &cluster.nodes {
        for host in hosts_of(&node.data) {
            assert_eq!(owners[&host], *number, "{host}");
        }
    }
    cluster.assert_all_once(&farm, &spec);
}

#[test]
fn a_node_that_is_killed_comes_back_and_nothing_is_lost() {
    let spec = spec(18, 12);
    let all = u64::from(spec.hosts * spec.pages);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "8");
    [1, 2, 3].into_iter().for_each(|number| cluster.start(number));
    cluster.wait(1, 3);
    let seeds = farm.seeds_file();
    cluster.ask(1, &["add-seeds", seeds.to_str().unwrap()]).done();
    wait_for("a part of the pages", PATIENCE, || (cluster.pages(1) >= all / 5).then_some(()));
    cluster.kill(3);
    let short = wait_for("the others miss it", PATIENCE, || {
        let status = cluster.ask(1, &["status", "--json"]);
        (status.code() == 1).then_some(status)
    });
    assert!(
        short.stderr.starts_with("nephila: node 3 at ") && short.stderr.contains("not linked"),
        "{}",
        short.stderr
    );
    assert_eq!(short.stderr.lines().count(), 1, "{}", short.stderr);
    assert_eq!(short.json()["ready"], false);
    cluster.start_again(3);
    cluster.wait(2, 3);
    assert_eq!(cluster.pages(2), all);
    // The first node keeps the table, and comes back to it as well.
    cluster.kill(1);
    cluster.start_again(1);
    cluster.wait(3, 3);
    cluster.stop_all();
    cluster.assert_all_once(&farm, &spec);
}

/// A node joins when the others are at work, and another one is drained: partitions go with their URLs, and nothing is asked for
/// twice.
#[test]
fn nodes_join_and_are_drained_under_load() {
    let spec = spec(40, 10);
    let all = u64::from(spec.hosts * spec.pages);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "4");
    // Four nodes, so that one of them does not vote.
    [1, 2, 3].into_iter().for_each(|number| cluster.start(number));
    cluster.wait(1, 3);
    cluster.has_council();
    cluster.ask(1, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    wait_for("a part of the pages", PATIENCE, || (cluster.pages(1) >= all / 10).then_some(()));
    cluster.start(4);
    // What has URLs comes, too.
    wait_for("the new node has its share", 4 * PATIENCE, || {
        let status = cluster.status(1);
        (status["moving"] == 0 && partitions(&status) == [1_024; 4]).then_some(())
    });
    let drained = cluster.ask(1, &["drain", "4", "--timeout", "240"]);
    assert_eq!(drained.code(), 0, "{}", drained.stderr);
    assert!(drained.text().contains("node 4 has handed over 1024 partitions and left"), "{}", drained.text());
    let status = cluster.status(2);
    let four = &status["nodes"][3];
    assert_eq!((&four["membership"], &four["partitions"]), (&"left".into(), &0.into()), "{status}");
    let again = cluster.ask(1, &["drain", "4"]);
    assert!(again.code() == 0 && again.text().contains("0 partitions and left"), "{}", again.stderr);
    let (_, said) = cluster.stop(4);
    assert!(
        said.contains("this node has left its cluster: everything is with others, on two disks"),
        "{said}"
    );
    cluster.wait(3, 3);
    let asked = farm.stats();
    assert_eq!(
        asked["requests"].as_u64().unwrap() - asked["robots_requests"].as_u64().unwrap(),
        all,
        "no page was asked for twice: {asked}"
    );
    let counts_once = |cluster: &Cluster| {
        wait_for("every page counts with its owner", PATIENCE, || (cluster.pages(1) == all).then_some(()));
    };
    counts_once(&cluster);
    // A voter is drained and keeps its vote.
    let drained = cluster.ask(1, &["drain", "3", "--timeout", "240"]);
    assert!(drained.code() == 0 && drained.text().contains("leave it running"), "{}", drained.stderr);
    counts_once(&cluster);
    for (order, says) in [("freeze", "frozen: nobody"), ("thaw", "thawed")] {
        let ordered = cluster.ask(2, &[order]).done().text();
        assert!(ordered.starts_with(says), "{ordered}");
    }
    let refused = cluster.ask(2, &["forget", "1"]);
    assert!(refused.code() == 1 && refused.stderr.contains("is linked"), "{}", refused.stderr);
    cluster.stop_all();
    let times = cluster.stored_times();
    assert!(times.len() as u64 == all && times.values().all(|times| *times == 1), "{times:?}");
    assert_all_stored(&cluster, &farm, &spec);
}

/// Requests of a page, over all nodes and their lives, and nobody was asked too soon or by two.
#[track_caller]
pub(crate) fn assert_all_stored(cluster: &Cluster, farm: &Farm, spec: &SiteSpec) {
    let times = cluster.stored_times();
    let missing: Vec<String> = (0..spec.hosts)
        .flat_map(|host| (0..spec.pages).map(move |page| (host, page)))
        .map(|(host, page)| farm.url(host, page))
        .filter(|url| times.get(url).is_none_or(|times| *times == 0))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let data = cluster.nodes.values().flat_map(|node| ["--data", node.data.to_str().unwrap()]);
    let audited = run(["audit"].into_iter().chain(data));
    assert_eq!(audited.code(), 0, "{}{}", audited.text(), audited.stderr);
}

/// Three nodes with a council and the shortest takeover, and so many pages fetched.
fn at_work(farm: &Farm, rate: &str, pages: u64) -> Cluster {
    let mut cluster = Cluster::of_farm(farm, rate);
    cluster.more.extend(["--takeover", "30s"].map(str::to_string));
    [1, 2, 3].into_iter().for_each(|number| cluster.start(number));
    cluster.wait(1, 3);
    cluster.has_council();
    cluster.ask(1, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    wait_for("a part of the pages", PATIENCE, || (cluster.pages(1) >= pages).then_some(()));
    cluster
}

#[test]
fn a_node_that_stays_away_is_taken_over_from_its_copy_and_comes_back_to_what_is_left() {
    let spec = spec(18, 12);
    let farm = Farm::start(spec.clone());
    let mut cluster = at_work(&farm, "1", 30);
    // Of few hosts it may have fewer than others.
    let had = wait_for("it has fetched some", PATIENCE, || {
        let had: BTreeSet<String> =
            records(&cluster.nodes[&3].data).into_iter().map(|record| record.url).collect();
        (had.len() > 3).then_some(had)
    });
    // A copy is some seconds behind at the most, or it is said to be.
    std::thread::sleep(Duration::from_secs(6));
    wait_for("the copy is whole", PATIENCE, || (cluster.status(3)["copy"]["in_step"] == true).then_some(()));
    let copied = cluster.ask(3, &["status"]).text();
    assert!(copied.contains("what node 3 has is on the disk of node "), "{copied}");
    let follower = cluster.status(3)["copy"]["node"].as_u64().unwrap() as u16;
    cluster.kill(3);
    let owns = |status: &Value, number: u64| {
        let nodes = status["nodes"].as_array().unwrap().clone();
        let node = nodes.into_iter().find(|node| node["number"] == number).unwrap_or_default();
        (node["membership"].as_str().unwrap_or("").to_string(), node["partitions"].as_u64().unwrap_or(0))
    };
    wait_for("it is taken over", 4 * PATIENCE, || {
        (owns(&cluster.status(2), 3) == ("left".to_string(), 0)).then_some(())
    });
    assert_eq!(partitions(&cluster.status(2)).iter().sum::<u64>(), 4_096, "nothing is nobody's");
    // Nothing waits for it: what it knew is known, and what it had fetched is not asked for again.
    cluster.wait(1, 2);
    let times = cluster.stored_times();
    assert_eq!(times.values().filter(|times| **times > 0).count() as u32, spec.hosts * spec.pages);
    let again: Vec<_> = times.iter().filter(|(url, times)| **times > 1 && had.contains(*url)).collect();
    assert!(again.is_empty(), "of {} these were fetched again: {again:?}", had.len());
    // Its pages are at the node that took it over, whatever became of its disk.
    for url in &had {
        let page = run(["store", "cat", url, "--data", cluster.data(follower)]);
        assert_eq!(page.code(), 0, "{}", page.stderr);
        wait_for("the other one gets a copy in turn", PATIENCE, || {
            (run(["store", "cat", url, "--data", cluster.data(3 - follower)]).code() == 0).then_some(())
        });
    }
    let kept = cluster.nodes[&follower].data.join("copies/3.1.pages");
    assert_eq!(run(["store", "verify", "--data", kept.to_str().unwrap()]).code(), 0);
    cluster.start_again(3);
    cluster.wait(2, 3);
    assert_eq!(owns(&cluster.status(1), 3).0, "member");
    // It has its pages again, and a copy of them: what was kept meanwhile goes, there and where that was copied to.
    wait_for("what was kept is removed", 2 * PATIENCE, || (!kept.exists()).then_some(()));
    let said = cluster.nodes[&follower].running.as_ref().unwrap().stderr();
    assert!(said.contains("of node 3 that were kept here are removed"), "{said}");
    let next = cluster.status(3)["copy"]["node"].as_u64().unwrap() as u16;
    for (url, number) in had.iter().flat_map(|url| [(url, 3), (url, next)]) {
        let page = run(["store", "cat", url, "--data", cluster.data(number)]);
        assert_eq!(page.code(), 0, "{number}: {}", page.stderr);
    }
    let verified = cluster.ask(1, &["verify"]);
    assert_eq!(verified.code(), 0, "{}{}", verified.text(), verified.stderr);
    cluster.stop_all();
    assert_all_stored(&cluster, &farm, &spec);
}

#[test]
fn a_node_that_slept_too_long_begins_anew() {
    let spec = spec(12, 10);
    let farm = Farm::start(spec.clone());
    let mut cluster = at_work(&farm, "2", 20);
    let sleeper = |cluster: &Cluster, signal| cluster.nodes[&3].running.as_ref().unwrap().signal(signal);
    sleeper(&cluster, Signal::SIGSTOP);
    wait_for("it is taken over", 4 * PATIENCE, || {
        let status = cluster.status(2);
        let nodes = status["nodes"].as_array().unwrap();
        nodes.iter().any(|node| node["number"] == 3 && node["membership"] == "left").then_some(())
    });
    sleeper(&cluster, Signal::SIGCONT);
    wait_for("it begins anew", 2 * PATIENCE, || {
        let told = cluster.nodes[&3].running.as_ref().unwrap().stderr();
        told.contains("other nodes have taken over ").then_some(())
    });
    cluster.wait(2, 3);
    cluster.stop_all();
    assert_all_stored(&cluster, &farm, &spec);
}

#[test]
fn ready_is_not_said_while_a_node_is_away() {
    let mut cluster = Cluster::new(&[]);
    cluster.start(1);
    cluster.start(2);
    cluster.wait(1, 2);
    assert_eq!(cluster.status(1)["ready"], true);
    cluster.kill(2);
    wait_for("it is missed", PATIENCE, || (cluster.status(1)["ready"] == false).then_some(()));
    let waited = cluster.ask(1, &["wait", "--timeout", "2"]);
    assert_eq!((waited.code(), waited.stderr.lines().count()), (1, 1), "{}", waited.stderr);
    assert!(waited.stderr.contains("not ready after 2 s"), "{}", waited.stderr);
    // Where no node runs nothing is waited for.
    let silent = cluster.ask(2, &["status"]);
    assert_eq!(silent.code(), 3);
    assert!(
        silent.stderr.contains("no node runs in") && silent.stderr.contains("nephila node --data"),
        "{}",
        silent.stderr
    );
}

#[test]
fn seeds_for_a_node_that_is_stopped_reach_their_owners() {
    let spec = spec(12, 4);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "0");
    cluster.start(1);
    cluster.start(2);
    cluster.wait(1, 2);
    cluster.stop(2);
    let seeds = farm.seeds_file();
    let added = cluster.ask(2, &["add-seeds", seeds.to_str().unwrap()]).done();
    assert!(
        added.text().starts_with("12 new, 0 known, 0 refused; the node begins with them"),
        "{}",
        added.text()
    );
    cluster.start_again(2);
    cluster.wait(1, 2);
    cluster.stop_all();
    cluster.assert_all_once(&farm, &spec);
    assert!(cluster.nodes.values().all(|node| !hosts_of(&node.data).is_empty()));
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_the_mend() {
    let mut cluster = Cluster::new(&["--req-host-per-sec", "2"]);
    let mut other = Cluster::new(&[]);
    cluster.start(1);
    other.start(1);
    let key = cluster.key();
    let (key, join) = (key.to_str().unwrap(), cluster.nodes[&1].address.clone());
    let other_key = other.key();
    let dir = cluster.dir.path().to_path_buf();
    let data = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let bad_key = cluster.dir.write("bad.key", "not a key\n");
    let (free, nobody) = (free_address(), free_address());
    let node = |name: &str, more: &[&str]| {
        let data = data(name);
        let mut command = nephila();
        command.args([&["node", "--cores", "0", "--data", &data][..], more].concat());
        Running::start(&mut command)
    };
    // These end at once.
    for (name, more, code, parts) in [
        ("x1", &["--listen", &free, "--join", &join][..], 2, ["there is no key file", "copy cluster.key"]),
        (
            "x2",
            &["--listen", &free, "--key", bad_key.to_str().unwrap()],
            2,
            ["bad.key", "no key of a cluster"],
        ),
        ("x3", &["--key", key], 2, ["no address for other nodes", "--listen"]),
        ("x4", &["--listen", "0.0.0.0:7174", "--key", key], 2, ["every address", "--advertise"]),
        ("x5", &["--listen", &join, "--join", &join, "--key", key], 3, ["cannot listen on", "--listen"]),
        ("n1", &[], 3, ["is in use by pid", "--data"]),
    ] {
        let ended = node(name, more).wait(PATIENCE);
        assert_eq!(ended.code(), code, "{name}: {}", ended.stderr);
        let told: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("nephila: ")).collect();
        assert!(
            told.len() == 1 && parts.iter().all(|part| told[0].contains(part)),
            "{name}: {}",
            ended.stderr
        );
    }
    // These wait until it is mended, and say so.
    let rate = ["--req-host-per-sec", "2"];
    for (name, more, part) in [
        (
            "y1",
            [&["--join", &*join, "--key", other_key.to_str().unwrap()], &rate[..]].concat(),
            "certificate of another cluster",
        ),
        (
            "y2",
            vec!["--join", &join, "--key", key, "--req-host-per-sec", "3"],
            "give every node the same settings",
        ),
        (
            "y3",
            [&["--join", &*nobody, "--key", key], &rate[..]].concat(),
            "connection refused; trying until it stands",
        ),
        (
            "y4",
            [&["--join", &*join, "--key", key, "--spread", "url"], &rate[..]].concat(),
            "so give one that joins the same --spread",
        ),
    ] {
        let listen = free_address();
        let running = node(name, &[&["--listen", &*listen], &more[..]].concat());
        wait_for(part, PATIENCE, || {
            let told = running.stderr();
            told.lines().any(|line| line.contains(part)).then_some(())
        });
        let told = running.stderr();
        assert_eq!(told.lines().filter(|line| line.contains(part)).count(), 1, "{name}: {told}");
        wait_for("it answers", PATIENCE, || {
            (run(["status", "--data", &data(name)]).code() == 0).then_some(())
        });
        let status = run(["cluster", "status", "--data", &data(name)]);
        assert_eq!(status.code(), 1, "{}", status.stderr);
        assert!(status.stderr.contains("not taken in by a cluster yet"), "{}", status.stderr);
        running.signal(Signal::SIGTERM);
        running.wait(PATIENCE);
    }
    let owned = wait_for("the table is dealt", PATIENCE, || {
        Some(partitions(&cluster.status(1))).filter(|owned| owned.iter().sum::<u64>() > 0)
    });
    assert_eq!(owned, [4_096], "nobody of them was taken in");
    cluster.stop(1);
    // What a cluster is spread by is decided when it is made.
    let other_spread = node("n1", &["--spread", "domain"]).wait(PATIENCE);
    assert_eq!(other_spread.code(), 3, "{}", other_spread.stderr);
    assert!(
        other_spread.stderr.contains("this cluster is spread by host")
            && other_spread.stderr.contains("say --spread host"),
        "{}",
        other_spread.stderr
    );
    // A directory of one cluster is no place for a node of another.
    let moved = node("n1", &["--key", other_key.to_str().unwrap()]).wait(PATIENCE);
    assert_eq!(moved.code(), 3, "{}", moved.stderr);
    assert!(moved.stderr.contains("is a node of another cluster than the key file's"), "{}", moved.stderr);
}

#[test]
fn the_directory_of_a_node_is_for_a_node() {
    // Enough hosts that each node has some.
    let spec = spec(16, 3);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "0");
    cluster.start(1);
    cluster.start(2);
    cluster.wait(1, 2);
    let seeds = farm.seeds_file();
    cluster.ask(1, &["add-seeds", seeds.to_str().unwrap()]).done();
    cluster.wait(2, 2);
    cluster.stop_all();
    let data = cluster.data(2);
    let config = cluster.dir.write("urls.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    for command in [
        vec!["crawl", "--data", data],
        vec!["crawl", "http://a.test/", "--data", data],
        vec!["urlserver", "--config", config.to_str().unwrap(), "--data", data],
    ] {
        let refused = run(&command);
        assert_eq!(refused.code(), 2, "{command:?}: {}", refused.stderr);
        let last = refused.stderr.lines().last().unwrap();
        assert!(last.contains("is a node of a cluster") && last.contains("nephila node --data"), "{last}");
    }
    // By its files alone, and the key of the cluster, it is told what is its own to fetch: nothing is left. All seeds came here.
    let data = cluster.data(1);
    let told = |command: &[&str], code: i32| {
        let told = run([command, &["--json", "--data", data]].concat());
        assert_eq!(told.code(), code, "{command:?}: {}", told.stderr);
        told
    };
    let readers =
        [(&["index", "stat"][..], 0), (&["index", "hosts"], 0), (&["index", "pending"], 0), (&["status"], 1)];
    for (command, code) in readers {
        assert_eq!(told(command, code).stderr, "", "{command:?}");
    }
    // Where the key is, was said to the other one by a flag.
    let other = run(["index", "stat", "--json", "--data", cluster.data(2)]).done();
    assert_eq!((other.stderr.as_str(), &other.json()["pending"]), ("", &0.into()));
    for stat in [told(&["index", "stat"], 0).json(), told(&["status"], 1).json()] {
        assert_eq!(stat["pending"], 0, "{stat}");
        let number = |name: &str| stat[name].as_u64().unwrap();
        let done = number("success") + number("errors");
        assert!(number("foreign") > 0 && number("known") == number("foreign") + done, "{stat}");
    }
    assert_eq!(told(&["index", "pending"], 0).text(), "");
    let hosts = told(&["index", "hosts"], 0).text();
    let hosts: Vec<Value> = hosts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(hosts.iter().all(|host| host["pending"] == 0), "{hosts:?}");
    assert!(hosts.iter().any(|host| host["foreign"] != 0), "{hosts:?}");
    // Without the key nobody can tell, and that is said.
    let key = cluster.key();
    let aside = cluster.dir.join("aside.key");
    std::fs::rename(&key, &aside).unwrap();
    let note = "URLs that are other nodes' to fetch count as pending here, too";
    for (command, code) in readers {
        let told = told(command, code);
        assert_eq!(told.stderr.lines().count(), 1, "{command:?}: {}", told.stderr);
        assert!(
            told.stderr.contains(note) && told.stderr.contains("its key file"),
            "{command:?}: {}",
            told.stderr
        );
    }
    // Nor with that of another cluster.
    let mut other = Cluster::new(&[]);
    other.start(1);
    other.stop_all();
    std::fs::copy(other.key(), &key).unwrap();
    let stat = told(&["index", "stat"], 0);
    assert!(stat.stderr.contains(note) && stat.stderr.contains("another cluster's"), "{}", stat.stderr);
    std::fs::rename(&aside, &key).unwrap();
    // And a crawl is no node.
    let plain = cluster.dir.join("plain");
    run(["add", "--data", plain.to_str().unwrap(), "http://a.test/"]).done();
    for command in [&["status"][..], &["table"], &["add-seeds", seeds.to_str().unwrap()]] {
        let refused = run([&["cluster"], command, &["--data", plain.to_str().unwrap()]].concat());
        assert_eq!(refused.code(), 3, "{}", refused.stderr);
        assert!(refused.stderr.contains("is no node of a cluster"), "{}", refused.stderr);
    }
    let stat = run(["index", "stat", "--data", plain.to_str().unwrap()]).done();
    assert_eq!(stat.stderr, "");
}

#[test]
fn a_demo_of_nodes_loses_one_on_the_way_and_no_page() {
    let dir = TempDir::new();
    let mut command = nephila();
    command.current_dir(dir.path());
    command.args(["demo", "--nodes", "3", "--hosts", "9", "--pages", "8", "--req-host-per-sec", "8"]);
    let ended = Running::start(&mut command).wait(Duration::from_secs(120)).done();
    let told = ended.text();
    for part in [
        "each has its share of the web",
        "9 new, 0 known, 0 refused; the running node has them",
        "node 3 is killed (SIGKILL)",
        "node 3 is started again",
        "ready: all is done everywhere",
        "72 of 72 pages of the farm are stored, 0 of them more than once, by 3 nodes",
        "no violation",
    ] {
        assert!(told.contains(part), "{part} in {told}{}", ended.stderr);
    }
    // Nothing of it is left running, and the next demo has its place.
    for number in 1..=3 {
        let data = dir.join(&format!("nephila-demo/node{number}"));
        assert_eq!(run(["status", "--data", data.to_str().unwrap()]).code(), 1);
    }
}
