//! What was inserted is never new again, what was not is never known, and what the disk made of the files does not
//! change that.

mod crash;
mod model;
mod rot;

use super::set::Sizes;
use super::*;
use crate::storage::runs::Query;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const SEED: u64 = 7;
/// So small that the table is a cache after a few hundred insertions, and that runs are written all the time.
const TINY: Sizes = Sizes { table_bytes_max: 0, unwritten_max: 10 };
const ROOMY: Sizes = Sizes { table_bytes_max: 1 << 20, unwritten_max: 10 };

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-seen-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn open(&self, sizes: Sizes) -> Seen {
        Seen::open_with(&self.0, SEED, sizes).unwrap()
    }

    /// A set with the documents `1..=last`, all of them in runs.
    fn filled(&self, last: u32, sizes: Sizes) -> Seen {
        let mut seen = self.open(sizes);
        insert(&mut seen, last);
        seen.flush().unwrap();
        seen
    }

    fn reader(&self) -> SeenReader {
        SeenReader::open(&self.0, SEED).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The fingerprint of a document: in the high bits few values, so that partitions of a small table get full.
fn fingerprint_of(doc_id: u32) -> u64 {
    let mixed = xxhash_rust::xxh3::xxh3_64(&doc_id.to_le_bytes());
    (mixed >> 8) | (mixed & 3) << 56
}

/// Inserts what comes after the last document that is in a run, up to `last`.
fn insert(seen: &mut Seen, last: u32) {
    for doc_id in seen.covered() + 1..=last {
        seen.insert(fingerprint_of(doc_id), doc_id).unwrap();
    }
}

fn ask(seen: &Seen, fingerprint: u64) -> Answer {
    let mut answers = Vec::new();
    seen.ask(&[fingerprint], &mut answers);
    answers[0]
}

/// Which of the documents are known, by whatever way it takes to find out.
fn known(seen: &mut Seen, doc_ids: std::ops::RangeInclusive<u32>) -> Vec<u32> {
    let fingerprints: Vec<u64> = doc_ids.clone().map(fingerprint_of).collect();
    let mut answers = Vec::new();
    seen.ask(&fingerprints, &mut answers);
    let mut queries = Vec::new();
    let mut known = Vec::new();
    for ((doc_id, fingerprint), answer) in doc_ids.zip(fingerprints).zip(answers) {
        match answer {
            Answer::Known => known.push(doc_id),
            Answer::New => {}
            Answer::Unresolved => queries.push(Query { fingerprint, index: doc_id, known: false }),
        }
    }
    seen.resolve(&mut queries).unwrap();
    known.extend(queries.iter().filter(|query| query.known).map(|query| query.index));
    known.sort_unstable();
    known
}

fn ids(last: u32) -> Vec<u32> {
    (1..=last).collect()
}

#[test]
fn in_memory_it_is_complete_and_leaves_the_disk_alone() {
    let mut seen = Seen::in_memory();
    insert(&mut seen, 20_000);
    seen.flush().unwrap();
    assert_eq!(known(&mut seen, 1..=30_000), ids(20_000));
    assert!(seen.is_complete());
    assert_eq!((seen.len(), seen.disk_bytes(), seen.covered()), (20_000, 0, 0));
    assert_eq!(seen.find(fingerprint_of(777)).unwrap(), Some(777));
    assert_eq!(seen.find(fingerprint_of(20_001)).unwrap(), None);
}

#[test]
fn without_room_it_cannot_tell_and_the_runs_know() {
    let folder = Folder::new();
    let mut seen = folder.filled(2_000, TINY);
    assert!(!seen.is_complete());
    assert_eq!(known(&mut seen, 1..=3_000), ids(2_000));
    assert_eq!((seen.len(), seen.covered()), (2_000, 2_000));
    insert(&mut seen, 2_005);
    assert_eq!(known(&mut seen, 1..=3_000), ids(2_005), "what is in no run yet is known as well");
    assert_eq!(seen.find(fingerprint_of(2_003)).unwrap(), Some(2_003));
    assert_eq!(seen.find(fingerprint_of(3)).unwrap(), Some(3));
}

#[test]
fn an_unresolved_url_that_was_noted_is_known() {
    let folder = Folder::new();
    let mut seen = folder.filled(2_000, TINY);
    let unresolved = (1..=2_000)
        .map(fingerprint_of)
        .find(|&fingerprint| ask(&seen, fingerprint) == Answer::Unresolved)
        .unwrap();
    seen.note(unresolved);
    assert_eq!(ask(&seen, unresolved), Answer::Known);
}

#[test]
fn with_room_nothing_is_unresolved_before_and_after_an_opening() {
    let folder = Folder::new();
    for _ in 0..2 {
        let mut seen = folder.filled(3_000, ROOMY);
        assert!(seen.is_complete());
        assert_eq!(known(&mut seen, 1..=4_000), ids(3_000));
        assert_eq!(ask(&seen, fingerprint_of(3_001)), Answer::New);
    }
}

#[test]
fn a_fingerprint_of_nothing_is_a_fingerprint() {
    let folder = Folder::new();
    let mut seen = folder.open(TINY);
    assert_eq!(ask(&seen, 0), Answer::New);
    seen.insert(0, 1).unwrap();
    assert_eq!(ask(&seen, 0), Answer::Known);
    seen.flush().unwrap();
    assert_eq!(seen.find(0).unwrap(), Some(1));
    let mut queries = [
        Query { fingerprint: u64::MAX, index: 0, known: false },
        Query { fingerprint: 0, index: 1, known: false },
    ];
    seen.resolve(&mut queries).unwrap();
    assert_eq!(queries.map(|query| (query.index, query.known)), [(1, true), (0, false)]);
    assert_eq!(folder.reader().find(0).unwrap(), Some(1));
}

#[test]
fn runs_are_few_however_many_were_written() {
    let folder = Folder::new();
    let mut seen = folder.open(TINY);
    insert(&mut seen, 4_000);
    assert!(folder.names().len() < 40, "{:?}", folder.names());
    for doc_id in 4_001..=4_100 {
        seen.insert(fingerprint_of(doc_id), doc_id).unwrap();
        seen.flush().unwrap();
    }
    assert!(folder.names().len() < 40, "{:?}", folder.names());
    assert_eq!(known(&mut seen, 1..=4_200), ids(4_100));
}

#[test]
fn documents_may_be_left_out_and_are_covered_all_the_same() {
    let folder = Folder::new();
    let mut seen = folder.open(TINY);
    for doc_id in (3..=900).step_by(3) {
        seen.insert(fingerprint_of(doc_id), doc_id).unwrap();
    }
    seen.flush().unwrap();
    assert_eq!((seen.covered(), seen.len()), (900, 300));
    drop(seen);
    let seen = folder.open(TINY);
    assert_eq!((seen.covered(), seen.len(), seen.removed().len()), (900, 300, 0));
}

#[test]
fn a_reader_finds_what_is_in_runs_and_changes_nothing() {
    let folder = Folder::new();
    let mut seen = folder.filled(500, TINY);
    insert(&mut seen, 503);
    fs::write(folder.0.join("0000000504-0000000509.fresh"), b"half").unwrap();
    fs::write(folder.0.join("0000000504-0000000508.run"), b"broken").unwrap();
    let names = folder.names();
    let reader = folder.reader();
    assert_eq!(reader.covered(), 500);
    for doc_id in 1..=500 {
        assert_eq!(reader.find(fingerprint_of(doc_id)).unwrap(), Some(doc_id));
    }
    assert_eq!(reader.find(fingerprint_of(501)).unwrap(), None);
    assert_eq!(folder.names(), names);
    assert_eq!(SeenReader::open(&folder.0, SEED + 1).unwrap().covered(), 0, "another seed");
}

#[test]
fn a_reader_opens_while_runs_are_merged_under_it() {
    let folder = Folder::new();
    let mut seen = folder.filled(10, TINY);
    let first = folder.reader();
    let covered = AtomicU32::new(seen.covered());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for last in (20..=3_000).step_by(10) {
                insert(&mut seen, last);
                seen.flush().unwrap();
                covered.store(seen.covered(), Ordering::Release);
            }
        });
        while covered.load(Ordering::Acquire) < 3_000 {
            let before = covered.load(Ordering::Acquire);
            let reader = folder.reader();
            assert!(reader.covered() >= before, "{} of {before}", reader.covered());
            assert_eq!(reader.find(fingerprint_of(before)).unwrap(), Some(before));
        }
    });
    assert!(!folder.names().contains(&"0000000001-0000000010.run".to_string()));
    assert_eq!(first.find(fingerprint_of(10)).unwrap(), Some(10), "it holds what it opened");
}
