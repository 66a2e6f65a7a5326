//! The pages of a node on the disk of the next one: all of them, over any link, and where they stay when the node is gone.

use super::super::Sends;
use super::super::page_folders::{PageFolders, stores_of_others};
use super::super::pages_in::PagesIn;
use super::super::pages_out::PagesOut;
use crate::base::{Now, Wall};
use crate::limits::PAGES_UNCOUNTED_BYTES_MAX;
use crate::peer::{NodeState, Table, TableNode};
use crate::proto::partition::Spread;
use crate::proto::peer_wire::{FrameBuffer, PeerWord, StoreName};
use crate::store_server::{DataDir, Keeper, Medium, NewRecord, Reader, ShardStore, StoreRules};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) struct Stage(PathBuf);

impl Stage {
    pub fn new(name: &str) -> Stage {
        let path = std::env::temp_dir().join(format!("nephila-pages-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Stage(path)
    }

    pub fn node(&self, number: u16) -> PathBuf {
        self.0.join(number.to_string())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Stores pages of so many bytes that no compressor makes smaller.
pub(super) fn store(data: &Path, urls: &[&str], bytes: usize) {
    let (mut keeper, mut shard) = store_open(data, urls, bytes);
    shard.finish();
    keeper.close().unwrap();
}

/// The same, and the segment is in use.
fn store_open(data: &Path, urls: &[&str], bytes: usize) -> (Keeper, ShardStore) {
    let rules = StoreRules::of_size(8 << 20);
    let mut keeper = Keeper::new(Medium::Directory(DataDir::open(data).unwrap()), rules, 1);
    // A segment is told from another one by when it was made.
    let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    keeper.prepare(made).unwrap();
    let mut shard = ShardStore::new(keeper.share(0));
    let mut rng = crate::base::Rng::new(7);
    for url in urls {
        let body: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        shard.append(&NewRecord::sample(url, &body)).unwrap();
        keeper.turn(made).unwrap();
    }
    (keeper, shard)
}

/// What was said, as it was said.
#[derive(Default)]
pub(super) struct Line {
    pub words: Vec<Vec<u8>>,
    bytes: u64,
    pub is_down: bool,
}

impl Sends for Line {
    fn send(&mut self, _: u16, word: &PeerWord<'_>) {
        let mut bytes = Vec::new();
        word.write(&mut bytes);
        self.bytes += bytes.len() as u64;
        self.words.push(bytes);
    }

    fn is_linked(&self, _: u16) -> bool {
        !self.is_down
    }

    fn has_room(&self, _: u16) -> bool {
        true
    }
}

/// Node 1, whose pages go to node 2.
pub(super) struct Pair {
    pub out: PagesOut,
    into: PagesIn,
    pub table: Arc<Table>,
    to: Line,
    back: Line,
    now: Now,
    upto_s: u32,
}

impl Pair {
    pub fn new(stage: &Stage) -> Pair {
        let node = |number: u16| TableNode {
            number,
            id: u64::from(number),
            generation: 1,
            address: format!("192.0.2.{number}:7174"),
            weight: 1,
            state: NodeState::Member,
        };
        Pair {
            out: PagesOut::new(true, 1, PageFolders::new(&stage.node(1))),
            into: PagesIn::new(PageFolders::new(&stage.node(2)), 0),
            table: Arc::new(Table::first(vec![node(1), node(2)], vec![1], Spread::Domain, 9).unwrap()),
            to: Line::default(),
            back: Line::default(),
            now: Now::from_us(1_000_000),
            upto_s: 0,
        }
    }

    /// Another node, to be in the table.
    pub fn member(&self, number: u16) -> TableNode {
        let address = format!("192.0.2.{number}:7174");
        TableNode { number, id: u64::from(number), address, ..self.table.nodes()[0].clone() }
    }

    /// What node 1 says comes to node 2, and the other way; a moment passes.
    fn go_on(&mut self) {
        self.now = self.now.plus_us(250_000);
        self.send();
        let said = std::mem::take(&mut self.to.words);
        said.iter().for_each(|bytes| self.hear(bytes));
        self.into.turn(self.now, &mut self.back).unwrap();
        let said = std::mem::take(&mut self.back.words);
        said.iter().for_each(|bytes| self.hear(bytes));
    }

    fn send(&mut self) {
        let wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };
        self.out.turn(self.now, (&self.table, 1), wall, &mut self.to).unwrap();
    }

    fn hear(&mut self, bytes: &[u8]) {
        let mut frames = FrameBuffer::default();
        frames.push(bytes);
        match frames.next_frame().unwrap().unwrap().word().unwrap() {
            PeerWord::PagesAsk { id, stores } => self.into.asked(1, id, &stores).unwrap(),
            PeerWord::Pages { id, store, piece } => self.into.take(1, id, store, &piece).unwrap(),
            PeerWord::PagesGone { id, store, segments } => self.into.gone(1, id, store, &segments).unwrap(),
            PeerWord::PagesUpto { unix_s, .. } => self.upto_s = unix_s,
            PeerWord::PagesHeld { id, is_all, is_refused, held } => {
                self.out.held(2, id, (is_all, is_refused), &held);
            }
            word => panic!("{word:?}"),
        }
    }

    pub fn finish(&mut self) {
        let begun_at = self.now.plus_us(1);
        let is_safe = (0..1_000).any(|_| {
            self.go_on();
            self.out.is_safe_since(begun_at)
        });
        assert!(is_safe, "it does not come to an end");
    }

    fn link_is_down(&mut self) {
        self.out.down(2);
        (self.to.words, self.back.words) = (Vec::new(), Vec::new());
    }
}

fn has(folder: &Path, url: &str) -> bool {
    Reader::open(folder).unwrap().find(url).unwrap().is_some_and(|(_, document)| document.is_some())
}

#[test]
fn a_copy_goes_on_where_it_was_over_another_link_and_by_another_process() {
    let stage = Stage::new("goes-on");
    store(&stage.node(1), &["http://a/1", "http://a/2", "http://a/3"], 1 << 20);
    let copy = stage.node(2).join("copies/1");
    let mut pair = Pair::new(&stage);
    // Asked, told, looked at: some of it is on its way.
    (0..3).for_each(|_| pair.go_on());
    pair.link_is_down();
    let before = pair.to.bytes;
    assert!(before > 1 << 20, "{before} bytes");
    pair.finish();
    assert!(pair.to.bytes < 4 << 20, "{} bytes, {before} of them before", pair.to.bytes);
    assert!(["http://a/1", "http://a/2", "http://a/3"].iter().all(|url| has(&copy, url)));
    let all = pair.to.bytes;
    // Nothing is sent again by other processes, and what is new is.
    store(&stage.node(1), &["http://a/4"], 1 << 10);
    let mut pair = Pair::new(&stage);
    pair.finish();
    assert!(pair.to.bytes < 16 << 10, "{} of {all} bytes", pair.to.bytes);
    assert!(has(&copy, "http://a/4"));
    assert!(pair.out.bytes() > 3 << 20 && pair.out.behind().was_whole);
    // What the store lets go, its copy does.
    let first = fs::read_dir(stage.node(1).join("segments")).unwrap();
    let mut first: Vec<PathBuf> = first.map(|entry| entry.unwrap().path()).collect();
    first.sort();
    fs::remove_file(&first[0]).unwrap();
    pair.finish();
    pair.finish();
    assert!(!has(&copy, "http://a/1") && has(&copy, "http://a/4"));
    assert!(pair.upto_s >= 1_800_000_001, "{}", pair.upto_s);
}

#[test]
fn a_number_that_is_used_again_is_of_another_segment() {
    let stage = Stage::new("again");
    store(&stage.node(1), &["http://a/old"], 1 << 10);
    let copy = stage.node(2).join("copies/1");
    let mut pair = Pair::new(&stage);
    pair.finish();
    // Everything is dropped, and the first segment is the first once more.
    fs::remove_dir_all(stage.node(1).join("segments")).unwrap();
    let in_use = store_open(&stage.node(1), &["http://a/new"], 1 << 10);
    pair.finish();
    assert!(has(&copy, "http://a/new") && !has(&copy, "http://a/old"));
    drop(in_use);
}

#[test]
fn a_copy_outlasts_damage_of_what_it_is_a_copy_of() {
    let stage = Stage::new("damage");
    store(&stage.node(1), &["http://a/1"], 1 << 10);
    store(&stage.node(1), &["http://a/2"], 1 << 10);
    let copy = stage.node(2).join("copies/1");
    Pair::new(&stage).finish();
    // Its first page cannot be read, so that it is not known which segment it is; it is there all the same.
    let first = stage.node(1).join("segments/0000000001-000.seg");
    let mut bytes = fs::read(&first).unwrap();
    bytes[0] ^= 1;
    fs::write(&first, bytes).unwrap();
    // And the copy of another has lost its end.
    let second = copy.join("segments/0000000002-000.seg");
    let whole = fs::metadata(&second).unwrap().len();
    File::options().write(true).open(&second).unwrap().set_len(whole - 8).unwrap();
    store(&stage.node(1), &["http://a/3"], 1 << 10);
    let mut pair = Pair::new(&stage);
    pair.finish();
    pair.finish();
    assert!(["http://a/1", "http://a/2", "http://a/3"].iter().all(|url| has(&copy, url)));
    assert_eq!(fs::metadata(&second).unwrap().len(), whole);
}

#[test]
fn no_more_is_on_its_way_than_may_be() {
    let stage = Stage::new("bounds");
    let urls: Vec<String> = (0..24).map(|number| format!("http://a/{number}")).collect();
    store(&stage.node(1), &urls.iter().map(String::as_str).collect::<Vec<_>>(), 1 << 20);
    let mut pair = Pair::new(&stage);
    // Asked and told. Nothing is counted from now on.
    pair.go_on();
    for _ in 0..10 {
        pair.now = pair.now.plus_us(1_000_000);
        pair.send();
    }
    let bytes = pair.to.bytes;
    assert!((PAGES_UNCOUNTED_BYTES_MAX..PAGES_UNCOUNTED_BYTES_MAX + (1 << 20)).contains(&bytes), "{bytes}");
    assert!(!pair.out.is_safe_since(Now::ZERO));
    pair.link_is_down();
    pair.finish();
    assert!(urls.iter().all(|url| has(&stage.node(2).join("copies/1"), url)));
}

#[test]
fn pages_of_nodes_that_are_gone_are_kept_and_copied_on() {
    let stage = Stage::new("kept");
    store(&stage.node(1), &["http://a/own"], 100);
    // Node 1 has the pages of node 7, which is gone.
    store(&stage.node(1).join("copies/7.2.pages"), &["http://g/gone"], 100);
    let mut pair = Pair::new(&stage);
    pair.finish();
    let copies = stage.node(2).join("copies");
    assert!(has(&copies.join("1"), "http://a/own") && has(&copies.join("1/7.2"), "http://g/gone"));
    // Another one goes: it is copied as soon as it is there.
    store(&stage.node(1).join("copies/7.3.pages"), &["http://g/later"], 100);
    pair.finish();
    pair.finish();
    assert!(has(&copies.join("1/7.3"), "http://g/later"));
    // Of a store whose segments go, the follower hears before it is gone itself.
    let third = stage.node(1).join("copies/7.4.pages");
    store(&third, &["http://g/back"], 100);
    pair.finish();
    pair.finish();
    let name = StoreName { node: 7, count: 4 };
    assert!(has(&copies.join("1/7.4"), "http://g/back") && pair.out.may_hold(name));
    for entry in fs::read_dir(third.join("segments")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(pair.out.may_hold(name), "it was not told yet");
    pair.finish();
    pair.finish();
    assert!(!pair.out.may_hold(name) && !has(&copies.join("1/7.4"), "http://g/back"));
    PageFolders::new(&stage.node(1)).remove(name).unwrap();
    pair.finish();
    // Now node 1 is gone. Whoever keeps its pages may be killed at any time, and does it again.
    fs::write(copies.join("1/known"), "").unwrap();
    let (taken, folders) = (copies.join("1.1.taken"), PageFolders::new(&stage.node(2)));
    fs::rename(copies.join("1"), &taken).unwrap();
    folders.keep(&taken, 1).unwrap();
    assert!(!taken.exists());
    let mut names: Vec<String> = fs::read_dir(&copies)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["1.1.pages", "7.1.pages", "7.2.pages"]);
    assert!(!copies.join("1.1.pages/known").exists());
    let found = stores_of_others(&stage.node(2));
    for url in ["http://a/own", "http://g/gone", "http://g/later"] {
        assert_eq!(found.iter().filter(|folder| has(folder, url)).count(), 1, "{url} in {found:?}");
    }
    assert_eq!(folders.stores().unwrap().len(), 4, "its own, and these");
}

#[test]
fn pages_of_a_node_that_is_about_to_leave_are_copied_on_before_it_does() {
    let stage = Stage::new("leaving");
    store(&stage.node(1), &["http://a/own"], 100);
    // Node 1 has the copy of node 3, which itself has pages of node 7, as it has; and that of node 4, which stays.
    store(&stage.node(1).join("copies/3"), &["http://c/drained"], 1 << 20);
    store(&stage.node(1).join("copies/3/7.1"), &["http://g/gone"], 100);
    store(&stage.node(1).join("copies/7.1.pages"), &["http://g/other"], 100);
    store(&stage.node(1).join("copies/4"), &["http://d/stays"], 100);
    let mut pair = Pair::new(&stage);
    let nodes = |state| {
        let node = |number, state| TableNode { state, ..pair.member(number) };
        let member = |number| node(number, NodeState::Member);
        // The next one on the ring after node 1 is node 2: whoever is not a member follows nobody.
        vec![member(1), member(2), node(3, state), node(4, NodeState::Draining)]
    };
    let table = |state| Arc::new(Table::first(nodes(state), vec![4], Spread::Domain, 9).unwrap());
    let (draining, left) = (table(NodeState::Draining), table(NodeState::Left));
    pair.table = draining;
    pair.finish();
    let copy = stage.node(2).join("copies/1");
    assert!(has(&copy.join("3.1"), "http://c/drained") && has(&copy.join("7.2"), "http://g/gone"));
    assert!(has(&copy.join("7.1"), "http://g/other") && !copy.join("4.1").exists(), "a voter stays");
    // It has left. What is kept of it has the names that the copy has, and nothing is sent again.
    let before = pair.to.bytes;
    let copies = stage.node(1).join("copies");
    fs::rename(copies.join("3"), copies.join("3.1.taken")).unwrap();
    pair.table = left;
    pair.finish();
    PageFolders::new(&stage.node(1)).keep(&copies.join("3.1.taken"), 3).unwrap();
    pair.finish();
    pair.finish();
    assert!(
        has(&copies.join("3.1.pages"), "http://c/drained") && has(&copies.join("7.2.pages"), "http://g/gone")
    );
    assert!(has(&copy.join("3.1"), "http://c/drained") && has(&copy.join("7.2"), "http://g/gone"));
    let again = pair.to.bytes - before;
    assert!(again < 64 << 10, "{again} bytes");
}

#[test]
fn a_disk_that_refuses_is_left_alone_for_a_while() {
    let stage = Stage::new("refuses");
    store(&stage.node(1), &["http://a/1"], 100);
    let mut pair = Pair::new(&stage);
    // There is a file where the folder of the copy is to be.
    fs::create_dir_all(stage.node(2).join("copies")).unwrap();
    fs::write(stage.node(2).join("copies/1"), "").unwrap();
    let asked = |pair: &mut Pair| {
        pair.now = pair.now.plus_us(250_000);
        pair.send();
        let said = std::mem::take(&mut pair.to.words);
        for bytes in &said {
            let mut frames = FrameBuffer::default();
            frames.push(bytes);
            let Ok(PeerWord::PagesAsk { id, stores }) = frames.next_frame().unwrap().unwrap().word() else {
                panic!("nothing else is said")
            };
            assert!(pair.into.asked(1, id, &stores).is_err());
        }
        let _ = pair.into.turn(pair.now, &mut pair.back);
        let told = std::mem::take(&mut pair.back.words);
        told.iter().for_each(|bytes| pair.hear(bytes));
        said.len()
    };
    let times: usize = (0..400).map(|_| asked(&mut pair)).sum();
    assert!((3..8).contains(&times), "asked {times} times within 100 s");
    assert!(!pair.out.is_safe_since(Now::ZERO));
    fs::remove_file(stage.node(2).join("copies/1")).unwrap();
    pair.finish();
    assert!(has(&stage.node(2).join("copies/1"), "http://a/1"));
}
