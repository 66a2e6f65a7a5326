//! The promise: `master args` shows what is known of a domain's parameters, and a person's word is kept and wins.

use crate::master_process::{MasterProcess, all_of, line};
use crate::support::*;

fn args(dir: &TempDir, words: &[&str]) -> Run {
    let data = dir.path().to_str().unwrap();
    run([&["master", "args"], words, &["--data", data]].concat())
}

#[test]
fn a_word_is_kept_shown_and_taken_back() {
    let dir = TempDir::new();
    let nothing = args(&dir, &["a.test"]);
    assert_eq!((nothing.code(), &*nothing.text()), (1, "nothing is known of parameters of a.test\n"));
    assert_eq!(args(&dir, &["set", "A.test", "sid", "drop"]).done().text(), "sid of a.test is dropped\n");
    args(&dir, &["set", "m.a.test", "id", "keep"]).done();
    args(&dir, &["set", "b.test", "x", "drop"]).done();
    assert_eq!(args(&dir, &["a.test"]).done().text(), "keep     person    id\ndrop     person    sid\n");
    let told = args(&dir, &["m.a.test", "--json"]).done().json();
    assert_eq!((&told["args"][0]["arg"], &told["args"][0]["by"]), (&"id".into(), &"person".into()), "{told}");
    args(&dir, &["set", "a.test", "sid", "unset"]).done();
    assert_eq!(args(&dir, &["a.test"]).done().text(), "keep     person    id\n");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let dir = TempDir::new();
    for words in [
        &["set", "a/b", "sid", "drop"][..],
        &["set", "a.test", "a&b", "drop"],
        &["set", "a.test", "x", "maybe"],
        &["set", "a.test"],
        &[],
    ] {
        let run = args(&dir, words);
        assert_eq!((run.code(), &*run.text()), (2, ""), "{words:?}");
    }
    let none = run(["master", "args", "a.test", "--data", dir.join("none").to_str().unwrap()]);
    assert_eq!(none.code(), 3);
    assert!(
        none.stderr.contains("is no directory (name the data directory of a master")
            && none.stderr.lines().count() == 1,
        "{}",
        none.stderr
    );
    assert!(!dir.join("none").exists());
    dir.write("args.journal", "rubbish\n");
    let damaged = args(&dir, &["a.test"]);
    assert_eq!(damaged.code(), 3);
    assert!(damaged.stderr.contains("args.journal is none, or of another version"), "{}", damaged.stderr);
}

#[test]
fn an_epoch_goes_by_it_and_sends_the_url_that_came_last() {
    let dir = TempDir::new();
    let data = dir.path().join("data");
    let path = data.to_str().unwrap();
    let line =
        |second: u32, page: &str| format!("1\t5\t201107272008{second:02}\t7\thttp://a.test/x?{page}\t2\t\n");
    let first =
        dir.write("first", [line(1, "id=1&sid=a"), line(3, "id=1&sid=b"), line(2, "id=2&sid=a")].concat());
    let once = |file: &std::path::Path, now: &str| {
        run(["master", "once", file.to_str().unwrap(), "--data", path, "--now", now, "--json"]).done().json()
    };
    assert_eq!(once(&first, "20110727200900")["sent"], 3);
    run(["master", "args", "set", "a.test", "sid", "drop", "--data", path]).done();
    let second = dir
        .write("second", [line(11, "id=3&sid=a"), line(13, "id=3&sid=b"), line(12, "id=3&sid=c")].concat());
    let told = once(&second, "20110727200901");
    assert_eq!((&told["sent"], &told["hits_sent"]), (&1.into(), &6.into()), "{told}");
    // Another session is the same document, and was sent.
    let explained =
        run(["master", "explain", "http://a.test/x?id=3&sid=new", "--data", path, "--now", "20110727200902"]);
    let text = explained.text();
    assert!(text.contains("sent 49 s before, without a tag: sent again from 2011-07-27T21:08:14"), "{text}");
    assert!(
        text.contains("counts as  http://a.test/x?id=3 (") && text.contains(" to server 1 as "),
        "{text}"
    );
    let queue = run(["master", "queue", "cat", "1", "--data", path]).done().text();
    let urls: Vec<&str> = queue.lines().filter(|line| line.contains("id=3")).collect();
    assert!(urls.len() == 1 && urls[0].contains("http://a.test/x?id=3&sid=b\t6\t"), "{queue}");
}

#[test]
fn what_nodes_see_makes_one_document_of_many_urls() {
    let master = MasterProcess::start();
    let mut node = master.client();
    let url = |page: u32, session: &str| format!("http://a.test/x?id={page}&sid={session}");
    // Sessions make no difference, pages do: 20 pages in four sessions each are 60 pairs over four values.
    let mut words = "LOAD 1 1\n".to_string();
    for page in 0..20 {
        for session in ["a", "b", "c", "d"] {
            words += &format!("PAGE 200 {:016x} - {}\n", 1_000 + page, url(page, session));
        }
    }
    node.say(&format!("{words}LOAD 1 4711\n"));
    wait_for("all of it is heard", PATIENCE, || {
        (master.status()["servers"][0]["pending"] == 4_711).then_some(())
    });
    master.give("a", ["e", "f", "g"].map(|session| line(&url(77, session))).concat());
    let status = master.wait_sent(1);
    assert_eq!((&status["lines"], &status["sent"]), (&3.into(), &1.into()), "{status}");
    let known = run(["master", "args", "a.test", "--data", master.data().to_str().unwrap()]).done().text();
    assert!(known.contains("drop     learned   sid on /x: 50 pairs over 4 values, 50 same, 0"), "{known}");
    // A page that is known by another session goes once: the whole URL that came last, with the hits of all.
    // Server 1 is whoever has spoken for it.
    let mut lines = all_of(&mut node, 1);
    lines.extend(all_of(&mut master.client(), 2));
    assert!(lines.len() == 1 && lines[0].contains("?id=77&sid=g\t3\t"), "{lines:?}");
    master.give("b", line(&url(77, "h")));
    wait_for("it is taken", PATIENCE, || (master.status()["epoch"] == 2).then_some(()));
    assert_eq!((&master.status()["sent"], &master.status()["hits_waiting"]), (&1.into(), &1.into()));
}
