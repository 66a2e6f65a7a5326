//! The promise: the simulation finds no broken promise, and a seed replays to the same figures.

use crate::support::*;
use std::time::Duration;

fn sim(args: &[&str]) -> String {
    let mut command = nephila();
    command.arg("sim").args(args);
    let run = Running::start(&mut command).wait(Duration::from_secs(220)).done();
    let text = run.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// The figures without the time they took.
fn figures(line: &str) -> String {
    let (before, after) = line.split_once(" in ").unwrap();
    format!("{before}{}", after.split_once(':').unwrap().1)
}

#[test]
fn two_hundred_seeds() {
    let line = sim(&["--seeds", "200"]);
    print!("{line}");
    assert!(line.starts_with("200 seeds from 0 in ") && line.ends_with("no promise was broken\n"), "{line}");
}

#[test]
fn two_hundred_seeds_of_split_processes() {
    let line = sim(&["--split", "--seeds", "200"]);
    print!("{line}");
    assert!(line.starts_with("200 seeds from 0 in ") && line.ends_with("no promise was broken\n"), "{line}");
    assert!(!line.contains(" 0 processes killed") && !line.contains(" 0 requests left behind"), "{line}");
}

#[test]
fn two_dozen_seeds_of_masters_and_their_nodes() {
    let line = sim(&["--master", "--seeds", "24"]);
    print!("{line}");
    assert!(line.starts_with("24 seeds from 0 in ") && line.ends_with("no promise was broken\n"), "{line}");
    assert!(!line.contains(" 0 processes killed") && !line.contains(" 0 changes to the other"), "{line}");
}

/// Two hundred seeds in all, in parts that run beside each other.
fn nodes_of_a_cluster(from: u32) -> String {
    let line = sim(&["--cluster", "2..7", "--from", &from.to_string(), "--seeds", "25"]);
    print!("{line}");
    let begins = format!("25 seeds from {from} in ");
    assert!(line.starts_with(&begins) && line.ends_with("no promise was broken\n"), "{line}");
    for none in [" 0 nodes killed", " 0 URLs typed", "node to node 0 times", " 0 hosts moved"] {
        assert!(!line.contains(none), "{line}");
    }
    line
}

#[test]
fn nodes_of_a_cluster_from_0() {
    nodes_of_a_cluster(0);
}

#[test]
fn nodes_of_a_cluster_from_25() {
    nodes_of_a_cluster(25);
}

#[test]
fn nodes_of_a_cluster_from_50() {
    nodes_of_a_cluster(50);
}

#[test]
fn nodes_of_a_cluster_from_75() {
    nodes_of_a_cluster(75);
}

#[test]
fn nodes_of_a_cluster_from_100() {
    nodes_of_a_cluster(100);
}

#[test]
fn nodes_of_a_cluster_from_125() {
    nodes_of_a_cluster(125);
}

#[test]
fn nodes_of_a_cluster_from_150() {
    nodes_of_a_cluster(150);
}

#[test]
fn nodes_of_a_cluster_from_175() {
    nodes_of_a_cluster(175);
}

/// The judge of the cluster finds what is wrong, or it would find nothing. `from` is a seed that showed it, so that it does not
/// take long.
#[track_caller]
fn is_found(wrong: &str, from: &str, says: &[&str]) {
    let seeds = ["--cluster", "3..5", "--wrong", wrong, "--from", from, "--seeds", "30"];
    // What is found is a panic, which is none elsewhere.
    let run = nephila().arg("sim").args(seeds).output().unwrap();
    let [text, said] = [&run.stdout, &run.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(run.status.code(), Some(1), "nobody saw {wrong}: {text}");
    let why = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1).unwrap_or_default();
    assert!(says.iter().any(|says| why.contains(says)), "{wrong} was found by {why}");
    assert!(said.contains(&format!("--wrong {wrong} --from ")), "it can be replayed: {said}");
}

#[test]
fn a_node_that_asks_too_often_is_seen() {
    is_found("pace", "0", &[" us after node "]);
}

#[test]
fn clocks_that_differ_too_much_are_seen() {
    is_found("clocks", "0", &["rights overlap"]);
}

#[test]
fn an_address_that_is_lent_twice_is_seen() {
    is_found("tickets", "2", &["tickets overlap"]);
}

#[test]
fn an_index_that_is_lost_is_seen() {
    is_found("index", "0", &["once more", "never found", "nobody knows it", "was not told"]);
}

#[test]
fn copies_that_are_lost_are_seen() {
    is_found("copies", "0", &["once more", "never found", "nobody knows it"]);
}

#[test]
fn pages_that_are_lost_are_seen() {
    is_found("pages", "11", &["cannot be read"]);
}

#[test]
fn voters_that_forget_are_seen() {
    is_found("council", "1", &["two tables of epoch"]);
}

#[test]
fn an_etcd_that_lies_is_seen() {
    is_found("etcd", "5", &["two tables of epoch"]);
}

#[test]
fn a_cut_that_never_heals_is_seen() {
    is_found("cut", "0", &["does not come to rest"]);
}

#[test]
fn a_ready_that_is_not_true_is_seen() {
    is_found("cursors", "0", &["says that all is done"]);
}

#[test]
fn feeds_for_weeks_through_kills() {
    let line = sim(&["--feeds", "--seeds", "6"]);
    print!("{line}");
    assert!(line.starts_with("6 seeds from 0 in ") && line.ends_with("no promise was broken\n"), "{line}");
    for none in [" 0 processes killed", "(0 judged", " 0 gaps", " 0 stories"] {
        assert!(!line.contains(none), "{line}");
    }
}

#[test]
fn a_seed_replays() {
    let mut different = std::collections::BTreeSet::new();
    for seed in ["7", "4711", "18446744073709551"] {
        let args = ["--from", seed, "--seeds", "1"];
        let first = figures(&sim(&args));
        assert_eq!(first, figures(&sim(&args)), "seed {seed}");
        different.insert(first.split_once(": ").map_or(first.clone(), |(_, figures)| figures.to_string()));
    }
    assert!(different.len() > 1, "seeds make different webs: {different:?}");
}
