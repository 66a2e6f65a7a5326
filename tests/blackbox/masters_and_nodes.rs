//! The promise: masters and nodes as they run, with nothing scripted between them. A domain that is moved while both nodes
//! crawl is asked by one of them at a time, with what its hosts asked for, and everything of it is fetched in the end; a
//! server can be emptied so; and with either of two masters killed again and again every line of every file is at one node.

use crate::master_process::line;
use crate::postgres_server::PostgresServer;
use crate::support::*;
use nephila::base::Rng;
use nephila::farm::SiteSpec;
use nephila::proto::reflog::Stamp;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A master at an address of its own, which it has again after it was killed.
struct Master {
    address: SocketAddr,
    dir: TempDir,
    config: PathBuf,
    running: Option<Running>,
}

impl Master {
    /// With more settings of `[master]`; servers are 1 and 2.
    fn start(more: &str) -> Master {
        let dir = TempDir::new();
        // Nobody else is on this address, so that its port stays free over a kill.
        let free = TcpListener::bind((Ipv4Addr::new(127, 77, 0, 1), 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let data = dir.join("data");
        let text = format!(
            "[master]\nlisten = \"{address}\"\ndata = \"{}\"\n{more}[[server]]\nid = 1\n[[server]]\nid = 2\n",
            data.display()
        );
        let config = dir.write("master.toml", text);
        let mut master = Master { address, dir, config, running: None };
        master.again();
        master
    }

    fn again(&mut self) {
        let running = Running::start(nephila().args(["master", "run", "--config"]).arg(&self.config));
        wait_for("the master listens", PATIENCE, || running.stderr().contains("listening on").then_some(()));
        self.running = Some(running);
    }

    fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.signal(Signal::SIGKILL);
        running.wait(PATIENCE);
    }

    fn data(&self) -> String {
        self.dir.join("data").to_str().unwrap().to_string()
    }

    fn give(&self, name: &str, text: &str) {
        let path = self.dir.write(&format!("out/{name}"), text);
        std::fs::rename(path, self.dir.join("data/spool").join(name)).unwrap();
    }

    fn status(&self) -> Value {
        run(["master", "status", "--json", "--data", &self.data()]).done().json()
    }

    fn map(&self, args: &[&str]) -> Run {
        run([&["master", "map"], args, &["--data", &self.data()]].concat()).done()
    }

    /// The server of a domain, when it has one.
    fn server_of(&self, domain: &str) -> Option<u64> {
        let args = ["master", "map", "show", domain, "--json", "--data", &self.data()];
        let shown = run(args);
        (shown.code() == 0).then(|| shown.json()["server"].as_u64())?
    }

    fn assert_audited(&self) {
        run(["master", "audit", "--data", &self.data()]).done();
    }
}

/// A node, which goes on where it was if it is started again.
struct Node {
    data: PathBuf,
    running: Option<Running>,
}

impl Node {
    fn start(dir: &TempDir, server: u16, masters: &[&Master], hosts: &Path, rate: &str) -> Node {
        let data = dir.join(&format!("node{server}"));
        let config = dir.write("node.toml", "[crawl]\ntimeout_master = \"1500ms\"\n");
        let masters: Vec<String> = masters.iter().map(|master| master.address.to_string()).collect();
        let mut command = crawl_command(&data);
        command.args(["--cores", "0", "--depth", "0", "--master", &masters.join(",")]);
        command.args(["--server", &server.to_string(), "--req-host-per-sec", rate, "--hosts-file"]);
        command.arg(hosts).arg("--config").arg(config);
        Node { data, running: Some(Running::start(&mut command)) }
    }

    /// `nephila status` of it; nothing before it has a doc index.
    fn status(&self) -> Value {
        let status = run(["status", "--json", "--data", self.data.to_str().unwrap()]);
        if status.code() == 0 { status.json() } else { Value::Null }
    }

    fn stop(&mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal(Signal::SIGTERM);
        running.wait(PATIENCE).ended().stderr
    }

    /// The state of every URL that it knows; it must not run.
    fn known(&self) -> BTreeMap<String, String> {
        let exported = run(["index", "export", "--data", self.data.to_str().unwrap()]).done();
        let text = |value: &Value| value.as_str().unwrap().to_string();
        exported.json_lines().iter().map(|line| (text(&line["url"]), text(&line["state"]))).collect()
    }
}

fn assert_audited_together(nodes: &[Node; 2]) {
    let [a, b] = [0, 1].map(|at| nodes[at].data.to_str().unwrap());
    let audited = run(["audit", "--data", a, "--data", b]);
    assert_eq!(audited.code(), 0, "{}{}", audited.text(), audited.stderr);
}

/// A line that was written so many seconds ago.
fn line_of(url: &str, ago_s: u32) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    let at = Stamp::from_s(now_s - ago_s).digits();
    format!("1\t5\t{}\t17\t{url}\t1\t\n", String::from_utf8_lossy(&at))
}

fn host_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

#[test]
fn a_domain_moves_under_load_with_its_pauses_and_its_retries_and_nothing_is_lost() {
    const RETRY_AFTER_S: i64 = 7;
    let dir = TempDir::new();
    let hosts = dir.write(
        "hosts",
        "127.0.1.1 www.moves.test\n127.0.1.2 busy.moves.test\n127.0.1.3 www.stays.test\n127.0.1.4 www.other.test\n",
    );
    let was_busy = std::sync::atomic::AtomicBool::new(false);
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /denied\n"),
        _ if asked.name().starts_with("busy")
            && !was_busy.swap(true, std::sync::atomic::Ordering::SeqCst) =>
        {
            let head = format!("Retry-After: {RETRY_AFTER_S}\r\n");
            Reply::new("503 Service Unavailable", &head, "")
        }
        _ => Reply::html("page"),
    });
    let port = server.port();
    let url = |host: &str, number: u32| format!("http://{host}.test:{port}/{number}");
    let master = Master::start("");
    let mut nodes = [1, 2].map(|number| Node::start(&dir, number, &[&master], &hosts, "5"));
    let mut all: Vec<String> = (0..40).map(|number| url("www.moves", number)).collect();
    all.extend((0..4).map(|number| url("busy.moves", number)));
    all.extend((0..30).flat_map(|number| [url("www.stays", number), url("www.other", number)]));
    let denied = format!("http://www.moves.test:{port}/denied");
    master.give("a.reflog", &all.iter().chain([&denied]).map(|url| line(url)).collect::<String>());

    let pages = |host: &str| -> Vec<_> {
        let asked = server.asked().into_iter();
        asked.filter(|asked| asked.name().starts_with(host) && asked.target != "/robots.txt").collect()
    };
    wait_for("its hosts are asked, and one of them asks us to wait", PATIENCE, || {
        (!pages("busy").is_empty() && pages("www.moves").len() >= 5 && pages("www.stays").len() >= 5)
            .then_some(())
    });
    let from = master.server_of("moves.test").unwrap();
    let to = 3 - from;
    master.map(&["move", "moves.test", &to.to_string()]);
    // More comes while it moves.
    let more: Vec<String> = (40..50).map(|number| url("www.moves", number)).collect();
    master.give("b.reflog", &more.iter().map(|url| line(url)).collect::<String>());
    all.extend(more);
    wait_for("the map has it", PATIENCE, || (master.server_of("moves.test") == Some(to)).then_some(()));

    let fetched = || -> BTreeSet<String> {
        let asked = server.asked().into_iter().filter(|asked| asked.answered_ns < i64::MAX);
        asked.map(|asked| format!("http://{}{}", asked.host, asked.target)).collect()
    };
    wait_for("every URL is asked for", PATIENCE, || {
        all.iter().all(|url| fetched().contains(url)).then_some(())
    });
    let busy = wait_for("also what is to be tried again", PATIENCE, || {
        let busy = pages("busy");
        (busy.len() == 5).then_some(busy)
    });
    let waited_ns = busy[1].at_ns - busy[0].answered_ns;
    assert!(waited_ns >= RETRY_AFTER_S * 1_000_000_000, "waited {} ms", waited_ns / 1_000_000);
    let asked = server.asked();
    let count = |what: &str| asked.iter().filter(|asked| asked.place() == what).count();
    for host in ["www.moves", "busy.moves"] {
        assert_eq!(count(&format!("{host}.test/robots.txt")), 1, "its rules move along");
    }
    assert_eq!(pages("www.moves").len(), 50, "each is asked for once, and nothing that is denied");

    let said = nodes.each_mut().map(Node::stop);
    let [old, new] = if from == 1 { [0, 1] } else { [1, 0] };
    assert!(said[old].contains("moves.test is handed over to another server"), "{}", said[old]);
    assert!(said[new].contains("moves.test is with this server from now on"), "{}", said[new]);
    assert!(said[new].contains("from entry 0 on"), "{}", said[new]);
    assert_audited_together(&nodes);
    let known = nodes.each_ref().map(Node::known);
    for url in &all {
        let states = [old, new].map(|at| known[at].get(url).map(String::as_str));
        let is_once = matches!(states, [Some("success"), None] | [None | Some("excluded"), Some("success")]);
        assert!(is_once, "{url}: {states:?}");
    }
    master.assert_audited();
}

#[test]
fn a_server_is_emptied_while_it_crawls() {
    let farm = Farm::start(SiteSpec { hosts: 24, pages: 20, denied: 0, errors: 0.2, ..SiteSpec::default() });
    let dir = TempDir::new();
    let master = Master::start("by = \"host\"\n");
    let mut nodes = [1, 2].map(|number| Node::start(&dir, number, &[&master], &farm.hosts_file(), "4"));
    let urls: Vec<String> = (0..24)
        .flat_map(|host| (0..20).map(move |page| (host, page)))
        .map(|(host, page)| farm.url(host, page))
        .collect();
    master.give("a.reflog", &urls.iter().map(|url| line(url)).collect::<String>());
    wait_for("both crawl", PATIENCE, || {
        nodes.iter().all(|node| node.status()["pages"].as_u64() >= Some(20)).then_some(())
    });
    master.map(&["drain", "1"]);
    wait_for("all hosts are with the other", PATIENCE, || {
        let rows = master.map(&["ls", "--json"]).json_lines();
        (rows.len() == 24 && rows.iter().all(|row| row["server"] == 2)).then_some(())
    });
    let server = master.status()["servers"][0].clone();
    assert_eq!((&server["id"], &server["state"]), (&1.into(), &"draining".into()), "{server}");
    // What is to be tried again is tried there.
    wait_for("nothing is left at the one, and nothing but retries at the other", PATIENCE, || {
        let [one, two] = nodes.each_ref().map(Node::status);
        let idle = |status: &Value| status["open"] == 0 && status["pending"] == status["waiting"];
        (one["pending"] == 0 && idle(&two)).then_some(())
    });
    nodes.iter_mut().for_each(|node| drop(node.stop()));
    let [one, two] = nodes.each_ref().map(Node::known);
    for url in &urls {
        let states = [one.get(url), two.get(url)].map(|state| state.map(String::as_str));
        let is_done = |state: Option<&str>| matches!(state, Some("success" | "error"));
        let is_here = match states {
            [None | Some("excluded"), Some(_)] => true,
            [state, None] => is_done(state),
            _ => false,
        };
        assert!(is_here, "{url}: {states:?}");
    }
    assert_audited_together(&nodes);
    master.assert_audited();
}

#[test]
fn either_master_is_killed_and_every_line_is_at_one_node() {
    let kills = std::env::var("NEPHILA_MASTER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    let farm = Farm::start(SiteSpec { hosts: 30, pages: 2_000, denied: 0, ..SiteSpec::default() });
    let database = PostgresServer::start();
    let socket = database.socket().display().to_string().replace('/', "%2F");
    let more = format!("by = \"host\"\ndatabase = \"postgres://nephila@{socket}/postgres\"\n");
    let mut masters = [Master::start(&more), Master::start(&more)];
    let dir = TempDir::new();
    let mut nodes = {
        let [a, b] = &masters;
        [1, 2].map(|number| Node::start(&dir, number, &[a, b], &farm.hosts_file(), "20"))
    };
    let mut urls = BTreeSet::new();
    let mut give = |masters: &[Master; 2], count: u32, ago_s: u32| {
        let from = urls.len() as u32;
        let new: Vec<String> =
            (from..from + count).map(|number| farm.url(number % 30, number / 30)).collect();
        let text: String = new.iter().map(|url| line_of(url, ago_s)).collect();
        masters.iter().for_each(|master| master.give(&format!("f{from}.reflog"), &text));
        urls.extend(new);
        urls.clone()
    };
    // A master that nobody takes from hears by the time how far nodes are.
    give(&masters, 300, 900);
    wait_for("it is sent", PATIENCE, || {
        masters.iter().all(|master| master.status()["sent"].as_u64() >= Some(300)).then_some(())
    });
    give(&masters, 60, 0);
    wait_for("what is old is no more in the queues of the other master", PATIENCE, || {
        let servers = masters[1].status()["servers"].clone();
        servers.as_array()?.iter().all(|server| server["position"].as_u64() > Some(0)).then_some(())
    });
    let mut rng = Rng::new(15);
    for _ in 0..kills {
        give(&masters, 90, 0);
        std::thread::sleep(Duration::from_millis(rng.below(400)));
        let at = rng.below(2) as usize;
        masters[at].kill();
        // Sometimes for so long that the nodes change to the other.
        std::thread::sleep(Duration::from_millis(rng.below(3_000)));
        masters[at].again();
    }
    let all = give(&masters, 90, 0);
    wait_for("the masters have all of it, and so have the nodes", PATIENCE, || {
        let known: u64 = nodes.iter().filter_map(|node| node.status()["known"].as_u64()).sum();
        let is_whole = masters.iter().all(|master| master.status()["files_waiting"] == 0);
        (is_whole && known >= all.len() as u64).then_some(())
    });
    nodes.iter_mut().for_each(|node| drop(node.stop()));
    let known = nodes.each_ref().map(Node::known);
    let lost: Vec<&String> =
        all.iter().filter(|url| !known.iter().any(|known| known.contains_key(*url))).collect();
    assert!(lost.is_empty(), "{} lost: {:?}", lost.len(), &lost[..lost.len().min(5)]);
    let hosts = known.each_ref().map(|known| known.keys().map(|url| host_of(url)).collect::<BTreeSet<_>>());
    assert!(hosts[0].is_disjoint(&hosts[1]) && !hosts[0].is_empty() && !hosts[1].is_empty(), "{hosts:?}");
    assert_audited_together(&nodes);
    for master in &masters {
        master.assert_audited();
    }
}
