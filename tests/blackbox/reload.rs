//! The promise: a crawl that is sent SIGHUP reads its settings again and takes all that can change, or nothing. What it
//! took holds from that moment on, for the hosts, for the audit and for the next process, however this one ends.

use crate::cluster::free_address;
use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A crawl of one host with more pages than anybody waits for. It has no terminal.
fn crawl(server: &LogServer, dir: &TempDir, more: &[&str]) -> Running {
    let mut command = Command::new("setsid");
    command.arg(env!("CARGO_BIN_EXE_nephila")).args(["crawl", "--json", "--allow-net", "127.0.0.0/8"]);
    command.args([&*server.url("/"), "--config"]).arg(dir.join("job.toml"));
    command.arg("--data").arg(dir.join("data")).args(more);
    Running::start(&mut command)
}

fn endless() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::links((0..2_000).map(|page| format!("/{page}"))),
    })
}

fn rate(dir: &TempDir, per_sec: &str) {
    dir.write("job.toml", format!("[url_server]\nreq_host_per_sec = {per_sec}\ndelay_factor = 0\n"));
}

/// Sends SIGHUP, and waits until this was said of it once more.
#[track_caller]
fn reload(crawl: &Running, said: &str) {
    let before = crawl.stderr().matches(said).count();
    crawl.signal(Signal::SIGHUP);
    wait_for(said, PATIENCE, || (crawl.stderr().matches(said).count() > before).then_some(()));
}

#[track_caller]
fn wait_for_requests(server: &LogServer, more: usize) {
    let before = server.asked().len();
    wait_for("requests", PATIENCE, || (server.asked().len() >= before + more).then_some(()));
}

/// Pauses between the requests from one of them on, by the clock of the kernel that got them.
fn pauses_from(server: &LogServer, first: usize) -> Vec<Duration> {
    let times: Vec<i64> = server.asked()[first..].iter().map(|asked| asked.at_ns).collect();
    times.windows(2).map(|pair| Duration::from_nanos((pair[1] - pair[0]).max(0) as u64)).collect()
}

/// Requests do not take equally long to get there.
const SLACK: Duration = Duration::from_millis(10);

#[test]
fn rates_change_while_it_runs_and_outlive_a_kill() {
    let (server, dir) = (endless(), TempDir::new());
    rate(&dir, "1");
    let crawl = crawl(&server, &dir, &[]);
    wait_for_requests(&server, 3);
    let slow = pauses_from(&server, 0);
    assert!(slow.iter().all(|pause| *pause + SLACK > Duration::from_secs(1)), "{slow:?}");

    rate(&dir, "20");
    reload(&crawl, "SIGHUP: took 1 of 1 change\n");
    wait_for_requests(&server, 1);
    let fast_from = server.asked().len();
    wait_for_requests(&server, 40);
    let fast = pauses_from(&server, fast_from);
    assert!(
        fast.iter().any(|pause| *pause < Duration::from_millis(500)),
        "it did not become faster: {fast:?}"
    );
    assert!(fast.iter().all(|pause| *pause + SLACK > Duration::from_millis(50)), "{fast:?}");

    rate(&dir, "2");
    reload(&crawl, "SIGHUP: took 1 of 1 change\n");
    let slower_from = server.asked().len();
    wait_for_requests(&server, 5);
    // A file that is wrong changes nothing, and every mistake is told.
    dir.write(
        "job.toml",
        "[url_server]\nreq_host_per_sec = 50\nreq_host_concurent = 3\n[spider]\ntimeout_req = 0\n",
    );
    reload(&crawl, "SIGHUP: all settings stay as they are:");
    wait_for("the mistakes", PATIENCE, || {
        let said = crawl.stderr();
        let told = said.contains(
            ":3:url_server.req_host_concurent: unknown setting (did you mean req_host_concurrent?)",
        );
        (told && said.contains(":5:spider.timeout_req: must be at least 1ms")).then_some(())
    });
    wait_for_requests(&server, 3);
    let slower = pauses_from(&server, slower_from);
    assert!(
        slower.len() >= 6 && slower.iter().all(|pause| *pause + SLACK > Duration::from_millis(500)),
        "{slower:?}"
    );
    crawl.signal(Signal::SIGKILL);
    crawl.wait(PATIENCE);

    let data = dir.join("data");
    let audit = run(["audit", "--data", data.to_str().unwrap()]);
    assert_eq!(audit.code(), 0, "{}{}", audit.text(), audit.stderr);
    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    assert!(log.matches("# nephila set ").count() >= 2 && log.contains("req_host_per_sec=20 "), "{log}");
    // By the rules that the run began with, what it did later is a breach; so would it be by the last ones.
    for wrong in ["1", "2"] {
        let judged = run(["audit", "--data", data.to_str().unwrap(), "--req-host-per-sec", wrong]);
        assert_eq!(judged.code(), 1, "{}", judged.text());
    }
    let changes = changes(&data);
    let told: Vec<(&str, &str)> =
        changes.iter().map(|line| (line["old"].as_str().unwrap(), line["new"].as_str().unwrap())).collect();
    assert_eq!(told, [("1.0", "20.0"), ("20.0", "2.0")]);
    assert!(
        changes.iter().all(|line| line["key"] == "url_server.req_host_per_sec" && line["reason"] == "SIGHUP")
    );
    assert!(changes.iter().all(|line| line["who"].as_str().unwrap().starts_with("uid ")), "{changes:?}");

    // Without the file, the next process goes by what this one was told last.
    let next = server.asked().len();
    let mut command = crawl_command(&data);
    command.args(["--max-pages", "3"]);
    let ended = Running::start(&mut command).wait(PATIENCE).done();
    assert!(ended.stderr.contains("url_server.req_host_per_sec = 2.0"), "{}", ended.stderr);
    let pauses = pauses_from(&server, next);
    assert!(pauses.iter().all(|pause| *pause + SLACK > Duration::from_millis(500)), "{pauses:?}");
    assert_eq!(run(["audit", "--data", data.to_str().unwrap()]).code(), 0);
}

fn changes(data: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(data.join("settings.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_cannot_change_is_named_and_flags_stay() {
    let (server, dir) = (endless(), TempDir::new());
    dir.write("job.toml", "[url_server]\nqueue_len = 256\n[crawl]\nmax_pages = 1000000\n");
    let mut crawl = crawl(&server, &dir, &["--req-host-per-sec", "20", "--timeout-req", "50s"]);
    wait_for_requests(&server, 3);
    reload(&crawl, "SIGHUP: settings were read again; nothing has changed");
    // A flag of this process wins over the file; other changes are taken, and one waits.
    dir.write(
        "job.toml",
        "[url_server]\nqueue_len = 100\nreq_host_per_sec = 1\nhost_failures_max = 5\n[spider]\nkeep_alive = \"1s\"\ntimeout_req = \"1s\"\n\
         [crawl]\nmax_pages = 1000000\n",
    );
    reload(&crawl, "SIGHUP: took 2 of 3 changes; url_server.queue_len needs a restart\n");
    let said = crawl.stderr();
    assert!(said.contains("  spider.keep_alive = \"1s\", was \"15s\""), "{said}");
    assert!(said.contains("  url_server.host_failures_max = 5, was 12"), "{said}");
    reload(&crawl, "SIGHUP: took 0 of 1 change; url_server.queue_len needs a restart\n");
    let data = dir.join("data");
    let keys: Vec<Value> = changes(&data).iter().map(|line| line["key"].clone()).collect();
    assert_eq!(keys, ["spider.keep_alive", "url_server.host_failures_max"]);
    // Settings that belong to one run change, too.
    assert!(!crawl.has_ended());
    dir.write("job.toml", "[url_server]\nqueue_len = 100\nhost_failures_max = 5\n[spider]\nkeep_alive = \"1s\"\n[crawl]\nmax_pages = 5\n");
    crawl.signal(Signal::SIGHUP);
    let ended = crawl.wait(PATIENCE).done();
    assert!(ended.stderr.contains("crawl.max_pages = 5, was 1000000"), "{}", ended.stderr);
    assert_eq!(ended.json()["ended"], "max_pages", "{}", ended.text());
    // The next process begins with what had to wait.
    let shown = run([
        "config",
        "show",
        "--data",
        data.to_str().unwrap(),
        "queue_len",
        "keep_alive",
        "req_host_per_sec",
    ]);
    let shown = shown.done().text();
    for told in
        ["url_server.queue_len         100", "spider.keep_alive", "\"1s\"", "20.0 per second", "kept: a flag"]
    {
        assert!(shown.contains(told), "{told}\n{shown}");
    }
    assert_eq!(run(["audit", "--data", data.to_str().unwrap()]).code(), 0);
}

/// Others count on the rules of a node: these do not change under them, and nothing else does together with them.
#[test]
fn a_node_of_a_cluster_keeps_the_rules_that_others_count_on() {
    let dir = TempDir::new();
    dir.write("job.toml", "[spider]\nkeep_alive = \"3s\"\n");
    let mut command = Command::new("setsid");
    command.arg(env!("CARGO_BIN_EXE_nephila")).args(["node", "--cores", "0", "--listen", &free_address()]);
    command.arg("--config").arg(dir.join("job.toml")).arg("--data").arg(dir.join("data"));
    let mut node = Running::start(&mut command);
    let data = dir.join("data");
    let data = data.to_str().unwrap();
    wait_for("the node answers", PATIENCE, || (run(["status", "--data", data]).code() == 0).then_some(()));
    reload(&node, "SIGHUP: settings were read again; nothing has changed");
    let rules = "[url_server]\nreq_host_concurrent = 4\n[spider]\nkeep_alive = \"1s\"\n";
    for (text, named) in [
        (rules.to_string(), "url_server.req_host_concurrent: a rule of the whole cluster, which no node"),
        (
            format!("{rules}timeout_req = \"5s\"\n[cluster]\ntakeover = \"1min\"\n"),
            "cluster.takeover, spider.timeout_req, url_server.req_host_concurrent: rules of the whole cluster, which no node",
        ),
    ] {
        dir.write("job.toml", text);
        reload(&node, "SIGHUP: all settings stay as they are:");
        wait_for(named, PATIENCE, || {
            let said = node.stderr();
            let line = said.lines().find(|line| line.contains(named))?;
            line.ends_with("(stop all nodes, then start each of them with it)").then_some(())
        });
        let shown = run(["config", "show", "--data", data, "--diff"]).done().text();
        assert!(shown.contains("\"3s\"") && !shown.contains("req_host_concurrent"), "{shown}");
    }
    dir.write("job.toml", "[spider]\nkeep_alive = \"1s\"\n");
    reload(&node, "SIGHUP: took 1 of 1 change\n");
    assert!(!node.has_ended(), "{}", node.stderr());
    assert_eq!(changes(Path::new(data)).len(), 1);
    // They hold when all nodes were stopped.
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).done();
    let mut command = nephila();
    command.args(["node", "--data", data, "--timeout-req", "5s"]);
    let node = Running::start(&mut command);
    wait_for("the node answers", PATIENCE, || (run(["status", "--data", data]).code() == 0).then_some(()));
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).done();
}

/// The disk is to have more room than there is, and then less.
#[test]
fn the_room_that_stays_free_changes_while_it_runs() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        // Another text for each page, and none that shrinks much.
        page => {
            let links: String = (0..2_000).map(|page| format!("<a href=/{page}>")).collect();
            let rest: String = (0..400).map(|line| sha1_hex(format!("{page}{line}").as_bytes())).collect();
            Reply::html(&format!("{links}{rest}"))
        }
    });
    let dir = TempDir::new();
    let write = |free: &str| {
        dir.write(
            "job.toml",
            format!(
                "[url_server]\nreq_host_per_sec = 100\ndelay_factor = 0\n[spider]\nmax_doc_size = \"64KiB\"\n\
                 [store]\nsegment_bytes = \"1MiB\"\nfree_bytes_min = \"{free}\"\n[doc_index]\nretry_first = \"1min\"\n"
            ),
        );
    };
    write("1MiB");
    let crawl = crawl(&server, &dir, &[]);
    wait_for_requests(&server, 20);
    write("1000TiB");
    reload(&crawl, "SIGHUP: took 1 of 1 change\n");
    wait_for("it waits", PATIENCE, || crawl.stderr().contains("fetching waits for disk space").then_some(()));
    let stuck = server.asked().len();
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.asked().len() <= stuck + 2, "nothing is asked without room");
    write("1MiB");
    reload(&crawl, "SIGHUP: took 1 of 1 change\n");
    wait_for_requests(&server, 50);
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).done();
}
