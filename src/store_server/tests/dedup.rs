//! A document that is stored already is not stored again, and reads as if it were.

use super::*;

const PAGE: &[u8] = &[b'p'; 5_000];
const OTHER: &[u8] = &[b'o'; 5_000];

fn records(store: &Written) -> Vec<Record> {
    let mut found = Vec::new();
    store.reader().each(|located, _| found.push(located.record)).unwrap();
    found
}

#[test]
fn a_page_that_has_not_changed_becomes_a_reference() {
    let store = Written::new("same-url", Dedup::Url);
    store.segment(&[("http://h/a", PAGE), ("http://h/b", PAGE), ("http://h/a", PAGE), ("http://h/a", OTHER)]);
    // Another process knows from the indexes.
    store.segment(&[("http://h/a", OTHER), ("http://h/b", PAGE), ("http://h/c", PAGE)]);
    let kinds: Vec<bool> = records(&store).iter().map(|record| record.is_reference).collect();
    assert_eq!(kinds, [false, false, true, false, true, true, false]);
    assert_eq!(store.body("http://h/a").as_deref(), Some(OTHER));
    assert_eq!(store.body("http://h/b").as_deref(), Some(PAGE));
    assert!(records(&store).iter().all(|record| record.document_len == 5_000), "it says how long it reads");
    store.assert_sound();
}

#[test]
fn for_any_url_when_asked_for_and_never_when_switched_off() {
    for (dedup, expected) in [(Dedup::Any, [false, true, true]), (Dedup::Off, [false, false, false])] {
        let store = Written::new("any-url", dedup);
        store.segment(&[("http://h/a", PAGE), ("http://h/b", PAGE)]);
        store.segment(&[("http://h/c", PAGE)]);
        let kinds: Vec<bool> = records(&store).iter().map(|record| record.is_reference).collect();
        assert_eq!(kinds, expected, "{dedup:?}");
        for url in ["http://h/a", "http://h/b", "http://h/c"] {
            assert_eq!(store.body(url).as_deref(), Some(PAGE), "{dedup:?} {url}");
        }
        store.assert_sound();
    }
}

#[test]
fn the_head_is_always_its_own() {
    let store = Written::new("heads", Dedup::Url);
    for date in ["1", "2"] {
        let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\n\r\n");
        let bytes = [head.as_bytes(), PAGE].concat();
        store.segment_of(&[new_record("http://h/", &bytes, head.len())]);
    }
    let (located, document) = store.reader().find("http://h/").unwrap().unwrap();
    assert!(located.record.is_reference);
    assert_eq!(
        document.unwrap(),
        Document { head: b"HTTP/1.1 200 OK\r\nDate: 2\r\n\r\n".to_vec(), body: PAGE.to_vec() }
    );
}

#[test]
fn nothing_stands_for_what_may_be_gone_after_a_power_loss() {
    let dir = TestDir::new("undurable");
    let mut keeper = keeper(&dir.0);
    let mut store = ShardStore::new(keeper.share(0));
    for _ in 0..2 {
        store.append(&new_record("http://h/", PAGE, 0)).unwrap();
    }
    keeper.turn(0).unwrap();
    store.append(&new_record("http://h/", PAGE, 0)).unwrap();
    keeper.turn(0).unwrap();
    let mut kinds = Vec::new();
    Reader::open(&dir.0).unwrap().each(|located, _| kinds.push(located.record.is_reference)).unwrap();
    assert_eq!(kinds, [false, false, true], "the second came before the first was durable");
}

#[test]
fn short_documents_and_none_are_stored_as_they_are() {
    let store = Written::new("short", Dedup::Url);
    store.segment(&[
        ("http://h/", b""),
        ("http://h/", b""),
        ("http://h/s", b"short"),
        ("http://h/s", b"short"),
    ]);
    assert!(records(&store).iter().all(|record| !record.is_reference));
    store.assert_sound();
}

#[test]
fn a_retired_segment_is_stood_on_by_nothing_new() {
    let store = Written::new("retired", Dedup::Url);
    store.segment(&[("http://h/", PAGE)]);
    let mut keeper = keeper(store.path());
    let mut writer = ShardStore::new(keeper.share(0));
    assert!(keeper.share(0).retire(1));
    writer.append(&new_record("http://h/", PAGE, 0)).unwrap();
    writer.finish();
    keeper.close().unwrap();
    assert!(records(&store).iter().all(|record| !record.is_reference));
}
