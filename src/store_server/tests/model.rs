//! Against a map in memory: whatever is appended, committed, sealed, killed, packed and dropped, in any order, a reader
//! finds what the map has.

use super::copies::Copied;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Append {
        url: u8,
        body: u8,
    },
    Unchanged {
        url: u8,
    },
    Commit,
    /// The process ends, cleanly or not, and another begins.
    Restart {
        killed: bool,
    },
    Repack,
    Reindex,
    /// Some of it is copied elsewhere.
    Copy {
        pieces: u8,
    },
    /// The process there ends.
    RestartCopy,
}

/// `PROPTEST_CASES` makes a long run of it.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..12u8, 0..10u8).prop_map(|(url, body)| Step::Append { url, body }),
        2 => (0..12u8).prop_map(|url| Step::Unchanged { url }),
        3 => Just(Step::Commit),
        2 => any::<bool>().prop_map(|killed| Step::Restart { killed }),
        1 => Just(Step::Repack),
        1 => Just(Step::Reindex),
        3 => (0..40u8).prop_map(|pieces| Step::Copy { pieces }),
        1 => Just(Step::RestartCopy),
    ]
}

fn url_of(url: u8) -> String {
    format!("http://h/{url}")
}

/// The short ones have no frame, the long ones are of one site.
fn body_of(body: u8) -> Vec<u8> {
    match body {
        ..4 => format!("body {body} ").repeat(30 + usize::from(body)).into_bytes(),
        _ => framed(u64::from(body)),
    }
}

struct Running {
    keeper: Keeper,
    store: ShardStore,
}

fn run(path: &Path, dedup: Dedup, compress: Compress) -> Running {
    let keeper = keeper_of(path, dedup, compress);
    let store = ShardStore::new(keeper.share(0));
    Running { keeper, store }
}

fn end(mut running: Running, path: &Path, keeping: RetentionRules, killed: bool) {
    running.keeper.commit().unwrap();
    if killed {
        // As a kill leaves it: open segments at their full length, no index. The lock goes with the process.
        drop(running.keeper);
        std::mem::forget(running.store);
        return;
    }
    running.store.finish();
    running.keeper.close().unwrap();
    let mut maintenance = Maintenance::new(path, keeping, running.keeper.shares());
    maintenance.turn(&running.keeper.take_sealed()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_reader_finds_what_the_model_has(
        steps in prop::collection::vec(step(), 1..60),
        any_url in any::<bool>(),
        with_templates in any::<bool>(),
    ) {
        let compress = if with_templates { Compress::Template } else { Compress::Plain };
        let dedup = if any_url { Dedup::Any } else { Dedup::Url };
        let dir = TestDir::new("model");
        let keeping = RetentionRules::all(SEGMENT_BYTES);
        let mut model: BTreeMap<u8, Option<u8>> = BTreeMap::new();
        let mut running = run(&dir.0, dedup, compress);
        let copy = TestDir::new("model-copy");
        let mut copied = Copied::new(&dir.0, &copy.0);
        for step in steps {
            match step {
                Step::Append { url, body } => {
                    let bytes = body_of(body);
                    running.store.append(&new_record(&url_of(url), &bytes, 0)).unwrap();
                    model.insert(url, Some(body));
                }
                Step::Unchanged { url } => {
                    let name = url_of(url);
                    let record = NewRecord { result: ResultCode::NotModified, ..new_record(&name, b"", 0) };
                    running.store.append(&record).unwrap();
                    model.entry(url).or_insert(None);
                }
                Step::Commit => drop(running.keeper.turn(0).unwrap()),
                Step::Restart { killed } => {
                    end(running, &dir.0, keeping, killed);
                    running = run(&dir.0, dedup, compress);
                    copied.restart_source(&dir.0);
                }
                Step::Repack => {
                    // Nothing goes before what it goes for is durable.
                    running.keeper.turn(0).unwrap();
                    let mut retention = Retention::new(&dir.0, keeping, running.keeper.shares());
                    retention.repack().unwrap();
                }
                Step::Reindex => {
                    Maintenance::new(&dir.0, keeping, running.keeper.shares()).reindex().unwrap();
                }
                Step::Copy { pieces } => drop(copied.go_on(usize::from(pieces))),
                Step::RestartCopy => copied.restart(),
            }
        }
        running.keeper.commit().unwrap();
        prop_assert!(copied.go_on(usize::MAX));
        let reader = Reader::open(&dir.0).unwrap();
        for reader in [&reader, &Reader::open(&copy.0).unwrap()] {
            for url in 0..12 {
                let found = reader.find(&url_of(url)).unwrap();
                let body = found.map(|(_, document)| document.map(|document| document.body));
                // A 304 that nothing was stored before has no document.
                let expected = model.get(&url).map(|body| body.map(body_of));
                prop_assert_eq!(body, expected, "{}", url_of(url));
            }
            let verified = reader.verify().unwrap();
            prop_assert!(verified.is_sound(), "{:?}", verified);
        }
        // The newest of each URL is told from the others.
        let newest = reader.newest().unwrap();
        let mut listed = Vec::new();
        reader.each(|located, _| if newest.is_newest(&located) { listed.push(located.record.url) }).unwrap();
        listed.sort();
        let mut expected: Vec<String> = model.keys().map(|url| url_of(*url)).collect();
        expected.sort();
        prop_assert_eq!(listed, expected);
    }
}
