//! A copy of a store elsewhere: byte by byte, whatever becomes of either in between.

use super::*;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::{SegmentPiece, SegmentState};
use crate::store_server::scan::ScanMode;
use std::fs::File;

/// A store, and the copy of it.
pub(super) struct Copied {
    from: SegmentSource,
    to: SegmentCopy,
    path: PathBuf,
}

/// Small, so that records come in pieces.
const PIECE_BYTES: usize = 300;

impl Copied {
    pub fn new(from: &Path, to: &Path) -> Copied {
        let copied = Copied {
            from: SegmentSource::new(from),
            to: SegmentCopy::open(to).unwrap(),
            path: to.to_path_buf(),
        };
        copied.to.keep_key(copied.from.key()).unwrap();
        copied
    }

    /// Another process has the copy; what came and was not told may be there or not.
    pub fn restart(&mut self) {
        self.to = SegmentCopy::open(&self.path).unwrap();
    }

    /// Another process has the store.
    pub fn restart_source(&mut self, data: &Path) {
        self.from = SegmentSource::new(data);
    }

    /// Copies so many pieces. True if everything is there that the store had.
    pub fn go_on(&mut self, pieces: usize) -> bool {
        let found = self.from.look().unwrap().states;
        let mut left = pieces;
        for state in &found {
            let held = self.to.held().unwrap().into_iter().find(|held| held.segment == state.segment);
            let same = held.filter(|held| held.print == state.print);
            if same == Some(*state) {
                continue;
            }
            let mut at = same.map_or(0, |held| held.bytes.min(state.bytes));
            loop {
                if left == 0 {
                    return false;
                }
                left -= 1;
                let at_once = if at == 0 { 5_000 } else { PIECE_BYTES };
                let bytes = self.from.read(state.segment, at, at_once).unwrap().unwrap();
                at += bytes.len() as u64;
                let is_end = at == state.bytes;
                let upto = SegmentState { bytes: at, is_sealed: is_end && state.is_sealed, ..*state };
                assert!(self.to.put(&SegmentPiece { upto, bytes: &bytes }).unwrap(), "{upto:?}");
                if is_end {
                    break;
                }
            }
            self.to.sync().unwrap();
        }
        let gone = self.to.held().unwrap().into_iter().map(|held| held.segment);
        let gone: Vec<u64> =
            gone.filter(|number| found.iter().all(|state| state.segment != *number)).collect();
        self.to.remove(&gone).unwrap();
        assert_eq!(self.to.held().unwrap(), found);
        true
    }
}

#[test]
fn a_piece_that_does_not_follow_is_not_taken() {
    let store = Written::new("follows", Dedup::Off);
    let long = b"long ".repeat(400);
    store.segment(&[("http://h/1", &long), ("http://h/2", b"two")]);
    let copy = TestDir::new("follows-copy");
    let (mut from, mut to) = (SegmentSource::new(store.path()), SegmentCopy::open(&copy.0).unwrap());
    let state = from.look().unwrap().states[0];
    let bytes = from.read(state.segment, 0, usize::MAX).unwrap().unwrap();
    let piece = |range: std::ops::Range<usize>, upto: SegmentState| {
        let upto = SegmentState { bytes: range.end as u64, ..upto };
        (upto, &bytes[range])
    };
    let mut put = |(upto, bytes): (SegmentState, &[u8])| to.put(&SegmentPiece { upto, bytes }).unwrap();
    let open = SegmentState { is_sealed: false, ..state };
    assert!(!put(piece(4_150..bytes.len(), open)), "there is nothing before it");
    assert!(!put(piece(0..100, open)), "it has no first page");
    assert!(!put(piece(0..4_120, SegmentState { print: state.print ^ 1, ..open })), "of another one");
    assert!(!put(piece(0..4_120, SegmentState { segment: state.segment + 1, ..open })), "another number");
    assert!(put(piece(0..4_120, open)));
    assert!(!put(piece(4_130..bytes.len(), open)), "something is missing");
    assert!(put(piece(4_100..4_126, open)), "it came before, some of it");
    assert!(put(piece(4_126..bytes.len(), state)));
    assert!(!put((SegmentState { bytes: state.bytes + 8, ..open }, &[0; 8])), "it is sealed");
    assert_eq!(to.sync().unwrap(), [state]);
    assert_eq!(to.held().unwrap(), [state]);
    let found = Reader::open(&copy.0).unwrap().find("http://h/2").unwrap();
    assert_eq!(found.unwrap().1.unwrap().body, b"two");
}

/// A segment in use is shown up to its last whole record, wherever it is cut and however much of it is kept in memory.
#[test]
fn of_a_segment_in_use_whole_records_are_shown_as_they_are_in_the_file() {
    let store = Written::new("in-use", Dedup::Off);
    let mut rng = crate::base::Rng::new(17);
    let bodies: Vec<Vec<u8>> =
        (0..40).map(|_| (0..rng.below(40_000)).map(|_| rng.below(256) as u8).collect()).collect();
    let urls: Vec<String> = (0..40).map(|number| format!("http://h/{number}")).collect();
    let pages: Vec<(&str, &[u8])> =
        urls.iter().map(String::as_str).zip(bodies.iter().map(Vec::as_slice)).collect();
    store.segment(&pages);
    let [sealed, open] =
        ["seg", "open"].map(|name| store.path().join(format!("segments/0000000001-000.{name}")));
    let whole = fs::read(&sealed).unwrap();
    fs::rename(&sealed, &open).unwrap();
    for room in [0, 1_000, 100_000, usize::MAX] {
        // In steps, as it grows; some end within a header, or a few bytes short of a record.
        let mut source = SegmentSource::with_room(store.path(), room);
        let mut end = SEGMENT_HEADER_BYTES as u64;
        while end < whole.len() as u64 {
            let cut = (end + rng.below(200_000) + 1).min(whole.len() as u64);
            fs::write(&open, &whole[..cut as usize]).unwrap();
            let file = File::open(&open).unwrap();
            let expected = scan::scan(&file, 1, ScanMode::InUse, |_, _, _| {}).unwrap().end;
            let Some(state) = source.look().unwrap().states.first().copied() else {
                assert_eq!(expected, SEGMENT_HEADER_BYTES as u64);
                continue;
            };
            assert_eq!((state.bytes, state.is_sealed), (expected, false), "cut at {cut}");
            let mut at = 0;
            while at < state.bytes {
                let bytes = source.read(1, at, 1 + rng.below(90_000) as usize).unwrap().unwrap();
                assert!(bytes[..] == whole[at as usize..][..bytes.len()], "from {at} on, cut at {cut}");
                at += bytes.len() as u64;
            }
            end = state.bytes.max(end);
            if cut == whole.len() as u64 {
                assert_eq!(state.bytes, cut);
            }
        }
    }
}
