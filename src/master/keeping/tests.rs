use super::super::epoch::{AsWritten, JoinRules};
use super::super::map::Server;
use super::super::queue::{Entry, QueueLimits};
use super::super::{By, Fault, MapRow, MemoryTable, PartnerDomain, ServerId};
use super::*;
use crate::base::OneWorker;
use crate::proto::reflog::Stamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const NOON: u32 = 1_311_768_000;

struct Bench {
    folder: PathBuf,
    rules: MasterRules,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    fn new(name: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("nephila-keeping-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("spool")).unwrap();
        let rules = MasterRules {
            servers: (1..=3).map(Server::new).collect(),
            queue_limits: QueueLimits { segment_bytes: 4_000 },
            ..MasterRules::default()
        };
        Bench { folder, rules }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn open(&self) -> (Master, Vec<Told>) {
        Master::open(&self.data(), self.rules.clone()).unwrap()
    }

    /// A file of lines: seconds after noon, URL, hits, tag.
    fn reflog(&self, name: &str, lines: &[(u32, &str, u32, &str)]) -> PathBuf {
        let mut text = String::new();
        for (at_s, url, hits, tag) in lines {
            let at = Stamp::from_s(NOON + at_s).digits();
            let at = String::from_utf8_lossy(&at);
            text += &format!("2011072806593795\t5\t{at}\t2310\t{url}\t{hits}\t{tag}\n");
        }
        let path = self.folder.join("spool").join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn view(&self) -> MasterView {
        MasterView::open(&self.data()).unwrap().unwrap()
    }
}

fn epoch(
    master: &mut Master,
    inputs: &[PathBuf],
    at_s: u32,
    table: Option<&mut dyn PartnerDomain>,
) -> io::Result<Committed> {
    let mut epoch = master.begin(inputs, NOON + at_s, &[])?;
    let joined = epoch.join(JoinRules::default(), &AsWritten, &OneWorker)?;
    master.commit(epoch, joined, table)
}

/// URLs and hits of the queue of a server.
fn queued(master: &Master, server: u16) -> Vec<(String, u32)> {
    let mut reader = master.reader(ServerId(server)).unwrap();
    let mut found = Vec::new();
    let mut from = reader.first_seq();
    loop {
        let next = reader
            .read(from, 100, 1 << 20, |line| {
                if let Entry::Url(record) = Entry::read(line) {
                    found.push((String::from_utf8_lossy(record.url).into_owned(), record.hits));
                }
            })
            .unwrap();
        if next == from {
            return found;
        }
        from = next;
    }
}

fn all_queued(master: &Master) -> Vec<(String, u32)> {
    let mut all: Vec<_> = (1..=3).flat_map(|server| queued(master, server)).collect();
    all.sort();
    all
}

fn many(count: u32, at_s: u32) -> Vec<(u32, String, u32, &'static str)> {
    (0..count).map(|n| (at_s + n % 60, format!("http://d{}.example/{n}", n % 37), 1 + n % 3, "")).collect()
}

fn borrowed<'a>(lines: &'a [(u32, String, u32, &'static str)]) -> Vec<(u32, &'a str, u32, &'static str)> {
    lines.iter().map(|(at, url, hits, tag)| (*at, url.as_str(), *hits, *tag)).collect()
}

/// All files that say something, with their bytes.
fn kept(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_epoch_is_sent_once_and_every_hit_is_accounted_for() {
    let bench = Bench::new("once");
    let (mut master, told) = bench.open();
    assert!(told.is_empty(), "{told:?}");
    let lines = many(500, 0);
    let first = bench.reflog("a", &borrowed(&lines));
    let committed = epoch(&mut master, std::slice::from_ref(&first), 100, None).unwrap();
    assert_eq!((committed.epoch, committed.counts.sent, committed.domains_new), (1, 500, 37));
    assert!(committed.counts.add_up());
    let mut expected: Vec<(String, u32)> =
        lines.iter().map(|(_, url, hits, _)| (url.clone(), *hits)).collect();
    expected.sort();
    assert_eq!(all_queued(&master), expected);
    for server in 1..=3 {
        for (url, _) in queued(&master, server) {
            let domain = url.split('/').nth(2).unwrap();
            assert_eq!(master.map().find(domain).unwrap().server, ServerId(server), "{url}");
        }
    }
    // The same file again, under another name too, and both at once.
    fs::copy(&first, bench.folder.join("spool/b")).unwrap();
    let again = epoch(&mut master, &[first.clone(), bench.folder.join("spool/b")], 200, None).unwrap();
    assert_eq!((again.counts.lines, again.counts.sent), (0, 0));
    // Repeats within the hour wait, and go out with the next sending.
    let repeats =
        bench.reflog("c", &[(1_000, "HTTP://D1.example:80/1", 5, ""), (1_001, "http://new.example/", 2, "")]);
    let third = epoch(&mut master, &[repeats], 1_100, None).unwrap();
    assert_eq!((third.counts.sent, third.counts.hits_waiting, third.domains_new), (1, 5, 1));
    let later = bench.reflog("d", &[(4_000, "http://d1.example/1", 1, "")]);
    epoch(&mut master, &[later], 4_100, None).unwrap();
    let of_url: Vec<u32> = all_queued(&master)
        .into_iter()
        .filter(|(url, _)| url == "http://d1.example/1")
        .map(|(_, hits)| hits)
        .collect();
    assert_eq!(of_url, [2, 6]);
    drop(master);
    // All of it is there for the next process, and for one that only looks.
    let (master, told) = bench.open();
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(master.epoch(), (4, NOON + 4_100));
    assert_eq!(all_queued(&master).len(), 502);
    let audit = super::super::audit::MasterAudit::of(&mut bench.view()).unwrap();
    assert_eq!((audit.violations_total, audit.urls, audit.epochs), (0, 502, 4), "{:?}", audit.violations);
}

#[test]
fn logs_that_are_behind_the_clock_are_joined_with_rows_of_their_own_time() {
    let bench = Bench::new("behind");
    let (mut master, _) = bench.open();
    let url = "http://d1.example/";
    let send = |master: &mut Master, name: &str, lines: &[(u32, &str, u32, &str)], at_s| {
        let path = bench.reflog(name, lines);
        let committed = epoch(master, &[path], at_s, None).unwrap();
        assert!(committed.counts.add_up());
        committed.counts
    };
    // Logs are an hour late: what was sent at noon is known while they are below one o'clock.
    assert_eq!(send(&mut master, "1", &[(0, url, 1, "a")], 3_540).sent, 1);
    assert_eq!(send(&mut master, "2", &[(1_700, "http://d2.example/", 1, "")], 3_602).sent, 1);
    let counts = send(&mut master, "3", &[(1_800, url, 5, "a")], 3_610);
    assert_eq!((counts.sent, counts.hits_waiting), (0, 5), "half an hour after it was sent");
    // They have come past the hour by now.
    assert_eq!(send(&mut master, "4", &[(3_700, "http://d3.example/", 1, "")], 7_200).sent, 1);
    assert_eq!(send(&mut master, "5", &[(3_701, url, 1, "a")], 7_210).hits_sent, 6);
    // A clock that is behind says when rows leave, and not a log that is ahead.
    assert_eq!(send(&mut master, "6", &[(9_000, "http://d4.example/", 1, "")], 7_220).sent, 1);
    assert_eq!(send(&mut master, "7", &[(7_230, "http://d5.example/", 1, "")], 7_230).sent, 1);
    assert_eq!(send(&mut master, "8", &[(7_240, url, 1, "a")], 7_240).sent, 0);
}

#[test]
fn a_directory_has_one_writer() {
    let bench = Bench::new("lock");
    let (_master, _) = bench.open();
    let error = Master::open(&bench.data(), bench.rules.clone()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    assert!(error.to_string().contains("is in use by another master, pid"), "{error}");
}

/// Whatever an epoch had written when it was cut off: the next process makes the same files as if nothing had happened.
#[test]
fn an_epoch_that_was_not_committed_is_made_again_byte_for_byte() {
    let (one, other) = (Bench::new("again-1"), Bench::new("again-2"));
    for bench in [&one, &other] {
        bench.open();
    }
    fs::copy(one.data().join("id.key"), other.data().join("id.key")).unwrap();
    for (round, at_s) in [(1, 0), (2, 1_800), (3, 5_400)] {
        let lines = many(700 * round, at_s);
        for bench in [&one, &other] {
            let file = bench.reflog(&format!("f{round}"), &borrowed(&lines));
            // The path stands in the journal.
            let shared =
                std::env::temp_dir().join(format!("nephila-keeping-shared-{}-{round}", std::process::id()));
            fs::copy(&file, &shared).unwrap();
            let (mut master, _) = bench.open();
            if bench.folder == other.folder {
                // Joined, and not committed; then committed up to the journal's word.
                let mut begun = master.begin(std::slice::from_ref(&shared), NOON + at_s + 100, &[]).unwrap();
                drop(begun.join(JoinRules::default(), &AsWritten, &OneWorker).unwrap());
                drop((begun, master));
                let queue = bench.data().join("queue/1");
                fs::write(queue.join("00000000000000009999.seg"), "torn").unwrap();
                for entry in fs::read_dir(&queue).unwrap().chain(fs::read_dir(bench.data()).unwrap()) {
                    let path = entry.unwrap().path();
                    if path.is_file()
                        && !path.ends_with("id.key")
                        && !path.ends_with("lock")
                        && !path.ends_with("position")
                    {
                        let mut bytes = fs::read(&path).unwrap();
                        bytes.extend_from_slice(b"0badc0de torn tail");
                        fs::write(&path, bytes).unwrap();
                    }
                }
                fs::write(bench.data().join("log/current.77.fresh"), "x").unwrap();
                let told;
                (master, told) = bench.open();
                assert!(told.contains(&Told::EpochAgain { epoch: u64::from(round) }), "{told:?}");
                assert!(told.iter().any(|told| matches!(told, Told::JournalTorn { .. })), "{told:?}");
                // Another time and other files do not count.
                let again = epoch(&mut master, &[], 99_999, None).unwrap();
                assert_eq!((again.epoch, again.now_s), (u64::from(round), NOON + at_s + 100));
            } else {
                epoch(&mut master, std::slice::from_ref(&shared), at_s + 100, None).unwrap();
            }
            drop(master);
            if bench.folder == other.folder {
                fs::remove_file(shared).unwrap();
            }
        }
    }
    assert!(!other.data().join("log/current.77.fresh").exists());
    let (ours, theirs) = (kept(&one.data()), kept(&other.data()));
    let names = |kept: &[(PathBuf, Vec<u8>)]| kept.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        assert!(ours == theirs, "{} differs", name.display());
    }
    assert!(
        names(&ours).contains(&PathBuf::from("log/current.3"))
            && !names(&ours).contains(&PathBuf::from("log/current.2"))
    );
}

#[test]
fn what_cannot_be_sent_is_held_and_comes_again() {
    let mut bench = Bench::new("held");
    let mut table = MemoryTable::default();
    let (mut master, _) = bench.open();
    let first = bench.reflog("a", &[(0, "http://a.example/1", 1, ""), (0, "http://b.example/1", 2, "")]);
    epoch(&mut master, &[first], 10, Some(&mut table)).unwrap();
    // The database is away: new domains wait, known ones go on.
    table.fail(0, Fault::Away);
    let second = bench.reflog("b", &[(20, "http://a.example/2", 3, ""), (21, "http://c.example/1", 4, "")]);
    let held = epoch(&mut master, &[second], 30, Some(&mut table)).unwrap();
    assert_eq!((held.counts.sent, held.counts.held, held.counts.hits_held, held.domains_new), (1, 1, 4, 0));
    assert_eq!(held.unplaced.as_ref().unwrap().1, NOON + 30);
    assert!(held.counts.add_up());
    assert_eq!(master.map().find("c.example"), None, "no guess is made");
    let reader = master.reader(ServerId(1)).unwrap();
    assert_eq!(reader.mark(reader.next_seq()).s(), NOON + 20, "not past what is held");
    let more = bench.reflog("c", &[(40, "http://c.example/1", 5, ""), (41, "http://c.example/2", 1, "")]);
    let held = epoch(&mut master, &[more], 50, Some(&mut table)).unwrap();
    assert_eq!((held.counts.held, held.counts.hits_held, held.unplaced.unwrap().1), (2, 10, NOON + 30));
    drop(master);
    let explained = super::super::explain::Explained::of(
        &mut bench.view(),
        &crate::proto::url::CrawlUrl::parse("http://c.example/1").unwrap(),
        NOON + 60,
    )
    .unwrap();
    assert_eq!(
        explained.verdict,
        "not sent: its domain could not be placed since 2011-07-27T12:00:30.000Z; 9 hits held"
    );
    let (mut master, _) = bench.open();
    table.fail(0, Fault::None);
    let sent = epoch(&mut master, &[], 70, Some(&mut table)).unwrap();
    assert_eq!((sent.counts.sent, sent.counts.held, sent.counts.hits_sent), (2, 0, 10));
    assert!(sent.unplaced.is_none() && sent.counts.add_up());
    assert_eq!(
        all_queued(&master).iter().filter(|(url, hits)| url == "http://c.example/1" && *hits == 9).count(),
        1
    );
    // A fence holds its domain, and no other.
    let mut row = master.map().get("a.example").unwrap();
    (row.moving_to, row.fence) = (Some(ServerId(9)), row.fence + 1);
    let close = Kept {
        rows: vec![row.clone()],
        entries: vec![(row.server, b"CLOSE a.example".to_vec())],
        ..Kept::default()
    };
    master.keep(&close, NOON + 80).unwrap();
    let fenced = bench.reflog("d", &[(90, "http://a.example/9", 7, ""), (90, "http://b.example/9", 1, "")]);
    let held = epoch(&mut master, &[fenced], 100, Some(&mut table)).unwrap();
    assert_eq!((held.counts.sent, held.counts.held, held.counts.hits_held), (1, 1, 7));
    // To a server that is not configured nothing can go.
    let moved =
        MapRow { server: ServerId(9), moving_to: None, fence: row.fence + 1, by: By::Person, ..row.clone() };
    master.keep(&Kept { rows: vec![moved.clone()], ..Kept::default() }, NOON + 110).unwrap();
    let held = epoch(&mut master, &[], 120, Some(&mut table)).unwrap();
    assert_eq!(held.told, [Told::NoServer { server: ServerId(9), urls: 1 }]);
    drop(master);
    bench.rules.servers.push(Server::new(9));
    let (mut master, _) = bench.open();
    let sent = epoch(&mut master, &[], 130, Some(&mut table)).unwrap();
    assert_eq!((sent.counts.sent, queued(&master, 9)), (1, vec![("http://a.example/9".to_string(), 7)]));
    drop(master);
    let audit = super::super::audit::MasterAudit::of(&mut bench.view()).unwrap();
    assert_eq!(audit.violations_total, 0, "{:?}", audit.violations);
}

#[test]
fn a_full_queue_holds_its_own_rows() {
    let mut bench = Bench::new("full");
    bench.rules.queue_bytes_max = 3_000;
    let (mut master, _) = bench.open();
    let lines = many(1_200, 0);
    let first = epoch(&mut master, &[bench.reflog("a", &borrowed(&lines))], 100, None).unwrap();
    assert!(first.counts.add_up());
    let second = many(600, 200)
        .into_iter()
        .map(|(at, url, hits, tag)| (at, format!("{url}/x"), hits, tag))
        .collect::<Vec<_>>();
    // The nodes of two servers have everything.
    for server in [1, 2] {
        let reader = master.reader(ServerId(server)).unwrap();
        reader.done(reader.next_seq()).unwrap();
    }
    let committed = epoch(&mut master, &[bench.reflog("b", &borrowed(&second))], 300, None).unwrap();
    let dealt = |server: u16| committed.dealt[&ServerId(server)];
    assert!(dealt(1).urls > 0 && dealt(2).urls > 0, "{:?}", committed.dealt);
    assert!(dealt(3).urls < dealt(1).urls / 2, "its node has nothing yet: {:?}", committed.dealt);
    assert!(dealt(3).held > 0 && committed.counts.add_up());
    for round in 0..20 {
        for server in 1..=3 {
            let reader = master.reader(ServerId(server)).unwrap();
            reader.done(reader.next_seq()).unwrap();
        }
        epoch(&mut master, &[], 310 + round, None).unwrap();
    }
    let mut expected: Vec<(String, u32)> =
        lines.iter().chain(&second).map(|(_, url, hits, _)| (url.clone(), *hits)).collect();
    expected.sort();
    assert_eq!(all_queued(&master), expected, "nothing was lost");
}

#[test]
fn files_move_to_done_and_a_bad_one_stays() {
    let mut bench = Bench::new("done");
    bench.rules.moves_inputs = true;
    let (mut master, _) = bench.open();
    let spool = bench.folder.join("spool");
    let file = bench.reflog("a", &[(0, "http://a.example/1", 1, "")]);
    fs::create_dir(spool.join("folder")).unwrap();
    let begun = master.begin(&[file.clone(), spool.join("folder"), spool.join("gone")], NOON, &[]).unwrap();
    assert_eq!(begun.inputs().len(), 1);
    let bad: Vec<&Told> =
        begun.told().iter().filter(|told| matches!(told, Told::UnreadableFile { .. })).collect();
    assert_eq!(bad.len(), 2, "{:?}", begun.told());
    drop(begun);
    epoch(&mut master, &[], 0, None).unwrap();
    assert!(!file.exists() && spool.join("done/a").exists());
    // A file of the same name, and the same file.
    let file = bench.reflog("a", &[(9, "http://a.example/2", 1, "")]);
    epoch(&mut master, &[file], 10, None).unwrap();
    assert!(spool.join("done/a.2").exists());
    fs::copy(spool.join("done/a"), spool.join("z")).unwrap();
    let begun = master.begin(&[spool.join("z")], NOON + 20, &[]).unwrap();
    assert_eq!(begun.told(), [Told::KnownFile { path: spool.join("z") }]);
    assert!(!spool.join("z").exists() && spool.join("done/z").exists());
    drop((begun, master));
    // Killed after its COMMIT, before its inputs were moved.
    fs::rename(spool.join("done/a.2"), spool.join("a")).unwrap();
    let (mut master, _) = bench.open();
    assert!(!spool.join("a").exists() && spool.join("done/a.2").exists());
    epoch(&mut master, &[], 30, None).unwrap();
    // An input that is gone before its epoch was committed.
    let lost = bench.reflog("lost", &[(9, "http://a.example/3", 1, "")]);
    drop(master.begin(std::slice::from_ref(&lost), NOON + 40, &[]).unwrap());
    fs::remove_file(&lost).unwrap();
    let begun = master.begin(&[], NOON + 50, &[]).unwrap();
    assert_eq!(begun.told(), [Told::LostFile { path: lost.clone() }]);
    drop(begun);
    epoch(&mut master, &[], 50, None).unwrap();
    let lost = bench.reflog("lost", &[(9, "http://a.example/3", 1, "")]);
    let committed = epoch(&mut master, &[lost], 60, None).unwrap();
    assert_eq!(committed.counts.sent, 1, "it was never taken");
}

#[test]
fn what_is_damaged_is_said_with_the_mend() {
    let bench = Bench::new("damaged");
    let (mut master, _) = bench.open();
    let file = bench.reflog("a", &[(0, "http://a.example/1", 1, "")]);
    epoch(&mut master, &[file], 0, None).unwrap();
    let file = bench.reflog("b", &[(10, "http://a.example/2", 1, "")]);
    epoch(&mut master, &[file], 10, None).unwrap();
    drop(master);
    let refused = |path: &Path| {
        Master::open(path, bench.rules.clone()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let spoil = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = bench.data().join(name);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        change(&mut bad);
        fs::write(&path, bad).unwrap();
        (path, good)
    };
    // Every byte of the journal: said, or nothing is lost.
    let length = fs::metadata(bench.data().join("journal")).unwrap().len() as usize;
    for at in (0..length).step_by(3) {
        let (path, good) = spoil("journal", &|bytes| bytes[at] ^= 1 << (at % 8));
        match MasterView::open(&bench.data()) {
            Err(e) => assert!(e.to_string().contains("put a copy back"), "byte {at}: {e}"),
            Ok(view) => panic!("byte {at}: epoch {:?}", view.map(|view| view.epoch())),
        }
        assert!(refused(&bench.data()).contains("journal"), "byte {at}");
        fs::write(path, good).unwrap();
    }
    let (path, good) = spoil("log/current.2", &|bytes| bytes[5_000] ^= 1);
    let (mut master, _) = bench.open();
    let error = epoch(&mut master, &[], 20, None).unwrap_err().to_string();
    assert!(error.contains("current"), "{error}");
    fs::write(&path, &good).unwrap();
    epoch(&mut master, &[], 30, None).unwrap();
    drop(master);
    let (path, good) = spoil("log/current.3", &|bytes| bytes[0] ^= 1);
    let (mut master, _) = bench.open();
    let error = epoch(&mut master, &[], 40, None).unwrap_err().to_string();
    assert!(error.contains("log/current.3") && error.contains("or empty the file"), "{error}");
    fs::write(&path, "").unwrap();
    let begun = master.begin(&[], NOON + 40, &[]).unwrap();
    assert_eq!(begun.told(), [Told::CurrentEmptied { path: path.clone() }]);
    fs::write(&path, good).unwrap();
    drop((begun, master));
    let (path, good) = spoil("id.key", &|bytes| bytes[20] ^= 1);
    assert!(refused(&bench.data()).contains("bring it back from a copy"));
    fs::remove_file(&path).unwrap();
    assert!(refused(&bench.data()).contains("is gone"));
    fs::write(path, good).unwrap();
    let server = bench.view().map().get("a.example").unwrap().server.0;
    let segment = format!("queue/{server}/00000000000000000000.seg");
    let (path, good) = spoil(&segment, &|bytes| bytes[40] ^= 1);
    let (_, told) = bench.open();
    fs::write(path, good).unwrap();
    assert!(told.iter().any(|told| matches!(told, Told::QueueDamaged { .. })), "{told:?}");
}

#[test]
fn words_rows_and_states_between_epochs_are_kept() {
    let bench = Bench::new("keep");
    let (mut master, _) = bench.open();
    let row = MapRow {
        domain: "a.example".into(),
        server: ServerId(2),
        moving_to: None,
        page: 1,
        since_s: NOON,
        by: By::Person,
        fence: 3,
    };
    let kept = Kept {
        rows: vec![row.clone()],
        entries: vec![(ServerId(2), b"OPEN a.example".to_vec()), (ServerId(7), b"CLOSE a.example".to_vec())],
        states: vec![(ServerId(1), super::super::map::ServerState::Draining)],
        notes: vec![("close:a.example".to_string(), Some("3".to_string()))],
    };
    master.keep(&kept, NOON).unwrap();
    // What cannot be written is not there at all.
    let bad = Kept {
        rows: vec![MapRow { domain: "b.example".into(), ..row.clone() }],
        entries: vec![(ServerId(2), b"two\nlines".to_vec())],
        ..Kept::default()
    };
    assert!(master.keep(&bad, NOON).is_err());
    assert_eq!((master.map().get("b.example"), master.reader(ServerId(2)).unwrap().next_seq()), (None, 1));
    drop(master);
    let (mut master, told) = bench.open();
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(master.map().get("a.example"), Some(row));
    assert_eq!(master.note("close:a.example"), Some("3"));
    assert_eq!(master.servers()[0].state, super::super::map::ServerState::Draining);
    assert_eq!(master.reader(ServerId(7)).unwrap().next_seq(), 1);
    master
        .keep(&Kept { notes: vec![("close:a.example".to_string(), None)], ..Kept::default() }, NOON)
        .unwrap();
    assert_eq!(master.note("close:a.example"), None);
    let lines = many(50, 0);
    let committed = epoch(&mut master, &[bench.reflog("a", &borrowed(&lines))], 60, None).unwrap();
    assert_eq!(committed.dealt[&ServerId(1)].urls, 0, "it drains");
}

#[test]
fn a_long_journal_is_written_anew_and_says_the_same() {
    let bench = Bench::new("compact");
    let (mut master, _) = bench.open();
    let first = bench.reflog("a", &[(0, "http://a.example/1", 3, "")]);
    epoch(&mut master, std::slice::from_ref(&first), 0, None).unwrap();
    for n in 0..6 {
        let note = ("note".to_string(), Some(format!("{n}{}", "x".repeat(200_000))));
        master.keep(&Kept { notes: vec![note], ..Kept::default() }, NOON).unwrap();
    }
    let journal = bench.data().join("journal");
    assert!(fs::metadata(&journal).unwrap().len() > 1 << 20);
    drop(master.begin(&[bench.reflog("b", &[(9, "http://a.example/1", 4, "")])], NOON + 10, &[]).unwrap());
    drop(master);
    let (mut master, told) = bench.open();
    assert_eq!(told, [Told::EpochAgain { epoch: 2 }]);
    assert!(fs::metadata(&journal).unwrap().len() < 300_000, "it is one checkpoint");
    assert!(master.note("note").unwrap().starts_with("5x"));
    let second = epoch(&mut master, &[], 999, None).unwrap();
    assert_eq!((second.epoch, second.now_s, second.counts.hits_waiting), (2, NOON + 10, 4));
    // Files are known from before.
    let known = master.begin_new(&[first], NOON + 20, &[]).unwrap().err().unwrap();
    assert!(matches!(known.as_slice(), [Told::KnownFile { .. }]));
    assert_eq!(master.totals().hits_in, 7);
    drop(master);
    let audit = super::super::audit::MasterAudit::of(&mut bench.view()).unwrap();
    assert_eq!((audit.violations_total, audit.epochs), (0, 2), "{:?}", audit.violations);
}
