//! Sums of segments, by which a copy is compared with what it is a copy of; and records by their own checksums.

use super::*;
use crate::proto::record::SegmentState;

fn written(name: &str) -> (Written, SegmentState, PathBuf) {
    let written = Written::new(name, Dedup::default());
    let body: Vec<u8> = (0..3_000_u32).map(|at| ((at * at) >> 3) as u8).collect();
    written.segment(&[("http://a/1", &body), ("http://a/2", b"two"), ("http://a/3", b"three")]);
    let state = SegmentSource::new(written.path()).look().unwrap().states[0];
    let file = written.path().join("segments/0000000001-000.seg");
    (written, state, file)
}

#[test]
fn a_sum_is_of_all_bytes_that_are_named_and_of_no_other_segment() {
    let (written, state, file) = written("sums");
    let sum = |state: SegmentState| sum_segment(written.path(), &state, || ()).unwrap();
    let whole = sum(state).unwrap();
    // Of one in use only so many bytes count.
    let part = SegmentState { bytes: state.bytes - 8, is_sealed: false, ..state };
    let of_part = sum(part).unwrap();
    assert_ne!(of_part, whole);
    assert_eq!(sum(SegmentState { is_sealed: false, ..state }), Some(whole));
    let others = [
        SegmentState { print: state.print ^ 1, ..state },
        SegmentState { segment: 2, ..state },
        SegmentState { shard: 1, ..state },
        SegmentState { bytes: state.bytes + 1, is_sealed: false, ..state },
        SegmentState { is_sealed: true, ..part },
    ];
    assert_eq!(others.map(sum), [None; 5]);
    let bytes = fs::read(&file).unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).unwrap();
        assert_ne!(sum(state), Some(whole), "byte {at}");
    }
    fs::write(&file, &bytes).unwrap();
    fs::rename(&file, file.with_extension("open")).unwrap();
    assert_eq!((sum(state), sum(part)), (Some(whole), Some(of_part)), "under either name");
    fs::remove_file(file.with_extension("open")).unwrap();
    assert_eq!(sum(state), None);
}

#[test]
fn a_segment_says_itself_whether_it_can_be_read() {
    let (written, _, file) = written("sound");
    let check = |number| check_segment(written.path(), number, || ()).unwrap();
    assert_eq!((check(1), check(2)), (Soundness::Sound, Soundness::Gone));
    assert_eq!(sealed_segments(written.path()).unwrap(), [1]);
    let bytes = fs::read(&file).unwrap();
    // In its first page, and in the first of its records.
    for at in [40, crate::limits::SEGMENT_HEADER_BYTES + 200] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).unwrap();
        assert_eq!(check(1), Soundness::Damaged, "byte {at}");
    }
    // Cut between two records it looks whole; its index knows better.
    let last = written_records(&bytes, &written);
    fs::write(&file, &bytes[..last]).unwrap();
    assert_eq!(check(1), Soundness::Damaged);
    fs::write(&file, &bytes).unwrap();
    assert_eq!(check(1), Soundness::Sound);
}

/// Where the last record begins.
fn written_records(bytes: &[u8], written: &Written) -> usize {
    fs::write(written.path().join("segments/0000000001-000.seg"), bytes).unwrap();
    let located = written.reader().find("http://a/3").unwrap().unwrap().0;
    located.offset as usize
}
