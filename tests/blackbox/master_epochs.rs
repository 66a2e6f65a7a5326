//! The promise: an epoch of a master is whole or did not happen. Killed at any instruction and at every sync, on a disk
//! that is full or loses its power, the next process makes the same current_log, queues, map and journal, byte for byte,
//! as if nothing had happened; and all of it can be looked at and audited.
//!
//! `NEPHILA_KILLS=200` makes a long run of it:
//!
//! ```text
//!   NEPHILA_KILLS=200 cargo nextest run --no-capture -E 'test(/^master_epochs::/)'
//! ```

use crate::disks::{Cut, Disk};
use crate::orders::{Chance, can_trace, copy_tree, killed_at};
use crate::support::*;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn kills() -> u64 {
    std::env::var("NEPHILA_KILLS").map_or(20, |text| text.parse().expect("NEPHILA_KILLS is a number"))
}

/// Seconds of a day, as fourteen digits.
fn at(seconds: u64) -> String {
    format!("20110727{:02}{:02}{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A file of an hour's URLs: new ones and those of the hour before, broken lines, and some that cannot be read.
fn reflog(round: u64, lines: u64) -> String {
    let mut text = String::from("a line of unknown content\n");
    for n in 0..lines {
        let url = (n * 7_919 + round * lines / 2 * 7_919) % (lines * 3);
        let (domain, tag) = (url % 211, if n.is_multiple_of(50) { round.to_string() } else { String::new() });
        let time = at(round * 2_400 + n * 1_200 / lines);
        text += &format!("2011072806593795\t5\t{time}\t{}\t", 2_000 + domain);
        if n.is_multiple_of(97) {
            text += "\n";
        }
        text += &format!("http://www.d{domain}.example/p/{url}\t{}\t{tag}\n", 1 + n % 4);
        if n.is_multiple_of(331) {
            text += &format!("2011072806593795\t5\t{time}\t1\thttp://[bad/{n}\t1\t0\n");
        }
    }
    text
}

/// Files and what a master makes of them if nobody kills it.
struct Bench {
    dir: TempDir,
    files: Vec<PathBuf>,
    /// The directory after so many files.
    after: Vec<PathBuf>,
}

const ROUNDS: u64 = 4;

impl Bench {
    fn new(lines: u64) -> Bench {
        let dir = TempDir::in_memory();
        let files: Vec<PathBuf> =
            (0..ROUNDS).map(|round| dir.write(&format!("{round}.reflog"), reflog(round, lines))).collect();
        let mut bench = Bench { dir, files, after: Vec::new() };
        let data = bench.dir.join("unkilled");
        // The key is the same for all.
        once(&mut nephila(), &bench.dir.write("none.reflog", ""), 0, &data).done();
        let key = bench.dir.join("id.key");
        std::fs::copy(data.join("id.key"), &key).unwrap();
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        std::fs::copy(&key, data.join("id.key")).unwrap();
        for round in 0..=ROUNDS {
            let copy = bench.dir.join(&format!("after-{round}"));
            copy_tree(&data, &copy);
            bench.after.push(copy);
            if round < ROUNDS {
                bench.take(round, &data).done();
            }
        }
        bench
    }

    fn take(&self, round: u64, data: &Path) -> Run {
        once(&mut nephila(), &self.files[round as usize], round, data)
    }

    /// A directory as it is before a round.
    fn before(&self, round: u64, name: &str) -> PathBuf {
        let data = self.dir.join(name);
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(&self.after[round as usize], &data);
        data
    }

    #[track_caller]
    fn same(&self, round: u64, data: &Path, which: &str) {
        let (ours, theirs) = (kept(&self.after[round as usize]), kept(data));
        let names = |kept: &BTreeMap<PathBuf, Vec<u8>>| kept.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&theirs), names(&ours), "{which}");
        for (name, bytes) in &ours {
            assert!(*bytes == theirs[name], "{which}: {} is not as it was without a kill", name.display());
        }
    }
}

fn once(command: &mut Command, file: &Path, round: u64, data: &Path) -> Run {
    Running::start(once_command(command, file, round, data)).wait(PATIENCE)
}

fn once_command<'a>(command: &'a mut Command, file: &Path, round: u64, data: &Path) -> &'a mut Command {
    let now = at((round + 1) * 2_400);
    command
        .args(["master", "once", "--servers", "3", "--now", &now, "--json"])
        .arg(file)
        .arg("--data")
        .arg(data)
}

/// A command with words before it.
fn behind(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_nephila"));
    command
}

/// Every file that says something.
fn kept(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn killed_at_any_moment_an_epoch_is_as_if_it_had_not_been() {
    let bench = Bench::new(3_000);
    let mut chance = Chance::new();
    // How long an epoch takes here.
    let began = std::time::Instant::now();
    bench.take(0, &bench.before(0, "timed")).done();
    let usual_us = began.elapsed().as_micros() as u64;
    let mut killed = 0;
    let data = bench.before(0, "killed");
    let mut round = 0;
    while killed < kills() {
        if round == ROUNDS {
            bench.same(ROUNDS, &data, "after all rounds");
            bench.before(0, "killed");
            round = 0;
        }
        let mut command = nephila();
        let mut running =
            Running::start(once_command(&mut command, &bench.files[round as usize], round, &data));
        std::thread::sleep(Duration::from_micros(chance.below(usual_us * 11 / 10)));
        if !running.has_ended() {
            running.signal(Signal::SIGKILL);
            killed += 1;
        }
        let run = running.wait(PATIENCE);
        if run.status.success() {
            round += 1;
            bench.same(round, &data, &format!("after {killed} kills"));
        }
    }
    while round < ROUNDS {
        bench.take(round, &data).done();
        round += 1;
    }
    bench.same(ROUNDS, &data, &format!("after {killed} kills"));
    let audit = run([&b"master"[..], b"audit", b"--json", b"--data"]
        .map(os)
        .into_iter()
        .chain([data.into_os_string()]));
    assert_eq!(audit.done().json()["violations_total"], 0);
}

fn os(bytes: &[u8]) -> std::ffi::OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[test]
fn killed_at_every_sync_an_epoch_is_as_if_it_had_not_been() {
    if !can_trace() {
        return;
    }
    let bench = Bench::new(400);
    for (call, round, most) in [
        ("fsync", 0, 100),
        ("fdatasync", 0, 100),
        ("fsync", 2, 100),
        ("fdatasync", 2, 100),
        ("rename", 2, 100),
        ("unlink", 2, 100),
        ("pwrite64", 1, 12),
    ] {
        let mut survived = false;
        for time in 1..=most {
            let which = format!("{call} {time} of round {round}");
            let data = bench.before(round, "killed");
            let run = once(&mut behind(&killed_at(call, time)), &bench.files[round as usize], round, &data);
            if run.status.success() {
                survived = true;
                println!("{call}: {} in round {round}", time - 1);
                assert!(time > 1 || call == "unlink", "{which}: it was never killed");
                break;
            }
            // What it left can be looked at.
            let looked = crate::support::run(["master", "queue", "ls", "--data", data.to_str().unwrap()]);
            assert!(looked.code() == 0 || !data.join("journal").exists(), "{which}: {}", looked.stderr);
            bench.take(round, &data).done();
            bench.same(round + 1, &data, &which);
        }
        assert!(survived || most < 100, "{call} is not called for ever");
    }
}

#[test]
fn on_a_full_disk_nothing_is_committed_and_with_room_it_goes_on() {
    let Some(disk) = Disk::tmpfs(24) else {
        return;
    };
    let bench = Bench::new(3_000);
    for free in [0, 4_096, 12_288, 40_960, 90_112, 163_840] {
        let data = disk.path().join("data");
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(&bench.after[1], &data);
        let ballast = disk.fill(free);
        let run = bench.take(1, &data);
        match run.code() {
            0 => assert!(free > 0),
            code => {
                assert_eq!((code, run.stderr.lines().count()), (3, 1), "{}", run.stderr);
                assert!(run.stderr.contains("No space left on device"), "{}", run.stderr);
                assert!(run.stderr.contains("(free some space)"), "{}", run.stderr);
                let audit = crate::support::run(["master", "audit", "--data", data.to_str().unwrap()]);
                assert_eq!(audit.code(), 0, "{}{}", audit.text(), audit.stderr);
            }
        }
        std::fs::remove_file(ballast).unwrap();
        bench.take(1, &data).done();
        bench.same(2, &data, &format!("with {free} bytes free"));
    }
}

#[test]
fn what_was_committed_survives_the_loss_of_power() {
    let Some(disk) = Disk::ext4(64) else {
        return;
    };
    let (bench, mut chance) = (Bench::new(1_500), Chance::new());
    let data = disk.path().join("data");
    for (time, cut) in [Cut::DataAndLog, Cut::Data, Cut::DataAndLog, Cut::Nothing].into_iter().enumerate() {
        let _ = std::fs::remove_dir_all(&data);
        copy_tree(&bench.after[1], &data);
        assert!(Command::new("sync").status().unwrap().success());
        let mut command = nephila();
        let mut running = Running::start(once_command(&mut command, &bench.files[1], 1, &data));
        let said = if time == 0 {
            // What it says is durable is.
            let run = running.wait(PATIENCE);
            disk.cut_power(cut) && run.status.success()
        } else {
            std::thread::sleep(Duration::from_micros(chance.below(400_000)));
            let can = disk.cut_power(cut);
            if !running.has_ended() {
                running.signal(Signal::SIGKILL);
            }
            let _ = running.wait(PATIENCE);
            can
        };
        if !said {
            println!("this kernel cannot stop a file system: skipped");
            return;
        }
        disk.restart();
        let again = bench.take(1, &data).done();
        if time == 0 {
            assert_eq!(again.json()["known"], 1, "it was committed before the power went");
        }
        bench.same(2, &data, &format!("{cut:?}"));
    }
}

#[test]
fn everything_that_is_kept_can_be_looked_at() {
    let bench = Bench::new(2_000);
    let data = bench.before(ROUNDS, "looked");
    let look = |words: &[&str]| {
        run(["master"]
            .iter()
            .chain(words)
            .map(os_str)
            .chain([os_str(&"--data"), data.clone().into_os_string()]))
    };
    let queues = look(&["queue", "ls", "--json"]).done().json_lines();
    assert_eq!(queues.len(), 3);
    assert!(queues.iter().all(|queue| queue["position"] == 0 && queue["waiting"] == queue["next"]));
    let total: u64 = queues.iter().map(|queue| queue["next"].as_u64().unwrap()).sum();
    let entries = look(&["queue", "cat", "2", "--from", "10", "--limit", "5"]).done().text();
    assert!(
        entries.lines().count() == 5 && entries.lines().all(|line| line.split('\t').count() == 7),
        "{entries}"
    );
    assert_eq!(
        look(&["queue", "cat", "2", "--from", "10", "--limit", "5", "--json"]).done().json_lines()[0]["seq"],
        10
    );
    assert_eq!(look(&["queue", "cat", "9"]).code(), 1);
    assert_eq!(look(&["queue", "cat", "1", "--from", "99999999"]).code(), 1);

    // What each epoch has sent is what the queues have.
    let sent: usize = (1..=ROUNDS)
        .map(|epoch| {
            look(&["log", "--filtered", "--epoch", &epoch.to_string()]).done().text().lines().count()
        })
        .sum();
    assert_eq!(sent as u64, total);
    let filtered = look(&["log", "--filtered"]).done().text();
    let line: Vec<&str> = filtered.lines().next().unwrap().split('\t').collect();
    assert!(line.len() == 6 && line[0].contains(line[1]) && line[2].starts_with("20110727"), "{line:?}");
    assert_eq!(look(&["log", "--filtered", "--epoch", "99"]).code(), 1);
    assert_eq!(look(&["log"]).code(), 2);
    let current = look(&["log", "--current"]).done().text();
    assert!(
        current.lines().all(|line| line.split('\t').count() == 6 && line.starts_with("http://")),
        "{current}"
    );
    let as_json = look(&["log", "--current", "--json"]).done().json_lines();
    assert_eq!(as_json.len(), current.lines().count());

    // The map, out of one master and into another.
    let map = look(&["map", "export"]).done().text();
    assert_eq!(map.lines().count(), 211);
    let exported = bench.dir.write("map.tsv", &map);
    let other = bench.dir.join("other");
    let import = |file: &Path| {
        run(["master", "map", "import"].map(|word| os_str(&word)).into_iter().chain([
            file.into(),
            os_str(&"--json"),
            os_str(&"--data"),
            other.clone().into_os_string(),
        ]))
    };
    let told = import(&exported).done().json();
    assert_eq!((&told["rows"], &told["new"]), (&211.into(), &211.into()));
    assert_eq!(import(&exported).done().json()["new"], 0);
    let again = run(["master", "map", "export", "--data", other.to_str().unwrap()]).done().text();
    let servers = |map: &str| {
        map.lines().map(|line| line.split('\t').take(4).collect::<Vec<_>>().join("\t")).collect::<Vec<_>>()
    };
    assert_eq!(servers(&again), servers(&map));
    let domain = map.split('\t').next().unwrap();
    let moved = import(&bench.dir.write("moved.tsv", format!("{domain}\t77\n")));
    assert!(moved.code() == 1 && moved.stderr.contains("map move"), "{}", moved.stderr);
    let bad = import(&bench.dir.write("bad.tsv", "a.example\tseven\n"));
    assert!(bad.code() == 2 && bad.stderr.contains("bad.tsv:1: seven is no number"), "{}", bad.stderr);
    assert_eq!(look(&["map", "show", domain, "--json"]).done().json()["domain"], domain);
    assert_eq!(look(&["map", "show", "nowhere.example"]).code(), 1);
    assert_eq!(look(&["map", "ls", "--limit", "3", "--json"]).done().json_lines().len(), 3);

    // Rejects name file, line and reason.
    let rejects = look(&["rejects", "--epoch", "1", "--json"]).done().json_lines();
    assert!(rejects.len() >= 2_000 / 331, "{}", rejects.len());
    assert!(
        rejects
            .iter()
            .all(|reject| reject["line"].is_u64() && reject["file"].as_str().unwrap().ends_with("0.reflog"))
    );
    assert_eq!(look(&["rejects", "--epoch", "9"]).code(), 1);

    // A URL that was sent, in another spelling, and one that was not.
    let last = current.lines().next().unwrap().split('\t').collect::<Vec<_>>();
    let spelled = last[0].replace("http://www.d", "HTTP://WWW.D").replace(".example/", ".example:80/");
    let explained = look(&["explain", &spelled, "--now", last[2], "--json"]).done().json();
    assert_eq!(explained["url"], last[0]);
    assert!(explained["verdict"].as_str().unwrap().starts_with("sent 0 s before, "), "{explained}");
    assert!(!explained["sendings"].as_array().unwrap().is_empty());
    let unknown = look(&["explain", "http://never.example/"]);
    assert!(
        unknown.code() == 1 && unknown.text().contains("sent at once when it comes"),
        "{}",
        unknown.text()
    );

    let audit = look(&["audit", "--json"]).done().json();
    assert_eq!((&audit["violations_total"], &audit["epochs"]), (&0.into(), &ROUNDS.into()));
    assert_eq!(audit["urls"], total);
    let nothing = run(["master", "audit", "--data", bench.dir.path().to_str().unwrap()]);
    assert!(nothing.code() == 3 && nothing.stderr.contains("holds no master"), "{}", nothing.stderr);
}

fn os_str(word: &&str) -> std::ffi::OsString {
    (*word).into()
}

/// An audit that never says no proves nothing.
#[test]
fn an_audit_finds_what_is_wrong() {
    let bench = Bench::new(400);
    let audit = |data: &Path| {
        let run = run(["master", "audit", "--json", "--data", data.to_str().unwrap()]);
        (run.code(), run.json())
    };
    let data = bench.before(ROUNDS, "good");
    assert_eq!(audit(&data).0, 0);
    // A queue of another server in place of this one's.
    let segment = |server: u8| data.join(format!("queue/{server}/00000000000000000000.seg"));
    let bytes = std::fs::read(segment(1)).unwrap();
    let mut spoiled = bytes.clone();
    let middle = spoiled.len() / 2;
    spoiled[middle] ^= 4;
    std::fs::write(segment(1), &spoiled).unwrap();
    let (code, said) = audit(&data);
    let kinds: Vec<&str> = said["violations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|violation| violation["kind"].as_str())
        .collect();
    assert!(code == 1 && kinds.contains(&"damaged") && kinds.contains(&"unaccounted"), "{said}");
    std::fs::write(segment(1), &bytes).unwrap();
    // A reject that was taken away.
    let rejects = data.join("rejects/1");
    let text = std::fs::read_to_string(&rejects).unwrap();
    std::fs::write(&rejects, text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
    let (code, said) = audit(&data);
    assert!(code == 1 && said["violations"][0]["kind"] == "unaccounted", "{said}");
    std::fs::write(&rejects, text).unwrap();
    // The same file twice, with what was known of it taken away in between: everything is sent again within the hour.
    let data = bench.before(1, "twice");
    std::fs::write(data.join("log/current.1"), "").unwrap();
    let mut text = std::fs::read_to_string(&bench.files[0]).unwrap();
    text += "\n";
    let again = bench.dir.write("again.reflog", text);
    let run = once(&mut nephila(), &again, 0, &data);
    assert!(
        run.status.success() && run.stderr.contains("is empty: URLs of the last hour are sent again"),
        "{}",
        run.stderr
    );
    let (code, said) = audit(&data);
    assert!(
        code == 1 && said["violations"].as_array().unwrap().iter().any(|found| found["kind"] == "sent_twice"),
        "{said}"
    );
}

#[test]
fn one_process_writes_and_a_file_is_taken_once() {
    let bench = Bench::new(400);
    let data = bench.before(1, "taken");
    let again = bench.take(0, &data).done();
    assert!(again.stderr.contains("0.reflog was taken before, and is skipped"), "{}", again.stderr);
    let told = again.json();
    assert_eq!((&told["files"], &told["known"]), (&0.into(), &1.into()));
    // What there is, is told as it stands.
    let rows = run(["master", "log", "--current", "--data", data.to_str().unwrap()]).done().text();
    assert_eq!(told["kept"].as_u64(), Some(rows.lines().count() as u64));
    assert!(told["kept"].as_u64() > Some(0), "{told}");
    bench.same(1, &data, "taken again");
    let lock = std::fs::File::open(data.join("lock")).unwrap();
    lock.lock().unwrap();
    let locked = bench.take(1, &data);
    assert!(locked.code() == 3 && locked.stderr.contains("is in use by another master"), "{}", locked.stderr);
    drop(lock);
    let gone = once(&mut nephila(), &bench.dir.join("gone.reflog"), 1, &data);
    assert!(gone.code() == 2 && gone.stderr.contains("gone.reflog"), "{}", gone.stderr);
    let gone = run(["master", "map", "import", "/no/such/rows", "--data", data.to_str().unwrap()]);
    assert!(gone.code() == 2 && gone.stderr.contains("/no/such/rows"), "{}", gone.stderr);
}
