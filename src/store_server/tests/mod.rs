//! What was appended and committed is read back, whatever happens to the process or the file afterwards.

mod copies;
mod dedup;
mod index;
mod model;
mod retention;
mod segments;
mod sums;
mod tail;
mod templates;

use super::*;
use crate::proto::record::ResultCode;
use std::fs;
use std::path::{Path, PathBuf};

const SEGMENT_BYTES: u64 = 1 << 20;

/// A directory that goes away with the test.
pub(super) struct TestDir(pub PathBuf);

impl TestDir {
    pub fn new(name: &str) -> TestDir {
        let path = std::env::temp_dir().join(format!("nephila-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        TestDir(path)
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.0.join("segments")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keeper(path: &Path) -> Keeper {
    keeper_with(path, Dedup::default())
}

fn keeper_with(path: &Path, dedup: Dedup) -> Keeper {
    keeper_of(path, dedup, Compress::default())
}

fn keeper_of(path: &Path, dedup: Dedup, compress: Compress) -> Keeper {
    let rules = StoreRules { dedup, compress, ..StoreRules::of_size(SEGMENT_BYTES) };
    let mut keeper = Keeper::new(Medium::Directory(DataDir::open(path).unwrap()), rules, 1);
    keeper.prepare(0).unwrap();
    keeper
}

/// A store that is written to in one go after the other, each in a segment of its own.
struct Written {
    dir: TestDir,
    dedup: Dedup,
    keeping: RetentionRules,
}

impl Written {
    fn new(name: &str, dedup: Dedup) -> Written {
        let keeping = RetentionRules::all(SEGMENT_BYTES);
        Written { dir: TestDir::new(name), dedup, keeping }
    }

    fn path(&self) -> &Path {
        &self.dir.0
    }

    /// Appends, seals and indexes.
    fn segment(&self, records: &[(&str, &[u8])]) {
        let made: Vec<NewRecord<'_>> = records.iter().map(|(url, body)| new_record(url, body, 0)).collect();
        self.segment_of(&made);
    }

    fn segment_of(&self, records: &[NewRecord<'_>]) {
        let mut keeper = keeper_with(self.path(), self.dedup);
        let mut store = ShardStore::new(keeper.share(0));
        for record in records {
            store.append(record).unwrap();
            // Each is durable before the next comes.
            keeper.turn(0).unwrap();
        }
        store.finish();
        keeper.close().unwrap();
        let mut maintenance = Maintenance::new(self.path(), self.keeping, keeper.shares());
        maintenance.turn(&keeper.take_sealed()).unwrap();
    }

    fn retention(&self) -> Retention {
        Retention::new(self.path(), self.keeping, Vec::new())
    }

    fn reader(&self) -> Reader {
        Reader::open(self.path()).unwrap()
    }

    fn body(&self, url: &str) -> Option<Vec<u8>> {
        self.reader().find(url).unwrap().map(|(_, document)| document.expect("it has a document").body)
    }

    fn assert_sound(&self) {
        let verified = self.reader().verify().unwrap();
        assert!(verified.is_sound(), "{verified:?}");
    }
}

pub(super) fn new_record<'a>(url: &'a str, bytes: &'a [u8], head_len: usize) -> NewRecord<'a> {
    NewRecord { head_len, ..NewRecord::sample(url, bytes) }
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = crate::base::Rng::new(1);
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

/// A page of a site: text that does not compress and is the same on all of them, and some that is its own.
pub(super) fn framed(page: u64) -> Vec<u8> {
    let text = |seed: u64, words: usize| {
        let mut rng = crate::base::Rng::new(seed);
        (0..words).map(|_| format!("{:016x} ", rng.next_u64())).collect::<String>()
    };
    format!("<html>{}<p>{}</p>{}", text(7, 150), text(1_000 + page, 12), text(8, 60)).into_bytes()
}

fn read_all(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let reader = Reader::open(path).unwrap();
    let damaged = reader
        .each(|located, bytes| {
            let document = reader.unpack(&located, bytes).unwrap().expect("a whole record unpacks");
            found.push((located.record.url, document.body));
        })
        .unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    found
}
