//! The promise: nodes that cannot hear each other never ask a host together. Whoever is cut off from the majority, or sleeps,
//! falls silent by itself before others take over, and comes back when it is heard again; whoever is killed loses nothing. The
//! judge is the log of the web itself, by the kernel's time stamps: each node is a machine in a network of the test's own, with
//! its own address, and every page is named by one other page alone, so that a URL that is lost is missed.
//!
//! `NEPHILA_CLUSTER_KILLS=200` makes a long run of the kills, `NEPHILA_SEED=…` the same run again:
//!
//! ```text
//!   NEPHILA_CLUSTER_KILLS=200 cargo test --test blackbox cluster_net::nodes_that_are_killed -- --nocapture
//! ```

use crate::cluster::{Cluster, Node};
use crate::link::now_ns;
use crate::namespaces::{NET, Network};
use crate::orders::Chance;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The machine of the web; nodes have their numbers.
const WEB: u8 = 200;
const SECOND_NS: i64 = 1_000_000_000;
/// When a silent node is taken over, when its right ends, and what a request may take: as `node` is told below.
const TAKEOVER_NS: i64 = 30 * SECOND_NS;
const HOLD_NS: i64 = 12 * SECOND_NS;
const TIMEOUT_NS: i64 = 3 * SECOND_NS;
/// Hosts fall on nodes by a secret that is new each time: so many that none is left without one in a hundred thousand runs.
const HOSTS: usize = 36;
/// What a host and an address are owed between two requests, less what packets may be late.
const GAP_NS: i64 = 900_000_000;
/// What a node learned so long ago is in its copy, on a machine that is busy with other tests.
const COPIED_NS: i64 = 10 * SECOND_NS;
/// A node that comes back to its own disk has what it learned so long before it was killed.
const STORED_NS: i64 = 5 * SECOND_NS;

// The web ---------------------------------------------------------------------------------------------------

/// Hosts with pages in layers. A host has pages that are named by each other, so that a node that is alone has work for long;
/// every fifth of them names a page of another host, too, which nobody else names.
#[derive(Clone)]
struct Web {
    hosts: usize,
    /// Pages of a host in a layer that are named by its own.
    pages: usize,
    /// So many hosts share addresses, two by two, and have half as many pages.
    sharing: usize,
}

/// Numbers of pages from here on are named by other hosts.
const ABROAD: usize = 1_000;

impl Web {
    fn address(&self, host: usize) -> Ipv4Addr {
        let number = if host < self.sharing { host / 2 } else { host };
        Ipv4Addr::new(10, 77, 1, number as u8)
    }

    fn addresses(&self) -> BTreeSet<Ipv4Addr> {
        (0..self.hosts).map(|host| self.address(host)).collect()
    }

    /// What a page names, as host and page.
    fn named(&self, host: usize, page: usize) -> Vec<(usize, usize)> {
        let pages = if host < self.sharing { self.pages / 2 } else { self.pages };
        if page >= pages {
            return Vec::new();
        }
        let own = [2 * page + 1, 2 * page + 2].into_iter().filter(|named| *named < pages);
        let mut named: Vec<_> = own.map(|named| (host, named)).collect();
        if page.is_multiple_of(5) {
            named.push(((host + 1 + page / 5) % self.hosts, ABROAD + page / 5));
        }
        named
    }

    /// All pages, as host and page: the first of every host leads to them.
    fn pages(&self) -> Vec<(usize, usize)> {
        let mut all: Vec<_> = (0..self.hosts).map(|host| (host, 0)).collect();
        let mut done = 0;
        while let Some(&(host, page)) = all.get(done) {
            all.extend(self.named(host, page));
            done += 1;
        }
        all
    }

    fn url(port: &str, layer: usize, (host, page): (usize, usize)) -> String {
        format!("http://h{host}.net.test:{port}/{layer}/{page}")
    }

    fn answer(&self, asked: &Asked) -> Reply {
        if asked.target == "/robots.txt" {
            return Reply::status("404 Not Found");
        }
        let number = |text: &str| text.parse::<usize>().unwrap();
        let (layer, page) = asked.target[1..].split_once('/').unwrap();
        let host = number(&asked.name().split('.').next().unwrap()[1..]);
        let port = asked.host.split(':').nth(1).unwrap();
        let named = self.named(host, number(page)).into_iter();
        Reply::links(named.map(|named| Web::url(port, number(layer), named))).after_ms(20)
    }
}

fn is_page(asked: &Asked) -> bool {
    asked.target != "/robots.txt"
}

/// The number of the node that asked.
fn asker(asked: &Asked) -> u16 {
    match asked.peer {
        IpAddr::V4(peer) => u16::from(peer.octets()[3]),
        IpAddr::V6(_) => unreachable!("the network has no such addresses"),
    }
}

// Nodes, each on its machine --------------------------------------------------------------------------------

struct World {
    cluster: Cluster,
    web: Web,
    /// `None` when it is over.
    server: Option<LogServer>,
    network: Network,
    began: Instant,
}

impl World {
    /// Three nodes with a council, each with its share of nothing yet. `None` where there are no namespaces.
    fn new(hosts: usize, pages: usize, sharing: usize) -> Option<World> {
        let network = Network::new([1, 2, 3, WEB])?;
        let web = Web { hosts, pages, sharing };
        web.addresses().into_iter().for_each(|address| network.add(WEB, address));
        let answering = web.clone();
        let server = network.inside(WEB, || {
            LogServer::start_on(Ipv4Addr::UNSPECIFIED, move |asked: &Asked| answering.answer(asked))
        });
        let mut cluster = Cluster::new(&["--scope", "any", "--allow-net", NET, "--req-host-per-sec", "1"]);
        let lines: String =
            (0..hosts).map(|host| format!("{} h{host}.net.test\n", web.address(host))).collect();
        let names = cluster.dir.write("hosts", lines);
        let names = ["--hosts-file", names.to_str().unwrap()];
        let times = ["--takeover", "30s", "--timeout-req", "3000", "--copies", "1"];
        cluster.more.extend(names.into_iter().chain(times).map(str::to_string));
        let mut world = World { cluster, web, server: Some(server), network, began: Instant::now() };
        [1, 2, 3].into_iter().for_each(|number| world.start(number));
        world.wait(1, 3);
        world.until("a council", || {
            let status = world.status(1);
            let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
            let left_ms = |node: &Value| node["told"]["right_left_ms"].as_u64().unwrap_or(0);
            let have_rights = nodes.iter().all(|node| (1..u64::from(u32::MAX)).contains(&left_ms(node)));
            status["mode"] == "council" && status["voters"].as_array().unwrap().len() == 3 && have_rights
        });
        Some(world)
    }

    /// Starts a node for the first time, or again.
    fn start(&mut self, number: u16) {
        let mut command = nephila();
        command.args(["node", "--data"]);
        let known = self.cluster.nodes.remove(&number);
        let listen = |number: u16| format!("{}:7174", Network::address(number as u8));
        let (data, address) = (self.cluster.dir.join(&format!("n{number}")), listen(number));
        command.arg(&data);
        match known {
            Some(known) => assert!(known.running.is_none()),
            None => {
                command.args(["--cores", "0", "--listen", &address]).args(&self.cluster.more);
                match number {
                    1 => command.args(["--spread", "host"]),
                    _ => command.args(["--join", &listen(1), "--key"]).arg(self.cluster.key()),
                };
            }
        }
        let running = self.network.inside(number as u8, || Running::start(&mut command));
        self.cluster.nodes.insert(number, Node { data, address, running: Some(running) });
        // Numbers are given in the order in which nodes are taken in.
        self.until("the node has its number", || self.status(number)["node"] == number);
    }

    /// Tells how far a test is.
    fn tell(&self, what: &str) {
        println!("{:6.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn status(&self, number: u16) -> Value {
        serde_json::from_str(&self.cluster.ask(number, &["status", "--json"]).text()).unwrap_or_default()
    }

    /// Waits, without taking the machine from those who are waited for.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let turns = (0..500).find(|_| {
            sleep(Duration::from_millis(400));
            is_so()
        });
        assert!(turns.is_some(), "not in time: {what}\n{}", self.said());
    }

    fn said(&self) -> String {
        let nodes = self.cluster.nodes.iter();
        let said = nodes.filter_map(|(number, node)| Some((number, node.running.as_ref()?.stderr())));
        said.map(|(number, said)| format!("--- node {number}\n{said}")).collect()
    }

    /// Waits at a node until so many have their share and all is done.
    #[track_caller]
    fn wait(&self, number: u16, nodes: usize) {
        let ask = || self.cluster.ask(number, &["wait", "--nodes", &nodes.to_string(), "--timeout", "45"]);
        let ended = (0..5).map(|_| ask()).find(|ended| ended.code() == 0);
        assert!(ended.is_some(), "not ready: {}\n{}", ask().stderr, self.said());
    }

    /// Gives the first pages of a layer to a node, and says what it complains of.
    fn add_seeds(&self, number: u16, layer: usize) -> String {
        let port = self.server().port().to_string();
        let seeds = (0..self.web.hosts).map(|host| Web::url(&port, layer, (host, 0)) + "\n");
        let seeds = self.cluster.dir.write("seeds", seeds.collect::<String>());
        self.cluster.ask(number, &["add-seeds", seeds.to_str().unwrap()]).done().stderr.clone()
    }

    fn server(&self) -> &LogServer {
        self.server.as_ref().unwrap()
    }

    fn signal(&self, number: u16, signal: Signal) {
        self.cluster.nodes[&number].running.as_ref().unwrap().signal(signal);
    }

    fn has_said(&self, number: u16, part: &str) -> bool {
        self.cluster.nodes[&number].running.as_ref().unwrap().stderr().contains(part)
    }

    #[track_caller]
    fn until_asked(&self, pages: usize) {
        self.until("a part of the pages", || {
            self.server().asked().iter().filter(|asked| is_page(asked)).count() >= pages
        });
    }

    #[track_caller]
    fn until_copied(&self) {
        self.until("every copy is in step", || {
            self.cluster.nodes.keys().all(|number| self.status(*number)["copy"]["in_step"] == true)
        });
    }

    fn has_left(&self, at: u16, number: u16) -> bool {
        let status = self.status(at);
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().any(|node| node["number"] == number && node["membership"] == "left")
    }

    /// Waits at a node until it has taken another over, and a host that was the other's was asked by somebody else.
    #[track_caller]
    fn until_taken_over(&self, at: u16, number: u16, since_ns: i64) {
        self.until("it is taken over", || self.has_left(at, number));
        self.tell("taken over");
        self.until("its hosts are asked by others", || {
            self.asked_instead_of(number, since_ns, i64::MAX).next().is_some()
        });
    }

    /// What others asked hosts for that a node had asked before a moment.
    fn asked_instead_of(&self, number: u16, from_ns: i64, to_ns: i64) -> impl Iterator<Item = Asked> {
        let asked = self.server().asked();
        let before = asked.iter().filter(|asked| asker(asked) == number && asked.at_ns < from_ns);
        let hosts: BTreeSet<String> = before.map(|asked| asked.host.clone()).collect();
        let others = asked.into_iter().filter(move |asked| asker(asked) != number);
        others.filter(move |asked| (from_ns..to_ns).contains(&asked.at_ns) && hosts.contains(&asked.host))
    }

    /// What a node asked for between two moments.
    fn asked_by(&self, number: u16, from_ns: i64, to_ns: i64) -> Vec<Asked> {
        let asked = self.server().asked().into_iter();
        asked.filter(|asked| asker(asked) == number && (from_ns..to_ns).contains(&asked.at_ns)).collect()
    }

    /// Whether hosts that a node asked before a moment had pages that their own pages had named and nobody got by the end of its
    /// right.
    fn has_left_work(&self, number: u16, since_ns: i64) -> bool {
        let asked = self.server().asked();
        let its = asked.iter().filter(|asked| asker(asked) == number && asked.at_ns < since_ns);
        let hosts: BTreeSet<&str> = its.map(Asked::name).collect();
        let is_own = |asked: &Asked| {
            asked.target.rsplit('/').next().unwrap().parse().is_ok_and(|page: usize| page < ABROAD)
        };
        asked.iter().any(|asked| {
            asked.at_ns > since_ns + HOLD_NS + TIMEOUT_NS && hosts.contains(asked.name()) && is_own(asked)
        })
    }

    /// Everything is over: all pages of so many layers are stored, the web's own log says that every host and address was
    /// treated as promised, and so does the audit of all nodes' logs.
    #[track_caller]
    fn judge(&mut self, layers: usize) {
        self.cluster.stop_all();
        let asked = self.server().asked();
        for key in [|asked: &Asked| asked.host.clone(), |asked: &Asked| asked.ip.to_string()] {
            let mut by_key: BTreeMap<String, Vec<&Asked>> = BTreeMap::new();
            asked.iter().for_each(|asked| by_key.entry(key(asked)).or_default().push(asked));
            for (name, asked) in by_key {
                for pair in asked.windows(2) {
                    let gap_ns = pair[1].at_ns - pair[0].at_ns;
                    assert!(gap_ns >= GAP_NS, "{name} was asked again after {gap_ns} ns: {pair:?}");
                    assert!(pair[0].answered_ns <= pair[1].at_ns, "two are open at {name}: {pair:?}");
                }
            }
        }
        let port = self.server().port().to_string();
        let stored = self.cluster.stored_times();
        let pages = self.web.pages();
        let urls = (0..layers).flat_map(|layer| pages.iter().map(move |page| (layer, *page)));
        let urls = urls.map(|(layer, page)| Web::url(&port, layer, page));
        let lost: Vec<String> = urls.filter(|url| stored.get(url).is_none_or(|times| *times == 0)).collect();
        assert!(lost.is_empty(), "{} pages are lost: {lost:?}", lost.len());
        let data = self.cluster.nodes.values().flat_map(|node| [Path::new("--data"), &node.data]);
        let audited = run([Path::new("audit")].into_iter().chain(data));
        assert_eq!(audited.code(), 0, "{}{}", audited.text(), audited.stderr);
        assert!(audited.text().contains(&format!(" to {} hosts ", self.web.hosts)), "{}", audited.text());
    }

    /// Pages that were asked for more than once, and how often.
    fn repeats(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for asked in self.server().asked().iter().filter(|asked| is_page(asked)) {
            *times.entry(asked.place()).or_default() += 1;
        }
        times.retain(|_, times| *times > 1);
        times
    }

    /// Nothing was asked for twice but what may be, and that not three times.
    #[track_caller]
    fn assert_repeats(&self, may_repeat: &[Asked]) -> usize {
        let repeats = self.repeats();
        let may_repeat: BTreeSet<String> = may_repeat.iter().map(Asked::place).collect();
        let wrong: Vec<_> =
            repeats.iter().filter(|(place, times)| **times > 2 || !may_repeat.contains(*place)).collect();
        if let Some((place, _)) = wrong.first() {
            let asked = self.server().asked();
            let when: Vec<_> = asked
                .iter()
                .filter(|asked| asked.place() == **place)
                .map(|asked| (asker(asked), asked.at_ns))
                .collect();
            panic!("{} pages were asked for again: {wrong:?}, the first of them {when:?}", wrong.len());
        }
        repeats.len()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.cluster.nodes.clear();
        let server = self.server.take();
        // It is woken up by a connection.
        self.network.inside(WEB, || drop(server));
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

// Cuts ------------------------------------------------------------------------------------------------------

/// Who is not heard by whom, and what becomes of it.
struct Shape {
    name: &'static str,
    /// From whom to whom everything is lost.
    lost: &'static [(u8, u8)],
    /// Who has no majority any more.
    silent: &'static [u16],
}

impl Shape {
    /// A majority is left to take over.
    fn is_taken_over(&self) -> bool {
        self.silent.len() == 1
    }
}

const SHAPES: [Shape; 5] = [
    Shape {
        name: "node 3 and both others do not hear each other",
        lost: &[(3, 1), (3, 2), (1, 3), (2, 3)],
        silent: &[3],
    },
    Shape { name: "node 3 is not heard", lost: &[(3, 1), (3, 2)], silent: &[3] },
    Shape { name: "node 3 hears nobody", lost: &[(1, 3), (2, 3)], silent: &[3] },
    Shape { name: "nodes 2 and 3 do not hear each other", lost: &[(2, 3), (3, 2)], silent: &[] },
    Shape {
        name: "nobody hears anybody",
        lost: &[(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)],
        silent: &[1, 2, 3],
    },
];

fn cut(shape: &Shape) {
    let Some(mut world) = World::new(HOSTS, 40, 4) else { return };
    world.add_seeds(2, 0);
    world.until_asked(2 * HOSTS);
    // What is known by now is in the copies when the cut begins.
    let known_ns = now_ns();
    sleep(Duration::from_secs(6));
    world.until_copied();
    world.tell(&format!("cut: {}", shape.name));
    shape.lost.iter().for_each(|(from, to)| world.network.cut(*from, *to));
    let cut_ns = now_ns();
    if shape.is_taken_over() {
        world.until_taken_over(1, 3, cut_ns);
    }
    while now_ns() < cut_ns + 2 * TAKEOVER_NS {
        sleep(Duration::from_secs(1));
    }
    if !shape.is_taken_over() {
        let status = world.status(2);
        assert_eq!(status["ready"], false, "what one has for another is not told yet: {status}");
        assert!((1..=3).all(|at| (1..=3).all(|number| !world.has_left(at, number))), "a majority was needed");
    }
    for number in 1..=3 {
        let is_told = world.has_said(number, "this node has no right to ask hosts any more");
        assert_eq!(is_told, shape.silent.contains(&number), "node {number}\n{}", world.said());
    }
    world.tell(&format!("healed: {}", shape.name));
    let healed_ns = now_ns();
    shape.lost.iter().for_each(|(from, to)| world.network.heal(*from, *to));
    if shape.is_taken_over() {
        world.until("it begins anew", || world.has_said(3, "other nodes have taken over "));
    }
    world.wait(2, 3);
    world.tell(&format!("ready: {}", shape.name));
    assert!((1..=3).all(|number| !world.has_left(1, number)), "all are back");

    for number in 1..=3 {
        let since = |asked: Option<&Asked>| asked.map_or(f64::NAN, |asked| seconds(asked.at_ns - cut_ns));
        let during = world.asked_by(number, cut_ns, healed_ns);
        let (last, count) = (since(during.last()), during.len());
        println!("{}: node {number} asked {count} times during the cut, last after {last:.1} s", shape.name);
        let late = world.asked_by(number, cut_ns + HOLD_NS + TIMEOUT_NS, healed_ns);
        assert!(!during.is_empty(), "it goes on for as long as it has its right");
        if shape.silent.contains(&number) {
            assert!(late.is_empty(), "node {number} had no right to ask: {late:?}");
            assert!(
                world.has_left_work(number, cut_ns),
                "nothing was left to ask for: the cut shows nothing"
            );
        }
    }
    // Where nobody heard anybody, two that meet first after it may take over the third, which was silent for as long.
    let taken_over =
        shape.silent.iter().filter(|number| world.has_said(**number, "other nodes have taken over "));
    let taken_over: Vec<u16> = taken_over.copied().collect();
    assert!(taken_over.len() <= 1 && (taken_over == [3] || !shape.is_taken_over()), "{taken_over:?}");
    let lost: Vec<Asked> =
        taken_over.iter().flat_map(|number| world.asked_by(*number, known_ns, healed_ns)).collect();
    if shape.is_taken_over() {
        let first = world.asked_instead_of(3, cut_ns, healed_ns).next().expect("it was waited for");
        let last = lost.last().unwrap();
        println!("{}: its heir asked first after {:.1} s", shape.name, seconds(first.at_ns - cut_ns));
        assert!(last.at_ns < first.at_ns, "{last:?} after its heir had asked: {first:?}");
    }
    let repeats = world.assert_repeats(&lost);
    println!("{}: {repeats} pages were asked for again of {} that may be", shape.name, lost.len());
    world.judge(1);
}

#[test]
fn whoever_is_cut_off_falls_silent_is_taken_over_and_comes_back() {
    // They wait most of the time.
    std::thread::scope(|scope| {
        let cuts = SHAPES.each_ref().map(|shape| (shape.name, scope.spawn(|| cut(shape))));
        let failed = cuts.map(|(name, cut)| (cut.join().is_err()).then_some(name));
        let failed: Vec<&str> = failed.into_iter().flatten().collect();
        assert!(failed.is_empty(), "not as promised: {failed:?}");
    });
}

#[test]
fn whoever_sleeps_for_longer_than_its_right_asks_nothing_when_it_wakes() {
    let Some(mut world) = World::new(HOSTS, 30, 0) else { return };
    world.add_seeds(1, 0);
    world.until_asked(2 * HOSTS);
    let known_ns = now_ns();
    sleep(Duration::from_secs(6));
    world.until_copied();
    world.tell("asleep");
    world.signal(3, Signal::SIGSTOP);
    let asleep_ns = now_ns();
    world.until("it is taken over", || world.has_left(2, 3));
    // Addresses are still lent to it: only its right has ended.
    world.tell("awake");
    let awake_ns = now_ns();
    world.signal(3, Signal::SIGCONT);
    wait_for("it begins anew", PATIENCE, || world.has_said(3, "other nodes have taken over ").then_some(()));
    let anew_ns = now_ns();
    world.wait(2, 3);
    world.tell("ready");
    assert!(!world.has_left(1, 3), "it is back");
    // What was on the wire came at once, and it is given nothing before it has begun anew and joined.
    let late = world.asked_by(3, asleep_ns + TIMEOUT_NS, anew_ns);
    let lost = world.asked_by(3, known_ns, awake_ns);
    println!(
        "it slept for {:.1} s, and asked {} times without a right",
        seconds(awake_ns - asleep_ns),
        late.len()
    );
    assert!(late.is_empty(), "it had no right to ask: {late:?}");
    assert!(world.has_left_work(3, asleep_ns), "nothing was left to ask for: its sleep shows nothing");
    let repeats = world.assert_repeats(&lost);
    println!("{repeats} pages were asked for again of {} that may be", lost.len());
    world.judge(1);
}

// Kills -----------------------------------------------------------------------------------------------------

/// How long a node that was killed stays away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Moment,
    UntilTakenOver,
    UntilOthersAreDone,
}

#[test]
fn nodes_that_are_killed_lose_nothing() {
    let kills = std::env::var("NEPHILA_CLUSTER_KILLS");
    let kills = kills.map_or(5, |text| text.parse().expect("NEPHILA_CLUSTER_KILLS is a number"));
    let mut chance = Chance::new();
    // Who was killed while it had an address that others want keeps them waiting for a minute: not in the short run.
    let sharing = if kills > 5 { 2 } else { 0 };
    let Some(mut world) = World::new(12, 8, sharing) else { return };
    let (mut repeats, mut may_repeat) = (0, Vec::new());
    for layer in 0..kills {
        let away = match layer % 10 {
            3 => Away::UntilOthersAreDone,
            8 => Away::UntilTakenOver,
            _ => Away::Moment,
        };
        let number = 1 + chance.below(3) as u16;
        let other = 1 + number % 3;
        // One is lost at a time: that much one copy is for.
        world.until_copied();
        let complaint = world.add_seeds(1 + chance.below(3) as u16, layer);
        assert!(!complaint.contains("alone"), "whoever is killed has a copy of them elsewhere: {complaint}");
        sleep(Duration::from_millis(500 + chance.below(9_000)));
        world.cluster.kill(number);
        let killed_ns = now_ns();
        world.tell(&format!("kill {layer}: node {number}, away: {away:?}"));
        match away {
            Away::Moment => sleep(Duration::from_millis(chance.below(4_000))),
            Away::UntilTakenOver => world.until("it is taken over", || world.has_left(other, number)),
            Away::UntilOthersAreDone => {
                world.until("it is taken over", || world.has_left(other, number));
                world.wait(other, 2);
                world.assert_all_asked(layer);
            }
        }
        world.start(number);
        world.wait(other, 3);
        world.assert_all_asked(layer);
        let safe_ns = if away == Away::Moment { STORED_NS } else { COPIED_NS };
        let open = world.asked_by(number, killed_ns - safe_ns, killed_ns);
        may_repeat.extend(open.into_iter().filter(is_page));
        repeats = world.assert_repeats(&may_repeat);
        let of = may_repeat.len();
        world.tell(&format!("after kill {layer}: {repeats} pages were asked for again of {of} that may be"));
    }
    println!("{kills} kills: {repeats} pages were asked for again");
    // Every disk is there, so every page can be read; of one that is lost, copies of documents will have to be asked.
    world.judge(kills);
}

impl World {
    #[track_caller]
    fn assert_all_asked(&self, layer: usize) {
        let asked: BTreeSet<String> = self.server().asked().iter().map(Asked::place).collect();
        let place = |(host, page)| format!("h{host}.net.test/{layer}/{page}");
        let places = self.web.pages().into_iter().map(place);
        let lost: Vec<String> = places.filter(|place| !asked.contains(place)).collect();
        assert!(lost.is_empty(), "ready, and {} pages were never asked for: {lost:?}", lost.len());
    }
}
