//! A node takes the queue that a master holds for it: nothing of it is lost, whatever becomes of masters and node; DONE is
//! said of what is on disk; and a master that is silent or makes no sense is changed for the other.

use crate::scripted_master::{
    Mood, ScriptedMaster, entry, known, node_command, position, start_node, status,
};
use crate::support::{LogServer, PATIENCE, Reply, Running, TempDir, run, wait_for};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

/// Nothing listens there.
fn urls(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("http://127.0.0.1:9/{number}")).collect()
}

fn entries(numbers: std::ops::Range<usize>) -> Vec<String> {
    urls(numbers).iter().map(|url| entry(url)).collect()
}

fn set(urls: Vec<String>) -> BTreeSet<String> {
    urls.into_iter().collect()
}

fn kill(node: Running) {
    node.signal(Signal::SIGKILL);
    let _ = node.wait(PATIENCE);
}

#[test]
fn what_is_done_is_on_disk_and_a_node_that_comes_back_goes_on() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let master = ScriptedMaster::with(entries(0..3_000));
    let node = start_node(&data, &[&master]);
    assert_eq!(master.hears("TAKE"), "TAKE 7 0 16384 MARKED");
    assert_eq!(master.hears("DONE"), "DONE 7 3000");
    kill(node);
    assert_eq!(known(&data), set(urls(0..3_000)), "killed as soon as it said DONE");
    assert_eq!(position(&data, &master), 3_000);

    master.forget();
    master.add(entries(3_000..3_010));
    let node = start_node(&data, &[&master]);
    assert_eq!(master.hears("TAKE"), "TAKE 7 3000 16384 MARKED", "by its own number");
    master.hears("DONE 7 3010");
    assert!(master.hears("LOAD").starts_with("LOAD 7 "));
    // What comes later is answered for at once, and another run is told nothing but its directory.
    let line = wait_for("status", PATIENCE, || {
        let line = status(&data)["master"].clone();
        (line["seq"] == 3_010).then_some(line)
    });
    assert_eq!((&line["server"], &line["used"]), (&7.into(), &master.addr.to_string().into()));
    assert_eq!((&line["mark"], line["taken"].as_u64()), (&"20260101120000".into(), Some(10)));
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).ended();
    master.forget();
    let mut again = crate::support::nephila();
    again.args(["crawl", "--json", "--data"]).arg(&data);
    let node = Running::start(&mut again);
    assert_eq!(master.hears("TAKE"), "TAKE 7 3010 16384 MARKED", "the directory keeps master and server");
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).ended();
    assert_eq!(known(&data), set(urls(0..3_010)));
}

#[test]
fn what_a_master_hands_in_is_fetched_and_links_are_not_followed_with_depth_0() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::links(["/linked"]),
    });
    let master = ScriptedMaster::with([entry(&server.url("/a")), entry(&server.url("/b"))]);
    let data = dir.join("data");
    let mut command = node_command(&data, &[&master]);
    command.args(["--req-host-per-sec", "0"]);
    let node = Running::start(&mut command);
    wait_for("both pages", PATIENCE, || (server.targets().len() >= 3).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    node.signal(Signal::SIGTERM);
    let report = node.wait(PATIENCE).done().json();
    assert_eq!((report["pages"].as_u64(), report["success"].as_u64()), (Some(2), Some(2)));
    assert_eq!(server.targets().len(), 3, "and robots.txt: {:?}", server.targets());
}

#[test]
fn a_master_is_told_of_pages_with_a_query_and_of_clean_param_lines() {
    let dir = TempDir::new();
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow:\nClean-param: ref&sid /shop\n"),
        _ => Reply::html("<link rel=canonical href=\"/shop\">page"),
    });
    let (plain, asked) = (server.url("/plain"), server.url("/shop?ref=1"));
    let master = ScriptedMaster::with([entry(&plain), entry(&asked)]);
    let mut command = node_command(&dir.join("data"), &[&master]);
    let node = Running::start(command.args(["--req-host-per-sec", "0"]));
    let page = master.hears("PAGE");
    let words: Vec<&str> = page.split(' ').collect();
    assert_eq!((words[1], words[2].len(), words[3], words[4]), ("200", 16, &*server.url("/shop"), &*asked));
    assert_eq!(master.hears("CLEAN"), format!("CLEAN {} ref&sid /shop", server.url("")));
    node.signal(Signal::SIGTERM);
    node.wait(PATIENCE).done();
    assert_eq!(master.told().iter().filter(|line| line.starts_with("PAGE")).count(), 1, "one has a query");
}

#[test]
fn a_silent_master_is_changed_for_the_other_which_is_asked_by_time() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (a, b) = (ScriptedMaster::with(entries(0..100)), ScriptedMaster::with(entries(50..150)));
    a.mark("20260101000100");
    b.mark("20260101000500");
    let node = start_node(&data, &[&a, &b]);
    a.hears("DONE 7 100");
    assert!(!b.told().iter().any(|line| line.starts_with("TAKE")), "one at a time");
    a.mood(Mood::Silent);
    assert_eq!(b.hears("TAKE"), "TAKE 7 SINCE 20251231235900 16384 MARKED", "two minutes before the mark");
    b.hears("DONE 7 100");
    // It stays there, and goes on by its number.
    b.hears("TAKE 7 100 ");
    a.mood(Mood::Good);
    b.add(entries(150..160));
    b.hears("DONE 7 110");
    assert_eq!(status(&data)["master"]["used"], b.addr.to_string());
    // A restart goes on with the one that was used.
    kill(node);
    a.forget();
    b.forget();
    let node = start_node(&data, &[&a, &b]);
    assert_eq!(b.hears("TAKE"), "TAKE 7 110 16384 MARKED");
    // Back again, by the time of the other's mark.
    b.mood(Mood::Closes);
    b.hang_up();
    assert_eq!(a.hears("TAKE"), "TAKE 7 SINCE 20260101000300 16384 MARKED");
    a.hears("DONE 7 100");
    node.signal(Signal::SIGTERM);
    let run = node.wait(PATIENCE).ended();
    assert!(run.stderr.contains(&format!("URLs come from the master {}", a.addr)), "{}", run.stderr);
    assert_eq!(known(&data), set(urls(0..160)));
}

#[test]
fn answers_that_make_no_sense_lose_nothing_and_the_other_master_is_used() {
    let moods = [
        Mood::Silent,
        Mood::Closes,
        Mood::Half,
        Mood::Dribbles,
        Mood::Ends("UPTO 3".to_string()),
        Mood::Ends("UPTO 9223372036854775808".to_string()),
        Mood::Ends("UPTO many".to_string()),
        Mood::Ends("UPTO 21 2026".to_string()),
        Mood::Ends("x".repeat(9_000)),
        Mood::Refuses("ERROR server 7 is taken by 10.0.0.9:4711".to_string()),
    ];
    std::thread::scope(|scope| {
        for (number, mood) in moods.into_iter().enumerate() {
            scope.spawn(move || {
                let dir = TempDir::new();
                let data = dir.join("data");
                let (a, b) = (ScriptedMaster::with(entries(0..10)), ScriptedMaster::with(entries(0..40)));
                // One that never ends and is never silent is given a minute.
                let is_endless = mood == Mood::Dribbles;
                // Of no use until the first has been used.
                b.mood(Mood::Closes);
                let both = [&a, &b];
                let node = start_node(&data, if is_endless { &both[..1] } else { &both });
                a.hears("DONE 7 10");
                b.mood(Mood::Good);
                a.mood(mood.clone());
                a.add(entries(10..20));
                if is_endless {
                    a.hears("TAKE 7 10 ");
                    std::thread::sleep(Duration::from_secs(2));
                } else {
                    b.hears("DONE 7 40");
                }
                kill(node);
                assert_eq!(position(&data, &a), 10, "{number} {mood:?}");
                let expected = if is_endless { 10 } else { 40 };
                assert!(known(&data).is_superset(&set(urls(0..expected))), "{mood:?}");
                // The first is in order again, and nobody else is there.
                a.mood(Mood::Good);
                drop(b);
                a.forget();
                let node = start_node(&data, &[&a]);
                a.hears("DONE 7 20");
                kill(node);
                assert!(known(&data).is_superset(&set(urls(0..20))), "{mood:?}");
            });
        }
    });
}

#[test]
fn an_entry_that_cannot_be_read_is_counted_and_stops_nothing() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let bad = [
        "1\t5\t20260101120000\t17\tftp://a/\t1\t".to_string(),
        "1\tx".to_string(),
        "rubbish \u{1b}[31m".to_string(),
        format!("1\t5\t20260101120000\t17\thttp://a/{}\t1\t", "x".repeat(8_300)),
    ];
    let master = ScriptedMaster::with(entries(0..5).into_iter().chain(bad).chain(entries(5..10)));
    let node = start_node(&data, &[&master]);
    master.hears("DONE 7 14");
    assert_eq!(status(&data)["master"]["bad"], 4);
    node.signal(Signal::SIGTERM);
    let run = node.wait(PATIENCE).ended();
    assert_eq!(known(&data), set(urls(0..10)));
    assert_eq!(run.stderr.matches("an entry cannot be read").count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains('\u{1b}'));
}

#[test]
fn a_master_that_refuses_is_named_once_and_asked_again() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let master = ScriptedMaster::with(entries(0..5));
    master.mood(Mood::Refuses("ERROR server 7 is taken by 10.0.0.9:4711".to_string()));
    let node = start_node(&data, &[&master]);
    let asked = || master.told().iter().filter(|line| line.starts_with("TAKE")).count();
    wait_for("three questions", PATIENCE, || (asked() >= 3).then_some(()));
    let trouble = status(&data)["master"]["trouble"].to_string();
    assert!(trouble.contains("server 7 is taken by 10.0.0.9:4711"), "{trouble}");
    master.mood(Mood::Good);
    master.hears("DONE 7 5");
    node.signal(Signal::SIGTERM);
    let run = node.wait(PATIENCE).ended();
    assert_eq!(run.stderr.matches("server 7 is taken by 10.0.0.9:4711").count(), 1, "{}", run.stderr);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let master = ScriptedMaster::with(entries(0..5));
    let node = start_node(&data, &[&master]);
    master.hears("DONE 7 5");
    kill(node);
    let address = master.addr.to_string();
    let data = data.to_str().unwrap();
    for (flags, said) in [
        (&["--master", &address, "--server", "8"][..], "holds what was taken for server 7"),
        (&["--fresh-settings", "--master", &address], "give its number with --server"),
        (&["--fresh-settings", "--server", "7"], "give one with --master"),
        (&["--master", "nowhere"], "must be HOST:PORT"),
        (&["--master", &format!("{address},{address}")], "none twice"),
        (&["--server", "70000"], "70000"),
    ] {
        let refused = run(["crawl", "--data", data].iter().chain(flags));
        assert_eq!(refused.code(), 2, "{flags:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{flags:?}: {}", refused.stderr);
    }
    let position = std::path::Path::new(data).join("master.position");
    std::fs::write(&position, "nephila master.position 1\nserver 7\ncrc32c 00000000\n").unwrap();
    let refused = run(["crawl", "--data", data]);
    assert_eq!(refused.code(), 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("master.position is damaged"), "{}", refused.stderr);
}

#[test]
fn a_node_killed_at_any_moment_is_never_ahead_of_its_index() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let master = ScriptedMaster::start();
    let mut known_before = 0;
    for round in 0..8 {
        master.add(entries(2_000 * round..2_000 * (round + 1)));
        let node = start_node(&data, &[&master]);
        std::thread::sleep(Duration::from_millis(40 + 60 * (round as u64 % 5)));
        kill(node);
        let at = position(&data, &master) as usize;
        // Killed before its index was made, it has none.
        let known = if at > 0 { known(&data) } else { BTreeSet::new() };
        assert!(known.is_superset(&set(urls(0..at))), "{at} of {} in round {round}", known.len());
        assert!(at == 0 || known.len() >= known_before, "round {round}");
        known_before = known_before.max(known.len());
    }
    master.forget();
    let node = start_node(&data, &[&master]);
    wait_for("all of it", PATIENCE, || (position(&data, &master) == 16_000).then_some(()));
    kill(node);
    assert_eq!(known(&data), set(urls(0..16_000)));
}
