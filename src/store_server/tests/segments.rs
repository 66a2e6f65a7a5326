//! What was appended and committed is read back, whatever happens to the process or the file afterwards.

use super::*;
use crate::limits::SEGMENT_HEADER_BYTES;

#[test]
fn documents_come_back_as_they_went() {
    let dir = TestDir::new("roundtrip");
    let mut keeper = keeper(&dir.0);
    let share = keeper.share(0);
    let mut store = ShardStore::new(share.clone());
    let noise = noise(200_000);
    let bodies: [&[u8]; 4] = [b"", b"<p>hello hello hello hello hello hello</p>", &noise, &[b'x'; 100_000]];
    for (index, body) in bodies.iter().enumerate() {
        let bytes = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], body].concat();
        let url = format!("http://h/{index}");
        let mut record = new_record(&url, &bytes, 19);
        record.new_url = (index == 1).then_some("http://h/new");
        let appended = store.append(&record).unwrap();
        assert_eq!(appended.sequence, index as u64 + 1);
    }
    assert_eq!(share.durable(), 0, "nothing counts before it is committed");
    assert!(keeper.turn(0).unwrap());
    assert_eq!(share.durable(), 4);
    // Readers work while the segment is being written.
    let (located, document) = Reader::open(&dir.0).unwrap().find("http://h/1").unwrap().unwrap();
    assert_eq!(located.record.new_url.as_deref(), Some("http://h/new"));
    assert_eq!((located.record.doc_id, located.record.status, located.record.port), (7, 200, 8080));
    assert_eq!(document.unwrap().head, b"HTTP/1.1 200 OK\r\n\r\n");
    store.finish();
    keeper.close().unwrap();
    let found = read_all(&dir.0);
    assert_eq!(found.len(), 4);
    for (index, (url, body)) in found.iter().enumerate() {
        assert_eq!((url.as_str(), body.as_slice()), (format!("http://h/{index}").as_str(), bodies[index]));
    }
    let names = dir.segments();
    assert_eq!(names.len(), 1, "the unused segment is gone: {names:?}");
    assert_eq!(names[0].extension().unwrap(), "seg");
}

#[test]
fn a_full_segment_is_sealed_and_the_next_one_is_taken() {
    let dir = TestDir::new("rotate");
    let mut keeper = keeper_of(&dir.0, Dedup::Url, Compress::Plain);
    let mut store = ShardStore::new(keeper.share(0));
    let noise = noise(100_000);
    let mut count = 0;
    let mut waited = 0;
    while count < 30 {
        match store.append(&new_record(&format!("http://h/{count}"), &noise, 0)) {
            Ok(_) => count += 1,
            Err(AppendError::NoSegment) => {
                waited += 1;
                keeper.turn(0).unwrap();
            }
            Err(AppendError::TooLarge) => panic!("it fits"),
        }
    }
    assert!(waited > 0, "the keeper was needed");
    store.finish();
    keeper.turn(0).unwrap();
    keeper.close().unwrap();
    assert_eq!(read_all(&dir.0).len(), 30);
    assert!(dir.segments().len() >= 3);
    let too_large = vec![7; SEGMENT_BYTES as usize];
    keeper.prepare(0).unwrap();
    assert_eq!(store.append(&new_record("http://h/", &too_large, 0)), Err(AppendError::TooLarge));
}

/// Leaves a segment behind as a killed process would: open, at its full length.
fn killed_store(dir: &TestDir, records: usize) -> PathBuf {
    let mut keeper = keeper(&dir.0);
    let mut store = ShardStore::new(keeper.share(0));
    for index in 0..records {
        let body = format!("<p>page {index} page {index} page {index}</p>");
        store.append(&new_record(&format!("http://h/{index}"), body.as_bytes(), 0)).unwrap();
    }
    keeper.turn(0).unwrap();
    std::mem::forget(store);
    dir.segments().into_iter().find(|path| fs::metadata(path).unwrap().len() == SEGMENT_BYTES).unwrap()
}

#[test]
fn a_torn_tail_is_cut_and_nothing_before_it_is_lost() {
    for cut in 1..200 {
        let dir = TestDir::new("torn");
        let path = killed_store(&dir, 5);
        // Zeroed from some byte of the last record on, as if that part had never reached the disk.
        let ends = record_ends(&path);
        let end = ends[4];
        let from = (end - cut).max(ends[3]);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(from).unwrap();
        file.set_len(SEGMENT_BYTES).unwrap();
        drop(file);
        let directory = DataDir::open(&dir.0).unwrap();
        assert_eq!(directory.recovered(), 1);
        let found = read_all(&dir.0);
        // Padding at the very end may be zero already.
        assert!(found.len() == 4 || (found.len() == 5 && cut < 8), "cut {cut}: {}", found.len());
        drop(directory);
        assert_eq!(DataDir::open(&dir.0).unwrap().recovered(), 0, "recovery is done once");
        assert_eq!(read_all(&dir.0).len(), found.len());
    }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let dir = TestDir::new("flip");
    let path = killed_store(&dir, 3);
    drop(DataDir::open(&dir.0).unwrap());
    let sealed = path.with_extension("seg");
    let sound = fs::read(&sealed).unwrap();
    let before = read_all(&dir.0);
    assert_eq!(before.len(), 3);
    // Of the many zeros in the header some are enough.
    for at in (0..sound.len()).filter(|at| !(64..SEGMENT_HEADER_BYTES - 64).contains(at) || at % 61 == 0) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&sealed, &bytes).unwrap();
        let mut found = Vec::new();
        let reader = Reader::open(&dir.0).unwrap();
        let damaged = reader
            .each(|located, bytes| {
                let document = reader.unpack(&located, bytes).unwrap().expect("checked");
                found.push((located.record.url, document.body));
            })
            .unwrap();
        let harmless = damaged.is_empty() && found == before;
        // One record at most is lost; the header of the segment holds none.
        let lost = usize::from(at >= SEGMENT_HEADER_BYTES);
        let noticed =
            damaged.len() == 1 && found.len() == 3 - lost && found.iter().all(|one| before.contains(one));
        assert!(harmless || noticed, "byte {at}: {} found, damage {damaged:?}", found.len());
    }
}

#[test]
fn a_directory_is_locked_against_a_second_process() {
    let dir = TestDir::new("lock");
    let first = DataDir::open(&dir.0).unwrap();
    assert!(matches!(DataDir::open(&dir.0), Err(OpenError::InUse { .. })));
    let held = first.hold();
    drop(first);
    assert!(matches!(DataDir::open(&dir.0), Err(OpenError::InUse { .. })), "somebody has more to write");
    drop(held);
    assert!(DataDir::open(&dir.0).is_ok());
    assert!(matches!(Reader::open(Path::new("/nonexistent")), Err(ReadError::NoStore(_))));
}

fn record_ends(path: &Path) -> Vec<u64> {
    let dir = path.parent().unwrap().parent().unwrap();
    let mut ends = Vec::new();
    Reader::open(dir)
        .unwrap()
        .each(|located, _| ends.push(located.offset + u64::from(located.record.record_bytes)))
        .unwrap();
    ends
}

/// A page may hold bytes that are a whole record of this very segment. Where the header of the page's own record is
/// damaged, the walk looks for the next record, and must not take that one.
#[test]
fn a_record_that_a_page_made_up_is_never_shown() {
    let forger = TestDir::new("forger");
    let mut forged = fs::read(killed_store(&forger, 1)).unwrap();
    forged.truncate(record_ends(&forger.segments()[0])[0] as usize);
    let forged = &forged[SEGMENT_HEADER_BYTES..];
    let noise = noise(4_000);
    for shift in 0..8 {
        let dir = TestDir::new("forged");
        let mut keeper = keeper(&dir.0);
        let mut store = ShardStore::new(keeper.share(0));
        let page = [&noise[..1_000 + shift], forged, &noise[1_000..]].concat();
        for (url, body) in [("http://h/1", &page[..]), ("http://h/2", &noise[..])] {
            store.append(&new_record(url, body, 0)).unwrap();
        }
        store.finish();
        keeper.close().unwrap();
        drop(keeper);
        let path = dir.segments().remove(0);
        let mut bytes = fs::read(&path).unwrap();
        bytes[SEGMENT_HEADER_BYTES + 20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let mut urls = Vec::new();
        let damaged = Reader::open(&dir.0).unwrap().each(|located, _| urls.push(located.record.url)).unwrap();
        assert_eq!((urls, damaged.len()), (vec!["http://h/2".to_string()], 1), "shift {shift}");
    }
}
