//! The promise: with `--council etcd://…` an etcd keeps the table and the rights. Nodes come and go down to one, a member of the
//! etcd may be killed, without its majority everybody waits, and whoever names another council is told in one line what to do.

use crate::cluster::{Cluster, assert_all_stored, free_address, partitions, spec};
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// An etcd of so many members, each at an address of its own.
struct Etcd {
    members: Vec<Member>,
    dir: TempDir,
}

struct Member {
    client: String,
    peer: String,
    running: Option<Running>,
}

impl Etcd {
    fn start(count: usize) -> Etcd {
        let member = |_| Member { client: free_address(), peer: free_address(), running: None };
        let mut etcd = Etcd { members: (0..count).map(member).collect(), dir: TempDir::in_memory() };
        (0..count).for_each(|at| etcd.start_member(at));
        (0..count).for_each(|at| etcd.answers(at));
        etcd
    }

    /// Also again, with what it has on its disk.
    fn start_member(&mut self, at: usize) {
        let name = |at: usize| format!("m{at}");
        let named = |(at, member): (usize, &Member)| format!("{}=http://{}", name(at), member.peer);
        let all: Vec<String> = self.members.iter().enumerate().map(named).collect();
        let member = &self.members[at];
        let (client, peer) = (format!("http://{}", member.client), format!("http://{}", member.peer));
        let mut command = Command::new("etcd");
        command.args(["--name", &name(at), "--data-dir"]).arg(self.dir.join(&name(at)));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &all.join(",")]);
        self.members[at].running = Some(Running::start(&mut command));
    }

    #[track_caller]
    fn answers(&mut self, at: usize) {
        let member = &mut self.members[at];
        wait_for("etcd answers", PATIENCE, || {
            let running = member.running.as_mut().unwrap();
            assert!(!running.has_ended(), "{}", running.stderr());
            is_healthy(&member.client).then_some(())
        });
    }

    fn kill(&mut self, at: usize) {
        let running = self.members[at].running.take().unwrap();
        running.signal(Signal::SIGKILL);
        running.wait(PATIENCE);
    }

    fn council(&self) -> String {
        let clients: Vec<&str> = self.members.iter().map(|member| &*member.client).collect();
        format!("etcd://{}", clients.join(","))
    }
}

/// Whether it says that it can write.
fn is_healthy(client: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(client)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("GET /health HTTP/1.0\r\nHost: {client}\r\n\r\n").as_bytes())?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    };
    ask().is_ok_and(|said| said.contains("\"health\":\"true\""))
}

fn membership(status: &Value, number: u64) -> (String, u64) {
    let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
    let node = nodes.into_iter().find(|node| node["number"] == number).unwrap_or_default();
    (node["membership"].as_str().unwrap_or("").to_string(), node["partitions"].as_u64().unwrap_or(0))
}

fn has_rights(status: &Value) -> bool {
    let is_held = |node: &Value| {
        node["membership"] == "left"
            || node["told"]["right_left_ms"].as_u64().is_some_and(|left| (1..60_000).contains(&left))
    };
    status["mode"] == "etcd" && status["nodes"].as_array().is_some_and(|nodes| nodes.iter().all(is_held))
}

#[test]
fn a_member_of_the_etcd_and_a_node_are_killed_and_no_page_is_lost() {
    let mut etcd = Etcd::start(3);
    let spec = spec(16, 12);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "1");
    cluster.more.extend(["--takeover", "30s", "--council", &etcd.council()].map(str::to_string));
    // One node alone has a right that ends.
    cluster.start(1);
    wait_for("a right by the etcd", PATIENCE, || has_rights(&cluster.status(1)).then_some(()));
    let told = cluster.ask(1, &["status"]).text();
    assert!(
        told.contains("council in etcd") && told.contains("council etcd, 3 endpoints, answered "),
        "{told}"
    );
    cluster.start(2);
    cluster.wait(1, 2);
    wait_for("rights of both", PATIENCE, || has_rights(&cluster.status(2)).then_some(()));
    let status = cluster.status(2);
    assert_eq!((&status["voters"], partitions(&status)), (&Value::Array(Vec::new()), vec![2_048; 2]));
    assert_eq!(status["council"]["endpoints"].as_array().map(Vec::len), Some(3), "{status}");
    cluster.ask(2, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    wait_for("a part of the pages", PATIENCE, || (cluster.pages(1) >= 20).then_some(()));
    // A member goes, perhaps the one that is asked, or that leads the others.
    etcd.kill(0);
    let had = cluster.pages(1);
    wait_for("the crawl goes on", PATIENCE, || (cluster.pages(1) >= had + 15).then_some(()));
    wait_for("rights are renewed", PATIENCE, || has_rights(&cluster.status(1)).then_some(()));
    assert_eq!(cluster.status(1)["council"]["fault"], "");
    // One of two nodes goes, and the other one has everything in the end.
    cluster.kill(2);
    wait_for("it is taken over", 4 * PATIENCE, || {
        (membership(&cluster.status(1), 2) == ("left".to_string(), 0)).then_some(())
    });
    cluster.wait(1, 1);
    assert_all_stored(&cluster, &farm, &spec);
    // Its directory has its council.
    cluster.start_again(2);
    cluster.wait(1, 2);
    assert_eq!(membership(&cluster.status(1), 2).0, "member");
    // What an operator orders goes the same way.
    cluster.ask(2, &["freeze"]).done();
    assert_eq!(cluster.status(1)["frozen"], true);
    cluster.ask(1, &["thaw"]).done();
    let refused = cluster.ask(1, &["forget", "2"]);
    assert_eq!(refused.code(), 1, "{}", refused.stderr);
    let drained = cluster.ask(1, &["drain", "2", "--timeout", "120"]);
    assert_eq!(drained.code(), 0, "{}", drained.stderr);
    assert_eq!(partitions(&cluster.status(1)), [4_096, 0]);
    cluster.stop_all();
    assert_all_stored(&cluster, &farm, &spec);
}

#[test]
fn without_a_majority_of_the_etcd_everybody_waits_and_goes_on_when_it_is_back() {
    let mut etcd = Etcd::start(3);
    let spec = spec(8, 40);
    let farm = Farm::start(spec.clone());
    let mut cluster = Cluster::of_farm(&farm, "1");
    cluster.more.extend(["--takeover", "30s", "--council", &etcd.council()].map(str::to_string));
    cluster.start(1);
    cluster.ask(1, &["add-seeds", farm.seeds_file().to_str().unwrap()]).done();
    wait_for("the first pages", PATIENCE, || (cluster.pages(1) >= 5).then_some(()));
    [1, 2].into_iter().for_each(|at| etcd.kill(at));
    let short = wait_for("it is missed", PATIENCE, || {
        let status = cluster.ask(1, &["status"]);
        (status.code() == 1 && status.stderr.contains("etcd does not answer")).then_some(status)
    });
    assert!(short.text().contains("council etcd, 3 endpoints, does not answer"), "{}", short.text());
    assert!(short.stderr.lines().count() == 1 && short.stderr.contains("--council"), "{}", short.stderr);
    let stderr = |cluster: &Cluster| cluster.nodes[&1].running.as_ref().unwrap().stderr();
    let lost = "this node has no right to ask hosts any more, as etcd does not answer: it waits";
    wait_for("the right ends", PATIENCE, || stderr(&cluster).contains(lost).then_some(()));
    let asked = farm.stats()["requests"].as_u64();
    wait_for("it is fenced", PATIENCE, || {
        (cluster.status(1)["nodes"][0]["told"]["state"] == "fenced").then_some(())
    });
    let asked_then = farm.stats()["requests"].as_u64();
    // A request that was on the wire may have ended since.
    assert!(asked_then <= asked.map(|count| count + 1), "{asked:?} and then {asked_then:?}");
    [1, 2].into_iter().for_each(|at| etcd.start_member(at));
    wait_for("it answers again", 2 * PATIENCE, || {
        stderr(&cluster).contains("etcd answers again").then_some(())
    });
    wait_for("it has its right", PATIENCE, || has_rights(&cluster.status(1)).then_some(()));
    let had = cluster.pages(1);
    wait_for("the crawl goes on", PATIENCE, || (cluster.pages(1) > had).then_some(()));
    let said = stderr(&cluster);
    let is_away = |line: &&str| line.starts_with("etcd does not answer: ");
    assert_eq!(said.lines().filter(is_away).count(), 1, "{said}");
    assert_eq!(said.matches("etcd answers again").count(), 1, "{said}");
    cluster.stop_all();
}

#[test]
fn another_council_than_the_clusters_is_told_in_one_line() {
    let mut etcd = Etcd::start(1);
    let council = etcd.council();
    let mut cluster = Cluster::new(&["--takeover", "30s", "--timeout-req", "10000", "--council", &council]);
    cluster.start(1);
    wait_for("a right by the etcd", PATIENCE, || has_rights(&cluster.status(1)).then_some(()));
    let (join, key) = (cluster.nodes[&1].address.clone(), cluster.key());
    let key = key.to_str().unwrap();
    let folder = cluster.dir.path().to_path_buf();
    let data = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let node = |name: &str, more: &[&str]| {
        let data = data(name);
        let mut command = nephila();
        command.args([&["node", "--cores", "0", "--data", &data][..], more].concat());
        Running::start(&mut command)
    };
    let listen = free_address();
    // Those that end at once.
    let with_etcd = ["--takeover", "30s", "--timeout-req", "10000", "--council", &*council];
    for (name, more, code, parts) in [
        (
            "x1",
            vec!["--listen", &*listen, "--council", "http://a:1"],
            2,
            ["must be peers or etcd://", "--council"],
        ),
        (
            "x2",
            vec!["--listen", &*listen, "--council", &*council, "--takeover", "never"],
            2,
            ["with --takeover never", "leave --council away"],
        ),
        (
            "x3",
            [&["--listen", &*listen, "--key", key][..], &with_etcd].concat(),
            3,
            ["etcd has a table of this cluster already", &*join],
        ),
    ] {
        let ended = node(name, &more).wait(PATIENCE);
        assert_eq!(ended.code(), code, "{name}: {}", ended.stderr);
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{name}: {}", ended.stderr);
    }
    assert!(has_rights(&cluster.status(1)), "whoever met the table left it alone");
    // One that joins without it waits until that is mended.
    let peers = node("y1", &["--listen", &listen, "--join", &join, "--key", key]);
    let line = "council peers here and etcd there: give every node the same --council";
    let other = "council etcd here and peers there: give every node the same --council";
    wait_for("it is told", PATIENCE, || {
        (peers.stderr().contains(line) || peers.stderr().contains(other)).then_some(())
    });
    peers.signal(Signal::SIGTERM);
    peers.wait(PATIENCE);
    // A cluster keeps the council that it was made with.
    cluster.stop(1);
    let changed = node("n1", &["--council", "peers"]).wait(PATIENCE);
    assert_eq!(changed.code(), 3, "{}", changed.stderr);
    assert!(changed.stderr.contains("the table of this cluster is in an etcd"), "{}", changed.stderr);
    let elsewhere = Etcd::start(1);
    let strayed = node("n1", &["--council", &elsewhere.council()]).wait(PATIENCE);
    assert_eq!(strayed.code(), 3, "{}", strayed.stderr);
    assert!(
        strayed.stderr.contains("etcd has no table of this cluster, though there is one"),
        "{}",
        strayed.stderr
    );
    let voting =
        Running::start(nephila().args(["node", "--cores", "0", "--data", &data("p1"), "--listen", &listen]));
    wait_for("it has its table", PATIENCE, || {
        let status = run(["cluster", "status", "--json", "--data", &data("p1")]);
        (status.code() == 0).then_some(())
    });
    voting.signal(Signal::SIGTERM);
    voting.wait(PATIENCE);
    let changed = node("p1", &with_etcd).wait(PATIENCE);
    assert_eq!(changed.code(), 3, "{}", changed.stderr);
    assert!(
        changed.stderr.contains("vote among themselves") && changed.stderr.contains("--council peers"),
        "{}",
        changed.stderr
    );
    // An etcd that is not there is waited for, and that is said once.
    etcd.kill(0);
    let founder = free_address();
    let alone = node("z1", &[&["--listen", &*founder][..], &with_etcd].concat());
    let line = "etcd does not answer: ";
    wait_for("it is told", PATIENCE, || alone.stderr().contains(line).then_some(()));
    let short = wait_for("its status", PATIENCE, || {
        let status = run(["cluster", "status", "--data", &data("z1")]);
        (status.code() == 1 && status.stderr.contains(line)).then_some(status)
    });
    assert!(short.stderr.lines().count() == 1 && short.text().contains("no table yet"), "{}", short.stderr);
    assert_eq!(alone.stderr().matches(line).count(), 1, "{}", alone.stderr());
    etcd.start_member(0);
    wait_for("it makes its table", PATIENCE, || {
        (run(["cluster", "status", "--data", &data("z1")]).code() == 0).then_some(())
    });
    alone.signal(Signal::SIGTERM);
    alone.wait(PATIENCE);
}
