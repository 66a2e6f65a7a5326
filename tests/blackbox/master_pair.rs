//! The promise: two masters that nothing but a hash keeps together do not change their servers silently, and place nothing
//! while they differ.

use crate::master_process::{config, line, start, status};
use crate::support::*;
use nix::sys::signal::Signal;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

fn config_of(dir: &TempDir, settings: &str, servers: &str) -> PathBuf {
    let data = dir.join("data").display().to_string();
    dir.write("master.toml", format!("[master]\ndata = \"{data}\"\nepoch_max = 1\n{settings}{servers}"))
}

/// Before it has its directory, and its socket there, nobody can be asked how it is.
#[track_caller]
fn runs(dir: &TempDir, running: &Running) {
    wait_for(&format!("it can be asked: {}", running.stderr()), PATIENCE, || {
        (dir.join("data").is_dir() && status(&dir.join("data")).status.success()).then_some(())
    });
}

#[test]
fn the_servers_of_a_pair_without_a_database_do_not_change() {
    let dir = TempDir::new();
    let more = "assign = \"rendezvous\"\npeer = \"127.0.0.1:9\"\n";
    let one = "[[server]]\nid = 1\n[[server]]\nid = 2\n";
    let begun = start(&dir, &config(&dir, more, one));
    wait_for("it runs", PATIENCE, || begun.stderr().contains("listening on").then_some(()));
    begun.signal(Signal::SIGINT);
    begun.wait(PATIENCE);
    let refused = start(&dir, &config(&dir, more, "[[server]]\nid = 1\n[[server]]\nid = 3\n")).wait(PATIENCE);
    assert_ne!(refused.code(), 0);
    assert!(refused.stderr.contains("then: server 2 capacity 1 active"), "{}", refused.stderr);
    let again = start(&dir, &config(&dir, more, one));
    wait_for("it runs again", PATIENCE, || again.stderr().contains("listening on").then_some(()));
    again.signal(Signal::SIGINT);
    again.wait(PATIENCE);
}

#[test]
fn masters_that_deal_by_other_terms_hold_new_domains_until_they_agree() {
    let (one, two) = (TempDir::new(), TempDir::new());
    let ports: Vec<TcpListener> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addrs: Vec<SocketAddr> = ports.iter().map(|port| port.local_addr().unwrap()).collect();
    drop(ports);
    let settings = |me: usize| {
        format!("assign = \"rendezvous\"\nlisten = \"{}\"\npeer = \"{}\"\n", addrs[me], addrs[1 - me])
    };
    let (both, other) =
        ("[[server]]\nid = 1\n[[server]]\nid = 2\n", "[[server]]\nid = 1\n[[server]]\nid = 3\n");
    let first = start(&one, &config_of(&one, &settings(0), both));
    let second = start(&two, &config_of(&two, &settings(1), other));
    let state = |dir: &TempDir| status(&dir.join("data")).json();
    for (dir, running) in [(&one, &first), (&two, &second)] {
        runs(dir, running);
    }
    for (dir, running) in [(&one, &first), (&two, &second)] {
        wait_for("they differ", PATIENCE, || {
            (state(dir)["peer"]["agrees"] == false && running.stderr().contains("new domains wait"))
                .then_some(())
        });
    }
    let text = run(["master", "status", "--data", one.join("data").to_str().unwrap()]).done().text();
    assert!(text.contains(", and deals by other terms"), "{text}");
    let file = one.write("out/a", line("http://a.example/1"));
    std::fs::rename(file, one.join("data/spool/a")).unwrap();
    wait_for("its line is held", PATIENCE, || (state(&one)["held"] == 1).then_some(()));
    assert_eq!(state(&one)["sent"], 0);
    let text = run(["master", "status", "--data", one.join("data").to_str().unwrap()]).done().text();
    assert!(text.contains("domains wait: the other master"), "{text}");
    // The other comes again with the same servers: nothing was dealt by it, and nothing is lost.
    second.signal(Signal::SIGINT);
    second.wait(PATIENCE);
    std::fs::remove_dir_all(two.join("data")).unwrap();
    let second = start(&two, &config_of(&two, &settings(1), both));
    runs(&two, &second);
    wait_for("they agree, and the line is sent", PATIENCE, || {
        let state = state(&one);
        (state["peer"]["agrees"] == true && state["sent"] == 1 && state["held"] == 0).then_some(())
    });
    for running in [first, second] {
        running.signal(Signal::SIGINT);
        running.wait(PATIENCE);
    }
}
