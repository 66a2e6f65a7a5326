//! An epoch against a model of it, and against itself with little memory and many workers.

use super::*;
use crate::base::{OneWorker, Rng, Workers};
use crate::master::{EpochCounts, InputFile};
use crate::proto::reflog::Stamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const T: u32 = 1_800_000_000;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-epoch-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Threads, as the product has them.
struct Threads(usize);

impl Workers for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn each(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| (0..self.0).for_each(|number| drop(scope.spawn(move || work(number)))));
    }
}

/// What is sent, as lines, the next current_log in bytes, rejects and counts.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    sent: Vec<String>,
    current: Vec<u8>,
    rejects: String,
    counts: EpochCounts,
}

struct Run<'a> {
    folder: &'a Folder,
    rules: JoinRules,
    workers: usize,
    key: u64,
}

impl<'a> Run<'a> {
    fn new(folder: &'a Folder) -> Run<'a> {
        Run { folder, rules: JoinRules::default(), workers: 1, key: 7 }
    }

    fn joined(
        &self,
        inputs: &[&Path],
        held: Option<&Path>,
        now_s: u32,
        current: Option<&Path>,
    ) -> (Joined, String) {
        let inputs: Vec<InputFile> = inputs.iter().map(InputFile::new).collect();
        let current = current.map(|path| CurrentLog::open(path).unwrap());
        let mut rejects = Vec::new();
        let joined = join(JoinJob {
            inputs: &inputs,
            held,
            now_s,
            horizon_s: now_s,
            current: current.as_ref(),
            rules: self.rules,
            key: &IdKey::from_seed(self.key),
            canon: &AsWritten,
            workers: &Threads(self.workers),
            work: &self.folder.0,
            rejects: &mut rejects,
        });
        (joined.unwrap(), String::from_utf8(rejects).unwrap())
    }

    fn make(&self, inputs: &[&Path], now_s: u32, current: Option<&Path>, next: &Path) -> Made {
        let (joined, rejects) = self.joined(inputs, None, now_s, current);
        let (sent, counts) = (lines(&joined), joined.counts());
        joined.write_current(next).unwrap();
        Made { sent, current: std::fs::read(next).unwrap(), rejects, counts }
    }
}

fn lines(joined: &Joined) -> Vec<String> {
    let mut all = Vec::new();
    joined
        .for_each_sent(|row| {
            let mut line = Vec::new();
            row.record.write(&mut line);
            all.push(format!(
                "{} {} {}",
                row.domain,
                row.sent_before_s,
                String::from_utf8(line).unwrap().trim_end()
            ));
            Ok(())
        })
        .unwrap();
    all
}

fn line(url: &str, at_s: u32, hits: u64, tag: &str) -> String {
    let digits = String::from_utf8(Stamp::from_s(at_s).digits().to_vec()).unwrap();
    format!("17\t5\t{digits}\t2310\t{url}\t{hits}\t{tag}\n")
}

/// A row of the model: sent, seen, hits, tag.
type ModelRow = (u32, u32, u64, String);

/// URL, time, hits, tag.
type ModelLine = (String, u32, u64, String);
/// The last time, hits, and tags by time.
type ModelGroup<'a> = (u32, u64, Vec<(u32, &'a str)>);

/// The rules again, in the plainest way: URLs in a map, line by line.
fn model(
    current: &mut BTreeMap<String, ModelRow>,
    file: &[ModelLine],
    now_s: u32,
) -> BTreeMap<String, (u32, u64, String)> {
    let mut incoming: BTreeMap<&str, ModelGroup<'_>> = BTreeMap::new();
    for (url, at_s, hits, tag) in file {
        let at_s = if *at_s > now_s + 60 { now_s } else { *at_s };
        let group = incoming.entry(url).or_default();
        group.0 = group.0.max(at_s);
        group.1 += hits;
        if !tag.is_empty() {
            group.2.push((at_s, tag));
        }
    }
    let (mut sent, mut next) = (BTreeMap::new(), BTreeMap::new());
    for (url, (at_s, hits, mut tags)) in incoming {
        // Stable: of one time the later line counts.
        tags.sort_by_key(|(at_s, _)| *at_s);
        let tag = tags.last().map_or("", |(_, tag)| tag).to_string();
        let before = current.remove(url);
        let row = match before {
            Some((sent_s, seen_s, waiting, old))
                if i64::from(at_s) - i64::from(sent_s) <= 3_600
                    && (tag.is_empty() || old.is_empty() || tag == old) =>
            {
                let tag = if old.is_empty() { tag } else { old };
                (sent_s, seen_s.max(at_s), waiting + hits, tag)
            }
            before => {
                let (waiting, old) = before.map_or((0, String::new()), |row| (row.2, row.3));
                let tag = if tag.is_empty() { old } else { tag };
                sent.insert(url.to_string(), (at_s, hits + waiting, tag.clone()));
                (at_s, at_s, 0, tag)
            }
        };
        next.insert(url.to_string(), row);
    }
    for (url, row) in std::mem::take(current) {
        let age = |time_s: u32| i64::from(now_s) - i64::from(time_s);
        if if row.2 == 0 { age(row.0) <= 3_600 } else { age(row.1) <= 36_000 } {
            next.insert(url, row);
        }
    }
    *current = next;
    sent
}

/// Epochs of some files: lines, and how long after the one before.
fn epochs() -> impl Strategy<Value = Vec<(Vec<ModelLine>, u32)>> {
    let gap = prop_oneof![0..30u32, 3_590..3_612u32, 35_990..36_012u32, 0..9_000u32];
    // Times before the epoch's, on its edges, and ahead of it.
    let late = prop_oneof![Just(0i64), 0..40i64, 3_590..3_612i64, -70..0i64, 30_000..40_000i64];
    let tag = prop_oneof![Just(""), Just("0"), Just("1"), Just("a longer one")];
    let one = (0..12u8, late, 0..5u64, tag);
    let file = prop::collection::vec(one, 0..25);
    prop::collection::vec((file, gap), 1..6).prop_map(|epochs| {
        let mut now_s = T;
        let mut made = Vec::new();
        for (file, gap) in epochs {
            now_s += gap;
            let line = |(url, late, hits, tag): (u8, i64, u64, &str)| {
                let at_s = (i64::from(now_s) - late) as u32;
                (format!("http://www.a{}.ru/{url}", url % 3), at_s, hits, tag.to_string())
            };
            made.push((file.into_iter().map(line).collect(), now_s));
        }
        made
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn epochs_are_those_of_the_model(epochs in epochs(), workers in 1..3usize) {
        let folder = Folder::new();
        let run = Run { workers, ..Run::new(&folder) };
        let (mut known, mut before) = (BTreeMap::new(), None);
        let mut waiting = 0;
        for (number, (file, now_s)) in epochs.iter().enumerate() {
            let path = folder.join(&format!("{number}.reflog"));
            let text: String = file.iter().map(|(url, at_s, hits, tag)| line(url, *at_s, *hits, tag)).collect();
            std::fs::write(&path, text).unwrap();
            let next = folder.join(&format!("current.{number}"));
            let (joined, _) = run.joined(&[&path], None, *now_s, before.as_deref());
            let counts = joined.counts();
            prop_assert!(counts.add_up() && counts.hits_before == waiting, "{:?}", counts);
            waiting = counts.hits_waiting;
            let mut sent = BTreeMap::new();
            joined.for_each_sent(|row| {
                assert_eq!(row.domain, &std::str::from_utf8(row.record.url).unwrap()[11..16]);
                let tag = String::from_utf8(row.record.tag.to_vec()).unwrap();
                let url = String::from_utf8(row.record.url.to_vec()).unwrap();
                sent.insert(url, (row.record.at.s(), u64::from(row.record.hits), tag));
                Ok(())
            }).unwrap();
            let mut expected = model(&mut known, file, *now_s);
            // A row has no room for a long tag: where only an earlier epoch said it, it does not go out.
            for (url, (_, _, tag)) in &mut expected {
                let said = file.iter().any(|(other, _, _, said)| other == url && said == tag);
                if tag.len() > 7 && !said {
                    tag.clear();
                }
            }
            prop_assert_eq!(&sent, &expected, "epoch {}", number);
            joined.write_current(&next).unwrap();
            let log = CurrentLog::open(&next).unwrap();
            let key = IdKey::from_seed(run.key);
            prop_assert_eq!(log.rows(), known.len() as u64);
            for (url, (sent_s, seen_s, hits, tag)) in &known {
                let row = log.find(key.id(url.as_bytes())).unwrap();
                let tag = TagMark::of(tag.as_bytes());
                let id = key.id(url.as_bytes());
                prop_assert_eq!(row, Some(CurrentRow { id, sent_s: *sent_s, seen_s: *seen_s, hits: *hits as u32, tag }));
            }
            before = Some(next);
        }
    }
}

/// Lines over some URLs, with ties, broken records and rejects among them.
fn rough_file(seed: u64, lines: u64, urls: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::new();
    for number in 0..lines {
        let (url, chance) = (rng.below(urls), rng.next_u64());
        let at_s = T - rng.below(50) as u32;
        let batch = number % 1_000;
        let digits = String::from_utf8(Stamp::from_s(at_s).digits().to_vec()).unwrap();
        let tag = ["", "0", "1", "22"][(chance % 4) as usize];
        let cut = if (chance / 4).is_multiple_of(5) { "\n" } else { "" };
        let scheme = match chance / 32 % 40 {
            0 => "ftp",
            1 => "HTTP",
            _ => "http",
        };
        let page = 1_000 + chance % 100;
        text += &format!("{batch}\t5\t{digits}\t{page}\t{cut}{scheme}://a{}.ru/{url}\t2\t{tag}\n", url % 7);
        if (chance / 2_000).is_multiple_of(30) {
            text += "something unknown\n";
        }
    }
    text
}

#[test]
fn memory_and_workers_change_no_byte() {
    let folder = Folder::new();
    let paths = [folder.join("1.reflog"), folder.join("2.reflog")];
    std::fs::write(&paths[0], rough_file(1, 100_000, 9_000)).unwrap();
    std::fs::write(&paths[1], rough_file(2, 20_000, 90_000)).unwrap();
    let before = folder.join("before");
    let first = Run::new(&folder).make(&[&paths[1]], T + 5, None, &before);
    assert!(first.counts.sent > 15_000 && first.counts.rejected > 300 && first.counts.add_up());
    let both: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let made = Run::new(&folder).make(&both, T + 9, Some(&before), &folder.join("one"));
    assert!(
        made.counts.sent > 5_000 && made.counts.hits_waiting > 10_000 && made.counts.add_up(),
        "{:?}",
        made.counts
    );
    assert_eq!(made.rejects.lines().count() as u64, made.counts.rejected);
    for (memory_bytes, workers) in [(1 << 12, 1), (1 << 12, 3), (1 << 30, 2), (1 << 30, 7)] {
        let rules = JoinRules { memory_bytes, ..JoinRules::default() };
        let run = Run { rules, workers, ..Run::new(&folder) };
        let other = run.make(&both, T + 9, Some(&before), &folder.join("other"));
        assert!(
            other == made,
            "{memory_bytes} bytes, {workers} workers: {:?} {:?}",
            other.counts,
            made.counts
        );
    }
}

#[test]
fn one_url_many_times_and_many_in_one_partition_are_as_any_others() {
    let folder = Folder::new();
    let path = folder.join("skew.reflog");
    let mut text = String::new();
    for number in 0..200_000u32 {
        text += &line("http://a.ru/one", T - number % 9, 1, if number == 77 { "x" } else { "" });
    }
    // URLs of one partition, found by trying.
    let key = IdKey::from_seed(7);
    let urls =
        (0..).map(|number| format!("http://b.ru/{number}")).filter(|url| key.id(url.as_bytes()) >> 56 == 3);
    urls.take(3_000).for_each(|url| text += &line(&url, T, 1, ""));
    std::fs::write(&path, &text).unwrap();
    let made = Run::new(&folder).make(&[&path], T, None, &folder.join("one"));
    assert_eq!((made.counts.urls, made.counts.hits_sent), (3_001, 203_000));
    assert!(made.sent.iter().any(|line| line.ends_with("http://a.ru/one\t200000\tx")));
    for workers in [1, 2] {
        let rules = JoinRules { memory_bytes: 1 << 12, ..JoinRules::default() };
        let run = Run { rules, workers, ..Run::new(&folder) };
        assert!(run.make(&[&path], T, None, &folder.join("other")) == made, "{workers} workers");
    }
}

#[test]
fn what_cannot_be_sent_is_as_if_it_had_not_come() {
    let folder = Folder::new();
    let run = Run::new(&folder);
    let (first, second) = (folder.join("1.reflog"), folder.join("2.reflog"));
    std::fs::write(&first, line("http://a.ru/", T, 5, "1") + &line("http://b.ru/", T, 1, "")).unwrap();
    let made = run.make(&[&first], T, None, &folder.join("current.1"));
    assert_eq!(made.sent.len(), 2);
    // Another tag, a new URL, and one more hit for what waits.
    let lines = [("http://a.ru/", 7, "2"), ("http://c.ru/", 3, ""), ("http://b.ru/", 4, "")];
    let text: String = lines.iter().map(|(url, hits, tag)| line(url, T + 60, *hits, tag)).collect();
    std::fs::write(&second, text).unwrap();
    let (mut joined, _) = run.joined(&[&second], None, T + 60, Some(&folder.join("current.1")));
    let (mut held, mut places) = (Vec::new(), Vec::new());
    joined
        .for_each_sent(|row| {
            row.record.write(&mut held);
            places.push((row.at, row.sent_before_s));
            Ok(())
        })
        .unwrap();
    places.sort_by_key(|(_, sent_before_s)| *sent_before_s);
    assert_eq!(places.iter().map(|(_, before)| *before).collect::<Vec<_>>(), [0, T]);
    let mut unsent = RowSet::default();
    places.iter().for_each(|(place, _)| unsent.add(*place));
    joined.unsend(unsent);
    joined.write_current(&folder.join("current.2")).unwrap();
    let log = CurrentLog::open(&folder.join("current.2")).unwrap();
    let row = |url: &str| log.find(IdKey::from_seed(7).id(url.as_bytes())).unwrap().unwrap();
    let (a, b, c) = (row("http://a.ru/"), row("http://b.ru/"), row("http://c.ru/"));
    assert_eq!((a.sent_s, a.hits, a.tag), (T, 0, TagMark::of(b"1")));
    assert_eq!((c.sent_s, c.hits, c.tag), (0, 0, TagMark::NONE));
    assert_eq!((b.sent_s, b.seen_s, b.hits), (T, T + 60, 4));
    // The lines come again, and are sent as they would have been.
    let held_path = folder.join("held");
    std::fs::write(&held_path, &held).unwrap();
    std::fs::write(&second, "").unwrap();
    let (joined, _) = run.joined(&[&second], Some(&held_path), T + 90, Some(&folder.join("current.2")));
    let counts = joined.counts();
    assert!(counts.add_up(), "{counts:?}");
    assert_eq!((counts.sent, counts.hits_in, counts.hits_before, counts.hits_sent), (2, 0, 14, 10));
}

#[test]
fn rejects_name_file_line_and_reason_and_their_hits_are_counted() {
    let folder = Folder::new();
    let path = folder.join("bad.reflog");
    let text = line("http://a.ru/", T, 1, "")
        + &line("ftp://a.ru/", T, 20, "")
        + &line("http://u:p@a.ru/", T, 300, "")
        + &line("http://[bad", T, 4_000, "")
        + "17\t5\t20111327200841\t2310\thttp://a.ru/\t50000\t\n";
    std::fs::write(&path, text).unwrap();
    let (joined, rejects) = Run::new(&folder).joined(&[&path], None, T, None);
    let name = path.display();
    let lines: Vec<&str> = rejects.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], format!("{name}\t2\turl_scheme\t20\tftp://a.ru/"));
    assert_eq!(lines[1], format!("{name}\t3\turl_credentials\t300\thttp://u:p@a.ru/"));
    assert_eq!(lines[2], format!("{name}\t4\turl_syntax\t4000\thttp://[bad"));
    assert!(lines[3].starts_with(&format!("{name}\t5\ttime\t50000\t17\\u{{9}}5")), "{}", lines[3]);
    let counts = joined.counts();
    assert_eq!((counts.hits_in, counts.hits_rejected, counts.hits_sent), (54_321, 54_320, 1));
    assert!(counts.add_up() && counts.lines == 5 && counts.records == 4, "{counts:?}");
}

#[test]
fn a_host_longer_than_names_can_be_is_a_reject() {
    let folder = Folder::new();
    let path = folder.join("long.reflog");
    let label = "a".repeat(60);
    let host =
        |bytes: usize| format!("{}.{}", "b".repeat(bytes - 4 * 61 - 3), [&label[..]; 4].join(".") + ".ru");
    let urls: Vec<String> = [253, 254, 256, 600]
        .into_iter()
        .flat_map(|bytes| {
            [format!("http://{}/", host(bytes)), format!("http://{}:81/?x", host(bytes).to_uppercase())]
        })
        .collect();
    std::fs::write(&path, urls.iter().map(|url| line(url, T, 1, "")).collect::<String>()).unwrap();
    let (joined, rejects) = Run::new(&folder).joined(&[&path], None, T, None);
    assert_eq!((joined.counts().sent, joined.counts().rejected), (2, 6), "{rejects}");
    assert!(rejects.lines().all(|line| line.split('\t').nth(2) == Some("host_too_long")), "{rejects}");
}

#[test]
fn hits_that_no_line_has_room_for_are_counted_as_capped() {
    let folder = Folder::new();
    let path = folder.join("many.reflog");
    let text = line("http://a.ru/", T, 1, "").replace("\t1\t", "\t5000000000\t")
        + &line("ftp://a.ru/", T, 1, "").replace("\t1\t", "\t4294967299\t")
        + "17\t5\t20111327200841\t2310\thttp://a.ru/\t4294967300\t\n"
        + &line("http://b.ru/", T, 1, "").replace("\t1\t", "\t18446744073709551616\t");
    std::fs::write(&path, text).unwrap();
    let (joined, _) = Run::new(&folder).joined(&[&path], None, T, None);
    let (counts, most) = (joined.counts(), u64::from(u32::MAX));
    assert_eq!(counts.hits_in, 5_000_000_000 + (most + 4) + (most + 5) + 1_000_000_000_000);
    assert_eq!((counts.hits_sent, counts.hits_rejected), (2 * most, 2 * most));
    assert_eq!(counts.hits_capped, counts.hits_in - 4 * most);
    assert!(counts.add_up(), "{counts:?}");
}

#[test]
fn a_current_log_of_another_key_is_refused() {
    let folder = Folder::new();
    let path = folder.join("1.reflog");
    std::fs::write(&path, line("http://a.ru/", T, 1, "")).unwrap();
    Run::new(&folder).make(&[&path], T, None, &folder.join("current"));
    let current = CurrentLog::open(&folder.join("current")).unwrap();
    let refused = join(JoinJob {
        inputs: &[],
        held: None,
        now_s: T,
        horizon_s: T,
        current: Some(&current),
        rules: JoinRules::default(),
        key: &IdKey::from_seed(8),
        canon: &AsWritten,
        workers: &OneWorker,
        work: &folder.0,
        rejects: &mut Vec::new(),
    });
    assert!(refused.err().unwrap().to_string().contains("another id.key"));
}
