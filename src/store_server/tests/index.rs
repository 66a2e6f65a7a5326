//! Indexes find what is there, are made anew from the segments, and are never believed.

use super::super::maintenance::Reindexed;
use super::*;
use crate::base::Rng;

fn index_files(store: &Written, extension: &str) -> Vec<PathBuf> {
    let mut found = store.dir.segments();
    found.retain(|path| path.extension().is_some_and(|e| e == extension));
    found
}

#[test]
fn every_record_is_found_through_any_number_of_segments() {
    let store = Written::new("many", Dedup::Url);
    for round in 0..40 {
        let urls: Vec<String> = (0..5).map(|page| format!("http://h/{}", round * 3 + page)).collect();
        let bodies: Vec<String> = urls.iter().map(|url| format!("{url} in round {round}")).collect();
        let records: Vec<(&str, &[u8])> =
            urls.iter().zip(&bodies).map(|(url, body)| (url.as_str(), body.as_bytes())).collect();
        store.segment(&records);
    }
    let reader = store.reader();
    assert_eq!(reader.index_files().unwrap(), (2 + 8, 0), "two runs of sixteen and eight single ones");
    for page in 0..122 {
        let url = format!("http://h/{page}");
        let newest = (page / 3).min(39);
        assert_eq!(store.body(&url).unwrap(), format!("{url} in round {newest}").into_bytes());
    }
    assert!(reader.find("http://h/122").unwrap().is_none());
    store.assert_sound();
    // Without any index the answers are the same.
    for path in index_files(&store, "idx").into_iter().chain(index_files(&store, "run")) {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(store.reader().index_files().unwrap(), (0, 40));
    assert_eq!(store.body("http://h/7").unwrap(), b"http://h/7 in round 2");
    assert_eq!(store.reader().verify().unwrap().unindexed, 40);
    // A process that writes makes good what is missing.
    let mut maintenance = Maintenance::new(store.path(), store.keeping, Vec::new());
    assert_eq!(maintenance.reindex().unwrap(), Reindexed { segments: 40, records: 200 });
    assert_eq!(store.reader().index_files().unwrap(), (2 + 8, 0));
    store.assert_sound();
}

#[test]
fn sixteen_runs_become_one() {
    let store = Written::new("tiers", Dedup::Off);
    let directory = store.path().join("segments");
    fs::create_dir_all(&directory).unwrap();
    for round in 0..FAN_IN * FAN_IN {
        store.segment(&[(&format!("http://h/{round}"), b"page")]);
    }
    assert_eq!(store.reader().index_files().unwrap(), (1, 0));
    assert_eq!(index_files(&store, "run").len(), 1, "what was merged is gone");
    for round in 0..FAN_IN * FAN_IN {
        assert!(store.body(&format!("http://h/{round}")).is_some());
    }
    store.assert_sound();
}

const FAN_IN: usize = 16;

#[test]
fn by_document_number() {
    let store = Written::new("doc-id", Dedup::Url);
    let mut records = [new_record("http://h/a", b"a", 0), new_record("http://h/b", b"b", 0)];
    (records[0].doc_id, records[1].doc_id) = (70_000, 3);
    store.segment_of(&records);
    let (located, document) = store.reader().find_document(70_000).unwrap().unwrap();
    assert_eq!((located.record.url.as_str(), document.unwrap().body.as_slice()), ("http://h/a", &b"a"[..]));
    assert!(store.reader().find_document(4).unwrap().is_none());
}

/// A failure after a page does not hide it, and neither does an index that is missing.
#[test]
fn pages_of_many_document_numbers() {
    let store = Written::new("pages", Dedup::Url);
    let page = |doc_id, url, bytes| NewRecord { doc_id, ..new_record(url, bytes, 0) };
    let failure = |doc_id, url| NewRecord {
        success: false,
        result: ResultCode::ReadTimeout,
        status: 0,
        ..page(doc_id, url, b"")
    };
    store.segment_of(&[page(1, "http://h/1", b"old"), page(2, "http://h/2", b"two")]);
    store.segment_of(&[page(1, "http://h/1", b"new"), failure(2, "http://h/2"), failure(3, "http://h/3")]);
    let found = || {
        let mut found = Vec::new();
        let told =
            |index, page: Option<(Record, Document)>| found.push((index, page.map(|(_, page)| page.body)));
        store.reader().find_pages(&[2, 9, 1, 3, 2], told).unwrap();
        found
    };
    let (two, new) = (Some(b"two".to_vec()), Some(b"new".to_vec()));
    let expected = vec![(0, two.clone()), (1, None), (2, new), (3, None), (4, two)];
    assert_eq!(found(), expected);
    index_files(&store, "idx").into_iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(found(), expected);
}

/// Whatever an index says, what is shown was read and checked; and verify tells that it is wrong.
#[test]
fn a_broken_index_hides_at_most() {
    let store = Written::new("broken-index", Dedup::Url);
    let bodies: Vec<String> = (0..20).map(|page| format!("body of {page} {page} {page}")).collect();
    let urls: Vec<String> = (0..20).map(|page| format!("http://h/{page}")).collect();
    let records: Vec<(&str, &[u8])> =
        urls.iter().zip(&bodies).map(|(url, body)| (url.as_str(), body.as_bytes())).collect();
    store.segment(&records);
    let path = index_files(&store, "idx").remove(0);
    let sound = fs::read(&path).unwrap();
    let mut rng = Rng::new(5);
    for _ in 0..300 {
        let mut bytes = sound.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
        if rng.below(4) == 0 {
            bytes.truncate(at);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        let reader = store.reader();
        for (url, body) in urls.iter().zip(&bodies) {
            if let Ok(Some((located, document))) = reader.find(url) {
                assert_eq!((&located.record.url, document.unwrap().body), (url, body.clone().into_bytes()));
            }
        }
        assert!(!reader.verify().unwrap().is_sound(), "byte {at}");
    }
}

/// The newest record of a URL is damaged, and an older one is not: that is said, and the older one is not given for it.
#[test]
fn a_damaged_newest_record_is_said() {
    let store = Written::new("damaged-newest", Dedup::Url);
    store.segment(&[("http://h/", b"old")]);
    store.segment(&[("http://h/", b"new"), ("http://h/other", b"other")]);
    let path = index_files(&store, "seg").remove(1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[crate::limits::SEGMENT_HEADER_BYTES + 122] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(store.reader().find("http://h/"), Err(ReadError::Damaged { .. })));
    assert_eq!(store.body("http://h/other").as_deref(), Some(&b"other"[..]));
}
