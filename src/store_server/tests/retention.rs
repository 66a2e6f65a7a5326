//! What is let go is gone, and everything that stays can still be read.

use super::*;
use crate::store_server::retention::Dropped;

const PAGE: &[u8] = &[b'p'; 4_000];
const OTHER: &[u8] = &[b'o'; 4_000];

fn at<'a>(url: &'a str, body: &'a [u8], fetched_unix_ms: u64) -> NewRecord<'a> {
    NewRecord { fetched_unix_ms, ..new_record(url, body, 0) }
}

fn unchanged(url: &str, fetched_unix_ms: u64) -> NewRecord<'_> {
    NewRecord { result: ResultCode::NotModified, status: 304, ..at(url, b"", fetched_unix_ms) }
}

#[test]
fn segments_before_a_date_are_gone() {
    let store = Written::new("before", Dedup::Url);
    for day in 1..=5 {
        store.segment_of(&[at(&format!("http://h/{day}"), PAGE, day * 1_000)]);
    }
    let gone = store.retention().drop_before(3_000).unwrap();
    assert_eq!((gone.segments, gone.records, gone.kept), (2, 2, 0));
    assert_eq!((store.body("http://h/2"), store.body("http://h/3").as_deref()), (None, Some(PAGE)));
    assert_eq!(store.retention().drop_before(3_000).unwrap(), Dropped::default(), "once is enough");
    store.assert_sound();
}

#[test]
fn what_later_records_read_like_stays() {
    let store = Written::new("stand-on", Dedup::Any);
    store.segment_of(&[
        at("http://h/304", PAGE, 1),
        at("http://h/gone", OTHER, 2),
        at("http://h/ref", &[b'r'; 900], 3),
    ]);
    store.segment_of(&[at("http://h/same", &[b'r'; 900], 4), unchanged("http://h/304", 5)]);
    store.segment_of(&[at("http://h/new", &[b'n'; 700], 6)]);
    let gone = store.retention().drop_before(4).unwrap();
    assert_eq!((gone.records, gone.kept), (1, 2));
    assert_eq!(store.body("http://h/gone"), None);
    assert_eq!(store.body("http://h/304").as_deref(), Some(PAGE));
    assert_eq!(store.body("http://h/same").unwrap(), vec![b'r'; 900]);
    store.assert_sound();
    // With the records that stood on them they go, too.
    let gone = store.retention().drop_before(6).unwrap();
    assert_eq!((gone.records, gone.kept), (4, 0));
    assert_eq!(store.body("http://h/304"), None);
    assert_eq!(store.body("http://h/new").unwrap(), vec![b'n'; 700]);
    store.assert_sound();
}

#[test]
fn down_to_a_size_the_oldest_first() {
    let store = Written::new("size", Dedup::Off);
    let noise = noise(50_000);
    for page in 0..6 {
        store.segment(&[(&format!("http://h/{page}"), &noise)]);
    }
    let bytes = store.reader().file_bytes();
    store.retention().drop_to(bytes / 2).unwrap();
    assert_eq!(store.body("http://h/2"), None);
    assert_eq!(store.body("http://h/3").unwrap(), noise);
    assert!(store.reader().file_bytes() <= bytes / 2);
    store.assert_sound();
}

#[test]
fn the_newest_record_of_each_url_is_left() {
    let store = Written::new("repack", Dedup::Url);
    for round in 0..20 {
        let body = format!("round {round} ").repeat(200);
        store.segment(&[
            ("http://h/hot", body.as_bytes()),
            (&format!("http://h/cold/{round}"), body.as_bytes()),
        ]);
    }
    store.segment_of(&[unchanged("http://h/cold/3", 9)]);
    let before = store.reader().file_bytes();
    let gone = store.retention().repack().unwrap();
    // Nineteen old ones of the hot page.
    assert_eq!(gone.records, 19);
    assert!(store.reader().file_bytes() < before);
    assert!(store.reader().segments() <= 4, "{}", store.reader().segments());
    let mut count = 0;
    store.reader().each(|_, _| count += 1).unwrap();
    assert_eq!(count, 22, "one hot, twenty cold, and one that has not changed");
    assert_eq!(store.body("http://h/hot").unwrap(), "round 19 ".repeat(200).into_bytes());
    for round in 0..20 {
        let body = format!("round {round} ").repeat(200).into_bytes();
        assert_eq!(store.body(&format!("http://h/cold/{round}")).unwrap(), body);
    }
    store.assert_sound();
    assert_eq!(store.retention().repack().unwrap().records, 0, "once is enough");
}

/// Killed at any point of packing, everything that is to stay is there.
#[test]
fn half_a_packing_loses_nothing() {
    let store = Written::new("half-packed", Dedup::Url);
    for round in 0..3 {
        let body = format!("round {round} ").repeat(100);
        store.segment(&[("http://h/hot", body.as_bytes()), (&format!("http://h/{round}"), body.as_bytes())]);
    }
    let old: Vec<(PathBuf, Vec<u8>)> =
        store.dir.segments().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    store.retention().repack().unwrap();
    // The packed one is in place, and none of the old ones was removed yet.
    for (path, bytes) in &old[..old.len() - 2] {
        fs::write(path, bytes).unwrap();
    }
    fs::write(store.path().join("segments/0000000003-000.fresh"), b"half").unwrap();
    drop(DataDir::open(store.path()).unwrap());
    assert!(!store.path().join("segments/0000000003-000.fresh").exists(), "what was not whole is gone");
    assert_eq!(store.body("http://h/hot").unwrap(), "round 2 ".repeat(100).into_bytes());
    for round in 0..3 {
        assert!(store.body(&format!("http://h/{round}")).is_some());
    }
    store.assert_sound();
}

#[test]
fn a_crawl_keeps_itself_within_bounds() {
    let mut store = Written::new("by-itself", Dedup::Off);
    store.keeping = RetentionRules { bytes_max: Some(300_000), history: History::Newest, ..store.keeping };
    let noise = noise(40_000);
    for round in 0..30 {
        store.segment(&[("http://h/hot", &noise), (&format!("http://h/{round}"), &noise[..20_000])]);
        assert!(
            store.reader().file_bytes() <= 300_000 + 70_000,
            "round {round}: {}",
            store.reader().file_bytes()
        );
    }
    assert_eq!(store.body("http://h/hot").unwrap(), noise);
    assert_eq!(store.body("http://h/29").unwrap(), noise[..20_000]);
    assert_eq!(store.body("http://h/0"), None);
    store.assert_sound();
}

/// The copy that a reference was made for may go when there is a newer one; from then on the newer one is stood on, also
/// by a reference that is older than it.
#[test]
fn a_reference_may_be_older_than_its_document() {
    let store = Written::new("older-reference", Dedup::Any);
    store.segment(&[("http://h/first", PAGE), ("http://h/ref", PAGE)]);
    // Another process that knows nothing of it stores the page once more.
    let apart =
        Written { dedup: Dedup::Off, dir: TestDir(store.path().to_path_buf()), keeping: store.keeping };
    apart.segment(&[("http://h/first", OTHER), ("http://h/copy", PAGE)]);
    store.retention().repack().unwrap();
    apart.segment(&[("http://h/copy", OTHER)]);
    store.retention().repack().unwrap();
    assert_eq!(store.body("http://h/ref").as_deref(), Some(PAGE));
    store.assert_sound();
    std::mem::forget(apart);
}

/// What is packed takes a later number, and must not come to stand behind a newer record in a segment that is in use.
#[test]
fn packing_makes_no_record_newer_than_it_is() {
    let dir = TestDir::new("age");
    let rules = StoreRules { dedup: Dedup::Any, ..StoreRules::of_size(SEGMENT_BYTES) };
    let mut keeper = Keeper::new(Medium::Directory(DataDir::open(&dir.0).unwrap()), rules, 2);
    keeper.prepare(0).unwrap();
    let (mut first, mut second) = (ShardStore::new(keeper.share(0)), ShardStore::new(keeper.share(1)));
    // The old page is stood on by another, so that it stays; the new one is in the second shard's segment, in use.
    let old = [&b"old"[..], &[b'o'; 3_000]].concat();
    for (url, body) in [
        ("http://h/hot", &old[..]),
        ("http://h/moved", PAGE),
        ("http://h/same", PAGE),
        ("http://h/hot", b"hot"),
    ] {
        first.append(&new_record(url, body, 0)).unwrap();
        keeper.turn(0).unwrap();
    }
    second.append(&new_record("http://h/moved", OTHER, 0)).unwrap();
    first.finish();
    keeper.turn(0).unwrap();
    first.append(&new_record("http://h/later", &[b'l'; 500], 0)).unwrap();
    first.finish();
    keeper.turn(0).unwrap();
    Maintenance::new(&dir.0, RetentionRules::all(SEGMENT_BYTES), keeper.shares())
        .turn(&keeper.take_sealed())
        .unwrap();
    let names: Vec<u64> =
        Reader::open(&dir.0).unwrap().segment_files().iter().map(|file| file.number).collect();
    assert!(names.len() >= 3, "{names:?}");
    Retention::new(&dir.0, RetentionRules::all(SEGMENT_BYTES), keeper.shares()).repack().unwrap();
    let reader = Reader::open(&dir.0).unwrap();
    let body = |url| reader.find(url).unwrap().unwrap().1.unwrap().body;
    assert_eq!(body("http://h/moved"), OTHER);
    assert_eq!(body("http://h/same"), PAGE);
    assert!(reader.verify().unwrap().is_sound());
}

/// A segment may be packed before the maintenance comes to the word that it was sealed.
#[test]
fn a_late_word_of_a_sealed_segment_does_no_harm() {
    let dir = TestDir::new("late-word");
    let mut keeper = keeper(&dir.0);
    let mut store = ShardStore::new(keeper.share(0));
    for (url, body) in [("http://h/hot", PAGE), ("http://h/cold", PAGE), ("http://h/hot", OTHER)] {
        store.append(&new_record(url, body, 0)).unwrap();
    }
    store.finish();
    keeper.turn(0).unwrap();
    let sealed = keeper.take_sealed();
    assert_eq!(sealed.len(), 1);
    let mut maintenance = Maintenance::new(&dir.0, RetentionRules::all(SEGMENT_BYTES), keeper.shares());
    maintenance.turn(&[]).unwrap();
    Retention::new(&dir.0, RetentionRules::all(SEGMENT_BYTES), keeper.shares()).repack().unwrap();
    maintenance.turn(&sealed).unwrap();
    let verified = Reader::open(&dir.0).unwrap().verify().unwrap();
    assert!(verified.is_sound() && verified.records == 2, "{verified:?}");
}
