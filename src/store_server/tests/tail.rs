use super::*;

/// Two shards with segments in turn: 1, 3, 5 … of the first, 2, 4, 6 … of the second.
#[test]
fn the_tail_of_every_shard_begins_where_something_is_known() {
    let dir = TestDir::new("tail");
    let directory = DataDir::open(&dir.0).unwrap();
    let mut keeper = Keeper::new(Medium::Directory(directory), StoreRules::of_size(1 << 20), 2);
    for round in 0..4 {
        for shard in 0..2 {
            keeper.prepare(0).unwrap();
            let mut store = ShardStore::new(keeper.share(shard));
            for n in 0..3 {
                store.append(&new_record(&format!("http://{shard}/{round}/{n}"), b"x", 0)).unwrap();
            }
            store.finish();
            keeper.commit().unwrap();
        }
    }
    drop(keeper);
    // What is empty goes at the next start.
    drop(DataDir::open(&dir.0).unwrap());
    let reader = Reader::open(&dir.0).unwrap();
    let shard = |located: &Located| located.record.url.as_bytes()[7];
    let of = |wanted: u8| {
        let mut numbers = Vec::new();
        reader
            .each(|located, _| numbers.extend(Some(located.segment).filter(|_| shard(&located) == wanted)))
            .unwrap();
        numbers.dedup();
        numbers
    };
    let (first, second) = (of(b'0'), of(b'1'));
    assert_eq!((first.len(), second.len()), (4, 4));
    // All that the first shard wrote in its last two segments is new, and the end of the second's last but one.
    let is_new = |located: &Located| match shard(located) {
        b'0' => located.segment >= first[2],
        _ => located.segment == second[3],
    };
    let mut expected = [&first[1..], &second[2..]].concat();
    expected.sort_unstable();
    assert_eq!(reader.tail(0, is_new), expected);
    assert_eq!(reader.tail(0, |_| false), [first[3].min(second[3]), first[3].max(second[3])]);
    assert_eq!(reader.tail(second[2], |_| true), later_of(&reader, second[2]));
    assert_eq!(reader.tail(first[3].max(second[3]) + 1, |_| true), [0; 0]);
    let mut shown = 0;
    reader.each_in(second[3], |located, _| shown += u64::from(located.segment == second[3])).unwrap();
    assert_eq!(shown, 3);
}

fn later_of(reader: &Reader, first: u64) -> Vec<u64> {
    reader.segment_files().iter().map(|segment| segment.number).filter(|&number| number >= first).collect()
}
