//! The promise: whatever bytes come from outside, what the fuzz targets assert holds of them.
//!
//! A short run of each target in `tests/fuzz/targets`: the corpus as it is, then a fixed number of mutations of it from
//! a fixed seed. The long run, guided by coverage, is `tests/fuzz/run TARGET SECONDS`.

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use nephila::base::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use targets::{TARGETS, Target};

const SEED: u64 = 0x6e65_7068_696c_6131;
const INPUT_BYTES_MAX: usize = 4_096;

/// Bytes that mean something to one of the parsers.
const EDGES: &[u8] = b"\r\n\0\t :;,=/.?#%&<>\"'!-*$[]@\\019afHTx\x7f\x80\xc0\xff";

#[track_caller]
fn fuzz(name: &str, rounds: usize) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of that name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!corpus.is_empty(), "inputs to start from in {}", folder.display());
    for input in &corpus {
        run(name, *target, input, "from the corpus");
    }
    let mut rng = Rng::new(SEED);
    for round in 0..rounds {
        let mut input = corpus[rng.below(corpus.len() as u64) as usize].clone();
        for _ in 0..=rng.below(5) {
            mutate(&mut input, &corpus, &mut rng);
        }
        input.truncate(INPUT_BYTES_MAX);
        run(name, *target, &input, &format!("round {round} of seed {SEED:#x}"));
    }
}

#[track_caller]
fn run(name: &str, target: Target, input: &[u8], which: &str) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name} fails, {which}:\n{}\n{hex}", input.escape_ascii());
    }
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let mut below = |bound: usize| rng.below(bound.max(1) as u64) as usize;
    let at = below(input.len() + 1);
    let end = (at + 1 + below(16)).min(input.len());
    match below(8) {
        0 if at < input.len() => input[at] = EDGES[below(EDGES.len())],
        1 => input.insert(at, EDGES[below(EDGES.len())]),
        2 if at < input.len() => input[at] ^= 1 << below(8),
        3 if at < end => drop(input.drain(at..end)),
        4 if at < end => {
            let copy = input[at..end].to_vec();
            input.splice(at..at, copy);
        }
        5 => {
            let other = &corpus[below(corpus.len())];
            let from = below(other.len());
            let to = (from + 1 + below(64)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
        6 => input.truncate(at),
        _ => {
            // A run of one byte, long enough to pass the small limits.
            let byte = EDGES[below(EDGES.len())];
            let run = vec![byte; 1 + below(300)];
            input.splice(at..at, run);
        }
    }
}

#[test]
fn heads() {
    fuzz("head", 3_000);
}

#[test]
fn bodies() {
    fuzz("body", 20_000);
}

#[test]
fn responses() {
    fuzz("response", 4_000);
}

#[test]
fn codings() {
    fuzz("coding", 3_000);
}

#[test]
fn robots() {
    fuzz("robots", 2_000);
}

#[test]
fn lines() {
    fuzz("lines", 4_000);
}

#[test]
fn records() {
    fuzz("record", 20_000);
}

#[test]
fn reflogs() {
    fuzz("reflog", 3_000);
}

#[test]
fn words_of_peers() {
    fuzz("peer", 20_000);
}

#[test]
fn answers_of_an_etcd() {
    fuzz("etcd", 10_000);
}

#[test]
fn urls() {
    fuzz("url", 20_000);
}

#[test]
fn pages() {
    fuzz("html", 5_000);
}

#[test]
fn sitemaps() {
    fuzz("sitemap", 10_000);
}

#[test]
fn feeds() {
    fuzz("feed", 5_000);
}

#[test]
fn lists_of_feeds() {
    fuzz("opml", 5_000);
}

#[test]
fn dates() {
    fuzz("date", 20_000);
}

#[test]
fn titles() {
    fuzz("title", 10_000);
}

#[test]
fn dns_answers() {
    fuzz("dns", 30_000);
}

#[test]
fn questions_for_names() {
    fuzz("names", 30_000);
}

#[test]
fn log_lines() {
    fuzz("log", 30_000);
}

#[test]
fn queues() {
    fuzz("queue", 5_000);
}

#[test]
fn segments() {
    fuzz("segment", 300);
}

#[test]
fn current_logs() {
    fuzz("current", 300);
}

#[test]
fn warcs() {
    fuzz("warc", 3_000);
}

/// A target without a test here, or without a corpus, would never run.
#[test]
fn every_target_runs() {
    let tests = include_str!("fuzz.rs");
    for (name, _) in TARGETS {
        assert!(tests.contains(&format!("fuzz(\"{name}\", ")), "{name}");
    }
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")).unwrap();
    assert_eq!(folders.count(), TARGETS.len());
}
