//! The promise: a damaged store says so, and gives what is left. The end of a segment that was in use may be cut or zeroed
//! at any byte: all before it is kept, and nothing partial is read. A sealed segment may have any byte flipped: that is
//! reported by file and place, or it changes nothing; what is read is what was stored, and never what a page made up.
//!
//! A killed or stopped spider makes the store. The mass of the cases is read by the library, a sample by the binary.

use crate::orders::*;
use crate::support::*;
use nephila::store_server::{DataDir, Reader};
use nix::sys::signal::Signal;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where a record lies, and what it says, in words that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    from: u64,
    to: u64,
    /// URL, facts, and the document.
    what: String,
}

/// All records of a store, and where it is damaged.
fn read(data: &Path) -> (Vec<Seen>, Vec<(PathBuf, u64)>) {
    let mut seen = Vec::new();
    let reader = Reader::open(data).unwrap();
    let damaged = reader
        .each(|located, bytes| {
            let document = reader.unpack(&located, bytes).unwrap().expect("what is shown can be unpacked");
            let to = located.offset + u64::from(located.record.record_bytes);
            let what = format!("{:?} {document:?}", located.record);
            seen.push(Seen { from: located.offset, to, what });
        })
        .unwrap();
    (seen, damaged.into_iter().map(|damage| (damage.path, damage.bytes.start)).collect())
}

/// A store of one segment with a handful of records, made by a spider that was stopped or killed.
struct Store {
    data: PathBuf,
    segment: PathBuf,
    bytes: Vec<u8>,
    records: Vec<Seen>,
    dir: TempDir,
}

impl Store {
    #[track_caller]
    fn new(end: Signal, ending: &str) -> Store {
        let (mut orders, dir) = (Orders::new(100), TempDir::in_memory());
        let data = dir.join("data");
        Store::fill(&mut orders, &dir, &data, end);
        orders.check(&data);
        let found: Vec<PathBuf> = segments(&data, ending);
        let segment = found.into_iter().next().expect("a segment");
        let bytes = std::fs::read(&segment).unwrap();
        let (records, damaged) = read(&data);
        assert_eq!((records.len(), damaged.len()), (6, 0), "{records:?}");
        assert!(records.windows(2).all(|two| two[0].to == two[1].from), "one after the other: {records:?}");
        assert_eq!(records[0].from, 4_096);
        Store { data, segment, bytes, records, dir }
    }

    #[track_caller]
    fn fill(orders: &mut Orders, dir: &TempDir, data: &Path, end: Signal) {
        let config = dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 1\n"));
        // One shard writes one segment.
        let mut spider = Running::start(spider_command(&[], data, &config).args(["--cores", "0"]));
        let addr = listens(&mut spider).expect("it starts");
        let talk = orders.give(addr, 6);
        wait_for("all is answered", PATIENCE, || talk.is_answered().then_some(()));
        orders.note(talk);
        spider.signal(end);
        spider.wait(PATIENCE);
    }

    /// A copy in which the segment has these bytes.
    fn copy(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let data = self.dir.join(name);
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(&self.data, &data);
        std::fs::write(data.join("segments").join(self.segment.file_name().unwrap()), bytes).unwrap();
        data
    }
}

/// Every record that ends before `at` is there; what lies at it is there whole or not at all; nothing else is.
#[track_caller]
fn assert_kept_before(all: &[Seen], got: &[Seen], at: u64, what: &str) {
    let before = all.iter().filter(|record| record.to <= at).count();
    assert!(got.len() == before || got.len() == before + 1, "{what} at {at}: {} of {before}", got.len());
    assert_eq!(*got, all[..got.len()], "{what} at {at}");
}

#[test]
fn the_end_of_a_segment_in_use_is_cut_or_zeroed_at_every_byte() {
    let store = Store::new(Signal::SIGKILL, "open");
    let all = &store.records;
    let (from, to) = (all[4].from, all[5].to);
    // The rest of the segment was never written.
    assert!(store.bytes[to as usize..].iter().all(|&byte| byte == 0));
    let whole = &store.bytes[..to as usize + 1_024];
    for at in from..=to {
        let cut = whole[..at as usize].to_vec();
        let mut zeroed = whole.to_vec();
        zeroed[at as usize..].fill(0);
        // What a disk has there that was never written.
        let mut strange = whole.to_vec();
        strange[at as usize..to as usize].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(31) ^ 0x5a);
        for (what, bytes) in [("cut", cut), ("zeroed", zeroed), ("strange", strange)] {
            let data = store.copy("copy", &bytes);
            let (seen, damaged) = read(&data);
            assert_eq!(damaged, [], "{what} at {at}: what was in use may end anywhere");
            assert_kept_before(all, &seen, at, what);
            // Opened, it is sealed where it was whole, and reads the same.
            drop(DataDir::open(&data).unwrap_or_else(|e| panic!("{what} at {at}: {e}")));
            assert_eq!(read(&data), (seen, Vec::new()), "{what} at {at}, opened");
            assert_eq!(segments(&data, "open"), Vec::<PathBuf>::new(), "{what} at {at}: all are sealed");
        }
    }
    // The same by the binary, at a few places of each kind.
    for (index, at) in (from..=to).step_by((to - from) as usize / 5).enumerate() {
        let mut bytes = store.bytes.clone();
        match index % 2 {
            0 => bytes.truncate(at as usize),
            _ => bytes[at as usize..].fill(0),
        }
        let data = store.copy("copy", &bytes);
        let kept = read(&data).0.len();
        let before = records(&data);
        assert_eq!(before.len(), kept);
        let server = LogServer::start(|_| Reply::text("after"));
        crawl(&data, [&*server.url("/"), "--req-host-per-sec", "0"]);
        let after = records(&data);
        assert_eq!((&after[..kept], after.len()), (&before[..], kept + 1), "at {at}");
        assert_eq!(cat(&data, &server.url("/")), b"after");
    }
}

/// Flips bytes of a sealed segment one by one and shows what is read then.
fn each_flip(
    store: &Store,
    places: impl Iterator<Item = u64>,
    mut show: impl FnMut(u64, Vec<Seen>, Vec<(PathBuf, u64)>),
) {
    let file = std::fs::OpenOptions::new().write(true).open(&store.segment).unwrap();
    for at in places {
        let byte = store.bytes[at as usize];
        let flipped = [byte ^ 1, byte ^ 0x80, !byte][at as usize % 3];
        file.write_all_at(&[flipped], at).unwrap();
        let (seen, damaged) = read(&store.data);
        show(at, seen, damaged);
        file.write_all_at(&[byte], at).unwrap();
    }
}

#[test]
fn every_flipped_byte_of_a_sealed_segment_is_noticed_or_harmless() {
    let store = Store::new(Signal::SIGTERM, "seg");
    let all = &store.records;
    let mut harmless = 0;
    each_flip(&store, 0..store.bytes.len() as u64, |at, seen, damaged| {
        if seen == *all && damaged.is_empty() {
            harmless += 1;
            return;
        }
        assert_eq!(damaged.len(), 1, "at {at}: {damaged:?}");
        let (path, place) = &damaged[0];
        assert_eq!(*path, store.segment, "at {at}");
        let hit = all.iter().find(|record| (record.from..record.to).contains(&at));
        assert_eq!(*place, hit.map_or(0, |hit| hit.from), "at {at}: the place of what is damaged");
        // What is read is what was stored, in its order.
        let mut rest = all.iter();
        assert!(seen.iter().all(|seen| rest.any(|record| record == seen)), "at {at}: {seen:?}");
        // And all before it.
        let before = all.iter().filter(|record| record.to <= at).count();
        assert!(at < 4_096 || seen.len() >= before && seen[..before] == all[..before], "at {at}");
        if let Some(hit) = hit {
            assert!(!seen.contains(hit), "at {at}");
        }
    });
    // Only what fills a record up to its alignment means nothing.
    assert!(harmless <= 7 * all.len(), "{harmless} flips were harmless");
}

/// One bad record is one record less: those behind it are read, whichever byte it is.
#[test]
fn records_behind_a_bad_one_are_still_read() {
    let store = Store::new(Signal::SIGTERM, "seg");
    let all = &store.records;
    each_flip(&store, 4_096..store.bytes.len() as u64, |at, seen, damaged| {
        let hit = all.iter().position(|record| (record.from..record.to).contains(&at)).expect("a record");
        let rest: Vec<&Seen> =
            all.iter().filter(|&record| damaged.is_empty() || *record != all[hit]).collect();
        assert_eq!(seen.iter().collect::<Vec<_>>(), rest, "byte {} of record {hit}", at - all[hit].from);
    });
}

#[test]
fn damage_is_said_by_file_and_place_and_nothing_is_mended_away() {
    let store = Store::new(Signal::SIGTERM, "seg");
    let name = store.segment.file_name().unwrap().to_str().unwrap();
    for (at, place) in [
        (100, 0),
        (store.records[0].from, store.records[0].from),
        (store.records[2].from + 30, store.records[2].from),
        (store.records[5].to - 12, store.records[5].from),
    ] {
        let mut bytes = store.bytes.clone();
        bytes[at as usize] ^= 0x10;
        let data = store.copy("copy", &bytes);
        let listed = |data: &Path| {
            let mut command = nephila();
            let run = Running::start(command.args(["store", "ls", "--all", "--json", "--data"]).arg(data))
                .wait(PATIENCE);
            assert_eq!(run.code(), 1, "at {at}: {}", run.stderr);
            let said: Vec<&str> = run.stderr.lines().filter(|line| line.contains(name)).collect();
            let number = format!(" {place}");
            assert!(said.iter().any(|line| line.contains(&number)), "at {at}: {}", run.stderr);
            run.json_lines()
        };
        let before = listed(&data);
        // A crawl works on it all the same, and leaves what it cannot read as it is.
        let server = LogServer::start(|_| Reply::text("after"));
        crawl(&data, [&*server.url("/"), "--req-host-per-sec", "0"]);
        assert_eq!(cat(&data, &server.url("/")), b"after");
        let after = listed(&data);
        assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 1), "at {at}");
        let left = std::fs::read(data.join("segments").join(name)).unwrap();
        assert!(left == bytes, "at {at}: the damaged segment is not touched");
    }
}

/// Whoever wrote a page may have put a record into it, checksums and all. When the record that holds the page is damaged,
/// what is inside it must not be taken for a record of the store.
#[test]
fn a_record_inside_a_page_is_never_taken_for_one_of_the_store() {
    // A record as another store has it in a segment of the same number; its page does not compress.
    let mut chance = Chance::new();
    let random = |chance: &mut Chance, bytes: usize| -> Vec<u8> {
        (0..bytes).map(|_| chance.below(256) as u8).collect()
    };
    let dir = TempDir::in_memory();
    let body = random(&mut chance, 300);
    let forger = LogServer::start(move |_| octets(&body));
    let (forged, _) = one_page_each(&dir, "forger", &[forger.url("/forged")]);
    let record = forged[4_096..].to_vec();

    // Eight pages, in one of which it lies where records may begin.
    let tails: Vec<Vec<u8>> = (0..8).map(|_| random(&mut chance, 200)).collect();
    let shifts = random(&mut chance, 8);
    let server = LogServer::start(move |asked| {
        let shift: usize = asked.target[1..].parse().unwrap_or(0);
        let body = [&shifts[..shift], &record, &tails[shift]].concat();
        octets(&body)
    });
    let urls: Vec<String> = (0..8).map(|shift| server.url(&format!("/{shift}"))).collect();
    let (bytes, segment) = one_page_each(&dir, "victim", &urls);
    let data = dir.join("victim");
    let (all, damaged) = read(&data);
    assert_eq!((all.len(), damaged.len()), (8, 0));
    let aligned = |from: &u64| bytes[*from as usize..].starts_with(b"NREC");
    let inner = (4_096..bytes.len() as u64).step_by(8).filter(aligned).count() - 8;
    assert_eq!(inner, 1, "one of the pages has a record where one may begin");
    for record in &all {
        // The length of a record, the start of its header, and its checksum.
        for at in [record.from, record.from + 4, record.from + 12] {
            let mut damaged = bytes.clone();
            damaged[at as usize] ^= 0x40;
            std::fs::write(&segment, damaged).unwrap();
            let (seen, damaged) = read(&data);
            assert!(!damaged.is_empty(), "at {at}");
            assert!(seen.iter().all(|seen| all.contains(seen)), "at {at}: a page made up a record: {seen:?}");
        }
    }
}

fn octets(body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    Reply::raw([head.as_bytes(), body].concat())
}

/// A store of these pages in their order, each asked for when the one before was stored; the bytes of its segment.
#[track_caller]
fn one_page_each(dir: &TempDir, name: &str, urls: &[String]) -> (Vec<u8>, PathBuf) {
    let data = dir.join(name);
    let config = dir.write("c.toml", format!("{SMALL_SEGMENTS}commit_ms = 1\n"));
    let mut spider = Running::start(spider_command(&[], &data, &config).args(["--cores", "0"]));
    let mut link = crate::link::Link::dial(listens(&mut spider).expect("it starts"));
    for (id, url) in urls.iter().enumerate() {
        link.send(&format!("{id} {id} 127.0.0.1 {url}"));
        assert_eq!(link.word(), format!("{id} DONE"));
    }
    spider.signal(Signal::SIGTERM);
    spider.wait(PATIENCE).done();
    let found = segments(&data, "seg");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("0000000001-000.seg"), "{found:?}");
    (std::fs::read(&found[0]).unwrap(), found[0].clone())
}
