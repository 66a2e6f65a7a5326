//! A file that is not byte by byte what was written is never believed.

use super::super::set::seed_check;
use super::*;
use crate::storage::runs::{Run, Span};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Two pages and a bit.
const COUNT: u32 = 700;
const SPAN: Span = Span { first: 1, last: COUNT };

/// All documents in one run.
fn one_run(sizes: Sizes) -> (Folder, File) {
    let folder = Folder::new();
    drop(folder.filled(COUNT, Sizes { unwritten_max: COUNT as usize, ..sizes }));
    let file = File::options().read(true).write(true).open(folder.0.join(SPAN.name())).unwrap();
    (folder, file)
}

fn check(folder: &Folder) -> io::Result<()> {
    Run::open(&folder.0, SPAN, seed_check(SEED))?.verify()
}

fn flip(file: &File, at: u64) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << (at % 8)], at).unwrap();
}

#[test]
fn any_flipped_byte_is_seen() {
    let (folder, file) = one_run(TINY);
    check(&folder).unwrap();
    for at in 0..file.metadata().unwrap().len() {
        flip(&file, at);
        assert_eq!(check(&folder).unwrap_err().kind(), io::ErrorKind::InvalidData, "at {at}");
        flip(&file, at);
    }
    check(&folder).unwrap();
}

#[test]
fn a_cut_at_any_byte_and_a_tail_are_seen() {
    let (folder, file) = one_run(TINY);
    let bytes = file.metadata().unwrap().len();
    file.set_len(bytes + 1).unwrap();
    assert_eq!(check(&folder).unwrap_err().kind(), io::ErrorKind::InvalidData);
    for bytes in (0..bytes).rev() {
        file.set_len(bytes).unwrap();
        assert_eq!(check(&folder).unwrap_err().kind(), io::ErrorKind::InvalidData, "cut to {bytes}");
    }
}

#[test]
fn an_opening_throws_a_bad_run_away_and_says_so() {
    for at in [0, 30, 5_000, 16_000] {
        let (folder, file) = one_run(ROOMY);
        flip(&file, at);
        let mut seen = folder.open(ROOMY);
        assert_eq!((seen.covered(), seen.len()), (0, 0));
        assert_eq!(seen.removed().len(), 1);
        assert_eq!(known(&mut seen, 1..=COUNT), [] as [u32; 0]);
        assert!(folder.names().is_empty());
    }
}

#[test]
fn a_page_that_goes_bad_later_is_an_error_and_no_answer() {
    let (folder, file) = one_run(TINY);
    let mut seen = folder.open(TINY);
    let reader = folder.reader();
    // The smallest fingerprint is in the first page, the largest in the last.
    let mut fingerprints: Vec<u64> = (1..=COUNT).map(fingerprint_of).collect();
    fingerprints.sort_unstable();
    let (least, most) = (fingerprints[0], fingerprints[fingerprints.len() - 1]);
    flip(&file, 4_096 + 100);
    let is_bad = |result: io::Result<Option<u32>>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData);
    };
    is_bad(seen.find(least));
    is_bad(reader.find(least));
    // One pass over all of it, and a search.
    for count in [COUNT as usize, 1] {
        let mut queries: Vec<Query> = fingerprints
            .iter()
            .take(count)
            .map(|&fingerprint| Query { fingerprint, index: 0, known: false })
            .collect();
        assert_eq!(seen.resolve(&mut queries).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
    flip(&file, 4_096 + 100);
    assert!(seen.find(most).unwrap().is_some() && seen.find(least).unwrap().is_some());
}

#[test]
fn a_merge_over_a_bad_page_fails_and_leaves_the_runs() {
    let folder = Folder::new();
    let mut seen = folder.filled(10, TINY);
    for last in (20..=70).step_by(10) {
        insert(&mut seen, last);
        seen.flush().unwrap();
    }
    let names = folder.names();
    let file = File::options().read(true).write(true).open(folder.0.join(&names[3])).unwrap();
    flip(&file, 4_100);
    insert(&mut seen, 80);
    assert_eq!(seen.flush().unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(seen.covered(), 80, "the run itself was written");
    drop(seen);
    assert_eq!(folder.names().len(), 8, "{:?}", folder.names());
    let mut seen = folder.open(TINY);
    assert_eq!((seen.covered(), seen.removed().len()), (30, 5));
    insert(&mut seen, 80);
    assert_eq!(known(&mut seen, 1..=100), ids(80));
}
