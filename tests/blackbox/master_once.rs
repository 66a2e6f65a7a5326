//! The promise: an epoch sends what a pipeline of GNU sort, awk and join would send, and keeps what it would keep, to the
//! byte; with little memory, and however the lines lie.

use crate::support::*;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Seconds of the day that all of it happens on, as a reflog writes them.
fn stamp(second: u64) -> String {
    format!("20270115{:02}{:02}{:02}", second / 3_600, second / 60 % 60, second % 60)
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Lines up to `now`: some late, some ahead, many of one second, with tags that come and go.
fn reflog(seed: u64, lines: u64, now: u64) -> String {
    let mut chance = Chance(seed);
    let mut text = String::with_capacity(lines as usize * 80);
    for number in 0..lines {
        // Few come often, many once.
        let bound = chance.below(lines * 2) + 1;
        let url = chance.below(bound);
        let second = match chance.below(100) {
            0 => now + 50 + chance.below(20),
            1..5 => now - 3_590 - chance.below(20),
            5 => now - 9_000 - chance.below(30_000).min(now - 9_000),
            _ => now - chance.below(1_200),
        };
        let tag = ["", "", "0", "0", "0", "1", "changed-since"][chance.below(7) as usize];
        let (host, hits) = (url % 5_000, 1 + chance.below(3));
        let www = if url.is_multiple_of(3) { "www." } else { "" };
        let time = stamp(second);
        writeln!(
            text,
            "{number}\t5\t{time}\t{}\thttp://{www}site{host}.com/a/{url}.html\t{hits}\t{tag}",
            url % 977
        )
        .unwrap();
    }
    text
}

/// One epoch in text, in order; what it says in JSON.
fn once(folder: &TempDir, file: &Path, current: &Path, now: u64, out: &str, more: &[&str]) -> Value {
    let mut command = nephila();
    command.args(["master", "once", "--text", "--sorted", "--json", "--now", &stamp(now), "--current"]);
    let output =
        command.arg(current).arg("--out").arg(folder.join(out)).args(more).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn gnu(folder: &TempDir, file: &Path, current: &Path, now: u64, out: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/bench/master_peers/gnu.sh");
    let mut command = Command::new("sh");
    command.arg(script).arg(file).arg(current).arg(stamp(now)).arg(folder.join(out));
    assert!(command.status().unwrap().success());
}

fn assert_same(folder: &TempDir, ours: &str, theirs: &str) {
    for log in ["filtered_log", "current_log"] {
        let [ours, theirs] =
            [ours, theirs].map(|out| std::fs::read(folder.join(&format!("{out}/{log}"))).unwrap());
        let lines = |text: &[u8]| text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        if ours != theirs {
            let (ours, theirs) = (lines(&ours), lines(&theirs));
            let at = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
            let shown =
                |lines: &[Vec<u8>]| lines.get(at).map(|line| String::from_utf8_lossy(line).into_owned());
            panic!("{log}, line {}: {:?} and {:?}", at + 1, shown(&ours), shown(&theirs));
        }
        assert!(!ours.is_empty(), "{log}");
    }
}

/// A million lines in four files: the second comes minutes after the first, the third an hour after that, the last when
/// hits that wait expire.
#[test]
fn epochs_are_those_of_sort_awk_and_join() {
    let folder = TempDir::new();
    let mut current = folder.write("none", "");
    let mut theirs = current.clone();
    let (mut left, mut expired) = (0, 0);
    for (number, (lines, now)) in
        [(400_000, 40_000), (400_000, 40_900), (150_000, 44_505), (50_000, 80_600)].into_iter().enumerate()
    {
        let file = folder.write("lines.reflog", reflog(number as u64 + 5, lines, now));
        let [ours, gnus] = ["ours", "gnu"].map(|who| format!("{who}{number}"));
        // Lines past the memory go to the disk, and to whoever is free.
        let told = once(&folder, &file, &current, now, &ours, &["--memory", "16MiB", "--workers", "2"]);
        gnu(&folder, &file, &theirs, now, &gnus);
        assert_same(&folder, &ours, &gnus);
        let of = |name: &str| told[name].as_u64().unwrap();
        assert_eq!((of("lines"), of("rejected")), (lines, 0));
        let waiting = of("hits_waiting") + of("hits_expired") + of("hits_capped");
        assert_eq!(of("hits_in") + of("hits_before"), of("hits_sent") + waiting + of("hits_rejected"));
        assert!(of("sent") > 0 && of("ahead") > 0 && (of("hits_waiting") > 0) == (number > 0));
        (left, expired) = (left + of("left"), expired + of("expired"));
        current = folder.join(&format!("{ours}/current_log"));
        theirs = folder.join(&format!("{gnus}/current_log"));
    }
    assert!(left > 10_000 && expired > 1_000, "{left} rows left, {expired} with hits");
}

#[test]
fn one_url_and_one_domain_may_have_nearly_all_lines() {
    let folder = TempDir::new();
    let none = folder.write("none", "");
    let mut text = String::new();
    for number in 0..300_000u64 {
        let url = match number % 20 {
            0..10 => "http://big.com/".to_string(),
            10..18 => format!("http://big.com/{}", number / 20),
            _ => format!("http://site{number}.com/"),
        };
        writeln!(text, "1\t5\t{}\t7\t{url}\t1\t0", stamp(20_000 + number / 100)).unwrap();
    }
    let file = folder.write("lines.reflog", text);
    once(&folder, &file, &none, 23_000, "ours", &["--memory", "16MiB"]);
    gnu(&folder, &file, &none, 23_000, "gnu");
    assert_same(&folder, "ours", "gnu");
}

/// The same epoch in our own form, and wherever it lies.
#[test]
fn our_own_form_says_the_same_and_is_taken_back() {
    let folder = TempDir::new();
    let file = folder.write("lines.reflog", reflog(1, 20_000, 40_000));
    let none = folder.write("none", "");
    let told = once(&folder, &file, &none, 40_000, "text", &[]);
    for (out, current) in [("one", None), ("two", Some("one"))] {
        let mut command = nephila();
        command.args(["master", "once", "--json", "--now", &stamp(40_000), "--out"]).arg(folder.join(out));
        if let Some(before) = current {
            command.arg("--current").arg(folder.join(&format!("{before}/current_log")));
        }
        let output = command.arg(&file).output().unwrap();
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        match current {
            None => assert_eq!((&again["sent"], &again["kept"]), (&told["sent"], &told["kept"])),
            // All have just been sent, and none has another tag than its last.
            Some(_) => assert_eq!((&again["sent"], &again["kept"]), (&Value::from(0), &told["kept"])),
        }
    }
    // What is sent is a reflog, which is an epoch of its own.
    let sent = folder.join("one/filtered_log");
    let again = once(&folder, &sent, &none, 40_000, "again", &[]);
    assert_eq!((&again["sent"], &again["hits_sent"]), (&told["sent"], &told["hits_sent"]));
    // Rows of our own form have no URL unless one comes.
    let told = once(&folder, &none, &folder.join("two/current_log"), 40_000, "no-urls", &[]);
    let text = std::fs::read_to_string(folder.join("no-urls/current_log")).unwrap();
    assert_eq!(text.lines().count() as u64, told["kept"].as_u64().unwrap());
    assert!(text.lines().all(|line| line.starts_with('#')));
}

#[test]
fn what_cannot_be_read_is_said_in_a_line() {
    let folder = TempDir::new();
    let file = folder.write("lines.reflog", reflog(1, 10, 40_000));
    let bad = folder.write("bad", "http://a.ru/\ta.ru\tyesterday\n");
    let cut = folder.write("cut", b"NEPHCURR and no more");
    let run = |args: &[&str]| {
        let mut command = nephila();
        command.args(["master", "once", "--text", "--out"]).arg(folder.join("out")).args(args);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let [file, bad, cut] = [&file, &bad, &cut].map(|path| path.to_str().unwrap());
    for (args, status, words) in [
        (vec!["/no/such/file"], 2, "/no/such/file"),
        (vec![file, "--current", "/no/such/log"], 2, "/no/such/log"),
        (vec![file, "--current", bad], 3, "line 1"),
        (vec![file, "--current", cut], 3, "too short"),
        (vec![file, "--now", "20271399000000"], 2, "fourteen digits"),
        (vec![file, "--memory", "1MB"], 2, "--memory"),
    ] {
        let (code, text) = run(&args);
        assert_eq!(code, Some(status), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
    assert!(!folder.join("out/filtered_log").exists(), "a log is there whole or not at all");
}
