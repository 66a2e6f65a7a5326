//! The promise: the simulation finds no broken promise, and a seed replays to the same figures.

use crate::support::*;
use std::time::Duration;

fn sim(args: &[&str]) -> String {
    let mut command = nephila();
    command.arg("sim").args(args);
    let run = Running::start(&mut command).wait(Duration::from_secs(110)).done();
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

#[test]
fn sixteen_seeds_of_nodes_of_a_cluster() {
    let line = sim(&["--cluster", "2..7", "--seeds", "16"]);
    print!("{line}");
    assert!(line.starts_with("16 seeds from 0 in ") && line.ends_with("no promise was broken\n"), "{line}");
    for none in [" 0 nodes killed", " 0 URLs typed", "node to node 0 times"] {
        assert!(!line.contains(none), "{line}");
    }
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
