//! Pages that were compressed against others of their host are read back like any other.

use super::*;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::store_server::layout::{CODEC, CODEC_TEMPLATE, HEADER_BYTES};
use std::collections::BTreeSet;

fn url_of(page: u64) -> String {
    format!("http://h{}/{}/{page}", page % 3, page % 2)
}

/// A store of so many pages of three hosts.
fn stored(dir: &TestDir, pages: u64, compress: Compress) -> u64 {
    let mut keeper = keeper_of(&dir.0, Dedup::Url, compress);
    let mut store = ShardStore::new(keeper.share(0));
    for page in 0..pages {
        let bytes = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &framed(page)].concat();
        store
            .append(&NewRecord { doc_id: page as u32 + 1, ..new_record(&url_of(page), &bytes, 19) })
            .unwrap();
        keeper.turn(0).unwrap();
    }
    store.finish();
    keeper.close().unwrap();
    Reader::open(&dir.0).unwrap().file_bytes()
}

fn based(dir: &TestDir) -> usize {
    let mut count = 0;
    let reader = Reader::open(&dir.0).unwrap();
    reader.each(|_, bytes| count += usize::from(bytes[CODEC] == CODEC_TEMPLATE)).unwrap();
    count
}

fn assert_all(dir: &TestDir, pages: impl Iterator<Item = u64>) {
    let reader = Reader::open(&dir.0).unwrap();
    for page in pages {
        let (located, document) = reader.find(&url_of(page)).unwrap().expect("it is there");
        let document = document.expect("with its document");
        assert_eq!((document.head.len(), &document.body), (19, &framed(page)), "{}", located.record.url);
    }
    let verified = reader.verify().unwrap();
    assert!(verified.is_sound(), "{verified:?}");
}

#[test]
fn pages_of_a_host_share_their_frame() {
    let (plain, template) = (TestDir::new("no-templates"), TestDir::new("templates"));
    let bytes = [stored(&plain, 200, Compress::Plain), stored(&template, 200, Compress::Template)];
    assert!(bytes[1] * 3 < bytes[0], "{bytes:?}");
    assert_eq!(based(&plain), 0);
    assert!(based(&template) > 180, "{}", based(&template));
    assert_all(&plain, 0..200);
    assert_all(&template, 0..200);
    let mut shown = BTreeSet::new();
    let ids: Vec<u32> = (1..=200).collect();
    let reader = Reader::open(&template.0).unwrap();
    reader
        .find_pages(&ids, |index, page| {
            assert_eq!(page.expect("it is there").1.body, framed(index as u64));
            shown.insert(index);
        })
        .unwrap();
    assert_eq!(shown.len(), 200);
}

/// A segment can be read, copied and dropped by itself.
#[test]
fn every_segment_stands_alone() {
    let dir = TestDir::new("template-segments");
    stored(&dir, 2_500, Compress::Template);
    let segments = dir.segments();
    assert!(segments.len() >= 2, "{segments:?}");
    for keep in &segments {
        let alone = TestDir::new("template-alone");
        fs::create_dir_all(alone.0.join("segments")).unwrap();
        fs::copy(keep, alone.0.join("segments").join(keep.file_name().unwrap())).unwrap();
        let (reader, mut count) = (Reader::open(&alone.0).unwrap(), 0);
        reader
            .each(|located, bytes| {
                count += 1;
                assert!(reader.document_of(&located, bytes).unwrap().is_some(), "{}", located.record.url);
            })
            .unwrap();
        assert!(count > 10, "{count}");
    }
}

#[test]
fn what_stays_of_a_packed_segment_has_other_bases() {
    let dir = TestDir::new("template-pack");
    stored(&dir, 120, Compress::Template);
    // The first ones, on which all others stand, have a newer record.
    let mut keeper = keeper_of(&dir.0, Dedup::Url, Compress::Template);
    let mut store = ShardStore::new(keeper.share(0));
    for page in (0..120).filter(|page| page % 4 != 3) {
        let bytes = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &framed(1_000 + page)].concat();
        store.append(&new_record(&url_of(page), &bytes, 19)).unwrap();
    }
    store.finish();
    keeper.close().unwrap();
    let keeping = RetentionRules { history: History::Newest, ..RetentionRules::all(SEGMENT_BYTES) };
    let gone = Retention::new(&dir.0, keeping, Vec::new()).repack().unwrap();
    assert_eq!(gone.records, 90, "{gone:?}");
    assert!(based(&dir) > 100, "{}", based(&dir));
    assert_all(&dir, (0..120).filter(|page| page % 4 == 3));
}

/// Its base is not where it was.
#[test]
fn a_page_is_found_that_was_packed_since_it_was_shown() {
    let dir = TestDir::new("template-meanwhile");
    stored(&dir, 60, Compress::Template);
    let reader = Reader::open(&dir.0).unwrap();
    let mut seen = Vec::new();
    reader.each(|located, bytes| seen.push((located, bytes.to_vec()))).unwrap();
    let mut keeper = keeper_of(&dir.0, Dedup::Url, Compress::Template);
    let mut store = ShardStore::new(keeper.share(0));
    store.append(&new_record(&url_of(0), b"another page", 0)).unwrap();
    store.finish();
    keeper.close().unwrap();
    let keeping = RetentionRules { history: History::Newest, ..RetentionRules::all(SEGMENT_BYTES) };
    assert_eq!(Retention::new(&dir.0, keeping, Vec::new()).repack().unwrap().records, 1);
    for page in 1..60 {
        let (located, bytes) = &seen[page as usize];
        let document = reader.document_of(located, bytes).unwrap().expect("it is elsewhere");
        assert_eq!(document.body, framed(page));
    }
}

/// What stands on a damaged page is not made up: it is told, and everything else is read.
#[test]
fn a_flipped_bit_costs_the_pages_that_stand_on_it_and_no_other() {
    let dir = TestDir::new("template-flip");
    stored(&dir, 40, Compress::Template);
    let sealed = dir.segments().pop().unwrap();
    let sound = fs::read(&sealed).unwrap();
    let mut most = 0;
    for at in (SEGMENT_HEADER_BYTES..sound.len()).step_by(97) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&sealed, &bytes).unwrap();
        let reader = Reader::open(&dir.0).unwrap();
        let mut unread = 0;
        let damages = reader
            .each(|located, bytes| {
                let page: u64 = located.record.url.rsplit('/').next().unwrap().parse().unwrap();
                match reader.document_of(&located, bytes).unwrap() {
                    Some(document) => assert_eq!(document.body, framed(page), "byte {at}"),
                    None => unread += 1,
                }
            })
            .unwrap();
        most = most.max(unread);
        let verified = reader.verify().unwrap();
        assert_eq!((damages.len(), unread), (verified.damages.len(), verified.broken.len()), "byte {at}");
        assert!(damages.len() == 1 || verified.is_sound(), "byte {at}: {damages:?}");
    }
    assert!((2..40).contains(&most), "{most}");
}

/// Another page in the place of a base would make another page of all that stand on it.
#[test]
fn a_base_must_be_the_one_that_was_meant() {
    let dir = TestDir::new("template-names");
    stored(&dir, 20, Compress::Template);
    let reader = Reader::open(&dir.0).unwrap();
    let mut seen = Vec::new();
    reader.each(|located, bytes| seen.push((located, bytes.to_vec()))).unwrap();
    let places: Vec<u64> = seen.iter().map(|(located, _)| located.offset).collect();
    let mut count = 0;
    for (located, bytes) in seen.iter().filter(|(_, bytes)| bytes[CODEC] == CODEC_TEMPLATE) {
        count += 1;
        let block = HEADER_BYTES + located.record.url.len();
        for (at, other) in places.iter().map(|place| (block, place / 8)).chain([(block + 4, 0)]) {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&(other as u32).to_le_bytes());
            let document = reader.unpack(located, &wrong).unwrap();
            assert!(document.is_none() || wrong == *bytes, "{at} {other}");
        }
    }
    assert!(count > 10);
}

/// No more of a base is in reach of a block than this, and a page may be longer.
#[test]
fn long_pages_have_bases_too() {
    let dir = TestDir::new("template-long");
    let mut keeper = keeper_of(&dir.0, Dedup::Url, Compress::Template);
    let mut store = ShardStore::new(keeper.share(0));
    let long = |page: u64| (0..30).flat_map(|part| framed(page + 100 * part)).collect::<Vec<u8>>();
    for page in 0..6 {
        store.append(&new_record(&url_of(3 * page), &long(page), 0)).unwrap();
        keeper.turn(0).unwrap();
    }
    store.finish();
    keeper.close().unwrap();
    assert!(long(0).len() > 100_000 && based(&dir) > 0);
    let reader = Reader::open(&dir.0).unwrap();
    for page in 0..6 {
        assert_eq!(reader.find(&url_of(3 * page)).unwrap().unwrap().1.unwrap().body, long(page));
    }
}
