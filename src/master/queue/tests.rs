use super::super::ServerId;
use super::queue::open_shelf;
use super::*;
use crate::proto::reflog::Stamp;
use std::path::{Path, PathBuf};

const SERVER: ServerId = ServerId(7);
/// So small that a test has several segments.
const SMALL: QueueLimits = QueueLimits { segment_bytes: 2_000 };

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nephila-queue-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn line(n: u64) -> Vec<u8> {
    format!(
        "{n}\t5\t20110727200841\t2310\thttp://h{}.example/{}\t1\t0",
        n % 97,
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    )
    .into_bytes()
}

fn batch(epoch: u64, before_s: u32) -> Batch {
    Batch { epoch, now_s: 1_000 * epoch as u32, before_s, kind: BlockKind::Epoch }
}

/// Appends `count` lines from the next number on as one commit, with times from `at_s` on.
fn commit(queue: &mut Queue, epoch: u64, count: u64, at_s: u32) -> QueueEnd {
    let before_s = if epoch > 1 { at_s - 1 } else { 0 };
    queue.begin(batch(epoch, before_s));
    let from = queue.reader().next_seq();
    for n in from..from + count {
        assert_eq!(queue.append(&line(n), Stamp::from_s(at_s + (n - from) as u32)).unwrap(), n);
    }
    let end = queue.seal().unwrap().unwrap();
    assert_eq!(queue.reader().next_seq(), from, "nobody sees it before it is committed");
    queue.publish();
    queue.shelf().told(at_s + count as u32 - 1, None);
    end
}

fn read(
    reader: &mut QueueReader,
    from: u64,
    max: u64,
    bytes_max: usize,
) -> Result<(u64, Vec<Vec<u8>>), QueueError> {
    let mut lines = Vec::new();
    let next = reader.read(from, max, bytes_max, |line| lines.push(line.to_vec()))?;
    Ok((next, lines))
}

fn all(reader: &mut QueueReader) -> Vec<Vec<u8>> {
    let (mut lines, mut from) = (Vec::new(), reader.first_seq());
    loop {
        let (next, more) = read(reader, from, 50, 10_000).unwrap();
        if next == from {
            return lines;
        }
        (from, lines) = (next, [lines, more].concat());
    }
}

#[test]
fn entries_come_back_from_any_number_on() {
    let folder = folder("back");
    let (mut queue, damages) = Queue::open(&folder, SERVER, QueueEnd::default(), SMALL).unwrap();
    assert!(damages.is_empty());
    let mut end = QueueEnd::default();
    for epoch in 1..=6 {
        end = commit(&mut queue, epoch, 100 * epoch, 1_000 * epoch as u32);
    }
    let mut reader = queue.reader();
    assert_eq!(end.next, 2_100);
    assert!(std::fs::read_dir(&folder).unwrap().count() > 3, "several segments");
    for from in [0, 1, 99, 100, 101, 299, 300, 1_777, 2_099] {
        let (next, lines) = read(&mut reader, from, 150, usize::MAX).unwrap();
        assert_eq!((next, lines.len() as u64), (2_100.min(from + 150), (2_100 - from).min(150)));
        assert!((from..).zip(&lines).all(|(n, read)| *read == line(n)));
        let (next, lines) = read(&mut reader, from, 150, 200).unwrap();
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        assert!(next > from && next == from + lines.len() as u64 && bytes <= 200, "{bytes}");
    }
    assert_eq!(read(&mut reader, 5, 10, 1).unwrap().0, 6, "one comes in any case");
    assert_eq!(read(&mut reader, 2_100, 10, 100).unwrap().0, 2_100);
    assert!(matches!(read(&mut reader, 1 << 63, 1, 1), Err(QueueError::Beyond { next: 2_100, .. })));
    let mut copied = Vec::new();
    assert_eq!(reader.copy(10, 3, usize::MAX, &mut copied).unwrap(), 13);
    assert_eq!(copied, [line(10), line(11), line(12), vec![]].join(&b'\n'));
    assert_eq!(reader.of_epoch(2), Some((100, 300)));
    // Again by another process, which cuts away what was not committed.
    queue.begin(batch(7, 0));
    (0..5_000).for_each(|n| assert!(queue.append(&line(n), Stamp::from_s(9)).is_ok()));
    queue.seal().unwrap();
    drop(queue);
    let (again, damages) = Queue::open(&folder, SERVER, end, SMALL).unwrap();
    assert!(damages.is_empty());
    let lines = all(&mut again.reader());
    assert!(lines.len() == 2_100 && (0..).zip(&lines).all(|(n, read)| *read == line(n)));
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = std::fs::read(entry.unwrap().path()).unwrap();
        bytes += file.len() as u64;
        segment_entries(&file, |_, _| {}).unwrap();
    }
    assert_eq!(bytes, again.reader().bytes().0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_taken_back_leaves_the_bytes_that_would_have_been() {
    let (one, other) = (folder("cut-1"), folder("cut-2"));
    let mut ends = Vec::new();
    for folder in [&one, &other] {
        let (mut queue, _) = Queue::open(folder, SERVER, QueueEnd::default(), SMALL).unwrap();
        commit(&mut queue, 1, 60, 1_000);
        if folder == &one {
            queue.begin(batch(2, 5));
            (0..900).for_each(|n| assert!(queue.append(&line(n), Stamp::from_s(9)).is_ok()));
            queue.seal().unwrap();
            queue.cut().unwrap();
            assert!(queue.append(b"two\nlines", Stamp::from_s(1)).is_err());
            assert!(queue.append(&[b'x'; ENTRY_BYTES_MAX + 1], Stamp::from_s(1)).is_err());
        }
        ends.push(commit(&mut queue, 2, 300, 2_000));
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(bytes_of(&one), bytes_of(&other));
    std::fs::remove_dir_all(one).unwrap();
    std::fs::remove_dir_all(other).unwrap();
}

fn bytes_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| (path.file_name().unwrap().into(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_node_says_how_far_it_is_and_no_further() {
    let folder = folder("done");
    let (mut queue, _) = Queue::open(&folder, SERVER, QueueEnd::default(), SMALL).unwrap();
    let mut end = QueueEnd::default();
    for epoch in 1..=5 {
        end = commit(&mut queue, epoch, 100, 1_000 * epoch as u32);
    }
    let reader = queue.reader();
    assert!(matches!(reader.done(501), Err(QueueError::Beyond { asked: 501, next: 500 })));
    assert!(matches!(reader.done(1 << 63), Err(QueueError::Beyond { .. })));
    let waiting = reader.bytes().1;
    assert!(reader.done(320).unwrap() && !reader.done(300).unwrap() && !reader.done(320).unwrap());
    assert_eq!(reader.position(), 320);
    assert!(reader.bytes().1 < waiting);
    // Both must be so: the node is past it, and it is old.
    assert_eq!(queue.let_go(5_000, 36_000).unwrap(), 0);
    let first = reader.first_seq();
    assert!(queue.let_go(50_000, 36_000).unwrap() > 0);
    assert!(reader.first_seq() > first && reader.first_seq() <= 320);
    let gone = read(&mut queue.reader(), 0, 1, 1);
    assert!(matches!(gone, Err(QueueError::Gone { asked: 0, first }) if first == reader.first_seq()));
    drop(queue);
    let (queue, damages) = Queue::open(&folder, SERVER, end, SMALL).unwrap();
    assert!(damages.is_empty(), "{damages:?}");
    assert_eq!(queue.reader().position(), 320, "it is there again");
    std::fs::write(folder.join("position"), "320 00000000\n").unwrap();
    assert_eq!(
        Queue::open(&folder, SERVER, end, SMALL).unwrap().0.reader().position(),
        0,
        "the node tells it again"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn marks_and_times_lead_back_to_numbers() {
    let folder = folder("marks");
    let (mut queue, _) = Queue::open(&folder, SERVER, QueueEnd::default(), SMALL).unwrap();
    assert_eq!((queue.reader().mark(0), queue.reader().seq_since(Stamp::from_s(0))), (Stamp::from_s(0), 0));
    commit(&mut queue, 1, 50, 1_000);
    commit(&mut queue, 2, 50, 2_000);
    // Lines that come late: older than what went before.
    queue.begin(batch(3, 2_049));
    (0..10).for_each(|n| assert!(queue.append(&line(n), Stamp::from_s(1_500)).is_ok()));
    queue.seal().unwrap();
    queue.publish();
    let reader = queue.reader();
    let since = |s| reader.seq_since(Stamp::from_s(s));
    assert_eq!([since(0), since(1_049), since(1_050), since(2_049), since(2_050)], [0, 0, 50, 50, 110]);
    let mark = |seq| reader.mark(seq).s();
    assert_eq!(mark(110), 2_049, "all of it is there");
    assert_eq!(mark(100), 1_499, "what came late is not");
    assert_eq!(mark(99), 1_499);
    assert_eq!(mark(50), 1_499);
    assert_eq!(mark(49), 0, "the first epoch is not whole");
    queue.shelf().told(2_049, Some(700));
    assert_eq!((mark(110), mark(100)), (699, 699), "what is held is not below any number");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_node_that_takes_from_another_master_is_past_what_is_older_but_not_past_words() {
    let folder = folder("elsewhere");
    let (mut queue, _) = Queue::open(&folder, SERVER, QueueEnd::default(), SMALL).unwrap();
    commit(&mut queue, 1, 50, 1_000);
    commit(&mut queue, 2, 50, 2_000);
    queue.begin(Batch { kind: BlockKind::Control, ..batch(2, 2_049) });
    assert_eq!(queue.append(b"CLOSE a.ru 1", Stamp::from_s(2_100)).unwrap(), 100);
    queue.seal().unwrap();
    queue.publish();
    commit(&mut queue, 3, 50, 3_000);
    let reader = queue.reader();
    let heard = |s| {
        reader.done(reader.had_elsewhere(Stamp::from_s(s))).unwrap();
        reader.position()
    };
    // Less two minutes, by whole blocks, and never back.
    assert_eq!([heard(1_100), heard(1_169), heard(1_170), heard(1_000)], [0, 0, 50, 50]);
    assert_eq!([heard(9_000), heard(u32::MAX)], [100, 100]);
    reader.done(101).unwrap();
    assert_eq!([heard(3_000), heard(9_000)], [101, 151]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whatever byte is not as it was written: what is read is right, or it is said that something is wrong.
#[test]
fn every_flipped_byte_is_found_out() {
    let folder = folder("flip");
    let (mut queue, _) =
        Queue::open(&folder, SERVER, QueueEnd::default(), QueueLimits { segment_bytes: 600 }).unwrap();
    let mut end = QueueEnd::default();
    for epoch in 1..=4 {
        end = commit(&mut queue, epoch, 8, 1_000 * epoch as u32);
    }
    drop(queue);
    let good = bytes_of(&folder);
    assert!(good.len() >= 2);
    for (name, bytes) in &good {
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(segment_entries(&flipped, |_, _| {}).is_err(), "{name:?} byte {at}");
            std::fs::write(folder.join(name), &flipped).unwrap();
            let (shelf, damages) = open_shelf(&folder, SERVER, end).unwrap();
            let mut reader = QueueReader::new(shelf);
            let (mut from, mut lost) = (0, 0);
            while from < 32 {
                let mut number = from;
                match reader.read(from, 3, usize::MAX, |read| {
                    assert_eq!(read, line(number), "{name:?} byte {at}");
                    number += 1;
                }) {
                    Ok(next) => (assert_eq!(next, number), from = next).1,
                    Err(QueueError::Damaged { next, .. }) => (lost += next - from, from = next).1,
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(lost > 0 || !damages.is_empty(), "{name:?} byte {at} is told of");
            assert!(lost <= 16, "{name:?} byte {at}: others are read");
        }
        for length in [0, 10, bytes.len() - 1] {
            std::fs::write(folder.join(name), &bytes[..length]).unwrap();
            assert!(!open_shelf(&folder, SERVER, end).unwrap().1.is_empty());
        }
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    std::fs::remove_file(folder.join(&good[0].0)).unwrap();
    let (shelf, _) = open_shelf(&folder, SERVER, end).unwrap();
    assert!(matches!(read(&mut QueueReader::new(shelf), 0, 1, 1), Err(QueueError::Gone { .. })));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn it_is_read_while_it_is_written() {
    let folder = folder("while");
    let (mut queue, _) = Queue::open(&folder, SERVER, QueueEnd::default(), SMALL).unwrap();
    let mut reader = queue.reader();
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut from = 0;
            while from < 4_000 {
                let mut number = from;
                from = reader
                    .read(from, 77, usize::MAX, |read| {
                        assert_eq!(read, line(number));
                        number += 1;
                    })
                    .unwrap();
            }
        });
        for epoch in 1..=40 {
            commit(&mut queue, epoch, 100, 1_000 * epoch as u32);
        }
        reading.join().unwrap();
    });
    std::fs::remove_dir_all(folder).unwrap();
}
