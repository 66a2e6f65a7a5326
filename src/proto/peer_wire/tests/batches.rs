//! Batches of URLs: full by items or by bytes, and nothing in them that is refused at the other end.

use super::*;
use proptest::prelude::*;

#[test]
fn a_batch_is_full_by_items_or_by_bytes() {
    let mut builder = UrlBatchBuilder::default();
    assert!(builder.is_empty());
    for number in 0..URL_BATCH_ITEMS_MAX {
        assert_eq!(builder.push(&item(number as u16, &format!("http://a.example/{number:03}"))), Ok(()));
    }
    assert_eq!(builder.push(&item(1, "http://a.example/")), Err(PushError::Full), "all items");
    assert_eq!(builder.count(), URL_BATCH_ITEMS_MAX);
    let urls = builder.bytes();
    assert!(urls < URL_BATCH_ITEMS_MAX * 12, "front-coded: {urls}");
    builder.clear();

    // URLs that share nothing, of the greatest length.
    let long = |number: usize| format!("http://{}/{}", number % 10, "x".repeat(URL_BYTES_MAX - 9));
    let mut count = 0;
    while builder.push(&odd_item(count as u16, &long(count))).is_ok() {
        count += 1;
    }
    assert_eq!(builder.push(&odd_item(count as u16, &long(count))), Err(PushError::Room));
    assert!(count >= 31 && builder.bytes() <= URL_BATCH_BYTES_MAX, "{count} in {}", builder.bytes());
    let word = PeerWord::Urls(builder.batch(1));
    only_word(&written(&word), |read| {
        let PeerWord::Urls(batch) = read else { panic!("{read:?}") };
        let (mut items, mut number) = (batch.items(), 0);
        while let Some(read) = items.next() {
            assert_eq!(read, odd_item(number as u16, &long(number)));
            number += 1;
        }
        assert_eq!((number, batch.count(), items.next()), (count, count, None));
    })
    .unwrap();
    builder.clear();
    assert_eq!((builder.push(&odd_item(0, &long(0))), builder.count()), (Ok(()), 1), "used again");
}

#[test]
fn items_that_are_wrong_are_refused() {
    let said = |count: u16, items: &[u8]| {
        let body = [&[0; 8][..], &count.to_le_bytes(), items].concat();
        words([&framed(FrameKind::Urls, &body)[..]]).1.map_err(|error| error.to_string())
    };
    let url = b"http://a/";
    let good = [&[0, 7, 0, 9][..], url, &[2, 0, 5]].concat();
    assert_eq!(said(1, &good), Ok(0));
    assert_eq!(said(0, &[]), Ok(0));
    let is = |count, items: &[u8], what: &str| {
        assert_eq!(said(count, items), Err(format!("URLS frame {what}")), "{items:?}");
    };
    let with = |at: usize, byte: u8| {
        let mut items = good.clone();
        items[at] = byte;
        items
    };
    is(0, &good, "with bytes behind its last item");
    is(2, &good, "that ends within an item, or with one out of range");
    is(501, &good, "with more items or bytes than a batch may have");
    is(1, &vec![0; URL_BATCH_BYTES_MAX], "with more items or bytes than a batch may have");
    is(1, &with(0, 0x80), "with an item that this version does not know");
    is(1, &with(0, 0x09), "with an item that this version does not know");
    is(1, &with(0, 0x40), "with an item whose partition is not told");
    is(1, &with(2, 1), "that ends within an item, or with one out of range");
    is(1, &with(12, b' '), "with a URL that is not in normal form");
    is(1, &with(4, b'f'), "with a URL that is not in normal form");
    is(1, &with(14, 11), "with a URL behind too many redirects");
    let far = [&[0, 0x80, 0x20, 0, 9][..], url, &[2, 0, 5]].concat();
    is(1, &far, "with a partition out of range");
    let long = [&[0, 7, 0, 0x81, 0x40][..], url, &[b'x'; URL_BYTES_MAX - 8], &[2, 0, 5]].concat();
    is(1, &long, "with a URL over its bound");
}

#[test]
fn what_a_receiver_would_refuse_is_not_put_in() {
    let (good, long) = (item(1, "http://a.example/"), format!("http://a/{}", "x".repeat(URL_BYTES_MAX)));
    let far = Provenance { hops: 11, ..Provenance::link(2) };
    let far = UrlNews::Found(Found { provenance: far, priority: 0, hits: 0 });
    let mut builder = UrlBatchBuilder::default();
    assert_eq!(builder.push(&good), Ok(()));
    for (bad, what) in [
        (item(0, "ftp://a.example/"), "with a URL that is not in normal form"),
        (item(0, "http://a.example/ü"), "with a URL that is not in normal form"),
        (item(0, &long), "with a URL over its bound"),
        (UrlItem { news: far, ..good }, "with a URL behind too many redirects"),
    ] {
        assert_eq!(builder.push(&bad), Err(PushError::Fault(what)));
    }
    assert_eq!(PushError::Fault("with a fault").to_string(), "an item with a fault");
    let mut plain = UrlBatchBuilder::default();
    for builder in [&mut builder, &mut plain] {
        let _ = builder.push(&item(1, "http://a.example/next"));
    }
    assert_eq!(plain.push(&good), Ok(()));
    assert_eq!((builder.count(), builder.batch(1).items().next()), (2, Some(good)), "the batch is as it was");
}

fn any_found() -> impl Strategy<Value = UrlNews> {
    let provenance = (0..4u8, any::<u16>(), 0..=10u8, any::<bool>(), any::<bool>());
    let found = (provenance, any::<u8>(), prop_oneof![Just(0), any::<u32>()]).prop_map(
        |((kind, depth, hops, seed_chain, head_only), priority, hits)| {
            let kind = DocKind::from_bits(kind);
            let provenance = Provenance { kind, depth, hops, seed_chain, head_only };
            UrlNews::Found(Found { provenance, priority, hits })
        },
    );
    prop_oneof![4 => found, 1 => Just(UrlNews::Scope)]
}

proptest! {
    #[test]
    fn batches_come_back(
        batch: u64,
        items in prop::collection::vec(
            (0..4_096u16, "https?://[a-c]{1,2}\\.example/[a-b/?%0-9]{0,20}", any_found()), 0..60),
    ) {
        let mut builder = UrlBatchBuilder::default();
        for (number, url, news) in &items {
            let taken = UrlItem { partition: partition(*number), url, news: *news };
            prop_assert_eq!(builder.push(&taken), Ok(()));
        }
        let word = PeerWord::Urls(builder.batch(batch));
        only_word(&written(&word), |read| {
            let PeerWord::Urls(read) = read else { panic!("{read:?}") };
            assert_eq!((read.batch, read.count()), (batch, items.len()));
            let mut rest = read.items();
            for (number, url, news) in &items {
                assert_eq!(rest.next(), Some(UrlItem { partition: partition(*number), url, news: *news }));
            }
            assert_eq!(rest.next(), None);
        }).unwrap();
    }
}
