//! A domain that moves from one node to another: the old one ends what is on the wire, asks nothing more, and hands over
//! what it knows and what is pending; the new one knows it before its first request. Nothing is lost over kills.

use crate::scripted_master::{ScriptedMaster, entry, known, node_command, status};
use crate::support::{LogServer, PATIENCE, Reply, Running, TempDir, run, wait_for};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// A hosts file for names of two domains.
fn hosts(dir: &TempDir) -> String {
    let text = "127.0.0.1 www.moves.test\n127.0.0.3 img.moves.test\n127.0.0.2 www.stays.test\n";
    dir.write("hosts", text).to_str().unwrap().to_string()
}

fn node(data: &Path, master: &ScriptedMaster, hosts: &str, rate: &str) -> Running {
    let mut command = node_command(data, &[master]);
    command.args(["--hosts-file", hosts, "--req-host-per-sec", rate]);
    Running::start(&mut command)
}

fn stop(node: Running) -> String {
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).ended().stderr
}

/// Paths that were asked for of a host, robots.txt aside.
fn pages(server: &LogServer, host: &str) -> Vec<String> {
    let asked = server.asked().into_iter().filter(|asked| asked.name().starts_with(host));
    asked.map(|asked| asked.target).filter(|target| target != "/robots.txt").collect()
}

fn urls_of(lines: &[String]) -> Vec<String> {
    let urls = lines.iter().filter_map(|line| line.strip_prefix("HAND moves.test URL "));
    urls.map(|line| line.split('\t').nth(4).unwrap().to_string()).collect()
}

fn explained(data: &Path, url: &str) -> Value {
    run([
        std::ffi::OsStr::new("explain"),
        "--json".as_ref(),
        "--data".as_ref(),
        data.as_os_str(),
        url.as_ref(),
    ])
    .json()
}

#[test]
fn a_domain_is_closed_handed_over_and_opened_elsewhere_with_its_pauses() {
    let dir = TempDir::new();
    let hosts = hosts(&dir);
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /denied\nCrawl-delay: 1\n"),
        "/slow" => Reply::html("slow").after_ms(1_500),
        "/away" => Reply::new("503 Service Unavailable", "Retry-After: 3600\r\n", ""),
        _ => Reply::html("page"),
    });
    let port = server.port();
    let url = |host: &str, path: &str| format!("http://{host}.test:{port}{path}");
    let old = ScriptedMaster::with([entry(&url("www.moves", "/slow")), entry(&url("www.stays", "/a"))]);
    old.add((0..50).map(|number| entry(&url("www.moves", &format!("/{number}")))));
    old.add([entry(&url("img.moves", "/away"))]);
    let data = dir.join("old");
    let first = node(&data, &old, &hosts, "1");
    old.hears("DONE 7 53");
    wait_for("the slow page and the one that asks us to wait", PATIENCE, || {
        let asked = server.targets();
        (asked.contains(&"/slow".to_string()) && asked.contains(&"/away".to_string())).then_some(())
    });
    old.add(["CLOSE moves.test 1".to_string(), entry(&url("www.stays", "/b"))]);
    old.hears("CLOSED moves.test");
    let told = old.told();
    let handed = urls_of(&told);
    let asked = pages(&server, "www.moves.test");
    // Everything is either asked here or goes along; what is asked is not asked again.
    for number in 0..50 {
        let path = format!("/{number}");
        let goes = handed.contains(&url("www.moves", &path));
        assert!(goes != asked.contains(&path), "{path}: asked {asked:?}, handed over {handed:?}");
    }
    let nice: Vec<&String> = told.iter().filter(|line| line.starts_with("HAND moves.test NICE ")).collect();
    let has = |what: &str| nice.iter().any(|line| line.contains(what));
    assert!(has("pace http://img.moves.test") && has("robots http://www.moves.test"), "{nice:#?}");
    assert!(!nice.iter().any(|line| line.contains("stays.test")), "{nice:#?}");
    assert!(!told.contains(&"DONE 7 55".to_string()), "DONE stays before the CLOSE");
    // Sent again on a new link, until it is confirmed.
    old.forget();
    old.hang_up();
    old.hears("CLOSED moves.test");
    assert_eq!(urls_of(&old.told()).len(), handed.len());
    let line = status(&data)["master"].clone();
    assert_eq!((&line["closed_domains"], &line["leaving_domains"][0]), (&1.into(), &"moves.test".into()));
    old.say("FENCED moves.test");
    old.hears("DONE 7 55");
    let count = pages(&server, "www.moves.test").len();
    wait_for("the other domain", PATIENCE, || {
        pages(&server, "www.stays.test").contains(&"/b".to_string()).then_some(())
    });
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(pages(&server, "www.moves.test").len(), count, "nothing more is asked");
    let excluded = explained(&data, &handed[0]);
    assert!(excluded.to_string().contains("moved to another server"), "{excluded}");
    stop(first);

    // A restart knows it still, and so do links and typed URLs.
    let mut again = node_command(&data, &[&old]);
    let typed = url("www.moves", "/typed");
    let again = Running::start(again.args(["--hosts-file", &hosts, &typed]));
    wait_for("it says what it makes of it", PATIENCE, || {
        explained(&data, &typed).to_string().contains("moved to another server").then_some(())
    });
    stop(again);
    assert_eq!(pages(&server, "www.moves.test").len(), count);

    // The new node: what is known of the hosts comes first.
    let new =
        ScriptedMaster::with(nice.iter().map(|line| line.replace("HAND moves.test NICE", "NICE moves.test")));
    new.add(["OPEN moves.test 2".to_string(), entry(&url("img.moves", "/later"))]);
    new.add(handed.iter().map(|url| entry(url)));
    let data = dir.join("new");
    let second = node(&data, &new, &hosts, "1");
    new.hears(&format!("DONE 7 {}", nice.len() + 2 + handed.len()));
    // Killed before its first request, it is to know it still.
    second.signal(Signal::SIGKILL);
    let _ = second.wait(PATIENCE);
    let second = node(&data, &new, &hosts, "1");
    wait_for("pages at the new node", PATIENCE, || {
        (pages(&server, "www.moves.test").len() >= count + 3).then_some(())
    });
    stop(second);
    assert!(!server.targets().contains(&"/later".to_string()), "Retry-After moved along");
    let robots = server.asked().iter().filter(|asked| asked.target == "/robots.txt").count();
    assert_eq!(robots, 3, "its rules moved along, and are asked for once");
    // Both logs together prove it; the same request in both would not.
    let (old, new) = (dir.join("old"), data.clone());
    let audited = |a: &Path, b: &Path| {
        run([
            std::ffi::OsStr::new("audit"),
            "--data".as_ref(),
            a.as_os_str(),
            "--data".as_ref(),
            b.as_os_str(),
        ])
    };
    audited(&old, &new).done();
    let twice = dir.join("twice");
    std::fs::create_dir_all(&twice).unwrap();
    for file in ["crawl.log", "master.position"] {
        std::fs::copy(old.join(file), twice.join(file)).unwrap();
    }
    assert_eq!(audited(&old, &twice).code(), 1, "two nodes that ask at once");
    let journal = std::fs::read_to_string(data.join("niceness.journal")).unwrap();
    assert!(journal.contains("pace http://img.moves.test"), "{journal}");
}

#[test]
fn a_domain_that_comes_back_is_asked_again() {
    let dir = TempDir::new();
    let hosts = hosts(&dir);
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::html("page"),
    });
    let port = server.port();
    let url = |path: &str| format!("http://www.moves.test:{port}{path}");
    let master = ScriptedMaster::with((0..20).map(|number| entry(&url(&format!("/{number}")))));
    let data = dir.join("data");
    let node = node(&data, &master, &hosts, "2");
    master.hears("DONE 7 20");
    wait_for("a first page", PATIENCE, || (!pages(&server, "www.moves.test").is_empty()).then_some(()));
    master.add(["CLOSE moves.test 1".to_string()]);
    master.hears("CLOSED moves.test");
    let handed = urls_of(&master.told());
    assert!(!handed.is_empty());
    master.say("FENCED moves.test");
    master.hears("DONE 7 21");
    let count = pages(&server, "www.moves.test").len();
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(pages(&server, "www.moves.test").len(), count);
    master.add(["OPEN moves.test 2".to_string()]);
    master.add(handed.iter().map(|url| entry(url)));
    wait_for("all of it", PATIENCE, || (pages(&server, "www.moves.test").len() == 20).then_some(()));
    // Heard before, at the other master.
    let seq = 22 + handed.len();
    master.add(["CLOSE moves.test 1".to_string(), "OPEN moves.test 2".to_string(), entry(&url("/later"))]);
    master.hears(&format!("DONE 7 {}", seq + 3));
    wait_for("it is asked still", PATIENCE, || {
        pages(&server, "www.moves.test").contains(&"/later".to_string()).then_some(())
    });
    let said = stop(node);
    for what in ["moves to another server", "is handed over", "is with this server from now on"] {
        assert!(said.contains(what), "{what}: {said}");
    }
}

#[test]
fn killed_at_any_moment_of_a_move_nothing_pending_is_lost() {
    let dir = TempDir::new();
    let hosts = hosts(&dir);
    // Between robots.txt and the first page lies more than a minute, so that all of it stays pending.
    let server = LogServer::start(|_| Reply::text("User-agent: *\nDisallow:\n"));
    let port = server.port();
    let all: Vec<String> = (0..400).map(|number| format!("http://www.moves.test:{port}/{number}")).collect();
    for round in 0..5_u64 {
        let data = dir.join(&format!("data{round}"));
        let master = ScriptedMaster::with(all.iter().map(|url| entry(url)));
        let first = node(&data, &master, &hosts, "0.01");
        master.hears("DONE 7 400");
        master.add(["CLOSE moves.test 1".to_string()]);
        std::thread::sleep(Duration::from_millis(30 * round));
        first.signal(Signal::SIGKILL);
        let _ = first.wait(PATIENCE);
        master.forget();
        let second = node(&data, &master, &hosts, "0.01");
        master.hears("CLOSED moves.test");
        let mut handed = urls_of(&master.told());
        handed.sort();
        handed.dedup();
        assert_eq!(handed.len(), 400, "in round {round}");
        second.signal(Signal::SIGKILL);
        let _ = second.wait(PATIENCE);
        assert_eq!(known(&data).len(), 400);
    }
}
