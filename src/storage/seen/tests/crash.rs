//! A crash leaves files at any point of a write or a merge. The next opening makes sense of them.

use super::*;

/// Runs of ten documents each: up to seven are not merged.
fn unmerged(folder: &Folder, runs: u32) -> Seen {
    let mut seen = folder.open(TINY);
    for last in (10..=10 * runs).step_by(10) {
        insert(&mut seen, last);
        seen.flush().unwrap();
    }
    seen
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn what_was_in_no_run_is_told_by_covered() {
    let folder = Folder::new();
    let mut seen = folder.open(ROOMY);
    insert(&mut seen, 1_234);
    drop(seen);
    let mut seen = folder.open(ROOMY);
    let covered = seen.covered();
    assert!((1_220..1_234).contains(&covered), "{covered}");
    assert_eq!(known(&mut seen, 1..=2_000), ids(covered));
    insert(&mut seen, 1_234);
    assert_eq!(known(&mut seen, 1..=2_000), ids(1_234));
    assert_eq!(seen.len(), 1_234);
}

#[test]
fn merged_runs_that_were_not_removed_yet_are_removed_then() {
    for left in [1, 4, 7] {
        let (folder, before) = (Folder::new(), Folder::new());
        let mut seen = unmerged(&folder, 7);
        assert_eq!(folder.names().len(), 7);
        copy_all(&folder.0, &before.0);
        // The eighth run, and with it the merge.
        insert(&mut seen, 80);
        seen.flush().unwrap();
        drop(seen);
        assert_eq!(folder.names(), ["0000000001-0000000080.run"]);
        for name in before.names().iter().rev().take(left) {
            fs::copy(before.0.join(name), folder.0.join(name)).unwrap();
        }
        let mut seen = folder.open(TINY);
        assert_eq!((seen.covered(), seen.len(), seen.removed().len()), (80, 80, 0));
        assert_eq!(folder.names(), ["0000000001-0000000080.run"]);
        assert_eq!(known(&mut seen, 1..=100), ids(80));
    }
}

#[test]
fn a_broken_merged_run_gives_way_to_what_it_was_made_of() {
    let folder = Folder::new();
    drop(unmerged(&folder, 7));
    fs::write(folder.0.join("0000000001-0000000070.run"), vec![0; 8_192]).unwrap();
    let mut seen = folder.open(TINY);
    assert_eq!(seen.covered(), 70);
    assert_eq!(seen.removed().len(), 1);
    assert_eq!(seen.removed()[0], "0000000001-0000000070.run");
    assert_eq!(known(&mut seen, 1..=100), ids(70));
}

#[test]
fn runs_after_a_gap_are_removed_and_told_of() {
    let folder = Folder::new();
    drop(unmerged(&folder, 5));
    fs::remove_file(folder.0.join("0000000021-0000000030.run")).unwrap();
    let mut seen = folder.open(ROOMY);
    assert_eq!(seen.covered(), 20);
    let removed = seen.removed();
    assert_eq!(removed, ["0000000031-0000000040.run", "0000000041-0000000050.run"]);
    assert_eq!(folder.names(), ["0000000001-0000000010.run", "0000000011-0000000020.run"]);
    assert_eq!(known(&mut seen, 1..=100), ids(20));
    insert(&mut seen, 50);
    assert_eq!(known(&mut seen, 1..=100), ids(50));
}

#[test]
fn runs_of_another_seed_and_unfinished_ones_are_removed_and_strangers_are_not() {
    let folder = Folder::new();
    drop(unmerged(&folder, 2));
    fs::write(folder.0.join("0000000021-0000000030.fresh"), b"half").unwrap();
    fs::write(folder.0.join("notes.fresh"), b"not ours").unwrap();
    fs::write(folder.0.join("1-2.run"), b"not ours").unwrap();
    drop(folder.open(TINY));
    assert_eq!(folder.names().len(), 4);
    let seen = Seen::open_with(&folder.0, SEED + 1, TINY).unwrap();
    assert_eq!((seen.covered(), seen.len(), seen.removed().len()), (0, 0, 2));
    assert_eq!(folder.names(), ["1-2.run", "notes.fresh"]);
}

#[test]
fn an_insertion_that_the_disk_refuses_took_nothing_in() {
    let folder = Folder::new();
    let mut seen = folder.open(TINY);
    insert(&mut seen, 10);
    // The run cannot be made: a folder has its name.
    let in_the_way = folder.0.join("0000000001-0000000010.fresh");
    fs::create_dir(&in_the_way).unwrap();
    assert!(seen.insert(fingerprint_of(11), 11).is_err());
    assert_eq!(known(&mut seen, 1..=20), ids(10));
    fs::remove_dir(in_the_way).unwrap();
    seen.insert(fingerprint_of(11), 11).unwrap();
    assert_eq!((seen.covered(), seen.len()), (10, 11));
    assert_eq!(known(&mut seen, 1..=20), ids(11));
}
