//! What a store has is copied whole, whenever a follower is killed or the other side fails, and whatever maintenance does to
//! the segments meanwhile.

use super::batch::{BATCH_BYTES, BATCH_RECORDS, Batch};
use super::follower::{Follower, FollowerActor, Step};
use super::target::{SendError, Sent, Target};
use super::walk::{Walk, WalkError};
use crate::base::{Now, Rng};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::Counters;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::proto::record::ResultCode;
use crate::store_server::{
    DataDir, Dedup, History, Keeper, Maintenance, Medium, NewRecord, Reader, Retention, RetentionRules,
    ShardStore, StoreRules,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

/// The other side: what it has, by key, and how it behaves.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    documents: BTreeMap<(i64, u64), Vec<u8>>,
    /// How many were in each batch that came whole.
    batches: Vec<usize>,
    /// Of ten batches so many do not come, and so many come without an answer.
    lost_of_ten: u64,
    unanswered_of_ten: u64,
    draws: u64,
    refuses: Option<&'static str>,
}

impl Shelf {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap()
    }
}

impl Target for Shelf {
    fn name(&self) -> &'static str {
        "shelf"
    }

    fn place(&self) -> String {
        "over there".to_string()
    }

    fn send(&mut self, batch: &Batch) -> Result<Sent, SendError> {
        let mut kept = self.kept();
        kept.draws += 1;
        let draw = Rng::new(kept.draws).next_u64() % 10;
        if draw < kept.lost_of_ten {
            return Err(SendError::new("it is away"));
        }
        let mut sent = Sent::default();
        for (at, outgoing) in batch.documents.iter().enumerate() {
            let record = &outgoing.located.record;
            if kept.refuses.is_some_and(|refused| record.url.ends_with(refused)) {
                sent.refused.push((at, "too much".to_string()));
                continue;
            }
            let before = kept
                .documents
                .insert((outgoing.doc_id(), record.fetched_unix_ms), outgoing.document.body.clone());
            assert!(before.is_none_or(|before| before == outgoing.document.body), "the same again");
        }
        kept.batches.push(batch.documents.len());
        match draw < kept.lost_of_ten + kept.unanswered_of_ten {
            true => Err(SendError::new("it did not answer")),
            false => Ok(sent),
        }
    }
}

/// A store that goes away with the test.
struct Store {
    data: PathBuf,
    fetches: u64,
}

const SEGMENT_BYTES: u64 = 1 << 26;

impl Store {
    fn new(name: &str) -> Store {
        let data = std::env::temp_dir().join(format!("nephila-followers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        Store { data, fetches: 0 }
    }

    fn keeping(history: History) -> RetentionRules {
        RetentionRules { history, ..RetentionRules::all(SEGMENT_BYTES) }
    }

    /// Documents by their number, stored in a segment, which is sealed and indexed.
    fn segment(&mut self, documents: &[(u32, Vec<u8>)]) {
        let made: Vec<(u32, &[u8], bool)> =
            documents.iter().map(|(doc_id, body)| (*doc_id, &body[..], true)).collect();
        self.segment_of(&made);
    }

    fn segment_of(&mut self, documents: &[(u32, &[u8], bool)]) {
        let rules = StoreRules { dedup: Dedup::Any, ..StoreRules::of_size(SEGMENT_BYTES) };
        let mut keeper = Keeper::new(Medium::Directory(DataDir::open(&self.data).unwrap()), rules, 1);
        keeper.prepare(0).unwrap();
        let mut store = ShardStore::new(keeper.share(0));
        for (doc_id, body, success) in documents {
            self.fetches += 1;
            let url = format!("http://h/{doc_id}");
            let record = NewRecord {
                doc_id: *doc_id,
                success: *success,
                result: if *success { ResultCode::Ok } else { ResultCode::HttpError },
                fetched_unix_ms: 1_700_000_000_000 + self.fetches,
                ..NewRecord::sample(&url, body)
            };
            store.append(&record).unwrap();
        }
        store.finish();
        keeper.close().unwrap();
        let mut maintenance = Maintenance::new(&self.data, Store::keeping(History::All), keeper.shares());
        maintenance.turn(&keeper.take_sealed()).unwrap();
    }

    fn retention(&self) -> Retention {
        Retention::new(&self.data, Store::keeping(History::Newest), Vec::new())
    }

    fn follower(&self, shelf: &Shelf) -> Follower {
        let walk = Walk::open(&self.data, "shelf", "over there").unwrap();
        Follower::new(walk, Box::new(shelf.clone()))
    }

    /// What is to be copied of it now.
    fn documents(&self) -> BTreeMap<(i64, u64), Vec<u8>> {
        let reader = Reader::open(&self.data).unwrap();
        let mut all = BTreeMap::new();
        let mut found = Vec::new();
        reader
            .each(|located, bytes| {
                if located.record.success {
                    found.push((located, bytes.to_vec()));
                }
            })
            .unwrap();
        for (located, bytes) in found {
            let body = reader.document_of(&located, &bytes).unwrap().expect("it has its document").body;
            all.insert((i64::from(located.record.doc_id), located.record.fetched_unix_ms), body);
        }
        all
    }

    fn cursor(&self) -> Vec<u8> {
        fs::read(self.data.join("content/shelf.cursor")).unwrap()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.data);
    }
}

/// Until all is there, or the other side fails.
fn copy(follower: &mut Follower) -> Result<(), SendError> {
    loop {
        if follower.must_look() {
            follower.look().unwrap();
        }
        if follower.step()? == Step::AllThere && !follower.must_look() {
            return Ok(());
        }
    }
}

fn body(rng: &mut Rng) -> Vec<u8> {
    let letter = b'a' + (rng.next_u64() % 8) as u8;
    vec![letter; 64 + (rng.next_u64() % 4) as usize]
}

fn hold(store: &Store, shelf: &Shelf, why: &str) {
    let kept = shelf.kept();
    for (key, body) in store.documents() {
        assert_eq!(kept.documents.get(&key), Some(&body), "{key:?} {why}");
    }
}

#[test]
fn nothing_is_missing_whatever_fails_and_whatever_maintenance_does() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let (mut store, shelf) = (Store::new(&format!("life-{seed}")), Shelf::default());
        (shelf.kept().lost_of_ten, shelf.kept().unanswered_of_ten) = (2, 2);
        let mut follower = None;
        let mut ever = BTreeMap::new();
        let packs = seed % 2 == 1;
        for round in 0..40 {
            match rng.next_u64() % 8 {
                0..3 => {
                    let count = 1 + rng.next_u64() % 6;
                    let documents: Vec<(u32, Vec<u8>)> =
                        (0..count).map(|_| ((rng.next_u64() % 9) as u32 + 1, body(&mut rng))).collect();
                    store.segment(&documents);
                    ever.extend(store.documents());
                }
                3 if packs => drop(store.retention().repack().unwrap()),
                // A kill: whatever was in memory is gone.
                4 => follower = None,
                5 => store.segment_of(&[(3, b"no", false)]),
                _ => {
                    let follower = follower.get_or_insert_with(|| store.follower(&shelf));
                    let _ = follower.look();
                    let _ = follower.step();
                }
            }
            let known = shelf.kept().documents.len();
            assert!(known <= ever.len(), "round {round} of {seed}");
        }
        drop(follower);
        let mut follower = store.follower(&shelf);
        for _ in 0..1_000 {
            if copy(&mut follower).is_ok() {
                break;
            }
        }
        hold(&store, &shelf, &format!("in {seed}"));
        if !packs {
            assert_eq!(shelf.kept().documents, ever, "all that there ever was, in {seed}");
            assert_eq!(follower.walk().cursor().gone, 0);
        }
        assert_eq!(follower.walk().cursor().waiting(), 0);
        // And once more: there is nothing left to do.
        let before = shelf.kept().batches.len();
        copy(&mut follower).unwrap();
        assert_eq!(shelf.kept().batches.len(), before);
    }
}

#[test]
fn a_batch_is_noted_when_it_is_confirmed_and_not_before() {
    let (mut store, shelf) = (Store::new("confirmed"), Shelf::default());
    let documents: Vec<(u32, Vec<u8>)> = (1..=2_500).map(|doc_id| (doc_id, vec![b'x'; 10])).collect();
    store.segment(&documents);
    let mut follower = store.follower(&shelf);
    follower.look().unwrap();
    let before = store.cursor();
    shelf.kept().unanswered_of_ten = 10;
    assert_eq!(follower.step(), Err(SendError::new("it did not answer")));
    assert_eq!(store.cursor(), before, "nobody has said that it is there");
    drop(follower);
    shelf.kept().unanswered_of_ten = 0;
    let mut follower = store.follower(&shelf);
    follower.look().unwrap();
    assert_eq!(follower.step(), Ok(Step::Copied(1_000)));
    assert_ne!(store.cursor(), before);
    // The next process goes on from there.
    drop(follower);
    copy(&mut store.follower(&shelf)).unwrap();
    assert_eq!(shelf.kept().batches, [BATCH_RECORDS, BATCH_RECORDS, BATCH_RECORDS, 500]);
    hold(&store, &shelf, "at the end");
}

#[test]
fn batches_have_a_bound_in_bytes_and_a_large_document_is_alone() {
    let (mut store, shelf) = (Store::new("bounds"), Shelf::default());
    let noise = |seed: u64, bytes: usize| -> Vec<u8> {
        let mut rng = Rng::new(seed);
        (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
    };
    let half = BATCH_BYTES / 2 + 8;
    store.segment(&[
        (1, noise(1, half)),
        (2, noise(2, half)),
        (3, noise(3, BATCH_BYTES + 8)),
        (4, noise(4, 8)),
    ]);
    copy(&mut store.follower(&shelf)).unwrap();
    assert_eq!(shelf.kept().batches, [1, 1, 1, 1]);
    hold(&store, &shelf, "at the end");
}

#[test]
fn what_is_refused_for_its_own_sake_is_counted_told_and_left_out() {
    let (mut store, shelf) = (Store::new("refused"), Shelf::default());
    store.segment(&[(1, b"one".to_vec()), (2, b"two".to_vec()), (3, b"three".to_vec())]);
    shelf.kept().refuses = Some("/2");
    let mut follower = store.follower(&shelf);
    copy(&mut follower).unwrap();
    let cursor = follower.walk().cursor();
    assert_eq!((cursor.sent, cursor.refused, cursor.waiting()), (2, 1, 0));
    let told = follower.notices();
    assert_eq!((told.len(), told[0].event), (1, Event::ContentRefused));
    assert_eq!(told[0].text, "content: shelf refuses http://h/2: too much");
}

#[test]
fn segments_that_went_before_they_were_copied_are_told_once() {
    let (mut store, shelf) = (Store::new("gone"), Shelf::default());
    for doc_id in 1..=5 {
        store.segment(&[(doc_id, vec![doc_id as u8; 100])]);
    }
    shelf.kept().lost_of_ten = 10;
    let mut follower = store.follower(&shelf);
    assert!(copy(&mut follower).is_err());
    drop(follower);
    store.retention().drop_to(2 * 8_192).unwrap();
    let left = store.documents().len() as u64;
    assert!((1..5).contains(&left), "{left}");
    shelf.kept().lost_of_ten = 0;
    let mut follower = store.follower(&shelf);
    copy(&mut follower).unwrap();
    copy(&mut follower).unwrap();
    let cursor = follower.walk().cursor();
    assert_eq!((cursor.gone, cursor.sent, cursor.waiting()), (5 - left, left, 0));
    let told = follower.notices();
    assert_eq!((told.len(), told[0].event), (1, Event::ContentGone));
    hold(&store, &shelf, "what is left");
}

#[test]
fn one_process_has_a_follower_and_another_place_begins_anew() {
    let (mut store, shelf) = (Store::new("lock"), Shelf::default());
    store.segment(&[(1, b"one".to_vec())]);
    let mut follower = store.follower(&shelf);
    copy(&mut follower).unwrap();
    let second = Walk::open(&store.data, "shelf", "over there");
    assert!(matches!(second, Err(WalkError::Held { .. })));
    // Another follower of the same store is another matter.
    assert!(Walk::open(&store.data, "other", "over there").is_ok());
    drop(follower);
    let opened = |place: &str| {
        let mut walk = Walk::open(&store.data, "shelf", place).unwrap();
        walk.look().unwrap();
        walk.cursor().waiting()
    };
    assert_eq!((opened("over there"), opened("elsewhere")), (0, 1));
    let damaged: &Path = &store.data.join("content/shelf.cursor");
    fs::write(damaged, b"nephila content.cursor 1\n").unwrap();
    let error = Walk::open(&store.data, "shelf", "over there").err().unwrap().to_string();
    assert!(error.contains("is damaged") && error.contains("remove it"), "{error}");
}

#[test]
fn an_actor_backs_off_tells_once_and_ends_with_all_of_it_or_in_haste() {
    let (mut store, shelf, health) = (Store::new("actor"), Shelf::default(), Arc::<Health>::default());
    let at = |ms: u64| Now::ZERO.plus_ms(ms);
    let told = || health.notices.take().notices.into_iter().map(|notice| notice.event).collect::<Vec<_>>();
    let actor = |store: &Store| {
        FollowerActor::new(store.follower(&shelf), health.clone(), Arc::<Counters>::default())
    };
    let mut follower = actor(&store);
    assert_eq!(follower.turn(at(0)), Turned::IDLE, "there is no store yet");
    store.segment(&[(1, b"one".to_vec())]);
    shelf.kept().lost_of_ten = 10;
    assert_eq!(follower.turn(at(1_000)), Turned::IDLE);
    assert_eq!((follower.next_due(), shelf.kept().draws), (Some(at(1_250)), 1));
    follower.turn(at(1_200));
    assert_eq!(shelf.kept().draws, 1, "not before its time");
    follower.turn(at(1_250));
    assert_eq!((shelf.kept().draws, told()), (2, vec![Event::ContentAway]));
    shelf.kept().lost_of_ten = 0;
    assert_eq!(follower.turn(at(1_750)), Turned::Busy);
    assert_eq!((follower.turn(at(1_751)), told()), (Turned::IDLE, vec![Event::ContentBack]));
    // What is sealed last is there, too.
    store.segment(&[(2, b"two".to_vec())]);
    follower.end(at(1_752));
    assert_eq!(follower.turn(at(1_752)), Turned::Busy);
    assert_eq!((follower.turn(at(1_753)), told()), (Turned::Finished, vec![]));
    hold(&store, &shelf, "at the end");
    // Somebody is in haste, or the other side is away: the rest waits.
    drop(follower);
    for in_haste in [false, true] {
        store.segment(&[(3, vec![u8::from(in_haste); 10])]);
        shelf.kept().lost_of_ten = 10;
        health.in_haste.store(in_haste, Ordering::Release);
        let mut follower = actor(&store);
        follower.end(at(0));
        assert_eq!(follower.turn(at(0)), Turned::Finished);
        assert_eq!(told().last(), Some(&Event::ContentBehind));
    }
    shelf.kept().lost_of_ten = 0;
    copy(&mut store.follower(&shelf)).unwrap();
    hold(&store, &shelf, "in the next run");
}
