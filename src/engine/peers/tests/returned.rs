//! What was kept of a node that was gone goes when that is back with it and another has its copy, and not before.

use super::super::copying::Copying;
use super::super::journal_tail::JournalTail;
use super::super::page_folders::PageFolders;
use super::super::pages_out::PagesOut;
use super::super::returned::{Removed, Returned, original};
use super::super::summing::{SumFor, Summing};
use super::super::verifying::Originals;
use super::pages::{Line, Pair, Stage, store};
use crate::base::Now;
use crate::peer::{Table, TableChange};
use crate::proto::peer_wire::{FrameBuffer, PeerWord, Sum, SumOf};
use crate::rings::Doorbell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Node 1 is back, and node 2 has its copy; this is node 3, which kept its pages.
struct Keeper {
    returned: Returned,
    summing: Summing,
    /// Of node 1.
    there: Summing,
    folders: PageFolders,
    pages_out: PagesOut,
    copying: Copying,
    wires: Line,
    asked: u64,
    now: Now,
}

fn summing() -> Summing {
    Summing::at_once(Arc::new(Doorbell::new(|| {})))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("segments")).unwrap();
    for entry in fs::read_dir(from.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join("segments").join(path.file_name().unwrap())).unwrap();
    }
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("segments")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|name| name == "seg" || name == "open"));
    paths.sort();
    paths
}

impl Keeper {
    fn new(stage: &Stage) -> Keeper {
        let folders = PageFolders::new(&stage.node(3));
        Keeper {
            returned: Returned::new(1),
            summing: summing(),
            there: summing(),
            pages_out: PagesOut::new(false, 1, folders.clone()),
            folders,
            copying: Copying::new(false, 1, JournalTail::new(stage.node(3).join("none"))),
            wires: Line::default(),
            asked: 0,
            now: Now::from_us(1_000_000),
        }
    }

    /// A minute passes; node 1 answers by what it has and by what it knows of its copy.
    fn minute(&mut self, stage: &Stage, node: &Pair, table: &Table) -> u64 {
        let mut segments = 0;
        for _ in 0..600 {
            self.now = self.now.plus_us(100_000);
            let Keeper { copying, pages_out, folders, .. } = self;
            let originals = Originals { copying, pages_out, folders };
            let went =
                self.returned.turn(self.now, (table, 3), originals, &mut self.summing, &mut self.wires);
            if let Some(Removed { node, segments: count }) = went.unwrap() {
                assert_eq!(node, 1);
                segments += count;
            }
            while let Some((SumFor::Kept(id), sum)) = self.summing.take() {
                self.returned.summed_here(id, sum);
            }
            for bytes in std::mem::take(&mut self.wires.words) {
                let mut frames = FrameBuffer::default();
                frames.push(&bytes);
                let frame = frames.next_frame().unwrap().unwrap();
                let PeerWord::SumAsk { id, of: SumOf::Original { state } } = frame.word().unwrap() else {
                    panic!("{frame:?}");
                };
                self.asked += 1;
                let job = original(&PageFolders::new(&stage.node(1)), &node.out, state);
                let sum = job.map(|job| {
                    self.there.want(SumFor::Node(3, id), job).unwrap();
                    self.there.take().unwrap().1
                });
                self.returned.summed_there(1, id, sum.unwrap_or(Sum::Missing));
            }
        }
        segments
    }
}

#[test]
fn what_is_on_two_other_disks_goes() {
    let stage = Stage::new("returned");
    for url in ["http://a/1", "http://a/2", "http://a/3"] {
        store(&stage.node(1), &[url], 3_000);
    }
    let kept = stage.node(3).join("copies/1.1.pages");
    copy(&stage.node(1), &kept);
    // The last of them was in use when the node was gone, and only a part of it had come.
    let last = segments(&kept).pop().unwrap();
    let in_use = last.with_extension("open");
    fs::rename(&last, &in_use).unwrap();
    let mut node = Pair::new(&stage);
    let table = TableChange::Join(node.member(3)).apply(&node.table).unwrap();
    let mut keeper = Keeper::new(&stage);
    // Nobody has its copy yet.
    assert_eq!(keeper.minute(&stage, &node, &table), 0);
    assert!(keeper.asked >= 3 && segments(&kept).len() == 3);
    node.finish();
    // It is not there any more, or not linked: it is not asked.
    let asked = keeper.asked;
    let gone = TableChange::Forget(1).apply(&TableChange::Join(node.member(4)).apply(&table).unwrap());
    assert_eq!(keeper.minute(&stage, &node, &gone.unwrap()), 0);
    keeper.wires.is_down = true;
    assert_eq!(keeper.minute(&stage, &node, &table), 0);
    assert_eq!((keeper.asked, segments(&kept).len()), (asked, 3));
    keeper.wires.is_down = false;
    let all: u64 = (0..20).map(|_| keeper.minute(&stage, &node, &table)).sum();
    assert_eq!((all, kept.exists()), (3, false));
    assert_eq!(segments(&stage.node(1)).len(), 3, "its own stay");
}

#[test]
fn what_differs_or_is_nowhere_else_stays() {
    let stage = Stage::new("returned-not");
    for url in ["http://a/1", "http://a/2", "http://a/3"] {
        store(&stage.node(1), &[url], 3_000);
    }
    let kept = stage.node(3).join("copies/1.1.pages");
    copy(&stage.node(1), &kept);
    let [same, other, lost] = &segments(&kept)[..] else { panic!() };
    // One has another byte, and one the node has lost.
    let mut bytes = fs::read(other).unwrap();
    let at = bytes.len() - 50;
    bytes[at] ^= 1;
    fs::write(other, bytes).unwrap();
    fs::remove_file(stage.node(1).join("segments").join(lost.file_name().unwrap())).unwrap();
    let mut node = Pair::new(&stage);
    let table = TableChange::Join(node.member(3)).apply(&node.table).unwrap();
    node.finish();
    let mut keeper = Keeper::new(&stage);
    let all: u64 = (0..20).map(|_| keeper.minute(&stage, &node, &table)).sum();
    assert_eq!(all, 1);
    assert!(!same.exists() && other.exists() && lost.exists());
}
